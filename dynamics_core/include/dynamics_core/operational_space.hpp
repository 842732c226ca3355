// SPDX-License-Identifier: Apache-2.0
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
/// `update` computes all but N for a state; they are kept for the queries until the next
/// update. Where J (its chosen rows) loses rank Λ does not exist: Status::singular, and the last
/// results are void. A damped inverse is no cure that a dynamics library should choose; leave out
/// the rows of the lost directions instead.

#include <array>

#include "dynamics_core/cholesky.hpp"
#include "dynamics_core/kinematics.hpp"

namespace dynamics_core {

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

template <class S>
class OperationalSpace {
 public:
  /// The tree has to outlive this.
  explicit OperationalSpace(Tree<S>& tree)
      : tree_(&tree),
        kinematics_(tree),
        composite_body_(tree),
        newton_euler_(tree),
        factors_(tree),
        J_full_(MatrixX<S>::Zero(6, tree.nv())),
        J_(J_full_),
        Jbar_(MatrixX<S>::Zero(tree.nv(), 6)),
        Lambda_(Mat6<S>::Zero()),
        mu_(Vec6<S>::Zero()),
        p_(Vec6<S>::Zero()),
        force_(VectorX<S>::Zero(tree.nv())) {}

  /// Computes the task's dynamics in the state (q, v). External forces have no part in them.
  [[nodiscard]] StatusOf<S> update(VectorIn<S> q, VectorIn<S> v, const Task<S>& task) noexcept;

  /// The number of the task's rows at the last update.
  [[nodiscard]] int rows() const noexcept { return rows_; }
  /// Λ, rows × rows
  [[nodiscard]] auto inertia() const noexcept { return Lambda_.topLeftCorner(rows_, rows_); }
  /// μ, rows
  [[nodiscard]] auto velocity_force() const noexcept { return mu_.head(rows_); }
  /// p, rows
  [[nodiscard]] auto gravity_force() const noexcept { return p_.head(rows_); }
  /// J, rows × nv
  [[nodiscard]] auto jacobian() const noexcept { return J_.topRows(rows_); }
  /// J̄, nv × rows
  [[nodiscard]] auto consistent_inverse() const noexcept { return Jbar_.leftCols(rows_); }

  /// N = 1 − J̄ J, nv × nv. N v moves nothing in the task, Nᵀ τ accelerates nothing in it.
  [[nodiscard]] StatusOf<S> null_space_projector(MatrixOut<S> N) const noexcept;
  /// F = Λ ẍ + μ + p, the force on the point that gives it the acceleration ẍ (rows entries).
  [[nodiscard]] StatusOf<S> task_force(VectorIn<S> acceleration, VectorOut<S> force) const noexcept;

 private:
  [[nodiscard]] StatusOf<S> choose_rows(const Task<S>& task, Vec6<S>& Jd_v) noexcept;

  Tree<S>* tree_;
  Kinematics<S> kinematics_;
  CompositeBody<S> composite_body_;
  NewtonEuler<S> newton_euler_;
  MassMatrixFactors<S> factors_;
  MatrixX<S> J_full_;  ///< 6 × nv, all rows
  MatrixX<S> J_;       ///< 6 × nv, the task's rows on top
  MatrixX<S> Jbar_;    ///< nv × 6, M⁻¹Jᵀ, then J̄ in the task's columns
  Mat6<S> Lambda_;     ///< the task's block at the top left
  Vec6<S> mu_, p_;     ///< the task's entries on top
  VectorX<S> force_;   ///< nv
  int rows_ = 0;       ///< of the task
};

// --- Implementation ------------------------------------------------------------------------------

namespace operational_space {

/// Inverts the symmetric k × k block in place, by elimination without pivoting after scaling its
/// diagonal to one, so that radians and metres weigh the same. Round-off in a pivot is that of M⁻¹,
/// taken to be a thousand times that of the scalar.
template <class S>
[[nodiscard]] StatusOf<S> invert_symmetric(Mat6<S>& A, int k) noexcept {
  using std::abs;
  using std::sqrt;
  StatusOf<S> status = Status::ok;
  Vec6<S> scale;
  S sum(0);
  for (int i = 0; i < k; ++i) {
    scale[i] = abs(A(i, i));
    sum += scale[i];
  }
  for (int i = 0; i < k; ++i) {
    // In such a direction the point cannot move.
    if (!keep_pivot<S>(scale[i], sum, status)) return status;
    scale[i] = S(1) / sqrt(scale[i]);
  }
  for (int i = 0; i < k; ++i)
    for (int j = 0; j < k; ++j) A(i, j) *= scale[i] * scale[j];
  for (int p = 0; p < k; ++p) {  // Gauss–Jordan
    if (!keep_pivot<S>(A(p, p), S(1000), status)) return status;
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
  return status;
}

/// A x of the leading k × k block, zeros below.
template <class S>
[[nodiscard]] Vec6<S> times(const Mat6<S>& A, const Vec6<S>& x, int k) noexcept {
  Vec6<S> y = Vec6<S>::Zero();
  for (int i = 0; i < k; ++i)
    for (int j = 0; j < k; ++j) y[i] += A(i, j) * x[j];
  return y;
}

}  // namespace operational_space

/// The task's rows of J, and of J̇ v.
template <class S>
StatusOf<S> OperationalSpace<S>::choose_rows(const Task<S>& task, Vec6<S>& Jd_v) noexcept {
  Motion<S> bias;
  const StatusOf<S> status = merged(kinematics_.jacobian(task.link, J_full_, task.offset),
                                    kinematics_.bias_acceleration(task.link, bias, task.offset));
  if (failed(status)) return status;
  rows_ = 0;
  for (int i = 0; i < 6; ++i) {
    if (!task.rows[static_cast<std::size_t>(i)]) continue;
    Jd_v[rows_] = i < 3 ? bias.w[i] : bias.v[i - 3];
    J_.row(rows_++) = J_full_.row(i);
  }
  return rows_ == 0 ? StatusOf<S>(Status::out_of_range) : status;
}

template <class S>
StatusOf<S> OperationalSpace<S>::update(VectorIn<S> q, VectorIn<S> v,
                                        const Task<S>& task) noexcept {
  using operational_space::times;
  StatusOf<S> status = merged(finite_status<S>(S(task.offset.sum())), kinematics_.update(q, v));
  if (failed(status)) return status;
  Vec6<S> Jd_v;
  status = merged(status, choose_rows(task, Jd_v));
  if (failed(status)) return status;
  const int k = rows_;
  composite_body_.mass_matrix_here(factors_.matrix());
  status = merged(status, factors_.factorize());
  if (failed(status)) return status;
  MatrixX<S>& W = Jbar_;  // M⁻¹ Jᵀ
  for (int i = 0; i < k; ++i) {
    W.col(i) = J_.row(i).transpose();
    factors_.solve(W.col(i).data());
  }
  for (int i = 0; i < k; ++i)
    for (int j = 0; j < k; ++j) Lambda_(i, j) = J_.row(i).dot(W.col(j));
  status = merged(status, operational_space::invert_symmetric<S>(Lambda_, k));
  if (failed(status)) return status;

  // g and C v, through J M⁻¹ = Wᵀ.
  status = merged(status, newton_euler_.gravity(q, force_));
  Vec6<S> of_gravity;
  for (int i = 0; i < k; ++i) of_gravity[i] = W.col(i).dot(force_);
  status = merged(status, newton_euler_.velocity_effort(q, v, force_));
  if (failed(status)) return status;
  Vec6<S> of_velocity;
  for (int i = 0; i < k; ++i) of_velocity[i] = W.col(i).dot(force_) - Jd_v[i];
  p_ = times<S>(Lambda_, of_gravity, k);
  mu_ = times<S>(Lambda_, of_velocity, k);

  for (int j = 0; j < tree_->nv(); ++j) {  // J̄ = W Λ, row by row
    Vec6<S> row = Vec6<S>::Zero();
    for (int i = 0; i < k; ++i) row[i] = W(j, i);
    const Vec6<S> product = times<S>(Lambda_, row, k);
    for (int i = 0; i < k; ++i) W(j, i) = product[i];
  }
  return merged(status, merged(result_status<S>(W.leftCols(k)), result_status<S>(mu_ + p_)));
}

template <class S>
StatusOf<S> OperationalSpace<S>::null_space_projector(MatrixOut<S> N) const noexcept {
  if (N.rows() != tree_->nv() || N.cols() != tree_->nv()) return Status::wrong_size;
  N.setIdentity();
  N.noalias() -= consistent_inverse().lazyProduct(jacobian());
  return result_status<S>(N);
}

template <class S>
StatusOf<S> OperationalSpace<S>::task_force(VectorIn<S> acceleration,
                                            VectorOut<S> force) const noexcept {
  const int k = rows_;
  if (acceleration.size() != k || force.size() != k) return Status::wrong_size;
  for (int i = 0; i < k; ++i) {
    force[i] = mu_[i] + p_[i];
    for (int j = 0; j < k; ++j) force[i] += Lambda_(i, j) * acceleration[j];
  }
  return merged(result_status<S>(acceleration), result_status<S>(force));
}

}  // namespace dynamics_core
