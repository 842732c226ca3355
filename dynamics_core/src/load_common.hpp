// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the loaders share: limits of size, reading a file, and the check that links form one tree.

#include <cstddef>
#include <string>

#include "dynamics_core/description.hpp"

namespace dynamics_core::detail {

inline constexpr std::size_t max_bytes = 10'000'000;
inline constexpr std::size_t max_joints = 1024;

/// Throws ModelError where there is nothing to read or more than `max_bytes`.
void check_size(const std::string& text, const std::string& source);
/// Throws ModelError where the file cannot be read, is empty or too large.
[[nodiscard]] std::string read_file(const std::string& path);

/// Throws ModelError unless names are unique, joints connect existing links, and the links form one
/// tree.
void check_tree(const RobotDescription& description);

/// Throws the loader's or validator's warning as an error.
[[noreturn]] void throw_warning(const std::string& source, const std::string& warning);

}  // namespace dynamics_core::detail
