// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Quaternions (x y z w) of floating joints, in any scalar type.

#include <cmath>

#include "dynamics_core/scalar.hpp"
#include "dynamics_core/spatial.hpp"

namespace dynamics_core {

template <class S>
struct Quaternion {
  S x, y, z, w;
};

template <class S>
[[nodiscard]] Quaternion<S> quaternion_product(const Quaternion<S>& p,
                                               const Quaternion<S>& q) noexcept {
  return {
      p.w * q.x + p.x * q.w + p.y * q.z - p.z * q.y, p.w * q.y - p.x * q.z + p.y * q.w + p.z * q.x,
      p.w * q.z + p.x * q.y - p.y * q.x + p.z * q.w, p.w * q.w - p.x * q.x - p.y * q.y - p.z * q.z};
}

/// Brings the length between two and four, so that no square overflows or vanishes. False where the
/// quaternion is zero: `status` is then out_of_range.
template <class S>
[[nodiscard]] bool scale_to_order_one(Quaternion<S>& q, StatusOf<S>& status) noexcept {
  using std::abs;
  const S quarter(0.25);  // of four finite numbers the sum may overflow, their mean cannot
  S mean = quarter * abs(q.x) + quarter * abs(q.y) + quarter * abs(q.z) + quarter * abs(q.w);
  if (!keep_pivot<S>(mean, S(0), status, Status::out_of_range)) return false;
  q = {q.x / mean, q.y / mean, q.z / mean, q.w / mean};
  return true;
}

/// Brings the length to one; as above.
template <class S>
[[nodiscard]] bool normalize(Quaternion<S>& q, StatusOf<S>& status) noexcept {
  using std::sqrt;
  if (!scale_to_order_one<S>(q, status)) return false;
  const S length = sqrt(S(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w));
  q = {q.x / length, q.y / length, q.z / length, q.w / length};
  return true;
}

/// The rotation of a quaternion of length one, applied to u.
template <class S>
[[nodiscard]] Vec3<S> rotate(const Quaternion<S>& q, const Vec3<S>& u) noexcept {
  const Vec3<S> axis(q.x, q.y, q.z);
  const Vec3<S> t = S(2) * axis.cross(u);
  return u + q.w * t + axis.cross(t);
}

/// Writes the rotation of a quaternion of any length as Rz(γ) Rx(α) Rz(θ). With w + iz and x + iy
/// as complex numbers their arguments are (γ+θ)/2 and (γ−θ)/2, their moduli cos α/2 and sin α/2;
/// where one vanishes its argument is free, and an error in it cancels between γ and θ.
template <class S>
void set_rotation(const Quaternion<S>& q, Transform<S>& X) noexcept {
  using std::sqrt;
  const S norm = sqrt(S(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w));
  S ch, cp, sp, sh, cm, sm;
  to_polar(q.w, q.z, ch, cp, sp);
  to_polar(q.x, q.y, sh, cm, sm);
  X.cg = cp * cm - sp * sm;
  X.sg = sp * cm + cp * sm;
  X.c = cp * cm + sp * sm;
  X.s = sp * cm - cp * sm;
  const S cn = ch / norm;
  const S sn = sh / norm;
  X.ca = cn * cn - sn * sn;
  X.sa = S(2) * cn * sn;
}

/// The displacement of a constant twist [φ; u] in the moving axes: quaternion and position, the
/// exponential on SE(3). Each sin(x)/x tends to its limit where the angle vanishes.
template <class S>
void exponential(const Vec3<S>& phi, const Vec3<S>& u, Quaternion<S>& dq, Vec3<S>& dp) noexcept {
  using std::sqrt;
  const S angle = sqrt(S(phi.squaredNorm()));
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

/// The shortest rotation that turns z onto a unit vector; half a turn about x onto -z. Eigen's
/// FromTwoVectors takes ten seconds to compile.
[[nodiscard]] inline Eigen::Matrix3d rotation_of_z_onto(const Eigen::Vector3d& axis) {
  const double across = std::hypot(axis.x(), axis.y());
  const double s = axis.z() < 0.0 ? across * std::sqrt(2.0 / (1.0 - axis.z()))  // √(2 + 2z)
                                  : std::sqrt(2.0 * (1.0 + axis.z()));
  if (s == 0.0) return Eigen::Vector3d(1.0, -1.0, -1.0).asDiagonal();
  const double x = -axis.y() / s;  // of the quaternion [z × axis; 1 + z·axis], and z = 0
  const double y = axis.x() / s;
  const double w = 0.5 * s;
  Eigen::Matrix3d R;
  R << 1.0 - 2.0 * y * y, 2.0 * x * y, 2.0 * y * w,  //
      2.0 * x * y, 1.0 - 2.0 * x * x, -2.0 * x * w,  //
      -2.0 * y * w, 2.0 * x * w, 1.0 - 2.0 * (x * x + y * y);
  return R;
}

}  // namespace dynamics_core
