// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The friction of the joints: the one model that inverse dynamics, the control laws and the
/// simulation share. Another law of friction is written here.
///
/// At a steady speed v a joint resists with
///
///     f(v) = [c + (b − c) exp(−(v/v_s)²)] · v/√(v² + ε²) + k v,
///
/// viscous, Coulomb's and Stribeck's friction with a sign that passes through zero smoothly.
///
/// With a stiffness σ the surfaces hang on bristles that bend before they slide, and friction
/// remembers their deflection z (the model of Canudas de Wit, Olsson, Åström and Lischinsky, "A new
/// model for control of systems with friction", IEEE Trans. Automatic Control 40(3), 1995, with
/// σ₁ = 0). Within a step of the length h, in which v and g(v) = c + (b − c) exp(−(v/v_s)²) change
/// little,
///
///     ż = v − σ|v|/g(v) z,   f = σ z + k v,
///     z ← z exp(−x) + v h (1 − exp(−x))/x,   x = σ|v| h/g(v),
///
/// which is exact at a constant speed and tends to the steady friction with ε = 0.

#include <cmath>
#include <vector>

#include "dynamics_core/model.hpp"
#include "dynamics_core/scalar.hpp"
#include "dynamics_core/status.hpp"

namespace dynamics_core {

/// The parameters of one degree of freedom; for a sliding joint read m for rad, N for N·m.
template <class S>
struct JointFriction {
  S viscous = S(0);               ///< k, N·m·s/rad
  S coulomb = S(0);               ///< c, N·m
  S breakaway = S(0);             ///< b, N·m; not above c: no Stribeck effect
  S stribeck_velocity = S(0.01);  ///< v_s, rad/s
  S transition = S(1e-3);         ///< ε, rad/s: below it the sign is smooth
  S stiffness = S(0);             ///< σ, N·m/rad; zero: no memory

  /// g(v), N·m
  [[nodiscard]] S sliding(const S& v) const noexcept {
    using std::exp;
    if (!(breakaway > coulomb)) return coulomb;
    const S x = v / stribeck_velocity;
    return coulomb + (breakaway - coulomb) * exp(-x * x);
  }
  /// f(v)/v, N·m·s/rad
  [[nodiscard]] S resistance(const S& v) const noexcept {
    using std::sqrt;
    return sliding(v) / sqrt(v * v + transition * transition) + viscous;
  }
  /// f(v), N·m
  [[nodiscard]] S effort(const S& v) const noexcept { return resistance(v) * v; }
};

/// The friction of a robot. A joint with several degrees of freedom has that of its description in
/// each; a joint that mimics another has none of its own. Only the constructors allocate.
template <class S>
class Friction {
 public:
  /// The damping and friction of the model. Below the speed `transition` (rad/s or m/s) Coulomb
  /// friction falls to zero with the velocity.
  explicit Friction(const Model& model, const S& transition = S(1e-3))
      : Friction(std::vector<JointFriction<S>>(static_cast<std::size_t>(model.nv))) {
    for (const JointInfo& joint : model.joints) {
      for (int i = joint.v; i < joint.v + joint.nv; ++i) {
        JointFriction<S>& f = joints_[static_cast<std::size_t>(i)];
        f.viscous = S(joint.damping);
        f.coulomb = S(joint.friction);
        f.transition = transition;
      }
    }
  }
  /// By degree of freedom.
  explicit Friction(std::vector<JointFriction<S>> joints)
      : joints_(std::move(joints)),
        deflection_(VectorX<S>::Zero(static_cast<Eigen::Index>(joints_.size()))) {}

  [[nodiscard]] const JointFriction<S>& operator[](Eigen::Index dof) const noexcept {
    return joints_[static_cast<std::size_t>(dof)];
  }
  [[nodiscard]] Eigen::Index size() const noexcept { return deflection_.size(); }

  /// tau += f(v), nv each: what a drive adds to move steadily against friction.
  [[nodiscard]] Status add(VectorIn<S> v, VectorOut<S> tau) const noexcept {
    if (v.size() != size() || tau.size() != size()) return Status::wrong_size;
    for (Eigen::Index i = 0; i < size(); ++i) tau[i] += (*this)[i].effort(v[i]);
    return result_status<S>(tau);
  }
  /// tau −= f(v), nv each: what is left of a drive's effort to move the links.
  [[nodiscard]] Status subtract(VectorIn<S> v, VectorOut<S> tau) const noexcept {
    if (v.size() != size() || tau.size() != size()) return Status::wrong_size;
    for (Eigen::Index i = 0; i < size(); ++i) tau[i] -= (*this)[i].effort(v[i]);
    return result_status<S>(tau);
  }

  // --- in steps of time --------------------------------------------------------------------------
  /// Friction at the end of a step, as a function of the speed there: rest + slope · v.
  struct Linear {
    S rest, slope;
  };
  /// Of the step of the length dt that begins at the speed v.
  [[nodiscard]] Linear linearized(Eigen::Index dof, const S& v, const S& dt) const noexcept {
    const JointFriction<S>& f = (*this)[dof];
    if (f.stiffness == S(0)) return {S(0), f.resistance(v)};
    const Bristles b = bristles(f, v, dt);
    return {f.stiffness * b.kept * deflection_[dof], f.stiffness * b.bent + f.viscous};
  }
  /// The bristles after a step of the length dt that ended at the speed v, nv; of joints without
  /// memory there are none.
  void advance(VectorIn<S> v, const S& dt) noexcept {
    for (Eigen::Index i = 0; i < size(); ++i) {
      const JointFriction<S>& f = (*this)[i];
      if (f.stiffness == S(0)) continue;
      const Bristles b = bristles(f, v[i], dt);
      deflection_[i] = b.kept * deflection_[i] + b.bent * v[i];
    }
  }
  /// z, rad or m, by degree of freedom.
  [[nodiscard]] const VectorX<S>& deflection() const noexcept { return deflection_; }
  /// Straightens all bristles.
  void reset() noexcept { deflection_.setZero(); }

 private:
  struct Bristles {
    S kept;  ///< exp(−x)
    S bent;  ///< h (1 − exp(−x))/x
  };
  [[nodiscard]] static Bristles bristles(const JointFriction<S>& f, const S& v,
                                         const S& dt) noexcept {
    using std::abs;
    using std::exp;
    using std::expm1;
    const S g = f.sliding(v);
    if (!(g > S(0))) return {S(0), S(0)};
    const S x = f.stiffness * abs(v) * dt / g;
    const S share = x > S(1e-8) ? S(-expm1(-x) / x) : S(1);
    return {exp(-x), dt * share};
  }

  std::vector<JointFriction<S>> joints_;
  VectorX<S> deflection_;
};

}  // namespace dynamics_core
