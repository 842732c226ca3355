// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

#include "dynamics_core/text.hpp"

namespace dynamics_core {

/// A parameter that cannot be used. The text names the parameter, its value and the remedy.
class ConfigError : public std::runtime_error {
 public:
  ConfigError(const std::string& parameter, const std::string& value, const std::string& remedy)
      : std::runtime_error(text::printable(parameter + " = " + value + ": " + remedy)),
        parameter_(parameter) {}
  /// e.g. "gains.elbow.p"
  [[nodiscard]] const std::string& parameter() const noexcept { return parameter_; }

 private:
  std::string parameter_;
};

}  // namespace dynamics_core
