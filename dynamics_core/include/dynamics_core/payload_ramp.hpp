// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Payloads that come and go while the robot moves, without a step in the effort.

#include <vector>

#include "dynamics_core/ramp.hpp"
#include "dynamics_core/tree.hpp"

namespace dynamics_core {

/// Moves the payload of each link from what it is to what it shall be. Mass, first moment and
/// inertia about the link's origin change in proportion, so that every effort, linear in them, runs
/// straight from the old value to the new one, and each payload in between is as physical as the
/// two ends.
class PayloadRamp {
 public:
  /// Room for the links of the model.
  explicit PayloadRamp(std::size_t links);

  /// The payload of a link (index into Model::links) becomes `target` within `duration` seconds;
  /// zero: with the next call of advance().
  [[nodiscard]] Status start(int link, const Payload<double>& target, double duration) noexcept;
  /// Puts the payloads of this moment on the robot. Returns what Tree::set_payload does.
  [[nodiscard]] Status advance(double step, Tree<double>& robot) noexcept;
  /// Are all payloads what they shall be?
  [[nodiscard]] bool done() const noexcept { return moving_ == 0; }
  /// What a link carries now.
  [[nodiscard]] Payload<double> current(int link) const noexcept;

 private:
  struct Load {
    RigidInertia<double> from = RigidInertia<double>::zero();  ///< about the link's origin
    RigidInertia<double> to = RigidInertia<double>::zero();
    Ramp ramp;
    bool moving = false;
    [[nodiscard]] RigidInertia<double> now() const noexcept;
  };
  std::vector<Load> loads_;
  int moving_ = 0;
};

}  // namespace dynamics_core
