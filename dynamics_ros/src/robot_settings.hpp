// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The parameters of the robot that several controllers have in common, in the words of
/// dynamics_core. `Params` is the generated struct of one of them. Off the real-time path; a
/// parameter that cannot be used throws a ConfigError.

#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "dynamics_core/config_error.hpp"
#include "dynamics_core/friction.hpp"
#include "dynamics_core/load.hpp"
#include "dynamics_core/model.hpp"
#include "dynamics_core/payload.hpp"

namespace realtime_dynamics {

/// A list with a number for each joint, or one for all, or none.
[[nodiscard]] inline std::map<std::string, double> by_joint(
    const char* parameter, const std::vector<double>& list,
    const std::vector<std::string>& joints) {
  if (list.size() > 1 && list.size() != joints.size())
    throw dynamics_core::ConfigError(
        parameter, "list of " + std::to_string(list.size()),
        "give one element, or one for each of the " + std::to_string(joints.size()) + " joints");
  std::map<std::string, double> out;
  if (list.empty()) return out;
  for (std::size_t j = 0; j < joints.size(); ++j)
    out[joints[j]] = list.size() == 1 ? list.front() : list[j];
  return out;
}

template <class Params>
[[nodiscard]] std::map<std::string, double> locked(const Params& params) {
  const auto& [joints, positions] = params.locked;
  if (joints.size() != positions.size())
    throw dynamics_core::ConfigError(
        "locked.positions", "list of " + std::to_string(positions.size()),
        "give one for each of the " + std::to_string(joints.size()) + " joints in locked.joints");
  std::map<std::string, double> out;
  for (std::size_t j = 0; j < joints.size(); ++j) out[joints[j]] = positions[j];
  return out;
}

template <class Params>
[[nodiscard]] std::vector<dynamics_core::JointFriction<double>> friction(
    const Params& params, const dynamics_core::Model& model) {
  std::vector<dynamics_core::JointFriction<double>> out;
  for (const std::string& joint : params.joints) {
    const auto& given = params.friction.joints_map.at(joint);
    out.push_back(
        {given.viscous, given.coulomb, given.breakaway, given.stribeck_velocity, given.transition});
    const int index = model.find_joint(joint);
    if (index < 0) continue;  // the core names the joint that the model does not have
    const auto& info = model.joints[static_cast<std::size_t>(index)];
    if (std::isnan(out.back().viscous)) out.back().viscous = info.damping;
    if (std::isnan(out.back().coulomb)) out.back().coulomb = info.friction;
  }
  return out;
}

template <class Params>
[[nodiscard]] Eigen::Vector3d gravity(const Params& params) {
  return {params.gravity[0], params.gravity[1], params.gravity[2]};
}

template <class Params>
[[nodiscard]] dynamics_core::ModelOptions model_options(const Params& params) {
  dynamics_core::ModelOptions options;
  options.gravity = gravity(params);
  options.rotor_inertia = by_joint("rotor_inertia", params.rotor_inertia, params.joints);
  options.gear_ratio = by_joint("gear_ratio", params.gear_ratio, params.joints);
  return options;
}

/// The robot of the description that the controller manager hands to its controllers.
template <class Params>
[[nodiscard]] dynamics_core::Model described_model(const std::string& urdf, const Params& params) {
  if (urdf.empty())
    throw std::runtime_error(
        "robot_description is empty: start robot_state_publisher, or whatever else publishes the "
        "URDF to the controller manager");
  return build_model(dynamics_core::parse_urdf(urdf, "robot_description"), model_options(params));
}

/// Of the link `payload.link`.
template <class Params>
[[nodiscard]] dynamics_core::Payload<double> payload(const Params& params) {
  const std::vector<double>& com = params.payload.center_of_mass;
  const std::vector<double>& inertia = params.payload.inertia;
  return {params.payload.mass,
          {com[0], com[1], com[2]},
          {inertia[0], inertia[1], inertia[2], inertia[3], inertia[4], inertia[5]}};
}

}  // namespace realtime_dynamics
