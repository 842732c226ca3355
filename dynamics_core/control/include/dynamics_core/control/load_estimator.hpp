// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Weighs what a link carries while the robot moves.
///
///     control::LoadEstimator scales(model, config);  // throws ConfigError
///     while (moving) (void)scales.update({q, v, tau}, dt);
///     control::LoadEstimate load;
///     if (scales.estimate(load) == Status::ok) { ... load.mass ± load.mass_deviation ... }
///
/// The efforts that a load takes are linear in its ten parameters π = (m, m c, I about the link's
/// origin, all in the link's axes): with d of momentum_balance.hpp,
///
///     −d = Y(q̄, v̄, Δv/h) π + e.                                                    (1)
///
/// Both sides pass the same filter of first order, so that no acceleration is needed that is better
/// than the change of the speed. The least squares are kept as sums,
///
///     A ← a A + Σ_j y_jᵀ y_j h/(σ_j² t_c),   b ← a b + Σ_j y_jᵀ d_j h/(σ_j² t_c),     (2)
///
/// σ_j: noise, and at rest the joint's dry friction, whose sign nobody knows. Errors of a model are
/// no white noise: only what lies a time t_c apart counts as two measurements. With D, the prior's
/// deviations of the parameters, π = (A + D⁻²)⁻¹ b, and its covariance is
///
///     P = max(1, χ²) (A + D⁻²)⁻¹                                                    (3)
///
/// where χ² is the mean square of e/σ. docs/contacts.md says more.

#include <limits>
#include <string>
#include <vector>

#include "dynamics_core/control/momentum_balance.hpp"
#include "dynamics_core/payload.hpp"

namespace dynamics_core::control {

struct LoadEstimatorConfig : BalanceConfig {
  std::string link;     ///< that carries the load; empty: the last one that the last joint moves
  double cutoff = 5.0;  ///< Hz, of the filter of (1)
  /// N·m or N, by joint: the model's error in motion. Empty: a hundredth of the effort limit, 1
  /// where there is none.
  std::vector<double> noise;
  double correlation_time = 1.0;    ///< t_c, s
  double stiction_velocity = 0.01;  ///< rad/s; below it the sign of friction is doubtful
  /// s in which what was measured counts for e⁻¹ of what is new; infinity: for ever.
  double memory = std::numeric_limits<double>::infinity();
  double typical_mass = 10.0;   ///< kg; with the next the prior D: of m,
  double typical_radius = 0.2;  ///< m; of m c (mass × radius) and I (mass × radius²)
};

/// Deviations are standard deviations.
struct LoadEstimate {
  double mass = 0.0;  ///< kg; may be a little below zero where there is no load
  double mass_deviation = 0.0;
  Eigen::Vector3d com =
      Eigen::Vector3d::Zero();  ///< m, in the link's frame; zero: mass not above 0
  Eigen::Vector3d com_deviation = Eigen::Vector3d::Zero();
  /// kg·m², about the centre of mass, in the link's axes; zero: mass not above 0. To be believed
  /// where its deviation is small beside it.
  Symmetric3<double> inertia = Symmetric3<double>::zero();
  double inertia_deviation = 0.0;  ///< the largest of the six elements about the link's origin
  double time = 0.0;               ///< s of which samples were used
};

/// The load as one for set_payload(): none where the mass is not above zero, and a point where the
/// inertia is none that a body can have, or smaller than its deviation.
[[nodiscard]] Payload<double> payload(const LoadEstimate& estimate) noexcept;

/// All memory is taken in the constructor; every other member function is real-time safe.
class LoadEstimator {
 public:
  /// Throws ConfigError. The model is not needed any longer afterwards.
  LoadEstimator(const Model& model, const LoadEstimatorConfig& config);

  [[nodiscard]] const std::vector<std::string>& joints() const noexcept {
    return balance_.config().joints;
  }
  /// In the order of JointSample::others.
  [[nodiscard]] const std::vector<std::string>& other_joints() const noexcept {
    return balance_.robot().other_joints();
  }
  /// Index into Model::links.
  [[nodiscard]] int link() const noexcept { return link_; }

  /// A sample, dt seconds after the last one. After anything but Status::ok the filters start anew;
  /// what has been measured is kept. wrong_size or not_finite for the sample, out_of_range for a dt
  /// not above zero or above max_dt, not_finite where a result overflows; where that is one of the
  /// sums of (2), they are forgotten.
  [[nodiscard]] Status update(const JointSample& sample, double dt) noexcept;
  /// Forgets everything.
  void restart() noexcept;
  /// The next sample is the first of a new motion; what has been measured is kept. For a robot that
  /// has moved meanwhile, unseen.
  void restart_filters() noexcept;
  /// Gravity in the root link's frame, m/s².
  [[nodiscard]] Status set_gravity(const Eigen::Vector3d& gravity) noexcept;
  /// What a link (index into Model::links) carries that is known and not to be weighed.
  [[nodiscard]] Status set_payload(int link, const Payload<double>& payload) noexcept;

  /// Of all that was measured since restart(). Status::out_of_range before the first period.
  [[nodiscard]] Status estimate(LoadEstimate& out) const noexcept;

 private:
  static constexpr int parameters = 10;
  using Square = Eigen::Matrix<double, parameters, parameters>;
  using Parameters = Eigen::Matrix<double, parameters, 1>;
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, parameters>;

  [[nodiscard]] Status filter(double dt) noexcept;
  [[nodiscard]] Status sum_up(double dt) noexcept;
  [[nodiscard]] bool solve(Parameters& pi, Square& P) const noexcept;

  MomentumBalance balance_;
  LoadEstimatorConfig config_;
  int link_;
  int column_;                 ///< of the regressor, where the link's body begins
  Square link_to_body_;        ///< π about the body's origin in its axes from that of the link
  Parameters scale_;           ///< D
  MatrixX<double> regressor_;  ///< nv × columns
  Rows Y_, filtered_Y_;        ///< joints × 10
  VectorX<double> filtered_d_, filtered_stiction_;

  Square A_;
  Parameters b_;
  double squares_ = 0.0;  ///< Σ d²/σ² h/t_c
  double count_ = 0.0;    ///< measurements: joints × time/t_c
  double time_ = 0.0;
};

}  // namespace dynamics_core::control
