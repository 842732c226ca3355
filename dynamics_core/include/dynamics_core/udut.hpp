// SPDX-License-Identifier: Apache-2.0
#pragma once

/// M(q) = U D Uᵀ without forming M, and what follows from the factors: solutions, forward dynamics
/// in O(n) and M⁻¹ in O(n²) (Saha 2001; Saha 1999, Appendix B).
///
/// The paper's relations hold for twists of any point of a link. It takes the mass centre; here it
/// is the origin on the joint's axis, which leaves p = h of joints.hpp. For a revolute joint ψ̂ is
/// then a column of M̂, and after its elimination a row and a column of M̂ are zero.
/// A rotor's inertia J adds to the pivot: m̂ = pᵀ M̂ p + J.
///
/// A branching tree has the same equations, with sums over children. U keeps the tree's sparsity:
/// u_ik is zero unless i is an ancestor of k.

#include <algorithm>
#include <vector>

#include "dynamics_core/denoc.hpp"
#include "dynamics_core/elimination.hpp"

namespace dynamics_core {

template <class S>
class Udut {
 public:
  /// The tree has to outlive this.
  explicit Udut(Tree<S>& tree)
      : tree_(&tree),
        denoc_(tree),
        link_(static_cast<std::size_t>(tree.nb())),
        response_(static_cast<std::size_t>(tree.nb())),
        row_length_((blocks_for<S>(tree.nb()) + 1) * block_width<S>),
        eta_(static_cast<std::size_t>(6 * row_length_), S(0)),
        row_(static_cast<std::size_t>(row_length_), S(0)) {
    for (int i = tree.nb() - 1; i >= 0; --i) {
      Response& r = response_[static_cast<std::size_t>(i)];
      r.end = std::max(r.end, i + 1);
      const int parent = tree.bodies()[i].parent;
      if (parent < 0) continue;
      Response& p = response_[static_cast<std::size_t>(parent)];
      p.end = std::max(p.end, r.end);
    }
  }

  // All functions that take q give Status::unsupported_joint where there are mimic joints.

  /// Factors M(q). They stay valid, whatever else the tree is used for, until the next call of a
  /// function of this family that takes q.
  [[nodiscard]] StatusOf<S> factorize(VectorIn<S> q) noexcept;
  /// The last factors as matrices: U, nv × nv with a unit diagonal, and the diagonal of D
  /// (Saha 1999, Eqs. 46 and 54).
  [[nodiscard]] StatusOf<S> factors(MatrixOut<S> U, VectorOut<S> D) const noexcept;
  /// x = M⁻¹ b in O(n) with the last factors; x may be b itself. After a factorisation that failed
  /// its status, before the first Status::singular.
  [[nodiscard]] StatusOf<S> solve(VectorIn<S> b, VectorOut<S> x) noexcept;
  /// a = M⁻¹(τ + Σ Jᵀ f_ext − C v − g), O(n) (Saha 2001, §3; the bias by Saha 1999, §5.1).
  [[nodiscard]] StatusOf<S> forward_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                             VectorOut<S> a) noexcept;
  /// M⁻¹(q), nv × nv, both triangles, O(n²) and little for each element: see Response.
  [[nodiscard]] StatusOf<S> inverse_mass_matrix(VectorIn<S> q, MatrixOut<S> M_inv) noexcept;

 private:
  struct Link {
    Transform<S> X;
    ArticulatedInertia<S> M;  ///< M̂
    Force<S> psi;
    S m, inv_m;  ///< m̂ and its inverse
    S tau;       ///< τ̃
    Force<S> eta;
    Motion<S> mu;
  };

  [[nodiscard]] StatusOf<S> reduce() noexcept;
  void sweep_to_base(VectorIn<S> b_in) noexcept;
  void sweep_to_tips(VectorOut<S>& x) noexcept;
  void find_responses() noexcept;
  void collect_responses(MatrixOut<S>& M_inv) noexcept;

  /// What M⁻¹ needs of a body, all in one frame for a tree, that of its first body, so that nothing
  /// has to be turned on the way from body to body. A unit effort at joint k reaches the body i above
  /// it as a force η_ik (Eq. 13), and the body answers with the acceleration −Ω_i η_ik. So
  ///
  ///     M⁻¹_ik = −ρ_iᵀ η_ik           for k below i,
  ///     M⁻¹_jk = η_ijᵀ Ω_i η_ik       for j and k below different children of i,
  ///
  /// where from Eqs. 12 to 15 Ω_i = (1 − h ψᵀ) Ω_λ (1 − ψ hᵀ) + h hᵀ/m̂, and with y = Ω_λ ψ
  /// M⁻¹_ii = 1/m̂ + ψᵀ y and ρ_i = M⁻¹_ii h − y.
  struct Response {
    Pose<S> X_RB;  ///< in the frame R of the first body on the way to it
    S h[6], psi[6], rho[6];
    S diagonal;  ///< M⁻¹_ii
    S Omega[6][6];
    int end;  ///< one after the last body below
  };
  RD_INLINE void join_cousins(int i, int j, int first, S* column) noexcept;
  template <class B>
  RD_INLINE void join_below(const Response& r, int k) noexcept;

  Tree<S>* tree_;
  Denoc<S> denoc_;
  std::vector<Link> link_;                 ///< X, psi and inv_m belong to the last factors
  std::vector<Response> response_;         ///< for M⁻¹
  int row_length_;                         ///< nb in whole blocks and one more
  BlockVector<S> eta_;                     ///< six rows: η by the body k whose effort it is due to
  BlockVector<S> row_;                     ///< of M⁻¹, from the diagonal on
  StatusOf<S> status_ = Status::singular;  ///< of the last factorisation
};

// --- Implementation ------------------------------------------------------------------------------

namespace udut {

/// A spatial vector as six numbers.
template <class S>
RD_INLINE void put(const Motion<S>& from, S* to) noexcept {
  for (int k = 0; k < 3; ++k) {
    to[k] = from.w[k];
    to[3 + k] = from.v[k];
  }
}
template <class S>
RD_INLINE void put(const Force<S>& from, S* to) noexcept {
  for (int k = 0; k < 3; ++k) {
    to[k] = from.n[k];
    to[3 + k] = from.f[k];
  }
}

template <class S>
[[nodiscard]] RD_INLINE S dot(const S* x, const S* y) noexcept {
  return x[0] * y[0] + x[1] * y[1] + x[2] * y[2] + x[3] * y[3] + x[4] * y[4] + x[5] * y[5];
}
/// The same with several y at once, an S or a block of them in each of six rows.
template <class S, class B>
RD_INLINE void dot(const S* x, const S* y, int row_length, B& sum) noexcept {
  B part;
  load_block<S>(y, part);
  sum = x[0] * part;
  for (int k = 1; k < 6; ++k) {
    load_block<S>(y + k * row_length, part);
    sum += x[k] * part;
  }
}

}  // namespace udut

/// The articulated inertias M̂, the pivots m̂ and the vectors ψ, tips to base (Eqs. 26–28), for the
/// configuration the joints are in. `status_` comes in as that of the configuration.
template <class S>
StatusOf<S> Udut<S>::reduce() noexcept {
  Link* link = link_.data();
  const Body<S>* body = tree_->bodies();
  const int n = tree_->nb();
  for (int i = 0; i < n; ++i) {
    const Body<S>& b = body[i];
    link[i].X = b.X;
    link[i].M = b.inertia;
  }
  for (int i = n - 1; i >= 0; --i) {
    const Body<S>& b = body[i];
    Link& l = link[i];
    const Force<S> hat = unit_force<S>(b, l.M);
    l.m = along<S>(b, hat) + b.rotor;
    if (!keep_pivot<S>(l.m, b.pivot_scale, status_)) return status_;
    l.inv_m = S(1) / l.m;
    if (b.parent < 0) continue;
    l.psi = {hat.n * l.inv_m, hat.f * l.inv_m};
    if (leaves_zeros<S>(b)) l.psi.n[2] = S(1);
    link[b.parent].M += eliminated<S>(b, l.X, l.M, hat, l.psi);
  }
  return status_;
}

/// Steps A and B, tips to base (Eqs. 12, 13). η starts at zero, or at the bodies' own wrenches: the
/// bias travels to the base by the same Bᵀ, so that φ = τ − bias needs no sweep of its own.
template <class S>
void Udut<S>::sweep_to_base(VectorIn<S> b_in) noexcept {
  Link* link = link_.data();
  const Body<S>* body = tree_->bodies();
  for (int i = tree_->nb() - 1; i >= 0; --i) {
    const Body<S>& b = body[i];
    Link& l = link[i];
    const S tau = b_in[b.dof] - along<S>(b, l.eta);
    l.tau = tau * l.inv_m;
    if (b.parent < 0) continue;
    const Force<S> eta = {l.eta.n + l.psi.n * tau, l.eta.f + l.psi.f * tau};
    link[b.parent].eta += l.X.to_parent(eta);
  }
}

/// Step C, base to tips (Eqs. 14, 15).
template <class S>
void Udut<S>::sweep_to_tips(VectorOut<S>& x) noexcept {
  Link* link = link_.data();
  const Body<S>* body = tree_->bodies();
  for (int i = 0; i < tree_->nb(); ++i) {
    const Body<S>& b = body[i];
    Link& l = link[i];
    if (b.parent < 0) {
      l.mu = Motion<S>::zero();
      add_along<S>(b, l.tau, l.mu);
      x[b.dof] = l.tau;
      continue;
    }
    l.mu = l.X.to_child(link[b.parent].mu);
    const S acceleration = l.tau - l.psi.n.dot(l.mu.w) - l.psi.f.dot(l.mu.v);
    add_along<S>(b, acceleration, l.mu);
    x[b.dof] = acceleration;
  }
}

/// The responses of all bodies, base to tips.
template <class S>
void Udut<S>::find_responses() noexcept {
  const Body<S>* body = tree_->bodies();
  Response* response = response_.data();
  for (int i = 0; i < tree_->nb(); ++i) {
    const Link& l = link_.data()[i];
    const int parent = body[i].parent;
    Response& r = response[i];
    r.X_RB = parent < 0 ? Pose<S>::identity() : across<S>(response[parent].X_RB, l.X);
    const Vec3<S>& p = r.X_RB.p;
    udut::put<S>(axis_motion<S>(body[i], Vec3<S>(r.X_RB.R.col(2)), Vec3<S>(-p)), r.h);
    S y[6] = {S(0), S(0), S(0), S(0), S(0), S(0)};
    r.diagonal = l.inv_m;
    if (parent >= 0) {
      const Vec3<S> f = r.X_RB.R * l.psi.f;
      udut::put<S>(Force<S>{r.X_RB.R * l.psi.n + p.cross(f), f}, r.psi);
      for (int m = 0; m < 6; ++m) y[m] = udut::dot<S>(response[parent].Omega[m], r.psi);
      r.diagonal += udut::dot<S>(r.psi, y);
    }
    for (int m = 0; m < 6; ++m) r.rho[m] = r.diagonal * r.h[m] - y[m];
    for (int m = 0; m < 6; ++m)
      for (int n = m; n < 6; ++n) {
        const S own = r.rho[m] * r.h[n] - r.h[m] * y[n];
        r.Omega[m][n] = parent < 0 ? own : S(response[parent].Omega[m][n] + own);
        r.Omega[n][m] = r.Omega[m][n];
      }
  }
}

/// Column j of M⁻¹ in the rows of what is below the children of body i after the one above j.
template <class S>
RD_INLINE void Udut<S>::join_cousins(int i, int j, int first, S* column) noexcept {
  const Response& r = response_.data()[i];
  const S* eta = eta_.data();
  S a[6];
  for (int m = 0; m < 6; ++m) {
    a[m] = S(0);
    for (int n = 0; n < 6; ++n) a[m] += r.Omega[m][n] * eta[n * row_length_ + j];
  }
  S* row = row_.data();
  for (int k = first; k < r.end; k += block_width<S>) {
    Block<S> sum;
    udut::dot<S>(a, eta + k, row_length_, sum);
    store_block<S>(sum, row + k);
  }
  std::copy(row + first, row + r.end, column + first);
}

/// Column i of M⁻¹ in the rows of `width` bodies below i from k on; and their η, up to the parent.
template <class S>
template <class B>
RD_INLINE void Udut<S>::join_below(const Response& r, int k) noexcept {
  S* eta = eta_.data() + k;
  B x, tau;
  udut::dot<S>(r.rho, eta, row_length_, x);
  udut::dot<S>(r.h, eta, row_length_, tau);
  store_block<S>(B(-x), row_.data() + k);
  for (int m = 0; m < 6; ++m) {
    B e;
    load_block<S>(eta + m * row_length_, e);
    e -= r.psi[m] * tau;
    store_block<S>(e, eta + m * row_length_);
  }
}

/// The lower triangle of M⁻¹, tips to base.
template <class S>
void Udut<S>::collect_responses(MatrixOut<S>& M_inv) noexcept {
  const Body<S>* body = tree_->bodies();
  const Response* response = response_.data();
  const int n = tree_->nb();
  for (int i = n - 1; i >= 0; --i) {
    const Response& r = response[i];
    for (int child = i + 1; child < r.end; child = response[child].end)
      if (response[child].end < r.end)
        for (int j = child; j < response[child].end; ++j)
          join_cousins(i, j, response[child].end, M_inv.data() + j * M_inv.outerStride());
    S* row = row_.data();
    row[i] = r.diagonal;
    int k = i + 1;
    // Behind the last body there is room for a whole block; before it there are others' forces.
    for (; k + block_width<S> <= r.end || (k < r.end && r.end == n); k += block_width<S>)
      join_below<Block<S>>(r, k);
    for (; k < r.end; ++k) join_below<S>(r, k);
    std::copy(row + i, row + r.end, M_inv.data() + i * M_inv.outerStride() + i);
    if (body[i].parent < 0) continue;
    for (int m = 0; m < 6; ++m) eta_.data()[m * row_length_ + i] = r.psi[m];
  }
}

template <class S>
StatusOf<S> Udut<S>::factorize(VectorIn<S> q) noexcept {
  status_ = check_and_move<S>(*tree_, q);
  if (failed(status_)) return status_;
  if (tree_->has_mimic()) return status_ = merged(status_, Status::unsupported_joint);
  return reduce();
}

template <class S>
StatusOf<S> Udut<S>::factors(MatrixOut<S> U, VectorOut<S> D) const noexcept {
  const int nv = tree_->nv();
  if (U.rows() != nv || U.cols() != nv || D.size() != nv) return Status::wrong_size;
  if (failed(status_)) return status_;
  const Body<S>* body = tree_->bodies();
  const Link* link = link_.data();
  U.setZero();
  for (int k = 0; k < tree_->nb(); ++k) {
    U(body[k].dof, body[k].dof) = S(1);
    D[body[k].dof] = link[k].m;
    if (body[k].parent < 0) continue;
    Force<S> psi = link[k].psi;
    for (int i = k, j = body[k].parent; j >= 0; i = j, j = body[j].parent) {
      psi = link[i].X.to_parent(psi);
      U(body[j].dof, body[k].dof) = along<S>(body[j], psi);
    }
  }
  return merged(status_, merged(result_status<S>(U), result_status<S>(D)));
}

template <class S>
StatusOf<S> Udut<S>::solve(VectorIn<S> b, VectorOut<S> x) noexcept {
  if (b.size() != tree_->nv() || x.size() != tree_->nv()) return Status::wrong_size;
  const StatusOf<S> status = merged(result_status<S>(b), status_);
  if (failed(status)) return status;
  for (Link& l : link_) l.eta = Force<S>::zero();
  sweep_to_base(b);
  sweep_to_tips(x);
  return merged(status, result_status<S>(x));
}

template <class S>
StatusOf<S> Udut<S>::forward_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                      VectorOut<S> a) noexcept {
  status_ = check_and_move<S>(*tree_, q, v, tau, a);
  if (failed(status_)) return status_;
  if (tree_->has_mimic()) return status_ = merged(status_, Status::unsupported_joint);
  const StatusOf<S> status = reduce();
  if (failed(status)) return status;
  denoc_.bias_wrenches(v);
  for (int i = 0; i < tree_->nb(); ++i) link_.data()[i].eta = denoc_.wrench_at_origin(i);
  sweep_to_base(tau);
  sweep_to_tips(a);
  return merged(status, result_status<S>(a));
}

template <class S>
StatusOf<S> Udut<S>::inverse_mass_matrix(VectorIn<S> q, MatrixOut<S> M_inv) noexcept {
  status_ = check_and_move<S>(*tree_, q, M_inv);
  if (failed(status_)) return status_;
  if (tree_->has_mimic()) return status_ = merged(status_, Status::unsupported_joint);
  const StatusOf<S> status = reduce();
  if (failed(status)) return status;
  find_responses();
  const int n = tree_->nb();
  if (n > 0 && response_.front().end < n) set_zero<S>(M_inv);  // trees apart from each other
  collect_responses(M_inv);
  mirror_lower<S>(M_inv);
  return merged(status, result_status<S>(M_inv));
}

}  // namespace dynamics_core
