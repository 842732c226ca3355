/// The robot that controllers are tried on, against closed forms and the core's own integrators.

#include "dynamics_core/control/simulated_robot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "dynamics_core/control/config.hpp"
#include "dynamics_core/newton_euler.hpp"
#include "support/allocation_guard.hpp"
#include "support/closed_loop.hpp"

namespace {

using namespace dynamics_core;
using control::ConfigError;
using control::Imperfections;
using control::SimulatedRobot;
using Eigen::VectorXd;
using testing::HasSubstr;

constexpr double dt = 1e-3;

/// A wheel of inertia I about a vertical axis.
Model wheel(double inertia, double viscous, double coulomb) {
  RobotDescription robot;
  robot.name = "wheel";
  robot.links = {{"base", std::nullopt}, {"rim", Inertial{}}};
  robot.links[1].inertial->mass = 1.0;
  robot.links[1].inertial->inertia = inertia * Eigen::Matrix3d::Identity();
  JointDescription joint;
  joint.name = "axle";
  joint.type = JointType::continuous;
  joint.parent = "base";
  joint.child = "rim";
  joint.axis = Eigen::Vector3d::UnitZ();
  joint.damping = viscous;
  joint.friction = coulomb;
  robot.joints = {joint};
  return build_model(robot);
}

VectorXd one(double x) { return VectorXd::Constant(1, x); }

/// Moves on and expects that to work.
void move(SimulatedRobot& robot, const VectorXd& effort, int cycles, int steps = 10) {
  for (int k = 0; k < cycles; ++k) ASSERT_EQ(robot.cycle(effort, dt, steps), Status::ok);
}

TEST(SimulatedRobot, ConvergesToWhatRungeKuttaComputes) {
  const Model model = build_model(support::random_arm(3));
  support::Random random(4);
  const VectorXd q = random.vector_x(7, 1.0);
  const VectorXd v = random.vector_x(7, 1.0);
  const VectorXd effort = random.vector_x(7, 5.0);
  support::SimulatedRobot exact(model);
  exact.q = q;
  exact.v = v;
  for (int k = 0; k < 1000; ++k) exact.move(effort, dt / 5.0);
  const auto error = [&](int steps) {
    SimulatedRobot robot(model, {});
    EXPECT_EQ(robot.start(q, v), Status::ok);
    move(robot, effort, 200, steps);
    return (robot.position() - exact.q).norm();
  };
  const double coarse = error(8);
  const double fine = error(32);
  std::printf("after 0.2 s: %.1e rad off with 8 steps a cycle, %.1e with 32\n", coarse, fine);
  EXPECT_NEAR(coarse / fine, 4.0, 0.2);  // a method of order one
}

TEST(SimulatedRobot, ViscousFrictionMakesSpeedDecayExponentially) {
  SimulatedRobot robot(wheel(0.1, 0.5, 0.0), {});
  ASSERT_EQ(robot.start(one(0.0), one(3.0)), Status::ok);
  move(robot, one(0.0), 200);
  EXPECT_NEAR(robot.velocity()[0], 3.0 * std::exp(-0.5 / 0.1 * 0.2), 1e-3);
}

/// A tiny wheel with strong friction: time constant I ε/c = 1 ns, a millionth of the cycle.
TEST(SimulatedRobot, CoulombFrictionHoldsAndDoesNotRattle) {
  SimulatedRobot robot(wheel(1e-6, 0.0, 1.0), {});
  ASSERT_EQ(robot.start(one(0.0), one(0.0)), Status::ok);
  double fastest = 0.0;
  for (int k = 0; k < 1000; ++k) {
    ASSERT_EQ(robot.cycle(one(0.5), dt), Status::ok);
    fastest = std::max(fastest, std::abs(robot.velocity()[0]));
  }
  // v/√(v² + ε²) = 1/2 at v = ε/√3, and it is never exceeded.
  EXPECT_NEAR(robot.velocity()[0], 1e-3 / std::sqrt(3.0), 1e-6);
  EXPECT_LT(fastest, 1.001e-3 / std::sqrt(3.0));
}

TEST(SimulatedRobot, WhatExceedsCoulombFrictionAccelerates) {
  SimulatedRobot robot(wheel(0.1, 0.0, 1.0), {});
  ASSERT_EQ(robot.start(one(0.0), one(0.0)), Status::ok);
  move(robot, one(1.5), 1000);
  EXPECT_NEAR(robot.velocity()[0], 0.5 / 0.1 * 1.0, 0.02);
  move(robot, one(0.0), 1000);  // 0.5 s to brake, then it rests
  EXPECT_LT(std::abs(robot.velocity()[0]), 1e-6);
}

TEST(SimulatedRobot, CommandsArriveAfterTheDelay) {
  Imperfections late;
  late.delay = 3;
  SimulatedRobot robot(wheel(1.0, 0.0, 0.0), late);
  ASSERT_EQ(robot.start(one(0.0), one(0.0)), Status::ok);
  for (int k = 0; k < 10; ++k) {
    ASSERT_EQ(robot.cycle(one(k + 1.0), dt), Status::ok);
    EXPECT_EQ(robot.effort()[0], k < 3 ? 0.0 : k - 2.0) << k;
  }
}

TEST(SimulatedRobot, UntilTheFirstCommandArrivesTheDrivesBearTheWeight) {
  const Model model = build_model(support::random_arm(3));
  Imperfections late;
  late.delay = 100;
  SimulatedRobot robot(model, late);
  const VectorXd q = support::Random(5).vector_x(7, 1.0);
  ASSERT_EQ(robot.start(q, VectorXd::Zero(7)), Status::ok);
  move(robot, VectorXd::Constant(7, 10.0), 100);
  EXPECT_LT((robot.position() - q).cwiseAbs().maxCoeff(), 1e-9);
  move(robot, VectorXd::Constant(7, 10.0), 100);
  EXPECT_GT((robot.position() - q).cwiseAbs().maxCoeff(), 1e-3);
}

TEST(SimulatedRobot, DrivesSaturate) {
  Imperfections weak;
  weak.effort_limits = {2.0};
  SimulatedRobot robot(wheel(1.0, 0.0, 0.0), weak);
  ASSERT_EQ(robot.start(one(0.0), one(0.0)), Status::ok);
  move(robot, one(-5.0), 10);
  EXPECT_EQ(robot.effort()[0], -2.0);
  move(robot, one(1.0), 5);
  EXPECT_EQ(robot.effort()[0], 1.0);
  EXPECT_EQ(robot.saturated_cycles(), 10U);
}

TEST(SimulatedRobot, NoiseHasTheStandardDeviationAskedFor) {
  Imperfections noisy;
  noisy.position_noise = 1e-3;
  noisy.velocity_noise = 2e-2;
  SimulatedRobot robot(wheel(1.0, 0.0, 0.0), noisy);
  ASSERT_EQ(robot.start(one(0.0), one(0.0)), Status::ok);
  double q2 = 0.0;
  double v2 = 0.0;
  constexpr int n = 20000;
  for (int k = 0; k < n; ++k) {
    ASSERT_EQ(robot.cycle(one(0.0), dt, 1), Status::ok);
    q2 += std::pow(robot.measured_position()[0], 2) / n;
    v2 += std::pow(robot.measured_velocity()[0], 2) / n;
  }
  // The sample's deviation has one of 1/√(2n) = 0.5 %.
  EXPECT_NEAR(std::sqrt(q2), 1e-3, 0.025 * 1e-3);
  EXPECT_NEAR(std::sqrt(v2), 2e-2, 0.025 * 2e-2);
  EXPECT_EQ(robot.position()[0], 0.0);
}

TEST(SimulatedRobot, NoiseFollowsItsSeedAndStartsAnew) {
  const auto first = [](std::uint64_t seed, bool restart) {
    Imperfections noisy;
    noisy.position_noise = 1.0;
    noisy.seed = seed;
    SimulatedRobot robot(wheel(1.0, 0.0, 0.0), noisy);
    EXPECT_EQ(robot.start(one(0.0), one(0.0)), Status::ok);
    if (restart) {
      move(robot, one(0.0), 7);
      EXPECT_EQ(robot.start(one(0.0), one(0.0)), Status::ok);
    }
    return robot.measured_position()[0];
  };
  EXPECT_EQ(first(1, false), first(1, false));
  EXPECT_EQ(first(1, false), first(1, true));
  EXPECT_NE(first(1, false), first(2, false));
}

TEST(SimulatedRobot, PositionsComeInSteps) {
  Imperfections coarse;
  coarse.resolution = 0.25;
  SimulatedRobot robot(wheel(1.0, 0.0, 0.0), coarse);
  ASSERT_EQ(robot.start(one(0.3), one(0.0)), Status::ok);
  EXPECT_EQ(robot.measured_position()[0], 0.25);
  EXPECT_EQ(robot.position()[0], 0.3);
  ASSERT_EQ(robot.start(one(-0.4), one(0.0)), Status::ok);
  EXPECT_EQ(robot.measured_position()[0], -0.5);
}

TEST(SimulatedRobot, MimicJointsMoveAlong) {
  support::RandomOptions options;
  options.mimic = 0.4;
  const Model model = build_model(support::Random(11).robot(options));
  ASSERT_FALSE(model.mimics.empty());
  for (const JointInfo& joint : model.joints) ASSERT_EQ(joint.nv, 1);
  SimulatedRobot robot(model, {});
  const VectorXd q = support::Random(12).vector_x(model.nq, 0.5);
  ASSERT_EQ(robot.start(q, VectorXd::Zero(model.nv)), Status::ok);
  Workspace<double> ws(model);
  VectorXd weight(model.nv);
  ASSERT_EQ(newton_euler::gravity<double>(ws, q, weight), Status::ok);
  move(robot, weight, 100);
  EXPECT_LT((robot.position() - q).cwiseAbs().maxCoeff(), 1e-9);
}

TEST(SimulatedRobot, DoesNotAllocate) {
  const Model model = build_model(support::random_arm(3));
  Imperfections all;
  all.position_noise = all.velocity_noise = all.resolution = 1e-4;
  all.delay = 4;
  all.effort_limits.assign(7, 20.0);
  SimulatedRobot robot(model, all);
  const VectorXd zero = VectorXd::Zero(7);
  const VectorXd effort = VectorXd::Constant(7, 30.0);
  const support::AllocationGuard guard;
  bool good = robot.start(zero, zero) == Status::ok;
  for (int k = 0; k < 100; ++k) good = robot.cycle(effort, dt) == Status::ok && good;
  EXPECT_EQ(guard.count(), 0);
  EXPECT_TRUE(good);
}

TEST(SimulatedRobot, RefusesBadArgumentsAndStays) {
  SimulatedRobot robot(wheel(1.0, 0.0, 0.0), {});
  ASSERT_EQ(robot.start(one(1.0), one(2.0)), Status::ok);
  EXPECT_EQ(robot.cycle(VectorXd::Zero(2), dt), Status::wrong_size);
  EXPECT_EQ(robot.cycle(one(std::nan("")), dt), Status::not_finite);
  EXPECT_EQ(robot.cycle(one(0.0), 0.0), Status::out_of_range);
  EXPECT_EQ(robot.cycle(one(0.0), dt, 0), Status::out_of_range);
  EXPECT_EQ(robot.start(VectorXd::Zero(2), one(0.0)), Status::wrong_size);
  EXPECT_EQ(robot.start(one(0.0), one(std::nan(""))), Status::not_finite);
  EXPECT_EQ(robot.position()[0], 1.0);
  EXPECT_EQ(robot.velocity()[0], 2.0);
}

template <class Change>
std::string complaint(Change change) {
  Imperfections x;
  change(x);
  try {
    const SimulatedRobot robot(wheel(1.0, 0.0, 0.0), x);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(SimulatedRobot, NamesImperfectionsThatMakeNoSense) {
  EXPECT_THAT(complaint([](auto& x) { x.position_noise = -1.0; }), HasSubstr("position_noise"));
  EXPECT_THAT(complaint([](auto& x) { x.velocity_noise = std::nan(""); }),
              HasSubstr("velocity_noise"));
  EXPECT_THAT(complaint([](auto& x) { x.resolution = -0.1; }), HasSubstr("resolution"));
  EXPECT_THAT(complaint([](auto& x) { x.delay = -1; }), HasSubstr("delay"));
  EXPECT_THAT(complaint([](auto& x) { x.effort_limits = {1.0, 1.0}; }), HasSubstr("list of 2"));
  EXPECT_THAT(complaint([](auto& x) { x.effort_limits = {0.0}; }), HasSubstr("above zero"));
  EXPECT_EQ(complaint([](auto&) {}), "");
}

TEST(SimulatedRobot, RefusesJointsWithoutADriveForEachMotion) {
  RobotDescription robot = support::random_arm(3);
  robot.joints[0].type = JointType::floating;
  try {
    const SimulatedRobot floats(build_model(robot), {});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr(robot.joints[0].name));
  }
}

// --- rescaled ------------------------------------------------------------------------------------

/// The same as a description with those masses.
TEST(Rescaled, EqualsARobotDescribedWithThoseMasses) {
  RobotDescription robot = support::random_arm(8);
  const Model model = build_model(robot);
  support::Random random(9);
  std::vector<double> factors;
  for (auto& link : robot.links) {
    factors.push_back(1.0 + 0.1 * static_cast<double>(factors.size()));
    if (!link.inertial) continue;
    link.inertial->mass *= factors.back();
    link.inertial->inertia *= factors.back();
  }
  const Model expected = build_model(robot);
  const Model actual = control::rescaled(model, factors, {});
  Workspace<double> ws_expected(expected);
  Workspace<double> ws_actual(actual);
  VectorXd a(7);
  VectorXd b(7);
  for (int i = 0; i < 20; ++i) {
    const VectorXd q = random.vector_x(7, 3.0);
    const VectorXd v = random.vector_x(7, 2.0);
    const VectorXd qdd = random.vector_x(7, 5.0);
    ASSERT_EQ(newton_euler::inverse_dynamics<double>(ws_expected, q, v, qdd, a), Status::ok);
    ASSERT_EQ(newton_euler::inverse_dynamics<double>(ws_actual, q, v, qdd, b), Status::ok);
    EXPECT_LT((a - b).norm(), 1e-12 * a.norm());
  }
  for (std::size_t i = 0; i < actual.bodies.size(); ++i)
    EXPECT_NEAR(actual.bodies[i].inertia.m, expected.bodies[i].inertia.m, 1e-12);
}

TEST(Rescaled, ScalesFriction) {
  const Model model = wheel(1.0, 0.5, 0.2);
  const Model other = control::rescaled(model, {}, {1.5});
  EXPECT_DOUBLE_EQ(other.joints[0].damping, 0.75);
  EXPECT_DOUBLE_EQ(other.joints[0].friction, 0.3);
  EXPECT_EQ(other.links[1].inertial.mass, model.links[1].inertial.mass);
}

TEST(Rescaled, RefusesFactorsThatMakeNoSense) {
  const Model model = wheel(1.0, 0.5, 0.2);
  EXPECT_THROW((void)control::rescaled(model, {1.0}, {}), ConfigError);
  EXPECT_THROW((void)control::rescaled(model, {1.0, -1.0}, {}), ConfigError);
  EXPECT_THROW((void)control::rescaled(model, {}, {std::nan("")}), ConfigError);
}

}  // namespace
