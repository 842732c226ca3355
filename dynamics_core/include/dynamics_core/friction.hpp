#pragma once

/// Viscous and Coulomb friction of the joints, with a sign that passes through zero smoothly.
///
/// Each joint has the damping and friction of its description; a joint with several degrees of
/// freedom has them in each. A joint that mimics another has none of its own.

#include "dynamics_core/model.hpp"
#include "dynamics_core/scalar.hpp"
#include "dynamics_core/status.hpp"

namespace dynamics_core {

template <class S>
class Friction {
 public:
  /// Below the speed `transition` (rad/s or m/s) Coulomb friction falls to zero with the velocity.
  explicit Friction(const Model& model, const S& transition = S(1e-3))
      : transition_square(transition * transition),
        viscous(VectorX<S>::Zero(model.nv)),
        coulomb(VectorX<S>::Zero(model.nv)) {
    for (const JointInfo& joint : model.joints) {
      viscous.segment(joint.v, joint.nv).setConstant(S(joint.damping));
      coulomb.segment(joint.v, joint.nv).setConstant(S(joint.friction));
    }
  }

  /// v/√(v² + ε²): odd, between −1 and 1, and free of branches.
  [[nodiscard]] S smooth_sign(const S& v) const noexcept {
    using std::sqrt;
    return v / sqrt(v * v + transition_square);
  }

  /// The effort that it takes to move the joint of index `dof` at the speed v.
  [[nodiscard]] S effort(Eigen::Index dof, const S& v) const noexcept {
    return viscous[dof] * v + coulomb[dof] * smooth_sign(v);
  }

  /// tau += effort(v): what a drive adds to move against friction.
  [[nodiscard]] Status add(VectorIn<S> v, VectorOut<S> tau) const noexcept {
    if (v.size() != viscous.size() || tau.size() != viscous.size()) return Status::wrong_size;
    for (Eigen::Index i = 0; i < v.size(); ++i) tau[i] += effort(i, v[i]);
    return Status::ok;
  }

  /// tau −= effort(v): what is left of a drive's effort to move the links.
  [[nodiscard]] Status subtract(VectorIn<S> v, VectorOut<S> tau) const noexcept {
    if (v.size() != viscous.size() || tau.size() != viscous.size()) return Status::wrong_size;
    for (Eigen::Index i = 0; i < v.size(); ++i) tau[i] -= effort(i, v[i]);
    return Status::ok;
  }

  S transition_square;  ///< ε²
  VectorX<S> viscous;   ///< N·m·s/rad or N·s/m, by degree of freedom
  VectorX<S> coulomb;   ///< N·m or N, by degree of freedom
};

}  // namespace dynamics_core
