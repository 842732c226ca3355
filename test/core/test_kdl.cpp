// SPDX-License-Identifier: Apache-2.0
/// Orocos KDL as an oracle: it knows nothing of this library and uses neither its frames nor its
/// recursions. Chains are built in KDL from the same description, joint by joint.

#include <gtest/gtest.h>

#ifdef RD_HAVE_KDL

#include <kdl/chain.hpp>
#include <kdl/chaindynparam.hpp>
#include <kdl/chainfksolverpos_recursive.hpp>
#include <kdl/chainidsolver_recursive_newton_euler.hpp>
#include <kdl/chainjnttojacsolver.hpp>

#include "dynamics_core/families.hpp"
#include "support/random_model.hpp"

using namespace dynamics_core;

namespace {

KDL::Vector to_kdl(const Eigen::Vector3d& u) { return {u[0], u[1], u[2]}; }

KDL::Frame to_kdl(const Pose<double>& X) {
  const Eigen::Matrix3d& R = X.R;
  return {KDL::Rotation(R(0, 0), R(0, 1), R(0, 2), R(1, 0), R(1, 1), R(1, 2), R(2, 0), R(2, 1),
                        R(2, 2)),
          to_kdl(X.p)};
}

KDL::RigidBodyInertia to_kdl(const Inertial& link) {
  const Eigen::Matrix3d& I = link.inertia;
  return KDL::RigidBodyInertia(
      link.mass, to_kdl(link.com),
      KDL::RotationalInertia(I(0, 0), I(1, 1), I(2, 2), I(0, 1), I(0, 2), I(1, 2)));
}

/// A segment per joint: a joint at the segment's root, whose tip carries the next joint's origin.
KDL::Chain to_kdl(const RobotDescription& robot) {
  KDL::Chain chain;
  chain.addSegment(KDL::Segment(KDL::Joint(KDL::Joint::None), to_kdl(robot.joints[0].origin)));
  for (std::size_t i = 0; i < robot.joints.size(); ++i) {
    const JointDescription& j = robot.joints[i];
    const auto kind = j.type == JointType::prismatic ? KDL::Joint::TransAxis : KDL::Joint::RotAxis;
    const KDL::Joint joint(KDL::Vector::Zero(), to_kdl(j.axis), kind);
    const bool last = i + 1 == robot.joints.size();
    const KDL::Frame tip = last ? KDL::Frame::Identity() : to_kdl(robot.joints[i + 1].origin);
    // KDL gives the inertia in the tip's frame.
    const KDL::RigidBodyInertia at_root = to_kdl(*robot.links[i + 1].inertial);
    chain.addSegment(KDL::Segment(joint, tip, tip.Inverse() * at_root));
  }
  return chain;
}

KDL::JntArray to_kdl(const Eigen::VectorXd& x) {
  KDL::JntArray out(static_cast<unsigned>(x.size()));
  out.data = x;
  return out;
}

double relative(const Eigen::MatrixXd& x, const Eigen::MatrixXd& expected) {
  return (x - expected).cwiseAbs().maxCoeff() / std::max(1.0, expected.cwiseAbs().maxCoeff());
}

TEST(Kdl, AgreesOnRandomChains) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    support::Random random(seed);
    support::RandomOptions options;
    options.joints = random.integer(1, 12);
    options.prismatic = seed % 2 == 0 ? 0.3 : 0.0;
    options.aligned = seed % 3 == 0;
    const RobotDescription robot = random.robot(options);
    const Model model = build_model(robot);
    Dynamics<double> dynamics(model);
    const int n = model.nv;
    const Eigen::VectorXd q = random.configuration(model);
    const Eigen::VectorXd v = random.vector_x(n, 2.0);
    const Eigen::VectorXd a = random.vector_x(n, 5.0);

    const KDL::Chain chain = to_kdl(robot);
    const auto count = static_cast<unsigned>(n);
    KDL::JntArray tau_kdl(count), gravity_kdl(count);
    KDL::JntSpaceInertiaMatrix M_kdl(count);
    KDL::ChainDynParam parameters(chain, to_kdl(model.gravity));
    ASSERT_EQ(parameters.JntToMass(to_kdl(q), M_kdl), 0);
    ASSERT_EQ(parameters.JntToGravity(to_kdl(q), gravity_kdl), 0);
    KDL::ChainIdSolver_RNE inverse(chain, to_kdl(model.gravity));
    const KDL::Wrenches no_forces(chain.getNrOfSegments(), KDL::Wrench::Zero());
    ASSERT_EQ(inverse.CartToJnt(to_kdl(q), to_kdl(v), to_kdl(a), no_forces, tau_kdl), 0);

    Eigen::VectorXd tau(n), gravity(n);
    Eigen::MatrixXd M(n, n);
    for (const Method method : {Method::newton_euler, Method::denoc, Method::gibbs_appell}) {
      dynamics.use(method);
      ASSERT_EQ(dynamics.inverse_dynamics(q, v, a, tau), Status::ok);
      ASSERT_EQ(dynamics.mass_matrix(q, M), Status::ok);
      ASSERT_EQ(dynamics.gravity(q, gravity), Status::ok);
      EXPECT_LT(relative(tau, tau_kdl.data), 1e-9) << to_string(method);
      EXPECT_LT(relative(M, M_kdl.data), 1e-9) << to_string(method);
      EXPECT_LT(relative(gravity, gravity_kdl.data), 1e-9) << to_string(method);
    }

    KDL::Frame tip;
    KDL::ChainFkSolverPos_recursive(chain).JntToCart(to_kdl(q), tip);
    KDL::Jacobian J_kdl(count);
    KDL::ChainJntToJacSolver(chain).JntToJac(to_kdl(q), J_kdl);
    ASSERT_EQ(dynamics.kinematics().update(q, v), Status::ok);
    const int link = model.find_link(robot.links.back().name);
    Pose<double> X;
    ASSERT_EQ(dynamics.kinematics().pose(link, X), Status::ok);
    for (int r = 0; r < 3; ++r) {
      EXPECT_NEAR(X.p[r], tip.p[r], 1e-12);
      for (int c = 0; c < 3; ++c) EXPECT_NEAR(X.R(r, c), tip.M(r, c), 1e-12);
    }
    Eigen::MatrixXd J(6, n), expected(6, n);
    ASSERT_EQ(dynamics.kinematics().jacobian(link, J), Status::ok);
    expected << J_kdl.data.bottomRows(3), J_kdl.data.topRows(3);  // KDL has [v; ω]
    EXPECT_LT(relative(J, expected), 1e-11);
  }
}

}  // namespace

#else

TEST(Kdl, AgreesOnRandomChains) { GTEST_SKIP() << "built without Orocos KDL"; }

#endif
