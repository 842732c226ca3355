// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The derivatives of inverse and forward dynamics with respect to q, v and a or τ (Singh, Russell &
/// Wensing 2022, "Efficient Analytical Derivatives of Rigid-Body Dynamics Using Spatial Vector
/// Algebra"; the numbers of equations and the symbols Ψ̇, Ψ̈ and B are theirs).
///
/// Column k of a derivative with respect to q belongs to the coordinate k of v: it is the rate at
/// which the result changes while q moves as Kinematics::integrate moves it with v_k = 1, all other
/// coordinates being held, v and a (or τ) included. For a joint with a coordinate of its own that is
/// the usual ∂/∂q_k. For a floating joint the coordinates of v turn and shift the link along its own
/// axes, and v and a stay what they are in these moving axes; so all matrices are nv × nv.
///
/// External forces and payloads move with their links. Joints that mimic others move with them, and
/// their efforts count there. Rotors are in M alone.
///
/// All quantities are in the axes of the base, about the point where the first body's origin is at
/// q. There each pair of a body and one of its ancestors costs no more than five inner products.

#include <vector>

#include "dynamics_core/cholesky.hpp"
#include "dynamics_core/joint_space.hpp"
#include "dynamics_core/kinematics.hpp"
#include "dynamics_core/tree.hpp"

namespace dynamics_core {

template <class S>
class Derivatives {
 public:
  /// The tree has to outlive this.
  explicit Derivatives(Tree<S>& tree);

  /// Of τ = M(q) a + C(q, v) v + g(q) − Σ Jᵀ f_ext: ∂τ/∂q, ∂τ/∂v and ∂τ/∂a = M.
  [[nodiscard]] StatusOf<S> inverse_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> a,
                                             MatrixOut<S> dtau_dq, MatrixOut<S> dtau_dv,
                                             MatrixOut<S> M) noexcept;
  /// Of a = M⁻¹(τ + Σ Jᵀ f_ext − C v − g): ∂a/∂q, ∂a/∂v and ∂a/∂τ = M⁻¹. Status::singular where M
  /// cannot be inverted.
  [[nodiscard]] StatusOf<S> forward_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                             MatrixOut<S> da_dq, MatrixOut<S> da_dv,
                                             MatrixOut<S> da_dtau) noexcept;

 private:
  /// B u = [N ω_u; ω_u × p], twice the paper's B (Eq. 12). With r the places of a body's particles
  /// and ṙ their velocities N ω_u = 2 Σ m r × (ω_u × ṙ) and p = 2 Σ m ṙ: of 36 elements, twelve
  /// numbers are left.
  struct Convection {
    Mat3<S> N;
    Vec3<S> p;
  };
  struct Link {
    Pose<S> X;        ///< the body
    Motion<S> h;      ///< the joint's axis
    Motion<S> V;      ///< velocity
    Motion<S> A;      ///< acceleration
    Motion<S> c;      ///< what the acceleration gains across the joint for q̈ = 0
    Motion<S> psi;    ///< Ψ̇, the rate of h where the joint's parent carries it
    Motion<S> psi_d;  ///< Ψ̈
    Motion<S> phi;    ///< Ψ̇ + ḣ
    RigidInertia<S> I;
    RigidInertia<S> IC;  ///< of the subtree
    Convection B;        ///< of the subtree
    Force<S> fv;         ///< v × I v less the external force
    Force<S> F;          ///< the force on the subtree
    Force<S> Ih;         ///< I^C h
  };
  /// A matrix wherever it lies.
  struct View {
    S* data;
    Eigen::Index row, column;  ///< from one row, or column, to the next
  };

  void move(VectorIn<S> v) noexcept;
  template <bool with_acceleration>
  void accelerate(VectorIn<S> a) noexcept;
  void collect_inertias() noexcept;
  void collect_forces() noexcept;
  void mass_matrix(MatrixOut<S>& M) noexcept;
  void bias(VectorOut<S>& tau) const noexcept;
  void differentiate(const View& by_q, const View& by_v) noexcept;
  void add(const Body<S>& row, const Body<S>& column, const S& x, const View& to) const noexcept;
  [[nodiscard]] S zero_if_all_finite(const MatrixOut<S>& dtau_dq, const MatrixOut<S>& dtau_dv,
                                     const MatrixOut<S>& M) const noexcept;
  void eliminate_upwards() noexcept;
  void substitute_downwards() noexcept;

  Tree<S>* tree_;
  std::vector<Link> link_;
  std::vector<int> outer_;  ///< by body: the body that carries its joint
  MassMatrixFactors<S> factors_;
  VectorX<S> a_;  ///< nv
  /// M⁻¹ times ∂τ/∂q and ∂τ/∂v, whose columns alternate, and times 1: nv rows of 3 nv elements.
  std::vector<S> rows_;
  /// By coordinate: the range of its tree's coordinates, and the end of its subtree's.
  std::vector<int> tree_begin_, tree_end_, subtree_end_;
};

// --- Implementation ------------------------------------------------------------------------------

namespace derivatives {

/// V × U
template <class S>
[[nodiscard]] RD_INLINE Motion<S> cross(const Motion<S>& V, const Motion<S>& U) noexcept {
  return {V.w.cross(U.w), V.v.cross(U.w) + V.w.cross(U.v)};
}
/// V ×* F
template <class S>
[[nodiscard]] RD_INLINE Force<S> cross(const Motion<S>& V, const Force<S>& F) noexcept {
  return {V.w.cross(F.n) + V.v.cross(F.f), V.w.cross(F.f)};
}
template <class S>
[[nodiscard]] RD_INLINE S dot(const Motion<S>& V, const Force<S>& F) noexcept {
  return V.w.dot(F.n) + V.v.dot(F.f);
}
template <class S>
[[nodiscard]] RD_INLINE Motion<S> sum(const Motion<S>& V, const Motion<S>& U) noexcept {
  return {V.w + U.w, V.v + U.v};
}
template <class S>
[[nodiscard]] RD_INLINE Motion<S> times(const Motion<S>& V, const S& x) noexcept {
  return {V.w * x, V.v * x};
}

/// An inertia in a body's frame, in the frame in which X is the body's pose.
template <class S>
[[nodiscard]] RD_INLINE RigidInertia<S> moved(const Pose<S>& X, const RigidInertia<S>& A) noexcept {
  const Vec3<S> x = A.I * Vec3<S>(X.R.row(0).transpose());
  const Vec3<S> y = A.I * Vec3<S>(X.R.row(1).transpose());
  const Vec3<S> z = A.I * Vec3<S>(X.R.row(2).transpose());
  const Symmetric3<S> I = {X.R.row(0).dot(x), X.R.row(0).dot(y), X.R.row(0).dot(z),
                           X.R.row(1).dot(y), X.R.row(1).dot(z), X.R.row(2).dot(z)};
  return shift<S>({A.m, X.R * A.h, I}, X.p);
}

/// y −= l x
template <class S>
RD_INLINE void subtract(const S& l, const S* __restrict x, S* __restrict y, int n) noexcept {
  for (int i = 0; i < n; ++i) y[i] -= l * x[i];
}

}  // namespace derivatives

template <class S>
Derivatives<S>::Derivatives(Tree<S>& tree)
    : tree_(&tree),
      link_(static_cast<std::size_t>(tree.nb())),
      factors_(tree),
      a_(VectorX<S>::Zero(tree.nv())),
      rows_(static_cast<std::size_t>(3 * tree.nv() * tree.nv()), S(0)),
      tree_begin_(static_cast<std::size_t>(tree.nv())),
      tree_end_(tree_begin_),
      subtree_end_(tree_begin_) {
  const Body<S>* body = tree.bodies();
  for (int i = 0; i < tree.nb(); ++i)
    outer_.push_back(is_floating(body[i].kind) ? body[i - body[i].axis].parent : body[i].parent);
  const int* parent = tree.dof_parents();
  int *begin = tree_begin_.data(), *end = tree_end_.data(), *subtree_end = subtree_end_.data();
  for (int k = 0; k < tree.nv(); ++k) {
    begin[k] = parent[k] < 0 ? k : begin[parent[k]];
    subtree_end[k] = k + 1;
  }
  for (int k = tree.nv() - 1; k >= 0; --k)
    if (parent[k] >= 0) subtree_end[parent[k]] = std::max(subtree_end[parent[k]], subtree_end[k]);
  for (int k = 0; k < tree.nv(); ++k) end[k] = subtree_end[begin[k]];
}

/// What depends on q and v: from the base to the tips.
template <class S>
void Derivatives<S>::move(VectorIn<S> v) noexcept {
  using namespace derivatives;
  const Body<S>* body = tree_->bodies();
  const Force<S>* external = tree_->external_forces();
  const int n = tree_->nb();
  if (n == 0) return;
  Link* link = link_.data();
  const Pose<S> base = {Mat3<S>::Identity(), -body[0].X.position()};
  const Motion<S> still = Motion<S>::zero();
  for (int i = 0; i < n; ++i) {
    const Body<S>& b = body[i];
    Link& l = link[i];
    const int outer = outer_[static_cast<std::size_t>(i)];
    const Motion<S>& V_outer = outer < 0 ? still : link[outer].V;
    l.X = dynamics_core::across<S>(b.parent < 0 ? base : link[b.parent].X, b.X);
    l.h = axis_motion<S>(b, l.X.R.col(2), Vec3<S>(-l.X.p));
    l.psi = cross(V_outer, l.h);
    if (!is_floating(b.kind)) {
      const S qd = rate<S>(b, v);
      l.V = sum(V_outer, times(l.h, qd));
      l.c = times(l.psi, qd);
      l.phi = sum(l.psi, l.psi);
    } else if (b.kind == JointKind::floating_first) {
      Motion<S> own = still;
      add_joint_velocity<S>(b, v, own);
      const Vec3<S> w = l.X.R * own.w;
      const Motion<S> across = {w, l.X.R * own.v + l.X.p.cross(w)};
      l.V = sum(V_outer, across);
      l.c = cross(V_outer, across);
      l.phi = sum(l.psi, cross(l.V, l.h));
    } else {  // moves with the first
      l.V = link[b.parent].V;
      l.c = still;
      l.phi = sum(l.psi, cross(l.V, l.h));
    }
    l.I = moved(l.X, b.inertia);
    const Force<S> P = l.I * l.V;
    l.fv = cross(l.V, P);
    if (external != nullptr) {
      const Vec3<S> f = l.X.R * external[i].f;
      l.fv -= {l.X.R * external[i].n + l.X.p.cross(f), f};
    }
    l.B.p = P.f + P.f;
    // With J the moments of inertia, Σ m r rᵀ = s 1 − J, and ṙ = v + ω × r:
    // N/2 = v·h 1 − v hᵀ − s ω× + ω× J
    const Vec3<S> w = l.V.w + l.V.w;
    const Vec3<S> u = l.V.v + l.V.v;
    const Symmetric3<S>& J = l.I.I;
    const Vec3<S>& h = l.I.h;
    const S vh = u.dot(h);
    const S s = S(0.5) * (J.xx + J.yy + J.zz);
    const Vec3<S> sw = s * w;
    Mat3<S>& N = l.B.N;
    N(0, 0) = vh - u[0] * h[0] + (w[1] * J.xz - w[2] * J.xy);
    N(1, 0) = -u[1] * h[0] - sw[2] + (w[2] * J.xx - w[0] * J.xz);
    N(2, 0) = -u[2] * h[0] + sw[1] + (w[0] * J.xy - w[1] * J.xx);
    N(0, 1) = -u[0] * h[1] + sw[2] + (w[1] * J.yz - w[2] * J.yy);
    N(1, 1) = vh - u[1] * h[1] + (w[2] * J.xy - w[0] * J.yz);
    N(2, 1) = -u[2] * h[1] - sw[0] + (w[0] * J.yy - w[1] * J.xy);
    N(0, 2) = -u[0] * h[2] - sw[1] + (w[1] * J.zz - w[2] * J.yz);
    N(1, 2) = -u[1] * h[2] + sw[0] + (w[2] * J.xz - w[0] * J.zz);
    N(2, 2) = vh - u[2] * h[2] + (w[0] * J.yz - w[1] * J.xz);
  }
}

template <class S>
template <bool with_acceleration>
void Derivatives<S>::accelerate(VectorIn<S> a) noexcept {
  using namespace derivatives;
  const Body<S>* body = tree_->bodies();
  Link* link = link_.data();
  const Motion<S> base = {Vec3<S>::Zero(), tree_->base_acceleration()};
  for (int i = 0; i < tree_->nb(); ++i) {
    const Body<S>& b = body[i];
    Link& l = link[i];
    l.A = sum(b.parent < 0 ? base : link[b.parent].A, l.c);
    if constexpr (with_acceleration) l.A = sum(l.A, times(l.h, rate<S>(b, a)));
    l.F = l.I * l.A;
    l.F += l.fv;
  }
}

template <class S>
void Derivatives<S>::collect_inertias() noexcept {
  const Body<S>* body = tree_->bodies();
  Link* link = link_.data();
  for (int i = 0; i < tree_->nb(); ++i) link[i].IC = link[i].I;
  for (int i = tree_->nb() - 1; i >= 0; --i) {
    const int parent = body[i].parent;
    link[i].Ih = link[i].IC * link[i].h;
    if (parent < 0) continue;
    link[parent].IC += link[i].IC;
    link[parent].B.N += link[i].B.N;
    link[parent].B.p += link[i].B.p;
  }
}

template <class S>
void Derivatives<S>::collect_forces() noexcept {
  const Body<S>* body = tree_->bodies();
  Link* link = link_.data();
  for (int i = tree_->nb() - 1; i >= 0; --i)
    if (body[i].parent >= 0) link[body[i].parent].F += link[i].F;
}

template <class S>
void Derivatives<S>::mass_matrix(MatrixOut<S>& M) noexcept {
  using namespace derivatives;
  const Body<S>* body = tree_->bodies();
  const Link* link = link_.data();
  if (tree_->branched() || tree_->has_mimic()) M.setZero();
  for (int i = 0; i < tree_->nb(); ++i) {
    const Force<S>& Ih = link[i].Ih;
    add_symmetric<S>(body[i], body[i], dot(link[i].h, Ih) + body[i].rotor, M);
    for (int j = body[i].parent; j >= 0; j = body[j].parent)
      add_symmetric<S>(body[i], body[j], dot(link[j].h, Ih), M);
  }
}

template <class S>
void Derivatives<S>::bias(VectorOut<S>& tau) const noexcept {
  const Body<S>* body = tree_->bodies();
  const Link* link = link_.data();
  tau.setZero();
  for (int i = 0; i < tree_->nb(); ++i)
    add_effort<S>(body[i], derivatives::dot(link[i].h, link[i].F), tau);
}

template <class S>
RD_INLINE void Derivatives<S>::add(const Body<S>& row, const Body<S>& column, const S& x,
                                   const View& to) const noexcept {
  S& at = to.data[row.dof * to.row + column.dof * to.column];
  if (row.shared || column.shared)
    at += row.multiplier * column.multiplier * x;
  else
    at = x;
}

/// The derivatives of τ_i and τ_j by the coordinates of j and i, for each body i and its ancestors j.
template <class S>
void Derivatives<S>::differentiate(const View& by_q, const View& by_v) noexcept {
  using namespace derivatives;
  const Body<S>* body = tree_->bodies();
  Link* link = link_.data();
  const Motion<S> base_V = Motion<S>::zero();
  const Motion<S> base_A = {Vec3<S>::Zero(), tree_->base_acceleration()};
  for (int i = 0; i < tree_->nb(); ++i) {
    const int outer = outer_[static_cast<std::size_t>(i)];
    Link& l = link[i];
    l.psi_d = sum(cross(outer < 0 ? base_A : link[outer].A, l.h),
                  cross(outer < 0 ? base_V : link[outer].V, l.psi));
  }
  for (int i = tree_->nb() - 1; i >= 0; --i) {
    const Body<S>& b = body[i];
    const Link& l = link[i];
    const auto convect = [&l](const Motion<S>& u) -> Force<S> {
      return {l.B.N * u.w, u.w.cross(l.B.p)};
    };
    const Vec3<S> Bh = l.B.N.transpose() * l.h.w + l.B.p.cross(l.h.v);  // Bᵀ h
    Force<S> of_q = convect(l.psi);
    of_q += l.IC * l.psi_d;
    Force<S> of_v = convect(l.h);
    of_v += l.IC * l.phi;
    add(b, b, dot(l.h, of_q), by_q);
    add(b, b, dot(l.h, of_v), by_v);
    const auto pair = [&](int j) {
      const Link& k = link[j];
      add(body[j], b, dot(k.h, of_q), by_q);
      add(body[j], b, dot(k.h, of_v), by_v);
      add(b, body[j], Bh.dot(k.psi.w) + dot(k.psi_d, l.Ih), by_q);
      add(b, body[j], Bh.dot(k.h.w) + dot(k.phi, l.Ih), by_v);
    };
    // The axes of a floating joint move all together with the link.
    const int outer = outer_[static_cast<std::size_t>(i)];
    int j = b.parent;
    for (; j != outer; j = body[j].parent) pair(j);
    of_q += cross(l.h, l.F);
    for (; j >= 0; j = body[j].parent) pair(j);
  }
}

/// Of the elements that are not always zero.
template <class S>
S Derivatives<S>::zero_if_all_finite(const MatrixOut<S>& dtau_dq, const MatrixOut<S>& dtau_dv,
                                     const MatrixOut<S>& M) const noexcept {
  const int* parent = tree_->dof_parents();
  const S zero(0);
  S sums[5] = {zero, zero, zero, zero, zero};
  for (int k = 0; k < tree_->nv(); ++k) {
    for (int i = k; i >= 0; i = parent[i]) {
      sums[0] += dtau_dq(i, k) * zero;
      sums[1] += dtau_dq(k, i) * zero;
      sums[2] += dtau_dv(i, k) * zero;
      sums[3] += dtau_dv(k, i) * zero;
      sums[4] += M(i, k) * zero;
    }
  }
  return sums[0] + sums[1] + sums[2] + sums[3] + sums[4];
}

template <class S>
StatusOf<S> Derivatives<S>::inverse_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> a,
                                             MatrixOut<S> dtau_dq, MatrixOut<S> dtau_dv,
                                             MatrixOut<S> M) noexcept {
  const StatusOf<S> status = check_and_move<S>(*tree_, q, v, a, dtau_dq, dtau_dv, M);
  if (failed(status)) return status;
  move(v);
  accelerate<true>(a);
  collect_inertias();
  collect_forces();
  mass_matrix(M);
  if (tree_->branched() || tree_->has_mimic()) {
    dtau_dq.setZero();
    dtau_dv.setZero();
  }
  differentiate({dtau_dq.data(), 1, dtau_dq.outerStride()},
                {dtau_dv.data(), 1, dtau_dv.outerStride()});
  return merged(status, finite_status<S>(zero_if_all_finite(dtau_dq, dtau_dv, M)));
}

/// With M = Lᵀ D L, the rows become L⁻ᵀ times what they were.
template <class S>
void Derivatives<S>::eliminate_upwards() noexcept {
  using derivatives::subtract;
  const int n = tree_->nv();
  const int* parent = tree_->dof_parents();
  for (int k = n - 1; k >= 0; --k) {
    const auto at = static_cast<std::size_t>(k);
    const S* L = factors_.end_of_row(k);
    const S* from = rows_.data() + 3 * n * k;
    const int begin = 2 * tree_begin_[at];
    const int count = 2 * subtree_end_[at] - begin;
    for (int i = parent[k]; i >= 0; i = parent[i]) {
      S* to = rows_.data() + 3 * n * i;
      const S& L_ki = *--L;
      subtract(L_ki, from + begin, to + begin, count);
      subtract(L_ki, from + 2 * n + k, to + 2 * n + k, subtree_end_[at] - k);
    }
  }
}

/// Then L⁻¹ D⁻¹ times that; of M⁻¹, which is symmetric, the upper triangle.
template <class S>
void Derivatives<S>::substitute_downwards() noexcept {
  using derivatives::subtract;
  const int n = tree_->nv();
  const int* parent = tree_->dof_parents();
  for (int k = 0; k < n; ++k) {
    const auto at = static_cast<std::size_t>(k);
    S* to = rows_.data() + 3 * n * k;
    const int begin = 2 * tree_begin_[at];
    const int end = 2 * tree_end_[at];
    const S* L = factors_.end_of_row(k);
    const S& inv_D = *L;
    for (int c = begin; c < end; ++c) to[c] *= inv_D;
    for (int c = 2 * n + k; c < 2 * n + tree_end_[at]; ++c) to[c] *= inv_D;
    for (int i = parent[k]; i >= 0; i = parent[i]) {
      const S* from = rows_.data() + 3 * n * i;
      const S& L_ki = *--L;
      subtract(L_ki, from + begin, to + begin, end - begin);
      subtract(L_ki, from + 2 * n + k, to + 2 * n + k, tree_end_[at] - k);
    }
  }
}

/// ∂a/∂(q, v) = −M⁻¹ ∂τ/∂(q, v) at the acceleration a.
template <class S>
StatusOf<S> Derivatives<S>::forward_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                             MatrixOut<S> da_dq, MatrixOut<S> da_dv,
                                             MatrixOut<S> da_dtau) noexcept {
  StatusOf<S> status = check_and_move<S>(*tree_, q, v, tau, da_dq, da_dv, da_dtau);
  if (failed(status)) return status;
  const int n = tree_->nv();
  move(v);
  collect_inertias();
  MatrixOut<S> M(factors_.matrix());
  mass_matrix(M);
  status = merged(status, factors_.factorize());
  if (failed(status)) return status;
  accelerate<false>(v);
  collect_forces();
  VectorOut<S> a(a_);
  bias(a);
  a_ = tau - a_;
  factors_.solve(a_.data());
  accelerate<true>(a_);
  collect_forces();

  std::fill(rows_.begin(), rows_.end(), S(0));
  S* rows = rows_.data();
  for (int k = 0; k < n; ++k) rows[3 * n * k + 2 * n + k] = S(1);
  differentiate({rows, 3 * n, 2}, {rows + 1, 3 * n, 2});
  eliminate_upwards();
  substitute_downwards();

  if (tree_->branched()) {
    da_dq.setZero();
    da_dv.setZero();
    da_dtau.setZero();
  }
  const S zero(0);
  S sum_q(0), sum_v(0), sum_tau(0);
  for (int k = 0; k < n; ++k) {
    const S* row = rows + 3 * n * k;
    const auto at = static_cast<std::size_t>(k);
    for (int c = tree_begin_[at]; c < tree_end_[at]; ++c) {
      da_dq(k, c) = -row[2 * c];
      da_dv(k, c) = -row[2 * c + 1];
      sum_q += row[2 * c] * zero;
      sum_v += row[2 * c + 1] * zero;
    }
    for (int c = k; c < tree_end_[at]; ++c) {
      da_dtau(k, c) = da_dtau(c, k) = row[2 * n + c];
      sum_tau += row[2 * n + c] * zero;
    }
  }
  return merged(status, finite_status<S>(S(sum_q + sum_v + sum_tau)));
}

}  // namespace dynamics_core
