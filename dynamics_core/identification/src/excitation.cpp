// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/identification/excitation.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "dynamics_core/config_error.hpp"
#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/regressor.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core::identification {

namespace {

constexpr double turn = 6.283185307179586;

/// A joint without limits turns by so much to either side, rad or m.
constexpr double free_reach = 2.0;
constexpr double free_speed = 2.0;

/// s and its derivatives: 10 u³ − 15 u⁴ + 6 u⁵ at both ends.
[[nodiscard]] std::array<double, 3> ramp_at(double t, double duration, double ramp) {
  const bool ending = t > 0.5 * duration;
  const double u = std::clamp((ending ? duration - t : t) / ramp, 0.0, 1.0);
  const double sign = ending ? -1.0 : 1.0;
  return {u * u * u * (10.0 - 15.0 * u + 6.0 * u * u),
          sign * 30.0 * u * u * (1.0 - u) * (1.0 - u) / ramp,
          60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) / (ramp * ramp)};
}

class Search {
 public:
  Search(const Model& model, const ExcitationOptions& options)
      : model_(model),
        options_(options),
        robot_(model),
        base_(base_parameters(model)),
        random_(options.seed) {
    for (const JointInfo& joint : model.joints) {
      const bool bounded = std::isfinite(joint.limits.lower) && std::isfinite(joint.limits.upper);
      const double middle = bounded ? 0.5 * (joint.limits.lower + joint.limits.upper) : 0.0;
      const double half = bounded ? 0.5 * (joint.limits.upper - joint.limits.lower) : free_reach;
      middle_.push_back(middle);
      reach_.push_back(options.share * std::min(half, free_reach));
      speed_.push_back(options.share *
                       (std::isfinite(joint.limits.velocity) ? joint.limits.velocity : free_speed));
    }
  }

  [[nodiscard]] Excitation run() {
    Excitation best = random_series();
    best.condition = condition(best);
    for (int k = 0; k < options_.tries; ++k) {
      // A third of the tries start anew, the others change the best one.
      Excitation next = k % 3 == 0 ? random_series() : changed(best);
      next.condition = condition(next);
      if (next.condition < best.condition) best = next;
      if (options_.progress)
        options_.progress(static_cast<double>(k + 1) / options_.tries, best.condition);
    }
    return best;
  }

 private:
  [[nodiscard]] double uniform() {
    return 2.0 * static_cast<double>(random_()) / 4294967295.0 - 1.0;
  }

  [[nodiscard]] Excitation random_series() {
    Excitation e;
    e.duration = options_.duration;
    e.ramp = options_.ramp;
    e.period = options_.period;
    e.rest = Eigen::Map<const Eigen::VectorXd>(middle_.data(), model_.nv);
    e.sine.resize(model_.nv, options_.harmonics);
    e.cosine.resize(model_.nv, options_.harmonics);
    for (int k = 0; k < options_.harmonics; ++k)
      for (int j = 0; j < model_.nv; ++j) {
        e.sine(j, k) = uniform() / (k + 1);
        e.cosine(j, k) = uniform() / (k + 1);
      }
    return within_limits(e);
  }

  [[nodiscard]] Excitation changed(Excitation e) {
    for (double& x : e.sine.reshaped()) x += 0.1 * uniform();
    for (double& x : e.cosine.reshaped()) x += 0.1 * uniform();
    return within_limits(e);
  }

  /// As large as the limits of positions, velocities, accelerations and efforts allow.
  [[nodiscard]] Excitation within_limits(Excitation e) {
    VectorX<double> q(model_.nv), v(model_.nv), a(model_.nv);
    VectorX<double> most = VectorX<double>::Zero(model_.nv);
    for (double t = 0.0; t <= e.duration; t += 0.02) {
      e.at(t, q, v, a);
      for (int j = 0; j < model_.nv; ++j) {
        const auto k = static_cast<std::size_t>(j);
        most[j] = std::max({most[j], std::abs(q[j] - e.rest[j]) / reach_[k],
                            std::abs(v[j]) / speed_[k], std::abs(a[j]) / options_.acceleration});
      }
    }
    for (int j = 0; j < model_.nv; ++j) {
      e.sine.row(j) /= std::max(most[j], 1e-9);
      e.cosine.row(j) /= std::max(most[j], 1e-9);
    }
    for (int round = 0; round < 8 && effort_share(e) > options_.share; ++round) {
      e.sine *= 0.8;
      e.cosine *= 0.8;
    }
    return e;
  }

  /// The largest effort beside its limit.
  [[nodiscard]] double effort_share(const Excitation& e) {
    VectorX<double> q(model_.nv), v(model_.nv), a(model_.nv), tau(model_.nv);
    double most = 0.0;
    for (double t = 0.0; t <= e.duration; t += 0.05) {
      e.at(t, q, v, a);
      if (robot_.inverse_dynamics(q, v, a, tau) != Status::ok) return 0.0;
      for (const JointInfo& joint : model_.joints)
        if (joint.limits.effort > 0.0)
          most = std::max(most, std::abs(tau[joint.v]) / joint.limits.effort);
    }
    return most;
  }

  [[nodiscard]] double condition(const Excitation& e) {
    const int n = base_.size();
    Eigen::MatrixXd H = Eigen::MatrixXd::Zero(n, n);
    Eigen::MatrixXd Y(model_.nv, base_.K.cols());
    VectorX<double> q(model_.nv), v(model_.nv), a(model_.nv);
    const int samples = 2 * static_cast<int>(base_.K.cols());
    for (int i = 0; i < samples; ++i) {
      e.at(e.duration * (i + 0.5) / samples, q, v, a);
      if (robot_.regressor().matrix(q, v, a, Y) != Status::ok)
        return std::numeric_limits<double>::infinity();
      const Eigen::MatrixXd W = base_.select(Y);
      H += W.transpose() * W;
    }
    const Eigen::VectorXd size = H.diagonal().cwiseMax(1e-30).cwiseSqrt();
    const Eigen::MatrixXd C =
        size.cwiseInverse().asDiagonal() * H * size.cwiseInverse().asDiagonal();
    const Eigen::VectorXd d =
        Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(C, Eigen::EigenvaluesOnly).eigenvalues();
    return d[0] > 0.0 ? std::sqrt(d[n - 1] / d[0]) : std::numeric_limits<double>::infinity();
  }

  const Model& model_;
  const ExcitationOptions& options_;
  Dynamics<double> robot_;
  BaseParameters base_;
  std::mt19937 random_;
  std::vector<double> middle_, reach_, speed_;
};

}  // namespace

void Excitation::at(double t, VectorX<double>& q, VectorX<double>& v, VectorX<double>& a) const {
  const auto [s, ds, dds] = ramp_at(t, duration, ramp);
  VectorX<double> x = VectorX<double>::Zero(rest.size());
  VectorX<double> dx = x;
  VectorX<double> ddx = x;
  for (Eigen::Index k = 0; k < sine.cols(); ++k) {
    const double w = turn * static_cast<double>(k + 1) / period;
    const double c = std::cos(w * t);
    const double sn = std::sin(w * t);
    x += sine.col(k) * sn + cosine.col(k) * c;
    dx += w * (sine.col(k) * c - cosine.col(k) * sn);
    ddx -= w * w * (sine.col(k) * sn + cosine.col(k) * c);
  }
  q = rest + s * x;
  v = ds * x + s * dx;
  a = dds * x + 2.0 * ds * dx + s * ddx;
}

Excitation excite(const Model& model, const ExcitationOptions& options) {
  if (!(options.duration > 2.0 * options.ramp) || !(options.ramp > 0.0))
    throw ConfigError("duration", text::to_text(options.duration),
                      "give more than twice the ramp, " + text::to_text(options.ramp) + " s");
  if (model.nv == 0)
    throw ConfigError("robot", model.name, "none of its joints moves; name those that do");
  for (const JointInfo& joint : model.joints)
    if (joint.nv != 1)
      throw ConfigError("joint '" + joint.name + "'", to_string(joint.type),
                        "only joints with one degree of freedom can be excited; lock it");
  return Search(model, options).run();
}

}  // namespace dynamics_core::identification
