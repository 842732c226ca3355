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

/// No longer than a fortieth of the highest harmonic's period, s.
[[nodiscard]] double finest_step(const ExcitationOptions& options) {
  return std::min(options.step, options.period / (40.0 * options.harmonics));
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
      const double lower = joint.limits.lower;
      const double upper = joint.limits.upper;
      const bool bounded = std::isfinite(lower) && std::isfinite(upper);
      const double half = bounded ? 0.5 * (upper - lower) : free_reach;
      const double middle = bounded                ? 0.5 * (lower + upper)
                            : std::isfinite(lower) ? std::max(0.0, lower + half)
                            : std::isfinite(upper) ? std::min(0.0, upper - half)
                                                   : 0.0;
      middle_.push_back(middle);
      reach_.push_back(options.share * std::min(half, free_reach));
      speed_.push_back(options.share *
                       (std::isfinite(joint.limits.velocity) ? joint.limits.velocity : free_speed));
      still_.push_back(!(reach_.back() > 0.0) || !(speed_.back() > 0.0));
    }
  }

  [[nodiscard]] Excitation run() {
    if (std::all_of(still_.begin(), still_.end(), [](bool still) { return still; }))
      throw ConfigError("limits", model_.name,
                        "each joint has no range or no velocity; correct them in the URDF");
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
    hold_limits(best);
    for (std::size_t j = 0; j < still_.size(); ++j)
      if (still_[j]) best.still.push_back(model_.joints[j].name);
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
    scale_motion(e, 0.02);
    for (int round = 0; round < 8 && effort_share(e, 0.05) > options_.share; ++round) {
      e.sine *= 0.8;
      e.cosine *= 0.8;
    }
    return e;
  }

  /// The same at each sample that is written, and so finely that nothing happens in between.
  void hold_limits(Excitation& e) {
    constexpr int rounds = 30;
    const double step = finest_step(options_);
    scale_motion(e, step);
    for (int round = 0; effort_share(e, step) > options_.share; ++round) {
      if (round == rounds)
        throw ConfigError("share", text::to_text(options_.share),
                          "standing still at the middle of its range takes more than this of the "
                          "robot's limits of effort; give a larger share");
      e.sine *= 0.8;
      e.cosine *= 0.8;
    }
    e.condition = condition(e);
  }

  /// Position, velocity and acceleration of each joint are proportional to its series.
  void scale_motion(Excitation& e, double step) const {
    constexpr double margin = 1.005;  // between the samples
    VectorX<double> q(model_.nv), v(model_.nv), a(model_.nv);
    VectorX<double> most = VectorX<double>::Zero(model_.nv);
    const int samples = static_cast<int>(e.duration / step) + 1;
    for (int i = 0; i <= samples; ++i) {
      e.at(std::min(i * step, e.duration), q, v, a);
      for (int j = 0; j < model_.nv; ++j) {
        const auto k = static_cast<std::size_t>(j);
        if (still_[k]) continue;
        most[j] = std::max({most[j], std::abs(q[j] - e.rest[j]) / reach_[k],
                            std::abs(v[j]) / speed_[k], std::abs(a[j]) / options_.acceleration});
      }
    }
    for (int j = 0; j < model_.nv; ++j) {
      const double scale =
          still_[static_cast<std::size_t>(j)] ? 0.0 : 1.0 / std::max(margin * most[j], 1e-9);
      e.sine.row(j) *= scale;
      e.cosine.row(j) *= scale;
    }
  }

  /// The largest effort beside its limit.
  [[nodiscard]] double effort_share(const Excitation& e, double step) {
    VectorX<double> q(model_.nv), v(model_.nv), a(model_.nv), tau(model_.nv);
    double most = 0.0;
    const int samples = static_cast<int>(e.duration / step) + 1;
    for (int i = 0; i <= samples; ++i) {
      e.at(std::min(i * step, e.duration), q, v, a);
      if (robot_.inverse_dynamics(q, v, a, tau) != Status::ok)
        return std::numeric_limits<double>::infinity();
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
    // Joints that stay at rest leave columns of zeros.
    std::vector<Eigen::Index> told;
    for (Eigen::Index k = 0; k < n; ++k)
      if (H(k, k) > 1e-20 * H.diagonal().maxCoeff()) told.push_back(k);
    if (told.empty()) return std::numeric_limits<double>::infinity();
    const auto m = static_cast<Eigen::Index>(told.size());
    Eigen::MatrixXd C(m, m);
    for (Eigen::Index r = 0; r < m; ++r)
      for (Eigen::Index c = 0; c < m; ++c) {
        const Eigen::Index i = told[static_cast<std::size_t>(r)];
        const Eigen::Index j = told[static_cast<std::size_t>(c)];
        C(r, c) = H(i, j) / std::sqrt(H(i, i) * H(j, j));
      }
    const Eigen::VectorXd d =
        Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(C, Eigen::EigenvaluesOnly).eigenvalues();
    // Beside joints at rest some parameters are one to the efforts, whatever the others do.
    const bool some_rest = std::find(still_.begin(), still_.end(), true) != still_.end();
    const double floor = some_rest ? 1e-9 * d[m - 1] : 0.0;
    Eigen::Index least = 0;
    while (some_rest && least < m - 1 && d[least] <= floor) ++least;
    return d[least] > floor ? std::sqrt(d[m - 1] / d[least])
                            : std::numeric_limits<double>::infinity();
  }

  const Model& model_;
  const ExcitationOptions& options_;
  Dynamics<double> robot_;
  BaseParameters base_;
  std::mt19937 random_;
  std::vector<double> middle_, reach_, speed_;
  std::vector<bool> still_;
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
  constexpr double most_samples = 1e6;
  if (!(options.duration <= most_samples * finest_step(options)))
    throw ConfigError("duration", text::to_text(options.duration),
                      "takes more than a million samples; give less of it, a lower rate, a longer "
                      "period or fewer harmonics");
  if (model.nv == 0)
    throw ConfigError("robot", model.name, "none of its joints moves; name those that do");
  for (const JointInfo& joint : model.joints)
    if (joint.nv != 1)
      throw ConfigError("joint '" + joint.name + "'", to_string(joint.type),
                        "only joints with one degree of freedom can be excited; lock it");
  return Search(model, options).run();
}

}  // namespace dynamics_core::identification
