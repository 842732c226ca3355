#pragma once

/// The contract between the algorithms and the scalar types.
///
/// Every algorithm is written once, as a template over its scalar type S. The operations of S give
/// that text its meaning: numbers, several configurations at once, a record of what is computed,
/// derivatives. A scalar type provides
///
/// - construction from a number, copies, `+ − * /` and their assigning forms, the unary minus;
/// - `Eigen::NumTraits`, so that Eigen's vectors hold it;
/// - found by argument-dependent lookup: `sqrt(x)`, `abs(x)`, `sincos(x, s, c)` and
///   `safe_ratio(numerator, denominator, otherwise)`;
/// - the judgements `is_finite(x)` and `negligible(x, scale)`, and `is_negative(x)` where it has no
///   order.
///
/// No algorithm branches on a value but through these, and none has a hidden `double`. (The closed
/// loops of loops.hpp choose pivots by size and are the exception: they need an ordered type.)
///
/// A type of several lanes has no single answer to a judgement. It provides, in place of the two
/// judgements, a status for each lane: `StatusType<S>`, constructible from a Status, with
/// `failed(status)` (true if all lanes failed) and `merged(first, second)`; and overloads of
/// `finite_status` and `keep_pivot`, which marks the lanes that are lost and puts something
/// harmless into them. One lane's failure changes nothing in the others.

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "dynamics_core/status.hpp"

/// For the small functions of the recursions. Left to itself the compiler stops inlining in large
/// translation units, and every vector then travels through memory: a fifth more instructions.
#if defined(__GNUC__)
#define RD_INLINE [[gnu::always_inline]] inline
/// After a switch that treats every kind.
#define RD_UNREACHABLE() __builtin_unreachable()
#else
#define RD_INLINE inline
#define RD_UNREACHABLE() std::abort()
#endif

namespace dynamics_core {

template <class S>
using Vec3 = Eigen::Matrix<S, 3, 1>;
template <class S>
using Mat3 = Eigen::Matrix<S, 3, 3>;
template <class S>
using Vec6 = Eigen::Matrix<S, 6, 1>;
template <class S>
using Mat6 = Eigen::Matrix<S, 6, 6>;
template <class S>
using VectorX = Eigen::Matrix<S, Eigen::Dynamic, 1>;
template <class S>
using MatrixX = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;

namespace detail {
template <class T>
struct Identity {
  using Type = T;
};
}  // namespace detail

/// Arguments of the algorithms: any Eigen vector, map or contiguous block of it converts without a
/// copy. No scalar is deduced from them.
template <class S>
using VectorIn = const typename detail::Identity<Eigen::Ref<const VectorX<S>>>::Type&;
template <class S>
using VectorOut = typename detail::Identity<Eigen::Ref<VectorX<S>>>::Type;
template <class S>
using MatrixIn = const typename detail::Identity<Eigen::Ref<const MatrixX<S>>>::Type&;
template <class S>
using MatrixOut = typename detail::Identity<Eigen::Ref<MatrixX<S>>>::Type;

inline void sincos(double x, double& s, double& c) noexcept { ::sincos(x, &s, &c); }
inline void sincos(float x, float& s, float& c) noexcept { ::sincosf(x, &s, &c); }

/// Sines and cosines of many angles. `n` may be rounded up to a multiple of `sincos_block`.
constexpr int sincos_block = 4;

template <class S>
void sincos_many(const S* x, S* s, S* c, int n) noexcept {
  for (int i = 0; i < n; ++i) sincos(x[i], s[i], c[i]);
}

/// For `double` without a branch, so that the compiler turns the loop into SIMD code: a sixth of
/// the instructions of one library call per joint. Within 1e-15 of the exact values up to
/// |x| = 1e5 (a joint that has turned sixteen thousand times); beyond that the library takes over.
inline void sincos_many(const double* __restrict x, double* __restrict s, double* __restrict c,
                        int n) noexcept {
  constexpr double two_over_pi = 0.63661977236758134308;
  // π/2 in three parts; the first two leave their low bits free, so that k times a part is exact.
  constexpr double part_1 = 0x1.921fb544p+0;
  constexpr double part_2 = 0x1.0b4611a6p-34;
  constexpr double part_3 = 0x1.3198a2e037073p-69;
  constexpr double round = 0x1.8p+52;  // adding it rounds to an integer in the low mantissa bits
  constexpr double limit = 1e5;
  std::int64_t limit_bits = 0;
  std::memcpy(&limit_bits, &limit, sizeof limit);
  std::int64_t beyond = 0;  // negative once an angle is above the limit
  for (int i = 0; i < n; ++i) {
    const double t = x[i] * two_over_pi + round;
    std::int64_t quadrant = 0;
    std::memcpy(&quadrant, &t, sizeof t);
    const double k = t - round;
    const double r = ((x[i] - k * part_1) - k * part_2) - k * part_3;
    const double z = r * r;
    // Taylor's series on |r| ≤ π/4: the next terms are below 5e-17 and 3e-18.
    double sin_r = -1.0 / 1307674368000.0;
    sin_r = sin_r * z + 1.0 / 6227020800.0;
    sin_r = sin_r * z - 1.0 / 39916800.0;
    sin_r = sin_r * z + 1.0 / 362880.0;
    sin_r = sin_r * z - 1.0 / 5040.0;
    sin_r = sin_r * z + 1.0 / 120.0;
    sin_r = sin_r * z - 1.0 / 6.0;
    sin_r = r + r * (z * sin_r);
    double cos_r = 1.0 / 20922789888000.0;
    cos_r = cos_r * z - 1.0 / 87178291200.0;
    cos_r = cos_r * z + 1.0 / 479001600.0;
    cos_r = cos_r * z - 1.0 / 3628800.0;
    cos_r = cos_r * z + 1.0 / 40320.0;
    cos_r = cos_r * z - 1.0 / 720.0;
    cos_r = cos_r * z + 1.0 / 24.0;
    cos_r = cos_r * z - 0.5;
    cos_r = 1.0 + z * cos_r;
    std::int64_t sin_bits = 0;
    std::int64_t cos_bits = 0;
    std::memcpy(&sin_bits, &sin_r, sizeof sin_r);
    std::memcpy(&cos_bits, &cos_r, sizeof cos_r);
    const std::int64_t odd = -(quadrant & 1);  // all ones: sine and cosine change places
    const std::int64_t swap = (sin_bits ^ cos_bits) & odd;
    sin_bits ^= swap ^ ((quadrant & 2) << 62);
    cos_bits ^= swap ^ (((quadrant + 1) & 2) << 62);
    std::memcpy(s + i, &sin_bits, sizeof sin_bits);
    std::memcpy(c + i, &cos_bits, sizeof cos_bits);
    const double size = std::abs(x[i]);
    std::int64_t size_bits = 0;
    std::memcpy(&size_bits, &size, sizeof size);
    beyond |= limit_bits - size_bits;
  }
  if (beyond < 0)
    for (int i = 0; i < n; ++i) sincos(x[i], s[i], c[i]);
}

[[nodiscard]] inline bool is_finite(double x) noexcept { return std::isfinite(x); }
[[nodiscard]] inline bool is_finite(float x) noexcept { return std::isfinite(x); }

/// numerator / denominator, or `otherwise` where the denominator is exactly zero.
[[nodiscard]] inline double safe_ratio(double numerator, double denominator,
                                       double otherwise) noexcept {
  return denominator == 0.0 ? otherwise : numerator / denominator;
}
[[nodiscard]] inline float safe_ratio(float numerator, float denominator,
                                      float otherwise) noexcept {
  return denominator == 0.0F ? otherwise : numerator / denominator;
}

/// Is x below zero, in any lane? For what is set from outside, not for algorithms.
template <class S>
[[nodiscard]] bool is_negative(const S& x) noexcept {
  return x < S(0);
}

/// Is the pivot x lost in the round-off of quantities as large as `scale`? A few hundred units in
/// the last place of the scalar type. True for NaN.
[[nodiscard]] inline bool negligible(double x, double scale) noexcept {
  return !(std::abs(x) > 1e-13 * scale);
}
[[nodiscard]] inline bool negligible(float x, float scale) noexcept {
  return !(std::abs(x) > 1e-7F * scale);
}

// --- Status by scalar ----------------------------------------------------------------------------

/// What an algorithm returns for the scalar S: one Status, or one for each lane.
template <class S>
struct StatusType {
  using Type = Status;
};
template <class S>
using StatusOf = typename StatusType<S>::Type;

/// Is there nothing left to compute?
[[nodiscard]] constexpr bool failed(Status status) noexcept { return status != Status::ok; }

/// The first failure of the two.
[[nodiscard]] constexpr Status merged(Status first, Status second) noexcept {
  return failed(first) ? first : second;
}

/// `not_finite` where x is.
template <class S>
[[nodiscard]] StatusOf<S> finite_status(const S& x) noexcept {
  return is_finite(x) ? Status::ok : Status::not_finite;
}

/// May the algorithm divide by x, a quantity among others as large as `scale`? Where it is lost in
/// their round-off, `status` becomes `why`. False if there is nothing left to compute.
template <class S>
[[nodiscard]] RD_INLINE bool keep_pivot(S& x, const S& scale, StatusOf<S>& status,
                                        Status why = Status::singular) noexcept {
  if (!negligible(x, scale)) return true;
  status = why;
  return false;
}

/// Zero if all elements are finite, NaN otherwise: x·0 is zero for finite x, so that one sum needs
/// no branch per element.
template <class S, class Values>
[[nodiscard]] RD_INLINE S zero_if_finite(const Values& x) noexcept {
  const S zero(0);
  S sum(0);
  for (Eigen::Index j = 0; j < x.cols(); ++j)
    for (Eigen::Index i = 0; i < x.rows(); ++i) sum += x.coeff(i, j) * zero;
  return sum;
}

/// What a result is worth: `ok`, or `not_finite` where it overflowed.
template <class S, class Values>
[[nodiscard]] RD_INLINE StatusOf<S> result_status(const Values& x) noexcept {
  return finite_status<S>(zero_if_finite<S>(x));
}

/// True if no element is NaN or infinite.
template <class S>
[[nodiscard]] bool all_finite(const Eigen::Ref<const VectorX<S>>& x) noexcept {
  return is_finite(zero_if_finite<S>(x));
}

}  // namespace dynamics_core
