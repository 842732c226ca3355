// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A simulated robot from a URDF and settings in words, as a hardware description has them. Off the
/// real-time path.

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "dynamics_core/simulation/simulated_robot.hpp"

namespace dynamics_core::simulation {

/// All that a SimulatedRobot is built from.
struct SimulationSetup {
  Model model;  ///< as the robot is: with its errors of mass and friction
  Imperfections imperfections;
  Mechanics mechanics;
  double max_step = 1e-4;  ///< s, of the simulation
};

/// The settings' names. Their meaning, units and defaults are on the user page of the simulated
/// system, dynamics_ros/doc/simulated_system.md.
inline constexpr std::array<const char*, 14> simulation_settings = {
    "max_step",       "gravity",       "locked",          "joint_stops",
    "stop_frequency", "effort_limits", "servo_frequency", "position_noise",
    "velocity_noise", "resolution",    "delay",           "seed",
    "mass_error",     "friction_error"};

/// `joints` are the ones that move, all of one degree of freedom; the others are locked. Those that
/// mimic another move with it, whether they are named or not. Settings that are left out have their
/// defaults. Throws ConfigError for a setting, ModelError for the URDF.
[[nodiscard]] SimulationSetup read_simulation(
    const std::string& urdf, const std::vector<std::string>& joints,
    const std::unordered_map<std::string, std::string>& settings);

/// The nearest to zero within the limits, or what `text` says unless it is empty. Throws
/// ConfigError where that is no number or outside the limits.
[[nodiscard]] double initial_position(const JointInfo& joint, const std::string& text);

}  // namespace dynamics_core::simulation
