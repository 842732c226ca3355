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
#include "dynamics_core/composite_body.hpp"
#include "dynamics_core/kinematics.hpp"
#include "dynamics_core/newton_euler.hpp"

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

using dynamics_core::detail::Identity;

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
  const Eigen::Matrix3d turn =
      Eigen::Quaterniond::FromTwoVectors(Eigen::Vector3d::UnitZ(), from.axis).toRotationMatrix();
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

/// The loop joints of one robot in the scalar type S, how to treat them, and the scratch of the
/// three methods. All memory is taken in the constructor.
template <class S>
class Loops {
 public:
  /// Throws ModelError, see validate().
  Loops(const Model& model, const LoopSet& set) {
    validate(set, model);
    for (const LoopJoint& joint : set) {
      joints.push_back(detail::make_joint<S>(joint));
      m_ += joints.back().rows;
    }
    n_ = model.nv;
    weights = VectorX<S>::Ones(n_);
    phi = phi_rate = bias = c = lambda = x = VectorX<S>::Zero(m_);
    J = lu = L = MatrixX<S>::Zero(m_, n_);
    row = VectorX<S>::Zero(n_);
    J_a = J_b = MatrixX<S>::Zero(6, n_);
    M = MK = MatrixX<S>::Zero(n_, n_);
    K = W = MatrixX<S>::Zero(n_, std::max(n_, m_));
    force = a0 = y = VectorX<S>::Zero(n_);
    A = MatrixX<S>::Zero(n_ + m_, n_ + m_);
    b = VectorX<S>::Zero(n_ + m_);
    row_order.resize(static_cast<std::size_t>(m_));
    column_order.resize(static_cast<std::size_t>(n_));
  }

  /// The number of equations, redundant ones included: the size of φ and λ.
  [[nodiscard]] int rows() const noexcept { return m_; }
  [[nodiscard]] int nv() const noexcept { return n_; }
  /// How many of them were independent, at the last solution.
  [[nodiscard]] int rank() const noexcept { return rank_found; }

  /// Baumgarte's stabilisation: φ̈ = −2α φ̇ − β² φ. α = β damps an error critically, with the time
  /// constant 1/α. Zero: φ̈ = 0, which drifts.
  S alpha = S(0);
  S beta = S(0);
  /// A pivot of φ' is zero below this part of its largest element.
  S rank_tolerance = S(std::sqrt(detail::epsilon<S>()));
  /// project() and project_velocity(): how willing each coordinate (of v) is to move. Zero: held.
  VectorX<S> weights;

  // --- scratch -----------------------------------------------------------------------------------
  std::vector<detail::Joint<S>> joints;
  VectorX<S> phi, phi_rate;  ///< φ, φ̇
  VectorX<S> bias;           ///< φ̇' q̇
  VectorX<S> c;              ///< right-hand side of φ' q̈ = c
  VectorX<S> lambda, x;
  MatrixX<S> J;      ///< φ'
  MatrixX<S> lu, L;  ///< φ' eliminated; independent rows of φ'
  MatrixX<S> J_a, J_b, M, MK, K, W, A;
  VectorX<S> row, force, a0, y, b;
  std::vector<int> row_order, column_order;
  int rank_found = 0;

 private:
  int m_ = 0;
  int n_ = 0;
};

namespace detail {

/// What moves of a link: a frame of the loop joint in the world.
template <class S>
struct FrameState {
  Pose<S> X;  ///< rotation of the link, position of the joint's frame
  Motion<S> V, A;
};

template <class S>
[[nodiscard]] FrameState<S> frame_state(const Workspace<S>& ws, int link,
                                        const Vec3<S>& p) noexcept {
  FrameState<S> f;
  // The links were checked when the loops were read.
  (void)kinematics::pose(ws, link, f.X);
  f.X.p = f.X * p;
  (void)kinematics::velocity(ws, link, f.V, p);
  (void)kinematics::bias_acceleration(ws, link, f.A, p);
  return f;
}

/// φ, its row of φ' and φ̇' q̇ of the equation u·w = 0.
template <class S>
void angle_row(const Row<S>& row, const FrameState<S>& a, const FrameState<S>& b, int i,
               Loops<S>& l) noexcept {
  const Vec3<S> u = a.X.R * row.u;
  const Vec3<S> w = b.X.R * row.w;
  const Vec3<S> normal = w.cross(u);  // φ̇ = (w × u)·(ω_B − ω_A)
  const Vec3<S> turn = b.V.w - a.V.w;
  const Vec3<S> normal_rate = b.V.w.cross(w).cross(u) + w.cross(a.V.w.cross(u));
  l.phi[i] = u.dot(w);
  l.bias[i] = normal.dot(Vec3<S>(b.A.w - a.A.w)) + normal_rate.dot(turn);
  for (int k = 0; k < l.nv(); ++k)
    l.J(i, k) = normal.dot(l.J_b.col(k).template head<3>() - l.J_a.col(k).template head<3>());
}

/// The same for u·(p_B − p_A) = 0.
template <class S>
void distance_row(const Row<S>& row, const FrameState<S>& a, const FrameState<S>& b, int i,
                  Loops<S>& l) noexcept {
  const Vec3<S> u = a.X.R * row.u;
  const Vec3<S> u_rate = a.V.w.cross(u);
  const Vec3<S> p = b.X.p - a.X.p;
  const Vec3<S> arm = u.cross(p);  // φ̇ = u·(v_B − v_A) + (u × p)·ω_A
  l.phi[i] = u.dot(p);
  l.bias[i] = u.dot(Vec3<S>(b.A.v - a.A.v)) + arm.dot(a.A.w) + a.V.w.cross(u_rate).dot(p) +
              S(2) * u_rate.dot(Vec3<S>(b.V.v - a.V.v));
  for (int k = 0; k < l.nv(); ++k)
    l.J(i, k) = u.dot(l.J_b.col(k).template tail<3>() - l.J_a.col(k).template tail<3>()) +
                arm.dot(l.J_a.col(k).template head<3>());
}

/// φ, φ' and φ̇' q̇ for the state that kinematics::update left.
template <class S>
void evaluate(const Workspace<S>& ws, Loops<S>& l) noexcept {
  int i = 0;
  for (const Joint<S>& joint : l.joints) {
    const FrameState<S> a = frame_state<S>(ws, joint.link_a, joint.p_a);
    const FrameState<S> b = frame_state<S>(ws, joint.link_b, joint.p_b);
    (void)kinematics::jacobian(ws, joint.link_a, l.J_a, joint.p_a);
    (void)kinematics::jacobian(ws, joint.link_b, l.J_b, joint.p_b);
    for (int k = 0; k < joint.rows; ++k, ++i) {
      const Row<S>& row = joint.row[static_cast<std::size_t>(k)];
      if (row.angle)
        angle_row<S>(row, a, b, i, l);
      else
        distance_row<S>(row, a, b, i, l);
    }
  }
}

template <class S>
[[nodiscard]] S magnitude(const S& x) noexcept {
  return x < S(0) ? S(-x) : x;
}

/// Brings the largest remaining element to (k, k); its size.
template <class S>
[[nodiscard]] S pivot(Loops<S>& l, int k) noexcept {
  int pi = k;
  int pj = k;
  S largest(0);
  for (int j = k; j < l.nv(); ++j) {
    for (int i = k; i < l.rows(); ++i) {
      if (!(magnitude(l.lu(i, j)) > largest)) continue;
      largest = magnitude(l.lu(i, j));
      pi = i;
      pj = j;
    }
  }
  for (int j = 0; j < l.nv(); ++j) std::swap(l.lu(k, j), l.lu(pi, j));
  for (int i = 0; i < l.rows(); ++i) std::swap(l.lu(i, k), l.lu(i, pj));
  std::swap(l.row_order[static_cast<std::size_t>(k)], l.row_order[static_cast<std::size_t>(pi)]);
  std::swap(l.column_order[static_cast<std::size_t>(k)],
            l.column_order[static_cast<std::size_t>(pj)]);
  return largest;
}

/// Gaussian elimination of φ' with full pivoting and a rank test. The first `rank` rows of
/// row_order are independent, and with the first columns of column_order they make a regular
/// matrix L_D = (unit lower)(upper), kept in lu.
template <class S>
void eliminate(Loops<S>& l) noexcept {
  l.lu = l.J;
  for (int i = 0; i < l.rows(); ++i) l.row_order[static_cast<std::size_t>(i)] = i;
  for (int j = 0; j < l.nv(); ++j) l.column_order[static_cast<std::size_t>(j)] = j;
  l.rank_found = 0;
  S threshold(0);
  const int most = std::min(l.rows(), l.nv());
  for (int k = 0; k < most; ++k) {
    const S largest = pivot<S>(l, k);
    if (k == 0) threshold = l.rank_tolerance * largest;
    if (!(largest > threshold)) return;
    ++l.rank_found;
    for (int i = k + 1; i < l.rows(); ++i) {
      const S f = l.lu(i, k) / l.lu(k, k);
      l.lu(i, k) = f;
      for (int j = k + 1; j < l.nv(); ++j) l.lu(i, j) -= f * l.lu(k, j);
    }
  }
}

/// A x = b by elimination with row exchanges, b becomes x. False where a pivot is lost.
template <class S>
[[nodiscard]] bool solve_general(Eigen::Ref<MatrixX<S>> A, Eigen::Ref<VectorX<S>> b,
                                 const S& scale) noexcept {
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

template <class S>
[[nodiscard]] Status check(const Workspace<S>& ws, const Loops<S>& l, VectorIn<S> v,
                           VectorIn<S> tau, const VectorOut<S>& a,
                           const VectorOut<S>& lambda) noexcept {
  if (l.nv() != ws.nv()) return Status::wrong_size;
  if (const Status s = check_v<S>(ws, v); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, tau); s != Status::ok) return s;
  return a.size() == ws.nv() && lambda.size() == l.rows() ? Status::ok : Status::wrong_size;
}

/// What the three methods start from: M (in ws.M as well), τ − C with the external forces, and the
/// constraint L q̈ = c of full rank (Eqs. 15, 18).
template <class S>
[[nodiscard]] Status prepare(Workspace<S>& ws, Loops<S>& l, VectorIn<S> q, VectorIn<S> v,
                             VectorIn<S> tau) noexcept {
  if (const Status s = kinematics::update<S>(ws, q, v); s != Status::ok) return s;
  if (const Status s = composite_body::mass_matrix<S>(ws, q, ws.M); s != Status::ok) return s;
  l.M = ws.M;
  VectorOut<S> bias(ws.bias);
  newton_euler::detail::recursion<true, S>(ws, v, ws.zero_v, bias);
  l.force = tau - ws.bias;
  evaluate<S>(ws, l);
  l.phi_rate.noalias() = l.J.lazyProduct(v);
  eliminate<S>(l);
  for (int i = 0; i < l.rank_found; ++i) {
    const int k = l.row_order[static_cast<std::size_t>(i)];
    l.L.row(i) = l.J.row(k);
    l.c[i] = -l.bias[k] - S(2) * l.alpha * l.phi_rate[k] - l.beta * l.beta * l.phi[k];
  }
  return Status::ok;
}

/// Multipliers of the independent rows to where they belong; the dropped rows carry nothing.
template <class S>
void scatter(const Loops<S>& l, const VectorX<S>& from, VectorOut<S>& lambda) noexcept {
  lambda.setZero();
  for (int i = 0; i < l.rank_found; ++i) lambda[l.row_order[static_cast<std::size_t>(i)]] = from[i];
}

}  // namespace detail

// --- Constraints ---------------------------------------------------------------------------------

/// φ(q), metres and sines of angles.
template <class S>
[[nodiscard]] Status position_error(Workspace<S>& ws, Loops<S>& loops, VectorIn<S> q,
                                    VectorOut<S> phi) noexcept {
  if (phi.size() != loops.rows() || loops.nv() != ws.nv()) return Status::wrong_size;
  if (const Status s = kinematics::update<S>(ws, q); s != Status::ok) return s;
  detail::evaluate<S>(ws, loops);
  phi = loops.phi;
  return Status::ok;
}

/// φ'(q), rows × nv, with φ̇ = φ' v; and φ̇' v, with φ̈ = φ' v̇ + φ̇' v (Eq. 17).
template <class S>
[[nodiscard]] Status constraint(Workspace<S>& ws, Loops<S>& loops, VectorIn<S> q, VectorIn<S> v,
                                MatrixOut<S> jacobian, VectorOut<S> bias) noexcept {
  if (jacobian.rows() != loops.rows() || jacobian.cols() != ws.nv() || loops.nv() != ws.nv() ||
      bias.size() != loops.rows())
    return Status::wrong_size;
  if (const Status s = kinematics::update<S>(ws, q, v); s != Status::ok) return s;
  detail::evaluate<S>(ws, loops);
  jacobian = loops.J;
  bias = loops.bias;
  return Status::ok;
}

// --- Forward dynamics ----------------------------------------------------------------------------
// All three give q̈ and one multiplier per equation, zero for those left out as redundant (their
// share of the load is not determined by rigid bodies). External forces are included.

/// Method 1: the bordered system (Eq. 20). Works with a singular M as long as the loops hold what M
/// leaves open.
template <class S>
[[nodiscard]] Status bordered(Workspace<S>& ws, Loops<S>& loops, VectorIn<S> q, VectorIn<S> v,
                              VectorIn<S> tau, VectorOut<S> a, VectorOut<S> lambda) noexcept {
  auto& l = loops;
  if (const Status s = detail::check<S>(ws, l, v, tau, a, lambda); s != Status::ok) return s;
  if (const Status s = detail::prepare<S>(ws, l, q, v, tau); s != Status::ok) return s;
  const int n = ws.nv();
  const int size = n + l.rank_found;
  // L takes the size of M, so that pivots of either can be judged by one scale.
  const S scale = l.M.cwiseAbs().maxCoeff();
  auto A = l.A.topLeftCorner(size, size);
  auto b = l.b.head(size);
  A.setZero();
  A.topLeftCorner(n, n) = l.M;
  for (int i = 0; i < l.rank_found; ++i) {
    for (int j = 0; j < n; ++j) A(n + i, j) = A(j, n + i) = scale * l.L(i, j);
    b[n + i] = scale * l.c[i];
  }
  b.head(n) = l.force;
  if (!detail::solve_general<S>(A, b, scale)) return Status::singular;
  a = b.head(n);
  for (int i = 0; i < l.rank_found; ++i) l.lambda[i] = -scale * b[n + i];
  detail::scatter<S>(l, l.lambda, lambda);
  return Status::ok;
}

/// Method 2: the multipliers first, L M⁻¹ Lᵀ λ = c − L M⁻¹ (τ − C) (Eq. 21), with the tree's sparse
/// factors of M. The cheapest where the loops are few; M has to be regular.
template <class S>
[[nodiscard]] Status multipliers_first(Workspace<S>& ws, Loops<S>& loops, VectorIn<S> q,
                                       VectorIn<S> v, VectorIn<S> tau, VectorOut<S> a,
                                       VectorOut<S> lambda) noexcept {
  auto& l = loops;
  if (const Status s = detail::check<S>(ws, l, v, tau, a, lambda); s != Status::ok) return s;
  if (const Status s = detail::prepare<S>(ws, l, q, v, tau); s != Status::ok) return s;
  const int n = ws.nv();
  const int r = l.rank_found;
  if (const Status s = cholesky::factorize_mass_matrix<S>(ws); s != Status::ok) return s;
  const auto view = cholesky::detail::mass_matrix_view<S>(ws);
  a = l.force;
  cholesky::detail::solve(view, a.data());  // of the tree without its loops
  for (int i = 0; i < r; ++i) {
    for (int j = 0; j < n; ++j) l.W(j, i) = l.L(i, j);
    cholesky::detail::solve(view, l.W.col(i).data());
  }
  auto A = l.A.topLeftCorner(r, r);
  A.noalias() = l.L.topRows(r).lazyProduct(l.W.leftCols(r));
  for (int i = 0; i < r; ++i) l.lambda[i] = l.c[i] - l.L.row(i).dot(a);
  if (cholesky::factorize<S>(A) != Status::ok) return Status::singular;
  if (const Status s = cholesky::solve<S>(A, l.lambda.head(r)); s != Status::ok) return s;
  for (int i = 0; i < r; ++i) a += l.lambda[i] * l.W.col(i);
  detail::scatter<S>(l, l.lambda, lambda);
  return Status::ok;
}

/// Method 3: q̈ = K y + q̈₀ with L K = 0 by elimination, then Kᵀ M K y = Kᵀ(τ − C − M q̈₀) (Eq. 22);
/// the multipliers follow from what is left over. The cheapest where little freedom remains, and
/// works with a singular M as method 1 does.
template <class S>
[[nodiscard]] Status null_space(Workspace<S>& ws, Loops<S>& loops, VectorIn<S> q, VectorIn<S> v,
                                VectorIn<S> tau, VectorOut<S> a, VectorOut<S> lambda) noexcept {
  auto& l = loops;
  if (const Status s = detail::check<S>(ws, l, v, tau, a, lambda); s != Status::ok) return s;
  if (const Status s = detail::prepare<S>(ws, l, q, v, tau); s != Status::ok) return s;
  const int r = l.rank_found;
  const int free = ws.nv() - r;
  const auto& lu = l.lu;
  const auto place = [&l](int k) { return l.column_order[static_cast<std::size_t>(k)]; };

  for (int i = 0; i < r; ++i)  // c becomes (unit lower)⁻¹ c
    for (int j = 0; j < i; ++j) l.c[i] -= lu(i, j) * l.c[j];
  auto K = l.K.leftCols(free);
  K.setZero();
  l.a0.setZero();
  for (int k = 0; k < free; ++k) K(place(r + k), k) = S(1);
  for (int i = r - 1; i >= 0; --i) {  // U₁₁ K₁ = −U₁₂ and U₁₁ q̈₀ = c, from below
    for (int k = 0; k < free; ++k) {
      S sum = -lu(i, r + k);
      for (int j = i + 1; j < r; ++j) sum -= lu(i, j) * K(place(j), k);
      K(place(i), k) = sum / lu(i, i);
    }
    S sum = l.c[i];
    for (int j = i + 1; j < r; ++j) sum -= lu(i, j) * l.a0[place(j)];
    l.a0[place(i)] = sum / lu(i, i);
  }

  auto MK = l.MK.leftCols(free);
  auto A = l.A.topLeftCorner(free, free);
  auto y = l.y.head(free);
  MK.noalias() = l.M.lazyProduct(K);
  A.noalias() = K.transpose().lazyProduct(MK);
  y.noalias() = K.transpose().lazyProduct(l.force);
  y.noalias() -= MK.transpose().lazyProduct(l.a0);
  if (cholesky::factorize<S>(A) != Status::ok) return Status::singular;
  if (const Status s = cholesky::solve<S>(A, y); s != Status::ok) return s;
  a = l.a0;
  a.noalias() += K.lazyProduct(y);

  // L_Dᵀ λ = M q̈ − (τ − C) in the rows of the eliminated coordinates.
  for (int i = 0; i < r; ++i) {
    l.lambda[i] = l.M.row(place(i)).dot(a) - l.force[place(i)];
    for (int j = 0; j < i; ++j) l.lambda[i] -= lu(j, i) * l.lambda[j];
    l.lambda[i] /= lu(i, i);
  }
  for (int i = r - 1; i >= 0; --i)
    for (int j = i + 1; j < r; ++j) l.lambda[i] -= lu(j, i) * l.lambda[j];
  detail::scatter<S>(l, l.lambda, lambda);
  return Status::ok;
}

/// The force [n; f] that loop joint k exerts on its link b, about the origin of frame B in world
/// axes, at the configuration of the last solution; on link a acts the opposite, about the same
/// point.
template <class S>
[[nodiscard]] Status joint_force(const Workspace<S>& ws, const Loops<S>& loops, VectorIn<S> lambda,
                                 int joint, Force<S>& F_W) noexcept {
  if (joint < 0 || joint >= static_cast<int>(loops.joints.size())) return Status::out_of_range;
  if (lambda.size() != loops.rows()) return Status::wrong_size;
  int first = 0;
  for (int k = 0; k < joint; ++k) first += loops.joints[static_cast<std::size_t>(k)].rows;
  const auto& j = loops.joints[static_cast<std::size_t>(joint)];
  Pose<S> X_a;
  Pose<S> X_b;
  if (const Status s = kinematics::pose(ws, j.link_a, X_a); s != Status::ok) return s;
  if (const Status s = kinematics::pose(ws, j.link_b, X_b); s != Status::ok) return s;
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

// --- Consistent states ---------------------------------------------------------------------------

namespace detail {

/// x = (φ' W φ'ᵀ + μ 1)⁻¹ error, then W φ'ᵀ x. The damping makes dependent rows harmless.
template <class S>
[[nodiscard]] Status damped_step(Loops<S>& l, VectorIn<S> error, const S& damping,
                                 VectorX<S>& step) noexcept {
  const int m = l.rows();
  auto A = l.A.topLeftCorner(m, m);
  for (int j = 0; j < l.nv(); ++j)
    for (int i = 0; i < m; ++i) l.L(i, j) = l.J(i, j) * l.weights[j];
  A.noalias() = l.L.lazyProduct(l.J.transpose());
  const S size = A.trace() / S(m);
  const S mu = size * (S(1e4 * epsilon<S>()) + damping);
  for (int i = 0; i < m; ++i) A(i, i) += mu;
  l.x = error;
  if (cholesky::factorize<S>(A) != Status::ok) return Status::singular;
  if (const Status s = cholesky::solve<S>(A, l.x); s != Status::ok) return s;
  step.noalias() = l.L.transpose().lazyProduct(l.x);
  return Status::ok;
}

}  // namespace detail

/// Moves q to the nearest configuration with |φ| ≤ tolerance, by Levenberg–Marquardt steps whose
/// damping |φ|² vanishes at the solution, so that convergence is fast even where φ' loses rank
/// (Yamashita & Fukushima 2001). q keeps its last value where that fails: Status::not_converged.
/// Axes that should be parallel may end up opposed if they start nearer to that.
template <class S>
[[nodiscard]] Status project(
    Workspace<S>& ws, Loops<S>& loops, VectorOut<S> q,
    const typename detail::Identity<S>::Type& tolerance = S(1e4 * detail::epsilon<S>()),
    int max_iterations = 100) noexcept {
  if (loops.nv() != ws.nv()) return Status::wrong_size;
  for (int k = 0; k <= max_iterations; ++k) {
    if (const Status s = kinematics::update<S>(ws, q); s != Status::ok) return s;
    detail::evaluate<S>(ws, loops);
    S largest(0);
    for (int i = 0; i < loops.rows(); ++i)
      if (detail::magnitude(loops.phi[i]) > largest) largest = detail::magnitude(loops.phi[i]);
    if (!(largest > tolerance)) return Status::ok;
    if (k == max_iterations) break;
    const S damping = std::min(S(1), S(loops.phi.squaredNorm()));
    if (detail::damped_step<S>(loops, loops.phi, damping, loops.y) != Status::ok)
      return Status::not_converged;
    if (const Status s = kinematics::integrate<S>(ws, q, loops.y, S(-1), q); s != Status::ok)
      return s;
  }
  return Status::not_converged;
}

/// Takes out of v what violates φ' v = 0, changing it as little as possible.
template <class S>
[[nodiscard]] Status project_velocity(Workspace<S>& ws, Loops<S>& loops, VectorIn<S> q,
                                      VectorOut<S> v) noexcept {
  if (loops.nv() != ws.nv()) return Status::wrong_size;
  if (const Status s = check_v<S>(ws, v); s != Status::ok) return s;
  if (const Status s = kinematics::update<S>(ws, q); s != Status::ok) return s;
  if (loops.rows() == 0) return Status::ok;
  detail::evaluate<S>(ws, loops);
  for (int k = 0; k < 3; ++k) {  // each pass leaves 1e4 ε of the error
    loops.phi_rate.noalias() = loops.J.lazyProduct(v);
    if (const Status s = detail::damped_step<S>(loops, loops.phi_rate, S(0), loops.y);
        s != Status::ok)
      return s;
    v -= loops.y;
  }
  return Status::ok;
}

}  // namespace loops
}  // namespace dynamics_core
