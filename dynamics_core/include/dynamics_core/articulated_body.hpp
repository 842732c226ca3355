// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Forward dynamics by articulated bodies, O(n) (Featherstone & Orin 2000, §3.3).

#include <vector>

#include "dynamics_core/elimination.hpp"
#include "dynamics_core/newton_euler.hpp"
#include "dynamics_core/tree.hpp"

namespace dynamics_core {

template <class S>
class ArticulatedBody {
 public:
  /// The tree has to outlive this.
  explicit ArticulatedBody(Tree<S>& tree)
      : tree_(&tree), link_(static_cast<std::size_t>(tree.nb())) {}

  /// a = M⁻¹(τ + Σ Jᵀ f_ext − C v − g). Status::unsupported_joint where there are mimic joints.
  [[nodiscard]] StatusOf<S> forward_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                             VectorOut<S> a) noexcept;

 private:
  struct Link {
    Motion<S> V, A;
    VelocityProduct<S> c;  ///< ḣ q̇
    ArticulatedInertia<S> IA;
    Force<S> p;
    Force<S> U;  ///< I^A h
    S inv_D, u;
  };

  void start(VectorIn<S> v) noexcept;
  [[nodiscard]] static Force<S> times_velocity_product(JointKind kind, const Link& l) noexcept;
  [[nodiscard]] static S dot_velocity_product(JointKind kind, const Link& l) noexcept;
  [[nodiscard]] StatusOf<S> articulate(VectorIn<S> tau) noexcept;
  void accelerate(VectorOut<S>& a) noexcept;

  Tree<S>* tree_;
  std::vector<Link> link_;
};

// --- Implementation ------------------------------------------------------------------------------

/// Velocities, ḣq̇ and the rigid bodies' own inertias and velocity forces (Eqs. 3, 4, 13).
template <class S>
void ArticulatedBody<S>::start(VectorIn<S> v) noexcept {
  Link* link = link_.data();
  const Body<S>* body = tree_->bodies();
  const int n = tree_->nb();
  for (int i = 0; i < n; ++i) {
    const Body<S>& b = body[i];
    Link& l = link[i];
    l.V = newton_euler::velocity<S>(b, b.parent < 0 ? nullptr : &link[b.parent].V, v);
    l.c = velocity_product<S>(b, l.V, rate<S>(b, v));
    l.p = newton_euler::velocity_force<S>(b.inertia, l.V);
    l.IA = b.inertia;
  }
  if (const Force<S>* external = tree_->external_forces(); external != nullptr)
    for (int i = 0; i < n; ++i) link[i].p -= external[i];
}

/// I^A c, with what is zero in c = ḣq̇ left out.
template <class S>
RD_INLINE Force<S> ArticulatedBody<S>::times_velocity_product(JointKind kind,
                                                              const Link& l) noexcept {
  const ArticulatedInertia<S>& A = l.IA;
  const S& x = l.c.vx;
  const S& y = l.c.vy;
  Force<S> F = {
      {A.H(0, 0) * x + A.H(0, 1) * y, A.H(1, 0) * x + A.H(1, 1) * y, A.H(2, 0) * x + A.H(2, 1) * y},
      {A.M.xx * x + A.M.xy * y, A.M.xy * x + A.M.yy * y, A.M.xz * x + A.M.yz * y}};
  if (!turns(kind)) return F;
  const S& wx = l.c.wx;
  const S& wy = l.c.wy;
  F.n += Vec3<S>(A.I.xx * wx + A.I.xy * wy, A.I.xy * wx + A.I.yy * wy, A.I.xz * wx + A.I.yz * wy);
  F.f += Vec3<S>(A.H(0, 0) * wx + A.H(1, 0) * wy, A.H(0, 1) * wx + A.H(1, 1) * wy,
                 A.H(0, 2) * wx + A.H(1, 2) * wy);
  return F;
}

/// Uᵀ c, likewise.
template <class S>
RD_INLINE S ArticulatedBody<S>::dot_velocity_product(JointKind kind, const Link& l) noexcept {
  const S linear = l.U.f[0] * l.c.vx + l.U.f[1] * l.c.vy;
  return turns(kind) ? S(l.U.n[0] * l.c.wx + l.U.n[1] * l.c.wy + linear) : linear;
}

/// Articulated inertias and bias forces, tips to base (Eqs. 12, 13). In p^a = p + I^a c + U u/D,
/// I^a c is I^A c − U Uᵀc/D.
template <class S>
StatusOf<S> ArticulatedBody<S>::articulate(VectorIn<S> tau) noexcept {
  Link* link = link_.data();
  const Body<S>* body = tree_->bodies();
  StatusOf<S> status = Status::ok;
  for (int i = tree_->nb() - 1; i >= 0; --i) {
    const Body<S>& b = body[i];
    Link& l = link[i];
    l.U = unit_force<S>(b, l.IA);
    S D = along<S>(b, l.U) + b.rotor;
    if (!keep_pivot<S>(D, b.pivot_scale, status)) return status;
    l.inv_D = S(1) / D;
    l.u = tau[b.dof] - along<S>(b, l.p);
    if (b.parent < 0) continue;
    Force<S> pa = times_velocity_product(b.kind, l);
    const S x = l.inv_D * (l.u - dot_velocity_product(b.kind, l));
    pa.n += l.p.n + l.U.n * x;
    pa.f += l.p.f + l.U.f * x;
    link[b.parent].p += b.X.to_parent(pa);
    const Force<S> psi = {l.U.n * l.inv_D, l.U.f * l.inv_D};
    link[b.parent].IA += eliminated<S>(b, b.X, l.IA, l.U, psi);
  }
  return status;
}

/// Accelerations, base to tips (Eqs. 14, 4).
template <class S>
void ArticulatedBody<S>::accelerate(VectorOut<S>& a) noexcept {
  Link* link = link_.data();
  const Body<S>* body = tree_->bodies();
  const Motion<S> base = {Vec3<S>::Zero(), tree_->base_acceleration()};
  for (int i = 0; i < tree_->nb(); ++i) {
    const Body<S>& b = body[i];
    Link& l = link[i];
    l.A = b.X.to_child(b.parent < 0 ? base : link[b.parent].A);
    l.A.v[0] += l.c.vx;
    l.A.v[1] += l.c.vy;
    if (turns(b.kind)) {
      l.A.w[0] += l.c.wx;
      l.A.w[1] += l.c.wy;
    }
    a[b.dof] = l.inv_D * (l.u - l.U.n.dot(l.A.w) - l.U.f.dot(l.A.v));
    add_along<S>(b, a[b.dof], l.A);
  }
}

template <class S>
StatusOf<S> ArticulatedBody<S>::forward_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                                 VectorOut<S> a) noexcept {
  StatusOf<S> status = check_and_move<S>(*tree_, q, v, tau, a);
  if (failed(status)) return status;
  if (tree_->has_mimic()) return merged(status, Status::unsupported_joint);
  start(v);
  status = merged(status, articulate(tau));
  if (failed(status)) return status;
  accelerate(a);
  return merged(status, result_status<S>(a));
}

}  // namespace dynamics_core
