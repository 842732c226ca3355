// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A number and its derivative along one direction, written for the tests: what an algorithm
/// computes with it is its result and the derivative of its result. Judgements go by the value; what
/// has no derivative has the limit along the direction where there is one. See scalar.hpp.

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "dynamics_core/scalar.hpp"

namespace support {

struct Dual {
  double value = 0.0;
  double rate = 0.0;

  Dual() = default;
  explicit Dual(double constant) noexcept : value(constant) {}
  explicit Dual(int constant) noexcept : value(constant) {}
  Dual(double value_, double rate_) noexcept : value(value_), rate(rate_) {}

  Dual& operator+=(const Dual& o) noexcept { return *this = *this + o; }
  Dual& operator-=(const Dual& o) noexcept { return *this = *this - o; }
  Dual& operator*=(const Dual& o) noexcept { return *this = *this * o; }
  Dual& operator/=(const Dual& o) noexcept { return *this = *this / o; }
  friend Dual operator+(const Dual& x, const Dual& y) noexcept {
    return {x.value + y.value, x.rate + y.rate};
  }
  friend Dual operator-(const Dual& x, const Dual& y) noexcept {
    return {x.value - y.value, x.rate - y.rate};
  }
  friend Dual operator-(const Dual& x) noexcept { return {-x.value, -x.rate}; }
  friend Dual operator*(const Dual& x, const Dual& y) noexcept {
    return {x.value * y.value, x.rate * y.value + x.value * y.rate};
  }
  friend Dual operator/(const Dual& x, const Dual& y) noexcept {
    const double ratio = x.value / y.value;
    return {ratio, (x.rate - ratio * y.rate) / y.value};
  }

  friend Dual sqrt(const Dual& x) noexcept {
    const double root = std::sqrt(x.value);
    return {root, x.rate == 0.0 ? 0.0 : x.rate / (2.0 * root)};
  }
  friend Dual abs(const Dual& x) noexcept { return x.value < 0.0 ? -x : x; }
  friend void sincos(const Dual& x, Dual& s, Dual& c) noexcept {
    double sine, cosine;
    dynamics_core::sincos_many(&x.value, &sine, &cosine, 1);
    s = {sine, cosine * x.rate};
    c = {cosine, -sine * x.rate};
  }
  friend Dual safe_ratio(const Dual& numerator, const Dual& denominator,
                         const Dual& otherwise) noexcept {
    return denominator.value == 0.0 ? otherwise : numerator / denominator;
  }
  /// Leaving zero along (x', y') the direction is theirs, and the modulus grows as theirs does.
  friend void to_polar(const Dual& x, const Dual& y, Dual& r, Dual& c, Dual& s) noexcept {
    if (x.value != 0.0 || y.value != 0.0) {
      r = sqrt(x * x + y * y);
      c = safe_ratio(x, r, Dual(1));
      s = safe_ratio(y, r, Dual(0));
      return;
    }
    const double growth = std::hypot(x.rate, y.rate);
    r = {0.0, growth};
    c = Dual(growth == 0.0 ? 1.0 : x.rate / growth);
    s = Dual(growth == 0.0 ? 0.0 : y.rate / growth);
  }

  friend bool is_finite(const Dual& x) noexcept {
    return std::isfinite(x.value) && std::isfinite(x.rate);
  }
  friend bool negligible(const Dual& x, const Dual& scale) noexcept {
    return dynamics_core::negligible(x.value, scale.value);
  }
  // An order, for the closed loops.
  friend bool operator<(const Dual& x, const Dual& y) noexcept { return x.value < y.value; }
  friend bool operator>(const Dual& x, const Dual& y) noexcept { return y < x; }
};

}  // namespace support

namespace Eigen {
template <>
struct NumTraits<support::Dual> : NumTraits<double> {
  using Real = support::Dual;
  using NonInteger = support::Dual;
  using Nested = support::Dual;
  using Literal = double;
  enum {  // NOLINTBEGIN(readability-identifier-naming): Eigen's names
    IsComplex = 0,
    IsInteger = 0,
    IsSigned = 1,
    RequireInitialization = 1,
    ReadCost = 1,
    AddCost = 1,
    MulCost = 1
  };  // NOLINTEND(readability-identifier-naming)
};
}  // namespace Eigen

namespace support {

// --- Between numbers and duals -------------------------------------------------------------------

[[nodiscard]] inline dynamics_core::MatrixX<Dual> dual(const Eigen::MatrixXd& x,
                                                       const Eigen::MatrixXd& rate) {
  dynamics_core::MatrixX<Dual> out(x.rows(), x.cols());
  for (Eigen::Index j = 0; j < x.cols(); ++j)
    for (Eigen::Index i = 0; i < x.rows(); ++i) out(i, j) = Dual(x(i, j), rate(i, j));
  return out;
}
[[nodiscard]] inline dynamics_core::MatrixX<Dual> constant(const Eigen::MatrixXd& x) {
  return dual(x, Eigen::MatrixXd::Zero(x.rows(), x.cols()));
}
[[nodiscard]] inline Eigen::MatrixXd values(const dynamics_core::MatrixX<Dual>& x) {
  return x.unaryExpr([](const Dual& d) { return d.value; });
}
[[nodiscard]] inline Eigen::MatrixXd rates(const dynamics_core::MatrixX<Dual>& x) {
  return x.unaryExpr([](const Dual& d) { return d.rate; });
}

/// Every element, relative to the largest expected one or to `size`.
inline void expect_equal(const Eigen::MatrixXd& actual, const Eigen::MatrixXd& expected,
                         double tolerance, double size = 1.0) {
  ASSERT_EQ(actual.rows(), expected.rows());
  ASSERT_EQ(actual.cols(), expected.cols());
  if (actual.size() == 0) return;
  const double scale = std::max(size, expected.cwiseAbs().maxCoeff());
  EXPECT_LE((actual - expected).cwiseAbs().maxCoeff(), tolerance * scale);
}

}  // namespace support
