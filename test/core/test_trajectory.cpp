// SPDX-License-Identifier: Apache-2.0
/// Trajectories pass through their waypoints, are as smooth as they say, and their velocities and
/// accelerations are the derivatives of their positions.

#include "dynamics_core/trajectory.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "support/errors.hpp"
#include "support/random_model.hpp"

namespace {

using namespace dynamics_core::trajectory;
using dynamics_core::Status;
using Eigen::MatrixXd;
using Eigen::VectorXd;

struct Point {
  VectorXd q, v, a;
};

template <class Trajectory>
Point at(const Trajectory& trajectory, double t, Eigen::Index n) {
  Point p = {VectorXd(n), VectorXd(n), VectorXd(n)};
  EXPECT_EQ(trajectory.evaluate(t, p.q, p.v, p.a), Status::ok);
  return p;
}

/// Central differences of order four.
VectorXd derivative(const std::function<VectorXd(double)>& f, double t) {
  const double h = 1e-3;
  return (8.0 * (f(t + h) - f(t - h)) - (f(t + 2 * h) - f(t - 2 * h))) / (12.0 * h);
}

template <class Trajectory>
void expect_consistent(const Trajectory& trajectory, double t, Eigen::Index n) {
  const Point p = at(trajectory, t, n);
  const VectorXd v = derivative([&](double s) { return at(trajectory, s, n).q; }, t);
  const VectorXd a = derivative([&](double s) { return at(trajectory, s, n).v; }, t);
  EXPECT_LT((v - p.v).norm(), 1e-7 * (1.0 + p.v.norm())) << "t = " << t;
  EXPECT_LT((a - p.a).norm(), 1e-7 * (1.0 + p.a.norm())) << "t = " << t;
}

TEST(Cycloid, IsSahasEquation18) {
  // Printed for a way of π: θ = ½ [2πt/T − sin(2πt/T)]
  const double T = 10.0;
  const Cycloid<double> cycloid(VectorXd::Zero(2), VectorXd::Constant(2, M_PI), T);
  for (double t = 0.0; t <= T; t += 0.1) {
    const double x = 2.0 * M_PI * t / T;
    EXPECT_NEAR(at(cycloid, t, 2).q[1], 0.5 * (x - std::sin(x)), 1e-14);
  }
  for (double t = 0.1; t < T; t += 0.37) expect_consistent(cycloid, t, 2);
}

TEST(Cycloid, GoesFromRestToRestAndStaysThere) {
  const VectorXd start = VectorXd::LinSpaced(3, -1.0, 2.0);
  const VectorXd goal = VectorXd::LinSpaced(3, 4.0, -3.0);
  const Cycloid<double> cycloid(start, goal, 2.5);
  for (const double t : {-1.0, 0.0, 2.5, 7.0}) {
    const Point p = at(cycloid, t, 3);
    EXPECT_LT((p.q - (t <= 0.0 ? start : goal)).norm(), 1e-14);
    EXPECT_LT(p.v.norm() + p.a.norm(), 1e-13);
  }
}

TEST(Spline, QuinticFromRestToRestIsTheWellKnownPolynomial) {
  const VectorXd start = VectorXd::Constant(1, 2.0);
  const VectorXd goal = VectorXd::Constant(1, -1.0);
  const auto quintic = Spline<double>::quintic(start, goal, 4.0);
  for (double t = 0.0; t <= 4.0; t += 0.25) {
    const double x = t / 4.0;
    const double blend = x * x * x * (10.0 - 15.0 * x + 6.0 * x * x);
    EXPECT_NEAR(at(quintic, t, 1).q[0], 2.0 - 3.0 * blend, 1e-14);
  }
}

struct Case {
  Degree degree;
  Ends ends;
};

class Splines : public testing::TestWithParam<Case> {
 protected:
  static constexpr int n = 3;
  static constexpr int points = 12;
  Splines() : random_(7), times_(points), positions_(points, n) {
    double t = -0.5;
    for (int i = 0; i < points; ++i) {
      times_[i] = t += random_.uniform(0.1, 1.5);
      positions_.row(i) = random_.vector_x(n, 2.0).transpose();
    }
  }
  [[nodiscard]] Spline<double> spline() const {
    return Spline<double>::through(times_, positions_, GetParam().degree, GetParam().ends);
  }
  support::Random random_;
  VectorXd times_;
  MatrixXd positions_;
};

TEST_P(Splines, PassThroughTheWaypointsAndAreConsistentBetween) {
  const auto curve = spline();
  for (int i = 0; i < points; ++i)
    EXPECT_LT((at(curve, times_[i], n).q - positions_.row(i).transpose()).norm(), 1e-12);
  for (int i = 0; i + 1 < points; ++i)
    expect_consistent(curve, 0.5 * (times_[i] + times_[i + 1]), n);
}

/// Derivatives of the acceleration, from within one polynomial of degree ≤ 3.
VectorXd jerk(const Spline<double>& s, double t, double h, Eigen::Index n) {
  const auto a = [&](int k) { return at(s, t + k * h, n).a; };
  return (-11.0 * a(0) + 18.0 * a(1) - 9.0 * a(2) + 2.0 * a(3)) / (6.0 * h);
}
VectorXd snap(const Spline<double>& s, double t, double h, Eigen::Index n) {
  const auto a = [&](int k) { return at(s, t + k * h, n).a; };
  return (2.0 * a(0) - 5.0 * a(1) + 4.0 * a(2) - a(3)) / (h * h);
}

TEST_P(Splines, AreAsSmoothAsTheySay) {
  const auto curve = spline();
  const double h = 0.03;
  double largest_jump = 0.0;
  for (int i = 1; i + 1 < points; ++i) {
    const double t = times_[i];
    const double before = std::nextafter(t, -10.0);
    EXPECT_LT((at(curve, t, n).v - at(curve, before, n).v).norm(), 1e-11);
    EXPECT_LT((at(curve, t, n).a - at(curve, before, n).a).norm(), 1e-9);
    const double third = (jerk(curve, t, h, n) - jerk(curve, before, -h, n)).norm();
    const double fourth = (snap(curve, t, h, n) - snap(curve, before, -h, n)).norm();
    largest_jump = std::max(largest_jump, third);
    if (GetParam().degree == Degree::quintic) {
      EXPECT_LT(third, 1e-7 * (1.0 + jerk(curve, t, h, n).norm())) << i;
      EXPECT_LT(fourth, 1e-6 * (1.0 + snap(curve, t, h, n).norm())) << i;
    }
  }
  if (GetParam().degree == Degree::cubic) {
    EXPECT_GT(largest_jump, 1.0);
  }
}

TEST_P(Splines, KeepTheirEndConditions) {
  const auto curve = spline();
  const bool quintic = GetParam().degree == Degree::quintic;
  for (const bool start : {true, false}) {
    const double t = start ? times_[0] : times_[points - 1];
    const double h = start ? 0.03 : -0.03;
    const Point p = at(curve, t, n);
    if (GetParam().ends == Ends::clamped) {
      EXPECT_LT(p.v.norm(), 1e-11);
      if (quintic) {
        EXPECT_LT(p.a.norm(), 1e-10);
      }
    } else if (quintic) {
      EXPECT_LT(jerk(curve, t, h, n).norm(), 1e-8);
      EXPECT_LT(snap(curve, t, h, n).norm(), 1e-6);
    } else {
      EXPECT_LT(p.a.norm(), 1e-11);
    }
  }
  const Point after = at(curve, times_[points - 1] + 1.0, n);
  EXPECT_LT((after.q - positions_.row(points - 1).transpose()).norm(), 1e-12);
  EXPECT_EQ(after.v.norm() + after.a.norm(), 0.0);
}

TEST_P(Splines, ReproduceWhatTheirConditionsAllow) {
  // Clamped: standing still. Natural: a straight line, and for the quintic a parabola as well.
  const bool natural = GetParam().ends == Ends::natural;
  const double slope = natural ? -2.0 : 0.0;
  const double bend = natural && GetParam().degree == Degree::quintic ? 0.7 : 0.0;
  for (int i = 0; i < points; ++i)
    positions_.row(i).setConstant(1.0 + times_[i] * (slope + bend * times_[i]));
  const auto curve = spline();
  for (double t = times_[0]; t < times_[points - 1]; t += 0.11)
    EXPECT_NEAR(at(curve, t, n).v[2], slope + 2.0 * bend * t, 1e-10);
}

INSTANTIATE_TEST_SUITE_P(All, Splines,
                         testing::Values(Case{Degree::cubic, Ends::clamped},
                                         Case{Degree::cubic, Ends::natural},
                                         Case{Degree::quintic, Ends::clamped},
                                         Case{Degree::quintic, Ends::natural}));

TEST(Spline, StaysAccurateOverManyWaypoints) {
  const int points = 2000;
  const VectorXd times = VectorXd::LinSpaced(points, 0.0, 200.0);
  const MatrixXd positions = times.array().sin().matrix();
  const auto curve = Spline<double>::through(times, positions, Degree::quintic, Ends::natural);
  // The error of a quintic spline falls with h⁶, far from the ends.
  for (double t = 20.0; t < 180.0; t += 0.777) {
    EXPECT_NEAR(at(curve, t, 1).q[0], std::sin(t), 1e-9);
    EXPECT_NEAR(at(curve, t, 1).a[0], -std::sin(t), 1e-6);
  }
}

TEST(Spline, WorksInSinglePrecision) {
  Eigen::VectorXf times(3);
  times << 0.0F, 1.0F, 3.0F;
  Eigen::MatrixXf positions(3, 1);
  positions << 0.0F, 1.0F, -1.0F;
  const auto curve = Spline<float>::through(times, positions);
  Eigen::VectorXf q(1), v(1), a(1);
  ASSERT_EQ(curve.evaluate(1.0F, q, v, a), Status::ok);
  EXPECT_NEAR(q[0], 1.0F, 1e-6F);
}

TEST(Trajectories, RefuseWhatMakesNoSense) {
  const VectorXd one = VectorXd::Ones(1);
  EXPECT_THROW(Cycloid<double>(one, one, 0.0), std::invalid_argument);
  EXPECT_THROW((void)Spline<double>::quintic(one, VectorXd::Ones(2), 1.0), std::invalid_argument);
  VectorXd times(3);
  times << 0.0, 1.0, 1.0;
  const MatrixXd positions = MatrixXd::Zero(3, 1);
  EXPECT_THROW((void)Spline<double>::through(times, positions), std::invalid_argument);
  times[2] = 2.0;
  MatrixXd broken = positions;
  broken(1, 0) = NAN;
  EXPECT_THROW((void)Spline<double>::through(times, broken), std::invalid_argument);
  times[2] = INFINITY;
  EXPECT_THROW((void)Spline<double>::through(times, positions), std::invalid_argument);
  EXPECT_THROW((void)Spline<double>::through(times.head(2), positions.topRows(2), Degree::quintic,
                                             Ends::natural),
               std::invalid_argument);
  EXPECT_THROW((void)Spline<double>::through(times.head(1), positions.topRows(1)),
               std::invalid_argument);

  const Cycloid<double> cycloid(one, 2.0 * one, 1.0);
  const auto spline = Spline<double>::quintic(one, 2.0 * one, 1.0);
  VectorXd q(1), v(1), a(1), wrong(2);
  EXPECT_EQ(cycloid.evaluate(NAN, q, v, a), Status::not_finite);
  EXPECT_EQ(spline.evaluate(INFINITY, q, v, a), Status::not_finite);
  EXPECT_EQ(cycloid.evaluate(0.5, wrong, v, a), Status::wrong_size);
  EXPECT_EQ(spline.evaluate(0.5, q, wrong, a), Status::wrong_size);
}

TEST(ReadWaypoints, ReadsNamesCommentsAndNumbers) {
  const Waypoints w = read_waypoints("# a comment\n time , hip, knee \r\n0, 1, -2e-1\n\n0.5,3,4\n");
  EXPECT_EQ(w.joints, (std::vector<std::string>{"hip", "knee"}));
  ASSERT_EQ(w.times.size(), 2);
  EXPECT_EQ(w.times[1], 0.5);
  EXPECT_EQ(w.positions(0, 1), -0.2);
  EXPECT_EQ(w.positions(1, 0), 3.0);
  EXPECT_TRUE(read_waypoints("0,1\n1,2\n").joints.empty());
}

TEST(ReadWaypoints, NamesWhatItRefuses) {
  const auto error = [](const std::string& text) {
    return support::error_of([&] { (void)read_waypoints(text, "way.csv"); });
  };
  EXPECT_NE(error("0,1\n1,x\n").find("way.csv: line 2: 'x' is not a finite number"), -1UL);
  EXPECT_NE(error("0,1\n1,nan\n").find("line 2"), -1UL);
  EXPECT_NE(error("0,1\n1,2,3\n").find("line 2: 3 columns"), -1UL);
  EXPECT_NE(error("t,a,b\n0,1\n1,2\n").find("line 2: 2 columns"), -1UL);
  EXPECT_NE(error("0\n1\n").find("line 1: 1 columns"), -1UL);
  EXPECT_NE(error("0,1,\n1,2,3\n").find("line 1: '' is not"), -1UL);
  EXPECT_NE(error("0,1\n0,2\n").find("line 2: the time 0 does not rise"), -1UL);
  EXPECT_NE(error("0,1\n").find("1 waypoints"), -1UL);
  EXPECT_NE(error("").find("way.csv"), -1UL);
}

}  // namespace
