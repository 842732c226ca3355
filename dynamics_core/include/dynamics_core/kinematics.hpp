#pragma once

/// Where the links are and how they move: poses, velocities, Jacobians and their rates, centre of
/// mass, energy; and the steps between v and the rate of q.
///
/// `update` walks the tree once for a state; the queries after it read what it left in the
/// workspace, until the next update. All results are in world axes. Links are indices into
/// Model::links; an index that is none gives Status::out_of_range. What is fixed in the world has
/// no part in the centre of mass and the energy.

#include "dynamics_core/joints.hpp"

namespace dynamics_core::kinematics {

namespace detail {

using dynamics_core::detail::Identity;

/// R := R · (turn by (c, s) in the plane of axes i and j).
template <class S>
void turn_columns(Mat3<S>& R, int i, int j, const S& c, const S& s) noexcept {
  const Vec3<S> x = R.col(i);
  const Vec3<S> y = R.col(j);
  R.col(i) = c * x + s * y;
  R.col(j) = c * y - s * x;
}

/// The body's pose from its parent's.
template <class S>
[[nodiscard]] Pose<S> across(const Pose<S>& X_WP, const Transform<S>& X) noexcept {
  Pose<S> Y = X_WP;
  if (X.branch) {
    turn_columns<S>(Y.R, 0, 1, X.cg, X.sg);
    Y.p += X.e * Y.R.col(1) + X.b * Y.R.col(2);
  }
  Y.p += X.a * Y.R.col(0);
  turn_columns<S>(Y.R, 1, 2, X.ca, X.sa);
  Y.p += X.d * Y.R.col(2);
  turn_columns<S>(Y.R, 0, 1, X.c, X.s);
  return Y;
}

template <class S>
void update_poses(Workspace<S>& ws) noexcept {
  auto* at = ws.kinematics.data();
  for (int i = 0; i < ws.nb(); ++i) {
    const Body<S>& b = ws.bodies.data()[i];
    at[i].X_WB = across<S>(b.parent < 0 ? ws.X_WB : at[b.parent].X_WB, b.X);
  }
}

/// The velocity and the acceleration for v̇ = 0, both of the origin, from the parent's: the frame
/// moves with the parent, and then by ω, u in it. The axes of ω and u turn with the body.
template <class S>
void move(const Vec3<S>& r, const Vec3<S>& w, const Vec3<S>& u, Motion<S>& V,
          Motion<S>& A) noexcept {
  const Vec3<S> wp = V.w;
  const Vec3<S> arm_rate = wp.cross(r);
  V.w += w;
  V.v += arm_rate + u;
  A.v += A.w.cross(r) + wp.cross(arm_rate) + (wp + V.w).cross(u);
  A.w += wp.cross(w);
}

template <class S>
void update_velocities(Workspace<S>& ws, VectorIn<S> v) noexcept {
  auto* at = ws.kinematics.data();
  for (int i = 0; i < ws.nb(); ++i) {
    const Body<S>& b = ws.bodies.data()[i];
    auto& k = at[i];
    k.rate = rate<S>(b, v);
    k.V = b.parent < 0 ? Motion<S>::zero() : at[b.parent].V;
    k.A = b.parent < 0 ? Motion<S>::zero() : at[b.parent].A;
    if (b.kind > Motions::floating_first) continue;  // moves with the first of its joint
    const Vec3<S> r = k.X_WB.p - (b.parent < 0 ? ws.X_WB.p : at[b.parent].X_WB.p);
    Motion<S> own = Motion<S>::zero();
    add_joint_velocity<S>(b, v, own);
    move<S>(r, k.X_WB.R * own.w, k.X_WB.R * own.v, k.V, k.A);
  }
}

template <class S>
[[nodiscard]] bool has_link(const Workspace<S>& ws, int link) noexcept {
  return link >= 0 && link < static_cast<int>(ws.links.size());
}

/// The origin of a link (or a point of it) relative to its body's origin, in world axes.
template <class S>
[[nodiscard]] Vec3<S> arm(const Workspace<S>& ws, const typename Workspace<S>::Frame& link,
                          const Vec3<S>& offset) noexcept {
  const Vec3<S> in_body = link.X_BL * offset;
  return ws.kinematics[static_cast<std::size_t>(link.body)].X_WB.R * in_body;
}

}  // namespace detail

/// Puts the robot at rest at q.
template <class S>
[[nodiscard]] Status update(Workspace<S>& ws, VectorIn<S> q) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  update_joints<S>(ws, q);
  detail::update_poses(ws);
  for (auto& k : ws.kinematics) {
    k.V = Motion<S>::zero();
    k.A = Motion<S>::zero();
    k.rate = S(0);
  }
  return Status::ok;
}

/// Puts the robot in the state (q, v).
template <class S>
[[nodiscard]] Status update(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, v); s != Status::ok) return s;
  update_joints<S>(ws, q);
  detail::update_poses(ws);
  detail::update_velocities<S>(ws, v);
  return Status::ok;
}

// --- Links ---------------------------------------------------------------------------------------

template <class S>
[[nodiscard]] Status pose(const Workspace<S>& ws, int link, Pose<S>& X_WL) noexcept {
  if (!detail::has_link(ws, link)) return Status::out_of_range;
  const auto& l = ws.links[static_cast<std::size_t>(link)];
  X_WL = (l.body < 0 ? ws.X_WB : ws.kinematics[static_cast<std::size_t>(l.body)].X_WB) * l.X_BL;
  return Status::ok;
}

/// Velocity of link L in the world: ω, and v of the link's origin (or of the point `offset` of the
/// link, in link axes).
template <class S>
[[nodiscard]] Status velocity(
    const Workspace<S>& ws, int link, Motion<S>& V_WL_W,
    const typename detail::Identity<Vec3<S>>::Type& offset = Vec3<S>::Zero()) noexcept {
  if (!detail::has_link(ws, link)) return Status::out_of_range;
  const auto& l = ws.links[static_cast<std::size_t>(link)];
  V_WL_W = Motion<S>::zero();
  if (l.body < 0) return Status::ok;
  V_WL_W = ws.kinematics[static_cast<std::size_t>(l.body)].V;
  V_WL_W.v += V_WL_W.w.cross(detail::arm<S>(ws, l, offset));
  return Status::ok;
}

/// J̇ v: the acceleration [ω̇; v̇] that the same point has when v̇ = 0. Gravity is not in it.
template <class S>
[[nodiscard]] Status bias_acceleration(
    const Workspace<S>& ws, int link, Motion<S>& A_WL_W,
    const typename detail::Identity<Vec3<S>>::Type& offset = Vec3<S>::Zero()) noexcept {
  if (!detail::has_link(ws, link)) return Status::out_of_range;
  const auto& l = ws.links[static_cast<std::size_t>(link)];
  A_WL_W = Motion<S>::zero();
  if (l.body < 0) return Status::ok;
  const auto& k = ws.kinematics[static_cast<std::size_t>(l.body)];
  const Vec3<S> r = detail::arm<S>(ws, l, offset);
  A_WL_W = {k.A.w, k.A.v + k.A.w.cross(r) + k.V.w.cross(k.V.w.cross(r))};
  return Status::ok;
}

/// J (6 × nv), [ω; v] = J v for the same point.
template <class S>
[[nodiscard]] Status jacobian(
    const Workspace<S>& ws, int link, MatrixOut<S> J,
    const typename detail::Identity<Vec3<S>>::Type& offset = Vec3<S>::Zero()) noexcept {
  if (!detail::has_link(ws, link)) return Status::out_of_range;
  if (J.rows() != 6 || J.cols() != ws.nv()) return Status::wrong_size;
  J.setZero();
  const auto& l = ws.links[static_cast<std::size_t>(link)];
  if (l.body < 0) return Status::ok;
  const Vec3<S> p =
      ws.kinematics[static_cast<std::size_t>(l.body)].X_WB.p + detail::arm<S>(ws, l, offset);
  for (int i = l.body; i >= 0; i = ws.bodies[static_cast<std::size_t>(i)].parent) {
    const Body<S>& b = ws.bodies[static_cast<std::size_t>(i)];
    const auto& k = ws.kinematics[static_cast<std::size_t>(i)];
    const Vec3<S> z = b.mimic ? Vec3<S>(b.multiplier * k.X_WB.R.col(2)) : Vec3<S>(k.X_WB.R.col(2));
    auto column = J.col(b.dof);
    if (b.turns()) {
      column.template head<3>() += z;
      column.template tail<3>() += z.cross(Vec3<S>(p - k.X_WB.p));
    } else {
      column.template tail<3>() += z;
    }
  }
  return Status::ok;
}

/// J̇ (6 × nv), so that [ω̇; v̇] = J v̇ + J̇ v for the same point.
template <class S>
[[nodiscard]] Status jacobian_rate(
    const Workspace<S>& ws, int link, MatrixOut<S> Jd,
    const typename detail::Identity<Vec3<S>>::Type& offset = Vec3<S>::Zero()) noexcept {
  if (!detail::has_link(ws, link)) return Status::out_of_range;
  if (Jd.rows() != 6 || Jd.cols() != ws.nv()) return Status::wrong_size;
  Jd.setZero();
  const auto& l = ws.links[static_cast<std::size_t>(link)];
  if (l.body < 0) return Status::ok;
  const auto& tip = ws.kinematics[static_cast<std::size_t>(l.body)];
  const Vec3<S> r = detail::arm<S>(ws, l, offset);
  const Vec3<S> p = tip.X_WB.p + r;
  const Vec3<S> p_rate = tip.V.v + tip.V.w.cross(r);
  for (int i = l.body; i >= 0; i = ws.bodies[static_cast<std::size_t>(i)].parent) {
    const Body<S>& b = ws.bodies[static_cast<std::size_t>(i)];
    const auto& k = ws.kinematics[static_cast<std::size_t>(i)];
    const Vec3<S> z = b.mimic ? Vec3<S>(b.multiplier * k.X_WB.R.col(2)) : Vec3<S>(k.X_WB.R.col(2));
    const Vec3<S> z_rate = k.V.w.cross(z);
    auto column = Jd.col(b.dof);
    if (b.turns()) {
      column.template head<3>() += z_rate;
      column.template tail<3>() +=
          z_rate.cross(Vec3<S>(p - k.X_WB.p)) + z.cross(Vec3<S>(p_rate - k.V.v));
    } else {
      column.template tail<3>() += z_rate;
    }
  }
  return Status::ok;
}

// --- The whole robot -----------------------------------------------------------------------------

/// The mass of all that moves.
template <class S>
[[nodiscard]] S total_mass(const Workspace<S>& ws) noexcept {
  S m(0);
  for (const Body<S>& b : ws.bodies) m += b.inertia.m;
  return m;
}

/// Its centre. Status::singular where there is no mass.
template <class S>
[[nodiscard]] Status centre_of_mass(const Workspace<S>& ws, Vec3<S>& p_WC) noexcept {
  const S m = total_mass(ws);
  if (negligible(m, S(1))) return Status::singular;
  Vec3<S> h = Vec3<S>::Zero();
  for (std::size_t i = 0; i < ws.bodies.size(); ++i) {
    const RigidInertia<S>& I = ws.bodies[i].inertia;
    const Pose<S>& X = ws.kinematics[i].X_WB;
    h += X.R * I.h + I.m * X.p;
  }
  p_WC = h / m;
  return Status::ok;
}

template <class S>
[[nodiscard]] Status centre_of_mass_velocity(const Workspace<S>& ws, Vec3<S>& v_WC) noexcept {
  const S m = total_mass(ws);
  if (negligible(m, S(1))) return Status::singular;
  Vec3<S> momentum = Vec3<S>::Zero();
  for (std::size_t i = 0; i < ws.bodies.size(); ++i) {
    const RigidInertia<S>& I = ws.bodies[i].inertia;
    const auto& k = ws.kinematics[i];
    momentum += I.m * k.V.v + k.V.w.cross(Vec3<S>(k.X_WB.R * I.h));
  }
  v_WC = momentum / m;
  return Status::ok;
}

/// J (3 × nv) of the centre of mass: each joint moves the first moment of its subtree.
template <class S>
[[nodiscard]] Status centre_of_mass_jacobian(Workspace<S>& ws, MatrixOut<S> J) noexcept {
  if (J.rows() != 3 || J.cols() != ws.nv()) return Status::wrong_size;
  const S m = total_mass(ws);
  if (negligible(m, S(1))) return Status::singular;
  J.setZero();
  auto* at = ws.kinematics.data();
  for (int i = 0; i < ws.nb(); ++i) {
    const RigidInertia<S>& I = ws.bodies.data()[i].inertia;
    at[i].m = I.m;
    at[i].h = at[i].X_WB.R * I.h + I.m * at[i].X_WB.p;
  }
  const S share = S(1) / m;
  for (int i = ws.nb() - 1; i >= 0; --i) {
    const Body<S>& b = ws.bodies.data()[i];
    const auto& k = at[i];
    const Vec3<S> z = (b.mimic ? S(b.multiplier * share) : share) * k.X_WB.R.col(2);
    if (b.turns()) {
      J.col(b.dof) += z.cross(Vec3<S>(k.h - k.m * k.X_WB.p));
    } else {
      J.col(b.dof) += k.m * z;
    }
    if (b.parent < 0) continue;
    at[b.parent].m += k.m;
    at[b.parent].h += k.h;
  }
  return Status::ok;
}

template <class S>
struct Energy {
  S kinetic;    ///< with the reflected rotor inertias
  S potential;  ///< in the field of gravity, zero at the world's origin
};

template <class S>
[[nodiscard]] Energy<S> energy(const Workspace<S>& ws) noexcept {
  const Vec3<S> g = ws.gravity();
  Energy<S> E{S(0), S(0)};
  for (std::size_t i = 0; i < ws.bodies.size(); ++i) {
    const Body<S>& b = ws.bodies[i];
    const auto& k = ws.kinematics[i];
    const Motion<S> V = {k.X_WB.R.transpose() * k.V.w, k.X_WB.R.transpose() * k.V.v};
    const Force<S> P = b.inertia * V;
    E.kinetic += S(0.5) * (V.w.dot(P.n) + V.v.dot(P.f) + b.rotor * k.rate * k.rate);
    E.potential -= g.dot(Vec3<S>(k.X_WB.R * b.inertia.h + b.inertia.m * k.X_WB.p));
  }
  return E;
}

// --- Between v and q -----------------------------------------------------------------------------

namespace detail {

template <class S>
using Quaternion = Eigen::Matrix<S, 4, 1>;  // x y z w

/// The rotation of a quaternion of length one, applied to u.
template <class S>
[[nodiscard]] Vec3<S> rotate(const Quaternion<S>& q, const Vec3<S>& u) noexcept {
  const Vec3<S> axis = q.template head<3>();
  const Vec3<S> t = S(2) * axis.cross(u);
  return u + q[3] * t + axis.cross(t);
}

/// A floating joint's quaternion at length one; false where it has lost its direction.
template <class S>
[[nodiscard]] bool unit_quaternion(VectorIn<S> q, int at, Quaternion<S>& unit) noexcept {
  using std::sqrt;
  unit = q.template segment<4>(at);
  const S square = unit.squaredNorm();
  if (negligible(square, S(1))) return false;
  unit /= sqrt(square);
  return true;
}

/// The displacement of a constant twist [φ; u] in the moving axes: quaternion and position, the
/// exponential on SE(3). Each sin(x)/x tends to its limit where the angle vanishes.
template <class S>
void exponential(const Vec3<S>& phi, const Vec3<S>& u, Quaternion<S>& dq, Vec3<S>& dp) noexcept {
  using std::sqrt;
  const S angle = sqrt(phi.squaredNorm());
  const S half = S(0.5) * angle;
  S sin_half;
  S cos_half;
  sincos(half, sin_half, cos_half);
  const S sinc = safe_ratio(sin_half, angle, S(0.5));  // sin(θ/2)/θ
  dq = {sinc * phi[0], sinc * phi[1], sinc * phi[2], cos_half};
  const Vec3<S> t = phi.cross(u);
  // (θ − sin θ)/θ³ loses digits as θ falls, no faster than the θ² it multiplies.
  const S third =
      safe_ratio(S(angle - S(2) * sin_half * cos_half), S(angle * angle * angle), S(1) / S(6));
  dp = u + (S(2) * sinc * sinc) * t + third * phi.cross(t);
}

}  // namespace detail

/// q̇ for the velocity v: equal to v but for a floating joint's position and quaternion. A
/// quaternion's length is kept. Status::out_of_range where a quaternion is zero.
template <class S>
[[nodiscard]] Status configuration_rate(const Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v,
                                        VectorOut<S> q_rate) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, v); s != Status::ok) return s;
  if (q_rate.size() != ws.nq()) return Status::wrong_size;
  for (const Body<S>& b : ws.bodies) {
    if (!b.floating()) {
      q_rate[b.q] = v[b.dof];
    } else if (b.kind == Motions::floating_first) {
      detail::Quaternion<S> unit;
      if (!detail::unit_quaternion<S>(q, b.q + 3, unit)) return Status::out_of_range;
      const Vec3<S> w = v.template segment<3>(b.dof);
      const Vec3<S> u = v.template segment<3>(b.dof + 3);
      const S h(0.5);
      const detail::Quaternion<S> half(h * w[0], h * w[1], h * w[2], S(0));
      const detail::Quaternion<S> given = q.template segment<4>(b.q + 3);
      q_rate.template segment<3>(b.q) = detail::rotate<S>(unit, u);
      q_rate.template segment<4>(b.q + 3) =
          dynamics_core::detail::quaternion_product<S>(given, half);
    }
  }
  return Status::ok;
}

/// Brings every quaternion in q to length one. Status::out_of_range where one is zero.
template <class S>
[[nodiscard]] Status normalize(const Workspace<S>& ws, VectorOut<S> q) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  for (const auto& joint : ws.floating) {
    const int at = ws.bodies[static_cast<std::size_t>(joint.body)].q + 3;
    detail::Quaternion<S> unit;
    if (!detail::unit_quaternion<S>(q, at, unit)) return Status::out_of_range;
    q.template segment<4>(at) = unit;
  }
  return Status::ok;
}

/// The configuration after the velocity v has acted for dt: exact for constant v, floating joints
/// included. q_out may be q itself; its quaternions come out at length one.
template <class S>
[[nodiscard]] Status integrate(const Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v,
                               const typename detail::Identity<S>::Type& dt,
                               VectorOut<S> q_out) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, v); s != Status::ok) return s;
  if (q_out.size() != ws.nq()) return Status::wrong_size;
  if (!is_finite(dt)) return Status::not_finite;
  for (const Body<S>& b : ws.bodies) {
    if (!b.floating()) {
      if (!b.mimic) q_out[b.q] = q[b.q] + dt * v[b.dof];
    } else if (b.kind == Motions::floating_first) {
      detail::Quaternion<S> unit;
      if (!detail::unit_quaternion<S>(q, b.q + 3, unit)) return Status::out_of_range;
      const Vec3<S> p = q.template segment<3>(b.q);
      detail::Quaternion<S> dq;
      Vec3<S> dp;
      detail::exponential<S>(dt * v.template segment<3>(b.dof),
                             dt * v.template segment<3>(b.dof + 3), dq, dp);
      q_out.template segment<3>(b.q) = p + detail::rotate<S>(unit, dp);
      using std::sqrt;
      const detail::Quaternion<S> next = dynamics_core::detail::quaternion_product<S>(unit, dq);
      q_out.template segment<4>(b.q + 3) = next / sqrt(next.squaredNorm());
    }
  }
  return Status::ok;
}

}  // namespace dynamics_core::kinematics
