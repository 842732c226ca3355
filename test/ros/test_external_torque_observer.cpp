// SPDX-License-Identifier: Apache-2.0
/// The ExternalTorqueObserver in one process: loading, its interfaces, what it refuses, what it
/// feels; and what a FeedforwardController does that hears of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <diagnostic_msgs/msg/diagnostic_array.hpp>
#include <pluginlib/class_loader.hpp>
#include <semantic_components/force_torque_sensor.hpp>

#include "controller_rig.hpp"
#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/load.hpp"
#include "realtime_dynamics/external_torque_observer.hpp"
#include "support/allocation_guard.hpp"

namespace {

using controller_interface::return_type;
using dynamics_core::Status;
using Eigen::Vector3d;
using Eigen::VectorXd;
using support::nan;
using support::panda_joints;
using support::panda_ready;
using support::Rig;
using support::robot_urdf;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

const VectorXd zero = VectorXd::Zero(7);
const std::string frame = "panda_link8";

/// An observer between state interfaces of its own.
class ObserverRig {
 public:
  using Parameters = std::vector<rclcpp::Parameter>;
  using Lifecycle = lifecycle_msgs::msg::State;

  explicit ObserverRig(Parameters parameters, std::string urdf = robot_urdf("panda"))
      : urdf_(std::move(urdf)), parameters_(std::move(parameters)) {}

  [[nodiscard]] static Parameters panda() {
    Parameters out{{"joints", panda_joints()}, {"frame", frame}, {"damping", 0.001}};
    for (const std::string& joint : panda_joints())
      out.emplace_back("thresholds." + joint + ".constant", 1.0);
    return out;
  }
  [[nodiscard]] bool init() {
    controller_interface::ControllerInterfaceParams params;
    params.controller_name = "observer";
    params.robot_description = urdf_;
    params.update_rate = params.controller_manager_update_rate = 1000;
    params.node_options = controller.define_custom_node_options().parameter_overrides(parameters_);
    return controller.init(params) == return_type::OK;
  }
  [[nodiscard]] bool configure() {
    if (controller.configure().id() != Lifecycle::PRIMARY_STATE_INACTIVE) return false;
    exported = controller.export_state_interfaces();
    return true;
  }
  void assign(const std::string& missing = "none") {
    std::vector<hardware_interface::LoanedStateInterface> loaned;
    for (const std::string& name : controller.state_interface_configuration().names) {
      if (name == missing) continue;
      const std::size_t slash = name.rfind('/');
      auto& state = states_[name];
      state = std::make_shared<hardware_interface::StateInterface>(name.substr(0, slash),
                                                                   name.substr(slash + 1));
      (void)state->set_value(0.0);
      loaned.emplace_back(state, nullptr);
    }
    controller.assign_interfaces({}, std::move(loaned));
  }
  [[nodiscard]] bool activate() {
    return controller.get_node()->activate().id() == Lifecycle::PRIMARY_STATE_ACTIVE;
  }
  [[nodiscard]] bool start() {
    if (!init() || !configure()) return false;
    assign();
    return activate();
  }
  void set(const char* type, const VectorXd& values) {
    for (std::size_t j = 0; j < 7; ++j)
      (void)states_.at(panda_joints()[j] + "/" + type)
          ->set_value(values[static_cast<Eigen::Index>(j)]);
  }
  return_type update(double period = 1e-3) {
    time += rclcpp::Duration::from_seconds(period);
    return controller.update(time, rclcpp::Duration::from_seconds(period));
  }
  [[nodiscard]] double value(const std::string& name) const {
    for (const auto& state : exported)
      if (state->get_name() == "observer/" + name) return state->get_optional().value_or(nan);
    ADD_FAILURE() << name << " is not exported";
    return nan;
  }

  realtime_dynamics::ExternalTorqueObserver controller;
  std::vector<hardware_interface::StateInterface::ConstSharedPtr> exported;
  rclcpp::Time time{100, 0, RCL_ROS_TIME};

 private:
  std::string urdf_;
  Parameters parameters_;
  std::map<std::string, hardware_interface::StateInterface::SharedPtr> states_;
};

/// The efforts that hold the panda while the wrench acts on it.
VectorXd holding(const VectorXd& q, const Vector3d& torque, const Vector3d& force) {
  const auto model = dynamics_core::load_urdf_string(robot_urdf("panda"));
  dynamics_core::Dynamics<double> robot(model);
  EXPECT_EQ(robot.add_external_force(model.find_link(frame), {torque, force}), Status::ok);
  VectorXd tau(7);
  EXPECT_EQ(robot.inverse_dynamics(q, zero, zero, tau), Status::ok);
  return tau;
}

TEST(Load, ThroughPluginlib) {
  pluginlib::ClassLoader<controller_interface::ChainableControllerInterface> loader(
      "controller_interface", "controller_interface::ChainableControllerInterface");
  const auto controller = loader.createSharedInstance("realtime_dynamics/ExternalTorqueObserver");
  EXPECT_TRUE(controller->is_chainable());
}

TEST(Interfaces, CommandsNothingAndExportsTorquesContactAndWrench) {
  ObserverRig rig(
      {{"joints", std::vector<std::string>{"panda_joint3", "panda_joint1"}}, {"frame", frame}});
  ASSERT_TRUE(rig.init());
  ASSERT_TRUE(rig.configure());
  EXPECT_THAT(rig.controller.command_interface_configuration().names, IsEmpty());
  EXPECT_THAT(rig.controller.export_reference_interfaces(), IsEmpty());
  EXPECT_THAT(rig.controller.state_interface_configuration().names,
              ElementsAre("panda_joint3/position", "panda_joint1/position", "panda_joint3/velocity",
                          "panda_joint1/velocity", "panda_joint3/effort", "panda_joint1/effort",
                          "panda_joint2/position", "panda_joint4/position", "panda_joint5/position",
                          "panda_joint6/position", "panda_joint7/position", "panda_joint2/velocity",
                          "panda_joint4/velocity", "panda_joint5/velocity", "panda_joint6/velocity",
                          "panda_joint7/velocity"));
  std::vector<std::string> names;
  for (const auto& state : rig.exported) names.push_back(state->get_name());
  semantic_components::ForceTorqueSensor sensor("observer");
  const auto wrench = sensor.get_state_interface_names();
  ASSERT_EQ(names.size(), 3U + wrench.size());
  EXPECT_EQ(names[0], "observer/panda_joint3/external_torque");
  EXPECT_EQ(names[1], "observer/panda_joint1/external_torque");
  EXPECT_EQ(names[2], "observer/contact");
  for (std::size_t i = 0; i < wrench.size(); ++i) EXPECT_EQ(names[3 + i], wrench[i]);
}

TEST(Interfaces, WithoutAFrameThereIsNoWrench) {
  ObserverRig rig({{"joints", panda_joints()}});
  ASSERT_TRUE(rig.init());
  ASSERT_TRUE(rig.configure());
  EXPECT_EQ(rig.exported.size(), 8U);
}

TEST(Configure, RefusesWhatItCannotUse) {
  using Parameter = rclcpp::Parameter;
  const auto with = [](const Parameter& parameter) {
    auto all = ObserverRig::panda();
    for (auto& known : all)
      if (known.get_name() == parameter.get_name()) {
        known = parameter;
        return all;
      }
    all.push_back(parameter);
    return all;
  };
  struct Case {
    const char* what;
    ObserverRig::Parameters parameters;
    std::string urdf;
    bool initialises;
  };
  const std::string good = robot_urdf("panda");
  const Case cases[] = {
      {"no joints", {}, good, false},
      {"unknown effort", with(Parameter("effort", "half")), good, false},
      {"no cutoff", with(Parameter("cutoff", 0.0)), good, false},
      {"no description", ObserverRig::panda(), "", true},
      {"not a URDF", ObserverRig::panda(), "<robot", true},
      {"unknown joint", {{"joints", std::vector<std::string>{"elbow"}}}, good, true},
      {"unknown frame", with(Parameter("frame", "hook")), good, true},
      {"load on nothing", with(Parameter("payload.link", "hook")), good, true},
      {"rotors of two", with(Parameter("rotor_inertia", std::vector<double>{1.0, 2.0})), good,
       true},
  };
  for (const Case& it : cases) {
    SCOPED_TRACE(it.what);
    ObserverRig rig(it.parameters, it.urdf);
    EXPECT_EQ(rig.init(), it.initialises);
    if (it.initialises) {
      EXPECT_FALSE(rig.configure());
    }
  }
}

TEST(Activate, RefusesWithoutEfforts) {
  for (const char* type : {"position", "effort"}) {
    ObserverRig rig(ObserverRig::panda());
    ASSERT_TRUE(rig.init());
    ASSERT_TRUE(rig.configure());
    rig.assign(std::string("panda_joint4/") + type);
    EXPECT_FALSE(rig.activate()) << type;
  }
}

TEST(Observe, FeelsAWrenchAndLetsGo) {
  ObserverRig rig(ObserverRig::panda());
  ASSERT_TRUE(rig.start());
  const Vector3d torque(1.0, -2.0, 0.5), force(10.0, 20.0, -15.0);
  rig.set("position", panda_ready());
  rig.set("effort", holding(panda_ready(), torque, force));
  for (int k = 0; k < 500; ++k) ASSERT_EQ(rig.update(), return_type::OK);
  EXPECT_EQ(rig.value("contact"), 1.0);
  EXPECT_NEAR(rig.value("force.x"), force.x(), 0.01);
  EXPECT_NEAR(rig.value("force.y"), force.y(), 0.01);
  EXPECT_NEAR(rig.value("force.z"), force.z(), 0.01);
  EXPECT_NEAR(rig.value("torque.x"), torque.x(), 0.01);
  EXPECT_NEAR(rig.value("torque.y"), torque.y(), 0.01);
  EXPECT_NEAR(rig.value("torque.z"), torque.z(), 0.01);
  const VectorXd free = holding(panda_ready(), Vector3d::Zero(), Vector3d::Zero());
  const VectorXd external = free - holding(panda_ready(), torque, force);
  for (std::size_t j = 0; j < 7; ++j)
    EXPECT_NEAR(rig.value(panda_joints()[j] + "/external_torque"),
                external[static_cast<Eigen::Index>(j)], 0.01);
  rig.set("effort", free);
  for (int k = 0; k < 500; ++k) ASSERT_EQ(rig.update(), return_type::OK);
  EXPECT_EQ(rig.value("contact"), 0.0);
  EXPECT_NEAR(rig.value("force.x"), 0.0, 0.01);
}

TEST(Observe, AStateThatIsNotFiniteStartsAnew) {
  ObserverRig rig(ObserverRig::panda());
  ASSERT_TRUE(rig.start());
  rig.set("position", panda_ready());
  rig.set("effort", holding(panda_ready(), Vector3d::Zero(), Vector3d(0.0, 0.0, 50.0)));
  for (int k = 0; k < 100; ++k) ASSERT_EQ(rig.update(), return_type::OK);
  ASSERT_EQ(rig.value("contact"), 1.0);
  rig.set("effort", VectorXd::Constant(7, nan));
  EXPECT_EQ(rig.update(), return_type::OK);
  for (const auto& state : rig.exported) EXPECT_EQ(state->get_optional().value_or(nan), 0.0);
  rig.set("effort", holding(panda_ready(), Vector3d::Zero(), Vector3d(0.0, 0.0, 50.0)));
  for (int k = 0; k < 100; ++k) ASSERT_EQ(rig.update(), return_type::OK);
  EXPECT_EQ(rig.value("contact"), 1.0);
}

/// Nobody is told that nothing touches a robot of which nothing is known.
TEST(Diagnostics, TellOfCyclesThatCouldNotBeUsed) {
  using diagnostic_msgs::msg::DiagnosticStatus;
  ObserverRig rig(ObserverRig::panda());
  ASSERT_TRUE(rig.start());
  const auto node = std::make_shared<rclcpp::Node>("listener");
  DiagnosticStatus last;
  const auto subscription = node->create_subscription<diagnostic_msgs::msg::DiagnosticArray>(
      "/diagnostics", 10, [&](const diagnostic_msgs::msg::DiagnosticArray& m) {
        if (!m.status.empty() && m.status[0].name == "observer: contacts") last = m.status[0];
      });
  rclcpp::executors::SingleThreadedExecutor executor;
  executor.add_node(node);
  executor.add_node(rig.controller.get_node()->get_node_base_interface());
  rig.set("position", panda_ready());
  const VectorXd free = holding(panda_ready(), Vector3d::Zero(), Vector3d::Zero());
  const VectorXd bad = VectorXd::Constant(7, nan);
  const auto level_with = [&](int good_cycles, int bad_cycles, unsigned char expected) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    last = DiagnosticStatus();
    last.level = DiagnosticStatus::STALE;
    while (last.level != expected && std::chrono::steady_clock::now() < end) {
      rig.set("effort", free);
      for (int k = 0; k < good_cycles; ++k) EXPECT_EQ(rig.update(), return_type::OK);
      rig.set("effort", bad);
      for (int k = 0; k < bad_cycles; ++k) EXPECT_EQ(rig.update(), return_type::OK);
      executor.spin_once(std::chrono::milliseconds(10));
    }
    return last.level;
  };
  EXPECT_EQ(level_with(5, 0, DiagnosticStatus::OK), DiagnosticStatus::OK);
  EXPECT_EQ(level_with(0, 5, DiagnosticStatus::ERROR), DiagnosticStatus::ERROR);
  EXPECT_THAT(last.message, testing::HasSubstr("cycles could not be used"));
  EXPECT_THAT(last.message, Not(testing::HasSubstr("nothing touches")));
  EXPECT_EQ(level_with(5, 5, DiagnosticStatus::WARN), DiagnosticStatus::WARN);
  EXPECT_EQ(level_with(5, 0, DiagnosticStatus::OK), DiagnosticStatus::OK);
}

TEST(Observe, TakesNoMemory) {
  if (!support::allocations_are_counted) GTEST_SKIP() << "the sanitizer has its own heap";
  auto parameters = ObserverRig::panda();
  parameters.emplace_back("publish_rate", 1000.0);
  ObserverRig rig(parameters);
  ASSERT_TRUE(rig.start());
  const VectorXd pushed = holding(panda_ready(), Vector3d::Zero(), Vector3d(0.0, 0.0, 50.0));
  const VectorXd bad = VectorXd::Constant(7, nan);
  rig.set("position", panda_ready());
  long taken = 0;
  bool touched = false;
  for (int k = 0; k < 20000; ++k) {
    rig.set("effort", k % 5000 == 4999 ? bad : k % 2000 < 1000 ? pushed : zero);
    const support::AllocationGuard guard;
    (void)rig.update();
    taken += guard.count();
    touched = touched || rig.value("contact") > 0.5;
  }
  EXPECT_TRUE(touched);
  EXPECT_EQ(taken, 0);
}

// --- A FeedforwardController that hears of it ----------------------------------------------------

Rig::Parameters reacting(const std::string& reaction) {
  auto parameters = Rig::panda();
  parameters.emplace_back("contact.observer", "observer");
  parameters.emplace_back("contact.reaction", reaction);
  return parameters;
}

TEST(Reaction, HoldsOrFloatsUntilItIsActivatedAgain) {
  const VectorXd there = panda_ready();
  VectorXd away = there;
  away[0] += 0.3;
  for (const std::string reaction : {"none", "hold", "float"}) {
    SCOPED_TRACE(reaction);
    Rig rig(reacting(reaction));
    ASSERT_TRUE(rig.init());
    ASSERT_TRUE(rig.configure());
    EXPECT_THAT(rig.controller.state_interface_configuration().names, Contains("observer/contact"));
    rig.assign();
    rig.set_state(there, zero);
    rig.set_state_interface("observer/contact", 0.0);
    ASSERT_TRUE(rig.controller.set_chained_mode(true) && rig.activate());
    const double free = [&] {
      rig.set_reference(there, zero, zero);
      EXPECT_EQ(rig.update(), return_type::OK);
      return rig.effort()[0];
    }();
    rig.set_state_interface("observer/contact", 1.0);
    EXPECT_EQ(rig.update(), return_type::OK);
    rig.set_state_interface("observer/contact", 0.0);
    rig.set_reference(away, zero, zero);
    EXPECT_EQ(rig.update(), return_type::OK);
    const double moved = rig.effort()[0];
    if (reaction == "none")
      EXPECT_NEAR(moved - free, 50.0 * 0.3, 1e-6);
    else
      EXPECT_NEAR(moved, free, 1e-6);
    ASSERT_TRUE(rig.deactivate());
    ASSERT_TRUE(rig.activate());
    rig.set_reference(away, zero, zero);
    EXPECT_EQ(rig.update(), return_type::OK);
    EXPECT_NEAR(rig.effort()[0] - free, 50.0 * 0.3, 1e-6);
  }
}

TEST(Reaction, IsRefusedWithoutTheObserver) {
  Rig rig(reacting("hold"));
  ASSERT_TRUE(rig.init());
  ASSERT_TRUE(rig.configure());
  rig.assign({"observer/contact"});
  rig.set_state(panda_ready(), zero);
  EXPECT_FALSE(rig.activate());
}

TEST(Reaction, HasToSuitTheMode) {
  auto parameters = reacting("hold");
  for (auto& parameter : parameters)
    if (parameter.get_name() == "mode")
      parameter = rclcpp::Parameter("mode", "gravity_compensation");
  Rig rig(parameters);
  ASSERT_TRUE(rig.init());
  EXPECT_FALSE(rig.configure());
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  rclcpp::init(argc, argv);
  const int result = RUN_ALL_TESTS();
  rclcpp::shutdown();
  return result;
}
