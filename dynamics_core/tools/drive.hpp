// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What drives a robot in `dynamics simulate`: efforts as a function of time alone.

#include <Eigen/Core>
#include <functional>
#include <string>

#include "dynamics_core/dynamics.hpp"

namespace dynamics_core::tools {

/// tau(t), in the order of the model.
using EffortSource = std::function<Status(double t, Eigen::Ref<VectorX<double>> tau)>;

/// Where a path wants the robot to be.
struct Desired {
  VectorX<double> q, v, a;
};
using Path = std::function<Status(double t, Desired& at)>;

/// No efforts at all.
[[nodiscard]] EffortSource free_fall();

/// Efforts from a file of comma-separated values, time first; linear between its lines, constant
/// before and after. A heading names the joints, else they are in the order of the model.
[[nodiscard]] EffortSource efforts_from_file(const Model& model, const std::string& file);

/// From rest to rest along a cycloid (Saha 2001, Eq. 18).
[[nodiscard]] Path cycloid(const Model& model, const VectorX<double>& start,
                           const VectorX<double>& goal, double duration);

/// Through the positions of a file like the above, by a quintic spline that starts and ends at
/// rest.
[[nodiscard]] Path path_from_file(const Model& model, const std::string& file);

/// The inverse dynamics of a path, and with `friction` what it takes to overcome that. Nothing is
/// fed back, so the robot leaves the path as errors grow.
[[nodiscard]] EffortSource inverse_dynamics_along(const Path& path, const Model& model,
                                                  const Dynamics<double>& robot, bool friction);

}  // namespace dynamics_core::tools
