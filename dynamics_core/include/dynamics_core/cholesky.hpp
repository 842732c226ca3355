// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Square-root-free Cholesky: A = Lᵀ D L for a symmetric matrix, without pivoting and without
/// memory of its own, and the forward dynamics through it (Mata et al. 2002, Table 3, last rows).
/// A may be indefinite; only a vanishing pivot is refused. The elimination goes from the last
/// coordinate to the first, so that the zeros of a tree's mass matrix stay zeros (Featherstone's
/// LTDL); no sum runs over them.

#include <cmath>

#include "dynamics_core/composite_body.hpp"
#include "dynamics_core/newton_euler.hpp"

namespace dynamics_core {

namespace cholesky {

/// Which coordinates a coordinate is coupled to: its parent, the parent's parent, and so on.
struct Dense {
  int operator[](int i) const noexcept { return i - 1; }
};
struct ByTree {
  const int* parent;
  int operator[](int i) const noexcept { return parent[i]; }
};

/// A symmetric matrix by its upper triangle; column k holds row k of L.
template <class S, class Parents>
struct View {
  S* data;
  Eigen::Index stride;
  int n;
  Parents parent;

  View(MatrixOut<S>& A, Parents parents) noexcept
      : data(A.data()), stride(A.outerStride()), n(static_cast<int>(A.rows())), parent(parents) {}
  [[nodiscard]] S* column(int k) const noexcept { return data + k * stride; }
};

/// Takes coordinate k out of the matrix: A_ij −= L_ki A_kj, then stores L_k and 1/D_k.
template <class S, class Parents>
void eliminate(const View<S, Parents>& A, int k) noexcept {
  S* __restrict ck = A.column(k);
  const S inv_D = S(1) / ck[k];
  ck[k] = inv_D;
  for (int i = A.parent[k]; i >= 0; i = A.parent[i]) {
    S* __restrict ci = A.column(i);
    const S l = ck[i] * inv_D;
    for (int j = i; j >= 0; j = A.parent[j]) ci[j] -= l * ck[j];
    ck[i] = l;
  }
}

template <class S, class Parents>
void solve(const View<S, Parents>& A, S* __restrict x) noexcept {
  for (int k = A.n - 1; k >= 0; --k) {
    const S* ck = A.column(k);
    const S xk = x[k];
    for (int i = A.parent[k]; i >= 0; i = A.parent[i]) x[i] -= ck[i] * xk;
  }
  for (int k = 0; k < A.n; ++k) {
    const S* ck = A.column(k);
    S xk = x[k] * ck[k];
    for (int i = A.parent[k]; i >= 0; i = A.parent[i]) xk -= ck[i] * x[i];
    x[k] = xk;
  }
}

/// The size of the terms that make up the diagonal element k, D_k + Σ L_ik² D_i, without signs.
template <class S>
[[nodiscard]] S diagonal_scale(const View<S, Dense>& A, int k) noexcept {
  using std::abs;
  S scale = abs(A.column(k)[k]);
  for (int i = k + 1; i < A.n; ++i) {
    const S& l = A.column(i)[k];
    scale += l * l * abs(S(S(1) / A.column(i)[i]));
  }
  return scale;
}

/// Overwrites the upper triangle of the symmetric A: 1/D on the diagonal, the strict part of L
/// above it (transposed). `singular` where a pivot is lost in round-off.
template <class S>
[[nodiscard]] StatusOf<S> factorize(MatrixOut<S> A) noexcept {
  if (A.rows() != A.cols()) return Status::wrong_size;
  const View<S, Dense> view(A, {});
  StatusOf<S> status = Status::ok;
  for (int k = view.n - 1; k >= 0; --k) {
    if (!keep_pivot<S>(view.column(k)[k], diagonal_scale<S>(view, k), status)) return status;
    eliminate(view, k);
  }
  return status;
}

/// x ← A⁻¹ x with a factorized A.
template <class S>
[[nodiscard]] StatusOf<S> solve(MatrixOut<S> A, VectorOut<S> x) noexcept {
  if (A.rows() != A.cols() || x.size() != A.rows()) return Status::wrong_size;
  solve(View<S, Dense>(A, {}), x.data());
  return Status::ok;
}

}  // namespace cholesky

/// A mass matrix, factorized in place in the order of the tree.
template <class S>
class MassMatrixFactors {
 public:
  /// The tree has to outlive this.
  explicit MassMatrixFactors(const Tree<S>& tree)
      : tree_(&tree), M_(MatrixX<S>::Zero(tree.nv(), tree.nv())) {}

  /// Where the mass matrix is to be put before factorize(). Its upper triangle suffices.
  [[nodiscard]] MatrixX<S>& matrix() noexcept { return M_; }
  [[nodiscard]] const MatrixX<S>& matrix() const noexcept { return M_; }

  /// Takes a coordinate out: it will not accelerate, whatever the others do.
  void hold(int dof) noexcept {
    M_.row(dof).setZero();
    M_.col(dof).setZero();
    M_(dof, dof) = S(1) + tree_->dof_scales()[dof];
  }
  /// Pivots are judged as in the O(n) methods.
  [[nodiscard]] StatusOf<S> factorize() noexcept {
    const auto A = view();
    StatusOf<S> status = Status::ok;
    for (int k = A.n - 1; k >= 0; --k) {
      if (!keep_pivot<S>(A.column(k)[k], tree_->dof_scales()[k], status)) return status;
      cholesky::eliminate(A, k);
    }
    return status;
  }
  /// x ← M⁻¹ x, nv entries, with the last factors.
  void solve(S* x) noexcept { cholesky::solve(view(), x); }

 private:
  [[nodiscard]] cholesky::View<S, cholesky::ByTree> view() noexcept {
    MatrixOut<S> M(M_);
    return cholesky::View<S, cholesky::ByTree>(M, cholesky::ByTree{tree_->dof_parents()});
  }

  const Tree<S>* tree_;
  MatrixX<S> M_;  ///< nv × nv
};

template <class S>
class Cholesky {
 public:
  /// The tree has to outlive this.
  explicit Cholesky(Tree<S>& tree)
      : tree_(&tree),
        composite_body_(tree),
        newton_euler_(tree),
        factors_(tree),
        bias_(VectorX<S>::Zero(tree.nv())) {}

  /// a = M⁻¹(τ + Σ Jᵀ f_ext − C v − g), M by composite bodies.
  [[nodiscard]] StatusOf<S> forward_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                             VectorOut<S> a) noexcept;
  /// The same with some coordinates held at the rate they have: a is zero there.
  [[nodiscard]] StatusOf<S> forward_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                             const std::vector<int>& held, VectorOut<S> a) noexcept;
  /// M⁻¹(q), nv × nv, both triangles.
  [[nodiscard]] StatusOf<S> inverse_mass_matrix(VectorIn<S> q, MatrixOut<S> inverse) noexcept;

 private:
  Tree<S>* tree_;
  CompositeBody<S> composite_body_;
  NewtonEuler<S> newton_euler_;
  MassMatrixFactors<S> factors_;
  VectorX<S> bias_;  ///< nv
};

// --- Implementation ------------------------------------------------------------------------------

template <class S>
StatusOf<S> Cholesky<S>::forward_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                          VectorOut<S> a) noexcept {
  StatusOf<S> status = check_and_move<S>(*tree_, q, v, tau, a);
  if (failed(status)) return status;
  composite_body_.mass_matrix_here(factors_.matrix());
  newton_euler_.bias_with_external_forces(v, bias_);
  status = merged(status, factors_.factorize());
  if (failed(status)) return status;
  a = tau - bias_;
  factors_.solve(a.data());
  return merged(status, result_status<S>(a));
}

template <class S>
StatusOf<S> Cholesky<S>::forward_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                          const std::vector<int>& held, VectorOut<S> a) noexcept {
  StatusOf<S> status = check_and_move<S>(*tree_, q, v, tau, a);
  if (failed(status)) return status;
  for (const int dof : held)
    if (dof < 0 || dof >= tree_->nv()) return Status::out_of_range;
  composite_body_.mass_matrix_here(factors_.matrix());
  newton_euler_.bias_with_external_forces(v, bias_);
  a = tau - bias_;
  for (const int dof : held) {
    factors_.hold(dof);
    a[dof] = S(0);
  }
  status = merged(status, factors_.factorize());
  if (failed(status)) return status;
  factors_.solve(a.data());
  return merged(status, result_status<S>(a));
}

template <class S>
StatusOf<S> Cholesky<S>::inverse_mass_matrix(VectorIn<S> q, MatrixOut<S> inverse) noexcept {
  StatusOf<S> status = check_and_move<S>(*tree_, q, inverse);
  if (failed(status)) return status;
  composite_body_.mass_matrix_here(factors_.matrix());
  status = merged(status, factors_.factorize());
  if (failed(status)) return status;
  inverse.setIdentity();
  for (int k = 0; k < tree_->nv(); ++k) factors_.solve(inverse.data() + k * inverse.outerStride());
  return merged(status, result_status<S>(inverse));
}

}  // namespace dynamics_core
