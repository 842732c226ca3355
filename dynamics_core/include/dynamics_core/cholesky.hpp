#pragma once

/// Square-root-free Cholesky: A = Lᵀ D L for a symmetric matrix, without pivoting and without
/// memory of its own, and the forward dynamics through it (Mata et al. 2002, Table 3, last rows).
/// A may be indefinite; only a vanishing pivot is refused. The elimination goes from the last
/// coordinate to the first, so that the zeros of a tree's mass matrix stay zeros (Featherstone's
/// LTDL); no sum runs over them.

#include <cmath>

#include "dynamics_core/composite_body.hpp"
#include "dynamics_core/joints.hpp"
#include "dynamics_core/newton_euler.hpp"

namespace dynamics_core::cholesky {

namespace detail {

/// Which coordinates a coordinate is coupled to: its parent, the parent's parent, and so on.
struct Dense {
  int operator[](int i) const noexcept { return i - 1; }
};
struct Tree {
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
    scale += l * l * abs(S(1) / A.column(i)[i]);
  }
  return scale;
}

/// The mass matrix in ws.M.
template <class S>
[[nodiscard]] View<S, Tree> mass_matrix_view(Workspace<S>& ws) noexcept {
  MatrixOut<S> M(ws.M);
  return View<S, Tree>(M, Tree{ws.dof_parent.data()});
}

}  // namespace detail

/// Overwrites the upper triangle of the symmetric A: 1/D on the diagonal, the strict part of L
/// above it (transposed). `singular` where a pivot is lost in round-off.
template <class S>
[[nodiscard]] Status factorize(Eigen::Ref<MatrixX<S>> A) noexcept {
  if (A.rows() != A.cols()) return Status::wrong_size;
  const detail::View<S, detail::Dense> view(A, {});
  for (int k = view.n - 1; k >= 0; --k) {
    if (negligible(view.column(k)[k], detail::diagonal_scale<S>(view, k))) return Status::singular;
    detail::eliminate(view, k);
  }
  return Status::ok;
}

/// x ← A⁻¹ x with a factorized A.
template <class S>
[[nodiscard]] Status solve(Eigen::Ref<MatrixX<S>> A, Eigen::Ref<VectorX<S>> x) noexcept {
  if (A.rows() != A.cols() || x.size() != A.rows()) return Status::wrong_size;
  detail::solve(detail::View<S, detail::Dense>(A, {}), x.data());
  return Status::ok;
}

/// Factorizes the mass matrix in ws.M in place, in the order of the tree. Pivots are judged as in
/// the O(n) methods.
template <class S>
[[nodiscard]] Status factorize_mass_matrix(Workspace<S>& ws) noexcept {
  const auto view = detail::mass_matrix_view<S>(ws);
  for (int k = view.n - 1; k >= 0; --k) {
    if (negligible(view.column(k)[k], ws.dof_scale[k])) return Status::singular;
    detail::eliminate(view, k);
  }
  return Status::ok;
}

/// x ← M⁻¹ x for the mass matrix in ws.M, which is factorized in place.
template <class S>
[[nodiscard]] Status solve_mass_matrix(Workspace<S>& ws, VectorOut<S> x) noexcept {
  if (const Status s = factorize_mass_matrix<S>(ws); s != Status::ok) return s;
  detail::solve(detail::mass_matrix_view<S>(ws), x.data());
  return Status::ok;
}

/// a = M⁻¹(τ + Σ Jᵀ f_ext − C v − g), M by composite bodies.
template <class S>
[[nodiscard]] Status forward_dynamics(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v,
                                      VectorIn<S> tau, VectorOut<S> a) noexcept {
  if (const Status s = check_v<S>(ws, v); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, tau); s != Status::ok) return s;
  if (a.size() != ws.nv()) return Status::wrong_size;
  if (const Status s = composite_body::mass_matrix<S>(ws, q, ws.M); s != Status::ok) return s;
  VectorOut<S> bias(ws.bias);
  newton_euler::detail::recursion<true, S>(ws, v, ws.zero_v, bias);  // with external forces
  a = tau - ws.bias;
  return solve_mass_matrix<S>(ws, a);
}

/// M⁻¹(q), nv × nv, both triangles.
template <class S>
[[nodiscard]] Status inverse_mass_matrix(Workspace<S>& ws, VectorIn<S> q,
                                         MatrixOut<S> inverse) noexcept {
  if (inverse.rows() != ws.nv() || inverse.cols() != ws.nv()) return Status::wrong_size;
  if (const Status s = composite_body::mass_matrix<S>(ws, q, ws.M); s != Status::ok) return s;
  if (const Status s = factorize_mass_matrix<S>(ws); s != Status::ok) return s;
  const auto view = detail::mass_matrix_view<S>(ws);
  inverse.setIdentity();
  for (int k = 0; k < ws.nv(); ++k) detail::solve(view, inverse.data() + k * inverse.outerStride());
  return Status::ok;
}

}  // namespace dynamics_core::cholesky
