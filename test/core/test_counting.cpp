// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/counting.hpp"

#include <gtest/gtest.h>

#include "dynamics_core/counted_families.hpp"
#include "support/trees.hpp"

namespace {

using namespace dynamics_core;

class Counting : public ::testing::Test {
 protected:
  void SetUp() override { Counted::forget(); }
  static OperationCount count(std::initializer_list<Counted> results) {
    return Counted::count(results);
  }
  static OperationCount operations(int multiplications, int additions, int divisions = 0,
                                   int square_roots = 0, int sincos = 0) {
    return {multiplications, additions, divisions, square_roots, sincos};
  }
};

TEST_F(Counting, EachOperationIsCountedByItsKind) {
  const Counted x = Counted::variable(3.0);
  const Counted y = Counted::variable(4.0);
  Counted s, c;
  sincos(x, s, c);
  EXPECT_EQ(count({x * y}), operations(1, 0));
  EXPECT_EQ(count({x + y}), operations(0, 1));
  EXPECT_EQ(count({x - y}), operations(0, 1));
  EXPECT_EQ(count({x / y}), operations(0, 0, 1));
  EXPECT_EQ(count({sqrt(x)}), operations(0, 0, 0, 1));
  EXPECT_EQ(count({s, c}), operations(0, 0, 0, 0, 1));
  EXPECT_EQ(count({s}), operations(0, 0, 0, 0, 1));
  EXPECT_EQ(count({x * y + x / y - sqrt(x * x + y * y)}), operations(3, 3, 1, 1));
  EXPECT_DOUBLE_EQ((x * y + x / y - sqrt(x * x + y * y)).value(), 12.0 + 0.75 - 5.0);
}

TEST_F(Counting, ConstantsAreOffLine) {
  const Counted x = Counted::variable(3.0);
  const Counted c(2.5);
  EXPECT_EQ(count({(c * c + c) * x}), operations(1, 0));
  EXPECT_EQ(count({x / c}), operations(1, 0));  // the reciprocal is a constant
  EXPECT_TRUE(sqrt(c).is_constant());
  EXPECT_FALSE((c + x).is_constant());
}

TEST_F(Counting, ZerosOnesAndSignsAreFree) {
  const Counted x = Counted::variable(3.0);
  const Counted y = Counted::variable(4.0);
  EXPECT_EQ(count({0.0 * x, 1.0 * x, -1.0 * x, x + 0.0, 0.0 + x, x - 0.0, 0.0 / x, -x}),
            OperationCount{});
  EXPECT_EQ((0.0 * x).value(), 0.0);
  EXPECT_TRUE((0.0 * x).is_constant());
  EXPECT_EQ((-1.0 * x).value(), -3.0);
  EXPECT_EQ(count({-(x * -y)}), operations(1, 0));
  // 0.1 + 0.2 − 0.3 is zero but for round-off.
  EXPECT_EQ(count({(Counted(0.1) + 0.2 - 0.3) * x + y}), OperationCount{});
}

TEST_F(Counting, AVariableThatHappensToBeZeroOrOneIsNotFree) {
  const Counted zero = Counted::variable(0.0);
  const Counted one = Counted::variable(1.0);
  const Counted x = Counted::variable(3.0);
  EXPECT_EQ(count({zero * x, one * x, zero + x}), operations(2, 1));
}

TEST_F(Counting, OnlyWhatTheResultsNeedCounts) {
  const Counted x = Counted::variable(3.0);
  const Counted needed = x * x;
  const Counted idle = needed * x + x;
  EXPECT_EQ(count({needed}), operations(1, 0));
  EXPECT_EQ(count({idle}), operations(2, 1));
}

TEST_F(Counting, TheSameOperationCountsOnce) {
  const Counted x = Counted::variable(3.0);
  const Counted y = Counted::variable(4.0);
  EXPECT_EQ(count({x * y, y * x, -x * y, x - y, y - x}), operations(1, 1));
  EXPECT_EQ(count({x + y, x - y}), operations(0, 2));
  EXPECT_EQ(count({2.0 * x, 3.0 * x, 2.0 * x}), operations(2, 0));
  EXPECT_EQ(count({x / y, y / x}), operations(0, 0, 2));
}

TEST_F(Counting, JudgementsAreNotPartOfTheResult) {
  const Counted x = Counted::variable(1e-20);
  EXPECT_TRUE(negligible(x, Counted(1.0)));
  EXPECT_FALSE(negligible(x, Counted(1e-20)));
  EXPECT_TRUE(is_finite(x));
  EXPECT_FALSE(is_finite(Counted(1.0) / Counted(0.0)));
  EXPECT_EQ(safe_ratio(x, Counted(0.0), Counted(5.0)).value(), 5.0);
  EXPECT_EQ(count({safe_ratio(x, x + 1.0, Counted(5.0))}), operations(0, 1, 1));
  EXPECT_EQ(abs(-x).value(), 1e-20);
}

/// The counted text computes what the uncounted does.
TEST_F(Counting, ValuesAreThoseOfDouble) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const support::RandomTree t(seed, /*mimic=*/false);
    SCOPED_TRACE(t.trace());
    Dynamics<double> robot(t.model);
    Dynamics<Counted> wc(t.model);
    Counted::forget();
    const auto variables = [](const Eigen::VectorXd& u) {
      VectorX<Counted> out(u.size());
      for (Eigen::Index i = 0; i < u.size(); ++i) out[i] = Counted::variable(u[i]);
      return out;
    };
    const auto values = [](const VectorX<Counted>& u) {
      Eigen::VectorXd out(u.size());
      for (Eigen::Index i = 0; i < u.size(); ++i) out[i] = u[i].value();
      return out;
    };
    const auto q = variables(t.q), v = variables(t.v), a = variables(t.a);
    VectorX<Counted> counted(t.model.nv);
    Eigen::VectorXd expected(t.model.nv);
    ASSERT_EQ(robot.families().gibbs_appell.inverse_dynamics(t.q, t.v, t.a, expected), Status::ok);
    ASSERT_EQ(wc.families().gibbs_appell.inverse_dynamics(q, v, a, counted), Status::ok);
    ASSERT_TRUE(support::close_to(values(counted), expected, 1e-12));
    ASSERT_EQ(robot.families().articulated_body.forward_dynamics(t.q, t.v, t.a, expected),
              Status::ok);
    ASSERT_EQ(wc.families().articulated_body.forward_dynamics(q, v, a, counted), Status::ok);
    ASSERT_TRUE(support::close_to(values(counted), expected, 1e-8));
  }
}

}  // namespace
