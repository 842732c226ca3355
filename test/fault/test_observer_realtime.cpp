// SPDX-License-Identifier: Apache-2.0
/// The observers' real-time contract: no allocation, no exception, no system call, and nothing that
/// is not finite, whatever samples they are given.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <limits>
#include <utility>

#include "dynamics_core/control/load_estimator.hpp"
#include "dynamics_core/control/momentum_observer.hpp"
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

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr int cycles = 20000;

static_assert(noexcept(std::declval<MomentumObserver&>().update(std::declval<JointSample&>(),
                                                                0.0)));
static_assert(noexcept(std::declval<MomentumObserver&>().restart()));
static_assert(noexcept(std::declval<LoadEstimator&>().update(std::declval<JointSample&>(), 0.0)));
static_assert(noexcept(std::declval<LoadEstimator&>().estimate(std::declval<LoadEstimate&>())));
static_assert(noexcept(std::declval<LoadEstimator&>().restart()));

template <class Config>
Config subset() {
  Config config;
  config.joints = {"joint_9", "joint_1", "joint_3", "joint_4", "joint_2", "joint_6", "joint_7"};
  config.friction = {{0.1, 0.5, 0.8}};
  return config;
}

ObserverConfig observer_config(EffortKind kind) {
  auto config = subset<ObserverConfig>();
  config.effort = kind;
  config.frame = "link_9";
  config.thresholds = {{0.5, 0.1}};
  return config;
}

LoadEstimatorConfig load_config(EffortKind kind) {
  auto config = subset<LoadEstimatorConfig>();
  config.effort = kind;
  config.memory = 1.0;
  return config;
}

/// Plays everything to both that may go wrong, and all that is allowed while they run.
class Storm {
 public:
  explicit Storm(EffortKind kind)
      : observer(build_model(support::random_arm(41, 9)), observer_config(kind)),
        scales(build_model(support::random_arm(41, 9)), load_config(kind)),
        q(VectorXd::Constant(7, 0.3)),
        v(VectorXd::Constant(7, 0.1)),
        tau(VectorXd::Constant(7, 1.0)),
        bad(VectorXd::Constant(7, nan)),
        huge(VectorXd::Constant(7, 1e200)),
        others(VectorXd::Constant(2, 0.2)),
        others_bad(VectorXd::Constant(2, nan)) {}

  void run(int n) noexcept {
    for (int k = 0; k < n; ++k) {
      change();
      cycle();
      touched += observer.contact().touched ? 1 : 0;
      check();
    }
  }

  MomentumObserver observer;
  LoadEstimator scales;
  std::array<long, 8> statuses{}, load_statuses{};
  long touched = 0, estimates = 0;
  bool always_finite = true;

 private:
  void change() noexcept {
    const double x = 0.01 * dice.roll(100);
    const Payload<double> load{x, {x, 0.0, x}, {x, 0.0, 0.0, x, 0.0, x}};
    Status s = Status::ok;
    switch (dice.roll(200)) {
      case 0: s = observer.set_gravity({x, -x, -9.0}); break;
      case 1: s = observer.set_gravity({nan, 0.0, 0.0}); break;
      case 2: s = observer.set_payload(static_cast<int>(dice.roll(12)), load); break;
      case 3: s = scales.set_payload(static_cast<int>(dice.roll(12)), load); break;
      case 4: s = scales.set_gravity({x, -x, dice.roll(10) == 0 ? nan : -9.0}); break;
      case 5: observer.restart(); break;
      case 6: scales.restart(); break;
      default: break;
    }
    (void)s;
  }

  void cycle() noexcept {
    JointSample sample{q, v, tau, others, others};
    if (dice.roll(4) == 0) sample.others = others_bad;
    if (dice.roll(4) == 0) sample.other_velocities = View();
    double step = 1e-3;
    switch (dice.roll(400)) {
      case 0: sample.position = bad; break;
      case 1: sample.velocity = bad; break;
      case 2: sample.effort = bad; break;
      case 3: sample.position = others; break;
      case 4: sample.effort = View(); break;
      case 5: sample.velocity = huge; break;
      case 6: sample.effort = huge; break;
      case 7: sample.other_velocities = others_bad; break;
      case 8: step = 0.0; break;
      case 9: step = nan; break;
      case 10: step = 1e6; break;
      case 11: absent = !absent; break;
      default: break;
    }
    if (absent) sample.velocity = View();
    ++statuses[static_cast<std::size_t>(observer.update(sample, step))];
    ++load_statuses[static_cast<std::size_t>(scales.update(sample, step))];
    for (Eigen::Index j = 0; j < 7; ++j) {
      q[j] += 1e-4 * (static_cast<double>(dice.roll(11)) - 5.0);
      v[j] += 1e-2 * (static_cast<double>(dice.roll(11)) - 5.0);
      tau[j] += 1e-1 * (static_cast<double>(dice.roll(11)) - 5.0);
    }
  }

  void check() noexcept {
    const FrameWrench& w = observer.wrench();
    LoadEstimate load;
    if (scales.estimate(load) == Status::ok) ++estimates;
    const Payload<double> carried = payload(load);
    always_finite = always_finite && observer.external_effort().allFinite() &&
                    observer.threshold().allFinite() && w.force.allFinite() &&
                    w.torque.allFinite() && std::isfinite(w.conditioning) &&
                    std::isfinite(load.mass) && load.com.allFinite() &&
                    load.com_deviation.allFinite() && load.inertia.matrix().allFinite() &&
                    std::isfinite(load.inertia_deviation) && std::isfinite(load.mass_deviation) &&
                    carried.inertia.matrix().allFinite();
  }

  Dice dice;
  bool absent = false;
  VectorXd q, v, tau, bad, huge, others, others_bad;
};

class RealTime : public testing::TestWithParam<EffortKind> {};
INSTANTIATE_TEST_SUITE_P(Efforts, RealTime,
                         testing::Values(EffortKind::total, EffortKind::without_gravity),
                         [](const auto& it) { return to_string(it.param); });

TEST_P(RealTime, AllocatesNothingWhateverHappens) {
  if (!support::allocations_are_counted) GTEST_SKIP() << "the sanitizer has its own heap";
  Storm storm(GetParam());
  const AllocationGuard guard;
  storm.run(cycles);
  EXPECT_EQ(guard.count(), 0);
}

/// What makes the tests of this file mean something: everything happened.
TEST_P(RealTime, TheStormReachesEveryStatus) {
  Storm storm(GetParam());
  storm.run(cycles);
  EXPECT_TRUE(storm.always_finite);
  for (const Status s :
       {Status::ok, Status::wrong_size, Status::not_finite, Status::out_of_range}) {
    EXPECT_GT(storm.statuses[static_cast<std::size_t>(s)], 10) << to_string(s);
    EXPECT_GT(storm.load_statuses[static_cast<std::size_t>(s)], 10) << to_string(s);
  }
  EXPECT_GT(storm.touched, 100);
  EXPECT_LT(storm.touched, cycles - 100);
  EXPECT_GT(storm.estimates, 100);
}

TEST_P(RealTime, MakesNoSystemCallWhateverHappens) {
  if (!support::allocations_are_counted) GTEST_SKIP() << "a sanitizer makes calls of its own";
  const auto canary = support::run_without_system_calls([] { (void)getppid(); });
  if (!canary) GTEST_SKIP() << "seccomp is not available";
  ASSERT_TRUE(WIFSIGNALED(*canary)) << "a system call went unnoticed";
  Storm storm(GetParam());
  const auto status = support::run_without_system_calls([&] { storm.run(cycles); });
  ASSERT_TRUE(status);
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 0)
      << "ended by signal " << WTERMSIG(*status);
}

}  // namespace
