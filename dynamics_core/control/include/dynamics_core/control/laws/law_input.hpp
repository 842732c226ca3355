// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <vector>

#include "dynamics_core/control/config.hpp"

namespace dynamics_core::control {

/// What a law may look at, by joint commanded. e and ė go the short way round for a joint without
/// end stops.
struct LawInput {
  const VectorX<double>& q;    ///< measured
  const VectorX<double>& v;    ///< measured or estimated
  const VectorX<double>& q_d;  ///< reference
  const VectorX<double>& v_d;
  const VectorX<double>& a_d;
  const VectorX<double>& e;         ///< q_d − q
  const VectorX<double>& ed;        ///< v_d − v
  const VectorX<double>& integral;  ///< ∫ i e dt
  const std::vector<Gains>& gains;

  [[nodiscard]] const Gains& gain(Eigen::Index j) const noexcept {
    return gains[static_cast<std::size_t>(j)];
  }
};

}  // namespace dynamics_core::control
