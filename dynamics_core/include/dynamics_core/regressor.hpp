#pragma once

/// The efforts as a linear function of the inertial parameters, τ = Y(q, v, a) π, and the fewest
/// parameters that efforts can tell apart.
///
/// π has ten entries for each moving body that carries links, in the order of the bodies:
///
///     m, m·c (x y z), I (xx xy xz yy yz zz)
///
/// all about the body's origin in the body's axes (not about the centre of mass), with every fixed
/// link and payload merged in. Reflected rotor inertias are not among them: their efforts are
/// rotor · q̈, a diagonal that anybody can add. Nor are external forces and friction.

#include <string>
#include <vector>

#include "dynamics_core/joints.hpp"
#include "dynamics_core/newton_euler.hpp"

namespace dynamics_core::regressor {

namespace detail {

/// The force that each parameter at one exerts on the body, by Eq. 5 of Featherstone & Orin 2000
/// with the acceleration of the origin, A.v + ω × v, taken together.
template <class S>
void unit_forces(const Motion<S>& V, const Motion<S>& A, Force<S>* F) noexcept {
  const Vec3<S> zero = Vec3<S>::Zero();
  const Vec3<S> a = A.v + V.w.cross(V.v);
  F[0] = {zero, a};
  for (int k = 0; k < 3; ++k) {
    const Vec3<S> e = Vec3<S>::Unit(k);
    F[1 + k] = {e.cross(a), A.w.cross(e) + V.w.cross(V.w.cross(e))};
  }
  int column = 4;
  for (int i = 0; i < 3; ++i) {
    for (int j = i; j < 3; ++j, ++column) {
      Vec3<S> E_alpha = zero;  // E ω̇ and E ω for the symmetric E with ones at ij and ji
      Vec3<S> E_w = zero;
      E_alpha[i] = A.w[j];
      E_alpha[j] = A.w[i];
      E_w[i] = V.w[j];
      E_w[j] = V.w[i];
      F[column] = {E_alpha + V.w.cross(E_w), zero};
    }
  }
}

}  // namespace detail

/// The size of π.
template <class S>
[[nodiscard]] int columns(const Workspace<S>& ws) noexcept {
  return ws.regressor_columns;
}

/// π of the robot as it is, payloads included.
template <class S>
[[nodiscard]] Status parameters(const Workspace<S>& ws, VectorOut<S> pi) noexcept {
  if (pi.size() != columns(ws)) return Status::wrong_size;
  for (std::size_t i = 0; i < ws.bodies.size(); ++i) {
    const int at = ws.regressor[i].column;
    if (at < 0) continue;
    const RigidInertia<S>& I = ws.bodies[i].inertia;
    pi.template segment<10>(at) << I.m, I.h, I.I.xx, I.I.xy, I.I.xz, I.I.yy, I.I.yz, I.I.zz;
  }
  return Status::ok;
}

/// Y(q, v, a), nv × columns(ws).
template <class S>
[[nodiscard]] Status matrix(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, VectorIn<S> a,
                            MatrixOut<S> Y) noexcept {
  if (const Status s = check_q<S>(ws, q); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, v); s != Status::ok) return s;
  if (const Status s = check_v<S>(ws, a); s != Status::ok) return s;
  if (Y.rows() != ws.nv() || Y.cols() != columns(ws)) return Status::wrong_size;
  update_joints<S>(ws, q);
  Y.setZero();
  auto* at = ws.regressor.data();
  const Body<S>* body = ws.bodies.data();
  const Motion<S> base = {Vec3<S>::Zero(), ws.base_acceleration};
  for (int i = 0; i < ws.nb(); ++i) {
    const Body<S>& b = body[i];
    auto& r = at[i];
    r.V = b.parent < 0 ? Motion<S>::zero() : b.X.to_child(at[b.parent].V);
    add_joint_velocity<S>(b, v, r.V);
    r.A = b.X.to_child(b.parent < 0 ? base : at[b.parent].A);
    newton_euler::detail::add_velocity_product<S>(b, r.V, rate<S>(b, v), r.A);
    (b.turns() ? r.A.w[2] : r.A.v[2]) += rate<S>(b, a);
    if (r.column < 0) continue;
    detail::unit_forces<S>(r.V, r.A, r.F);
    for (int j = i; j >= 0; j = body[j].parent) {  // Eqs. 7, 8 for each parameter on its own
      const Body<S>& on = body[j];
      for (int k = 0; k < 10; ++k) {
        const S effort = on.turns() ? r.F[k].n[2] : r.F[k].f[2];
        Y(on.dof, r.column + k) += on.mimic ? S(on.multiplier * effort) : effort;
        r.F[k] = on.X.to_parent(r.F[k]);
      }
    }
  }
  return Status::ok;
}

}  // namespace dynamics_core::regressor

namespace dynamics_core {

/// The base parameters of a robot: with π_b = K π,
///
///     τ = Y π = Y_b π_b,   Y_b = Y(:, columns)
///
/// and no column of Y_b is a combination of the others at all states (Gautier 1991). The choice of
/// columns is not unique; their number and the space they span are.
struct BaseParameters {
  std::vector<int> columns;  ///< of the regressor, ascending
  Eigen::MatrixXd K;         ///< base parameters × columns of the regressor; identity at `columns`

  [[nodiscard]] int size() const noexcept { return static_cast<int>(columns.size()); }
  [[nodiscard]] Eigen::VectorXd reduce(const Eigen::VectorXd& pi) const { return K * pi; }
  /// Y_b from Y.
  [[nodiscard]] Eigen::MatrixXd select(const Eigen::MatrixXd& Y) const;
};

/// Finds them numerically, by a QR decomposition with column pivoting of the regressor at random
/// states. Off the real-time path. `seed` draws the states; `tolerance` is the part of the largest
/// pivot below which a column counts as dependent.
[[nodiscard]] BaseParameters base_parameters(const Model& model, unsigned seed = 1,
                                             double tolerance = 1e-9);

/// "m(upper_arm)", "mcx(upper_arm)", "Ixx(upper_arm)", … for each column; a body goes by the link
/// whose joint moves it.
[[nodiscard]] std::vector<std::string> parameter_names(const Model& model);

}  // namespace dynamics_core
