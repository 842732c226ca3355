// SPDX-License-Identifier: Apache-2.0
#include "realtime_dynamics/external_torque_observer.hpp"

#include <algorithm>
#include <hardware_interface/types/hardware_interface_type_values.hpp>
#include <limits>
#include <pluginlib/class_list_macros.hpp>
#include <stdexcept>
#include <thread>

#include "payload_request.hpp"
#include "robot_settings.hpp"

namespace realtime_dynamics {

using controller_interface::interface_configuration_type;
using controller_interface::InterfaceConfiguration;
using controller_interface::return_type;
using dynamics_core::Model;
using dynamics_core::Status;
using dynamics_core::VectorX;
using dynamics_core::control::ObserverConfig;
using dynamics_core::control::View;
using hardware_interface::HW_IF_EFFORT;
using hardware_interface::HW_IF_POSITION;
using hardware_interface::HW_IF_VELOCITY;
using hardware_interface::StateInterface;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
/// As semantic_components::ForceTorqueSensor has them.
constexpr std::array<const char*, 6> axes = {"force.x",  "force.y",  "force.z",
                                             "torque.x", "torque.y", "torque.z"};
constexpr std::array<Status, 4> statuses_told = {Status::wrong_size, Status::not_finite,
                                                 Status::out_of_range, Status::not_converged};

[[nodiscard]] bool all_found(const std::vector<int>& indices) {
  return std::none_of(indices.begin(), indices.end(), [](int i) { return i < 0; });
}

[[nodiscard]] View given(const VectorX<double>& values, bool there) noexcept {
  return there ? View(values) : View();
}

[[nodiscard]] ObserverConfig observer_config(const external_torque_observer::Params& params,
                                             const Model& model) {
  ObserverConfig config;
  config.joints = params.joints;
  config.effort = *dynamics_core::control::find_effort_kind(params.effort);  // validated
  config.friction = friction(params, model);
  config.locked = locked(params);
  config.gravity = gravity(params);
  config.max_dt = params.max_period;
  config.velocity_cutoff = params.velocity_cutoff;
  config.cutoff = params.cutoff;
  config.thresholds.clear();
  for (const std::string& joint : params.joints) {
    const auto& given = params.thresholds.joints_map.at(joint);
    config.thresholds.push_back({given.constant, given.speed, given.stiction_velocity});
  }
  config.confirm_time = params.confirm_time;
  config.release = params.release;
  config.release_time = params.release_time;
  config.frame = params.frame;
  config.length = params.length;
  config.damping = params.damping;
  return config;
}

}  // namespace

// --- Life cycle ----------------------------------------------------------------------------------

ExternalTorqueObserver::CallbackReturn ExternalTorqueObserver::on_init() {
  try {
    param_listener_ = std::make_shared<external_torque_observer::ParamListener>(get_node());
  } catch (const std::exception& error) {
    RCLCPP_ERROR(get_node()->get_logger(), "Parameters: %s", error.what());
    return CallbackReturn::ERROR;
  }
  params_ = param_listener_->get_params();
  diagnostics_ = std::make_unique<diagnostic_updater::Updater>(get_node());
  diagnostics_->setHardwareID("none");
  diagnostics_->add("contacts", [this](diagnostic_updater::DiagnosticStatusWrapper& status) {
    diagnose(status);
  });
  return CallbackReturn::SUCCESS;
}

ExternalTorqueObserver::CallbackReturn ExternalTorqueObserver::on_configure(
    const rclcpp_lifecycle::State& /*previous*/) {
  const std::lock_guard<std::mutex> lock(model_mutex_);
  try {
    build_observer();
    create_publisher();
  } catch (const std::exception& error) {
    RCLCPP_ERROR(get_node()->get_logger(), "%s", error.what());
    return CallbackReturn::FAILURE;
  }
  return CallbackReturn::SUCCESS;
}

void ExternalTorqueObserver::build_observer() {
  model_ = described_model(get_robot_description(), params_);
  const Model& model = *model_;
  for (const std::string& warning : model.warnings)
    RCLCPP_WARN(get_node()->get_logger(), "%s", warning.c_str());
  observer_.emplace(model, observer_config(params_, model));
  if (!params_.payload.link.empty()) {
    const auto load = payload(params_);
    (void)observer_->set_payload(checked_payload(model, params_.payload.link, load), load);
  }
  Loads loads;
  loads.by_link.resize(model.links.size());
  loads_.set(loads);
  payload_service_ = get_node()->create_service<SetPayload>(
      "~/set_payload",
      [this](const SetPayload::Request::SharedPtr request,
             SetPayload::Response::SharedPtr response) { on_set_payload(*request, *response); });
  link_names_.clear();
  for (const auto& link : model.links) link_names_.push_back(link.name);

  const auto n = static_cast<Eigen::Index>(observer_->joints().size());
  const auto others = static_cast<Eigen::Index>(observer_->other_joints().size());
  for (VectorX<double>* values : {&position_, &velocity_, &effort_}) values->setConstant(n, nan);
  for (VectorX<double>* values : {&other_position_, &other_velocity_})
    values->setConstant(others, nan);
  Report report;
  report.efforts.resize(static_cast<std::size_t>(n));
  report.thresholds.resize(static_cast<std::size_t>(n));
  report_.set(report);
  diagnostics_->setHardwareID(model.name);
}

void ExternalTorqueObserver::create_publisher() {
  message_ = Message();
  message_.header.frame_id = params_.frame;
  message_.joint_names = params_.joints;
  message_.efforts.assign(params_.joints.size(), nan);
  message_.thresholds.assign(params_.joints.size(), nan);
  publisher_.reset();
  if (params_.publish_rate <= 0.0) return;
  publisher_ = std::make_unique<realtime_tools::RealtimePublisher<Message>>(
      get_node()->create_publisher<Message>("~/external_effort", rclcpp::SystemDefaultsQoS()));
  // The publisher's own copy of the message takes its memory with the first one, so that the control
  // loop does not have to: room for the longest name among the rest.
  for (const std::string& name : link_names_)
    if (name.size() > message_.link.size()) message_.link = name;
  while (!publisher_->try_publish(message_))
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  message_.link.clear();
}

void ExternalTorqueObserver::on_set_payload(const SetPayload::Request& request,
                                            SetPayload::Response& response) {
  const std::lock_guard<std::mutex> lock(model_mutex_);
  try {
    if (!model_) throw std::runtime_error("the observer is not configured");
    const auto load = payload_of(request);
    const int link = checked_payload(*model_, request.link, load);
    check_transition_time(request.transition_time);
    loads_.set([&](Loads& loads) {
      loads.by_link[static_cast<std::size_t>(link)] = {load, request.transition_time, true};
      loads.fresh = true;
    });
    response.success = true;
  } catch (const std::exception& error) {
    response.success = false;
    response.message = error.what();
  }
}

ExternalTorqueObserver::CallbackReturn ExternalTorqueObserver::on_activate(
    const rclcpp_lifecycle::State& /*previous*/) {
  if (!find_state_interfaces()) return CallbackReturn::FAILURE;
  try {
    read_states();
  } catch (const std::exception& error) {  // an interface that holds no floating-point number
    RCLCPP_ERROR(get_node()->get_logger(), "State interfaces: %s", error.what());
    return CallbackReturn::FAILURE;
  }
  take_loads();
  observer_->restart();
  was_touched_ = false;
  contacts_ = 0;
  statuses_.fill(0);
  since_published_ = std::numeric_limits<double>::infinity();
  write_states();
  report_.set([this](Report& report) { fill(report); });
  return CallbackReturn::SUCCESS;
}

ExternalTorqueObserver::CallbackReturn ExternalTorqueObserver::on_deactivate(
    const rclcpp_lifecycle::State& /*previous*/) {
  observer_->restart();
  write_states();
  report_.set([](Report& report) { report.active = report.touched = false; });
  return CallbackReturn::SUCCESS;
}

ExternalTorqueObserver::CallbackReturn ExternalTorqueObserver::on_cleanup(
    const rclcpp_lifecycle::State& /*previous*/) {
  const std::lock_guard<std::mutex> lock(model_mutex_);
  report_.set(Report());
  payload_service_.reset();
  publisher_.reset();
  observer_.reset();
  model_.reset();
  return CallbackReturn::SUCCESS;
}

ExternalTorqueObserver::CallbackReturn ExternalTorqueObserver::on_error(
    const rclcpp_lifecycle::State& previous) {
  return on_cleanup(previous);
}

// --- Interfaces ----------------------------------------------------------------------------------

InterfaceConfiguration ExternalTorqueObserver::command_interface_configuration() const {
  return {interface_configuration_type::NONE, {}};
}

/// Velocities, and the motion of joints that are not observed, are used where they are there.
InterfaceConfiguration ExternalTorqueObserver::state_interface_configuration() const {
  InterfaceConfiguration out{interface_configuration_type::INDIVIDUAL_BEST_EFFORT, {}};
  for (const char* type : {HW_IF_POSITION, HW_IF_VELOCITY, HW_IF_EFFORT})
    for (const std::string& joint : params_.joints) out.names.push_back(joint + "/" + type);
  if (observer_)
    for (const char* type : {HW_IF_POSITION, HW_IF_VELOCITY})
      for (const std::string& joint : observer_->other_joints())
        out.names.push_back(joint + "/" + type);
  return out;
}

bool ExternalTorqueObserver::find_state_interfaces() {
  const auto indices = [this](const std::vector<std::string>& joints, const char* type) {
    std::vector<int> out;
    for (const std::string& joint : joints) {
      const auto at = std::find_if(
          state_interfaces_.begin(), state_interfaces_.end(),
          [&](const auto& interface) { return interface.get_name() == joint + "/" + type; });
      out.push_back(at == state_interfaces_.end()
                        ? -1
                        : static_cast<int>(std::distance(state_interfaces_.begin(), at)));
    }
    return out;
  };
  position_states_ = indices(observer_->joints(), HW_IF_POSITION);
  velocity_states_ = indices(observer_->joints(), HW_IF_VELOCITY);
  effort_states_ = indices(observer_->joints(), HW_IF_EFFORT);
  other_position_states_ = indices(observer_->other_joints(), HW_IF_POSITION);
  other_velocity_states_ = indices(observer_->other_joints(), HW_IF_VELOCITY);
  has_velocities_ = all_found(velocity_states_);
  has_other_velocities_ = all_found(other_velocity_states_);
  const auto complain = [this](const std::vector<int>& found, const char* type) {
    for (std::size_t j = 0; j < found.size(); ++j)
      if (found[j] < 0)
        RCLCPP_ERROR(get_node()->get_logger(),
                     "State interface '%s/%s' is not there: add it to the joint in the URDF's "
                     "ros2_control tag",
                     observer_->joints()[j].c_str(), type);
    return all_found(found);
  };
  const bool positions = complain(position_states_, HW_IF_POSITION);
  const bool efforts = complain(effort_states_, HW_IF_EFFORT);
  return positions && efforts;
}

std::vector<StateInterface::SharedPtr> ExternalTorqueObserver::on_export_state_interfaces_list() {
  const std::string name = get_node()->get_name();
  std::vector<StateInterface::SharedPtr> out;
  for (const std::string& joint : params_.joints)
    out.push_back(std::make_shared<StateInterface>(name + "/" + joint, "external_torque"));
  out.push_back(std::make_shared<StateInterface>(name, "contact"));
  if (!params_.frame.empty())
    for (const char* axis : axes) out.push_back(std::make_shared<StateInterface>(name, axis));
  for (const StateInterface::SharedPtr& state : out) (void)state->set_value(0.0);
  return out;
}

void ExternalTorqueObserver::diagnose(diagnostic_updater::DiagnosticStatusWrapper& status) {
  using diagnostic_msgs::msg::DiagnosticStatus;
  const Report now = report_.get();
  status.summary(DiagnosticStatus::OK, now.active ? "nothing touches the robot" : "inactive");
  if (now.touched)
    status.summary(DiagnosticStatus::WARN,
                   "touched at " + link_names_[static_cast<std::size_t>(now.link)]);
  warn_of_unusable_cycles(now, status);
  status.add("contacts", now.contacts);
  status.add("cycles", now.statuses[static_cast<std::size_t>(Status::ok)]);
  for (const Status s : statuses_told) {
    const std::uint64_t count = now.statuses[static_cast<std::size_t>(s)];
    status.add(std::string("cycles that started anew: ") + to_string(s), count);
  }
  for (std::size_t j = 0; j < now.efforts.size(); ++j) {
    status.addf("external effort, " + params_.joints[j], "%.3g", now.efforts[j]);
    status.addf("threshold, " + params_.joints[j], "%.3g", now.thresholds[j]);
  }
}

/// Of the cycles since the last diagnostics. What cannot be used feels nothing, which nobody shall take
/// for a robot that is free.
void ExternalTorqueObserver::warn_of_unusable_cycles(
    const Report& now, diagnostic_updater::DiagnosticStatusWrapper& status) {
  using diagnostic_msgs::msg::DiagnosticStatus;
  Diagnosed total;
  total.usable = now.statuses[static_cast<std::size_t>(Status::ok)];
  for (const Status s : statuses_told) total.unusable += now.statuses[static_cast<std::size_t>(s)];
  const bool activated_since =
      total.usable < diagnosed_.usable || total.unusable < diagnosed_.unusable;
  const Diagnosed last = activated_since ? Diagnosed{} : diagnosed_;
  diagnosed_ = total;
  const std::uint64_t usable = total.usable - last.usable;
  const std::uint64_t unusable = total.unusable - last.unusable;
  if (!now.active || unusable == 0) return;
  const std::string count = std::to_string(unusable) + " of " + std::to_string(usable + unusable);
  status.mergeSummary(usable == 0 ? DiagnosticStatus::ERROR : DiagnosticStatus::WARN,
                      count +
                          " cycles could not be used: nothing is felt in them; see the counts "
                          "of cycles that started anew");
}

// --- The cycle -----------------------------------------------------------------------------------

return_type ExternalTorqueObserver::update_reference_from_subscribers(
    const rclcpp::Time& /*time*/, const rclcpp::Duration& /*period*/) {
  return return_type::OK;
}

return_type ExternalTorqueObserver::update_and_write_commands(const rclcpp::Time& time,
                                                              const rclcpp::Duration& period) {
  take_loads();
  read_states();
  const Status status =
      observer_->update({position_, given(velocity_, has_velocities_), effort_, other_position_,
                         given(other_velocity_, has_other_velocities_)},
                        period.seconds());
  ++statuses_[static_cast<std::size_t>(status)];
  const bool touched = observer_->contact().touched;
  if (touched && !was_touched_) ++contacts_;
  was_touched_ = touched;
  write_states();
  publish(time, period.seconds());
  (void)report_.try_set([this](Report& report) { fill(report); });
  return return_type::OK;
}

void ExternalTorqueObserver::take_loads() {
  (void)loads_.try_set([this](Loads& loads) {
    if (!loads.fresh) return;
    loads.fresh = false;
    for (std::size_t i = 0; i < loads.by_link.size(); ++i) {
      Loads::Load& load = loads.by_link[i];
      if (!load.fresh) continue;
      load.fresh = false;
      (void)observer_->set_payload(static_cast<int>(i), load.payload, load.transition_time);
    }
  });
}

void ExternalTorqueObserver::read_states() {
  const auto read = [this](const std::vector<int>& indices, VectorX<double>& values) {
    for (std::size_t j = 0; j < indices.size(); ++j)
      values[static_cast<Eigen::Index>(j)] =
          indices[j] < 0 ? nan
                         : state_interfaces_[static_cast<std::size_t>(indices[j])]
                               .get_optional<double>()
                               .value_or(nan);
  };
  read(position_states_, position_);
  read(velocity_states_, velocity_);
  read(effort_states_, effort_);
  read(other_position_states_, other_position_);
  read(other_velocity_states_, other_velocity_);
}

void ExternalTorqueObserver::write_states() {
  const auto& states = ordered_exported_state_interfaces_;
  std::size_t next = 0;
  const auto write = [&](double value) {
    if (next < states.size()) (void)states[next++]->set_value(value);
  };
  for (const double effort : observer_->external_effort()) write(effort);
  write(observer_->contact().touched ? 1.0 : 0.0);
  const auto& wrench = observer_->wrench();
  for (const double force : wrench.force) write(force);
  for (const double torque : wrench.torque) write(torque);
}

void ExternalTorqueObserver::publish(const rclcpp::Time& time, double period) {
  if (!publisher_) return;
  since_published_ += period;
  if (since_published_ + 0.5 * period < 1.0 / params_.publish_rate) return;
  message_.header.stamp = time;
  const auto& effort = observer_->external_effort();
  const auto& threshold = observer_->threshold();
  std::copy(effort.begin(), effort.end(), message_.efforts.begin());
  std::copy(threshold.begin(), threshold.end(), message_.thresholds.begin());
  const auto& contact = observer_->contact();
  message_.touched = contact.touched;
  message_.contact_time = contact.time;
  if (contact.link < 0)
    message_.link.clear();
  else
    message_.link = link_names_[static_cast<std::size_t>(contact.link)];  // there is room for it
  const auto& wrench = observer_->wrench();
  message_.wrench.force.x = wrench.force.x();
  message_.wrench.force.y = wrench.force.y();
  message_.wrench.force.z = wrench.force.z();
  message_.wrench.torque.x = wrench.torque.x();
  message_.wrench.torque.y = wrench.torque.y();
  message_.wrench.torque.z = wrench.torque.z();
  message_.directions = static_cast<std::uint8_t>(wrench.directions);
  message_.conditioning = wrench.conditioning;
  if (publisher_->try_publish(message_)) since_published_ = 0.0;
}

void ExternalTorqueObserver::fill(Report& report) const {
  report.active = true;
  report.touched = observer_->contact().touched;
  report.link = observer_->contact().link;
  report.contacts = contacts_;
  report.statuses = statuses_;
  const auto& effort = observer_->external_effort();
  const auto& threshold = observer_->threshold();
  std::copy(effort.begin(), effort.end(), report.efforts.begin());
  std::copy(threshold.begin(), threshold.end(), report.thresholds.begin());
}

}  // namespace realtime_dynamics

PLUGINLIB_EXPORT_CLASS(realtime_dynamics::ExternalTorqueObserver,
                       controller_interface::ChainableControllerInterface)
