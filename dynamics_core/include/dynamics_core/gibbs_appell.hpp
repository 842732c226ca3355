#pragma once

/// Gibbs–Appell equations (Mata et al. 2002): inverse dynamics in O(n) through the tensor
/// Ω = ω̇~ + ω~² and Euler's tensor J (§4.1), the mass matrix as the Hessian of the Gibbs function
/// in O(n²) (§4.2), and the forward dynamics from both.
///
/// The paper takes moments about each mass centre and treats serial arms of hinges. Here all is
/// about the bodies' origins, with the equivalent mass properties `own` (see
/// Workspace::EulerInertia): the paper's composed M, c and E, which it has for the mass matrix
/// alone, and one step beyond, as every mass on a hinge's axis is handed down to the parent. A
/// turning body is left with h = (h_x, h_y, 0) and J without J_zz, a sliding one with m and h. That
/// is off-line work, repeated when the payload changes.

#include "dynamics_core/cholesky.hpp"
#include "dynamics_core/joints.hpp"

namespace dynamics_core::gibbs_appell {

namespace detail {

template <class S>
using Link = typename Workspace<S>::GibbsAppell;
template <class S>
using EulerInertia = typename Workspace<S>::EulerInertia;
template <class S>
using OmegaTensor = typename Workspace<S>::OmegaTensor;

// --- Inverse dynamics ----------------------------------------------------------------------------

// These run at every control cycle. They work component by component: whole-vector expressions
// would pass through memory in pieces of another width.

template <class S>
RD_INLINE void put(const Vec3<S>& from, Vec3<S>& to) noexcept {
  to[0] = from[0];
  to[1] = from[1];
  to[2] = from[2];
}

/// Ω = ω̇~ + ω~² (Eq. 12).
template <class S>
[[nodiscard]] RD_INLINE OmegaTensor<S> omega_tensor(const Vec3<S>& w, const Vec3<S>& wd) noexcept {
  const S xx = w[0] * w[0];
  const S yy = w[1] * w[1];
  const S zz = w[2] * w[2];
  const S xy = w[0] * w[1];
  const S xz = w[0] * w[2];
  const S yz = w[1] * w[2];
  return {-(yy + zz), xy - wd[2], xz + wd[1],  //
          xy + wd[2], -(xx + zz), yz - wd[0],  //
          xz - wd[1], yz + wd[0], -(xx + yy)};
}

/// Ω u
template <class S>
[[nodiscard]] Vec3<S> times(const OmegaTensor<S>& W, const Vec3<S>& u) noexcept {
  return {W.xx * u[0] + W.xy * u[1] + W.xz * u[2], W.yx * u[0] + W.yy * u[1] + W.yz * u[2],
          W.zx * u[0] + W.zy * u[1] + W.zz * u[2]};
}

/// s̈ + Ω p in the parent, p the part of the joint's offset that is fixed there (§4.1, step 1).
template <class S>
[[nodiscard]] RD_INLINE Vec3<S> acceleration_at_joint(const Transform<S>& X,
                                                      const Link<S>& parent) noexcept {
  const OmegaTensor<S>& W = parent.Omega;
  const Vec3<S>& s = parent.sdd;
  if (!X.branch) return {s[0] + X.a * W.xx, s[1] + X.a * W.yx, s[2] + X.a * W.zx};
  const Vec3<S> r = times<S>(W, rotate_z(X.cg, X.sg, Vec3<S>(X.a, X.e, X.b)));
  return {s[0] + r[0], s[1] + r[1], s[2] + r[2]};
}

/// The axial vector of ΩJ − (ΩJ)ᵀ (Eq. 10).
template <class S>
[[nodiscard]] Vec3<S> euler_moment(const OmegaTensor<S>& W, const Symmetric3<S>& J) noexcept {
  return {W.zx * J.xy - W.yx * J.xz + W.zy * J.yy - W.yz * J.zz + (W.zz - W.yy) * J.yz,
          W.xy * J.yz - W.zy * J.xy + W.xz * J.zz - W.zx * J.xx + (W.xx - W.zz) * J.xz,
          W.yz * J.xz - W.xz * J.yz + W.yx * J.xx - W.xy * J.yy + (W.yy - W.xx) * J.xy};
}

/// A hinge in the base: ω and ω̇ lie along z, and of its force only the moment about z is asked for.
template <class S>
void root_hinge(const Body<S>& b, const Vec3<S>& base, S qd, S qdd, Link<S>& l) noexcept {
  const S zero(0);
  const S centripetal = -(qd * qd);
  const Vec3<S> sdd = b.X.to_child(base);
  const EulerInertia<S>& I = l.own;
  const S moment = (I.J.xx + I.J.yy) * qdd + I.h[0] * sdd[1] - I.h[1] * sdd[0];
  put<S>({zero, zero, moment}, l.F.n);
  put<S>({zero, zero, zero}, l.F.f);
  put<S>({zero, zero, qd}, l.w);
  put<S>({zero, zero, qdd}, l.wd);
  put<S>(sdd, l.sdd);
  l.Omega = {centripetal, -qdd, zero, qdd, centripetal, zero, zero, zero, zero};
}

/// Rᵀ u across a joint that is (not) a branch.
template <bool branch, class S>
[[nodiscard]] RD_INLINE Vec3<S> turn(const Transform<S>& X, S x, S y, S z) noexcept {
  if constexpr (branch) {
    const S t = X.cg * x + X.sg * y;
    y = X.cg * y - X.sg * x;
    x = t;
  }
  const S u = X.ca * y + X.sa * z;
  return {X.c * x + X.s * u, X.c * u - X.s * x, X.ca * z - X.sa * y};
}

/// ω, ω̇, Ω, s̈ (§4.1, step 1) and the force and moment on the body (step 2, Eqs. 9, 10).
template <bool branch, class S>
RD_INLINE void hinge(const Body<S>& b, const Link<S>& parent, S qd, S qdd, Link<S>& l) noexcept {
  const Transform<S>& X = b.X;
  OmegaTensor<S>& W = l.Omega;
  {
    const Vec3<S> w = turn<branch, S>(X, parent.w[0], parent.w[1], parent.w[2]);
    const S x = w[0];
    const S y = w[1];
    const S z = w[2] + qd;
    l.w[0] = x;
    l.w[1] = y;
    l.w[2] = z;
    const Vec3<S> wd = turn<branch, S>(X, parent.wd[0], parent.wd[1], parent.wd[2]);
    const S ax = wd[0] + y * qd;
    const S ay = wd[1] - x * qd;
    const S az = wd[2] + qdd;
    l.wd[0] = ax;
    l.wd[1] = ay;
    l.wd[2] = az;
    const S xy = x * y;
    W.xy = xy - az;
    W.yx = xy + az;
    const S xz = x * z;
    W.xz = xz + ay;
    W.zx = xz - ay;
    const S yz = y * z;
    W.yz = yz - ax;
    W.zy = yz + ax;
    const S xx = x * x;
    const S yy = y * y;
    const S zz = z * z;
    W.xx = -(yy + zz);
    W.yy = -(xx + zz);
    W.zz = -(xx + yy);
  }
  const S hx = l.own.h[0];
  const S hy = l.own.h[1];
  {
    const Vec3<S> at = acceleration_at_joint<S>(X, parent);
    const Vec3<S> s = turn<branch, S>(X, at[0], at[1], at[2]);
    const S x = s[0] + X.d * W.xz;
    const S y = s[1] + X.d * W.yz;
    const S z = s[2] + X.d * W.zz;
    l.sdd[0] = x;
    l.sdd[1] = y;
    l.sdd[2] = z;
    l.F.n[0] = hy * z;
    l.F.n[1] = -hx * z;
    l.F.n[2] = hx * y - hy * x;
  }
  l.F.f[0] = hx * W.xx + hy * W.xy;
  l.F.f[1] = hx * W.yx + hy * W.yy;
  l.F.f[2] = hx * W.zx + hy * W.zy;
  const Symmetric3<S>& J = l.own.J;
  l.F.n[0] += W.zx * J.xy - W.yx * J.xz + W.zy * J.yy + (W.zz - W.yy) * J.yz;
  l.F.n[1] += W.xy * J.yz - W.zy * J.xy - W.zx * J.xx + (W.xx - W.zz) * J.xz;
  l.F.n[2] += W.yz * J.xz - W.xz * J.yz + W.yx * J.xx - W.xy * J.yy + (W.yy - W.xx) * J.xy;
}

template <class S>
void slide(const Body<S>& b, const Link<S>* parent, const Vec3<S>& base, S qd, S qdd,
           Link<S>& l) noexcept {
  const Transform<S>& X = b.X;
  if (parent == nullptr) {
    const S zero(0);
    l.w = Vec3<S>::Zero();
    l.wd = Vec3<S>::Zero();
    l.Omega = {zero, zero, zero, zero, zero, zero, zero, zero, zero};
    l.sdd = X.to_child(base);
    l.sdd[2] += qdd;
  } else {
    l.w = X.to_child(parent->w);
    l.wd = X.to_child(parent->wd);
    l.Omega = omega_tensor<S>(l.w, l.wd);
    const Vec3<S> s = X.to_child(acceleration_at_joint<S>(X, *parent));
    const S twice = qd + qd;  // Eq. 7e
    l.sdd = {s[0] + X.d * l.Omega.xz + l.w[1] * twice, s[1] + X.d * l.Omega.yz - l.w[0] * twice,
             s[2] + X.d * l.Omega.zz + qdd};
  }
  l.F.f = l.own.m * l.sdd + times<S>(l.Omega, l.own.h);
  l.F.n = l.own.h.cross(l.sdd);
}

/// One of the six bodies of a floating joint; only the last has a mass, and ω̇ is complete there.
template <class S>
void floating(const Body<S>& b, const Link<S>* parent, const Vec3<S>& base, VectorIn<S> v, S qdd,
              Link<S>& l) noexcept {
  const Transform<S>& X = b.X;
  const S zero(0);
  const S qd = rate<S>(b, v);
  l.w = parent == nullptr ? Vec3<S>(Vec3<S>::Zero()) : X.to_child(parent->w);
  l.wd = parent == nullptr ? Vec3<S>(Vec3<S>::Zero()) : X.to_child(parent->wd);
  l.sdd = X.to_child(parent == nullptr ? base : acceleration_at_joint<S>(X, *parent));
  add_joint_rate<S>(b, v, l.w);
  if (b.turns()) {
    l.wd += Vec3<S>(l.w[1] * qd, -(l.w[0] * qd), qdd);
  } else {
    const Vec3<S> r = sliding_rate<S>(b, v, l.w);
    l.sdd += Vec3<S>(r[1] * qd, -(r[0] * qd), qdd);
  }
  l.Omega = {zero, zero, zero, zero, zero, zero, zero, zero, zero};
  l.F = Force<S>::zero();
  if (b.axis != 5) return;
  l.Omega = omega_tensor<S>(l.w, l.wd);
  l.F.f = l.own.m * l.sdd + times<S>(l.Omega, l.own.h);
  l.F.n = euler_moment<S>(l.Omega, l.own.J) + l.own.h.cross(l.sdd);
}

/// Accelerations and forces, base to tips. Without acceleration it leaves q̈ out (Table 3).
template <bool with_acceleration, class S>
void forward(Workspace<S>& ws, VectorIn<S> v, VectorIn<S> a) noexcept {
  Link<S>* link = ws.gibbs_appell.data();
  const Body<S>* body = ws.bodies.data();
  const Vec3<S>& base = ws.base_acceleration;
  const int n = ws.nb();
  for (int i = 0; i < n; ++i) {
    const Body<S>& b = body[i];
    const Link<S>* parent = b.parent < 0 ? nullptr : &link[b.parent];
    const S qd = rate<S>(b, v);
    S qdd(0);
    if constexpr (with_acceleration) qdd = rate<S>(b, a);
    if (b.kind == Motions::revolute && parent != nullptr && !b.X.branch)
      hinge<false, S>(b, *parent, qd, qdd, link[i]);
    else if (b.kind == Motions::revolute && parent != nullptr)
      hinge<true, S>(b, *parent, qd, qdd, link[i]);
    else if (b.kind == Motions::revolute)
      root_hinge<S>(b, base, qd, qdd, link[i]);
    else if (b.kind == Motions::prismatic)
      slide<S>(b, parent, base, qd, qdd, link[i]);
    else
      floating<S>(b, parent, base, v, qdd, link[i]);
  }
}

template <class S>
void subtract_external(Workspace<S>& ws) noexcept {
  if (!ws.has_external) return;
  for (int i = 0; i < ws.nb(); ++i) ws.gibbs_appell.data()[i].F -= ws.external.data()[i];
}

/// Adds the body's force to its parent's (Eqs. 15, 16).
template <bool branch, class S>
RD_INLINE void add_to_parent(const Transform<S>& X, const Force<S>& F, Force<S>& parent) noexcept {
  S fx = X.c * F.f[0] - X.s * F.f[1];
  const S fv = X.s * F.f[0] + X.c * F.f[1];
  S fy = X.ca * fv - X.sa * F.f[2];
  const S fz = X.sa * fv + X.ca * F.f[2];
  S nx = X.c * F.n[0] - X.s * F.n[1] - X.d * fv;  // the offset d along the axis
  const S nv = X.s * F.n[0] + X.c * F.n[1] + X.d * fx;
  S ny = X.ca * nv - X.sa * F.n[2];
  S nz = X.sa * nv + X.ca * F.n[2] + X.a * fy;  // the offset a along the parent's x
  ny -= X.a * fz;
  if constexpr (branch) {
    nx += X.e * fz - X.b * fy;
    ny += X.b * fx;
    nz -= X.e * fx;
    const S f = X.cg * fx - X.sg * fy;
    fy = X.sg * fx + X.cg * fy;
    fx = f;
    const S n = X.cg * nx - X.sg * ny;
    ny = X.sg * nx + X.cg * ny;
    nx = n;
  }
  parent.f[0] += fx;
  parent.f[1] += fy;
  parent.f[2] += fz;
  parent.n[0] += nx;
  parent.n[1] += ny;
  parent.n[2] += nz;
}

/// φ and χ (Eqs. 15, 16) and τ (Eq. 14; z·φ for a slide), tips to base, and the rotors' share.
template <bool with_acceleration, class S>
void backward(Workspace<S>& ws, VectorIn<S> a, VectorOut<S>& tau) noexcept {
  Link<S>* link = ws.gibbs_appell.data();
  const Body<S>* body = ws.bodies.data();
  const bool shared = ws.has_mimic();
  if (shared) tau.setZero();
  for (int i = ws.nb() - 1; i >= 0; --i) {
    const Body<S>& b = body[i];
    const Force<S>& F = link[i].F;
    S effort = b.turns() ? F.n[2] : F.f[2];
    if constexpr (with_acceleration) effort += b.rotor * rate<S>(b, a);
    if (shared)
      add_effort<S>(b, effort, tau);
    else
      tau[b.dof] = effort;
    if (b.parent < 0) continue;
    if (b.X.branch)
      add_to_parent<true, S>(b.X, F, link[b.parent].F);
    else
      add_to_parent<false, S>(b.X, F, link[b.parent].F);
  }
}

// --- Mass matrix ---------------------------------------------------------------------------------

/// The composite of a subtree about the parent's origin in the parent's axes: φ and ψ of §4.2,
/// steps 4 and 5, with second moments in place of ψ, for which a shift by r is h rᵀ + r hᵀ + m r
/// rᵀ.
template <class S>
void add_to_parent(const Transform<S>& X, bool heavy, const EulerInertia<S>& A,
                   EulerInertia<S>& parent) noexcept {
  Vec3<S> h = rotate_z(X.c, X.s, A.h);
  Symmetric3<S> J = rotate_z(X.c, X.s, A.J);
  J.xz += h[0] * X.d;
  J.yz += h[1] * X.d;
  J.zz += (X.d + X.d) * h[2];
  if (heavy) {
    const S md = A.m * X.d;
    J.zz += md * X.d;
    h[2] += md;
    parent.m += A.m;
  }
  h = rotate_x(X.ca, X.sa, h);
  J = rotate_x(X.ca, X.sa, J);
  if (!X.branch) {
    J.xx += (X.a + X.a) * h[0];
    J.xy += X.a * h[1];
    J.xz += X.a * h[2];
    if (heavy) {
      const S ma = A.m * X.a;
      J.xx += ma * X.a;
      h[0] += ma;
    }
  } else {
    const Vec3<S> r(X.a, X.e, X.b);
    const Vec3<S> k = h + A.m * r;
    J.xx += (h[0] + k[0]) * r[0];
    J.yy += (h[1] + k[1]) * r[1];
    J.zz += (h[2] + k[2]) * r[2];
    J.xy += h[0] * r[1] + r[0] * k[1];
    J.xz += h[0] * r[2] + r[0] * k[2];
    J.yz += h[1] * r[2] + r[1] * k[2];
    h = rotate_z(X.cg, X.sg, k);
    J = rotate_z(X.cg, X.sg, J);
  }
  parent.h[0] += h[0];
  parent.h[1] += h[1];
  parent.h[2] += h[2];
  parent.J += J;
}

template <class S>
using Lanes = Eigen::Array<S, 4, 1>;

/// Three rows of four axes, from the parent's frame to the body's (§4.2, step 3).
template <bool branch, class S>
RD_INLINE void turn_rows(const Transform<S>& X, const S* from, S* to) noexcept {
  using From = Eigen::Map<const Lanes<S>>;
  using To = Eigen::Map<Lanes<S>>;
  Lanes<S> x = From(from);
  Lanes<S> y = From(from + 4);
  const Lanes<S> z = From(from + 8);
  if constexpr (branch) {
    const Lanes<S> t = X.cg * x + X.sg * y;
    y = X.cg * y - X.sg * x;
    x = t;
  }
  const Lanes<S> u = X.ca * y + X.sa * z;
  const Lanes<S> v = X.c * x + X.s * u;
  const Lanes<S> w = X.c * u - X.s * x;
  To{to} = v;
  To{to + 4} = w;
  To{to + 8} = X.ca * z - X.sa * y;
}
template <bool branch, class S>
RD_INLINE void turn_axes(const Transform<S>& X, const S* from, int blocks, S* to) noexcept {
  for (int k = 0; k < blocks; ++k, from += 24, to += 24) {
    turn_rows<branch, S>(X, from, to);
    turn_rows<branch, S>(X, from + 12, to + 12);
  }
}

/// s (§4.2, step 2) and the axes of all joints on the path: ∂ω̇/∂q̈ and the acceleration ∂s̈/∂q̈ of
/// one and the same point, the first body's origin. As the point never changes, the axes need only
/// turn on their way to the tips, where the paper carries one vector s_kj per pair of bodies.
template <class S>
RD_INLINE void set_path(const Body<S>& b, const Link<S>* parent, S* axes, Link<S>& l) noexcept {
  const S one(1);
  const S zero(0);
  S* own = axes + l.axes;
  Vec3<S> s(zero, zero, zero);
  if (parent != nullptr) {
    const Transform<S>& X = b.X;
    const Vec3<S>& ps = parent->s;
    if (X.branch) {
      turn_axes<true, S>(X, axes + parent->axes, parent->blocks, own);
      s = X.to_child(Vec3<S>(ps + rotate_z(X.cg, X.sg, Vec3<S>(X.a, X.e, X.b))));
    } else {
      turn_axes<false, S>(X, axes + parent->axes, parent->blocks, own);
      s = turn<false, S>(X, ps[0] + X.a, ps[1], ps[2]);
    }
    s[2] += X.d;
  }
  put<S>(s, l.s);
  own += l.depth / 4 * 24 + l.depth % 4;
  own[0] = zero;
  own[4] = zero;
  const bool turns = b.turns();
  own[8] = turns ? one : zero;
  own[12] = turns ? s[1] : zero;
  own[16] = turns ? S(-s[0]) : zero;
  own[20] = turns ? zero : one;
}

/// D_jk of the body j and all k on its path, and D_jj (§4.2, steps 6 and 7): the force that gives
/// the composite a unit acceleration along the body's axis, ψ z and φ~ z (Eq. 22) for a hinge,
/// φ~ᵀ z and m z for a slide, times the axes.
template <class S>
[[nodiscard]] RD_INLINE S path_products(const Body<S>& b, const Link<S>& l, const S* axes,
                                        S* row) noexcept {
  const EulerInertia<S>& A = l.composite;
  const Vec3<S>& s = l.s;
  const S* own = axes + l.axes;
  const S* end = row + l.depth;
  const S hx = A.h[0];
  const S hy = A.h[1];
  const auto at = [&](int r) { return Eigen::Map<const Lanes<S>>(own + 4 * r); };
  if (b.turns()) {  // the force (−h_y, h_x, 0), its moment about the point the axes refer to
    const S Izz = A.J.xx + A.J.yy;
    const S nx = -A.J.xz - s[2] * hx;
    const S ny = -A.J.yz - s[2] * hy;
    const S nz = Izz + s[0] * hx + s[1] * hy;
    for (; row < end; row += 4, own += 24)
      Eigen::Map<Lanes<S>>{row} = at(0) * nx + at(1) * ny + at(2) * nz + at(4) * hx - at(3) * hy;
    return Izz;
  }
  const S m = A.m;  // the force (0, 0, m)
  const S nx = hy + s[1] * m;
  const S ny = -hx - s[0] * m;
  for (; row < end; row += 4, own += 24)
    Eigen::Map<Lanes<S>>{row} = at(0) * nx + at(1) * ny + at(5) * m;
  return m;
}

/// Puts the products of one body into M.
template <class S>
RD_INLINE void scatter(const Workspace<S>& ws, int i, const S& diagonal, const S* row,
                       MatrixOut<S>& M) noexcept {
  const Body<S>* body = ws.bodies.data();
  const Body<S>& b = body[i];
  int k = ws.gibbs_appell.data()[i].depth;
  if (ws.has_mimic()) {
    add_symmetric<S>(b, b, diagonal, M);
    for (int j = b.parent; j >= 0; j = body[j].parent) add_symmetric<S>(b, body[j], row[--k], M);
    return;
  }
  const Eigen::Index stride = M.outerStride();
  S* column = M.data() + b.dof * stride;
  S* line = M.data() + b.dof;
  column[b.dof] = diagonal;
  if (ws.dense_mass_matrix) {  // the path's coordinates are all before this one
    for (int j = 0; j < k; ++j, line += stride) column[j] = *line = row[j];
    return;
  }
  for (int j = b.parent; j >= 0; j = body[j].parent) {
    const int dof = body[j].dof;
    column[dof] = line[dof * stride] = row[--k];
  }
}

/// The mass matrix at the configuration that the transforms already have.
template <class S>
void hessian(Workspace<S>& ws, MatrixOut<S>& M) noexcept {
  Link<S>* link = ws.gibbs_appell.data();
  const Body<S>* body = ws.bodies.data();
  S* axes = ws.path_axes.data();
  S* row = ws.path_row.data();
  const int n = ws.nb();
  for (int i = 0; i < n; ++i) {
    Link<S>& l = link[i];
    l.composite.m = l.own.m;
    put<S>(l.own.h, l.composite.h);
    l.composite.J = l.own.J;
    set_path<S>(body[i], body[i].parent < 0 ? nullptr : &link[body[i].parent], axes, l);
  }
  if (ws.has_mimic() || !ws.dense_mass_matrix) M.setZero();
  for (int i = n - 1; i >= 0; --i) {
    const Body<S>& b = body[i];
    const Link<S>& l = link[i];
    const S diagonal = path_products<S>(b, l, axes, row) + b.rotor;
    scatter<S>(ws, i, diagonal, row, M);
    if (b.parent >= 0) add_to_parent<S>(b.X, l.heavy, l.composite, link[b.parent].composite);
  }
}

}  // namespace detail

/// τ = M(q) a + C(q, v) v + g(q) − Σ Jᵀ f_ext.
template <class S>
[[nodiscard]] Status inverse_dynamics(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, VectorIn<S> a,
                                      VectorOut<S> tau) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, v); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, a); s != Status::ok) return s;
  if (tau.size() != ws.nv()) return Status::wrong_size;
  update_joints<S>(ws, q);
  detail::forward<true, S>(ws, v, a);
  detail::subtract_external<S>(ws);
  detail::backward<true, S>(ws, a, tau);
  return Status::ok;
}

/// C(q, v) v + g(q), without external forces.
template <class S>
[[nodiscard]] Status bias(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v,
                          VectorOut<S> tau) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, v); s != Status::ok) return s;
  if (tau.size() != ws.nv()) return Status::wrong_size;
  update_joints<S>(ws, q);
  detail::forward<false, S>(ws, v, v);
  detail::backward<false, S>(ws, v, tau);
  return Status::ok;
}

/// M(q), nv × nv, both triangles.
template <class S>
[[nodiscard]] Status mass_matrix(Workspace<S>& ws, VectorIn<S> q, MatrixOut<S> M) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  if (M.rows() != ws.nv() || M.cols() != ws.nv()) return Status::wrong_size;
  update_joints<S>(ws, q);
  detail::hessian<S>(ws, M);
  return Status::ok;
}

/// a = M⁻¹(τ + Σ Jᵀ f_ext − C v − g), with the mass matrix and the bias of this family (Table 3).
template <class S>
[[nodiscard]] Status forward_dynamics(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v,
                                      VectorIn<S> tau, VectorOut<S> a) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, v); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, tau); s != Status::ok) return s;
  if (a.size() != ws.nv()) return Status::wrong_size;
  update_joints<S>(ws, q);
  MatrixOut<S> M(ws.M);
  detail::hessian<S>(ws, M);
  detail::forward<false, S>(ws, v, v);
  detail::subtract_external<S>(ws);
  VectorOut<S> bias(ws.bias);
  detail::backward<false, S>(ws, v, bias);
  a = tau - ws.bias;
  return cholesky::solve_mass_matrix<S>(ws, a);
}

/// One step of iterative refinement of the accelerations `a`, after a forward_dynamics of the same
/// arguments: a += M⁻¹(τ − inverse_dynamics(q, v, a)), with the factors that it left in ws.M.
///
/// Where M is ill-conditioned, its elements rounded to the scalar type no longer hold what the
/// accelerations depend on, however they were computed. The recursive inverse dynamics still does:
/// it never subtracts large elements of M. Costs an inverse dynamics and a solution.
template <class S>
[[nodiscard]] Status refine(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                            VectorOut<S> a) noexcept {
  if (const Status s = check_v<S>(ws, tau); s != Status::ok) return s;
  if (const Status s = inverse_dynamics<S>(ws, q, v, a, ws.bias); s != Status::ok) return s;
  ws.bias = tau - ws.bias;
  cholesky::detail::solve(cholesky::detail::mass_matrix_view<S>(ws), ws.bias.data());
  a += ws.bias;
  return Status::ok;
}

}  // namespace dynamics_core::gibbs_appell
