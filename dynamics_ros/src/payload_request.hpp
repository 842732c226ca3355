// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "dynamics_core/config_error.hpp"
#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/text.hpp"
#include "realtime_dynamics/srv/set_payload.hpp"

namespace realtime_dynamics {

/// The payload that a request describes.
[[nodiscard]] inline dynamics_core::Payload<double> payload_of(
    const srv::SetPayload::Request& request) {
  const auto& com = request.center_of_mass;
  return {request.mass,
          {com.x, com.y, com.z},
          {request.ixx, request.ixy, request.ixz, request.iyy, request.iyz, request.izz}};
}

/// Throws ConfigError for what is no time in which a payload can be taken over.
inline void check_transition_time(double time) {
  if (!std::isfinite(time) || time < 0.0)
    throw dynamics_core::ConfigError("transition_time", dynamics_core::text::to_short_text(time),
                                     "give a finite time in s, not below zero");
}

}  // namespace realtime_dynamics
