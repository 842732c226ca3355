// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <cmath>
#include <limits>
#include <vector>

namespace dynamics_core::control {

/// How far x is from `from`; for a joint without end stops the short way round.
[[nodiscard]] inline double difference(double x, double from, bool wraps) noexcept {
  return wraps ? std::remainder(x - from, 2.0 * M_PI) : x - from;
}

/// Rates of sampled values: the difference quotient through a low-pass filter of first order,
///
///     ẋ ← ẋ + (1 − exp(−2π f Δt)) ((x − x_last)/Δt − ẋ),
///
/// which is exact for a quotient that is constant between samples, at any sampling interval Δt. It
/// lags by about 1/(2π f) + Δt/2. A rate that has died away is zero, as processors are slow with
/// the smallest numbers; one that has overflowed starts anew.
class Derivative {
 public:
  Derivative(Eigen::Index size, double cutoff_hz, std::vector<bool> wraps)
      : last_(VectorX<double>::Zero(size)),
        rate_(VectorX<double>::Zero(size)),
        wraps_(std::move(wraps)),
        cutoff_(2.0 * M_PI * cutoff_hz) {}

  /// The next sample is the first; until there are two the rate is zero.
  void restart() noexcept {
    rate_.setZero();
    primed_ = false;
  }
  /// Time passes. Zero, after a jump of the clock: nobody knows how much, so that the next sample
  /// is a new start for the quotient, and the rate stays as it is.
  void advance(double step) noexcept {
    elapsed_ += step > 0.0 ? step : std::numeric_limits<double>::quiet_NaN();
  }
  template <class Values>
  void sample(const Values& x) noexcept {
    if (primed_ && elapsed_ > 0.0) {
      const double share = -std::expm1(-cutoff_ * elapsed_);
      for (Eigen::Index i = 0; i < rate_.size(); ++i) {
        const double moved = difference(x[i], last_[i], wraps_[static_cast<std::size_t>(i)]);
        rate_[i] += share * (moved / elapsed_ - rate_[i]);
        if (!(std::abs(rate_[i]) > negligible) || !std::isfinite(rate_[i])) rate_[i] = 0.0;
      }
    }
    for (Eigen::Index i = 0; i < last_.size(); ++i) last_[i] = x[i];
    elapsed_ = 0.0;
    primed_ = true;
  }
  [[nodiscard]] const VectorX<double>& rate() const noexcept { return rate_; }

 private:
  static constexpr double negligible = 1e-100;

  VectorX<double> last_, rate_;
  std::vector<bool> wraps_;
  double cutoff_;
  double elapsed_ = 0.0;
  bool primed_ = false;
};

}  // namespace dynamics_core::control
