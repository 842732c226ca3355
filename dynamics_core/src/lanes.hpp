// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Several configurations in one scalar, as many as a register of the instruction set holds that
/// this is compiled for. The contract is that of scalar.hpp, "Several lanes".
///
/// No operation knows where in the register a lane stands, so that the result of a configuration
/// does not depend on its place in a batch. One register per scalar, not two: with AVX2 two took as
/// long a configuration (but for gravity, two thirds) and a third longer for the forward dynamics.

#include <Eigen/Core>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <xsimd/xsimd.hpp>

#include "dynamics_core/scalar.hpp"

namespace dynamics_core {

/// A status for each of up to eight lanes, a byte each.
template <int width>
class LaneStatus {
 public:
  RD_INLINE LaneStatus(Status all) noexcept  // NOLINT(google-explicit-constructor): by the contract
      : word_(static_cast<std::uint64_t>(all) * ones) {}

  [[nodiscard]] Status operator[](int lane) const noexcept {
    return static_cast<Status>(word_ >> shift(lane) & 0xff);
  }
  /// A failure, unless the lane has failed before.
  void fail(int lane, Status why) noexcept {
    if ((*this)[lane] == Status::ok) word_ |= static_cast<std::uint64_t>(why) << shift(lane);
  }
  [[nodiscard]] bool all_ok() const noexcept { return word_ == 0; }

  RD_INLINE friend bool failed(const LaneStatus& status) noexcept { return status.tops() == top; }
  RD_INLINE friend LaneStatus merged(const LaneStatus& first, const LaneStatus& second) noexcept {
    LaneStatus out = first;
    out.word_ |= second.word_ & ~((first.tops() >> 7) * 0xff);
    return out;
  }

 private:
  static_assert(width <= 8 && static_cast<int>(Status::ok) == 0);
  static constexpr std::uint64_t ones = 0x0101010101010101U >>
                                        static_cast<unsigned>(64 - 8 * width);
  static constexpr std::uint64_t top = 0x80 * ones;

  /// The top bit in the byte of each lane that has failed; every Status is below 128.
  [[nodiscard]] RD_INLINE std::uint64_t tops() const noexcept {
    return (word_ + 0x7f * ones) & top;
  }
  [[nodiscard]] static unsigned shift(int lane) noexcept { return 8 * static_cast<unsigned>(lane); }

  std::uint64_t word_;
};

/// The instruction set is part of the type: code for two of them can be in one program.
template <class Arch = xsimd::default_arch>
class Lanes {
 public:
  using Register = xsimd::batch<double, Arch>;
  static constexpr int count = static_cast<int>(Register::size);
  using Statuses = LaneStatus<count>;
  static_assert(alignof(Register) <= 16 || alignof(Register) <= EIGEN_DEFAULT_ALIGN_BYTES,
                "Eigen's vectors of lanes would not be aligned; define EIGEN_MAX_ALIGN_BYTES=64");

  Lanes() = default;
  RD_INLINE explicit Lanes(double all) noexcept : x_(all) {}
  RD_INLINE explicit Lanes(int all) noexcept : x_(static_cast<double>(all)) {}

  /// `count` numbers at any address.
  [[nodiscard]] RD_INLINE static Lanes load(const double* from) noexcept {
    return Lanes(Register::load_unaligned(from));
  }
  RD_INLINE void store(double* to) const noexcept { x_.store_unaligned(to); }
  /// A number from each of `count` arrays.
  [[nodiscard]] RD_INLINE static Lanes gather(const double* const* from,
                                              std::ptrdiff_t at) noexcept {
    return gather(from, at, std::make_index_sequence<static_cast<std::size_t>(count)>());
  }
  /// Of `count` registers: the k-th number of the i-th changes places with the i-th of the k-th.
  RD_INLINE static void transpose(Lanes* rows) noexcept {
    transpose_blocks<1>(rows);
    transpose_blocks<2>(rows);
    transpose_blocks<4>(rows);
  }
  [[nodiscard]] double operator[](int lane) const noexcept {
    double x[count];
    store(x);
    return x[lane];
  }
  void set(int lane, double value) noexcept {
    double x[count];
    store(x);
    x[lane] = value;
    *this = load(x);
  }

  RD_INLINE Lanes& operator+=(const Lanes& o) noexcept { return *this = *this + o; }
  RD_INLINE Lanes& operator-=(const Lanes& o) noexcept { return *this = *this - o; }
  RD_INLINE Lanes& operator*=(const Lanes& o) noexcept { return *this = *this * o; }
  RD_INLINE Lanes& operator/=(const Lanes& o) noexcept { return *this = *this / o; }
  RD_INLINE friend Lanes operator+(const Lanes& x, const Lanes& y) noexcept {
    return Lanes(x.x_ + y.x_);
  }
  RD_INLINE friend Lanes operator-(const Lanes& x, const Lanes& y) noexcept {
    return Lanes(x.x_ - y.x_);
  }
  RD_INLINE friend Lanes operator*(const Lanes& x, const Lanes& y) noexcept {
    return Lanes(x.x_ * y.x_);
  }
  RD_INLINE friend Lanes operator/(const Lanes& x, const Lanes& y) noexcept {
    return Lanes(x.x_ / y.x_);
  }
  RD_INLINE friend Lanes operator-(const Lanes& x) noexcept { return Lanes(-x.x_); }

  RD_INLINE friend Lanes sqrt(const Lanes& x) noexcept { return Lanes(xsimd::sqrt(x.x_)); }
  RD_INLINE friend Lanes abs(const Lanes& x) noexcept { return Lanes(xsimd::abs(x.x_)); }
  RD_INLINE friend void sincos(const Lanes& x, Lanes& s, Lanes& c) noexcept {
    sincos_many(&x, &s, &c, 1);
  }
  /// As the text for `double` does it, lane by lane.
  RD_INLINE friend void sincos_many(const Lanes* x, Lanes* s, Lanes* c, int n) noexcept {
    const Register limit(sincos_constants::limit);
    auto within = Register(0.0) <= limit;
    for (int i = 0; i < n; ++i) {
      within = within & (xsimd::abs(x[i].x_) <= limit);
      sincos_within(x[i].x_, s[i], c[i]);
    }
    if (!xsimd::all(within)) sincos_beyond(x, s, c, n);
  }
  RD_INLINE friend Lanes safe_ratio(const Lanes& numerator, const Lanes& denominator,
                                    const Lanes& otherwise) noexcept {
    return Lanes(xsimd::select(denominator.x_ == Register(0.0), otherwise.x_,
                               numerator.x_ / denominator.x_));
  }
  /// In every lane?
  RD_INLINE friend bool is_finite(const Lanes& x) noexcept {
    const Register zero(0.0);
    return xsimd::all(x.x_ * zero == zero);
  }
  /// In any lane?
  RD_INLINE friend bool is_negative(const Lanes& x) noexcept {
    return xsimd::any(x.x_ < Register(0.0));
  }
  /// Is x not negligible() in any lane?
  [[nodiscard]] RD_INLINE bool significant(const Lanes& scale) const noexcept {
    return xsimd::all(xsimd::abs(x_) > Register(1e-13) * scale.x_);
  }

 private:
  using Integers = xsimd::batch<std::int64_t, Arch>;
  RD_INLINE explicit Lanes(const Register& x) noexcept : x_(x) {}

  template <std::size_t... lanes>
  [[nodiscard]] RD_INLINE static Lanes gather(const double* const* from, std::ptrdiff_t at,
                                              std::index_sequence<lanes...> /*all*/) noexcept {
    return Lanes(Register{from[lanes][at]...});
  }
  /// Of blocks of stride × stride numbers, each two that lie across the diagonal change places.
  template <int stride>
  RD_INLINE static void transpose_blocks(Lanes* rows) noexcept {
    if constexpr (stride < count)
      for (int i = 0; i < count; ++i)
        if ((i & stride) == 0)
          exchange<stride>(rows[i], rows[i + stride],
                           std::make_index_sequence<static_cast<std::size_t>(count)>());
  }
  /// Of blocks of `stride` numbers, the odd ones of x change places with the even ones of y.
  template <std::size_t stride, std::size_t... k>
  RD_INLINE static void exchange(Lanes& x, Lanes& y, std::index_sequence<k...> /*all*/) noexcept {
    typedef double Vector __attribute__((vector_size(sizeof(Register))));  // NOLINT
    constexpr std::size_t n = sizeof...(k);
    const auto a = same_bits<Vector>(x);
    const auto b = same_bits<Vector>(y);
    x = same_bits<Lanes>(
        __builtin_shufflevector(a, b, ((k & stride) != 0 ? n + k - stride : k)...));
    y = same_bits<Lanes>(
        __builtin_shufflevector(a, b, ((k & stride) != 0 ? n + k : k + stride)...));
  }
  template <class To, class From>
  [[nodiscard]] RD_INLINE static To same_bits(const From& from) noexcept {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(static_cast<void*>(&to), &from, sizeof to);
    return to;
  }
  RD_INLINE static void sincos_within(const Register& x, Lanes& s, Lanes& c) noexcept {
    using namespace sincos_constants;
    const Register t = x * Register(two_over_pi) + Register(round);
    const auto quadrant = same_bits<Integers>(t);
    const Register k = t - Register(round);
    const Register r = ((x - k * Register(part_1)) - k * Register(part_2)) - k * Register(part_3);
    Register sin_r, cos_r;
    sincos_series(r, sin_r, cos_r);
    const auto sin_bits = same_bits<Integers>(sin_r);
    const auto cos_bits = same_bits<Integers>(cos_r);
    const Integers one(1);
    const Integers two(2);
    const Integers odd = Integers(0) - (quadrant & one);  // sine and cosine change places
    const Integers swap = (sin_bits ^ cos_bits) & odd;
    s.x_ = same_bits<Register>(sin_bits ^ swap ^ ((quadrant & two) << 62));
    c.x_ = same_bits<Register>(cos_bits ^ swap ^ (((quadrant + one) & two) << 62));
  }
  /// By the library in the lanes where the angle is beyond the limit, or not finite.
  [[gnu::noinline]] static void sincos_beyond(const Lanes* x, Lanes* s, Lanes* c, int n) noexcept {
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < count; ++k) {
        if (std::abs(x[i][k]) <= sincos_constants::limit) continue;
        double sine = 0.0;
        double cosine = 0.0;
        dynamics_core::sincos(x[i][k], sine, cosine);
        s[i].set(k, sine);
        c[i].set(k, cosine);
      }
    }
  }

  Register x_;
};

template <class Arch>
struct StatusType<Lanes<Arch>> {
  using Type = typename Lanes<Arch>::Statuses;
};

namespace detail {
template <class Arch>
[[nodiscard, gnu::noinline]] typename Lanes<Arch>::Statuses not_finite_lanes(
    const Lanes<Arch>& x) noexcept {
  typename Lanes<Arch>::Statuses status = Status::ok;
  for (int k = 0; k < Lanes<Arch>::count; ++k)
    if (!std::isfinite(x[k])) status.fail(k, Status::not_finite);
  return status;
}
template <class Arch>
[[nodiscard, gnu::noinline]] bool replace_pivots(Lanes<Arch>& x, const Lanes<Arch>& scale,
                                                 typename Lanes<Arch>::Statuses& status,
                                                 Status why) noexcept {
  for (int k = 0; k < Lanes<Arch>::count; ++k) {
    if (!negligible(x[k], scale[k])) continue;
    status.fail(k, why);
    x.set(k, 1.0);
  }
  return !failed(status);
}
}  // namespace detail

template <class S, class Arch>
[[nodiscard]] RD_INLINE StatusOf<S> finite_status(const Lanes<Arch>& x) noexcept {
  return is_finite(x) ? StatusOf<S>(Status::ok) : detail::not_finite_lanes(x);
}

template <class S, class Arch>
[[nodiscard]] RD_INLINE bool keep_pivot(Lanes<Arch>& x, const Lanes<Arch>& scale,
                                        StatusOf<S>& status,
                                        Status why = Status::singular) noexcept {
  return x.significant(scale) || detail::replace_pivots(x, scale, status, why);
}

}  // namespace dynamics_core

namespace Eigen {
template <class Arch>
struct NumTraits<dynamics_core::Lanes<Arch>> : NumTraits<double> {
  using Real = dynamics_core::Lanes<Arch>;
  using NonInteger = Real;
  using Nested = Real;
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
