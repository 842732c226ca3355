// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/families.hpp"

#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <limits>

#include "support/planar_arm.hpp"
#include "support/trees.hpp"

namespace {

using namespace dynamics_core;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using support::close_to;
using support::RandomTree;

constexpr unsigned trees = 300;

MatrixXd mass_matrix(Dynamics<double>& robot, const VectorXd& q) {
  MatrixXd M(robot.nv(), robot.nv());
  EXPECT_EQ(robot.families().composite_body.mass_matrix(q, M), Status::ok);
  return M;
}
MatrixXd coriolis(Dynamics<double>& robot, const VectorXd& q, const VectorXd& v) {
  MatrixXd C(robot.nv(), robot.nv());
  EXPECT_EQ(robot.families().denoc.coriolis(q, v, C), Status::ok);
  return C;
}
MatrixXd coriolis_christoffel(Dynamics<double>& robot, const VectorXd& q, const VectorXd& v) {
  MatrixXd C(robot.nv(), robot.nv());
  EXPECT_EQ(robot.families().denoc.coriolis_christoffel(q, v, C), Status::ok);
  return C;
}

/// Where the model is after the time t at the velocity v.
VectorXd advance(const Model& model, const VectorXd& q, const VectorXd& v, double t) {
  VectorXd out = q;
  for (const auto& j : model.joints) {
    if (j.type != JointType::floating) {
      out.segment(j.q, j.nq) += t * v.segment(j.v, j.nv);
      continue;
    }
    const Eigen::Quaterniond R(q[j.q + 6], q[j.q + 3], q[j.q + 4], q[j.q + 5]);
    const Eigen::Vector3d turn = t * v.segment<3>(j.v);
    out.segment<3>(j.q) += t * (R * v.segment<3>(j.v + 3));
    const Eigen::Quaterniond turned =
        R * Eigen::Quaterniond(Eigen::AngleAxisd(turn.norm(), turn.normalized()));
    out.segment<4>(j.q + 3) = turned.coeffs();
  }
  return out;
}

/// f'(0) by central differences of the sixth order. M oscillates with the sum of the joints' turns;
/// `speed` bounds that, so that the step is a fixed small part of an oscillation.
template <class F>
MatrixXd derivative(const F& f, double speed) {
  const double h = 0.03 / speed;
  return (45.0 * (f(h) - f(-h)) - 9.0 * (f(2 * h) - f(-2 * h)) + (f(3 * h) - f(-3 * h))) /
         (60.0 * h);
}

TEST(Coriolis, TimesVelocityIsBiasWithoutGravity) {
  for (unsigned seed = 1; seed <= trees; ++seed) {
    const RandomTree t(seed);
    SCOPED_TRACE(t.trace());
    Dynamics<double> robot(t.model);
    support::load_randomly(seed, t.model, robot);
    VectorXd bias(t.model.nv), gravity(t.model.nv);
    ASSERT_EQ(robot.families().newton_euler.bias(t.q, t.v, bias), Status::ok);
    ASSERT_EQ(robot.families().newton_euler.gravity(t.q, gravity), Status::ok);
    const VectorXd expected = bias - gravity;
    ASSERT_TRUE(close_to(VectorXd(coriolis(robot, t.q, t.v) * t.v), expected, 1e-9));
    ASSERT_TRUE(close_to(VectorXd(coriolis_christoffel(robot, t.q, t.v) * t.v), expected, 1e-9));
  }
}

TEST(Coriolis, RateOfMassMatrixLessTwiceItIsSkew) {
  for (unsigned seed = 1; seed <= trees; ++seed) {
    const RandomTree t(seed);
    SCOPED_TRACE(t.trace());
    Dynamics<double> robot(t.model);
    support::load_randomly(seed, t.model, robot);
    const MatrixXd M_dot =
        derivative([&](double h) { return mass_matrix(robot, advance(t.model, t.q, t.v, h)); },
                   1.0 + t.v.lpNorm<1>());
    for (const MatrixXd& C : {coriolis(robot, t.q, t.v), coriolis_christoffel(robot, t.q, t.v)}) {
      // N + Nᵀ = 0 for N = Ṁ − 2C is C + Cᵀ = Ṁ, as Ṁ is symmetric.
      ASSERT_TRUE(close_to(MatrixXd(C + C.transpose()), M_dot, 1e-9));
    }
  }
}

/// C_ij = Σ_k ½ (∂M_ij/∂q_k + ∂M_ik/∂q_j − ∂M_jk/∂q_i) v_k, the derivatives by differences.
TEST(CoriolisSkew, IsMadeOfChristoffelSymbols) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    const RandomTree t(seed, true, false);
    const int n = t.model.nv;
    if (n > 16) continue;
    SCOPED_TRACE(t.trace());
    Dynamics<double> robot(t.model);
    std::vector<MatrixXd> dM;
    for (int k = 0; k < n; ++k)
      dM.push_back(derivative(
          [&](double h) { return mass_matrix(robot, t.q + h * VectorXd::Unit(n, k)); }, 4.0));
    MatrixXd expected = MatrixXd::Zero(n, n);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j)
        for (int k = 0; k < n; ++k)
          expected(i, j) += 0.5 * (dM[k](i, j) + dM[j](i, k) - dM[i](j, k)) * t.v[k];
    ASSERT_TRUE(close_to(coriolis_christoffel(robot, t.q, t.v), expected, 1e-9));
  }
}

/// C(q, v) u = C(q, u) v is Christoffel's; Eq. 29 does not have it on a spatial arm.
TEST(CoriolisSkew, IsSymmetricInItsTwoVelocities) {
  double largest = 0.0;
  for (unsigned seed = 1; seed <= trees; ++seed) {
    const RandomTree t(seed, true, false);
    SCOPED_TRACE(t.trace());
    Dynamics<double> robot(t.model);
    const VectorXd& u = t.a;
    ASSERT_TRUE(close_to(VectorXd(coriolis_christoffel(robot, t.q, t.v) * u),
                         VectorXd(coriolis_christoffel(robot, t.q, u) * t.v), 1e-10));
    const VectorXd gap = coriolis(robot, t.q, t.v) * u - coriolis(robot, t.q, u) * t.v;
    largest = std::max(largest, gap.norm());
  }
  EXPECT_GT(largest, 1e-3);
}

TEST(Coriolis, IsTheClosedFormOfThePlanarArm) {
  support::PlanarArm arm;
  Dynamics<double> robot(arm.model());
  support::Random random(8);
  for (int k = 0; k < 50; ++k) {
    const VectorXd q = random.vector_x(3, 3.0);
    const VectorXd v = random.vector_x(3, 3.0);
    arm.evaluate(q, v);
    // All ω are parallel: the two body terms have the same effect.
    ASSERT_TRUE(close_to(coriolis(robot, q, v), MatrixXd(arm.C), 1e-13));
    ASSERT_TRUE(close_to(coriolis_christoffel(robot, q, v), MatrixXd(arm.C), 1e-13));
  }
}

TEST(Coriolis, SinglePrecisionIsTheSameText) {
  const RandomTree t(11);
  Dynamics<double> robot(t.model);
  Dynamics<float> wf(t.model);
  Eigen::MatrixXf C(t.model.nv, t.model.nv);
  const Eigen::VectorXf q = t.q.cast<float>(), v = t.v.cast<float>();
  ASSERT_EQ(wf.families().denoc.coriolis_christoffel(q, v, C), Status::ok);
  EXPECT_TRUE(close_to(MatrixXd(C.cast<double>()), coriolis_christoffel(robot, t.q, t.v), 2e-5));
  ASSERT_EQ(wf.families().denoc.coriolis(q, v, C), Status::ok);
  EXPECT_TRUE(close_to(MatrixXd(C.cast<double>()), coriolis(robot, t.q, t.v), 2e-5));
}

TEST(Coriolis, RefusesBadArguments) {
  support::PlanarArm arm;
  Dynamics<double> robot(arm.model());
  const VectorXd ok = VectorXd::Zero(3);
  const VectorXd small = VectorXd::Zero(2);
  VectorXd nan = ok;
  nan[1] = std::numeric_limits<double>::quiet_NaN();
  MatrixXd C(3, 3), wide(3, 4), low(2, 3);
  Denoc<double>& denoc = robot.families().denoc;
  for (const auto f : {&Denoc<double>::coriolis, &Denoc<double>::coriolis_christoffel}) {
    EXPECT_EQ((denoc.*f)(small, ok, C), Status::wrong_size);
    EXPECT_EQ((denoc.*f)(ok, small, C), Status::wrong_size);
    EXPECT_EQ((denoc.*f)(ok, ok, wide), Status::wrong_size);
    EXPECT_EQ((denoc.*f)(ok, ok, low), Status::wrong_size);
    EXPECT_EQ((denoc.*f)(nan, ok, C), Status::not_finite);
    EXPECT_EQ((denoc.*f)(ok, nan, C), Status::not_finite);
  }
}

}  // namespace
