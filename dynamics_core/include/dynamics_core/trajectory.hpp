// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Joint trajectories: position, velocity and acceleration at any time. Construction may allocate
/// and throws std::invalid_argument (read_waypoints: ModelError); `evaluate` is real-time safe.
/// Before its start and after its end a trajectory stands still.

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "dynamics_core/scalar.hpp"
#include "dynamics_core/status.hpp"

namespace dynamics_core::trajectory {

namespace detail {

template <class S>
[[nodiscard]] Status check(const S& t, Eigen::Index n, VectorOut<S> q, VectorOut<S> v,
                           VectorOut<S> a) noexcept {
  if (q.size() != n || v.size() != n || a.size() != n) return Status::wrong_size;
  return is_finite(t) ? Status::ok : Status::not_finite;
}

}  // namespace detail

// --- Cycloid -------------------------------------------------------------------------------------

/// From rest to rest along a cycloid: q = q₀ + (q_T − q₀)/2π · [2πt/T − sin(2πt/T)]
/// (Saha 2001, Eq. 18, for any start and goal).
template <class S>
class Cycloid {
 public:
  Cycloid(const VectorX<S>& start, const VectorX<S>& goal, const S& duration)
      : start_(start), way_(goal - start), duration_(duration) {
    if (!(duration > S(0)))
      throw std::invalid_argument("a trajectory's duration has to be positive");
  }

  [[nodiscard]] const S& duration() const noexcept { return duration_; }

  [[nodiscard]] Status evaluate(const S& t, VectorOut<S> q, VectorOut<S> v,
                                VectorOut<S> a) const noexcept {
    if (const Status s = detail::check<S>(t, start_.size(), q, v, a); s != Status::ok) return s;
    const S time = std::min(std::max(t, S(0)), duration_);
    const S rate = S(6.28318530717958647692) / duration_;
    const S angle = rate * time;
    S sine;
    S cosine;
    sincos(angle, sine, cosine);
    q = start_ + way_ * ((angle - sine) / S(6.28318530717958647692));
    v = way_ * ((S(1) - cosine) / duration_);
    a = way_ * (rate * sine / duration_);
    return Status::ok;
  }

 private:
  VectorX<S> start_, way_;
  S duration_;
};

// --- Splines -------------------------------------------------------------------------------------

enum class Degree {
  cubic,    ///< smooth up to the acceleration
  quintic,  ///< smooth up to the fourth derivative
};

enum class Ends {
  clamped,  ///< no velocity at both ends (quintic: no acceleration either)
  natural,  ///< no acceleration at both ends (quintic: no third and fourth derivative, which takes
            ///< three waypoints)
};

/// Waypoints: rows of positions and the times at which to be there.
struct Waypoints {
  std::vector<std::string> joints;  ///< names of the columns, where the source has them
  VectorX<double> times;            ///< s, rising
  MatrixX<double> positions;        ///< a row for each time, a column for each joint
};

/// Reads comma-separated values: a line for each waypoint, the time first. A first line that is not
/// numbers names the columns. Empty lines and lines that begin with # are left out.
[[nodiscard]] Waypoints read_waypoints(const std::string& text, const std::string& source = "");

template <class S>
class Spline {
 public:
  using Row = Eigen::Matrix<S, 1, Eigen::Dynamic>;

  /// The smoothest curve of its degree through the waypoints.
  static Spline through(const VectorX<S>& times, const MatrixX<S>& positions,
                        Degree degree = Degree::quintic, Ends ends = Ends::clamped);

  /// One polynomial of degree five from rest to rest.
  static Spline quintic(const VectorX<S>& start, const VectorX<S>& goal, const S& duration) {
    VectorX<S> times(2);
    times << S(0), duration;
    MatrixX<S> positions(2, start.size());
    if (goal.size() != start.size())
      throw std::invalid_argument("a trajectory's start and goal differ in size");
    positions << start.transpose(), goal.transpose();
    return through(times, positions, Degree::quintic, Ends::clamped);
  }

  [[nodiscard]] const S& start_time() const noexcept { return times_[0]; }
  [[nodiscard]] const S& end_time() const noexcept { return times_[times_.size() - 1]; }

  [[nodiscard]] Status evaluate(const S& t, VectorOut<S> q, VectorOut<S> v,
                                VectorOut<S> a) const noexcept {
    const Eigen::Index n = coefficients_.cols();
    if (const Status s = detail::check<S>(t, n, q, v, a); s != Status::ok) return s;
    const Eigen::Index k = segment(t);
    const S x = std::min(std::max(t, start_time()), end_time()) - times_[k];
    const auto c = coefficients_.middleRows(6 * k, 6);
    for (Eigen::Index j = 0; j < n; ++j) {  // Horner's scheme
      q[j] = c(0, j) + x * (c(1, j) + x * (c(2, j) + x * (c(3, j) + x * (c(4, j) + x * c(5, j)))));
      v[j] = c(1, j) + x * (S(2) * c(2, j) +
                            x * (S(3) * c(3, j) + x * (S(4) * c(4, j) + x * (S(5) * c(5, j)))));
      a[j] = S(2) * c(2, j) + x * (S(6) * c(3, j) + x * (S(12) * c(4, j) + x * (S(20) * c(5, j))));
    }
    if (t < start_time() || t > end_time()) {
      v.setZero();
      a.setZero();
    }
    return Status::ok;
  }

 private:
  /// The last segment that has begun at t, by bisection.
  [[nodiscard]] Eigen::Index segment(const S& t) const noexcept {
    const S* first = times_.data();
    const S* last = first + times_.size() - 1;
    return std::max<Eigen::Index>(std::upper_bound(first, last, t) - first, 1) - 1;
  }

  void set_cubic(Ends ends, const MatrixX<S>& p);
  void set_quintic(Ends ends, const MatrixX<S>& p);

  VectorX<S> times_;
  MatrixX<S> coefficients_;  ///< six rows for each segment, rising powers of the time in it
};

template <class S>
Spline<S> Spline<S>::through(const VectorX<S>& times, const MatrixX<S>& positions, Degree degree,
                             Ends ends) {
  if (times.size() < 2 || positions.rows() != times.size())
    throw std::invalid_argument("a spline needs two waypoints or more, and a time for each");
  if (times.size() < 3 && degree == Degree::quintic && ends == Ends::natural)
    throw std::invalid_argument("a natural quintic spline needs three waypoints or more");
  for (Eigen::Index i = 0; i + 1 < times.size(); ++i) {
    if (!(times[i] < times[i + 1]))
      throw std::invalid_argument("the times of the waypoints do not rise");
  }
  for (Eigen::Index j = 0; j < positions.cols(); ++j) {
    if (!all_finite<S>(positions.col(j)))
      throw std::invalid_argument("a waypoint holds a number that is not finite");
  }
  if (!all_finite<S>(times)) throw std::invalid_argument("a waypoint's time is not finite");
  Spline spline;
  spline.times_ = times;
  spline.coefficients_ = MatrixX<S>::Zero(6 * (times.size() - 1), positions.cols());
  degree == Degree::cubic ? spline.set_cubic(ends, positions) : spline.set_quintic(ends, positions);
  return spline;
}

/// The velocities v at the waypoints make the acceleration continuous: a tridiagonal system,
/// diagonally dominant, so that elimination needs no pivots.
template <class S>
void Spline<S>::set_cubic(Ends ends, const MatrixX<S>& p) {
  const Eigen::Index last = p.rows() - 1;
  VectorX<S> diagonal(last + 1);
  VectorX<S> upper(last + 1);
  MatrixX<S> v(last + 1, p.cols());
  for (Eigen::Index i = 0; i <= last; ++i) {
    S lower(0);
    diagonal[i] = upper[i] = S(0);
    v.row(i).setZero();
    if (ends == Ends::clamped && (i == 0 || i == last)) {
      diagonal[i] = S(1);
    } else {
      if (i > 0) {  // the acceleration at the end of the segment before
        const S h = times_[i] - times_[i - 1];
        lower = S(1) / h;
        diagonal[i] += S(2) / h;
        v.row(i) += S(3) / (h * h) * (p.row(i) - p.row(i - 1));
      }
      if (i < last) {  // and at the start of the next
        const S h = times_[i + 1] - times_[i];
        upper[i] = S(1) / h;
        diagonal[i] += S(2) / h;
        v.row(i) += S(3) / (h * h) * (p.row(i + 1) - p.row(i));
      }
    }
    if (i > 0) {
      const S ratio = lower / diagonal[i - 1];
      diagonal[i] -= ratio * upper[i - 1];
      v.row(i) -= ratio * v.row(i - 1);
    }
  }
  for (Eigen::Index i = last; i >= 0; --i) {
    if (i < last) v.row(i) -= upper[i] * v.row(i + 1);
    v.row(i) /= diagonal[i];
  }
  for (Eigen::Index i = 0; i < last; ++i) {
    const S h = times_[i + 1] - times_[i];
    const Row mean = (p.row(i + 1) - p.row(i)) / h;
    coefficients_.row(6 * i) = p.row(i);
    coefficients_.row(6 * i + 1) = v.row(i);
    coefficients_.row(6 * i + 2) = (S(3) * mean - S(2) * v.row(i) - v.row(i + 1)) / h;
    coefficients_.row(6 * i + 3) = (v.row(i) + v.row(i + 1) - S(2) * mean) / (h * h);
  }
}

/// The velocities and accelerations at the waypoints make the third and fourth derivatives
/// continuous: a tridiagonal system of 2 × 2 blocks.
template <class S>
void Spline<S>::set_quintic(Ends ends, const MatrixX<S>& p) {
  using Block = Eigen::Matrix<S, 2, 2>;
  using Rows = Eigen::Matrix<S, 2, Eigen::Dynamic>;
  const Eigen::Index last = p.rows() - 1;
  std::vector<Block> inverse(static_cast<std::size_t>(last) + 1);
  std::vector<Block> upper(static_cast<std::size_t>(last) + 1);
  std::vector<Rows> x(static_cast<std::size_t>(last) + 1);  // velocity and acceleration
  for (Eigen::Index i = 0; i <= last; ++i) {
    const auto k = static_cast<std::size_t>(i);
    Block lower = Block::Zero();
    Block diagonal = Block::Zero();
    upper[k].setZero();
    x[k] = Rows::Zero(2, p.cols());
    if (ends == Ends::clamped && (i == 0 || i == last)) {
      diagonal.setIdentity();
    } else {
      // Derivatives at the start of the next segment less those at the end of the one before.
      if (i > 0) {
        const S r = S(1) / (times_[i] - times_[i - 1]);
        const S r2 = r * r;
        lower << S(24) * r2, S(3) * r, S(168) * r2 * r, S(24) * r2;
        diagonal(0, 0) += S(36) * r2;
        diagonal(0, 1) -= S(9) * r;
        diagonal(1, 0) += S(192) * r2 * r;
        diagonal(1, 1) -= S(36) * r2;
        const Row d = p.row(i) - p.row(i - 1);
        x[k].row(0) += S(60) * r2 * r * d;
        x[k].row(1) += S(360) * r2 * r2 * d;
      }
      if (i < last) {
        const S r = S(1) / (times_[i + 1] - times_[i]);
        const S r2 = r * r;
        upper[k] << -S(24) * r2, S(3) * r, S(168) * r2 * r, -S(24) * r2;
        diagonal(0, 0) -= S(36) * r2;
        diagonal(0, 1) -= S(9) * r;
        diagonal(1, 0) += S(192) * r2 * r;
        diagonal(1, 1) += S(36) * r2;
        const Row d = p.row(i + 1) - p.row(i);
        x[k].row(0) -= S(60) * r2 * r * d;
        x[k].row(1) += S(360) * r2 * r2 * d;
      }
    }
    if (i > 0) {
      const Block ratio = lower * inverse[k - 1];
      diagonal -= ratio * upper[k - 1];
      x[k] -= ratio * x[k - 1];
    }
    const S determinant = diagonal(0, 0) * diagonal(1, 1) - diagonal(0, 1) * diagonal(1, 0);
    inverse[k] << diagonal(1, 1), -diagonal(0, 1), -diagonal(1, 0), diagonal(0, 0);
    inverse[k] /= determinant;
  }
  for (std::size_t k = x.size(); k-- > 0;) {
    if (k + 1 < x.size()) x[k] -= upper[k] * x[k + 1];
    x[k] = (inverse[k] * x[k]).eval();
  }
  for (Eigen::Index i = 0; i < last; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const S h = times_[i + 1] - times_[i];
    const Row d = (p.row(i + 1) - p.row(i)) / (h * h * h);
    const Row v0 = x[k].row(0) / (h * h);
    const Row v1 = x[k + 1].row(0) / (h * h);
    const Row a0 = x[k].row(1) / h;
    const Row a1 = x[k + 1].row(1) / h;
    auto c = coefficients_.middleRows(6 * i, 6);
    c.row(0) = p.row(i);
    c.row(1) = x[k].row(0);
    c.row(2) = S(0.5) * x[k].row(1);
    c.row(3) = S(10) * d - S(6) * v0 - S(4) * v1 - S(1.5) * a0 + S(0.5) * a1;
    c.row(4) = (S(-15) * d + S(8) * v0 + S(7) * v1 + S(1.5) * a0 - a1) / h;
    c.row(5) = (S(6) * d - S(3) * (v0 + v1) - S(0.5) * (a0 - a1)) / (h * h);
  }
}

}  // namespace dynamics_core::trajectory
