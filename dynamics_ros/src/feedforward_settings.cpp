// SPDX-License-Identifier: Apache-2.0
#include "feedforward_settings.hpp"

#include <cmath>
#include <map>
#include <string>

namespace realtime_dynamics {

using dynamics_core::ConfigError;
using dynamics_core::Model;
using dynamics_core::ModelOptions;
using dynamics_core::Payload;
using dynamics_core::control::Config;
using dynamics_core::control::Gains;
using JointFriction = dynamics_core::JointFriction<double>;
using feedforward_controller::Params;

namespace {

/// A list with a number for each joint, or one for all, or none.
[[nodiscard]] std::map<std::string, double> by_joint(const char* parameter,
                                                     const std::vector<double>& list,
                                                     const std::vector<std::string>& joints) {
  if (list.size() > 1 && list.size() != joints.size())
    throw ConfigError(
        parameter, "list of " + std::to_string(list.size()),
        "give one element, or one for each of the " + std::to_string(joints.size()) + " joints");
  std::map<std::string, double> out;
  if (list.empty()) return out;
  for (std::size_t j = 0; j < joints.size(); ++j)
    out[joints[j]] = list.size() == 1 ? list.front() : list[j];
  return out;
}

[[nodiscard]] std::map<std::string, double> locked(const Params& params) {
  const auto& [joints, positions] = params.locked;
  if (joints.size() != positions.size())
    throw ConfigError(
        "locked.positions", "list of " + std::to_string(positions.size()),
        "give one for each of the " + std::to_string(joints.size()) + " joints in locked.joints");
  std::map<std::string, double> out;
  for (std::size_t j = 0; j < joints.size(); ++j) out[joints[j]] = positions[j];
  return out;
}

[[nodiscard]] JointFriction friction(const Params::Friction::MapJoints& given, const Model& model,
                                     const std::string& joint) {
  JointFriction out{given.viscous, given.coulomb, given.breakaway, given.stribeck_velocity,
                    given.transition};
  const int index = model.find_joint(joint);
  if (index < 0) return out;  // the core names the joint that the model does not have
  const auto& info = model.joints[static_cast<std::size_t>(index)];
  if (std::isnan(out.viscous)) out.viscous = info.damping;
  if (std::isnan(out.coulomb)) out.coulomb = info.friction;
  return out;
}

}  // namespace

ModelOptions model_options(const Params& params) {
  ModelOptions options;
  options.gravity = gravity(params);
  options.rotor_inertia = by_joint("rotor_inertia", params.rotor_inertia, params.joints);
  options.gear_ratio = by_joint("gear_ratio", params.gear_ratio, params.joints);
  return options;
}

Config control_config(const Params& params, const Model& model) {
  Config config;
  config.joints = params.joints;
  // The parameters are validated: each of these names is known.
  config.mode = *dynamics_core::control::find_mode(params.mode);
  config.compensation = *dynamics_core::control::find_compensation(params.compensation);
  config.missing_velocity = *dynamics_core::control::find_missing(params.missing_velocity);
  config.missing_acceleration = *dynamics_core::control::find_missing(params.missing_acceleration);
  config.gains = joint_gains(params);
  for (const std::string& joint : params.joints)
    config.friction.push_back(friction(params.friction.joints_map.at(joint), model, joint));
  config.effort_limits = params.effort_limits;
  config.effort_rate_limits = params.effort_rate_limits;
  config.locked = locked(params);
  config.gravity = gravity(params);
  config.hardware_compensates_gravity = params.hardware_compensates_gravity;
  config.soft_start = params.soft_start;
  config.reference_timeout = params.reference_timeout;
  config.max_held_cycles = static_cast<int>(params.max_held_cycles);
  config.max_dt = params.max_period;
  config.velocity_cutoff = params.velocity_cutoff;
  config.reference_cutoff = params.reference_cutoff;
  return config;
}

std::vector<Gains> joint_gains(const Params& params) {
  std::vector<Gains> gains;
  for (const std::string& joint : params.joints) {
    const auto& given = params.gains.joints_map.at(joint);
    gains.push_back({given.p, given.d, given.i, given.i_clamp});
  }
  return gains;
}

Eigen::Vector3d gravity(const Params& params) {
  return {params.gravity[0], params.gravity[1], params.gravity[2]};
}

Payload<double> payload(const Params& params) {
  const std::vector<double>& com = params.payload.center_of_mass;
  const std::vector<double>& inertia = params.payload.inertia;
  return {params.payload.mass,
          {com[0], com[1], com[2]},
          {inertia[0], inertia[1], inertia[2], inertia[3], inertia[4], inertia[5]}};
}

}  // namespace realtime_dynamics
