// SPDX-License-Identifier: Apache-2.0
/// Each law against its formula, put together from matrices that other algorithms compute.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "dynamics_core/control/controller.hpp"
#include "dynamics_core/families.hpp"
#include "support/closed_loop.hpp"
#include "support/trees.hpp"

namespace {

using namespace dynamics_core;
using namespace dynamics_core::control;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using support::close_to;

constexpr double dt = 1e-3;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// M, C and g of a robot, by the composite-body and DeNOC recursions.
struct Matrices {
  MatrixXd M, C;
  VectorXd g;
  Matrices(const Model& model, const VectorXd& q, const VectorXd& v, const Eigen::Vector3d& gravity)
      : M(model.nv, model.nv), C(model.nv, model.nv), g(model.nv) {
    Dynamics<double> dynamics(model);
    EXPECT_EQ(dynamics.set_gravity(gravity), Status::ok);
    EXPECT_EQ(dynamics.families().composite_body.mass_matrix(q, M), Status::ok);
    EXPECT_EQ(dynamics.families().denoc.coriolis_christoffel(q, v, C), Status::ok);
    EXPECT_EQ(dynamics.families().newton_euler.gravity(q, g), Status::ok);
  }
};

/// An arm with rotors and friction in a random state, off its reference.
struct Scene {
  Model model;
  VectorXd q, v, q_d, v_d, a_d;
  Config config;

  explicit Scene(unsigned seed) {
    RobotDescription robot = support::random_arm(seed, 7, true);
    support::Random random(seed + 1);
    for (auto& joint : robot.joints) {
      joint.damping = random.uniform(0.0, 2.0);
      joint.friction = random.uniform(0.0, 2.0);
      joint.limits->effort = 1e6;
    }
    model = build_model(robot);
    q = random.vector_x(model.nv, 2.0);
    v = random.vector_x(model.nv, 2.0);
    q_d = q + random.vector_x(model.nv, 0.3);
    v_d = random.vector_x(model.nv, 2.0);
    a_d = random.vector_x(model.nv, 5.0);
    config.soft_start = 0.0;
    for (int j = 0; j < model.nv; ++j)
      config.gains.push_back({random.uniform(1.0, 50.0), random.uniform(1.0, 10.0)});
  }
  [[nodiscard]] VectorXd p() const {
    VectorXd out(model.nv);
    for (int j = 0; j < model.nv; ++j) out[j] = config.gains[static_cast<std::size_t>(j)].p;
    return out;
  }
  [[nodiscard]] VectorXd d() const {
    VectorXd out(model.nv);
    for (int j = 0; j < model.nv; ++j) out[j] = config.gains[static_cast<std::size_t>(j)].d;
    return out;
  }
  [[nodiscard]] VectorXd friction(const VectorXd& at) const {
    VectorXd out = VectorXd::Zero(model.nv);
    EXPECT_EQ(Friction<double>(model).add(at, out), Status::ok);
    return out;
  }
  /// The effort of the first cycle.
  [[nodiscard]] VectorXd effort() const {
    Controller controller(model, config);
    const Command& command = controller.command();
    EXPECT_EQ(controller.activate({q, v}), ControllerState::holding_position);
    EXPECT_EQ(controller.update({q, v}, {q_d, v_d, a_d}, dt), ControllerState::running);
    return command.effort;
  }
};

class Laws : public testing::TestWithParam<unsigned> {
 protected:
  Scene s{GetParam()};
  Matrices measured() { return {s.model, s.q, s.v, s.model.gravity}; }
  Matrices reference() { return {s.model, s.q_d, s.v_d, s.model.gravity}; }
  VectorXd pd() { return s.p().cwiseProduct(s.q_d - s.q) + s.d().cwiseProduct(s.v_d - s.v); }
};
INSTANTIATE_TEST_SUITE_P(Seeds, Laws, testing::Range(1U, 21U));

TEST_P(Laws, GravityCompensation) {
  s.config.mode = Mode::gravity_compensation;
  EXPECT_TRUE(close_to(s.effort(), measured().g, 1e-12));
}

TEST_P(Laws, PlainPd) {
  s.config.compensation = Compensation::none;
  EXPECT_TRUE(close_to(s.effort(), pd(), 1e-12));
}

TEST_P(Laws, PdWithGravity) {
  s.config.compensation = Compensation::gravity;
  EXPECT_TRUE(close_to(s.effort(), VectorXd(measured().g + pd()), 1e-12));
}

TEST_P(Laws, Feedforward) {
  const Matrices at = reference();
  const VectorXd expected = at.M * s.a_d + at.C * s.v_d + at.g + s.friction(s.v_d) + pd();
  EXPECT_TRUE(close_to(s.effort(), expected, 1e-10));
}

TEST_P(Laws, ComputedTorque) {
  s.config.mode = Mode::computed_torque;
  const Matrices at = measured();
  const VectorXd expected = at.M * (s.a_d + pd()) + at.C * s.v + at.g + s.friction(s.v_d);
  EXPECT_TRUE(close_to(s.effort(), expected, 1e-10));
}

TEST_P(Laws, Passivity) {
  s.config.mode = Mode::passivity;
  const Matrices at = measured();
  const VectorXd v_r = s.v_d + s.p().cwiseProduct(s.q_d - s.q);
  const VectorXd a_r = s.a_d + s.p().cwiseProduct(s.v_d - s.v);
  const VectorXd expected =
      at.M * a_r + at.C * v_r + at.g + s.friction(v_r) + s.d().cwiseProduct(v_r - s.v);
  EXPECT_TRUE(close_to(s.effort(), expected, 1e-10));
}

TEST_P(Laws, PassThrough) {
  s.config.mode = Mode::pass_through;
  const Matrices at = reference();
  Controller controller(s.model, s.config);
  const Command& command = controller.command();
  EXPECT_EQ(controller.activate({s.q, s.v}), ControllerState::holding_position);
  EXPECT_EQ(controller.update({s.q, s.v}, {s.q_d, s.v_d, s.a_d}, dt), ControllerState::running);
  const VectorXd expected = at.M * s.a_d + at.C * s.v_d + at.g + s.friction(s.v_d);
  EXPECT_TRUE(close_to(command.effort, expected, 1e-10));
  EXPECT_EQ(command.position, s.q_d);
  EXPECT_EQ(command.velocity, s.v_d);
}

TEST_P(Laws, HardwareThatCompensatesGravityIsLeftAlone) {
  for (const Mode mode : {Mode::gravity_compensation, Mode::feedforward, Mode::computed_torque,
                          Mode::passivity, Mode::pass_through}) {
    SCOPED_TRACE(to_string(mode));
    s.config.mode = mode;
    s.config.hardware_compensates_gravity = false;
    const VectorXd with = s.effort();
    s.config.hardware_compensates_gravity = true;
    const bool at_reference = mode == Mode::feedforward || mode == Mode::pass_through;
    const VectorXd g = at_reference ? reference().g : measured().g;
    EXPECT_TRUE(close_to(s.effort(), VectorXd(with - g), 1e-10));
  }
}

TEST_P(Laws, GravityMayChangeWhileItRuns) {
  s.config.mode = Mode::gravity_compensation;
  Controller controller(s.model, s.config);
  const Command& command = controller.command();
  EXPECT_EQ(controller.activate({s.q, s.v}), ControllerState::holding_position);
  const Eigen::Vector3d tilted(3.0, -4.0, -8.0);
  EXPECT_EQ(controller.set_gravity(tilted), Status::ok);
  EXPECT_EQ(controller.update({s.q, s.v}, {}, dt), ControllerState::running);
  EXPECT_TRUE(close_to(command.effort, Matrices(s.model, s.q, s.v, tilted).g, 1e-12));
  EXPECT_EQ(controller.set_gravity({nan, 0.0, 0.0}), Status::not_finite);
  EXPECT_EQ(controller.config().gravity, tilted);
}

// --- M a_r + C v_r + g without matrices ----------------------------------------------------------

TEST(PassivityEffort, IsThatOfChristoffelsMatrix) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    const support::RandomTree tree(seed, true, false);
    SCOPED_TRACE(tree.trace());
    const Matrices at(tree.model, tree.q, tree.v, tree.model.gravity);
    const VectorXd v_r = support::Random(seed + 5000).vector_x(tree.model.nv, 2.0);
    Dynamics<double> dynamics(tree.model);
    PassivityModel<double> passivity(tree.model.nv);
    VectorXd tau(tree.model.nv);
    ASSERT_EQ(passivity.effort(dynamics, tree.q, tree.v, v_r, tree.a, tau), Status::ok);
    ASSERT_TRUE(close_to(tau, VectorXd(at.M * tree.a + at.C * v_r + at.g), 1e-9));
  }
}

TEST(PassivityEffort, HoldsForTheJointsOfARestingFloatingBase) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    support::RandomTree tree(seed);
    SCOPED_TRACE(tree.trace());
    VectorXd v_r = support::Random(seed + 5000).vector_x(tree.model.nv, 2.0);
    for (const JointInfo& joint : tree.model.joints) {
      if (joint.type != JointType::floating) continue;
      tree.v.segment(joint.v, joint.nv).setZero();
      v_r.segment(joint.v, joint.nv).setZero();
    }
    const Matrices at(tree.model, tree.q, tree.v, tree.model.gravity);
    VectorXd expected = at.M * tree.a + at.C * v_r + at.g;
    Dynamics<double> dynamics(tree.model);
    PassivityModel<double> passivity(tree.model.nv);
    VectorXd tau(tree.model.nv);
    ASSERT_EQ(passivity.effort(dynamics, tree.q, tree.v, v_r, tree.a, tau), Status::ok);
    for (const JointInfo& joint : tree.model.joints) {
      if (joint.type != JointType::floating) continue;
      tau.segment(joint.v, joint.nv).setZero();
      expected.segment(joint.v, joint.nv).setZero();
    }
    ASSERT_TRUE(close_to(tau, expected, 1e-9));
  }
}

TEST(PassivityEffort, LeavesTheDynamicsAsItWas) {
  const support::RandomTree tree(3, true, false);
  Dynamics<double> dynamics(tree.model);
  PassivityModel<double> passivity(tree.model.nv);
  VectorXd tau(tree.model.nv);
  const Vec3<double> before = dynamics.tree().base_acceleration();
  VectorXd huge = tree.v;
  huge[0] = infinity;
  EXPECT_EQ(passivity.effort(dynamics, tree.q, tree.v, huge, tree.a, tau), Status::not_finite);
  EXPECT_EQ(passivity.effort(dynamics, tree.q, tree.v, VectorXd(VectorXd::Zero(tree.model.nv + 1)),
                             tree.a, tau),
            Status::wrong_size);
  EXPECT_EQ(dynamics.tree().base_acceleration(), before);
}

// --- The joints commanded ------------------------------------------------------------------------

TEST(JointSubset, CommandsAnyOrder) {
  Scene s(5);
  const VectorXd expected = s.effort();
  const std::vector<int> order = {4, 0, 6, 2, 1, 5, 3};
  const auto permute = [&](const VectorXd& x) {
    VectorXd out(x.size());
    for (int j = 0; j < 7; ++j) out[j] = x[order[static_cast<std::size_t>(j)]];
    return out;
  };
  std::vector<Gains> gains;
  for (const int j : order) {
    s.config.joints.push_back(s.model.joints[static_cast<std::size_t>(j)].name);
    gains.push_back(s.config.gains[static_cast<std::size_t>(j)]);
  }
  s.config.gains = gains;
  s.q = permute(s.q);
  s.v = permute(s.v);
  s.q_d = permute(s.q_d);
  s.v_d = permute(s.v_d);
  s.a_d = permute(s.a_d);
  EXPECT_TRUE(close_to(s.effort(), permute(expected), 1e-12));
}

/// The same robot with the other joints welded on at their measured positions.
TEST(JointSubset, OtherJointsStandStillWhereTheyAreMeasured) {
  for (const Mode mode : {Mode::gravity_compensation, Mode::feedforward, Mode::computed_torque,
                          Mode::passivity, Mode::pass_through}) {
    SCOPED_TRACE(to_string(mode));
    const RobotDescription robot = support::random_arm(11, 7, true);
    const Model model = build_model(robot);
    support::Random random(12);
    const std::vector<std::string> mine = {"joint_6", "joint_2", "joint_3"};
    Config config;
    config.joints = mine;
    config.mode = mode;
    config.gains = {{10.0, 3.0}};
    config.soft_start = 0.0;
    Controller controller(model, config);
    EXPECT_EQ(controller.joints(), mine);
    EXPECT_EQ(controller.other_joints(),
              (std::vector<std::string>{"joint_1", "joint_4", "joint_5", "joint_7"}));
    const VectorXd others = random.vector_x(4, 2.0);
    const VectorXd q = random.vector_x(3, 2.0);
    const VectorXd v = random.vector_x(3, 2.0);
    const VectorXd q_d = random.vector_x(3, 2.0);
    const VectorXd v_d = random.vector_x(3, 2.0);
    const VectorXd a_d = random.vector_x(3, 2.0);
    const Command& command = controller.command();
    EXPECT_EQ(controller.activate({q, v, others}), ControllerState::holding_position);
    EXPECT_EQ(controller.update({q, v, others}, {q_d, v_d, a_d}, dt), ControllerState::running);

    ModelOptions options;
    for (int j = 0; j < 4; ++j)
      options.locked[controller.other_joints()[static_cast<std::size_t>(j)]] = others[j];
    Controller welded(build_model(robot, options), config);
    EXPECT_TRUE(welded.other_joints().empty());
    const Command& expected = welded.command();
    EXPECT_EQ(welded.activate({q, v}), ControllerState::holding_position);
    EXPECT_EQ(welded.update({q, v}, {q_d, v_d, a_d}, dt), ControllerState::running);
    EXPECT_TRUE(close_to(command.effort, expected.effort, 1e-10));
  }
}

TEST(JointSubset, OtherJointsThatAreNotMeasuredStayWhereTheyWereLastKnown) {
  const Model model = build_model(support::random_arm(13, 3));
  Config config;
  config.joints = {"joint_1"};
  config.locked["joint_2"] = 0.7;
  config.mode = Mode::gravity_compensation;
  config.soft_start = 0.0;
  Controller controller(model, config);
  const Command& command = controller.command();
  const VectorXd q = VectorXd::Constant(1, 0.3);
  const auto gravity_at = [&](double q2, double q3) {
    return Matrices(model, Eigen::Vector3d(0.3, q2, q3), Eigen::Vector3d::Zero(), model.gravity)
        .g[0];
  };
  ASSERT_EQ(controller.activate({q, {}}), ControllerState::holding_position);
  ASSERT_EQ(controller.update({q, {}}, {}, dt), ControllerState::running);
  EXPECT_NEAR(command.effort[0], gravity_at(0.7, 0.0), 1e-12);
  const VectorXd others = Eigen::Vector2d(nan, -1.1);
  ASSERT_EQ(controller.update({q, {}, others}, {}, dt), ControllerState::running);
  EXPECT_NEAR(command.effort[0], gravity_at(0.7, -1.1), 1e-12);
  ASSERT_EQ(controller.update({q, {}}, {}, dt), ControllerState::running);
  EXPECT_NEAR(command.effort[0], gravity_at(0.7, -1.1), 1e-12);
}

TEST(JointSubset, AFloatingBaseIsHeldStill) {
  const RobotDescription robot = support::random_arm(17, 4);
  ModelOptions floating;
  floating.floating_base = true;
  const Model fixed = build_model(robot);
  const Model free = build_model(robot, floating);
  support::Random random(18);
  const VectorXd q = random.vector_x(4, 2.0);
  const VectorXd v = random.vector_x(4, 2.0);
  const VectorXd a = random.vector_x(4, 2.0);
  Config config;
  config.soft_start = 0.0;
  for (const Mode mode : {Mode::feedforward, Mode::computed_torque, Mode::passivity}) {
    config.mode = mode;
    VectorXd efforts[2];
    for (int k = 0; k < 2; ++k) {
      Controller controller(k == 0 ? fixed : free, config);
      ASSERT_EQ(controller.size(), 4);
      const Command& command = controller.command();
      ASSERT_EQ(controller.activate({q, v}), ControllerState::holding_position);
      ASSERT_EQ(controller.update({q, v}, {q, v, a}, dt), ControllerState::running);
      efforts[k] = command.effort;
    }
    EXPECT_TRUE(close_to(efforts[1], efforts[0], 1e-10));
  }
}

// --- Friction ------------------------------------------------------------------------------------

TEST(JointFriction, IsThatOfTheModelWithoutStribeck) {
  JointFriction<double> friction;
  friction.viscous = 0.4;
  friction.coulomb = 1.5;
  EXPECT_EQ(friction.effort(0.0), 0.0);
  EXPECT_NEAR(friction.effort(2.0), 1.5 + 0.8, 1e-6);
  EXPECT_NEAR(friction.effort(-2.0), -(1.5 + 0.8), 1e-6);
  EXPECT_NEAR(friction.effort(1e-6), 1.5e-3 + 4e-7, 1e-8);  // coulomb · v/ε near rest
}

TEST(JointFriction, StribeckFallsFromBreakawayToCoulomb) {
  JointFriction<double> friction;
  friction.coulomb = 1.0;
  friction.breakaway = 3.0;
  friction.stribeck_velocity = 0.1;
  friction.transition = 1e-9;
  EXPECT_NEAR(friction.effort(1e-3), 1.0 + 2.0 * std::exp(-1e-4), 1e-9);
  EXPECT_NEAR(friction.effort(0.1), 1.0 + 2.0 * std::exp(-1.0), 1e-9);
  EXPECT_NEAR(friction.effort(-1.0), -1.0, 1e-9);
}

// --- Missing signals -----------------------------------------------------------------------------

/// One joint of unit inertia about its axis, without gravity.
Model wheel(JointType type = JointType::revolute, double effort_limit = 1e6) {
  RobotDescription robot;
  robot.name = "wheel";
  robot.links = {{"base", std::nullopt},
                 {"rim", Inertial{1.0, Eigen::Vector3d::Zero(), Eigen::Matrix3d::Identity()}}};
  JointDescription joint;
  joint.name = "axle";
  joint.type = type;
  joint.parent = "base";
  joint.child = "rim";
  joint.axis = Eigen::Vector3d::UnitZ();
  joint.limits = Limits{-1e3, 1e3, 1e3, effort_limit};
  robot.joints = {joint};
  return build_model(robot);
}

struct Axle {
  Model model;
  Config config;
  explicit Axle(JointType type = JointType::revolute) : model(wheel(type)) {
    config.soft_start = 0.0;
    config.reference_timeout = 0.0;
  }
};

/// A one-element view; lives as long as the expression.
struct One {
  double x;
  operator View() const { return {&x, 1}; }
};

TEST(VelocityEstimate, LagsByTheFiltersTimeConstantOnly) {
  Axle axle;
  axle.config.gains = {{0.0, 1.0}};
  axle.config.compensation = Compensation::none;
  axle.config.velocity_cutoff = 20.0;
  Controller controller(axle.model, axle.config);
  const Command& command = controller.command();
  const double tau = 1.0 / (2.0 * M_PI * 20.0);
  const auto position = [](double t) { return 0.4 + 1.5 * t; };
  ASSERT_EQ(controller.activate({One{position(0.0)}, {}}), ControllerState::holding_position);
  for (int k = 1; k <= 100; ++k) {
    const double t = k * dt;
    (void)controller.update({One{position(t)}, {}}, {}, dt);
    // The exact answer of a first-order filter to a slope that starts at 0.
    ASSERT_NEAR(controller.velocity()[0], 1.5 * (1.0 - std::exp(-t / tau)), 1e-12);
  }
  EXPECT_NEAR(command.effort[0], -controller.velocity()[0], 1e-12);
}

TEST(VelocityEstimate, BridgesLostCyclesAndJumpsOfTheClock) {
  Axle axle;
  Controller controller(axle.model, axle.config);
  double t = 0.0;
  const auto run = [&](double step, bool measured = true) {
    t += dt;
    const double q = measured ? 2.0 * t : nan;
    (void)controller.update({One{q}, {}}, {}, step);
  };
  ASSERT_EQ(controller.activate({One{0.0}, {}}), ControllerState::holding_position);
  for (int k = 0; k < 200; ++k) run(dt);
  ASSERT_NEAR(controller.velocity()[0], 2.0, 1e-9);
  run(dt, false);
  run(dt, false);
  run(dt);
  EXPECT_NEAR(controller.velocity()[0], 2.0, 1e-9);
  run(0.0);
  run(-1.0);
  run(dt);
  EXPECT_NEAR(controller.velocity()[0], 2.0, 1e-9);
  run(1e3, false);  // lost, and nobody knows for how long
  run(dt);
  EXPECT_NEAR(controller.velocity()[0], 2.0, 1e-9);
}

TEST(VelocityEstimate, AnEndlessJointMayWrap) {
  Axle axle(JointType::continuous);
  Controller controller(axle.model, axle.config);
  ASSERT_EQ(controller.activate({One{0.0}, {}}), ControllerState::holding_position);
  for (int k = 1; k <= 5000; ++k)
    (void)controller.update({One{std::remainder(3.0 * k * dt, 2.0 * M_PI)}, {}}, {}, dt);
  EXPECT_NEAR(controller.velocity()[0], 3.0, 1e-9);
}

TEST(PositionError, AnEndlessJointGoesTheShortWay) {
  for (const auto type : {JointType::continuous, JointType::revolute}) {
    Axle axle(type);
    Controller controller(axle.model, axle.config);
    ASSERT_EQ(controller.activate({One{-3.0}, One{0.0}}), ControllerState::holding_position);
    ASSERT_EQ(controller.update({One{-3.0}, One{0.0}}, {One{3.0}}, dt), ControllerState::running);
    const double expected = type == JointType::continuous ? 6.0 - 2.0 * M_PI : 6.0;
    EXPECT_NEAR(controller.position_error()[0], expected, 1e-12);
  }
}

TEST(MissingReference, IsZeroByDefault) {
  Axle axle;
  Controller controller(axle.model, axle.config);
  ASSERT_EQ(controller.activate({One{0.0}, One{0.0}}), ControllerState::holding_position);
  for (int k = 1; k <= 10; ++k)
    ASSERT_EQ(controller.update({One{0.0}, One{0.0}}, {One{0.1 * k}}, dt),
              ControllerState::running);
  EXPECT_EQ(controller.reference_velocity()[0], 0.0);
  EXPECT_EQ(controller.reference_acceleration()[0], 0.0);
  (void)controller.update({One{0.0}, One{0.0}}, {One{1.0}, One{2.0}, One{3.0}}, dt);
  EXPECT_EQ(controller.reference_velocity()[0], 2.0);
  EXPECT_EQ(controller.reference_acceleration()[0], 3.0);
  (void)controller.update({One{0.0}, One{0.0}}, {One{1.0}}, dt);
  EXPECT_EQ(controller.reference_velocity()[0], 0.0);
  EXPECT_EQ(controller.reference_acceleration()[0], 0.0);
}

TEST(MissingReference, MayBeDifferentiated) {
  Axle axle;
  axle.config.missing_velocity = Missing::differentiate;
  axle.config.missing_acceleration = Missing::differentiate;
  axle.config.reference_cutoff = 100.0;
  Controller controller(axle.model, axle.config);
  ASSERT_EQ(controller.activate({One{0.0}, One{0.0}}), ControllerState::holding_position);
  // A jump to the first reference has no velocity; then a parabola of acceleration 4.
  for (int k = 0; k <= 200; ++k) {
    const double t = k * dt;
    (void)controller.update({One{0.0}, One{0.0}}, {One{7.0 + 2.0 * t * t}}, dt);
    if (k == 0) {
      EXPECT_EQ(controller.reference_velocity()[0], 0.0);
    }
  }
  const double lag = 1.0 / (2.0 * M_PI * 100.0) + dt;
  EXPECT_NEAR(controller.reference_velocity()[0], 4.0 * 0.2, 4.0 * lag);
  EXPECT_NEAR(controller.reference_acceleration()[0], 4.0, 1e-6);
}

/// At a tenth of the control rate the quotient spans the time between two references.
TEST(MissingReference, IsDifferentiatedOverTheTimeBetweenReferences) {
  Axle axle;
  axle.config.missing_velocity = Missing::differentiate;
  Controller controller(axle.model, axle.config);
  ASSERT_EQ(controller.activate({One{0.0}, One{0.0}}), ControllerState::holding_position);
  for (int k = 0; k <= 2000; ++k) {
    const One q{3.0 * k * dt};
    Reference reference{q};
    reference.fresh = k % 10 == 0;
    (void)controller.update({One{0.0}, One{0.0}}, reference, dt);
  }
  EXPECT_NEAR(controller.reference_velocity()[0], 3.0, 1e-9);
}

TEST(MissingReference, WithoutAPositionOnlyTheVelocityIsControlled) {
  Axle axle;
  axle.config.gains = {{100.0, 2.0}};
  axle.config.compensation = Compensation::none;
  Controller controller(axle.model, axle.config);
  const Command& command = controller.command();
  ASSERT_EQ(controller.activate({One{0.5}, One{0.0}}), ControllerState::holding_position);
  ASSERT_EQ(controller.update({One{0.9}, One{0.25}}, {{}, One{1.0}}, dt), ControllerState::running);
  EXPECT_NEAR(command.effort[0], 2.0 * (1.0 - 0.25), 1e-12);
  EXPECT_EQ(command.position[0], 0.9);
  // An acceleration alone: at rest at the last position.
  ASSERT_EQ(controller.update({One{1.0}, One{0.25}}, {{}, {}, One{1.0}}, dt),
            ControllerState::running);
  EXPECT_EQ(command.position[0], 0.9);
  EXPECT_EQ(command.velocity[0], 0.0);
}

TEST(MissingReference, WhatNobodyHasWrittenYetIsNaN) {
  Axle axle;
  Controller controller(axle.model, axle.config);
  ASSERT_EQ(controller.activate({One{0.0}, One{0.0}}), ControllerState::holding_position);
  EXPECT_EQ(controller.update({One{0.0}, One{0.0}}, {One{nan}, One{nan}, One{nan}}, dt),
            ControllerState::holding_position);
  EXPECT_EQ(controller.update({One{0.0}, One{0.0}}, {One{1.0}, One{2.0}, One{nan}}, dt),
            ControllerState::running);
  EXPECT_EQ(controller.count(Event::bad_reference), 0U);
  // Once it has been written, NaN is an error.
  EXPECT_EQ(controller.update({One{0.0}, One{0.0}}, {One{1.0}, One{nan}, One{nan}}, dt),
            ControllerState::running);
  EXPECT_EQ(controller.count(Event::bad_reference), 1U);
  EXPECT_EQ(controller.reference_velocity()[0], 2.0);
}

// --- Limits --------------------------------------------------------------------------------------

TEST(Limits, ClampThenRate) {
  Axle axle;
  axle.config.compensation = Compensation::none;
  axle.config.gains = {{1.0, 0.0}};
  axle.config.effort_limits = {5.0};
  axle.config.effort_rate_limits = {1000.0};  // 1 N·m a cycle
  Controller controller(axle.model, axle.config);
  const Command& command = controller.command();
  ASSERT_EQ(controller.activate({One{0.0}, One{0.0}}), ControllerState::holding_position);
  struct Row {
    double wanted, effort;
    bool effort_limited, rate_limited;
  };
  const std::vector<Row> rows = {
      {0.5, 0.5, false, false}, {3.0, 1.5, false, true},  {3.0, 2.5, false, true},
      {3.0, 3.0, false, false}, {80.0, 4.0, true, true},  {80.0, 5.0, true, false},
      {80.0, 5.0, true, false}, {-80.0, 4.0, true, true}, {3.5, 3.5, false, false},
  };
  std::uint64_t effort_cycles = 0;
  std::uint64_t rate_cycles = 0;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.wanted);
    ASSERT_EQ(controller.update({One{0.0}, One{0.0}}, {One{row.wanted}}, dt),
              ControllerState::running);
    EXPECT_NEAR(command.effort[0], row.effort, 1e-12);
    EXPECT_EQ(controller.limits()[0].effort_limited, row.effort_limited);
    EXPECT_EQ(controller.limits()[0].rate_limited, row.rate_limited);
    effort_cycles += row.effort_limited ? 1 : 0;
    rate_cycles += row.rate_limited ? 1 : 0;
  }
  EXPECT_EQ(controller.limits()[0].effort_limited_cycles, effort_cycles);
  EXPECT_EQ(controller.limits()[0].rate_limited_cycles, rate_cycles);
  controller.reset();
  EXPECT_EQ(controller.limits()[0].effort_limited_cycles, 0U);
  EXPECT_EQ(controller.limits()[0].rate_limited_cycles, 0U);
}

TEST(Limits, AreTheModelsUnlessGiven) {
  Config config;
  config.compensation = Compensation::none;
  config.gains = {{1.0, 0.0}};
  config.soft_start = 0.0;
  Controller controller(wheel(JointType::revolute, 7.0), config);
  const Command& command = controller.command();
  ASSERT_EQ(controller.activate({One{0.0}, One{0.0}}), ControllerState::holding_position);
  ASSERT_EQ(controller.update({One{0.0}, One{0.0}}, {One{-50.0}}, dt), ControllerState::running);
  EXPECT_EQ(command.effort[0], -7.0);
}

TEST(SoftStart, RampsInFromZeroWithoutAStep) {
  Axle axle;
  axle.config.compensation = Compensation::none;
  axle.config.gains = {{1.0, 0.0}};
  axle.config.soft_start = 0.2;
  Controller controller(axle.model, axle.config);
  const Command& command = controller.command();
  for (int start = 0; start < 2; ++start) {  // every activation starts anew
    ASSERT_EQ(controller.activate({One{0.0}, One{0.0}}), ControllerState::holding_position);
    double last = 0.0;
    for (int k = 1; k <= 250; ++k) {
      (void)controller.update({One{0.0}, One{0.0}}, {One{10.0}}, dt);
      // The steepest slope of 3x² − 2x³ is 3/2.
      ASSERT_LE(std::abs(command.effort[0] - last), 10.0 * 1.5 * dt / 0.2 + 1e-12);
      ASSERT_GE(command.effort[0], last);
      last = command.effort[0];
      if (k == 100) {
        EXPECT_NEAR(last, 5.0, 1e-9);
      }
    }
    EXPECT_EQ(last, 10.0);
    EXPECT_EQ(controller.start_ramp(), 1.0);
    controller.deactivate();
  }
}

TEST(Activation, MakesTheMeasuredPositionTheReference) {
  Axle axle;
  axle.config.gains = {{100.0, 1.0}};
  Controller controller(axle.model, axle.config);
  const Command& command = controller.command();
  ASSERT_EQ(controller.activate({One{0.8}, One{0.0}}), ControllerState::holding_position);
  ASSERT_EQ(controller.update({One{0.8}, One{0.0}}, {}, dt), ControllerState::holding_position);
  EXPECT_EQ(command.position[0], 0.8);
  EXPECT_EQ(command.effort[0], 0.0);
}

// --- The integral --------------------------------------------------------------------------------

struct Integrating : Axle {
  Integrating() {
    config.mode = Mode::computed_torque;
    config.gains = {{0.0, 0.0, 10.0}};
  }
};

TEST(Integral, IsTheSumOfTheErrors) {
  Integrating axle;
  Controller controller(axle.model, axle.config);
  const Command& command = controller.command();
  ASSERT_EQ(controller.activate({One{0.0}, One{0.0}}), ControllerState::holding_position);
  for (int k = 0; k <= 100; ++k) (void)controller.update({One{0.0}, One{0.0}}, {One{0.5}}, dt);
  EXPECT_NEAR(command.effort[0], 10.0 * 0.5 * 0.1, 1e-12);  // of unit inertia
  // A new gain changes how it goes on, not what it is.
  ASSERT_EQ(controller.set_gains(0, {0.0, 0.0, 0.0}), Status::ok);
  const double before = command.effort[0];
  (void)controller.update({One{0.0}, One{0.0}}, {One{0.5}}, dt);
  (void)controller.update({One{0.0}, One{0.0}}, {One{0.5}}, dt);
  EXPECT_NEAR(command.effort[0], before, 0.5 * 10.0 * dt + 1e-12);
}

TEST(Integral, StaysWithinItsClamp) {
  Integrating axle;
  axle.config.gains[0].i_clamp = 0.3;
  Controller controller(axle.model, axle.config);
  const Command& command = controller.command();
  ASSERT_EQ(controller.activate({One{0.0}, One{0.0}}), ControllerState::holding_position);
  for (int k = 0; k <= 1000; ++k) (void)controller.update({One{0.0}, One{0.0}}, {One{0.5}}, dt);
  EXPECT_NEAR(command.effort[0], 0.3, 1e-12);
}

TEST(Integral, DoesNotWindUpAgainstTheLimit) {
  Integrating axle;
  axle.config.effort_limits = {1.0};
  Controller controller(axle.model, axle.config);
  const Command& command = controller.command();
  ASSERT_EQ(controller.activate({One{0.0}, One{0.0}}), ControllerState::holding_position);
  for (int k = 0; k < 10000; ++k) (void)controller.update({One{0.0}, One{0.0}}, {One{0.5}}, dt);
  EXPECT_EQ(command.effort[0], 1.0);
  // Ten seconds at the limit, and it leaves it within two cycles of the error's change of sign.
  for (int k = 0; k < 3; ++k) (void)controller.update({One{0.0}, One{0.0}}, {One{-0.5}}, dt);
  EXPECT_LT(command.effort[0], 1.0);
}

TEST(Integral, DoesNotMoveWhenTheClockJumps) {
  Integrating axle;
  Controller controller(axle.model, axle.config);
  const Command& command = controller.command();
  ASSERT_EQ(controller.activate({One{0.0}, One{0.0}}), ControllerState::holding_position);
  for (int k = 0; k < 100; ++k) (void)controller.update({One{0.0}, One{0.0}}, {One{0.5}}, dt);
  (void)controller.update({One{0.0}, One{0.0}}, {One{0.5}}, 0.0);
  const double before = command.effort[0];
  for (const double step : {0.0, -dt, nan, infinity, 1e6})
    (void)controller.update({One{0.0}, One{0.0}}, {One{0.5}}, step);
  EXPECT_EQ(command.effort[0], before);
  EXPECT_EQ(controller.count(Event::bad_clock), 6U);
}

// --- Gains and loads while it runs ---------------------------------------------------------------

TEST(Gains, MayChangeWhileItRuns) {
  Axle axle;
  axle.config.compensation = Compensation::none;
  axle.config.gains = {{1.0, 0.0}};
  Controller controller(axle.model, axle.config);
  const Command& command = controller.command();
  ASSERT_EQ(controller.activate({One{0.0}, One{0.0}}), ControllerState::holding_position);
  EXPECT_EQ(controller.set_gains(0, {3.0, 2.0}), Status::ok);
  (void)controller.update({One{0.0}, One{1.0}}, {One{5.0}}, dt);
  EXPECT_NEAR(command.effort[0], 3.0 * 5.0 - 2.0, 1e-12);
  EXPECT_EQ(controller.set_gains(1, {3.0, 2.0}), Status::out_of_range);
  EXPECT_EQ(controller.set_gains(-1, {3.0, 2.0}), Status::out_of_range);
  EXPECT_EQ(controller.set_gains(0, {-3.0, 2.0}), Status::out_of_range);
  EXPECT_EQ(controller.set_gains(0, {3.0, nan}), Status::out_of_range);
  EXPECT_EQ(controller.set_gains(0, {3.0, 2.0, 1.0}), Status::out_of_range);  // no integral here
  EXPECT_EQ(controller.config().gains[0].p, 3.0);
}

Payload<double> load(unsigned seed) {
  support::Random random(seed);
  const Inertial body = random.inertial();
  return {body.mass, body.com, Symmetric3<double>::from(body.inertia)};
}

/// The effort of a computed-torque law in a fixed state, cycle by cycle, while the load changes.
class PayloadChange : public testing::TestWithParam<unsigned> {
 protected:
  PayloadChange() : s(GetParam()) {
    s.config.mode = Mode::computed_torque;
    link = s.model.find_link("link_7");
  }
  VectorXd effort_with(const Payload<double>& payload) {
    Dynamics<double> dynamics(s.model);
    EXPECT_EQ(dynamics.set_payload(link, payload), Status::ok);
    const VectorXd a = s.a_d + s.p().cwiseProduct(s.q_d - s.q) + s.d().cwiseProduct(s.v_d - s.v);
    VectorXd tau(s.model.nv);
    EXPECT_EQ(dynamics.families().newton_euler.inverse_dynamics(s.q, s.v, a, tau), Status::ok);
    return tau + s.friction(s.v_d);
  }
  VectorXd cycle(Controller& controller) {
    const Command& command = controller.command();
    EXPECT_EQ(controller.update({s.q, s.v}, {s.q_d, s.v_d, s.a_d}, dt), ControllerState::running);
    return command.effort;
  }
  Scene s;
  int link = 0;
};
INSTANTIATE_TEST_SUITE_P(Seeds, PayloadChange, testing::Range(1U, 6U));

TEST_P(PayloadChange, RampsFromOneEffortToTheOtherWithoutAStep) {
  const Payload<double> none = {0.0, Vec3<double>::Zero(), Symmetric3<double>::zero()};
  const std::vector<Payload<double>> loads = {none, load(GetParam() + 100), load(GetParam() + 200),
                                              none};
  const double transition = 0.1;
  Controller controller(s.model, s.config);
  ASSERT_EQ(controller.activate({s.q, s.v}), ControllerState::holding_position);
  VectorXd last = cycle(controller);
  for (std::size_t k = 1; k < loads.size(); ++k) {
    const VectorXd from = effort_with(loads[k - 1]);
    const VectorXd to = effort_with(loads[k]);
    ASSERT_TRUE(close_to(last, from, 1e-10));
    ASSERT_EQ(controller.set_payload(link, loads[k], transition), Status::ok);
    const VectorXd largest_step =
        (to - from).cwiseAbs() * 1.5 * dt / transition + VectorXd::Constant(7, 1e-9);
    for (int i = 1; i <= 100; ++i) {
      const VectorXd now = cycle(controller);
      ASSERT_TRUE(((now - last).cwiseAbs().array() <= largest_step.array()).all());
      const double x = i / 100.0;
      const double share = x * x * (3.0 - 2.0 * x);  // straight from one to the other
      ASSERT_TRUE(close_to(now, VectorXd(from + share * (to - from)), 1e-9));
      last = now;
    }
    last = cycle(controller);
    EXPECT_TRUE(controller.payload_settled());
    EXPECT_TRUE(close_to(last, to, 1e-10));
  }
}

TEST_P(PayloadChange, MayBeOvertakenByTheNext) {
  Controller controller(s.model, s.config);
  ASSERT_EQ(controller.activate({s.q, s.v}), ControllerState::holding_position);
  const Payload<double> second = load(GetParam() + 200);
  ASSERT_EQ(controller.set_payload(link, load(GetParam() + 100), 0.1), Status::ok);
  VectorXd last = cycle(controller);
  for (int i = 0; i < 50; ++i) last = cycle(controller);
  ASSERT_EQ(controller.set_payload(link, second, 0.1), Status::ok);
  const VectorXd way = (effort_with(second) - last).cwiseAbs();
  const VectorXd now = cycle(controller);
  EXPECT_TRUE(((now - last).cwiseAbs().array() <= 1.5 * dt / 0.1 * way.array() + 1e-9).all());
  for (int i = 0; i < 100; ++i) last = cycle(controller);
  EXPECT_TRUE(close_to(last, effort_with(second), 1e-10));
}

TEST_P(PayloadChange, IsImmediateWhileInactive) {
  Controller controller(s.model, s.config);
  const Payload<double> payload = load(GetParam() + 100);
  ASSERT_EQ(controller.set_payload(link, payload, 1000.0), Status::ok);
  EXPECT_TRUE(controller.payload_settled());
  ASSERT_EQ(controller.activate({s.q, s.v}), ControllerState::holding_position);
  EXPECT_TRUE(close_to(cycle(controller), effort_with(payload), 1e-10));
}

TEST_P(PayloadChange, RefusesWhatIsNoLoad) {
  Controller controller(s.model, s.config);
  Payload<double> payload = load(GetParam());
  EXPECT_EQ(controller.set_payload(-1, payload, 0.0), Status::out_of_range);
  EXPECT_EQ(controller.set_payload(1000, payload, 0.0), Status::out_of_range);
  ASSERT_EQ(controller.activate({s.q, s.v}), ControllerState::holding_position);
  EXPECT_EQ(controller.set_payload(link, payload, -1.0), Status::out_of_range);
  EXPECT_EQ(controller.set_payload(link, payload, nan), Status::not_finite);
  payload.com[1] = infinity;
  EXPECT_EQ(controller.set_payload(link, payload, 0.1), Status::not_finite);
  payload = load(GetParam());
  payload.mass = -1.0;
  EXPECT_EQ(controller.set_payload(link, payload, 0.1), Status::out_of_range);
  EXPECT_TRUE(controller.payload_settled());
}

}  // namespace
