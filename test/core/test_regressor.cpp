// SPDX-License-Identifier: Apache-2.0
// The regressor against the inverse dynamics, and the base parameters against counts that are known
// without numerics.

#include <gtest/gtest.h>

#include "dynamics_core/families.hpp"
#include "dynamics_core/regressor.hpp"
#include "support/allocation_guard.hpp"
#include "support/kinds.hpp"

using namespace dynamics_core;
using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;
using support::difference;

namespace {

/// A chain of revolute joints in modified Denavit–Hartenberg form: T(a) Rx(α), then Rz(q) T(d).
struct Axis {
  double alpha, a, d;
};
RobotDescription revolute_chain(const std::vector<Axis>& axes, unsigned seed) {
  support::Random random(seed);
  RobotDescription robot;
  robot.links.push_back({"base", std::nullopt});
  for (const Axis& axis : axes) {
    const std::string number = std::to_string(robot.links.size());
    JointDescription j;
    j.name = "joint" + number;
    j.type = JointType::continuous;
    j.parent = robot.links.back().name;
    j.child = "link" + number;
    const Eigen::Matrix3d R = Eigen::AngleAxisd(axis.alpha, Vector3d::UnitX()).toRotationMatrix();
    j.origin = {R, Vector3d(axis.a, 0.0, 0.0) + axis.d * R.col(2)};
    j.axis = Vector3d::UnitZ();
    robot.joints.push_back(j);
    robot.links.push_back({j.child, random.inertial()});
  }
  return robot;
}

int count(const RobotDescription& robot, const Vector3d& gravity) {
  ModelOptions options;
  options.gravity = gravity;
  return base_parameters(build_model(robot, options)).size();
}

class RegressorTest : public testing::TestWithParam<support::Kind> {};

}  // namespace

TEST_P(RegressorTest, GivesTheEfforts) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    support::Sample s(GetParam(), seed);
    Dynamics<double> dynamics(s.model);
    const int link = s.random.integer(0, static_cast<int>(s.model.links.size()) - 1);
    ASSERT_EQ(
        dynamics.set_payload(link, {1.5, s.random.vector(0.3), {0.1, 0.02, 0.0, 0.2, 0.0, 0.15}}),
        Status::ok);
    const int columns = dynamics.regressor().columns();
    MatrixXd Y(s.model.nv, columns);
    VectorXd pi(columns);
    ASSERT_EQ(dynamics.regressor().matrix(s.q, s.v, s.a, Y), Status::ok);
    ASSERT_EQ(dynamics.regressor().parameters(pi), Status::ok);
    VectorXd tau(s.model.nv);
    ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(s.q, s.v, s.a, tau), Status::ok);
    VectorXd rotors = VectorXd::Zero(s.model.nv);
    for (const BodyData& b : s.model.bodies)
      rotors[b.dof] += b.multiplier * b.multiplier * b.rotor * s.a[b.dof];
    EXPECT_LT(difference(Y * pi, tau - rotors), 1e-11);
  }
}

TEST_P(RegressorTest, BaseParametersExplainEveryEffort) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    support::Sample s(GetParam(), seed);
    Dynamics<double> dynamics(s.model);
    const BaseParameters base = base_parameters(s.model);
    const int columns = dynamics.regressor().columns();
    ASSERT_LT(base.size(), columns);
    ASSERT_EQ(base.K.rows(), base.size());
    ASSERT_EQ(base.K.cols(), columns);
    EXPECT_EQ(base_parameters(s.model, 77).size(), base.size());  // other states, same rank
    MatrixXd Y(s.model.nv, columns);
    for (int k = 0; k < 5; ++k) {
      const VectorXd q = s.random.configuration(s.model);
      const VectorXd v = s.random.vector_x(s.model.nv, 3.0);
      const VectorXd a = s.random.vector_x(s.model.nv, 3.0);
      ASSERT_EQ(dynamics.regressor().matrix(q, v, a, Y), Status::ok);
      EXPECT_LT(difference(base.select(Y) * base.K, Y), 1e-7);
      const VectorXd pi = s.random.vector_x(columns, 1.0);
      EXPECT_LT(difference(base.select(Y) * base.reduce(pi), Y * pi), 1e-7);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, RegressorTest, testing::ValuesIn(support::kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

// How many there are follows from geometry alone. A body of revolution about a joint's axis moves
// the same way whichever of the two links carries it; such bodies have three parameters (mass,
// place along the axis, transverse inertia at a given moment about the axis), so a revolute joint
// hides three of its link's ten parameters in the parent's. The links up to the first change of
// axis direction move in one plane, where only Izz, mcx and mcy count. If the first axis is along
// gravity (or there is none), mcx and mcy of the first link do no work. So with n joints, of which
// the first β are parallel: 7n − 4β, or 7n − 4β − 2.
TEST(BaseParameterCount, RevoluteChains) {
  for (int n = 1; n <= 6; ++n) {
    for (int parallel = 1; parallel <= n; ++parallel) {
      SCOPED_TRACE(std::to_string(n) + " joints, the first " + std::to_string(parallel) +
                   " parallel");
      support::Random random(static_cast<unsigned>(10 * n + parallel));
      std::vector<Axis> axes;
      for (int i = 0; i < n; ++i) {
        const double twist = i < parallel ? 0.0 : random.uniform(0.5, 2.5);
        axes.push_back({twist, random.uniform(0.2, 0.5), random.uniform(-0.3, 0.3)});
      }
      const RobotDescription robot = revolute_chain(axes, 3);
      EXPECT_EQ(count(robot, {0.0, -9.81, 0.0}), 7 * n - 4 * parallel);
      EXPECT_EQ(count(robot, {0.0, 0.0, -9.81}), 7 * n - 4 * parallel - 2);
      EXPECT_EQ(count(robot, {0.0, 0.0, 0.0}), 7 * n - 4 * parallel - 2);
    }
  }
}

// The PUMA 560 in the frames and lengths of Armstrong, Khatib & Burdick 1986, with crossing and
// parallel axes: no fewer than the general arm, 7·6 − 4 − 2, of 60.
TEST(BaseParameterCount, Puma560) {
  const double right = M_PI / 2;
  const RobotDescription puma = revolute_chain({{0.0, 0.0, 0.0},
                                                {-right, 0.0, 0.2435},
                                                {0.0, 0.4318, -0.0934},
                                                {right, -0.0203, 0.4331},
                                                {-right, 0.0, 0.0},
                                                {right, 0.0, 0.0}},
                                               4);
  EXPECT_EQ(count(puma, {0.0, 0.0, -9.81}), 36);
}

// A free body shows all ten; hung on a slide along x it shows its mass alone.
TEST(BaseParameterCount, OneBody) {
  RobotDescription robot;
  support::Random random(5);
  robot.links.push_back({"body", random.inertial()});
  ModelOptions floating;
  floating.floating_base = true;
  EXPECT_EQ(base_parameters(build_model(robot, floating)).size(), 10);

  JointDescription slide;
  slide.name = "slide";
  slide.type = JointType::prismatic;
  slide.parent = "rail";
  slide.child = "body";
  robot.links.push_back({"rail", std::nullopt});
  robot.joints.push_back(slide);
  const Model model = build_model(robot);
  const BaseParameters base = base_parameters(model);
  ASSERT_EQ(base.size(), 1);
  EXPECT_EQ(parameter_names(model)[static_cast<std::size_t>(base.columns[0])], "m(body)");
  EXPECT_EQ(base_parameters(model).columns, base.columns);
}

TEST(BaseParameterCount, NothingMoves) {
  RobotDescription robot;
  robot.links.push_back({"rock", support::Random(1).inertial()});
  const BaseParameters base = base_parameters(build_model(robot));
  EXPECT_EQ(base.size(), 0);
  EXPECT_EQ(base.K.cols(), 0);
}

TEST(ParameterNames, OnePerColumn) {
  for (const support::Kind& kind : support::kinds()) {
    support::Sample s(kind, 9);
    Dynamics<double> dynamics(s.model);
    EXPECT_EQ(static_cast<int>(parameter_names(s.model).size()), dynamics.regressor().columns());
  }
  const Model model = build_model(revolute_chain({{0.0, 0.0, 0.1}, {0.3, 0.2, 0.0}}, 1));
  const std::vector<std::string> names = parameter_names(model);
  ASSERT_EQ(names.size(), 20U);
  EXPECT_EQ(names[0], "m(link1)");
  EXPECT_EQ(names[13], "mcz(link2)");
  EXPECT_EQ(names[19], "Izz(link2)");
}

TEST(Regressor, RefusesBadArguments) {
  support::Sample s(support::kinds().front(), 1);
  Dynamics<double> dynamics(s.model);
  MatrixXd Y(s.model.nv, dynamics.regressor().columns());
  MatrixXd narrow(s.model.nv, dynamics.regressor().columns() - 1);
  VectorXd bad = s.v;
  bad[0] = std::nan("");
  VectorXd longer = VectorXd::Zero(s.model.nv + 1);
  EXPECT_EQ(dynamics.regressor().matrix(bad, s.v, s.a, Y), Status::not_finite);
  EXPECT_EQ(dynamics.regressor().matrix(s.q, bad, s.a, Y), Status::not_finite);
  EXPECT_EQ(dynamics.regressor().matrix(s.q, s.v, bad, Y), Status::not_finite);
  EXPECT_EQ(dynamics.regressor().matrix(s.q, s.v, longer, Y), Status::wrong_size);
  EXPECT_EQ(dynamics.regressor().matrix(s.q, s.v, s.a, narrow), Status::wrong_size);
  EXPECT_EQ(dynamics.regressor().parameters(longer), Status::wrong_size);
}

TEST(Regressor, SinglePrecision) {
  support::Sample s(support::kinds().front(), 2);
  Dynamics<double> dynamics(s.model);
  Dynamics<float> wf(s.model);
  MatrixXd Y(s.model.nv, dynamics.regressor().columns());
  Eigen::MatrixXf Yf(s.model.nv, wf.regressor().columns());
  ASSERT_EQ(dynamics.regressor().matrix(s.q, s.v, s.a, Y), Status::ok);
  const Eigen::VectorXf q = s.q.cast<float>();
  const Eigen::VectorXf v = s.v.cast<float>();
  const Eigen::VectorXf a = s.a.cast<float>();
  ASSERT_EQ(wf.regressor().matrix(q, v, a, Yf), Status::ok);
  EXPECT_LT(difference(Yf.cast<double>(), Y), 1e-5);
}

TEST(Regressor, AllocatesNothing) {
  support::Sample s = support::large_robot();
  Dynamics<double> dynamics(s.model);
  MatrixXd Y(s.model.nv, dynamics.regressor().columns());
  VectorXd pi(dynamics.regressor().columns());
  const support::AllocationGuard guard;
  const Status first = dynamics.regressor().matrix(s.q, s.v, s.a, Y);
  const Status second = dynamics.regressor().parameters(pi);
  EXPECT_EQ(guard.count(), 0);
  EXPECT_EQ(first, Status::ok);
  EXPECT_EQ(second, Status::ok);
}
