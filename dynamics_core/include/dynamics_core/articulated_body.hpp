#pragma once

/// Forward dynamics by articulated bodies, O(n) (Featherstone & Orin 2000, §3.3).

#include "dynamics_core/joints.hpp"

namespace dynamics_core::articulated_body {

namespace detail {

/// Velocities, ḣq̇ and the rigid bodies' own inertias and velocity forces (Eqs. 3, 4, 13).
template <class S>
void start(Workspace<S>& ws, VectorIn<S> v) noexcept {
  auto* link = ws.articulated_body.data();
  for (int i = 0; i < ws.nb(); ++i) {
    const Body<S>& b = ws.bodies.data()[i];
    auto& l = link[i];
    l.V = b.parent < 0 ? Motion<S>::zero() : b.X.to_child(link[b.parent].V);
    add_joint_velocity<S>(b, v, l.V);
    const S qd = rate<S>(b, v);
    const Vec3<S>& turned = b.turns() ? l.V.v : l.V.w;
    l.cv = {turned[1] * qd, -turned[0] * qd};
    l.cw = {l.V.w[1] * qd, -l.V.w[0] * qd};
    const Force<S> P = b.inertia * l.V;
    l.p = {l.V.w.cross(P.n) + l.V.v.cross(P.f), l.V.w.cross(P.f)};
    l.IA = ArticulatedInertia<S>::from(b.inertia);
  }
  if (ws.has_external)
    for (int i = 0; i < ws.nb(); ++i) link[i].p -= ws.external.data()[i];
}

/// I^A − U Uᵀ/D (Eq. 12).
template <class S>
RD_INLINE void remove_joint(const Force<S>& U, const S& inv_D, ArticulatedInertia<S>& IA) noexcept {
  const Vec3<S> n = U.n * inv_D;
  const Vec3<S> f = U.f * inv_D;
  IA.I.xx -= U.n[0] * n[0];
  IA.I.xy -= U.n[0] * n[1];
  IA.I.xz -= U.n[0] * n[2];
  IA.I.yy -= U.n[1] * n[1];
  IA.I.yz -= U.n[1] * n[2];
  IA.I.zz -= U.n[2] * n[2];
  IA.H.noalias() -= U.n * f.transpose();
  IA.M.xx -= U.f[0] * f[0];
  IA.M.xy -= U.f[0] * f[1];
  IA.M.xz -= U.f[0] * f[2];
  IA.M.yy -= U.f[1] * f[1];
  IA.M.yz -= U.f[1] * f[2];
  IA.M.zz -= U.f[2] * f[2];
}

/// I^a c, with what is zero in c = ḣq̇ left out.
template <class S, class Link>
[[nodiscard]] RD_INLINE Force<S> times_velocity_product(const Body<S>& b, const Link& l) noexcept {
  const ArticulatedInertia<S>& A = l.IA;
  const S& x = l.cv[0];
  const S& y = l.cv[1];
  Force<S> F = {
      {A.H(0, 0) * x + A.H(0, 1) * y, A.H(1, 0) * x + A.H(1, 1) * y, A.H(2, 0) * x + A.H(2, 1) * y},
      {A.M.xx * x + A.M.xy * y, A.M.xy * x + A.M.yy * y, A.M.xz * x + A.M.yz * y}};
  if (!b.turns()) return F;
  const S& wx = l.cw[0];
  const S& wy = l.cw[1];
  F.n += Vec3<S>(A.I.xx * wx + A.I.xy * wy, A.I.xy * wx + A.I.yy * wy, A.I.xz * wx + A.I.yz * wy);
  F.f += Vec3<S>(A.H(0, 0) * wx + A.H(1, 0) * wy, A.H(0, 1) * wx + A.H(1, 1) * wy,
                 A.H(0, 2) * wx + A.H(1, 2) * wy);
  return F;
}

/// Articulated inertias and bias forces, tips to base (Eqs. 12, 13).
template <class S>
[[nodiscard]] Status articulate(Workspace<S>& ws, VectorIn<S> tau) noexcept {
  auto* link = ws.articulated_body.data();
  for (int i = ws.nb() - 1; i >= 0; --i) {
    const Body<S>& b = ws.bodies.data()[i];
    auto& l = link[i];
    const bool turns = b.turns();
    const ArticulatedInertia<S>& A = l.IA;
    if (turns)
      l.U = {{A.I.xz, A.I.yz, A.I.zz}, A.H.row(2).transpose()};
    else
      l.U = {A.H.col(2), {A.M.xz, A.M.yz, A.M.zz}};
    const S D = (turns ? l.U.n[2] : l.U.f[2]) + b.rotor;
    if (negligible(D, b.pivot_scale)) return Status::singular;
    l.inv_D = S(1) / D;
    l.u = tau[b.dof] - (turns ? l.p.n[2] : l.p.f[2]);
    if (b.parent < 0) continue;
    remove_joint<S>(l.U, l.inv_D, l.IA);
    Force<S> pa = times_velocity_product<S>(b, l);
    const S x = l.inv_D * l.u;
    pa.n += l.p.n + l.U.n * x;
    pa.f += l.p.f + l.U.f * x;
    link[b.parent].p += b.X.to_parent(pa);
    link[b.parent].IA += to_parent(b.X, l.IA);
  }
  return Status::ok;
}

/// Accelerations, base to tips (Eqs. 14, 4).
template <class S>
void accelerate(Workspace<S>& ws, VectorOut<S>& a) noexcept {
  auto* link = ws.articulated_body.data();
  const Motion<S> base = {Vec3<S>::Zero(), ws.base_acceleration};
  for (int i = 0; i < ws.nb(); ++i) {
    const Body<S>& b = ws.bodies.data()[i];
    auto& l = link[i];
    l.A = b.X.to_child(b.parent < 0 ? base : link[b.parent].A);
    l.A.v[0] += l.cv[0];
    l.A.v[1] += l.cv[1];
    if (b.turns()) {
      l.A.w[0] += l.cw[0];
      l.A.w[1] += l.cw[1];
    }
    a[b.dof] = l.inv_D * (l.u - l.U.n.dot(l.A.w) - l.U.f.dot(l.A.v));
    (b.turns() ? l.A.w[2] : l.A.v[2]) += a[b.dof];
  }
}

}  // namespace detail

/// a = M⁻¹(τ + Σ Jᵀ f_ext − C v − g).
template <class S>
[[nodiscard]] Status forward_dynamics(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v,
                                      VectorIn<S> tau, VectorOut<S> a) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, v); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, tau); s != Status::ok) return s;
  if (a.size() != ws.nv()) return Status::wrong_size;
  if (ws.has_mimic()) return Status::unsupported_joint;
  update_joints<S>(ws, q);
  detail::start<S>(ws, v);
  if (const Status s = detail::articulate<S>(ws, tau); s != Status::ok) return s;
  detail::accelerate<S>(ws, a);
  return Status::ok;
}

}  // namespace dynamics_core::articulated_body
