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
/// All quantities are in the axes of the first body, about its origin. There each pair of a body and
/// one of its ancestors costs no more than five inner products, nothing depends on the first joint's
/// angle but the direction of gravity, and but for poses and sums along the tree all bodies are
/// alike: they are treated in groups of as many as a block holds (blocks.hpp).

#include <array>
#include <type_traits>
#include <utility>
#include <vector>

#include "dynamics_core/blocks.hpp"
#include "dynamics_core/cholesky.hpp"
#include "dynamics_core/joint_space.hpp"
#include "dynamics_core/kinematics.hpp"
#include "dynamics_core/tree.hpp"

namespace dynamics_core {

namespace derivatives {

/// A number of each body of a group. (A block by itself would be returned in other registers by
/// other instruction sets, which compilers warn of.)
template <class S>
struct Numbers {
  Block<S> all;

  RD_INLINE friend Numbers operator+(const Numbers& a, const Numbers& b) noexcept {
    return {a.all + b.all};
  }
  RD_INLINE friend Numbers operator-(const Numbers& a, const Numbers& b) noexcept {
    return {a.all - b.all};
  }
  RD_INLINE friend Numbers operator*(const Numbers& a, const Numbers& b) noexcept {
    return {a.all * b.all};
  }
  RD_INLINE friend Numbers operator*(const S& a, const Numbers& b) noexcept { return {a * b.all}; }
  RD_INLINE Numbers& operator+=(const Numbers& b) noexcept {
    all += b.all;
    return *this;
  }
};

// --- Vectors of one body (T is a number), or of each body of a group -----------------------------

template <class T>
struct Vector {
  T x, y, z;
};
template <class T>
[[nodiscard]] RD_INLINE Vector<T> operator+(const Vector<T>& a, const Vector<T>& b) noexcept {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
template <class T>
[[nodiscard]] RD_INLINE Vector<T> operator-(const Vector<T>& a, const Vector<T>& b) noexcept {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}
template <class T>
[[nodiscard]] RD_INLINE Vector<T> operator*(const T& s, const Vector<T>& a) noexcept {
  return {s * a.x, s * a.y, s * a.z};
}
template <class T>
[[nodiscard]] RD_INLINE T dot(const Vector<T>& a, const Vector<T>& b) noexcept {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
template <class T>
[[nodiscard]] RD_INLINE Vector<T> cross(const Vector<T>& a, const Vector<T>& b) noexcept {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

/// A motion [ω; v] or a force [n; f].
template <class T>
struct Spatial {
  Vector<T> angular, linear;
};
template <class T>
[[nodiscard]] RD_INLINE Spatial<T> operator+(const Spatial<T>& a, const Spatial<T>& b) noexcept {
  return {a.angular + b.angular, a.linear + b.linear};
}
template <class T>
[[nodiscard]] RD_INLINE Spatial<T> operator*(const T& s, const Spatial<T>& a) noexcept {
  return {s * a.angular, s * a.linear};
}
template <class T>
[[nodiscard]] RD_INLINE T dot(const Spatial<T>& V, const Spatial<T>& F) noexcept {
  return dot(V.angular, F.angular) + dot(V.linear, F.linear);
}
/// V × U of motions
template <class T>
[[nodiscard]] RD_INLINE Spatial<T> cross(const Spatial<T>& V, const Spatial<T>& U) noexcept {
  return {cross(V.angular, U.angular), cross(V.linear, U.angular) + cross(V.angular, U.linear)};
}
/// V ×* F of a motion and a force
template <class T>
[[nodiscard]] RD_INLINE Spatial<T> cross_force(const Spatial<T>& V, const Spatial<T>& F) noexcept {
  return {cross(V.angular, F.angular) + cross(V.linear, F.linear), cross(V.angular, F.linear)};
}

/// A matrix by its columns.
template <class T>
struct Matrix {
  Vector<T> x, y, z;
};
template <class T>
[[nodiscard]] RD_INLINE Vector<T> operator*(const Matrix<T>& A, const Vector<T>& u) noexcept {
  return u.x * A.x + u.y * A.y + u.z * A.z;
}
/// Aᵀ u
template <class T>
[[nodiscard]] RD_INLINE Vector<T> transposed(const Matrix<T>& A, const Vector<T>& u) noexcept {
  return {dot(A.x, u), dot(A.y, u), dot(A.z, u)};
}

/// Particles at r: m = Σ m, h = Σ m r, and their second moments K = Σ m r rᵀ, of which the moments of
/// inertia are tr(K) 1 − K.
template <class T>
struct Inertia {
  T m;
  Vector<T> h;
  T xx, xy, xz, yy, yz, zz;

  /// K in columns.
  [[nodiscard]] RD_INLINE Matrix<T> moments() const noexcept {
    return {{xx, xy, xz}, {xy, yy, yz}, {xz, yz, zz}};
  }
  /// Momentum (or force) of the motion V.
  [[nodiscard]] RD_INLINE Spatial<T> operator*(const Spatial<T>& V) const noexcept {
    const Vector<T>& w = V.angular;
    const Vector<T> turning = {(yy + zz) * w.x - xy * w.y - xz * w.z,
                               (xx + zz) * w.y - xy * w.x - yz * w.z,
                               (xx + yy) * w.z - xz * w.x - yz * w.y};
    return {turning + cross(h, V.linear), m * V.linear - cross(h, w)};
  }
};

/// Half of the paper's B (Eq. 12), of particles at r that move with ṙ: B u = [Σ m r × (ω_u × ṙ);
/// ω_u × Σ m ṙ]. Of its 36 elements twelve numbers are left, G = Σ m ṙ rᵀ and p = Σ m ṙ, as
/// r × (ω × ṙ) = (r·ṙ) ω − ṙ (r·ω).
template <class T>
struct Convection {
  Matrix<T> G;
  Vector<T> p;

  [[nodiscard]] RD_INLINE T trace() const noexcept { return G.x.x + G.y.y + G.z.z; }
  /// B u of a motion with the angular part w
  [[nodiscard]] RD_INLINE Spatial<T> operator*(const Vector<T>& w) const noexcept {
    return {trace() * w - G * w, cross(w, p)};
  }
};
/// The angular part of Bᵀ u; the linear one is zero.
template <class T>
[[nodiscard]] RD_INLINE Vector<T> transposed(const Convection<T>& B, const Spatial<T>& u) noexcept {
  return B.trace() * u.angular - transposed(B.G, u.angular) + cross(B.p, u.linear);
}

// --- The same where it is stored -----------------------------------------------------------------

/// `count` numbers of each body of a group.
template <class S, std::size_t count>
using Rows = std::array<std::array<S, block_width<S>>, count>;

template <class S>
[[nodiscard]] RD_INLINE Numbers<S> numbers(const std::array<S, block_width<S>>& from) noexcept {
  Numbers<S> to;
  load_block<S>(from.data(), to.all);
  return to;
}
/// Three of the rows.
template <class S, std::size_t count>
[[nodiscard]] RD_INLINE Vector<Numbers<S>> vector(
    const std::array<std::array<S, block_width<S>>, count>& rows, std::size_t first = 0) noexcept {
  return {numbers<S>(rows[first]), numbers<S>(rows[first + 1]), numbers<S>(rows[first + 2])};
}
template <class S>
[[nodiscard]] RD_INLINE Spatial<Numbers<S>> spatial(const Rows<S, 6>& rows) noexcept {
  return {vector<S>(rows), vector<S>(rows, 3)};
}
template <class S, std::size_t count>
RD_INLINE void store(const Vector<Numbers<S>>& from,
                     std::array<std::array<S, block_width<S>>, count>& rows,
                     std::size_t first = 0) noexcept {
  store_block<S>(from.x.all, rows[first].data());
  store_block<S>(from.y.all, rows[first + 1].data());
  store_block<S>(from.z.all, rows[first + 2].data());
}
template <class S>
RD_INLINE void store(const Spatial<Numbers<S>>& from, Rows<S, 6>& rows) noexcept {
  store<S>(from.angular, rows);
  store<S>(from.linear, rows, 3);
}

/// f(c) for each row c, written out. (GCC would gather the rows of one body into registers.)
template <class F, std::size_t... c>
RD_INLINE void for_rows(F&& f, std::index_sequence<c...> /*rows*/) noexcept {
  (f(std::integral_constant<std::size_t, c>()), ...);
}
template <std::size_t count, class F>
RD_INLINE void for_rows(F&& f) noexcept {
  for_rows(f, std::make_index_sequence<count>());
}

/// m, h and K
template <class S>
[[nodiscard]] RD_INLINE Inertia<Numbers<S>> inertia(const Rows<S, 10>& rows) noexcept {
  return {numbers<S>(rows[0]), vector<S>(rows, 1),  numbers<S>(rows[4]), numbers<S>(rows[5]),
          numbers<S>(rows[6]), numbers<S>(rows[7]), numbers<S>(rows[8]), numbers<S>(rows[9])};
}
template <class S>
RD_INLINE void store(const Inertia<Numbers<S>>& A, Rows<S, 10>& rows) noexcept {
  store_block<S>(A.m.all, rows[0].data());
  store<S>(A.h, rows, 1);
  store<S>(Vector<Numbers<S>>{A.xx, A.xy, A.xz}, rows, 4);
  store<S>(Vector<Numbers<S>>{A.yy, A.yz, A.zz}, rows, 7);
}

/// G and p
template <class S>
[[nodiscard]] RD_INLINE Convection<Numbers<S>> convection(const Rows<S, 12>& rows) noexcept {
  return {{vector<S>(rows), vector<S>(rows, 3), vector<S>(rows, 6)}, vector<S>(rows, 9)};
}
template <class S>
RD_INLINE void store(const Convection<Numbers<S>>& B, Rows<S, 12>& rows) noexcept {
  store<S>(B.G.x, rows);
  store<S>(B.G.y, rows, 3);
  store<S>(B.G.z, rows, 6);
  store<S>(B.p, rows, 9);
}

/// The inertia A in the frame in which X = (R, p) is the pose of its own; tr(K) does not turn.
template <class T>
[[nodiscard]] RD_INLINE Inertia<T> moved(const Matrix<T>& R, const Vector<T>& p,
                                         const Inertia<T>& A) noexcept {
  const Vector<T> row_x = {R.x.x, R.y.x, R.z.x};
  const Vector<T> row_y = {R.x.y, R.y.y, R.z.y};
  const Vector<T> row_z = {R.x.z, R.y.z, R.z.z};
  const Matrix<T> K = A.moments();
  const Vector<T> x = K * row_x;
  const Vector<T> y = K * row_y;
  const T xx = dot(row_x, x);
  const T yy = dot(row_y, y);
  const Vector<T> h = R * A.h;
  const Vector<T> k = h + A.m * p;  // K + h pᵀ + p hᵀ + m p pᵀ, each m p taken up into k
  return {A.m,
          k,
          xx + (h.x + k.x) * p.x,
          dot(row_y, x) + h.x * p.y + p.x * k.y,
          dot(row_z, x) + h.x * p.z + p.x * k.z,
          yy + (h.y + k.y) * p.y,
          dot(row_z, y) + h.y * p.z + p.y * k.z,
          A.xx + A.yy + A.zz - xx - yy + (h.z + k.z) * p.z};
}

/// Six blocks of a row at a time: so many sums need not wait for each other.
template <class S>
class SixBlocks {
 public:
  RD_INLINE explicit SixBlocks(const S* from) noexcept {
    for_rows<6>([&](auto c) { load_block<S>(from + c * block_width<S>, blocks_[c]); });
  }
  RD_INLINE void store(S* to) const noexcept {
    for_rows<6>([&](auto c) { store_block<S>(blocks_[c], to + c * block_width<S>); });
  }
  RD_INLINE void multiply(const S& x) noexcept {
    for_rows<6>([&](auto c) { blocks_[c] = x * blocks_[c]; });
  }
  /// −= x row
  RD_INLINE void subtract(const S& x, const S* row) noexcept {
    const SixBlocks r(row);
    for_rows<6>([&](auto c) { blocks_[c] -= x * r.blocks_[c]; });
  }

 private:
  Block<S> blocks_[6];
};

}  // namespace derivatives

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
  template <std::size_t count>
  using Rows = derivatives::Rows<S, count>;
  template <class T>
  using Vector = derivatives::Vector<T>;
  template <class T>
  using Matrix = derivatives::Matrix<T>;
  template <class T>
  using Spatial = derivatives::Spatial<T>;
  template <class T>
  using Inertia = derivatives::Inertia<T>;
  template <class T>
  using Convection = derivatives::Convection<T>;
  using Numbers = derivatives::Numbers<S>;
  static constexpr int width = block_width<S>;
  static constexpr int panel = 2 * width;  ///< coordinates whose columns are treated together

  /// As many bodies as a block holds. Beyond the last one there is nothing but zeros.
  struct Group {
    Rows<10> own;     ///< the bodies' inertias in their frames; constant until a payload changes
    Rows<2> h_parts;  ///< h is the first of them of a turn about z, the second of a slide; constant
    Rows<12> X;       ///< poses: R by columns, p
    Rows<6> h;        ///< the joints' axes
    Rows<6> V, A;     ///< velocities and accelerations
    Rows<6> V_outer, A_outer;  ///< those of the bodies that carry the joints
    Rows<6> psi, psi_d;  ///< Ψ̇, the rate of h where the joint's parent carries it, and Ψ̈
    Rows<6> phi;         ///< Ψ̇ + ḣ
    Rows<6> fv;          ///< v × I v less the external force
    Rows<10> I, IC;      ///< inertias, and those of the subtrees
    Rows<12> B;          ///< of the bodies, then of the subtrees
    Rows<6> F;           ///< likewise
    Rows<6> of_q, of_v;  ///< what a joint's position and velocity add to F
    Rows<6> Ih;          ///< what its acceleration adds
    Rows<3> Bh;          ///< Bᵀ h, twice the half
  };
  struct Place {
    int outer;  ///< the body that carries the joint, −1: the base
    int end;    ///< of the subtree, which is one range of bodies
  };
  /// Of the coordinates of a tree and of a subtree, as elements of M are not zero.
  struct Range {
    int tree_begin, tree_end, subtree_end;
    int depth;  ///< how many ancestors the coordinate has
  };
  /// Which of the three matrices in rows_.
  enum Part { of_position, of_velocity, of_effort };

  [[nodiscard]] RD_INLINE Group& group(int body) noexcept {
    return group_.data()[static_cast<unsigned>(body) / width];
  }
  [[nodiscard]] RD_INLINE const Group& group(int body) const noexcept {
    return group_.data()[static_cast<unsigned>(body) / width];
  }
  [[nodiscard]] RD_INLINE static std::size_t lane(int body) noexcept {
    return static_cast<unsigned>(body) % width;
  }

  /// Of one body.
  [[nodiscard]] RD_INLINE static derivatives::Spatial<S> at(const Rows<6>& rows,
                                                            int body) noexcept {
    const std::size_t k = lane(body);
    return {{rows[0][k], rows[1][k], rows[2][k]}, {rows[3][k], rows[4][k], rows[5][k]}};
  }
  RD_INLINE static void put(const derivatives::Spatial<S>& from, Rows<6>& rows,
                            std::size_t k) noexcept {
    rows[0][k] = from.angular.x;
    rows[1][k] = from.angular.y;
    rows[2][k] = from.angular.z;
    rows[3][k] = from.linear.x;
    rows[4][k] = from.linear.y;
    rows[5][k] = from.linear.z;
  }
  [[nodiscard]] constexpr static int whole_blocks(int n) noexcept { return n & ~(width - 1); }

  /// Of rows_: a row's columns in the panel that begins with the coordinate c.
  [[nodiscard]] RD_INLINE S* part_of_row(int row, int c) noexcept {
    return rows_.data() + 3 * (c * tree_->nv() + panel * row);
  }

  void find_ranges();
  void update_constants() noexcept;
  void pose_bodies() noexcept;
  void move(VectorIn<S> v) noexcept;
  void subtract_external_forces() noexcept;
  template <bool with_acceleration>
  void accelerate(VectorIn<S> v, VectorIn<S> a) noexcept;
  template <std::size_t count>
  void collect(Rows<count> Group::*rows) noexcept;
  void unit_forces() noexcept;
  void differentiate() noexcept;
  template <class Put>
  void mass_matrix(Put&& put) noexcept;
  void put_mass_matrix(MatrixOut<S>& M) noexcept;
  void bias(VectorOut<S>& tau) const noexcept;
  template <class OfQ, class OfV>
  void pairs(OfQ&& of_q, OfV&& of_v) noexcept;
  template <class OfQ>
  void take_forces_from_floating_joints(OfQ&& of_q) noexcept;
  [[nodiscard]] StatusOf<S> factorized_mass_matrix() noexcept;
  void eliminate_upwards() noexcept;
  void substitute_downwards() noexcept;

  Tree<S>* tree_;
  unsigned revision_ = 0;
  std::vector<Group, BlockAllocator<Group>> group_;
  std::vector<Place> place_;           ///< by body
  std::array<BlockVector<S>, 4> row_;  ///< elements of a row or column, by body
  MassMatrixFactors<S> factors_;
  VectorX<S> a_;  ///< nv
  /// M⁻¹ times ∂τ/∂q, ∂τ/∂v and −1, whose columns take turns: first all rows of the columns of one
  /// panel, which stay in the cache, then those of the next.
  BlockVector<S> rows_;
  std::vector<Range> range_;  ///< by coordinate
};

// --- Implementation ------------------------------------------------------------------------------

template <class S>
Derivatives<S>::Derivatives(Tree<S>& tree)
    : tree_(&tree),
      group_(static_cast<std::size_t>(blocks_for<S>(tree.nb())), Group()),
      factors_(tree),
      a_(VectorX<S>::Zero(tree.nv())),
      range_(static_cast<std::size_t>(tree.nv())) {
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  const Body<S>* body = tree.bodies();
  for (int i = 0; i < tree.nb(); ++i) {
    const bool floats = is_floating(body[i].kind);
    place_.push_back({floats ? body[i - body[i].axis].parent : body[i].parent, i + 1});
  }
  for (int i = tree.nb() - 1; i > 0; --i) {
    if (body[i].parent < 0) continue;
    int& end = place_[at(body[i].parent)].end;
    end = std::max(end, place_[at(i)].end);
  }
  for (auto& row : row_) row.assign(group_.size() * at(width), S(0));
  rows_.assign(at(3 * tree.nv()) * at((tree.nv() + panel - 1) / panel * panel), S(0));
  find_ranges();
  for (int i = 0; i < tree.nb(); ++i) {
    Group& g = group(i);
    g.h_parts[0][lane(i)] = S(turns(body[i].kind) ? 1 : 0);
    g.h_parts[1][lane(i)] = linear_axis<S>(body[i], Vec3<S>::Zero())[2];
  }
}

template <class S>
void Derivatives<S>::find_ranges() {
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  const int* parent = tree_->dof_parents();
  const int n = tree_->nv();
  for (int k = 0; k < n; ++k) {
    const bool root = parent[k] < 0;
    range_[at(k)] = {root ? k : range_[at(parent[k])].tree_begin, 0, k + 1,
                     root ? 0 : range_[at(parent[k])].depth + 1};
  }
  for (int k = n - 1; k > 0; --k) {
    if (parent[k] < 0) continue;
    int& end = range_[at(parent[k])].subtree_end;
    end = std::max(end, range_[at(k)].subtree_end);
  }
  for (Range& r : range_) r.tree_end = range_[at(r.tree_begin)].subtree_end;
}

/// K = ½ tr(I) 1 − I of the bodies' moments of inertia.
template <class S>
void Derivatives<S>::update_constants() noexcept {
  const Body<S>* body = tree_->bodies();
  for (int i = 0; i < tree_->nb(); ++i) {
    const RigidInertia<S>& A = body[i].inertia;
    const S half = S(0.5) * (A.I.xx + A.I.yy + A.I.zz);
    const S own[10] = {A.m,     A.h[0],  A.h[1],        A.h[2],  half - A.I.xx,
                       -A.I.xy, -A.I.xz, half - A.I.yy, -A.I.yz, half - A.I.zz};
    for (std::size_t c = 0; c < 10; ++c) group(i).own[c][lane(i)] = own[c];
  }
  revision_ = tree_->revision();
}

/// From the first body on, whose pose is one.
template <class S>
void Derivatives<S>::pose_bodies() noexcept {
  using derivatives::for_rows;
  const Body<S>* body = tree_->bodies();
  const int n = tree_->nb();
  Pose<S> X = Pose<S>::identity();
  for (int i = 0; i < n; ++i) {
    const Body<S>& b = body[i];
    if (i > 0 && b.parent < 0) {  // another one in the base
      X = Pose<S>{body[0].X.rotation(), body[0].X.position()}.inverse();
    } else if (i > 0 && b.parent != i - 1) {
      const Rows<12>& from = group(b.parent).X;
      const std::size_t k = lane(b.parent);
      for_rows<9>([&](auto c) { X.R(c % 3, c / 3) = from[c][k]; });
      for_rows<3>([&](auto c) { X.p[c] = from[9 + c][k]; });
    }
    if (i > 0) X = dynamics_core::across<S>(X, b.X);
    Rows<12>& to = group(i).X;
    const std::size_t k = lane(i);
    for_rows<9>([&](auto c) { to[c][k] = X.R(c % 3, c / 3); });
    for_rows<3>([&](auto c) { to[9 + c][k] = X.p[c]; });
  }
}

/// What depends on q and v.
template <class S>
void Derivatives<S>::move(VectorIn<S> v) noexcept {
  using namespace derivatives;
  using T = Numbers;
  if (revision_ != tree_->revision()) update_constants();
  pose_bodies();
  for (Group& g : group_) {
    const Matrix<T> R = {vector<S>(g.X), vector<S>(g.X, 3), vector<S>(g.X, 6)};
    const Vector<T> p = vector<S>(g.X, 9);
    const Vector<T> e = numbers<S>(g.h_parts[0]) * R.z;
    store<S>(Spatial<T>{e, cross(p, e) + numbers<S>(g.h_parts[1]) * R.z}, g.h);
    const Inertia<T> I = moved<T>(R, p, inertia<S>(g.own));
    store<S>(I, g.I);
    store<S>(I, g.IC);
  }
  const Body<S>* body = tree_->bodies();
  const S o(0);
  const Spatial<S> still = {{o, o, o}, {o, o, o}};
  for (int i = 0; i < tree_->nb(); ++i) {
    Group& g = group(i);
    const std::size_t k = lane(i);
    const S qd = rate<S>(body[i], v);
    const int parent = body[i].parent;
    const int outer = place_.data()[i].outer;
    const Spatial<S> before = parent < 0 ? still : at(group(parent).V, parent);
    put(outer == parent ? before : outer < 0 ? still : at(group(outer).V, outer), g.V_outer, k);
    put(before + qd * at(g.h, i), g.V, k);
  }
  for (Group& g : group_) {
    const Spatial<T> h = spatial<S>(g.h);
    const Spatial<T> V = spatial<S>(g.V);
    const Spatial<T> psi = cross(spatial<S>(g.V_outer), h);
    store<S>(psi, g.psi);
    store<S>(psi + psi, g.phi);
    const Inertia<T> I = inertia<S>(g.I);
    const Matrix<T> K = I.moments();
    const Vector<T>& w = V.angular;
    // ṙ = v + ω × r
    const Convection<T> B = {{I.h.x * V.linear + cross(w, K.x), I.h.y * V.linear + cross(w, K.y),
                              I.h.z * V.linear + cross(w, K.z)},
                             I.m * V.linear - cross(I.h, w)};
    store<S>(B, g.B);
    store<S>(B * w, g.fv);
  }
  // The axes of a floating joint move with its link.
  for (const int first : tree_->floating_joints()) {
    for (int i = first; i < first + 6; ++i) {
      const Spatial<S> rate = cross(at(group(first + 5).V, first + 5), at(group(i).h, i));
      put(at(group(i).psi, i) + rate, group(i).phi, lane(i));
    }
  }
  subtract_external_forces();
}

template <class S>
void Derivatives<S>::subtract_external_forces() noexcept {
  const Force<S>* external = tree_->external_forces();
  if (external == nullptr) return;
  for (int i = 0; i < tree_->nb(); ++i) {
    Group& g = group(i);
    const std::size_t k = lane(i);
    const auto column = [&](std::size_t c) {
      return Vec3<S>(g.X[c][k], g.X[c + 1][k], g.X[c + 2][k]);
    };
    const auto turned = [&](const Vec3<S>& u) {
      return Vec3<S>(column(0) * u[0] + column(3) * u[1] + column(6) * u[2]);
    };
    const Vec3<S> f = turned(external[i].f);
    const Vec3<S> n = turned(external[i].n) + column(9).cross(f);
    for (std::size_t c = 0; c < 3; ++c) {
      g.fv[c][k] -= n[static_cast<Eigen::Index>(c)];
      g.fv[c + 3][k] -= f[static_cast<Eigen::Index>(c)];
    }
  }
}

/// The accelerations, and the forces on the bodies.
template <class S>
template <bool with_acceleration>
void Derivatives<S>::accelerate(VectorIn<S> v, VectorIn<S> a) noexcept {
  using namespace derivatives;
  const Body<S>* body = tree_->bodies();
  const int n = tree_->nb();
  if (n == 0) return;
  const Vec3<S> g0 = body[0].X.to_child(tree_->base_acceleration());
  const S o(0);
  const Spatial<S> base = {{o, o, o}, {g0[0], g0[1], g0[2]}};
  for (int i = 0; i < n; ++i) {
    Group& g = group(i);
    const std::size_t k = lane(i);
    const int parent = body[i].parent;
    const int outer = place_.data()[i].outer;
    const Spatial<S> before = parent < 0 ? base : at(group(parent).A, parent);
    Spatial<S> A = before + rate<S>(body[i], v) * at(g.psi, i);
    if constexpr (with_acceleration) {
      A = A + rate<S>(body[i], a) * at(g.h, i);
      put(outer == parent ? before : outer < 0 ? base : at(group(outer).A, outer), g.A_outer, k);
    }
    put(A, g.A, k);
  }
  for (Group& g : group_) store<S>(inertia<S>(g.I) * spatial<S>(g.A) + spatial<S>(g.fv), g.F);
}

/// Sums over subtrees.
template <class S>
template <std::size_t count>
void Derivatives<S>::collect(Rows<count> Group::*rows) noexcept {
  const Body<S>* body = tree_->bodies();
  for (int i = tree_->nb() - 1; i > 0; --i) {
    const int parent = body[i].parent;
    if (parent < 0) continue;
    const auto& from = group(i).*rows;
    auto& to = group(parent).*rows;
    const std::size_t k = lane(i);
    const std::size_t l = lane(parent);
    derivatives::for_rows<count>([&](auto c) { to[c][l] += from[c][k]; });
  }
}

template <class S>
void Derivatives<S>::unit_forces() noexcept {
  using namespace derivatives;
  for (Group& g : group_) store<S>(inertia<S>(g.IC) * spatial<S>(g.h), g.Ih);
}

/// What the forces on subtrees gain by each joint's position and velocity, that they turn with the
/// joint included.
template <class S>
void Derivatives<S>::differentiate() noexcept {
  using namespace derivatives;
  using T = Numbers;
  for (Group& g : group_) {
    const Spatial<T> h = spatial<S>(g.h);
    const Spatial<T> psi = spatial<S>(g.psi);
    const Spatial<T> psi_d = cross(spatial<S>(g.A_outer), h) + cross(spatial<S>(g.V_outer), psi);
    const Inertia<T> IC = inertia<S>(g.IC);
    const Convection<T> B = convection<S>(g.B);
    const Spatial<T> Bpsi = B * psi.angular;
    const Spatial<T> Bh = B * h.angular;
    const Vector<T> Bth = transposed(B, h);
    store<S>(psi_d, g.psi_d);
    store<S>(Bpsi + Bpsi + IC * psi_d + cross_force(h, spatial<S>(g.F)), g.of_q);
    store<S>(Bh + Bh + IC * spatial<S>(g.phi), g.of_v);
    store<S>(Bth + Bth, g.Bh);
  }
}

/// put(j, row): row[i] is the element that joins j with each body i of its subtree.
template <class S>
template <class Put>
RD_INLINE void Derivatives<S>::mass_matrix(Put&& put) noexcept {
  using namespace derivatives;
  using T = Numbers;
  S* row = row_[0].data();
  for (int j = 0; j < tree_->nb(); ++j) {
    const std::size_t k = lane(j);
    const Rows<6>& h = group(j).h;
    for (int i = j - j % width; i < place_.data()[j].end; i += width) {
      const Rows<6>& Ih = group(i).Ih;
      T sum = h[0][k] * numbers<S>(Ih[0]);
      for_rows<5>([&](auto c) { sum += h[c + 1][k] * numbers<S>(Ih[c + 1]); });
      store_block<S>(sum.all, row + i);
    }
    row[j] += tree_->bodies()[j].rotor;
    put(j, row);
  }
}

template <class S>
void Derivatives<S>::bias(VectorOut<S>& tau) const noexcept {
  const Body<S>* body = tree_->bodies();
  tau.setZero();
  for (int i = 0; i < tree_->nb(); ++i) {
    const Group& g = group(i);
    add_effort<S>(body[i], dot(at(g.h, i), at(g.F, i)), tau);
  }
}

/// The derivatives of τ_i and τ_j by the coordinates of j and i, for each body j and each body i of
/// its subtree, put where of_q(row, column) and of_v(row, column) are.
template <class S>
template <class OfQ, class OfV>
RD_INLINE void Derivatives<S>::pairs(OfQ&& of_q, OfV&& of_v) noexcept {
  using namespace derivatives;
  using T = Numbers;
  const Body<S>* body = tree_->bodies();
  const bool shared = tree_->has_mimic();
  const int n = tree_->nb();
  S* j_by_q = row_[0].data();
  S* j_by_v = row_[1].data();
  S* i_by_q = row_[2].data();
  S* i_by_v = row_[3].data();
  for (int j = 0; j < n; ++j) {
    const std::size_t k = lane(j);
    const Group& of_j = group(j);
    const int end = place_.data()[j].end;
    const Group* g = &of_j;
    for (int i = whole_blocks(j); i < end; i += width, ++g) {
      T x = of_j.h[0][k] * numbers<S>(g->of_q[0]);
      T y = of_j.h[0][k] * numbers<S>(g->of_v[0]);
      T z = of_j.psi_d[0][k] * numbers<S>(g->Ih[0]);
      T u = of_j.phi[0][k] * numbers<S>(g->Ih[0]);
      for_rows<5>([&](auto row) {
        constexpr std::size_t c = row + 1;
        x += of_j.h[c][k] * numbers<S>(g->of_q[c]);
        y += of_j.h[c][k] * numbers<S>(g->of_v[c]);
        z += of_j.psi_d[c][k] * numbers<S>(g->Ih[c]);
        u += of_j.phi[c][k] * numbers<S>(g->Ih[c]);
      });
      for_rows<3>([&](auto c) {
        z += of_j.psi[c][k] * numbers<S>(g->Bh[c]);
        u += of_j.h[c][k] * numbers<S>(g->Bh[c]);
      });
      store_block<S>(x.all, j_by_q + i);
      store_block<S>(y.all, j_by_v + i);
      store_block<S>(z.all, i_by_q + i);
      store_block<S>(u.all, i_by_v + i);
    }
    if (shared) {
      for (int i = j; i < end; ++i) {
        const S m = body[i].multiplier * body[j].multiplier;
        of_q(body[j].dof, body[i].dof) += m * j_by_q[i];
        of_v(body[j].dof, body[i].dof) += m * j_by_v[i];
        if (i == j) continue;
        of_q(body[i].dof, body[j].dof) += m * i_by_q[i];
        of_v(body[i].dof, body[j].dof) += m * i_by_v[i];
      }
    } else {  // the numbers of the bodies are those of the coordinates
      for (int i = j; i < end; ++i) {
        of_q(j, i) = j_by_q[i];
        of_v(j, i) = j_by_v[i];
        of_q(i, j) = i_by_q[i];
        of_v(i, j) = i_by_v[i];
      }
    }
  }
  take_forces_from_floating_joints(of_q);
}

/// The axes of a floating joint move all together with the link, and the force with them.
template <class S>
template <class OfQ>
RD_INLINE void Derivatives<S>::take_forces_from_floating_joints(OfQ&& of_q) noexcept {
  using namespace derivatives;
  const Body<S>* body = tree_->bodies();
  for (const int first : tree_->floating_joints()) {
    for (int i = first + 1; i < first + 6; ++i) {
      const Spatial<S> force = cross_force(at(group(i).h, i), at(group(i).F, i));
      for (int j = first; j < i; ++j)
        of_q(body[j].dof, body[i].dof) -= dot(at(group(j).h, j), force);
    }
  }
}

template <class S>
StatusOf<S> Derivatives<S>::inverse_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> a,
                                             MatrixOut<S> dtau_dq, MatrixOut<S> dtau_dv,
                                             MatrixOut<S> M) noexcept {
  const StatusOf<S> status = check_and_move<S>(*tree_, q, v, a, dtau_dq, dtau_dv, M);
  if (failed(status)) return status;
  move(v);
  accelerate<true>(v, a);
  collect(&Group::IC);
  collect(&Group::B);
  collect(&Group::F);
  unit_forces();
  differentiate();
  if (tree_->branched() || tree_->has_mimic()) {
    set_zero<S>(dtau_dq);
    set_zero<S>(dtau_dv);
    set_zero<S>(M);
  }
  put_mass_matrix(M);
  S* by_q = dtau_dq.data();
  S* by_v = dtau_dv.data();
  const Eigen::Index q_stride = dtau_dq.outerStride();
  const Eigen::Index v_stride = dtau_dv.outerStride();
  pairs([=](int row, int column) -> S& { return by_q[row + column * q_stride]; },
        [=](int row, int column) -> S& { return by_v[row + column * v_stride]; });
  FiniteSum<S> sum;
  sum.add(dtau_dq);
  sum.add(dtau_dv);
  sum.add(M);
  return merged(status, finite_status<S>(sum.value()));
}

/// Both triangles of M, which is zero where it stays so.
template <class S>
void Derivatives<S>::put_mass_matrix(MatrixOut<S>& M) noexcept {
  const Body<S>* body = tree_->bodies();
  const Place* place = place_.data();
  const bool shared = tree_->has_mimic();
  const Eigen::Index stride = M.outerStride();
  S* m = M.data();
  mass_matrix([=](int j, const S* row) {
    if (shared) {
      for (int i = j; i < place[j].end; ++i) {
        const S x = body[i].multiplier * body[j].multiplier * row[i];
        m[body[j].dof + body[i].dof * stride] += x;
        if (i != j) m[body[i].dof + body[j].dof * stride] += x;
      }
      return;
    }
    for (int i = j; i < place[j].end; ++i) m[j + i * stride] = m[i + j * stride] = row[i];
  });
}

template <class S>
StatusOf<S> Derivatives<S>::factorized_mass_matrix() noexcept {
  if (tree_->has_mimic()) {
    factors_.matrix().setZero();
    MatrixOut<S> M(factors_.matrix());
    put_mass_matrix(M);
    return factors_.factorize();
  }
  mass_matrix([&](int j, const S* row) {
    const int depth = range_.data()[j].depth;
    for (int i = j; i < place_.data()[j].end; ++i) factors_.row(i)[depth] = row[i];
  });
  return factors_.factorize_rows();
}

/// With M = Lᵀ D L, the rows become L⁻ᵀ times what they were: from each row, those of its
/// descendants, which are one range, are taken.
template <class S>
void Derivatives<S>::eliminate_upwards() noexcept {
  const int n = tree_->nv();
  for (int c = 0; c < n; c += panel) {
    for (int i = n - 2; i >= 0; --i) {
      const Range& r = range_.data()[i];
      if (c + panel <= r.tree_begin || c >= r.subtree_end) continue;
      derivatives::SixBlocks<S> sum(part_of_row(i, c));
      for (int k = i + 1; k < r.subtree_end; ++k)
        sum.subtract(factors_.row(k)[r.depth], part_of_row(k, c));
      sum.store(part_of_row(i, c));
    }
  }
}

/// Then L⁻¹ D⁻¹ times that.
template <class S>
void Derivatives<S>::substitute_downwards() noexcept {
  const int n = tree_->nv();
  const int* parent = tree_->dof_parents();
  for (int c = 0; c < n; c += panel) {
    for (int k = 0; k < n; ++k) {
      const Range& r = range_.data()[k];
      if (c + panel <= r.tree_begin || c >= r.tree_end) continue;
      const S* L = factors_.end_of_row(k);
      derivatives::SixBlocks<S> sum(part_of_row(k, c));
      sum.multiply(*L);
      for (int i = parent[k]; i >= 0; i = parent[i]) sum.subtract(*--L, part_of_row(i, c));
      sum.store(part_of_row(k, c));
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
  move(v);
  collect(&Group::IC);
  unit_forces();
  status = merged(status, factorized_mass_matrix());
  if (failed(status)) return status;
  accelerate<false>(v, v);
  collect(&Group::F);
  VectorOut<S> a(a_);
  bias(a);
  a_ = tau - a_;
  factors_.solve(a_.data());
  accelerate<true>(v, a_);
  collect(&Group::F);
  collect(&Group::B);
  differentiate();

  std::fill(rows_.begin(), rows_.end(), S(0));
  const auto element = [this](Part part, int row, int column) -> S& {
    const int first = column & ~(panel - 1);
    return part_of_row(row, first)[3 * (column - first) + part];
  };
  for (int k = 0; k < tree_->nv(); ++k) element(of_effort, k, k) = S(-1);
  pairs([=](int row, int column) -> S& { return element(of_position, row, column); },
        [=](int row, int column) -> S& { return element(of_velocity, row, column); });
  eliminate_upwards();
  substitute_downwards();

  if (tree_->branched()) {
    set_zero<S>(da_dq);
    set_zero<S>(da_dv);
    set_zero<S>(da_dtau);
  }
  const auto put = [=](Part part, int column, int begin, int end, MatrixOut<S>& A) {
    const S* from = &element(part, 0, column);
    S* to = A.data() + column * A.outerStride();
    for (int k = begin; k < end; ++k) to[k] = -from[k * 3 * panel];
  };
  for (int c = 0; c < tree_->nv(); ++c) {
    const Range& r = range_.data()[c];
    put(of_position, c, r.tree_begin, r.tree_end, da_dq);
    put(of_velocity, c, r.tree_begin, r.tree_end, da_dv);
    put(of_effort, c, r.tree_begin, c + 1, da_dtau);
  }
  mirror_upper<S>(da_dtau);
  FiniteSum<S> sum;
  sum.add(rows_.data(), static_cast<Eigen::Index>(rows_.size()));
  return merged(status, finite_status<S>(sum.value()));
}

}  // namespace dynamics_core
