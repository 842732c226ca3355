// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dynamics_core/control/laws/gravity_compensation.hpp"

namespace dynamics_core::control {

/// What is known of the robot, by Compensation: nothing, g(q), or
///
///     M(q_d) a_d + C(q_d, v_d) v_d + g(q_d) + friction(v_d).
///
/// A drive with a position loop of its own takes it as it is.
struct PassThrough {
  Compensation compensation = Compensation::full;

  [[nodiscard]] Status effort(CommandedRobot& robot, const LawInput& x,
                              VectorX<double>& tau) const noexcept {
    switch (compensation) {
      case Compensation::none: tau.setZero(); return Status::ok;
      case Compensation::gravity: return GravityCompensation::effort(robot, x, tau);
      case Compensation::full: {
        const Status s = robot.inverse_dynamics(x.q_d, x.v_d, x.a_d, tau);
        robot.add_friction(x.v_d, tau);
        return s;
      }
    }
    return Status::out_of_range;
  }
};

/// The same, + p e + d ė
struct Feedforward {
  PassThrough model;

  [[nodiscard]] Status effort(CommandedRobot& robot, const LawInput& x,
                              VectorX<double>& tau) const noexcept {
    const Status s = model.effort(robot, x, tau);
    for (Eigen::Index j = 0; j < tau.size(); ++j)
      tau[j] += x.gain(j).p * x.e[j] + x.gain(j).d * x.ed[j];
    return s;
  }
};

}  // namespace dynamics_core::control
