// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The names of the algorithm families.

#include <array>
#include <optional>
#include <string_view>

namespace dynamics_core {

enum class Method {
  newton_euler,
  denoc,
  gibbs_appell,
  composite_body,
  articulated_body,
  udut,
  cholesky
};

inline constexpr std::array<Method, 7> all_methods = {
    Method::newton_euler,     Method::denoc, Method::gibbs_appell, Method::composite_body,
    Method::articulated_body, Method::udut,  Method::cholesky};

[[nodiscard]] constexpr const char* to_string(Method method) noexcept {
  switch (method) {
    case Method::newton_euler: return "newton_euler";
    case Method::denoc: return "denoc";
    case Method::gibbs_appell: return "gibbs_appell";
    case Method::composite_body: return "composite_body";
    case Method::articulated_body: return "articulated_body";
    case Method::udut: return "udut";
    case Method::cholesky: return "cholesky";
  }
  return "unknown method";
}

[[nodiscard]] constexpr std::optional<Method> find_method(std::string_view name) noexcept {
  for (const Method method : all_methods)
    if (name == to_string(method)) return method;
  return std::nullopt;
}

}  // namespace dynamics_core
