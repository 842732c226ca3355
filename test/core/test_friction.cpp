// SPDX-License-Identifier: Apache-2.0
/// Friction with memory, against the closed forms of its equation. The law at a steady speed is in
/// test_simulation.cpp and test_control_laws.cpp.

#include <gtest/gtest.h>

#include <cmath>

#include "dynamics_core/friction.hpp"
#include "dynamics_core/simulation/simulated_robot.hpp"

using namespace dynamics_core;
using Eigen::VectorXd;

namespace {

constexpr double stiffness = 1000.0, coulomb = 2.0, breakaway = 3.0, viscous = 0.5;

Friction<double> bristles() {
  JointFriction<double> f;
  f.viscous = viscous;
  f.coulomb = coulomb;
  f.breakaway = breakaway;
  f.stribeck_velocity = 0.1;
  f.stiffness = stiffness;
  return Friction<double>({f});
}

/// The effort at the end of a step in which the speed stays v.
double step(Friction<double>& friction, double v, double dt) {
  const auto f = friction.linearized(0, v, dt);
  friction.advance(VectorXd::Constant(1, v), dt);
  return f.rest + f.slope * v;
}

TEST(Bristles, TendToTheSteadyFriction) {
  for (const double v : {-2.0, -0.05, 0.05, 0.3}) {
    Friction<double> friction = bristles();
    double effort = 0.0;
    for (int k = 0; k < 10'000; ++k) effort = step(friction, v, 1e-3);
    const double sliding = coulomb + (breakaway - coulomb) * std::exp(-v * v / 0.01);
    EXPECT_NEAR(effort, std::copysign(sliding, v) + viscous * v, 1e-9) << v;
    EXPECT_NEAR(friction.deflection()[0], std::copysign(sliding, v) / stiffness, 1e-12) << v;
  }
}

TEST(Bristles, AreExactAtAConstantSpeedForAnyStep) {
  Friction<double> once = bristles();
  Friction<double> often = bristles();
  (void)step(once, 0.2, 0.01);
  for (int k = 0; k < 100; ++k) (void)step(often, 0.2, 0.0001);
  EXPECT_NEAR(once.deflection()[0], often.deflection()[0], 1e-15);
  EXPECT_GT(once.deflection()[0], 1e-4);
}

TEST(Bristles, AreASpringBeforeTheySlide) {
  Friction<double> friction = bristles();
  double effort = 0.0;
  for (int k = 0; k < 100; ++k) effort = step(friction, 1e-5, 1e-2);  // 10 µrad in all
  EXPECT_NEAR(effort, stiffness * 1e-5, 0.01 * stiffness * 1e-5);
  friction.reset();
  EXPECT_EQ(friction.deflection()[0], 0.0);
}

TEST(Bristles, TakeEnergyInEveryCycle) {
  Friction<double> friction = bristles();
  constexpr double dt = 1e-4;
  double work = 0.0;
  for (int k = 0; k < 20'000; ++k) {
    const double v = 0.02 * std::sin(2.0 * M_PI * k * dt);
    const double power = step(friction, v, dt) * v;
    if (k >= 10'000) work += power * dt;  // from the second cycle on the bristles repeat themselves
  }
  const double viscous_work = viscous * 0.02 * 0.02 / 2.0;
  EXPECT_GT(work, 50.0 * viscous_work);
}

/// Pressed with less than Coulomb's friction a joint gives way like a spring, stays there, and
/// comes back; without the bristles it would creep.
TEST(Bristles, HoldASimulatedJoint) {
  RobotDescription robot;
  robot.links = {{"base", {}},
                 {"wheel", Inertial{1.0, {0, 0, 0}, 0.1 * Eigen::Matrix3d::Identity()}}};
  JointDescription joint;
  joint.name = "axle";
  joint.type = JointType::continuous;
  joint.parent = "base";
  joint.child = "wheel";
  joint.axis = Eigen::Vector3d::UnitZ();
  joint.friction = 2.0;
  joint.damping = 5.0;
  robot.joints = {joint};
  simulation::Mechanics mechanics;
  mechanics.friction_stiffness = stiffness;
  simulation::SimulatedRobot simulated(build_model(robot), {}, mechanics);
  const VectorXd zero = VectorXd::Zero(1);
  ASSERT_EQ(simulated.start(zero, zero), Status::ok);
  for (int k = 0; k < 5000; ++k)
    ASSERT_EQ(simulated.cycle(VectorXd::Constant(1, 1.0), 1e-3), Status::ok);
  const double pressed = simulated.position()[0];
  EXPECT_GT(pressed, 1.0 / stiffness);  // a little further than a spring, as some bristles slid
  EXPECT_LT(pressed, 2.0 / stiffness);
  EXPECT_LT(std::abs(simulated.velocity()[0]), 1e-9);
  for (int k = 0; k < 5000; ++k) ASSERT_EQ(simulated.cycle(zero, 1e-3), Status::ok);
  EXPECT_NEAR(simulated.position()[0], pressed - 1.0 / stiffness, 0.2 / stiffness);
}

TEST(Friction, IsNoNumberWhereTheSpeedIsNone) {
  const Friction<double> friction = bristles();
  for (const double v : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    VectorXd tau = VectorXd::Zero(1);
    EXPECT_EQ(friction.add(VectorXd::Constant(1, v), tau), Status::not_finite) << v;
    tau.setZero();
    EXPECT_EQ(friction.subtract(VectorXd::Constant(1, v), tau), Status::not_finite) << v;
  }
  VectorXd tau = VectorXd::Zero(2);
  EXPECT_EQ(friction.add(VectorXd::Zero(1), tau), Status::wrong_size);
}

}  // namespace
