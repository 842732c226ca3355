#pragma once

/// Decoupled natural orthogonal complement: inverse dynamics and mass matrix with the twists
/// t = [ω; v] of the mass centres C (Saha 1999). The convective matrix is in coriolis.hpp.
///
/// All vectors are in body axes. Where the paper propagates twists by B and wrenches by Bᵀ between
/// the mass centres of two links, this text goes over the joint's origin O between them: d leads
/// from O to C, r from the parent's mass centre to O. A body without mass has its origin for a mass
/// centre. (Masses that cancel to zero while their first moments do not, as a negative payload may
/// cause, have no mass centre; this family does not serve them.)

#include "dynamics_core/joints.hpp"

namespace dynamics_core::denoc {

namespace detail {

/// Brings r, from the parent's mass centre to the body's origin in the parent's axes, to the
/// configuration. It is a constant but for slides and floating joints.
template <class S>
RD_INLINE void update_offset(Workspace<S>& ws, int i) noexcept {
  const Body<S>& b = ws.bodies.data()[i];
  if (b.parent < 0 || (b.kind != Motions::prismatic && b.kind != Motions::floating_first)) return;
  ws.denoc.data()[i].r = b.X.position() - ws.denoc.data()[b.parent].d;
}

/// W = ω̇× + ω×ω×, the second derivative of a vector u fixed in the body: ü = W u.
template <class S>
[[nodiscard]] RD_INLINE Mat3<S> second_rate(const Vec3<S>& w, const Vec3<S>& w_dot) noexcept {
  const S xx = w[0] * w[0];
  const S yy = w[1] * w[1];
  const S zz = w[2] * w[2];
  const S xy = w[0] * w[1];
  const S xz = w[0] * w[2];
  const S yz = w[1] * w[2];
  Mat3<S> W;
  W << -(yy + zz), xy - w_dot[2], xz + w_dot[1],  //
      xy + w_dot[2], -(xx + zz), yz - w_dot[0],   //
      xz - w_dot[1], yz + w_dot[0], -(xx + yy);
  return W;
}

/// What the joint adds to ω, ω̇ and v̇ of the body's origin.
template <bool with_acceleration, class S>
RD_INLINE void add_joint_motion(const Body<S>& b, VectorIn<S> v, VectorIn<S> a, Vec3<S>& w,
                                Vec3<S>& w_dot, Vec3<S>& v_dot) noexcept {
  const S qd = rate<S>(b, v);
  add_joint_rate<S>(b, v, w);
  if (b.turns()) {
    w_dot[0] += w[1] * qd;  // ω × e q̇
    w_dot[1] -= w[0] * qd;
    if constexpr (with_acceleration) w_dot[2] += rate<S>(b, a);
  } else {
    const Vec3<S> u = sliding_rate<S>(b, v, w);
    v_dot[0] += u[1] * qd;
    v_dot[1] -= u[0] * qd;
    if constexpr (with_acceleration) v_dot[2] += rate<S>(b, a);
  }
}

/// t and ṫ of all bodies (§5.1, forward) and their own wrenches M ṫ + Ṁ t = [I ω̇ + ω × I ω; m v̇]
/// (Eq. 7), about the mass centres. No wrench depends on the linear velocity, so it is left out.
/// The rate of Eq. 12, ṫ_i = p_i q̈ + Ω_i p_i q̇ + B ṫ_λ + Ḃ t_λ, has for its linear part, terms
/// gathered by the two constant vectors: v̇_i = v̇_λ + W_λ r + W_i d.
template <bool with_acceleration, class S>
void wrenches(Workspace<S>& ws, VectorIn<S> v, VectorIn<S> a) noexcept {
  for (int i = 0; i < ws.nb(); ++i) {
    const Body<S>& b = ws.bodies.data()[i];
    auto& l = ws.denoc.data()[i];
    update_offset<S>(ws, i);
    Vec3<S> w = Vec3<S>::Zero();
    Vec3<S> w_dot = Vec3<S>::Zero();
    Vec3<S> v_dot = ws.base_acceleration;  // Eq. 32
    if (b.parent >= 0) {
      const auto& p = ws.denoc.data()[b.parent];
      w = b.X.to_child(p.w);
      w_dot = b.X.to_child(p.w_dot);
      v_dot = p.v_dot + p.W * l.r;
    }
    v_dot = b.X.to_child(v_dot);
    add_joint_motion<with_acceleration, S>(b, v, a, w, w_dot, v_dot);
    const Mat3<S> W = second_rate<S>(w, w_dot);
    v_dot += W * l.d;
    l.F = {l.I * w_dot + w.cross(l.I * w), b.inertia.m * v_dot};
    l.w = w;
    l.w_dot = w_dot;
    l.v_dot = v_dot;
    l.W = W;
  }
}

/// The body's wrench about its origin, less the external force there.
template <class S>
[[nodiscard]] RD_INLINE Force<S> at_origin(const Workspace<S>& ws, int i) noexcept {
  const auto& l = ws.denoc.data()[i];
  Force<S> F = {l.F.n + l.d.cross(l.F.f), l.F.f};
  if (ws.has_external) F -= ws.external.data()[i];
  return F;
}

/// γ_λ += Bᵀ γ_i and τ_i = p_iᵀ γ_i (§5.1, backward), and the rotors' share.
template <class S>
void collect_efforts(Workspace<S>& ws, VectorIn<S> a, VectorOut<S>& tau) noexcept {
  tau.setZero();
  for (int i = ws.nb() - 1; i >= 0; --i) {
    const Body<S>& b = ws.bodies.data()[i];
    const Force<S> F = at_origin<S>(ws, i);
    add_effort<S>(b, S((b.turns() ? F.n[2] : F.f[2]) + b.rotor * rate<S>(b, a)), tau);
    if (b.parent < 0) continue;
    Force<S>& parent = ws.denoc.data()[b.parent].F;
    const Vec3<S> f = b.X.to_parent(F.f);
    parent.n += b.X.to_parent(F.n) + ws.denoc.data()[i].r.cross(f);
    parent.f += f;
  }
}

/// Mass and inertia of each body alone, about its mass centre, and the vectors s = −c between the
/// mass centres.
template <class S>
void start_composites(Workspace<S>& ws) noexcept {
  for (int i = 0; i < ws.nb(); ++i) {
    const Body<S>& b = ws.bodies.data()[i];
    const auto& l = ws.denoc.data()[i];
    auto& c = ws.denoc_composite.data()[i];
    c.M = {b.inertia.m, Vec3<S>::Zero(), l.I};
    if (b.parent < 0) continue;
    update_offset<S>(ws, i);
    c.s = l.r + b.X.to_parent(l.d);
  }
}

/// Bᵀ M̃ B of the body, about the parent's mass centre in the parent's axes.
template <class S>
[[nodiscard]] RigidInertia<S> to_parent(const Workspace<S>& ws, int i) noexcept {
  const Transform<S>& X = ws.bodies.data()[i].X;
  const auto& c = ws.denoc_composite.data()[i];
  const RigidInertia<S> turned = {c.M.m, X.to_parent(c.M.h), X.to_parent(c.M.I)};
  return shift(turned, c.s);
}

/// Bᵀ F: a wrench about the body's mass centre, about the parent's in the parent's axes.
template <class S>
[[nodiscard]] RD_INLINE Force<S> to_parent(const Workspace<S>& ws, int i,
                                           const Force<S>& F) noexcept {
  const Transform<S>& X = ws.bodies.data()[i].X;
  const Vec3<S> f = X.to_parent(F.f);
  return {X.to_parent(F.n) + ws.denoc_composite.data()[i].s.cross(f), f};
}

/// The linear part e × d of p for a hinge.
template <class S>
[[nodiscard]] RD_INLINE Vec3<S> lever(const Vec3<S>& d) noexcept {
  return {-d[1], d[0], S(0)};
}

/// M̃ p, with p = [e; e × d] (Eq. 13) for a hinge and [0; e] (Eq. 15) for a slide.
template <class S>
[[nodiscard]] RD_INLINE Force<S> unit_wrench(const Body<S>& b, const Vec3<S>& d,
                                             const RigidInertia<S>& M) noexcept {
  const Vec3<S>& h = M.h;
  if (!b.turns()) return {{h[1], -h[0], S(0)}, {S(0), S(0), M.m}};
  const S x = h[0] + M.m * d[0];
  const S y = h[1] + M.m * d[1];
  return {{M.I.xz - h[2] * d[0], M.I.yz - h[2] * d[1], M.I.zz + h[0] * d[0] + h[1] * d[1]},
          {-y, x, S(0)}};
}

/// pᵀ F
template <class S>
[[nodiscard]] RD_INLINE S along_joint(const Body<S>& b, const Vec3<S>& d,
                                      const Force<S>& F) noexcept {
  return b.turns() ? S(F.n[2] + d[0] * F.f[1] - d[1] * F.f[0]) : F.f[2];
}

}  // namespace detail

/// τ = M(q) a + C(q, v) v + g(q) − Σ Jᵀ f_ext (Saha 1999, §5.1).
template <class S>
[[nodiscard]] Status inverse_dynamics(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, VectorIn<S> a,
                                      VectorOut<S> tau) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, v); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, a); s != Status::ok) return s;
  if (tau.size() != ws.nv()) return Status::wrong_size;
  update_joints<S>(ws, q);
  detail::wrenches<true, S>(ws, v, a);
  detail::collect_efforts<S>(ws, a, tau);
  return Status::ok;
}

/// M(q), nv × nv, both triangles, by i_ij = p_iᵀ M̃_i B_ij p_j (Saha 1999, Eqs. 23b and 24).
template <class S>
[[nodiscard]] Status mass_matrix(Workspace<S>& ws, VectorIn<S> q, MatrixOut<S> M) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  if (M.rows() != ws.nv() || M.cols() != ws.nv()) return Status::wrong_size;
  update_joints<S>(ws, q);
  detail::start_composites<S>(ws);
  const Body<S>* body = ws.bodies.data();
  const auto* link = ws.denoc.data();
  auto* composite = ws.denoc_composite.data();
  M.setZero();
  for (int i = ws.nb() - 1; i >= 0; --i) {
    const Body<S>& b = body[i];
    Force<S> F = detail::unit_wrench<S>(b, link[i].d, composite[i].M);
    add_symmetric<S>(b, b, S(detail::along_joint<S>(b, link[i].d, F) + b.rotor), M);
    for (int k = i, j = b.parent; j >= 0; k = j, j = body[j].parent) {  // Eq. 24
      F = detail::to_parent<S>(ws, k, F);
      add_symmetric<S>(b, body[j], detail::along_joint<S>(body[j], link[j].d, F), M);
    }
    if (b.parent >= 0) composite[b.parent].M += detail::to_parent<S>(ws, i);  // Eq. 23b
  }
  return Status::ok;
}

}  // namespace dynamics_core::denoc
