// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/identification/weigh.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/identification/consistent.hpp"
#include "dynamics_core/identification/equations.hpp"
#include "dynamics_core/identification/signals.hpp"
#include "dynamics_core/regressor.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core::identification {

namespace {

using Eigen::Index;

/// Of a joint, after the ten of the load: rotor, offset, viscous and Coulomb friction.
constexpr int own = 4;

/// The place of a body's parameters in the regressor; −1: it has none.
[[nodiscard]] int first_column(const Model& model, int body) {
  int column = 0;
  for (int b = 0; b < body; ++b)
    column += std::any_of(model.links.begin(), model.links.end(),
                          [&](const LinkInfo& link) { return link.body == b; })
                  ? 10
                  : 0;
  return column;
}

/// The parameters in the body's frame of a body given in the link's.
[[nodiscard]] Eigen::Matrix<double, 10, 10> to_body(const Pose<double>& X) {
  Eigen::Matrix4d T = Eigen::Matrix4d::Identity();
  T.topLeftCorner<3, 3>() = X.R;
  T.topRightCorner<3, 1>() = X.p;
  Eigen::Matrix<double, 10, 10> A;
  for (int k = 0; k < 10; ++k)
    A.col(k) = body_parameters(T * pseudo_inertia(BodyParameters::Unit(k)) * T.transpose());
  return A;
}

}  // namespace

WeighedLoad weigh(const Model& model, const Drives& drives, bool friction_known,
                  const std::vector<Recording>& recordings, int link) {
  const LinkInfo& on = model.links[static_cast<std::size_t>(link)];
  if (on.body < 0)
    throw LogError(recordings.front().source, "link '" + on.name + "' does not move",
                   "name the link that carries the load with --weigh");
  std::vector<bool> used;
  for (std::size_t j = 0; j < drives.joints.size(); ++j)
    used.push_back(drives.joints[j].factor != 0.0 &&
                   std::any_of(recordings.begin(), recordings.end(),
                               [&](const Recording& r) { return r.has_effort[j]; }));
  if (std::none_of(used.begin(), used.end(), [](bool is) { return is; }))
    throw LogError(recordings.front().source, "has no efforts that can be used",
                   "record those of the joints that carry the load");
  check_efforts(model, recordings, used);
  const int column = first_column(model, on.body);
  const Eigen::Matrix<double, 10, 10> A = to_body(on.X_BL);
  const int nv = model.nv;
  const int unknowns = 10 + own * nv;
  const VectorX<double> rest = rest_speed(recordings);

  // Products of each joint's columns, the last of which is what the model leaves of the efforts.
  std::vector<MatrixX<double>> products(static_cast<std::size_t>(nv),
                                        MatrixX<double>::Zero(unknowns + 2, unknowns + 2));
  VectorX<double> samples = VectorX<double>::Zero(nv);
  double redundancy = 1.0;
  Dynamics<double> robot(model);
  if (!drives.gravity) (void)robot.set_gravity(Vec3<double>::Zero());
  Eigen::MatrixXd Y(nv, robot.regressor().columns());
  for (const Recording& recording : recordings) {
    const double rate = 1.0 / recording.period;
    const int every = std::max(1, static_cast<int>(rate / (10.0 * drives.cutoff)));
    redundancy = std::max(1.0, rate / every / (2.0 * drives.cutoff));
    const LowPass low_pass(drives.cutoff, rate / every);
    for (const Stretch& raw : recording.stretches) {
      const Stretch s =
          differentiated(raw, recording.period, smoothing_width * drives.cutoff, every);
      const Index n = s.samples();
      const MatrixX<double> model_effort = efforts(s, recording.period * every, model, drives);
      const MatrixX<double> tau = aligned(raw, recording.period, every, drives);
      std::vector<MatrixX<double>> X(static_cast<std::size_t>(nv),
                                     MatrixX<double>::Zero(n, unknowns + 2));
      for (Index i = 0; i < n; ++i) {
        (void)robot.regressor().matrix(s.q.row(i).transpose(), s.v.row(i).transpose(),
                                       s.a.row(i).transpose(), Y);
        const Eigen::MatrixXd load = Y.middleCols(column, 10) * A;
        for (int j = 0; j < nv; ++j) {
          MatrixX<double>& x = X[static_cast<std::size_t>(j)];
          const JointFriction<double>& f = drives.joints[static_cast<std::size_t>(j)].friction;
          x.row(i).head(10) = load.row(j);
          const Index at = 10 + own * j;
          x(i, at) = s.a(i, j);
          x(i, at + 1) = 1.0;
          x(i, at + 2) = s.v(i, j);
          x(i, at + 3) = smooth_sign(s.v(i, j), std::max(f.transition, 0.01));
          x(i, unknowns) = tau(i, j) - model_effort(i, j);
          x(i, unknowns + 1) = tau(i, j);
        }
      }
      const auto edge = static_cast<Index>(rate / every / drives.cutoff);
      for (int j = 0; j < nv; ++j) {
        const auto k = static_cast<std::size_t>(j);
        if (!used[k] || !recording.has_effort[k]) continue;
        MatrixX<double>& x = X[static_cast<std::size_t>(j)];
        low_pass.apply(x);
        for (Index i = edge; i < n - edge; ++i) {
          if (std::abs(s.v(i, j)) < rest[j]) continue;
          products[static_cast<std::size_t>(j)] += x.row(i).transpose() * x.row(i);
          samples[j] += 1.0;
        }
      }
    }
  }

  VectorX<double> noise = VectorX<double>::Ones(nv);
  VectorX<double> solution = VectorX<double>::Zero(unknowns);
  Eigen::MatrixXd H;
  WeighedLoad result;
  for (int round = 0; round < 4; ++round) {
    H = Eigen::MatrixXd::Zero(unknowns, unknowns);
    Eigen::VectorXd g = Eigen::VectorXd::Zero(unknowns);
    // Gains of some per cent are wrong, and those errors do not average out: joints with little
    // effort and noise do not decide alone if the noise counts once and not squared.
    const double typical = noise.mean();
    for (int j = 0; j < nv; ++j) {
      if (samples[j] == 0.0) continue;
      const MatrixX<double>& G = products[static_cast<std::size_t>(j)];
      const double weight = 1.0 / (noise[j] * typical * redundancy);
      H += weight * G.topLeftCorner(unknowns, unknowns);
      g += weight * G.col(unknowns).head(unknowns);
    }
    for (int j = 0; j < nv; ++j) {
      const Drive& drive = drives.joints[static_cast<std::size_t>(j)];
      const double friction = drive.friction.coulomb + 1e-3;
      // How much each may differ.
      const double spread[own] = {1e-3 * drive.rotor + 1e-6, 0.1 * friction,
                                  0.2 * drive.friction.viscous + 1e-3, 0.2 * friction};
      for (int k = 0; k < own; ++k) {
        const double wide = friction_known ? spread[k] : 1e3;
        H(10 + own * j + k, 10 + own * j + k) += 1.0 / (wide * wide);
      }
    }
    for (int k = 0; k < 10; ++k) H(k, k) += k < 4 ? 1e-6 : 1e-1;  // inertias of some kg·m² at most
    solution = H.ldlt().solve(g);
    double error = 0.0;
    double before = 0.0;
    double signal = 0.0;
    Eigen::VectorXd one(unknowns + 2);
    one << solution, -1.0, 0.0;
    for (int j = 0; j < nv; ++j) {
      if (samples[j] == 0.0) continue;
      const MatrixX<double>& G = products[static_cast<std::size_t>(j)];
      const double left = std::max(0.0, one.dot(G * one));
      error += left;
      before += G(unknowns, unknowns);
      signal += G(unknowns + 1, unknowns + 1);
      noise[j] = std::sqrt(left / samples[j]) + 1e-6;
    }
    result.without = std::sqrt(before / signal);
    result.with = std::sqrt(error / signal);
  }

  const Eigen::MatrixXd covariance = H.ldlt().solve(Eigen::MatrixXd::Identity(unknowns, unknowns));
  const double m = solution[0];
  result.payload.mass = m;
  result.mass_deviation = std::sqrt(covariance(0, 0));
  if (result.mass_deviation > 100.0)  // what was assumed, and not what the efforts say
    throw LogError(recordings.front().source,
                   "its efforts do not tell the mass on '" + on.name + "'",
                   "record those of more joints, nearer to the base, while all of them move");
  // Less than nothing, and by more than a load too small to be seen.
  if (!(samples.sum() > 0.0) || !std::isfinite(m + result.mass_deviation) ||
      m < -0.05 - 5.0 * result.mass_deviation)
    throw LogError(recordings.front().source,
                   "the load on '" + on.name + "' would weigh " + text::to_short_text(m) + " kg",
                   "is it the log of this robot, in motion, and are its model and gains right?");
  result.payload.com = solution.segment<3>(1) / m;
  for (int k = 0; k < 3; ++k)
    result.com_deviation[k] = std::sqrt(covariance(1 + k, 1 + k)) / std::abs(m);
  const Eigen::Matrix4d P = pseudo_inertia(solution.head<10>());
  const Eigen::Matrix3d S =
      P.topLeftCorner<3, 3>() - m * result.payload.com * result.payload.com.transpose();
  result.rigid =
      m > 0.0 && Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d>(S).eigenvalues()[0] >= 0.0;
  const Eigen::Matrix3d I = S.trace() * Eigen::Matrix3d::Identity() - S;
  result.payload.inertia = Symmetric3<double>::from(I);
  return result;
}

}  // namespace dynamics_core::identification
