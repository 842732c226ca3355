// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Square-root-free Cholesky: A = Lᵀ D L for a symmetric matrix, without pivoting and without
/// memory of its own, and the forward dynamics through it (Mata et al. 2002, Table 3, last rows).
/// A may be indefinite; only a vanishing pivot is refused. The elimination goes from the last
/// coordinate to the first, so that the zeros of a tree's mass matrix stay zeros (Featherstone's
/// LTDL); no sum runs over them, neither for the factors nor for M⁻¹.

#include <cmath>

#include "dynamics_core/blocks.hpp"
#include "dynamics_core/composite_body.hpp"
#include "dynamics_core/newton_euler.hpp"

namespace dynamics_core {

namespace cholesky {

/// A symmetric matrix by its upper triangle; column k holds row k of L.
template <class S>
struct View {
  S* data;
  Eigen::Index stride;
  int n;

  explicit View(MatrixOut<S>& A) noexcept
      : data(A.data()), stride(A.outerStride()), n(static_cast<int>(A.rows())) {}
  [[nodiscard]] S* column(int k) const noexcept { return data + k * stride; }
};

/// Takes coordinate k out of the matrix: A_ij −= L_ki A_kj, then stores L_k and 1/D_k.
template <class S>
void eliminate(const View<S>& A, int k) noexcept {
  S* __restrict ck = A.column(k);
  const S inv_D = S(1) / ck[k];
  ck[k] = inv_D;
  for (int i = k - 1; i >= 0; --i) {
    S* __restrict ci = A.column(i);
    const S l = ck[i] * inv_D;
    for (int j = i; j >= 0; --j) ci[j] -= l * ck[j];
    ck[i] = l;
  }
}

template <class S>
void solve(const View<S>& A, S* __restrict x) noexcept {
  for (int k = A.n - 1; k >= 0; --k) {
    const S* ck = A.column(k);
    const S xk = x[k];
    for (int i = k - 1; i >= 0; --i) x[i] -= ck[i] * xk;
  }
  for (int k = 0; k < A.n; ++k) {
    const S* ck = A.column(k);
    S xk = x[k] * ck[k];
    for (int i = k - 1; i >= 0; --i) xk -= ck[i] * x[i];
    x[k] = xk;
  }
}

/// The size of the terms that make up the diagonal element k, D_k + Σ L_ik² D_i, without signs.
template <class S>
[[nodiscard]] S diagonal_scale(const View<S>& A, int k) noexcept {
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
  const View<S> view(A);
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
  solve(View<S>(A), x.data());
  return Status::ok;
}

}  // namespace cholesky

/// A mass matrix and its factors M = Lᵀ D L in the order of the tree. Of each coordinate's row only
/// what its ancestors by Tree::dof_parents have a part in is kept, one after the other from the
/// root on, so that the row of an ancestor begins as its descendants' rows do.
template <class S>
class MassMatrixFactors {
 public:
  /// The tree has to outlive this.
  explicit MassMatrixFactors(const Tree<S>& tree);

  /// Where the mass matrix is to be put before factorize(). Its upper triangle suffices.
  [[nodiscard]] MatrixX<S>& matrix() noexcept { return M_; }
  [[nodiscard]] const MatrixX<S>& matrix() const noexcept { return M_; }
  /// Where row k is to be put before factorize_rows(): M(k, i) of the ancestors i, k itself the last.
  [[nodiscard]] S* row(int k) noexcept {
    return rows_.data() + start_[static_cast<std::size_t>(k)];
  }

  /// Takes a coordinate out: it will not accelerate, whatever the others do.
  void hold(int dof) noexcept {
    M_.row(dof).setZero();
    M_.col(dof).setZero();
    M_(dof, dof) = S(1) + tree_->dof_scales()[dof];
  }
  /// Pivots are judged as in the O(n) methods.
  [[nodiscard]] StatusOf<S> factorize() noexcept;
  [[nodiscard]] StatusOf<S> factorize_rows() noexcept;
  /// 1/D_k of the last factors; before it are L_ki of k's ancestors i, the parent's next to it.
  [[nodiscard]] const S* end_of_row(int k) const noexcept {
    return row(k) + depth_[static_cast<std::size_t>(k)];
  }
  /// x ← M⁻¹ x, nv entries, with the last factors.
  void solve(S* x) const noexcept;
  /// M⁻¹, both triangles, with the last factors.
  void inverse(MatrixOut<S> M_inv) noexcept;

 private:
  [[nodiscard]] const S* row(int k) const noexcept {
    return rows_.data() + start_[static_cast<std::size_t>(k)];
  }
  [[nodiscard]] S* inverse_column(int k) noexcept { return Z_.data() + k * Z_stride_; }
  void eliminate(int k) noexcept;
  template <int count>
  void invert_blocks(int k, int j) noexcept;
  void invert_row(int k) noexcept;

  const Tree<S>* tree_;
  const int* parent_;       ///< Tree::dof_parents
  std::vector<int> start_;  ///< by coordinate: where its row begins
  std::vector<int> depth_;  ///< how many ancestors it has
  MatrixX<S> M_;            ///< nv × nv
  BlockVector<S> rows_;     ///< L, and 1/D at each row's end; each row in whole blocks
  int Z_stride_;
  BlockVector<S> Z_;  ///< M⁻¹, its columns in whole blocks
};

template <class S>
MassMatrixFactors<S>::MassMatrixFactors(const Tree<S>& tree)
    : tree_(&tree), parent_(tree.dof_parents()), M_(MatrixX<S>::Zero(tree.nv(), tree.nv())) {
  const int n = tree.nv();
  int size = 0;
  for (int k = 0; k < n; ++k) {
    const auto i = static_cast<std::size_t>(k);
    depth_.push_back(parent_[k] < 0 ? 0 : depth_[static_cast<std::size_t>(parent_[k])] + 1);
    start_.push_back(size);
    size += blocks_for<S>(depth_[i] + 1) * block_width<S>;
  }
  rows_.assign(static_cast<std::size_t>(size), S(0));
  // An odd number of blocks a column: with a power of two, all elements of a row would lie in the
  // same few places of the cache.
  Z_stride_ = (blocks_for<S>(n) | 1) * block_width<S>;
  Z_.assign(static_cast<std::size_t>(Z_stride_) * static_cast<std::size_t>(n), S(0));
}

/// Takes coordinate k out of the matrix: A_ij −= L_ki A_kj, then stores L_k and 1/D_k.
template <class S>
RD_INLINE void MassMatrixFactors<S>::eliminate(int k) noexcept {
  S* rk = row(k);
  int depth = depth_[static_cast<std::size_t>(k)];
  const S inv_D = S(1) / rk[depth];
  rk[depth] = inv_D;
  for (int i = parent_[k]; i >= 0; i = parent_[i]) {
    const S l = rk[--depth] * inv_D;
    subtract_multiple<S>(l, rk, depth + 1, row(i));
    rk[depth] = l;
  }
}

template <class S>
StatusOf<S> MassMatrixFactors<S>::factorize_rows() noexcept {
  StatusOf<S> status = Status::ok;
  for (int k = tree_->nv() - 1; k >= 0; --k) {
    S& pivot = row(k)[depth_[static_cast<std::size_t>(k)]];
    if (!keep_pivot<S>(pivot, tree_->dof_scales()[k], status)) return status;
    eliminate(k);
  }
  return status;
}

template <class S>
StatusOf<S> MassMatrixFactors<S>::factorize() noexcept {
  for (int k = 0; k < tree_->nv(); ++k) {
    const S* column = M_.data() + k * M_.outerStride();
    int depth = depth_[static_cast<std::size_t>(k)];
    for (int i = k; i >= 0; i = parent_[i]) row(k)[depth--] = column[i];
  }
  return factorize_rows();
}

template <class S>
void MassMatrixFactors<S>::solve(S* x) const noexcept {
  const int n = tree_->nv();
  for (int k = n - 1; k >= 0; --k) {
    const S* l = end_of_row(k);
    for (int i = parent_[k]; i >= 0; i = parent_[i]) x[i] -= *--l * x[k];
  }
  for (int k = 0; k < n; ++k) {
    const S* l = end_of_row(k);
    S xk = x[k] * *l;
    for (int i = parent_[k]; i >= 0; i = parent_[i]) xk -= *--l * x[i];
    x[k] = xk;
  }
}

/// −Σ L_ki Z_i over k's ancestors i, in `count` blocks from row j on.
template <class S>
template <int count>
RD_INLINE void MassMatrixFactors<S>::invert_blocks(int k, int j) noexcept {
  Block<S> sum[count] = {};
  const S* l = end_of_row(k);
  for (int i = parent_[k]; i >= 0; i = parent_[i]) {
    --l;
    for (int c = 0; c < count; ++c) {
      Block<S> z;
      load_block<S>(inverse_column(i) + j + c * block_width<S>, z);
      sum[c] -= *l * z;
    }
  }
  for (int c = 0; c < count; ++c)
    store_block<S>(sum[c], inverse_column(k) + j + c * block_width<S>);
}

/// Z = M⁻¹ from L Z = D⁻¹ L⁻ᵀ, whose right side has nothing below the diagonal: the part of row k
/// before it is −Σ L_ki Z_i over k's ancestors i, and Z_kk = 1/D_k − Σ L_ki Z_ik. Of Z the upper
/// triangle is kept, and below the diagonal what later rows will read.
template <class S>
RD_INLINE void MassMatrixFactors<S>::invert_row(int k) noexcept {
  constexpr int four = 4 * block_width<S>;
  int j = 0;
  for (; j + four <= k; j += four) invert_blocks<4>(k, j);
  for (; j < k; j += block_width<S>) invert_blocks<1>(k, j);
  S* column = inverse_column(k);
  const S* l = end_of_row(k);
  S diagonal = *l;
  for (int i = parent_[k]; i >= 0; i = parent_[i]) diagonal -= *--l * column[i];
  column[k] = diagonal;
  if (k + 1 == tree_->nv()) return;
  for (int i = parent_[k + 1]; i >= 0; i = parent_[i]) inverse_column(i)[k] = column[i];
}

template <class S>
void MassMatrixFactors<S>::inverse(MatrixOut<S> M_inv) noexcept {
  const int n = tree_->nv();
  for (int k = 0; k < n; ++k) invert_row(k);
  for (int k = 0; k < n; ++k)
    std::copy_n(inverse_column(k), k + 1, M_inv.data() + k * M_inv.outerStride());
  mirror_upper<S>(M_inv);
}

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
  factors_.inverse(inverse);
  return merged(status, result_status<S>(inverse));
}

}  // namespace dynamics_core
