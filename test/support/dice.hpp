// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace support {

/// A cheap generator, as the library's may not be real-time safe.
class Dice {
 public:
  unsigned roll(unsigned sides) noexcept {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<unsigned>(state_ >> 33) % sides;
  }

 private:
  std::uint64_t state_ = 12345;
};

}  // namespace support
