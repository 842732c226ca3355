// SPDX-License-Identifier: Apache-2.0
#include "realtime_dynamics/feedforward_controller.hpp"

#include <algorithm>
#include <cmath>
#include <hardware_interface/types/hardware_interface_type_values.hpp>
#include <limits>
#include <pluginlib/class_list_macros.hpp>
#include <stdexcept>
#include <thread>

#include "dynamics_core/text.hpp"
#include "feedforward_settings.hpp"
#include "payload_request.hpp"

namespace realtime_dynamics {

namespace text = dynamics_core::text;
using controller_interface::interface_configuration_type;
using controller_interface::InterfaceConfiguration;
using controller_interface::return_type;
using dynamics_core::checked_payload;
using dynamics_core::VectorX;
using dynamics_core::control::all_events;
using dynamics_core::control::Command;
using dynamics_core::control::ControllerState;
using dynamics_core::control::Event;
using dynamics_core::control::Gains;
using dynamics_core::control::LoadEstimate;
using dynamics_core::control::LoadEstimator;
using dynamics_core::control::LoadEstimatorConfig;
using dynamics_core::control::Measurement;
using dynamics_core::control::Mode;
using dynamics_core::control::View;
using hardware_interface::CommandInterface;
using hardware_interface::HW_IF_ACCELERATION;
using hardware_interface::HW_IF_EFFORT;
using hardware_interface::HW_IF_POSITION;
using hardware_interface::HW_IF_VELOCITY;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
/// An absence no longer than this is a restart. A switch that is not asked for `asap` takes place
/// outside the control loop, and as long as that thread takes.
constexpr std::chrono::milliseconds restart_time(200);
constexpr std::array<const char*, 3> reference_types = {HW_IF_POSITION, HW_IF_VELOCITY,
                                                        HW_IF_ACCELERATION};

/// Index of the interface of this name, −1 where there is none.
template <class Interfaces>
[[nodiscard]] int find(const Interfaces& interfaces, const std::string& name) {
  for (std::size_t i = 0; i < interfaces.size(); ++i)
    if (interfaces[i].get_name() == name) return static_cast<int>(i);
  return -1;
}

[[nodiscard]] bool all_found(const std::vector<int>& indices) {
  return std::none_of(indices.begin(), indices.end(), [](int i) { return i < 0; });
}

[[nodiscard]] View given(const VectorX<double>& values, bool there) noexcept {
  return there ? View(values) : View();
}

/// A load that is hardly known, or that nothing can be, is not for a control law.
void check_applicable(const LoadEstimate& load) {
  const double bound = std::max(0.2, 0.2 * std::abs(load.mass));  // kg
  if (load.mass_deviation > bound)
    throw dynamics_core::ConfigError(
        "apply",
        text::to_short_text(load.mass) + " ± " + text::to_short_text(load.mass_deviation) + " kg",
        "the mass is not known to " + text::to_short_text(bound) +
            " kg; move more joints, further and longer, and stop again: weighing goes on");
  if (load.mass < -bound)
    throw dynamics_core::ConfigError(
        "apply", text::to_short_text(load.mass) + " kg",
        "no body has a mass below zero; check the model, its friction, the payload it is told of "
        "and measured_effort, and start again");
}

void copy(const VectorX<double>& from, std::vector<double>& to) noexcept {
  std::copy(from.begin(), from.end(), to.begin());
}

}  // namespace

// --- Life cycle ----------------------------------------------------------------------------------

FeedforwardController::CallbackReturn FeedforwardController::on_init() {
  try {
    param_listener_ = std::make_shared<feedforward_controller::ParamListener>(get_node());
  } catch (const std::exception& error) {
    RCLCPP_ERROR(get_node()->get_logger(), "Parameters: %s", error.what());
    return CallbackReturn::ERROR;
  }
  params_ = param_listener_->get_params();
  param_listener_->setUserCallback([this](const Params& params) { take_parameters(params); });
  // Callbacks are called from the last to the first: this one comes before the listener takes over.
  parameter_check_ = get_node()->add_on_set_parameters_callback(
      [this](const std::vector<rclcpp::Parameter>& changes) { return check_parameters(changes); });
  // Once and for all: its timer may be at work in another thread while the controller is cleaned
  // up.
  diagnostics_ = std::make_unique<diagnostic_updater::Updater>(get_node());
  diagnostics_->setHardwareID("none");
  diagnostics_->add("control law", [this](diagnostic_updater::DiagnosticStatusWrapper& status) {
    diagnose(status);
  });
  return CallbackReturn::SUCCESS;
}

FeedforwardController::CallbackReturn FeedforwardController::on_configure(
    const rclcpp_lifecycle::State& /*previous*/) {
  const std::lock_guard<std::mutex> lock(model_mutex_);
  try {
    build_controller();
    create_interfaces();
  } catch (const std::exception& error) {
    RCLCPP_ERROR(get_node()->get_logger(), "%s", error.what());
    return CallbackReturn::FAILURE;
  }
  return CallbackReturn::SUCCESS;
}

void FeedforwardController::build_controller() {
  const Params params = param_listener_->get_params();
  model_ = described_model(get_robot_description(), params);
  for (const std::string& warning : model_->warnings)
    RCLCPP_WARN(get_node()->get_logger(), "%s", warning.c_str());
  controller_.emplace(*model_, control_config(params, *model_));

  const dynamics_core::Payload<double> none{0.0, Eigen::Vector3d::Zero(),
                                            dynamics_core::Symmetric3<double>::zero()};
  carried_.assign(model_->links.size(), none);
  {
    const std::lock_guard<std::mutex> scales_lock(scales_mutex_);
    scales_.reset();
  }
  Changes changes;
  changes.loads.resize(model_->links.size());
  if (!params.payload.link.empty()) {
    const auto load = payload(params);
    const int link = checked_payload(*model_, params.payload.link, load);
    changes.loads[static_cast<std::size_t>(link)] = {load, 0.0, true};
    changes.fresh_load = true;
    carried_[static_cast<std::size_t>(link)] = load;
  }
  changes_.set(changes);
  take_parameters(params);

  const Eigen::Index n = controller_->size();
  for (VectorX<double>* values : {&position_, &velocity_, &effort_, &reference_position_,
                                  &reference_velocity_, &reference_acceleration_})
    values->setConstant(n, nan);
  others_.setConstant(static_cast<Eigen::Index>(controller_->other_joints().size()), nan);
  last_cycle_ = {};
  Report report;
  report.limits = controller_->limits();
  report_.set(report);
}

void FeedforwardController::create_interfaces() {
  const auto n = static_cast<std::size_t>(controller_->size());
  const std::vector<double> unknown(n, nan);
  topic_reference_.set(TopicReference());
  auto latest = rclcpp::SystemDefaultsQoS();
  latest.keep_last(1).best_effort();
  reference_subscription_ = get_node()->create_subscription<ReferenceMsg>(
      "~/reference", latest, [this](const ReferenceMsg& message) { on_reference(message); });

  payload_service_ = get_node()->create_service<SetPayload>(
      "~/set_payload",
      [this](const SetPayload::Request::SharedPtr request,
             SetPayload::Response::SharedPtr response) { on_set_payload(*request, *response); });

  weigh_service_ = get_node()->create_service<WeighLoad>(
      "~/weigh_load",
      [this](const WeighLoad::Request::SharedPtr request, WeighLoad::Response::SharedPtr response) {
        on_weigh_load(*request, *response);
      });

  state_message_ = StateMsg();
  state_message_.joint_names = controller_->joints();
  state_message_.reference.positions = unknown;
  state_message_.reference.velocities = unknown;
  state_message_.reference.accelerations = unknown;
  state_message_.feedback.positions = unknown;
  state_message_.feedback.velocities = unknown;
  state_message_.error.positions = unknown;
  state_message_.error.velocities = unknown;
  state_message_.output.effort = unknown;
  if (controller_->config().mode == Mode::pass_through) {
    state_message_.output.positions = unknown;
    state_message_.output.velocities = unknown;
  }
  state_message_.speed_scaling_factor = 1.0;
  if (params_.state_publish_rate > 0.0) {
    state_publisher_ = std::make_unique<realtime_tools::RealtimePublisher<StateMsg>>(
        get_node()->create_publisher<StateMsg>("~/controller_state", rclcpp::SystemDefaultsQoS()));
    // The publisher's own copy of the message takes its memory with the first one, so that the
    // control loop does not have to.
    while (!state_publisher_->try_publish(state_message_))
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }

  diagnostics_->setHardwareID(model_->name);
}

FeedforwardController::CallbackReturn FeedforwardController::on_activate(
    const rclcpp_lifecycle::State& /*previous*/) {
  if (!find_state_interfaces()) return CallbackReturn::FAILURE;
  take_changes();
  try {
    read_states();
  } catch (const std::exception& error) {  // an interface that holds no floating-point number
    RCLCPP_ERROR(get_node()->get_logger(), "State interfaces: %s", error.what());
    return CallbackReturn::FAILURE;
  }
  // ros2_control switches a controller off and on again when the one before it in the chain comes
  // or goes. Then the effort has to stay up.
  const bool restart =
      Clock::now() - last_cycle_ <= restart_time && controller_->state() != ControllerState::fault;
  if (!restart) {
    controller_->reset();
    compute_times_.clear();
    failed_writes_ = 0;
  }
  const Measurement measurement{position_, given(velocity_, has_velocities_), others_, false};
  const ControllerState state =
      restart ? controller_->resume(measurement) : controller_->activate(measurement);
  report_.set([this](Report& report) { fill(report); });
  if (state == ControllerState::inactive) {
    for (Eigen::Index j = 0; j < controller_->size(); ++j)
      if (!std::isfinite(position_[j] + (has_velocities_ ? velocity_[j] : 0.0)))
        RCLCPP_ERROR(get_node()->get_logger(),
                     "Joint '%s' measures position %g and velocity %g: both must be finite before "
                     "the controller can start; is the hardware active?",
                     controller_->joints()[static_cast<std::size_t>(j)].c_str(), position_[j],
                     velocity_[j]);
    return CallbackReturn::FAILURE;
  }
  topic_reference_.set([](TopicReference& reference) { reference.fresh = false; });
  fresh_reference_ = false;
  topic_has_ = {};
  since_published_ = std::numeric_limits<double>::infinity();
  weighs_anew_ = true;
  write_commands();
  write_references(restart);
  return CallbackReturn::SUCCESS;
}

FeedforwardController::CallbackReturn FeedforwardController::on_deactivate(
    const rclcpp_lifecycle::State& /*previous*/) {
  if (controller_->deactivate() == ControllerState::fault)
    RCLCPP_ERROR(get_node()->get_logger(),
                 "Stopped by a fault: %s. Activate the controller again once its cause is gone.",
                 to_string(controller_->fault_cause()));
  read_states();
  const Measurement measurement{position_, given(velocity_, has_velocities_), others_, false};
  (void)controller_->update(measurement, {}, 0.0);  // not active: effort 0
  write_commands();
  write_references(false);
  report_.set([this](Report& report) { fill(report); });
  return CallbackReturn::SUCCESS;
}

FeedforwardController::CallbackReturn FeedforwardController::on_cleanup(
    const rclcpp_lifecycle::State& /*previous*/) {
  const std::lock_guard<std::mutex> lock(model_mutex_);
  report_.set(Report());
  state_publisher_.reset();
  {
    const std::lock_guard<std::mutex> scales_lock(scales_mutex_);
    scales_.reset();
  }
  weigh_service_.reset();
  payload_service_.reset();
  reference_subscription_.reset();
  controller_.reset();
  model_.reset();
  return CallbackReturn::SUCCESS;
}

FeedforwardController::CallbackReturn FeedforwardController::on_error(
    const rclcpp_lifecycle::State& previous) {
  return on_cleanup(previous);
}

// --- Interfaces ----------------------------------------------------------------------------------

std::vector<std::string> FeedforwardController::command_interface_types() const {
  if (params_.mode == to_string(Mode::pass_through))
    return {HW_IF_POSITION, HW_IF_VELOCITY, HW_IF_EFFORT};
  return {HW_IF_EFFORT};
}

InterfaceConfiguration FeedforwardController::command_interface_configuration() const {
  InterfaceConfiguration out{interface_configuration_type::INDIVIDUAL, {}};
  for (const std::string& type : command_interface_types())
    for (const std::string& joint : params_.joints) out.names.push_back(joint + "/" + type);
  return out;
}

/// Velocities, efforts, and positions of joints that are not commanded, are used where they are
/// there.
InterfaceConfiguration FeedforwardController::state_interface_configuration() const {
  InterfaceConfiguration out{interface_configuration_type::INDIVIDUAL_BEST_EFFORT, {}};
  for (const char* type : {HW_IF_POSITION, HW_IF_VELOCITY})
    for (const std::string& joint : params_.joints) out.names.push_back(joint + "/" + type);
  if (controller_)
    for (const std::string& joint : controller_->other_joints())
      out.names.push_back(joint + "/" + HW_IF_POSITION);
  for (const std::string& joint : params_.joints) out.names.push_back(joint + "/" + HW_IF_EFFORT);
  if (!params_.contact.observer.empty()) out.names.push_back(params_.contact.observer + "/contact");
  return out;
}

bool FeedforwardController::find_state_interfaces() {
  const auto indices = [this](const std::vector<std::string>& joints, const char* type) {
    std::vector<int> out;
    out.reserve(joints.size());
    for (const std::string& joint : joints)
      out.push_back(find(state_interfaces_, joint + "/" + type));
    return out;
  };
  position_states_ = indices(controller_->joints(), HW_IF_POSITION);
  velocity_states_ = indices(controller_->joints(), HW_IF_VELOCITY);
  effort_states_ = indices(controller_->joints(), HW_IF_EFFORT);
  other_states_ = indices(controller_->other_joints(), HW_IF_POSITION);
  has_efforts_ = all_found(effort_states_);
  const std::string& observer = params_.contact.observer;
  contact_state_ = observer.empty() ? -1 : find(state_interfaces_, observer + "/contact");
  has_velocities_ = all_found(velocity_states_);
  for (std::size_t j = 0; j < position_states_.size(); ++j)
    if (position_states_[j] < 0)
      RCLCPP_ERROR(get_node()->get_logger(),
                   "State interface '%s/%s' is not there: add it to the joint in the URDF's "
                   "ros2_control tag",
                   controller_->joints()[j].c_str(), HW_IF_POSITION);
  const bool hears = contact_state_ >= 0 || observer.empty();
  if (!hears)
    RCLCPP_ERROR(get_node()->get_logger(),
                 "State interface '%s/contact' is not there: activate the ExternalTorqueObserver "
                 "'%s' first, or together with this controller",
                 observer.c_str(), observer.c_str());
  return all_found(position_states_) && hears;
}

std::vector<CommandInterface::SharedPtr>
FeedforwardController::on_export_reference_interfaces_list() {
  std::vector<CommandInterface::SharedPtr> out;
  for (const char* type : reference_types)
    for (const std::string& joint : params_.joints) {
      out.push_back(std::make_shared<CommandInterface>(
          std::string(get_node()->get_name()) + "/" + joint, type));
      (void)out.back()->set_value(nan);
    }
  return out;
}

// --- Requests from outside -----------------------------------------------------------------------

rcl_interfaces::msg::SetParametersResult FeedforwardController::check_parameters(
    const std::vector<rclcpp::Parameter>& parameters) const {
  rcl_interfaces::msg::SetParametersResult result;
  result.successful = true;
  const auto mode = *dynamics_core::control::find_mode(params_.mode);
  try {
    for (const rclcpp::Parameter& parameter : parameters) {
      const std::string& name = parameter.get_name();
      const std::size_t dot = name.rfind('.');
      if (name.rfind("gains.", 0) == 0 && dot > 6 &&
          parameter.get_type() == rclcpp::ParameterType::PARAMETER_DOUBLE) {
        Gains gains;
        const std::string gain = name.substr(dot + 1);
        (gain == "p"   ? gains.p
         : gain == "d" ? gains.d
         : gain == "i" ? gains.i
                       : gains.i_clamp) = parameter.as_double();
        check_gains(name.substr(6, dot - 6), gains, mode);
      }
      if (name == "gravity" && parameter.get_type() == rclcpp::PARAMETER_DOUBLE_ARRAY)
        for (const double x : parameter.as_double_array())
          if (!std::isfinite(x))
            throw dynamics_core::ConfigError("gravity", text::to_short_text(x),
                                             "give three finite numbers in m/s²");
    }
  } catch (const dynamics_core::ConfigError& error) {
    result.successful = false;
    result.reason = error.what();
  }
  return result;
}

void FeedforwardController::take_parameters(const Params& params) {
  const std::vector<Gains> gains = joint_gains(params);
  changes_.set([&](Changes& changes) {
    changes.gains = gains;
    changes.gravity = gravity(params);
    changes.fresh_parameters = true;
  });
  const std::lock_guard<std::mutex> lock(scales_mutex_);
  if (scales_) (void)scales_->set_gravity(gravity(params));
}

/// What makes a message on ~/reference unusable; empty where nothing does.
std::string FeedforwardController::problem_of(const ReferenceMsg& message) {
  const std::vector<std::string>& joints = params_.joints;
  const auto wrong_size = [&](const std::vector<double>& values) {
    return !values.empty() && values.size() != joints.size();
  };
  const auto sizes = [&](const char* field, const std::vector<double>& values) {
    return std::string(field) + " has " + std::to_string(values.size()) +
           " elements; give none, or " + std::to_string(joints.size()) +
           " in the order of the parameter joints";
  };
  if (wrong_size(message.positions)) return sizes("positions", message.positions);
  if (wrong_size(message.velocities)) return sizes("velocities", message.velocities);
  if (wrong_size(message.accelerations)) return sizes("accelerations", message.accelerations);
  if (!message.effort.empty()) return "effort is given; leave it empty, the controller computes it";
  const std::lock_guard<std::mutex> lock(model_mutex_);
  if (!model_) return "the controller is not configured";
  for (std::size_t j = 0; j < message.positions.size(); ++j) {
    const auto& limits =
        model_->joints[static_cast<std::size_t>(model_->find_joint(joints[j]))].limits;
    const double position = message.positions[j];
    if (position < limits.lower || position > limits.upper)
      return "position " + text::to_text(position) + " of joint '" + joints[j] +
             "' is outside its limits; give one from " + text::to_text(limits.lower) + " to " +
             text::to_text(limits.upper);
  }
  return "";
}

void FeedforwardController::on_reference(const ReferenceMsg& message) {
  if (is_in_chained_mode()) {
    RCLCPP_WARN_THROTTLE(get_node()->get_logger(), *get_node()->get_clock(), 1000,
                         "~/reference is ignored while another controller commands this one");
    return;
  }
  if (const std::string problem = problem_of(message); !problem.empty()) {
    RCLCPP_ERROR_THROTTLE(get_node()->get_logger(), *get_node()->get_clock(), 1000,
                          "~/reference: %s. The message is dropped.", problem.c_str());
    return;
  }
  topic_reference_.set([&](TopicReference& reference) {
    reference.position = message.positions;
    reference.velocity = message.velocities;
    reference.acceleration = message.accelerations;
    reference.fresh = true;
  });
}

void FeedforwardController::on_set_payload(const SetPayload::Request& request,
                                           SetPayload::Response& response) {
  const std::lock_guard<std::mutex> lock(model_mutex_);
  try {
    if (!model_) throw std::runtime_error("the controller is not configured");
    const int link = carry(request.link, payload_of(request), request.transition_time);
    // What the link on the scales carries is weighed as a whole; of all others it is known.
    const std::lock_guard<std::mutex> scales_lock(scales_mutex_);
    if (scales_ && scales_->link() != link)
      (void)scales_->set_payload(link, carried_[static_cast<std::size_t>(link)]);
    response.success = true;
  } catch (const std::exception& error) {
    response.success = false;
    response.message = error.what();
  }
}

int FeedforwardController::carry(const std::string& link,
                                 const dynamics_core::Payload<double>& load,
                                 double transition_time) {
  const auto index = static_cast<std::size_t>(checked_payload(*model_, link, load));
  check_transition_time(transition_time);
  changes_.set([&](Changes& changes) {
    changes.loads[index] = {load, transition_time, true};
    changes.fresh_load = true;
  });
  carried_[index] = load;
  return static_cast<int>(index);
}

void FeedforwardController::on_weigh_load(const WeighLoad::Request& request,
                                          WeighLoad::Response& response) {
  const std::lock_guard<std::mutex> lock(model_mutex_);
  try {
    if (!model_) throw std::runtime_error("the controller is not configured");
    if (request.start)
      start_weighing(request.link);
    else
      stop_weighing(request, response);
    response.success = true;
  } catch (const std::exception& error) {
    response.success = false;
    response.message = error.what();
  }
}

/// What the other links carry is known; what this one does is weighed as a whole.
void FeedforwardController::start_weighing(const std::string& link) {
  if (!has_efforts_)
    throw std::runtime_error(
        "no load can be weighed: the hardware has no effort state interface for each joint, or the "
        "controller has not been active yet; add them to the URDF's ros2_control tag");
  const Params params = param_listener_->get_params();
  const auto config = control_config(params, *model_);
  LoadEstimatorConfig scales;
  scales.joints = config.joints;
  scales.effort = *dynamics_core::control::find_effort_kind(params.measured_effort);  // validated
  scales.friction = config.friction;
  scales.locked = config.locked;
  scales.gravity = config.gravity;
  scales.max_dt = config.max_dt;
  scales.velocity_cutoff = config.velocity_cutoff;
  scales.link = link;
  auto fresh = std::make_unique<LoadEstimator>(*model_, scales);
  for (std::size_t i = 0; i < carried_.size(); ++i)
    if (static_cast<int>(i) != fresh->link())
      (void)fresh->set_payload(static_cast<int>(i), carried_[i]);
  const std::lock_guard<std::mutex> lock(scales_mutex_);
  scales_ = std::move(fresh);
}

/// Where it cannot stop as asked for, weighing goes on.
void FeedforwardController::stop_weighing(const WeighLoad::Request& request,
                                          WeighLoad::Response& response) {
  const std::lock_guard<std::mutex> lock(scales_mutex_);
  if (!scales_) throw std::runtime_error("nothing is being weighed; start first");
  if (request.apply) check_transition_time(request.transition_time);
  LoadEstimate found;
  if (scales_->estimate(found) != dynamics_core::Status::ok)
    throw std::runtime_error(
        "no sample could be used; weigh while the controller is active and its states are finite");
  response.weighed_link = model_->links[static_cast<std::size_t>(scales_->link())].name;
  response.mass = found.mass;
  response.mass_deviation = found.mass_deviation;
  response.center_of_mass.x = found.com.x();
  response.center_of_mass.y = found.com.y();
  response.center_of_mass.z = found.com.z();
  response.center_of_mass_deviation.x = found.com_deviation.x();
  response.center_of_mass_deviation.y = found.com_deviation.y();
  response.center_of_mass_deviation.z = found.com_deviation.z();
  response.ixx = found.inertia.xx;
  response.ixy = found.inertia.xy;
  response.ixz = found.inertia.xz;
  response.iyy = found.inertia.yy;
  response.iyz = found.inertia.yz;
  response.izz = found.inertia.zz;
  response.inertia_deviation = found.inertia_deviation;
  response.time = found.time;
  if (request.apply) {
    check_applicable(found);
    (void)carry(response.weighed_link, dynamics_core::control::payload(found),
                request.transition_time);
  }
  scales_.reset();
}

void FeedforwardController::diagnose(diagnostic_updater::DiagnosticStatusWrapper& status) {
  using diagnostic_msgs::msg::DiagnosticStatus;
  const Report now = report_.get();
  std::uint64_t limited_cycles = 0;
  for (const auto& limits : now.limits)
    limited_cycles += limits.effort_limited_cycles + limits.rate_limited_cycles;

  status.summary(DiagnosticStatus::OK, to_string(now.state));
  if (limited_cycles > limited_cycles_reported_)
    status.mergeSummary(DiagnosticStatus::WARN, "efforts are limited");
  limited_cycles_reported_ = limited_cycles;
  if (now.reacting) status.mergeSummary(DiagnosticStatus::WARN, "touched; activate again to go on");
  if (now.state == ControllerState::holding_command)
    status.summary(DiagnosticStatus::WARN, "no usable state: repeats the last command");
  if (now.state == ControllerState::fault)
    status.summary(DiagnosticStatus::ERROR, std::string("fault: ") + to_string(now.fault_cause) +
                                                "; activate again once its cause is gone");
  status.add("state", to_string(now.state));
  for (const Event event : all_events)
    status.add(std::string("count of ") + to_string(event), now.events[event]);
  status.add("count of failed writes", now.failed_writes);
  for (std::size_t j = 0; j < now.limits.size(); ++j) {
    const std::string& joint = params_.joints[j];
    status.add("cycles at the effort limit, " + joint, now.limits[j].effort_limited_cycles);
    status.add("cycles at the effort rate limit, " + joint, now.limits[j].rate_limited_cycles);
  }
  status.add("cycles", compute_times_.count());
  status.addf("compute time p99 (us)", "%.1f", 1e6 * compute_times_.quantile(0.99));
  status.addf("compute time max (us)", "%.1f", 1e6 * compute_times_.max());
}

// --- The cycle -----------------------------------------------------------------------------------

return_type FeedforwardController::update_reference_from_subscribers(
    const rclcpp::Time& /*time*/, const rclcpp::Duration& /*period*/) {
  fresh_reference_ = false;
  (void)topic_reference_.try_set([this](TopicReference& reference) {
    fresh_reference_ = reference.fresh;
    reference.fresh = false;
    if (!fresh_reference_) return;
    const auto take = [](const std::vector<double>& from, VectorX<double>& to) {
      std::copy(from.begin(), from.end(), to.begin());
      return !from.empty();
    };
    topic_has_ = {take(reference.position, reference_position_),
                  take(reference.velocity, reference_velocity_),
                  take(reference.acceleration, reference_acceleration_)};
  });
  return return_type::OK;
}

return_type FeedforwardController::update_and_write_commands(const rclcpp::Time& time,
                                                             const rclcpp::Duration& period) {
  const Clock::time_point start = Clock::now();
  last_cycle_ = start;
  take_changes();
  read_states();
  const bool chained = is_in_chained_mode();
  if (chained) read_references();
  weigh(period.seconds());
  const ControllerState state = controller_->update(
      {position_, given(velocity_, has_velocities_), others_, touched_},
      {given(reference_position_, chained || topic_has_[0]),
       given(reference_velocity_, chained || topic_has_[1]),
       given(reference_acceleration_, chained || topic_has_[2]), chained || fresh_reference_},
      period.seconds());
  write_commands();
  publish_state(time, period.seconds());
  compute_times_.add(std::chrono::nanoseconds(Clock::now() - start).count());
  (void)report_.try_set([this](Report& report) { fill(report); });
  return state == ControllerState::fault ? return_type::ERROR : return_type::OK;
}

void FeedforwardController::take_changes() {
  (void)changes_.try_set([this](Changes& changes) {
    if (changes.fresh_parameters) {
      changes.fresh_parameters = false;
      for (std::size_t j = 0; j < changes.gains.size(); ++j)
        (void)controller_->set_gains(static_cast<Eigen::Index>(j), changes.gains[j]);
      (void)controller_->set_gravity(changes.gravity);
    }
    if (!changes.fresh_load) return;
    changes.fresh_load = false;
    for (std::size_t i = 0; i < changes.loads.size(); ++i) {
      Changes::Load& load = changes.loads[i];
      if (!load.fresh) continue;
      load.fresh = false;
      (void)controller_->set_payload(static_cast<int>(i), load.payload, load.transition_time);
    }
  });
}

void FeedforwardController::read_states() {
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
  read(other_states_, others_);
  touched_ =
      contact_state_ >= 0 &&
      state_interfaces_[static_cast<std::size_t>(contact_state_)].get_optional<double>().value_or(
          0.0) > 0.5;
}

/// A sample that comes while the other side holds the lock is passed over.
void FeedforwardController::weigh(double period) {
  since_weighed_ += period;
  const std::unique_lock<std::mutex> lock(scales_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  if (scales_ && weighs_anew_) scales_->restart_filters();
  weighs_anew_ = false;
  if (scales_ && has_efforts_)
    (void)scales_->update({position_, given(velocity_, has_velocities_), effort_, others_},
                          since_weighed_);
  since_weighed_ = 0.0;
}

void FeedforwardController::read_references() {
  const Eigen::Index n = controller_->size();
  VectorX<double>* const parts[] = {&reference_position_, &reference_velocity_,
                                    &reference_acceleration_};
  for (std::size_t t = 0; t < reference_types.size(); ++t)
    for (Eigen::Index j = 0; j < n; ++j)
      (*parts[t])[j] = ordered_exported_reference_interfaces_[t * static_cast<std::size_t>(n) +
                                                              static_cast<std::size_t>(j)]
                           ->get_optional<double>()
                           .value_or(nan);
}

void FeedforwardController::write_commands() {
  const auto n = static_cast<std::size_t>(controller_->size());
  const auto write = [&](std::size_t first, const VectorX<double>& values) {
    for (std::size_t j = 0; j < n; ++j)
      if (!command_interfaces_[first + j].set_value(values[static_cast<Eigen::Index>(j)]))
        ++failed_writes_;
  };
  const Command& command = controller_->command();
  if (controller_->config().mode != Mode::pass_through) return write(0, command.effort);
  write(0, command.position);
  write(n, command.velocity);
  write(2 * n, command.effort);
}

/// What a controller that is to command this one finds: the position to go on from, or nothing.
/// Velocities and accelerations that nobody writes have to remain NaN.
void FeedforwardController::write_references(bool holding) {
  const auto n = static_cast<std::size_t>(controller_->size());
  for (std::size_t i = 0; i < ordered_exported_reference_interfaces_.size(); ++i)
    (void)ordered_exported_reference_interfaces_[i]->set_value(
        holding && i < n ? controller_->reference_position()[static_cast<Eigen::Index>(i)] : nan);
}

void FeedforwardController::publish_state(const rclcpp::Time& time, double period) {
  if (!state_publisher_) return;
  since_published_ += period;
  if (since_published_ + 0.5 * period < 1.0 / params_.state_publish_rate) return;
  StateMsg& message = state_message_;
  message.header.stamp = time;
  copy(controller_->reference_position(), message.reference.positions);
  copy(controller_->reference_velocity(), message.reference.velocities);
  copy(controller_->reference_acceleration(), message.reference.accelerations);
  copy(controller_->position(), message.feedback.positions);
  copy(controller_->velocity(), message.feedback.velocities);
  copy(controller_->position_error(), message.error.positions);
  copy(controller_->velocity_error(), message.error.velocities);
  const Command& command = controller_->command();
  copy(command.effort, message.output.effort);
  if (controller_->config().mode == Mode::pass_through) {
    copy(command.position, message.output.positions);
    copy(command.velocity, message.output.velocities);
  }
  if (state_publisher_->try_publish(message)) since_published_ = 0.0;
}

void FeedforwardController::fill(Report& report) const {
  report.state = controller_->state();
  report.fault_cause = controller_->fault_cause();
  report.events = controller_->counts();
  report.limits = controller_->limits();
  report.failed_writes = failed_writes_;
  report.reacting = controller_->reacting();
}

}  // namespace realtime_dynamics

PLUGINLIB_EXPORT_CLASS(realtime_dynamics::FeedforwardController,
                       controller_interface::ChainableControllerInterface)
