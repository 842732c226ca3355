// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/identification/signals.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dynamics_core::identification {

namespace {
constexpr double pi = 3.14159265358979323846;
}  // namespace

LowPass::LowPass(double cutoff, double rate) {
  if (cutoff >= 0.45 * rate) return;
  // The bilinear transform of 1/(s² + √2 s + 1); each pass takes 1/√2 of the amplitude there.
  const double w = std::tan(pi * cutoff / rate);
  const double k = 1.0 / (1.0 + std::sqrt(2.0) * w + w * w);
  b0_ = w * w * k;
  b1_ = 2.0 * b0_;
  b2_ = b0_;
  a1_ = 2.0 * (w * w - 1.0) * k;
  a2_ = (1.0 - std::sqrt(2.0) * w + w * w) * k;
  settling_ = static_cast<int>(std::ceil(std::min(rate / cutoff, 1e8)));
}

void LowPass::run(VectorX<double>& x) const {
  // The state in which the filter has seen the first value for ever.
  double s1 = (1.0 - b0_) * x[0];
  double s2 = (b2_ - a2_) * x[0];
  for (double& value : x) {
    const double in = value;
    value = b0_ * in + s1;
    s1 = b1_ * in - a1_ * value + s2;
    s2 = b2_ * in - a2_ * value;
  }
}

void LowPass::apply(MatrixX<double>& signals) const {
  const Eigen::Index n = signals.rows();
  if (settling_ == 0 || n < 2) return;
  const Eigen::Index pad = std::min<Eigen::Index>(3 * settling_, n - 1);
  VectorX<double> x(n + 2 * pad);
  for (Eigen::Index column = 0; column < signals.cols(); ++column) {
    const auto signal = signals.col(column);
    x.segment(pad, n) = signal;
    for (Eigen::Index i = 1; i <= pad; ++i) {
      x[pad - i] = 2.0 * signal[0] - signal[i];
      x[pad + n - 1 + i] = 2.0 * signal[n - 1] - signal[n - 1 - i];
    }
    run(x);
    x.reverseInPlace();
    run(x);
    x.reverseInPlace();
    signals.col(column) = x.segment(pad, n);
  }
}

MatrixX<double> derivative(const MatrixX<double>& signals, double period) {
  const Eigen::Index n = signals.rows();
  MatrixX<double> rates = MatrixX<double>::Zero(n, signals.cols());
  if (n < 2) return rates;
  rates.row(0) = (signals.row(1) - signals.row(0)) / period;
  rates.row(n - 1) = (signals.row(n - 1) - signals.row(n - 2)) / period;
  if (n > 2)
    rates.middleRows(1, n - 2) =
        (signals.bottomRows(n - 2) - signals.topRows(n - 2)) / (2.0 * period);
  return rates;
}

MatrixX<double> interpolated(const std::vector<double>& known, const MatrixX<double>& signals,
                             const std::vector<double>& wanted) {
  const auto n = static_cast<Eigen::Index>(known.size());
  MatrixX<double> values(static_cast<Eigen::Index>(wanted.size()), signals.cols());
  const auto slope = [&](Eigen::Index i) -> VectorX<double> {
    const Eigen::Index before = std::max<Eigen::Index>(i - 1, 0);
    const Eigen::Index after = std::min<Eigen::Index>(i + 1, n - 1);
    return (signals.row(after) - signals.row(before)).transpose() /
           (known[static_cast<std::size_t>(after)] - known[static_cast<std::size_t>(before)]);
  };
  std::size_t i = 0;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const double t = wanted[k];
    const auto row = static_cast<Eigen::Index>(k);
    if (n == 1 || !(t > known.front())) {
      values.row(row) = signals.row(0);
      continue;
    }
    if (t >= known.back()) {
      values.row(row) = signals.row(n - 1);
      continue;
    }
    if (i + 1 >= known.size() || known[i] > t) i = 0;
    if (known[i + 1] <= t)
      i = static_cast<std::size_t>(
              std::upper_bound(known.begin() + static_cast<long>(i), known.end(), t) -
              known.begin()) -
          1;
    const auto at = static_cast<Eigen::Index>(i);
    const double h = known[i + 1] - known[i];
    const double u = (t - known[i]) / h;
    const double v = 1.0 - u;
    // Hermite's cubic
    values.row(row) = (v * v * (1.0 + 2.0 * u)) * signals.row(at) +
                      (u * u * (1.0 + 2.0 * v)) * signals.row(at + 1) +
                      (h * u * v * v) * slope(at).transpose() -
                      (h * u * u * v) * slope(at + 1).transpose();
  }
  return values;
}

double quantile(std::vector<double> values, double p) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto place =
      static_cast<std::ptrdiff_t>(std::lround(p * static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

}  // namespace dynamics_core::identification
