// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A robot in the algorithms' scalar type: the model's constants, the joints at a configuration, and
/// what is set from outside and stays: gravity, payloads, external forces. What an algorithm
/// computes on the way is in its family's own header. All memory is taken in the constructor. One
/// tree, and the families that work on it, per thread.

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <vector>

#include "dynamics_core/joints.hpp"
#include "dynamics_core/model.hpp"
#include "dynamics_core/payload.hpp"
#include "dynamics_core/quaternion.hpp"

namespace dynamics_core {

/// A link of the model, fixed in a body.
template <class S>
struct Link {
  int body;                 ///< −1: fixed in the world
  Pose<S> X_BL;             ///< the link in its body
  RigidInertia<S> own;      ///< the link's own inertia, about its body's origin
  RigidInertia<S> payload;  ///< what it carries, about its body's origin
};

template <class S>
class Tree {
 public:
  explicit Tree(const Model& model);

  // --- the model ---------------------------------------------------------------------------------
  [[nodiscard]] int nb() const noexcept { return nb_; }
  [[nodiscard]] int nq() const noexcept { return nq_; }
  [[nodiscard]] int nv() const noexcept { return nv_; }
  [[nodiscard]] bool has_mimic() const noexcept { return has_mimic_; }
  /// False for a single serial chain.
  [[nodiscard]] bool branched() const noexcept { return branched_; }
  /// Is every coordinate's parent the one before it, so that no element of M is always zero?
  [[nodiscard]] bool dense_mass_matrix() const noexcept { return dense_mass_matrix_; }
  /// The bodies, each after its parent.
  [[nodiscard]] const Body<S>* bodies() const noexcept { return bodies_.data(); }
  [[nodiscard]] const std::vector<Link<S>>& links() const noexcept { return links_; }
  [[nodiscard]] bool has_link(int link) const noexcept {
    return link >= 0 && link < static_cast<int>(links_.size());
  }
  /// By coordinate: M(i, j) is zero unless one is the other's ancestor by this; −1: none.
  [[nodiscard]] const int* dof_parents() const noexcept { return dof_parent_.data(); }
  /// By coordinate: how large M's diagonal element can be; pivots are judged by it.
  [[nodiscard]] const VectorX<S>& dof_scales() const noexcept { return dof_scale_; }
  /// The base frame in the world (root link) frame.
  [[nodiscard]] const Pose<S>& base() const noexcept { return X_WB_; }
  /// The first bodies of the floating joints.
  [[nodiscard]] const std::vector<int>& floating_joints() const noexcept {
    return floating_bodies_;
  }

  // --- what stays until it is changed ------------------------------------------------------------
  // Where something of it is not finite (in any lane), nothing changes.
  /// Gravity in the world (root link) frame, m/s².
  [[nodiscard]] StatusOf<S> set_gravity(const Vec3<S>& g) noexcept;
  [[nodiscard]] Vec3<S> gravity() const noexcept { return -(X_WB_.R * base_acceleration_); }
  /// −g in the base frame: standing still in a field of gravity is accelerating upwards.
  [[nodiscard]] const Vec3<S>& base_acceleration() const noexcept { return base_acceleration_; }

  /// Puts a payload on a link (index into Model::links), in place of the one it carries. Mass zero
  /// takes it off, a negative one is refused. On a link that is fixed in the world it changes
  /// nothing.
  [[nodiscard]] Status set_payload(int link, const Payload<S>& payload) noexcept;

  /// Replaces a link's own inertia, about its body's origin in its body's axes.
  void set_link_inertia(int link, const RigidInertia<S>& own) noexcept;

  /// The inertia beside M's diagonal that the joint of a coordinate has from its rotor: rotor
  /// inertia × gear ratio². (Joints that mimic it keep theirs.) Status::out_of_range for an index
  /// that is not below nv.
  [[nodiscard]] Status set_rotor_inertia(int dof, const S& inertia) noexcept;
  [[nodiscard]] S rotor_inertia(int dof) const noexcept {
    return bodies_[static_cast<std::size_t>(dof_body_[static_cast<std::size_t>(dof)])].rotor;
  }

  /// Adds a force [n; f] on a link, about the link's origin in the link's axes, for the inverse
  /// and forward dynamics that follow, until clear_external_forces().
  [[nodiscard]] Status add_external_force(int link, const Force<S>& F_L) noexcept;
  void clear_external_forces() noexcept;
  /// By body, about its origin in its axes; nullptr where there are none.
  [[nodiscard]] const Force<S>* external_forces() const noexcept {
    return has_external_ ? external_.data() : nullptr;
  }

  /// Grows with every change of a body's inertia, so that a family knows when what it has derived
  /// from them is out of date.
  [[nodiscard]] unsigned revision() const noexcept { return revision_; }

  // --- the configuration -------------------------------------------------------------------------
  /// Brings the bodies' X to q, whose size has been checked. `others` is zero if all that belongs to
  /// q is finite: where it or q is not, the status is `not_finite`.
  [[nodiscard]] StatusOf<S> move_to(VectorIn<S> q, const S& others) noexcept;
  /// The same for the bodies on the path to `tip` alone (and for floating joints), whose coordinates
  /// are checked here; no other is read. Returns their number; path() has them from the tip on.
  [[nodiscard]] int move_path_to(VectorIn<S> q, int tip, StatusOf<S>& status) noexcept;
  [[nodiscard]] const int* path() const noexcept { return path_.data(); }

 private:
  struct FloatingJoint {
    int body;        ///< its first body
    Pose<S> origin;  ///< of the joint in the parent body
    S rotation[4];   ///< origin.R as a quaternion (x y z w)
  };

  void add_body(const BodyData& from, bool shared);
  void add_links(const Model& model);
  void find_dof_parents();
  void sum_inertia(int body) noexcept;
  void update_pivot_scales() noexcept;
  [[nodiscard]] StatusOf<S> move_floating(const FloatingJoint& joint, VectorIn<S> q) noexcept;

  std::vector<Body<S>> bodies_;
  std::vector<Link<S>> links_;
  std::vector<FloatingJoint> floating_;
  std::vector<int> floating_bodies_;
  std::vector<int> dof_parent_, dof_body_;
  VectorX<S> dof_scale_;
  Vec3<S> base_acceleration_;
  Pose<S> X_WB_;

  std::vector<Force<S>> external_;
  bool has_external_ = false;
  unsigned revision_ = 0;

  // By body, in whole blocks: a body's coordinate = multiplier · q[source] + offset.
  std::vector<std::ptrdiff_t> source_;
  BlockVector<S> multiplier_, offset_;
  BlockVector<S> coordinate_, sine_, cosine_;
  std::vector<S> slide_;          ///< by body: helical, X.d where the coordinate is zero
  std::vector<int> path_;         ///< nb
  std::vector<Vec3<S>> moments_;  ///< per body, for update_pivot_scales
  int nb_ = 0;
  int nq_;
  int nv_;
  bool has_mimic_ = false;
  bool branched_ = false;
  bool dense_mass_matrix_ = true;
};

// --- Arguments -----------------------------------------------------------------------------------

namespace detail {

/// An algorithm's arguments beside q: inputs (nv) and outputs (nv, or nv × nv), told apart by their
/// types.
template <class S>
[[nodiscard]] RD_INLINE bool fits(int nv, VectorIn<S> x) noexcept {
  return x.size() == nv;
}
template <class S>
[[nodiscard]] RD_INLINE bool fits(int nv, const VectorOut<S>& x) noexcept {
  return x.size() == nv;
}
template <class S>
[[nodiscard]] RD_INLINE bool fits(int nv, const MatrixOut<S>& x) noexcept {
  return x.rows() == nv && x.cols() == nv;
}

template <class S, class... Arguments>
[[nodiscard]] RD_INLINE bool sizes_fit(const Tree<S>& tree, VectorIn<S> q,
                                       const Arguments&... rest) noexcept {
  return q.size() == tree.nq() && (fits<S>(tree.nv(), rest) && ...);
}

/// Adds a block of an input, times zero: zero, or NaN where an element is not finite.
template <class S, class B>
RD_INLINE void add_zeros(VectorIn<S> x, Eigen::Index at, B& sum) noexcept {
  B some;
  load_block<S>(x.data() + at, some);
  sum += some * S(0);
}
template <class S, class B>
RD_INLINE void add_zeros(const VectorOut<S>& /*x*/, Eigen::Index /*at*/, B& /*sum*/) noexcept {}
template <class S, class B>
RD_INLINE void add_zeros(const MatrixOut<S>& /*x*/, Eigen::Index /*at*/, B& /*sum*/) noexcept {}

/// Zero if all inputs are finite. The last block may overlap the one before it.
template <class S, class... Arguments>
[[nodiscard]] RD_INLINE S zero_if_finite_inputs(Eigen::Index n,
                                                const Arguments&... arguments) noexcept {
  constexpr Eigen::Index width = block_width<S>;
  S rest(0);
  if (n < width) {
    for (Eigen::Index k = 0; k < n; ++k) (add_zeros<S>(arguments, k, rest), ...);
    return rest;
  }
  Block<S> sum = Block<S>{} * rest;
  for (Eigen::Index k = 0; k < n; k += width)
    (add_zeros<S>(arguments, std::min(k, n - width), sum), ...);
  return sum_of_block<S>(sum);
}

}  // namespace detail

/// Sizes and finiteness of an algorithm's arguments: q, then inputs and outputs.
template <class S, class... Arguments>
[[nodiscard]] RD_INLINE StatusOf<S> check(const Tree<S>& tree, VectorIn<S> q,
                                          const Arguments&... rest) noexcept {
  if (!detail::sizes_fit<S>(tree, q, rest...)) return Status::wrong_size;
  return finite_status<S>(
      S(zero_if_finite<S>(q) + detail::zero_if_finite_inputs<S>(tree.nv(), rest...)));
}

/// Of a vector of nv entries alone.
template <class S>
[[nodiscard]] StatusOf<S> check_vector(const Tree<S>& tree, VectorIn<S> v) noexcept {
  return v.size() == tree.nv() ? result_status<S>(v) : StatusOf<S>(Status::wrong_size);
}

/// The same, and the bodies brought to q.
template <class S, class... Arguments>
[[nodiscard]] RD_INLINE StatusOf<S> check_and_move(Tree<S>& tree, VectorIn<S> q,
                                                   const Arguments&... rest) noexcept {
  if (!detail::sizes_fit<S>(tree, q, rest...)) return Status::wrong_size;
  return tree.move_to(q, detail::zero_if_finite_inputs<S>(tree.nv(), rest...));
}

// --- Implementation ------------------------------------------------------------------------------

namespace detail {

template <class S>
[[nodiscard]] Vec3<S> cast3(const Eigen::Vector3d& u) {
  return {S(u[0]), S(u[1]), S(u[2])};
}
template <class S>
[[nodiscard]] Mat3<S> cast33(const Eigen::Matrix3d& A) {
  Mat3<S> out;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) out(i, j) = S(A(i, j));
  return out;
}
template <class S>
[[nodiscard]] RigidInertia<S> cast(const RigidInertia<double>& A) {
  return {
      S(A.m), cast3<S>(A.h), {S(A.I.xx), S(A.I.xy), S(A.I.xz), S(A.I.yy), S(A.I.yz), S(A.I.zz)}};
}
template <class S>
[[nodiscard]] Transform<S> cast(const Transform<double>& X) {
  return {S(X.ca), S(X.sa), S(X.a), S(X.c), S(X.s),  S(X.d),
          S(X.cg), S(X.sg), S(X.e), S(X.b), X.branch};
}
template <class S>
[[nodiscard]] Pose<S> cast(const Pose<double>& X) {
  return {cast33<S>(X.R), cast3<S>(X.p)};
}

}  // namespace detail

/// An inertia about its centre of mass in link axes, about the origin of the body that the link is
/// fixed in, in the body's axes.
template <class S>
[[nodiscard]] RigidInertia<S> in_body(const Pose<S>& X_BL, const S& mass, const Vec3<S>& com,
                                      const Mat3<S>& inertia) noexcept {
  const Vec3<S> zero = Vec3<S>::Zero();
  const RigidInertia<S> about_com = {
      mass, zero, Symmetric3<S>::from(Mat3<S>(X_BL.R * inertia * X_BL.R.transpose()))};
  return shift(about_com, Vec3<S>(X_BL * com));
}

template <class S>
Tree<S>::Tree(const Model& model)
    : dof_scale_(VectorX<S>::Zero(model.nv)),
      X_WB_(detail::cast<S>(model.X_WB)),
      nq_(model.nq),
      nv_(model.nv) {
  base_acceleration_ = -(X_WB_.R.transpose() * detail::cast3<S>(model.gravity));
  for (const BodyData& b : model.bodies)
    add_body(b, std::any_of(model.bodies.begin(), model.bodies.end(),
                            [&b](const BodyData& o) { return o.dof == b.dof && &o != &b; }));
  const auto n = bodies_.size();
  external_.assign(n, Force<S>::zero());
  const auto padded = static_cast<std::size_t>(blocks_for<S>(nb())) * block_width<S>;
  source_.resize(padded, 0);
  multiplier_.resize(padded, S(0));
  offset_.resize(padded, S(0));
  coordinate_.assign(padded, S(0));
  sine_.assign(padded, S(0));
  cosine_.assign(padded, S(1));
  moments_.resize(n);
  path_.assign(n, 0);
  find_dof_parents();
  add_links(model);
}

template <class S>
void Tree<S>::add_body(const BodyData& from, bool shared) {
  const int index = nb_++;
  Body<S> b;
  b.X = detail::cast<S>(from.X);
  b.inertia = RigidInertia<S>::zero();
  b.multiplier = S(from.multiplier);
  b.rotor = S(from.rotor);
  b.pivot_scale = S(0);
  b.parent = from.parent;
  b.dof = from.dof;
  b.q = from.q;
  set_kind<S>(from, b);
  b.mimic = from.mimic;
  b.has_rotor = from.rotor != 0.0;
  b.shared = shared;
  bodies_.push_back(b);
  has_mimic_ = has_mimic_ || from.mimic;
  branched_ = branched_ || from.parent != index - 1;
  const bool has_coordinate = !is_floating(from.kind);
  source_.push_back(has_coordinate ? from.q : 0);
  multiplier_.push_back(S(has_coordinate ? from.multiplier : 0.0));
  offset_.push_back(S(from.offset));
  slide_.push_back(S(from.slide));
  if (from.kind != JointKind::floating_first) return;
  const Eigen::Quaterniond r(from.origin.R);
  floating_bodies_.push_back(index);
  floating_.push_back(
      {index, detail::cast<S>(from.origin), {S(r.x()), S(r.y()), S(r.z()), S(r.w())}});
}

template <class S>
void Tree<S>::add_links(const Model& model) {
  for (const LinkInfo& l : model.links) {
    const Pose<S> X_BL = detail::cast<S>(l.X_BL);
    const auto own = in_body<S>(X_BL, S(l.inertial.mass), detail::cast3<S>(l.inertial.com),
                                detail::cast33<S>(l.inertial.inertia));
    links_.push_back({l.body, X_BL, own, RigidInertia<S>::zero()});
  }
  for (int i = 0; i < nb(); ++i) sum_inertia(i);
  update_pivot_scales();
}

template <class S>
void Tree<S>::find_dof_parents() {
  dof_parent_.resize(static_cast<std::size_t>(nv_));
  dof_body_.assign(static_cast<std::size_t>(nv_), -1);
  for (int i = 0; i < nv_; ++i) dof_parent_[static_cast<std::size_t>(i)] = i - 1;
  for (std::size_t i = 0; i < bodies_.size(); ++i)
    if (!bodies_[i].mimic)
      dof_body_[static_cast<std::size_t>(bodies_[i].dof)] = static_cast<int>(i);
  if (has_mimic_) return;  // coordinates that share bodies couple what the tree keeps apart
  for (const Body<S>& b : bodies_) {
    const int parent = b.parent < 0 ? -1 : bodies_[static_cast<std::size_t>(b.parent)].dof;
    dof_parent_[static_cast<std::size_t>(b.dof)] = parent;
    dense_mass_matrix_ = dense_mass_matrix_ && parent == b.dof - 1;
  }
}

template <class S>
void Tree<S>::sum_inertia(int body) noexcept {
  RigidInertia<S> sum = RigidInertia<S>::zero();
  for (const Link<S>& link : links_) {
    if (link.body != body) continue;
    sum += link.own;
    sum += link.payload;
  }
  bodies_[static_cast<std::size_t>(body)].inertia = sum;
  ++revision_;
}

template <class S>
StatusOf<S> Tree<S>::set_gravity(const Vec3<S>& g) noexcept {
  const S sum = g.sum();
  if (is_finite(sum)) base_acceleration_ = -(X_WB_.R.transpose() * g);
  return finite_status<S>(sum);
}

template <class S>
Status Tree<S>::set_payload(int link, const Payload<S>& payload) noexcept {
  if (!has_link(link)) return Status::out_of_range;
  const Mat3<S> I = payload.inertia.matrix();
  if (!is_finite(S(payload.mass + payload.com.sum() + I.sum()))) return Status::not_finite;
  if (is_negative(payload.mass)) return Status::out_of_range;
  Link<S>& on = links_[static_cast<std::size_t>(link)];
  on.payload = in_body<S>(on.X_BL, payload.mass, payload.com, I);
  if (on.body < 0) return Status::ok;
  sum_inertia(on.body);
  update_pivot_scales();
  return Status::ok;
}

template <class S>
void Tree<S>::set_link_inertia(int link, const RigidInertia<S>& own) noexcept {
  Link<S>& on = links_[static_cast<std::size_t>(link)];
  on.own = own;
  if (on.body < 0) return;
  sum_inertia(on.body);
  update_pivot_scales();
}

template <class S>
Status Tree<S>::set_rotor_inertia(int dof, const S& inertia) noexcept {
  if (dof < 0 || dof >= nv_) return Status::out_of_range;
  Body<S>& b = bodies_[static_cast<std::size_t>(dof_body_[static_cast<std::size_t>(dof)])];
  if (!is_finite(inertia)) return Status::not_finite;
  b.rotor = inertia;
  b.has_rotor = true;
  return Status::ok;
}

template <class S>
Status Tree<S>::add_external_force(int link, const Force<S>& F_L) noexcept {
  if (!has_link(link)) return Status::out_of_range;
  if (!is_finite(S(F_L.n.sum() + F_L.f.sum()))) return Status::not_finite;
  const Link<S>& on = links_[static_cast<std::size_t>(link)];
  if (on.body < 0) return Status::ok;  // no joint feels a force on what is fixed in the world
  const Vec3<S> f = on.X_BL.R * F_L.f;
  const Vec3<S> n = on.X_BL.R * F_L.n + on.X_BL.p.cross(f);
  external_[static_cast<std::size_t>(on.body)] += {n, f};
  has_external_ = true;
  return Status::ok;
}

template <class S>
void Tree<S>::clear_external_forces() noexcept {
  for (Force<S>& F : external_) F = Force<S>::zero();
  has_external_ = false;
}

/// Bounds on Σm, Σm·r and Σm·r² of each subtree, r ≤ the way along the links to the joint. They do
/// not depend on the configuration (a slide is taken as one metre long), so that a pivot can be
/// called lost in round-off without knowing the matrix it belongs to.
template <class S>
void Tree<S>::update_pivot_scales() noexcept {
  using std::abs;
  using std::sqrt;
  for (auto& m : moments_) m = Vec3<S>::Zero();
  for (std::size_t i = bodies_.size(); i-- > 0;) {
    Body<S>& b = bodies_[i];
    const RigidInertia<S>& I = b.inertia;
    moments_[i] +=
        Vec3<S>(abs(I.m), sqrt(I.h.squaredNorm()), abs(I.I.xx) + abs(I.I.yy) + abs(I.I.zz));
    const Vec3<S>& m = moments_[i];
    b.pivot_scale = axial_inertia<S>(b, m[0], m[2]) + b.rotor;
    if (b.parent < 0) continue;
    Transform<S> X = b.X;
    if (slides(b.kind)) X.d = S(0);
    const S L = b.kind == JointKind::floating_first
                    ? S(1)
                    : S(sqrt(X.position().squaredNorm()) + S(slides(b.kind) ? 1 : 0));
    moments_[static_cast<std::size_t>(b.parent)] +=
        Vec3<S>(m[0], m[1] + L * m[0], m[2] + S(2) * L * m[1] + L * L * m[0]);
  }
  dof_scale_.setZero();
  for (const Body<S>& b : bodies_) dof_scale_[b.dof] += b.multiplier * b.multiplier * b.pivot_scale;
}

template <class S>
StatusOf<S> Tree<S>::move_to(VectorIn<S> q, const S& others) noexcept {
  const int n = nb();
  const int padded = static_cast<int>(coordinate_.size());
  S* coordinate = coordinate_.data();
  Block<S> zeros = Block<S>{} * S(0);
  for (int k = 0; k < padded; k += block_width<S>) {
    Block<S> x, multiplier, offset;
    gather_block<S>(q.data(), source_.data() + k, x);
    load_block<S>(multiplier_.data() + k, multiplier);
    load_block<S>(offset_.data() + k, offset);
    x = multiplier * x + offset;
    store_block<S>(x, coordinate + k);
    zeros += x * S(0);
  }
  StatusOf<S> status = finite_status<S>(S(others + sum_of_block<S>(zeros)));
  if (failed(status)) return status;
  sincos_many(coordinate, sine_.data(), cosine_.data(), padded);
  Body<S>* body = bodies_.data();
  for (int i = 0; i < n; ++i)
    set_coordinate<S>(coordinate[i], sine_.data()[i], cosine_.data()[i], slide_.data()[i], body[i]);
  for (const FloatingJoint& joint : floating_) status = merged(status, move_floating(joint, q));
  return status;
}

template <class S>
int Tree<S>::move_path_to(VectorIn<S> q, int tip, StatusOf<S>& status) noexcept {
  int n = 0;
  S* coordinate = coordinate_.data();
  for (int i = tip; i >= 0; i = bodies_.data()[i].parent, ++n) {
    path_.data()[n] = i;
    coordinate[n] = multiplier_.data()[i] * q[source_.data()[i]] + offset_.data()[i];
  }
  FiniteSum<S> sum;
  sum.add(coordinate, n);
  status = merged(status, finite_status<S>(sum.value()));
  sincos_many(coordinate, sine_.data(), cosine_.data(), blocks_for<S>(n) * block_width<S>);
  for (int k = 0; k < n; ++k) {
    const int i = path_.data()[k];
    set_coordinate<S>(coordinate[k], sine_.data()[k], cosine_.data()[k], slide_.data()[i],
                      bodies_.data()[i]);
  }
  for (const FloatingJoint& joint : floating_) status = merged(status, move_floating(joint, q));
  return n;
}

template <class S>
StatusOf<S> Tree<S>::move_floating(const FloatingJoint& joint, VectorIn<S> q) noexcept {
  Body<S>& b = bodies_[static_cast<std::size_t>(joint.body)];
  Quaternion<S> given{q[b.q + 3], q[b.q + 4], q[b.q + 5], q[b.q + 6]};
  StatusOf<S> status = result_status<S>(q.segment(b.q, 7));
  if (failed(status)) return status;
  if (!scale_to_order_one<S>(given, status)) return status;
  const Quaternion<S> in_parent{joint.rotation[0], joint.rotation[1], joint.rotation[2],
                                joint.rotation[3]};
  // The first body's z is the joint's x: a turn by 120° about (1, 1, 1).
  const Quaternion<S> to_first{S(0.5), S(0.5), S(0.5), S(0.5)};
  set_rotation<S>(quaternion_product<S>(quaternion_product<S>(in_parent, given), to_first), b.X);
  const Vec3<S> p = joint.origin * Vec3<S>(q[b.q], q[b.q + 1], q[b.q + 2]);
  const Vec3<S> r = unrotate_z(b.X.cg, b.X.sg, p);
  b.X.a = r[0];
  b.X.e = r[1];
  b.X.b = r[2];
  return status;
}

}  // namespace dynamics_core
