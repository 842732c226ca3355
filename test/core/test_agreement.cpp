// SPDX-License-Identifier: Apache-2.0
/// Every method against every other, and what must hold of any robot, over thousands of random
/// trees: chains and trees up to 64 joints, revolute, prismatic, planar and floating joints, floating
/// bases, mimic joints, rotors, payloads and external forces.

#include <gtest/gtest.h>

#include "dynamics_core/families.hpp"
#include "support/linear_algebra.hpp"
#include "support/trees.hpp"

using namespace dynamics_core;
using support::close_to;
using support::RandomTree;

namespace {

constexpr unsigned trees = 3000;

/// Where M is badly conditioned no method can return an acceleration to full precision; what must
/// hold is that it explains the torque.
[[nodiscard]] double torque_error(const Eigen::MatrixXd& M, const Eigen::VectorXd& a,
                                  const Eigen::VectorXd& expected) {
  const Eigen::VectorXd scale = M.cwiseAbs() * expected.cwiseAbs();
  return (M * (a - expected)).norm() / (1.0 + scale.norm());
}

class Agreement : public ::testing::Test {
 protected:
  template <class Check>
  void for_all_trees(const Check& check) {
    for (unsigned seed = 1; seed <= trees; ++seed) {
      const RandomTree tree(seed);
      if (tree.model.nv == 0) continue;
      SCOPED_TRACE(tree.trace());
      Dynamics<double> dynamics(tree.model);
      support::load_randomly(seed, tree.model, dynamics);
      check(tree, dynamics);
      if (HasFailure()) return;
    }
  }
};

TEST_F(Agreement, InverseDynamicsAndBias) {
  for_all_trees([](const RandomTree& t, Dynamics<double>& dynamics) {
    const int n = t.model.nv;
    Eigen::VectorXd expected(n), expected_bias(n), tau(n);
    ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(t.q, t.v, t.a, expected),
              Status::ok);
    ASSERT_EQ(dynamics.families().newton_euler.bias(t.q, t.v, expected_bias), Status::ok);
    for (const Method method : {Method::denoc, Method::gibbs_appell}) {
      ASSERT_EQ(support::with(dynamics, method).inverse_dynamics(t.q, t.v, t.a, tau), Status::ok);
      EXPECT_TRUE(close_to(tau, expected, 1e-9)) << to_string(method);
      ASSERT_EQ(support::with(dynamics, method).bias(t.q, t.v, tau), Status::ok);
      EXPECT_TRUE(close_to(tau, expected_bias, 1e-9)) << to_string(method);
    }
  });
}

TEST_F(Agreement, MassMatrixIsSymmetricPositiveDefiniteAndTheSameForAll) {
  for_all_trees([](const RandomTree& t, Dynamics<double>& dynamics) {
    const int n = t.model.nv;
    Eigen::MatrixXd expected(n, n), M(n, n);
    ASSERT_EQ(dynamics.families().composite_body.mass_matrix(t.q, expected), Status::ok);
    EXPECT_EQ((expected - expected.transpose()).cwiseAbs().maxCoeff(), 0.0);
    const double smallest = support::eigenvalues(expected).minCoeff();
    EXPECT_GT(smallest, -1e-12 * expected.cwiseAbs().maxCoeff());
    for (const Method method : {Method::denoc, Method::gibbs_appell}) {
      ASSERT_EQ(support::with(dynamics, method).mass_matrix(t.q, M), Status::ok);
      EXPECT_TRUE(close_to(M, expected, 1e-9)) << to_string(method);
    }
    // τ is affine in a, and M is its slope.
    Eigen::VectorXd with(n), without(n);
    ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(t.q, t.v, t.a, with), Status::ok);
    ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(t.q, t.v, Eigen::VectorXd::Zero(n),
                                                                without),
              Status::ok);
    EXPECT_TRUE(close_to(Eigen::VectorXd(with - without), Eigen::VectorXd(expected * t.a), 1e-9));
  });
}

TEST_F(Agreement, ForwardDynamicsInvertsInverseDynamics) {
  for_all_trees([](const RandomTree& t, Dynamics<double>& dynamics) {
    const int n = t.model.nv;
    Eigen::VectorXd tau(n), a(n);
    Eigen::MatrixXd M(n, n);
    ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(t.q, t.v, t.a, tau), Status::ok);
    ASSERT_EQ(dynamics.families().composite_body.mass_matrix(t.q, M), Status::ok);
    for (const Method method :
         {Method::articulated_body, Method::udut, Method::cholesky, Method::gibbs_appell}) {
      const bool through_M = method == Method::cholesky || method == Method::gibbs_appell;
      const Status status = support::with(dynamics, method).forward_dynamics(t.q, t.v, tau, a);
      if (dynamics.tree().has_mimic() && !through_M) {
        EXPECT_EQ(status, Status::unsupported_joint) << to_string(method);
        continue;
      }
      ASSERT_EQ(status, Status::ok) << to_string(method);
      EXPECT_LT(torque_error(M, a, t.a), 1e-9) << to_string(method);
    }
  });
}

TEST_F(Agreement, GravityIsTheTorqueAtRest) {
  for_all_trees([](const RandomTree& t, Dynamics<double>& dynamics) {
    const Eigen::VectorXd rest = Eigen::VectorXd::Zero(t.model.nv);
    Eigen::VectorXd g(t.model.nv), tau(t.model.nv);
    dynamics.clear_external_forces();
    ASSERT_EQ(dynamics.families().newton_euler.gravity(t.q, g), Status::ok);
    ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(t.q, rest, rest, tau), Status::ok);
    EXPECT_TRUE(close_to(g, tau, 1e-9));
  });
}

TEST_F(Agreement, PowerOfTheTorquesIsTheRateOfEnergy) {
  for_all_trees([](const RandomTree& t, Dynamics<double>& dynamics) {
    const int n = t.model.nv;
    dynamics.clear_external_forces();
    Eigen::VectorXd tau(n), q(t.model.nq);
    ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(t.q, t.v, t.a, tau), Status::ok);
    const auto energy_at = [&](double time) {
      // q moves with the mean of v over the step, which is exact to second order.
      const Eigen::VectorXd v = t.v + time * t.a;
      const Eigen::VectorXd mean = t.v + 0.5 * time * t.a;
      EXPECT_EQ(dynamics.kinematics().integrate(t.q, mean, time, q), Status::ok);
      EXPECT_EQ(dynamics.kinematics().update(q, v), Status::ok);
      const Energy<double> e = dynamics.kinematics().energy();
      return e.kinetic + e.potential;
    };
    const double h = 1e-5;
    const double rate = (energy_at(h) - energy_at(-h)) / (2.0 * h);
    const double scale = 1.0 + tau.cwiseAbs().dot(t.v.cwiseAbs());
    EXPECT_LT(std::abs(rate - tau.dot(t.v)) / scale, 1e-6);
  });
}

TEST_F(Agreement, LoadIsTheSameAsAMergedLink) {
  for (unsigned seed = 1; seed <= 500; ++seed) {
    support::Random random(seed);
    support::RandomOptions options;
    options.joints = random.integer(1, 12);
    options.branching = 0.4;
    options.prismatic = 0.3;
    RobotDescription robot = random.robot(options);
    const Inertial load = random.inertial();
    const Model bare = build_model(robot);
    const int at = random.integer(0, static_cast<int>(robot.links.size()) - 1);
    JointDescription weld;
    weld.name = "weld";
    weld.type = JointType::fixed;
    weld.parent = robot.links[static_cast<std::size_t>(at)].name;
    weld.child = "load";
    robot.joints.push_back(weld);
    robot.links.push_back({"load", load});
    const Model merged = build_model(robot);
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dynamics<double> with_payload(bare);
    Dynamics<double> with_link(merged);
    ASSERT_EQ(
        with_payload.set_payload(at, {load.mass, load.com, Symmetric3<double>::from(load.inertia)}),
        Status::ok);
    const Eigen::VectorXd q = random.configuration(bare);
    const Eigen::VectorXd v = random.vector_x(bare.nv, 2.0);
    const Eigen::VectorXd a = random.vector_x(bare.nv, 5.0);
    Eigen::VectorXd one(bare.nv), other(bare.nv);
    for (const Method method : {Method::newton_euler, Method::denoc, Method::gibbs_appell}) {
      ASSERT_EQ(support::with(with_payload, method).inverse_dynamics(q, v, a, one), Status::ok);
      ASSERT_EQ(support::with(with_link, method).inverse_dynamics(q, v, a, other), Status::ok);
      EXPECT_TRUE(close_to(one, other, 1e-9)) << to_string(method);
    }
    for (const Method method : {Method::articulated_body, Method::udut, Method::gibbs_appell}) {
      ASSERT_EQ(support::with(with_payload, method).forward_dynamics(q, v, a, one), Status::ok);
      ASSERT_EQ(support::with(with_link, method).forward_dynamics(q, v, a, other), Status::ok);
      EXPECT_TRUE(close_to(one, other, 1e-7)) << to_string(method);
    }
    ASSERT_EQ(
        with_payload.set_payload(at, {0.0, Eigen::Vector3d::Zero(), Symmetric3<double>::zero()}),
        Status::ok);
    Dynamics<double> fresh(bare);
    ASSERT_EQ(with_payload.families().newton_euler.inverse_dynamics(q, v, a, one), Status::ok);
    ASSERT_EQ(fresh.families().newton_euler.inverse_dynamics(q, v, a, other), Status::ok);
    EXPECT_EQ(one, other) << "taking the load off leaves nothing behind";
  }
}

/// What the base's first three and last three coordinates feel is what holds the whole robot: the
/// rate of its momentum less gravity. Free of actuation the momentum of a floating robot stays.
TEST_F(Agreement, BaseForceIsTheRateOfMomentum) {
  for (unsigned seed = 1; seed <= 500; ++seed) {
    support::Random random(seed);
    support::RandomOptions options;
    options.joints = random.integer(1, 12);
    options.branching = 0.4;
    options.prismatic = 0.2;
    ModelOptions build;
    build.floating_base = true;
    const Model model = build_model(random.robot(options), build);
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dynamics<double> dynamics(model);
    const Eigen::VectorXd q = random.configuration(model);
    const Eigen::VectorXd v = random.vector_x(model.nv, 2.0);
    const Eigen::VectorXd a = random.vector_x(model.nv, 5.0);
    Eigen::VectorXd tau(model.nv), moved(model.nq);
    ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(q, v, a, tau), Status::ok);
    // Linear momentum m·ċ by finite differences of the centre of mass's velocity.
    const auto com_velocity = [&](double time) {
      const Eigen::VectorXd mean = v + 0.5 * time * a;
      EXPECT_EQ(dynamics.kinematics().integrate(q, mean, time, moved), Status::ok);
      EXPECT_EQ(dynamics.kinematics().update(moved, Eigen::VectorXd(v + time * a)), Status::ok);
      Eigen::Vector3d v_WC;
      EXPECT_EQ(dynamics.kinematics().centre_of_mass_velocity(v_WC), Status::ok);
      return v_WC;
    };
    const double h = 1e-5;
    const double mass = dynamics.kinematics().total_mass();
    const Eigen::Vector3d rate = mass * (com_velocity(h) - com_velocity(-h)) / (2.0 * h);
    const Eigen::Vector3d f_W = rate - mass * model.gravity;
    const Eigen::Quaterniond R(q[6], q[3], q[4], q[5]);
    const Eigen::Vector3d f_B = R.conjugate() * f_W;
    EXPECT_LT((f_B - tau.segment(3, 3)).norm() / (1.0 + f_B.norm()), 1e-6);
  }
}

}  // namespace
