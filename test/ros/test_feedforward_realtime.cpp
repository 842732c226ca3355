// SPDX-License-Identifier: Apache-2.0
/// A cycle of the FeedforwardController takes no memory, waits for no lock and throws nothing: in
/// every law, with every fault, while publishers, services, topics and parameters are at work.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <typeinfo>

#include "controller_rig.hpp"
#include "support/allocation_guard.hpp"

// --- What a thread must not do -------------------------------------------------------------------

namespace {

thread_local long locks_waited_for = 0;
thread_local long exceptions = 0;

template <class Function>
Function next_of(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// The libraries' functions are replaced for the whole program.
extern "C" {
int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static const auto next = next_of<int (*)(pthread_mutex_t*)>("pthread_mutex_lock");
  ++locks_waited_for;
  return next(mutex);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  static const auto next = next_of<int (*)(pthread_rwlock_t*)>("pthread_rwlock_rdlock");
  ++locks_waited_for;
  return next(lock);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  static const auto next = next_of<int (*)(pthread_rwlock_t*)>("pthread_rwlock_wrlock");
  ++locks_waited_for;
  return next(lock);
}
[[noreturn]] void __cxa_throw(void* thrown, void* type, void (*destroy)(void*)) {
  static const auto next = next_of<void (*)(void*, void*, void (*)(void*))>("__cxa_throw");
  ++exceptions;
  next(thrown, type, destroy);
  std::abort();
}
}

namespace {

using controller_interface::return_type;
using Eigen::VectorXd;
using support::nan;
using support::panda_ready;
using support::Rig;

/// What this thread has done since construction that a cycle must not do.
class Guard {
 public:
  [[nodiscard]] long allocations() const { return heap_.count(); }
  [[nodiscard]] long locks() const { return locks_waited_for - locks_; }
  [[nodiscard]] long thrown() const { return exceptions - exceptions_; }

 private:
  support::AllocationGuard heap_;
  long locks_ = locks_waited_for;
  long exceptions_ = exceptions;
};

TEST(Guard, CatchesWhatItShould) {
  if (!support::allocations_are_counted) GTEST_SKIP() << "the sanitizer has its own heap";
  const Guard guard;
  std::mutex mutex;
  { const std::lock_guard<std::mutex> lock(mutex); }
  EXPECT_EQ(guard.locks(), 1);
  { const std::unique_lock<std::mutex> lock(mutex, std::try_to_lock); }
  EXPECT_EQ(guard.locks(), 1);  // does not wait
  std::shared_mutex shared;
  { const std::shared_lock<std::shared_mutex> lock(shared); }
  { const std::unique_lock<std::shared_mutex> lock(shared); }
  EXPECT_EQ(guard.locks(), 3);
  const long before = guard.allocations();
  try {
    throw std::runtime_error("canary");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(guard.thrown(), 1);
  EXPECT_GT(guard.allocations(), before);
}

TEST(Guard, SeesIntoTheLibraries) {
  if (!support::allocations_are_counted) GTEST_SKIP() << "the sanitizer has its own heap";
  const rclcpp::Node node("canary");
  const Guard guard;
  EXPECT_THROW((void)node.get_parameter("undeclared"),
               rclcpp::exceptions::ParameterNotDeclaredException);
  EXPECT_GT(guard.locks(), 0);
  EXPECT_GT(guard.thrown(), 0);
  EXPECT_GT(guard.allocations(), 0);
}

/// Threads that do to a controller what a running system does: topics, services, parameters,
/// diagnostics.
class Traffic {
 public:
  explicit Traffic(Rig& rig)
      : node_(std::make_shared<rclcpp::Node>("traffic")),
        reference_(node_->create_publisher<trajectory_msgs::msg::JointTrajectoryPoint>(
            "/feedforward_controller/reference", rclcpp::SystemDefaultsQoS())),
        payload_(node_->create_client<realtime_dynamics::srv::SetPayload>(
            "/feedforward_controller/set_payload")),
        weigh_(node_->create_client<realtime_dynamics::srv::WeighLoad>(
            "/feedforward_controller/weigh_load")),
        state_(node_->create_subscription<control_msgs::msg::JointTrajectoryControllerState>(
            "/feedforward_controller/controller_state", rclcpp::SystemDefaultsQoS(),
            [this](const control_msgs::msg::JointTrajectoryControllerState&) { ++states; })) {
    executor_.add_node(rig.controller.get_node()->get_node_base_interface());
    executor_.add_node(node_);
    spinning_ = std::thread([this] { executor_.spin(); });
    working_ = std::thread([this, &rig] { work(rig); });
  }
  ~Traffic() {
    stop_ = true;
    working_.join();
    executor_.cancel();
    spinning_.join();
  }

  std::atomic<long> states{0};    ///< messages received
  std::atomic<long> requests{0};  ///< loads and parameters sent
  std::atomic<long> weighed{0};   ///< loads

 private:
  void work(Rig& rig) {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> unit(0.0, 1.0);
    while (!stop_) {
      trajectory_msgs::msg::JointTrajectoryPoint point;
      const VectorXd q = panda_ready() + VectorXd::Constant(7, 0.01 * unit(random));
      point.positions.assign(q.begin(), q.end());
      if (unit(random) < 0.1) point.positions[3] = nan;
      reference_->publish(point);

      auto request = std::make_shared<realtime_dynamics::srv::SetPayload::Request>();
      request->link = "panda_link8";
      request->mass = unit(random);
      request->transition_time = 0.01 * unit(random);
      if (payload_->service_is_ready()) payload_->async_send_request(request);

      auto weigh = std::make_shared<realtime_dynamics::srv::WeighLoad::Request>();
      weigh->start = requests % 10 == 0;
      weigh->apply = true;
      if (requests % 5 == 0 && weigh_->service_is_ready())
        weigh_->async_send_request(
            weigh, [this](rclcpp::Client<realtime_dynamics::srv::WeighLoad>::SharedFuture answer) {
              if (answer.get()->time > 0.0) ++weighed;
            });

      (void)rig.controller.get_node()->set_parameter(
          {"gains.panda_joint2.p", 40.0 + 20.0 * unit(random)});
      ++requests;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  rclcpp::Node::SharedPtr node_;
  rclcpp::Publisher<trajectory_msgs::msg::JointTrajectoryPoint>::SharedPtr reference_;
  rclcpp::Client<realtime_dynamics::srv::SetPayload>::SharedPtr payload_;
  rclcpp::Client<realtime_dynamics::srv::WeighLoad>::SharedPtr weigh_;
  rclcpp::Subscription<control_msgs::msg::JointTrajectoryControllerState>::SharedPtr state_;
  rclcpp::executors::SingleThreadedExecutor executor_;
  std::atomic<bool> stop_{false};
  std::thread spinning_, working_;
};

/// A cycle with a state, a reference and a period that are sometimes not usable.
class Disturbance {
 public:
  double prepare(Rig& rig) {
    VectorXd q = panda_ready() + VectorXd::Constant(7, 0.01 * unit_(random_));
    VectorXd v = VectorXd::Constant(7, unit_(random_));
    VectorXd a = VectorXd::Zero(7);
    rig.set_reference(q, v, a);
    const double what = unit_(random_);
    if (what < 0.02) rig.set_reference(VectorXd::Constant(7, nan), v, a);
    if (what > 0.02 && what < 0.04) rig.set_reference(q, VectorXd::Constant(7, 1e200), a);
    if (what > 0.04 && what < 0.06) rig.set_reference(q + VectorXd::Constant(7, 100.0), v, a);
    if (what > 0.06 && what < 0.08) q[2] = nan;
    if (what > 0.08 && what < 0.10) v[2] = std::numeric_limits<double>::infinity();
    rig.set_state(q, v);
    for (const std::string& joint : support::panda_joints())
      rig.set_state_interface(joint + "/effort", unit_(random_));
    rig.set_state_interface("observer/contact", what > 0.999 ? 1.0 : 0.0);
    if (what > 0.10 && what < 0.12) return 0.0;
    if (what > 0.12 && what < 0.14) return 5.0;
    return 1e-3;
  }

 private:
  std::mt19937 random_{11};
  std::uniform_real_distribution<double> unit_{0.0, 1.0};
};

class Cycles : public testing::TestWithParam<std::tuple<const char*, bool>> {};
INSTANTIATE_TEST_SUITE_P(Laws, Cycles,
                         testing::Combine(testing::Values("gravity_compensation", "feedforward",
                                                          "computed_torque", "passivity",
                                                          "pass_through"),
                                          testing::Bool()),
                         [](const auto& law) {
                           return std::string(std::get<0>(law.param)) +
                                  (std::get<1>(law.param) ? "_chained" : "_on_its_own");
                         });

TEST_P(Cycles, TakeNoMemoryWaitForNoLockAndThrowNothing) {
  if (!support::allocations_are_counted) GTEST_SKIP() << "the sanitizer has its own heap";
  const auto [mode, chained] = GetParam();
  auto parameters = Rig::panda(mode);
  parameters.emplace_back("state_publish_rate", 1000.0);
  parameters.emplace_back("max_held_cycles", 1);
  parameters.emplace_back("contact.observer", "observer");
  parameters.emplace_back("contact.reaction", chained ? "float" : "none");
  Rig rig(parameters);
  ASSERT_TRUE(rig.start(panda_ready(), chained));
  Traffic traffic(rig);
  Disturbance disturbance;
  long allocations = 0, locks = 0, thrown = 0, faults = 0;
  for (int k = 0; k < 100000; ++k) {
    const double period = disturbance.prepare(rig);
    const auto length = rclcpp::Duration::from_seconds(period);
    rig.time += length;
    const Guard guard;
    const return_type result = rig.controller.update(rig.time, length);
    allocations += guard.allocations();
    locks += guard.locks();
    thrown += guard.thrown();
    ASSERT_TRUE(rig.effort().allFinite());
    if (result == return_type::OK) continue;
    ++faults;
    ASSERT_TRUE(rig.deactivate());
    ASSERT_EQ(rig.effort(), VectorXd::Zero(7));
    rig.set_state(panda_ready(), VectorXd::Zero(7));
    ASSERT_TRUE(rig.activate());
  }
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(locks, 0);
  EXPECT_EQ(thrown, 0);
  // All of it was at work.
  EXPECT_GT(faults, 10);
  EXPECT_GT(traffic.states, 10);
  EXPECT_GT(traffic.requests, 10);
  EXPECT_GT(traffic.weighed, 0);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  rclcpp::init(argc, argv);
  const int result = RUN_ALL_TESTS();
  rclcpp::shutdown();
  return result;
}
