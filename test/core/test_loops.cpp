// SPDX-License-Identifier: Apache-2.0
// Closed loops: a four-bar linkage against its one-degree equation of motion, random mechanisms
// against a dense solution, and the three methods of Featherstone & Orin 2000, §3.4 against each
// other, redundant equations included.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "dynamics_core/families.hpp"
#include "dynamics_core/loops.hpp"
#include "support/allocation_guard.hpp"
#include "support/errors.hpp"
#include "support/kinds.hpp"

using namespace dynamics_core;
using Eigen::MatrixXd;
using Eigen::Vector2d;
using Eigen::Vector3d;
using Eigen::VectorXd;
using support::difference;

namespace {

using Solve = Status (Loops<double>::*)(VectorIn<double>, VectorIn<double>, VectorIn<double>,
                                        VectorOut<double>, VectorOut<double>) noexcept;
struct LoopMethod {
  const char* name;
  Solve solve;
};
const std::vector<LoopMethod> methods = {{"bordered", &Loops<double>::bordered},
                                         {"multipliers_first", &Loops<double>::multipliers_first},
                                         {"null_space", &Loops<double>::null_space}};

// --- The four-bar linkage ------------------------------------------------------------------------

/// Crank and rocker hang on the ground at (0, 0) and (ground, 0), the coupler joins their ends. All
/// turn about z, and gravity acts along −y.
struct FourBar {
  double crank = 0.3, coupler = 0.8, rocker = 0.6, ground = 0.7;
  double m1 = 1.2, m2 = 2.5, m3 = 1.7;                       // masses
  double I1 = 0.02, I2 = 0.11, I3 = 0.06;                    // about the mass centres
  Vector2d c1{0.12, 0.03}, c2{0.35, 0.08}, c3{0.28, -0.05};  // mass centres in the links
  double g = 9.81;

  RobotDescription description() const {
    RobotDescription robot;
    robot.gravity = {0.0, -g, 0.0};
    robot.links.push_back({"ground", std::nullopt});
    const auto add = [&robot](const char* name, const char* parent, double x, double m, double I,
                              const Vector2d& c) {
      // The moments that a planar motion does not see are there to be ignored.
      robot.links.push_back(
          {name, Inertial{m, {c[0], c[1], 0.04}, Vector3d(I, I, I).asDiagonal()}});
      JointDescription j;
      j.name = std::string(name) + "_joint";
      j.type = JointType::continuous;
      j.parent = parent;
      j.child = name;
      j.origin.p = {x, 0.0, 0.0};
      j.axis = Vector3d::UnitZ();
      robot.joints.push_back(j);
    };
    add("crank", "ground", 0.0, m1, I1, c1);
    add("coupler", "crank", crank, m2, I2, c2);
    add("rocker", "ground", ground, m3, I3, c3);
    return robot;
  }

  LoopSet loop(const Model& model, LoopType type = LoopType::revolute) const {
    LoopJoint pin;
    pin.name = "pin";
    pin.type = type;
    pin.link_a = model.find_link("coupler");
    pin.frame_a.p = {coupler, 0.0, 0.0};
    pin.link_b = model.find_link("rocker");
    pin.frame_b.p = {rocker, 0.0, 0.0};
    return {pin};
  }

  /// Angles of coupler and rocker in the ground frame and their derivatives by the crank angle, in
  /// closed form (the branch with the coupler's end above).
  struct Position {
    double phi, psi, dphi, dpsi, ddphi, ddpsi;
  };
  static Vector2d e(double x) { return {std::cos(x), std::sin(x)}; }
  static Vector2d n(double x) { return {-std::sin(x), std::cos(x)}; }
  Position position(double theta) const {
    const Vector2d from = crank * e(theta);
    const Vector2d to(ground, 0.0);
    const double r = (to - from).norm();
    const double at = std::atan2(to[1] - from[1], to[0] - from[0]);
    const double corner =
        std::acos((coupler * coupler + r * r - rocker * rocker) / (2 * coupler * r));
    Position p{};
    p.phi = at + corner;
    const Vector2d tip = from + coupler * e(p.phi) - to;
    p.psi = std::atan2(tip[1], tip[0]);
    // a n(θ) + b φ' n(φ) = c ψ' n(ψ), and once more.
    Eigen::Matrix2d A;
    A << -coupler * n(p.phi), rocker * n(p.psi);
    const Vector2d d = A.inverse() * (crank * n(theta));
    p.dphi = d[0];
    p.dpsi = d[1];
    const Vector2d dd = A.inverse() * (-crank * e(theta) - coupler * p.dphi * p.dphi * e(p.phi) +
                                       rocker * p.dpsi * p.dpsi * e(p.psi));
    p.ddphi = dd[0];
    p.ddpsi = dd[1];
    return p;
  }

  /// θ̈ from J θ̈ + ½ J' θ̇² + V' = τ₁ + τ₂ (φ' − 1) + τ₃ ψ'.
  double acceleration(double theta, double rate, const Vector3d& tau) const {
    const Position p = position(theta);
    const auto turned = [](double x, const Vector2d& c) {
      return Vector2d(c[0] * e(x) + c[1] * n(x));
    };
    const auto across = [](const Vector2d& u) { return Vector2d(-u[1], u[0]); };
    const Vector2d k2 = turned(p.phi, c2);
    const Vector2d r2 = crank * n(theta) + p.dphi * across(k2);  // by θ
    const Vector2d dr2 = -crank * e(theta) + p.ddphi * across(k2) - p.dphi * p.dphi * k2;
    const double J1 = I1 + m1 * c1.squaredNorm();
    const double J3 = I3 + m3 * c3.squaredNorm();
    const double J = J1 + I2 * p.dphi * p.dphi + m2 * r2.squaredNorm() + J3 * p.dpsi * p.dpsi;
    const double half_dJ = I2 * p.dphi * p.ddphi + m2 * r2.dot(dr2) + J3 * p.dpsi * p.ddpsi;
    const double dV = g * (m1 * across(turned(theta, c1))[1] + m2 * r2[1] +
                           m3 * p.dpsi * across(turned(p.psi, c3))[1]);
    return (tau[0] + tau[1] * (p.dphi - 1.0) + tau[2] * p.dpsi - dV - half_dJ * rate * rate) / J;
  }

  Vector3d q(double theta) const {
    const Position p = position(theta);
    return {theta, p.phi - theta, p.psi};
  }
  Vector3d v(double theta, double rate) const {
    const Position p = position(theta);
    return Vector3d(1.0, p.dphi - 1.0, p.dpsi) * rate;
  }
  Vector3d a(double theta, double rate, double acceleration) const {
    const Position p = position(theta);
    return v(theta, acceleration) + Vector3d(0.0, p.ddphi, p.ddpsi) * rate * rate;
  }
};

}  // namespace

TEST(FourBarLinkage, EquationOfMotionInClosedForm) {
  const FourBar bar;
  const Model model = build_model(bar.description());
  Dynamics<double> dynamics(model);
  support::Random random(7);
  for (const LoopType type :
       {LoopType::revolute, LoopType::spherical, LoopType::cylindrical, LoopType::universal}) {
    LoopSet set = bar.loop(model, type);
    set[0].axis_b = Vector3d::UnitX();  // the universal joint's second axis, square to z as built
    Loops<double> l(dynamics.tree(), model, set);
    for (int k = 0; k < 50; ++k) {
      const double theta = random.uniform(-3.1, 3.1);
      const double rate = random.uniform(-4.0, 4.0);
      const Vector3d tau = random.vector(5.0);
      const double expected = bar.acceleration(theta, rate, tau);
      for (const LoopMethod& method : methods) {
        SCOPED_TRACE(std::string(method.name) + " " + to_string(type));
        VectorXd a(3);
        VectorXd lambda(l.rows());
        ASSERT_EQ((l.*method.solve)(bar.q(theta), bar.v(theta, rate), tau, a, lambda), Status::ok);
        EXPECT_EQ(l.rank(), 2);  // of five equations in space, two hold in the plane
        EXPECT_LT(difference(a, bar.a(theta, rate, expected)), 1e-9);
      }
    }
  }
}

// At a change point, crank and coupler in line with the ground, the planar linkage can fold both
// ways: φ' loses rank there. The solvers still give an acceleration that satisfies it.
TEST(FourBarLinkage, LosesRankAtTheChangePoint) {
  FourBar bar;
  bar.crank = 0.5;
  bar.coupler = 0.9;
  bar.rocker = 0.5;
  bar.ground = 0.9;  // a parallelogram folds flat at θ = 0
  const Model model = build_model(bar.description());
  Dynamics<double> dynamics(model);
  Loops<double> l(dynamics.tree(), model, bar.loop(model));
  const VectorXd q = VectorXd::Zero(3);
  const VectorXd v = VectorXd::Zero(3);
  MatrixXd J(l.rows(), 3);
  VectorXd bias(l.rows());
  ASSERT_EQ(l.constraint(q, v, J, bias), Status::ok);
  VectorXd reference;
  for (const LoopMethod& method : methods) {
    SCOPED_TRACE(method.name);
    VectorXd a(3);
    VectorXd lambda(l.rows());
    ASSERT_EQ((l.*method.solve)(q, v, Vector3d(1.0, 0.0, 0.0), a, lambda), Status::ok);
    EXPECT_EQ(l.rank(), 1);
    if (reference.size() == 0) reference = a;
    EXPECT_LT(difference(a, reference), 1e-9);
    EXPECT_LT((J * a).cwiseAbs().maxCoeff(), 1e-9);
  }
}

namespace {

struct Course {
  double energy_drift;    // largest change of the energy
  double energy_scale;    // kinetic energy at the start
  double position_error;  // largest element of φ at the end
  VectorXd q;
};

/// Without efforts, by the classical Runge–Kutta method (all coordinates are angles).
Course simulate(const FourBar& bar, Solve solve, double stabilisation, VectorXd q, VectorXd v,
                double duration, double dt = 1e-3) {
  const Model model = build_model(bar.description());
  Dynamics<double> dynamics(model);
  Loops<double> l(dynamics.tree(), model, bar.loop(model));
  l.alpha = l.beta = stabilisation;
  const VectorXd tau = VectorXd::Zero(3);
  VectorXd lambda(l.rows());
  const auto acceleration = [&](const VectorXd& at, const VectorXd& rate) {
    VectorXd a(3);
    EXPECT_EQ((l.*solve)(at, rate, tau, a, lambda), Status::ok);
    return a;
  };
  const auto energy = [&] {
    EXPECT_EQ(dynamics.kinematics().update(q, v), Status::ok);
    const auto E = dynamics.kinematics().energy();
    return E.kinetic + E.potential;
  };
  const double start = energy();
  Course course{0.0, dynamics.kinematics().energy().kinetic, 0.0, {}};
  for (double t = 0.0; t < duration; t += dt) {
    const VectorXd a1 = acceleration(q, v);
    const VectorXd v2 = v + dt / 2 * a1;
    const VectorXd a2 = acceleration(q + dt / 2 * v, v2);
    const VectorXd v3 = v + dt / 2 * a2;
    const VectorXd a3 = acceleration(q + dt / 2 * v2, v3);
    const VectorXd v4 = v + dt * a3;
    const VectorXd a4 = acceleration(q + dt * v3, v4);
    q += dt / 6 * (v + 2 * v2 + 2 * v3 + v4);
    v += dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4);
    course.energy_drift = std::max(course.energy_drift, std::abs(energy() - start));
  }
  VectorXd phi(l.rows());
  EXPECT_EQ(l.position_error(q, phi), Status::ok);
  course.position_error = phi.cwiseAbs().maxCoeff();
  course.q = q;
  return course;
}

}  // namespace

// Fast enough to turn the crank over many times, through every configuration. What the energy loses
// is the integrator's share, fourth order in the step: a sixteenth at half the step.
TEST(FourBarLinkage, KeepsItsEnergy) {
  const FourBar bar;
  for (const LoopMethod& method : methods) {
    SCOPED_TRACE(method.name);
    const Course course = simulate(bar, method.solve, 10.0, bar.q(0.4), bar.v(0.4, 14.0), 2.0);
    EXPECT_GT(std::abs(course.q[0] - 0.4), 2 * M_PI);
    EXPECT_LT(course.energy_drift, 1e-5 * course.energy_scale);
    EXPECT_LT(course.position_error, 1e-7);
    const Course finer =
        simulate(bar, method.solve, 10.0, bar.q(0.4), bar.v(0.4, 14.0), 2.0, 0.5e-3);
    EXPECT_LT(finer.energy_drift, course.energy_drift / 12);
  }
}

// Without stabilisation a gap stays open (here it grows with the velocity error), with it the gap
// closes.
TEST(FourBarLinkage, StabilisationClosesAGap) {
  const FourBar bar;
  VectorXd q = bar.q(0.4);
  q[1] += 1e-3;
  const VectorXd v = VectorXd::Zero(3);
  const Course drifting = simulate(bar, methods[2].solve, 0.0, q, v, 1.0);
  const Course stabilised = simulate(bar, methods[2].solve, 30.0, q, v, 1.0);
  EXPECT_GT(drifting.position_error, 1e-4);
  EXPECT_LT(stabilised.position_error, 1e-9);
}

TEST(FourBarLinkage, ProjectsOntoTheLoop) {
  const FourBar bar;
  const Model model = build_model(bar.description());
  Dynamics<double> dynamics(model);
  Loops<double> l(dynamics.tree(), model, bar.loop(model));
  support::Random random(11);
  for (int k = 0; k < 50; ++k) {
    const double theta = random.uniform(-3.1, 3.1);
    VectorXd q = bar.q(theta) + random.vector(0.2);
    VectorXd v = random.vector(2.0);
    q[0] = theta;
    l.weights[0] = 0.0;  // the crank holds still, so the answer is known
    ASSERT_EQ(l.project(q), Status::ok);
    EXPECT_EQ(q[0], theta);
    EXPECT_LT(difference(q, bar.q(theta)), 1e-10);
    const double rate = v[0];
    ASSERT_EQ(l.project_velocity(q, v), Status::ok);
    EXPECT_LT(difference(v, bar.v(theta, rate)), 1e-10);

    l.weights[0] = 1.0;  // the nearest point: what was moved is square to where the linkage goes
    const VectorXd before = random.vector(2.0);
    v = before;
    ASSERT_EQ(l.project_velocity(q, v), Status::ok);
    EXPECT_NEAR((v - before).dot(bar.v(theta, 1.0)), 0.0, 1e-9);
  }
}

TEST(FourBarLinkage, ImpossibleLoopDoesNotConverge) {
  const FourBar bar;
  const Model model = build_model(bar.description());
  Dynamics<double> dynamics(model);
  LoopSet set = bar.loop(model);
  set[0].frame_b.p = {5.0, 0.0, 0.0};  // out of reach
  Loops<double> l(dynamics.tree(), model, set);
  VectorXd q = bar.q(0.4);
  EXPECT_EQ(l.project(q), Status::not_converged);
  EXPECT_TRUE(q.allFinite());
}

// Massless crank and coupler: M is singular, the linkage is not.
TEST(FourBarLinkage, MasslessLinks) {
  FourBar bar;
  bar.m1 = bar.I1 = bar.m2 = bar.I2 = 0.0;
  const Model model = build_model(bar.description());
  Dynamics<double> dynamics(model);
  Loops<double> l(dynamics.tree(), model, bar.loop(model));
  const double theta = 0.7;
  const double rate = 1.1;
  const Vector3d tau(0.5, 0.0, 0.0);
  const VectorXd expected = bar.a(theta, rate, bar.acceleration(theta, rate, tau));
  VectorXd a(3);
  VectorXd lambda(l.rows());
  for (const LoopMethod& method : methods) {
    SCOPED_TRACE(method.name);
    const Status status = (l.*method.solve)(bar.q(theta), bar.v(theta, rate), tau, a, lambda);
    if (method.solve == &Loops<double>::multipliers_first) {
      EXPECT_EQ(status, Status::singular);  // needs M⁻¹
    } else {
      ASSERT_EQ(status, Status::ok);
      EXPECT_LT(difference(a, expected), 1e-9);
    }
  }
  bar.m3 = bar.I3 = 0.0;  // nothing has mass
  const Model empty = build_model(bar.description());
  Dynamics<double> nothing(empty);
  Loops<double> weightless(nothing.tree(), empty, bar.loop(empty));
  for (const LoopMethod& method : methods) {
    SCOPED_TRACE(method.name);
    EXPECT_EQ((weightless.*method.solve)(bar.q(theta), bar.v(theta, rate), tau, a, lambda),
              Status::singular);
  }
}

// --- Random mechanisms ---------------------------------------------------------------------------

namespace {

/// A random tree in a state that closes random loops.
struct Mechanism : support::Sample {
  Mechanism(const support::Kind& kind, unsigned seed) : Sample(kind, seed), dynamics(model) {
    tau = random.vector_x(model.nv, 10.0);
    EXPECT_EQ(dynamics.kinematics().update(q), Status::ok);
    const int wanted = random.integer(1, 2);
    for (int k = 0; k < 20 && static_cast<int>(set.size()) < wanted; ++k) add_loop();
  }

  void add_loop() {
    const int last = static_cast<int>(model.links.size()) - 1;
    LoopJoint j;
    j.name = "loop_" + std::to_string(set.size());
    j.type = static_cast<LoopType>(random.integer(0, 6));
    j.link_a = random.integer(0, last);
    j.link_b = random.integer(0, last);
    if (model.links[static_cast<std::size_t>(j.link_a)].body ==
        model.links[static_cast<std::size_t>(j.link_b)].body)
      return;
    j.axis = random.direction();
    j.frame_a = {random.rotation(), random.vector(0.3)};
    Pose<double> X_a;
    Pose<double> X_b;
    EXPECT_EQ(dynamics.kinematics().pose(j.link_a, X_a), Status::ok);
    EXPECT_EQ(dynamics.kinematics().pose(j.link_b, X_b), Status::ok);
    j.frame_b = X_b.inverse() * X_a * j.frame_a;  // closed at q
    j.axis_b = j.axis.cross(random.direction()).normalized();
    set.push_back(j);
  }

  Dynamics<double> dynamics;
  LoopSet set;
  VectorXd tau;
};

class LoopsTest : public testing::TestWithParam<support::Kind> {
 protected:
  static constexpr unsigned seeds = 40;
};

/// q̈ of least constraint by a dense pseudo-inverse: a = a_free + M⁻¹Jᵀ(J M⁻¹ Jᵀ)⁺(c − J a_free).
VectorXd dense_solution(Dynamics<double>& dynamics, const VectorXd& q, const VectorXd& v,
                        const VectorXd& tau, const MatrixXd& J, const VectorXd& c) {
  const int n = dynamics.nv();
  VectorXd bias(n);
  MatrixXd M(n, n);
  EXPECT_EQ(dynamics.families().newton_euler.inverse_dynamics(q, v, VectorXd::Zero(n), bias),
            Status::ok);
  EXPECT_EQ(dynamics.families().composite_body.mass_matrix(q, M), Status::ok);
  const Eigen::LLT<MatrixXd> llt(M);
  const MatrixXd root = llt.matrixL();  // in the coordinates Lᵀq̈ the norm is Gauss's constraint
  const VectorXd free = llt.solve(tau - bias);
  const MatrixXd scaled = root.triangularView<Eigen::Lower>().solve(J.transpose()).transpose();
  Eigen::CompleteOrthogonalDecomposition<MatrixXd> cod;
  cod.setThreshold(1e-8);
  cod.compute(scaled);
  const VectorXd step = cod.solve(c - J * free);
  return free + root.transpose().triangularView<Eigen::Upper>().solve(step);
}

}  // namespace

TEST_P(LoopsTest, MethodsAgreeWithADenseSolution) {
  int redundant = 0;
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Mechanism m(GetParam(), seed);
    if (m.set.empty()) continue;
    LoopSet set = m.set;
    if (seed % 2 == 0) set.push_back(set.front());  // every equation twice
    Loops<double> l(m.dynamics.tree(), m.model, set);
    l.alpha = 3.0;
    l.beta = 2.0;
    Dynamics<double>& dynamics = m.dynamics;
    ASSERT_EQ(l.project_velocity(m.q, m.v), Status::ok);
    const int link = m.random.integer(0, static_cast<int>(m.model.links.size()) - 1);
    ASSERT_EQ(dynamics.add_external_force(link, {m.random.vector(3.0), m.random.vector(3.0)}),
              Status::ok);
    MatrixXd J(l.rows(), m.model.nv);
    VectorXd bias(l.rows());
    ASSERT_EQ(l.constraint(m.q, m.v, J, bias), Status::ok);
    EXPECT_LT((J * m.v).cwiseAbs().maxCoeff(), 1e-9);
    const VectorXd expected = dense_solution(dynamics, m.q, m.v, m.tau, J, -bias);
    for (const LoopMethod& method : methods) {
      SCOPED_TRACE(method.name);
      VectorXd a(m.model.nv);
      VectorXd lambda(l.rows());
      ASSERT_EQ((l.*method.solve)(m.q, m.v, m.tau, a, lambda), Status::ok);
      EXPECT_LT(difference(a, expected), 1e-7);
      EXPECT_LT(difference(J * a, -bias), 1e-8);
      // Eq. 15: the multipliers are the forces.
      VectorXd tree(m.model.nv);
      ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(m.q, m.v, a, tree), Status::ok);
      EXPECT_LT(difference(m.tau + J.transpose() * lambda, tree), 1e-7);
    }
    if (l.rank() < l.rows()) ++redundant;
  }
  EXPECT_GT(redundant, 10);
}

// The loop forces as external forces on both links, in inverse dynamics that know nothing of
// loops, give back the efforts: Newton's third law.
TEST_P(LoopsTest, JointForcesBalance) {
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Mechanism m(GetParam(), seed);
    if (m.set.empty()) continue;
    Loops<double> l(m.dynamics.tree(), m.model, m.set);
    ASSERT_EQ(l.project_velocity(m.q, m.v), Status::ok);
    VectorXd a(m.model.nv);
    VectorXd lambda(l.rows());
    ASSERT_EQ(l.null_space(m.q, m.v, m.tau, a, lambda), Status::ok);
    for (int k = 0; k < static_cast<int>(m.set.size()); ++k) {
      const LoopJoint& j = m.set[static_cast<std::size_t>(k)];
      Force<double> F;
      ASSERT_EQ(l.joint_force(lambda, k, F), Status::ok);
      Pose<double> X_a;
      Pose<double> X_b;
      ASSERT_EQ(m.dynamics.kinematics().pose(j.link_a, X_a), Status::ok);
      ASSERT_EQ(m.dynamics.kinematics().pose(j.link_b, X_b), Status::ok);
      const Vector3d point = X_b * j.frame_b.p;
      const auto apply = [&](int link, const Pose<double>& X, double sign) {
        const Vector3d n = sign * (F.n + (point - X.p).cross(F.f));
        return m.dynamics.add_external_force(
            link, {X.R.transpose() * n, X.R.transpose() * Vector3d(sign * F.f)});
      };
      ASSERT_EQ(apply(j.link_b, X_b, 1.0), Status::ok);
      ASSERT_EQ(apply(j.link_a, X_a, -1.0), Status::ok);
    }
    VectorXd tau(m.model.nv);
    ASSERT_EQ(m.dynamics.families().newton_euler.inverse_dynamics(m.q, m.v, a, tau), Status::ok);
    EXPECT_LT(difference(tau, m.tau), 1e-7 * std::max(1.0, lambda.cwiseAbs().maxCoeff()));
  }
}

// φ' and φ̇' v are derivatives of φ, off the constraint as well.
TEST_P(LoopsTest, DerivativesOfTheConstraint) {
  const double dt = 1e-6;
  for (unsigned seed = 1; seed <= 15; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Mechanism m(GetParam(), seed);
    if (m.set.empty()) continue;
    Loops<double> l(m.dynamics.tree(), m.model, m.set);
    const int rows = l.rows();
    VectorXd q(m.model.nq);
    ASSERT_EQ(m.dynamics.kinematics().integrate(m.q, m.random.vector_x(m.model.nv, 0.3), 1.0, q),
              Status::ok);
    MatrixXd J(rows, m.model.nv);
    MatrixXd J_side(rows, m.model.nv);
    VectorXd bias(rows);
    VectorXd ignored(rows);
    VectorXd phi[2] = {VectorXd(rows), VectorXd(rows)};
    VectorXd rate[2] = {VectorXd(rows), VectorXd(rows)};
    for (const int side : {0, 1}) {
      VectorXd moved(m.model.nq);
      ASSERT_EQ(m.dynamics.kinematics().integrate(q, m.v, side == 0 ? -dt : dt, moved), Status::ok);
      ASSERT_EQ(l.position_error(moved, phi[side]), Status::ok);
      ASSERT_EQ(l.constraint(moved, m.v, J_side, ignored), Status::ok);
      rate[side] = J_side * m.v;
    }
    ASSERT_EQ(l.constraint(q, m.v, J, bias), Status::ok);
    EXPECT_LT(difference(J * m.v, (phi[1] - phi[0]) / (2 * dt)), 1e-7);
    EXPECT_LT(difference(bias, (rate[1] - rate[0]) / (2 * dt)), 1e-7);
  }
}

TEST_P(LoopsTest, ProjectsBackAfterADisturbance) {
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Mechanism m(GetParam(), seed);
    if (m.set.empty()) continue;
    LoopSet set = m.set;
    if (seed % 2 == 0) set.push_back(set.front());
    Loops<double> l(m.dynamics.tree(), m.model, set);
    VectorXd q = m.q;
    ASSERT_EQ(m.dynamics.kinematics().integrate(q, m.random.vector_x(m.model.nv, 0.02), 1.0, q),
              Status::ok);
    VectorXd phi(l.rows());
    ASSERT_EQ(l.project(q), Status::ok);
    ASSERT_EQ(l.position_error(q, phi), Status::ok);
    EXPECT_LT(phi.cwiseAbs().maxCoeff(), 1e-11);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, LoopsTest, testing::ValuesIn(support::kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

// --- Limits of the case --------------------------------------------------------------------------

TEST(Loops, NoneIsTheTree) {
  support::Sample s(support::kinds()[1], 4);
  Dynamics<double> dynamics(s.model);
  Loops<double> l(dynamics.tree(), s.model, {});
  VectorXd expected(s.model.nv);
  ASSERT_EQ(dynamics.families().cholesky.forward_dynamics(s.q, s.v, s.a, expected), Status::ok);
  VectorXd lambda(0);
  for (const LoopMethod& method : methods) {
    SCOPED_TRACE(method.name);
    VectorXd a(s.model.nv);
    ASSERT_EQ((l.*method.solve)(s.q, s.v, s.a, a, lambda), Status::ok);
    EXPECT_LT(difference(a, expected), 1e-9);
  }
  EXPECT_EQ(l.project(s.q), Status::ok);
  EXPECT_EQ(l.project_velocity(s.q, s.v), Status::ok);
}

TEST(Loops, AStructureDoesNotMove) {
  const FourBar bar;
  const Model model = build_model(bar.description());
  Dynamics<double> dynamics(model);
  LoopSet set = bar.loop(model, LoopType::fixed);
  const double theta = 0.5;
  const FourBar::Position p = bar.position(theta);
  set[0].frame_b.R = Eigen::AngleAxisd(p.phi - p.psi, Vector3d::UnitZ()).toRotationMatrix();
  Loops<double> l(dynamics.tree(), model, set);
  for (const LoopMethod& method : methods) {
    SCOPED_TRACE(method.name);
    VectorXd a(3);
    VectorXd lambda(l.rows());
    ASSERT_EQ((l.*method.solve)(bar.q(theta), VectorXd::Zero(3), Vector3d(1, 2, 3), a, lambda),
              Status::ok);
    EXPECT_EQ(l.rank(), 3);
    EXPECT_LT(a.cwiseAbs().maxCoeff(), 1e-9);
  }
}

TEST(Loops, SinglePrecision) {
  const FourBar bar;
  const Model model = build_model(bar.description());
  Dynamics<float> dynamics(model);
  Loops<float> l(dynamics.tree(), model, bar.loop(model));
  const double theta = 0.9;
  const Eigen::VectorXf q = bar.q(theta).cast<float>();
  const Eigen::VectorXf v = bar.v(theta, 1.5).cast<float>();
  const Eigen::VectorXf tau = Eigen::VectorXf::Zero(3);
  const VectorXd expected = bar.a(theta, 1.5, bar.acceleration(theta, 1.5, Vector3d::Zero()));
  Eigen::VectorXf a(3);
  Eigen::VectorXf lambda(l.rows());
  ASSERT_EQ(l.bordered(q, v, tau, a, lambda), Status::ok);
  EXPECT_LT(difference(a.cast<double>(), expected), 1e-4);
  ASSERT_EQ(l.multipliers_first(q, v, tau, a, lambda), Status::ok);
  EXPECT_LT(difference(a.cast<double>(), expected), 1e-4);
  ASSERT_EQ(l.null_space(q, v, tau, a, lambda), Status::ok);
  EXPECT_LT(difference(a.cast<double>(), expected), 1e-4);
  Eigen::VectorXf start = q + 0.05f * Eigen::VectorXf::Ones(3);
  EXPECT_EQ(l.project(start), Status::ok);
}

TEST(Loops, RefusesBadArguments) {
  const FourBar bar;
  const Model model = build_model(bar.description());
  Dynamics<double> dynamics(model);
  Loops<double> l(dynamics.tree(), model, bar.loop(model));
  const VectorXd q = bar.q(0.3);
  VectorXd v = VectorXd::Zero(3);
  VectorXd bad = v;
  bad[1] = std::nan("");
  VectorXd longer = VectorXd::Zero(9);
  VectorXd a(3);
  VectorXd lambda(l.rows());
  for (const LoopMethod& method : methods) {
    SCOPED_TRACE(method.name);
    EXPECT_EQ((l.*method.solve)(bad, v, v, a, lambda), Status::not_finite);
    EXPECT_EQ((l.*method.solve)(q, bad, v, a, lambda), Status::not_finite);
    EXPECT_EQ((l.*method.solve)(q, v, bad, a, lambda), Status::not_finite);
    EXPECT_EQ((l.*method.solve)(longer, v, v, a, lambda), Status::wrong_size);
    EXPECT_EQ((l.*method.solve)(q, v, v, longer, lambda), Status::wrong_size);
    EXPECT_EQ((l.*method.solve)(q, v, v, a, longer), Status::wrong_size);
  }
  MatrixXd J(l.rows(), 3);
  EXPECT_EQ(l.position_error(bad, lambda), Status::not_finite);
  EXPECT_EQ(l.position_error(q, longer), Status::wrong_size);
  EXPECT_EQ(l.constraint(q, bad, J, lambda), Status::not_finite);
  EXPECT_EQ(l.constraint(q, v, J, longer), Status::wrong_size);
  EXPECT_EQ(l.project_velocity(q, bad), Status::not_finite);
  EXPECT_EQ(l.project_velocity(bad, v), Status::not_finite);
  EXPECT_EQ(l.project(bad), Status::not_finite);
  Force<double> F;
  EXPECT_EQ(l.joint_force(lambda, 1, F), Status::out_of_range);
  EXPECT_EQ(l.joint_force(lambda, -1, F), Status::out_of_range);
  EXPECT_EQ(l.joint_force(longer, 0, F), Status::wrong_size);
}

// --- Files ---------------------------------------------------------------------------------------

namespace {

const char* const four_bar_loops = R"(
loops:
  - name: pin
    type: revolute
    link_a: coupler
    frame_a: {xyz: [0.8, 0, 0]}
    link_b: rocker
    frame_b: {xyz: [0.6, 0, 0], rpy: [0, 0, 1.5707963267948966]}
    axis: [0, 0, 2]
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST(LoopFile, ReadsWhatItSays) {
  const FourBar bar;
  const Model model = build_model(bar.description());
  const std::string path = testing::TempDir() + "four_bar_loops.yaml";
  std::ofstream(path) << four_bar_loops;
  const LoopSet set = load_loops(path, model);
  std::remove(path.c_str());
  ASSERT_EQ(set.size(), 1U);
  EXPECT_EQ(set[0].name, "pin");
  EXPECT_EQ(set[0].type, LoopType::revolute);
  EXPECT_EQ(set[0].link_a, model.find_link("coupler"));
  EXPECT_EQ(set[0].link_b, model.find_link("rocker"));
  EXPECT_EQ(set[0].frame_a.p, Vector3d(0.8, 0, 0));
  EXPECT_EQ(set[0].frame_b.p, Vector3d(0.6, 0, 0));
  EXPECT_LT((set[0].frame_b.R * Vector3d::UnitX() - Vector3d::UnitY()).norm(), 1e-15);
  EXPECT_EQ(set[0].axis, Vector3d::UnitZ());

  // A turn of frame B about the axis is none of the joint's business.
  Dynamics<double> dynamics(model);
  Loops<double> l(dynamics.tree(), model, set);
  VectorXd phi(l.rows());
  ASSERT_EQ(l.position_error(bar.q(0.4), phi), Status::ok);
  EXPECT_LT(phi.cwiseAbs().maxCoeff(), 1e-15);
}

TEST(LoopFile, KnowsEveryType) {
  const Model model = build_model(FourBar{}.description());
  const std::pair<const char*, int> rows[] = {
      {"fixed", 6},     {"revolute", 5},  {"prismatic", 5}, {"cylindrical", 4},
      {"universal", 4}, {"spherical", 3}, {"planar", 3}};
  Dynamics<double> dynamics(model);
  for (const auto& [name, count] : rows) {
    SCOPED_TRACE(name);
    std::string text = replaced(four_bar_loops, "type: revolute", std::string("type: ") + name);
    const std::string kind = name;
    if (kind == "fixed" || kind == "spherical") text = replaced(text, "    axis: [0, 0, 2]\n", "");
    if (kind == "universal")
      text = replaced(text, "axis: [0, 0, 2]", "axis: [0, 0, 2]\n    axis_b: [1, 0, 0]");
    const LoopSet set = parse_loops(text, model);
    ASSERT_EQ(set.size(), 1U);
    EXPECT_STREQ(to_string(set[0].type), name);
    EXPECT_EQ(Loops<double>(dynamics.tree(), model, set).rows(), count);
  }
}

TEST(LoopFile, NamesWhatIsWrong) {
  const Model model = build_model(FourBar{}.description());
  struct Case {
    const char* from;
    const char* to;
    std::vector<const char*> words;
  };
  const std::vector<Case> cases = {
      {"link_a: coupler", "link_a: cuppler", {"'pin'", "line 5", "'cuppler'", "link names"}},
      {"    link_b: rocker\n", "", {"'pin'", "link_b", "add"}},
      {"type: revolute", "type: hinge", {"'pin'", "'hinge'", "revolute", "planar"}},
      {"    type: revolute\n", "", {"'pin'", "no type"}},
      {"name: pin", "nom: pin", {"number 1", "name"}},
      {"axis: [0, 0, 2]", "axis: [0, 0, 0]", {"'pin'", "axis", "zero", "direction"}},
      {"axis: [0, 0, 2]", "axis: [0, 0]", {"'pin'", "axis", "three numbers"}},
      {"axis: [0, 0, 2]", "axis: [0, 0, .nan]", {"'pin'", "axis", "'.nan'"}},
      {"axis: [0, 0, 2]", "axis: [0, inf, 1]", {"'pin'", "axis", "'inf'", "finite"}},
      {"    axis: [0, 0, 2]\n", "", {"'pin'", "no axis", "[0, 0, 1]"}},
      {"axis: [0, 0, 2]", "axle: [0, 0, 2]", {"'pin'", "'axle'", "axis"}},
      {"type: revolute", "type: spherical", {"'pin'", "unknown key 'axis'"}},
      {"type: revolute", "type: universal", {"'pin'", "axis_b"}},
      {"{xyz: [0.8, 0, 0]}", "[0.8, 0, 0]", {"'pin'", "frame_a", "xyz"}},
      {"{xyz: [0.8, 0, 0]}", "{xzy: [0.8, 0, 0]}", {"'pin'", "'xzy'"}},
      {"link_b: rocker", "link_b: coupler", {"'pin'", "'coupler'", "cannot move apart"}},
      {"link_b: rocker", "link_b: [rocker]", {"'pin'", "link_b", "single value"}},
      {"    axis: [0, 0, 2]\n", "    axis: [0, 0, 2]\n    axis: [0, 0, 1]\n", {"'pin'", "twice"}},
      {"loops:", "loops: [", {"not YAML", "line"}},
      {"loops:", "hoops:", {"unknown key 'hoops'", "loops"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.to);
    try {
      (void)parse_loops(replaced(four_bar_loops, c.from, c.to), model, "loops.yaml");
      FAIL() << "was read";
    } catch (const ModelError& error) {
      EXPECT_THAT(error.what(), testing::StartsWith("loops.yaml: "));
      for (const char* word : c.words) EXPECT_THAT(error.what(), testing::HasSubstr(word));
    }
  }
  for (const char* text : {"", "  \n", "loops: 3", "- 1", "- [name]", "a string"})
    EXPECT_THROW((void)parse_loops(text, model), ModelError) << text;
  std::string twice = four_bar_loops;
  twice += std::string(four_bar_loops).substr(std::string("\nloops:\n").size());
  EXPECT_THROW((void)parse_loops(twice, model), ModelError);
  EXPECT_THROW((void)load_loops("/nonexistent/loops.yaml", model), ModelError);
  EXPECT_THROW((void)parse_loops(std::string(10'000'001, '#'), model), ModelError);
  EXPECT_TRUE(parse_loops("loops: []", model).empty());
  std::string many = "loops:";
  for (int i = 0; i < 257; ++i) many += "\n  - {}";
  EXPECT_THAT(support::error_of([&] { (void)parse_loops(many, model); }),
              testing::HasSubstr("257 loop joints, more than 256"));
}

TEST(LoopSets, WrittenByHandAreChecked) {
  const FourBar bar;
  const Model model = build_model(bar.description());
  Dynamics<double> dynamics(model);
  const auto refused = [&](auto change) {
    LoopSet set = bar.loop(model);
    change(set[0]);
    EXPECT_THROW((Loops<double>(dynamics.tree(), model, set)), ModelError);
  };
  refused([](LoopJoint& j) { j.link_a = -1; });
  refused([](LoopJoint& j) { j.link_b = 99; });
  refused([](LoopJoint& j) { j.link_b = j.link_a; });
  refused([](LoopJoint& j) { j.axis.setZero(); });
  refused([](LoopJoint& j) { j.axis[1] = INFINITY; });
  refused([](LoopJoint& j) { j.frame_b.p[0] = std::nan(""); });
}

TEST(Loops, AllocateNothing) {
  support::Sample s = support::large_robot();
  Dynamics<double> dynamics(s.model);
  LoopJoint j;
  j.type = LoopType::fixed;
  j.link_a = 1;
  j.link_b = static_cast<int>(s.model.links.size()) - 1;
  Pose<double> X_a;
  Pose<double> X_b;
  ASSERT_EQ(dynamics.kinematics().update(s.q), Status::ok);
  ASSERT_EQ(dynamics.kinematics().pose(j.link_a, X_a), Status::ok);
  ASSERT_EQ(dynamics.kinematics().pose(j.link_b, X_b), Status::ok);
  j.frame_b = X_b.inverse() * X_a;
  const LoopSet set(12, j);  // the same loop a dozen times: 72 equations, 66 of them redundant
  Loops<double> l(dynamics.tree(), s.model, set);
  VectorXd q = s.q;
  q[0] += 0.01;
  VectorXd a(s.model.nv);
  VectorXd lambda(l.rows());
  VectorXd phi(l.rows());
  MatrixXd J(l.rows(), s.model.nv);
  Force<double> F;
  bool ok = true;
  const support::AllocationGuard guard;
  ok = ok && l.project(q) == Status::ok;
  ok = ok && l.project_velocity(q, s.v) == Status::ok;
  ok = ok && l.position_error(q, phi) == Status::ok;
  ok = ok && l.constraint(q, s.v, J, phi) == Status::ok;
  for (const LoopMethod& method : methods)
    ok = ok && (l.*method.solve)(q, s.v, s.a, a, lambda) == Status::ok;
  ok = ok && l.joint_force(lambda, 3, F) == Status::ok;
  EXPECT_EQ(guard.count(), 0);
  EXPECT_TRUE(ok);
  EXPECT_EQ(l.rank(), 6);
}
