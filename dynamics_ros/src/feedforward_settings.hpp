// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The parameters of the FeedforwardController in the words of dynamics_core. Off the real-time
/// path; a parameter that cannot be used throws a ConfigError.

#include <vector>

#include "dynamics_core/control/config.hpp"
#include "dynamics_core/model.hpp"
#include "realtime_dynamics/feedforward_controller_parameters.hpp"
#include "robot_settings.hpp"

namespace realtime_dynamics {

[[nodiscard]] dynamics_core::control::Config control_config(
    const feedforward_controller::Params& params, const dynamics_core::Model& model);

/// One for each of `joints`.
[[nodiscard]] std::vector<dynamics_core::control::Gains> joint_gains(
    const feedforward_controller::Params& params);

}  // namespace realtime_dynamics
