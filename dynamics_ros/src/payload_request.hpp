// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dynamics_core/dynamics.hpp"
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

}  // namespace realtime_dynamics
