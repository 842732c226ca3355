// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a controller is told before it runs. All of this is checked when the controller is built,
/// off the real-time path; a mistake throws a ConfigError.

#include <Eigen/Core>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dynamics_core/config_error.hpp"
#include "dynamics_core/friction.hpp"
#include "dynamics_core/model.hpp"

namespace dynamics_core::control {

/// The law. e = q_d − q, ė = v_d − v.
enum class Mode {
  gravity_compensation,  ///< g(q)
  feedforward,           ///< what `compensation` says, + p e + d ė
  computed_torque,  ///< inverse dynamics at (q, v, a_d + p e + d ė + ∫ i e dt) + friction(v_d)
  passivity,        ///< M a_r + C v_r + g + friction(v_r) + d s, s = v_r − v, v_r = v_d + p e
  pass_through,     ///< q_d, v_d and what `compensation` says, for a drive with its own loop
};

/// What `feedforward` and `pass_through` know of the robot.
enum class Compensation {
  none,     ///< nothing: `feedforward` is a plain PD controller
  gravity,  ///< g(q)
  full,     ///< inverse dynamics at (q_d, v_d, a_d) + friction(v_d)
};

/// What stands in for a reference that is not given.
enum class Missing {
  zero,
  differentiate,  ///< the filtered derivative of the next lower one, where that is given
};

/// What follows when the robot is touched (Measurement::touched). It lasts until the controller is
/// activated again: whoever sends references has to start from where the robot is by then.
enum class Reaction {
  none,
  hold,      ///< at rest where the robot was when it was touched
  give_way,  ///< g(q): floats and can be pushed away
};

[[nodiscard]] const char* to_string(Mode mode) noexcept;
[[nodiscard]] const char* to_string(Compensation compensation) noexcept;
[[nodiscard]] const char* to_string(Missing missing) noexcept;
[[nodiscard]] const char* to_string(Reaction reaction) noexcept;
[[nodiscard]] std::optional<Mode> find_mode(std::string_view name) noexcept;
[[nodiscard]] std::optional<Compensation> find_compensation(std::string_view name) noexcept;
[[nodiscard]] std::optional<Missing> find_missing(std::string_view name) noexcept;
[[nodiscard]] std::optional<Reaction> find_reaction(std::string_view name) noexcept;

/// Gains of one joint. Their units depend on the law; for a sliding joint read m for rad, N for
/// N·m.
///
///     mode             p            d              i        i_clamp
///     feedforward      N·m/rad      N·m·s/rad      –        –
///     computed_torque  1/s²         1/s            1/s³     rad/s²
///     passivity        1/s (Λ)      N·m·s/rad (K)  –        –
///
/// gravity_compensation and pass_through use none. i must be zero where the law has no integral.
struct Gains {
  double p = 0.0;
  double d = 0.0;
  double i = 0.0;
  double i_clamp = std::numeric_limits<double>::infinity();  ///< bound of |∫ i e dt|
};

/// Lists are in the order of `joints`. One with a single element holds for all joints, an empty one
/// means what its comment says.
struct Config {
  /// What is commanded, in this order; any part of the robot. Empty: all joints of one degree of
  /// freedom, in the model's order.
  std::vector<std::string> joints;
  Mode mode = Mode::feedforward;
  Compensation compensation = Compensation::full;  ///< for feedforward and pass_through
  std::vector<Gains> gains;                        ///< empty: zero
  std::vector<JointFriction<double>> friction;     ///< empty: damping and friction of the model
  std::vector<double> effort_limits;               ///< N·m or N; empty: the model's
  std::vector<double> effort_rate_limits;          ///< N·m/s or N/s; empty: none
  /// Where a joint is that is not in `joints`, until it is measured; rad or m, else zero.
  std::map<std::string, double> locked;

  std::optional<Eigen::Vector3d> gravity;     ///< m/s², in the root link's frame; else the model's
  bool hardware_compensates_gravity = false;  ///< leaves g out of every law

  Reaction reaction = Reaction::none;  ///< to a contact; hold only in a law with references

  double soft_start = 0.5;  ///< s in which the effort ramps in after activation; zero: at once
  double reference_timeout = 0.1;  ///< s; without a new reference for longer: hold. Zero: never
  int max_held_cycles = 5;         ///< as many cycles without a usable state in a row are bridged
  double max_dt = 0.1;             ///< s; a longer period is taken for a jump of the clock

  double velocity_cutoff = 50.0;  ///< Hz, of the velocity estimate where none is measured
  Missing missing_velocity = Missing::zero;      ///< of the reference
  Missing missing_acceleration = Missing::zero;  ///< of the reference
  double reference_cutoff = 50.0;                ///< Hz, of differentiated references
  /// A reference may exceed a joint's limits of position by this share of its range, and its limit
  /// of velocity by this share of that; what is beyond is bad. Infinity: it may be anywhere.
  double reference_margin = 0.2;
};

/// A configuration with every list filled in: one element per joint. Throws ConfigError.
[[nodiscard]] Config resolve(const Model& model, Config config);

/// By joint: is it `continuous`? They have to be joints of the model.
[[nodiscard]] std::vector<bool> without_end_stops(const Model& model,
                                                  const std::vector<std::string>& joints);

/// Throws ConfigError for gains of a joint that are not usable().
void check_gains(const std::string& joint, const Gains& gains, Mode mode);

/// Finite, none negative, and i only in a law that integrates.
[[nodiscard]] bool usable(const Gains& gains, Mode mode) noexcept;

}  // namespace dynamics_core::control
