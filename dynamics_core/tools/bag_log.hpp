// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "dynamics_core/identification/log.hpp"

namespace dynamics_core::tools {

/// A log from a CSV file, or from a rosbag2 bag: a folder with metadata.yaml, or a file .mcap or .db3.
/// Bags are read by the program bag_to_csv of the ROS layer. Throws identification::LogError, or
/// std::runtime_error with what that program says.
[[nodiscard]] identification::Log read_log_or_bag(const std::string& path);

}  // namespace dynamics_core::tools
