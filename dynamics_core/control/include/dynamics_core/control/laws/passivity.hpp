// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dynamics_core/control/commanded_robot.hpp"
#include "dynamics_core/control/laws/law_input.hpp"

namespace dynamics_core::control {

/// M(q) a_r + C(q, v) v_r + g(q) in O(n) and without a matrix.
///
/// C is Christoffel's, for which dM/dt − 2C is skew-symmetric, as the proof of stability wants it.
/// C(q, v) u is then symmetric and linear in v and u, so that the inverse dynamics, which knows it
/// for v = u alone, gives it for any pair:
///
///     C(v) u = C(x) x − C(y) y,   x = (v + u)/2,   y = (v − u)/2.
///
/// (A floating joint's v is no derivative of coordinates, and C(v) u not symmetric there. The
/// identity still holds for all other joints while that joint rests, v = u = 0.)
template <class S>
struct PassivityModel {
  explicit PassivityModel(Eigen::Index size)
      : mean(VectorX<S>::Zero(size)), half_difference(mean), excess(mean) {}

  /// `robot` has inverse_dynamics() and velocity_effort(): a Dynamics or a CommandedRobot.
  template <class Robot, class Vec>
  [[nodiscard]] Status effort(Robot& robot, const Vec& q, const Vec& v, const Vec& v_r,
                              const Vec& a_r, Vec& tau) noexcept {
    if (v.size() != mean.size() || v_r.size() != mean.size()) return Status::wrong_size;
    mean = S(0.5) * (v + v_r);
    half_difference = S(0.5) * (v - v_r);
    if (const Status s = robot.inverse_dynamics(q, mean, a_r, tau); s != Status::ok) return s;
    const Status s = robot.velocity_effort(q, half_difference, excess);
    if (s != Status::ok) return s;
    tau -= excess;
    return Status::ok;
  }

  VectorX<S> mean, half_difference, excess;
};

/// J.-J. E. Slotine and W. Li, "On the Adaptive Control of Robot Manipulators", Int. J. Robotics
/// Research 6(3), 1987: v_r = v_d + Λ e, a_r = a_d + Λ ė, Λ = p, K = d,
///
///     τ = M(q) a_r + C(q, v) v_r + g(q) + friction(v_r) + K (v_r − v).
struct Passivity {
  explicit Passivity(Eigen::Index n) : model(n), v_r(VectorX<double>::Zero(n)), a_r(v_r) {}

  [[nodiscard]] Status effort(CommandedRobot& robot, const LawInput& x,
                              VectorX<double>& tau) noexcept {
    for (Eigen::Index j = 0; j < v_r.size(); ++j) {
      v_r[j] = x.v_d[j] + x.gain(j).p * x.e[j];
      a_r[j] = x.a_d[j] + x.gain(j).p * x.ed[j];
    }
    const Status s = model.effort(robot, x.q, x.v, v_r, a_r, tau);
    robot.add_friction(v_r, tau);
    for (Eigen::Index j = 0; j < tau.size(); ++j) tau[j] += x.gain(j).d * (v_r[j] - x.v[j]);
    return s;
  }

  PassivityModel<double> model;
  VectorX<double> v_r, a_r;
};

}  // namespace dynamics_core::control
