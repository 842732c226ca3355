#pragma once

/// M(q) a_r + C(q, v) v_r + g(q), the model's part of Slotine and Li's law ("On the Adaptive
/// Control of Robot Manipulators", Int. J. Robotics Research 6(3), 1987), in O(n) and without a
/// matrix.
///
/// C is Christoffel's, for which dM/dt − 2C is skew-symmetric, as the proof of stability wants it.
/// C(q, v) u is then symmetric and linear in v and u, so that the inverse dynamics, which knows it
/// for v = u alone, gives it for any pair:
///
///     C(v) u = C(x) x − C(y) y,   x = (v + u)/2,   y = (v − u)/2.
///
/// (A floating joint's v is no derivative of coordinates, and C(v) u not symmetric there. The
/// identity still holds for all other joints while that joint rests, v = u = 0.)

#include "dynamics_core/dynamics.hpp"

namespace dynamics_core::control {

/// Scratch of passivity_effort(), nv each.
template <class S>
struct PassivityScratch {
  explicit PassivityScratch(int nv)
      : mean(VectorX<S>::Zero(nv)),
        half_difference(VectorX<S>::Zero(nv)),
        excess(VectorX<S>::Zero(nv)) {}
  VectorX<S> mean, half_difference, excess;
};

template <class S>
[[nodiscard]] Status passivity_effort(Dynamics<S>& robot, PassivityScratch<S>& scratch, VectorIn<S> q,
                                      VectorIn<S> v, VectorIn<S> v_r, VectorIn<S> a_r,
                                      VectorOut<S> tau) noexcept {
  if (v.size() != robot.nv() || v_r.size() != robot.nv()) return Status::wrong_size;
  scratch.mean = S(0.5) * (v + v_r);
  scratch.half_difference = S(0.5) * (v - v_r);
  if (const Status s = robot.inverse_dynamics(q, scratch.mean, a_r, tau);
      s != Status::ok)
    return s;
  const Status s = robot.velocity_effort(q, scratch.half_difference, scratch.excess);
  if (s != Status::ok) return s;
  tau -= scratch.excess;
  return Status::ok;
}

}  // namespace dynamics_core::control
