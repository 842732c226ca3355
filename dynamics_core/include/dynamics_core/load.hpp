// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "dynamics_core/model.hpp"

namespace dynamics_core {

/// Reads a URDF. `source` names it in messages. Throws ModelError.
[[nodiscard]] RobotDescription parse_urdf(const std::string& xml, const std::string& source = "");
/// Reads a Denavit–Hartenberg table (YAML or JSON), in the convention of Saha 1999, Appendix A, of
/// revolute, prismatic and helical joints; docs/robots.md lists its keys.
[[nodiscard]] RobotDescription parse_dh(const std::string& text, const std::string& source = "");
/// Reads a file of either kind, told apart by its content.
[[nodiscard]] RobotDescription parse_file(const std::string& path);

[[nodiscard]] Model load_urdf_string(const std::string& xml, const ModelOptions& options = {});
[[nodiscard]] Model load_urdf(const std::string& path, const ModelOptions& options = {});
[[nodiscard]] Model load_dh_string(const std::string& text, const ModelOptions& options = {});
[[nodiscard]] Model load_dh(const std::string& path, const ModelOptions& options = {});
/// A URDF or a Denavit–Hartenberg file.
[[nodiscard]] Model load_model(const std::string& path, const ModelOptions& options = {});

}  // namespace dynamics_core
