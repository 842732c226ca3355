// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Four configurations in one scalar, written for the tests: the operations work lane by lane, and
/// each lane has a status of its own. It has what the contract in scalar.hpp asks for and no more,
/// so that a text that needs more does not compile.

#include <Eigen/Core>
#include <array>
#include <cmath>
#include <cstddef>

#include "dynamics_core/scalar.hpp"

namespace support {

class Lanes {
 public:
  static constexpr int count = 4;

  Lanes() = default;
  explicit Lanes(double all) noexcept { x_.fill(all); }
  explicit Lanes(int all) noexcept : Lanes(static_cast<double>(all)) {}

  [[nodiscard]] double operator[](int lane) const noexcept { return x_[at(lane)]; }
  [[nodiscard]] double& operator[](int lane) noexcept { return x_[at(lane)]; }

  Lanes& operator+=(const Lanes& o) noexcept { return *this = *this + o; }
  Lanes& operator-=(const Lanes& o) noexcept { return *this = *this - o; }
  Lanes& operator*=(const Lanes& o) noexcept { return *this = *this * o; }
  Lanes& operator/=(const Lanes& o) noexcept { return *this = *this / o; }
  friend Lanes operator+(const Lanes& x, const Lanes& y) noexcept {
    return each([&](int k) { return x[k] + y[k]; });
  }
  friend Lanes operator-(const Lanes& x, const Lanes& y) noexcept {
    return each([&](int k) { return x[k] - y[k]; });
  }
  friend Lanes operator*(const Lanes& x, const Lanes& y) noexcept {
    return each([&](int k) { return x[k] * y[k]; });
  }
  friend Lanes operator/(const Lanes& x, const Lanes& y) noexcept {
    return each([&](int k) { return x[k] / y[k]; });
  }
  friend Lanes operator-(const Lanes& x) noexcept {
    return each([&](int k) { return -x[k]; });
  }

  friend Lanes sqrt(const Lanes& x) noexcept {
    return each([&](int k) { return std::sqrt(x[k]); });
  }
  friend Lanes abs(const Lanes& x) noexcept {
    return each([&](int k) { return std::abs(x[k]); });
  }
  /// By the text that `double` uses for many angles, to the last bit; one lane at a time, as a large
  /// angle makes that text take its neighbours' sines from the library.
  friend void sincos(const Lanes& x, Lanes& s, Lanes& c) noexcept {
    for (int k = 0; k < count; ++k) dynamics_core::sincos_many(&x.x_[at(k)], &s[k], &c[k], 1);
  }
  friend Lanes safe_ratio(const Lanes& numerator, const Lanes& denominator,
                          const Lanes& otherwise) noexcept {
    return each([&](int k) {
      return dynamics_core::safe_ratio(numerator[k], denominator[k], otherwise[k]);
    });
  }
  /// In every lane?
  friend bool is_finite(const Lanes& x) noexcept {
    bool all = true;
    for (int k = 0; k < count; ++k) all = all && std::isfinite(x[k]);
    return all;
  }
  /// In any lane?
  friend bool is_negative(const Lanes& x) noexcept {
    bool any = false;
    for (int k = 0; k < count; ++k) any = any || x[k] < 0.0;
    return any;
  }

 private:
  [[nodiscard]] static std::size_t at(int lane) noexcept { return static_cast<std::size_t>(lane); }
  template <class Function>
  [[nodiscard]] static Lanes each(Function f) noexcept {
    Lanes out;
    for (int k = 0; k < count; ++k) out[k] = f(k);
    return out;
  }

  std::array<double, count> x_;
};

/// A status for each lane.
class LaneStatus {
 public:
  LaneStatus(dynamics_core::Status all) noexcept { status_.fill(all); }  // NOLINT: as intended

  [[nodiscard]] dynamics_core::Status operator[](int lane) const noexcept {
    return status_[static_cast<std::size_t>(lane)];
  }
  /// A failure, unless the lane has failed before.
  void fail(int lane, dynamics_core::Status why) noexcept {
    auto& status = status_[static_cast<std::size_t>(lane)];
    status = dynamics_core::merged(status, why);
  }
  friend bool failed(const LaneStatus& status) noexcept {
    bool all = true;
    for (const auto s : status.status_) all = all && s != dynamics_core::Status::ok;
    return all;
  }
  friend LaneStatus merged(const LaneStatus& first, const LaneStatus& second) noexcept {
    LaneStatus out = first;
    for (int k = 0; k < Lanes::count; ++k) out.fail(k, second[k]);
    return out;
  }

 private:
  std::array<dynamics_core::Status, Lanes::count> status_;
};

}  // namespace support

namespace dynamics_core {
template <>
struct StatusType<support::Lanes> {
  using Type = support::LaneStatus;
};
}  // namespace dynamics_core

namespace support {

template <class S>
[[nodiscard]] dynamics_core::StatusOf<S> finite_status(const Lanes& x) noexcept {
  LaneStatus status = dynamics_core::Status::ok;
  for (int k = 0; k < Lanes::count; ++k)
    if (!std::isfinite(x[k])) status.fail(k, dynamics_core::Status::not_finite);
  return status;
}

template <class S>
[[nodiscard]] bool keep_pivot(
    Lanes& x, const Lanes& scale, LaneStatus& status,
    dynamics_core::Status why = dynamics_core::Status::singular) noexcept {
  for (int k = 0; k < Lanes::count; ++k) {
    if (!dynamics_core::negligible(x[k], scale[k])) continue;
    status.fail(k, why);
    x[k] = 1.0;
  }
  return !failed(status);
}

}  // namespace support

namespace Eigen {
template <>
struct NumTraits<support::Lanes> : NumTraits<double> {
  using Real = support::Lanes;
  using NonInteger = support::Lanes;
  using Nested = support::Lanes;
  using Literal = double;
  enum {  // NOLINTBEGIN(readability-identifier-naming): Eigen's names
    IsComplex = 0,
    IsInteger = 0,
    IsSigned = 1,
    RequireInitialization = 0,
    ReadCost = 1,
    AddCost = 1,
    MulCost = 1
  };  // NOLINTEND(readability-identifier-naming)
};
}  // namespace Eigen
