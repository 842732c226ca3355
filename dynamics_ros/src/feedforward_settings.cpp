// SPDX-License-Identifier: Apache-2.0
#include "feedforward_settings.hpp"

#include <string>

namespace realtime_dynamics {

using dynamics_core::Model;
using dynamics_core::control::Config;
using dynamics_core::control::Gains;
using feedforward_controller::Params;

Config control_config(const Params& params, const Model& model) {
  Config config;
  if (params.contact.reaction != "none" && params.contact.observer.empty())
    throw dynamics_core::ConfigError(
        "contact.reaction", params.contact.reaction,
        "nobody tells this controller of contacts; name the ExternalTorqueObserver in "
        "contact.observer, or set contact.reaction to none");
  config.joints = params.joints;
  // The parameters are validated: each of these names is known.
  config.mode = *dynamics_core::control::find_mode(params.mode);
  config.compensation = *dynamics_core::control::find_compensation(params.compensation);
  config.missing_velocity = *dynamics_core::control::find_missing(params.missing_velocity);
  config.missing_acceleration = *dynamics_core::control::find_missing(params.missing_acceleration);
  config.gains = joint_gains(params);
  config.friction = friction(params, model);
  config.effort_limits = params.effort_limits;
  config.effort_rate_limits = params.effort_rate_limits;
  config.locked = locked(params);
  config.gravity = gravity(params);
  config.hardware_compensates_gravity = params.hardware_compensates_gravity;
  config.reaction = *dynamics_core::control::find_reaction(params.contact.reaction);
  config.soft_start = params.soft_start;
  config.reference_timeout = params.reference_timeout;
  config.max_held_cycles = static_cast<int>(params.max_held_cycles);
  config.max_dt = params.max_period;
  config.velocity_cutoff = params.velocity_cutoff;
  config.reference_cutoff = params.reference_cutoff;
  config.reference_margin = params.reference_margin;
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

}  // namespace realtime_dynamics
