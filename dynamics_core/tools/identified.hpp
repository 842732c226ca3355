// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What `dynamics identify` and `dynamics validate` share: logs from the command line, and the
/// folder with an identified robot.

#include <map>
#include <string>
#include <vector>

#include "common.hpp"
#include "dynamics_core/identification/identify.hpp"

namespace dynamics_core::tools {

/// How logs are to be taken, as it stands on the command line.
struct LogOptions {
  double rate = 0.0;               ///< Hz; 0: the logs have stamps
  std::vector<std::string> gains;  ///< joint=Nm/A
  std::string effort = "auto";
};
/// Cut-offs in Hz that leave something of a log.
[[nodiscard]] CLI::Validator cutoff_range();
void add_log_options(CLI::App& app, LogOptions& options);

/// The robot with the joints of the log; the others are locked. Throws ModelError, LogError.
[[nodiscard]] Model robot_of_log(const RobotOptions& options, const identification::Log& log);

/// What a folder written by `dynamics identify` says beside its robot.urdf.
struct Identified {
  std::string urdf;                      ///< path
  std::vector<std::string> joints;       ///< of the drives, in their order
  std::map<std::string, double> locked;  ///< joints that stood still, and where
  identification::Drives drives;
};
/// What `dynamics identify` found, and of what.
struct Finding {
  std::string urdf_file;
  const Model& model;
  std::map<std::string, double> locked;
  const identification::Identification& result;
  const identification::Recording& shown;  ///< the log that the page shows
  std::vector<std::string> notes;
  std::string verdict;
};
/// Writes robot.urdf, friction.yaml and identify.json, all or none of them, and draws index.html; without
/// Python or matplotlib a warning says so. Throws std::runtime_error.
void write_identified(const std::string& directory, const Finding& finding);
/// Throws std::runtime_error.
[[nodiscard]] Identified read_identified(const std::string& directory);

/// Throws LogError where the log lacks one of the joints.
void check_joints(const Identified& identified, const identification::Log& log);
/// The robot of that file, with the joints that moved when it was identified.
[[nodiscard]] Model load_identified(const Identified& identified, RobotOptions options,
                                    const std::string& urdf);
/// The drives in the model's order.
[[nodiscard]] identification::Drives drives_of(const Identified& identified, const Model& model);

/// Per cent with as many digits as they are worth.
[[nodiscard]] std::string percent(double share);

}  // namespace dynamics_core::tools
