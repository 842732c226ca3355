#pragma once

/// The dynamics that a task sees (Khatib 1987): for a point of a link, with J its Jacobian,
///
///     Λ ẍ + μ + p = F,     τ = Jᵀ F + Nᵀ τ₀
///
///     Λ  = (J M⁻¹ Jᵀ)⁻¹                the inertia that the task feels
///     μ  = Λ (J M⁻¹ C v − J̇ v)         velocity terms
///     p  = Λ J M⁻¹ g = J̄ᵀ g            gravity
///     J̄  = M⁻¹ Jᵀ Λ                    dynamically consistent inverse, J J̄ = 1
///     N  = 1 − J̄ J                     Nᵀ τ₀ accelerates nothing in the task
///
/// `update` computes all but N for a state; the workspace keeps them for the queries until the next
/// update. Where J (its chosen rows) loses rank Λ does not exist: Status::singular, and the last
/// results are void. A damped inverse is no cure that a dynamics library should choose; leave out
/// the rows of the lost directions instead.

#include <array>

#include "dynamics_core/cholesky.hpp"
#include "dynamics_core/composite_body.hpp"
#include "dynamics_core/kinematics.hpp"
#include "dynamics_core/newton_euler.hpp"

namespace dynamics_core::operational_space {

/// What the task wants to move: a point of a link, and the rows of [ω; v] that matter, in world
/// axes.
template <class S>
struct Task {
  int link = 0;                      ///< index into Model::links
  Vec3<S> offset = Vec3<S>::Zero();  ///< the point, in the link's frame
  std::array<bool, 6> rows = {true, true, true, true, true, true};
};

/// The task of a point without orientation.
template <class S>
[[nodiscard]] Task<S> position_task(int link, const Vec3<S>& offset) noexcept {
  return {link, offset, {false, false, false, true, true, true}};
}

namespace detail {

/// Inverts the symmetric k × k block in place, by elimination without pivoting after scaling its
/// diagonal to one, so that radians and metres weigh the same. False where a pivot is lost: round-
/// off there is that of M⁻¹, taken to be a thousand times that of the scalar.
template <class S>
[[nodiscard]] bool invert_symmetric(Mat6<S>& A, int k) noexcept {
  using std::sqrt;
  Vec6<S> scale;
  S sum(0);
  for (int i = 0; i < k; ++i) {
    scale[i] = sqrt(A(i, i) * A(i, i));
    sum += scale[i];
  }
  for (int i = 0; i < k; ++i) {
    if (negligible(scale[i], sum)) return false;  // a direction in which the point cannot move
    scale[i] = S(1) / sqrt(scale[i]);
  }
  for (int i = 0; i < k; ++i)
    for (int j = 0; j < k; ++j) A(i, j) *= scale[i] * scale[j];
  for (int p = 0; p < k; ++p) {  // Gauss–Jordan
    if (negligible(A(p, p), S(1000))) return false;
    const S inverse = S(1) / A(p, p);
    A(p, p) = S(1);
    for (int j = 0; j < k; ++j) A(p, j) *= inverse;
    for (int i = 0; i < k; ++i) {
      if (i == p) continue;
      const S f = A(i, p);
      A(i, p) = S(0);
      for (int j = 0; j < k; ++j) A(i, j) -= f * A(p, j);
    }
  }
  for (int i = 0; i < k; ++i)
    for (int j = i; j < k; ++j) {
      const S x = S(0.5) * (A(i, j) + A(j, i)) * scale[i] * scale[j];
      A(i, j) = x;
      A(j, i) = x;
    }
  return true;
}

/// A x of the leading k × k block, zeros below.
template <class S>
[[nodiscard]] Vec6<S> times(const Mat6<S>& A, const Vec6<S>& x, int k) noexcept {
  Vec6<S> y = Vec6<S>::Zero();
  for (int i = 0; i < k; ++i)
    for (int j = 0; j < k; ++j) y[i] += A(i, j) * x[j];
  return y;
}

}  // namespace detail

/// Computes the task's dynamics in the state (q, v). External forces have no part in them.
template <class S>
[[nodiscard]] Status update(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v,
                            const Task<S>& task) noexcept {
  auto& o = ws.operational_space;
  if (!is_finite(task.offset.sum())) return Status::not_finite;
  if (const Status s = kinematics::update<S>(ws, q, v); s != Status::ok) return s;
  if (const Status s = kinematics::jacobian<S>(ws, task.link, o.J_full, task.offset);
      s != Status::ok)
    return s;
  Motion<S> bias;
  if (const Status s = kinematics::bias_acceleration<S>(ws, task.link, bias, task.offset);
      s != Status::ok)
    return s;
  Vec6<S> Jd_v;
  o.rows = 0;
  for (int i = 0; i < 6; ++i) {
    if (!task.rows[static_cast<std::size_t>(i)]) continue;
    Jd_v[o.rows] = i < 3 ? bias.w[i] : bias.v[i - 3];
    o.J.row(o.rows++) = o.J_full.row(i);
  }
  const int k = o.rows;
  if (k == 0) return Status::out_of_range;
  if (const Status s = composite_body::mass_matrix<S>(ws, q, ws.M); s != Status::ok) return s;
  if (const Status s = cholesky::factorize_mass_matrix<S>(ws); s != Status::ok) return s;
  const auto view = cholesky::detail::mass_matrix_view<S>(ws);
  MatrixX<S>& W = o.Jbar;  // M⁻¹ Jᵀ
  for (int i = 0; i < k; ++i) {
    W.col(i) = o.J.row(i).transpose();
    cholesky::detail::solve(view, W.col(i).data());
  }
  for (int i = 0; i < k; ++i)
    for (int j = 0; j < k; ++j) o.Lambda(i, j) = o.J.row(i).dot(W.col(j));
  if (!detail::invert_symmetric<S>(o.Lambda, k)) return Status::singular;

  // C v + g and g, through J M⁻¹ = Wᵀ.
  if (const Status s = newton_euler::gravity<S>(ws, q, o.force); s != Status::ok) return s;
  Vec6<S> of_gravity;
  for (int i = 0; i < k; ++i) of_gravity[i] = W.col(i).dot(o.force);
  if (const Status s = newton_euler::bias<S>(ws, q, v, ws.bias); s != Status::ok) return s;
  o.force = ws.bias - o.force;
  Vec6<S> of_velocity;
  for (int i = 0; i < k; ++i) of_velocity[i] = W.col(i).dot(o.force) - Jd_v[i];
  o.p = detail::times<S>(o.Lambda, of_gravity, k);
  o.mu = detail::times<S>(o.Lambda, of_velocity, k);

  for (int j = 0; j < ws.nv(); ++j) {  // J̄ = W Λ, row by row
    Vec6<S> row = Vec6<S>::Zero();
    for (int i = 0; i < k; ++i) row[i] = W(j, i);
    const Vec6<S> product = detail::times<S>(o.Lambda, row, k);
    for (int i = 0; i < k; ++i) W(j, i) = product[i];
  }
  return Status::ok;
}

/// The number of the task's rows at the last update.
template <class S>
[[nodiscard]] int rows(const Workspace<S>& ws) noexcept {
  return ws.operational_space.rows;
}

// The results, as blocks of the workspace: rows × rows, rows, rows × nv, nv × rows.
template <class S>
[[nodiscard]] auto inertia(const Workspace<S>& ws) noexcept {
  const int k = rows(ws);
  return ws.operational_space.Lambda.topLeftCorner(k, k);
}
template <class S>
[[nodiscard]] auto velocity_force(const Workspace<S>& ws) noexcept {
  return ws.operational_space.mu.head(rows(ws));
}
template <class S>
[[nodiscard]] auto gravity_force(const Workspace<S>& ws) noexcept {
  return ws.operational_space.p.head(rows(ws));
}
template <class S>
[[nodiscard]] auto jacobian(const Workspace<S>& ws) noexcept {
  return ws.operational_space.J.topRows(rows(ws));
}
template <class S>
[[nodiscard]] auto consistent_inverse(const Workspace<S>& ws) noexcept {
  return ws.operational_space.Jbar.leftCols(rows(ws));
}

/// N = 1 − J̄ J, nv × nv. N v moves nothing in the task, Nᵀ τ accelerates nothing in it.
template <class S>
[[nodiscard]] Status null_space_projector(const Workspace<S>& ws, MatrixOut<S> N) noexcept {
  if (N.rows() != ws.nv() || N.cols() != ws.nv()) return Status::wrong_size;
  N.setIdentity();
  N.noalias() -= consistent_inverse(ws).lazyProduct(jacobian(ws));
  return Status::ok;
}

/// F = Λ ẍ + μ + p, the force on the point that gives it the acceleration ẍ (rows entries).
template <class S>
[[nodiscard]] Status task_force(const Workspace<S>& ws, VectorIn<S> acceleration,
                                VectorOut<S> force) noexcept {
  const int k = rows(ws);
  if (acceleration.size() != k || force.size() != k) return Status::wrong_size;
  if (!all_finite<S>(acceleration)) return Status::not_finite;
  const auto& o = ws.operational_space;
  for (int i = 0; i < k; ++i) {
    force[i] = o.mu[i] + o.p[i];
    for (int j = 0; j < k; ++j) force[i] += o.Lambda(i, j) * acceleration[j];
  }
  return Status::ok;
}

}  // namespace dynamics_core::operational_space
