// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What goes into a controller in each cycle, and what comes out.

#include <cmath>
#include <vector>

#include "dynamics_core/scalar.hpp"

namespace dynamics_core::control {

/// Numbers that live elsewhere, one per joint, or nothing at all. Costs and owns nothing, so that a
/// signal may come and go from cycle to cycle without allocation.
class View {
 public:
  View() = default;  ///< absent
  View(const double* data, Eigen::Index size) noexcept : data_(data), size_(size) {}
  template <int options>
  View(const Eigen::Matrix<double, Eigen::Dynamic, 1, options>& x) noexcept
      : View(x.data(), x.size()) {}
  View(const std::vector<double>& x) noexcept
      : View(x.data(), static_cast<Eigen::Index>(x.size())) {}
  template <int options>
  View(Eigen::Matrix<double, Eigen::Dynamic, 1, options>&&) = delete;  // would dangle
  View(std::vector<double>&&) = delete;                                // would dangle

  [[nodiscard]] bool absent() const noexcept { return size_ == 0; }
  [[nodiscard]] Eigen::Index size() const noexcept { return size_; }
  [[nodiscard]] double operator[](Eigen::Index i) const noexcept { return data_[i]; }
  [[nodiscard]] auto vector() const noexcept {
    return Eigen::Map<const VectorX<double>>(data_, size_);
  }
  /// Of this size, and every element finite.
  [[nodiscard]] bool usable(Eigen::Index size) const noexcept {
    if (size_ != size) return false;
    for (Eigen::Index i = 0; i < size_; ++i)
      if (!std::isfinite(data_[i])) return false;
    return true;
  }
  [[nodiscard]] bool all_nan() const noexcept {
    for (Eigen::Index i = 0; i < size_; ++i)
      if (!std::isnan(data_[i])) return false;
    return true;
  }

 private:
  const double* data_ = nullptr;
  Eigen::Index size_ = 0;
};

/// In the order of Controller::joints().
struct Measurement {
  View position;  ///< rad or m
  View velocity;  ///< rad/s or m/s; absent: estimated from the positions
  /// Positions of Controller::other_joints(); absent, or NaN for a joint: as it was last known.
  View others{};
  bool touched = false;  ///< as by MomentumObserver; Config::reaction follows
};

/// What an observer hears of its joints, in their order.
struct JointSample {
  View position;  ///< rad or m
  View velocity;  ///< rad/s or m/s; absent: estimated from the positions
  View effort;    ///< N·m or N, what the drives gave since the last sample, on average
  /// Positions of the other joints; absent, or NaN for a joint: as it was last known.
  View others{};
  View other_velocities{};  ///< absent, or not finite for a joint: it stands still
};

/// In the order of Controller::joints(). Any part may be absent. A part whose values have all been
/// NaN since activation counts as absent, too: so ros2_control marks what nobody has written.
struct Reference {
  View position;        ///< rad or m; absent: with a velocity the measured one (no position error),
                        ///< else the last one
  View velocity{};      ///< rad/s or m/s; absent: see Config::missing_velocity
  View acceleration{};  ///< rad/s² or m/s²; absent: see Config::missing_acceleration
  bool fresh = true;    ///< new in this cycle; otherwise it is not looked at and the last is kept
};

/// In the order of Controller::joints().
struct Command {
  VectorX<double> effort;    ///< N·m or N, within the limits, finite in every state
  VectorX<double> position;  ///< the reference in use; pass_through sends it to the drive
  VectorX<double> velocity;  ///< likewise
};

}  // namespace dynamics_core::control
