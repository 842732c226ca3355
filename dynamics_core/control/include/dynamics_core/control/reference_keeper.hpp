// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <limits>
#include <vector>

#include "dynamics_core/control/config.hpp"
#include "dynamics_core/control/derivative.hpp"
#include "dynamics_core/control/signals.hpp"
#include "dynamics_core/control/state.hpp"

namespace dynamics_core::control {

/// What a reference may ask of a joint.
struct Reach {
  double lower = -std::numeric_limits<double>::infinity();  ///< rad or m
  double upper = std::numeric_limits<double>::infinity();
  double speed = std::numeric_limits<double>::infinity();  ///< rad/s or m/s
};
/// The joint's limits, where it has any, and a share of them more.
[[nodiscard]] Reach reach(const Limits& limits, double margin) noexcept;

/// Holds the reference that the law uses: takes over what is new and usable, completes what is
/// missing, and comes to rest when nothing has come for too long.
class ReferenceKeeper {
 public:
  /// `reaches` has an element for each joint.
  ReferenceKeeper(const Config& config, std::vector<Reach> reaches, const std::vector<bool>& wraps);

  /// At rest at q, as if no reference had ever come.
  template <class Values>
  void restart(const Values& q) noexcept {
    for (Eigen::Index i = 0; i < position_.size(); ++i) position_[i] = q[i];
    rest();
    seen_position_ = seen_velocity_ = seen_acceleration_ = false;
  }

  /// One cycle, `step` seconds after the last; counts bad references and timeouts.
  void update(const Reference& reference, double step, EventCounts& counts) noexcept;

  /// With a velocity and no position given, the reference goes with the measured position.
  void follow(const VectorX<double>& q) noexcept {
    if (follows_) position_ = q;
  }

  /// False before the first reference and after the timeout.
  [[nodiscard]] bool alive() const noexcept { return alive_; }
  [[nodiscard]] const VectorX<double>& position() const noexcept { return position_; }
  [[nodiscard]] const VectorX<double>& velocity() const noexcept { return velocity_; }
  [[nodiscard]] const VectorX<double>& acceleration() const noexcept { return acceleration_; }

 private:
  enum class Part { absent, given, bad };

  [[nodiscard]] Part classify(const View& values, bool seen) const noexcept;
  [[nodiscard]] bool within_reach(const View& positions, const View& velocities) const noexcept;
  [[nodiscard]] bool take(const Reference& reference, EventCounts& counts) noexcept;
  void rest() noexcept;

  Missing missing_velocity_, missing_acceleration_;
  double timeout_;
  std::vector<Reach> reaches_;
  VectorX<double> position_, velocity_, acceleration_;
  Derivative position_rate_, velocity_rate_;
  double age_ = 0.0;
  bool alive_ = false;
  bool follows_ = false;
  bool seen_position_ = false, seen_velocity_ = false, seen_acceleration_ = false;
};

}  // namespace dynamics_core::control
