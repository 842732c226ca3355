// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The contract between the algorithms and the scalar types.
///
/// Every algorithm is written once, as a template over its scalar type S. The operations of S give
/// that text its meaning: numbers, several configurations at once, a record of what is computed,
/// derivatives. A scalar type provides
///
/// - a default constructor, construction from `int` and `double` (explicit suffices), copies,
///   `+ − * /` and their assigning forms, the unary minus, all of them between S and S;
/// - `Eigen::NumTraits<S>` of a real type: `Real` and `NonInteger` are S, so that Eigen's vectors
///   hold it;
/// - found by argument-dependent lookup, `sqrt(x)`, `abs(x)`, `sincos(x, s, c)`, and
///   `safe_ratio(numerator, denominator, otherwise)`, which is `otherwise` where the denominator is
///   exactly zero;
/// - found likewise, the judgements: `is_finite(x)`; `negligible(x, scale)`, which is true for NaN;
///   and `is_negative(x)` where S has no `<`.
///
/// It may provide `to_polar` and `sincos_many` where it can do better than the texts below.
///
/// It need not provide anything else: no order, no equality, no conversion to a number or to bool,
/// no largest or smallest value. No algorithm branches on a value but through the judgements, none
/// changes its course by one except to give up, and none passes a value through a hidden `double`.
/// What depends on the robot alone (kinds of joints, sizes, which links there are) is decided by
/// `int` and `bool` outside the scalar type.
///
/// What S computes in place of a number is its own affair, under two conditions. Round-off aside,
/// its operations obey the rules of arithmetic, for the text uses them: 0·x is zero for every
/// finite x, and NaN or zero tells whether a sum of such products had only finite terms. And a type
/// that carries derivatives judges by the value, counts as finite only what is finite together with
/// its derivatives, and lets √0 have the derivative zero where its argument has.
///
/// # Several lanes
///
/// A type of several lanes is several configurations in one call. Its operations work lane by lane,
/// `safe_ratio` included. Judgements have no single answer then, so each lane has a status:
///
/// - `StatusType<S>::Type` is the status of all lanes. It converts from a Status, which is then that
///   of every lane.
/// - `failed(status)` is true if every lane has failed: there is nothing left to compute.
/// - `merged(first, second)` has in each lane the first failure of the two.
/// - `finite_status<S>(x)` has `not_finite` in the lanes where x is not finite.
/// - `keep_pivot<S>(x, scale, status, why)` marks with `why` the lanes where x is negligible or NaN
///   and that have not failed before, puts a number into x there that can be divided by, and says
///   whether a lane is left.
/// - In place of the judgements there are `is_finite(x)`, true if every lane is finite, and
///   `is_negative(x)`, true if any lane is. They are asked of what is set and stays (gravity,
///   payloads, rotors, outer forces): it is refused as a whole if one lane of it is bad.
///   `negligible` is not needed.
///
/// The last two of the status' functions are called with the scalar type given, so that a type's own
/// are templates as well: `template <class S> StatusOf<S> finite_status(const Lanes& x) noexcept`.
///
/// The status of a lane is that of the same call with this lane's arguments alone, and so is every
/// result where it is `ok`. Where it is not, the lane's results hold nothing to be relied on, and so
/// does what a query reads afterwards from what the call left (kinematics, factors, task), until
/// the next call; the object is as good as before. One lane's failure changes nothing in the
/// others. Sizes and indices are the same for all lanes: what is wrong with them is the status of
/// every lane, or a Status where a function has but one.
///
/// # What the contract does not cover
///
/// The closed loops of loops.hpp need an order besides, `<` and `>`: they choose pivots by size and
/// count the independent equations. Lanes cannot serve them, as each lane would want other pivots
/// and another rank, and these are the bounds of loops. Numbers with derivatives can; those of the
/// solution hold as long as the rank does. simulation.hpp and trajectory.hpp go along one time, by
/// which they branch; they are for `double` and `float`.

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dynamics_core/blocks.hpp"
#include "dynamics_core/inline.hpp"
#include "dynamics_core/status.hpp"

namespace dynamics_core {

/// What the library keeps and hands out. How Eigen aligns and allocates depends on the instructions
/// it is compiled for; of these it does not, so that library and program may be compiled for
/// different ones. (Registers of several lanes want more than malloc's alignment; they stay inside.)
template <class S>
inline constexpr int storage = alignof(S) > alignof(std::max_align_t) ? Eigen::AutoAlign
                                                                      : Eigen::DontAlign;
/// Eigen aligns three doubles or floats never, so that these are its own types.
template <class S>
inline constexpr int storage_of_three = sizeof(S) % 16 == 0 ? storage<S> : Eigen::AutoAlign;
template <class S>
using Vec3 = Eigen::Matrix<S, 3, 1, storage_of_three<S>>;
template <class S>
using Mat3 = Eigen::Matrix<S, 3, 3, storage_of_three<S>>;
template <class S>
using Vec6 = Eigen::Matrix<S, 6, 1, storage<S>>;
template <class S>
using Mat6 = Eigen::Matrix<S, 6, 6, storage<S>>;
template <class S>
using VectorX = Eigen::Matrix<S, Eigen::Dynamic, 1, storage<S>>;
template <class S>
using MatrixX = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, storage<S>>;

namespace detail {
template <class T>
struct Identity {
  using Type = T;
};
}  // namespace detail

/// Arguments of the algorithms: any Eigen vector, map or contiguous block of it converts without a
/// copy, Eigen::VectorXd and VectorX<double> alike. No scalar is deduced from them.
template <class S>
using VectorIn =
    const typename detail::Identity<Eigen::Ref<const Eigen::Matrix<S, Eigen::Dynamic, 1>>>::Type&;
template <class S>
using VectorOut = typename detail::Identity<Eigen::Ref<Eigen::Matrix<S, Eigen::Dynamic, 1>>>::Type;
template <class S>
using MatrixIn = const typename detail::Identity<
    Eigen::Ref<const Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>>>::Type&;
template <class S>
using MatrixOut =
    typename detail::Identity<Eigen::Ref<Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>>>::Type;

inline void sincos(double x, double& s, double& c) noexcept { ::sincos(x, &s, &c); }
inline void sincos(float x, float& s, float& c) noexcept { ::sincosf(x, &s, &c); }

/// Sines and cosines of many angles. `n` may be rounded up to a whole number of blocks (blocks.hpp).
template <class S>
void sincos_many(const S* x, S* s, S* c, int n) noexcept {
  for (int i = 0; i < n; ++i) sincos(x[i], s[i], c[i]);
}

/// Sine and cosine on |r| ≤ π/4 by Taylor's series: the next terms are below 5e-17 and 3e-18. Summed
/// in pairs, for Horner's rule would wait for each product.
template <class S>
RD_INLINE void sincos_series(const S& r, S& s, S& c) noexcept {
  const S z = r * r;
  const S z2 = z * z;
  const S z4 = z2 * z2;
  const S sin_low =
      (S(-1.0 / 6.0) + z * S(1.0 / 120.0)) + z2 * (S(-1.0 / 5040.0) + z * S(1.0 / 362880.0));
  const S sin_high =
      (S(-1.0 / 39916800.0) + z * S(1.0 / 6227020800.0)) + z2 * S(-1.0 / 1307674368000.0);
  s = r + r * (z * (sin_low + z4 * sin_high));
  const S cos_low = (S(-0.5) + z * S(1.0 / 24.0)) + z2 * (S(-1.0 / 720.0) + z * S(1.0 / 40320.0));
  const S cos_high = (S(-1.0 / 3628800.0) + z * S(1.0 / 479001600.0)) +
                     z2 * (S(-1.0 / 87178291200.0) + z * S(1.0 / 20922789888000.0));
  c = S(1.0) + z * (cos_low + z4 * cos_high);
}

/// How an angle is brought to |r| ≤ π/4.
namespace sincos_constants {
constexpr double two_over_pi = 0.63661977236758134308;
// π/2 in three parts; the first two leave their low bits free, so that k times a part is exact.
constexpr double part_1 = 0x1.921fb544p+0;
constexpr double part_2 = 0x1.0b4611a6p-34;
constexpr double part_3 = 0x1.3198a2e037073p-69;
constexpr double round = 0x1.8p+52;  // adding it rounds to an integer in the low mantissa bits
constexpr double limit = 1e5;        // beyond it the library takes over
}  // namespace sincos_constants

/// For `double` without a branch, so that the compiler turns the loop into SIMD code: a sixth of
/// the instructions of one library call per joint. Within 1e-15 of the exact values up to
/// |x| = 1e5 (a joint that has turned sixteen thousand times); beyond that the library takes over.
inline void sincos_many(const double* __restrict x, double* __restrict s, double* __restrict c,
                        int n) noexcept {
  using namespace sincos_constants;
  std::int64_t limit_bits = 0;
  std::memcpy(&limit_bits, &limit, sizeof limit);
  std::int64_t beyond = 0;  // negative once an angle is above the limit
  for (int i = 0; i < n; ++i) {
    const double t = x[i] * two_over_pi + round;
    std::int64_t quadrant = 0;
    std::memcpy(&quadrant, &t, sizeof t);
    const double k = t - round;
    const double r = ((x[i] - k * part_1) - k * part_2) - k * part_3;
    double sin_r = 0.0;
    double cos_r = 0.0;
    sincos_series(r, sin_r, cos_r);
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

/// x = r c, y = r s with r ≥ 0; c = 1, s = 0 where both are zero. A type with derivatives has its own
/// text for that point: there r has a kink, and the direction is that in which x and y leave zero.
template <class S>
RD_INLINE void to_polar(const S& x, const S& y, S& r, S& c, S& s) noexcept {
  using std::sqrt;
  r = sqrt(S(x * x + y * y));
  c = safe_ratio(x, r, S(1));
  s = safe_ratio(y, r, S(0));
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
template <class S>
class FiniteSum {
 public:
  /// The last block may overlap the one before it.
  RD_INLINE void add(const S* x, Eigen::Index n) noexcept {
    constexpr Eigen::Index width = block_width<S>;
    if (n < width) {
      for (Eigen::Index k = 0; k < n; ++k) rest_ += x[k] * zero_;
      return;
    }
    Eigen::Index k = 0;
    for (; k < n - 2 * width; k += 2 * width) {
      add_block(x + k, even_);
      add_block(x + k + width, odd_);
    }
    if (k < n - width) add_block(x + k, even_);
    add_block(x + n - width, odd_);
  }
  /// A vector, a matrix or an expression.
  template <class Values>
  RD_INLINE void add(const Values& x) noexcept {
    if constexpr ((Values::Flags & Eigen::DirectAccessBit) != 0)
      if (x.outerStride() == x.rows()) return add(x.data(), x.size());
    for (Eigen::Index j = 0; j < x.cols(); ++j) {
      if constexpr ((Values::Flags & Eigen::DirectAccessBit) != 0)
        add(x.data() + j * x.outerStride(), x.rows());
      else
        for (Eigen::Index i = 0; i < x.rows(); ++i) rest_ += x.coeff(i, j) * zero_;
    }
  }
  [[nodiscard]] RD_INLINE S value() const noexcept {
    return rest_ + sum_of_block<S>(Block<S>(even_ + odd_));
  }

 private:
  RD_INLINE void add_block(const S* x, Block<S>& sum) noexcept {
    Block<S> some;
    load_block<S>(x, some);
    sum += some * zero_;
  }

  S zero_ = S(0);
  S rest_ = S(0);
  Block<S> even_ = Block<S>(Block<S>{} * zero_);  // two, so that a sum need not wait for the last
  Block<S> odd_ = even_;
};

/// The same of one vector or matrix.
template <class S, class Values>
[[nodiscard]] RD_INLINE S zero_if_finite(const Values& x) noexcept {
  FiniteSum<S> sum;
  sum.add(x);
  return sum.value();
}

/// What a result is worth: `ok`, or `not_finite` where it overflowed.
template <class S, class Values>
[[nodiscard]] RD_INLINE StatusOf<S> result_status(const Values& x) noexcept {
  if constexpr (Values::ColsAtCompileTime == 1) {
    // One by one: they were written so a moment ago, and blocks would wait until the cache has them.
    const S zero(0);
    S sum(0);
    for (Eigen::Index k = 0; k < x.size(); ++k) sum += x.coeff(k) * zero;
    return finite_status<S>(sum);
  } else {
    return finite_status<S>(zero_if_finite<S>(x));
  }
}

/// True if no element is NaN or infinite.
template <class S>
[[nodiscard]] bool all_finite(VectorIn<S> x) noexcept {
  return is_finite(zero_if_finite<S>(x));
}

}  // namespace dynamics_core
