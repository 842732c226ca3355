#pragma once

/// What all families share of the joints: argument checks, sines and cosines, and the rates of a
/// body's own motion. No recursion lives here.

#include "dynamics_core/workspace.hpp"

namespace dynamics_core {

/// Sizes and finiteness of the arguments.
template <class S>
[[nodiscard]] Status check_q(const Workspace<S>& ws, VectorIn<S> q) noexcept {
  if (q.size() != ws.nq()) return Status::wrong_size;
  return all_finite<S>(q) ? Status::ok : Status::not_finite;
}
template <class S>
[[nodiscard]] Status check_v(const Workspace<S>& ws, VectorIn<S> v) noexcept {
  if (v.size() != ws.nv()) return Status::wrong_size;
  return all_finite<S>(v) ? Status::ok : Status::not_finite;
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

namespace detail {

template <class S>
[[nodiscard]] Eigen::Matrix<S, 4, 1> quaternion_product(const Eigen::Matrix<S, 4, 1>& p,
                                                        const Eigen::Matrix<S, 4, 1>& q) noexcept {
  return {p[3] * q[0] + p[0] * q[3] + p[1] * q[2] - p[2] * q[1],
          p[3] * q[1] - p[0] * q[2] + p[1] * q[3] + p[2] * q[0],
          p[3] * q[2] + p[0] * q[1] - p[1] * q[0] + p[2] * q[3],
          p[3] * q[3] - p[0] * q[0] - p[1] * q[1] - p[2] * q[2]};
}

/// Writes the rotation of a quaternion of any length as Rz(γ) Rx(α) Rz(θ). With w + iz and x + iy
/// as complex numbers their arguments are (γ+θ)/2 and (γ−θ)/2, their moduli cos α/2 and sin α/2;
/// where one vanishes its argument is free, and an error in it cancels between γ and θ.
template <class S>
void set_rotation(Transform<S>& X, const Eigen::Matrix<S, 4, 1>& q) noexcept {
  using std::sqrt;
  const S norm = sqrt(q.squaredNorm());
  const S ch = sqrt(q[3] * q[3] + q[2] * q[2]);
  const S sh = sqrt(q[0] * q[0] + q[1] * q[1]);
  const S cp = safe_ratio(q[3], ch, S(1));
  const S sp = safe_ratio(q[2], ch, S(0));
  const S cm = safe_ratio(q[0], sh, S(1));
  const S sm = safe_ratio(q[1], sh, S(0));
  X.cg = cp * cm - sp * sm;
  X.sg = sp * cm + cp * sm;
  X.c = cp * cm + sp * sm;
  X.s = sp * cm - cp * sm;
  const S cn = ch / norm;
  const S sn = sh / norm;
  X.ca = cn * cn - sn * sn;
  X.sa = S(2) * cn * sn;
}

template <class S>
void update_floating(const typename Workspace<S>::FloatingJoint& joint, Body<S>& b,
                     VectorIn<S> q) noexcept {
  const Vec3<S> p = joint.origin * Vec3<S>(q[b.q], q[b.q + 1], q[b.q + 2]);
  const Eigen::Matrix<S, 4, 1> given(q[b.q + 3], q[b.q + 4], q[b.q + 5], q[b.q + 6]);
  // The first body's z is the joint's x: a turn by 120° about (1, 1, 1).
  const Eigen::Matrix<S, 4, 1> to_first(S(0.5), S(0.5), S(0.5), S(0.5));
  set_rotation(b.X, quaternion_product(quaternion_product(joint.rotation, given), to_first));
  const Vec3<S> r = unrotate_z(b.X.cg, b.X.sg, p);
  b.X.a = r[0];
  b.X.e = r[1];
  b.X.b = r[2];
}

}  // namespace detail

/// Brings every X to the configuration q.
template <class S>
void update_joints(Workspace<S>& ws, VectorIn<S> q) noexcept {
  const int n = ws.nb();
  S* coordinate = ws.coordinate.data();
  S* sine = ws.sine.data();
  S* cosine = ws.cosine.data();
  const auto* source = ws.sources.data();
  for (int i = 0; i < n; ++i)
    coordinate[i] = source[i].multiplier * q[source[i].q] + source[i].offset;
  sincos_many(coordinate, sine, cosine, static_cast<int>(ws.coordinate.size()));
  Body<S>* body = ws.bodies.data();
  for (int i = 0; i < n; ++i) {
    if (body[i].kind == Motions::revolute) {
      body[i].X.s = sine[i];
      body[i].X.c = cosine[i];
    } else if (body[i].kind == Motions::prismatic) {
      body[i].X.d = coordinate[i];
    }
  }
  for (const auto& joint : ws.floating) detail::update_floating<S>(joint, body[joint.body], q);
}

/// The rate of the body's own coordinate, from v (or from a).
template <class S>
[[nodiscard]] RD_INLINE S rate(const Body<S>& b, VectorIn<S> v) noexcept {
  return b.mimic ? S(b.multiplier * v[b.dof]) : S(v[b.dof]);
}

/// Adds the body's joint velocity. All bodies of a floating joint move with the last one, so that
/// its axes turn with the moving link; the first takes the whole of it.
template <class S>
RD_INLINE void add_joint_velocity(const Body<S>& b, VectorIn<S> v, Motion<S>& V) noexcept {
  switch (b.kind) {
    case Motions::revolute: V.w[2] += rate<S>(b, v); return;
    case Motions::prismatic: V.v[2] += rate<S>(b, v); return;
    case Motions::floating_first:
      V.w += in_floating_body<S>(0, v.segment(b.dof, 3));
      V.v += in_floating_body<S>(0, v.segment(b.dof + 3, 3));
      return;
    default: return;
  }
}

/// The same for the angular part alone.
template <class S>
RD_INLINE void add_joint_rate(const Body<S>& b, VectorIn<S> v, Vec3<S>& w) noexcept {
  if (b.kind == Motions::revolute) w[2] += rate<S>(b, v);
  if (b.kind == Motions::floating_first) w += in_floating_body<S>(0, v.segment(b.dof, 3));
}

/// The angular velocity that turns a sliding body's ż into a classical (point) acceleration:
/// 2ω for a prismatic joint; for a floating joint ω + ω_parent, as its axes turn with the link.
template <class S>
[[nodiscard]] RD_INLINE Vec3<S> sliding_rate(const Body<S>& b, VectorIn<S> v,
                                             const Vec3<S>& w) noexcept {
  Vec3<S> twice = w + w;
  if (b.kind == Motions::prismatic) return twice;
  return twice - in_floating_body<S>(b.axis, v.segment(b.dof - b.axis, 3));
}

/// Joint-space results. Where several bodies share a coordinate (mimic joints) their parts add up,
/// so the result must have been set to zero before.
template <class S>
RD_INLINE void add_effort(const Body<S>& b, const S& effort, VectorOut<S>& tau) noexcept {
  if (b.shared)
    tau[b.dof] += b.multiplier * effort;
  else
    tau[b.dof] = effort;
}

/// The matrix a recursion writes its elements (j, i) to, j an ancestor of i or i itself, by the
/// numbers of the bodies. Without mimic joints those are the numbers of the coordinates, and it is
/// M itself. finish_symmetric must follow.
template <class S>
[[nodiscard]] MatrixOut<S> start_symmetric(Workspace<S>& ws, MatrixOut<S>& M) noexcept {
  MatrixOut<S> H = ws.has_mimic() ? MatrixOut<S>(ws.H) : M;
  if (ws.branched()) H.setZero();
  return H;
}

/// Completes M: the lower triangle, and mimic joints folded into the coordinate that they follow.
template <class S>
void finish_symmetric(Workspace<S>& ws, MatrixOut<S>& M) noexcept {
  if (!ws.has_mimic()) {
    S* m = M.data();
    const Eigen::Index stride = M.outerStride();
    for (Eigen::Index i = 1; i < M.rows(); ++i)
      for (Eigen::Index j = 0; j < i; ++j) m[i + j * stride] = m[j + i * stride];
    return;
  }
  const Body<S>* body = ws.bodies.data();
  M.setZero();
  for (int i = 0; i < ws.nb(); ++i) {
    for (int j = i; j >= 0; j = body[j].parent) {
      const S x = body[i].multiplier * body[j].multiplier * ws.H(j, i);
      M(body[i].dof, body[j].dof) += x;
      if (i != j) M(body[j].dof, body[i].dof) += x;
    }
  }
}

template <class S>
RD_INLINE void add_symmetric(const Body<S>& bi, const Body<S>& bj, const S& h,
                             MatrixOut<S>& M) noexcept {
  if (bi.shared || bj.shared) {
    const S x = bi.multiplier * bj.multiplier * h;
    M(bi.dof, bj.dof) += x;
    if (&bi != &bj) M(bj.dof, bi.dof) += x;
    return;
  }
  M(bi.dof, bj.dof) = h;
  M(bj.dof, bi.dof) = h;
}

}  // namespace dynamics_core
