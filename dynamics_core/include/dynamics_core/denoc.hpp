// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Decoupled natural orthogonal complement: inverse dynamics and mass matrix with the twists
/// t = [ω; v] of the mass centres C (Saha 1999), and the convective matrix.
///
/// All vectors are in body axes. Where the paper propagates twists by B and wrenches by Bᵀ between
/// the mass centres of two links, this text goes over the joint's origin O between them: d leads
/// from O to C, r from the parent's mass centre to O. A body without mass has its origin for a mass
/// centre: as no mass is negative, it has no first moment either.
///
/// The convective matrix C(q, v) is the one of which C v is the part of the bias that is due to
/// velocity. With the natural orthogonal complement N (t = N q̇) Saha 1999 has C = Nᵀ(M Ṅ + Ṁ N),
/// where M t' + Ṁ t is the body's wrench and so Ṁ_k = diag(ω×I, 0) at the mass centre. C v is not
/// changed by any matrix that maps ω to zero: adding −½ tr(I) ω× to ω×I gives −ω×(½ tr(I) 1 − I),
/// which is the body-level term ½(ω×I − Iω× − (Iω)×) of Echeandia & Wensing, "Numerical Methods to
/// Compute the Coriolis Matrix and Christoffel Symbols for Rigid-Body Systems" (J. Comput. Nonlinear
/// Dyn. 16, 2021), as for symmetric I: ω×I + Iω× = ((tr(I) 1 − I) ω)×.
///
/// As ω×I and its transpose −Iω× add up to the true rate of the inertia, and ω× is skew, both have
/// C + Cᵀ = NᵀMṄ + ṄᵀMN + Nᵀ(Ṁ + Ṁᵀ)N = dM/dt, so that dM/dt − 2C is skew for both. What the
/// second has beyond the first are Christoffel's symbols: C(q, v) u = C(q, u) v, element by element
/// C_ij = Σ_k ½ (∂M_ij/∂q_k + ∂M_ik/∂q_j − ∂M_jk/∂q_i) v_k. (Where a floating joint makes v a
/// quasi-velocity, that symmetry is lost; skewness is not.)

#include <vector>

#include "dynamics_core/joint_space.hpp"
#include "dynamics_core/tree.hpp"

namespace dynamics_core {

template <class S>
class Denoc {
 public:
  /// The tree has to outlive this.
  explicit Denoc(Tree<S>& tree)
      : tree_(&tree),
        link_(static_cast<std::size_t>(tree.nb())),
        composite_(static_cast<std::size_t>(tree.nb())) {
    update_mass_centres();
  }

  /// τ = M(q) a + C(q, v) v + g(q) − Σ Jᵀ f_ext (Saha 1999, §5.1).
  [[nodiscard]] StatusOf<S> inverse_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> a,
                                             VectorOut<S> tau) noexcept;
  /// M(q), nv × nv, both triangles, by i_ij = p_iᵀ M̃_i B_ij p_j (Saha 1999, Eqs. 23b and 24).
  [[nodiscard]] StatusOf<S> mass_matrix(VectorIn<S> q, MatrixOut<S> M) noexcept;
  /// C(q, v), nv × nv, by the element recursion of Saha 1999, Eqs. 28 and 29. dM/dt − 2C is
  /// skew-symmetric.
  [[nodiscard]] StatusOf<S> coriolis(VectorIn<S> q, VectorIn<S> v, MatrixOut<S> C) noexcept {
    return convective_matrix<BodyTerm::saha>(q, v, C);
  }
  /// C(q, v) of Christoffel's symbols: dM/dt − 2C is skew-symmetric and C(q, v) u = C(q, u) v.
  [[nodiscard]] StatusOf<S> coriolis_christoffel(VectorIn<S> q, VectorIn<S> v,
                                                 MatrixOut<S> C) noexcept {
    return convective_matrix<BodyTerm::christoffel>(q, v, C);
  }

  /// The bodies' own wrenches for v and no acceleration, where the tree already is, for the family
  /// that builds on this one; about their origins, less the external forces.
  void bias_wrenches(VectorIn<S> v) noexcept {
    refresh();
    wrenches<false>(v, v);
  }
  [[nodiscard]] RD_INLINE Force<S> wrench_at_origin(int i) const noexcept;

 private:
  /// Which of the matrices Ṁ that give the same wrench Ṁ t.
  enum class BodyTerm { saha, christoffel };

  struct Link {
    Vec3<S> d;        ///< from the origin to the mass centre C; zero where there is no mass
    Vec3<S> r;        ///< from the parent's C to the origin, in the parent's axes
    Symmetric3<S> I;  ///< about C
    Vec3<S> w;        ///< twist rate of the mass centre: ω, ω̇, v̇ and W = ω̇× + ω×ω×
    Vec3<S> w_dot;
    Vec3<S> v_dot;
    Mat3<S> W;
    Force<S> F;  ///< γ, about C
  };
  struct Composite {
    RigidInertia<S> M;  ///< M̃, about C
    Vec3<S> s, s_dot;   ///< from the parent's C to C and its rate, in the parent's axes
    Vec3<S> w;          ///< ω
    Vec3<S> h_dot;      ///< rate of M.h
    Mat3<S> T;          ///< Σ of the bodies' Ṁ and of −m s× ṡ×
  };

  void update_mass_centres() noexcept;
  RD_INLINE void refresh() noexcept {
    if (revision_ != tree_->revision()) update_mass_centres();
  }
  RD_INLINE void update_offset(int i) noexcept;
  template <bool with_acceleration>
  void wrenches(VectorIn<S> v, VectorIn<S> a) noexcept;
  void collect_efforts(VectorIn<S> a, VectorOut<S>& tau) noexcept;
  void start_composites() noexcept;
  [[nodiscard]] RigidInertia<S> composite_in_parent(int i) const noexcept;
  [[nodiscard]] RD_INLINE Force<S> to_parent(int i, const Force<S>& F) const noexcept;
  void rates(VectorIn<S> v) noexcept;
  template <BodyTerm term>
  void start_convective() noexcept;
  void add_to_parent(int i) noexcept;
  void elements(int i, MatrixOut<S>& C) noexcept;
  template <BodyTerm term>
  [[nodiscard]] StatusOf<S> convective_matrix(VectorIn<S> q, VectorIn<S> v,
                                              MatrixOut<S>& C) noexcept;

  Tree<S>* tree_;
  unsigned revision_ = 0;
  std::vector<Link> link_;  ///< d, I and (but for sliding joints) r are constant, payloads aside
  std::vector<Composite> composite_;
};

// --- Implementation ------------------------------------------------------------------------------

namespace denoc {

/// W = ω̇× + ω×ω×, the second derivative of a vector u fixed in the body: ü = W u.
template <class S>
[[nodiscard]] RD_INLINE Mat3<S> second_rate(const Vec3<S>& w, const Vec3<S>& w_dot) noexcept {
  const OmegaTensor<S> O = omega_tensor(w, w_dot);
  Mat3<S> W;
  W << O.xx, O.xy, O.xz,  //
      O.yx, O.yy, O.yz,   //
      O.zx, O.zy, O.zz;
  return W;
}

/// R T Rᵀ
template <class S>
[[nodiscard]] Mat3<S> to_parent(const Transform<S>& X, const Mat3<S>& T) noexcept {
  const Mat3<S> A = rotate<0>(X.ca, X.sa, rotate<2>(X.c, X.s, T));
  return X.branch ? rotate<2>(X.cg, X.sg, A) : A;
}

/// Adds −a× b× = (a·b) 1 − b aᵀ.
template <class S>
void subtract_double_cross(const Vec3<S>& a, const Vec3<S>& b, Mat3<S>& T) noexcept {
  T -= b * a.transpose();
  const S dot = a.dot(b);
  for (int k = 0; k < 3; ++k) T(k, k) += dot;
}

/// ω × A
template <class S>
[[nodiscard]] Mat3<S> cross_columns(const Vec3<S>& w, const Symmetric3<S>& A) noexcept {
  Mat3<S> T;
  T << w.cross(Vec3<S>(A.xx, A.xy, A.xz)), w.cross(Vec3<S>(A.xy, A.yy, A.yz)),
      w.cross(Vec3<S>(A.xz, A.yz, A.zz));
  return T;
}

}  // namespace denoc

// --- Inverse dynamics ----------------------------------------------------------------------------

/// A body without mass has its origin for a mass centre; what inertia it has is a pure couple's.
template <class S>
void Denoc<S>::update_mass_centres() noexcept {
  const Body<S>* body = tree_->bodies();
  for (int i = 0; i < tree_->nb(); ++i) {
    const RigidInertia<S>& own = body[i].inertia;
    Link& l = link_[static_cast<std::size_t>(i)];
    for (int k = 0; k < 3; ++k) l.d[k] = safe_ratio(own.h[k], own.m, S(0));
    l.I = shift(own, Vec3<S>(-l.d)).I;
    if (body[i].parent >= 0)
      l.r = body[i].X.position() - link_[static_cast<std::size_t>(body[i].parent)].d;
  }
  revision_ = tree_->revision();
}

/// Brings r to the configuration. It is a constant where the origin does not move in the parent.
template <class S>
RD_INLINE void Denoc<S>::update_offset(int i) noexcept {
  const Body<S>& b = tree_->bodies()[i];
  if (b.parent < 0 || !(slides(b.kind) || b.kind == JointKind::floating_first)) return;
  link_.data()[i].r = b.X.position() - link_.data()[b.parent].d;
}

/// t and ṫ of all bodies (§5.1, forward) and their own wrenches M ṫ + Ṁ t = [I ω̇ + ω × I ω; m v̇]
/// (Eq. 7), about the mass centres. No wrench depends on the linear velocity, so it is left out.
/// The rate of Eq. 12, ṫ_i = p_i q̈ + Ω_i p_i q̇ + B ṫ_λ + Ḃ t_λ, has for its linear part, terms
/// gathered by the two constant vectors: v̇_i = v̇_λ + W_λ r + W_i d.
template <class S>
template <bool with_acceleration>
void Denoc<S>::wrenches(VectorIn<S> v, VectorIn<S> a) noexcept {
  const Body<S>* body = tree_->bodies();
  Link* link = link_.data();
  for (int i = 0; i < tree_->nb(); ++i) {
    const Body<S>& b = body[i];
    Link& l = link[i];
    update_offset(i);
    Vec3<S> w = Vec3<S>::Zero();
    Vec3<S> w_dot = Vec3<S>::Zero();
    Vec3<S> v_dot = tree_->base_acceleration();  // Eq. 32
    if (b.parent >= 0) {
      const Link& p = link[b.parent];
      w = b.X.to_child(p.w);
      w_dot = b.X.to_child(p.w_dot);
      v_dot = p.v_dot + p.W * l.r;
    }
    v_dot = b.X.to_child(v_dot);
    add_joint_motion<with_acceleration, S>(b, v, a, w, w_dot, v_dot);
    const Mat3<S> W = denoc::second_rate<S>(w, w_dot);
    v_dot += W * l.d;
    l.F = {l.I * w_dot + w.cross(l.I * w), b.inertia.m * v_dot};
    l.w = w;
    l.w_dot = w_dot;
    l.v_dot = v_dot;
    l.W = W;
  }
}

template <class S>
RD_INLINE Force<S> Denoc<S>::wrench_at_origin(int i) const noexcept {
  const Link& l = link_.data()[i];
  Force<S> F = {l.F.n + l.d.cross(l.F.f), l.F.f};
  if (const Force<S>* external = tree_->external_forces(); external != nullptr) F -= external[i];
  return F;
}

/// γ_λ += Bᵀ γ_i and τ_i = p_iᵀ γ_i (§5.1, backward), and the rotors' share.
template <class S>
void Denoc<S>::collect_efforts(VectorIn<S> a, VectorOut<S>& tau) noexcept {
  const Body<S>* body = tree_->bodies();
  Link* link = link_.data();
  tau.setZero();
  for (int i = tree_->nb() - 1; i >= 0; --i) {
    const Body<S>& b = body[i];
    const Force<S> F = wrench_at_origin(i);
    add_effort<S>(b, S(along<S>(b, F) + b.rotor * rate<S>(b, a)), tau);
    if (b.parent < 0) continue;
    Force<S>& parent = link[b.parent].F;
    const Vec3<S> f = b.X.to_parent(F.f);
    parent.n += b.X.to_parent(F.n) + link[i].r.cross(f);
    parent.f += f;
  }
}

template <class S>
StatusOf<S> Denoc<S>::inverse_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> a,
                                       VectorOut<S> tau) noexcept {
  const StatusOf<S> status = check_and_move<S>(*tree_, q, v, a, tau);
  if (failed(status)) return status;
  refresh();
  wrenches<true>(v, a);
  collect_efforts(a, tau);
  return merged(status, result_status<S>(tau));
}

// --- Mass matrix ---------------------------------------------------------------------------------

/// Mass and inertia of each body alone, about its mass centre, and the vectors s = −c between the
/// mass centres.
template <class S>
void Denoc<S>::start_composites() noexcept {
  const Body<S>* body = tree_->bodies();
  for (int i = 0; i < tree_->nb(); ++i) {
    const Body<S>& b = body[i];
    const Link& l = link_.data()[i];
    Composite& c = composite_.data()[i];
    c.M = {b.inertia.m, Vec3<S>::Zero(), l.I};
    if (b.parent < 0) continue;
    update_offset(i);
    c.s = l.r + b.X.to_parent(l.d);
  }
}

/// Bᵀ M̃ B of the body, about the parent's mass centre in the parent's axes.
template <class S>
RigidInertia<S> Denoc<S>::composite_in_parent(int i) const noexcept {
  const Transform<S>& X = tree_->bodies()[i].X;
  const Composite& c = composite_.data()[i];
  const RigidInertia<S> turned = {c.M.m, X.to_parent(c.M.h), X.to_parent(c.M.I)};
  return shift(turned, c.s);
}

/// Bᵀ F: a wrench about the body's mass centre, about the parent's in the parent's axes.
template <class S>
RD_INLINE Force<S> Denoc<S>::to_parent(int i, const Force<S>& F) const noexcept {
  const Transform<S>& X = tree_->bodies()[i].X;
  const Vec3<S> f = X.to_parent(F.f);
  return {X.to_parent(F.n) + composite_.data()[i].s.cross(f), f};
}

template <class S>
StatusOf<S> Denoc<S>::mass_matrix(VectorIn<S> q, MatrixOut<S> M) noexcept {
  const StatusOf<S> status = check_and_move<S>(*tree_, q, M);
  if (failed(status)) return status;
  refresh();
  start_composites();
  const Body<S>* body = tree_->bodies();
  const Link* link = link_.data();
  Composite* composite = composite_.data();
  M.setZero();
  for (int i = tree_->nb() - 1; i >= 0; --i) {
    const Body<S>& b = body[i];
    Force<S> F = unit_force<S>(b, link[i].d, composite[i].M);
    add_symmetric<S>(b, b, S(along<S>(b, link[i].d, F) + b.rotor), M);
    for (int k = i, j = b.parent; j >= 0; k = j, j = body[j].parent) {  // Eq. 24
      F = to_parent(k, F);
      add_symmetric<S>(b, body[j], along<S>(body[j], link[j].d, F), M);
    }
    if (b.parent >= 0) composite[b.parent].M += composite_in_parent(i);  // Eq. 23b
  }
  return merged(status, diagonal_status<S>(M));
}

// --- Convective matrix ---------------------------------------------------------------------------

/// ω of each body, and the rate ṡ of the vectors between the mass centres.
template <class S>
void Denoc<S>::rates(VectorIn<S> v) noexcept {
  const Body<S>* body = tree_->bodies();
  const Link* link = link_.data();
  Composite* composite = composite_.data();
  for (int i = 0; i < tree_->nb(); ++i) {
    const Body<S>& b = body[i];
    Composite& c = composite[i];
    Motion<S> V = Motion<S>::zero();  // of the origin, less the velocity of the parent's C
    if (b.parent >= 0) {
      const Vec3<S>& w = composite[b.parent].w;
      V = {b.X.to_child(w), b.X.to_child(Vec3<S>(w.cross(link[i].r)))};
    }
    add_joint_velocity<S>(b, v, V);
    c.w = V.w;
    if (b.parent < 0) continue;
    c.s_dot = b.X.to_parent(Vec3<S>(V.v + V.w.cross(link[i].d)));
  }
}

/// Each body's own Ṁ: ω × I, and for Christoffel's symbols −½ tr(I) ω× more.
template <class S>
template <typename Denoc<S>::BodyTerm term>
void Denoc<S>::start_convective() noexcept {
  for (Composite& c : composite_) {
    Symmetric3<S> A = c.M.I;
    if constexpr (term == BodyTerm::christoffel) {
      const S half = S(0.5) * (A.xx + A.yy + A.zz);
      A.xx -= half;
      A.yy -= half;
      A.zz -= half;
    }
    c.T = denoc::cross_columns<S>(c.w, A);
    c.h_dot = Vec3<S>::Zero();
  }
}

/// Adds a body to its parent: M̃ (Eq. 23b), its first moment's rate, and T. The two matrices of
/// Eq. 28 that this text needs, K_i = Σ_k B_kiᵀ M_k Ḃ_ki (the sum of H̃ over the children) and M̄_i =
/// Σ_k Ṁ_k, have a right half of zeros; together they are [T 0; −ḣ× 0], with
/// T = Σ_k (Ṁ_k − m_k s_k× ṡ_k×) and s_k from C_i to C_k.
template <class S>
void Denoc<S>::add_to_parent(int i) noexcept {
  const Body<S>& b = tree_->bodies()[i];
  const Composite& c = composite_.data()[i];
  Composite& p = composite_.data()[b.parent];
  const Vec3<S> h = b.X.to_parent(c.M.h);
  const Vec3<S> h_dot = b.X.to_parent(c.h_dot) + c.M.m * c.s_dot;
  p.T += denoc::to_parent<S>(b.X, c.T);
  denoc::subtract_double_cross<S>(c.s, h_dot, p.T);
  denoc::subtract_double_cross<S>(h, c.s_dot, p.T);
  p.h_dot += h_dot;
  p.M += composite_in_parent(i);
}

/// All elements that join the body i with itself and with its ancestors j (Eq. 29):
///   above the diagonal  c_ji = p_jᵀ B_ijᵀ (M̃_i Ω_i + K_i + M̄_i) p_i
///   below               c_ij = p_iᵀ (M̃_i B_ij Ω_j + M̃_i Ḃ_ij + K_i + M̄_i) p_j
/// The first carries a wrench to the base. So does the second, read from the left: B_ijᵀ M̃_i p_i
/// meets ṗ_j, and what meets the angular part of p_j alone is [K_i + M̄_i]ᵀ p_i − f × ṡ, collected
/// on the way in the vector x.
template <class S>
void Denoc<S>::elements(int i, MatrixOut<S>& C) noexcept {
  const Body<S>* body = tree_->bodies();
  const Link* link = link_.data();
  const Composite* composite = composite_.data();
  const Composite& c = composite[i];
  const Body<S>& b = body[i];

  Force<S> right = c.M * axis_rate<S>(b, link[i].d, c.w);
  Force<S> left = unit_force<S>(b, link[i].d, c.M);
  Vec3<S> x = c.h_dot.cross(linear_axis<S>(b, link[i].d));
  if (turns(b.kind)) {
    right.n += c.T.col(2);
    right.f += lever<S>(c.h_dot);
    x += c.T.row(2).transpose();
  }
  add_element<S>(b, b, along<S>(b, link[i].d, right), C);
  for (int k = i, j = b.parent; j >= 0; k = j, j = body[j].parent) {
    const Body<S>& bj = body[j];
    right = to_parent(k, right);
    left = to_parent(k, left);
    x = body[k].X.to_parent(x) + composite[k].s_dot.cross(left.f);
    const Motion<S> p_dot = axis_rate<S>(bj, link[j].d, composite[j].w);
    S below = left.n.dot(p_dot.w) + left.f.dot(p_dot.v);
    if (turns(bj.kind)) below += x[2];
    add_element<S>(bj, b, along<S>(bj, link[j].d, right), C);
    add_element<S>(b, bj, below, C);
  }
}

template <class S>
template <typename Denoc<S>::BodyTerm term>
StatusOf<S> Denoc<S>::convective_matrix(VectorIn<S> q, VectorIn<S> v, MatrixOut<S>& C) noexcept {
  const StatusOf<S> status = check_and_move<S>(*tree_, q, v, C);
  if (failed(status)) return status;
  refresh();
  start_composites();
  rates(v);
  start_convective<term>();
  C.setZero();
  for (int i = tree_->nb() - 1; i >= 0; --i) {
    elements(i, C);
    if (tree_->bodies()[i].parent >= 0) add_to_parent(i);
  }
  return merged(status, result_status<S>(C));
}

}  // namespace dynamics_core
