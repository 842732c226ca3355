#pragma once

/// M(q) = U D Uᵀ without forming M, and what follows from the factors: solutions, forward dynamics
/// in O(n) and M⁻¹ in O(n²) (Saha 2001; Saha 1999, Appendix B).
///
/// The paper's relations hold for twists of any point of a link. It takes the mass centre; here it
/// is the origin on the joint's axis, which leaves p = [e; 0] for a hinge and [0; e] for a slide.
/// Then ψ̂ is a column of M̂, and after the elimination of a hinge a row and a column of M̂ are zero.
/// A rotor's inertia J adds to the pivot: m̂ = pᵀ M̂ p + J.
///
/// A branching tree has the same equations, with sums over children. U keeps the tree's sparsity:
/// u_ik is zero unless i is an ancestor of k.

#include "dynamics_core/denoc.hpp"

namespace dynamics_core::udut {

namespace detail {

/// M̂ p (Saha 2001, Eq. 26)
template <class S>
[[nodiscard]] RD_INLINE Force<S> column(const Body<S>& b, const ArticulatedInertia<S>& A) noexcept {
  if (b.turns()) return {{A.I.xz, A.I.yz, A.I.zz}, {A.H(2, 0), A.H(2, 1), A.H(2, 2)}};
  return {{A.H(0, 2), A.H(1, 2), A.H(2, 2)}, {A.M.xz, A.M.yz, A.M.zz}};
}

/// pᵀ F and the component of a motion along the joint.
template <class S>
[[nodiscard]] RD_INLINE const S& along(const Body<S>& b, const Force<S>& F) noexcept {
  return b.turns() ? F.n[2] : F.f[2];
}
template <class S>
[[nodiscard]] RD_INLINE S& along(const Body<S>& b, Motion<S>& V) noexcept {
  return b.turns() ? V.w[2] : V.v[2];
}

/// A − ψ̂ ψᵀ of a symmetric block.
template <class S>
[[nodiscard]] RD_INLINE Symmetric3<S> eliminate(const Symmetric3<S>& A, const Vec3<S>& hat,
                                                const Vec3<S>& psi) noexcept {
  return {A.xx - hat[0] * psi[0], A.xy - hat[0] * psi[1], A.xz - hat[0] * psi[2],
          A.yy - hat[1] * psi[1], A.yz - hat[1] * psi[2], A.zz - hat[2] * psi[2]};
}

/// M̂_kk = M̂_k − ψ̂ ψᵀ (Eq. 28), seen from the parent.
template <class S>
[[nodiscard]] ArticulatedInertia<S> eliminated(const Transform<S>& X,
                                               const ArticulatedInertia<S>& A, const Force<S>& hat,
                                               const Force<S>& psi) noexcept {
  const ArticulatedInertia<S> rest = {eliminate<S>(A.I, hat.n, psi.n),
                                      A.H - hat.n * psi.f.transpose(),
                                      eliminate<S>(A.M, hat.f, psi.f)};
  return to_parent(X, rest);
}

/// The same for a hinge without rotor: the third row of [I H] is zero after the elimination, and
/// stays so until the turn by α.
template <class S>
[[nodiscard]] ArticulatedInertia<S> eliminated_hinge(const Transform<S>& X,
                                                     const ArticulatedInertia<S>& A,
                                                     const Force<S>& hat,
                                                     const Force<S>& psi) noexcept {
  const S& u = hat.n[0];
  const S& w = hat.n[1];
  const S xx = A.I.xx - u * psi.n[0];
  const S xy = A.I.xy - u * psi.n[1];
  const S yy = A.I.yy - w * psi.n[1];
  const S hxx = A.H(0, 0) - u * psi.f[0];
  const S hxy = A.H(0, 1) - u * psi.f[1];
  const S hxz = A.H(0, 2) - u * psi.f[2];
  const S hyx = A.H(1, 0) - w * psi.f[0];
  const S hyy = A.H(1, 1) - w * psi.f[1];
  const S hyz = A.H(1, 2) - w * psi.f[2];

  // Turn by θ about z. A plane block needs but one t, see rotate_z.
  ArticulatedInertia<S> t;
  t.M = rotate_z(X.c, X.s, eliminate<S>(A.M, hat.f, psi.f));
  const S ti = X.s * (xx - yy) + X.c * (xy + xy);
  const S th = X.s * (hxx - hyy) + X.c * (hxy + hyx);
  const S sth = X.s * th;
  const S cth = X.c * th;
  const S Hxx = hxx - sth;
  const S Hyy = hyy + sth;
  const S Hxy = cth - hyx;
  const S Hyx = cth - hxy;
  const S Hxz = X.c * hxz - X.s * hyz;
  const S Hyz = X.s * hxz + X.c * hyz;

  // Shift by d along z: H' = H + r× M, I' = I + r× Hᵀ − H' r×.
  const S dxy = X.d * t.M.xy;
  const S Gxx = Hxx - dxy;
  const S Gxy = Hxy - X.d * t.M.yy;
  const S Gxz = Hxz - X.d * t.M.yz;
  const S Gyx = Hyx + X.d * t.M.xx;
  const S Gyy = Hyy + dxy;
  const S Gyz = Hyz + X.d * t.M.xz;
  const S sti = X.s * ti;
  const S Ixx = xx - sti - X.d * (Hxy + Gxy);
  const S Iyy = yy + sti + X.d * (Hyx + Gyx);
  const S Ixy = X.c * ti - xy + X.d * (Gxx - Hyy);

  // Turn by α about x, where the zeros end.
  t.M = rotate_x(X.ca, X.sa, t.M);
  const S si = X.sa * Iyy;
  t.I = {Ixx, X.ca * Ixy, X.sa * Ixy, Iyy - X.sa * si, X.ca * si, X.sa * si};
  const S tg = X.sa * Gyy + X.ca * Gyz;
  const S stg = X.sa * tg;
  const S ctg = X.ca * tg;
  t.H << Gxx, X.ca * Gxy - X.sa * Gxz, X.sa * Gxy + X.ca * Gxz,  //
      X.ca * Gyx, Gyy - stg, ctg,                                //
      X.sa * Gyx, ctg - Gyz, stg;
  shift_along<0>(X.a, t);
  if (!X.branch) return t;
  shift_along<1>(X.e, t);
  shift_along<2>(X.b, t);
  return {rotate_z(X.cg, X.sg, t.I), rotate<2>(X.cg, X.sg, t.H), rotate_z(X.cg, X.sg, t.M)};
}

/// The articulated inertias M̂, the pivots m̂ and the vectors ψ, tips to base (Eqs. 26–28), for the
/// configuration the joints are in.
template <class S>
[[nodiscard]] Status reduce(Workspace<S>& ws) noexcept {
  auto* link = ws.udut.data();
  ws.udut_status = Status::singular;
  for (int i = 0; i < ws.nb(); ++i) {
    const Body<S>& b = ws.bodies.data()[i];
    link[i].X = b.X;
    link[i].M = ArticulatedInertia<S>::from(b.inertia);
  }
  for (int i = ws.nb() - 1; i >= 0; --i) {
    const Body<S>& b = ws.bodies.data()[i];
    auto& l = link[i];
    const Force<S> hat = column<S>(b, l.M);
    l.m = along<S>(b, hat) + b.rotor;
    if (negligible(l.m, b.pivot_scale)) return Status::singular;
    l.inv_m = S(1) / l.m;
    if (b.parent < 0) continue;
    l.psi = {hat.n * l.inv_m, hat.f * l.inv_m};
    if (l.free_hinge) {
      l.psi.n[2] = S(1);
      link[b.parent].M += eliminated_hinge<S>(l.X, l.M, hat, l.psi);
    } else {
      link[b.parent].M += eliminated<S>(l.X, l.M, hat, l.psi);
    }
  }
  ws.udut_status = Status::ok;
  return Status::ok;
}

/// Steps A and B, tips to base (Eqs. 12, 13). η starts at zero, or at the bodies' own wrenches: the
/// bias travels to the base by the same Bᵀ, so that φ = τ − bias needs no sweep of its own.
template <class S>
void sweep_to_base(Workspace<S>& ws, VectorIn<S> b_in) noexcept {
  auto* link = ws.udut.data();
  for (int i = ws.nb() - 1; i >= 0; --i) {
    const Body<S>& b = ws.bodies.data()[i];
    auto& l = link[i];
    const S tau = b_in[b.dof] - along<S>(b, l.eta);
    l.tau = tau * l.inv_m;
    if (b.parent < 0) continue;
    const Force<S> eta = {l.eta.n + l.psi.n * tau, l.eta.f + l.psi.f * tau};
    link[b.parent].eta += l.X.to_parent(eta);
  }
}

/// Step C, base to tips (Eqs. 14, 15), over the first n bodies.
template <class S, class Out>
void sweep_to_tips(Workspace<S>& ws, int n, Out&& x) noexcept {
  auto* link = ws.udut.data();
  for (int i = 0; i < n; ++i) {
    const Body<S>& b = ws.bodies.data()[i];
    auto& l = link[i];
    if (b.parent < 0) {
      l.mu = Motion<S>::zero();
      along<S>(b, l.mu) = l.tau;
      x[b.dof] = l.tau;
      continue;
    }
    l.mu = l.X.to_child(link[b.parent].mu);
    const S acceleration = l.tau - l.psi.n.dot(l.mu.w) - l.psi.f.dot(l.mu.v);
    along<S>(b, l.mu) += acceleration;
    x[b.dof] = acceleration;
  }
}

/// U⁻¹ of the unit vector of body k, divided by D, into the bodies' τ̃.
template <class S>
void start_column(Workspace<S>& ws, int k) noexcept {
  auto* link = ws.udut.data();
  for (int i = 0; i < k; ++i) link[i].tau = S(0);
  link[k].tau = link[k].inv_m;
  Force<S> eta = link[k].psi;
  for (int i = k, j = ws.bodies.data()[k].parent; j >= 0; i = j, j = ws.bodies.data()[j].parent) {
    const Body<S>& b = ws.bodies.data()[j];
    eta = link[i].X.to_parent(eta);
    const S tau = -along<S>(b, eta);
    link[j].tau = tau * link[j].inv_m;
    if (b.parent < 0) continue;
    eta.n += link[j].psi.n * tau;
    eta.f += link[j].psi.f * tau;
  }
}

}  // namespace detail

/// Factors M(q). They stay valid, whatever else the workspace is used for, until the next call of a
/// function of this family that takes q.
template <class S>
[[nodiscard]] Status factorize(Workspace<S>& ws, VectorIn<S> q) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  if (ws.has_mimic()) return Status::unsupported_joint;
  update_joints<S>(ws, q);
  return detail::reduce<S>(ws);
}

/// The last factors as matrices: U, nv × nv with a unit diagonal, and the diagonal of D
/// (Saha 1999, Eqs. 46 and 54).
template <class S>
[[nodiscard]] Status factors(const Workspace<S>& ws, MatrixOut<S> U, VectorOut<S> D) noexcept {
  if (U.rows() != ws.nv() || U.cols() != ws.nv() || D.size() != ws.nv()) return Status::wrong_size;
  if (ws.udut_status != Status::ok) return ws.udut_status;
  const Body<S>* body = ws.bodies.data();
  const auto* link = ws.udut.data();
  U.setZero();
  for (int k = 0; k < ws.nb(); ++k) {
    U(body[k].dof, body[k].dof) = S(1);
    D[body[k].dof] = link[k].m;
    if (body[k].parent < 0) continue;
    Force<S> psi = link[k].psi;
    for (int i = k, j = body[k].parent; j >= 0; i = j, j = body[j].parent) {
      psi = link[i].X.to_parent(psi);
      U(body[j].dof, body[k].dof) = detail::along<S>(body[j], psi);
    }
  }
  return Status::ok;
}

/// x = M⁻¹ b in O(n) with the last factors; x may be b itself. Status::singular before the first
/// factorisation and after one that failed.
template <class S>
[[nodiscard]] Status solve(Workspace<S>& ws, VectorIn<S> b, VectorOut<S> x) noexcept {
  if (const Status s = check_v<S>(ws, b); s != Status::ok) return s;
  if (x.size() != ws.nv()) return Status::wrong_size;
  if (ws.udut_status != Status::ok) return ws.udut_status;
  for (auto& l : ws.udut) l.eta = Force<S>::zero();
  detail::sweep_to_base<S>(ws, b);
  detail::sweep_to_tips<S>(ws, ws.nb(), x);
  return Status::ok;
}

/// a = M⁻¹(τ + Σ Jᵀ f_ext − C v − g), O(n) (Saha 2001, §3; the bias by Saha 1999, §5.1).
template <class S>
[[nodiscard]] Status forward_dynamics(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v,
                                      VectorIn<S> tau, VectorOut<S> a) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, v); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, tau); s != Status::ok) return s;
  if (a.size() != ws.nv()) return Status::wrong_size;
  if (ws.has_mimic()) return Status::unsupported_joint;
  update_joints<S>(ws, q);
  if (const Status s = detail::reduce<S>(ws); s != Status::ok) return s;
  denoc::detail::wrenches<false, S>(ws, v, v);
  for (int i = 0; i < ws.nb(); ++i) ws.udut.data()[i].eta = denoc::detail::at_origin<S>(ws, i);
  detail::sweep_to_base<S>(ws, tau);
  detail::sweep_to_tips<S>(ws, ws.nb(), a);
  return Status::ok;
}

/// M⁻¹(q), nv × nv, both triangles, O(n²): column k is U⁻ᵀ D⁻¹ U⁻¹ e_k, where U⁻¹ e_k lives on the
/// way from body k to the base, down to the diagonal.
template <class S>
[[nodiscard]] Status inverse_mass_matrix(Workspace<S>& ws, VectorIn<S> q,
                                         MatrixOut<S> M_inv) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  if (M_inv.rows() != ws.nv() || M_inv.cols() != ws.nv()) return Status::wrong_size;
  if (ws.has_mimic()) return Status::unsupported_joint;
  update_joints<S>(ws, q);
  if (const Status s = detail::reduce<S>(ws); s != Status::ok) return s;
  for (int k = 0; k < ws.nb(); ++k) {
    detail::start_column<S>(ws, k);
    const int dof = ws.bodies.data()[k].dof;
    detail::sweep_to_tips<S>(ws, k + 1, M_inv.col(dof));
    for (int i = 0; i < k; ++i) {
      const int row = ws.bodies.data()[i].dof;
      M_inv(dof, row) = M_inv(row, dof);
    }
  }
  return Status::ok;
}

}  // namespace dynamics_core::udut
