// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How far the URDF as it is explains a log: enough to find the efforts' signs and gains.

#include <vector>

#include "dynamics_core/identification/samples.hpp"
#include "dynamics_core/model.hpp"

namespace dynamics_core::identification {

/// How the URDF explains a joint's efforts before anything is known; in the log's units.
struct Explained {
  double gravity = 0.0;       ///< factor of the URDF's gravity effort
  double gravity_size = 0.0;  ///< standard deviation of that effort, N·m
  double balance = 0.0;       ///< above zero: the efforts drive the joint and do not brake it
  double gain = 0.0;          ///< N·m for one unit if the URDF is right
};

/// The efforts as a sum of what the URDF's gravity and inertias, a rotor, friction and an offset
/// explain, each with a free factor; by joint.
[[nodiscard]] std::vector<Explained> explained(const Model& model,
                                               const std::vector<Recording>& recordings);

}  // namespace dynamics_core::identification
