// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A simulated robot under a controller: the effort of a cycle holds until the next one.

#include <gtest/gtest.h>

#include "dynamics_core/control/controller.hpp"
#include "dynamics_core/simulation/integrators.hpp"
#include "support/random_model.hpp"

namespace support {

/// A random serial arm of revolute joints.
inline dynamics_core::RobotDescription random_arm(unsigned seed, int joints = 7,
                                                  bool rotors = false) {
  Random random(seed);
  RandomOptions options;
  options.joints = joints;
  options.rotors = rotors;
  dynamics_core::RobotDescription robot = random.robot(options);
  for (auto& joint : robot.joints) {
    joint.type = dynamics_core::JointType::revolute;
    joint.limits->effort = 1e4;
  }
  return robot;
}

/// The robot itself, of which the controller's model may know less.
class SimulatedRobot {
 public:
  explicit SimulatedRobot(const dynamics_core::Model& model)
      : dynamics(model),
        q(model.neutral()),
        v(Eigen::VectorXd::Zero(model.nv)),
        friction_(model),
        step_(dynamics) {}
  SimulatedRobot(const SimulatedRobot&) = delete;
  SimulatedRobot& operator=(const SimulatedRobot&) = delete;

  void set_friction(bool on) { rubs_ = on; }
  /// By Runge–Kutta of order four.
  void move(const Eigen::VectorXd& effort, double dt) {
    using dynamics_core::Status;
    const auto hold = [&effort](double, const auto&, const auto&, auto&& tau) { tau = effort; };
    dynamics_core::simulation::Plant<double, decltype(hold)> plant(dynamics, hold);
    if (rubs_) plant.set_friction(&friction_);
    ASSERT_EQ(step_.runge_kutta4(plant, 0.0, dt, q, v), Status::ok);
  }

  dynamics_core::Dynamics<double> dynamics;
  Eigen::VectorXd q, v;

 private:
  dynamics_core::Friction<double> friction_;
  dynamics_core::simulation::FixedStep<double> step_;
  bool rubs_ = false;
};

}  // namespace support
