// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the checks of configurations have in common.

#include <cmath>
#include <string>
#include <vector>

#include "dynamics_core/config_error.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core::control {

inline void require(bool holds, const std::string& parameter, double value, const char* remedy) {
  if (!holds) throw ConfigError(parameter, text::to_short_text(value), remedy);
}

[[nodiscard]] inline bool from_zero(double x) noexcept { return std::isfinite(x) && x >= 0.0; }
[[nodiscard]] inline bool above_zero(double x) noexcept { return std::isfinite(x) && x > 0.0; }

/// One element for each joint.
template <class T>
void expand(const char* parameter, std::vector<T>& list, std::size_t size) {
  if (list.size() == 1) list.resize(size, list.front());
  if (list.size() != size)
    throw ConfigError(
        parameter, "list of " + std::to_string(list.size()),
        "give one element, or one for each of the " + std::to_string(size) + " joints");
}

}  // namespace dynamics_core::control
