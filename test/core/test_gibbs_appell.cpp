// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/families.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "support/planar_arm.hpp"
#include "support/trees.hpp"

namespace {

using namespace dynamics_core;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using support::close_to;
using support::RandomTree;

constexpr unsigned trees = 400;

TEST(GibbsAppell, InverseDynamicsAgreesWithNewtonEulerOnTrees) {
  for (unsigned seed = 1; seed <= trees; ++seed) {
    const RandomTree t(seed);
    SCOPED_TRACE(t.trace());
    Dynamics<double> dynamics(t.model);
    support::load_randomly(seed, t.model, dynamics);
    VectorXd tau(t.model.nv), expected(t.model.nv);
    ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(t.q, t.v, t.a, expected),
              Status::ok);
    ASSERT_EQ(dynamics.families().gibbs_appell.inverse_dynamics(t.q, t.v, t.a, tau), Status::ok);
    ASSERT_TRUE(close_to(tau, expected, 1e-11));
    ASSERT_EQ(dynamics.families().newton_euler.bias(t.q, t.v, expected), Status::ok);
    ASSERT_EQ(dynamics.families().gibbs_appell.bias(t.q, t.v, tau), Status::ok);
    ASSERT_TRUE(close_to(tau, expected, 1e-11));
  }
}

TEST(GibbsAppell, MassMatrixAgreesWithCompositeBodiesOnTrees) {
  for (unsigned seed = 1; seed <= trees; ++seed) {
    const RandomTree t(seed);
    SCOPED_TRACE(t.trace());
    Dynamics<double> dynamics(t.model);
    support::load_randomly(seed, t.model, dynamics);
    MatrixXd M = MatrixXd::Constant(t.model.nv, t.model.nv, 7.0);  // nothing may shine through
    MatrixXd expected(t.model.nv, t.model.nv);
    ASSERT_EQ(dynamics.families().composite_body.mass_matrix(t.q, expected), Status::ok);
    ASSERT_EQ(dynamics.families().gibbs_appell.mass_matrix(t.q, M), Status::ok);
    ASSERT_TRUE(close_to(M, expected, 1e-11));
    ASSERT_EQ(M, M.transpose());
  }
}

TEST(GibbsAppell, ForwardDynamicsUndoesInverseDynamics) {
  for (unsigned seed = 1; seed <= trees; ++seed) {
    const RandomTree t(seed);
    SCOPED_TRACE(t.trace());
    Dynamics<double> dynamics(t.model);
    support::load_randomly(seed, t.model, dynamics);
    VectorXd tau(t.model.nv), a(t.model.nv), back(t.model.nv);
    ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(t.q, t.v, t.a, tau), Status::ok);
    ASSERT_EQ(dynamics.families().gibbs_appell.forward_dynamics(t.q, t.v, tau, a), Status::ok);
    ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(t.q, t.v, a, back), Status::ok);
    ASSERT_TRUE(close_to(back, tau, 1e-8));
  }
}

TEST(GibbsAppell, RefinementLeavesAGoodSolutionAlone) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    const RandomTree t(seed);
    SCOPED_TRACE(t.trace());
    Dynamics<double> dynamics(t.model);
    VectorXd tau(t.model.nv), a(t.model.nv);
    ASSERT_EQ(dynamics.families().gibbs_appell.inverse_dynamics(t.q, t.v, t.a, tau), Status::ok);
    ASSERT_EQ(dynamics.families().gibbs_appell.forward_dynamics(t.q, t.v, tau, a), Status::ok);
    const double before = (a - t.a).norm();
    ASSERT_EQ(dynamics.families().gibbs_appell.refine(t.q, t.v, tau, a), Status::ok);
    EXPECT_LE((a - t.a).norm(), before + 1e-9 * (1.0 + t.a.norm()));
  }
}

TEST(GibbsAppell, IsTheClosedFormOfThePlanarArm) {
  support::PlanarArm arm;
  Dynamics<double> dynamics(arm.model());
  support::Random random(11);
  for (int k = 0; k < 50; ++k) {
    const VectorXd q = random.vector_x(3, 3.0);
    const VectorXd v = random.vector_x(3, 3.0);
    const VectorXd a = random.vector_x(3, 10.0);
    arm.evaluate(q, v);
    VectorXd tau(3), bias(3);
    MatrixXd M(3, 3);
    ASSERT_EQ(dynamics.families().gibbs_appell.inverse_dynamics(q, v, a, tau), Status::ok);
    ASSERT_EQ(dynamics.families().gibbs_appell.bias(q, v, bias), Status::ok);
    ASSERT_EQ(dynamics.families().gibbs_appell.mass_matrix(q, M), Status::ok);
    ASSERT_TRUE(close_to(tau, VectorXd(arm.M * a + arm.C * v + arm.gravity), 1e-13));
    ASSERT_TRUE(close_to(bias, VectorXd(arm.C * v + arm.gravity), 1e-13));
    ASSERT_TRUE(close_to(M, MatrixXd(arm.M), 1e-13));
  }
}

/// The bodies' equivalent mass properties: what a revolute or prismatic joint hands down is gone.
TEST(GibbsAppell, EquivalentMassPropertiesAreSparse) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    const RandomTree t(seed);
    SCOPED_TRACE(t.trace());
    Dynamics<double> dynamics(t.model);
    for (int i = 0; i < t.model.nb(); ++i) {
      const auto& own = dynamics.families().gibbs_appell.equivalent_inertia(i);
      const JointKind kind = dynamics.tree().bodies()[i].kind;
      if (kind == JointKind::revolute) {
        EXPECT_EQ(own.m, 0.0);
        EXPECT_EQ(own.h[2], 0.0);
        EXPECT_EQ(own.J.zz, 0.0);
      }
      if (kind == JointKind::prismatic) {
        EXPECT_EQ(own.J.matrix(), Eigen::Matrix3d::Zero());
      }
    }
  }
}

/// They must follow the payload, on and off again, and in any configuration.
TEST(GibbsAppell, FollowsAPayloadThatComesAndGoes) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    const RandomTree t(seed);
    SCOPED_TRACE(t.trace());
    Dynamics<double> dynamics(t.model);
    VectorXd before(t.model.nv), tau(t.model.nv), expected(t.model.nv);
    ASSERT_EQ(dynamics.families().gibbs_appell.inverse_dynamics(t.q, t.v, t.a, before), Status::ok);
    const int link = static_cast<int>(seed % t.model.links.size());
    const Payload<double> load = {2.0, {0.1, -0.2, 0.3}, {0.02, 0.0, 0.001, 0.03, 0.0, 0.04}};
    const Payload<double> none = {0.0, {0.0, 0.0, 0.0}, Symmetric3<double>::zero()};
    ASSERT_EQ(dynamics.set_payload(link, load), Status::ok);
    ASSERT_EQ(dynamics.families().gibbs_appell.inverse_dynamics(t.q, t.v, t.a, tau), Status::ok);
    ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(t.q, t.v, t.a, expected),
              Status::ok);
    ASSERT_TRUE(close_to(tau, expected, 1e-11));
    ASSERT_EQ(dynamics.set_payload(link, none), Status::ok);
    ASSERT_EQ(dynamics.families().gibbs_appell.inverse_dynamics(t.q, t.v, t.a, tau), Status::ok);
    ASSERT_TRUE(close_to(tau, before, 1e-14));
  }
}

TEST(GibbsAppell, SinglePrecisionIsTheSameText) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    const RandomTree t(seed);
    SCOPED_TRACE(t.trace());
    Dynamics<double> dynamics(t.model);
    Dynamics<float> wf(t.model);
    VectorXd tau(t.model.nv);
    Eigen::VectorXf tau_f(t.model.nv);
    const Eigen::VectorXf q = t.q.cast<float>(), v = t.v.cast<float>(), a = t.a.cast<float>();
    ASSERT_EQ(dynamics.families().gibbs_appell.inverse_dynamics(t.q, t.v, t.a, tau), Status::ok);
    ASSERT_EQ(wf.families().gibbs_appell.inverse_dynamics(q, v, a, tau_f), Status::ok);
    ASSERT_TRUE(close_to(VectorXd(tau_f.cast<double>()), tau, 1e-3));
  }
}

TEST(GibbsAppell, ArgumentsAreChecked) {
  const RandomTree t(3);
  const int n = t.model.nv;
  Dynamics<double> dynamics(t.model);
  VectorXd tau(n), bad = t.v, wrong(n + 1);
  MatrixXd M(n, n), narrow(n, n + 1);
  bad[0] = std::numeric_limits<double>::quiet_NaN();
  VectorXd bad_q = t.q;
  bad_q[0] = std::numeric_limits<double>::infinity();
  wrong.setZero();
  GibbsAppell<double>& family = dynamics.families().gibbs_appell;
  EXPECT_EQ(family.inverse_dynamics(wrong, t.v, t.a, tau), Status::wrong_size);
  EXPECT_EQ(family.inverse_dynamics(t.q, wrong, t.a, tau), Status::wrong_size);
  EXPECT_EQ(family.inverse_dynamics(t.q, t.v, wrong, tau), Status::wrong_size);
  EXPECT_EQ(family.inverse_dynamics(t.q, t.v, t.a, wrong), Status::wrong_size);
  EXPECT_EQ(family.inverse_dynamics(bad_q, t.v, t.a, tau), Status::not_finite);
  EXPECT_EQ(family.inverse_dynamics(t.q, bad, t.a, tau), Status::not_finite);
  EXPECT_EQ(family.inverse_dynamics(t.q, t.v, bad, tau), Status::not_finite);
  EXPECT_EQ(family.bias(bad_q, t.v, tau), Status::not_finite);
  EXPECT_EQ(family.bias(t.q, bad, tau), Status::not_finite);
  EXPECT_EQ(family.bias(t.q, t.v, wrong), Status::wrong_size);
  EXPECT_EQ(family.mass_matrix(bad_q, M), Status::not_finite);
  EXPECT_EQ(family.mass_matrix(t.q, narrow), Status::wrong_size);
  EXPECT_EQ(family.forward_dynamics(bad_q, t.v, t.a, tau), Status::not_finite);
  EXPECT_EQ(family.forward_dynamics(t.q, bad, t.a, tau), Status::not_finite);
  EXPECT_EQ(family.forward_dynamics(t.q, t.v, bad, tau), Status::not_finite);
  EXPECT_EQ(family.forward_dynamics(t.q, t.v, t.a, wrong), Status::wrong_size);
  EXPECT_EQ(family.refine(t.q, t.v, bad, tau), Status::not_finite);
  EXPECT_EQ(family.refine(t.q, t.v, t.a, bad), Status::not_finite);
}

TEST(GibbsAppell, AMasslessTipIsSingularButHasInverseDynamics) {
  support::Random random(5);
  RobotDescription robot = random.robot({});
  robot.links.back().inertial.reset();
  const Model model = build_model(robot);
  Dynamics<double> dynamics(model);
  const VectorXd q = random.vector_x(6, 2.0), v = random.vector_x(6, 2.0), a = v;
  VectorXd tau(6), expected(6);
  EXPECT_EQ(dynamics.families().gibbs_appell.inverse_dynamics(q, v, a, tau), Status::ok);
  EXPECT_EQ(dynamics.families().newton_euler.inverse_dynamics(q, v, a, expected), Status::ok);
  EXPECT_TRUE(close_to(tau, expected, 1e-12));
  EXPECT_EQ(dynamics.families().gibbs_appell.forward_dynamics(q, v, a, tau), Status::singular);
}

}  // namespace
