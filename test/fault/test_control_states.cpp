// SPDX-License-Identifier: Apache-2.0
/// The controller's state machine as its table, first the table itself, then the controller driven
/// through every state and event; and what it commands there.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "dynamics_core/control/controller.hpp"
#include "support/closed_loop.hpp"

namespace {

using namespace dynamics_core;
using namespace dynamics_core::control;
using Eigen::VectorXd;

constexpr double dt = 1e-3;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

constexpr ControllerState inactive = ControllerState::inactive;
constexpr ControllerState position = ControllerState::holding_position;
constexpr ControllerState running = ControllerState::running;
constexpr ControllerState command_ = ControllerState::holding_command;
constexpr ControllerState fault = ControllerState::fault;

// --- The table -----------------------------------------------------------------------------------

TEST(StateMachine, IsItsTable) {
  using T = Trigger;
  struct Row {
    Trigger trigger;
    ControllerState after[5];  // from inactive, holding_position, running, holding_command, fault
  };
  const Row table[] = {
      {T::activate, {position, position, running, command_, fault}},
      {T::deactivate, {inactive, inactive, inactive, inactive, fault}},
      {T::reset, {inactive, inactive, inactive, inactive, inactive}},
      {T::cycle, {inactive, running, running, running, fault}},
      {T::cycle_without_reference, {inactive, position, position, position, fault}},
      {T::bad_cycle, {inactive, command_, command_, command_, fault}},
      {T::too_many_bad_cycles, {inactive, fault, fault, fault, fault}},
  };
  for (const Row& row : table)
    for (std::size_t i = 0; i < all_states.size(); ++i)
      EXPECT_EQ(next(all_states[i], row.trigger), row.after[i])
          << to_string(all_states[i]) << ", trigger " << static_cast<int>(row.trigger);
}

// --- The controller ------------------------------------------------------------------------------

/// A controller of three joints with signals at hand, and what to do to it.
class Rig {
 public:
  static constexpr int held = 3;  ///< cycles that are bridged

  explicit Rig(Mode mode = Mode::feedforward, int max_held = held)
      : controller(model(), config(mode, max_held)),
        command(controller.command()),
        q(Eigen::Vector3d(0.3, -0.2, 0.5)),
        v(Eigen::Vector3d(0.1, 0.2, -0.3)),
        q_d(q + VectorXd::Constant(3, 0.05)),
        v_d(v),
        a_d(VectorXd::Constant(3, 0.4)) {}

  static Model model() { return build_model(support::random_arm(31, 3)); }
  static Config config(Mode mode, int max_held) {
    Config out;
    out.mode = mode;
    out.gains = {{20.0, 5.0}};
    out.soft_start = 0.0;
    out.reference_timeout = 10.5 * dt;
    out.max_held_cycles = max_held;
    out.reference_margin = infinity;
    return out;
  }

  ControllerState cycle(double step = dt) {
    return controller.update({q, v}, {q_d, v_d, a_d}, step);
  }
  ControllerState without_reference() { return controller.update({q, v}, {}, dt); }
  ControllerState bad_measurement() {
    VectorXd broken = q;
    broken[1] = nan;
    return controller.update({broken, v}, {q_d, v_d, a_d}, dt);
  }
  ControllerState bad_reference() {
    VectorXd broken = v_d;
    broken[2] = infinity;
    return controller.update({q, v}, {q_d, broken, a_d}, dt);
  }
  /// Finite, but its square is not.
  ControllerState bad_result() {
    const VectorXd huge = VectorXd::Constant(3, 1e200);
    return controller.update({q, v}, {q_d, huge, a_d}, dt);
  }

  /// Brings the controller into a state, by the shortest way.
  void enter(ControllerState state) {
    controller.reset();
    if (state == inactive) return;
    ASSERT_EQ(controller.activate({q, v}), position);
    if (state == position) return;
    ASSERT_EQ(cycle(), running);
    if (state == running) return;
    ASSERT_EQ(bad_measurement(), command_);
    if (state == command_) return;
    while (controller.state() != fault) (void)bad_measurement();
  }

  Controller controller;
  const Command& command;
  VectorXd q, v, q_d, v_d, a_d;
};

TEST(ControllerStates, FollowTheTable) {
  struct Row {
    const char* event;
    std::function<void(Rig&)> happen;
    ControllerState after[5];  // from inactive, holding_position, running, holding_command, fault
    std::optional<Event> counted;  // in the active states
  };
  const auto past_timeout = [](Rig& rig) {
    for (int k = 0; k < 12; ++k) (void)rig.without_reference();
  };
  const auto bad_clock = [](double step) { return [step](Rig& rig) { (void)rig.cycle(step); }; };
  const Row table[] = {
      {"activate",
       [](Rig& r) {
         r.controller.activate({r.q, r.v});
       },
       {position, position, running, command_, fault},
       {}},
      {"deactivate",
       [](Rig& r) { r.controller.deactivate(); },
       {inactive, inactive, inactive, inactive, fault},
       {}},
      {"reset",
       [](Rig& r) { r.controller.reset(); },
       {inactive, inactive, inactive, inactive, inactive},
       {}},
      {"good cycle",
       [](Rig& r) { (void)r.cycle(); },
       {inactive, running, running, running, fault},
       {}},
      {"no new reference",
       [](Rig& r) { (void)r.without_reference(); },
       {inactive, position, running, running, fault},
       {}},
      {"no reference for too long",
       past_timeout,
       {inactive, position, position, position, fault},
       {}},
      {"bad reference",
       [](Rig& r) { (void)r.bad_reference(); },
       {inactive, position, running, running, fault},
       Event::bad_reference},
      {"bad measurement",
       [](Rig& r) { (void)r.bad_measurement(); },
       {inactive, command_, command_, command_, fault},
       Event::bad_measurement},
      {"bad result",
       [](Rig& r) { (void)r.bad_result(); },
       {inactive, command_, command_, command_, fault},
       Event::bad_result},
      {"too many bad measurements",
       [](Rig& r) {
         for (int k = 0; k <= Rig::held; ++k) (void)r.bad_measurement();
       },
       {inactive, fault, fault, fault, fault},
       Event::bad_measurement},
      {"too many bad results",
       [](Rig& r) {
         for (int k = 0; k <= Rig::held; ++k) (void)r.bad_result();
       },
       {inactive, fault, fault, fault, fault},
       Event::bad_result},
      {"dt = 0", bad_clock(0.0), {inactive, running, running, running, fault}, Event::bad_clock},
      {"dt < 0", bad_clock(-dt), {inactive, running, running, running, fault}, Event::bad_clock},
      {"dt NaN", bad_clock(nan), {inactive, running, running, running, fault}, Event::bad_clock},
      {"clock jumps ahead",
       bad_clock(1e3),
       {inactive, running, running, running, fault},
       Event::bad_clock},
  };
  for (const Row& row : table) {
    for (std::size_t i = 0; i < all_states.size(); ++i) {
      SCOPED_TRACE(std::string(row.event) + " while " + to_string(all_states[i]));
      Rig rig;
      rig.enter(all_states[i]);
      std::array<std::uint64_t, all_events.size()> counts{};
      for (const Event e : all_events)
        counts[static_cast<std::size_t>(e)] = rig.controller.count(e);
      row.happen(rig);
      EXPECT_EQ(rig.controller.state(), row.after[i]);
      EXPECT_TRUE(rig.command.effort.allFinite());
      EXPECT_TRUE(rig.command.position.allFinite());
      EXPECT_TRUE(rig.command.velocity.allFinite());
      const bool active = all_states[i] != inactive && all_states[i] != fault;
      for (const Event e : all_events) {
        const std::uint64_t was = counts[static_cast<std::size_t>(e)];
        if (std::string(row.event) == "reset") {
          EXPECT_EQ(rig.controller.count(e), 0U) << to_string(e);
        } else if (active && row.counted == e) {
          EXPECT_GT(rig.controller.count(e), was) << to_string(e);
        } else if (e != Event::reference_timeout) {
          EXPECT_EQ(rig.controller.count(e), was) << to_string(e);
        }
      }
    }
  }
}

TEST(ControllerStates, CommandNothingWhileInactiveOrInFault) {
  for (const ControllerState state : {inactive, fault}) {
    for (const Mode mode : {Mode::gravity_compensation, Mode::feedforward, Mode::computed_torque,
                            Mode::passivity, Mode::pass_through}) {
      SCOPED_TRACE(std::string(to_string(state)) + ", " + to_string(mode));
      Rig rig(mode);
      rig.enter(state);
      EXPECT_EQ(rig.cycle(), state);
      EXPECT_EQ(rig.command.effort, VectorXd::Zero(3));
      EXPECT_EQ(rig.command.velocity, VectorXd::Zero(3));
      // Inactive, a drive with its own loop stays where it is; in a fault where it was sent last.
      const bool followed = state == fault && mode != Mode::gravity_compensation;
      EXPECT_EQ(rig.command.position, followed ? rig.q_d : rig.q);
      EXPECT_EQ(rig.bad_measurement(), state);
      EXPECT_EQ(rig.command.effort, VectorXd::Zero(3));
      EXPECT_TRUE(rig.command.position.allFinite());
    }
  }
}

TEST(Resume, GoesOnWhereItLeftOff) {
  Config config = Rig::config(Mode::computed_torque, Rig::held);
  config.gains = {{20.0, 5.0, 3.0}};
  config.effort_rate_limits = {500.0};
  config.soft_start = 0.5;
  Rig rig(Mode::computed_torque);
  Controller controller(Rig::model(), config);
  ASSERT_EQ(controller.activate({rig.q, rig.v}), position);
  for (int k = 0; k < 100; ++k)
    (void)controller.update({rig.q, rig.v}, {rig.q_d, rig.v_d, rig.a_d}, dt);
  const VectorXd before = controller.command().effort;
  const double ramp = controller.start_ramp();
  ASSERT_GT(ramp, 0.0);

  EXPECT_EQ(controller.deactivate(), inactive);
  EXPECT_EQ(controller.update({rig.q, rig.v}, {}, dt), inactive);
  EXPECT_EQ(controller.command().effort, VectorXd::Zero(3));

  EXPECT_EQ(controller.resume({rig.q, rig.v}), position);
  EXPECT_EQ(controller.start_ramp(), ramp);
  EXPECT_EQ(controller.command().effort, before);
  EXPECT_EQ(controller.reference_position(), rig.q_d);
  EXPECT_EQ(controller.reference_velocity(), VectorXd::Zero(3));
  (void)controller.update({rig.q, rig.v}, {rig.q_d, rig.v_d, rig.a_d}, dt);
  EXPECT_LE((controller.command().effort - before).cwiseAbs().maxCoeff(), 500.0 * dt * (1 + 1e-12));
}

TEST(Resume, StartsAnewWhereTheRobotHasMovedMeanwhile) {
  for (const double moved : {0.005, 0.5}) {
    Rig rig;
    rig.enter(running);
    rig.controller.deactivate();
    const VectorXd q = rig.q + VectorXd::Constant(3, moved);
    EXPECT_EQ(rig.controller.resume({q, rig.v}), position);
    const bool fell = moved > 0.1;
    EXPECT_EQ(rig.controller.reference_position(), fell ? q : rig.q_d);
    EXPECT_EQ(rig.command.effort.isZero(), fell);
  }
}

TEST(Resume, StartsAnewAfterAResetAndNeverOutOfAFault) {
  Rig rig;
  EXPECT_EQ(rig.controller.resume({rig.q, rig.v}), position);  // never active before
  EXPECT_EQ(rig.controller.reference_position(), rig.q);
  EXPECT_EQ(rig.cycle(), running);
  EXPECT_EQ(rig.controller.resume({rig.q, rig.v}), running);  // active: nothing
  rig.controller.deactivate();
  rig.controller.reset();
  EXPECT_EQ(rig.controller.resume({rig.q, rig.v}), position);
  EXPECT_EQ(rig.controller.reference_position(), rig.q);

  rig.controller.deactivate();
  VectorXd broken = rig.q;
  broken[0] = nan;
  EXPECT_EQ(rig.controller.resume({broken, rig.v}), inactive);
  EXPECT_EQ(rig.controller.count(Event::bad_measurement), 1U);

  rig.enter(fault);
  rig.controller.deactivate();
  EXPECT_EQ(rig.controller.resume({rig.q, rig.v}), fault);
}

// --- Non-finite measurements ---------------------------------------------------------------------

class BadMeasurement : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(HeldCycles, BadMeasurement, testing::Values(0, 1, 5));

TEST_P(BadMeasurement, RepeatsTheLastCommandForAtMostNCyclesThenFaults) {
  Rig rig(Mode::feedforward, GetParam());
  rig.enter(running);
  const Command safe = rig.command;
  for (int k = 0; k < GetParam(); ++k) {
    ASSERT_EQ(rig.bad_measurement(), command_);
    ASSERT_EQ(rig.command.effort, safe.effort);
    ASSERT_EQ(rig.command.position, safe.position);
    ASSERT_EQ(rig.command.velocity, safe.velocity);
  }
  EXPECT_EQ(rig.bad_measurement(), fault);
  EXPECT_EQ(rig.command.effort, VectorXd::Zero(3));
  EXPECT_EQ(rig.controller.fault_cause(), Event::bad_measurement);
  EXPECT_EQ(rig.controller.count(Event::bad_measurement), static_cast<unsigned>(GetParam() + 1));
  // Nothing but a reset ends it.
  EXPECT_EQ(rig.cycle(), fault);
  EXPECT_EQ(rig.controller.deactivate(), fault);
  EXPECT_EQ(rig.controller.activate({rig.q, rig.v}), fault);
  EXPECT_EQ(rig.controller.count(Event::bad_measurement), static_cast<unsigned>(GetParam() + 1));
  rig.controller.reset();
  EXPECT_EQ(rig.controller.state(), inactive);
  EXPECT_EQ(rig.controller.count(Event::bad_measurement), 0U);
  EXPECT_EQ(rig.controller.activate({rig.q, rig.v}), position);
  EXPECT_EQ(rig.cycle(), running);
  EXPECT_EQ(rig.command.effort, safe.effort);
}

TEST(BadMeasurement, OnlyCyclesInARowCount) {
  Rig rig;
  rig.enter(running);
  for (int k = 0; k < 100; ++k) {
    for (int i = 0; i < Rig::held; ++i) ASSERT_EQ(rig.bad_measurement(), command_);
    ASSERT_EQ(rig.cycle(), running);
  }
  EXPECT_EQ(rig.controller.count(Event::bad_measurement), 300U);
}

TEST(BadMeasurement, IsNaNInfinityOrTheWrongSizeOfAnySignal) {
  Rig rig;
  const VectorXd two = VectorXd::Zero(2);
  VectorXd broken_v = rig.v;
  broken_v[0] = -infinity;
  VectorXd broken_q = rig.q;
  broken_q[2] = infinity;
  const Measurement bad[] = {{{}, rig.v},       {two, rig.v},      {rig.q, two},
                             {rig.q, broken_v}, {broken_q, rig.v}, {rig.q, rig.v, two}};
  std::uint64_t n = 0;
  for (const Measurement& measurement : bad) {
    rig.enter(running);
    n = rig.controller.count(Event::bad_measurement);
    EXPECT_EQ(rig.controller.update(measurement, {rig.q_d}, dt), command_);
    EXPECT_EQ(rig.controller.count(Event::bad_measurement), n + 1);
    rig.controller.reset();
    EXPECT_EQ(rig.controller.activate(measurement), inactive);
    EXPECT_EQ(rig.controller.count(Event::bad_measurement), 1U);
  }
}

// --- References ----------------------------------------------------------------------------------

TEST(LostReference, KeepsTheLastThenHoldsPosition) {
  for (const bool broken : {false, true}) {  // none at all, or one that is not finite
    SCOPED_TRACE(broken);
    Rig rig;
    rig.enter(running);
    const VectorXd effort = rig.command.effort;
    for (int k = 1; k <= 10; ++k) {
      ASSERT_EQ(broken ? rig.bad_reference() : rig.without_reference(), running);
      ASSERT_EQ(rig.command.position, rig.q_d);
      ASSERT_EQ(rig.command.velocity, rig.v_d);
      ASSERT_EQ(rig.command.effort, effort);
    }
    EXPECT_EQ(rig.controller.count(Event::reference_timeout), 0U);
    for (int k = 0; k < 100; ++k) {
      ASSERT_EQ(broken ? rig.bad_reference() : rig.without_reference(), position);
      ASSERT_EQ(rig.command.position, rig.q_d);
      ASSERT_EQ(rig.command.velocity, VectorXd::Zero(3));
      ASSERT_EQ(rig.controller.reference_acceleration(), VectorXd::Zero(3));
    }
    EXPECT_EQ(rig.controller.count(Event::reference_timeout), 1U);  // one loss
    EXPECT_EQ(rig.controller.count(Event::bad_reference), broken ? 110U : 0U);
    EXPECT_EQ(rig.cycle(), running);  // the next one goes on; the count stays
    EXPECT_EQ(rig.command.effort, effort);
    EXPECT_EQ(rig.controller.count(Event::reference_timeout), 1U);
  }
}

TEST(LostReference, OfVelocityAloneHoldsWhereTheRobotIs) {
  Rig rig;
  ASSERT_EQ(rig.controller.activate({rig.q, rig.v}), position);
  ASSERT_EQ(rig.controller.update({rig.q, rig.v}, {{}, rig.v_d}, dt), running);
  VectorXd here = rig.q;
  for (int k = 1; k <= 20; ++k) {
    here.array() += 0.01;
    (void)rig.controller.update({here, rig.v}, {}, dt);
    if (rig.controller.state() == position) break;
  }
  ASSERT_EQ(rig.controller.state(), position);
  EXPECT_TRUE(rig.command.position.isApprox(here - VectorXd::Constant(3, 0.01), 1e-12));
}

TEST(LostReference, IsNotOldBecauseTheClockJumped) {
  Rig rig;
  rig.enter(running);
  for (int k = 0; k < 100; ++k) ASSERT_EQ(rig.controller.update({rig.q, rig.v}, {}, 1e3), running);
  EXPECT_EQ(rig.controller.count(Event::bad_clock), 100U);
}

TEST(LostReference, NeverEndsWithoutATimeout) {
  Config config = Rig::config(Mode::feedforward, 3);
  config.reference_timeout = 0.0;
  Rig rig;
  Controller controller(Rig::model(), config);
  ASSERT_EQ(controller.activate({rig.q, rig.v}), position);
  ASSERT_EQ(controller.update({rig.q, rig.v}, {rig.q_d}, dt), running);
  for (int k = 0; k < 10000; ++k) ASSERT_EQ(controller.update({rig.q, rig.v}, {}, dt), running);
}

TEST(LostReference, DoesNotMatterToGravityCompensation) {
  Rig rig(Mode::gravity_compensation);
  ASSERT_EQ(rig.controller.activate({rig.q, rig.v}), position);
  for (int k = 0; k < 100; ++k) ASSERT_EQ(rig.bad_reference(), running);
  for (const Event e : all_events) EXPECT_EQ(rig.controller.count(e), 0U);
}

TEST(BadReference, IsNaNInfinityOrTheWrongSizeOfAnySignal) {
  Rig rig;
  const VectorXd two = VectorXd::Zero(2);
  const VectorXd two_nan = VectorXd::Constant(2, nan);
  VectorXd broken = rig.q_d;
  broken[1] = nan;
  const Reference bad[] = {
      {broken}, {two}, {rig.q_d, two_nan}, {rig.q_d, rig.v_d, two}, {rig.q_d, rig.v_d, broken}};
  for (const Reference& reference : bad) {
    rig.enter(running);
    EXPECT_EQ(rig.controller.update({rig.q, rig.v}, reference, dt), running);
    EXPECT_EQ(rig.controller.count(Event::bad_reference), 1U);
    EXPECT_EQ(rig.command.position, rig.q_d);
    rig.enter(position);  // never written as a whole: still bad, as it is not all NaN
    EXPECT_EQ(rig.controller.update({rig.q, rig.v}, reference, dt), position);
    EXPECT_EQ(rig.controller.count(Event::bad_reference), 1U);
    EXPECT_EQ(rig.command.position, rig.q);
  }
}

TEST(BadReference, IsOutOfReach) {
  Config config = Rig::config(Mode::feedforward, Rig::held);  // -3 to 3 rad, at most 5 rad/s
  config.reference_margin = 0.2;
  Controller controller(Rig::model(), config);
  const VectorXd zero = VectorXd::Zero(3);
  ASSERT_EQ(controller.activate({zero, zero}), position);
  const auto at = [](double x) { return VectorXd(Eigen::Vector3d(0.0, x, 0.0)); };
  for (const double sign : {-1.0, 1.0}) {
    const VectorXd near = at(sign * 4.19), slow = at(sign * 5.99);
    const VectorXd far = at(sign * 4.21), fast = at(sign * 6.01);
    const std::uint64_t before = controller.count(Event::bad_reference);
    (void)controller.update({zero, zero}, {near, slow, zero}, dt);
    EXPECT_EQ(controller.count(Event::bad_reference), before);
    (void)controller.update({zero, zero}, {far, zero, zero}, dt);
    (void)controller.update({zero, zero}, {zero, fast, zero}, dt);
    EXPECT_EQ(controller.count(Event::bad_reference), before + 2);
    EXPECT_EQ(controller.command().position, near);
  }
}

TEST(DifferentiatedReference, ComesBackFromAnOverflow) {
  for (const double margin : {0.2, infinity}) {
    Config config = Rig::config(Mode::pass_through, Rig::held);
    config.missing_velocity = config.missing_acceleration = Missing::differentiate;
    config.reference_margin = margin;
    Controller controller(Rig::model(), config);
    const VectorXd q = VectorXd::Constant(3, 0.1);
    const VectorXd v = VectorXd::Zero(3);
    const VectorXd huge = VectorXd::Constant(3, 1e306);
    ASSERT_EQ(controller.activate({q, v}), position);
    for (int k = 0; k < 100; ++k) {
      (void)controller.update({q, v}, {k == 10 ? huge : q}, dt);
      const Command& command = controller.command();
      ASSERT_TRUE(command.effort.allFinite() && command.velocity.allFinite()) << k;
      ASSERT_TRUE(command.position.allFinite()) << k;
    }
    EXPECT_EQ(controller.command().velocity, v) << margin;
    EXPECT_EQ(controller.count(Event::bad_reference), std::isfinite(margin) ? 1U : 0U);
  }
}

/// The smallest numbers take processors many times as long.
TEST(DifferentiatedReference, DiesAwayToZero) {
  Config config = Rig::config(Mode::feedforward, Rig::held);
  config.missing_velocity = config.missing_acceleration = Missing::differentiate;
  Controller controller(Rig::model(), config);
  VectorXd q = VectorXd::Constant(3, 0.1);
  ASSERT_EQ(controller.activate({q, {}}), position);
  for (int k = 0; k < 3000; ++k) {
    if (k < 10) q.array() += 1e-3;
    ASSERT_EQ(controller.update({q, {}}, {q}, dt), running);
    for (const double rate : controller.command().velocity)
      ASSERT_NE(std::fpclassify(rate), FP_SUBNORMAL) << "cycle " << k;
  }
  EXPECT_EQ(controller.command().velocity, VectorXd::Zero(3));
}

// --- Results -------------------------------------------------------------------------------------

TEST(BadResult, RepeatsTheLastCommandThenFaults) {
  for (const Mode mode :
       {Mode::feedforward, Mode::computed_torque, Mode::passivity, Mode::pass_through}) {
    SCOPED_TRACE(to_string(mode));
    Rig rig(mode);
    if (mode == Mode::computed_torque) rig.v_d.setConstant(0.0);
    rig.enter(running);
    const VectorXd safe = rig.command.effort;
    const VectorXd huge = VectorXd::Constant(3, 1e200);
    const Measurement measurement{rig.q, mode == Mode::computed_torque ? huge : rig.v};
    const Reference reference{rig.q_d, mode == Mode::computed_torque ? rig.v_d : huge};
    for (int k = 0; k < Rig::held; ++k) {
      ASSERT_EQ(rig.controller.update(measurement, reference, dt), command_);
      ASSERT_EQ(rig.command.effort, safe);
    }
    EXPECT_EQ(rig.controller.update(measurement, reference, dt), fault);
    EXPECT_EQ(rig.command.effort, VectorXd::Zero(3));
    EXPECT_EQ(rig.controller.fault_cause(), Event::bad_result);
    EXPECT_EQ(rig.controller.count(Event::bad_result), Rig::held + 1U);
  }
}

// --- The clock -----------------------------------------------------------------------------------

TEST(BadClock, StillRunsTheLaw) {
  Rig rig;
  rig.enter(running);
  const VectorXd expected = rig.command.effort;
  EXPECT_EQ(rig.cycle(0.0), running);
  EXPECT_EQ(rig.command.effort, expected);
}

TEST(BadClock, FreezesARateLimitedEffort) {
  Config config = Rig::config(Mode::feedforward, 3);
  config.effort_rate_limits = {100.0};
  Rig rig;
  Controller controller(Rig::model(), config);
  ASSERT_EQ(controller.activate({rig.q, rig.v}), position);
  (void)controller.update({rig.q, rig.v}, {rig.q_d}, dt);
  const VectorXd before = controller.command().effort;
  EXPECT_GT(before.cwiseAbs().maxCoeff(), 0.0);
  (void)controller.update({rig.q, rig.v}, {rig.q_d}, 1e3);
  EXPECT_EQ(controller.command().effort, before);
  EXPECT_TRUE(controller.limits()[0].rate_limited);
}

TEST(Reactivation, IsClean) {
  Config config = Rig::config(Mode::computed_torque, 3);
  config.gains = {{20.0, 5.0, 100.0}};
  config.soft_start = 0.05;
  Rig rig;
  const auto efforts = [&](Controller& controller) {
    std::vector<VectorXd> out;
    EXPECT_EQ(controller.activate({rig.q, {}}), position);
    for (int k = 0; k < 100; ++k) {
      const VectorXd q = rig.q + VectorXd::Constant(3, 1e-3 * k);
      (void)controller.update({q, {}}, {rig.q_d}, dt);
      out.push_back(controller.command().effort);
    }
    return out;
  };
  Controller controller(Rig::model(), config);
  const auto first = efforts(controller);
  controller.deactivate();
  EXPECT_EQ(efforts(controller), first);
  for (int k = 0; k < 4; ++k) (void)controller.update({{}, {}}, {}, dt);
  ASSERT_EQ(controller.state(), fault);
  controller.reset();
  EXPECT_EQ(efforts(controller), first);
}

}  // namespace
