// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

#include "dynamics_core/description.hpp"

namespace support {

/// The text of the ModelError that `action` throws, empty where it throws none. Anything else that
/// is thrown fails the test.
template <class Action>
[[nodiscard]] std::string error_of(Action&& action) {
  try {
    action();
  } catch (const dynamics_core::ModelError& error) {
    return error.what();
  }
  return "";
}

/// `text` with the first `from` replaced by `to`.
[[nodiscard]] inline std::string replaced(std::string text, const std::string& from,
                                          const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == text.npos) throw std::logic_error("the test's text does not hold: " + from);
  return text.replace(at, from.size(), to);
}

}  // namespace support
