// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What moved the robot between two samples besides its drives, without any measured acceleration.
///
/// The generalised momentum p = M(q) v obeys (De Luca, Albu-Schäffer, Haddadin and Hirzinger,
/// "Collision Detection and Safe Reaction with the DLR-III Lightweight Manipulator Arm", IROS 2006)
///
///     ṗ = τ − f(v) + Cᵀ(q, v) v − g(q) + τ_ext,   Cᵀ v = Ṁ v − C v.            (1)
///
/// Over a sampling period h from state 0 to state 1, with Ṁ as the difference of M,
///
///     Δp − ∫ Ṁ v dt = M₁v₁ − M₀v₀ − (M₁ − M₀)(v₀ + v₁)/2 = (M₀ + M₁)/2 (v₁ − v₀),
///
/// so that the external effort's mean is one inverse dynamics in the middle of the period,
///
///     τ_ext = M(q̄) Δv/h + C(q̄, v̄) v̄ + g(q̄) + f(v̄) − τ,                       (2)
///     q̄ = (q₀ + q₁)/2, v̄ = (v₀ + v₁)/2,
///
/// exact but for terms of h², and cheaper than M, Cᵀ and g each by itself. Δv/h is no acceleration
/// to be used as it is: summed up or filtered, (2) leaves of it the change of the momentum alone.

#include <vector>

#include "dynamics_core/control/commanded_robot.hpp"
#include "dynamics_core/control/derivative.hpp"
#include "dynamics_core/control/signals.hpp"

namespace dynamics_core::control {

/// What the hardware calls effort.
enum class EffortKind {
  total,            ///< what the drives give
  without_gravity,  ///< less the weight of the links and of the payload the hardware knows of
};

[[nodiscard]] const char* to_string(EffortKind kind) noexcept;
[[nodiscard]] std::optional<EffortKind> find_effort_kind(std::string_view name) noexcept;

/// What the observers of a robot's joints have in common. Lists as in Config.
struct BalanceConfig {
  std::vector<std::string> joints;              ///< empty: all of one degree of freedom
  EffortKind effort = EffortKind::total;        ///< what the hardware reports
  std::vector<JointFriction<double>> friction;  ///< empty: damping and friction of the model
  std::map<std::string, double> locked;         ///< rad or m; see Config::locked
  std::optional<Eigen::Vector3d> gravity;  ///< m/s², in the root link's frame; else the model's
  double max_dt = 0.1;                     ///< s; a longer period is taken for a jump of the clock
  double velocity_cutoff = 50.0;           ///< Hz, of the velocity estimate where none is measured
};

/// A number too small to mean anything becomes zero: filters that die away would end in denormal
/// numbers, with which some processors are a hundred times slower.
[[nodiscard]] inline double without_dust(double x) noexcept {
  return std::abs(x) < 1e-100 ? 0.0 : x;
}

/// The part of the way to its input that a first-order filter of the given cut-off goes within
/// `step` seconds; exact for an input that stands still.
[[nodiscard]] inline double filter_share(double cutoff_hz, double step) noexcept {
  return -std::expm1(-2.0 * M_PI * cutoff_hz * step);
}

/// Any part of the robot's joints, of one degree of freedom each. All memory is taken in the
/// constructor; every other member function is real-time safe.
class MomentumBalance {
 public:
  /// Throws ConfigError, also for a model with a floating or planar joint, which has no effort to
  /// balance. The model is not needed any longer afterwards.
  MomentumBalance(const Model& model, const BalanceConfig& config);

  /// The next sample is the first.
  void restart() noexcept;
  /// A sample, dt seconds after the last one. Anything but Status::ok restarts: wrong_size and
  /// not_finite for the sample (a velocity may be absent), out_of_range for dt not above zero or
  /// above max_dt, not_finite where the result overflows.
  [[nodiscard]] Status advance(const JointSample& sample, double dt) noexcept;
  /// Have there been two samples since the restart, and where velocities are estimated, has the
  /// estimate settled? Only then there is a period to speak of.
  [[nodiscard]] bool complete() const noexcept { return complete_; }

  // --- of the last period ------------------------------------------------------------------------
  /// τ_ext by (2), the mean effort of the environment on each joint.
  [[nodiscard]] const VectorX<double>& external_effort() const noexcept { return external_; }
  /// v̄
  [[nodiscard]] const VectorX<double>& velocity() const noexcept { return middle_v_; }

  [[nodiscard]] Eigen::Index size() const noexcept { return q_.size(); }
  /// The configuration in use, with every list filled in.
  [[nodiscard]] const Config& config() const noexcept { return config_; }
  /// What friction may be beside what the model of it says: all of the dry friction at rest, where
  /// its sign is anybody's guess, and nothing at speeds well above `width`,
  ///
  ///     max(c, b) (1 − |v̄|/√(v̄² + width²)).
  [[nodiscard]] double stiction(Eigen::Index joint, double width) const noexcept;
  /// The robot, which stands in the middle of the period.
  [[nodiscard]] CommandedRobot& robot() noexcept { return robot_; }
  [[nodiscard]] const CommandedRobot& robot() const noexcept { return robot_; }

 private:
  [[nodiscard]] Status check(const JointSample& sample, double dt) const noexcept;
  void take_others(const JointSample& sample, double dt) noexcept;
  void take_velocity(const JointSample& sample) noexcept;
  [[nodiscard]] Status balance(const View& effort) noexcept;

  Config config_;
  EffortKind kind_;
  CommandedRobot robot_;
  std::vector<bool> wraps_;  ///< joints without end stops
  std::vector<bool> other_wraps_;
  Derivative velocity_estimate_;
  VectorX<double> q_, v_, next_v_;                             ///< of the samples
  VectorX<double> middle_q_, middle_v_, mean_a_;               ///< of the period
  VectorX<double> other_v_, other_q_;                          ///< of the samples
  VectorX<double> other_middle_q_, other_middle_v_, other_a_;  ///< of the period
  VectorX<double> gravity_, external_;
  double age_ = 0.0;  ///< s since the restart
  bool primed_ = false;
  bool complete_ = false;
};

}  // namespace dynamics_core::control
