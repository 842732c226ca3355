// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Spatial vectors, inertias, and the transform across one joint.
///
/// Every joint axis is the z-axis of its body's frame, and the pose of a body in its parent is
///
///     [ Rz(γ) ] · T(a, e, b) · Rx(α) · Rz(θ) · T(0, 0, d)
///
/// with b and Rz(γ) only where a body has several children and e only where the common normal of
/// two almost parallel axes would lie far away (modified Denavit–Hartenberg frames: a, α, θ, d).
/// Rotations are applied as plane rotations, never as 3×3 matrices: 8 products and 4 sums a vector.

#include <algorithm>

#include "dynamics_core/scalar.hpp"

namespace dynamics_core {

/// A motion (twist or acceleration) in a body's frame, at its origin: [ω; v].
template <class S>
struct Motion {
  Vec3<S> w;
  Vec3<S> v;
  [[nodiscard]] RD_INLINE static Motion zero() noexcept {
    return {Vec3<S>::Zero(), Vec3<S>::Zero()};
  }
};

/// A force in a body's frame, about its origin: [n; f].
template <class S>
struct Force {
  Vec3<S> n;
  Vec3<S> f;
  [[nodiscard]] RD_INLINE static Force zero() noexcept {
    return {Vec3<S>::Zero(), Vec3<S>::Zero()};
  }
  RD_INLINE Force& operator+=(const Force& o) noexcept {
    n += o.n;
    f += o.f;
    return *this;
  }
  RD_INLINE Force& operator-=(const Force& o) noexcept {
    n -= o.n;
    f -= o.f;
    return *this;
  }
};

// --- Plane rotations -----------------------------------------------------------------------------

/// Rz(θ) u
template <class S>
[[nodiscard]] RD_INLINE Vec3<S> rotate_z(const S& c, const S& s, const Vec3<S>& u) noexcept {
  return {c * u[0] - s * u[1], s * u[0] + c * u[1], u[2]};
}
/// Rz(θ)ᵀ u
template <class S>
[[nodiscard]] RD_INLINE Vec3<S> unrotate_z(const S& c, const S& s, const Vec3<S>& u) noexcept {
  return {c * u[0] + s * u[1], c * u[1] - s * u[0], u[2]};
}
/// Rx(α) u
template <class S>
[[nodiscard]] RD_INLINE Vec3<S> rotate_x(const S& c, const S& s, const Vec3<S>& u) noexcept {
  return {u[0], c * u[1] - s * u[2], s * u[1] + c * u[2]};
}
/// Rx(α)ᵀ u
template <class S>
[[nodiscard]] RD_INLINE Vec3<S> unrotate_x(const S& c, const S& s, const Vec3<S>& u) noexcept {
  return {u[0], c * u[1] + s * u[2], c * u[2] - s * u[1]};
}

// --- Symmetric matrices --------------------------------------------------------------------------

template <class S>
struct Symmetric3 {
  S xx, xy, xz, yy, yz, zz;

  [[nodiscard]] RD_INLINE static Symmetric3 zero() noexcept {
    return {S(0), S(0), S(0), S(0), S(0), S(0)};
  }
  [[nodiscard]] RD_INLINE Vec3<S> operator*(const Vec3<S>& u) const noexcept {
    return {xx * u[0] + xy * u[1] + xz * u[2], xy * u[0] + yy * u[1] + yz * u[2],
            xz * u[0] + yz * u[1] + zz * u[2]};
  }
  RD_INLINE Symmetric3& operator+=(const Symmetric3& o) noexcept {
    xx += o.xx;
    xy += o.xy;
    xz += o.xz;
    yy += o.yy;
    yz += o.yz;
    zz += o.zz;
    return *this;
  }
  /// Element (i, j), chosen at compile time.
  template <int i, int j>
  [[nodiscard]] RD_INLINE S& at() noexcept {
    constexpr int row = std::min(i, j);
    constexpr int k = 3 * row + (i + j - row);
    if constexpr (k == 0) return xx;
    if constexpr (k == 1) return xy;
    if constexpr (k == 2) return xz;
    if constexpr (k == 4) return yy;
    if constexpr (k == 5) return yz;
    if constexpr (k == 8) return zz;
  }
  [[nodiscard]] RD_INLINE Mat3<S> matrix() const noexcept {
    Mat3<S> A;
    A << xx, xy, xz, xy, yy, yz, xz, yz, zz;
    return A;
  }
  [[nodiscard]] RD_INLINE static Symmetric3 from(const Mat3<S>& A) noexcept {
    return {A(0, 0), A(0, 1), A(0, 2), A(1, 1), A(1, 2), A(2, 2)};
  }
};

/// Rz(θ) A Rz(θ)ᵀ with 8 products: the plane part through s(xx−yy) + 2c·xy.
template <class S>
[[nodiscard]] RD_INLINE Symmetric3<S> rotate_z(const S& c, const S& s,
                                               const Symmetric3<S>& A) noexcept {
  const S t = s * (A.xx - A.yy) + c * (A.xy + A.xy);
  return {A.xx - s * t, c * t - A.xy, c * A.xz - s * A.yz, A.yy + s * t, s * A.xz + c * A.yz, A.zz};
}
/// Rx(α) A Rx(α)ᵀ
template <class S>
[[nodiscard]] RD_INLINE Symmetric3<S> rotate_x(const S& c, const S& s,
                                               const Symmetric3<S>& A) noexcept {
  const S t = s * (A.yy - A.zz) + c * (A.yz + A.yz);
  return {A.xx, c * A.xy - s * A.xz, s * A.xy + c * A.xz, A.yy - s * t, c * t - A.yz, A.zz + s * t};
}

/// R A Rᵀ of a general matrix, R a turn about the axis k: 12 products.
template <int k, class S>
[[nodiscard]] RD_INLINE Mat3<S> rotate(const S& c, const S& s, const Mat3<S>& A) noexcept {
  constexpr int i = (k + 1) % 3;
  constexpr int j = (k + 2) % 3;
  const S t = s * (A(i, i) - A(j, j)) + c * (A(i, j) + A(j, i));
  const S st = s * t;
  const S ct = c * t;
  Mat3<S> B;
  B(i, i) = A(i, i) - st;
  B(j, j) = A(j, j) + st;
  B(i, j) = ct - A(j, i);
  B(j, i) = ct - A(i, j);
  B(i, k) = c * A(i, k) - s * A(j, k);
  B(j, k) = s * A(i, k) + c * A(j, k);
  B(k, i) = c * A(k, i) - s * A(k, j);
  B(k, j) = s * A(k, i) + c * A(k, j);
  B(k, k) = A(k, k);
  return B;
}

// --- Rigid-body inertia --------------------------------------------------------------------------

/// Mass, first moment m·c and rotational inertia, both about the body frame's origin. Adding two
/// bodies adds their inertias; nothing ever divides by a mass.
template <class S>
struct RigidInertia {
  S m;
  Vec3<S> h;        ///< m·c
  Symmetric3<S> I;  ///< about the origin

  [[nodiscard]] RD_INLINE static RigidInertia zero() noexcept {
    return {S(0), Vec3<S>::Zero(), Symmetric3<S>::zero()};
  }
  RD_INLINE RigidInertia& operator+=(const RigidInertia& o) noexcept {
    m += o.m;
    h += o.h;
    I += o.I;
    return *this;
  }
  /// Momentum (or force) of the motion V: [Iω + h×v; mv − h×ω].
  [[nodiscard]] RD_INLINE Force<S> operator*(const Motion<S>& V) const noexcept {
    return {I * V.w + h.cross(V.v), m * V.v - h.cross(V.w)};
  }
};

/// The same body about an origin O' from which the old origin is seen at r.
template <class S>
[[nodiscard]] RD_INLINE RigidInertia<S> shift(const RigidInertia<S>& A, const Vec3<S>& r) noexcept {
  // I' = I + (2h·r + m r²) 1 − (h rᵀ + r hᵀ) − m r rᵀ, each m r taken up into k = h + m r.
  const Vec3<S> k = A.h + A.m * r;
  const S x = (A.h[0] + k[0]) * r[0];
  const S y = (A.h[1] + k[1]) * r[1];
  const S z = (A.h[2] + k[2]) * r[2];
  return {
      A.m,
      k,
      {A.I.xx + y + z, A.I.xy - A.h[0] * r[1] - r[0] * k[1], A.I.xz - A.h[0] * r[2] - r[0] * k[2],
       A.I.yy + x + z, A.I.yz - A.h[1] * r[2] - r[1] * k[2], A.I.zz + x + y}};
}

// --- A vector fixed in a turning body ------------------------------------------------------------

/// Ω = ω̇~ + ω~²: a vector u fixed in the body has the second derivative ü = Ω u.
template <class S>
struct OmegaTensor {
  S xx, xy, xz, yx, yy, yz, zx, zy, zz;
};

/// Ω of a body that turns with ω and ω̇.
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

// --- Articulated-body inertia --------------------------------------------------------------------

/// A symmetric 6×6 inertia in blocks: [I H; Hᵀ M] maps [ω; v] to [n; f].
template <class S>
struct ArticulatedInertia {
  Symmetric3<S> I;
  Mat3<S> H;
  Symmetric3<S> M;

  /// In place and element by element: copied as a whole it goes through memory twice.
  RD_INLINE ArticulatedInertia& operator=(const RigidInertia<S>& A) noexcept {
    const S o(0);
    I = A.I;
    H(0, 0) = H(1, 1) = H(2, 2) = o;
    H(0, 1) = -A.h[2];
    H(0, 2) = A.h[1];
    H(1, 0) = A.h[2];
    H(1, 2) = -A.h[0];
    H(2, 0) = -A.h[1];
    H(2, 1) = A.h[0];
    M.xx = M.yy = M.zz = A.m;
    M.xy = M.xz = M.yz = o;
    return *this;
  }
  RD_INLINE ArticulatedInertia& operator+=(const ArticulatedInertia& o) noexcept {
    I += o.I;
    H += o.H;
    M += o.M;
    return *this;
  }
  [[nodiscard]] RD_INLINE Force<S> operator*(const Motion<S>& V) const noexcept {
    return {I * V.w + H * V.v, H.transpose() * V.w + M * V.v};
  }
};

/// The same inertia about an origin from which the old one is seen at r along the axis i.
template <int i, class S>
RD_INLINE void shift_along(const S& r, ArticulatedInertia<S>& A) noexcept {
  constexpr int j = (i + 1) % 3;
  constexpr int l = (i + 2) % 3;
  // H' = H + r× M, I' = I + r× Hᵀ − H' r×
  const S Hjl = A.H(j, l);
  const S Hlj = A.H(l, j);
  const S Hll = A.H(l, l);
  const S rMjl = r * A.M.template at<j, l>();
  A.H(j, i) -= r * A.M.template at<l, i>();
  A.H(j, j) -= rMjl;
  A.H(j, l) -= r * A.M.template at<l, l>();
  A.H(l, i) += r * A.M.template at<j, i>();
  A.H(l, j) += r * A.M.template at<j, j>();
  A.H(l, l) += rMjl;
  A.I.template at<j, j>() -= r * (Hjl + A.H(j, l));
  A.I.template at<l, l>() += r * (Hlj + A.H(l, j));
  A.I.template at<j, l>() += r * (A.H(j, j) - Hll);
  A.I.template at<i, j>() -= r * A.H(i, l);
  A.I.template at<i, l>() += r * A.H(i, j);
}

// --- The transform across a joint ----------------------------------------------------------------

/// Pose of a body in its parent, see the top of this file.
template <class S>
struct Transform {
  S ca, sa, a;     ///< cos α, sin α, offset along the parent's x
  S c, s, d;       ///< cos θ, sin θ, offset along the joint axis z
  S cg, sg, e, b;  ///< cos γ, sin γ, offsets along the turned parent's y and z
  bool branch;     ///< γ, e and b are present

  /// Rᵀ u: from the parent's axes to the body's.
  [[nodiscard]] RD_INLINE Vec3<S> to_child(const Vec3<S>& u) const noexcept {
    return unrotate_z(c, s, unrotate_x(ca, sa, branch ? unrotate_z(cg, sg, u) : u));
  }
  /// R u: from the body's axes to the parent's.
  [[nodiscard]] RD_INLINE Vec3<S> to_parent(const Vec3<S>& u) const noexcept {
    const Vec3<S> t = rotate_x(ca, sa, rotate_z(c, s, u));
    return branch ? rotate_z(cg, sg, t) : t;
  }
  /// The body's origin in the parent's frame.
  [[nodiscard]] RD_INLINE Vec3<S> position() const noexcept {
    if (!branch) return {a, -d * sa, d * ca};
    return rotate_z(cg, sg, Vec3<S>(a, e - d * sa, b + d * ca));
  }
  [[nodiscard]] RD_INLINE Mat3<S> rotation() const noexcept {
    Mat3<S> R;
    R << to_parent(Vec3<S>::UnitX()), to_parent(Vec3<S>::UnitY()), to_parent(Vec3<S>::UnitZ());
    return R;
  }

  /// The parent's motion, seen at the body's origin in the body's axes.
  [[nodiscard]] RD_INLINE Motion<S> to_child(const Motion<S>& V) const noexcept {
    Motion<S> t = V;
    if (branch) {
      t = {unrotate_z(cg, sg, V.w), unrotate_z(cg, sg, V.v)};
      t.v += t.w.cross(Vec3<S>(a, e, b));
    } else {  // ω × (a, 0, 0)
      t.v[1] += t.w[2] * a;
      t.v[2] -= t.w[1] * a;
    }
    t = {unrotate_x(ca, sa, t.w), unrotate_x(ca, sa, t.v)};
    t.v[0] += t.w[1] * d;  // ω × (0, 0, d)
    t.v[1] -= t.w[0] * d;
    return {unrotate_z(c, s, t.w), unrotate_z(c, s, t.v)};
  }
  /// A motion of the body, seen at the parent's origin in the parent's axes.
  [[nodiscard]] RD_INLINE Motion<S> to_parent(const Motion<S>& V) const noexcept {
    const Motion<S> t = {to_parent(V.w), to_parent(V.v)};
    return {t.w, t.v + position().cross(t.w)};
  }
  /// A force on the body, about the parent's origin in the parent's axes.
  [[nodiscard]] RD_INLINE Force<S> to_parent(const Force<S>& F) const noexcept {
    Force<S> t = {rotate_z(c, s, F.n), rotate_z(c, s, F.f)};
    t.n[0] -= d * t.f[1];  // (0, 0, d) × f
    t.n[1] += d * t.f[0];
    const Vec3<S> f = rotate_x(ca, sa, t.f);
    const Vec3<S> n(t.n[0], ca * t.n[1] - (sa * t.n[2] + a * f[2]),  // (a, 0, 0) × f
                    sa * t.n[1] + (ca * t.n[2] + a * f[1]));
    if (!branch) return {n, f};
    const Vec3<S> rest(n[0] + e * f[2] - b * f[1], n[1] + b * f[0], n[2] - e * f[0]);
    return {rotate_z(cg, sg, rest), rotate_z(cg, sg, f)};
  }
  /// A force given about the parent's origin, about the body's origin in the body's axes.
  [[nodiscard]] RD_INLINE Force<S> to_child(const Force<S>& F) const noexcept {
    return {to_child(Vec3<S>(F.n - position().cross(F.f))), to_child(F.f)};
  }
  /// R A Rᵀ
  [[nodiscard]] RD_INLINE Symmetric3<S> to_parent(const Symmetric3<S>& A) const noexcept {
    const Symmetric3<S> t = rotate_x(ca, sa, rotate_z(c, s, A));
    return branch ? rotate_z(cg, sg, t) : t;
  }
  /// The body's inertia about the parent's origin in the parent's axes.
  [[nodiscard]] RD_INLINE RigidInertia<S> to_parent(const RigidInertia<S>& A) const noexcept {
    RigidInertia<S> t = {A.m, rotate_z(c, s, A.h), rotate_z(c, s, A.I)};
    const S hz = t.h[2] + A.m * d;  // shift along z
    const S z = (t.h[2] + hz) * d;
    t.I.xx += z;
    t.I.yy += z;
    t.I.xz -= t.h[0] * d;
    t.I.yz -= t.h[1] * d;
    t.h[2] = hz;
    t = {A.m, rotate_x(ca, sa, t.h), rotate_x(ca, sa, t.I)};
    if (branch) {
      t = shift(t, Vec3<S>(a, e, b));
      return {A.m, rotate_z(cg, sg, t.h), rotate_z(cg, sg, t.I)};
    }
    const S hx = t.h[0] + A.m * a;  // shift along x
    const S x = (t.h[0] + hx) * a;
    t.I.yy += x;
    t.I.zz += x;
    t.I.xy -= t.h[1] * a;
    t.I.xz -= t.h[2] * a;
    t.h[0] = hx;
    return t;
  }
};

/// The articulated inertia of a body about its parent's origin in the parent's axes.
template <class S>
[[nodiscard]] RD_INLINE ArticulatedInertia<S> to_parent(const Transform<S>& X,
                                                        const ArticulatedInertia<S>& A) noexcept {
  ArticulatedInertia<S> t = {rotate_z(X.c, X.s, A.I), rotate<2>(X.c, X.s, A.H),
                             rotate_z(X.c, X.s, A.M)};
  shift_along<2>(X.d, t);
  t = {rotate_x(X.ca, X.sa, t.I), rotate<0>(X.ca, X.sa, t.H), rotate_x(X.ca, X.sa, t.M)};
  shift_along<0>(X.a, t);
  if (!X.branch) return t;
  shift_along<1>(X.e, t);
  shift_along<2>(X.b, t);
  return {rotate_z(X.cg, X.sg, t.I), rotate<2>(X.cg, X.sg, t.H), rotate_z(X.cg, X.sg, t.M)};
}

/// A constant pose of a frame F in a frame B: rotation R and origin p.
template <class S>
struct Pose {
  Mat3<S> R;
  Vec3<S> p;
  [[nodiscard]] RD_INLINE static Pose identity() noexcept {
    return {Mat3<S>::Identity(), Vec3<S>::Zero()};
  }
  [[nodiscard]] RD_INLINE Pose operator*(const Pose& o) const noexcept {
    return {R * o.R, R * o.p + p};
  }
  [[nodiscard]] RD_INLINE Vec3<S> operator*(const Vec3<S>& u) const noexcept { return R * u + p; }
  [[nodiscard]] RD_INLINE Pose inverse() const noexcept {
    return {R.transpose(), -(R.transpose() * p)};
  }
};

/// R := R · (turn by (c, s) in the plane of axes i and j).
template <class S>
RD_INLINE void turn_columns(Mat3<S>& R, int i, int j, const S& c, const S& s) noexcept {
  const Vec3<S> x = R.col(i);
  const Vec3<S> y = R.col(j);
  R.col(i) = c * x + s * y;
  R.col(j) = c * y - s * x;
}

/// The body's pose from its parent's.
template <class S>
[[nodiscard]] RD_INLINE Pose<S> across(const Pose<S>& X_WP, const Transform<S>& X) noexcept {
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

}  // namespace dynamics_core
