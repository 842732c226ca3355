#pragma once

/// Everything an algorithm reads and writes besides its arguments: the model's constants in the
/// algorithm's scalar type, and scratch space for every family. All memory is taken in the
/// constructor; nothing after it allocates. One workspace per thread.

#include <Eigen/Geometry>
#include <vector>

#include "dynamics_core/model.hpp"
#include "dynamics_core/scalar.hpp"
#include "dynamics_core/spatial.hpp"
#include "dynamics_core/status.hpp"

namespace dynamics_core {

/// A body's constants in the scalar type S. Only X.c, X.s, X.d (and for a floating joint all of X)
/// change, with the configuration.
template <class S>
struct Body {
  Transform<S> X;
  RigidInertia<S> inertia;
  S multiplier;
  S offset;
  S rotor;          ///< reflected rotor inertia
  S pivot_scale;    ///< how large hᵀ I^C h of the subtree can be; pivots are judged against it
  int parent;
  int dof;
  int q;
  int axis;         ///< floating joints: which of the six motions this is
  Motions kind;
  bool mimic;

  [[nodiscard]] bool turns() const noexcept {
    return kind == Motions::revolute || kind == Motions::floating_first ||
           kind == Motions::floating_angular;
  }
  [[nodiscard]] bool floating() const noexcept { return kind >= Motions::floating_first; }
};

/// A rigid load fixed to a link.
template <class S>
struct Payload {
  S mass;
  Vec3<S> com;            ///< in the link's frame
  Symmetric3<S> inertia;  ///< about the load's centre of mass, in the link's axes
};

template <class S>
class Workspace {
 public:
  explicit Workspace(const Model& model);

  [[nodiscard]] int nb() const noexcept { return static_cast<int>(bodies.size()); }
  [[nodiscard]] int nq() const noexcept { return nq_; }
  [[nodiscard]] int nv() const noexcept { return nv_; }
  [[nodiscard]] bool has_mimic() const noexcept { return has_mimic_; }

  /// Gravity in the world (root link) frame, m/s².
  void set_gravity(const Vec3<S>& g) noexcept { base_acceleration = -(X_WB.R.transpose() * g); }
  [[nodiscard]] Vec3<S> gravity() const noexcept { return -(X_WB.R * base_acceleration); }

  /// Puts a load on a link (index into Model::links), in place of the one it carries. Mass zero
  /// takes it off. A load on a link that is fixed in the world changes nothing.
  [[nodiscard]] Status set_payload(int link, const Payload<S>& payload) noexcept;

  /// Adds a force [n; f] on a link, about the link's origin in the link's axes, for the inverse
  /// and forward dynamics that follow, until clear_external_forces().
  [[nodiscard]] Status add_external_force(int link, const Force<S>& F_L) noexcept;
  void clear_external_forces() noexcept;

  // --- constants ---------------------------------------------------------------------------------
  std::vector<Body<S>> bodies;
  Vec3<S> base_acceleration;  ///< −g in the base frame
  Pose<S> X_WB;               ///< the base frame in the world
  struct Frame {
    int body;
    Pose<S> X_BL;
    RigidInertia<S> own;      ///< the link's own inertia, about its body's origin
    RigidInertia<S> payload;  ///< about its body's origin
  };
  std::vector<Frame> links;
  struct FloatingJoint {
    int body;                          ///< its first body
    Pose<S> origin;                    ///< of the joint in the parent body
    Eigen::Matrix<S, 4, 1> rotation;  ///< origin.R as a quaternion (x y z w)
  };
  std::vector<FloatingJoint> floating;
  RigidInertia<S> base_inertia;  ///< what is fixed in the world

  // --- inputs that persist -----------------------------------------------------------------------
  std::vector<Force<S>> external;  ///< per body, about its origin in its axes
  bool has_external = false;

  // --- scratch, per body -------------------------------------------------------------------------
  struct NewtonEuler {
    Motion<S> V, A;  ///< velocity; classical acceleration of the origin
    Force<S> F;
  };
  std::vector<NewtonEuler> newton_euler;

  struct ArticulatedBody {
    Motion<S> V, A;
    Eigen::Matrix<S, 2, 1> cw, cv;  ///< x and y of ḣ q̇; a sliding body has no cw
    ArticulatedInertia<S> IA;
    Force<S> p;
    Force<S> U;  ///< I^A h
    S inv_D, u;
  };
  std::vector<ArticulatedBody> articulated_body;

  std::vector<RigidInertia<S>> composite;  ///< composite rigid bodies

  // --- scratch in joint space --------------------------------------------------------------------
  MatrixX<S> M;       ///< nv × nv
  VectorX<S> bias;    ///< nv
  VectorX<S> zero_v;  ///< nv zeros

 private:
  void sum_body_inertia(int body) noexcept;
  void update_pivot_scales() noexcept;

  std::vector<Vec3<S>> moments_;  ///< per body, for update_pivot_scales
  int nq_;
  int nv_;
  bool has_mimic_ = false;
};

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
  return {S(A.m),
          cast3<S>(A.h),
          {S(A.I.xx), S(A.I.xy), S(A.I.xz), S(A.I.yy), S(A.I.yz), S(A.I.zz)}};
}
template <class S>
[[nodiscard]] Transform<S> cast(const Transform<double>& X) {
  return {S(X.ca), S(X.sa), S(X.a),  S(X.c), S(X.s), S(X.d),
          S(X.cg), S(X.sg), S(X.e), S(X.b), X.branch};
}
template <class S>
[[nodiscard]] Pose<S> cast(const Pose<double>& X) {
  return {cast33<S>(X.R), cast3<S>(X.p)};
}

template <class S>
[[nodiscard]] Eigen::Matrix<S, 4, 1> quaternion(const Eigen::Matrix3d& R) {
  const Eigen::Quaterniond q(R);
  return {S(q.x()), S(q.y()), S(q.z()), S(q.w())};
}

}  // namespace detail

/// A load or link inertia (about its centre of mass, in link axes) about the origin of the body
/// that the link is fixed in, in the body's axes.
template <class S>
[[nodiscard]] RigidInertia<S> in_body(const Pose<S>& X_BL, const S& mass, const Vec3<S>& com,
                                      const Mat3<S>& inertia) noexcept {
  const Vec3<S> zero = Vec3<S>::Zero();
  const RigidInertia<S> about_com = {
      mass, zero, Symmetric3<S>::from(Mat3<S>(X_BL.R * inertia * X_BL.R.transpose()))};
  return shift(about_com, Vec3<S>(X_BL * com));
}

template <class S>
Workspace<S>::Workspace(const Model& model)
    : X_WB(detail::cast<S>(model.X_WB)),
      base_inertia(RigidInertia<S>::zero()),
      M(MatrixX<S>::Zero(model.nv, model.nv)),
      bias(VectorX<S>::Zero(model.nv)),
      zero_v(VectorX<S>::Zero(model.nv)),
      nq_(model.nq),
      nv_(model.nv) {
  set_gravity(detail::cast3<S>(model.gravity));
  for (const BodyData& b : model.bodies) {
    Body<S> body;
    body.X = detail::cast<S>(b.X);
    body.inertia = detail::cast<S>(b.inertia);
    body.multiplier = S(b.multiplier);
    body.offset = S(b.offset);
    body.rotor = S(b.rotor);
    body.pivot_scale = S(0);
    body.parent = b.parent;
    body.dof = b.dof;
    body.q = b.q;
    body.axis = b.axis;
    body.kind = b.kind;
    body.mimic = b.mimic;
    has_mimic_ = has_mimic_ || b.mimic;
    if (b.kind == Motions::floating_first)
      floating.push_back({nb(), detail::cast<S>(b.origin), detail::quaternion<S>(b.origin.R)});
    bodies.push_back(body);
  }
  for (const LinkInfo& l : model.links) {
    const Pose<S> X_BL = detail::cast<S>(l.X_BL);
    const auto own = in_body<S>(X_BL, S(l.inertial.mass), detail::cast3<S>(l.inertial.com),
                                detail::cast33<S>(l.inertial.inertia));
    links.push_back({l.body, X_BL, own, RigidInertia<S>::zero()});
    if (l.body < 0) base_inertia += own;
  }
  const auto n = bodies.size();
  external.assign(n, Force<S>::zero());
  newton_euler.resize(n);
  articulated_body.resize(n);
  composite.resize(n);
  moments_.resize(n);
  for (int i = 0; i < nb(); ++i) sum_body_inertia(i);
  update_pivot_scales();
}

template <class S>
void Workspace<S>::sum_body_inertia(int body) noexcept {
  RigidInertia<S> sum = RigidInertia<S>::zero();
  for (const Frame& link : links) {
    if (link.body != body) continue;
    sum += link.own;
    sum += link.payload;
  }
  bodies[static_cast<std::size_t>(body)].inertia = sum;
}

template <class S>
Status Workspace<S>::set_payload(int link, const Payload<S>& payload) noexcept {
  if (link < 0 || link >= static_cast<int>(links.size())) return Status::out_of_range;
  const Mat3<S> I = payload.inertia.matrix();
  if (!is_finite(payload.mass + payload.com.sum() + I.sum())) return Status::not_finite;
  Frame& frame = links[static_cast<std::size_t>(link)];
  frame.payload = in_body<S>(frame.X_BL, payload.mass, payload.com, I);
  if (frame.body < 0) return Status::ok;
  sum_body_inertia(frame.body);
  update_pivot_scales();
  return Status::ok;
}

template <class S>
Status Workspace<S>::add_external_force(int link, const Force<S>& F_L) noexcept {
  if (link < 0 || link >= static_cast<int>(links.size())) return Status::out_of_range;
  if (!is_finite(F_L.n.sum() + F_L.f.sum())) return Status::not_finite;
  const Frame& frame = links[static_cast<std::size_t>(link)];
  if (frame.body < 0) return Status::ok;  // the world takes it
  const Vec3<S> f = frame.X_BL.R * F_L.f;
  const Vec3<S> n = frame.X_BL.R * F_L.n + frame.X_BL.p.cross(f);
  external[static_cast<std::size_t>(frame.body)] += {n, f};
  has_external = true;
  return Status::ok;
}

template <class S>
void Workspace<S>::clear_external_forces() noexcept {
  for (Force<S>& F : external) F = Force<S>::zero();
  has_external = false;
}

/// Bounds on Σm, Σm·r and Σm·r² of each subtree, r ≤ the way along the links to the joint. They do
/// not depend on the configuration (a slide is taken as one metre long), so that a pivot can be
/// called lost in round-off without knowing the matrix it belongs to.
template <class S>
void Workspace<S>::update_pivot_scales() noexcept {
  const auto magnitude = [](const S& x) {
    using std::sqrt;
    return sqrt(x * x);
  };
  for (auto& m : moments_) m = Vec3<S>::Zero();
  for (std::size_t i = bodies.size(); i-- > 0;) {
    Body<S>& b = bodies[i];
    using std::sqrt;
    moments_[i] += Vec3<S>(
        magnitude(b.inertia.m), sqrt(b.inertia.h.squaredNorm()),
        magnitude(b.inertia.I.xx) + magnitude(b.inertia.I.yy) + magnitude(b.inertia.I.zz));
    b.pivot_scale = (b.turns() ? moments_[i][2] : moments_[i][0]) + b.rotor;
    if (b.parent < 0) continue;
    const S stroke = b.kind == Motions::prismatic ? S(1) : S(0);
    const S L = b.kind == Motions::floating_first ? S(1)
                                                  : S(sqrt(b.X.position().squaredNorm()) + stroke);
    const Vec3<S>& m = moments_[i];
    moments_[static_cast<std::size_t>(b.parent)] +=
        Vec3<S>(m[0], m[1] + L * m[0], m[2] + S(2) * L * m[1] + L * L * m[0]);
  }
}

}  // namespace dynamics_core
