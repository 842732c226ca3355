// SPDX-License-Identifier: Apache-2.0
// Newton–Euler and composite rigid bodies against the dense equations of Featherstone & Orin 2000,
// §3.5, which start from the description and not from the compiled model.

#include <gtest/gtest.h>

#include "dynamics_core/families.hpp"
#include "support/global_analysis.hpp"
#include "support/kinds.hpp"

using namespace dynamics_core;
using support::difference;
using support::GlobalAnalysis;

class GlobalAnalysisTest : public testing::TestWithParam<support::Kind> {};

TEST_P(GlobalAnalysisTest, AgreesWithTheRecursions) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    support::Sample s(GetParam(), seed);
    Dynamics<double> dynamics(s.model);
    GlobalAnalysis global(s.robot, s.model, GetParam().floating_base);
    global.set_state(s.q, s.v);

    Eigen::VectorXd tau(s.model.nv);
    ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(s.q, s.v, s.a, tau), Status::ok);
    EXPECT_LT(difference(tau, global.inverse_dynamics(s.a)), 1e-10);
    ASSERT_EQ(dynamics.families().newton_euler.bias(s.q, s.v, tau), Status::ok);
    EXPECT_LT(difference(tau, global.inverse_dynamics(Eigen::VectorXd::Zero(s.model.nv))), 1e-10);
    Eigen::MatrixXd M(s.model.nv, s.model.nv);
    ASSERT_EQ(dynamics.families().composite_body.mass_matrix(s.q, M), Status::ok);
    EXPECT_LT(difference(M, global.mass_matrix()), 1e-10);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GlobalAnalysisTest, testing::ValuesIn(support::kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

// The oracle itself, against a closed form that needs no library: a point mass on a rod.
TEST(GlobalAnalysis, PendulumInClosedForm) {
  RobotDescription robot;
  robot.links.push_back({"base", std::nullopt});
  robot.links.push_back({"rod", Inertial{2.0, {0.0, 0.0, -0.7}, Eigen::Matrix3d::Zero()}});
  JointDescription j;
  j.name = "hinge";
  j.type = JointType::revolute;
  j.parent = "base";
  j.child = "rod";
  j.axis = Eigen::Vector3d::UnitY();
  robot.joints.push_back(j);
  const Model model = build_model(robot);
  GlobalAnalysis global(robot, model);
  const Eigen::VectorXd q = Eigen::VectorXd::Constant(1, 0.4);
  const Eigen::VectorXd v = Eigen::VectorXd::Constant(1, 1.3);
  global.set_state(q, v);
  const double a = 0.9;
  EXPECT_NEAR(global.mass_matrix()(0, 0), 2.0 * 0.7 * 0.7, 1e-14);
  EXPECT_NEAR(global.inverse_dynamics(Eigen::VectorXd::Constant(1, a))[0],
              2.0 * 0.7 * 0.7 * a + 2.0 * 9.81 * 0.7 * std::sin(0.4), 1e-13);
}
