// SPDX-License-Identifier: Apache-2.0
/// The laws in a closed loop with a simulated robot at 1 kHz.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "dynamics_core/families.hpp"
#include "dynamics_core/trajectory.hpp"
#include "support/closed_loop.hpp"

namespace {

using namespace dynamics_core;
using namespace dynamics_core::control;
using Eigen::VectorXd;
using support::SimulatedRobot;

constexpr double dt = 1e-3;

/// Tracking errors along a cycloid from rest to rest.
struct Errors {
  double rms = 0.0, peak = 0.0, last = 0.0;
};

struct Tracking {
  const Model& plant;
  const Model& model;
  Config config;
  VectorXd start_error = VectorXd::Zero(7);
  double period = dt;
  bool friction = false;

  [[nodiscard]] Errors operator()() const {
    support::Random random(99);
    const VectorXd start = random.vector_x(7, 1.0);
    const VectorXd goal = random.vector_x(7, 1.0);
    const trajectory::Cycloid<double> path(start, goal, 2.0);
    SimulatedRobot robot(plant);
    robot.set_friction(friction);
    robot.q = start + start_error;
    Controller controller(model, config);
    const Command& command = controller.command();
    EXPECT_EQ(controller.activate({robot.q, robot.v}), ControllerState::holding_position);
    VectorXd q(7), v(7), a(7);
    Errors errors;
    const int cycles = static_cast<int>(std::lround(3.0 / period));
    for (int k = 0; k < cycles; ++k) {
      EXPECT_EQ(path.evaluate(k * period, q, v, a), Status::ok);
      EXPECT_EQ(controller.update({robot.q, robot.v}, {q, v, a}, period), ControllerState::running);
      const double e = controller.position_error().squaredNorm() / 7.0;
      errors.rms += e / cycles;
      errors.peak = std::max(errors.peak, controller.position_error().cwiseAbs().maxCoeff());
      errors.last = controller.position_error().cwiseAbs().maxCoeff();
      robot.move(command.effort, period);
    }
    errors.rms = std::sqrt(errors.rms);
    return errors;
  }
};

Config with(Mode mode, Compensation compensation, const Gains& gains) {
  Config config;
  config.mode = mode;
  config.compensation = compensation;
  config.gains = {gains};
  config.soft_start = 0.0;
  return config;
}

/// PD gains by the size of the inertia that each joint moves.
std::vector<Gains> pd_gains(const Model& model, double frequency) {
  Dynamics<double> dynamics(model);
  Eigen::MatrixXd M(model.nv, model.nv);
  EXPECT_EQ(dynamics.families().composite_body.mass_matrix(model.neutral(), M), Status::ok);
  std::vector<Gains> gains;
  for (int j = 0; j < model.nv; ++j)
    gains.push_back({M(j, j) * frequency * frequency, 2.0 * M(j, j) * frequency});
  return gains;
}

Model arm(bool friction = false) {
  RobotDescription robot = support::random_arm(21);
  for (auto& joint : robot.joints) {
    joint.damping = friction ? 1.0 : 0.0;
    joint.friction = friction ? 0.5 : 0.0;
  }
  return build_model(robot);
}

RobotDescription heavier(double factor) {
  RobotDescription robot = support::random_arm(21);
  for (auto& link : robot.links) {
    link.inertial->mass *= factor;
    link.inertial->inertia *= factor;
  }
  return robot;
}

TEST(ClosedLoop, FeedforwardOfAnExactModelLeavesTheDiscretisationError) {
  const Model model = arm();
  Config config = with(Mode::feedforward, Compensation::full, {});
  config.gains = pd_gains(model, 20.0);
  Tracking run{model, model, config};
  const Errors coarse = run();
  run.period = dt / 4.0;
  const Errors fine = run();
  std::printf("feed-forward, exact model: peak %.2e rad at 1 kHz, %.2e at 4 kHz\n", coarse.peak,
              fine.peak);
  // The held effort is half a period late: an error of first order in the period.
  EXPECT_NEAR(coarse.peak / fine.peak, 4.0, 0.4);
  EXPECT_LT(coarse.peak, 1e-3);
}

TEST(ClosedLoop, EachBitOfTheModelHelps) {
  const Model model = arm(true);
  const auto rms = [&](Compensation compensation) {
    Config config = with(Mode::feedforward, compensation, {});
    config.gains = pd_gains(model, 20.0);
    Tracking run{model, model, config};
    run.friction = true;
    return run().rms;
  };
  const double pd = rms(Compensation::none);
  const double gravity = rms(Compensation::gravity);
  const double full = rms(Compensation::full);
  std::printf("RMS error, exact model: PD %.2e, with gravity %.2e, with feed-forward %.2e rad\n",
              pd, gravity, full);
  EXPECT_LT(gravity, pd / 2.0);
  EXPECT_LT(full, gravity / 2.0);
  EXPECT_LT(full, pd / 50.0);
}

TEST(ClosedLoop, FeedforwardStandsAMassErrorOfTenPercent) {
  const Model plant = arm();
  const Model model = build_model(heavier(1.1));
  Config config = with(Mode::feedforward, Compensation::none, {});
  config.gains = pd_gains(plant, 20.0);
  const double pd = Tracking{plant, model, config}().rms;
  config.compensation = Compensation::full;
  const double full = Tracking{plant, model, config}().rms;
  std::printf("RMS error, masses 10 %% wrong: PD %.2e, with feed-forward %.2e rad\n", pd, full);
  EXPECT_LT(full, pd / 8.0);
}

/// e¨ + d ė + p e = 0 in every joint, whatever the robot's coupling: critically damped here.
TEST(ClosedLoop, ComputedTorqueConvergesAsALinearEquation) {
  const Model model = arm();
  const VectorXd error = support::Random(5).vector_x(7, 0.3);
  Config config = with(Mode::computed_torque, Compensation::full, {100.0, 20.0});
  SimulatedRobot robot(model);
  robot.q = error;
  Controller controller(model, config);
  const Command& command = controller.command();
  const VectorXd zero = VectorXd::Zero(7);
  ASSERT_EQ(controller.activate({robot.q, robot.v}), ControllerState::holding_position);
  double worst = 0.0;
  for (int k = 0; k < 1500; ++k) {
    const double t = k * dt;
    ASSERT_EQ(controller.update({robot.q, robot.v}, {zero}, dt), ControllerState::running);
    const VectorXd expected = error * (1.0 + 10.0 * t) * std::exp(-10.0 * t);
    worst = std::max(worst, (robot.q - expected).cwiseAbs().maxCoeff());
    robot.move(command.effort, dt);
  }
  std::printf("computed torque: at most %.1e rad off the linear equation\n", worst);
  EXPECT_LT(worst, 0.3 * 10.0 * dt);  // an effort that is late by a period
  EXPECT_LT(robot.q.cwiseAbs().maxCoeff(), 1e-5);
}

TEST(ClosedLoop, TheIntegralRemovesWhatTheModelGetsWrong) {
  const Model model = arm();
  const Model plant = build_model(heavier(1.1));
  Config config = with(Mode::computed_torque, Compensation::full, {100.0, 20.0});
  const auto final_error = [&](double i) {
    config.gains[0].i = i;
    SimulatedRobot robot(plant);
    Controller controller(model, config);
    const Command& command = controller.command();
    EXPECT_EQ(controller.activate({robot.q, robot.v}), ControllerState::holding_position);
    const VectorXd zero = VectorXd::Zero(7);
    for (int k = 0; k < 10000; ++k) {
      EXPECT_EQ(controller.update({robot.q, robot.v}, {zero}, dt), ControllerState::running);
      robot.move(command.effort, dt);
    }
    return robot.q.cwiseAbs().maxCoeff();
  };
  const double without = final_error(0.0);
  const double with_integral = final_error(200.0);
  std::printf("masses 10 %% wrong, at rest: %.1e rad, with integral %.1e rad\n", without,
              with_integral);
  EXPECT_GT(without, 1e-2);
  EXPECT_LT(with_integral, 1e-6);
}

/// V = ½ sᵀ M s falls at the rate sᵀ K s, and with s the error dies out.
TEST(ClosedLoop, PassivityLosesEnergyAllTheWay) {
  const Model model = arm();
  Config config = with(Mode::passivity, Compensation::full, {8.0, 10.0});
  const trajectory::Cycloid<double> path(VectorXd::Zero(7), VectorXd::Constant(7, 1.5), 1.0);
  SimulatedRobot robot(model);
  robot.q = support::Random(6).vector_x(7, 0.3);
  Controller controller(model, config);
  const Command& command = controller.command();
  Dynamics<double> dynamics(model);
  Eigen::MatrixXd M(7, 7);
  VectorXd q(7), v(7), a(7), s(7);
  ASSERT_EQ(controller.activate({robot.q, robot.v}), ControllerState::holding_position);
  double last = 0.0;
  double first = 0.0;
  double dissipated = 0.0;
  const double period = dt / 10.0;  // the energy balance is that of continuous time
  for (int k = 0; k < 50000; ++k) {
    ASSERT_EQ(path.evaluate(k * period, q, v, a), Status::ok);
    ASSERT_EQ(controller.update({robot.q, robot.v}, {q, v, a}, period), ControllerState::running);
    ASSERT_EQ(dynamics.families().composite_body.mass_matrix(robot.q, M), Status::ok);
    s = controller.velocity_error() + 8.0 * controller.position_error();
    const double V = 0.5 * s.dot(M * s);
    if (k == 0) {
      first = V;
    } else if (V > 1e-6 * first) {
      ASSERT_LT(V, last) << "at " << k * period;
      ASSERT_NEAR(first - V, dissipated, 0.01 * first);
    }
    dissipated += 10.0 * s.squaredNorm() * period;
    last = V;
    robot.move(command.effort, period);
  }
  std::printf("passivity: |e| %.1e rad after 5 s, V %.1e of its start\n",
              controller.position_error().cwiseAbs().maxCoeff(), last / first);
  EXPECT_LT(controller.position_error().cwiseAbs().maxCoeff(), 1e-6);
}

TEST(ClosedLoop, GravityCompensationHoldsAnArmThatIsLetGo) {
  double worst = 0.0;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = build_model(support::random_arm(seed, 7, seed % 2 == 0));
    SimulatedRobot robot(model);
    robot.q = support::Random(seed + 50).vector_x(7, 3.0);
    const VectorXd start = robot.q;
    Config config;
    config.mode = Mode::gravity_compensation;
    config.soft_start = 0.0;
    Controller controller(model, config);
    const Command& command = controller.command();
    ASSERT_EQ(controller.activate({robot.q, robot.v}), ControllerState::holding_position);
    for (int k = 0; k < 10000; ++k) {
      ASSERT_EQ(controller.update({robot.q, robot.v}, {}, dt), ControllerState::running);
      robot.move(command.effort, dt);
    }
    worst = std::max(worst, (robot.q - start).cwiseAbs().maxCoeff());
  }
  std::printf("gravity compensation: drift of at most %.1e rad in 10 s\n", worst);
  EXPECT_LT(worst, 1e-6);
}

/// A load is picked up in flight: known to the controller, it comes in without a jolt.
TEST(ClosedLoop, AnAnnouncedLoadIsCarriedWithoutAJolt) {
  const Model model = arm();
  const int hand = model.find_link("link_7");
  const Payload<double> load = {3.0, {0.05, 0.02, 0.0}, {0.01, 0.0, 0.0, 0.01, 0.0, 0.01}};
  Config config = with(Mode::feedforward, Compensation::full, {});
  config.gains = pd_gains(model, 20.0);
  SimulatedRobot robot(model);
  PayloadRamp grip(model.links.size());  // the hand takes the load over in the same time
  Controller controller(model, config);
  const Command& command = controller.command();
  ASSERT_EQ(controller.activate({robot.q, robot.v}), ControllerState::holding_position);
  const VectorXd zero = VectorXd::Zero(7);
  ASSERT_EQ(controller.update({robot.q, robot.v}, {zero}, dt), ControllerState::running);
  const VectorXd before = command.effort;
  VectorXd last = before;
  double largest_step = 0.0;
  double worst = 0.0;
  for (int k = 0; k < 1000; ++k) {
    if (k == 100) {
      ASSERT_EQ(controller.set_payload(hand, load, 0.5), Status::ok);
      ASSERT_EQ(grip.start(hand, load, 0.5), Status::ok);
    }
    ASSERT_EQ(grip.advance(dt, robot.dynamics.tree()), Status::ok);
    ASSERT_EQ(controller.update({robot.q, robot.v}, {zero}, dt), ControllerState::running);
    largest_step = std::max(largest_step, (command.effort - last).cwiseAbs().maxCoeff());
    worst = std::max(worst, controller.position_error().cwiseAbs().maxCoeff());
    last = command.effort;
    robot.move(command.effort, dt);
  }
  const double change = (last - before).cwiseAbs().maxCoeff();
  EXPECT_GT(change, 1.0);
  EXPECT_LT(largest_step, 1.01 * change * 1.5 * dt / 0.5);
  EXPECT_LT(worst, 1e-6);
}

TEST(ClosedLoop, AWeakDriveIsReported) {
  const Model model = arm();
  Config config = with(Mode::computed_torque, Compensation::full, {100.0, 20.0, 50.0});
  config.effort_limits = {1e4, 1.0, 1e4, 1e4, 1e4, 1e4, 1e4};
  config.effort_rate_limits = {1e9, 1e9, 20.0, 1e9, 1e9, 1e9, 1e9};
  Controller controller(model, config);
  SimulatedRobot robot(model);
  const Command& command = controller.command();
  ASSERT_EQ(controller.activate({robot.q, robot.v}), ControllerState::holding_position);
  const VectorXd goal = VectorXd::Constant(7, 0.5);
  VectorXd last = VectorXd::Zero(7);
  for (int k = 0; k < 200; ++k) {
    ASSERT_EQ(controller.update({robot.q, robot.v}, {goal}, dt), ControllerState::running);
    ASSERT_LE(std::abs(command.effort[1]), 1.0);
    ASSERT_LE(std::abs(command.effort[2] - last[2]), 20.0 * dt + 1e-12);
    last = command.effort;
    robot.move(command.effort, dt);
  }
  for (std::size_t j = 0; j < 7; ++j) {
    EXPECT_EQ(controller.limits()[j].effort_limited_cycles > 0, j == 1) << j;
    EXPECT_EQ(controller.limits()[j].rate_limited_cycles > 0, j == 2) << j;
  }
}

/// The measured velocity is not needed.
TEST(ClosedLoop, TracksWithAnEstimatedVelocity) {
  const Model model = arm();
  Config config = with(Mode::feedforward, Compensation::full, {});
  config.gains = pd_gains(model, 20.0);
  config.velocity_cutoff = 200.0;
  SimulatedRobot robot(model);
  Controller controller(model, config);
  const Command& command = controller.command();
  const trajectory::Cycloid<double> path(VectorXd::Zero(7), VectorXd::Constant(7, 1.0), 2.0);
  VectorXd q(7), v(7), a(7);
  ASSERT_EQ(controller.activate({robot.q, {}}), ControllerState::holding_position);
  double worst = 0.0;
  for (int k = 0; k < 3000; ++k) {
    ASSERT_EQ(path.evaluate(k * dt, q, v, a), Status::ok);
    ASSERT_EQ(controller.update({robot.q, {}}, {q, v, a}, dt), ControllerState::running);
    worst = std::max(worst, controller.position_error().cwiseAbs().maxCoeff());
    robot.move(command.effort, dt);
  }
  std::printf("estimated velocity: peak %.1e rad\n", worst);
  EXPECT_LT(worst, 5e-3);
  EXPECT_LT(controller.position_error().cwiseAbs().maxCoeff(), 1e-5);
}

}  // namespace
