#pragma once

/// What an algorithm may ask of its scalar type. Each algorithm is one text; `double`, `float`, a
/// SIMD batch or a counting scalar give that text its meaning. A new scalar type provides, found by
/// argument-dependent lookup: `sincos(x, s, c)`, `sqrt`, `is_finite`, `safe_ratio` and
/// `negligible`.

#include <Eigen/Core>
#include <cmath>

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

/// Arguments of the algorithms. The scalar is deduced from the workspace alone, so that any Eigen
/// vector, map or contiguous block of it converts without a copy.
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

/// Is the pivot x lost in the round-off of quantities as large as `scale`? A few hundred units in
/// the last place of the scalar type. True for NaN.
[[nodiscard]] inline bool negligible(double x, double scale) noexcept {
  return !(std::abs(x) > 1e-13 * scale);
}
[[nodiscard]] inline bool negligible(float x, float scale) noexcept {
  return !(std::abs(x) > 1e-7F * scale);
}

/// True if no element is NaN or infinite. x·0 is zero for finite x and NaN otherwise, so one sum
/// needs no branch per element.
template <class S>
[[nodiscard]] bool all_finite(const Eigen::Ref<const VectorX<S>>& x) noexcept {
  S sum(0);
  for (Eigen::Index i = 0; i < x.size(); ++i) sum += x[i] * S(0);
  return is_finite(sum);
}

}  // namespace dynamics_core
