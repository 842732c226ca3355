// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Where the links are and how they move: poses, velocities, Jacobians and their rates, centre of
/// mass, energy; and the steps between v and the rate of q.
///
/// `update` walks the tree once for a state; the queries after it read what it left, until the next
/// update. All results are in world axes. Links are indices into Model::links; Status::out_of_range
/// for any other number. What is fixed in the world has no part in the centre of mass and the
/// energy.

#include <vector>

#include "dynamics_core/joint_space.hpp"
#include "dynamics_core/quaternion.hpp"
#include "dynamics_core/tree.hpp"

namespace dynamics_core {

template <class S>
struct Energy {
  S kinetic;    ///< J, with the reflected rotor inertias
  S potential;  ///< J, in the field of gravity, zero at the world's origin
};

template <class S>
class Kinematics {
 public:
  /// The tree has to outlive this.
  explicit Kinematics(Tree<S>& tree)
      : tree_(&tree),
        at_(static_cast<std::size_t>(tree.nb()), {Pose<S>::identity(), Motion<S>::zero(),
                                                  Motion<S>::zero(), S(0), S(0), Vec3<S>::Zero()}),
        path_(static_cast<std::size_t>(tree.nb()), {Vec3<S>::Zero(), Vec3<S>::Zero()}) {}

  /// Puts the robot at rest at q.
  [[nodiscard]] StatusOf<S> update(VectorIn<S> q) noexcept;
  /// Puts the robot in the state (q, v).
  [[nodiscard]] StatusOf<S> update(VectorIn<S> q, VectorIn<S> v) noexcept;

  // --- links -------------------------------------------------------------------------------------
  /// The pose of link L in the world.
  [[nodiscard]] StatusOf<S> pose(int index, Pose<S>& X_WL) const noexcept;
  /// Velocity of link L in the world: ω, and v of the link's origin (or of the point `offset` of
  /// the link, in link axes).
  [[nodiscard]] StatusOf<S> velocity(int index, Motion<S>& V_WL_W,
                                     const Vec3<S>& offset = Vec3<S>::Zero()) const noexcept;
  /// J̇ v: the acceleration [ω̇; v̇] that the same point has when v̇ = 0. Gravity is not in it.
  [[nodiscard]] StatusOf<S> bias_acceleration(
      int index, Motion<S>& A_WL_W, const Vec3<S>& offset = Vec3<S>::Zero()) const noexcept;
  /// J (6 × nv), [ω; v] = J v for the same point.
  [[nodiscard]] StatusOf<S> jacobian(int index, MatrixOut<S> J,
                                     const Vec3<S>& offset = Vec3<S>::Zero()) const noexcept;
  /// The same at q, without update and without a change of what the last one left. Only the joints
  /// on the way to the link are visited, and only their coordinates are read.
  [[nodiscard]] StatusOf<S> jacobian(VectorIn<S> q, int index, MatrixOut<S> J,
                                     const Vec3<S>& offset = Vec3<S>::Zero()) noexcept;
  /// J̇ (6 × nv), so that [ω̇; v̇] = J v̇ + J̇ v for the same point.
  [[nodiscard]] StatusOf<S> jacobian_rate(int index, MatrixOut<S> Jd,
                                          const Vec3<S>& offset = Vec3<S>::Zero()) const noexcept;

  // --- the whole robot ---------------------------------------------------------------------------
  /// The mass of all that moves, kg.
  [[nodiscard]] S total_mass() const noexcept;
  /// Its centre. Status::singular where there is no mass.
  [[nodiscard]] StatusOf<S> centre_of_mass(Vec3<S>& p_WC) const noexcept;
  [[nodiscard]] StatusOf<S> centre_of_mass_velocity(Vec3<S>& v_WC) const noexcept;
  /// J (3 × nv) of the centre of mass: each joint moves the first moment of its subtree.
  [[nodiscard]] StatusOf<S> centre_of_mass_jacobian(MatrixOut<S> J) noexcept;
  /// Not finite where it overflows.
  [[nodiscard]] Energy<S> energy() const noexcept;

  // --- between v and q; these need no update -----------------------------------------------------
  /// q̇ (nq) for the velocity v: equal to v but for a floating joint's position and quaternion. A
  /// quaternion's length is kept. Status::out_of_range where a quaternion is zero.
  [[nodiscard]] StatusOf<S> configuration_rate(VectorIn<S> q, VectorIn<S> v,
                                               VectorOut<S> q_rate) const noexcept;
  /// Brings every quaternion in q to length one. Status::out_of_range where one is zero.
  [[nodiscard]] StatusOf<S> normalize(VectorOut<S> q) const noexcept;
  /// The configuration after the velocity v has acted for dt: exact for constant v, floating joints
  /// included. q_out may be q itself; its quaternions come out at length one.
  [[nodiscard]] StatusOf<S> integrate(VectorIn<S> q, VectorIn<S> v, const S& dt,
                                      VectorOut<S> q_out) const noexcept;

 private:
  struct BodyState {
    Pose<S> X_WB;  ///< the body in the world
    Motion<S> V;   ///< velocity of its origin in world axes
    Motion<S> A;   ///< acceleration of its origin for v̇ = 0, in world axes
    S rate;        ///< of the body's own coordinate
    S m;           ///< mass and first moment of the subtree, about the world's origin
    Vec3<S> h;
  };

  struct JointAxis {
    Vec3<S> z, p;  ///< the axis and a point on it, in the world
  };

  void update_poses() noexcept;
  void update_velocities(VectorIn<S> v) noexcept;
  [[nodiscard]] const BodyState& state(int body) const noexcept {
    return at_[static_cast<std::size_t>(body)];
  }
  [[nodiscard]] const Link<S>& link(int index) const noexcept {
    return tree_->links()[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] Vec3<S> arm(const Link<S>& on, const Vec3<S>& offset) const noexcept;
  [[nodiscard]] Vec3<S> axis(const Body<S>& b, const BodyState& at) const noexcept;

  Tree<S>* tree_;
  std::vector<BodyState> at_;
  std::vector<JointAxis> path_;  ///< for jacobian() at q
};

// --- Implementation ------------------------------------------------------------------------------

namespace kinematics {

/// A body's part in a Jacobian. Where bodies share a coordinate, J has been set to zero before.
template <class S>
RD_INLINE void put_column(const Body<S>& b, const Motion<S>& h, MatrixOut<S>& J) noexcept {
  S* column = J.data() + b.dof * J.outerStride();
  for (int k = 0; k < 3; ++k) {
    column[k] = b.shared ? S(column[k] + b.multiplier * h.w[k]) : h.w[k];
    column[3 + k] = b.shared ? S(column[3 + k] + b.multiplier * h.v[k]) : h.v[k];
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
[[nodiscard]] StatusOf<S> worth(const Motion<S>& V) noexcept {
  return merged(result_status<S>(V.w), result_status<S>(V.v));
}

}  // namespace kinematics

template <class S>
void Kinematics<S>::update_poses() noexcept {
  const Body<S>* body = tree_->bodies();
  BodyState* at = at_.data();
  for (int i = 0; i < tree_->nb(); ++i)
    at[i].X_WB = across<S>(body[i].parent < 0 ? tree_->base() : at[body[i].parent].X_WB, body[i].X);
}

template <class S>
void Kinematics<S>::update_velocities(VectorIn<S> v) noexcept {
  const Body<S>* body = tree_->bodies();
  BodyState* at = at_.data();
  for (int i = 0; i < tree_->nb(); ++i) {
    const Body<S>& b = body[i];
    BodyState& k = at[i];
    k.rate = rate<S>(b, v);
    k.V = b.parent < 0 ? Motion<S>::zero() : at[b.parent].V;
    k.A = b.parent < 0 ? Motion<S>::zero() : at[b.parent].A;
    // The other bodies of a floating joint move with its first.
    if (is_floating(b.kind) && b.kind != JointKind::floating_first) continue;
    const Vec3<S> r = k.X_WB.p - (b.parent < 0 ? tree_->base().p : at[b.parent].X_WB.p);
    Motion<S> own = Motion<S>::zero();
    add_joint_velocity<S>(b, v, own);
    kinematics::move<S>(r, k.X_WB.R * own.w, k.X_WB.R * own.v, k.V, k.A);
  }
}

/// The origin of a link (or a point of it) relative to its body's origin, in world axes.
template <class S>
Vec3<S> Kinematics<S>::arm(const Link<S>& on, const Vec3<S>& offset) const noexcept {
  const Vec3<S> in_body = on.X_BL * offset;
  return state(on.body).X_WB.R * in_body;
}

/// The joint's axis in the world, as long as the coordinate's part in the body's is.
template <class S>
Vec3<S> Kinematics<S>::axis(const Body<S>& b, const BodyState& at) const noexcept {
  return b.mimic ? Vec3<S>(b.multiplier * at.X_WB.R.col(2)) : Vec3<S>(at.X_WB.R.col(2));
}

template <class S>
StatusOf<S> Kinematics<S>::update(VectorIn<S> q) noexcept {
  const StatusOf<S> status = check_and_move<S>(*tree_, q);
  if (failed(status)) return status;
  update_poses();
  for (BodyState& k : at_) {
    k.V = Motion<S>::zero();
    k.A = Motion<S>::zero();
    k.rate = S(0);
  }
  return status;
}

template <class S>
StatusOf<S> Kinematics<S>::update(VectorIn<S> q, VectorIn<S> v) noexcept {
  const StatusOf<S> status = check_and_move<S>(*tree_, q, v);
  if (failed(status)) return status;
  update_poses();
  update_velocities(v);
  return status;
}

// --- Links ---------------------------------------------------------------------------------------

template <class S>
StatusOf<S> Kinematics<S>::pose(int index, Pose<S>& X_WL) const noexcept {
  if (!tree_->has_link(index)) return Status::out_of_range;
  const Link<S>& l = link(index);
  X_WL = (l.body < 0 ? tree_->base() : state(l.body).X_WB) * l.X_BL;
  return merged(result_status<S>(X_WL.R), result_status<S>(X_WL.p));
}

template <class S>
StatusOf<S> Kinematics<S>::velocity(int index, Motion<S>& V_WL_W,
                                    const Vec3<S>& offset) const noexcept {
  if (!tree_->has_link(index)) return Status::out_of_range;
  const Link<S>& l = link(index);
  V_WL_W = Motion<S>::zero();
  if (l.body < 0) return Status::ok;
  V_WL_W = state(l.body).V;
  V_WL_W.v += V_WL_W.w.cross(arm(l, offset));
  return kinematics::worth<S>(V_WL_W);
}

template <class S>
StatusOf<S> Kinematics<S>::bias_acceleration(int index, Motion<S>& A_WL_W,
                                             const Vec3<S>& offset) const noexcept {
  if (!tree_->has_link(index)) return Status::out_of_range;
  const Link<S>& l = link(index);
  A_WL_W = Motion<S>::zero();
  if (l.body < 0) return Status::ok;
  const BodyState& k = state(l.body);
  const Vec3<S> r = arm(l, offset);
  A_WL_W = {k.A.w, k.A.v + k.A.w.cross(r) + k.V.w.cross(k.V.w.cross(r))};
  return kinematics::worth<S>(A_WL_W);
}

template <class S>
StatusOf<S> Kinematics<S>::jacobian(int index, MatrixOut<S> J,
                                    const Vec3<S>& offset) const noexcept {
  if (!tree_->has_link(index)) return Status::out_of_range;
  if (J.rows() != 6 || J.cols() != tree_->nv()) return Status::wrong_size;
  J.setZero();
  const Link<S>& l = link(index);
  if (l.body < 0) return Status::ok;
  const Vec3<S> p = state(l.body).X_WB.p + arm(l, offset);
  const Body<S>* body = tree_->bodies();
  for (int i = l.body; i >= 0; i = body[i].parent) {
    const BodyState& k = state(i);
    const Motion<S> h = axis_motion<S>(body[i], axis(body[i], k), Vec3<S>(p - k.X_WB.p));
    auto column = J.col(body[i].dof);
    column.template head<3>() += h.w;
    column.template tail<3>() += h.v;
  }
  return result_status<S>(J);
}

template <class S>
StatusOf<S> Kinematics<S>::jacobian(VectorIn<S> q, int index, MatrixOut<S> J,
                                    const Vec3<S>& offset) noexcept {
  if (q.size() != tree_->nq()) return Status::wrong_size;
  if (!tree_->has_link(index)) return Status::out_of_range;
  if (J.rows() != 6 || J.cols() != tree_->nv()) return Status::wrong_size;
  StatusOf<S> status = Status::ok;
  const Link<S>& l = link(index);
  const int n = tree_->move_path_to(q, l.body, status);
  if (failed(status)) return status;
  if (n < tree_->nv() || tree_->has_mimic()) set_zero<S>(J);
  const Body<S>* body = tree_->bodies();
  const int* path = tree_->path();
  JointAxis* joint = path_.data();
  Pose<S> X_WB = tree_->base();
  for (int k = n - 1; k >= 0; --k) {
    X_WB = across<S>(X_WB, body[path[k]].X);
    joint[k] = {X_WB.R.col(2), X_WB.p};
  }
  const Vec3<S> p = X_WB * Vec3<S>(l.X_BL * offset);
  S sum(0);
  for (int k = 0; k < n; ++k) {
    const Body<S>& b = body[path[k]];
    const Motion<S> h = axis_motion<S>(b, joint[k].z, Vec3<S>(p - joint[k].p));
    kinematics::put_column<S>(b, h, J);
    sum += zero_if_finite<S>(h.v);
  }
  return merged(status, finite_status<S>(sum));
}

/// With ż = ω × z, and the point moving relative to the origin at ṙ: the rate of [z; z × r].
template <class S>
StatusOf<S> Kinematics<S>::jacobian_rate(int index, MatrixOut<S> Jd,
                                         const Vec3<S>& offset) const noexcept {
  if (!tree_->has_link(index)) return Status::out_of_range;
  if (Jd.rows() != 6 || Jd.cols() != tree_->nv()) return Status::wrong_size;
  Jd.setZero();
  const Link<S>& l = link(index);
  if (l.body < 0) return Status::ok;
  const BodyState& tip = state(l.body);
  const Vec3<S> r = arm(l, offset);
  const Vec3<S> p = tip.X_WB.p + r;
  const Vec3<S> p_rate = tip.V.v + tip.V.w.cross(r);
  const Body<S>* body = tree_->bodies();
  for (int i = l.body; i >= 0; i = body[i].parent) {
    const Body<S>& b = body[i];
    const BodyState& k = state(i);
    const Vec3<S> z = axis(b, k);
    const Motion<S> h = axis_motion<S>(b, Vec3<S>(k.V.w.cross(z)), Vec3<S>(p - k.X_WB.p));
    auto column = Jd.col(b.dof);
    column.template head<3>() += h.w;
    column.template tail<3>() += h.v;
    if (turns(b.kind)) column.template tail<3>() += z.cross(Vec3<S>(p_rate - k.V.v));
  }
  return result_status<S>(Jd);
}

// --- The whole robot -----------------------------------------------------------------------------

template <class S>
S Kinematics<S>::total_mass() const noexcept {
  S m(0);
  for (int i = 0; i < tree_->nb(); ++i) m += tree_->bodies()[i].inertia.m;
  return m;
}

template <class S>
StatusOf<S> Kinematics<S>::centre_of_mass(Vec3<S>& p_WC) const noexcept {
  S m = total_mass();
  StatusOf<S> status = Status::ok;
  if (!keep_pivot<S>(m, S(1), status)) return status;
  Vec3<S> h = Vec3<S>::Zero();
  for (int i = 0; i < tree_->nb(); ++i) {
    const RigidInertia<S>& I = tree_->bodies()[i].inertia;
    const Pose<S>& X = state(i).X_WB;
    h += X.R * I.h + I.m * X.p;
  }
  p_WC = h / m;
  return merged(status, result_status<S>(p_WC));
}

template <class S>
StatusOf<S> Kinematics<S>::centre_of_mass_velocity(Vec3<S>& v_WC) const noexcept {
  S m = total_mass();
  StatusOf<S> status = Status::ok;
  if (!keep_pivot<S>(m, S(1), status)) return status;
  Vec3<S> momentum = Vec3<S>::Zero();
  for (int i = 0; i < tree_->nb(); ++i) {
    const RigidInertia<S>& I = tree_->bodies()[i].inertia;
    const BodyState& k = state(i);
    momentum += I.m * k.V.v + k.V.w.cross(Vec3<S>(k.X_WB.R * I.h));
  }
  v_WC = momentum / m;
  return merged(status, result_status<S>(v_WC));
}

template <class S>
StatusOf<S> Kinematics<S>::centre_of_mass_jacobian(MatrixOut<S> J) noexcept {
  if (J.rows() != 3 || J.cols() != tree_->nv()) return Status::wrong_size;
  S m = total_mass();
  StatusOf<S> status = Status::ok;
  if (!keep_pivot<S>(m, S(1), status)) return status;
  J.setZero();
  const Body<S>* body = tree_->bodies();
  BodyState* at = at_.data();
  for (int i = 0; i < tree_->nb(); ++i) {
    const RigidInertia<S>& I = body[i].inertia;
    at[i].m = I.m;
    at[i].h = at[i].X_WB.R * I.h + I.m * at[i].X_WB.p;
  }
  for (int i = tree_->nb() - 1; i >= 0; --i) {
    const Body<S>& b = body[i];
    const BodyState& k = at[i];
    // m times the velocity of the subtree's centre: the axis' motion with m r in place of r.
    const Vec3<S> z = axis(b, k) / m;
    J.col(b.dof) += first_moment_rate<S>(b, z, k.m, Vec3<S>(k.h - k.m * k.X_WB.p));
    if (b.parent < 0) continue;
    at[b.parent].m += k.m;
    at[b.parent].h += k.h;
  }
  return merged(status, result_status<S>(J));
}

template <class S>
Energy<S> Kinematics<S>::energy() const noexcept {
  const Vec3<S> g = tree_->gravity();
  Energy<S> E{S(0), S(0)};
  for (int i = 0; i < tree_->nb(); ++i) {
    const Body<S>& b = tree_->bodies()[i];
    const BodyState& k = state(i);
    const Motion<S> V = {k.X_WB.R.transpose() * k.V.w, k.X_WB.R.transpose() * k.V.v};
    const Force<S> P = b.inertia * V;
    E.kinetic += S(0.5) * (V.w.dot(P.n) + V.v.dot(P.f) + b.rotor * k.rate * k.rate);
    E.potential -= g.dot(Vec3<S>(k.X_WB.R * b.inertia.h + b.inertia.m * k.X_WB.p));
  }
  return E;
}

// --- Between v and q -----------------------------------------------------------------------------

namespace kinematics {

template <class S>
[[nodiscard]] Quaternion<S> quaternion_at(VectorIn<S> q, int place) noexcept {
  return {q[place], q[place + 1], q[place + 2], q[place + 3]};
}
template <class S>
void put_quaternion(const Quaternion<S>& from, int place, VectorOut<S>& q) noexcept {
  q[place] = from.x;
  q[place + 1] = from.y;
  q[place + 2] = from.z;
  q[place + 3] = from.w;
}

}  // namespace kinematics

template <class S>
StatusOf<S> Kinematics<S>::configuration_rate(VectorIn<S> q, VectorIn<S> v,
                                              VectorOut<S> q_rate) const noexcept {
  StatusOf<S> status = check<S>(*tree_, q, v);
  if (failed(status)) return status;
  if (q_rate.size() != tree_->nq()) return Status::wrong_size;
  for (int i = 0; i < tree_->nb(); ++i) {
    const Body<S>& b = tree_->bodies()[i];
    if (!is_floating(b.kind)) {
      q_rate[b.q] = v[b.dof];
    } else if (b.kind == JointKind::floating_first) {
      const Quaternion<S> given = kinematics::quaternion_at<S>(q, b.q + 3);
      Quaternion<S> unit = given;
      if (!dynamics_core::normalize<S>(unit, status)) return status;
      const Vec3<S> u = v.template segment<3>(b.dof + 3);
      const S h(0.5);
      const Quaternion<S> half{h * v[b.dof], h * v[b.dof + 1], h * v[b.dof + 2], S(0)};
      q_rate.template segment<3>(b.q) = rotate<S>(unit, u);
      kinematics::put_quaternion<S>(quaternion_product<S>(given, half), b.q + 3, q_rate);
    }
  }
  return merged(status, result_status<S>(q_rate));
}

template <class S>
StatusOf<S> Kinematics<S>::normalize(VectorOut<S> q) const noexcept {
  StatusOf<S> status = check<S>(*tree_, q);
  if (failed(status)) return status;
  for (const int body : tree_->floating_joints()) {
    const int place = tree_->bodies()[body].q + 3;
    Quaternion<S> unit = kinematics::quaternion_at<S>(q, place);
    if (!dynamics_core::normalize<S>(unit, status)) return status;
    kinematics::put_quaternion<S>(unit, place, q);
  }
  return status;
}

template <class S>
StatusOf<S> Kinematics<S>::integrate(VectorIn<S> q, VectorIn<S> v, const S& dt,
                                     VectorOut<S> q_out) const noexcept {
  StatusOf<S> status = check<S>(*tree_, q, v);
  if (failed(status)) return status;
  if (q_out.size() != tree_->nq()) return Status::wrong_size;
  status = merged(status, finite_status<S>(dt));
  if (failed(status)) return status;
  for (int i = 0; i < tree_->nb(); ++i) {
    const Body<S>& b = tree_->bodies()[i];
    if (!is_floating(b.kind)) {
      if (!b.mimic) q_out[b.q] = q[b.q] + dt * v[b.dof];
    } else if (b.kind == JointKind::floating_first) {
      Quaternion<S> unit = kinematics::quaternion_at<S>(q, b.q + 3);
      if (!dynamics_core::normalize<S>(unit, status)) return status;
      const Vec3<S> p = q.template segment<3>(b.q);
      Quaternion<S> dq;
      Vec3<S> dp;
      exponential<S>(dt * v.template segment<3>(b.dof), dt * v.template segment<3>(b.dof + 3), dq,
                     dp);
      q_out.template segment<3>(b.q) = p + rotate<S>(unit, dp);
      Quaternion<S> next = quaternion_product<S>(unit, dq);
      if (!dynamics_core::normalize<S>(next, status)) return status;
      kinematics::put_quaternion<S>(next, b.q + 3, q_out);
    }
  }
  return merged(status, result_status<S>(q_out));
}

}  // namespace dynamics_core
