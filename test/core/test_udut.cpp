// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/families.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "dynamics_core/counted_families.hpp"
#include "support/linear_algebra.hpp"
#include "support/planar_arm.hpp"
#include "support/trees.hpp"

namespace {

using namespace dynamics_core;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using support::close_to;
using support::RandomTree;

constexpr unsigned trees = 400;

MatrixXd mass_matrix(Dynamics<double>& dynamics, const VectorXd& q) {
  MatrixXd M(dynamics.nv(), dynamics.nv());
  EXPECT_EQ(dynamics.families().composite_body.mass_matrix(q, M), Status::ok);
  return M;
}

/// What round-off leaves of an inverse or a solution: it grows with the condition of M.
double bound(const MatrixXd& M) { return 1e-13 + 1e-15 * M.norm() * support::inverse(M).norm(); }

/// Is the body j an ancestor of k, or k itself?
bool above(const Model& model, int j, int k) {
  while (k > j) k = model.bodies[static_cast<std::size_t>(k)].parent;
  return k == j;
}

TEST(UdutFactors, MultiplyToTheMassMatrix) {
  for (unsigned seed = 1; seed <= trees; ++seed) {
    const RandomTree t(seed, false);
    SCOPED_TRACE(t.trace());
    const int n = t.model.nv;
    Dynamics<double> dynamics(t.model);
    support::load_randomly(seed, t.model, dynamics);
    MatrixXd U(n, n);
    VectorXd D(n);
    ASSERT_EQ(dynamics.families().udut.factorize(t.q), Status::ok);
    ASSERT_EQ(dynamics.families().udut.factors(U, D), Status::ok);
    ASSERT_TRUE(
        close_to(MatrixXd(U * D.asDiagonal() * U.transpose()), mass_matrix(dynamics, t.q), 1e-11));
    EXPECT_GT(D.size() == 0 ? 1.0 : D.minCoeff(), 0.0);
    for (int i = 0; i < n; ++i) {
      ASSERT_EQ(U(i, i), 1.0);
      for (int j = 0; j < n; ++j) {
        if (!above(t.model, i, j)) {
          ASSERT_EQ(U(i, j), 0.0) << i << ", " << j;
        }
      }
    }
  }
}

TEST(UdutForwardDynamics, UndoesInverseDynamicsAndAgreesWithArticulatedBodies) {
  for (unsigned seed = 1; seed <= trees; ++seed) {
    const RandomTree t(seed, false);
    SCOPED_TRACE(t.trace());
    Dynamics<double> dynamics(t.model);
    support::load_randomly(seed, t.model, dynamics);
    const int n = t.model.nv;
    VectorXd tau(n), a(n), other(n);
    ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(t.q, t.v, t.a, tau), Status::ok);
    ASSERT_EQ(dynamics.families().udut.forward_dynamics(t.q, t.v, tau, a), Status::ok);
    ASSERT_EQ(dynamics.families().articulated_body.forward_dynamics(t.q, t.v, tau, other),
              Status::ok);
    ASSERT_TRUE(close_to(a, t.a, 1e-9));
    ASSERT_TRUE(close_to(a, other, 1e-9));
  }
}

TEST(UdutInverseMassMatrix, InvertsTheMassMatrix) {
  for (unsigned seed = 1; seed <= trees; ++seed) {
    const RandomTree t(seed, false);
    SCOPED_TRACE(t.trace());
    const int n = t.model.nv;
    Dynamics<double> dynamics(t.model);
    support::load_randomly(seed, t.model, dynamics);
    MatrixXd inverse(n, n);
    ASSERT_EQ(dynamics.families().udut.inverse_mass_matrix(t.q, inverse), Status::ok);
    const MatrixXd M = mass_matrix(dynamics, t.q);
    ASSERT_TRUE(close_to(MatrixXd(inverse * M), MatrixXd(MatrixXd::Identity(n, n)), bound(M)));
    ASSERT_EQ(inverse, inverse.transpose());
  }
}

/// The factors outlive other calls at other configurations.
TEST(UdutSolve, UsesTheLastFactors) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    const RandomTree t(seed, false);
    SCOPED_TRACE(t.trace());
    Dynamics<double> dynamics(t.model);
    VectorXd x(t.model.nv);
    EXPECT_EQ(dynamics.families().udut.solve(t.a, x), Status::singular);  // no factors yet
    ASSERT_EQ(dynamics.families().udut.factorize(t.q), Status::ok);
    VectorXd tau(t.model.nv);
    ASSERT_EQ(dynamics.families().newton_euler.bias(t.model.neutral(), t.v, tau), Status::ok);
    ASSERT_EQ(dynamics.families().udut.solve(t.a, x), Status::ok);
    const MatrixXd M = mass_matrix(dynamics, t.q);
    ASSERT_TRUE(close_to(VectorXd(M * x), t.a, bound(M)));
    VectorXd in_place = t.a;
    ASSERT_EQ(dynamics.families().udut.solve(in_place, in_place), Status::ok);
    ASSERT_EQ(in_place, x);
  }
}

TEST(UdutForwardDynamics, IsTheClosedFormOfThePlanarArm) {
  support::PlanarArm arm;
  Dynamics<double> dynamics(arm.model());
  support::Random random(9);
  for (int k = 0; k < 50; ++k) {
    const VectorXd q = random.vector_x(3, 3.0);
    const VectorXd v = random.vector_x(3, 3.0);
    const VectorXd tau = random.vector_x(3, 2.0);
    arm.evaluate(q, v);
    VectorXd a(3);
    ASSERT_EQ(dynamics.families().udut.forward_dynamics(q, v, tau, a), Status::ok);
    const Eigen::Vector3d rhs = tau - arm.C * v - arm.gravity;
    ASSERT_TRUE(close_to(a, support::solve(arm.M, rhs), 1e-11));
  }
}

/// An arm whose links have negative moments of inertia, as the PUMA of Saha 2001, Table II: the
/// pivots may be negative, and only a zero one stops the elimination.
TEST(UdutForwardDynamics, IndefiniteMassMatrixIsNoObstacle) {
  int indefinite = 0;
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    support::Random random(seed);
    RobotDescription robot = random.robot({});
    for (auto& link : robot.links)
      link.inertial->inertia = random.vector(0.3).asDiagonal().toDenseMatrix();
    const Model model = build_model(robot);
    Dynamics<double> dynamics(model);
    const VectorXd q = random.configuration(model);
    const VectorXd v = random.vector_x(model.nv, 2.0);
    const VectorXd a = random.vector_x(model.nv, 2.0);
    VectorXd tau(model.nv), back(model.nv), D(model.nv);
    MatrixXd U(model.nv, model.nv);
    ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(q, v, a, tau), Status::ok);
    ASSERT_EQ(dynamics.families().udut.forward_dynamics(q, v, tau, back), Status::ok);
    EXPECT_TRUE(close_to(back, a, 1e-8));
    ASSERT_EQ(dynamics.families().udut.factors(U, D), Status::ok);
    if (D.minCoeff() < 0.0) ++indefinite;
  }
  EXPECT_GT(indefinite, 10);
}

TEST(Udut, SingularMassMatrix) {
  support::Random random(3);
  RobotDescription robot = random.robot({});
  robot.links.back().inertial.reset();
  const Model model = build_model(robot);
  Dynamics<double> dynamics(model);
  const VectorXd zero = VectorXd::Zero(model.nv);
  VectorXd a = VectorXd::Constant(model.nv, 7.0);
  MatrixXd inverse(model.nv, model.nv), U(model.nv, model.nv);
  EXPECT_EQ(dynamics.families().udut.factorize(zero), Status::singular);
  EXPECT_EQ(dynamics.families().udut.solve(zero, a), Status::singular);
  EXPECT_EQ(dynamics.families().udut.factors(U, a), Status::singular);
  EXPECT_EQ(dynamics.families().udut.forward_dynamics(zero, zero, zero, a), Status::singular);
  EXPECT_EQ(dynamics.families().udut.inverse_mass_matrix(zero, inverse), Status::singular);
  EXPECT_EQ(a, VectorXd(VectorXd::Constant(model.nv, 7.0)));  // untouched

  // A load makes it regular.
  const int tip = static_cast<int>(model.links.size()) - 1;
  ASSERT_EQ(dynamics.set_payload(tip, {1.0, {0.1, 0.1, 0.1}, Symmetric3<double>::zero()}),
            Status::ok);
  EXPECT_EQ(dynamics.families().udut.forward_dynamics(zero, zero, zero, a), Status::ok);
}

/// Two joints on one axis with all the mass beyond the second: M has rank one.
TEST(Udut, SingularOnlyInCombination) {
  RobotDescription robot;
  robot.links = {{"base", std::nullopt}, {"first", std::nullopt}, {"second", Inertial{}}};
  robot.links[2].inertial->mass = 2.0;
  robot.links[2].inertial->com = {0.1, 0.2, 0.3};
  robot.links[2].inertial->inertia = Eigen::Vector3d(0.1, 0.2, 0.25).asDiagonal();
  for (int i = 0; i < 2; ++i) {
    JointDescription j;
    j.name = "j" + std::to_string(i);
    j.type = JointType::continuous;
    j.parent = robot.links[static_cast<std::size_t>(i)].name;
    j.child = robot.links[static_cast<std::size_t>(i) + 1].name;
    j.axis = Eigen::Vector3d(1.0, 2.0, 3.0).normalized();
    robot.joints.push_back(j);
  }
  Dynamics<double> dynamics(build_model(robot));
  support::Random random(4);
  for (int k = 0; k < 100; ++k)
    EXPECT_EQ(dynamics.families().udut.factorize(random.vector_x(2, 3.0)), Status::singular);
  robot.joints[0].rotor_inertia = 1e-4;
  Dynamics<double> geared(build_model(robot));
  VectorXd b = random.vector_x(2, 1.0), x(2);
  const VectorXd q = random.vector_x(2, 3.0);
  ASSERT_EQ(geared.families().udut.factorize(q), Status::ok);
  ASSERT_EQ(geared.families().udut.solve(b, x), Status::ok);
  EXPECT_TRUE(close_to(VectorXd(mass_matrix(geared, q) * x), b, 1e-9));
}

TEST(Udut, MimicJointsAreUnsupported) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    const RandomTree t(seed);
    if (t.model.mimics.empty()) continue;
    Dynamics<double> dynamics(t.model);
    const int n = t.model.nv;
    VectorXd x(n);
    MatrixXd inverse(n, n);
    EXPECT_EQ(dynamics.families().udut.factorize(t.q), Status::unsupported_joint);
    EXPECT_EQ(dynamics.families().udut.forward_dynamics(t.q, t.v, t.a, x),
              Status::unsupported_joint);
    EXPECT_EQ(dynamics.families().udut.inverse_mass_matrix(t.q, inverse),
              Status::unsupported_joint);
    return;
  }
  FAIL() << "no tree with a mimic joint";
}

TEST(Udut, SinglePrecisionIsTheSameText) {
  support::PlanarArm arm;
  Dynamics<double> dynamics(arm.model());
  Dynamics<float> wf(arm.model());
  const VectorXd q = VectorXd::LinSpaced(3, 0.3, 1.1), v = VectorXd::Ones(3);
  const Eigen::VectorXf qf = q.cast<float>(), vf = v.cast<float>();
  VectorXd a(3);
  Eigen::VectorXf af(3);
  ASSERT_EQ(dynamics.families().udut.forward_dynamics(q, v, v, a), Status::ok);
  ASSERT_EQ(wf.families().udut.forward_dynamics(qf, vf, vf, af), Status::ok);
  EXPECT_TRUE(close_to(VectorXd(af.cast<double>()), a, 1e-4));
  MatrixXd inverse(3, 3);
  Eigen::MatrixXf inverse_f(3, 3);
  ASSERT_EQ(dynamics.families().udut.inverse_mass_matrix(q, inverse), Status::ok);
  ASSERT_EQ(wf.families().udut.inverse_mass_matrix(qf, inverse_f), Status::ok);
  EXPECT_TRUE(close_to(MatrixXd(inverse_f.cast<double>()), inverse, 1e-4));
}

/// Saha 2001, Table I: (191n − 284) multiplications and (187n − 325) additions for n revolute
/// joints. The paper takes φ = τ − C q̇ as given, so that the count is that of the factors and one
/// solution.
TEST(UdutSolve, NeedsFewerOperationsThanThePaper) {
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
    const VectorX<Counted> q = input(), phi = input();
    VectorX<Counted> x(n);
    ASSERT_EQ(dynamics.families().udut.factorize(q), Status::ok);
    ASSERT_EQ(dynamics.families().udut.solve(phi, x), Status::ok);
    const OperationCount count = Counted::count(x);
    EXPECT_LE(count.multiplications + count.divisions, 191 * n - 284) << "n = " << n;
    EXPECT_LE(count.additions, 187 * n - 325) << "n = " << n;
  }
}

TEST(Udut, RefusesBadArguments) {
  support::PlanarArm arm;
  Dynamics<double> dynamics(arm.model());
  const VectorXd ok = VectorXd::Zero(3);
  const VectorXd small = VectorXd::Zero(2);
  VectorXd nan = ok;
  nan[1] = std::numeric_limits<double>::quiet_NaN();
  VectorXd x(3), short_x(2);
  MatrixXd A(3, 3), wide(3, 4), low(2, 3);
  EXPECT_EQ(dynamics.families().udut.factorize(small), Status::wrong_size);
  EXPECT_EQ(dynamics.families().udut.factorize(nan), Status::not_finite);
  EXPECT_EQ(dynamics.families().udut.inverse_mass_matrix(small, A), Status::wrong_size);
  EXPECT_EQ(dynamics.families().udut.inverse_mass_matrix(ok, wide), Status::wrong_size);
  EXPECT_EQ(dynamics.families().udut.inverse_mass_matrix(ok, low), Status::wrong_size);
  EXPECT_EQ(dynamics.families().udut.inverse_mass_matrix(nan, A), Status::not_finite);
  EXPECT_EQ(dynamics.families().udut.forward_dynamics(small, ok, ok, x), Status::wrong_size);
  EXPECT_EQ(dynamics.families().udut.forward_dynamics(ok, small, ok, x), Status::wrong_size);
  EXPECT_EQ(dynamics.families().udut.forward_dynamics(ok, ok, small, x), Status::wrong_size);
  EXPECT_EQ(dynamics.families().udut.forward_dynamics(ok, ok, ok, short_x), Status::wrong_size);
  EXPECT_EQ(dynamics.families().udut.forward_dynamics(nan, ok, ok, x), Status::not_finite);
  EXPECT_EQ(dynamics.families().udut.forward_dynamics(ok, nan, ok, x), Status::not_finite);
  EXPECT_EQ(dynamics.families().udut.forward_dynamics(ok, ok, nan, x), Status::not_finite);
  ASSERT_EQ(dynamics.families().udut.factorize(ok), Status::ok);
  EXPECT_EQ(dynamics.families().udut.solve(small, x), Status::wrong_size);
  EXPECT_EQ(dynamics.families().udut.solve(ok, short_x), Status::wrong_size);
  EXPECT_EQ(dynamics.families().udut.solve(nan, x), Status::not_finite);
  EXPECT_EQ(dynamics.families().udut.factors(wide, x), Status::wrong_size);
  EXPECT_EQ(dynamics.families().udut.factors(low, x), Status::wrong_size);
  EXPECT_EQ(dynamics.families().udut.factors(A, short_x), Status::wrong_size);
}

}  // namespace
