// SPDX-License-Identifier: Apache-2.0
// Newton–Euler and composite rigid bodies against the dense equations of Featherstone & Orin 2000,
// §3.5, which start from the description and not from the compiled model.

#include <gtest/gtest.h>

#include "dynamics_core/families.hpp"
#include "dynamics_core/load.hpp"
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

/// A nut on an upright screw, its mass centre r off the axis. A turn by one radian lifts it by p:
///
///     τ = (I + m (r² + p²)) q̈ + m g p
TEST(GlobalAnalysis, ScrewInClosedForm) {
  constexpr double m = 3.0, I = 0.02, r = 0.1, p = -0.05, g = 9.81;
  constexpr double q = 0.4, v = 1.3, a = 0.9, lift = 0.5;
  const double inertia = I + m * (r * r + p * p);
  const double weight = m * g * p;
  RobotDescription by_dh = parse_dh(R"(
gravity: [0, 0, -9.81]
joints:
  - {type: helical, pitch: -0.05, b: 0.5, mass: 3, r: [0.1, 0, 0], inertia: [0.01, 0.01, 0.02]}
)");
  RobotDescription by_hand;
  by_hand.links.push_back({"base", std::nullopt});
  by_hand.links.push_back(
      {"nut", Inertial{m, {r, 0.0, 0.0}, Eigen::Vector3d(0.01, 0.01, I).asDiagonal()}});
  JointDescription j;
  j.name = "screw";
  j.type = JointType::helical;
  j.pitch = p;
  j.parent = "base";
  j.child = "nut";
  j.axis = Eigen::Vector3d::UnitZ();
  j.origin.p = {0.0, 0.0, lift};
  by_hand.joints.push_back(j);
  for (const RobotDescription* robot : {&by_dh, &by_hand}) {
    const Model model = build_model(*robot);
    ASSERT_EQ(model.nv, 1);
    const auto one = [](double x) { return Eigen::VectorXd::Constant(1, x); };
    GlobalAnalysis global(*robot, model);
    global.set_state(one(q), one(v));
    EXPECT_NEAR(global.mass_matrix()(0, 0), inertia, 1e-15);
    EXPECT_NEAR(global.inverse_dynamics(one(a))[0], inertia * a + weight, 1e-14);

    for (const Method method : all_methods) {
      SCOPED_TRACE(to_string(method));
      Dynamics<double> nut(model, method);
      Eigen::VectorXd x(1);
      Eigen::MatrixXd M(1, 1);
      ASSERT_EQ(nut.inverse_dynamics(one(q), one(v), one(a), x), Status::ok);
      EXPECT_NEAR(x[0], inertia * a + weight, 1e-14);
      ASSERT_EQ(nut.gravity(one(q), x), Status::ok);
      EXPECT_NEAR(x[0], weight, 1e-14);
      ASSERT_EQ(nut.mass_matrix(one(q), M), Status::ok);
      EXPECT_NEAR(M(0, 0), inertia, 1e-15);
      ASSERT_EQ(nut.forward_dynamics(one(q), one(v), one(2.0), x), Status::ok);
      EXPECT_NEAR(x[0], (2.0 - weight) / inertia, 1e-12);
    }

    Dynamics<double> nut(model);
    ASSERT_EQ(nut.kinematics().update(one(q), one(v)), Status::ok);
    const int link = static_cast<int>(model.links.size()) - 1;
    Pose<double> X;
    Motion<double> V;
    ASSERT_EQ(nut.kinematics().pose(link, X), Status::ok);
    ASSERT_EQ(nut.kinematics().velocity(link, V), Status::ok);
    EXPECT_NEAR(X.p[2], lift + p * q, 1e-15) << "a positive pitch is a right-handed screw";
    EXPECT_NEAR(V.v[2], p * v, 1e-15);
    EXPECT_NEAR(V.w[2], v, 1e-15);
  }
}
