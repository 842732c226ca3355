// SPDX-License-Identifier: Apache-2.0
// The dynamics server in this process: every service against the core's own numbers, every refusal,
// descriptions that come late, change or are bad, partial joint states, references, and a flood of
// calls.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <limits>
#include <mutex>
#include <rclcpp/rclcpp.hpp>
#include <sstream>
#include <thread>

#include "dynamics_core/batch.hpp"
#include "dynamics_core/families.hpp"
#include "dynamics_core/load.hpp"
#include "dynamics_core/regressor.hpp"
#include "realtime_dynamics/dynamics_server.hpp"
#include "realtime_dynamics/srv/compute_forward_dynamics.hpp"
#include "realtime_dynamics/srv/compute_inverse_dynamics.hpp"
#include "realtime_dynamics/srv/get_coriolis.hpp"
#include "realtime_dynamics/srv/get_forward_dynamics_derivatives.hpp"
#include "realtime_dynamics/srv/get_gravity.hpp"
#include "realtime_dynamics/srv/get_inverse_dynamics_derivatives.hpp"
#include "realtime_dynamics/srv/get_jacobian.hpp"
#include "realtime_dynamics/srv/get_mass_matrix.hpp"
#include "realtime_dynamics/srv/get_regressor.hpp"

namespace {

using namespace std::chrono_literals;
using namespace dynamics_core;
using namespace realtime_dynamics;
using sensor_msgs::msg::JointState;
using testing::AllOf;
using testing::HasSubstr;
using trajectory_msgs::msg::JointTrajectory;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr auto patience = 20s;  // for what must happen; the machine may be busy

std::string read(const std::string& name) {
  std::ifstream file(RD_SOURCE_DIR "/config/robots/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const std::string panda = read("panda.urdf");
const std::string humanoid = read("humanoid.urdf");
const std::vector<std::string> panda_joints = {"panda_joint1", "panda_joint2", "panda_joint3",
                                               "panda_joint4", "panda_joint5", "panda_joint6",
                                               "panda_joint7"};

/// Numbers that differ from each other, between −1 and 1.
std::vector<double> numbers(std::size_t n, double start) {
  std::vector<double> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = std::sin(start + 1.7 * static_cast<double>(i));
  return out;
}

/// Keeps the messages of a topic, with a queue so deep that none gets lost on a busy machine.
template <class Message>
class Inbox {
 public:
  Inbox(rclcpp::Node& node, const std::string& topic)
      : subscription_(node.create_subscription<Message>(
            topic, 10000, [received = received_](const Message& message) {
              const std::lock_guard lock(received->mutex);
              received->last = message;
              ++received->count;
            })) {}

  [[nodiscard]] std::size_t count() const {
    const std::lock_guard lock(received_->mutex);
    return received_->count;
  }
  [[nodiscard]] Message last() const {
    const std::lock_guard lock(received_->mutex);
    return received_->last;
  }

 private:
  /// A callback may still be at work when the inbox is gone: the node is spun by another thread.
  struct Received {
    std::mutex mutex;
    Message last;
    std::size_t count = 0;
  };
  std::shared_ptr<Received> received_ = std::make_shared<Received>();
  typename rclcpp::Subscription<Message>::SharedPtr subscription_;
};

/// A node that is spun in a thread of its own.
class Spun {
 public:
  Spun(rclcpp::Node::SharedPtr node, std::size_t threads) : executor_({}, threads) {
    executor_.add_node(node);
    thread_ =
        std::thread([this] { executor_.spin_until_future_complete(stop_.get_future().share()); });
  }
  ~Spun() {
    stop_.set_value();
    executor_.cancel();
    thread_.join();
  }

 private:
  rclcpp::executors::MultiThreadedExecutor executor_;
  std::promise<void> stop_;
  std::thread thread_;
};

/// Ticks like a timer, in a thread that does nothing else: what the machine has time for.
class Metronome {
 public:
  explicit Metronome(std::chrono::nanoseconds period)
      : thread_([this, period] {
          auto next = std::chrono::steady_clock::now();
          while (!stop_) {
            for (next += period; next < std::chrono::steady_clock::now();) next += period;
            std::this_thread::sleep_until(next);
            ++count_;
          }
        }) {}
  ~Metronome() {
    stop_ = true;
    thread_.join();
  }
  [[nodiscard]] int count() const { return count_; }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> count_{0};
  std::thread thread_;
};

class DynamicsServerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { rclcpp::init(0, nullptr); }
  static void TearDownTestSuite() { rclcpp::shutdown(); }

  void start(const std::vector<rclcpp::Parameter>& parameters, std::size_t threads = 3) {
    server =
        std::make_shared<DynamicsServer>(rclcpp::NodeOptions().parameter_overrides(parameters));
    server_spun = std::make_unique<Spun>(server, threads);
    user = std::make_shared<rclcpp::Node>("user");
    joint_states = user->create_publisher<JointState>("joint_states", 10);
    reference = user->create_publisher<JointTrajectory>("dynamics_server/reference", 10);
    description = user->create_publisher<std_msgs::msg::String>("robot_description",
                                                                rclcpp::QoS(1).transient_local());
    feedforward = std::make_unique<Inbox<JointState>>(*user, "dynamics_server/feedforward");
    user_spun = std::make_unique<Spun>(user, 2);
  }
  void start_with(const std::string& urdf) {
    start({rclcpp::Parameter("robot_description", urdf)});
  }

  void TearDown() override {
    user_spun.reset();
    server_spun.reset();
  }

  [[nodiscard]] static bool eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(5ms);
    }
    return true;
  }

  template <class Service>
  typename Service::Response call(
      const std::string& name,
      const typename Service::Request& request = typename Service::Request()) {
    auto client = user->create_client<Service>("dynamics_server/" + name);
    if (!client->wait_for_service(patience)) throw std::runtime_error("no service " + name);
    auto future = client->async_send_request(std::make_shared<typename Service::Request>(request));
    if (future.wait_for(patience) != std::future_status::ready)
      throw std::runtime_error("no answer from " + name);
    return *future.get();
  }

  /// Publishes until the server has taken it over.
  void tell(const std::vector<std::string>& names, const std::vector<double>& positions,
            const std::vector<double>& velocities = {}) {
    JointState message;
    message.name = names;
    message.position = positions;
    message.velocity = velocities;
    srv::GetGravity::Request request;
    request.joint_names = names;
    ASSERT_TRUE(eventually([&] {
      joint_states->publish(message);
      std::this_thread::sleep_for(10ms);
      return call<srv::GetGravity>("get_gravity", request).success;
    }));
  }

  std::shared_ptr<DynamicsServer> server;
  std::unique_ptr<Spun> server_spun;
  rclcpp::Node::SharedPtr user;
  std::unique_ptr<Spun> user_spun;
  rclcpp::Publisher<JointState>::SharedPtr joint_states;
  rclcpp::Publisher<JointTrajectory>::SharedPtr reference;
  rclcpp::Publisher<std_msgs::msg::String>::SharedPtr description;
  std::unique_ptr<Inbox<JointState>> feedforward;
};

/// Any request with names and positions.
template <class Request>
Request at(std::vector<std::string> names, std::vector<double> positions) {
  Request request;
  request.joint_names = std::move(names);
  request.positions = std::move(positions);
  return request;
}

struct Case {
  const char* name;
  const std::string& urdf;
  std::vector<std::string> joints;
};
void PrintTo(const Case& robot, std::ostream* out) { *out << robot.name; }

class ServiceTest : public DynamicsServerTest, public testing::WithParamInterface<Case> {};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Robots, ServiceTest,
                         testing::Values(Case{"panda", panda, panda_joints},
                                         Case{"humanoid_arm",
                                              humanoid,
                                              {"left_elbow_pitch_joint", "left_shoulder_yaw_joint",
                                               "waist_yaw_joint"}}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(ServiceTest, GivesTheNumbersOfTheCore) {
  start_with(GetParam().urdf);
  const std::vector<std::string>& names = GetParam().joints;
  const std::size_t n = names.size();
  constexpr std::size_t k = 3;
  const Model model = load_urdf_string(GetParam().urdf);
  const JointStates latest(model);
  const Batch batch(model, latest);
  BatchQuery query;
  query.joint_names = names;
  query.positions = numbers(k * n, 0.1);
  query.velocities = numbers(k * n, 0.2);
  query.accelerations = numbers(k * n, 0.3);
  const auto expect = [&](const auto& response, const BatchAnswer& answer) {
    EXPECT_TRUE(response.success) << response.message;
    EXPECT_EQ(response.message, "");
    EXPECT_EQ(response.joint_names, names);
    EXPECT_EQ(response.configurations, answer.configurations);
  };
  const auto expect_matrix = [&](const auto& response, const BatchAnswer& answer) {
    expect(response, answer);
    EXPECT_EQ(response.rows, answer.rows);
    EXPECT_EQ(response.columns, answer.columns);
  };

  const auto M = call<srv::GetMassMatrix>("get_mass_matrix",
                                          at<srv::GetMassMatrix::Request>(names, query.positions));
  expect_matrix(M, batch.mass_matrix(query));
  EXPECT_EQ(M.mass_matrices, batch.mass_matrix(query).data);

  const auto g =
      call<srv::GetGravity>("get_gravity", at<srv::GetGravity::Request>(names, query.positions));
  expect(g, batch.gravity(query));
  EXPECT_EQ(g.efforts, batch.gravity(query).data);

  for (const bool christoffel : {false, true}) {
    auto request = at<srv::GetCoriolis::Request>(names, query.positions);
    request.velocities = query.velocities;
    request.christoffel = christoffel;
    const auto C = call<srv::GetCoriolis>("get_coriolis", request);
    const BatchAnswer answer = batch.coriolis(
        query, christoffel ? CoriolisFactor::christoffel : CoriolisFactor::recursive);
    expect_matrix(C, answer);
    EXPECT_EQ(C.coriolis_matrices, answer.data);
  }

  auto jacobian = at<srv::GetJacobian::Request>(names, query.positions);
  const auto J = call<srv::GetJacobian>("get_jacobian", jacobian);
  expect_matrix(J, batch.jacobian(query, ""));
  EXPECT_EQ(J.jacobians, batch.jacobian(query, "").data);
  EXPECT_EQ(J.link, model.links[static_cast<std::size_t>(tip_link(model))].name);
  jacobian.link = model.links[3].name;
  jacobian.axes = srv::GetJacobian::Request::LINK;
  jacobian.point.x = 0.1;
  jacobian.point.y = 0.2;
  jacobian.point.z = 0.3;
  EXPECT_EQ(call<srv::GetJacobian>("get_jacobian", jacobian).jacobians,
            batch.jacobian(query, model.links[3].name, JacobianAxes::link, {0.1, 0.2, 0.3}).data);

  auto regressor = at<srv::GetRegressor::Request>(names, query.positions);
  regressor.velocities = query.velocities;
  regressor.accelerations = query.accelerations;
  const auto Y = call<srv::GetRegressor>("get_regressor", regressor);
  expect_matrix(Y, batch.regressor(query));
  EXPECT_EQ(Y.regressors, batch.regressor(query).data);
  EXPECT_EQ(Y.parameter_names, parameter_names(model));
  EXPECT_EQ(Y.parameters, batch.parameters());

  // With everything that can be added.
  const std::string link = model.links.back().name;
  query.wrenches = {{link, {{0.1, 0.2, 0.3}, {4.0, 5.0, 6.0}}}};
  query.payloads = {{link, {2.0, {0.01, 0.02, 0.03}, {0.1, 0.001, 0.002, 0.2, 0.003, 0.25}}}};
  query.friction = true;
  const auto add_surroundings = [&](auto& request) {
    msg::LinkWrench on;
    on.link = link;
    on.wrench.torque.x = 0.1;
    on.wrench.torque.y = 0.2;
    on.wrench.torque.z = 0.3;
    on.wrench.force.x = 4.0;
    on.wrench.force.y = 5.0;
    on.wrench.force.z = 6.0;
    request.wrenches = {on};
    msg::LinkPayload load;
    load.link = link;
    load.inertia.m = 2.0;
    load.inertia.com.x = 0.01;
    load.inertia.com.y = 0.02;
    load.inertia.com.z = 0.03;
    load.inertia.ixx = 0.1;
    load.inertia.ixy = 0.001;
    load.inertia.ixz = 0.002;
    load.inertia.iyy = 0.2;
    load.inertia.iyz = 0.003;
    load.inertia.izz = 0.25;
    request.payloads = {load};
  };
  auto inverse = at<srv::ComputeInverseDynamics::Request>(names, query.positions);
  inverse.velocities = query.velocities;
  inverse.accelerations = query.accelerations;
  inverse.include_friction = true;
  add_surroundings(inverse);
  const auto tau = call<srv::ComputeInverseDynamics>("compute_inverse_dynamics", inverse);
  expect(tau, batch.inverse_dynamics(query));
  EXPECT_EQ(tau.efforts, batch.inverse_dynamics(query).data);

  auto forward = at<srv::ComputeForwardDynamics::Request>(names, query.positions);
  forward.velocities = query.velocities;
  forward.efforts = query.efforts = tau.efforts;
  forward.include_friction = true;
  add_surroundings(forward);
  const auto qdd = call<srv::ComputeForwardDynamics>("compute_forward_dynamics", forward);
  expect(qdd, batch.forward_dynamics(query));
  EXPECT_EQ(qdd.accelerations, batch.forward_dynamics(query).data);
  for (std::size_t i = 0; i < k * n; ++i)  // there and back
    EXPECT_NEAR(qdd.accelerations[i], inverse.accelerations[i], 1e-9);

  auto of_efforts = at<srv::GetInverseDynamicsDerivatives::Request>(names, query.positions);
  of_efforts.velocities = query.velocities;
  of_efforts.accelerations = query.accelerations;
  add_surroundings(of_efforts);
  const auto dtau =
      call<srv::GetInverseDynamicsDerivatives>("get_inverse_dynamics_derivatives", of_efforts);
  const auto expected_dtau = batch.inverse_dynamics_derivatives(query);
  expect_matrix(dtau, expected_dtau.by_positions);
  EXPECT_EQ(dtau.by_positions, expected_dtau.by_positions.data);
  EXPECT_EQ(dtau.by_velocities, expected_dtau.by_velocities.data);
  EXPECT_EQ(dtau.by_accelerations, expected_dtau.by_input.data);

  auto of_accelerations = at<srv::GetForwardDynamicsDerivatives::Request>(names, query.positions);
  of_accelerations.velocities = query.velocities;
  of_accelerations.efforts = query.efforts;
  add_surroundings(of_accelerations);
  const auto da = call<srv::GetForwardDynamicsDerivatives>("get_forward_dynamics_derivatives",
                                                           of_accelerations);
  const auto expected_da = batch.forward_dynamics_derivatives(query);
  expect_matrix(da, expected_da.by_positions);
  EXPECT_EQ(da.by_positions, expected_da.by_positions.data);
  EXPECT_EQ(da.by_velocities, expected_da.by_velocities.data);
  EXPECT_EQ(da.by_efforts, expected_da.by_input.data);
}

TEST_F(DynamicsServerTest, TakesTheLatestJointStateForAnEmptyConfiguration) {
  start_with(panda);
  EXPECT_THAT(call<srv::GetMassMatrix>("get_mass_matrix").message,
              HasSubstr("joint 'panda_joint1' has not been in any joint state yet"));
  const std::vector<double> q = numbers(7, 0.5);
  const std::vector<double> v = numbers(7, 0.6);
  tell(panda_joints, q, v);
  const auto explicitly = at<srv::GetMassMatrix::Request>(panda_joints, q);
  EXPECT_EQ(call<srv::GetMassMatrix>("get_mass_matrix").mass_matrices,
            call<srv::GetMassMatrix>("get_mass_matrix", explicitly).mass_matrices);
  auto moving = at<srv::GetCoriolis::Request>(panda_joints, q);
  moving.velocities = v;
  EXPECT_EQ(call<srv::GetCoriolis>("get_coriolis").coriolis_matrices,
            call<srv::GetCoriolis>("get_coriolis", moving).coriolis_matrices);
  // The joints that are not named stay there.
  const auto part = at<srv::GetGravity::Request>({"panda_joint3"}, {q[2]});
  EXPECT_EQ(call<srv::GetGravity>("get_gravity", part).efforts,
            std::vector<double>{call<srv::GetGravity>("get_gravity").efforts[2]});
}

TEST_F(DynamicsServerTest, RefusesBadRequestsAndGoesOn) {
  start({rclcpp::Parameter("robot_description", panda), rclcpp::Parameter("max_configurations", 5),
         rclcpp::Parameter("max_values", 1000)});
  using Request = srv::ComputeInverseDynamics::Request;
  const auto message = [this](const Request& request) {
    const auto response = call<srv::ComputeInverseDynamics>("compute_inverse_dynamics", request);
    EXPECT_FALSE(response.success);
    EXPECT_TRUE(response.efforts.empty());
    return response.message;
  };
  const std::vector<double> q(7, 0.0);
  EXPECT_THAT(message(at<Request>({"elbow"}, {0.0})),
              AllOf(HasSubstr("'elbow'"), HasSubstr("panda_joint7")));
  EXPECT_THAT(message(at<Request>({"panda_joint1", "panda_joint1"}, {0.0, 0.0})),
              HasSubstr("'panda_joint1' is named twice"));
  EXPECT_THAT(message(at<Request>({}, {0.0, 0.0})),
              HasSubstr("positions has 2 values, which is no multiple of the number of joints; "
                        "give 7"));
  EXPECT_THAT(message(at<Request>({}, {0, 0, 0, not_a_number, 0, 0, 0})),
              HasSubstr("positions[3] (configuration 0, joint 'panda_joint4') is nan"));
  EXPECT_THAT(message(at<Request>({}, std::vector<double>(42, 0.0))),
              HasSubstr("6 configurations are more than max_configurations, 5"));
  auto request = at<Request>({}, q);
  request.velocities = std::vector<double>(14, 0.0);
  EXPECT_THAT(message(request), HasSubstr("velocities has 2 configurations, but positions has 1"));
  request = at<Request>({}, q);
  request.accelerations = {1.0, 2.0};
  EXPECT_THAT(message(request), HasSubstr("accelerations has 2 values"));
  request = at<Request>({}, q);
  request.wrenches.resize(1);
  request.wrenches[0].link = "hand";
  EXPECT_THAT(message(request), HasSubstr("link 'hand' is not a link of robot 'panda'"));
  request.wrenches[0].link = "panda_link8";
  request.wrenches[0].wrench.force.x = not_a_number;
  EXPECT_THAT(message(request), HasSubstr("wrench on link 'panda_link8'"));
  request = at<Request>({}, q);
  request.payloads.resize(1);
  request.payloads[0].inertia.m = -1.0;
  EXPECT_THAT(message(request), HasSubstr("payload.mass = -1: "));

  auto jacobian = at<srv::GetJacobian::Request>({}, q);
  jacobian.link = "hand";
  EXPECT_THAT(call<srv::GetJacobian>("get_jacobian", jacobian).message, HasSubstr("link 'hand'"));
  jacobian.link = "";
  jacobian.axes = 7;
  EXPECT_THAT(call<srv::GetJacobian>("get_jacobian", jacobian).message,
              HasSubstr("axes is 7; give WORLD (0) or LINK (1)"));
  jacobian.axes = 0;
  jacobian.point.y = not_a_number;
  EXPECT_THAT(call<srv::GetJacobian>("get_jacobian", jacobian).message, HasSubstr("point"));
  const auto large = at<srv::GetRegressor::Request>({}, std::vector<double>(35, 0.0));
  EXPECT_THAT(call<srv::GetRegressor>("get_regressor", large).message,
              HasSubstr("5 configurations of 490 values each are more than max_values, 1000"));

  EXPECT_TRUE(
      call<srv::ComputeInverseDynamics>("compute_inverse_dynamics", at<Request>({}, q)).success);
}

TEST_F(DynamicsServerTest, SaysWhyThereIsNoRobot) {
  start({});
  const auto expect = [](const auto& response) {
    EXPECT_FALSE(response.success);
    EXPECT_EQ(response.message,
              "no robot_description yet; publish it on /robot_description or set the parameter "
              "robot_description");
  };
  expect(call<srv::GetMassMatrix>("get_mass_matrix"));
  expect(call<srv::ComputeInverseDynamics>("compute_inverse_dynamics"));
  expect(call<srv::ComputeForwardDynamics>("compute_forward_dynamics"));
  expect(call<srv::GetGravity>("get_gravity"));
  expect(call<srv::GetCoriolis>("get_coriolis"));
  expect(call<srv::GetJacobian>("get_jacobian"));
  expect(call<srv::GetRegressor>("get_regressor"));
}

TEST_F(DynamicsServerTest, StaysUpWithABadDescription) {
  start_with("<robot name='broken'><link name='a'/><joint name='j' type='revolute'/></robot>");
  const auto response = call<srv::GetGravity>("get_gravity");
  EXPECT_FALSE(response.success);
  EXPECT_THAT(response.message, AllOf(HasSubstr("robot_description: "), HasSubstr("joint 'j'")));
}

TEST_F(DynamicsServerTest, TakesADescriptionThatComesLateAndThoseThatFollow) {
  start({});
  const auto publish = [this](const std::string& urdf) {
    std_msgs::msg::String message;
    message.data = urdf;
    description->publish(message);
  };
  const auto gravity = [this] {
    return call<srv::GetGravity>("get_gravity",
                                 at<srv::GetGravity::Request>({"panda_joint2"}, {0.5}));
  };
  publish("<robot");
  ASSERT_TRUE(eventually([&] { return gravity().message.find("robot_description: ") == 0; }))
      << gravity().message;
  publish(panda);
  ASSERT_TRUE(eventually([&] { return gravity().success; }));
  const std::vector<double> before = gravity().efforts;
  tell(panda_joints, numbers(7, 0.1));

  // The same one again keeps what has been heard, a bad one the robot as well.
  const std::vector<double> heard = gravity().efforts;
  EXPECT_NE(heard, before);
  publish(panda);
  publish("<robot name='bad'/>");
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(gravity().efforts, heard);

  // Another one replaces it.
  publish(humanoid);
  ASSERT_TRUE(eventually([&] { return !gravity().success; }));
  EXPECT_THAT(gravity().message, HasSubstr("robot 'humanoid'"));
}

TEST_F(DynamicsServerTest, KeepsTheDescriptionOfTheParameter) {
  start_with(panda);
  std_msgs::msg::String message;
  message.data = humanoid;
  description->publish(message);
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(user->count_subscribers("/robot_description"), 0u);
  EXPECT_TRUE(call<srv::GetGravity>("get_gravity",
                                    at<srv::GetGravity::Request>(panda_joints, numbers(7, 0.0)))
                  .success);
}

TEST_F(DynamicsServerTest, TakesGravityFromItsParameter) {
  start({rclcpp::Parameter("robot_description", panda),
         rclcpp::Parameter("gravity", std::vector<double>{0.0, 0.0, 0.0})});
  EXPECT_EQ(call<srv::GetGravity>("get_gravity", at<srv::GetGravity::Request>({}, numbers(7, 0.1)))
                .efforts,
            std::vector<double>(7, 0.0));
}

TEST_F(DynamicsServerTest, RefusesParametersOutOfRange) {
  const auto construct = [](const rclcpp::Parameter& parameter) {
    DynamicsServer refused(rclcpp::NodeOptions().parameter_overrides({parameter}));
  };
  EXPECT_ANY_THROW(construct(rclcpp::Parameter("publish_rate", -1.0)));
  EXPECT_ANY_THROW(construct(rclcpp::Parameter("gravity", std::vector<double>{0.0, -9.81})));
  EXPECT_ANY_THROW(construct(rclcpp::Parameter("reference_timeout", 0.0)));
  EXPECT_ANY_THROW(construct(rclcpp::Parameter("max_configurations", 0)));
  EXPECT_ANY_THROW(construct(rclcpp::Parameter("max_values", 0)));
}

TEST_F(DynamicsServerTest, PublishesOnceAllJointsHaveBeenSeen) {
  start_with(panda);
  const Inbox<JointState> gravity(*user, "dynamics_server/gravity");
  const Inbox<msg::JointSpaceMatrix> mass(*user, "dynamics_server/mass_matrix");
  const std::vector<double> q = numbers(7, 0.7);
  const std::vector<double> v = numbers(7, 0.8);
  // Half of them, and things that are not the robot's.
  tell({"panda_joint4", "panda_joint2", "panda_joint1"}, {q[3], q[1], q[0]}, {v[3], v[1], v[0]});
  JointState other;
  other.name = {"wheel", "panda_joint3"};
  other.position = {3.0, not_a_number};
  joint_states->publish(other);
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(feedforward->count(), 0u);
  tell({"panda_joint7", "panda_joint6", "panda_joint3", "panda_joint5"}, {q[6], q[5], q[2], q[4]},
       {v[6], v[5], v[2], v[4]});
  ASSERT_TRUE(eventually(
      [&] { return feedforward->count() > 0 && gravity.count() > 0 && mass.count() > 0; }));

  const Model model = load_urdf_string(panda);
  const JointStates latest(model);
  const Batch batch(model, latest);
  BatchQuery query;
  query.positions = q;
  query.velocities = v;
  const std::vector<double> tau = batch.inverse_dynamics(query).data;
  ASSERT_TRUE(eventually([&] { return feedforward->last().effort == tau; }));
  EXPECT_EQ(feedforward->last().name, panda_joints);
  EXPECT_EQ(feedforward->last().position, q);
  EXPECT_EQ(feedforward->last().velocity, v);
  EXPECT_EQ(gravity.last().name, panda_joints);
  EXPECT_EQ(gravity.last().effort, batch.gravity(query).data);
  EXPECT_EQ(mass.last().joint_names, panda_joints);
  EXPECT_EQ(mass.last().data, batch.mass_matrix(query).data);
  EXPECT_GT(rclcpp::Time(mass.last().header.stamp).nanoseconds(), 0);

  // What is not finite changes nothing.
  joint_states->publish(other);
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(feedforward->last().effort, tau);
  // Nor does a state that no number can hold get out.
  JointState wild;
  wild.name = {"panda_joint1"};
  wild.position = {q[0]};
  wild.velocity = {1e300};
  joint_states->publish(wild);
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(feedforward->last().effort, tau);
}

TEST_F(DynamicsServerTest, PublishesNothingAtRateZero) {
  start({rclcpp::Parameter("robot_description", panda), rclcpp::Parameter("publish_rate", 0.0)});
  tell(panda_joints, numbers(7, 0.1));
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(feedforward->count(), 0u);
}

TEST_F(DynamicsServerTest, FollowsAReferenceUntilItIsOld) {
  start(
      {rclcpp::Parameter("robot_description", panda), rclcpp::Parameter("reference_timeout", 1.0)});
  const std::vector<double> q = numbers(7, 0.4);
  tell(panda_joints, q);
  const Model model = load_urdf_string(panda);
  const JointStates latest(model);
  const Batch batch(model, latest);
  BatchQuery query;
  query.positions = q;
  const std::vector<double> at_state = batch.inverse_dynamics(query).data;
  ASSERT_TRUE(eventually([&] { return feedforward->last().effort == at_state; }));

  // What is bad changes nothing.
  JointTrajectory bad;
  const auto publish_bad = [&] {
    reference->publish(bad);
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(feedforward->last().effort, at_state);
  };
  publish_bad();  // empty
  bad.joint_names = {"panda_joint2"};
  bad.points.resize(2);
  for (auto& point : bad.points) point.positions = {0.3};
  publish_bad();  // two points
  bad.points.resize(1);
  bad.joint_names = {"elbow"};
  publish_bad();  // unknown
  bad.joint_names = {"panda_joint2"};
  bad.points[0].positions = {0.3, 0.4};
  publish_bad();  // too many
  bad.points[0].positions = {not_a_number};
  publish_bad();
  bad.points[0].positions = {0.3};
  bad.points[0].accelerations = {not_a_number};
  publish_bad();

  // A part of the joints, the others where they are.
  JointTrajectory message;
  message.joint_names = {"panda_joint6", "panda_joint2"};
  message.points.resize(1);
  message.points[0].positions = {0.9, -0.3};
  message.points[0].velocities = {0.1, 0.2};
  message.points[0].accelerations = {1.0, 2.0};
  query.velocities = query.accelerations = std::vector<double>(7, 0.0);
  query.positions[5] = 0.9;
  query.positions[1] = -0.3;
  query.velocities[5] = 0.1;
  query.velocities[1] = 0.2;
  query.accelerations[5] = 1.0;
  query.accelerations[1] = 2.0;
  const std::vector<double> at_reference = batch.inverse_dynamics(query).data;
  ASSERT_TRUE(eventually([&] {
    reference->publish(message);
    return feedforward->last().effort == at_reference;
  }));
  EXPECT_EQ(feedforward->last().name, panda_joints);
  ASSERT_TRUE(eventually([&] { return feedforward->last().effort == at_state; }));
}

TEST_F(DynamicsServerTest, IsNotDelayedByAFloodOfCalls) {
  constexpr double rate = 200.0;
  constexpr int clients = 20;
  constexpr int calls = 1000;
  // A single thread for the services, as in the plainest container: a large call blocks all others.
  start({rclcpp::Parameter("robot_description", panda), rclcpp::Parameter("publish_rate", rate)},
        1);
  tell(panda_joints, numbers(7, 0.1));
  ASSERT_TRUE(eventually([&] { return feedforward->count() > 0; }));

  // Every client has a call on its way all the time, small ones and now and then a large one. Each
  // client's queue receives the answers to all of them, so it must be deeper than their number.
  auto crowd = std::make_shared<rclcpp::Node>("crowd");
  const Spun crowd_spun(crowd, 2);
  const Model model = load_urdf_string(panda);
  const JointStates latest(model);
  const std::vector<std::size_t> sizes = {1, 100, 10'000};
  using Forward = srv::ComputeForwardDynamics;
  std::vector<std::shared_ptr<Forward::Request>> requests;
  std::vector<std::vector<double>> expected;
  for (const std::size_t k : sizes) {
    BatchQuery query;
    query.positions = numbers(7 * k, 0.3);
    query.velocities = numbers(7 * k, 0.4);
    query.efforts = numbers(7 * k, 0.5);
    auto request = std::make_shared<Forward::Request>(at<Forward::Request>({}, query.positions));
    request->velocities = query.velocities;
    request->efforts = query.efforts;
    requests.push_back(request);
    expected.push_back(Batch(model, latest).forward_dynamics(query).data);
  }
  std::atomic<int> right{0};
  std::atomic<int> answered{0};
  std::vector<rclcpp::Client<Forward>::SharedPtr> crowd_clients;
  std::function<void(std::size_t, int)> ask = [&](std::size_t client, int number) {
    const std::size_t size = number % 50 == 0 ? 2 : static_cast<std::size_t>(number % 2);
    crowd_clients[client]->async_send_request(
        requests[size], [&, client, number, size](rclcpp::Client<Forward>::SharedFuture future) {
          right += future.get()->success && future.get()->accelerations == expected[size] ? 1 : 0;
          ++answered;
          if (number + 1 < calls) ask(client, number + 1);
        });
  };
  for (std::size_t i = 0; i < clients; ++i) {
    crowd_clients.push_back(crowd->create_client<Forward>(
        "dynamics_server/compute_forward_dynamics", rclcpp::ServicesQoS().keep_last(1000)));
    ASSERT_TRUE(crowd_clients.back()->wait_for_service(patience));
  }
  const std::size_t before = feedforward->count();
  const Metronome metronome(std::chrono::nanoseconds(static_cast<int>(1e9 / rate)));
  const auto start_time = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < clients; ++i) ask(i, 0);
  while (answered < clients * calls &&
         std::chrono::steady_clock::now() - start_time < std::chrono::minutes(5))
    std::this_thread::sleep_for(10ms);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_time;
  const int ticks = metronome.count();
  const auto published = static_cast<int>(feedforward->count() - before);
  RecordProperty("seconds", std::to_string(elapsed.count()));
  RecordProperty("published", published);
  RecordProperty("ticks", ticks);
  EXPECT_EQ(answered, clients * calls);
  EXPECT_EQ(right, clients * calls);
  // Where the machine has no time for a thread that does next to nothing, it says nothing of ours.
  if (ticks > 0.8 * rate * elapsed.count()) {
    EXPECT_GT(published, 0.8 * ticks) << "over " << elapsed.count() << " s";
  }
  EXPECT_GT(published, 0.5 * ticks) << "over " << elapsed.count() << " s";
}
