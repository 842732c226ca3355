// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dynamics_core/control/commanded_robot.hpp"
#include "dynamics_core/control/laws/law_input.hpp"

namespace dynamics_core::control {

/// τ = g(q)
struct GravityCompensation {
  [[nodiscard]] static Status effort(CommandedRobot& robot, const LawInput& x,
                                     VectorX<double>& tau) noexcept {
    return robot.gravity(x.q, tau);
  }
};

}  // namespace dynamics_core::control
