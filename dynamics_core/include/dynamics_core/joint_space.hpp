// SPDX-License-Identifier: Apache-2.0
#pragma once

/// From the bodies to the coordinates: where several bodies share a coordinate (mimic joints) their
/// parts add up.

#include <algorithm>

#include "dynamics_core/tree.hpp"

namespace dynamics_core {

/// A body's part in an effort. Results must have been set to zero before.
template <class S>
RD_INLINE void add_effort(const Body<S>& b, const S& effort, VectorOut<S>& tau) noexcept {
  if (b.shared)
    tau[b.dof] += b.multiplier * effort;
  else
    tau[b.dof] = effort;
}

/// The same where it is known of the whole robot whether there are `shared` coordinates: if not, τ
/// need not have been set to zero.
template <class S>
RD_INLINE void add_effort(const Body<S>& b, const S& effort, VectorOut<S>& tau,
                          bool shared) noexcept {
  if (shared)
    add_effort<S>(b, effort, tau);
  else
    tau[b.dof] = effort;
}

/// The element that joins two bodies, in a symmetric matrix that has been set to zero before.
template <class S>
RD_INLINE void add_symmetric(const Body<S>& bi, const Body<S>& bj, const S& h,
                             MatrixOut<S>& M) noexcept {
  if (bi.shared || bj.shared) {
    const S x = bi.multiplier * bj.multiplier * h;
    M(bi.dof, bj.dof) += x;
    if (&bi != &bj) M(bj.dof, bi.dof) += x;
    return;
  }
  M(bi.dof, bj.dof) = h;
  M(bj.dof, bi.dof) = h;
}

/// The element (row, column) of a matrix that is not symmetric.
template <class S>
RD_INLINE void add_element(const Body<S>& row, const Body<S>& column, const S& x,
                           MatrixOut<S>& C) noexcept {
  if (row.shared || column.shared)
    C(row.dof, column.dof) += row.multiplier * column.multiplier * x;
  else
    C(row.dof, column.dof) = x;
}

/// Zero in every element: a matter of memory, for which compilers know better than a loop.
template <class S>
RD_INLINE void set_zero(MatrixOut<S>& A) noexcept {
  if (A.outerStride() == A.rows()) {
    std::fill_n(A.data(), A.size(), S(0));
    return;
  }
  for (Eigen::Index j = 0; j < A.cols(); ++j)
    std::fill_n(A.data() + j * A.outerStride(), A.rows(), S(0));
}

/// Copies one triangle of a matrix into the other, by strips of eight, so that neither the elements
/// read nor those written lie in more than eight columns at a time.
template <class S>
RD_INLINE void mirror_lower(MatrixOut<S>& M) noexcept {
  constexpr Eigen::Index strip = 8;
  const Eigen::Index n = M.rows();
  const Eigen::Index stride = M.outerStride();
  S* m = M.data();
  for (Eigen::Index first = 0; first < n; first += strip)
    for (Eigen::Index j = first + 1; j < n; ++j)
      for (Eigen::Index i = first; i < std::min(j, first + strip); ++i)
        m[i + j * stride] = m[j + i * stride];
}
template <class S>
RD_INLINE void mirror_upper(MatrixOut<S>& M) noexcept {
  constexpr Eigen::Index strip = 8;
  const Eigen::Index n = M.rows();
  const Eigen::Index stride = M.outerStride();
  S* m = M.data();
  for (Eigen::Index first = 0; first < n; first += strip)
    for (Eigen::Index j = first + 1; j < n; ++j)
      for (Eigen::Index i = first; i < std::min(j, first + strip); ++i)
        m[j + i * stride] = m[i + j * stride];
}

/// What a mass matrix (or its inverse) is worth. The diagonal tells: |M_ij| ≤ √(M_ii M_jj), and
/// every product that an element of a row is made of is part of a sum on the diagonal.
template <class S>
[[nodiscard]] RD_INLINE StatusOf<S> diagonal_status(const MatrixOut<S>& M) noexcept {
  const S zero(0);
  S sum(0);
  const S* m = M.data();
  const Eigen::Index step = M.outerStride() + 1;
  for (Eigen::Index i = 0; i < M.rows(); ++i, m += step) sum += *m * zero;
  return finite_status<S>(sum);
}

}  // namespace dynamics_core
