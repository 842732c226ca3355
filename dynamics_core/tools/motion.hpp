// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The way that `dynamics track` has a robot go.

#include <string>

#include "drive.hpp"

namespace dynamics_core::tools {

struct MotionOptions {
  std::string trajectory = "cycloid";  ///< or quintic, or a file of waypoints
  std::string from, to;                ///< empty: chosen inside the limits
  double speed = 0.7;                  ///< share of the joints' velocity limits
  double travel = 0.0;                 ///< s for one way; zero: as the speed has it
  double pause = 0.25;                 ///< s at rest at both ends
  int repeat = 1;                      ///< so often there and back
};

struct PlannedMotion {
  Path path;
  double duration = 0.0;  ///< s
  std::string name;       ///< e.g. "cycloid, there and back in 4.2 s"
};

/// There and back between two configurations, or through the waypoints of a file. A robot of which
/// nothing else is said gets two configurations well inside its limits and as much time as its
/// velocity limits and, by the inverse dynamics of `robot`, its effort limits ask for.
[[nodiscard]] PlannedMotion plan_motion(const Model& model, const Dynamics<double>& robot,
                                        const MotionOptions& options);

/// By joint, the largest effort that the motion asks for, friction included.
[[nodiscard]] VectorX<double> peak_efforts(const Model& model, const Dynamics<double>& robot,
                                           const PlannedMotion& motion);

}  // namespace dynamics_core::tools
