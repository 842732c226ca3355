// SPDX-License-Identifier: Apache-2.0
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

#include "dynamics_core/newton_euler.hpp"
#include "dynamics_core/tree.hpp"

namespace dynamics_core {

template <class S>
class Regressor {
 public:
  /// The tree has to outlive this.
  explicit Regressor(Tree<S>& tree);

  /// The size of π.
  [[nodiscard]] int columns() const noexcept { return columns_; }
  /// π of the robot as it is, payloads included.
  [[nodiscard]] StatusOf<S> parameters(VectorOut<S> pi) const noexcept;
  /// Y(q, v, a), nv × columns().
  [[nodiscard]] StatusOf<S> matrix(VectorIn<S> q, VectorIn<S> v, VectorIn<S> a,
                                   MatrixOut<S> Y) noexcept;

 private:
  struct Link {
    int column;      ///< of the body's first parameter; −1: a joint's massless body
    Motion<S> V, A;  ///< velocity and spatial acceleration, in the body's frame
    Force<S> F[10];  ///< force for each parameter at one, carried towards the base
  };

  Tree<S>* tree_;
  std::vector<Link> link_;
  int columns_ = 0;
};

// --- Implementation ------------------------------------------------------------------------------

namespace regressor {

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

}  // namespace regressor

template <class S>
Regressor<S>::Regressor(Tree<S>& tree) : tree_(&tree), link_(static_cast<std::size_t>(tree.nb())) {
  for (Link& r : link_) r.column = -1;
  for (const auto& link : tree.links())
    if (link.body >= 0) link_[static_cast<std::size_t>(link.body)].column = 0;
  for (Link& r : link_) {
    if (r.column < 0) continue;
    r.column = columns_;
    columns_ += 10;
  }
}

template <class S>
StatusOf<S> Regressor<S>::parameters(VectorOut<S> pi) const noexcept {
  if (pi.size() != columns_) return Status::wrong_size;
  for (std::size_t i = 0; i < link_.size(); ++i) {
    const int at = link_[i].column;
    if (at < 0) continue;
    const RigidInertia<S>& I = tree_->bodies()[i].inertia;
    pi.template segment<10>(at) << I.m, I.h, I.I.xx, I.I.xy, I.I.xz, I.I.yy, I.I.yz, I.I.zz;
  }
  return result_status<S>(pi);
}

template <class S>
StatusOf<S> Regressor<S>::matrix(VectorIn<S> q, VectorIn<S> v, VectorIn<S> a,
                                 MatrixOut<S> Y) noexcept {
  const StatusOf<S> status = check_and_move<S>(*tree_, q, v, a);
  if (failed(status)) return status;
  if (Y.rows() != tree_->nv() || Y.cols() != columns_) return Status::wrong_size;
  Y.setZero();
  const Body<S>* body = tree_->bodies();
  Link* link = link_.data();
  const Motion<S> base = {Vec3<S>::Zero(), tree_->base_acceleration()};
  for (int i = 0; i < tree_->nb(); ++i) {
    const Body<S>& b = body[i];
    Link& r = link[i];
    r.V = newton_euler::velocity<S>(b, b.parent < 0 ? nullptr : &link[b.parent].V, v);
    r.A = b.X.to_child(b.parent < 0 ? base : link[b.parent].A);
    add_velocity_product<S>(b, r.V, rate<S>(b, v), r.A);
    add_along<S>(b, rate<S>(b, a), r.A);
    if (r.column < 0) continue;
    regressor::unit_forces<S>(r.V, r.A, r.F);
    for (int j = i; j >= 0; j = body[j].parent) {  // Eqs. 7, 8 for each parameter on its own
      const Body<S>& on = body[j];
      for (int k = 0; k < 10; ++k) {
        const S effort = along<S>(on, r.F[k]);
        Y(on.dof, r.column + k) += on.mimic ? S(on.multiplier * effort) : effort;
        r.F[k] = on.X.to_parent(r.F[k]);
      }
    }
  }
  return merged(status, result_status<S>(Y));
}

/// The base parameters of a robot: with π_b = K π,
///
///     τ = Y π = Y_b π_b,   Y_b = Y(:, columns)
///
/// and no column of Y_b is a combination of the others at all states (Gautier 1991). The choice of
/// columns is not unique; their number and the space they span are.
struct BaseParameters {
  std::vector<int> columns;  ///< of the regressor, ascending
  MatrixX<double> K;         ///< base parameters × columns of the regressor; identity at `columns`

  [[nodiscard]] int size() const noexcept { return static_cast<int>(columns.size()); }
  [[nodiscard]] VectorX<double> reduce(const VectorX<double>& pi) const { return K * pi; }
  /// Y_b from Y.
  [[nodiscard]] MatrixX<double> select(const MatrixX<double>& Y) const;
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
