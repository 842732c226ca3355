// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace dynamics_core::detail {

/// A sine or cosine, exact where it is that of a right angle but for rounding: later stages make
/// use of zeros and ones.
[[nodiscard]] inline double snap(double sine_or_cosine) {
  for (const double exact : {-1.0, 0.0, 1.0})
    if (std::abs(sine_or_cosine - exact) < 4e-16) return exact;
  return sine_or_cosine;
}

}  // namespace dynamics_core::detail
