// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A FeedforwardController between state and command interfaces of its own, driven as the
/// controller manager drives it.

#include <controller_interface/controller_interface_params.hpp>
#include <fstream>
#include <hardware_interface/loaned_command_interface.hpp>
#include <hardware_interface/loaned_state_interface.hpp>
#include <lifecycle_msgs/msg/state.hpp>
#include <limits>
#include <map>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "realtime_dynamics/feedforward_controller.hpp"

namespace support {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

[[nodiscard]] inline std::string robot_urdf(const std::string& name) {
  std::ifstream file(std::string(RD_SOURCE_DIR) + "/config/robots/" + name + ".urdf");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

[[nodiscard]] inline std::vector<std::string> panda_joints() {
  std::vector<std::string> names;
  for (int j = 1; j <= 7; ++j) names.push_back("panda_joint" + std::to_string(j));
  return names;
}

[[nodiscard]] inline Eigen::VectorXd panda_ready() {
  Eigen::VectorXd q(7);
  q << 0.0, -M_PI / 4, 0.0, -3 * M_PI / 4, 0.0, M_PI / 2, M_PI / 4;
  return q;
}

class Rig {
 public:
  using Parameters = std::vector<rclcpp::Parameter>;
  using Lifecycle = lifecycle_msgs::msg::State;

  explicit Rig(Parameters parameters, std::string urdf = robot_urdf("panda"))
      : urdf_(std::move(urdf)), parameters_(std::move(parameters)) {}

  /// With gains for the panda unless others are given.
  [[nodiscard]] static Parameters panda(const std::string& mode = "feedforward") {
    Parameters out{{"joints", panda_joints()}, {"mode", mode}, {"soft_start", 0.0}};
    for (const std::string& joint : panda_joints()) {
      out.emplace_back("gains." + joint + ".p", 50.0);
      out.emplace_back("gains." + joint + ".d", 5.0);
    }
    return out;
  }

  [[nodiscard]] bool init() {
    controller_interface::ControllerInterfaceParams params;
    params.controller_name = "feedforward_controller";
    params.robot_description = urdf_;
    params.update_rate = params.controller_manager_update_rate = 1000;
    params.node_options = controller.define_custom_node_options().parameter_overrides(parameters_);
    return controller.init(params) == controller_interface::return_type::OK;
  }

  /// True where it becomes inactive.
  [[nodiscard]] bool configure() {
    if (controller.configure().id() != Lifecycle::PRIMARY_STATE_INACTIVE) return false;
    references = controller.export_reference_interfaces();
    return true;
  }

  /// Hands over the interfaces that the controller asks for, but for those in `missing`.
  void assign(const std::vector<std::string>& missing = {}) {
    const auto is_missing = [&](const std::string& name) {
      return std::find(missing.begin(), missing.end(), name) != missing.end();
    };
    std::vector<hardware_interface::LoanedCommandInterface> loaned_commands;
    for (const std::string& name : controller.command_interface_configuration().names)
      loaned_commands.emplace_back(handle(commands, name), nullptr);
    std::vector<hardware_interface::LoanedStateInterface> loaned_states;
    for (const std::string& name : controller.state_interface_configuration().names)
      if (!is_missing(name)) loaned_states.emplace_back(handle(states, name), nullptr);
    controller.assign_interfaces(std::move(loaned_commands), std::move(loaned_states));
  }

  [[nodiscard]] bool activate() {
    return controller.get_node()->activate().id() == Lifecycle::PRIMARY_STATE_ACTIVE;
  }
  [[nodiscard]] bool deactivate() {
    return controller.get_node()->deactivate().id() == Lifecycle::PRIMARY_STATE_INACTIVE;
  }

  /// From nothing to active at rest at q.
  [[nodiscard]] bool start(const Eigen::VectorXd& q, bool chained = true) {
    if (!init() || !configure()) return false;
    assign();
    set_state(q, Eigen::VectorXd::Zero(q.size()));
    return controller.set_chained_mode(chained) && activate();
  }

  void set_state(const Eigen::VectorXd& q, const Eigen::VectorXd& v) {
    const auto names = controller.state_interface_configuration().names;
    for (Eigen::Index j = 0; j < q.size(); ++j) {
      set(states, names[static_cast<std::size_t>(j)], q[j]);
      set(states, names[static_cast<std::size_t>(j + q.size())], v[j]);
    }
  }

  void set_reference(const Eigen::VectorXd& q, const Eigen::VectorXd& v, const Eigen::VectorXd& a) {
    const auto n = static_cast<std::size_t>(q.size());
    for (std::size_t j = 0; j < n; ++j) {
      const auto i = static_cast<Eigen::Index>(j);
      (void)references[j]->set_value(q[i]);
      (void)references[n + j]->set_value(v[i]);
      (void)references[2 * n + j]->set_value(a[i]);
    }
  }

  controller_interface::return_type update(double period = 1e-3) {
    time += rclcpp::Duration::from_seconds(period);
    return controller.update(time, rclcpp::Duration::from_seconds(period));
  }

  [[nodiscard]] double command(const std::string& name) {
    return handle(commands, name)->get_optional().value_or(nan);
  }
  [[nodiscard]] Eigen::VectorXd effort() {
    const auto n = static_cast<Eigen::Index>(references.size() / 3);
    const auto names = controller.command_interface_configuration().names;
    Eigen::VectorXd out(n);
    for (Eigen::Index j = 0; j < n; ++j)
      out[j] = command(names[names.size() - static_cast<std::size_t>(n - j)]);
    return out;
  }

  void set_state_interface(const std::string& name, double value) { set(states, name, value); }

  realtime_dynamics::FeedforwardController controller;
  std::vector<hardware_interface::CommandInterface::SharedPtr> references;
  rclcpp::Time time{100, 0, RCL_ROS_TIME};

 private:
  template <class Interface>
  using Interfaces = std::map<std::string, std::shared_ptr<Interface>>;

  template <class Interface>
  static std::shared_ptr<Interface> handle(Interfaces<Interface>& interfaces,
                                           const std::string& name) {
    std::shared_ptr<Interface>& found = interfaces[name];
    if (!found) {
      const std::size_t slash = name.rfind('/');
      found = std::make_shared<Interface>(name.substr(0, slash), name.substr(slash + 1));
      (void)found->set_value(nan);
    }
    return found;
  }
  template <class Interface>
  static void set(Interfaces<Interface>& interfaces, const std::string& name, double value) {
    (void)handle(interfaces, name)->set_value(value);
  }

  std::string urdf_;
  Parameters parameters_;
  Interfaces<hardware_interface::StateInterface> states;
  Interfaces<hardware_interface::CommandInterface> commands;
};

}  // namespace support
