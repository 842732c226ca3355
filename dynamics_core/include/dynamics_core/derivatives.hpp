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

/// y[0..n) ∗= x, in whole blocks.
template <class S>
RD_INLINE void multiply(const S& x, int n, S* y) noexcept {
  for (int k = 0; k < n; k += block_width<S>) {
    Block<S> from;
    load_block<S>(y + k, from);
    store_block<S>(Block<S>(x * from), y + k);
  }
}

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
  static constexpr int width = block_width<S>;

  /// As many bodies as a block holds. Those beyond the last one have no mass and stay where they are.
  struct Group {
    Rows<10> own;     ///< the bodies' inertias in their frames; constant until a payload changes
    Rows<2> h_parts;  ///< h = [turns z; z moved to the origin + slides z]; constant
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
  /// A matrix wherever it lies.
  struct View {
    S* data;
    Eigen::Index row, column;  ///< from one row, or column, to the next
  };

  [[nodiscard]] RD_INLINE Group& group(int body) noexcept { return group_.data()[body / width]; }
  [[nodiscard]] RD_INLINE const Group& group(int body) const noexcept {
    return group_.data()[body / width];
  }
  [[nodiscard]] RD_INLINE static std::size_t lane(int body) noexcept {
    return static_cast<std::size_t>(body % width);
  }

  /// Of one body.
  [[nodiscard]] RD_INLINE static derivatives::Spatial<S> at(const Rows<6>& rows,
                                                            int body) noexcept {
    const std::size_t k = lane(body);
    return {{rows[0][k], rows[1][k], rows[2][k]}, {rows[3][k], rows[4][k], rows[5][k]}};
  }
  [[nodiscard]] constexpr static int whole_blocks(int n) noexcept { return n / width * width; }

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
  void pairs(const View& by_q, const View& by_v) noexcept;
  void take_forces_from_floating_joints(const View& by_q) noexcept;
  void add(const Body<S>& row, const Body<S>& column, const S& x, const View& to) const noexcept;
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
  /// M⁻¹ times ∂τ/∂q and ∂τ/∂v, whose columns alternate, and times 1: nv rows, each of these two
  /// parts in whole blocks.
  BlockVector<S> rows_;
  int part_, stride_;
  /// By coordinate: the range of its tree's coordinates, the end of its subtree's, and how many
  /// ancestors it has.
  std::vector<int> tree_begin_, tree_end_, subtree_end_, depth_;
};

// --- Implementation ------------------------------------------------------------------------------

template <class S>
Derivatives<S>::Derivatives(Tree<S>& tree)
    : tree_(&tree),
      group_(static_cast<std::size_t>(blocks_for<S>(tree.nb()))),
      factors_(tree),
      a_(VectorX<S>::Zero(tree.nv())),
      part_(blocks_for<S>(2 * tree.nv()) * width),
      stride_(part_ + blocks_for<S>(tree.nv()) * width),
      tree_begin_(static_cast<std::size_t>(tree.nv())),
      tree_end_(tree_begin_),
      subtree_end_(tree_begin_),
      depth_(tree_begin_) {
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  const Body<S>* body = tree.bodies();
  for (int i = 0; i < tree.nb(); ++i) {
    const bool floats = is_floating(body[i].kind);
    place_.push_back({floats ? body[i - body[i].axis].parent : body[i].parent, i + 1});
  }
  for (int i = tree.nb() - 1; i > 0; --i)
    if (body[i].parent >= 0) {
      int& end = place_[at(body[i].parent)].end;
      end = std::max(end, place_[at(i)].end);
    }
  for (auto& row : row_) row.assign(group_.size() * at(width), S(0));
  rows_.assign(at(tree.nv()) * at(stride_), S(0));
  const int* parent = tree.dof_parents();
  for (int k = 0; k < tree.nv(); ++k) {
    tree_begin_[at(k)] = parent[k] < 0 ? k : tree_begin_[at(parent[k])];
    depth_[at(k)] = parent[k] < 0 ? 0 : depth_[at(parent[k])] + 1;
    subtree_end_[at(k)] = k + 1;
  }
  for (int k = tree.nv() - 1; k >= 0; --k)
    if (parent[k] >= 0) {
      int& end = subtree_end_[at(parent[k])];
      end = std::max(end, subtree_end_[at(k)]);
    }
  for (int k = 0; k < tree.nv(); ++k) tree_end_[at(k)] = subtree_end_[at(tree_begin_[at(k)])];
  const auto clear = [](auto& rows) {
    for (auto& row : rows) row.fill(S(0));
  };
  for (Group& g : group_) {
    clear(g.own), clear(g.h_parts), clear(g.X), clear(g.h);
    clear(g.V), clear(g.A), clear(g.V_outer), clear(g.A_outer);
    clear(g.psi), clear(g.psi_d), clear(g.phi), clear(g.fv);
    clear(g.I), clear(g.IC), clear(g.B), clear(g.F), clear(g.of_q), clear(g.of_v), clear(g.Ih),
        clear(g.Bh);
  }
  for (int i = 0; i < tree.nb(); ++i) {
    Group& g = group(i);
    const Vec3<S> on_axis = linear_axis<S>(body[i], Vec3<S>::Zero());
    g.h_parts[0][lane(i)] = S(turns(body[i].kind) ? 1 : 0);
    g.h_parts[1][lane(i)] = on_axis[2];
  }
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
    for (std::size_t k = 0; k < 10; ++k) group(i).own[k][lane(i)] = own[k];
  }
  revision_ = tree_->revision();
}

/// From the first body on, whose pose is one.
template <class S>
void Derivatives<S>::pose_bodies() noexcept {
  const Body<S>* body = tree_->bodies();
  const int n = tree_->nb();
  Pose<S> X = Pose<S>::identity();
  for (int i = 0; i < n; ++i) {
    const Body<S>& b = body[i];
    if (i > 0 && b.parent < 0) {  // another one in the base
      X = Pose<S>{body[0].X.rotation(), body[0].X.position()}.inverse();
    } else if (i > 0 && b.parent != i - 1) {
      const Group& g = group(b.parent);
      const std::size_t k = lane(b.parent);
      for (int c = 0; c < 9; ++c) X.R(c % 3, c / 3) = g.X[static_cast<std::size_t>(c)][k];
      X.p = Vec3<S>(g.X[9][k], g.X[10][k], g.X[11][k]);
    }
    if (i > 0) X = dynamics_core::across<S>(X, b.X);
    Group& g = group(i);
    const std::size_t k = lane(i);
    for (int c = 0; c < 9; ++c) g.X[static_cast<std::size_t>(c)][k] = X.R(c % 3, c / 3);
    for (int c = 0; c < 3; ++c) g.X[static_cast<std::size_t>(9 + c)][k] = X.p[c];
  }
}

/// What depends on q and v.
template <class S>
void Derivatives<S>::move(VectorIn<S> v) noexcept {
  using namespace derivatives;
  using T = Numbers<S>;
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
  for (int i = 0; i < tree_->nb(); ++i) {
    Group& g = group(i);
    const std::size_t k = lane(i);
    const S qd = rate<S>(body[i], v);
    const int parent = body[i].parent;
    const int outer = place_.data()[i].outer;
    for (std::size_t c = 0; c < 6; ++c) {
      const S V = parent < 0 ? S(0) : group(parent).V[c][lane(parent)];
      g.V_outer[c][k] = outer == parent ? V : outer < 0 ? S(0) : group(outer).V[c][lane(outer)];
      g.V[c][k] = V + g.h[c][k] * qd;
    }
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
      const S x[6] = {rate.angular.x, rate.angular.y, rate.angular.z,
                      rate.linear.x,  rate.linear.y,  rate.linear.z};
      for (std::size_t c = 0; c < 6; ++c)
        group(i).phi[c][lane(i)] = group(i).psi[c][lane(i)] + x[c];
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
  const S base[6] = {S(0), S(0), S(0), g0[0], g0[1], g0[2]};
  for (int i = 0; i < n; ++i) {
    Group& g = group(i);
    const std::size_t k = lane(i);
    const S qd = rate<S>(body[i], v);
    S qdd(0);
    if constexpr (with_acceleration) qdd = rate<S>(body[i], a);
    const int parent = body[i].parent;
    const int outer = place_.data()[i].outer;
    for (std::size_t c = 0; c < 6; ++c) {
      S A = parent < 0 ? base[c] : group(parent).A[c][lane(parent)];
      if constexpr (with_acceleration) {
        g.A_outer[c][k] = outer == parent ? A
                          : outer < 0     ? base[c]
                                          : group(outer).A[c][lane(outer)];
        A += g.h[c][k] * qdd;
      }
      g.A[c][k] = A + g.psi[c][k] * qd;
    }
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
    for (std::size_t c = 0; c < count; ++c) to[c][lane(parent)] += from[c][lane(i)];
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
  using T = Numbers<S>;
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
  using T = Numbers<S>;
  S* row = row_[0].data();
  for (int j = 0; j < tree_->nb(); ++j) {
    const std::size_t k = lane(j);
    const Rows<6>& h = group(j).h;
    for (int i = j - j % width; i < place_.data()[j].end; i += width) {
      const Rows<6>& Ih = group(i).Ih;
      T sum = h[0][k] * numbers<S>(Ih[0]);
      for (std::size_t c = 1; c < 6; ++c) sum += h[c][k] * numbers<S>(Ih[c]);
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
    const std::size_t k = lane(i);
    S effort = g.h[0][k] * g.F[0][k];
    for (std::size_t c = 1; c < 6; ++c) effort += g.h[c][k] * g.F[c][k];
    add_effort<S>(body[i], effort, tau);
  }
}

template <class S>
RD_INLINE void Derivatives<S>::add(const Body<S>& row, const Body<S>& column, const S& x,
                                   const View& to) const noexcept {
  to.data[row.dof * to.row + column.dof * to.column] += row.multiplier * column.multiplier * x;
}

/// The derivatives of τ_i and τ_j by the coordinates of j and i, for each body j and each body i of
/// its subtree.
template <class S>
void Derivatives<S>::pairs(const View& by_q, const View& by_v) noexcept {
  using namespace derivatives;
  using T = Numbers<S>;
  const Body<S>* body = tree_->bodies();
  S* j_by_q = row_[0].data();
  S* j_by_v = row_[1].data();
  S* i_by_q = row_[2].data();
  S* i_by_v = row_[3].data();
  for (int j = 0; j < tree_->nb(); ++j) {
    const std::size_t k = lane(j);
    const Group& of_j = group(j);
    const int end = place_.data()[j].end;
    for (int i = j - j % width; i < end; i += width) {
      const Group& g = group(i);
      T x = of_j.h[0][k] * numbers<S>(g.of_q[0]);
      T y = of_j.h[0][k] * numbers<S>(g.of_v[0]);
      T z = of_j.psi_d[0][k] * numbers<S>(g.Ih[0]);
      T u = of_j.phi[0][k] * numbers<S>(g.Ih[0]);
      for (std::size_t c = 1; c < 6; ++c) {
        x += of_j.h[c][k] * numbers<S>(g.of_q[c]);
        y += of_j.h[c][k] * numbers<S>(g.of_v[c]);
        z += of_j.psi_d[c][k] * numbers<S>(g.Ih[c]);
        u += of_j.phi[c][k] * numbers<S>(g.Ih[c]);
      }
      for (std::size_t c = 0; c < 3; ++c) {
        z += of_j.psi[c][k] * numbers<S>(g.Bh[c]);
        u += of_j.h[c][k] * numbers<S>(g.Bh[c]);
      }
      store_block<S>(x.all, j_by_q + i);
      store_block<S>(y.all, j_by_v + i);
      store_block<S>(z.all, i_by_q + i);
      store_block<S>(u.all, i_by_v + i);
    }
    if (tree_->has_mimic()) {
      for (int i = j; i < end; ++i) {
        add(body[j], body[i], j_by_q[i], by_q);
        add(body[j], body[i], j_by_v[i], by_v);
        if (i == j) continue;
        add(body[i], body[j], i_by_q[i], by_q);
        add(body[i], body[j], i_by_v[i], by_v);
      }
    } else {  // the numbers of the bodies are those of the coordinates
      S* q_row = by_q.data + j * by_q.row;
      S* v_row = by_v.data + j * by_v.row;
      S* q_column = by_q.data + j * by_q.column;
      S* v_column = by_v.data + j * by_v.column;
      q_row[j * by_q.column] = j_by_q[j];
      v_row[j * by_v.column] = j_by_v[j];
      for (int i = j + 1; i < end; ++i) {
        q_row[i * by_q.column] = j_by_q[i];
        v_row[i * by_v.column] = j_by_v[i];
        q_column[i * by_q.row] = i_by_q[i];
        v_column[i * by_v.row] = i_by_v[i];
      }
    }
  }
  take_forces_from_floating_joints(by_q);
}

/// The axes of a floating joint move all together with the link, and the force with them.
template <class S>
void Derivatives<S>::take_forces_from_floating_joints(const View& by_q) noexcept {
  using namespace derivatives;
  const Body<S>* body = tree_->bodies();
  for (const int first : tree_->floating_joints()) {
    for (int i = first + 1; i < first + 6; ++i) {
      const Spatial<S> force = cross_force(at(group(i).h, i), at(group(i).F, i));
      for (int j = first; j < i; ++j) add(body[j], body[i], -dot(at(group(j).h, j), force), by_q);
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
  pairs({dtau_dq.data(), 1, dtau_dq.outerStride()}, {dtau_dv.data(), 1, dtau_dv.outerStride()});
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
  const Eigen::Index stride = M.outerStride();
  const View view = {M.data(), 1, stride};
  mass_matrix([&](int j, const S* row) {
    const int end = place_.data()[j].end;
    if (tree_->has_mimic()) {
      for (int i = j; i < end; ++i) {
        add(body[j], body[i], row[i], view);
        if (i != j) add(body[i], body[j], row[i], view);
      }
      return;
    }
    S* m = M.data();
    for (int i = j; i < end; ++i) m[j + i * stride] = m[i + j * stride] = row[i];
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
    const int depth = depth_.data()[j];
    for (int i = j; i < place_.data()[j].end; ++i) factors_.row(i)[depth] = row[i];
  });
  return factors_.factorize_rows();
}

/// With M = Lᵀ D L, the rows become L⁻ᵀ times what they were.
template <class S>
void Derivatives<S>::eliminate_upwards() noexcept {
  const int* parent = tree_->dof_parents();
  for (int k = tree_->nv() - 1; k >= 0; --k) {
    const S* L = factors_.end_of_row(k);
    const S* from = rows_.data() + k * stride_;
    const int end = subtree_end_.data()[k];
    const int begin = whole_blocks(2 * tree_begin_.data()[k]);
    const int unit = whole_blocks(k);
    for (int i = parent[k]; i >= 0; i = parent[i]) {
      S* to = rows_.data() + i * stride_;
      const S L_ki = *--L;
      subtract_multiple<S>(L_ki, from + begin, 2 * end - begin, to + begin);
      subtract_multiple<S>(L_ki, from + part_ + unit, end - unit, to + part_ + unit);
    }
  }
}

/// Then L⁻¹ D⁻¹ times that; of M⁻¹, which is symmetric, the upper triangle.
template <class S>
void Derivatives<S>::substitute_downwards() noexcept {
  const int* parent = tree_->dof_parents();
  for (int k = 0; k < tree_->nv(); ++k) {
    const S* L = factors_.end_of_row(k);
    S* to = rows_.data() + k * stride_;
    const int end = tree_end_.data()[k];
    const int begin = whole_blocks(2 * tree_begin_.data()[k]);
    const int unit = whole_blocks(k);
    const S inv_D = *L;
    derivatives::multiply<S>(inv_D, 2 * end - begin, to + begin);
    derivatives::multiply<S>(inv_D, end - unit, to + part_ + unit);
    for (int i = parent[k]; i >= 0; i = parent[i]) {
      const S* from = rows_.data() + i * stride_;
      const S L_ki = *--L;
      subtract_multiple<S>(L_ki, from + begin, 2 * end - begin, to + begin);
      subtract_multiple<S>(L_ki, from + part_ + unit, end - unit, to + part_ + unit);
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
  S* rows = rows_.data();
  for (int k = 0; k < tree_->nv(); ++k) rows[k * stride_ + part_ + k] = S(1);
  pairs({rows, stride_, 2}, {rows + 1, stride_, 2});
  eliminate_upwards();
  substitute_downwards();

  if (tree_->branched()) {
    set_zero<S>(da_dq);
    set_zero<S>(da_dv);
    set_zero<S>(da_dtau);
  }
  for (int k = 0; k < tree_->nv(); ++k) {
    const S* row = rows + k * stride_;
    const int end = tree_end_.data()[k];
    for (int c = tree_begin_.data()[k]; c < end; ++c) {
      da_dq(k, c) = -row[2 * c];
      da_dv(k, c) = -row[2 * c + 1];
    }
    for (int c = k; c < end; ++c) da_dtau(k, c) = da_dtau(c, k) = row[part_ + c];
  }
  FiniteSum<S> sum;
  sum.add(rows, static_cast<Eigen::Index>(rows_.size()));
  return merged(status, finite_status<S>(sum.value()));
}

}  // namespace dynamics_core
