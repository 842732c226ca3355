// SPDX-License-Identifier: Apache-2.0
/// What the controller does when the robot is touched.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dynamics_core/control/controller.hpp"
#include "support/closed_loop.hpp"

namespace {

using namespace dynamics_core;
using namespace dynamics_core::control;
using Eigen::VectorXd;

constexpr double dt = 1e-3;

class Touched : public testing::TestWithParam<Mode> {
 protected:
  [[nodiscard]] static Config config(Reaction reaction) {
    Config out;
    out.mode = GetParam();
    out.gains = {{50.0, 5.0}};
    out.soft_start = 0.0;
    out.reaction = reaction;
    return out;
  }
  /// Runs at a reference, is touched at another position, and hears of a third reference.
  void touch(Controller& controller) {
    ASSERT_EQ(controller.activate({q, v}), ControllerState::holding_position);
    ASSERT_EQ(controller.update({q, v}, {q, v, v}, dt), ControllerState::running);
    q.setConstant(0.4);
    ASSERT_FALSE(controller.reacting());
    Measurement measurement{q, v};
    measurement.touched = true;
    state = controller.update(measurement, {far, v, v}, dt);
  }

  const Model model = build_model(support::random_arm(5, 4));
  VectorXd q = VectorXd::Constant(4, 0.3);
  VectorXd v = VectorXd::Zero(4);
  VectorXd far = VectorXd::Constant(4, 0.9);
  ControllerState state = ControllerState::inactive;
};
INSTANTIATE_TEST_SUITE_P(Laws, Touched,
                         testing::Values(Mode::feedforward, Mode::computed_torque, Mode::passivity,
                                         Mode::pass_through),
                         [](const auto& it) { return to_string(it.param); });

TEST_P(Touched, WithoutAReactionNothingChanges) {
  Controller a(model, config(Reaction::none));
  touch(a);
  EXPECT_EQ(state, ControllerState::running);
  EXPECT_FALSE(a.reacting());
  EXPECT_EQ(a.reference_position(), far);
  EXPECT_EQ(a.count(Event::contact), 0U);
}

TEST_P(Touched, HoldsWhereItWasTouchedWhateverIsSent) {
  Controller controller(model, config(Reaction::hold));
  touch(controller);
  const VectorXd there = q;
  for (int k = 0; k < 10; ++k) {
    EXPECT_EQ(state, ControllerState::holding_position);
    EXPECT_TRUE(controller.reacting());
    EXPECT_EQ(controller.reference_position(), there);
    EXPECT_TRUE(controller.reference_velocity().isZero(0.0));
    q.array() += 0.01;  // pushed away
    state = controller.update({q, v}, {far, v, v}, dt);
  }
  EXPECT_EQ(controller.count(Event::contact), 1U);
  const VectorXd e = controller.position_error();
  EXPECT_NEAR(e[0], -0.1, 1e-12);
}

TEST_P(Touched, FloatsInGravityCompensation) {
  Controller controller(model, config(Reaction::give_way));
  touch(controller);
  Dynamics<double> robot(model);
  VectorXd g(4);
  for (int k = 0; k < 10; ++k) {
    EXPECT_EQ(state, ControllerState::running);
    ASSERT_EQ(robot.gravity(q, g), Status::ok);
    EXPECT_LT((controller.command().effort - g).norm(), 1e-12);
    EXPECT_EQ(controller.command().position, q);
    q.array() += 0.01;
    state = controller.update({q, v}, {far, v, v}, dt);
  }
  EXPECT_EQ(controller.count(Event::contact), 1U);
}

TEST_P(Touched, TheNextActivationEndsIt) {
  for (const Reaction reaction : {Reaction::hold, Reaction::give_way}) {
    q.setConstant(0.3);
    Controller controller(model, config(reaction));
    touch(controller);
    ASSERT_TRUE(controller.reacting());
    controller.deactivate();
    ASSERT_EQ(controller.resume({q, v}), ControllerState::holding_position);
    EXPECT_FALSE(controller.reacting());
    EXPECT_LT((controller.reference_position() - q).norm(), 1e-12);  // starts where it is
    EXPECT_EQ(controller.update({q, v}, {q, v, v}, dt), ControllerState::running);
  }
}

/// Faults go before, and a contact that is felt in a bad cycle counts in the next good one.
TEST_P(Touched, ABadMeasurementIsABadCycleStill) {
  Controller controller(model, config(Reaction::hold));
  touch(controller);
  const VectorXd bad = VectorXd::Constant(4, std::nan(""));
  const int held = controller.config().max_held_cycles;
  for (int k = 0; k < held; ++k)
    EXPECT_EQ(controller.update({bad, v}, {far, v, v}, dt), ControllerState::holding_command);
  EXPECT_EQ(controller.update({bad, v}, {far, v, v}, dt), ControllerState::fault);
}

TEST(Reactions, HaveNamesAndNeedALawThatHolds) {
  for (const Reaction reaction : {Reaction::none, Reaction::hold, Reaction::give_way})
    EXPECT_EQ(find_reaction(to_string(reaction)), reaction);
  EXPECT_EQ(find_reaction("flee"), std::nullopt);
  const Model model = build_model(support::random_arm(5, 4));
  Config config;
  config.mode = Mode::gravity_compensation;
  config.reaction = Reaction::give_way;
  EXPECT_NO_THROW(Controller(model, config));
  config.reaction = Reaction::hold;
  try {
    const Controller controller(model, config);
    ADD_FAILURE() << "not refused";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("reaction = hold: mode gravity_compensation"));
  }
}

}  // namespace
