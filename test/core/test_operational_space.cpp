// SPDX-License-Identifier: Apache-2.0
// Operational-space dynamics against their definition with dense matrices, and against the forward
// dynamics, which know nothing of tasks.

#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "dynamics_core/families.hpp"
#include "support/allocation_guard.hpp"
#include "support/kinds.hpp"
#include "support/linear_algebra.hpp"

using namespace dynamics_core;
using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;
using support::difference;

namespace {

class OperationalSpaceTest : public testing::TestWithParam<support::Kind> {};

/// A random task whose Jacobian has full rank, with room to spare for comparisons.
bool draw_task(support::Sample& s, Dynamics<double>& robot, Task<double>& task, MatrixXd& J) {
  task.link = static_cast<int>(s.model.links.size()) - 1;
  task.offset = s.random.vector(0.3);
  for (bool& row : task.rows) row = s.random.chance(0.7);
  EXPECT_EQ(robot.kinematics().update(s.q), Status::ok);
  MatrixXd full(6, s.model.nv);
  EXPECT_EQ(robot.kinematics().jacobian(task.link, full, task.offset), Status::ok);
  J.resize(0, s.model.nv);
  for (int i = 0; i < 6; ++i) {
    if (!task.rows[static_cast<std::size_t>(i)]) continue;
    J.conservativeResize(J.rows() + 1, Eigen::NoChange);
    J.row(J.rows() - 1) = full.row(i);
  }
  if (J.rows() == 0) return false;
  const VectorXd sigma = support::singular_values(J);
  return J.rows() <= s.model.nv && sigma.minCoeff() > 1e-2 * sigma.maxCoeff();
}

}  // namespace

TEST_P(OperationalSpaceTest, MatchesItsDefinition) {
  int tasks = 0;
  for (unsigned seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    support::Sample s(GetParam(), seed);
    Dynamics<double> robot(s.model);
    const int n = s.model.nv;
    Task<double> task;
    MatrixXd J;
    if (!draw_task(s, robot, task, J)) continue;
    ++tasks;
    ASSERT_EQ(robot.operational_space().update(s.q, s.v, task), Status::ok);
    const int k = robot.operational_space().rows();
    ASSERT_EQ(k, J.rows());
    const MatrixXd Lambda = robot.operational_space().inertia();
    const MatrixXd Jbar = robot.operational_space().consistent_inverse();
    const VectorXd mu = robot.operational_space().velocity_force();
    const VectorXd p = robot.operational_space().gravity_force();
    EXPECT_LT(difference(robot.operational_space().jacobian(), J), 1e-15);
    MatrixXd N(n, n);
    ASSERT_EQ(robot.operational_space().null_space_projector(N), Status::ok);

    MatrixXd M(n, n);
    VectorXd g(n);
    VectorXd bias(n);
    ASSERT_EQ(robot.families().composite_body.mass_matrix(s.q, M), Status::ok);
    ASSERT_EQ(robot.families().newton_euler.gravity(s.q, g), Status::ok);
    ASSERT_EQ(robot.families().newton_euler.bias(s.q, s.v, bias), Status::ok);
    const MatrixXd M_inverse = support::inverse(M);
    const MatrixXd expected = support::inverse(J * M_inverse * J.transpose());
    EXPECT_LT(difference(Lambda, expected), 1e-8);
    EXPECT_EQ(difference(Lambda, Lambda.transpose()), 0.0);
    EXPECT_LT(difference(Jbar, M_inverse * J.transpose() * expected), 1e-8);
    EXPECT_LT(difference(p, expected * J * M_inverse * g), 1e-8);
    EXPECT_LT(difference(J * Jbar, MatrixXd::Identity(k, k)), 1e-8);
    EXPECT_LT(difference(J * N, MatrixXd::Zero(k, n)), 1e-8);
    EXPECT_LT(difference(J * M_inverse * N.transpose(), MatrixXd::Zero(k, n)), 1e-7);

    // The robot driven by F = Λ ẍ + μ + p at the point and anything in the null space: the point
    // accelerates by ẍ.
    const VectorXd wanted = s.random.vector_x(k, 2.0);
    VectorXd F(k);
    ASSERT_EQ(robot.operational_space().task_force(wanted, F), Status::ok);
    EXPECT_LT(difference(F, Lambda * wanted + mu + p), 1e-12);
    const VectorXd tau = J.transpose() * F + N.transpose() * s.random.vector_x(n, 3.0);
    VectorXd a(n);
    ASSERT_EQ(robot.families().cholesky.forward_dynamics(s.q, s.v, tau, a), Status::ok);
    MatrixXd Jd(6, n);
    ASSERT_EQ(robot.kinematics().update(s.q, s.v), Status::ok);
    ASSERT_EQ(robot.kinematics().jacobian_rate(task.link, Jd, task.offset), Status::ok);
    VectorXd x = J * a;
    for (int i = 0, at = 0; i < 6; ++i)
      if (task.rows[static_cast<std::size_t>(i)]) x[at++] += Jd.row(i).dot(s.v);
    EXPECT_LT(difference(x, wanted), 1e-7);
  }
  EXPECT_GE(tasks, 10);
}

INSTANTIATE_TEST_SUITE_P(Kinds, OperationalSpaceTest, testing::ValuesIn(support::kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

namespace {

/// Two links of one metre in the x-y plane, with point masses at their ends.
RobotDescription planar_arm() {
  RobotDescription robot;
  robot.gravity = {0.0, -10.0, 0.0};
  robot.links.push_back({"base", std::nullopt});
  for (const char* name : {"upper", "lower"}) {
    JointDescription j;
    j.name = std::string(name) + "_joint";
    j.type = JointType::continuous;
    j.parent = robot.links.back().name;
    j.child = name;
    if (robot.links.size() > 1) j.origin.p = {1.0, 0.0, 0.0};
    j.axis = Vector3d::UnitZ();
    robot.joints.push_back(j);
    robot.links.push_back({name, Inertial{2.0, {1.0, 0.0, 0.0}, Eigen::Matrix3d::Zero()}});
  }
  return robot;
}

Task<double> tip(const Model& model) {
  Task<double> task = position_task<double>(model.find_link("lower"), Vector3d(1.0, 0.0, 0.0));
  task.rows[5] = false;  // x and y
  return task;
}

}  // namespace

// With the elbow at a right angle a push along the lower link moves both masses, one across it the
// tip's alone; gravity at the tip: its own weight and the elbow's along the lower link.
TEST(OperationalSpace, PlanarArmInClosedForm) {
  const Model model = build_model(planar_arm());
  Dynamics<double> robot(model);
  const VectorXd q = Eigen::Vector2d(0.0, M_PI / 2);  // upper along x, lower along y
  ASSERT_EQ(robot.operational_space().update(q, VectorXd::Zero(2), tip(model)), Status::ok);
  const MatrixXd expected = Eigen::Vector2d(2.0, 4.0).asDiagonal();
  EXPECT_LT(difference(robot.operational_space().inertia(), expected), 1e-12);
  EXPECT_LT(difference(robot.operational_space().gravity_force(), Eigen::Vector2d(0.0, 40.0)),
            1e-12);
  EXPECT_LT(difference(robot.operational_space().velocity_force(), Eigen::Vector2d(0.0, 0.0)),
            1e-12);
}

TEST(OperationalSpace, SingularWhereTheArmCannotMove) {
  const Model model = build_model(planar_arm());
  Dynamics<double> robot(model);
  const VectorXd v = VectorXd::Zero(2);
  Task<double> task = tip(model);
  EXPECT_EQ(robot.operational_space().update(Eigen::Vector2d(0.3, 0.0), v, task), Status::singular);
  EXPECT_EQ(robot.operational_space().update(Eigen::Vector2d(-1.1, M_PI), v, task),
            Status::singular);
  EXPECT_EQ(robot.operational_space().update(Eigen::Vector2d(0.3, 0.01), v, task), Status::ok);
  task.rows[5] = true;  // a planar arm does not leave its plane
  EXPECT_EQ(robot.operational_space().update(Eigen::Vector2d(0.3, 1.0), v, task), Status::singular);
  task.rows = {false, false, true, true, true, false};  // three wishes, two joints
  EXPECT_EQ(robot.operational_space().update(Eigen::Vector2d(0.3, 1.0), v, task), Status::singular);
  task.link = model.find_link("base");
  EXPECT_EQ(robot.operational_space().update(Eigen::Vector2d(0.3, 1.0), v, task), Status::singular);
}

TEST(OperationalSpace, RefusesBadArguments) {
  const Model model = build_model(planar_arm());
  Dynamics<double> robot(model);
  const VectorXd q = Eigen::Vector2d(0.2, 1.0);
  VectorXd bad = q;
  bad[0] = std::nan("");
  VectorXd longer = VectorXd::Zero(3);
  const Task<double> good = tip(model);
  EXPECT_EQ(robot.operational_space().update(bad, q, good), Status::not_finite);
  EXPECT_EQ(robot.operational_space().update(q, bad, good), Status::not_finite);
  EXPECT_EQ(robot.operational_space().update(q, longer, good), Status::wrong_size);
  Task<double> task = good;
  task.link = 17;
  EXPECT_EQ(robot.operational_space().update(q, q, task), Status::out_of_range);
  task = good;
  task.rows.fill(false);
  EXPECT_EQ(robot.operational_space().update(q, q, task), Status::out_of_range);
  task = good;
  task.offset[2] = INFINITY;
  EXPECT_EQ(robot.operational_space().update(q, q, task), Status::not_finite);
  ASSERT_EQ(robot.operational_space().update(q, q, good), Status::ok);
  MatrixXd N(3, 2);
  EXPECT_EQ(robot.operational_space().null_space_projector(N), Status::wrong_size);
  VectorXd F(2);
  EXPECT_EQ(robot.operational_space().task_force(longer, F), Status::wrong_size);
  EXPECT_EQ(robot.operational_space().task_force(bad, F), Status::not_finite);

  RobotDescription massless = planar_arm();
  for (auto& link : massless.links) link.inertial.reset();
  const Model empty = build_model(massless);
  Dynamics<double> nothing(empty);
  EXPECT_EQ(nothing.operational_space().update(q, q, good), Status::singular);
}

TEST(OperationalSpace, SinglePrecision) {
  const Model model = build_model(planar_arm());
  Dynamics<float> robot(model);
  Task<float> task =
      position_task<float>(model.find_link("lower"), Eigen::Vector3f(1.0F, 0.0F, 0.0F));
  task.rows[5] = false;
  const Eigen::VectorXf q = Eigen::Vector2f(0.0F, static_cast<float>(M_PI / 2));
  ASSERT_EQ(robot.operational_space().update(q, Eigen::VectorXf(Eigen::Vector2f::Zero()), task),
            Status::ok);
  const MatrixXd expected = Eigen::Vector2d(2.0, 4.0).asDiagonal();
  EXPECT_LT(difference(robot.operational_space().inertia().cast<double>(), expected), 1e-5);
}

TEST(OperationalSpace, AllocatesNothing) {
  support::Sample s = support::large_robot();
  Dynamics<double> robot(s.model);
  Task<double> task;
  task.link = static_cast<int>(s.model.links.size()) - 1;
  MatrixXd N(s.model.nv, s.model.nv);
  VectorXd F(6);
  const VectorXd x = VectorXd::Ones(6);
  bool ok = true;
  const support::AllocationGuard guard;
  ok = ok && robot.operational_space().update(s.q, s.v, task) == Status::ok;
  ok = ok && robot.operational_space().null_space_projector(N) == Status::ok;
  ok = ok && robot.operational_space().task_force(x, F) == Status::ok;
  EXPECT_EQ(guard.count(), 0);
  EXPECT_TRUE(ok);
}
