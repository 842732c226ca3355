// SPDX-License-Identifier: Apache-2.0
/// V. Mata, S. Provenzano, F. Valero and J. I. Cuadrado, "Serial-robot dynamics algorithms for
/// moderately large numbers of joints" (2002), §5.2: a PUMA along a straight line.

#include <gtest/gtest.h>

#include "support/paper_simulations.hpp"

namespace {

using namespace support;
using namespace dynamics_core;

const auto methods = {Method::articulated_body, Method::cholesky, Method::gibbs_appell};

Options tolerance(double value) {
  Options o;
  o.integrator = simulation::Integrator::fehlberg45;  // the paper: Runge–Kutta 4/5
  o.absolute_tolerance = o.relative_tolerance = value;
  return o;
}

TEST(MataLine, IsWithinReachAndTheInverseKinematicsIsRight) {
  const Model model = paper_robot("puma560");
  const int link = model.find_link("link6");
  StraightLine line(model, link);
  Dynamics<double> robot(model);
  EXPECT_LT((line.point(0.0) - Eigen::Vector3d(0.50, 0.00, 0.05)).norm(), 1e-15);
  EXPECT_LT((line.point(5.0) - Eigen::Vector3d(0.62, 0.30, 0.11)).norm(), 1e-15);
  // The printed speed, 0.1 m/s for 5 s, does not fit the printed points, 0.329 m apart.
  EXPECT_NEAR((line.point(5.0) - line.point(0.0)).norm(), 0.3286, 1e-4);
  VectorXd q(6), v(6), a(6), before(6), after(6), dummy(6);
  const double h = 1e-4;
  for (int k = 0; k <= 50; ++k) {
    const double t = 0.1 * k;
    line.evaluate(t - h, before, dummy, dummy);
    line.evaluate(t + h, after, dummy, dummy);
    line.evaluate(t, q, v, a);
    EXPECT_LT(((after - before) / (2 * h) - v).norm(), 1e-7);
    EXPECT_LT(((after - 2 * q + before) / (h * h) - a).norm(), 1e-4);
    Pose<double> X = Pose<double>::identity();
    Motion<double> V = Motion<double>::zero();
    ASSERT_EQ(robot.kinematics().update(q, v), Status::ok);
    ASSERT_EQ(robot.kinematics().pose(link, X), Status::ok);
    ASSERT_EQ(robot.kinematics().velocity(link, V), Status::ok);
    EXPECT_LT((X.p - line.point(t)).norm(), 1e-12);
    EXPECT_LT((X.R - line.attitude()).norm(), 1e-12);
    EXPECT_LT(V.w.norm(), 1e-12);
    for (const JointInfo& joint : model.joints) {
      EXPECT_GT(q[joint.q], joint.limits.lower) << joint.name;
      EXPECT_LT(q[joint.q], joint.limits.upper) << joint.name;
    }
  }
}

TEST(MataLine, TheRobotWithItsMotorsFollowsTheLine) {
  const Model model = paper_robot("puma560");
  for (const Method method : methods) {
    SCOPED_TRACE(to_string(method));
    const LineSimulation s = line_simulation(model, tolerance(1e-6), method);
    ASSERT_EQ(s.result.status, Status::ok);
    EXPECT_LT(s.q_error.mean(), 1e-4);
    EXPECT_LT(s.v_error.mean(), 1e-4);
    EXPECT_LT(s.a_error.mean(), 1e-3);
  }
}

TEST(MataLine, TheMethodsDifferInTimeAlone) {
  // "in both cases the results are practically the same than with the GA method"
  const Model model = paper_robot("puma560");
  const LineSimulation first = line_simulation(model, tolerance(1e-6), Method::gibbs_appell);
  for (const Method method : methods) {
    SCOPED_TRACE(to_string(method));
    const LineSimulation s = line_simulation(model, tolerance(1e-6), method);
    EXPECT_LT((s.q_error - first.q_error).norm(), 1e-8);
    EXPECT_LT((s.v_error - first.v_error).norm(), 1e-8);
    // A step that is rejected for one method may just pass for another.
    EXPECT_NEAR(static_cast<double>(s.result.evaluations),
                static_cast<double>(first.result.evaluations), 12.0);
  }
}

TEST(MataLine, LinksAloneAreUnstableAndTheErrorFollowsTheTolerance) {
  const Model model = puma560_links();
  const LineSimulation loose = line_simulation(model, tolerance(1e-6), Method::gibbs_appell);
  const LineSimulation tight = line_simulation(model, tolerance(1e-10), Method::gibbs_appell);
  ASSERT_EQ(loose.result.status, Status::ok);
  ASSERT_EQ(tight.result.status, Status::ok);
  EXPECT_GT(loose.q_error.mean(), 0.01);
  EXPECT_LT(tight.q_error.mean(), 1e-3);
}

}  // namespace
