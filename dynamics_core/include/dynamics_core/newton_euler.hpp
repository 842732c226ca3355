// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Recursive Newton–Euler in link coordinates (Featherstone & Orin 2000, §3.1), with the
/// specialisations for the bias and for gravity alone.

#include <vector>

#include "dynamics_core/joint_space.hpp"
#include "dynamics_core/tree.hpp"

namespace dynamics_core {

template <class S>
class NewtonEuler {
 public:
  /// The tree has to outlive this.
  explicit NewtonEuler(Tree<S>& tree)
      : tree_(&tree),
        link_(static_cast<std::size_t>(tree.nb())),
        subtree_(static_cast<std::size_t>(tree.nb())) {}

  /// τ = M(q) a + C(q, v) v + g(q) − Σ Jᵀ f_ext.
  [[nodiscard]] StatusOf<S> inverse_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> a,
                                             VectorOut<S> tau) noexcept;
  /// C(q, v) v + g(q), without external forces.
  [[nodiscard]] StatusOf<S> bias(VectorIn<S> q, VectorIn<S> v, VectorOut<S> tau) noexcept;
  /// C(q, v) v, without external forces.
  [[nodiscard]] StatusOf<S> velocity_effort(VectorIn<S> q, VectorIn<S> v,
                                            VectorOut<S> tau) noexcept;
  /// g(q). At rest every body feels the base's acceleration, so no force needs to travel: the first
  /// moment of each subtree does, and τ = z · (h × a) about a revolute joint, m a·z along a
  /// prismatic one.
  [[nodiscard]] StatusOf<S> gravity(VectorIn<S> q, VectorOut<S> tau) noexcept;

  /// C v + g − Σ Jᵀ f_ext where the tree already is, for the families that build on this one.
  void bias_with_external_forces(VectorIn<S> v, VectorOut<S> tau) noexcept {
    recursion<false>(v, v, tree_->base_acceleration(), tree_->external_forces(), tau);
  }

 private:
  struct Link {
    Motion<S> V, A;  ///< velocity and spatial acceleration
    Force<S> F;
  };
  struct Moment {  ///< of a subtree
    S m;
    Vec3<S> h;
  };

  template <bool with_acceleration>
  void recursion(VectorIn<S> v, VectorIn<S> a, const Vec3<S>& base_acceleration,
                 const Force<S>* external, VectorOut<S>& tau) noexcept;
  void collect_efforts(VectorOut<S>& tau) noexcept;
  void add_rotor_efforts(VectorIn<S> a, VectorOut<S>& tau) const noexcept;

  Tree<S>* tree_;
  std::vector<Link> link_;
  std::vector<Moment> subtree_;
};

// --- Implementation ------------------------------------------------------------------------------

namespace newton_euler {

/// The body's velocity from its parent's: v_i = X v_λ + h q̇ (Eq. 3).
template <class S>
[[nodiscard]] RD_INLINE Motion<S> velocity(const Body<S>& b, const Motion<S>* parent,
                                           VectorIn<S> v) noexcept {
  Motion<S> V = parent != nullptr ? b.X.to_child(*parent) : Motion<S>::zero();
  add_joint_velocity<S>(b, v, V);
  return V;
}

/// v × I v (second term of Eq. 5).
template <class S>
[[nodiscard]] RD_INLINE Force<S> velocity_force(const RigidInertia<S>& I,
                                                const Motion<S>& V) noexcept {
  const Force<S> P = I * V;
  return {V.w.cross(P.n) + V.v.cross(P.f), V.w.cross(P.f)};
}

}  // namespace newton_euler

/// f_λ += X f_i (Eq. 7) and τ_i = hᵀ f_i (Eq. 8), from the tips to the base.
template <class S>
void NewtonEuler<S>::collect_efforts(VectorOut<S>& tau) noexcept {
  Link* link = link_.data();
  const Body<S>* body = tree_->bodies();
  tau.setZero();
  for (int i = tree_->nb() - 1; i >= 0; --i) {
    const Body<S>& b = body[i];
    const Force<S>& F = link[i].F;
    add_effort<S>(b, along<S>(b, F), tau);
    if (b.parent >= 0) link[b.parent].F += b.X.to_parent(F);
  }
}

/// The shared text of the inverse dynamics and of the bias, which leaves q̈ out.
template <class S>
template <bool with_acceleration>
void NewtonEuler<S>::recursion(VectorIn<S> v, VectorIn<S> a, const Vec3<S>& base_acceleration,
                               const Force<S>* external, VectorOut<S>& tau) noexcept {
  Link* link = link_.data();
  const Body<S>* body = tree_->bodies();
  const int n = tree_->nb();
  const Motion<S> base = {Vec3<S>::Zero(), base_acceleration};
  for (int i = 0; i < n; ++i) {
    const Body<S>& b = body[i];
    Link& l = link[i];
    const bool at_base = b.parent < 0;
    l.V = newton_euler::velocity<S>(b, at_base ? nullptr : &link[b.parent].V, v);
    l.A = b.X.to_child(at_base ? base : link[b.parent].A);
    add_velocity_product<S>(b, l.V, rate<S>(b, v), l.A);
    if constexpr (with_acceleration) add_along<S>(b, rate<S>(b, a), l.A);
    l.F = b.inertia * l.A;  // Eq. 5
    l.F += newton_euler::velocity_force<S>(b.inertia, l.V);
  }
  if (external != nullptr)
    for (int i = 0; i < n; ++i) link[i].F -= external[i];
  collect_efforts(tau);
}

/// Reflected rotor inertias: τ += J q̈ of each body's own coordinate.
template <class S>
void NewtonEuler<S>::add_rotor_efforts(VectorIn<S> a, VectorOut<S>& tau) const noexcept {
  const Body<S>* body = tree_->bodies();
  for (int i = 0; i < tree_->nb(); ++i)
    tau[body[i].dof] += body[i].multiplier * body[i].rotor * rate<S>(body[i], a);
}

template <class S>
StatusOf<S> NewtonEuler<S>::inverse_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> a,
                                             VectorOut<S> tau) noexcept {
  const StatusOf<S> status = check_and_move<S>(*tree_, q, v, a, tau);
  if (failed(status)) return status;
  recursion<true>(v, a, tree_->base_acceleration(), tree_->external_forces(), tau);
  add_rotor_efforts(a, tau);
  return merged(status, result_status<S>(tau));
}

template <class S>
StatusOf<S> NewtonEuler<S>::bias(VectorIn<S> q, VectorIn<S> v, VectorOut<S> tau) noexcept {
  const StatusOf<S> status = check_and_move<S>(*tree_, q, v, tau);
  if (failed(status)) return status;
  recursion<false>(v, v, tree_->base_acceleration(), nullptr, tau);
  return merged(status, result_status<S>(tau));
}

template <class S>
StatusOf<S> NewtonEuler<S>::velocity_effort(VectorIn<S> q, VectorIn<S> v,
                                            VectorOut<S> tau) noexcept {
  const StatusOf<S> status = check_and_move<S>(*tree_, q, v, tau);
  if (failed(status)) return status;
  recursion<false>(v, v, Vec3<S>::Zero(), nullptr, tau);
  return merged(status, result_status<S>(tau));
}

template <class S>
StatusOf<S> NewtonEuler<S>::gravity(VectorIn<S> q, VectorOut<S> tau) noexcept {
  const StatusOf<S> status = check_and_move<S>(*tree_, q, tau);
  if (failed(status)) return status;
  Link* link = link_.data();
  Moment* subtree = subtree_.data();
  const Body<S>* body = tree_->bodies();
  const int n = tree_->nb();
  for (int i = 0; i < n; ++i) {
    const Body<S>& b = body[i];
    link[i].A.v = b.X.to_child(b.parent < 0 ? tree_->base_acceleration() : link[b.parent].A.v);
    subtree[i].m = b.inertia.m;
    subtree[i].h = b.inertia.h;
  }
  tau.setZero();
  for (int i = n - 1; i >= 0; --i) {
    const Body<S>& b = body[i];
    const Moment& sub = subtree[i];
    add_effort<S>(b, effort_at_rest<S>(b, sub.m, sub.h, link[i].A.v), tau);
    if (b.parent < 0) continue;
    subtree[b.parent].m += sub.m;
    subtree[b.parent].h += b.X.to_parent(sub.h) + sub.m * b.X.position();
  }
  return merged(status, result_status<S>(tau));
}

}  // namespace dynamics_core
