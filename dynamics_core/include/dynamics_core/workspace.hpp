#pragma once

/// Everything an algorithm reads and writes besides its arguments: the model's constants in the
/// algorithm's scalar type, and scratch space for every family. All memory is taken in the
/// constructor; nothing after it allocates. One workspace per thread.

#include <Eigen/Geometry>
#include <algorithm>
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
  S rotor;        ///< reflected rotor inertia
  S pivot_scale;  ///< how large hᵀ I^C h of the subtree can be; pivots are judged against it
  int parent;
  int dof;
  int q;
  int axis;  ///< floating joints: which of the six motions this is
  Motions kind;
  bool mimic;
  bool shared;  ///< another body moves with the same coordinate

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

  [[nodiscard]] int nb() const noexcept { return nb_; }
  [[nodiscard]] int nq() const noexcept { return nq_; }
  [[nodiscard]] int nv() const noexcept { return nv_; }
  [[nodiscard]] bool has_mimic() const noexcept { return has_mimic_; }
  /// False for a single serial chain.
  [[nodiscard]] bool branched() const noexcept { return branched_; }

  /// Gravity in the world (root link) frame, m/s².
  [[nodiscard]] Status set_gravity(const Vec3<S>& g) noexcept {
    if (!is_finite(S(g.sum()))) return Status::not_finite;
    base_acceleration = -(X_WB.R.transpose() * g);
    return Status::ok;
  }
  [[nodiscard]] Vec3<S> gravity() const noexcept { return -(X_WB.R * base_acceleration); }

  /// Puts a load on a link (index into Model::links), in place of the one it carries. Mass zero
  /// takes it off, a negative one is refused. A load on a link that is fixed in the world changes
  /// nothing.
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
    int body;                         ///< its first body
    Pose<S> origin;                   ///< of the joint in the parent body
    Eigen::Matrix<S, 4, 1> rotation;  ///< origin.R as a quaternion (x y z w)
  };
  std::vector<FloatingJoint> floating;
  RigidInertia<S> base_inertia;  ///< what is fixed in the world

  // --- inputs that persist -----------------------------------------------------------------------
  std::vector<Force<S>> external;  ///< per body, about its origin in its axes
  bool has_external = false;

  // --- coordinates of the bodies, a whole number of blocks of sincos_many
  // -------------------------
  struct Source {  ///< a body's coordinate = multiplier · q + offset
    int q;
    S multiplier;
    S offset;
  };
  std::vector<Source> sources;
  std::vector<S> coordinate, sine, cosine;

  // --- scratch, per body -------------------------------------------------------------------------
  struct NewtonEuler {
    Motion<S> V, A;  ///< velocity and spatial acceleration
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

  struct Kinematics {
    Pose<S> X_WB;  ///< the body in the world
    Motion<S> V;   ///< velocity of its origin in world axes
    Motion<S> A;   ///< acceleration of its origin for v̇ = 0, in world axes
    S rate;        ///< of the body's own coordinate
    S m;           ///< mass and first moment of the subtree, about the world's origin
    Vec3<S> h;
  };
  std::vector<Kinematics> kinematics;

  struct Regressor {
    int column;      ///< of the body's first parameter; −1: a joint's massless body
    Motion<S> V, A;  ///< velocity and spatial acceleration, in the body's frame
    Force<S> F[10];  ///< force for each parameter at one, carried towards the base
  };
  std::vector<Regressor> regressor;
  int regressor_columns = 0;

  // --- Gibbs–Appell ------------------------------------------------------------------------------
  /// Mass properties that move the robot as the bodies' own do, with as many zeros as possible. A
  /// mass on a hinge's axis moves with the parent as with the body, a body's turning is that of
  /// the parent across a slide. So a turning body hands m, h_z and J_zz down to its parent, a
  /// sliding one all of J. Second moments J = ∫ r rᵀ dm = ½ tr(I) 1 − I (Euler's tensor).
  struct EulerInertia {
    S m;
    Vec3<S> h;
    Symmetric3<S> J;
  };
  struct OmegaTensor {
    S xx, xy, xz, yx, yy, yz, zx, zy, zz;
  };
  struct GibbsAppell {
    EulerInertia own;   ///< constant
    Vec3<S> w, wd;      ///< ω, ω̇
    Vec3<S> sdd;        ///< classical acceleration of the origin
    OmegaTensor Omega;  ///< ω̇~ + ω~²
    Force<S> F;
    EulerInertia composite;  ///< of the subtree
    Vec3<S> s;               ///< from the tree's first origin to this one
    int axes;                ///< where the axes of the path to this body begin in path_axes
    int depth;               ///< bodies on the path, itself not counted
    int blocks;              ///< of four axes, its own included
    bool heavy;              ///< the subtree's composite has a mass
  };
  std::vector<GibbsAppell> gibbs_appell;
  std::vector<S> path_axes;  ///< ∂ω̇/∂q̈ and ∂s̈/∂q̈, in blocks of six rows by four joints
  VectorX<S> path_row;       ///< one row of M, by the bodies of a path

  // --- Cholesky ----------------------------------------------------------------------------------
  std::vector<int> dof_parent;  ///< M(i, j) is zero unless one is an ancestor of the other by this
  bool dense_mass_matrix = true;  ///< every coordinate's parent is the one before it
  VectorX<S> dof_scale;           ///< pivot_scale by coordinate

  // DeNOC (Saha 1999). The first three are constants, kept up to date with the payload.
  struct Denoc {
    Vec3<S> d;        ///< from the origin to the mass centre C; zero where there is no mass
    Vec3<S> r;        ///< from the parent's C to the origin, in the parent's axes; hinges only
    Symmetric3<S> I;  ///< about C
    Vec3<S> w;        ///< twist rate of the mass centre: ω, ω̇, v̇ and W = ω̇× + ω×ω×
    Vec3<S> w_dot;
    Vec3<S> v_dot;
    Mat3<S> W;
    Force<S> F;  ///< γ, about C
  };
  std::vector<Denoc> denoc;
  struct DenocComposite {
    RigidInertia<S> M;  ///< M̃, about C
    Vec3<S> s, s_dot;   ///< from the parent's C to C and its rate, in the parent's axes
    Vec3<S> w;          ///< ω
    Vec3<S> h_dot;      ///< rate of M.h
    Mat3<S> T;          ///< Σ of the bodies' Ṁ and of −m s× ṡ×
  };
  std::vector<DenocComposite> denoc_composite;

  // UDUᵀ (Saha 2001). X, psi and inv_m belong to the last factorisation and outlive other calls.
  struct Udut {
    Transform<S> X;
    ArticulatedInertia<S> M;  ///< M̂
    Force<S> psi;
    S m, inv_m;  ///< m̂ and its inverse
    S tau;       ///< τ̃
    Force<S> eta;
    Motion<S> mu;
    bool free_hinge;  ///< revolute, without rotor inertia
  };
  std::vector<Udut> udut;
  Status udut_status = Status::singular;  ///< of the last factorisation

  struct OperationalSpace {
    MatrixX<S> J_full;  ///< 6 × nv, all rows
    MatrixX<S> J;       ///< 6 × nv, the task's rows on top
    MatrixX<S> Jbar;    ///< nv × 6, M⁻¹Jᵀ, then J̄ in the task's columns
    Mat6<S> Lambda;     ///< the task's block at the top left
    Vec6<S> mu, p;      ///< the task's entries on top
    VectorX<S> force;   ///< nv
    int rows = 0;       ///< of the task
  } operational_space;

  // --- scratch in joint space --------------------------------------------------------------------
  MatrixX<S> M;       ///< nv × nv
  MatrixX<S> H;       ///< nb × nb where there are mimic joints, else empty
  VectorX<S> bias;    ///< nv
  VectorX<S> zero_v;  ///< nv zeros

 private:
  void sum_body_inertia(int body) noexcept;
  void update_mass_centre(int body) noexcept;
  void update_pivot_scales() noexcept;
  void size_gibbs_appell();
  void size_cholesky();
  void update_gibbs_appell() noexcept;

  std::vector<Vec3<S>> moments_;  ///< per body, for update_pivot_scales
  int nb_;
  int nq_;
  int nv_;
  bool has_mimic_ = false;
  bool branched_ = false;
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
      nb_(model.nb()),
      nq_(model.nq),
      nv_(model.nv) {
  base_acceleration = -(X_WB.R.transpose() * detail::cast3<S>(model.gravity));
  for (const BodyData& b : model.bodies) {
    Body<S> body;
    body.X = detail::cast<S>(b.X);
    body.inertia = detail::cast<S>(b.inertia);
    body.multiplier = S(b.multiplier);
    body.rotor = S(b.rotor);
    body.pivot_scale = S(0);
    body.parent = b.parent;
    body.dof = b.dof;
    body.q = b.q;
    body.axis = b.axis;
    body.kind = b.kind;
    body.mimic = b.mimic;
    body.shared = std::any_of(model.bodies.begin(), model.bodies.end(),
                              [&b](const BodyData& o) { return o.dof == b.dof && &o != &b; });
    has_mimic_ = has_mimic_ || b.mimic;
    if (b.kind == Motions::floating_first)
      floating.push_back({static_cast<int>(bodies.size()), detail::cast<S>(b.origin),
                          detail::quaternion<S>(b.origin.R)});
    const bool has_source = b.kind == Motions::revolute || b.kind == Motions::prismatic;
    sources.push_back({has_source ? b.q : 0, S(has_source ? b.multiplier : 0.0), S(b.offset)});
    branched_ = branched_ || b.parent != static_cast<int>(bodies.size()) - 1;
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
  const auto padded = (n + sincos_block - 1) / sincos_block * sincos_block;
  coordinate.assign(padded, S(0));
  sine.assign(padded, S(0));
  cosine.assign(padded, S(1));
  newton_euler.resize(n);
  articulated_body.resize(n);
  composite.resize(n);
  kinematics.resize(
      n, {Pose<S>::identity(), Motion<S>::zero(), Motion<S>::zero(), S(0), S(0), Vec3<S>::Zero()});
  operational_space.J_full = operational_space.J = MatrixX<S>::Zero(6, nv_);
  operational_space.Jbar = MatrixX<S>::Zero(nv_, 6);
  operational_space.Lambda = Mat6<S>::Zero();
  operational_space.mu = operational_space.p = Vec6<S>::Zero();
  operational_space.force = VectorX<S>::Zero(nv_);
  regressor.resize(n);
  for (auto& r : regressor) r.column = -1;
  for (const Frame& link : links) {
    if (link.body >= 0) regressor[static_cast<std::size_t>(link.body)].column = 0;
  }
  for (auto& r : regressor) {
    if (r.column < 0) continue;
    r.column = regressor_columns;
    regressor_columns += 10;
  }
  denoc.resize(n);
  denoc_composite.resize(n);
  udut.resize(n);
  for (std::size_t i = 0; i < n; ++i)
    udut[i].free_hinge = bodies[i].turns() && model.bodies[i].rotor == 0.0;
  if (has_mimic_) H.setZero(nb_, nb_);
  moments_.resize(n);
  size_gibbs_appell();
  size_cholesky();
  for (int i = 0; i < nb(); ++i) sum_body_inertia(i);
  update_pivot_scales();
  update_gibbs_appell();
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
  update_mass_centre(body);
}

/// A body without mass has its origin for a mass centre; what inertia it has is a pure couple's.
template <class S>
void Workspace<S>::update_mass_centre(int body) noexcept {
  const RigidInertia<S>& own = bodies[static_cast<std::size_t>(body)].inertia;
  Denoc& l = denoc[static_cast<std::size_t>(body)];
  for (int k = 0; k < 3; ++k) l.d[k] = safe_ratio(own.h[k], own.m, S(0));
  l.I = shift(own, Vec3<S>(-l.d)).I;
  for (int i = body; i < nb(); ++i) {
    const Body<S>& b = bodies[static_cast<std::size_t>(i)];
    if (b.parent == body) denoc[static_cast<std::size_t>(i)].r = b.X.position() - l.d;
  }
}

template <class S>
Status Workspace<S>::set_payload(int link, const Payload<S>& payload) noexcept {
  if (link < 0 || link >= static_cast<int>(links.size())) return Status::out_of_range;
  const Mat3<S> I = payload.inertia.matrix();
  if (!is_finite(payload.mass + payload.com.sum() + I.sum())) return Status::not_finite;
  if (payload.mass < S(0)) return Status::out_of_range;
  Frame& frame = links[static_cast<std::size_t>(link)];
  frame.payload = in_body<S>(frame.X_BL, payload.mass, payload.com, I);
  if (frame.body < 0) return Status::ok;
  sum_body_inertia(frame.body);
  update_pivot_scales();
  update_gibbs_appell();
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
    moments_[i] +=
        Vec3<S>(magnitude(b.inertia.m), sqrt(b.inertia.h.squaredNorm()),
                magnitude(b.inertia.I.xx) + magnitude(b.inertia.I.yy) + magnitude(b.inertia.I.zz));
    b.pivot_scale = (b.turns() ? moments_[i][2] : moments_[i][0]) + b.rotor;
    if (b.parent < 0) continue;
    const S stroke = b.kind == Motions::prismatic ? S(1) : S(0);
    const S L =
        b.kind == Motions::floating_first ? S(1) : S(sqrt(b.X.position().squaredNorm()) + stroke);
    const Vec3<S>& m = moments_[i];
    moments_[static_cast<std::size_t>(b.parent)] +=
        Vec3<S>(m[0], m[1] + L * m[0], m[2] + S(2) * L * m[1] + L * L * m[0]);
  }
  dof_scale.setZero();
  for (const Body<S>& b : bodies) dof_scale[b.dof] += b.multiplier * b.multiplier * b.pivot_scale;
}

template <class S>
void Workspace<S>::size_gibbs_appell() {
  gibbs_appell.resize(bodies.size());
  int size = 0;
  int longest = 0;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    GibbsAppell& g = gibbs_appell[i];
    const int parent = bodies[i].parent;
    g.depth = parent < 0 ? 0 : gibbs_appell[static_cast<std::size_t>(parent)].depth + 1;
    g.blocks = g.depth / 4 + 1;
    g.axes = size;
    g.heavy = false;
    size += 24 * g.blocks;
    longest = g.blocks > longest ? g.blocks : longest;
  }
  for (std::size_t i = bodies.size(); i-- > 0;) {
    GibbsAppell& g = gibbs_appell[i];
    g.heavy = g.heavy || bodies[i].kind != Motions::revolute;
    const int parent = bodies[i].parent;
    if (parent >= 0 && g.heavy) gibbs_appell[static_cast<std::size_t>(parent)].heavy = true;
  }
  path_axes.assign(static_cast<std::size_t>(size), S(0));
  path_row = VectorX<S>::Zero(4 * longest);
}

template <class S>
void Workspace<S>::update_gibbs_appell() noexcept {
  // From the tips to the base; `own.J` holds the inertia I until its body's turn comes.
  const auto inertia = [](EulerInertia& e) { return RigidInertia<S>{e.m, e.h, e.J}; };
  const auto add = [&](int body, const RigidInertia<S>& part) {
    if (body < 0) return;  // what the base carries moves nothing
    EulerInertia& own = gibbs_appell[static_cast<std::size_t>(body)].own;
    RigidInertia<S> sum = inertia(own);
    sum += part;
    own = {sum.m, sum.h, sum.I};
  };
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const RigidInertia<S>& I = bodies[i].inertia;
    gibbs_appell[i].own = {I.m, I.h, I.I};
  }
  const S zero(0);
  const S half(0.5);
  for (std::size_t i = bodies.size(); i-- > 0;) {
    const Body<S>& b = bodies[i];
    EulerInertia& own = gibbs_appell[i].own;
    const Symmetric3<S> I = own.J;
    const S Jzz = half * (I.xx + I.yy - I.zz);
    own.J = {half * (I.yy + I.zz - I.xx), -I.xy, -I.xz, half * (I.xx + I.zz - I.yy), -I.yz, Jzz};
    Transform<S> X = b.X;  // masses on the axis do not feel the hinge's angle
    if (b.kind == Motions::revolute) {
      X.c = S(1);
      X.s = zero;
      const Vec3<S> h(zero, zero, own.h[2]);
      add(b.parent, X.to_parent(RigidInertia<S>{own.m, h, {Jzz, zero, zero, Jzz, zero, zero}}));
      own.m = zero;
      own.h[2] = zero;
      own.J.zz = zero;
    } else if (b.kind == Motions::prismatic) {
      add(b.parent, {zero, Vec3<S>::Zero(), X.to_parent(I)});
      own.J = Symmetric3<S>::zero();
    }
  }
}

template <class S>
void Workspace<S>::size_cholesky() {
  dof_scale = VectorX<S>::Zero(nv_);
  dof_parent.resize(static_cast<std::size_t>(nv_));
  for (int i = 0; i < nv_; ++i) dof_parent[static_cast<std::size_t>(i)] = i - 1;
  if (has_mimic_) return;  // coordinates that share bodies couple what the tree keeps apart
  for (const Body<S>& b : bodies) {
    const int parent = b.parent < 0 ? -1 : bodies[static_cast<std::size_t>(b.parent)].dof;
    dof_parent[static_cast<std::size_t>(b.dof)] = parent;
    dense_mass_matrix = dense_mass_matrix && parent == b.dof - 1;
  }
}

}  // namespace dynamics_core
