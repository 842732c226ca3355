// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Identified parameters in the user's own URDF.

#include <map>
#include <string>

#include "dynamics_core/model.hpp"
#include "dynamics_core/scalar.hpp"

namespace dynamics_core::identification {

struct JointDynamics {
  double damping = 0.0, friction = 0.0;
};

/// The links' inertials with which the bodies have the parameters `pi` (regressor.hpp). The link
/// that a joint moves takes the difference; where it could not be a body then, all links of its body
/// share it. Links of bodies that stay as they are are not among them.
[[nodiscard]] std::map<std::string, Inertial> link_inertials(const Model& model,
                                                             const VectorX<double>& pi);

/// The text of a URDF with other `<inertial>` and `<dynamics>`; every other character stays.
/// Throws ModelError where a link or joint is not in it.
[[nodiscard]] std::string edited_urdf(const std::string& urdf,
                                      const std::map<std::string, Inertial>& inertials,
                                      const std::map<std::string, JointDynamics>& dynamics);

}  // namespace dynamics_core::identification
