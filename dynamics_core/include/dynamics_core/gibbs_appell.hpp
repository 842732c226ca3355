// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Gibbs–Appell equations (Mata et al. 2002): inverse dynamics in O(n) through the tensor
/// Ω = ω̇~ + ω~² and Euler's tensor J (§4.1), the mass matrix as the Hessian of the Gibbs function
/// in O(n²) (§4.2), and the forward dynamics from both.
///
/// The paper takes moments about each mass centre and treats serial arms of revolute joints. Here
/// all is about the bodies' origins, with the equivalent mass properties `own` (see EulerInertia):
/// the paper's composed M, c and E, which it has for the mass matrix alone, and one step beyond, as
/// every mass on a revolute joint's axis is handed down to the parent. A turning body is left with
/// h = (h_x, h_y, 0) and J without J_zz, a sliding one with m and h. That is off-line work,
/// repeated when a payload changes.

#include <vector>

#include "dynamics_core/blocks.hpp"
#include "dynamics_core/cholesky.hpp"
#include "dynamics_core/joint_space.hpp"
#include "dynamics_core/tree.hpp"

namespace dynamics_core {

namespace gibbs_appell {

/// Mass properties that move the robot as the bodies' own do, with as many zeros as possible. A
/// mass on a revolute joint's axis moves with the parent as with the body, a body's turning is that
/// of the parent across a prismatic joint. So a revolute body hands m, h_z and J_zz down to its
/// parent, a prismatic one all of J. Second moments J = ∫ r rᵀ dm = ½ tr(I) 1 − I (Euler's tensor).
template <class S>
struct EulerInertia {
  S m;
  Vec3<S> h;
  Symmetric3<S> J;

  /// The same with moments of inertia, I = tr(J) 1 − J.
  [[nodiscard]] RigidInertia<S> rigid() const noexcept {
    return {m, h, {J.yy + J.zz, -J.xy, -J.xz, J.xx + J.zz, -J.yz, J.xx + J.yy}};
  }
};

template <class S>
struct Link {
  EulerInertia<S> own;   ///< constant until a payload changes
  Vec3<S> w, wd;         ///< ω, ω̇
  Vec3<S> sdd;           ///< classical acceleration of the origin
  OmegaTensor<S> Omega;  ///< ω̇~ + ω~²
  Force<S> F;
  EulerInertia<S> composite;  ///< of the subtree
  Vec3<S> s;                  ///< from the tree's first origin to this one
  int axes;                   ///< where the axes of the path to this body begin in path_axes
  int depth;                  ///< bodies on the path, itself not counted
  int blocks;                 ///< of axes of these
  int own_axis;               ///< where its own axis is, after the beginning
  bool heavy;                 ///< the subtree's composite has a mass
  bool tip;                   ///< it has no children
  bool last_child;            ///< no child of its parent comes after it
};

}  // namespace gibbs_appell

template <class S>
class GibbsAppell {
 public:
  /// The tree has to outlive this.
  explicit GibbsAppell(Tree<S>& tree);

  /// τ = M(q) a + C(q, v) v + g(q) − Σ Jᵀ f_ext.
  [[nodiscard]] StatusOf<S> inverse_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> a,
                                             VectorOut<S> tau) noexcept;
  /// C(q, v) v + g(q), without external forces.
  [[nodiscard]] StatusOf<S> bias(VectorIn<S> q, VectorIn<S> v, VectorOut<S> tau) noexcept;
  /// C(q, v) v, without external forces.
  [[nodiscard]] StatusOf<S> velocity_effort(VectorIn<S> q, VectorIn<S> v,
                                            VectorOut<S> tau) noexcept;
  /// g(q). At rest no force needs to travel: the first moment of each subtree does, and τ is that of
  /// its own force in the field, z · (h × a) about a turning joint, m a·z along a sliding one.
  [[nodiscard]] StatusOf<S> gravity(VectorIn<S> q, VectorOut<S> tau) noexcept;
  /// M(q), nv × nv, both triangles.
  [[nodiscard]] StatusOf<S> mass_matrix(VectorIn<S> q, MatrixOut<S> M) noexcept;
  /// M⁻¹(q), nv × nv, both triangles, by the factors of M.
  [[nodiscard]] StatusOf<S> inverse_mass_matrix(VectorIn<S> q, MatrixOut<S> M_inv) noexcept;
  /// a = M⁻¹(τ + Σ Jᵀ f_ext − C v − g), with the mass matrix and the bias of this family (Table 3).
  [[nodiscard]] StatusOf<S> forward_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                             VectorOut<S> a) noexcept;
  /// One step of iterative refinement of the accelerations `a`, after a forward_dynamics of the
  /// same arguments: a += M⁻¹(τ − inverse_dynamics(q, v, a)), with the factors that it left.
  ///
  /// Where M is ill-conditioned, its elements rounded to the scalar type no longer hold what the
  /// accelerations depend on, however they were computed. The recursive inverse dynamics still
  /// does: it never subtracts large elements of M. Costs an inverse dynamics and a solution.
  [[nodiscard]] StatusOf<S> refine(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                   VectorOut<S> a) noexcept;

  /// The equivalent mass properties of a body, as of the last call of a function above.
  [[nodiscard]] const gibbs_appell::EulerInertia<S>& equivalent_inertia(int body) const noexcept {
    return link_[static_cast<std::size_t>(body)].own;
  }

 private:
  using Link = gibbs_appell::Link<S>;
  using EulerInertia = gibbs_appell::EulerInertia<S>;

  void size_paths();
  void find_heavy();
  void update_inertias() noexcept;
  void hand_down(int body) noexcept;
  void add_inertia(int body, const RigidInertia<S>& part) noexcept;
  /// Brings `own` up to date with the payloads.
  RD_INLINE void refresh() noexcept {
    if (revision_ != tree_->revision()) update_inertias();
  }

  template <bool with_acceleration>
  void forward(const Vec3<S>& base, VectorIn<S> v, VectorIn<S> a) noexcept;
  void subtract_external_forces() noexcept;
  template <bool with_acceleration>
  [[nodiscard]] S backward(VectorIn<S> a, VectorOut<S>& tau) noexcept;
  void composites() noexcept;
  template <class Put>
  [[nodiscard]] StatusOf<S> hessian(Put&& put) noexcept;
  /// Is M dense, and so large that to write across its columns would leave the cache each time?
  [[nodiscard]] bool mirrored_later() const noexcept {
    return tree_->dense_mass_matrix() && !tree_->has_mimic() && tree_->nv() > 8;
  }
  void scatter(int i, const S* row, MatrixOut<S>& M) const noexcept;
  [[nodiscard]] StatusOf<S> hessian_matrix(MatrixOut<S>& M) noexcept;
  [[nodiscard]] StatusOf<S> factorized_hessian() noexcept;

  Tree<S>* tree_;
  unsigned revision_ = 0;
  std::vector<Link> link_;
  BlockVector<S> path_axes_;  ///< ∂ω̇/∂q̈ and ∂s̈/∂q̈ of paths: six rows of a block, block after block
  BlockVector<S> path_row_;  ///< one row of M, by the bodies of a path, in whole blocks
  MassMatrixFactors<S> factors_;
  VectorX<S> bias_;  ///< nv
};

// --- Implementation ------------------------------------------------------------------------------

namespace gibbs_appell {

// --- Inverse dynamics ----------------------------------------------------------------------------

// These run at every control cycle. They work component by component: whole-vector expressions
// would pass through memory in pieces of another width. What takes the time is the way of a number
// from body to body. Therefore the product that is known last stands first in its sum, where it is
// multiplied and added in one instruction, and the rest of the sum is in parentheses.

template <class S>
RD_INLINE void put(const Vec3<S>& from, Vec3<S>& to) noexcept {
  to[0] = from[0];
  to[1] = from[1];
  to[2] = from[2];
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

/// A revolute joint in the base: ω and ω̇ lie along z, and of its force only the moment about z is
/// asked for.
template <class S>
void root_revolute(const Body<S>& b, const Vec3<S>& base, S qd, S qdd, Link<S>& l) noexcept {
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
  return {X.s * u + X.c * x, X.c * u - X.s * x, X.ca * z - X.sa * y};
}

/// Rᵀ u + r
template <bool branch, class S>
[[nodiscard]] RD_INLINE Vec3<S> turn(const Transform<S>& X, S x, S y, S z, S rx, S ry,
                                     S rz) noexcept {
  if constexpr (branch) {
    const S t = X.cg * x + X.sg * y;
    y = X.cg * y - X.sg * x;
    x = t;
  }
  const S u = X.ca * y + X.sa * z;
  return {X.s * u + (X.c * x + rx), X.c * u + (ry - X.s * x), X.ca * z + (rz - X.sa * y)};
}

/// ω, ω̇, Ω, s̈ (§4.1, step 1) and the force and moment on the body (step 2, Eqs. 9, 10).
template <bool branch, class S>
RD_INLINE void revolute(const Body<S>& b, const Link<S>& parent, S qd, S qdd, Link<S>& l) noexcept {
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
    const S ax = y * qd + wd[0];
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
    const Vec3<S> s = turn<branch, S>(X, at[0], at[1], at[2], X.d * W.xz, X.d * W.yz, X.d * W.zz);
    const S x = s[0];
    const S y = s[1];
    const S z = s[2];
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
void prismatic(const Body<S>& b, const Link<S>* parent, const Vec3<S>& base, S qd, S qdd,
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

/// Any other joint, of whose body nothing is handed down to the parent.
template <bool with_acceleration, class S>
void general(const Body<S>& b, const Link<S>* parent, const Vec3<S>& base, VectorIn<S> v,
             VectorIn<S> a, Link<S>& l) noexcept {
  const Transform<S>& X = b.X;
  const Vec3<S> zero = Vec3<S>::Zero();
  l.w = parent == nullptr ? zero : X.to_child(parent->w);
  l.wd = parent == nullptr ? zero : X.to_child(parent->wd);
  l.sdd = X.to_child(parent == nullptr ? base : acceleration_at_joint<S>(X, *parent));
  add_joint_motion<with_acceleration, S>(b, v, a, l.w, l.wd, l.sdd);
  const S o(0);
  l.Omega = {o, o, o, o, o, o, o, o, o};
  l.F = Force<S>::zero();
  // Only the last body of a floating joint has a mass, and ω̇ is complete there.
  if (is_floating(b.kind) && b.axis != 5) return;
  l.Omega = omega_tensor<S>(l.w, l.wd);
  l.sdd += X.d * Vec3<S>(l.Omega.xz, l.Omega.yz, l.Omega.zz);
  l.F.f = l.own.m * l.sdd + times<S>(l.Omega, l.own.h);
  l.F.n = euler_moment<S>(l.Omega, l.own.J) + l.own.h.cross(l.sdd);
}

/// X F in its own function: beside the text below, compilers compute in advance what both share, and
/// then cannot add while they multiply.
template <class S>
[[nodiscard, gnu::noinline]] Force<S> across_branch(const Transform<S>& X, Force<S> F) noexcept {
  return X.to_parent(F);
}

/// Adds the body's force to its parent's (Eqs. 15, 16). Moments come last from the body before, so
/// that they come last into each sum.
template <class S>
RD_INLINE void add_to_parent(const Transform<S>& X, const Force<S>& F, Force<S>& parent) noexcept {
  if (X.branch) {
    parent += across_branch<S>(X, F);
    return;
  }
  const S fx = X.c * F.f[0] - X.s * F.f[1];
  const S fv = X.s * F.f[0] + X.c * F.f[1];
  const S fy = X.ca * fv - X.sa * F.f[2];
  const S fz = X.sa * fv + X.ca * F.f[2];
  const S nv = X.s * F.n[0] + (X.c * F.n[1] + X.d * fx);  // the offset d along the axis
  parent.n[0] = X.c * F.n[0] + (parent.n[0] - X.s * F.n[1] - X.d * fv);
  parent.n[1] = X.ca * nv + (parent.n[1] - X.sa * F.n[2] - X.a * fz);  // a along the parent's x
  parent.n[2] = X.sa * nv + (parent.n[2] + X.ca * F.n[2] + X.a * fy);
  parent.f[0] += fx;
  parent.f[1] += fy;
  parent.f[2] += fz;
}

// --- Mass matrix ---------------------------------------------------------------------------------

/// The composite of a subtree about the parent's origin in the parent's axes: φ and ψ of §4.2,
/// steps 4 and 5, with second moments in place of ψ, for which a shift by r is
/// h rᵀ + r hᵀ + m r rᵀ. Sets the parent's composite to this and what the parent has `so_far`.
template <class S>
RD_INLINE void add_to_parent(const Transform<S>& X, bool heavy, const EulerInertia<S>& A,
                             const EulerInertia<S>& so_far, EulerInertia<S>& parent) noexcept {
  parent.m = so_far.m;
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
  parent.h[0] = so_far.h[0] + h[0];
  parent.h[1] = so_far.h[1] + h[1];
  parent.h[2] = so_far.h[2] + h[2];
  J += so_far.J;
  parent.J.xx = J.xx;
  parent.J.xy = J.xy;
  parent.J.xz = J.xz;
  parent.J.yy = J.yy;
  parent.J.yz = J.yz;
  parent.J.zz = J.zz;
}

/// ∂ω̇/∂q̈ and ∂s̈/∂q̈ of a block of joints.
template <class S>
struct Axes {
  static constexpr int size = 6 * block_width<S>;
  Block<S> w[3], s[3];

  RD_INLINE void load_from(const S* from) noexcept {
    for (int r = 0; r < 3; ++r) load_block<S>(from + r * block_width<S>, w[r]);
    for (int r = 0; r < 3; ++r) load_block<S>(from + (3 + r) * block_width<S>, s[r]);
  }
  RD_INLINE void store_to(S* to) const noexcept {
    for (int r = 0; r < 3; ++r) store_block<S>(w[r], to + r * block_width<S>);
    for (int r = 0; r < 3; ++r) store_block<S>(s[r], to + (3 + r) * block_width<S>);
  }
};

/// Rᵀ u of three rows (§4.2, step 3).
template <bool branch, class S>
RD_INLINE void turn_rows(const Transform<S>& X, Block<S>* u) noexcept {
  if constexpr (branch) {
    const Block<S> t = X.cg * u[0] + X.sg * u[1];
    u[1] = X.cg * u[1] - X.sg * u[0];
    u[0] = t;
  }
  const Block<S> t = X.ca * u[1] + X.sa * u[2];
  u[2] = X.ca * u[2] - X.sa * u[1];
  u[1] = X.c * t - X.s * u[0];
  u[0] = X.c * u[0] + X.s * t;
}

/// Rᵀ s of the first origin, and what is fixed in the parent (§4.2, step 2).
template <class S>
[[nodiscard]] RD_INLINE Vec3<S> from_first_origin(const Transform<S>& X,
                                                  const Vec3<S>& parent) noexcept {
  Vec3<S> s;
  if (X.branch)
    s = X.to_child(Vec3<S>(parent + rotate_z(X.cg, X.sg, Vec3<S>(X.a, X.e, X.b))));
  else
    s = turn<false, S>(X, parent[0] + X.a, parent[1], parent[2]);
  s[2] += X.d;
  return s;
}

/// The force that gives the composite a unit acceleration along the body's axis, ψ z and φ~ z
/// (Eq. 22) for a revolute joint, φ~ᵀ z and m z for a slide; n about the tree's first origin. Where
/// f_z is always zero no product is made with it.
template <class S>
struct PathForce {
  S nx, ny, nz, fx, fy, fz;
  bool along_z;
};
template <class S>
[[nodiscard]] RD_INLINE PathForce<S> path_force(const Body<S>& b, const Link<S>& l) noexcept {
  const EulerInertia<S>& A = l.composite;
  const Vec3<S>& s = l.s;
  const S hx = A.h[0];
  const S hy = A.h[1];
  const S zero(0);
  if (turns_only(b.kind))  // f = (−h_y, h_x, 0)
    return {-A.J.xz - s[2] * hx,
            -A.J.yz - s[2] * hy,
            A.J.xx + A.J.yy + s[0] * hx + s[1] * hy,
            -hy,
            hx,
            zero,
            false};
  if (!turns(b.kind))  // f = (0, 0, m)
    return {hy + s[1] * A.m, -hx - s[0] * A.m, zero, zero, zero, A.m, true};
  const Force<S> F = unit_force<S>(b, A.rigid());
  const Vec3<S> n = F.n + s.cross(F.f);
  return {n[0], n[1], n[2], F.f[0], F.f[1], F.f[2], true};
}

/// D_jj (§4.2, step 7).
template <class S>
[[nodiscard]] RD_INLINE S own_product(const Body<S>& b, const EulerInertia<S>& A) noexcept {
  return axial_inertia<S>(b, A.m, S(A.J.xx + A.J.yy));
}

/// D_jk of a block of joints k (§4.2, step 6).
template <class S>
RD_INLINE void multiply(const PathForce<S>& F, const Axes<S>& axes, S* row) noexcept {
  Block<S> d =
      F.nx * axes.w[0] + F.ny * axes.w[1] + F.nz * axes.w[2] + F.fx * axes.s[0] + F.fy * axes.s[1];
  if (F.along_z) d += F.fz * axes.s[2];
  store_block<S>(d, row);
}

/// The axes of all joints on the path, ∂ω̇/∂q̈ and the acceleration ∂s̈/∂q̈ of one and the same point,
/// the first body's origin, brought from the parent's frame to the body's; and their products with
/// the body's force. As the point never changes, the axes need only turn on their way to the tips,
/// where the paper carries one vector s_kj per pair of bodies. `axes` may be `parent`.
template <bool branch, class S>
RD_INLINE void turn_and_multiply(const Transform<S>& X, const PathForce<S>& F, int blocks,
                                 const S* parent, S* axes, S* row) noexcept {
  const Transform<S> R = X;  // into registers: nothing of it changes meanwhile
  for (int k = 0; k < blocks; ++k) {
    Axes<S> a;
    a.load_from(parent + k * Axes<S>::size);
    turn_rows<branch, S>(R, a.w);
    turn_rows<branch, S>(R, a.s);
    a.store_to(axes + k * Axes<S>::size);
    multiply<S>(F, a, row + k * block_width<S>);
  }
}

/// The axis of the body's own joint in its frame: ∂ω̇/∂q̈, and ∂s̈/∂q̈ of the point at −s.
template <class S>
RD_INLINE void set_axis(const Body<S>& b, const Vec3<S>& s, S* own) noexcept {
  constexpr int row = block_width<S>;
  const Vec3<S> linear = linear_axis<S>(b, Vec3<S>(-s));
  own[0] = S(0);
  own[row] = S(0);
  own[2 * row] = turns(b.kind) ? S(1) : S(0);
  own[3 * row] = linear[0];
  own[4 * row] = linear[1];
  own[5 * row] = linear[2];
}

}  // namespace gibbs_appell

// --- Off-line: paths and mass properties ---------------------------------------------------------

template <class S>
GibbsAppell<S>::GibbsAppell(Tree<S>& tree)
    : tree_(&tree),
      link_(static_cast<std::size_t>(tree.nb())),
      factors_(tree),
      bias_(VectorX<S>::Zero(tree.nv())) {
  size_paths();
  find_heavy();
  update_inertias();
}

/// A body's axes take the place of its parent's if no child of the parent comes after it; else they
/// go to the next level. So what is at work stays in the cache, however long the robot is.
template <class S>
void GibbsAppell<S>::size_paths() {
  const Body<S>* body = tree_->bodies();
  std::vector<int> last_child(link_.size(), -1);
  for (int i = 0; i < tree_->nb(); ++i)
    if (body[i].parent >= 0) last_child[static_cast<std::size_t>(body[i].parent)] = i;
  std::vector<int> level(link_.size());
  int levels = 0;
  int longest = 0;
  for (std::size_t i = 0; i < link_.size(); ++i) {
    const int parent = body[i].parent;
    const auto p = static_cast<std::size_t>(parent);
    link_[i].depth = parent < 0 ? 0 : link_[p].depth + 1;
    link_[i].tip = last_child[i] < 0;
    link_[i].last_child = parent >= 0 && last_child[p] == static_cast<int>(i);
    level[i] = parent < 0 ? 0 : level[p] + (link_[i].last_child ? 0 : 1);
    levels = std::max(levels, level[i] + 1);
    link_[i].blocks = blocks_for<S>(link_[i].depth);
    link_[i].own_axis = link_[i].depth / block_width<S> * gibbs_appell::Axes<S>::size +
                        link_[i].depth % block_width<S>;
    longest = std::max(longest, blocks_for<S>(link_[i].depth + 1));
  }
  const int size = longest * gibbs_appell::Axes<S>::size;
  for (std::size_t i = 0; i < link_.size(); ++i) link_[i].axes = level[i] * size;
  path_axes_.assign(static_cast<std::size_t>(levels) * static_cast<std::size_t>(size), S(0));
  path_row_.assign(static_cast<std::size_t>(longest) * static_cast<std::size_t>(block_width<S>),
                   S(0));
}

/// Only a revolute body hands all of its mass down.
template <class S>
void GibbsAppell<S>::find_heavy() {
  const Body<S>* body = tree_->bodies();
  for (Link& l : link_) l.heavy = false;
  for (std::size_t i = link_.size(); i-- > 0;) {
    Link& l = link_[i];
    l.heavy = l.heavy || body[i].kind != JointKind::revolute;
    const int parent = body[i].parent;
    if (parent >= 0 && l.heavy) link_[static_cast<std::size_t>(parent)].heavy = true;
  }
}

/// What the base carries moves nothing.
template <class S>
void GibbsAppell<S>::add_inertia(int body, const RigidInertia<S>& part) noexcept {
  if (body < 0) return;
  EulerInertia& own = link_[static_cast<std::size_t>(body)].own;
  own.m += part.m;
  own.h += part.h;
  own.J += part.I;
}

/// From the tips to the base; `own.J` holds the inertia I until its body's turn comes.
template <class S>
void GibbsAppell<S>::update_inertias() noexcept {
  const Body<S>* body = tree_->bodies();
  for (std::size_t i = 0; i < link_.size(); ++i) {
    const RigidInertia<S>& I = body[i].inertia;
    link_[i].own = {I.m, I.h, I.I};
  }
  for (int i = tree_->nb() - 1; i >= 0; --i) hand_down(i);
  revision_ = tree_->revision();
}

template <class S>
void GibbsAppell<S>::hand_down(int body) noexcept {
  const Body<S>& b = tree_->bodies()[body];
  EulerInertia& own = link_[static_cast<std::size_t>(body)].own;
  const S zero(0);
  const S half(0.5);
  const Symmetric3<S> I = own.J;
  const S Jzz = half * (I.xx + I.yy - I.zz);
  own.J = {half * (I.yy + I.zz - I.xx), -I.xy, -I.xz, half * (I.xx + I.zz - I.yy), -I.yz, Jzz};
  if (b.kind == JointKind::revolute) {
    Transform<S> X = b.X;  // masses on the axis do not feel the joint's angle
    X.c = S(1);
    X.s = zero;
    const Vec3<S> h(zero, zero, own.h[2]);
    add_inertia(b.parent,
                X.to_parent(RigidInertia<S>{own.m, h, {Jzz, zero, zero, Jzz, zero, zero}}));
    own.m = zero;
    own.h[2] = zero;
    own.J.zz = zero;
  } else if (b.kind == JointKind::prismatic) {
    add_inertia(b.parent, {zero, Vec3<S>::Zero(), b.X.to_parent(I)});
    own.J = Symmetric3<S>::zero();
  }
}

// --- Inverse dynamics ----------------------------------------------------------------------------

/// Accelerations and forces, base to tips. Without acceleration it leaves q̈ out (Table 3).
template <class S>
template <bool with_acceleration>
void GibbsAppell<S>::forward(const Vec3<S>& base, VectorIn<S> v, VectorIn<S> a) noexcept {
  using namespace gibbs_appell;
  Link* link = link_.data();
  const Body<S>* body = tree_->bodies();
  const int n = tree_->nb();
  for (int i = 0; i < n; ++i) {
    const Body<S>& b = body[i];
    const Link* parent = b.parent < 0 ? nullptr : &link[b.parent];
    const S qd = rate<S>(b, v);
    S qdd(0);
    if constexpr (with_acceleration) qdd = rate<S>(b, a);
    if (b.kind == JointKind::revolute) {
      if (parent == nullptr)
        root_revolute<S>(b, base, qd, qdd, link[i]);
      else if (b.X.branch)
        revolute<true, S>(b, *parent, qd, qdd, link[i]);
      else
        revolute<false, S>(b, *parent, qd, qdd, link[i]);
    } else if (b.kind == JointKind::prismatic) {
      prismatic<S>(b, parent, base, qd, qdd, link[i]);
    } else {
      general<with_acceleration, S>(b, parent, base, v, a, link[i]);
    }
  }
}

template <class S>
void GibbsAppell<S>::subtract_external_forces() noexcept {
  const Force<S>* external = tree_->external_forces();
  if (external == nullptr) return;
  for (std::size_t i = 0; i < link_.size(); ++i) link_[i].F -= external[i];
}

/// φ and χ (Eqs. 15, 16) and τ (Eq. 14; z·φ for a prismatic joint), tips to base, and the rotors'
/// share. Returns zero if all of τ is finite. The force handed to the body before stays out of memory.
template <class S>
template <bool with_acceleration>
S GibbsAppell<S>::backward(VectorIn<S> a, VectorOut<S>& tau) noexcept {
  Link* link = link_.data();
  const Body<S>* body = tree_->bodies();
  const bool shared = tree_->has_mimic();
  if (shared) tau.setZero();
  const S zero(0);
  S sum(0);
  Force<S> F = Force<S>::zero();
  int last = -1;
  for (int i = tree_->nb() - 1; i >= 0; --i) {
    const Body<S>& b = body[i];
    if (last != i) F = link[i].F;
    S effort = along<S>(b, F);
    if constexpr (with_acceleration) effort += b.rotor * rate<S>(b, a);
    add_effort<S>(b, effort, tau, shared);
    sum += tau[b.dof] * zero;
    last = b.parent;
    if (b.parent < 0) continue;
    Force<S> at_parent = link[b.parent].F;
    gibbs_appell::add_to_parent<S>(b.X, F, at_parent);
    F = at_parent;
    if (b.parent != i - 1) link[b.parent].F = F;
  }
  return sum;
}

// --- Mass matrix ---------------------------------------------------------------------------------

/// φ and ψ of all subtrees (§4.2, steps 4 and 5), tips to base.
template <class S>
void GibbsAppell<S>::composites() noexcept {
  Link* link = link_.data();
  const Body<S>* body = tree_->bodies();
  for (int i = tree_->nb() - 1; i >= 0; --i) {
    const Body<S>& b = body[i];
    Link& l = link[i];
    if (l.tip) l.composite = l.own;
    if (b.parent < 0) continue;
    Link& p = link[b.parent];
    gibbs_appell::add_to_parent<S>(b.X, l.heavy, l.composite, l.last_child ? p.own : p.composite,
                                   p.composite);
  }
}

/// The mass matrix at the configuration that the transforms already have, a body at a time, base to
/// tips: put(i, row) gets the elements that join body i with those on the path to it, from the first
/// on, and with itself. Whether a row is finite tell its last element and its first: the products
/// with s, the way from the tree's first origin, are part of all elements but the last.
template <class S>
template <class Put>
RD_INLINE StatusOf<S> GibbsAppell<S>::hessian(Put&& put) noexcept {
  using namespace gibbs_appell;
  composites();
  Link* link = link_.data();
  const Body<S>* body = tree_->bodies();
  S* row = path_row_.data();
  const S zero(0);
  S sum(0);
  const int n = tree_->nb();
  for (int i = 0; i < n; ++i) {
    const Body<S>& b = body[i];
    Link& l = link[i];
    S* axes = path_axes_.data() + l.axes;
    l.s = Vec3<S>(S(0), S(0), S(0));
    if (b.parent >= 0) {
      const Link& p = link[b.parent];
      l.s = from_first_origin<S>(b.X, p.s);
      const PathForce<S> F = path_force<S>(b, l);
      const S* parent = path_axes_.data() + p.axes;
      if (b.X.branch)
        turn_and_multiply<true, S>(b.X, F, l.blocks, parent, axes, row);
      else
        turn_and_multiply<false, S>(b.X, F, l.blocks, parent, axes, row);
    }
    set_axis<S>(b, l.s, axes + l.own_axis);
    row[l.depth] = own_product<S>(b, l.composite) + b.rotor;
    sum += row[0] * zero + row[l.depth] * zero;
    put(i, row);
  }
  return finite_status<S>(sum);
}

/// Puts the row of one body into M.
template <class S>
RD_INLINE void GibbsAppell<S>::scatter(int i, const S* row, MatrixOut<S>& M) const noexcept {
  const Body<S>* body = tree_->bodies();
  const Body<S>& b = body[i];
  int k = link_.data()[i].depth;
  if (tree_->has_mimic()) {
    for (int j = i; j >= 0; j = body[j].parent) add_symmetric<S>(b, body[j], row[k--], M);
    return;
  }
  const Eigen::Index stride = M.outerStride();
  S* column = M.data() + b.dof * stride;
  S* line = M.data() + b.dof;
  if (mirrored_later()) {
    for (int j = 0; j <= k; ++j) column[j] = row[j];
    return;
  }
  if (tree_->dense_mass_matrix()) {  // the path's coordinates are all before this one
    for (int j = 0; j <= k; ++j, line += stride) *line = column[j] = row[j];
    return;
  }
  const int* parent = tree_->dof_parents();
  for (int j = b.dof; j >= 0; j = parent[j]) column[j] = line[j * stride] = row[k--];
}

template <class S>
StatusOf<S> GibbsAppell<S>::hessian_matrix(MatrixOut<S>& M) noexcept {
  if (!tree_->dense_mass_matrix() || tree_->has_mimic()) set_zero<S>(M);
  const StatusOf<S> status = hessian([&](int i, const S* row) { scatter(i, row, M); });
  if (mirrored_later()) mirror_upper<S>(M);
  return tree_->has_mimic() ? merged(status, result_status<S>(M)) : status;
}

/// The factors of the mass matrix at the configuration that the transforms already have. Where
/// bodies share coordinates, their rows have to be added up first.
template <class S>
StatusOf<S> GibbsAppell<S>::factorized_hessian() noexcept {
  if (tree_->has_mimic()) {
    MatrixOut<S> M(factors_.matrix());
    const StatusOf<S> status = hessian_matrix(M);
    return failed(status) ? status : merged(status, factors_.factorize());
  }
  const Body<S>* body = tree_->bodies();
  const StatusOf<S> status = hessian([&](int i, const S* row) {
    S* to = factors_.row(body[i].dof);
    for (int k = 0; k <= link_.data()[i].depth; ++k) to[k] = row[k];
  });
  return failed(status) ? status : merged(status, factors_.factorize_rows());
}

// --- The functions of the family -----------------------------------------------------------------

template <class S>
StatusOf<S> GibbsAppell<S>::inverse_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> a,
                                             VectorOut<S> tau) noexcept {
  const StatusOf<S> status = check_and_move<S>(*tree_, q, v, a, tau);
  if (failed(status)) return status;
  refresh();
  forward<true>(tree_->base_acceleration(), v, a);
  subtract_external_forces();
  return merged(status, finite_status<S>(backward<true>(a, tau)));
}

template <class S>
StatusOf<S> GibbsAppell<S>::bias(VectorIn<S> q, VectorIn<S> v, VectorOut<S> tau) noexcept {
  const StatusOf<S> status = check_and_move<S>(*tree_, q, v, tau);
  if (failed(status)) return status;
  refresh();
  forward<false>(tree_->base_acceleration(), v, v);
  return merged(status, finite_status<S>(backward<false>(v, tau)));
}

template <class S>
StatusOf<S> GibbsAppell<S>::velocity_effort(VectorIn<S> q, VectorIn<S> v,
                                            VectorOut<S> tau) noexcept {
  const StatusOf<S> status = check_and_move<S>(*tree_, q, v, tau);
  if (failed(status)) return status;
  refresh();
  forward<false>(Vec3<S>::Zero(), v, v);
  return merged(status, finite_status<S>(backward<false>(v, tau)));
}

template <class S>
StatusOf<S> GibbsAppell<S>::gravity(VectorIn<S> q, VectorOut<S> tau) noexcept {
  const StatusOf<S> status = check_and_move<S>(*tree_, q, tau);
  if (failed(status)) return status;
  refresh();
  Link* link = link_.data();
  const Body<S>* body = tree_->bodies();
  const int n = tree_->nb();
  for (int i = 0; i < n; ++i) {
    const Body<S>& b = body[i];
    Link& l = link[i];
    l.sdd = b.X.to_child(b.parent < 0 ? tree_->base_acceleration() : link[b.parent].sdd);
    l.composite.h = l.own.h;
    if (l.heavy) l.composite.m = l.own.m;
  }
  const bool shared = tree_->has_mimic();
  if (shared) tau.setZero();
  for (int i = n - 1; i >= 0; --i) {
    const Body<S>& b = body[i];
    const EulerInertia& A = link[i].composite;
    const S effort = effort_at_rest<S>(b, A.m, A.h, link[i].sdd);
    if (shared)
      add_effort<S>(b, effort, tau);
    else
      tau[b.dof] = effort;
    if (b.parent < 0) continue;
    EulerInertia& parent = link[b.parent].composite;
    parent.h += b.X.to_parent(A.h);
    if (!link[i].heavy) continue;
    parent.m += A.m;
    parent.h += A.m * b.X.position();
  }
  return merged(status, result_status<S>(tau));
}

template <class S>
StatusOf<S> GibbsAppell<S>::mass_matrix(VectorIn<S> q, MatrixOut<S> M) noexcept {
  const StatusOf<S> status = check_and_move<S>(*tree_, q, M);
  if (failed(status)) return status;
  refresh();
  return merged(status, hessian_matrix(M));
}

template <class S>
StatusOf<S> GibbsAppell<S>::inverse_mass_matrix(VectorIn<S> q, MatrixOut<S> M_inv) noexcept {
  StatusOf<S> status = check_and_move<S>(*tree_, q, M_inv);
  if (failed(status)) return status;
  refresh();
  status = merged(status, factorized_hessian());
  if (failed(status)) return status;
  factors_.inverse(M_inv);
  return merged(status, diagonal_status<S>(M_inv));
}

template <class S>
StatusOf<S> GibbsAppell<S>::forward_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                             VectorOut<S> a) noexcept {
  StatusOf<S> status = check_and_move<S>(*tree_, q, v, tau, a);
  if (failed(status)) return status;
  refresh();
  status = merged(status, factorized_hessian());
  if (failed(status)) return status;
  forward<false>(tree_->base_acceleration(), v, v);
  subtract_external_forces();
  VectorOut<S> bias(bias_);
  (void)backward<false>(v, bias);
  a = tau - bias_;
  factors_.solve(a.data());
  return merged(status, result_status<S>(a));
}

template <class S>
StatusOf<S> GibbsAppell<S>::refine(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                   VectorOut<S> a) noexcept {
  StatusOf<S> status = check<S>(*tree_, q, v, tau);
  if (failed(status)) return status;
  status = merged(status, inverse_dynamics(q, v, a, bias_));
  if (failed(status)) return status;
  bias_ = tau - bias_;
  factors_.solve(bias_.data());
  a += bias_;
  return merged(status, result_status<S>(a));
}

}  // namespace dynamics_core
