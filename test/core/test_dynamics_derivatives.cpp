// SPDX-License-Identifier: Apache-2.0
/// The derivatives of inverse and forward dynamics against those of dual numbers and of differences,
/// by other families of algorithms, and against what they must be by symmetry.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/dual.hpp"
#include "support/linear_algebra.hpp"
#include "support/quantities.hpp"
#include "support/trees.hpp"

namespace {

using namespace dynamics_core;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using support::constant;
using support::dual;
using support::Dual;
using support::expect_equal;
using support::rates;
using support::Robot;
using support::State;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The derivatives of one state.
struct OfEfforts {
  OfEfforts(Dynamics<double>& robot, const VectorXd& q, const VectorXd& v, const VectorXd& a)
      : by_q(robot.nv(), robot.nv()), by_v(by_q), M(by_q) {
    by_q.setConstant(nan);
    by_v.setConstant(nan);
    M.setConstant(nan);
    status = robot.inverse_dynamics_derivatives(q, v, a, by_q, by_v, M);
  }
  MatrixXd by_q, by_v, M;
  Status status;
};
struct OfAccelerations {
  OfAccelerations(Dynamics<double>& robot, const VectorXd& q, const VectorXd& v,
                  const VectorXd& tau)
      : by_q(robot.nv(), robot.nv()), by_v(by_q), by_tau(by_q) {
    by_q.setConstant(nan);
    by_v.setConstant(nan);
    by_tau.setConstant(nan);
    status = robot.forward_dynamics_derivatives(q, v, tau, by_q, by_v, by_tau);
  }
  MatrixXd by_q, by_v, by_tau;
  Status status;
};

/// A random robot under a load, forces and gravity in any direction, in a random state.
struct Loaded {
  explicit Loaded(Robot& from)
      : surroundings(support::random_surroundings(from)),
        model(from.model),
        robot(model),
        state(support::random_state(from)) {
    fits = surroundings.put_on(robot.tree());
  }
  support::Surroundings<double> surroundings;
  const Model& model;
  Dynamics<double> robot;
  State<double> state;
  bool fits;

  [[nodiscard]] VectorXd unit(int k) const { return VectorXd::Unit(model.nv, k); }
  /// q after the coordinate k of v has acted for a time.
  [[nodiscard]] VectorXd moved(int k, double time) const {
    VectorXd q(model.nq);
    EXPECT_EQ(robot.kinematics().integrate(state.q, unit(k), time, q), Status::ok);
    return q;
  }
  /// The rate of q meanwhile.
  [[nodiscard]] VectorXd q_rate(int k) const {
    VectorXd rate(model.nq);
    EXPECT_EQ(robot.kinematics().configuration_rate(state.q, unit(k), rate), Status::ok);
    return rate;
  }
};

/// The same robot in dual numbers.
struct InDuals {
  explicit InDuals(const Loaded& from) : families(from.model) {
    const auto& s = from.surroundings;
    support::Surroundings<Dual> out;
    out.gravity = constant(s.gravity);
    out.carrier = s.carrier;
    out.payload = {Dual(s.payload.mass), constant(s.payload.com),
                   Symmetric3<Dual>::from(Mat3<Dual>(constant(s.payload.inertia.matrix())))};
    for (const auto& [link, F] : s.forces)
      out.forces.emplace_back(link, Force<Dual>{constant(F.n), constant(F.f)});
    out.geared = s.geared;
    out.rotor = Dual(s.rotor);
    fits = out.put_on(families.tree);
  }
  [[nodiscard]] VectorXd efforts(const VectorX<Dual>& q, const VectorX<Dual>& v,
                                 const VectorX<Dual>& a) {
    VectorX<Dual> tau(families.tree.nv());
    EXPECT_EQ(families.newton_euler.inverse_dynamics(q, v, a, tau), Status::ok);
    return rates(tau);
  }
  [[nodiscard]] VectorXd accelerations(const VectorX<Dual>& q, const VectorX<Dual>& v,
                                       const VectorX<Dual>& tau) {
    VectorX<Dual> a(families.tree.nv());
    EXPECT_EQ(families.gibbs_appell.forward_dynamics(q, v, tau, a), Status::ok);
    return rates(a);
  }
  Families<Dual> families;
  bool fits;
};

/// (4 D(h/2) − D(h)) / 3 of central differences D: h⁴/480 of the fifth derivative is left.
template <class Function>
[[nodiscard]] VectorXd difference(Function f) {
  constexpr double h = 2e-3;
  const VectorXd coarse = (f(h) - f(-h)) / (2.0 * h);
  const VectorXd fine = (f(0.5 * h) - f(-0.5 * h)) / h;
  return (4.0 * fine - coarse) / 3.0;
}

class EveryKind : public ::testing::TestWithParam<support::Kind> {};
INSTANTIATE_TEST_SUITE_P(DynamicsDerivatives, EveryKind, ::testing::ValuesIn(support::kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

/// Calls test(loaded) with many robots of the kind.
template <class Test>
void for_each_robot(const support::Kind& kind, unsigned seeds, Test test) {
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    Robot drawn(kind, seed);
    SCOPED_TRACE(drawn.trace());
    Loaded loaded(drawn);
    ASSERT_TRUE(loaded.fits);
    test(loaded);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST_P(EveryKind, OfEffortsAreThoseOfDualNumbers) {
  for_each_robot(GetParam(), 40, [](Loaded& l) {
    InDuals duals(l);
    ASSERT_TRUE(duals.fits);
    const State<double>& s = l.state;
    const OfEfforts actual(l.robot, s.q, s.v, s.u);
    ASSERT_EQ(actual.status, Status::ok);
    MatrixXd by_q(l.model.nv, l.model.nv), by_v = by_q, by_a = by_q;
    for (int k = 0; k < l.model.nv; ++k) {
      by_q.col(k) = duals.efforts(dual(s.q, l.q_rate(k)), constant(s.v), constant(s.u));
      by_v.col(k) = duals.efforts(constant(s.q), dual(s.v, l.unit(k)), constant(s.u));
      by_a.col(k) = duals.efforts(constant(s.q), constant(s.v), dual(s.u, l.unit(k)));
    }
    expect_equal(actual.by_q, by_q, 1e-12);
    expect_equal(actual.by_v, by_v, 1e-12);
    expect_equal(actual.M, by_a, 1e-12);
  });
}

TEST_P(EveryKind, OfEffortsAreThoseOfDifferences) {
  for_each_robot(GetParam(), 15, [](Loaded& l) {
    const State<double>& s = l.state;
    const OfEfforts actual(l.robot, s.q, s.v, s.u);
    ASSERT_EQ(actual.status, Status::ok);
    const auto efforts = [&](const VectorXd& q, const VectorXd& v) {
      VectorXd tau(l.model.nv);
      EXPECT_EQ(l.robot.inverse_dynamics(q, v, s.u, tau), Status::ok);
      return tau;
    };
    const double size = std::max(1.0, efforts(s.q, s.v).cwiseAbs().maxCoeff());
    for (int k = 0; k < l.model.nv; ++k) {
      expect_equal(actual.by_q.col(k),
                   difference([&](double t) { return efforts(l.moved(k, t), s.v); }), 1e-9, size);
      expect_equal(actual.by_v.col(k),
                   difference([&](double t) { return efforts(s.q, s.v + t * l.unit(k)); }), 1e-9,
                   size);
    }
  });
}

/// The error of a solution by M may grow by what the condition of M is.
[[nodiscard]] double condition(const MatrixXd& M) {
  const VectorXd values = support::singular_values(M);
  return values[0] / values[values.size() - 1];
}

TEST_P(EveryKind, OfAccelerationsAreThoseOfDualNumbers) {
  for_each_robot(GetParam(), 40, [](Loaded& l) {
    InDuals duals(l);
    ASSERT_TRUE(duals.fits);
    const State<double>& s = l.state;
    const OfAccelerations actual(l.robot, s.q, s.v, s.u);
    ASSERT_EQ(actual.status, Status::ok);
    MatrixXd by_q(l.model.nv, l.model.nv), by_v = by_q, by_tau = by_q, M = by_q;
    for (int k = 0; k < l.model.nv; ++k) {
      by_q.col(k) = duals.accelerations(dual(s.q, l.q_rate(k)), constant(s.v), constant(s.u));
      by_v.col(k) = duals.accelerations(constant(s.q), dual(s.v, l.unit(k)), constant(s.u));
      by_tau.col(k) = duals.accelerations(constant(s.q), constant(s.v), dual(s.u, l.unit(k)));
    }
    ASSERT_EQ(l.robot.mass_matrix(s.q, M), Status::ok);
    const double tolerance = 1e-13 * std::max(10.0, condition(M));
    expect_equal(actual.by_q, by_q, tolerance);
    expect_equal(actual.by_v, by_v, tolerance);
    expect_equal(actual.by_tau, by_tau, tolerance);
  });
}

TEST_P(EveryKind, OfAccelerationsAreThoseOfDifferences) {
  for_each_robot(GetParam(), 15, [](Loaded& l) {
    const State<double>& s = l.state;
    const OfAccelerations actual(l.robot, s.q, s.v, s.u);
    ASSERT_EQ(actual.status, Status::ok);
    const auto accelerations = [&](const VectorXd& q, const VectorXd& v) {
      VectorXd a(l.model.nv);
      EXPECT_EQ(l.robot.forward_dynamics(q, v, s.u, a), Status::ok);
      return a;
    };
    const double size = std::max(1.0, accelerations(s.q, s.v).cwiseAbs().maxCoeff());
    for (int k = 0; k < l.model.nv; ++k) {
      expect_equal(actual.by_q.col(k),
                   difference([&](double t) { return accelerations(l.moved(k, t), s.v); }), 5e-6,
                   size);
      expect_equal(actual.by_v.col(k),
                   difference([&](double t) { return accelerations(s.q, s.v + t * l.unit(k)); }),
                   5e-6, size);
    }
  });
}

/// ∂a/∂τ M = 1, and M ∂a/∂(q, v) + ∂τ/∂(q, v) = 0 at the acceleration that τ gives.
TEST_P(EveryKind, ForwardUndoesInverse) {
  for_each_robot(GetParam(), 40, [](Loaded& l) {
    const State<double>& s = l.state;
    VectorXd a(l.model.nv);
    MatrixXd M(l.model.nv, l.model.nv);
    ASSERT_EQ(l.robot.forward_dynamics(s.q, s.v, s.u, a), Status::ok);
    ASSERT_EQ(l.robot.mass_matrix(s.q, M), Status::ok);
    const OfEfforts efforts(l.robot, s.q, s.v, a);
    const OfAccelerations accelerations(l.robot, s.q, s.v, s.u);
    ASSERT_EQ(efforts.status, Status::ok);
    ASSERT_EQ(accelerations.status, Status::ok);
    expect_equal(efforts.M, M, 1e-13);
    const auto size_of = [&](const MatrixXd& x) {
      return M.cwiseAbs().maxCoeff() * std::max(1.0, x.cwiseAbs().maxCoeff());
    };
    expect_equal(accelerations.by_tau * M, MatrixXd::Identity(l.model.nv, l.model.nv), 1e-11,
                 size_of(accelerations.by_tau));
    EXPECT_EQ(accelerations.by_tau, accelerations.by_tau.transpose());
    const double of_a = size_of(a);
    expect_equal(M * accelerations.by_q, -efforts.by_q, 1e-10,
                 std::max(of_a, size_of(accelerations.by_q)));
    expect_equal(M * accelerations.by_v, -efforts.by_v, 1e-10,
                 std::max(of_a, size_of(accelerations.by_v)));
  });
}

/// Efforts are quadratic in v: ∂τ/∂v is linear in it, and zero at rest.
TEST_P(EveryKind, OfEffortsByVelocitiesAreLinearInThem) {
  for_each_robot(GetParam(), 10, [](Loaded& l) {
    const State<double>& s = l.state;
    const OfEfforts once(l.robot, s.q, s.v, s.u);
    const OfEfforts twice(l.robot, s.q, 2.0 * s.v, 0.0 * s.u);
    const OfEfforts at_rest(l.robot, s.q, 0.0 * s.v, s.u);
    expect_equal(twice.by_v, 2.0 * once.by_v, 1e-13);
    EXPECT_EQ(at_rest.by_v.cwiseAbs().maxCoeff(), 0.0);
  });
}

/// The robot under gravity and nothing else: g is the gradient of the potential, so that ∂g/∂q is
/// symmetric where v is the rate of q.
TEST_P(EveryKind, OfGravityIsSymmetric) {
  for_each_robot(GetParam(), 20, [](Loaded& l) {
    for (const auto& joint : l.model.joints)
      if (joint.type == JointType::floating) return;
    l.robot.clear_external_forces();
    const VectorXd zero = VectorXd::Zero(l.model.nv);
    const OfEfforts at_rest(l.robot, l.state.q, zero, zero);
    ASSERT_EQ(at_rest.status, Status::ok);
    expect_equal(at_rest.by_q, at_rest.by_q.transpose(), 1e-12);
  });
}

/// Where the robot stands makes no difference to its efforts, and how it stands none without gravity.
TEST(DynamicsDerivatives, OfAFloatingBaseAreZeroByItsPlace) {
  const support::Kind kind{"floating_base", {}, true};
  for_each_robot(kind, 20, [](Loaded& l) {
    const State<double>& s = l.state;
    const OfEfforts heavy(l.robot, s.q, s.v, s.u);
    const double size = std::max(1.0, heavy.by_q.cwiseAbs().maxCoeff());
    EXPECT_LE(heavy.by_q.middleCols(3, 3).cwiseAbs().maxCoeff(), 1e-13 * size);
    EXPECT_GT(heavy.by_q.leftCols(3).cwiseAbs().maxCoeff(), 1e-3);
    ASSERT_EQ(l.robot.set_gravity({0.0, 0.0, 0.0}), Status::ok);
    const OfEfforts light(l.robot, s.q, s.v, s.u);
    EXPECT_LE(light.by_q.leftCols(6).cwiseAbs().maxCoeff(), 1e-13 * size);
  });
}

/// However far away the base is.
TEST(DynamicsDerivatives, DoNotFeelHowFarAwayTheBaseIs) {
  const support::Kind kind{"floating_base", {}, true};
  for_each_robot(kind, 20, [](Loaded& l) {
    const State<double>& s = l.state;
    VectorXd far = s.q;
    far.head<3>() += Eigen::Vector3d(1e6, -2e6, 3e6);
    const OfEfforts near_by(l.robot, s.q, s.v, s.u);
    const OfEfforts far_away(l.robot, far, s.v, s.u);
    expect_equal(far_away.by_q, near_by.by_q, 1e-13);
    expect_equal(far_away.by_v, near_by.by_v, 1e-13);
  });
}

/// A quaternion's length does not count.
TEST(DynamicsDerivatives, TakeQuaternionsOfAnyLength) {
  const support::Kind kind{"floating_base", {}, true};
  for_each_robot(kind, 5, [](Loaded& l) {
    const State<double>& s = l.state;
    VectorXd longer = s.q;
    longer.segment<4>(3) *= 3.0;
    expect_equal(OfEfforts(l.robot, longer, s.v, s.u).by_q, OfEfforts(l.robot, s.q, s.v, s.u).by_q,
                 1e-13);
  });
}

/// A point mass on a rod that turns about y: τ = m l² a − m g l cos q, q = 0 being level.
TEST(DynamicsDerivatives, OfAPendulum) {
  RobotDescription description;
  description.name = "pendulum";
  description.links = {{"base", {}}, {"rod", {}}};
  Inertial bob;
  bob.mass = 2.0;
  bob.com = Eigen::Vector3d(0.5, 0.0, 0.0);
  description.links[1].inertial = bob;
  JointDescription joint;
  joint.name = "hinge";
  joint.type = JointType::continuous;
  joint.parent = "base";
  joint.child = "rod";
  joint.axis = Eigen::Vector3d::UnitY();
  description.joints.push_back(joint);
  Dynamics<double> robot(build_model(description));
  const VectorXd q = VectorXd::Constant(1, 0.7), v = VectorXd::Constant(1, 1.5);
  const OfEfforts efforts(robot, q, v, v);
  EXPECT_NEAR(efforts.by_q(0, 0), 2.0 * 9.81 * 0.5 * std::sin(0.7), 1e-14);
  EXPECT_NEAR(efforts.by_v(0, 0), 0.0, 1e-15);
  EXPECT_NEAR(efforts.M(0, 0), 0.5, 1e-15);
  const OfAccelerations accelerations(robot, q, v, v);
  EXPECT_NEAR(accelerations.by_q(0, 0), -2.0 * 9.81 * std::sin(0.7), 1e-13);
  EXPECT_NEAR(accelerations.by_v(0, 0), 0.0, 1e-15);
  EXPECT_NEAR(accelerations.by_tau(0, 0), 2.0, 1e-14);
}

TEST(DynamicsDerivatives, InSinglePrecision) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    support::RandomTree t(seed);
    SCOPED_TRACE(t.trace());
    Dynamics<double> robot(t.model);
    Dynamics<float> single(t.model);
    const OfEfforts expected(robot, t.q, t.v, t.a);
    const int n = t.model.nv;
    Eigen::MatrixXf by_q(n, n), by_v(n, n), M(n, n);
    ASSERT_EQ(single.inverse_dynamics_derivatives(t.q.cast<float>(), t.v.cast<float>(),
                                                  t.a.cast<float>(), by_q, by_v, M),
              Status::ok);
    EXPECT_TRUE(support::close_to(by_q.cast<double>(), expected.by_q, 1e-4));
    EXPECT_TRUE(support::close_to(by_v.cast<double>(), expected.by_v, 1e-4));
    EXPECT_TRUE(support::close_to(M.cast<double>(), expected.M, 1e-4));
  }
}

// --- Status --------------------------------------------------------------------------------------

TEST(DynamicsDerivatives, RefuseWrongSizes) {
  Robot drawn(support::kinds()[1], 4);
  Dynamics<double> robot(drawn.model);
  const int n = robot.nv();
  const VectorXd x = VectorXd::Constant(n, 0.3);
  const VectorXd longer = VectorXd::Constant(n + 1, 0.3);
  for (int wrong = 0; wrong < 7; ++wrong) {
    SCOPED_TRACE("argument " + std::to_string(wrong));
    const auto in = [&](int place) -> const VectorXd& { return place == wrong ? longer : x; };
    const auto out = [&](int place) {
      return place == wrong ? MatrixXd(n, n + 1) : MatrixXd(n, n);
    };
    MatrixXd A = out(3), B = out(4), C = out(5);
    const Status expected = wrong < 6 ? Status::wrong_size : Status::ok;
    EXPECT_EQ(robot.inverse_dynamics_derivatives(in(0), in(1), in(2), A, B, C), expected);
    EXPECT_EQ(robot.forward_dynamics_derivatives(in(0), in(1), in(2), A, B, C), expected);
  }
}

TEST(DynamicsDerivatives, RefuseWhatIsNotFinite) {
  Robot drawn(support::kinds()[1], 4);
  Dynamics<double> robot(drawn.model);
  const VectorXd x = VectorXd::Constant(robot.nv(), 0.3);
  for (const double bad : {nan, std::numeric_limits<double>::infinity()}) {
    for (int wrong = 0; wrong < 3; ++wrong) {
      VectorXd in[3] = {x, x, x};
      in[wrong][robot.nv() / 2] = bad;
      EXPECT_EQ(OfEfforts(robot, in[0], in[1], in[2]).status, Status::not_finite);
      EXPECT_EQ(OfAccelerations(robot, in[0], in[1], in[2]).status, Status::not_finite);
    }
  }
  // The results overflow, and the robot is as good as before.
  EXPECT_EQ(OfEfforts(robot, x, 1e200 * x, x).status, Status::not_finite);
  EXPECT_EQ(OfAccelerations(robot, x, 1e200 * x, x).status, Status::not_finite);
  EXPECT_EQ(OfEfforts(robot, x, x, x).status, Status::ok);
  EXPECT_EQ(OfAccelerations(robot, x, x, x).status, Status::ok);
}

TEST(DynamicsDerivatives, RefuseAQuaternionOfZero) {
  Robot drawn({"floating_base", {}, true}, 2);
  Dynamics<double> robot(drawn.model);
  const VectorXd q = VectorXd::Zero(robot.nq()), x = VectorXd::Zero(robot.nv());
  EXPECT_EQ(OfEfforts(robot, q, x, x).status, Status::out_of_range);
  EXPECT_EQ(OfAccelerations(robot, q, x, x).status, Status::out_of_range);
}

TEST(DynamicsDerivatives, OfAccelerationsAreRefusedWhereMIsSingular) {
  support::Random random(1);
  support::RandomOptions options;
  options.joints = 4;
  RobotDescription description = random.robot(options);
  description.links.back().inertial.reset();
  Dynamics<double> robot(build_model(description));
  const VectorXd x = VectorXd::Constant(4, 0.3);
  EXPECT_EQ(OfAccelerations(robot, x, x, x).status, Status::singular);
  EXPECT_EQ(OfEfforts(robot, x, x, x).status, Status::ok);
}

/// A robot without moving joints has empty matrices.
TEST(DynamicsDerivatives, OfARobotThatCannotMove) {
  RobotDescription description;
  description.name = "rock";
  description.links = {{"rock", {}}};
  Dynamics<double> robot(build_model(description));
  const VectorXd none(0);
  EXPECT_EQ(OfEfforts(robot, none, none, none).status, Status::ok);
  EXPECT_EQ(OfAccelerations(robot, none, none, none).status, Status::ok);
}

}  // namespace
