// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dynamics_core {

/// From zero to one in a given time, with zero slope at both ends.
class Ramp {
 public:
  void start(double duration) noexcept {
    duration_ = duration;
    elapsed_ = 0.0;
  }
  void advance(double step) noexcept {
    if (!done()) elapsed_ += step;
  }
  [[nodiscard]] bool done() const noexcept { return elapsed_ >= duration_; }
  [[nodiscard]] double value() const noexcept {
    if (done()) return 1.0;
    const double x = elapsed_ / duration_;
    return x * x * (3.0 - 2.0 * x);
  }

 private:
  double duration_ = 0.0;
  double elapsed_ = 0.0;
};

}  // namespace dynamics_core
