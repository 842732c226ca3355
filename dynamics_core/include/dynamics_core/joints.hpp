// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What each kind of joint does to motions and forces. This is the one place that knows: every
/// function has a case for every kind, so that a new kind does not compile until it is treated.
///
/// Frames and signs. Body i has the frame B, its parent the frame P; z is the joint's axis, fixed in
/// both. The pose of B in P is Transform (spatial.hpp), at q as below. With q̇ the rate of the body's
/// own coordinate the velocity across the joint, of B in P at B's origin in B's axes, is
/// V_PB_B = h q̇ (h is the paper's, Featherstone & Orin 2000, Eq. 3):
///
///     kind                              pose at q             h = [ω; v]
///     revolute                          Rz(q)                 [0 0 1; 0 0 0]
///     prismatic                         T(0, 0, q)            [0 0 0; 0 0 1]
///     helical, p its pitch              Rz(q) T(0, 0, p q)    [0 0 1; 0 0 p]
///     floating_first, floating_angular  the joint's, whole    [0 0 1; 0 0 0]
///     floating_linear                   identity              [0 0 0; 0 0 1]
///
/// With p > 0 a helical joint is a right-handed screw: a turn about +z by one radian moves the body
/// p metres along +z. Efforts are hᵀ F: N·m for a coordinate in radians, N for one in metres.
///
/// The six bodies of a floating joint share one origin and carry its six rates in the axes of the
/// moving link, x, y and z in turn, each along its own frame's z. All of them move with the last
/// one; the first takes the whole velocity.

#include "dynamics_core/model.hpp"
#include "dynamics_core/scalar.hpp"
#include "dynamics_core/spatial.hpp"

namespace dynamics_core {

/// A body's constants in the scalar type S. Only X.c, X.s, X.d (and for a floating joint all of X)
/// change, with the configuration.
template <class S>
struct Body {
  Transform<S> X;           ///< the body in its parent
  RigidInertia<S> inertia;  ///< about the body's origin, payloads included
  S multiplier;             ///< body coordinate = multiplier · q + offset
  S rotor;                  ///< reflected rotor inertia
  S pitch;                  ///< helical: metres along z per radian, else zero
  S pivot_scale;            ///< how large hᵀ I^C h of the subtree can be; pivots are judged by it
  int parent;               ///< −1: the base
  int dof;                  ///< index into v, a, τ
  int q;                    ///< index into q
  int axis;                 ///< floating joints: which of the six motions this is
  JointKind kind;
  bool mimic;
  bool has_rotor;
  bool shared;  ///< another body moves with the same coordinate
};

/// Its kind, and the constants that only its kind has.
template <class S>
void set_kind(const BodyData& from, Body<S>& b) noexcept {
  b.kind = from.kind;
  b.axis = from.axis;
  b.pitch = S(from.pitch);
}

// --- Questions about kinds -----------------------------------------------------------------------

[[nodiscard]] constexpr bool is_floating(JointKind kind) noexcept {
  switch (kind) {
    case JointKind::floating_first:
    case JointKind::floating_angular:
    case JointKind::floating_linear: return true;
    case JointKind::revolute:
    case JointKind::prismatic:
    case JointKind::helical: return false;
  }
  RD_UNREACHABLE();
}

/// The same kind; compilers then ask first for the one that most joints have.
[[nodiscard]] RD_INLINE constexpr JointKind usually_revolute(JointKind kind) noexcept {
#if defined(__GNUC__)
  return static_cast<JointKind>(
      __builtin_expect(static_cast<long>(kind), static_cast<long>(JointKind::revolute)));
#else
  return kind;
#endif
}

/// Has h an angular part?
[[nodiscard]] RD_INLINE constexpr bool turns(JointKind kind) noexcept {
  switch (usually_revolute(kind)) {
    case JointKind::revolute:
    case JointKind::floating_first:
    case JointKind::floating_angular:
    case JointKind::helical: return true;
    case JointKind::prismatic:
    case JointKind::floating_linear: return false;
  }
  RD_UNREACHABLE();
}

/// Has h no linear part?
[[nodiscard]] RD_INLINE constexpr bool turns_only(JointKind kind) noexcept {
  switch (usually_revolute(kind)) {
    case JointKind::revolute:
    case JointKind::floating_first:
    case JointKind::floating_angular: return true;
    case JointKind::prismatic:
    case JointKind::floating_linear:
    case JointKind::helical: return false;
  }
  RD_UNREACHABLE();
}

/// Does the body's origin move along z with the coordinate?
[[nodiscard]] constexpr bool slides(JointKind kind) noexcept {
  switch (usually_revolute(kind)) {
    case JointKind::prismatic:
    case JointKind::helical: return true;
    case JointKind::revolute:
    case JointKind::floating_first:
    case JointKind::floating_angular:
    case JointKind::floating_linear: return false;
  }
  RD_UNREACHABLE();
}

// --- The configuration ---------------------------------------------------------------------------

/// Brings X to the body's coordinate, whose sine and cosine are given; `slide` is a helical joint's
/// X.d at zero. Floating joints have no coordinate of this sort.
template <class S>
RD_INLINE void set_coordinate(const S& coordinate, const S& sine, const S& cosine, const S& slide,
                              Body<S>& b) noexcept {
  switch (usually_revolute(b.kind)) {
    case JointKind::helical: b.X.d = slide + b.pitch * coordinate; [[fallthrough]];
    case JointKind::revolute:
      b.X.s = sine;
      b.X.c = cosine;
      return;
    case JointKind::prismatic: b.X.d = coordinate; return;
    case JointKind::floating_first:
    case JointKind::floating_angular:
    case JointKind::floating_linear: return;
  }
}

/// hᵀ I h of a body with this mass and this moment of inertia about the axis; of bounds on them, a
/// bound.
template <class S>
[[nodiscard]] RD_INLINE S axial_inertia(const Body<S>& b, const S& mass, const S& moment) noexcept {
  switch (usually_revolute(b.kind)) {
    case JointKind::revolute:
    case JointKind::floating_first:
    case JointKind::floating_angular: return moment;
    case JointKind::prismatic:
    case JointKind::floating_linear: return mass;
    case JointKind::helical: return moment + b.pitch * b.pitch * mass;
  }
  RD_UNREACHABLE();
}

// --- h -------------------------------------------------------------------------------------------

/// hᵀ F: what the joint's effort is of the force across it.
template <class S>
[[nodiscard]] RD_INLINE S along(const Body<S>& b, const Force<S>& F) noexcept {
  switch (usually_revolute(b.kind)) {
    case JointKind::revolute:
    case JointKind::floating_first:
    case JointKind::floating_angular: return F.n[2];
    case JointKind::prismatic:
    case JointKind::floating_linear: return F.f[2];
    case JointKind::helical: return F.n[2] + b.pitch * F.f[2];
  }
  RD_UNREACHABLE();
}

/// The same of a force about a point C, d from the origin: hᵀ [n + d × f; f].
template <class S>
[[nodiscard]] RD_INLINE S along(const Body<S>& b, const Vec3<S>& d, const Force<S>& F) noexcept {
  switch (usually_revolute(b.kind)) {
    case JointKind::revolute:
    case JointKind::floating_first:
    case JointKind::floating_angular: return F.n[2] + d[0] * F.f[1] - d[1] * F.f[0];
    case JointKind::prismatic:
    case JointKind::floating_linear: return F.f[2];
    case JointKind::helical: return F.n[2] + d[0] * F.f[1] - d[1] * F.f[0] + b.pitch * F.f[2];
  }
  RD_UNREACHABLE();
}

/// V += h x
template <class S>
RD_INLINE void add_along(const Body<S>& b, const S& x, Motion<S>& V) noexcept {
  switch (usually_revolute(b.kind)) {
    case JointKind::revolute:
    case JointKind::floating_first:
    case JointKind::floating_angular: V.w[2] += x; return;
    case JointKind::prismatic:
    case JointKind::floating_linear: V.v[2] += x; return;
    case JointKind::helical:
      V.w[2] += x;
      V.v[2] += b.pitch * x;
      return;
  }
}

/// The linear part z × d of h at a point d from the origin.
template <class S>
[[nodiscard]] RD_INLINE Vec3<S> lever(const Vec3<S>& d) noexcept {
  return {-d[1], d[0], S(0)};
}

/// The linear part of h at a point d from the origin.
template <class S>
[[nodiscard]] RD_INLINE Vec3<S> linear_axis(const Body<S>& b, const Vec3<S>& d) noexcept {
  switch (usually_revolute(b.kind)) {
    case JointKind::revolute:
    case JointKind::floating_first:
    case JointKind::floating_angular: return lever<S>(d);
    case JointKind::prismatic:
    case JointKind::floating_linear: return {S(0), S(0), S(1)};
    case JointKind::helical: return {-d[1], d[0], b.pitch};
  }
  RD_UNREACHABLE();
}

/// The column of a Jacobian: h in other axes, where the joint's axis is z, at a point r from the
/// body's origin.
template <class S>
[[nodiscard]] RD_INLINE Motion<S> axis_motion(const Body<S>& b, const Vec3<S>& z,
                                              const Vec3<S>& r) noexcept {
  switch (usually_revolute(b.kind)) {
    case JointKind::revolute:
    case JointKind::floating_first:
    case JointKind::floating_angular: return {z, z.cross(r)};
    case JointKind::prismatic:
    case JointKind::floating_linear: return {Vec3<S>::Zero(), z};
    case JointKind::helical: return {z, z.cross(r) + b.pitch * z};
  }
  RD_UNREACHABLE();
}

/// m times the velocity that the joint gives a mass centre at r, for the first moment m r: the
/// linear part of axis_motion.
template <class S>
[[nodiscard]] RD_INLINE Vec3<S> first_moment_rate(const Body<S>& b, const Vec3<S>& z, const S& m,
                                                  const Vec3<S>& mr) noexcept {
  switch (usually_revolute(b.kind)) {
    case JointKind::revolute:
    case JointKind::floating_first:
    case JointKind::floating_angular: return z.cross(mr);
    case JointKind::prismatic:
    case JointKind::floating_linear: return m * z;
    case JointKind::helical: return z.cross(mr) + (m * b.pitch) * z;
  }
  RD_UNREACHABLE();
}

// --- I h -----------------------------------------------------------------------------------------

/// I h: the force that gives a rigid body a unit acceleration along the joint.
template <class S>
[[nodiscard]] RD_INLINE Force<S> unit_force(const Body<S>& b, const RigidInertia<S>& I) noexcept {
  switch (usually_revolute(b.kind)) {
    case JointKind::revolute:
    case JointKind::floating_first:
    case JointKind::floating_angular: return {{I.I.xz, I.I.yz, I.I.zz}, {-I.h[1], I.h[0], S(0)}};
    case JointKind::prismatic:
    case JointKind::floating_linear: return {{I.h[1], -I.h[0], S(0)}, {S(0), S(0), I.m}};
    case JointKind::helical:
      return {{I.I.xz + b.pitch * I.h[1], I.I.yz - b.pitch * I.h[0], I.I.zz},
              {-I.h[1], I.h[0], b.pitch * I.m}};
  }
  RD_UNREACHABLE();
}

/// The same with inertia and force about a point C, d from the origin: I [e; e × d] for a turn
/// (Saha 1999, Eq. 13), I [0; e] for a slide (Eq. 15).
template <class S>
[[nodiscard]] RD_INLINE Force<S> unit_force(const Body<S>& b, const Vec3<S>& d,
                                            const RigidInertia<S>& I) noexcept {
  const Vec3<S>& h = I.h;
  const auto turn = [&]() -> Force<S> {
    const S x = h[0] + I.m * d[0];
    const S y = h[1] + I.m * d[1];
    return {{I.I.xz - h[2] * d[0], I.I.yz - h[2] * d[1], I.I.zz + h[0] * d[0] + h[1] * d[1]},
            {-y, x, S(0)}};
  };
  switch (usually_revolute(b.kind)) {
    case JointKind::revolute:
    case JointKind::floating_first:
    case JointKind::floating_angular: return turn();
    case JointKind::prismatic:
    case JointKind::floating_linear: return {{h[1], -h[0], S(0)}, {S(0), S(0), I.m}};
    case JointKind::helical: {
      Force<S> F = turn();
      F += {{b.pitch * h[1], -b.pitch * h[0], S(0)}, {S(0), S(0), b.pitch * I.m}};
      return F;
    }
  }
  RD_UNREACHABLE();
}

/// The same for an articulated inertia.
template <class S>
[[nodiscard]] RD_INLINE Force<S> unit_force(const Body<S>& b,
                                            const ArticulatedInertia<S>& A) noexcept {
  switch (usually_revolute(b.kind)) {
    case JointKind::revolute:
    case JointKind::floating_first:
    case JointKind::floating_angular:
      return {{A.I.xz, A.I.yz, A.I.zz}, {A.H(2, 0), A.H(2, 1), A.H(2, 2)}};
    case JointKind::prismatic:
    case JointKind::floating_linear:
      return {{A.H(0, 2), A.H(1, 2), A.H(2, 2)}, {A.M.xz, A.M.yz, A.M.zz}};
    case JointKind::helical:
      return {{A.I.xz + b.pitch * A.H(0, 2), A.I.yz + b.pitch * A.H(1, 2),
               A.I.zz + b.pitch * A.H(2, 2)},
              {A.H(2, 0) + b.pitch * A.M.xz, A.H(2, 1) + b.pitch * A.M.yz,
               A.H(2, 2) + b.pitch * A.M.zz}};
  }
  RD_UNREACHABLE();
}

/// hᵀ of the force [c × a; m a] that gives a body of mass m and first moment c the acceleration a.
template <class S>
[[nodiscard]] RD_INLINE S effort_at_rest(const Body<S>& b, const S& m, const Vec3<S>& c,
                                         const Vec3<S>& a) noexcept {
  switch (usually_revolute(b.kind)) {
    case JointKind::revolute:
    case JointKind::floating_first:
    case JointKind::floating_angular: return c[0] * a[1] - c[1] * a[0];
    case JointKind::prismatic:
    case JointKind::floating_linear: return m * a[2];
    case JointKind::helical: return c[0] * a[1] - c[1] * a[0] + b.pitch * (m * a[2]);
  }
  RD_UNREACHABLE();
}

/// The part of a body's inertia that its parent may carry as well: it feels nothing of the body's
/// own motion in the joint, and looks alike from the parent wherever the joint stands. Across a
/// revolute joint that is whatever lies on the axis or is a ring about it, across a prismatic one
/// all that only turning feels.
template <class S>
[[nodiscard]] RigidInertia<S> movable_part(JointKind kind, const RigidInertia<S>& I) noexcept {
  const S zero(0);
  const Symmetric3<S> ring = {I.I.yy, zero, zero, I.I.yy, zero, zero};
  switch (kind) {
    case JointKind::revolute: return {I.m, {zero, zero, I.h[2]}, ring};
    case JointKind::helical: return {zero, Vec3<S>::Zero(), ring};
    case JointKind::prismatic: return {zero, Vec3<S>::Zero(), I.I};
    case JointKind::floating_first:
    case JointKind::floating_angular:
    case JointKind::floating_linear: return RigidInertia<S>::zero();
  }
  RD_UNREACHABLE();
}

// --- Rates ---------------------------------------------------------------------------------------

/// The rate of the body's own coordinate, from v (or from a).
template <class S>
[[nodiscard]] RD_INLINE S rate(const Body<S>& b, VectorIn<S> v) noexcept {
  return b.multiplier * v[b.dof];
}

/// The components of a vector given in a floating joint's axes, in the frame of its body `axis`.
template <class S, class Vec>
[[nodiscard]] RD_INLINE Vec3<S> in_floating_body(int axis, const Vec& u) noexcept {
  switch (axis % 3) {
    case 0: return {u[1], u[2], u[0]};
    case 1: return {u[2], u[0], u[1]};
    default: return {u[0], u[1], u[2]};
  }
}

/// Adds the velocity across the joint.
template <class S>
RD_INLINE void add_joint_velocity(const Body<S>& b, VectorIn<S> v, Motion<S>& V) noexcept {
  switch (usually_revolute(b.kind)) {
    case JointKind::revolute: V.w[2] += rate<S>(b, v); return;
    case JointKind::prismatic: V.v[2] += rate<S>(b, v); return;
    case JointKind::helical: {
      const S qd = rate<S>(b, v);
      V.w[2] += qd;
      V.v[2] += b.pitch * qd;
      return;
    }
    case JointKind::floating_first:
      V.w += in_floating_body<S>(0, v.segment(b.dof, 3));
      V.v += in_floating_body<S>(0, v.segment(b.dof + 3, 3));
      return;
    case JointKind::floating_angular:
    case JointKind::floating_linear: return;
  }
}

/// The same for the angular part alone.
template <class S>
RD_INLINE void add_joint_rate(const Body<S>& b, VectorIn<S> v, Vec3<S>& w) noexcept {
  switch (usually_revolute(b.kind)) {
    case JointKind::revolute:
    case JointKind::helical: w[2] += rate<S>(b, v); return;
    case JointKind::floating_first: w += in_floating_body<S>(0, v.segment(b.dof, 3)); return;
    case JointKind::prismatic:
    case JointKind::floating_angular:
    case JointKind::floating_linear: return;
  }
}

/// x and y of V × h q̇; z is zero. A body that does not turn has no angular part.
template <class S>
struct VelocityProduct {
  S wx, wy, vx, vy;
};
template <class S>
[[nodiscard]] RD_INLINE VelocityProduct<S> velocity_product(const Body<S>& b, const Motion<S>& V,
                                                            const S& qd) noexcept {
  switch (usually_revolute(b.kind)) {
    case JointKind::revolute:
    case JointKind::floating_first:
    case JointKind::floating_angular: return {V.w[1] * qd, -V.w[0] * qd, V.v[1] * qd, -V.v[0] * qd};
    case JointKind::prismatic:
    case JointKind::floating_linear: return {S(0), S(0), V.w[1] * qd, -V.w[0] * qd};
    case JointKind::helical: {
      const S wx = V.w[1] * qd;
      const S wy = -V.w[0] * qd;
      return {wx, wy, V.v[1] * qd + b.pitch * wx, -V.v[0] * qd + b.pitch * wy};
    }
  }
  RD_UNREACHABLE();
}

/// A += V × h q̇ (Featherstone & Orin 2000, ḣ q̇ in Eq. 4).
template <class S>
RD_INLINE void add_velocity_product(const Body<S>& b, const Motion<S>& V, const S& qd,
                                    Motion<S>& A) noexcept {
  const VelocityProduct<S> c = velocity_product<S>(b, V, qd);
  if (turns(b.kind)) {
    A.w[0] += c.wx;
    A.w[1] += c.wy;
  }
  A.v[0] += c.vx;
  A.v[1] += c.vy;
}

/// The rate of h at a point d from the origin, both parts of which turn with the body at ω.
template <class S>
[[nodiscard]] RD_INLINE Motion<S> axis_rate(const Body<S>& b, const Vec3<S>& d,
                                            const Vec3<S>& w) noexcept {
  const Vec3<S> e_dot(w[1], -w[0], S(0));
  switch (usually_revolute(b.kind)) {
    case JointKind::revolute:
    case JointKind::floating_first:
    case JointKind::floating_angular: return {e_dot, w.cross(lever<S>(d))};
    case JointKind::prismatic:
    case JointKind::floating_linear: return {Vec3<S>::Zero(), e_dot};
    case JointKind::helical: return {e_dot, w.cross(lever<S>(d)) + b.pitch * e_dot};
  }
  RD_UNREACHABLE();
}

/// What the joint adds to ω, ω̇ and the classical (point) acceleration of the origin, which come in
/// as the parent's at that point. The axes of a floating joint turn with the link, so that its
/// slides feel ω + ω_parent where others feel 2ω.
template <bool with_acceleration, class S>
RD_INLINE void add_joint_motion(const Body<S>& b, VectorIn<S> v, VectorIn<S> a, Vec3<S>& w,
                                Vec3<S>& w_dot, Vec3<S>& v_dot) noexcept {
  const S qd = rate<S>(b, v);
  S qdd(0);
  if constexpr (with_acceleration) qdd = rate<S>(b, a);
  add_joint_rate<S>(b, v, w);
  const auto turn = [&] {  // ω × e q̇ + e q̈
    w_dot[0] += w[1] * qd;
    w_dot[1] -= w[0] * qd;
    if constexpr (with_acceleration) w_dot[2] += qdd;
  };
  const auto slide = [&](const Vec3<S>& u, const S& rate_along, const S& acceleration) {
    v_dot[0] += u[1] * rate_along;
    v_dot[1] -= u[0] * rate_along;
    if constexpr (with_acceleration) v_dot[2] += acceleration;
  };
  switch (usually_revolute(b.kind)) {
    case JointKind::revolute:
    case JointKind::floating_first:
    case JointKind::floating_angular: turn(); return;
    case JointKind::prismatic: slide(Vec3<S>(w + w), qd, qdd); return;
    case JointKind::floating_linear:
      slide(Vec3<S>(w + w - in_floating_body<S>(b.axis, v.segment(b.dof - b.axis, 3))), qd, qdd);
      return;
    case JointKind::helical:
      turn();
      slide(Vec3<S>(w + w), S(b.pitch * qd), S(b.pitch * qdd));
      return;
  }
}

}  // namespace dynamics_core
