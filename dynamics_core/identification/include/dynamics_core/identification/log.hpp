// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a robot reported while it moved, as it stands in a file.

#include <stdexcept>
#include <string>
#include <vector>

#include "dynamics_core/scalar.hpp"

namespace dynamics_core::identification {

/// A log that cannot be used. The text names the file, what is wrong with it and the remedy.
class LogError : public std::runtime_error {
 public:
  LogError(const std::string& source, const std::string& problem, const std::string& remedy)
      : std::runtime_error(source + ": " + problem + "; " + remedy) {}
};

/// A sample a row, a joint a column. What is no number is NaN.
struct Log {
  std::string source;               ///< file name, for messages
  std::vector<std::string> joints;  ///< that have positions, in the order of the file
  std::vector<double> time;         ///< s; empty: there are no stamps
  MatrixX<double> q;                ///< rad or m
  MatrixX<double> tau;              ///< N·m, N or A; NaN in every row: not reported for that joint
  std::vector<bool> current;        ///< by joint: `tau` is the motor's current, A
  std::vector<std::string> notes;   ///< what was found in the file and how it was taken

  [[nodiscard]] Eigen::Index samples() const noexcept { return q.rows(); }
};

/// Reads comma-separated values, gzipped or not: a first line with the names of the columns
/// (`time`, `q_<joint>`, `v_<joint>`, and `tau_<joint>` or `current_<joint>`), a line for each
/// sample. Velocities are not used: they often lag, and differentiating positions does better.
/// Throws LogError.
[[nodiscard]] Log read_log(const std::string& path);
/// The same from text.
[[nodiscard]] Log parse_log(const std::string& text, const std::string& source);

}  // namespace dynamics_core::identification
