#pragma once

/// Recursive Newton–Euler in link coordinates (Featherstone & Orin 2000, §3.1), with the
/// specialisations for the bias and for gravity alone.

#include "dynamics_core/joints.hpp"

namespace dynamics_core::newton_euler {

namespace detail {

/// The body's velocity from its parent's: v_i = X v_λ + h q̇ (Eq. 3).
template <class S>
[[nodiscard]] RD_INLINE Motion<S> velocity(const Body<S>& b, const Motion<S>* parent,
                                           VectorIn<S> v) noexcept {
  Motion<S> V = parent != nullptr ? b.X.to_child(*parent) : Motion<S>::zero();
  add_joint_velocity<S>(b, v, V);
  return V;
}

/// Adds ḣ q̇ = v × h q̇ (Eq. 4).
template <class S>
RD_INLINE void add_velocity_product(const Body<S>& b, const Motion<S>& V, const S& qd,
                                    Motion<S>& A) noexcept {
  if (b.turns()) {
    A.w[0] += V.w[1] * qd;
    A.w[1] -= V.w[0] * qd;
    A.v[0] += V.v[1] * qd;
    A.v[1] -= V.v[0] * qd;
  } else {
    A.v[0] += V.w[1] * qd;
    A.v[1] -= V.w[0] * qd;
  }
}

/// v × I v (second term of Eq. 5).
template <class S>
[[nodiscard]] RD_INLINE Force<S> velocity_force(const RigidInertia<S>& I,
                                                const Motion<S>& V) noexcept {
  const Force<S> P = I * V;
  return {V.w.cross(P.n) + V.v.cross(P.f), V.w.cross(P.f)};
}

/// f_λ += X f_i (Eq. 7) and τ_i = hᵀ f_i (Eq. 8), from the tips to the base.
template <class S>
void collect_efforts(Workspace<S>& ws, VectorOut<S>& tau) noexcept {
  auto* link = ws.newton_euler.data();
  tau.setZero();
  for (int i = ws.nb() - 1; i >= 0; --i) {
    const Body<S>& b = ws.bodies.data()[i];
    const Force<S>& F = link[i].F;
    add_effort<S>(b, b.turns() ? F.n[2] : F.f[2], tau);
    if (b.parent >= 0) link[b.parent].F += b.X.to_parent(F);
  }
}

/// The shared text of the inverse dynamics and of the bias, which leaves q̈ out.
template <bool with_acceleration, class S>
void recursion(Workspace<S>& ws, VectorIn<S> v, VectorIn<S> a, VectorOut<S>& tau) noexcept {
  auto* link = ws.newton_euler.data();
  const Motion<S> base = {Vec3<S>::Zero(), ws.base_acceleration};
  for (int i = 0; i < ws.nb(); ++i) {
    const Body<S>& b = ws.bodies.data()[i];
    auto& l = link[i];
    const bool at_base = b.parent < 0;
    l.V = velocity<S>(b, at_base ? nullptr : &link[b.parent].V, v);
    l.A = b.X.to_child(at_base ? base : link[b.parent].A);
    add_velocity_product<S>(b, l.V, rate<S>(b, v), l.A);
    if constexpr (with_acceleration) (b.turns() ? l.A.w[2] : l.A.v[2]) += rate<S>(b, a);
    l.F = b.inertia * l.A;  // Eq. 5
    l.F += velocity_force<S>(b.inertia, l.V);
  }
  if constexpr (with_acceleration) {
    if (ws.has_external)
      for (int i = 0; i < ws.nb(); ++i) link[i].F -= ws.external.data()[i];
  }
  collect_efforts<S>(ws, tau);
}

}  // namespace detail

/// Reflected rotor inertias: τ += J q̈ of each body's own coordinate.
template <class S>
void add_rotor_efforts(const Workspace<S>& ws, VectorIn<S> a, VectorOut<S>& tau) noexcept {
  for (const Body<S>& b : ws.bodies) tau[b.dof] += b.multiplier * b.rotor * rate<S>(b, a);
}

/// τ = M(q) a + C(q, v) v + g(q) − Σ Jᵀ f_ext.
template <class S>
[[nodiscard]] Status inverse_dynamics(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, VectorIn<S> a,
                                      VectorOut<S> tau) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, v); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, a); s != Status::ok) return s;
  if (tau.size() != ws.nv()) return Status::wrong_size;
  update_joints<S>(ws, q);
  detail::recursion<true, S>(ws, v, a, tau);
  add_rotor_efforts<S>(ws, a, tau);
  return Status::ok;
}

/// C(q, v) v + g(q), without external forces.
template <class S>
[[nodiscard]] Status bias(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v,
                          VectorOut<S> tau) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, v); s != Status::ok) return s;
  if (tau.size() != ws.nv()) return Status::wrong_size;
  update_joints<S>(ws, q);
  detail::recursion<false, S>(ws, v, v, tau);
  return Status::ok;
}

/// g(q). At rest every body feels the base's acceleration, so no force needs to travel: the first
/// moment of each subtree does, and τ = z · (h × a) about a hinge, m a·z along a slide.
template <class S>
[[nodiscard]] Status gravity(Workspace<S>& ws, VectorIn<S> q, VectorOut<S> tau) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  if (tau.size() != ws.nv()) return Status::wrong_size;
  update_joints<S>(ws, q);
  auto* link = ws.newton_euler.data();
  auto* subtree = ws.composite.data();
  for (int i = 0; i < ws.nb(); ++i) {
    const Body<S>& b = ws.bodies.data()[i];
    link[i].A.v = b.X.to_child(b.parent < 0 ? ws.base_acceleration : link[b.parent].A.v);
    subtree[i].m = b.inertia.m;
    subtree[i].h = b.inertia.h;
  }
  tau.setZero();
  for (int i = ws.nb() - 1; i >= 0; --i) {
    const Body<S>& b = ws.bodies.data()[i];
    const Vec3<S>& g = link[i].A.v;
    const RigidInertia<S>& sub = subtree[i];
    add_effort<S>(b, b.turns() ? S(sub.h[0] * g[1] - sub.h[1] * g[0]) : S(sub.m * g[2]), tau);
    if (b.parent < 0) continue;
    subtree[b.parent].m += sub.m;
    subtree[b.parent].h += b.X.to_parent(sub.h) + sub.m * b.X.position();
  }
  return Status::ok;
}

}  // namespace dynamics_core::newton_euler
