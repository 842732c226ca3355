// SPDX-License-Identifier: Apache-2.0
/// The simulated robot as the controller manager sees it: loaded by name through a ResourceManager
/// from the text of a URDF, and compared with the core's own SimulatedRobot.

#include "realtime_dynamics/simulated_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rcutils/logging.h>

#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <future>
#include <hardware_interface/resource_manager.hpp>
#include <lifecycle_msgs/msg/state.hpp>
#include <map>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <std_srvs/srv/set_bool.hpp>
#include <string>
#include <thread>
#include <vector>

#include "dynamics_core/simulation/simulation_setup.hpp"
#include "realtime_dynamics/srv/set_payload.hpp"

// Last, as it replaces functions that the headers before it declare.
#include "support/allocation_guard.hpp"

namespace {

using dynamics_core::simulation::SimulatedRobot;
using dynamics_core::simulation::SimulationSetup;
using hardware_interface::LoanedCommandInterface;
using hardware_interface::return_type;
using lifecycle_msgs::msg::State;
using realtime_dynamics::SimulatedSystem;
using realtime_dynamics::srv::SetPayload;
using std_srvs::srv::SetBool;
using testing::HasSubstr;

constexpr double dt = 1e-3;
const rclcpp::Duration period = rclcpp::Duration::from_seconds(dt);

using Parameters = std::map<std::string, std::string>;

struct Joint {
  std::string name;
  std::vector<std::string> commands;
  std::vector<std::string> states = {"position", "velocity", "acceleration", "effort"};
  std::string initial_value = "";
  std::string attributes = "";
};

std::string inertial(double mass, const std::string& origin) {
  return "<inertial><origin xyz=\"" + origin + "\"/><mass value=\"" + std::to_string(mass) +
         "\"/><inertia ixx=\"0.02\" ixy=\"0\" ixz=\"0\" iyy=\"0.02\" iyz=\"0\" izz=\"0.02\"/>"
         "</inertial>";
}

/// Two revolute joints with horizontal axes, and a claw whose second finger mimics the first.
std::string robot(const std::string& block) {
  return "<robot name=\"arm\"><link name=\"base\"/>"
         "<link name=\"upper\">" +
         inertial(2.0, "0.2 0 0") + "</link><link name=\"fore\">" + inertial(1.0, "0.15 0 0") +
         "</link><link name=\"left\">" + inertial(0.1, "0 0 0") + "</link><link name=\"right\">" +
         inertial(0.1, "0 0 0") +
         "</link>"
         "<joint name=\"shoulder\" type=\"revolute\"><parent link=\"base\"/><child link=\"upper\"/>"
         "<axis xyz=\"0 1 0\"/><limit lower=\"-1\" upper=\"1.5\" effort=\"100\" velocity=\"5\"/>"
         "<dynamics damping=\"0.1\" friction=\"0.2\"/></joint>"
         "<joint name=\"elbow\" type=\"continuous\"><parent link=\"upper\"/><child link=\"fore\"/>"
         "<origin xyz=\"0.4 0 0\"/><axis xyz=\"0 1 0\"/><limit effort=\"50\" velocity=\"5\"/>"
         "</joint>"
         "<joint name=\"claw\" type=\"prismatic\"><parent link=\"fore\"/><child link=\"left\"/>"
         "<origin xyz=\"0.3 0 0\"/><axis xyz=\"0 1 0\"/>"
         "<limit lower=\"0.01\" upper=\"0.1\" effort=\"20\" velocity=\"1\"/></joint>"
         "<joint name=\"mirror\" type=\"prismatic\"><parent link=\"fore\"/><child link=\"right\"/>"
         "<origin xyz=\"0.3 0 0\"/><axis xyz=\"0 1 0\"/>"
         "<mimic joint=\"claw\" multiplier=\"-1\" offset=\"0.005\"/>"
         "<limit lower=\"-0.1\" upper=\"0\" effort=\"20\" velocity=\"1\"/></joint>" +
         block + "</robot>";
}

std::string urdf(const std::vector<Joint>& joints, const Parameters& parameters = {},
                 const std::string& more = "") {
  std::string block =
      "<ros2_control name=\"arm\" type=\"system\"><hardware>"
      "<plugin>realtime_dynamics/SimulatedSystem</plugin>";
  for (const auto& [name, value] : parameters)
    block += "<param name=\"" + name + "\">" + value + "</param>";
  block += "</hardware>";
  for (const Joint& joint : joints) {
    block += "<joint name=\"" + joint.name + "\" " + joint.attributes + ">";
    for (const std::string& name : joint.commands)
      block += "<command_interface name=\"" + name + "\"/>";
    for (const std::string& name : joint.states) {
      block += "<state_interface name=\"" + name + "\">";
      if (name == "position" && !joint.initial_value.empty())
        block += "<param name=\"initial_value\">" + joint.initial_value + "</param>";
      block += "</state_interface>";
    }
    block += "</joint>";
  }
  return robot(block + more + "</ros2_control>");
}

/// Declared in another order than the URDF's.
std::vector<Joint> arm(const std::string& shoulder = "0.2", const std::string& elbow = "-0.3") {
  const std::vector<std::string> all = {"position", "velocity", "effort"};
  Joint second{"elbow", all};
  second.initial_value = elbow;
  Joint first{"shoulder", all};
  first.initial_value = shoulder;
  return {second, first};
}

/// The errors that are logged while it lives.
class ErrorLog {
 public:
  ErrorLog() {
    text().clear();
    before_ = rcutils_logging_get_output_handler();
    rcutils_logging_set_output_handler(&ErrorLog::take);
  }
  ~ErrorLog() { rcutils_logging_set_output_handler(before_); }
  ErrorLog(const ErrorLog&) = delete;
  ErrorLog& operator=(const ErrorLog&) = delete;
  static std::string& text() {
    static std::string log;
    return log;
  }

 private:
  static void take(const rcutils_log_location_t* /*location*/, int severity, const char* /*name*/,
                   rcutils_time_point_value_t /*stamp*/, const char* format, va_list* arguments) {
    if (severity < RCUTILS_LOG_SEVERITY_WARN) return;
    char line[2000];
    va_list copy;
    va_copy(copy, *arguments);
    (void)vsnprintf(line, sizeof line, format, copy);
    va_end(copy);
    text() += std::string(line) + "\n";
  }
  rcutils_logging_output_handler_t before_;
};

/// What the controller manager does.
class Manager {
 public:
  explicit Manager(const std::string& description) {
    hardware_interface::ResourceManagerParams params;
    params.robot_description = description;
    params.clock = std::make_shared<rclcpp::Clock>(RCL_STEADY_TIME);
    params.executor = executor;
    params.update_rate = 1000;
    resources = std::make_unique<hardware_interface::ResourceManager>(params, false);
    loaded = resources->load_and_initialize_components(params);
  }

  [[nodiscard]] bool set_state(std::uint8_t id, const std::string& label) {
    rclcpp_lifecycle::State target(id, label);
    return resources->set_component_state("arm", target) == return_type::OK;
  }
  [[nodiscard]] bool configure() { return set_state(State::PRIMARY_STATE_INACTIVE, "inactive"); }
  [[nodiscard]] bool activate() { return set_state(State::PRIMARY_STATE_ACTIVE, "active"); }
  [[nodiscard]] std::uint8_t state() {
    return resources->get_components_status().at("arm").state.id();
  }

  void claim(const std::vector<std::string>& names) {
    ASSERT_TRUE(resources->prepare_command_mode_switch(names, {}));
    ASSERT_TRUE(resources->perform_command_mode_switch(names, {}));
    for (const std::string& name : names)
      commands.emplace(name, resources->claim_command_interface(name));
    cycle();  // a switch ends with a write() before the new controllers' first update
  }
  void release(const std::vector<std::string>& names) {
    ASSERT_TRUE(resources->prepare_command_mode_switch({}, names));
    ASSERT_TRUE(resources->perform_command_mode_switch({}, names));
    for (const std::string& name : names) commands.erase(name);
  }
  void command(const std::string& name, double value) {
    ASSERT_TRUE(commands.at(name).set_value(value));
  }
  [[nodiscard]] double get(const std::string& name) const {
    return resources->claim_state_interface(name).get_optional().value();
  }

  return_type read(const rclcpp::Duration& time = period) {
    return resources->read(rclcpp::Time(), time).result;
  }
  return_type write() { return resources->write(rclcpp::Time(), period).result; }
  void cycle() {
    ASSERT_EQ(read(), return_type::OK);
    ASSERT_EQ(write(), return_type::OK);
  }
  void run(int cycles) {
    for (int k = 0; k < cycles; ++k) cycle();
  }

  template <class Service>
  typename Service::Response::SharedPtr call(const std::string& name,
                                             const typename Service::Request& request) {
    const auto node = std::make_shared<rclcpp::Node>("caller");
    const auto client = node->create_client<Service>(name);
    if (!client->wait_for_service(std::chrono::seconds(5))) return nullptr;
    executor->add_node(node);
    auto answer = client->async_send_request(std::make_shared<typename Service::Request>(request));
    const auto result = executor->spin_until_future_complete(answer, std::chrono::seconds(5));
    executor->remove_node(node);
    return result == rclcpp::FutureReturnCode::SUCCESS ? answer.get() : nullptr;
  }
  void inject(const std::string& fault, bool on) {
    SetBool::Request request;
    request.data = on;
    const auto response = call<SetBool>("/arm/inject_" + fault, request);
    ASSERT_NE(response, nullptr);
    EXPECT_TRUE(response->success);
  }

  rclcpp::executors::SingleThreadedExecutor::SharedPtr executor =
      std::make_shared<rclcpp::executors::SingleThreadedExecutor>();
  std::unique_ptr<hardware_interface::ResourceManager> resources;
  std::map<std::string, LoanedCommandInterface> commands;
  bool loaded = false;
};

class SimulatedSystemTest : public testing::Test {
 public:
  static void SetUpTestSuite() { rclcpp::init(0, nullptr); }
  static void TearDownTestSuite() { rclcpp::shutdown(); }
};

/// The core's robot, with the same settings.
struct Core {
  explicit Core(const Parameters& parameters)
      : setup(dynamics_core::simulation::read_simulation(robot(""), {"shoulder", "elbow"},
                                                         {parameters.begin(), parameters.end()})),
        robot_(setup.model, setup.imperfections, setup.mechanics) {}
  SimulationSetup setup;
  SimulatedRobot robot_;
};

TEST_F(SimulatedSystemTest, LoadsByNameWithTheInterfacesDeclared) {
  Manager manager(urdf(arm()));
  ASSERT_TRUE(manager.loaded);
  EXPECT_EQ(manager.resources->state_interface_keys().size(), 8U);
  EXPECT_EQ(manager.resources->command_interface_keys().size(), 6U);
  ASSERT_TRUE(manager.configure());
  EXPECT_EQ(manager.get("shoulder/position"), 0.2);
  EXPECT_EQ(manager.get("elbow/position"), -0.3);
  ASSERT_TRUE(manager.activate());
  EXPECT_EQ(manager.state(), State::PRIMARY_STATE_ACTIVE);
}

TEST_F(SimulatedSystemTest, IsHeldByItsBrakesUntilItIsCommanded) {
  Manager manager(urdf(arm()));
  ASSERT_TRUE(manager.configure());
  ASSERT_EQ(manager.read(), return_type::OK);
  ASSERT_TRUE(manager.activate());
  manager.run(500);
  manager.claim({"shoulder/effort", "elbow/effort"});
  manager.run(500);  // claimed, but nothing commanded yet
  EXPECT_EQ(manager.get("shoulder/position"), 0.2);
  EXPECT_EQ(manager.get("elbow/position"), -0.3);
  EXPECT_EQ(manager.get("shoulder/velocity"), 0.0);
  EXPECT_EQ(manager.get("shoulder/effort"), 0.0);
}

/// What the controller sees is what the core computes, cycle by cycle.
TEST_F(SimulatedSystemTest, MovesAsTheCoreDoes) {
  const Parameters parameters = {
      {"position_noise", "1e-4"}, {"velocity_noise", "1e-3"}, {"delay", "2"}, {"seed", "7"},
      {"mass_error", "20%"},      {"max_step", "2.5e-4"}};
  Core core(parameters);
  Manager manager(urdf(arm(), parameters));
  ASSERT_TRUE(manager.activate());
  const Eigen::Vector2d start(0.2, -0.3);
  ASSERT_EQ(core.robot_.start(start, Eigen::Vector2d::Zero()), dynamics_core::Status::ok);
  dynamics_core::simulation::Setpoints setpoints(2);
  setpoints.drives.assign(2, dynamics_core::simulation::Drive::brake);
  const auto step = [&] {
    ASSERT_EQ(core.robot_.cycle(setpoints, dt, 4), dynamics_core::Status::ok);
  };
  manager.claim({"shoulder/effort", "elbow/effort"});
  step();
  setpoints.drives.assign(2, dynamics_core::simulation::Drive::effort);
  for (int k = 0; k < 300; ++k) {
    setpoints.effort << 5.0 * std::sin(0.01 * k), 1.0;
    manager.command("shoulder/effort", setpoints.effort[0]);
    manager.command("elbow/effort", setpoints.effort[1]);
    ASSERT_EQ(manager.write(), return_type::OK);
    ASSERT_EQ(manager.read(), return_type::OK);
    step();
    ASSERT_EQ(manager.get("shoulder/position"), core.robot_.measured_position()[0]) << k;
    ASSERT_EQ(manager.get("elbow/position"), core.robot_.measured_position()[1]) << k;
    ASSERT_EQ(manager.get("elbow/velocity"), core.robot_.measured_velocity()[1]) << k;
    ASSERT_EQ(manager.get("elbow/acceleration"), core.robot_.acceleration()[1]) << k;
    ASSERT_EQ(manager.get("shoulder/effort"), core.robot_.effort()[0]) << k;
  }
  EXPECT_GT(std::abs(manager.get("shoulder/position") - 0.2), 0.1);
}

TEST_F(SimulatedSystemTest, PositionCommandsAreReached) {
  Manager manager(urdf(arm()));
  ASSERT_TRUE(manager.activate());
  manager.claim({"shoulder/position", "elbow/position"});
  manager.command("shoulder/position", -0.4);
  manager.command("elbow/position", 1.0);
  manager.run(500);
  EXPECT_NEAR(manager.get("shoulder/position"), -0.4, 1e-3);
  EXPECT_NEAR(manager.get("elbow/position"), 1.0, 1e-3);
  EXPECT_GT(std::abs(manager.get("shoulder/effort")), 1.0);  // bears the weight
}

TEST_F(SimulatedSystemTest, VelocityCommandsAreKept) {
  Manager manager(urdf(arm()));
  ASSERT_TRUE(manager.activate());
  manager.claim({"shoulder/velocity", "elbow/velocity"});
  manager.command("shoulder/velocity", 0.0);
  manager.command("elbow/velocity", 1.0);
  manager.run(1000);
  EXPECT_NEAR(manager.get("shoulder/position"), 0.2, 2e-3);
  EXPECT_NEAR(manager.get("elbow/velocity"), 1.0, 1e-2);
  EXPECT_NEAR(manager.get("elbow/position"), 0.7, 1e-2);
}

/// Position, velocity and effort together: the last is fed forward, so that no error is left.
TEST_F(SimulatedSystemTest, EffortsAreFedForwardToAPositionServo) {
  const auto error = [](bool feedforward) {
    Manager manager(urdf(arm(), {{"servo_frequency", "5"}}));
    EXPECT_TRUE(manager.activate());
    manager.claim({"shoulder/position", "shoulder/velocity", "shoulder/effort"});
    manager.command("shoulder/position", 0.2);
    // 2 kg at 0.2 m, and the fore-arm and fingers beyond the elbow, turned by -0.3 rad
    const double weight = 9.81 * (2.0 * 0.2 * std::cos(0.2) + 1.2 * 0.4 * std::cos(0.2) +
                                  (1.0 * 0.15 + 0.2 * 0.3) * std::cos(-0.1));
    if (feedforward) manager.command("shoulder/effort", -weight);
    manager.run(2000);
    return std::abs(manager.get("shoulder/position") - 0.2);
  };
  EXPECT_GT(error(false), 5e-3);
  EXPECT_LT(error(true), 1e-4);
}

/// A joint nobody commands any more is held; what was commanded before is forgotten.
TEST_F(SimulatedSystemTest, IsHeldAgainWhereNoControllerIsActive) {
  Manager manager(urdf(arm()));
  ASSERT_TRUE(manager.activate());
  manager.claim({"elbow/effort"});
  manager.command("elbow/effort", 3.0);
  manager.run(100);
  EXPECT_GT(std::abs(manager.get("elbow/velocity")), 0.1);
  manager.release({"elbow/effort"});
  manager.run(2);
  const double at = manager.get("elbow/position");
  manager.run(500);
  EXPECT_NEAR(manager.get("elbow/position"), at, 1e-9);
  manager.claim({"elbow/effort"});  // 3 N m still stand there
  manager.run(500);
  EXPECT_NEAR(manager.get("elbow/position"), at, 1e-9);
}

TEST_F(SimulatedSystemTest, NoNumberIsNoCommand) {
  Manager manager(urdf(arm()));
  ASSERT_TRUE(manager.activate());
  manager.claim({"elbow/position", "elbow/effort"});
  manager.command("elbow/effort", 10.0);
  manager.run(100);
  EXPECT_NEAR(manager.get("elbow/position"), -0.3, 1e-9);
  manager.command("elbow/position", 0.1);
  manager.command("elbow/effort", std::nan(""));
  manager.run(500);
  EXPECT_NEAR(manager.get("elbow/position"), 0.1, 1e-3);
  manager.command("elbow/position", std::nan(""));
  manager.run(500);
  EXPECT_NEAR(manager.get("elbow/position"), 0.1, 1e-3);
}

TEST_F(SimulatedSystemTest, DeactivationHoldsAndActivationGoesOnFromThere) {
  Manager manager(urdf(arm()));
  ASSERT_TRUE(manager.activate());
  manager.claim({"elbow/velocity"});
  manager.command("elbow/velocity", 1.0);
  manager.run(500);
  manager.release({"elbow/velocity"});
  ASSERT_TRUE(manager.configure());  // back to inactive
  for (int k = 0; k < 100; ++k) ASSERT_EQ(manager.read(), return_type::OK);
  const double at = manager.get("elbow/position");
  EXPECT_GT(at, 0.0);
  EXPECT_NEAR(manager.get("elbow/velocity"), 0.0, 1e-9);
  ASSERT_TRUE(manager.activate());
  manager.run(100);
  EXPECT_NEAR(manager.get("elbow/position"), at, 1e-9);
}

TEST_F(SimulatedSystemTest, StopsAtItsLimitsUnlessAskedNotTo) {
  const auto falls_to = [](const char* stops) {
    Manager manager(urdf(arm("1.4"), {{"joint_stops", stops}}));
    EXPECT_TRUE(manager.activate());
    manager.claim({"shoulder/effort"});
    manager.command("shoulder/effort", 0.0);
    manager.run(3000);
    return manager.get("shoulder/position");
  };
  EXPECT_NEAR(falls_to("true"), 1.5, 2e-3);
  EXPECT_GT(falls_to("false"), 1.55);
}

TEST_F(SimulatedSystemTest, DrivesSaturateAtTheLimitsOfTheUrdfUnlessAskedNotTo) {
  const auto gives = [](const char* limits) {
    Manager manager(urdf(arm(), {{"effort_limits", limits}}));
    EXPECT_TRUE(manager.activate());
    manager.claim({"elbow/effort"});
    manager.command("elbow/effort", 80.0);
    manager.run(2);
    return manager.get("elbow/effort");
  };
  EXPECT_EQ(gives("true"), 50.0);
  EXPECT_EQ(gives("false"), 80.0);
}

TEST_F(SimulatedSystemTest, NoiseFollowsItsSeed) {
  const auto measured = [](const char* seed) {
    Manager manager(urdf(arm(), {{"position_noise", "0.01"}, {"seed", seed}}));
    EXPECT_TRUE(manager.activate());
    manager.run(5);
    return manager.get("elbow/position");
  };
  EXPECT_EQ(measured("1"), measured("1"));
  EXPECT_NE(measured("1"), measured("2"));
  EXPECT_NEAR(measured("1"), -0.3, 0.06);
}

TEST_F(SimulatedSystemTest, StartsInsideItsLimitsAndMimicsFollow) {
  Joint claw{"claw", {"position"}};
  Joint mirror{"mirror", {}};
  ErrorLog log;
  Manager manager(urdf({claw, mirror}));
  EXPECT_THAT(ErrorLog::text(), HasSubstr("joint 'claw' starts at 0.01"));
  ASSERT_TRUE(manager.activate());
  EXPECT_EQ(manager.get("claw/position"), 0.01);
  EXPECT_DOUBLE_EQ(manager.get("mirror/position"), -0.005);
  manager.claim({"claw/position"});
  manager.command("claw/position", 0.05);
  manager.run(20);
  EXPECT_GT(manager.get("claw/velocity"), 0.01);
  EXPECT_EQ(manager.get("mirror/velocity"), -manager.get("claw/velocity"));
  EXPECT_EQ(manager.get("mirror/acceleration"), -manager.get("claw/acceleration"));
  EXPECT_EQ(manager.get("mirror/effort"), 0.0);
  manager.run(500);
  EXPECT_NEAR(manager.get("mirror/position"), -0.045, 1e-4);
}

/// A pause of the process must not become a leap of the robot, and jitter is no matter.
TEST_F(SimulatedSystemTest, TakesPeriodsAsTheyCome) {
  Manager manager(urdf(arm()));
  ASSERT_TRUE(manager.activate());
  manager.claim({"elbow/velocity"});
  manager.command("elbow/velocity", 1.0);
  manager.run(200);
  ASSERT_EQ(manager.write(), return_type::OK);
  const auto travelled = [&](double time) {
    const double before = manager.get("elbow/position");
    EXPECT_EQ(manager.read(rclcpp::Duration::from_seconds(time)), return_type::OK);
    return manager.get("elbow/position") - before;
  };
  EXPECT_NEAR(travelled(0.0013), 0.0013, 1e-4);
  EXPECT_NEAR(travelled(0.02), 0.02, 1e-3);
  EXPECT_EQ(travelled(0.0), 0.0);
  EXPECT_NEAR(travelled(60.0), SimulatedSystem::max_period, 1e-2);
}

// --- faults and loads ----------------------------------------------------------------------------

TEST_F(SimulatedSystemTest, RecoversFromInjectedErrors) {
  for (const std::string fault : {"read_error", "write_error"}) {
    Manager manager(urdf(arm()));
    ASSERT_TRUE(manager.activate());
    manager.claim({"elbow/velocity"});
    manager.command("elbow/velocity", 1.0);
    manager.run(300);
    const double at = manager.get("elbow/position");
    manager.inject(fault, true);
    EXPECT_EQ(fault == "read_error" ? manager.read() : manager.write(), return_type::ERROR);
    EXPECT_EQ(manager.state(), State::PRIMARY_STATE_UNCONFIGURED) << fault;
    manager.commands.clear();  // the controller manager stops the controllers
    ASSERT_TRUE(manager.configure()) << fault;
    ASSERT_TRUE(manager.activate()) << fault;
    manager.run(100);
    EXPECT_NEAR(manager.get("elbow/position"), at, 2e-3) << "a robot stays where it was";
    EXPECT_NEAR(manager.get("elbow/velocity"), 0.0, 1e-9);
    manager.claim({"elbow/velocity"});
    manager.command("elbow/velocity", -1.0);
    manager.run(300);
    EXPECT_NEAR(manager.get("elbow/velocity"), -1.0, 1e-2) << fault;
  }
}

TEST_F(SimulatedSystemTest, SaysSoWhereTheSimulationCannotGoOn) {
  ErrorLog log;
  Manager manager(urdf(arm(), {{"effort_limits", "false"}}));
  ASSERT_TRUE(manager.activate());
  manager.claim({"elbow/effort"});
  manager.command("elbow/effort", 1e200);
  ASSERT_EQ(manager.write(), return_type::OK);
  return_type result = return_type::OK;
  for (int k = 0; k < 100 && result == return_type::OK; ++k) result = manager.read();
  EXPECT_EQ(result, return_type::ERROR);
  EXPECT_THAT(ErrorLog::text(), HasSubstr("the simulation cannot go on: not finite"));
  EXPECT_EQ(manager.state(), State::PRIMARY_STATE_UNCONFIGURED);
  ASSERT_TRUE(manager.activate());
  manager.run(10);
  EXPECT_EQ(manager.get("elbow/velocity"), 0.0);
}

TEST_F(SimulatedSystemTest, SensorsFailWhenAsked) {
  Manager manager(urdf(arm()));
  ASSERT_TRUE(manager.activate());
  manager.claim({"elbow/velocity"});
  manager.command("elbow/velocity", 1.0);
  manager.run(300);
  manager.inject("nan_state", true);
  manager.run(2);
  EXPECT_TRUE(std::isnan(manager.get("elbow/position")));
  EXPECT_TRUE(std::isnan(manager.get("shoulder/effort")));
  manager.inject("nan_state", false);
  manager.run(2);
  const double before = manager.get("elbow/position");
  manager.inject("frozen_state", true);
  manager.run(100);
  EXPECT_EQ(manager.get("elbow/position"), before);
  manager.inject("frozen_state", false);
  manager.run(1);
  EXPECT_NEAR(manager.get("elbow/position"), before + 0.1, 1e-2) << "the robot itself went on";
}

TEST_F(SimulatedSystemTest, CarriesTheLoadThatTheServiceSets) {
  Manager manager(urdf(arm("0", "0")));
  ASSERT_TRUE(manager.activate());
  manager.claim({"shoulder/position", "elbow/position"});
  manager.command("shoulder/position", 0.0);
  manager.command("elbow/position", 0.0);
  manager.run(500);
  const double without = manager.get("elbow/effort");
  SetPayload::Request request;
  request.link = "fore";
  request.mass = 2.0;
  request.center_of_mass.x = 0.3;
  request.transition_time = 0.1;
  auto response = manager.call<SetPayload>("/arm/set_payload", request);
  ASSERT_NE(response, nullptr);
  EXPECT_TRUE(response->success) << response->message;
  manager.run(1000);
  EXPECT_NEAR(manager.get("elbow/effort") - without, -2.0 * 0.3 * 9.81, 1e-2);
  request.link = "leg";
  response = manager.call<SetPayload>("/arm/set_payload", request);
  ASSERT_NE(response, nullptr);
  EXPECT_FALSE(response->success);
  EXPECT_THAT(response->message, HasSubstr("'leg'"));
  request.link = "fore";
  request.transition_time = -1.0;
  response = manager.call<SetPayload>("/arm/set_payload", request);
  ASSERT_NE(response, nullptr);
  EXPECT_THAT(response->message, HasSubstr("transition_time"));
}

// --- what is refused -----------------------------------------------------------------------------

/// What is logged where the description is refused; empty where it is accepted.
std::string complaint(const std::string& description) {
  ErrorLog log;
  try {
    const Manager manager(description);
    if (manager.loaded) return "";
  } catch (const std::exception& error) {  // ros2_control's own parser
    return error.what();
  }
  return ErrorLog::text();
}

TEST_F(SimulatedSystemTest, NamesWhatIsWrongWithAParameter) {
  const std::pair<const char*, const char*> cases[] = {
      {"max_step", "fast"},
      {"max_step", "0"},
      {"position_noise", "-1"},
      {"velocity_noise", "much"},
      {"resolution", "1mm"},
      {"delay", "0.5"},
      {"seed", "-1"},
      {"mass_error", "10"},
      {"friction_error", "leg=10%"},
      {"effort_limits", "yes"},
      {"joint_stops", "maybe"},
      {"stop_frequency", "0"},
      {"servo_frequency", "-1"},
      {"gravity", "9.81"},
      {"locked", "claw"},
      {"speed", "1"},
  };
  for (const auto& [name, value] : cases)
    EXPECT_THAT(complaint(urdf(arm(), {{name, value}})), HasSubstr(name)) << value;
  EXPECT_EQ(complaint(urdf(arm())), "");
}

TEST_F(SimulatedSystemTest, NamesWhatIsWrongWithAJoint) {
  EXPECT_THAT(complaint(urdf({Joint{"wrist", {"effort"}}})), HasSubstr("wrist"));
  EXPECT_THAT(complaint(urdf({Joint{"elbow", {"torque"}}})), HasSubstr("'torque'"));
  EXPECT_THAT(complaint(urdf({Joint{"elbow", {"acceleration"}}})), HasSubstr("'acceleration'"));
  EXPECT_THAT(complaint(urdf({Joint{"elbow", {"effort"}, {"temperature"}}})),
              HasSubstr("'temperature'"));
  EXPECT_THAT(complaint(urdf(arm("3"))), HasSubstr("initial_value of joint 'shoulder'"));
  EXPECT_THAT(complaint(urdf(arm("high"))), HasSubstr("initial_value of joint 'shoulder'"));
  Joint mirror{"mirror", {"position"}};
  mirror.attributes = "mimic=\"false\"";
  EXPECT_THAT(complaint(urdf({Joint{"claw", {"position"}}, mirror})), HasSubstr("mimics 'claw'"));
  EXPECT_THAT(complaint(urdf(arm(), {},
                             "<sensor name=\"scale\"><state_interface name=\"mass\"/></sensor>")),
              HasSubstr("'scale'"));
}

// --- real time -----------------------------------------------------------------------------------

/// The component itself: read() and write() in every branch that a cycle can take.
TEST_F(SimulatedSystemTest, DoesNotAllocateInTheCycle) {
  SimulatedSystem system;
  hardware_interface::HardwareComponentParams params;
  params.hardware_info = hardware_interface::parse_control_resources_from_urdf(
                             urdf(arm(), {{"position_noise", "1e-4"}, {"delay", "3"}}))
                             .at(0);
  params.clock = std::make_shared<rclcpp::Clock>(RCL_STEADY_TIME);
  ASSERT_EQ(system.init(params), SimulatedSystem::CallbackReturn::SUCCESS);
  const auto states = system.on_export_state_interfaces();
  const auto commands = system.on_export_command_interfaces();
  const rclcpp_lifecycle::State none;
  ASSERT_EQ(system.on_configure(none), SimulatedSystem::CallbackReturn::SUCCESS);
  ASSERT_EQ(system.on_activate(none), SimulatedSystem::CallbackReturn::SUCCESS);
  const rclcpp::Time now(0, 0, RCL_STEADY_TIME);
  const std::vector<std::string> nothing;
  const std::vector<std::vector<std::string>> claims = {
      {"elbow/effort", "shoulder/effort"},
      {"elbow/position", "shoulder/velocity"},
      {"elbow/position", "elbow/velocity", "elbow/effort"}};
  bool good = true;
  const support::AllocationGuard guard;
  for (int k = 0; k < 100000; ++k) {
    const auto& names = claims[static_cast<std::size_t>(k / 1000) % claims.size()];
    if (k % 1000 == 0)
      good = system.perform_command_mode_switch(names, nothing) == return_type::OK && good;
    if (k % 1000 == 900)
      good = system.perform_command_mode_switch(nothing, names) == return_type::OK && good;
    for (const auto& command : commands) good = command->set_value(k % 7 == 0 ? NAN : 0.3) && good;
    good = system.write(now, period) == return_type::OK && good;
    good = system.read(now, period) == return_type::OK && good;
  }
  EXPECT_EQ(guard.count(), 0);
  EXPECT_TRUE(good);
  // The guard sees what the plugin's library allocates.
  const support::AllocationGuard canary;
  good = system.on_activate(none) == SimulatedSystem::CallbackReturn::SUCCESS;
  EXPECT_TRUE(canary.count() > 0 || !support::allocations_are_counted);
  EXPECT_TRUE(good);
}

}  // namespace
