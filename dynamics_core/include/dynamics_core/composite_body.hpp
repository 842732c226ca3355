#pragma once

/// The mass matrix by composite rigid bodies (Featherstone & Orin 2000, §3.2).

#include "dynamics_core/joints.hpp"

namespace dynamics_core::composite_body {

namespace detail {

/// f^C = I^C h, the force that gives a composite body a unit acceleration along its joint.
template <class S>
[[nodiscard]] RD_INLINE Force<S> unit_force(const Body<S>& b, const RigidInertia<S>& I) noexcept {
  if (b.turns()) return {{I.I.xz, I.I.yz, I.I.zz}, {-I.h[1], I.h[0], S(0)}};
  return {{I.h[1], -I.h[0], S(0)}, {S(0), S(0), I.m}};
}

}  // namespace detail

/// M(q), nv × nv, both triangles.
template <class S>
[[nodiscard]] Status mass_matrix(Workspace<S>& ws, VectorIn<S> q, MatrixOut<S> M) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  if (M.rows() != ws.nv() || M.cols() != ws.nv()) return Status::wrong_size;
  update_joints<S>(ws, q);
  const Body<S>* body = ws.bodies.data();
  RigidInertia<S>* IC = ws.composite.data();
  for (int i = 0; i < ws.nb(); ++i) IC[i] = body[i].inertia;
  MatrixOut<S> H = start_symmetric<S>(ws, M);
  for (int i = ws.nb() - 1; i >= 0; --i) {
    const Body<S>& b = body[i];
    S* column = H.data() + i * H.outerStride();
    Force<S> F = detail::unit_force<S>(b, IC[i]);
    column[i] = (b.turns() ? F.n[2] : F.f[2]) + b.rotor;
    for (int k = i, j = b.parent; j >= 0; k = j, j = body[j].parent) {  // Eq. 10, up to the base
      F = body[k].X.to_parent(F);
      column[j] = body[j].turns() ? F.n[2] : F.f[2];
    }
    if (b.parent >= 0) IC[b.parent] += b.X.to_parent(IC[i]);  // Eq. 9
  }
  finish_symmetric<S>(ws, M);
  return Status::ok;
}

}  // namespace dynamics_core::composite_body
