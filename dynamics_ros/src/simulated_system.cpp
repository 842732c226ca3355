// SPDX-License-Identifier: Apache-2.0
#include "realtime_dynamics/simulated_system.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <hardware_interface/types/hardware_interface_type_values.hpp>
#include <pluginlib/class_list_macros.hpp>
#include <rclcpp/logging.hpp>
#include <rclcpp/node.hpp>

#include "dynamics_core/config_error.hpp"
#include "dynamics_core/payload_ramp.hpp"
#include "dynamics_core/text.hpp"
#include "payload_request.hpp"

namespace realtime_dynamics {

namespace text = dynamics_core::text;
using dynamics_core::ConfigError;
using dynamics_core::JointInfo;
using dynamics_core::MimicInfo;
using dynamics_core::Model;
using dynamics_core::Status;
using dynamics_core::simulation::Drive;
using hardware_interface::ComponentInfo;
using hardware_interface::InterfaceInfo;
using VectorXd = dynamics_core::VectorX<double>;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::array<const char*, 4> quantities = {
    hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY,
    hardware_interface::HW_IF_EFFORT, hardware_interface::HW_IF_ACCELERATION};
constexpr std::array<Drive, 3> drives = {Drive::position, Drive::velocity, Drive::effort};

[[nodiscard]] const InterfaceInfo* find(const std::vector<InterfaceInfo>& interfaces,
                                        const std::string& name) {
  const auto it = std::find_if(interfaces.begin(), interfaces.end(),
                               [&](const InterfaceInfo& x) { return x.name == name; });
  return it == interfaces.end() ? nullptr : &*it;
}

[[nodiscard]] const MimicInfo* find_mimic(const Model& model, const std::string& joint) {
  const auto it = std::find_if(model.mimics.begin(), model.mimics.end(),
                               [&](const MimicInfo& x) { return x.name == joint; });
  return it == model.mimics.end() ? nullptr : &*it;
}

/// The first `known` of the quantities, as numbers.
void check_interfaces(const std::string& joint, const std::string& kind,
                      const std::vector<InterfaceInfo>& interfaces, std::size_t known) {
  const auto* const end = quantities.begin() + known;
  for (const InterfaceInfo& x : interfaces) {
    const std::string element = kind + " of joint '" + joint + "'";
    if (std::find(quantities.begin(), end, x.name) == end) {
      const std::vector<std::string> names(quantities.begin(), end);
      throw ConfigError(element, "'" + x.name + "'",
                        "is not simulated; choose of " + text::joined(names));
    }
    if (x.data_type != "double")
      throw ConfigError("data_type of the " + element, "'" + x.data_type + "'", "write double");
  }
}

void check_components(const std::string& kind, const std::vector<ComponentInfo>& components) {
  if (!components.empty())
    throw ConfigError(kind, "'" + components.front().name + "'",
                      "is not simulated; remove it from this <ros2_control> block");
}

}  // namespace

// --- from the description to a robot -------------------------------------------------------------

SimulatedSystem::CallbackReturn SimulatedSystem::on_init(
    const hardware_interface::HardwareComponentInterfaceParams& params) {
  if (SystemInterface::on_init(params) != CallbackReturn::SUCCESS) return CallbackReturn::ERROR;
  try {
    build();
  } catch (const std::exception& error) {
    RCLCPP_ERROR(get_logger(), "%s", error.what());
    return CallbackReturn::ERROR;
  }
  create_services();
  return CallbackReturn::SUCCESS;
}

void SimulatedSystem::build() {
  check_components("sensor", info_.sensors);
  check_components("gpio", info_.gpios);
  std::vector<std::string> names;
  for (const ComponentInfo& joint : info_.joints) {
    check_interfaces(joint.name, "command_interface", joint.command_interfaces, drives.size());
    check_interfaces(joint.name, "state_interface", joint.state_interfaces, quantities.size());
    names.push_back(joint.name);
  }
  dynamics_core::simulation::SimulationSetup setup = dynamics_core::simulation::read_simulation(
      info_.original_xml, names, info_.hardware_parameters);
  robot_.emplace(setup.model, setup.imperfections, setup.mechanics);
  max_step_ = setup.max_step;
  setpoints_ = dynamics_core::simulation::Setpoints(setup.model.nv);
  loads_.set(Loads{std::vector<Load>(setup.model.links.size())});
  build_joints(setup.model);
  model_ = std::move(setup.model);
}

void SimulatedSystem::build_joints(const Model& model) {
  VectorXd q(model.nq);
  joints_ = std::vector<Joint>(info_.joints.size());
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    const ComponentInfo& declared = info_.joints[j];
    Joint& joint = joints_[j];
    joint.name = declared.name;
    const MimicInfo* mimic = find_mimic(model, joint.name);
    joint.mimic = mimic != nullptr;
    const int index = model.find_joint(mimic != nullptr ? mimic->joint : joint.name);
    const JointInfo& moved = model.joints[static_cast<std::size_t>(index)];
    joint.dof = moved.v;
    if (mimic != nullptr) {
      if (!declared.command_interfaces.empty())
        throw ConfigError("command_interface of joint '" + joint.name + "'",
                          "'" + declared.command_interfaces.front().name + "'",
                          "the joint mimics '" + mimic->joint + "'; command that one");
      joint.multiplier = mimic->multiplier;
      joint.offset = mimic->offset;
      continue;
    }
    const InterfaceInfo* state = find(declared.state_interfaces, quantities[position]);
    const std::string& text = state == nullptr ? std::string() : state->initial_value;
    q[moved.q] = dynamics_core::simulation::initial_position(moved, text);
    if (text.empty() && q[moved.q] != 0.0)
      RCLCPP_WARN(get_logger(), "joint '%s' starts at %g, as zero is outside its limits",
                  joint.name.c_str(), q[moved.q]);
  }
  if (robot_->start(q, VectorXd::Zero(model.nv)) != Status::ok)
    throw ConfigError("robot", "'" + model.name + "'", "cannot be put at its initial positions");
}

void SimulatedSystem::create_services() {
  const auto node = get_node();
  if (node == nullptr) {
    RCLCPP_WARN(get_logger(), "no node to offer services: faults and loads cannot be set");
    return;
  }
  for (Fault* fault : {&read_error_, &write_error_, &nan_state_, &frozen_state_})
    fault_services_.push_back(node->create_service<SetBool>(
        std::string("~/") + fault->service,
        [fault](const SetBool::Request::SharedPtr request, SetBool::Response::SharedPtr response) {
          fault->on = request->data;
          response->success = true;
        }));
  payload_service_ = node->create_service<SetPayload>(
      "~/set_payload",
      [this](const SetPayload::Request::SharedPtr request,
             SetPayload::Response::SharedPtr response) { on_set_payload(*request, *response); });
}

void SimulatedSystem::on_set_payload(const SetPayload::Request& request,
                                     SetPayload::Response& response) {
  try {
    const auto load = payload_of(request);
    const int link = dynamics_core::checked_payload(*model_, request.link, load);
    check_transition_time(request.transition_time);
    loads_.set([&](Loads& loads) {
      loads.by_link[static_cast<std::size_t>(link)] = {load, request.transition_time, true};
      loads.fresh = true;
    });
    response.success = true;
  } catch (const ConfigError& error) {
    response.success = false;
    response.message = error.what();
  }
}

// --- lifecycle -----------------------------------------------------------------------------------

/// The handles exist now. No controller has claimed anything yet, and what was broken is mended.
SimulatedSystem::CallbackReturn SimulatedSystem::on_configure(
    const rclcpp_lifecycle::State& /*previous*/) {
  for (Joint& joint : joints_) {
    for (std::size_t k = 0; k < quantities.size(); ++k) {
      const std::string name = joint.name + "/" + quantities[k];
      if (has_state(name)) joint.states[k] = get_state_interface_handle(name);
      if (k >= drives.size()) continue;
      CommandPort& command = joint.commands[k];
      if (has_command(name)) command.handle = get_command_interface_handle(name);
      command.claimed = false;
    }
  }
  for (Fault* fault : {&read_error_, &write_error_, &nan_state_, &frozen_state_}) fault->on = false;
  rest();
  return CallbackReturn::SUCCESS;
}

SimulatedSystem::CallbackReturn SimulatedSystem::on_activate(
    const rclcpp_lifecycle::State& /*previous*/) {
  for (Joint& joint : joints_)
    for (CommandPort& command : joint.commands) command.stale = command.claimed.load();
  rest();
  return CallbackReturn::SUCCESS;
}

SimulatedSystem::CallbackReturn SimulatedSystem::on_deactivate(
    const rclcpp_lifecycle::State& /*previous*/) {
  hold();
  return CallbackReturn::SUCCESS;
}

SimulatedSystem::CallbackReturn SimulatedSystem::on_error(
    const rclcpp_lifecycle::State& /*previous*/) {
  if (status_ != Status::ok)
    RCLCPP_ERROR(get_logger(), "the simulation cannot go on: %s", to_string(status_));
  return CallbackReturn::SUCCESS;
}

/// Where it is, but without moving, with its brakes on.
void SimulatedSystem::rest() {
  hold();
  const VectorXd q = robot_->position();
  status_ = robot_->start(q, VectorXd::Zero(model_->nv));
  publish_states();
}

// --- the cycle -----------------------------------------------------------------------------------

SimulatedSystem::return_type SimulatedSystem::perform_command_mode_switch(
    const std::vector<std::string>& start_interfaces,
    const std::vector<std::string>& stop_interfaces) {
  const auto is_among = [](const CommandPort& command, const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), command.handle->get_name()) != names.end();
  };
  for (Joint& joint : joints_) {
    for (CommandPort& command : joint.commands) {
      if (command.handle == nullptr) continue;
      const bool was_claimed = command.claimed;
      if (is_among(command, stop_interfaces)) command.claimed = false;
      if (!is_among(command, start_interfaces)) continue;
      if (!was_claimed) command.stale = true;  // else it passes from hand to hand
      command.claimed = true;
    }
  }
  return return_type::OK;
}

/// The state after the last commands have acted for a period.
SimulatedSystem::return_type SimulatedSystem::read(const rclcpp::Time& /*time*/,
                                                   const rclcpp::Duration& period) {
  if (read_error_.on) return return_type::ERROR;
  take_loads();
  const double dt = std::min(period.seconds(), max_period);
  if (dt > 0.0) {
    status_ = robot_->cycle(setpoints_, dt, static_cast<int>(std::ceil(dt / max_step_)));
    if (status_ != Status::ok) return return_type::ERROR;
  }
  if (!frozen_state_.on) publish_states();
  return return_type::OK;
}

SimulatedSystem::return_type SimulatedSystem::write(const rclcpp::Time& /*time*/,
                                                    const rclcpp::Duration& /*period*/) {
  if (write_error_.on) return return_type::ERROR;
  for (Joint& joint : joints_)
    if (!joint.mimic) take_commands(joint);
  return return_type::OK;
}

void SimulatedSystem::take_loads() {
  (void)loads_.try_set([this](Loads& loads) {
    if (!loads.fresh) return;
    loads.fresh = false;
    for (std::size_t i = 0; i < loads.by_link.size(); ++i) {
      Load& load = loads.by_link[i];
      if (!load.fresh) continue;
      load.fresh = false;
      (void)robot_->set_payload(static_cast<int>(i), load.payload, load.transition_time);
    }
  });
}

/// The first of position, velocity and effort that is claimed decides which loop acts; the others
/// are its feed-forward. Without a command for that one the brake holds the joint.
void SimulatedSystem::take_commands(Joint& joint) {
  const auto j = static_cast<std::size_t>(joint.dof);
  Drive drive = Drive::brake;
  bool decided = false;
  for (std::size_t k = 0; k < drives.size(); ++k) {
    CommandPort& command = joint.commands[k];
    if (!command.claimed) {
      command.value = nan;
    } else if (command.stale) {
      command.value = nan;
      command.stale = !set_command(command.handle, nan, false);
    } else {
      (void)get_command(command.handle, command.value, false);
    }
    if (command.claimed && !decided) {
      decided = true;
      if (std::isfinite(command.value)) drive = drives[k];
    }
  }
  const auto value = [&](Quantity k) {
    return std::isfinite(joint.commands[k].value) ? joint.commands[k].value : 0.0;
  };
  setpoints_.drives[j] = drive;
  setpoints_.position[joint.dof] = value(position);
  setpoints_.velocity[joint.dof] = value(velocity);
  setpoints_.effort[joint.dof] = value(effort);
}

void SimulatedSystem::hold() {
  std::fill(setpoints_.drives.begin(), setpoints_.drives.end(), Drive::brake);
}

void SimulatedSystem::publish_states() {
  const VectorXd* const values[] = {&robot_->measured_position(), &robot_->measured_velocity(),
                                    &robot_->effort(), &robot_->acceleration()};
  for (const Joint& joint : joints_) {
    for (std::size_t k = 0; k < quantities.size(); ++k) {
      if (joint.states[k] == nullptr) continue;
      double value = joint.multiplier * (*values[k])[joint.dof];
      if (k == position) value += joint.offset;
      if (k == effort && joint.mimic) value = 0.0;  // it has no drive
      (void)set_state(joint.states[k], nan_state_.on ? nan : value, false);
    }
  }
}

}  // namespace realtime_dynamics

PLUGINLIB_EXPORT_CLASS(realtime_dynamics::SimulatedSystem, hardware_interface::SystemInterface)
