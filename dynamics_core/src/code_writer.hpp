// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Recorded functions as the text of a header and a source.

#include <string>
#include <vector>

#include "dynamics_core/generate.hpp"
#include "recording.hpp"

namespace dynamics_core::generation {

/// How the code is written, and what its comments say of the robot.
struct Style {
  GeneratedScalar scalar;
  GeneratedLanguage language;
  std::string name;                 ///< an identifier, of which all names begin
  std::string robot;                ///< as it calls itself
  std::string version;              ///< of this program
  std::vector<std::string> joints;  ///< in the order of q and v
  int nq = 0, nv = 0;
};

[[nodiscard]] std::string header_name(const Style& style);
[[nodiscard]] std::string source_name(const Style& style);
[[nodiscard]] std::string header_text(const Style& style, const std::vector<Recording>& functions);
[[nodiscard]] std::string source_text(const Style& style, const std::vector<Recording>& functions);

}  // namespace dynamics_core::generation
