// SPDX-License-Identifier: Apache-2.0
// Kinematics against dense matrices built from the description, against difference quotients, and
// against the dynamics: energy and mass matrix, energy and gravity.

#include <gtest/gtest.h>

#include "dynamics_core/families.hpp"
#include "support/allocation_guard.hpp"
#include "support/global_analysis.hpp"
#include "support/kinds.hpp"

using namespace dynamics_core;
using support::difference;

namespace {

Eigen::VectorXd stacked(const Motion<double>& V) {
  Eigen::VectorXd x(6);
  x << V.w, V.v;
  return x;
}

class KinematicsTest : public testing::TestWithParam<support::Kind> {
 protected:
  static constexpr unsigned seeds = 40;
};

}  // namespace

TEST_P(KinematicsTest, LinksAgreeWithDenseMatrices) {
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    support::Sample s(GetParam(), seed);
    Dynamics<double> dynamics(s.model);
    support::GlobalAnalysis global(s.robot, s.model, GetParam().floating_base);
    global.set_state(s.q, s.v);
    ASSERT_EQ(dynamics.kinematics().update(s.q, s.v), Status::ok);
    Eigen::MatrixXd J(6, s.model.nv);
    Eigen::MatrixXd Jd(6, s.model.nv);
    for (int link = 0; link < static_cast<int>(s.model.links.size()); ++link) {
      Pose<double> X_WL;
      Motion<double> V;
      Motion<double> A;
      ASSERT_EQ(dynamics.kinematics().pose(link, X_WL), Status::ok);
      ASSERT_EQ(dynamics.kinematics().velocity(link, V), Status::ok);
      ASSERT_EQ(dynamics.kinematics().bias_acceleration(link, A), Status::ok);
      ASSERT_EQ(dynamics.kinematics().jacobian(link, J), Status::ok);
      ASSERT_EQ(dynamics.kinematics().jacobian_rate(link, Jd), Status::ok);
      EXPECT_LT(difference(support::homogeneous(X_WL.R, X_WL.p), global.pose(link)), 1e-12);
      EXPECT_LT(difference(J, global.jacobian(link)), 1e-12);
      EXPECT_LT(difference(stacked(V), global.jacobian(link) * s.v), 1e-12);
      EXPECT_LT(difference(stacked(A), global.bias_acceleration(link)), 1e-11);
      EXPECT_LT(difference(Jd * s.v, stacked(A)), 1e-11);
    }
  }
}

// J̇ itself, not only J̇ v, and for a point off the link's origin: (J(q ⊕ v dt) − J(q ⊖ v dt)) / 2dt.
TEST_P(KinematicsTest, JacobianRateIsTheDerivative) {
  const double dt = 1e-6;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    support::Sample s(GetParam(), seed);
    Dynamics<double> dynamics(s.model);
    const int link = static_cast<int>(s.model.links.size()) - 1;
    const Eigen::Vector3d offset = s.random.vector(0.5);
    Eigen::MatrixXd J[2] = {Eigen::MatrixXd(6, s.model.nv), Eigen::MatrixXd(6, s.model.nv)};
    Pose<double> X[2];
    for (const int side : {0, 1}) {
      Eigen::VectorXd q(s.model.nq);
      ASSERT_EQ(dynamics.kinematics().integrate(s.q, s.v, side == 0 ? -dt : dt, q), Status::ok);
      ASSERT_EQ(dynamics.kinematics().update(q), Status::ok);
      ASSERT_EQ(dynamics.kinematics().jacobian(link, J[side], offset), Status::ok);
      ASSERT_EQ(dynamics.kinematics().pose(link, X[side]), Status::ok);
    }
    ASSERT_EQ(dynamics.kinematics().update(s.q, s.v), Status::ok);
    Eigen::MatrixXd Jd(6, s.model.nv);
    Eigen::MatrixXd J_here(6, s.model.nv);
    Motion<double> V;
    Motion<double> A;
    ASSERT_EQ(dynamics.kinematics().jacobian(link, J_here, offset), Status::ok);
    ASSERT_EQ(dynamics.kinematics().jacobian_rate(link, Jd, offset), Status::ok);
    ASSERT_EQ(dynamics.kinematics().velocity(link, V, offset), Status::ok);
    ASSERT_EQ(dynamics.kinematics().bias_acceleration(link, A, offset), Status::ok);
    EXPECT_LT(difference(Jd, (J[1] - J[0]) / (2 * dt)), 1e-7);
    EXPECT_LT(difference(V.v, (X[1] * offset - X[0] * offset) / (2 * dt)), 1e-7);
    EXPECT_LT(difference(J_here * s.v, stacked(V)), 1e-12);
    EXPECT_LT(difference(Jd * s.v, stacked(A)), 1e-11);
  }
}

TEST_P(KinematicsTest, CentreOfMassAndEnergy) {
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    support::Sample s(GetParam(), seed);
    Dynamics<double> dynamics(s.model);
    support::GlobalAnalysis global(s.robot, s.model, GetParam().floating_base);
    global.set_state(s.q, s.v);
    ASSERT_EQ(dynamics.kinematics().update(s.q, s.v), Status::ok);
    Eigen::Vector3d c;
    Eigen::Vector3d c_rate;
    Eigen::MatrixXd J(3, s.model.nv);
    ASSERT_EQ(dynamics.kinematics().centre_of_mass(c), Status::ok);
    ASSERT_EQ(dynamics.kinematics().centre_of_mass_velocity(c_rate), Status::ok);
    ASSERT_EQ(dynamics.kinematics().centre_of_mass_jacobian(J), Status::ok);
    const Eigen::Vector4d moment = global.first_moment();
    EXPECT_NEAR(dynamics.kinematics().total_mass(), moment[3], 1e-12 * moment[3]);
    EXPECT_LT(difference(c, moment.head<3>() / moment[3]), 1e-12);
    EXPECT_LT(difference(J * s.v, c_rate), 1e-12);
    // The weight does work at the joints: g(q) = −m Jᵀ g.
    Eigen::VectorXd tau(s.model.nv);
    ASSERT_EQ(dynamics.families().newton_euler.gravity(s.q, tau), Status::ok);
    EXPECT_LT(difference(-moment[3] * J.transpose() * dynamics.gravity(), tau), 1e-12);

    const Energy<double> E = dynamics.kinematics().energy();
    Eigen::MatrixXd M(s.model.nv, s.model.nv);
    ASSERT_EQ(dynamics.families().composite_body.mass_matrix(s.q, M), Status::ok);
    const double kinetic = 0.5 * s.v.dot(M * s.v);
    EXPECT_NEAR(E.kinetic, kinetic, 1e-12 * kinetic);
    EXPECT_NEAR(E.potential, -moment.head<3>().dot(dynamics.gravity()),
                1e-12 * moment.norm() * dynamics.gravity().norm());
  }
}

// q̇ is the derivative of integrate(), and two half steps make one step: v is constant in the axes
// that it is given in.
TEST_P(KinematicsTest, IntegrationFollowsTheRate) {
  const double dt = 1e-6;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    support::Sample s(GetParam(), seed);
    Dynamics<double> dynamics(s.model);
    Eigen::VectorXd rate(s.model.nq);
    Eigen::VectorXd before(s.model.nq);
    Eigen::VectorXd after(s.model.nq);
    ASSERT_EQ(dynamics.kinematics().configuration_rate(s.q, s.v, rate), Status::ok);
    ASSERT_EQ(dynamics.kinematics().integrate(s.q, s.v, -dt, before), Status::ok);
    ASSERT_EQ(dynamics.kinematics().integrate(s.q, s.v, dt, after), Status::ok);
    EXPECT_LT(difference((after - before) / (2 * dt), rate), 1e-8);

    Eigen::VectorXd whole(s.model.nq);
    Eigen::VectorXd halves = s.q;
    ASSERT_EQ(dynamics.kinematics().integrate(s.q, s.v, 0.8, whole), Status::ok);
    ASSERT_EQ(dynamics.kinematics().integrate(halves, s.v, 0.4, halves), Status::ok);  // in place
    ASSERT_EQ(dynamics.kinematics().integrate(halves, s.v, 0.4, halves), Status::ok);
    EXPECT_LT(difference(halves, whole), 1e-13);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, KinematicsTest, testing::ValuesIn(support::kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

namespace {

RobotDescription free_body() {
  RobotDescription robot;
  Inertial inertial{2.0, {0.1, 0.0, 0.0}, Eigen::Vector3d(0.1, 0.2, 0.25).asDiagonal()};
  robot.links.push_back({"body", inertial});
  return robot;
}

Model free_body_model() {
  ModelOptions options;
  options.floating_base = true;
  return build_model(free_body(), options);
}

}  // namespace

// A free body with v = ω along z and u along x drives round a circle of radius u/ω.
TEST(Kinematics, ConstantTwistIsACircle) {
  const Model model = free_body_model();
  Dynamics<double> dynamics(model);
  Eigen::VectorXd v(6);
  v << 0.0, 0.0, 0.5, 2.0, 0.0, 0.0;
  Eigen::VectorXd q = model.neutral();
  const double angle = 0.5 * 1.4;
  ASSERT_EQ(dynamics.kinematics().integrate(q, v, 1.4, q), Status::ok);
  EXPECT_NEAR(q[0], 4.0 * std::sin(angle), 1e-15);
  EXPECT_NEAR(q[1], 4.0 * (1.0 - std::cos(angle)), 1e-15);
  EXPECT_NEAR(q[5], std::sin(angle / 2), 1e-15);
  EXPECT_NEAR(q[6], std::cos(angle / 2), 1e-15);
}

// The exponential has no seam at zero angle: for ever smaller ω it tends to the straight line.
TEST(Kinematics, SmallAnglesAreExact) {
  const Model model = free_body_model();
  Dynamics<double> dynamics(model);
  for (const double w : {0.0, 1e-300, 1e-160, 1e-110, 1e-30, 1e-12, 1e-8, 1e-5}) {
    Eigen::VectorXd v(6);
    v << 0.0, w, 0.0, 3.0, 0.0, 0.0;
    Eigen::VectorXd q = model.neutral();
    ASSERT_EQ(dynamics.kinematics().integrate(q, v, 1.0, q), Status::ok);
    EXPECT_NEAR(q[0], 3.0 * (1.0 - w * w / 6), 1e-15) << w;
    EXPECT_NEAR(q[2], -1.5 * w, 1e-15) << w;
    EXPECT_NEAR(q[4], 0.5 * w, 2.3e-16) << w;
  }
}

TEST(Kinematics, QuaternionsOfAnyLength) {
  const Model model = free_body_model();
  Dynamics<double> dynamics(model);
  Eigen::VectorXd q = model.neutral();
  q.tail<4>() << 0.0, 3.0, 0.0, 4.0;
  Eigen::VectorXd unit = q;
  ASSERT_EQ(dynamics.kinematics().normalize(unit), Status::ok);
  EXPECT_LT((unit.tail<4>() - q.tail<4>() / 5).norm(), 2.3e-16);

  Eigen::VectorXd v = Eigen::VectorXd::LinSpaced(6, -1.0, 1.0);
  Eigen::VectorXd rate(7);
  Eigen::VectorXd unit_rate(7);
  ASSERT_EQ(dynamics.kinematics().configuration_rate(q, v, rate), Status::ok);
  ASSERT_EQ(dynamics.kinematics().configuration_rate(unit, v, unit_rate), Status::ok);
  EXPECT_LT((rate.head<3>() - unit_rate.head<3>()).norm(), 1e-15);
  EXPECT_LT((rate.tail<4>() - 5 * unit_rate.tail<4>()).norm(), 1e-14);
  EXPECT_NEAR(rate.tail<4>().dot(q.tail<4>()), 0.0, 1e-14);

  q.tail<4>().setZero();
  EXPECT_EQ(dynamics.kinematics().normalize(q), Status::out_of_range);
  EXPECT_EQ(dynamics.kinematics().configuration_rate(q, v, rate), Status::out_of_range);
  EXPECT_EQ(dynamics.kinematics().integrate(q, v, 0.1, rate), Status::out_of_range);
}

TEST(Kinematics, UpdateWithoutVelocityIsAtRest) {
  support::Sample s(support::kinds().back(), 3);
  Dynamics<double> dynamics(s.model);
  const int link = static_cast<int>(s.model.links.size()) - 1;
  ASSERT_EQ(dynamics.kinematics().update(s.q, s.v), Status::ok);
  EXPECT_GT(dynamics.kinematics().energy().kinetic, 0.0);
  ASSERT_EQ(dynamics.kinematics().update(s.q), Status::ok);
  Motion<double> V;
  ASSERT_EQ(dynamics.kinematics().velocity(link, V), Status::ok);
  EXPECT_EQ(stacked(V).norm(), 0.0);
  EXPECT_EQ(dynamics.kinematics().energy().kinetic, 0.0);
}

TEST(Kinematics, PayloadMovesTheCentreOfMass) {
  const Model model = free_body_model();
  Dynamics<double> dynamics(model);
  ASSERT_EQ(dynamics.set_payload(0, {6.0, {0.1, 0.4, 0.0}, Symmetric3<double>::zero()}),
            Status::ok);
  ASSERT_EQ(dynamics.kinematics().update(model.neutral()), Status::ok);
  Eigen::Vector3d c;
  ASSERT_EQ(dynamics.kinematics().centre_of_mass(c), Status::ok);
  EXPECT_LT((c - Eigen::Vector3d(0.1, 0.3, 0.0)).norm(), 1e-15);
  EXPECT_DOUBLE_EQ(dynamics.kinematics().total_mass(), 8.0);
}

TEST(Kinematics, RefusesBadArguments) {
  support::Sample s(support::kinds().front(), 1);
  Dynamics<double> dynamics(s.model);
  const int nv = s.model.nv;
  const int none = static_cast<int>(s.model.links.size());
  Eigen::VectorXd bad_q = s.q;
  bad_q[0] = std::nan("");
  Eigen::VectorXd bad_v = s.v;
  bad_v[0] = INFINITY;
  Eigen::VectorXd longer(nv + 1);
  longer.setZero();
  EXPECT_EQ(dynamics.kinematics().update(bad_q), Status::not_finite);
  EXPECT_EQ(dynamics.kinematics().update(longer), Status::wrong_size);
  EXPECT_EQ(dynamics.kinematics().update(bad_q, s.v), Status::not_finite);
  EXPECT_EQ(dynamics.kinematics().update(s.q, bad_v), Status::not_finite);
  EXPECT_EQ(dynamics.kinematics().update(s.q, longer), Status::wrong_size);
  ASSERT_EQ(dynamics.kinematics().update(s.q, s.v), Status::ok);

  Pose<double> X;
  Motion<double> V;
  Eigen::MatrixXd J(6, nv);
  Eigen::MatrixXd wide(6, nv + 1);
  for (const int link : {-1, none}) {
    EXPECT_EQ(dynamics.kinematics().pose(link, X), Status::out_of_range);
    EXPECT_EQ(dynamics.kinematics().velocity(link, V), Status::out_of_range);
    EXPECT_EQ(dynamics.kinematics().bias_acceleration(link, V), Status::out_of_range);
    EXPECT_EQ(dynamics.kinematics().jacobian(link, J), Status::out_of_range);
    EXPECT_EQ(dynamics.kinematics().jacobian_rate(link, J), Status::out_of_range);
  }
  EXPECT_EQ(dynamics.kinematics().jacobian(0, wide), Status::wrong_size);
  EXPECT_EQ(dynamics.kinematics().jacobian_rate(0, wide), Status::wrong_size);
  EXPECT_EQ(dynamics.kinematics().centre_of_mass_jacobian(J), Status::wrong_size);

  Eigen::VectorXd out(nv);
  EXPECT_EQ(dynamics.kinematics().configuration_rate(bad_q, s.v, out), Status::not_finite);
  EXPECT_EQ(dynamics.kinematics().configuration_rate(s.q, bad_v, out), Status::not_finite);
  EXPECT_EQ(dynamics.kinematics().configuration_rate(s.q, s.v, longer), Status::wrong_size);
  EXPECT_EQ(dynamics.kinematics().integrate(bad_q, s.v, 0.1, out), Status::not_finite);
  EXPECT_EQ(dynamics.kinematics().integrate(s.q, bad_v, 0.1, out), Status::not_finite);
  EXPECT_EQ(dynamics.kinematics().integrate(s.q, s.v, std::nan(""), out), Status::not_finite);
  EXPECT_EQ(dynamics.kinematics().integrate(s.q, s.v, 0.1, longer), Status::wrong_size);
  EXPECT_EQ(dynamics.kinematics().normalize(longer), Status::wrong_size);
}

TEST(Kinematics, NoMassHasNoCentre) {
  RobotDescription robot = free_body();
  robot.links[0].inertial.reset();
  ModelOptions options;
  options.floating_base = true;
  const Model model = build_model(robot, options);
  Dynamics<double> dynamics(model);
  ASSERT_EQ(dynamics.kinematics().update(model.neutral()), Status::ok);
  Eigen::Vector3d c;
  Eigen::MatrixXd J(3, model.nv);
  EXPECT_EQ(dynamics.kinematics().centre_of_mass(c), Status::singular);
  EXPECT_EQ(dynamics.kinematics().centre_of_mass_velocity(c), Status::singular);
  EXPECT_EQ(dynamics.kinematics().centre_of_mass_jacobian(J), Status::singular);
}

// One text, two scalars.
TEST(Kinematics, SinglePrecision) {
  support::Sample s(support::kinds().back(), 5);
  Dynamics<double> dynamics(s.model);
  Dynamics<float> wf(s.model);
  ASSERT_EQ(dynamics.kinematics().update(s.q, s.v), Status::ok);
  const Eigen::VectorXf qf = s.q.cast<float>();
  const Eigen::VectorXf vf = s.v.cast<float>();
  ASSERT_EQ(wf.kinematics().update(qf, vf), Status::ok);
  const int link = static_cast<int>(s.model.links.size()) - 1;
  Eigen::MatrixXd J(6, s.model.nv);
  Eigen::MatrixXf Jf(6, s.model.nv);
  ASSERT_EQ(dynamics.kinematics().jacobian(link, J), Status::ok);
  ASSERT_EQ(wf.kinematics().jacobian(link, Jf), Status::ok);
  EXPECT_LT(difference(Jf.cast<double>(), J), 1e-5);
  const double E = dynamics.kinematics().energy().kinetic;
  EXPECT_NEAR(static_cast<double>(wf.kinematics().energy().kinetic), E, 1e-5 * E);
}

TEST(Kinematics, AllocatesNothing) {
  support::Sample s = support::large_robot();
  Dynamics<double> dynamics(s.model);
  const int link = static_cast<int>(s.model.links.size()) - 1;
  Eigen::MatrixXd J(6, s.model.nv);
  Eigen::MatrixXd J_c(3, s.model.nv);
  Eigen::VectorXd rate(s.model.nq);
  Eigen::Vector3d c;
  Pose<double> X;
  Motion<double> V;
  bool ok = true;
  const support::AllocationGuard guard;
  ok = ok && dynamics.kinematics().update(s.q) == Status::ok;
  ok = ok && dynamics.kinematics().update(s.q, s.v) == Status::ok;
  ok = ok && dynamics.kinematics().pose(link, X) == Status::ok;
  ok = ok && dynamics.kinematics().velocity(link, V) == Status::ok;
  ok = ok && dynamics.kinematics().bias_acceleration(link, V) == Status::ok;
  ok = ok && dynamics.kinematics().jacobian(link, J) == Status::ok;
  ok = ok && dynamics.kinematics().jacobian_rate(link, J) == Status::ok;
  ok = ok && dynamics.kinematics().centre_of_mass(c) == Status::ok;
  ok = ok && dynamics.kinematics().centre_of_mass_velocity(c) == Status::ok;
  ok = ok && dynamics.kinematics().centre_of_mass_jacobian(J_c) == Status::ok;
  ok = ok && dynamics.kinematics().energy().kinetic > 0.0;
  ok = ok && dynamics.kinematics().configuration_rate(s.q, s.v, rate) == Status::ok;
  ok = ok && dynamics.kinematics().integrate(s.q, s.v, 0.1, s.q) == Status::ok;
  ok = ok && dynamics.kinematics().normalize(s.q) == Status::ok;
  EXPECT_EQ(guard.count(), 0);
  EXPECT_TRUE(ok);
}
