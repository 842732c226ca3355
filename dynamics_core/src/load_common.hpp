#pragma once

/// What the loaders share: limits, numbers as text, and the check that links form one tree.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "dynamics_core/description.hpp"

namespace dynamics_core::detail {

inline constexpr std::size_t max_bytes = 10'000'000;
inline constexpr std::size_t max_joints = 1024;

/// The shortest text that reads back as the same number, in any locale.
[[nodiscard]] std::string to_text(double value);
/// The same with six significant digits, for computed values.
[[nodiscard]] std::string to_short_text(double value);
/// Cut where it is too long for a message.
[[nodiscard]] std::string shortened(std::string_view text);
/// The same in single quotes.
[[nodiscard]] std::string quoted(std::string_view text);

/// Reads all of `text` as one number, with a decimal point in any locale. "inf", "nan" and numbers
/// too large for a double give a non-finite result, anything else that is no number gives none.
[[nodiscard]] std::optional<double> parse_number(std::string_view text);

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
