// SPDX-License-Identifier: Apache-2.0
/// Motions to identify a robot by: within its limits, and good for what they are for.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "dynamics_core/config_error.hpp"
#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/identification/excitation.hpp"
#include "dynamics_core/identification/identify.hpp"
#include "dynamics_core/identification/urdf_edit.hpp"
#include "dynamics_core/load.hpp"
#include "dynamics_core/regressor.hpp"
#include "dynamics_core/simulation/simulated_robot.hpp"

namespace {

using namespace dynamics_core;
using namespace dynamics_core::identification;

const std::string panda = RD_SOURCE_DIR "/config/robots/panda.urdf";

TEST(Excite, StaysWithinTheLimitsAndStartsAndEndsAtRest) {
  const Model model = load_urdf(panda);
  ExcitationOptions options;
  options.tries = 20;
  options.share = 0.7;
  const Excitation motion = excite(model, options);
  Dynamics<double> robot(model);
  VectorX<double> q, v, a, tau(model.nv), before, v_before;
  constexpr double h = 1e-4;
  for (double t = 0.0; t <= motion.duration; t += 0.013) {
    motion.at(t, q, v, a);
    ASSERT_EQ(robot.inverse_dynamics(q, v, a, tau), Status::ok);
    for (const JointInfo& joint : model.joints) {
      EXPECT_GT(q[joint.v], joint.limits.lower);
      EXPECT_LT(q[joint.v], joint.limits.upper);
      EXPECT_LT(std::abs(v[joint.v]), 0.71 * joint.limits.velocity);
      EXPECT_LT(std::abs(tau[joint.v]), 0.71 * joint.limits.effort);
    }
    // v and a are the derivatives of q and v.
    motion.at(t + h, before, v_before, tau);
    EXPECT_LT((before - q - h * v - 0.5 * h * h * a).norm(), 1e-9);
    EXPECT_LT((v_before - v - h * a).norm(), 1e-5);
  }
  for (const double t : {0.0, motion.duration}) {
    motion.at(t, q, v, a);
    EXPECT_EQ(v.norm(), 0.0);
    EXPECT_EQ(a.norm(), 0.0);
    EXPECT_EQ((q - motion.rest).norm(), 0.0);
  }
}

TEST(Excite, KeepsItsLimitsAtEachSampleHoweverFastTheHarmonics) {
  const Model model = load_urdf(panda);
  Dynamics<double> robot(model);
  ExcitationOptions options;
  options.tries = 2;
  options.duration = 6.0;
  options.step = 1e-3;
  for (const double period : {10.0, 1.0, 0.1}) {
    options.period = period;
    options.harmonics = 10;
    const Excitation motion = excite(model, options);
    VectorX<double> q, v, a, tau(model.nv);
    for (double t = 0.0; t <= motion.duration; t += options.step) {
      motion.at(t, q, v, a);
      ASSERT_EQ(robot.inverse_dynamics(q, v, a, tau), Status::ok);
      for (const JointInfo& joint : model.joints) {
        ASSERT_LE(std::abs(a[joint.v]), options.acceleration) << period;
        ASSERT_LE(std::abs(v[joint.v]), options.share * joint.limits.velocity) << period;
        ASSERT_LE(std::abs(tau[joint.v]), options.share * joint.limits.effort) << period;
      }
    }
  }
}

TEST(Excite, LeavesJointsWithoutRangeOrVelocityAtRestAndRefusesIfAllAreSo) {
  Model model = load_urdf(panda);
  model.joints[1].limits.velocity = 0.0;
  model.joints[3].limits.upper = model.joints[3].limits.lower;
  ExcitationOptions options;
  options.tries = 3;
  const Excitation motion = excite(model, options);
  EXPECT_EQ(motion.still, (std::vector<std::string>{model.joints[1].name, model.joints[3].name}));
  EXPECT_TRUE(std::isfinite(motion.condition));
  VectorX<double> q, v, a;
  motion.at(7.3, q, v, a);
  for (int j = 0; j < model.nv; ++j) EXPECT_EQ(v[j] == 0.0, j == 1 || j == 3);
  for (JointInfo& joint : model.joints) joint.limits.velocity = 0.0;
  EXPECT_THROW((void)excite(model, options), ConfigError);
}

TEST(Excite, RefusesWhereHoldingTheRobotTakesMoreThanItsShare) {
  Model model = load_urdf(panda);
  for (JointInfo& joint : model.joints) joint.limits.effort = 1e-3;
  ExcitationOptions options;
  options.tries = 1;
  EXPECT_THROW((void)excite(model, options), ConfigError);
}

TEST(Excite, GetsBetterTheLongerItSearches) {
  const Model model = load_urdf(panda);
  ExcitationOptions options;
  options.tries = 1;
  const double first = excite(model, options).condition;
  options.tries = 100;
  EXPECT_LT(excite(model, options).condition, first);
}

TEST(Excite, RefusesAMotionWithoutTime) {
  ExcitationOptions options;
  options.duration = 1.0;
  EXPECT_THROW((void)excite(load_urdf(panda), options), ConfigError);
}

/// excite → the simulated robot under PD control → identify → feed-forward with what was found.
TEST(Excite, ClosesTheLoopInSimulation) {
  const Model truth = load_urdf(panda);
  std::vector<double> factors;
  for (std::size_t i = 0; i < truth.links.size(); ++i) factors.push_back(i % 2 == 0 ? 1.15 : 0.85);
  const Model believed = simulation::rescaled(truth, factors, std::vector<double>(7, 0.0));
  ExcitationOptions options;
  options.tries = 30;
  options.duration = 20.0;
  const Excitation motion = excite(believed, options);

  constexpr double period = 2e-3;
  // Gains as stiff as 20 rad/s for the inertia that each joint moves while the others give way.
  Eigen::MatrixXd inverse(7, 7);
  Dynamics<double> scale(believed);
  ASSERT_EQ(scale.inverse_mass_matrix(motion.rest, inverse), Status::ok);
  const Eigen::VectorXd p = 400.0 * inverse.diagonal().cwiseInverse();
  const Eigen::VectorXd d = 40.0 * inverse.diagonal().cwiseInverse();
  /// Follows the motion with PD and a model's efforts; logs it; returns the RMS error of tracking.
  const auto follow = [&](const Excitation& path, const Model& model, const Drives* drives,
                          Log& log) {
    simulation::Imperfections imperfections;
    imperfections.position_noise = 1e-5;
    imperfections.resolution = 1e-5;
    simulation::SimulatedRobot robot(truth, imperfections);
    Dynamics<double> feed_forward(model);
    VectorX<double> q, v, a, tau(7);
    path.at(0.0, q, v, a);
    EXPECT_EQ(robot.start(q, v), Status::ok);
    const auto cycles = static_cast<Eigen::Index>(path.duration / period);
    log.source = "simulation";
    log.q.resize(cycles, 7);
    log.tau.resize(cycles, 7);
    log.current.assign(7, false);
    for (const JointInfo& joint : truth.joints) log.joints.push_back(joint.name);
    double error = 0.0;
    for (Eigen::Index i = 0; i < cycles; ++i) {
      const double t = static_cast<double>(i) * period;
      path.at(t, q, v, a);
      EXPECT_EQ(feed_forward.inverse_dynamics(q, v, a, tau), Status::ok);
      for (int j = 0; j < 7 && drives != nullptr; ++j) {
        const Drive& drive = drives->joints[static_cast<std::size_t>(j)];
        tau[j] += drive.rotor * a[j] + drive.friction.effort(v[j]);
      }
      log.time.push_back(t);
      log.q.row(i) = robot.measured_position().transpose();
      error += (q - robot.position()).squaredNorm();
      tau += p.cwiseProduct(q - robot.measured_position()) +
             d.cwiseProduct(v - robot.measured_velocity());
      EXPECT_EQ(robot.cycle(tau, period, 4), Status::ok);
      log.tau.row(i) = robot.effort().transpose();
    }
    return std::sqrt(error / static_cast<double>(7 * cycles));
  };
  Log log;
  (void)follow(motion, believed, nullptr, log);
  const Identification found = identify(believed, {cleaned(log, believed)}, {}, {});
  EXPECT_EQ(found.chosen, Candidate::full);

  // Another motion, with the model as it was believed and as it was found.
  options.seed = 2;
  options.duration = 8.0;
  options.tries = 3;
  const Excitation other = excite(believed, options);
  Log before_log, after_log;
  const double before = follow(other, believed, nullptr, before_log);
  Model better = believed;
  const auto inertials = link_inertials(believed, found.pi);
  for (LinkInfo& link : better.links)
    if (const auto it = inertials.find(link.name); it != inertials.end())
      link.inertial = it->second;
  const double after = follow(other, better, &found.drives, after_log);
  std::printf("tracking error: %.3g rad with the model believed, %.3g rad with the one found\n",
              before, after);
  EXPECT_LT(after, 0.2 * before);
}

}  // namespace
