// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/families.hpp"

#include <gtest/gtest.h>

#include "support/linear_algebra.hpp"
#include "support/trees.hpp"

namespace {

using namespace dynamics_core;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using support::close_to;
using support::RandomTree;

MatrixXd random_symmetric(support::Random& random, int n) {
  MatrixXd A(n, n);
  for (int i = 0; i < n; ++i) A.col(i) = random.vector_x(n, 1.0);
  return A + A.transpose();
}

TEST(Cholesky, SolvesDefiniteAndIndefiniteSystems) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    support::Random random(seed);
    const int n = random.integer(1, 20);
    MatrixXd A = random_symmetric(random, n);
    // Diagonals of one sign make it definite, of both signs indefinite; both are well-conditioned.
    for (int i = 0; i < n; ++i) A(i, i) += (seed % 2 == 0 && i % 2 == 0 ? -4.0 : 4.0) * n;
    const VectorXd b = random.vector_x(n, 1.0);
    const VectorXd expected = support::solve(A, b);
    VectorXd x = b;
    MatrixXd factors = A;
    ASSERT_EQ(cholesky::factorize<double>(factors), Status::ok);
    ASSERT_EQ(cholesky::solve<double>(factors, x), Status::ok);
    ASSERT_TRUE(close_to(x, expected, 1e-12));
    // The factors are what they are said to be: A = Lᵀ D L.
    const MatrixXd L = MatrixXd(factors.transpose().triangularView<Eigen::UnitLower>());
    const MatrixXd D = factors.diagonal().cwiseInverse().asDiagonal();
    ASSERT_TRUE(close_to(MatrixXd(L.transpose() * D * L), A, 1e-13));
  }
}

TEST(Cholesky, RefusesMatricesThatLackRank) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    support::Random random(seed);
    const int n = random.integer(2, 10);
    MatrixXd L = MatrixXd::Identity(n, n);  // A = Lᵀ D L with a zero in D
    for (int i = 0; i < n; ++i) L.row(i).head(i) = random.vector_x(i, 0.5).transpose();
    VectorXd D = VectorXd::Constant(n, seed % 2 == 0 ? 1.0 : -2.0);
    D[random.integer(0, n - 1)] = 0.0;
    MatrixXd A = L.transpose() * D.asDiagonal() * L;
    EXPECT_EQ(cholesky::factorize<double>(A), Status::singular);
  }
  MatrixXd zero = MatrixXd::Zero(3, 3);
  EXPECT_EQ(cholesky::factorize<double>(zero), Status::singular);
  MatrixXd oblong(2, 3);
  VectorXd x(3);
  EXPECT_EQ(cholesky::factorize<double>(oblong), Status::wrong_size);
  EXPECT_EQ(cholesky::solve<double>(oblong, x), Status::wrong_size);
  EXPECT_EQ(cholesky::solve<double>(zero, oblong.col(0)), Status::wrong_size);
}

TEST(Cholesky, ForwardDynamicsUndoesInverseDynamicsOnTrees) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    const RandomTree t(seed);
    SCOPED_TRACE(t.trace());
    Dynamics<double> dynamics(t.model);
    support::load_randomly(seed, t.model, dynamics);
    VectorXd tau(t.model.nv), a(t.model.nv), back(t.model.nv);
    ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(t.q, t.v, t.a, tau), Status::ok);
    ASSERT_EQ(dynamics.families().cholesky.forward_dynamics(t.q, t.v, tau, a), Status::ok);
    ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(t.q, t.v, a, back), Status::ok);
    ASSERT_TRUE(close_to(back, tau, 1e-8));
  }
}

TEST(Cholesky, AgreesWithArticulatedBodies) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    const RandomTree t(seed, /*mimic=*/false);
    SCOPED_TRACE(t.trace());
    if (t.model.nv > 20) continue;  // longer chains are too ill-conditioned to compare
    Dynamics<double> dynamics(t.model);
    support::load_randomly(seed, t.model, dynamics);
    VectorXd a(t.model.nv), expected(t.model.nv);
    ASSERT_EQ(dynamics.families().articulated_body.forward_dynamics(t.q, t.v, t.a, expected),
              Status::ok);
    ASSERT_EQ(dynamics.families().cholesky.forward_dynamics(t.q, t.v, t.a, a), Status::ok);
    ASSERT_TRUE(close_to(a, expected, 1e-8));
  }
}

TEST(Cholesky, InverseMassMatrixIsTheInverse) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    const RandomTree t(seed);
    SCOPED_TRACE(t.trace());
    const int n = t.model.nv;
    Dynamics<double> dynamics(t.model);
    MatrixXd M(n, n), inverse(n, n);
    ASSERT_EQ(dynamics.families().composite_body.mass_matrix(t.q, M), Status::ok);
    ASSERT_EQ(dynamics.families().cholesky.inverse_mass_matrix(t.q, inverse), Status::ok);
    const double condition = M.norm() * inverse.norm();
    ASSERT_LT((M * inverse - MatrixXd::Identity(n, n)).norm(), 1e-14 * condition);
  }
}

TEST(Cholesky, ArgumentsAreCheckedAndMasslessTipsAreSingular) {
  support::Random random(5);
  RobotDescription robot = random.robot({});
  const Model model = build_model(robot);
  robot.links.back().inertial.reset();
  const Model massless = build_model(robot);
  const VectorXd x = random.vector_x(6, 1.0);
  VectorXd bad = x, a(6), wrong = VectorXd::Zero(7);
  MatrixXd inverse(6, 6), narrow(6, 5);
  bad[2] = std::numeric_limits<double>::infinity();
  Dynamics<double> dynamics(model);
  EXPECT_EQ(dynamics.families().cholesky.forward_dynamics(bad, x, x, a), Status::not_finite);
  EXPECT_EQ(dynamics.families().cholesky.forward_dynamics(x, bad, x, a), Status::not_finite);
  EXPECT_EQ(dynamics.families().cholesky.forward_dynamics(x, x, bad, a), Status::not_finite);
  EXPECT_EQ(dynamics.families().cholesky.forward_dynamics(wrong, x, x, a), Status::wrong_size);
  EXPECT_EQ(dynamics.families().cholesky.forward_dynamics(x, x, x, wrong), Status::wrong_size);
  EXPECT_EQ(dynamics.families().cholesky.inverse_mass_matrix(bad, inverse), Status::not_finite);
  EXPECT_EQ(dynamics.families().cholesky.inverse_mass_matrix(x, narrow), Status::wrong_size);
  Dynamics<double> light(massless);
  EXPECT_EQ(light.families().cholesky.forward_dynamics(x, x, x, a), Status::singular);
  EXPECT_EQ(light.families().cholesky.inverse_mass_matrix(x, inverse), Status::singular);
}

}  // namespace
