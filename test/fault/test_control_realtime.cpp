// SPDX-License-Identifier: Apache-2.0
/// The controller's real-time contract: no allocation, no exception, no system call, in every law,
/// every state and every fault.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <type_traits>
#include <utility>

#include "dynamics_core/control/controller.hpp"
#include "support/allocation_guard.hpp"
#include "support/closed_loop.hpp"
#include "support/dice.hpp"
#include "support/system_calls.hpp"

namespace {

using namespace dynamics_core;
using namespace dynamics_core::control;
using Eigen::VectorXd;
using support::AllocationGuard;
using support::Dice;

constexpr double dt = 1e-3;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr int cycles = 100000;

// --- The guard sees what it should ---------------------------------------------------------------

template <class Action>
long heap_calls(Action action) {
  const AllocationGuard guard;
  action();
  return guard.count();
}

/// Keeps the compiler from leaving out a pair of new and delete.
template <class T>
void use(T* memory) {
  asm volatile("" : : "g"(memory) : "memory");
}

TEST(AllocationGuard, CatchesEveryWayToTheHeap) {
  if (!support::allocations_are_counted) GTEST_SKIP() << "the sanitizer has its own heap";
  EXPECT_EQ(heap_calls([] {}), 0);
  EXPECT_EQ(heap_calls([] {
              void* p = std::malloc(8);
              use(p);
              p = std::realloc(p, 100000);
              use(p);
              std::free(p);
            }),
            3);
  EXPECT_EQ(heap_calls([] {
              void* p = std::calloc(8, 8);
              use(p);
              std::free(p);
            }),
            2);
  EXPECT_EQ(heap_calls([] {
              void* p = std::aligned_alloc(64, 64);
              use(p);
              std::free(p);
            }),
            2);
  EXPECT_EQ(heap_calls([] {
              void* p = nullptr;
              EXPECT_EQ(posix_memalign(&p, 64, 64), 0);
              use(p);
              std::free(p);
            }),
            2);
  EXPECT_EQ(heap_calls([] {
              auto* p = new double(1.0);
              use(p);
              delete p;
            }),
            2);
  EXPECT_EQ(heap_calls([] {
              VectorXd x = VectorXd::Zero(100);
              use(x.data());
            }),
            2);
  EXPECT_GT(heap_calls([] {
              const Eigen::MatrixXd A = Eigen::MatrixXd::Identity(40, 40);
              Eigen::MatrixXd B = A * A;  // a temporary of the product
              use(B.data());
            }),
            0);
}

// --- Signatures ----------------------------------------------------------------------------------

using Update = decltype(&Controller::update);
static_assert(std::is_nothrow_invocable_r_v<ControllerState, Update, Controller&,
                                            const Measurement&, const Reference&, double>);
static_assert(noexcept(std::declval<Controller&>().activate(std::declval<const Measurement&>())));
static_assert(noexcept(std::declval<Controller&>().deactivate()));
static_assert(noexcept(std::declval<Controller&>().reset()));
static_assert(
    noexcept(std::declval<Controller&>().set_gravity(std::declval<const Eigen::Vector3d&>())));
static_assert(noexcept(std::declval<Controller&>().set_gains(0, Gains{})));
static_assert(noexcept(
    std::declval<Controller&>().set_payload(0, std::declval<const Payload<double>&>(), 0.0)));
static_assert(std::is_trivially_copyable_v<View>);

// --- Everything that can happen, at random -------------------------------------------------------

/// Plays everything to a controller that may go wrong, and all that is allowed while it runs.
class Storm {
 public:
  explicit Storm(const Config& config)
      : controller(build_model(support::random_arm(41, 9)), config),
        command(controller.command()),
        q(VectorXd::Constant(7, 0.3)),
        v(VectorXd::Constant(7, 0.1)),
        bad(VectorXd::Constant(7, nan)),
        huge(VectorXd::Constant(7, 1e308)),
        half_bad(q),
        others(VectorXd::Constant(2, 0.2)),
        others_bad(VectorXd::Constant(2, nan)) {
    half_bad[3] = -std::numeric_limits<double>::infinity();
  }

  void run(int n) noexcept {
    for (int k = 0; k < n; ++k) {
      change();
      cycle();
      ++visits[static_cast<std::size_t>(controller.state())];
      for (const LimitReport& report : controller.limits()) {
        effort_limited += report.effort_limited ? 1 : 0;
        rate_limited += report.rate_limited ? 1 : 0;
      }
      for (Eigen::Index j = 0; j < 7; ++j)
        always_finite = always_finite && std::isfinite(command.effort[j]) &&
                        std::isfinite(command.position[j]) && std::isfinite(command.velocity[j]);
    }
  }

  Controller controller;
  const Command& command;
  std::array<long, all_states.size()> visits{};
  EventCounts events;  ///< over all resets
  long effort_limited = 0, rate_limited = 0;
  bool always_finite = true;

 private:
  void change() noexcept {
    const double x = 0.01 * dice.roll(100);
    Status s = Status::ok;
    switch (dice.roll(40)) {
      case 0: s = controller.set_gravity({x, -x, -9.0}); break;
      case 1: s = controller.set_gains(dice.roll(8), {10.0 * x, x}); break;
      case 2:
        s = controller.set_payload(static_cast<int>(dice.roll(12)),
                                   {x, {x, 0.0, x}, {x, 0.0, 0.0, x, 0.0, x}}, 0.1 * x);
        break;
      case 3: s = controller.set_gravity({nan, 0.0, 0.0}); break;
      case 4:
        if (controller.state() == ControllerState::fault || dice.roll(20) == 0) {
          for (const Event e : all_events)
            for (std::uint64_t k = 0; k < controller.count(e); ++k) events.add(e);
          controller.reset();
        }
        break;
      case 5:
        if (dice.roll(20) == 0) controller.deactivate();
        break;
      case 6: controller.activate({dice.roll(2) == 0 ? q : bad, v}); break;
      case 7:  // finite, but no effort can hold it
        if (dice.roll(20) == 0) s = controller.set_gravity({0.0, 0.0, -1e308});
        break;
      default: break;
    }
    (void)s;
  }

  void cycle() noexcept {
    storm = dice.roll(200) == 0 ? 20 : storm > 0 ? storm - 1 : 0;  // bad times come in a row
    const unsigned weather = storm > 0 ? dice.roll(8) : 100;
    Measurement measurement{q, v, others};
    if (dice.roll(4) == 0) measurement.velocity = View();
    if (dice.roll(4) == 0) measurement.others = others_bad;
    Reference reference{q, v, v};
    switch (dice.roll(8)) {
      case 0: reference.velocity = View(); break;
      case 1: reference.acceleration = View(); break;
      case 2: reference.position = View(); break;
      case 3: reference = Reference{q}; break;
      case 4: reference.fresh = false; break;
      default: break;
    }
    double step = dt;
    measurement.touched = contacts.roll(2000) == 0;
    if (weather <= 2) measurement.position = weather == 0 ? bad : weather == 1 ? half_bad : others;
    if (weather == 3) measurement.velocity = half_bad;
    if (weather == 4) reference.velocity = huge;
    if (weather == 5) reference = Reference{half_bad, v, v};
    if (weather == 6) reference = Reference{};
    if (weather == 7) measurement.velocity = huge;
    silence = dice.roll(200) == 0 ? 20 : silence > 0 ? silence - 1 : 0;  // of the reference
    if (silence > 0) reference = Reference{};
    if (storm == 0 && dice.roll(50) == 0) step = dice.roll(2) == 0 ? -dt : 1e6;
    (void)controller.update(measurement, reference, step);
    for (Eigen::Index j = 0; j < 7; ++j) q[j] += 1e-4 * (static_cast<double>(dice.roll(11)) - 5.0);
  }

  Dice dice, contacts;
  int storm = 0;
  int silence = 0;
  VectorXd q, v, bad, huge, half_bad, others, others_bad;
};

Config storm_config(Mode mode, Compensation compensation, Missing missing) {
  Config config;
  config.joints = {"joint_9", "joint_1", "joint_3", "joint_4", "joint_2", "joint_6", "joint_7"};
  config.mode = mode;
  config.compensation = compensation;
  config.gains = {{20.0, 5.0, mode == Mode::computed_torque ? 3.0 : 0.0, 2.0}};
  config.friction = {{0.1, 0.5, 0.8}};
  config.effort_limits = {0.4};
  config.effort_rate_limits = {200.0};
  config.missing_velocity = config.missing_acceleration = missing;
  config.reference_margin =
      std::numeric_limits<double>::infinity();  // for results that are not finite
  config.reaction =
      mode == Mode::feedforward || mode == Mode::passivity ? Reaction::hold : Reaction::give_way;
  config.reference_timeout = 0.005;
  config.soft_start = 0.02;
  config.max_held_cycles = 3;
  return config;
}

struct Case {
  const char* name;
  Mode mode;
  Compensation compensation;
  Missing missing;
};

class RealTime : public testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] static Config config() {
    return storm_config(GetParam().mode, GetParam().compensation, GetParam().missing);
  }
};
INSTANTIATE_TEST_SUITE_P(
    Laws, RealTime,
    testing::Values(
        Case{"gravity_compensation", Mode::gravity_compensation, Compensation::full, Missing::zero},
        Case{"pd", Mode::feedforward, Compensation::none, Missing::zero},
        Case{"pd_gravity", Mode::feedforward, Compensation::gravity, Missing::differentiate},
        Case{"feedforward", Mode::feedforward, Compensation::full, Missing::differentiate},
        Case{"computed_torque", Mode::computed_torque, Compensation::full, Missing::zero},
        Case{"passivity", Mode::passivity, Compensation::full, Missing::differentiate},
        Case{"pass_through", Mode::pass_through, Compensation::full, Missing::zero}),
    [](const auto& it) { return it.param.name; });

TEST_P(RealTime, AllocatesNothingWhateverHappens) {
  if (!support::allocations_are_counted) GTEST_SKIP() << "the sanitizer has its own heap";
  Storm storm(config());
  const AllocationGuard guard;
  storm.run(cycles);
  EXPECT_EQ(guard.count(), 0);
}

/// What makes the tests of this file mean something: all states were visited, everything happened.
TEST_P(RealTime, TheStormReachesEveryStateAndEvent) {
  Storm storm(config());
  storm.run(cycles);
  EXPECT_TRUE(storm.always_finite);
  const bool referenced = GetParam().mode != Mode::gravity_compensation;
  for (const ControllerState state : all_states) {
    if (state == ControllerState::holding_position && !referenced) continue;
    EXPECT_GT(storm.visits[static_cast<std::size_t>(state)], 100) << to_string(state);
  }
  for (const Event event : all_events) {
    const bool of_reference = event == Event::bad_reference || event == Event::reference_timeout;
    if (of_reference && !referenced) continue;
    EXPECT_GT(storm.events[event], 10U) << to_string(event);
  }
  EXPECT_GT(storm.effort_limited, 100);
  EXPECT_GT(storm.rate_limited, 100);
}

TEST_P(RealTime, MakesNoSystemCallWhateverHappens) {
  if (!support::allocations_are_counted) GTEST_SKIP() << "a sanitizer makes calls of its own";
  const auto canary = support::run_without_system_calls([] { (void)getppid(); });
  if (!canary) GTEST_SKIP() << "seccomp is not available";
  ASSERT_TRUE(WIFSIGNALED(*canary)) << "a system call went unnoticed";
  Storm storm(config());
  const auto status = support::run_without_system_calls([&] { storm.run(cycles); });
  ASSERT_TRUE(status);
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 0)
      << "ended by signal " << WTERMSIG(*status);
}

}  // namespace
