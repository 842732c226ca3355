// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dynamics_core/control/commanded_robot.hpp"
#include "dynamics_core/control/laws/law_input.hpp"

namespace dynamics_core::control {

/// τ = M(q)(a_d + p e + d ė + ∫ i e dt) + C(q, v) v + g(q) + friction(v_d)
struct ComputedTorque {
  explicit ComputedTorque(Eigen::Index n) : a_r(VectorX<double>::Zero(n)) {}

  [[nodiscard]] Status effort(CommandedRobot& robot, const LawInput& x,
                              VectorX<double>& tau) noexcept {
    for (Eigen::Index j = 0; j < a_r.size(); ++j)
      a_r[j] = x.a_d[j] + x.gain(j).p * x.e[j] + x.gain(j).d * x.ed[j] + x.integral[j];
    const Status s = robot.inverse_dynamics(x.q, x.v, a_r, tau);
    robot.add_friction(x.v_d, tau);
    return s;
  }

  VectorX<double> a_r;
};

}  // namespace dynamics_core::control
