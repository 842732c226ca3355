// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Closed kinematic loops (Featherstone & Orin 2000, §3.4): a tree, and loop joints that tie two of
/// its links together. The equations of the spanning tree get the loop-closure forces added,
///
///     M q̈ + C = τ + φ'ᵀ λ,   φ(q) = 0                                      (Eqs. 15, 16, 19)
///
/// and three methods solve them. φ' may have dependent rows, always or at some configurations: an
/// elimination with a numerical rank test picks independent ones first (Eq. 18). Loop joints are
/// passive; the effort of an active one is to be added to τ (τ_a in Eq. 19).
///
/// The choice of pivots depends on values, so the scalar has to be ordered: no SIMD batches here.

#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "dynamics_core/cholesky.hpp"
#include "dynamics_core/kinematics.hpp"
#include "dynamics_core/quaternion.hpp"

namespace dynamics_core {

// --- Declaration, off the real-time path ---------------------------------------------------------

/// What a loop joint leaves free between its two frames.
enum class LoopType {
  fixed,        ///< nothing
  revolute,     ///< a turn about the axis
  prismatic,    ///< a slide along the axis
  cylindrical,  ///< both
  universal,    ///< turns about axis_a (fixed in A) and axis_b (fixed in B), which stay square
  spherical,    ///< all turns
  planar,       ///< slides square to the axis and a turn about it
};

/// A joint between frame A on link a and frame B on link b.
struct LoopJoint {
  std::string name;
  LoopType type = LoopType::revolute;
  int link_a = -1;  ///< index into Model::links
  int link_b = -1;
  Pose<double> frame_a = Pose<double>::identity();    ///< A in link a
  Pose<double> frame_b = Pose<double>::identity();    ///< B in link b
  Eigen::Vector3d axis = Eigen::Vector3d::UnitZ();    ///< the same in A and in B; universal: in A
  Eigen::Vector3d axis_b = Eigen::Vector3d::UnitX();  ///< universal: in B
};

using LoopSet = std::vector<LoopJoint>;

/// Reads the loop joints that are declared beside a robot, in YAML:
///
///     loops:
///       - name: coupler_pin
///         type: revolute        # fixed, revolute, prismatic, cylindrical, universal, spherical or
///                               # planar
///         link_a: coupler
///         frame_a: {xyz: [0.4, 0, 0], rpy: [0, 0, 0]}   # in link a; both default to zeros
///         link_b: rocker
///         frame_b: {xyz: [0.3, 0, 0]}
///         axis: [0, 0, 1]       # not for fixed and spherical; in either frame
///         axis_b: [1, 0, 0]     # universal only: `axis` is then in frame_a, this in frame_b
///
/// Throws ModelError.
[[nodiscard]] LoopSet load_loops(const std::string& path, const Model& model);
/// The same from a text; `source` names it in messages.
[[nodiscard]] LoopSet parse_loops(const std::string& yaml, const Model& model,
                                  const std::string& source = "");
/// Throws ModelError where a joint names no two bodies of the model, or has no direction.
void validate(const LoopSet& loops, const Model& model, const std::string& source = "");

[[nodiscard]] const char* to_string(LoopType type) noexcept;

namespace loops {

namespace detail {

/// Round-off of the scalar; that of double where the type does not say.
template <class S>
[[nodiscard]] constexpr double epsilon() noexcept {
  return std::is_same_v<S, float> ? static_cast<double>(std::numeric_limits<float>::epsilon())
                                  : std::numeric_limits<double>::epsilon();
}

/// One equation of a loop joint: u·(p_B − p_A) = 0, or u·w = 0. u is fixed in link a, w in link b.
template <class S>
struct Row {
  bool angle;
  Vec3<S> u;
  Vec3<S> w;
};

template <class S>
struct Joint {
  int link_a;
  int link_b;
  Vec3<S> p_a;  ///< origin of A in link a
  Vec3<S> p_b;
  std::array<Row<S>, 6> row;
  int rows;
};

template <class S>
[[nodiscard]] Joint<S> make_joint(const LoopJoint& from) {
  using dynamics_core::detail::cast3;
  const Eigen::Matrix3d turn = rotation_of_z_onto(from.axis.normalized());
  const Eigen::Matrix3d A = from.frame_a.R * turn;  // z on the axis
  const Eigen::Matrix3d B = from.frame_b.R * turn;
  Joint<S> j{from.link_a, from.link_b, cast3<S>(from.frame_a.p), cast3<S>(from.frame_b.p), {}, 0};
  const auto add = [&j](bool angle, const Eigen::Vector3d& u, const Eigen::Vector3d& w) {
    j.row[static_cast<std::size_t>(j.rows++)] = {angle, cast3<S>(u), cast3<S>(w)};
  };
  const auto hold = [&](std::initializer_list<int> axes) {
    for (const int k : axes) add(false, A.col(k), Eigen::Vector3d::Zero());
  };
  const auto square = [&](int a, int b) { add(true, A.col(a), B.col(b)); };
  switch (from.type) {
    case LoopType::fixed: hold({0, 1, 2}), square(2, 1), square(0, 2), square(1, 0); break;
    case LoopType::revolute: hold({0, 1, 2}), square(0, 2), square(1, 2); break;
    case LoopType::prismatic: hold({0, 1}), square(2, 1), square(0, 2), square(1, 0); break;
    case LoopType::cylindrical: hold({0, 1}), square(0, 2), square(1, 2); break;
    case LoopType::universal:
      hold({0, 1, 2});
      add(true, A.col(2), from.frame_b.R * from.axis_b.normalized());
      break;
    case LoopType::spherical: hold({0, 1, 2}); break;
    case LoopType::planar: hold({2}), square(0, 2), square(1, 2); break;
  }
  return j;
}

}  // namespace detail

}  // namespace loops

/// The loop joints of one robot in the scalar type S, how to treat them, and the three methods. All
/// memory is taken in the constructor; everything after it is real-time safe.
template <class S>
class Loops {
 public:
  /// The tree, of the same model, has to outlive this. Throws ModelError, see validate().
  Loops(Tree<S>& tree, const Model& model, const LoopSet& set);

  /// The number of equations, redundant ones included: the size of φ and λ.
  [[nodiscard]] int rows() const noexcept { return m_; }
  [[nodiscard]] int nv() const noexcept { return n_; }
  /// How many of them were independent, at the last solution.
  [[nodiscard]] int rank() const noexcept { return rank_; }

  /// Baumgarte's stabilisation: φ̈ = −2α φ̇ − β² φ. α = β damps an error critically, with the time
  /// constant 1/α. Zero: φ̈ = 0, which drifts.
  S alpha = S(0);
  S beta = S(0);
  /// A pivot of φ' is zero below this part of its largest element.
  S rank_tolerance = S(std::sqrt(loops::detail::epsilon<S>()));
  /// project() and project_velocity(): how willing each coordinate (of v) is to move. Zero: held.
  VectorX<S> weights;

  // --- constraints -------------------------------------------------------------------------------
  /// φ(q) (rows), metres and sines of angles.
  [[nodiscard]] Status position_error(VectorIn<S> q, VectorOut<S> phi) noexcept;
  /// φ'(q), rows × nv, with φ̇ = φ' v; and φ̇' v (rows), with φ̈ = φ' v̇ + φ̇' v (Eq. 17).
  [[nodiscard]] Status constraint(VectorIn<S> q, VectorIn<S> v, MatrixOut<S> jacobian,
                                  VectorOut<S> bias) noexcept;

  // --- forward dynamics --------------------------------------------------------------------------
  // All three give q̈ (nv) and one multiplier per equation (rows), zero for those left out as
  // redundant (their share of the load is not determined by rigid bodies). External forces are
  // included.

  /// Method 1: the bordered system (Eq. 20). Works with a singular M as long as the loops hold what
  /// M leaves open.
  [[nodiscard]] Status bordered(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau, VectorOut<S> a,
                                VectorOut<S> lambda) noexcept;
  /// Method 2: the multipliers first, L M⁻¹ Lᵀ λ = c − L M⁻¹ (τ − C) (Eq. 21), with the tree's
  /// sparse factors of M. The cheapest where the loops are few; M has to be regular.
  [[nodiscard]] Status multipliers_first(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                         VectorOut<S> a, VectorOut<S> lambda) noexcept;
  /// Method 3: q̈ = K y + q̈₀ with L K = 0 by elimination, then Kᵀ M K y = Kᵀ(τ − C − M q̈₀)
  /// (Eq. 22); the multipliers follow from what is left over. The cheapest where little freedom
  /// remains, and works with a singular M as method 1 does.
  [[nodiscard]] Status null_space(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau, VectorOut<S> a,
                                  VectorOut<S> lambda) noexcept;
  /// The force [n; f] that loop joint k exerts on its link b, about the origin of frame B in world
  /// axes, at the configuration of the last solution; on link a acts the opposite, about the same
  /// point.
  [[nodiscard]] Status joint_force(VectorIn<S> lambda, int joint, Force<S>& F_W) const noexcept;

  // --- consistent states -------------------------------------------------------------------------
  /// Moves q to the nearest configuration with |φ| ≤ tolerance, by Levenberg–Marquardt steps whose
  /// damping |φ|² vanishes at the solution, so that convergence is fast even where φ' loses rank
  /// (Yamashita & Fukushima 2001). q keeps its last value where that fails: Status::not_converged.
  /// Axes that should be parallel may end up opposed if they start nearer to that.
  [[nodiscard]] Status project(VectorOut<S> q,
                               const S& tolerance = S(1e4 * loops::detail::epsilon<S>()),
                               int max_iterations = 100) noexcept;
  /// Takes out of v what violates φ' v = 0, changing it as little as possible.
  [[nodiscard]] Status project_velocity(VectorIn<S> q, VectorOut<S> v) noexcept;

 private:
  using Row = loops::detail::Row<S>;
  using Joint = loops::detail::Joint<S>;

  /// What moves of a link: a frame of the loop joint in the world.
  struct FrameState {
    Pose<S> X;  ///< rotation of the link, position of the joint's frame
    Motion<S> V, A;
  };

  [[nodiscard]] FrameState frame_state(int link, const Vec3<S>& p) const noexcept;
  void angle_row(const Row& row, const FrameState& a, const FrameState& b, int i) noexcept;
  void distance_row(const Row& row, const FrameState& a, const FrameState& b, int i) noexcept;
  void evaluate() noexcept;
  [[nodiscard]] S pivot(int k) noexcept;
  void eliminate() noexcept;
  [[nodiscard]] Status prepare(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau, const VectorOut<S>& a,
                               const VectorOut<S>& lambda) noexcept;
  void scatter(const VectorX<S>& from, VectorOut<S>& lambda) const noexcept;
  [[nodiscard]] Status damped_step(VectorIn<S> error, const S& damping) noexcept;

  Tree<S>* tree_;
  Kinematics<S> kinematics_;
  CompositeBody<S> composite_body_;
  NewtonEuler<S> newton_euler_;
  MassMatrixFactors<S> factors_;
  std::vector<Joint> joints_;
  VectorX<S> phi_, phi_rate_;  ///< φ, φ̇
  VectorX<S> bias_;            ///< φ̇' q̇
  VectorX<S> c_;               ///< right-hand side of φ' q̈ = c
  VectorX<S> lambda_, x_;
  MatrixX<S> J_;       ///< φ'
  MatrixX<S> lu_, L_;  ///< φ' eliminated; independent rows of φ'
  MatrixX<S> J_a_, J_b_, M_, MK_, K_, W_, A_;
  VectorX<S> tree_bias_, force_, a0_, y_, b_;
  std::vector<int> row_order_, column_order_;
  int rank_ = 0;
  int m_ = 0;
  int n_;
};

// --- Implementation ------------------------------------------------------------------------------

namespace loops::detail {

template <class S>
[[nodiscard]] S magnitude(const S& x) noexcept {
  return x < S(0) ? S(-x) : x;
}

/// A x = b by elimination with row exchanges, b becomes x. False where a pivot is lost.
template <class S>
[[nodiscard]] bool solve_general(MatrixOut<S> A, VectorOut<S> b, const S& scale) noexcept {
  const int n = static_cast<int>(A.rows());
  for (int k = 0; k < n; ++k) {
    int p = k;
    for (int i = k + 1; i < n; ++i)
      if (magnitude(A(i, k)) > magnitude(A(p, k))) p = i;
    if (negligible(A(p, k), scale)) return false;
    if (p != k) {
      for (int j = k; j < n; ++j) std::swap(A(k, j), A(p, j));
      std::swap(b[k], b[p]);
    }
    for (int i = k + 1; i < n; ++i) {
      const S f = A(i, k) / A(k, k);
      for (int j = k + 1; j < n; ++j) A(i, j) -= f * A(k, j);
      b[i] -= f * b[k];
    }
  }
  for (int k = n - 1; k >= 0; --k) {
    for (int j = k + 1; j < n; ++j) b[k] -= A(k, j) * b[j];
    b[k] /= A(k, k);
  }
  return true;
}

}  // namespace loops::detail

template <class S>
Loops<S>::Loops(Tree<S>& tree, const Model& model, const LoopSet& set)
    : tree_(&tree),
      kinematics_(tree),
      composite_body_(tree),
      newton_euler_(tree),
      factors_(tree),
      n_(tree.nv()) {
  validate(set, model);
  for (const LoopJoint& joint : set) {
    joints_.push_back(loops::detail::make_joint<S>(joint));
    m_ += joints_.back().rows;
  }
  weights = VectorX<S>::Ones(n_);
  phi_ = phi_rate_ = bias_ = c_ = lambda_ = x_ = VectorX<S>::Zero(m_);
  J_ = lu_ = L_ = MatrixX<S>::Zero(m_, n_);
  J_a_ = J_b_ = MatrixX<S>::Zero(6, n_);
  M_ = MK_ = MatrixX<S>::Zero(n_, n_);
  K_ = W_ = MatrixX<S>::Zero(n_, std::max(n_, m_));
  tree_bias_ = force_ = a0_ = y_ = VectorX<S>::Zero(n_);
  A_ = MatrixX<S>::Zero(n_ + m_, n_ + m_);
  b_ = VectorX<S>::Zero(n_ + m_);
  row_order_.resize(static_cast<std::size_t>(m_));
  column_order_.resize(static_cast<std::size_t>(n_));
}

template <class S>
typename Loops<S>::FrameState Loops<S>::frame_state(int link, const Vec3<S>& p) const noexcept {
  FrameState f;
  // The links were checked when the loops were read.
  (void)kinematics_.pose(link, f.X);
  f.X.p = f.X * p;
  (void)kinematics_.velocity(link, f.V, p);
  (void)kinematics_.bias_acceleration(link, f.A, p);
  return f;
}

/// φ, its row of φ' and φ̇' q̇ of the equation u·w = 0.
template <class S>
void Loops<S>::angle_row(const Row& row, const FrameState& a, const FrameState& b, int i) noexcept {
  const Vec3<S> u = a.X.R * row.u;
  const Vec3<S> w = b.X.R * row.w;
  const Vec3<S> normal = w.cross(u);  // φ̇ = (w × u)·(ω_B − ω_A)
  const Vec3<S> turn = b.V.w - a.V.w;
  const Vec3<S> normal_rate = b.V.w.cross(w).cross(u) + w.cross(a.V.w.cross(u));
  phi_[i] = u.dot(w);
  bias_[i] = normal.dot(Vec3<S>(b.A.w - a.A.w)) + normal_rate.dot(turn);
  for (int k = 0; k < n_; ++k)
    J_(i, k) = normal.dot(J_b_.col(k).template head<3>() - J_a_.col(k).template head<3>());
}

/// The same for u·(p_B − p_A) = 0.
template <class S>
void Loops<S>::distance_row(const Row& row, const FrameState& a, const FrameState& b,
                            int i) noexcept {
  const Vec3<S> u = a.X.R * row.u;
  const Vec3<S> u_rate = a.V.w.cross(u);
  const Vec3<S> p = b.X.p - a.X.p;
  const Vec3<S> arm = u.cross(p);  // φ̇ = u·(v_B − v_A) + (u × p)·ω_A
  phi_[i] = u.dot(p);
  bias_[i] = u.dot(Vec3<S>(b.A.v - a.A.v)) + arm.dot(a.A.w) + a.V.w.cross(u_rate).dot(p) +
             S(2) * u_rate.dot(Vec3<S>(b.V.v - a.V.v));
  for (int k = 0; k < n_; ++k)
    J_(i, k) = u.dot(J_b_.col(k).template tail<3>() - J_a_.col(k).template tail<3>()) +
               arm.dot(J_a_.col(k).template head<3>());
}

/// φ, φ' and φ̇' q̇ for the state that the kinematics were updated for.
template <class S>
void Loops<S>::evaluate() noexcept {
  int i = 0;
  for (const Joint& joint : joints_) {
    const FrameState a = frame_state(joint.link_a, joint.p_a);
    const FrameState b = frame_state(joint.link_b, joint.p_b);
    (void)kinematics_.jacobian(joint.link_a, J_a_, joint.p_a);
    (void)kinematics_.jacobian(joint.link_b, J_b_, joint.p_b);
    for (int k = 0; k < joint.rows; ++k, ++i) {
      const Row& row = joint.row[static_cast<std::size_t>(k)];
      if (row.angle)
        angle_row(row, a, b, i);
      else
        distance_row(row, a, b, i);
    }
  }
}

/// Brings the largest remaining element to (k, k); its size.
template <class S>
S Loops<S>::pivot(int k) noexcept {
  int pi = k;
  int pj = k;
  S largest(0);
  for (int j = k; j < n_; ++j) {
    for (int i = k; i < m_; ++i) {
      if (!(loops::detail::magnitude(lu_(i, j)) > largest)) continue;
      largest = loops::detail::magnitude(lu_(i, j));
      pi = i;
      pj = j;
    }
  }
  for (int j = 0; j < n_; ++j) std::swap(lu_(k, j), lu_(pi, j));
  for (int i = 0; i < m_; ++i) std::swap(lu_(i, k), lu_(i, pj));
  std::swap(row_order_[static_cast<std::size_t>(k)], row_order_[static_cast<std::size_t>(pi)]);
  std::swap(column_order_[static_cast<std::size_t>(k)],
            column_order_[static_cast<std::size_t>(pj)]);
  return largest;
}

/// Gaussian elimination of φ' with full pivoting and a rank test. The first `rank` rows of
/// row_order are independent, and with the first columns of column_order they make a regular
/// matrix L_D = (unit lower)(upper), kept in lu.
template <class S>
void Loops<S>::eliminate() noexcept {
  lu_ = J_;
  for (int i = 0; i < m_; ++i) row_order_[static_cast<std::size_t>(i)] = i;
  for (int j = 0; j < n_; ++j) column_order_[static_cast<std::size_t>(j)] = j;
  rank_ = 0;
  S threshold(0);
  const int most = std::min(m_, n_);
  for (int k = 0; k < most; ++k) {
    const S largest = pivot(k);
    if (k == 0) threshold = rank_tolerance * largest;
    if (!(largest > threshold)) return;
    ++rank_;
    for (int i = k + 1; i < m_; ++i) {
      const S f = lu_(i, k) / lu_(k, k);
      lu_(i, k) = f;
      for (int j = k + 1; j < n_; ++j) lu_(i, j) -= f * lu_(k, j);
    }
  }
}

/// What the three methods start from: the arguments checked, M (in the factors as well), τ − C with
/// the external forces, and the constraint L q̈ = c of full rank (Eqs. 15, 18).
template <class S>
Status Loops<S>::prepare(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau, const VectorOut<S>& a,
                         const VectorOut<S>& lambda) noexcept {
  if (const Status s = check<S>(*tree_, q, v, tau, a); failed(s)) return s;
  if (lambda.size() != m_) return Status::wrong_size;
  if (const Status s = kinematics_.update(q, v); failed(s)) return s;
  composite_body_.mass_matrix_here(factors_.matrix());
  M_ = factors_.matrix();
  newton_euler_.bias_with_external_forces(v, tree_bias_);
  force_ = tau - tree_bias_;
  evaluate();
  phi_rate_.noalias() = J_.lazyProduct(v);
  eliminate();
  for (int i = 0; i < rank_; ++i) {
    const int k = row_order_[static_cast<std::size_t>(i)];
    L_.row(i) = J_.row(k);
    c_[i] = -bias_[k] - S(2) * alpha * phi_rate_[k] - beta * beta * phi_[k];
  }
  return Status::ok;
}

/// Multipliers of the independent rows to where they belong; the dropped rows carry nothing.
template <class S>
void Loops<S>::scatter(const VectorX<S>& from, VectorOut<S>& lambda) const noexcept {
  lambda.setZero();
  for (int i = 0; i < rank_; ++i) lambda[row_order_[static_cast<std::size_t>(i)]] = from[i];
}

template <class S>
Status Loops<S>::position_error(VectorIn<S> q, VectorOut<S> phi) noexcept {
  if (phi.size() != m_) return Status::wrong_size;
  if (const Status s = kinematics_.update(q); failed(s)) return s;
  evaluate();
  phi = phi_;
  return result_status<S>(phi);
}

template <class S>
Status Loops<S>::constraint(VectorIn<S> q, VectorIn<S> v, MatrixOut<S> jacobian,
                            VectorOut<S> bias) noexcept {
  if (jacobian.rows() != m_ || jacobian.cols() != n_ || bias.size() != m_)
    return Status::wrong_size;
  if (const Status s = kinematics_.update(q, v); failed(s)) return s;
  evaluate();
  jacobian = J_;
  bias = bias_;
  return merged(result_status<S>(jacobian), result_status<S>(bias));
}

template <class S>
Status Loops<S>::bordered(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau, VectorOut<S> a,
                          VectorOut<S> lambda) noexcept {
  if (const Status s = prepare(q, v, tau, a, lambda); failed(s)) return s;
  const int n = n_;
  const int size = n + rank_;
  // L takes the size of M, so that pivots of either can be judged by one scale.
  const S scale = M_.cwiseAbs().maxCoeff();
  auto A = A_.topLeftCorner(size, size);
  auto b = b_.head(size);
  A.setZero();
  A.topLeftCorner(n, n) = M_;
  for (int i = 0; i < rank_; ++i) {
    for (int j = 0; j < n; ++j) A(n + i, j) = A(j, n + i) = scale * L_(i, j);
    b[n + i] = scale * c_[i];
  }
  b.head(n) = force_;
  if (!loops::detail::solve_general<S>(A, b, scale)) return Status::singular;
  a = b.head(n);
  for (int i = 0; i < rank_; ++i) lambda_[i] = -scale * b[n + i];
  scatter(lambda_, lambda);
  return merged(result_status<S>(a), result_status<S>(lambda));
}

template <class S>
Status Loops<S>::multipliers_first(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau, VectorOut<S> a,
                                   VectorOut<S> lambda) noexcept {
  if (const Status s = prepare(q, v, tau, a, lambda); failed(s)) return s;
  const int n = n_;
  const int r = rank_;
  if (const Status s = factors_.factorize(); failed(s)) return s;
  a = force_;
  factors_.solve(a.data());  // of the tree without its loops
  for (int i = 0; i < r; ++i) {
    for (int j = 0; j < n; ++j) W_(j, i) = L_(i, j);
    factors_.solve(W_.col(i).data());
  }
  auto A = A_.topLeftCorner(r, r);
  A.noalias() = L_.topRows(r).lazyProduct(W_.leftCols(r));
  for (int i = 0; i < r; ++i) lambda_[i] = c_[i] - L_.row(i).dot(a);
  if (cholesky::factorize<S>(A) != Status::ok) return Status::singular;
  if (const Status s = cholesky::solve<S>(A, lambda_.head(r)); failed(s)) return s;
  for (int i = 0; i < r; ++i) a += lambda_[i] * W_.col(i);
  scatter(lambda_, lambda);
  return merged(result_status<S>(a), result_status<S>(lambda));
}

template <class S>
Status Loops<S>::null_space(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau, VectorOut<S> a,
                            VectorOut<S> lambda) noexcept {
  if (const Status s = prepare(q, v, tau, a, lambda); failed(s)) return s;
  const int r = rank_;
  const int free = n_ - r;
  const auto& lu = lu_;
  const auto place = [this](int k) { return column_order_[static_cast<std::size_t>(k)]; };

  for (int i = 0; i < r; ++i)  // c becomes (unit lower)⁻¹ c
    for (int j = 0; j < i; ++j) c_[i] -= lu(i, j) * c_[j];
  auto K = K_.leftCols(free);
  K.setZero();
  a0_.setZero();
  for (int k = 0; k < free; ++k) K(place(r + k), k) = S(1);
  for (int i = r - 1; i >= 0; --i) {  // U₁₁ K₁ = −U₁₂ and U₁₁ q̈₀ = c, from below
    for (int k = 0; k < free; ++k) {
      S sum = -lu(i, r + k);
      for (int j = i + 1; j < r; ++j) sum -= lu(i, j) * K(place(j), k);
      K(place(i), k) = sum / lu(i, i);
    }
    S sum = c_[i];
    for (int j = i + 1; j < r; ++j) sum -= lu(i, j) * a0_[place(j)];
    a0_[place(i)] = sum / lu(i, i);
  }

  auto MK = MK_.leftCols(free);
  auto A = A_.topLeftCorner(free, free);
  auto y = y_.head(free);
  MK.noalias() = M_.lazyProduct(K);
  A.noalias() = K.transpose().lazyProduct(MK);
  y.noalias() = K.transpose().lazyProduct(force_);
  y.noalias() -= MK.transpose().lazyProduct(a0_);
  if (cholesky::factorize<S>(A) != Status::ok) return Status::singular;
  if (const Status s = cholesky::solve<S>(A, y); failed(s)) return s;
  a = a0_;
  a.noalias() += K.lazyProduct(y);

  // L_Dᵀ λ = M q̈ − (τ − C) in the rows of the eliminated coordinates.
  for (int i = 0; i < r; ++i) {
    lambda_[i] = M_.row(place(i)).dot(a) - force_[place(i)];
    for (int j = 0; j < i; ++j) lambda_[i] -= lu(j, i) * lambda_[j];
    lambda_[i] /= lu(i, i);
  }
  for (int i = r - 1; i >= 0; --i)
    for (int j = i + 1; j < r; ++j) lambda_[i] -= lu(j, i) * lambda_[j];
  scatter(lambda_, lambda);
  return merged(result_status<S>(a), result_status<S>(lambda));
}

template <class S>
Status Loops<S>::joint_force(VectorIn<S> lambda, int joint, Force<S>& F_W) const noexcept {
  if (joint < 0 || joint >= static_cast<int>(joints_.size())) return Status::out_of_range;
  if (lambda.size() != m_) return Status::wrong_size;
  int first = 0;
  for (int k = 0; k < joint; ++k) first += joints_[static_cast<std::size_t>(k)].rows;
  const auto& j = joints_[static_cast<std::size_t>(joint)];
  Pose<S> X_a;
  Pose<S> X_b;
  if (const Status s = kinematics_.pose(j.link_a, X_a); failed(s)) return s;
  if (const Status s = kinematics_.pose(j.link_b, X_b); failed(s)) return s;
  F_W = Force<S>::zero();
  for (int i = 0; i < j.rows; ++i) {
    const auto& row = j.row[static_cast<std::size_t>(i)];
    const Vec3<S> u = X_a.R * row.u;
    if (row.angle)
      F_W.n += lambda[first + i] * Vec3<S>(X_b.R * row.w).cross(u);
    else
      F_W.f += lambda[first + i] * u;
  }
  return Status::ok;
}

/// x = (φ' W φ'ᵀ + μ 1)⁻¹ error, then y = W φ'ᵀ x. The damping makes dependent rows harmless.
template <class S>
Status Loops<S>::damped_step(VectorIn<S> error, const S& damping) noexcept {
  const int m = m_;
  auto A = A_.topLeftCorner(m, m);
  for (int j = 0; j < n_; ++j)
    for (int i = 0; i < m; ++i) L_(i, j) = J_(i, j) * weights[j];
  A.noalias() = L_.lazyProduct(J_.transpose());
  const S size = A.trace() / S(m);
  const S mu = size * (S(1e4 * loops::detail::epsilon<S>()) + damping);
  for (int i = 0; i < m; ++i) A(i, i) += mu;
  x_ = error;
  if (cholesky::factorize<S>(A) != Status::ok) return Status::singular;
  if (const Status s = cholesky::solve<S>(A, x_); failed(s)) return s;
  y_.noalias() = L_.transpose().lazyProduct(x_);
  return Status::ok;
}

template <class S>
Status Loops<S>::project(VectorOut<S> q, const S& tolerance, int max_iterations) noexcept {
  for (int k = 0; k <= max_iterations; ++k) {
    if (const Status s = kinematics_.update(q); failed(s)) return s;
    evaluate();
    if (const Status s = result_status<S>(phi_); failed(s)) return s;
    S largest(0);
    for (int i = 0; i < m_; ++i)
      if (loops::detail::magnitude(phi_[i]) > largest) largest = loops::detail::magnitude(phi_[i]);
    if (!(largest > tolerance)) return Status::ok;
    if (k == max_iterations) break;
    const S damping = std::min(S(1), S(phi_.squaredNorm()));
    if (damped_step(phi_, damping) != Status::ok) return Status::not_converged;
    if (const Status s = kinematics_.integrate(q, y_, S(-1), q); failed(s)) return s;
  }
  return Status::not_converged;
}

template <class S>
Status Loops<S>::project_velocity(VectorIn<S> q, VectorOut<S> v) noexcept {
  if (const Status s = check<S>(*tree_, q, VectorIn<S>(v)); failed(s)) return s;
  if (const Status s = kinematics_.update(q); failed(s)) return s;
  if (m_ == 0) return Status::ok;
  evaluate();
  for (int k = 0; k < 3; ++k) {  // each pass leaves 1e4 ε of the error
    phi_rate_.noalias() = J_.lazyProduct(v);
    if (const Status s = damped_step(phi_rate_, S(0)); failed(s)) return s;
    v -= y_;
  }
  return result_status<S>(v);
}

extern template class Loops<double>;
extern template class Loops<float>;

}  // namespace dynamics_core
