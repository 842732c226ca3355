// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Signals in time: a filter without phase, derivatives, values between samples. A sample a row, a
/// signal a column.

#include <cmath>
#include <limits>
#include <vector>

#include "dynamics_core/scalar.hpp"

namespace dynamics_core::identification {

inline constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

/// Butterworth's low-pass filter of the second order, forwards and backwards: no phase, half the
/// amplitude at the cut-off frequency. At both ends the signal is continued point-symmetrically.
class LowPass {
 public:
  /// Hz. At or above 0.45 of the rate nothing is filtered.
  LowPass(double cutoff, double rate);

  void apply(MatrixX<double>& signals) const;
  /// Samples within which a step dies away.
  [[nodiscard]] int settling() const noexcept { return settling_; }

 private:
  void run(VectorX<double>& x) const;

  double b0_ = 1.0, b1_ = 0.0, b2_ = 0.0, a1_ = 0.0, a2_ = 0.0;
  int settling_ = 0;
};

/// Central differences, one-sided at the ends.
[[nodiscard]] MatrixX<double> derivative(const MatrixX<double>& signals, double period);

/// Values at the times `wanted` of signals known at the ascending times `known`, by cubic pieces
/// through the points (Catmull and Rom's, for uneven spacing); constant beyond the ends.
[[nodiscard]] MatrixX<double> interpolated(const std::vector<double>& known,
                                           const MatrixX<double>& signals,
                                           const std::vector<double>& wanted);

/// s(v) = v/√(v² + ε²)
[[nodiscard]] inline double smooth_sign(double v, double transition) {
  return v / std::sqrt(v * v + transition * transition);
}

/// The value that a share p of all are below; 0 ≤ p ≤ 1. NaN of none.
[[nodiscard]] double quantile(std::vector<double> values, double p);

}  // namespace dynamics_core::identification
