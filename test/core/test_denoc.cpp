// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/families.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "dynamics_core/counted_families.hpp"
#include "support/planar_arm.hpp"
#include "support/trees.hpp"

namespace {

using namespace dynamics_core;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using support::close_to;
using support::RandomTree;

constexpr unsigned trees = 400;

TEST(DeNocInverseDynamics, AgreesWithNewtonEulerOnTrees) {
  for (unsigned seed = 1; seed <= trees; ++seed) {
    const RandomTree t(seed);
    SCOPED_TRACE(t.trace());
    Dynamics<double> dynamics(t.model);
    support::load_randomly(seed, t.model, dynamics);
    VectorXd tau(t.model.nv), expected(t.model.nv);
    ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(t.q, t.v, t.a, expected),
              Status::ok);
    ASSERT_EQ(dynamics.families().denoc.inverse_dynamics(t.q, t.v, t.a, tau), Status::ok);
    ASSERT_TRUE(close_to(tau, expected, 1e-10));
  }
}

TEST(DeNocMassMatrix, AgreesWithCompositeBodiesOnTrees) {
  for (unsigned seed = 1; seed <= trees; ++seed) {
    const RandomTree t(seed);
    SCOPED_TRACE(t.trace());
    Dynamics<double> dynamics(t.model);
    support::load_randomly(seed, t.model, dynamics);
    MatrixXd M(t.model.nv, t.model.nv), expected(t.model.nv, t.model.nv);
    ASSERT_EQ(dynamics.families().composite_body.mass_matrix(t.q, expected), Status::ok);
    ASSERT_EQ(dynamics.families().denoc.mass_matrix(t.q, M), Status::ok);
    ASSERT_TRUE(close_to(M, expected, 1e-11));
    ASSERT_EQ(M, M.transpose());
  }
}

TEST(DeNocInverseDynamics, IsTheClosedFormOfThePlanarArm) {
  support::PlanarArm arm;
  Dynamics<double> dynamics(arm.model());
  support::Random random(7);
  for (int k = 0; k < 50; ++k) {
    const VectorXd q = random.vector_x(3, 3.0);
    const VectorXd v = random.vector_x(3, 3.0);
    const VectorXd a = random.vector_x(3, 10.0);
    arm.evaluate(q, v);
    VectorXd tau(3);
    MatrixXd M(3, 3);
    ASSERT_EQ(dynamics.families().denoc.inverse_dynamics(q, v, a, tau), Status::ok);
    ASSERT_EQ(dynamics.families().denoc.mass_matrix(q, M), Status::ok);
    ASSERT_TRUE(close_to(tau, VectorXd(arm.M * a + arm.C * v + arm.gravity), 1e-13));
    ASSERT_TRUE(close_to(M, MatrixXd(arm.M), 1e-13));
  }
}

/// Links without any inertial, at the tip and in the middle, and with a load put on and taken off.
TEST(DeNocInverseDynamics, LinksWithoutMassHaveNoMassCentre) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    support::Random random(seed);
    support::RandomOptions options;
    options.branching = 0.3;
    options.prismatic = 0.3;
    RobotDescription robot = random.robot(options);
    for (auto& link : robot.links)
      if (random.chance(0.5)) link.inertial.reset();
    robot.links.back().inertial.reset();
    const Model model = build_model(robot);
    Dynamics<double> dynamics(model);
    const VectorXd q = random.configuration(model);
    const VectorXd v = random.vector_x(model.nv, 2.0);
    const VectorXd a = random.vector_x(model.nv, 5.0);
    VectorXd tau(model.nv), expected(model.nv), before(model.nv);
    const auto compare = [&] {
      ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(q, v, a, expected), Status::ok);
      ASSERT_EQ(dynamics.families().denoc.inverse_dynamics(q, v, a, tau), Status::ok);
      ASSERT_TRUE(close_to(tau, expected, 1e-10));
    };
    compare();
    before = tau;
    const int tip = static_cast<int>(model.links.size()) - 1;
    const Symmetric3<double> I = {0.02, 0.001, 0.002, 0.03, 0.003, 0.025};
    ASSERT_EQ(dynamics.set_payload(tip, {1.5, {0.1, -0.2, 0.05}, I}), Status::ok);
    compare();
    EXPECT_GT((tau - before).cwiseAbs().maxCoeff(), 1e-3);
    ASSERT_EQ(dynamics.set_payload(tip, {0.0, {0.1, -0.2, 0.05}, I}),
              Status::ok);  // a couple's inertia
    compare();
    ASSERT_EQ(dynamics.set_payload(tip, {0.0, {0, 0, 0}, Symmetric3<double>::zero()}), Status::ok);
    compare();
    EXPECT_EQ(tau, before);
  }
}

TEST(DeNocInverseDynamics, SinglePrecisionIsTheSameText) {
  const RandomTree t(11);
  Dynamics<double> dynamics(t.model);
  Dynamics<float> wf(t.model);
  const Eigen::VectorXf q = t.q.cast<float>(), v = t.v.cast<float>(), a = t.a.cast<float>();
  VectorXd expected(t.model.nv);
  Eigen::VectorXf tau(t.model.nv);
  ASSERT_EQ(dynamics.families().denoc.inverse_dynamics(t.q, t.v, t.a, expected), Status::ok);
  ASSERT_EQ(wf.families().denoc.inverse_dynamics(q, v, a, tau), Status::ok);
  EXPECT_TRUE(close_to(VectorXd(tau.cast<double>()), expected, 2e-5));
  Eigen::MatrixXf M(t.model.nv, t.model.nv);
  MatrixXd expected_M(t.model.nv, t.model.nv);
  ASSERT_EQ(dynamics.families().denoc.mass_matrix(t.q, expected_M), Status::ok);
  ASSERT_EQ(wf.families().denoc.mass_matrix(q, M), Status::ok);
  EXPECT_TRUE(close_to(MatrixXd(M.cast<double>()), expected_M, 2e-5));
}

/// Saha 1999, Table 1: (120n − 44) multiplications and (97n − 55) additions for n revolute joints.
TEST(DeNocInverseDynamics, NeedsFewerOperationsThanThePaper) {
  for (int n = 2; n <= 12; ++n) {
    support::Random random(5);
    support::RandomOptions options;
    options.joints = n;
    Dynamics<Counted> dynamics(build_model(random.robot(options)));
    const auto input = [&] {
      VectorX<Counted> x(n);
      for (Counted& x_i : x) x_i = Counted::variable(random.uniform(0.1, 1.0));
      return x;
    };
    Counted::forget();
    const VectorX<Counted> q = input(), v = input(), a = input();
    VectorX<Counted> tau(n);
    ASSERT_EQ(dynamics.families().denoc.inverse_dynamics(q, v, a, tau), Status::ok);
    const OperationCount count = Counted::count(tau);
    EXPECT_LE(count.multiplications + count.divisions, 120 * n - 44) << "n = " << n;
    EXPECT_LE(count.additions, 97 * n - 55) << "n = " << n;
  }
}

TEST(DeNoc, RefusesBadArguments) {
  support::PlanarArm arm;
  Dynamics<double> dynamics(arm.model());
  const VectorXd ok = VectorXd::Zero(3);
  const VectorXd small = VectorXd::Zero(2);
  VectorXd nan = ok;
  nan[1] = std::numeric_limits<double>::quiet_NaN();
  VectorXd tau(3), short_tau(2);
  MatrixXd M(3, 3), wide(3, 4), low(2, 3);
  EXPECT_EQ(dynamics.families().denoc.inverse_dynamics(small, ok, ok, tau), Status::wrong_size);
  EXPECT_EQ(dynamics.families().denoc.inverse_dynamics(ok, small, ok, tau), Status::wrong_size);
  EXPECT_EQ(dynamics.families().denoc.inverse_dynamics(ok, ok, small, tau), Status::wrong_size);
  EXPECT_EQ(dynamics.families().denoc.inverse_dynamics(ok, ok, ok, short_tau), Status::wrong_size);
  EXPECT_EQ(dynamics.families().denoc.inverse_dynamics(nan, ok, ok, tau), Status::not_finite);
  EXPECT_EQ(dynamics.families().denoc.inverse_dynamics(ok, nan, ok, tau), Status::not_finite);
  EXPECT_EQ(dynamics.families().denoc.inverse_dynamics(ok, ok, nan, tau), Status::not_finite);
  EXPECT_EQ(dynamics.families().denoc.mass_matrix(small, M), Status::wrong_size);
  EXPECT_EQ(dynamics.families().denoc.mass_matrix(ok, wide), Status::wrong_size);
  EXPECT_EQ(dynamics.families().denoc.mass_matrix(ok, low), Status::wrong_size);
  EXPECT_EQ(dynamics.families().denoc.mass_matrix(nan, M), Status::not_finite);
}

}  // namespace
