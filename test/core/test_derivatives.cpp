// SPDX-License-Identifier: Apache-2.0
/// The contract of scalar.hpp, kept with numbers that carry a derivative: the derivatives of every
/// quantity of every family are those of differences, and obey the equations of motion.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "support/dual.hpp"
#include "support/quantities.hpp"

namespace {

using namespace dynamics_core;
using support::constant;
using support::dual;
using support::Dual;
using support::expect_equal;
using support::rates;
using support::Robot;
using support::State;
using support::Surroundings;
using support::values;

// --- Between numbers and duals -------------------------------------------------------------------

[[nodiscard]] State<Dual> dual(const State<double>& s, const State<double>& direction) {
  return {dual(s.q, direction.q), dual(s.v, direction.v), dual(s.u, direction.u)};
}
[[nodiscard]] Surroundings<Dual> constant(const Surroundings<double>& from) {
  Surroundings<Dual> out;
  out.gravity = constant(from.gravity);
  out.carrier = from.carrier;
  out.payload = {Dual(from.payload.mass), constant(from.payload.com),
                 Symmetric3<Dual>::from(Mat3<Dual>(constant(from.payload.inertia.matrix())))};
  for (const auto& [link, F] : from.forces)
    out.forces.emplace_back(link, Force<Dual>{constant(F.n), constant(F.f)});
  out.geared = from.geared;
  out.rotor = Dual(from.rotor);
  return out;
}

/// A robot in both scalar types, in the same surroundings.
struct Both {
  explicit Both(Robot& robot) : numbers(robot.model), duals(robot.model) {
    const Surroundings<double> surroundings = support::random_surroundings(robot);
    fits = surroundings.put_on(numbers.tree) && constant(surroundings).put_on(duals.tree);
  }
  Families<double> numbers;
  Families<Dual> duals;
  bool fits;
};

[[nodiscard]] State<double> zero_direction(const Model& model) {
  return {Eigen::VectorXd::Zero(model.nq), Eigen::VectorXd::Zero(model.nv),
          Eigen::VectorXd::Zero(model.nv)};
}
[[nodiscard]] Eigen::VectorXd unit_vector(Robot& robot, int n) {
  return robot.random.vector_x(n, 1.0).normalized();
}
[[nodiscard]] State<double> moved(const State<double>& s, const State<double>& direction,
                                  double step) {
  return {s.q + step * direction.q, s.v + step * direction.v, s.u + step * direction.u};
}

// --- Derivatives and differences -----------------------------------------------------------------

/// Every quantity's derivative against Richardson's extrapolation of central differences,
/// (4 D(h/2) − D(h)) / 3. With h = 2e-3 it leaves h⁴/480 = 3e-14 of the fifth derivative, along
/// directions of length one, and about 3/h = 1500 of the round-off in the quantity: that is 1e-15 of
/// its size or, behind an inverse of M (of condition 1e6), some 1e-10.
class Differences {
 public:
  Differences(Both& both, const State<double>& state, const State<double>& direction)
      : actual_(both.duals, dual(state, direction)), expected_(both.numbers, state) {
    for (const double step : {h, -h, 0.5 * h, -0.5 * h}) {
      around_.emplace_back(both.numbers, moved(state, direction, step));
    }
  }

  void expect_derivatives() {
    const Eigen::MatrixXd& J = expected_[expected_.last_jacobian()].value;
    for (const auto& quantity : expected_.all())
      if (support::is_regular(quantity.name, J)) compare(quantity);
  }

 private:
  static constexpr double h = 2e-3;

  void compare(const support::Quantity<double>& expected) {
    SCOPED_TRACE(expected.name);
    const auto& quantity = actual_[expected.name];
    ASSERT_EQ(to_string(quantity.status), std::string(to_string(expected.status)));
    if (failed(expected.status) || expected.value.size() == 0) return;
    const auto at = [&](std::size_t k) { return around_[k][expected.name].value; };
    const Eigen::MatrixXd coarse = (at(0) - at(1)) / (2.0 * h);
    const Eigen::MatrixXd fine = (at(2) - at(3)) / h;
    const Eigen::MatrixXd difference = (4.0 * fine - coarse) / 3.0;
    const double size = std::max(1.0, expected.value.cwiseAbs().maxCoeff());
    const double error = (rates(quantity.value) - difference).cwiseAbs().maxCoeff();
    EXPECT_LE(error, tolerance(expected.name) * std::max(size, difference.cwiseAbs().maxCoeff()));
    EXPECT_LE((values(quantity.value) - expected.value).cwiseAbs().maxCoeff(), 1e-8 * size);
  }

  [[nodiscard]] static double tolerance(const std::string& name) {
    for (const char* inverse : {"forward", "inverse mass", "factors", "solution", "task"})
      if (name.rfind(inverse, 0) == 0) return 5e-6;
    return 1e-9;
  }

  support::Quantities<Dual> actual_;
  support::Quantities<double> expected_;
  std::vector<support::Quantities<double>> around_;
};

class EveryKind : public ::testing::TestWithParam<support::Kind> {};
INSTANTIATE_TEST_SUITE_P(Derivatives, EveryKind, ::testing::ValuesIn(support::kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST_P(EveryKind, DerivativesAreThoseOfDifferences) {
  for (unsigned seed = 1; seed <= 15; ++seed) {
    Robot robot(GetParam(), seed);
    SCOPED_TRACE(robot.trace());
    Both both(robot);
    ASSERT_TRUE(both.fits);
    const State<double> state = support::random_state(robot);
    const State<double> zero = zero_direction(robot.model);
    State<double> along_q = zero, along_v = zero, along_u = zero;
    along_q.q = unit_vector(robot, robot.model.nq);
    along_v.v = unit_vector(robot, robot.model.nv);
    along_u.u = unit_vector(robot, robot.model.nv);
    const State<double> along_all = {along_q.q, along_v.v, along_u.u};
    for (const State<double>& direction : {along_q, along_v, along_u, along_all})
      Differences(both, state, direction).expect_derivatives();
    if (HasFailure()) return;
  }
}

/// The pose of a floating joint is made of plane rotations, Rz(γ) Rx(α) Rz(θ), which have no
/// derivatives at α = 0 and at α = π; the pose has. The first of its bodies is turned by 120° about
/// (1, 1, 1) beside the joint, and so are these quaternions, whose numbers are exact.
TEST(Derivatives, HoldWhereTheAnglesOfAFloatingJointHaveNone) {
  const Quaternion<double> back{-0.5, -0.5, -0.5, 0.5};
  const support::Kind kind{"floating_base", {}, true};
  for (unsigned seed = 1; seed <= 10; ++seed) {
    Robot robot(kind, seed);
    SCOPED_TRACE(robot.trace());
    Both both(robot);
    ASSERT_TRUE(both.fits);
    State<double> state = support::random_state(robot);
    State<double> direction = zero_direction(robot.model);
    direction.q = unit_vector(robot, robot.model.nq);
    for (const Quaternion<double>& turn :
         {Quaternion<double>{0.0, 0.0, 0.0, 1.0}, Quaternion<double>{0.0, 0.0, -3.0, 4.0},
          Quaternion<double>{1.0, 0.0, 0.0, 0.0}, Quaternion<double>{3.0, -4.0, 0.0, 0.0}}) {
      const auto q = quaternion_product<double>(turn, back);
      state.q.segment(3, 4) << q.x, q.y, q.z, q.w;
      Differences(both, state, direction).expect_derivatives();
      // Within the angles' plane as well, where nothing leaves zero.
      State<double> plane = direction;
      const auto dq = quaternion_product<double>({0.0, 0.0, turn.w, -turn.z}, back);
      plane.q.segment(3, 4) << dq.x, dq.y, dq.z, dq.w;
      Differences(both, state, plane).expect_derivatives();
    }
    if (HasFailure()) return;
  }
}

// --- Equations of motion -------------------------------------------------------------------------

const std::vector<std::string> inverse_dynamics = {
    "inverse dynamics, newton_euler", "inverse dynamics, denoc", "inverse dynamics, gibbs_appell"};
/// Of those that suit any robot.
const std::vector<std::string> forward_dynamics = {"forward dynamics, cholesky",
                                                   "forward dynamics, gibbs_appell"};
/// Of those that suit a robot without mimic joints.
const std::vector<std::string> forward_dynamics_in_order_n = {"forward dynamics, articulated_body",
                                                              "forward dynamics, udut"};

/// What the tests of the equations start from.
struct Moving : Both {
  explicit Moving(Robot& robot) : Moving(robot, support::random_state(robot)) {}
  Moving(Robot& robot, State<double> from)
      : Both(robot),
        model(robot.model),
        state(std::move(from)),
        step(unit_vector(robot, robot.model.nv)),
        here(numbers, state) {}

  [[nodiscard]] support::Quantities<Dual> along(const Eigen::VectorXd& dq,
                                                const Eigen::VectorXd& dv,
                                                const Eigen::VectorXd& du) {
    return {duals, dual(state, {dq, dv, du})};
  }
  [[nodiscard]] Eigen::VectorXd still() const { return Eigen::VectorXd::Zero(model.nv); }
  [[nodiscard]] Eigen::VectorXd still_q() const { return Eigen::VectorXd::Zero(model.nq); }
  [[nodiscard]] Eigen::MatrixXd mass_matrix() const {
    return here["mass matrix, composite_body"].value;
  }
  [[nodiscard]] std::vector<std::string> forward() const {
    std::vector<std::string> names = forward_dynamics;
    if (!numbers.tree.has_mimic())
      names.insert(names.end(), forward_dynamics_in_order_n.begin(),
                   forward_dynamics_in_order_n.end());
    return names;
  }

  const Model& model;
  State<double> state;
  Eigen::VectorXd step;  ///< of length one
  support::Quantities<double> here;
};

/// ∂τ/∂a = M.
TEST_P(EveryKind, EffortsGrowWithAccelerationsByM) {
  for (unsigned seed = 1; seed <= 15; ++seed) {
    Robot robot(GetParam(), seed);
    SCOPED_TRACE(robot.trace());
    Moving m(robot);
    const auto along = m.along(m.still_q(), m.still(), m.step);
    for (const std::string& name : inverse_dynamics) {
      SCOPED_TRACE(name);
      expect_equal(rates(along[name].value), m.mass_matrix() * m.step, 1e-11);
    }
    for (const char* constant : {"bias, newton_euler", "bias, gibbs_appell", "regressor"}) {
      const bool linear = std::string(constant) == "regressor";
      EXPECT_EQ(rates(along[constant].value).cwiseAbs().maxCoeff() > 0.0, linear) << constant;
    }
  }
}

/// The bias is a polynomial of degree two in v, of which a difference over any step is the
/// derivative; and that is 2 C dv with Christoffel's symbols, where v is the rate of q.
TEST_P(EveryKind, EffortsAreQuadraticInVelocities) {
  for (unsigned seed = 1; seed <= 15; ++seed) {
    Robot robot(GetParam(), seed);
    SCOPED_TRACE(robot.trace());
    Moving m(robot);
    const auto along = m.along(m.still_q(), m.step, m.still());
    State<double> direction = zero_direction(m.model);
    direction.v = m.step;
    const support::Quantities<double> after(m.numbers, moved(m.state, direction, 1.0));
    const support::Quantities<double> before(m.numbers, moved(m.state, direction, -1.0));
    std::vector<std::string> names = inverse_dynamics;
    for (const char* name : {"bias, newton_euler", "bias, gibbs_appell",
                             "velocity effort, newton_euler", "velocity effort, gibbs_appell"})
      names.emplace_back(name);
    for (const std::string& name : names) {
      SCOPED_TRACE(name);
      const double size = m.here[name].value.cwiseAbs().maxCoeff();
      expect_equal(rates(along[name].value), (after[name].value - before[name].value) / 2.0, 1e-11,
                   std::max(1.0, size));
      if (robot.has_floating_joint()) continue;
      const Eigen::MatrixXd& C = m.here["coriolis of Christoffel, denoc"].value;
      expect_equal(rates(along[name].value), 2.0 * C * m.step, 1e-11, std::max(1.0, size));
    }
  }
}

/// M ∂a/∂τ = 1, and as a(q, v, τ(q, v, a)) = a, M ∂a/∂(q, v) + ∂τ/∂(q, v) = 0 at that a.
TEST_P(EveryKind, ForwardDynamicsUndoesInverseDynamics) {
  for (unsigned seed = 1; seed <= 15; ++seed) {
    Robot robot(GetParam(), seed);
    SCOPED_TRACE(robot.trace());
    Moving m(robot);
    const Eigen::MatrixXd M = m.mass_matrix();
    const Eigen::VectorXd dq = unit_vector(robot, m.model.nq);
    const auto by_effort = m.along(m.still_q(), m.still(), m.step);
    const auto by_state = m.along(dq, m.step, m.still());
    for (const std::string& name : m.forward()) {
      SCOPED_TRACE(name);
      ASSERT_EQ(m.here[name].status, Status::ok);
      const Eigen::VectorXd per_effort = rates(by_effort[name].value);
      const double effort_size = M.cwiseAbs().maxCoeff() * per_effort.cwiseAbs().maxCoeff();
      expect_equal(M * per_effort, m.step, 1e-11, std::max(1.0, effort_size));

      const Eigen::VectorXd da = rates(by_state[name].value);
      const State<double> accelerated = {m.state.q, m.state.v, m.here[name].value};
      const support::Quantities<Dual> back(m.duals, dual(accelerated, {dq, m.step, m.still()}));
      const double size = M.cwiseAbs().maxCoeff() *
                          std::max(da.cwiseAbs().maxCoeff(), accelerated.u.cwiseAbs().maxCoeff());
      for (const std::string& inverse : inverse_dynamics)
        expect_equal(rates(back[inverse].value), -(M * da), 1e-9, std::max(1.0, size));
    }
  }
}

/// Along the motion itself: what the rates of the kinematics and of M are by other texts.
void expect_rates_along_the_motion(Moving& m) {
  const Eigen::VectorXd q_rate = m.here["rate of the configuration"].value;
  const auto along = m.along(q_rate, m.still(), m.still());
  const auto rate = [&](const std::string& name) { return rates(along[name].value); };
  for (int link = 0; link <= m.here.last_link(); ++link) {
    const std::string of = " of link " + std::to_string(link);
    SCOPED_TRACE(of);
    const Eigen::MatrixXd pose = m.here["pose" + of].value;
    const Eigen::MatrixXd pose_rate = rate("pose" + of);
    const Eigen::MatrixXd motion = m.here["velocity and bias acceleration" + of].value;
    const Eigen::Vector3d w = motion.block<3, 1>(0, 0);
    for (int k = 0; k < 3; ++k) {
      const Eigen::Vector3d column = pose.col(k);
      expect_equal(pose_rate.col(k), w.cross(column), 1e-12);
    }
    const Eigen::Vector3d arm = pose.leftCols(3) * Eigen::Vector3d(0.1, -0.2, 0.3);
    expect_equal(pose_rate.col(3), motion.block<3, 1>(3, 0) - w.cross(arm), 1e-12);
    expect_equal(rate("velocity and bias acceleration" + of).col(0), motion.col(1), 1e-12);
    expect_equal(rate("jacobian" + of), m.here["jacobian rate" + of].value, 1e-12);
  }
  expect_equal(rate("centre of mass"), m.here["velocity of the centre of mass"].value, 1e-12);
  const double power = m.here["gravity, newton_euler"].value.col(0).dot(m.state.v);
  EXPECT_NEAR(rate("mass and energy")(2), power, 1e-11 * std::max(1.0, std::abs(power)));
  for (const char* convective : {"coriolis, denoc", "coriolis of Christoffel, denoc"})
    for (const char* M :
         {"mass matrix, composite_body", "mass matrix, denoc", "mass matrix, gibbs_appell"}) {
      const Eigen::MatrixXd& C = m.here[convective].value;
      expect_equal(rate(M), C + C.transpose(), 1e-11);
    }
}

TEST_P(EveryKind, RatesAlongTheMotionAreThoseOfTheOtherTexts) {
  for (unsigned seed = 1; seed <= 15; ++seed) {
    Robot robot(GetParam(), seed);
    SCOPED_TRACE(robot.trace());
    Moving m(robot);
    expect_rates_along_the_motion(m);
    const Eigen::VectorXd momentum = m.mass_matrix() * m.state.v;
    const auto along = m.along(m.still_q(), m.step, m.still());
    EXPECT_NEAR(rates(along["mass and energy"].value)(1), momentum.dot(m.step),
                1e-11 * std::max(1.0, momentum.norm()));

    // Where all quaternions are (0 0 0 1).
    Moving neutral(robot, {m.model.neutral(), m.state.v, m.state.u});
    expect_rates_along_the_motion(neutral);
  }
}

/// A step by no velocity leads nowhere, and away from there at the rate of the configuration.
TEST_P(EveryKind, AStepStartsAtTheRateOfTheConfiguration) {
  for (unsigned seed = 1; seed <= 15; ++seed) {
    Robot robot(GetParam(), seed);
    SCOPED_TRACE(robot.trace());
    Moving m(robot);
    const double dt = 0.3;
    VectorX<Dual> q_out(m.model.nq);
    ASSERT_EQ(
        m.duals.kinematics.integrate(constant(m.state.q), dual(m.still(), m.step), Dual(dt), q_out),
        Status::ok);
    Eigen::VectorXd q_rate(m.model.nq);
    ASSERT_EQ(m.numbers.kinematics.configuration_rate(m.state.q, m.step, q_rate), Status::ok);
    expect_equal(values(q_out), m.state.q, 1e-15);
    expect_equal(rates(q_out), dt * q_rate, 1e-14);
  }
}

}  // namespace
