#pragma once

/// The convective matrix C(q, v), of which C v is the part of the bias that is due to velocity.
///
/// With the natural orthogonal complement N (t = N q̇) Saha 1999 has C = Nᵀ(M Ṅ + Ṁ N), where
/// M t' + Ṁ t is the body's wrench and so Ṁ_k = diag(ω×I, 0) at the mass centre. C v is not changed
/// by any matrix that maps ω to zero: adding −½ tr(I) ω× to ω×I gives −ω×(½ tr(I) 1 − I), which is
/// the body-level term ½(ω×I − Iω× − (Iω)×) of Echeandia & Wensing, "Numerical Methods to Compute
/// the Coriolis Matrix and Christoffel Symbols for Rigid-Body Systems" (J. Comput. Nonlinear Dyn.
/// 16, 2021), as for symmetric I: ω×I + Iω× = ((tr(I) 1 − I) ω)×.
///
/// As ω×I and its transpose −Iω× add up to the true rate of the inertia, and ω× is skew, both have
/// C + Cᵀ = NᵀMṄ + ṄᵀMN + Nᵀ(Ṁ + Ṁᵀ)N = dM/dt, so that dM/dt − 2C is skew for both. What the
/// second has beyond the first are Christoffel's symbols: C(q, v) u = C(q, u) v, element by element
/// C_ij = Σ_k ½ (∂M_ij/∂q_k + ∂M_ik/∂q_j − ∂M_jk/∂q_i) v_k. (Where a floating joint makes v a
/// quasi-velocity, that symmetry is lost; skewness is not.)

#include "dynamics_core/denoc.hpp"

namespace dynamics_core::denoc {

namespace detail {

/// Which of the matrices Ṁ that give the same wrench Ṁ t.
enum class BodyTerm { saha, christoffel };

/// ω × I, and for Christoffel's symbols −½ tr(I) ω× more.
template <BodyTerm term, class S>
[[nodiscard]] Mat3<S> body_term(const Vec3<S>& w, const Symmetric3<S>& I) noexcept {
  Symmetric3<S> A = I;
  if constexpr (term == BodyTerm::christoffel) {
    const S half = S(0.5) * (I.xx + I.yy + I.zz);
    A.xx -= half;
    A.yy -= half;
    A.zz -= half;
  }
  Mat3<S> T;
  T << w.cross(Vec3<S>(A.xx, A.xy, A.xz)), w.cross(Vec3<S>(A.xy, A.yy, A.yz)),
      w.cross(Vec3<S>(A.xz, A.yz, A.zz));
  return T;
}

/// ω of each body, and the rate ṡ of the vectors between the mass centres.
template <class S>
void rates(Workspace<S>& ws, VectorIn<S> v) noexcept {
  for (int i = 0; i < ws.nb(); ++i) {
    const Body<S>& b = ws.bodies.data()[i];
    auto& c = ws.denoc_composite.data()[i];
    Motion<S> V = Motion<S>::zero();  // of the origin, less the velocity of the parent's C
    if (b.parent >= 0) {
      const Vec3<S>& w = ws.denoc_composite.data()[b.parent].w;
      V = {b.X.to_child(w), b.X.to_child(Vec3<S>(w.cross(ws.denoc.data()[i].r)))};
    }
    add_joint_velocity<S>(b, v, V);
    c.w = V.w;
    if (b.parent < 0) continue;
    c.s_dot = b.X.to_parent(Vec3<S>(V.v + V.w.cross(ws.denoc.data()[i].d)));
  }
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

/// Adds a body to its parent: M̃ (Eq. 23b), its first moment's rate, and T. The two matrices of
/// Eq. 28 that this text needs, K_i = Σ_k B_kiᵀ M_k Ḃ_ki (the sum of H̃ over the children) and M̄_i =
/// Σ_k Ṁ_k, have a right half of zeros; together they are [T 0; −ḣ× 0], with
/// T = Σ_k (Ṁ_k − m_k s_k× ṡ_k×) and s_k from C_i to C_k.
template <class S>
void add_to_parent(Workspace<S>& ws, int i) noexcept {
  const Body<S>& b = ws.bodies.data()[i];
  const auto& c = ws.denoc_composite.data()[i];
  auto& p = ws.denoc_composite.data()[b.parent];
  const Vec3<S> h = b.X.to_parent(c.M.h);
  const Vec3<S> h_dot = b.X.to_parent(c.h_dot) + c.M.m * c.s_dot;
  p.T += to_parent<S>(b.X, c.T);
  subtract_double_cross<S>(c.s, h_dot, p.T);
  subtract_double_cross<S>(h, c.s_dot, p.T);
  p.h_dot += h_dot;
  p.M += to_parent<S>(ws, i);
}

/// ṗ = Ω p: both parts of p turn with the body.
template <class S>
[[nodiscard]] RD_INLINE Motion<S> axis_rate(const Body<S>& b, const Vec3<S>& d,
                                            const Vec3<S>& w) noexcept {
  const Vec3<S> e_dot(w[1], -w[0], S(0));
  if (!b.turns()) return {Vec3<S>::Zero(), e_dot};
  return {e_dot, w.cross(lever<S>(d))};
}

template <class S>
void add_element(const Body<S>& row, const Body<S>& column, const S& x, MatrixOut<S>& C) noexcept {
  if (row.shared || column.shared)
    C(row.dof, column.dof) += row.multiplier * column.multiplier * x;
  else
    C(row.dof, column.dof) = x;
}

/// All elements that join the body i with itself and with its ancestors j (Eq. 29):
///   above the diagonal  c_ji = p_jᵀ B_ijᵀ (M̃_i Ω_i + K_i + M̄_i) p_i
///   below               c_ij = p_iᵀ (M̃_i B_ij Ω_j + M̃_i Ḃ_ij + K_i + M̄_i) p_j
/// The first carries a wrench to the base. So does the second, read from the left: B_ijᵀ M̃_i p_i
/// meets ṗ_j, and what meets the angular part of p_j alone is [K_i + M̄_i]ᵀ p_i − f × ṡ, collected
/// on the way in the vector x.
template <class S>
void elements(Workspace<S>& ws, int i, MatrixOut<S>& C) noexcept {
  const Body<S>* body = ws.bodies.data();
  const auto* link = ws.denoc.data();
  const auto* composite = ws.denoc_composite.data();
  const auto& c = composite[i];
  const Body<S>& b = body[i];
  const bool turns = b.turns();

  Force<S> right = c.M * axis_rate<S>(b, link[i].d, c.w);
  Force<S> left = unit_wrench<S>(b, link[i].d, c.M);
  Vec3<S> x = c.h_dot.cross(turns ? lever<S>(link[i].d) : Vec3<S>(Vec3<S>::UnitZ()));
  if (turns) {
    right.n += c.T.col(2);
    right.f += Vec3<S>(-c.h_dot[1], c.h_dot[0], S(0));
    x += c.T.row(2).transpose();
  }
  add_element<S>(b, b, along_joint<S>(b, link[i].d, right), C);
  for (int k = i, j = b.parent; j >= 0; k = j, j = body[j].parent) {
    const Body<S>& bj = body[j];
    right = to_parent<S>(ws, k, right);
    left = to_parent<S>(ws, k, left);
    x = body[k].X.to_parent(x) + composite[k].s_dot.cross(left.f);
    const Motion<S> p_dot = axis_rate<S>(bj, link[j].d, composite[j].w);
    S below = left.n.dot(p_dot.w) + left.f.dot(p_dot.v);
    if (bj.turns()) below += x[2];
    add_element<S>(bj, b, along_joint<S>(bj, link[j].d, right), C);
    add_element<S>(b, bj, below, C);
  }
}

template <BodyTerm term, class S>
[[nodiscard]] Status convective_matrix(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v,
                                       MatrixOut<S>& C) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, v); s != Status::ok) return s;
  if (C.rows() != ws.nv() || C.cols() != ws.nv()) return Status::wrong_size;
  update_joints<S>(ws, q);
  start_composites<S>(ws);
  rates<S>(ws, v);
  for (auto& c : ws.denoc_composite) {
    c.T = body_term<term, S>(c.w, c.M.I);
    c.h_dot = Vec3<S>::Zero();
  }
  C.setZero();
  for (int i = ws.nb() - 1; i >= 0; --i) {
    elements<S>(ws, i, C);
    if (ws.bodies.data()[i].parent >= 0) add_to_parent<S>(ws, i);
  }
  return Status::ok;
}

}  // namespace detail

/// C(q, v) by the element recursion of Saha 1999, Eqs. 28 and 29. dM/dt − 2C is skew-symmetric.
template <class S>
[[nodiscard]] Status coriolis(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v,
                              MatrixOut<S> C) noexcept {
  return detail::convective_matrix<detail::BodyTerm::saha, S>(ws, q, v, C);
}

/// C(q, v) of Christoffel's symbols: dM/dt − 2C is skew-symmetric and C(q, v) u = C(q, u) v.
template <class S>
[[nodiscard]] Status coriolis_skew(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v,
                                   MatrixOut<S> C) noexcept {
  return detail::convective_matrix<detail::BodyTerm::christoffel, S>(ws, q, v, C);
}

}  // namespace dynamics_core::denoc
