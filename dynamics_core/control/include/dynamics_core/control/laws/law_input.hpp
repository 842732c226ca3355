// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <vector>

#include "dynamics_core/control/config.hpp"

namespace dynamics_core::control {

/// What a law may look at, by joint commanded. e and ė go the short way round for a joint without
/// end stops.
struct LawInput {
  const Eigen::VectorXd& q;    ///< measured
  const Eigen::VectorXd& v;    ///< measured or estimated
  const Eigen::VectorXd& q_d;  ///< reference
  const Eigen::VectorXd& v_d;
  const Eigen::VectorXd& a_d;
  const Eigen::VectorXd& e;         ///< q_d − q
  const Eigen::VectorXd& ed;        ///< v_d − v
  const Eigen::VectorXd& integral;  ///< ∫ i e dt
  const std::vector<Gains>& gains;

  [[nodiscard]] const Gains& gain(Eigen::Index j) const noexcept {
    return gains[static_cast<std::size_t>(j)];
  }
};

}  // namespace dynamics_core::control
