// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Least squares for inertial parameters that a rigid body can have.
///
/// The parameters of a body (m, m·c, I about the origin) are those of a body with mass everywhere
/// positive exactly if its pseudo-inertia (Wensing, Kim and Slotine, "Linear matrix inequalities for
/// physically consistent inertial parameter identification", IEEE RA-L 3(1), 2018)
///
///     P = [Σ  h; hᵀ  m],   Σ = ½ tr(I) 1 − I,   h = m·c
///
/// is positive definite. Beside a prior P₀ = L₀ L₀ᵀ it is written as P = L₀ W L₀ᵀ: W = 1 is the prior
/// itself, and ‖W − 1‖ is how far P is from it in the body's own measures, whatever its frame and
/// units. W = T Tᵀ with a triangular T whose diagonal is exp(θ) is positive definite by construction
/// (Rucker and Wensing, "Smooth parameterization of rigid-body inertia", IEEE RA-L 7(2), 2022).

#include <Eigen/Core>
#include <vector>

#include "dynamics_core/scalar.hpp"
#include "dynamics_core/spatial.hpp"

namespace dynamics_core::identification {

/// m, m·c (x y z), I (xx xy xz yy yz zz), as in regressor.hpp.
using BodyParameters = Eigen::Matrix<double, 10, 1>;

[[nodiscard]] Eigen::Matrix4d pseudo_inertia(const BodyParameters& pi);
[[nodiscard]] BodyParameters body_parameters(const Eigen::Matrix4d& P);

/// The ten elements of W that tell it, and how they make π: π = S w. w of the prior is the diagonal
/// one, and ‖W − 1‖² = ‖w − w₀‖².
struct BodyPrior {
  Eigen::Matrix4d L;  ///< P₀ = L Lᵀ
  Eigen::Matrix<double, 10, 10> S;
  explicit BodyPrior(const BodyParameters& prior);

  [[nodiscard]] static Eigen::Matrix<double, 10, 1> neutral();  ///< w₀
};

/// Minimise ½ xᵀ H x − gᵀ x + ½ λ Σ ‖w_b − w₀‖² over x = (π of the bodies; others) with every body
/// consistent and some of the others not negative.
struct ConsistentProblem {
  MatrixX<double> H;
  VectorX<double> g;
  std::vector<BodyPrior> bodies;   ///< of the first 10 · bodies.size() unknowns
  std::vector<bool> not_negative;  ///< by other unknown
  double weight = 1.0;             ///< λ
  bool consistent = true;          ///< false: bodies may be anything, which is quicker
};
struct ConsistentSolution {
  VectorX<double> x;
  bool constrained = false;  ///< without the constraint another solution would be better
};
[[nodiscard]] ConsistentSolution solve(const ConsistentProblem& problem);

}  // namespace dynamics_core::identification
