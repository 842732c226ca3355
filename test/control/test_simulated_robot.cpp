// SPDX-License-Identifier: Apache-2.0
/// The robot that controllers are tried on, against closed forms and the core's own integrators.

#include "dynamics_core/simulation/simulated_robot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "dynamics_core/control/config.hpp"
#include "dynamics_core/families.hpp"
#include "support/allocation_guard.hpp"
#include "support/closed_loop.hpp"

namespace {

using namespace dynamics_core;
using Eigen::VectorXd;
using simulation::Drive;
using simulation::Imperfections;
using simulation::Mechanics;
using simulation::Setpoints;
using simulation::SimulatedRobot;
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
  Dynamics<double> dynamics(model);
  VectorXd weight(model.nv);
  ASSERT_EQ(dynamics.families().newton_euler.gravity(q, weight), Status::ok);
  move(robot, weight, 100);
  EXPECT_LT((robot.position() - q).cwiseAbs().maxCoeff(), 1e-9);
}

TEST(SimulatedRobot, DoesNotAllocate) {
  const Model model = build_model(support::random_arm(3));
  Imperfections all;
  all.position_noise = all.velocity_noise = all.resolution = 1e-4;
  all.delay = 4;
  all.effort_limits.assign(7, 20.0);
  Mechanics mechanics;
  mechanics.joint_stops = true;
  SimulatedRobot robot(model, all, mechanics);
  const VectorXd zero = VectorXd::Zero(7);
  const VectorXd effort = VectorXd::Constant(7, 30.0);
  Setpoints setpoints(7);
  setpoints.drives = {Drive::brake,    Drive::effort,   Drive::velocity, Drive::position,
                      Drive::position, Drive::velocity, Drive::position};
  setpoints.position.setConstant(10.0);  // far away: the loops saturate
  const support::AllocationGuard guard;
  bool good = robot.start(zero, zero) == Status::ok;
  for (int k = 0; k < 100; ++k) good = robot.cycle(effort, dt) == Status::ok && good;
  for (int k = 0; k < 100; ++k) good = robot.cycle(setpoints, dt) == Status::ok && good;
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
  EXPECT_EQ(robot.cycle(Setpoints(2), dt), Status::wrong_size);
  Setpoints unknown(1);
  unknown.position[0] = std::nan("");
  EXPECT_EQ(robot.cycle(unknown, dt), Status::not_finite);
  EXPECT_EQ(robot.start(VectorXd::Zero(2), one(0.0)), Status::wrong_size);
  EXPECT_EQ(robot.start(one(0.0), one(std::nan(""))), Status::not_finite);
  EXPECT_EQ(robot.position()[0], 1.0);
  EXPECT_EQ(robot.velocity()[0], 2.0);
}

// --- drives with loops, brakes -------------------------------------------------------------------

/// A bob of 2 kg on a rod of 0.5 m that hangs at q = 0. The axis is horizontal.
Model pendulum(double lower = -100.0, double upper = 100.0) {
  RobotDescription robot;
  robot.name = "pendulum";
  robot.links = {{"base", std::nullopt}, {"rod", Inertial{}}};
  robot.links[1].inertial->mass = 2.0;
  robot.links[1].inertial->com = {0.0, 0.0, -0.5};
  JointDescription joint;
  joint.name = "pivot";
  joint.type = JointType::revolute;
  joint.parent = "base";
  joint.child = "rod";
  joint.axis = Eigen::Vector3d::UnitY();
  joint.limits = Limits{lower, upper, 100.0, 100.0};
  robot.joints = {joint};
  return build_model(robot);
}
constexpr double pendulum_inertia = 2.0 * 0.5 * 0.5;
double pendulum_weight(double q) { return 2.0 * 9.81 * 0.5 * std::sin(q); }
double pendulum_energy(double q, double v) {
  return 0.5 * pendulum_inertia * v * v + 2.0 * 9.81 * 0.5 * (1.0 - std::cos(q));
}

Setpoints to_all(Drive drive, int n = 1) {
  Setpoints setpoints(n);
  setpoints.drives.assign(static_cast<std::size_t>(n), drive);
  return setpoints;
}

void move(SimulatedRobot& robot, const Setpoints& setpoints, int cycles, int steps = 10) {
  for (int k = 0; k < cycles; ++k) ASSERT_EQ(robot.cycle(setpoints, dt, steps), Status::ok);
}

TEST(SimulatedDrives, BrakesHoldAndTakeNoEffort) {
  const Model model = build_model(support::random_arm(3));
  SimulatedRobot robot(model, {});
  const VectorXd q = support::Random(5).vector_x(7, 1.0);
  ASSERT_EQ(robot.start(q, VectorXd::Zero(7)), Status::ok);
  move(robot, to_all(Drive::brake, 7), 10000);
  EXPECT_EQ(robot.position(), q);
  EXPECT_EQ(robot.velocity().cwiseAbs().maxCoeff(), 0.0);
  EXPECT_EQ(robot.acceleration().cwiseAbs().maxCoeff(), 0.0);
  EXPECT_EQ(robot.effort().cwiseAbs().maxCoeff(), 0.0);
}

TEST(SimulatedDrives, BrakesStopAtOnce) {
  SimulatedRobot robot(wheel(0.1, 0.0, 0.0), {});
  ASSERT_EQ(robot.start(one(0.0), one(5.0)), Status::ok);
  move(robot, to_all(Drive::brake), 1);
  EXPECT_LT(std::abs(robot.velocity()[0]), 1e-15);
  EXPECT_LT(std::abs(robot.position()[0]), 1e-15);
  move(robot, to_all(Drive::brake), 10);
  EXPECT_EQ(robot.velocity()[0], 0.0);
}

/// A braked joint is a locked one for the others.
TEST(SimulatedDrives, TheOtherJointsMoveAsIfABrakedOneWereLocked) {
  const RobotDescription description = support::random_arm(3);
  const VectorXd q = support::Random(5).vector_x(7, 1.0);
  ModelOptions options;
  options.locked[description.joints[2].name] = q[2];
  SimulatedRobot braked(build_model(description), {});
  SimulatedRobot locked(build_model(description, options), {});
  VectorXd rest(6);
  rest << q.head(2), q.tail(4);
  ASSERT_EQ(braked.start(q, VectorXd::Zero(7)), Status::ok);
  ASSERT_EQ(locked.start(rest, VectorXd::Zero(6)), Status::ok);
  Setpoints setpoints(7);
  setpoints.drives[2] = Drive::brake;
  move(braked, setpoints, 300);
  move(locked, VectorXd::Zero(6), 300);
  rest << braked.position().head(2), braked.position().tail(4);
  EXPECT_GT((locked.position() - q.tail(6)).norm(), 0.1);
  EXPECT_LT((locked.position() - rest).cwiseAbs().maxCoeff(), 1e-7);
}

/// Critically damped: q_d (1 − (1 + ω t) e^{−ω t}).
TEST(SimulatedDrives, APositionServoHasItsBandwidth) {
  Mechanics mechanics;
  mechanics.servo_frequency = 5.0;
  SimulatedRobot robot(wheel(0.1, 0.0, 0.0), {}, mechanics);
  ASSERT_EQ(robot.start(one(0.0), one(0.0)), Status::ok);
  Setpoints setpoints = to_all(Drive::position);
  setpoints.position[0] = 0.3;
  for (const double t : {0.03, 0.06, 0.12, 0.5}) {
    ASSERT_EQ(robot.start(one(0.0), one(0.0)), Status::ok);
    move(robot, setpoints, static_cast<int>(std::lround(t / dt)), 100);
    const double wt = 2.0 * M_PI * mechanics.servo_frequency * t;
    EXPECT_NEAR(robot.position()[0], 0.3 * (1.0 - (1.0 + wt) * std::exp(-wt)), 1e-4) << t;
  }
}

TEST(SimulatedDrives, APositionServoGivesWayToTheWeightByTheServosStiffness) {
  SimulatedRobot robot(pendulum(), {});
  ASSERT_EQ(robot.start(one(0.0), one(0.0)), Status::ok);
  Setpoints setpoints = to_all(Drive::position);
  setpoints.position[0] = 1.0;
  move(robot, setpoints, 1000);
  const double q = robot.position()[0];
  const double p = pendulum_inertia * std::pow(2.0 * M_PI * Mechanics{}.servo_frequency, 2);
  EXPECT_NEAR(1.0 - q, pendulum_weight(q) / p, 1e-9);
  EXPECT_NEAR(robot.effort()[0], pendulum_weight(q), 1e-6);
  setpoints.effort[0] = pendulum_weight(1.0);
  move(robot, setpoints, 1000);
  EXPECT_NEAR(robot.position()[0], 1.0, 1e-9);
}

/// Position, velocity and effort together, as a drive gets them from a feed-forward controller.
TEST(SimulatedDrives, WithFeedForwardAServoFollowsWithoutLag) {
  const auto lag = [](bool feedforward) {
    SimulatedRobot robot(pendulum(), {});
    EXPECT_EQ(robot.start(one(0.0), one(0.0)), Status::ok);
    Setpoints setpoints = to_all(Drive::position);
    double worst = 0.0;
    for (int k = 1; k <= 2000; ++k) {
      const double t = dt * k;
      const double q = 1.0 - std::cos(t);
      setpoints.position[0] = q;
      if (feedforward) {
        setpoints.velocity[0] = std::sin(t);
        setpoints.effort[0] = pendulum_inertia * std::cos(t) + pendulum_weight(q);
      }
      EXPECT_EQ(robot.cycle(setpoints, dt), Status::ok);
      worst = std::max(worst, std::abs(robot.position()[0] - q));
    }
    return worst;
  };
  EXPECT_GT(lag(false), 5e-3);  // 2/ω seconds
  EXPECT_LT(lag(true), dt);     // held for a cycle
}

TEST(SimulatedDrives, AVelocityDriveKeepsItsSpeedAgainstTheWeight) {
  SimulatedRobot robot(pendulum(), {});
  ASSERT_EQ(robot.start(one(1.0), one(0.0)), Status::ok);
  Setpoints setpoints = to_all(Drive::velocity);
  move(robot, setpoints, 2000);  // at rest
  EXPECT_NEAR(robot.position()[0], 1.0, 5e-4);
  EXPECT_NEAR(robot.velocity()[0], 0.0, 1e-6);
  const double from = robot.position()[0];
  setpoints.velocity[0] = 0.5;
  move(robot, setpoints, 1000);
  EXPECT_NEAR(robot.velocity()[0], 0.5, 1e-3);
  EXPECT_NEAR(robot.position()[0] - from, 0.5, 1e-3);
}

/// Stiff loops far beyond what an explicit step could bear: ω h = 63.
TEST(SimulatedDrives, ServosAreStableHoweverStiff) {
  const Model model = build_model(support::random_arm(3));
  Mechanics stiff;
  stiff.servo_frequency = 1e4;
  SimulatedRobot robot(model, {}, stiff);
  ASSERT_EQ(robot.start(VectorXd::Zero(7), VectorXd::Zero(7)), Status::ok);
  Setpoints setpoints = to_all(Drive::position, 7);
  setpoints.position.setConstant(0.2);
  move(robot, setpoints, 500, 1);
  EXPECT_LT((robot.position() - setpoints.position).cwiseAbs().maxCoeff(), 1e-6);
}

TEST(SimulatedDrives, TheLimitHoldsForTheSumOfLoopAndFeedForward) {
  Imperfections weak;
  weak.effort_limits = {2.0};
  SimulatedRobot robot(wheel(1.0, 0.0, 0.0), weak);
  ASSERT_EQ(robot.start(one(0.0), one(0.0)), Status::ok);
  Setpoints setpoints = to_all(Drive::position);
  setpoints.position[0] = 1.0;
  setpoints.effort[0] = 1.0;
  move(robot, setpoints, 100);
  EXPECT_EQ(robot.effort()[0], 2.0);
  EXPECT_NEAR(robot.velocity()[0], 2.0 * 0.1, 1e-9);
  EXPECT_EQ(robot.saturated_cycles(), 100U);
  // A drive that was saturated for long has not wound itself up.
  setpoints = to_all(Drive::velocity);
  setpoints.velocity[0] = 5.0;
  move(robot, setpoints, 4000);
  EXPECT_NEAR(robot.velocity()[0], 5.0, 1e-3);
  setpoints.velocity[0] = 0.0;
  move(robot, setpoints, 2600);
  EXPECT_NEAR(robot.velocity()[0], 0.0, 1e-3);
}

TEST(SimulatedDrives, CommandsToLoopsAreDelayedToo) {
  Imperfections late;
  late.delay = 3;
  SimulatedRobot robot(wheel(1.0, 0.0, 0.0), late);
  ASSERT_EQ(robot.start(one(0.0), one(0.0)), Status::ok);
  Setpoints setpoints = to_all(Drive::position);
  setpoints.position[0] = 1.0;
  move(robot, setpoints, 3);
  EXPECT_EQ(robot.position()[0], 0.0);
  move(robot, setpoints, 1);
  EXPECT_GT(robot.position()[0], 0.0);
}

TEST(SimulatedRobot, TellsTheAccelerationOfItsLastStep) {
  SimulatedRobot robot(pendulum(), {});
  ASSERT_EQ(robot.start(one(1.0), one(0.0)), Status::ok);
  EXPECT_EQ(robot.acceleration()[0], 0.0);
  ASSERT_EQ(robot.cycle(one(0.0), 1e-6, 1), Status::ok);
  EXPECT_NEAR(robot.acceleration()[0], -pendulum_weight(1.0) / pendulum_inertia, 1e-9);
}

TEST(SimulatedRobot, LoadsComeWithinTheirTime) {
  SimulatedRobot robot(pendulum(), {});
  ASSERT_EQ(robot.start(one(M_PI / 2), one(0.0)), Status::ok);
  const Payload<double> load{1.0, {0.0, 0.0, -0.5}, Symmetric3<double>::zero()};
  ASSERT_EQ(robot.set_payload(1, load, 0.1), Status::ok);
  Setpoints setpoints = to_all(Drive::position);
  setpoints.position[0] = M_PI / 2;
  move(robot, setpoints, 50);
  EXPECT_NEAR(robot.effort()[0], 2.5 * 9.81 * 0.5, 0.1);
  move(robot, setpoints, 500);
  EXPECT_NEAR(robot.effort()[0], 3.0 * 9.81 * 0.5, 1e-3);
  ASSERT_EQ(robot.set_payload(1, {}, 0.0), Status::ok);
  move(robot, setpoints, 500);
  EXPECT_NEAR(robot.effort()[0], 2.0 * 9.81 * 0.5, 1e-3);
  EXPECT_EQ(robot.set_payload(1, load, -1.0), Status::out_of_range);
  EXPECT_EQ(robot.set_payload(2, load, 0.0), Status::out_of_range);
}

// --- stops ---------------------------------------------------------------------------------------

Mechanics with_stops() {
  Mechanics mechanics;
  mechanics.joint_stops = true;
  return mechanics;
}

/// Falls from nearly upright into its stop at 0.5 rad, which it meets at 5.6 rad/s.
TEST(JointStops, AnArmThatFallsIntoItsStopComesToRestThere) {
  const double stop = 0.5;
  for (const int steps : {1, 2, 10, 100}) {
    SimulatedRobot robot(pendulum(stop, 100.0), {}, with_stops());
    const double from = M_PI - 0.1;
    ASSERT_EQ(robot.start(one(from), one(0.0)), Status::ok);
    double fastest = 0.0;
    double deepest = 0.0;
    double highest_after = -100.0;
    double most = 0.0;
    bool met = false;
    double energy_met = 0.0;
    for (int k = 0; k < 4000; ++k) {
      ASSERT_EQ(robot.cycle(one(0.0), dt, steps), Status::ok);
      const double q = robot.position()[0];
      const double v = robot.velocity()[0];
      fastest = std::max(fastest, std::abs(v));
      deepest = std::max(deepest, stop - q);
      if (!met) energy_met = pendulum_energy(q, v);
      met = met || q < stop;
      if (!met) continue;
      most = std::max(most, pendulum_energy(q, v));
      highest_after = std::max(highest_after, q);
    }
    ASSERT_TRUE(met);
    const double omega = 2.0 * M_PI * with_stops().stop_frequency;
    const double K = pendulum_inertia * omega * omega;
    EXPECT_LE(most, energy_met * (1.0 + 1e-9)) << steps;
    EXPECT_LT(deepest, fastest / (std::exp(1.0) * omega) + pendulum_weight(stop) / K) << steps;
    EXPECT_LT(highest_after, stop + 1e-9) << "it bounces; " << steps;
    EXPECT_NEAR(stop - robot.position()[0], pendulum_weight(stop) / K, 1e-9);
    EXPECT_LT(std::abs(robot.velocity()[0]), 1e-9);
  }
}

TEST(JointStops, ARobotThatRestsExactlyAtItsLimitIsLeftAlone) {
  SimulatedRobot robot(pendulum(0.0, 1.0), {}, with_stops());
  ASSERT_EQ(robot.start(one(0.0), one(0.0)), Status::ok);
  move(robot, one(0.0), 1000);
  EXPECT_EQ(robot.position()[0], 0.0);
  EXPECT_EQ(robot.velocity()[0], 0.0);
}

TEST(JointStops, DoNotHoldWhatLeavesThem) {
  SimulatedRobot free(pendulum(), {});
  SimulatedRobot stopped(pendulum(-1.0, 1.0), {}, with_stops());
  for (SimulatedRobot* robot : {&free, &stopped}) {
    ASSERT_EQ(robot->start(one(1.0), one(0.0)), Status::ok);
    move(*robot, one(0.0), 200);
  }
  EXPECT_EQ(free.position()[0], stopped.position()[0]);
  EXPECT_LT(free.position()[0], 0.9);
}

/// A whole arm flails about and meets all kinds of stops at once.
TEST(JointStops, AnArmFallsIntoRestAmongItsStopsWithoutGainingEnergy) {
  RobotDescription description = support::random_arm(3);
  for (JointDescription& joint : description.joints) {
    joint.limits = Limits{-0.3, 0.4, 10.0, 100.0};
    joint.damping = 0.02;
  }
  const Model model = build_model(description);
  SimulatedRobot robot(model, {}, with_stops());
  const VectorXd zero = VectorXd::Zero(7);
  ASSERT_EQ(robot.start(zero, zero), Status::ok);
  Dynamics<double> dynamics(model);
  const auto energy = [&] {
    EXPECT_EQ(dynamics.kinematics().update(robot.position(), robot.velocity()), Status::ok);
    const auto [kinetic, potential] = dynamics.kinematics().energy();
    return kinetic + potential;
  };
  const double start = energy();
  double most = start;
  double scale = 0.0;
  double deepest = 0.0;
  for (int k = 0; k < 20000; ++k) {
    ASSERT_EQ(robot.cycle(zero, dt), Status::ok);
    const double now = energy();
    most = std::max(most, now);
    scale = std::max(scale, start - now);
    deepest = std::max(deepest, robot.position().maxCoeff() - 0.4);
    deepest = std::max(deepest, -0.3 - robot.position().minCoeff());
  }
  std::printf("fell by %.2f J, at most %.1e J above the start, %.1e rad into a stop\n", scale,
              most - start, deepest);
  EXPECT_GT(scale, 0.1);
  EXPECT_LT(most - start, 1e-4 * scale);
  EXPECT_LT(deepest, 0.02);
  EXPECT_LT(robot.velocity().cwiseAbs().maxCoeff(), 1e-2);
}

TEST(JointStops, DrivesDoNotAimBeyondThem) {
  SimulatedRobot robot(pendulum(-1.0, 1.0), {}, with_stops());
  ASSERT_EQ(robot.start(one(0.0), one(0.0)), Status::ok);
  Setpoints setpoints = to_all(Drive::position);
  setpoints.position[0] = 3.0;
  move(robot, setpoints, 1000);
  EXPECT_NEAR(robot.position()[0], 1.0, 1e-3);
  setpoints = to_all(Drive::velocity);
  setpoints.velocity[0] = -2.0;
  move(robot, setpoints, 3000);  // meets the other stop after a second
  EXPECT_NEAR(robot.position()[0], -1.0, 2e-3);
  setpoints.velocity[0] = 2.0;
  move(robot, setpoints, 100);
  EXPECT_NEAR(robot.position()[0], -0.8, 2e-2);
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

TEST(SimulatedRobot, NamesFrequenciesThatMakeNoSense) {
  for (const double bad : {0.0, -1.0, std::nan("")}) {
    Mechanics servo;
    servo.servo_frequency = bad;
    Mechanics stop;
    stop.stop_frequency = bad;
    for (const Mechanics& mechanics : {servo, stop})
      EXPECT_THROW(SimulatedRobot(wheel(1.0, 0.0, 0.0), {}, mechanics), ConfigError) << bad;
  }
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
  const Model actual = simulation::rescaled(model, factors, {});
  Dynamics<double> ws_expected(expected);
  Dynamics<double> ws_actual(actual);
  VectorXd a(7);
  VectorXd b(7);
  for (int i = 0; i < 20; ++i) {
    const VectorXd q = random.vector_x(7, 3.0);
    const VectorXd v = random.vector_x(7, 2.0);
    const VectorXd qdd = random.vector_x(7, 5.0);
    ASSERT_EQ(ws_expected.families().newton_euler.inverse_dynamics(q, v, qdd, a), Status::ok);
    ASSERT_EQ(ws_actual.families().newton_euler.inverse_dynamics(q, v, qdd, b), Status::ok);
    EXPECT_LT((a - b).norm(), 1e-12 * a.norm());
  }
  for (int i = 0; i < actual.nb(); ++i)
    EXPECT_NEAR(ws_actual.tree().bodies()[i].inertia.m, ws_expected.tree().bodies()[i].inertia.m,
                1e-12);
}

TEST(Rescaled, ScalesFriction) {
  const Model model = wheel(1.0, 0.5, 0.2);
  const Model other = simulation::rescaled(model, {}, {1.5});
  EXPECT_DOUBLE_EQ(other.joints[0].damping, 0.75);
  EXPECT_DOUBLE_EQ(other.joints[0].friction, 0.3);
  EXPECT_EQ(other.links[1].inertial.mass, model.links[1].inertial.mass);
}

TEST(Rescaled, RefusesFactorsThatMakeNoSense) {
  const Model model = wheel(1.0, 0.5, 0.2);
  EXPECT_THROW((void)simulation::rescaled(model, {1.0}, {}), ConfigError);
  EXPECT_THROW((void)simulation::rescaled(model, {1.0, -1.0}, {}), ConfigError);
  EXPECT_THROW((void)simulation::rescaled(model, {}, {std::nan("")}), ConfigError);
}

}  // namespace
