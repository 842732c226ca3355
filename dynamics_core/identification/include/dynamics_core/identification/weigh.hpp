// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The load that a robot carried in a log.

#include <vector>

#include "dynamics_core/identification/robot_model.hpp"
#include "dynamics_core/payload.hpp"

namespace dynamics_core::identification {

struct WeighedLoad {
  Payload<double> payload;           ///< in the link's frame
  double mass_deviation = 0.0;       ///< standard deviation, kg
  Vec3<double> com_deviation;        ///< m
  bool rigid = true;                 ///< a rigid body can have that inertia
  double without = 0.0, with = 0.0;  ///< RMS error over RMS effort without and with the load
};

/// What the recordings show on a link (index into Model::links) beyond the model and its drives.
/// Friction and offsets may differ a little from the drives' own, as they do from day to day and
/// with the load; with `friction_known` false they are found from the recordings alone. Throws
/// LogError where the link does not move.
[[nodiscard]] WeighedLoad weigh(const Model& model, const Drives& drives, bool friction_known,
                                const std::vector<Recording>& recordings, int link);

}  // namespace dynamics_core::identification
