// SPDX-License-Identifier: Apache-2.0
#include "realtime_dynamics/dynamics_server.hpp"

#include <chrono>
#include <rclcpp_components/register_node_macro.hpp>
#include <utility>

#include "dynamics_core/joint_selection.hpp"
#include "dynamics_core/text.hpp"
#include "dynamics_server_robot.hpp"

namespace realtime_dynamics {

namespace text = dynamics_core::text;
using dynamics_core::RequestError;

namespace {

constexpr int throttle = 5000;  // ms between two log lines of a kind

[[nodiscard]] rclcpp::ExecutorOptions in_context_of(rclcpp::Node& node) {
  rclcpp::ExecutorOptions options;
  options.context = node.get_node_base_interface()->get_context();
  return options;
}

/// Throws RequestError unless the message is one point with a position of each joint it names.
[[nodiscard]] ReceivedReference read_reference(const dynamics_core::Model& model,
                                               const trajectory_msgs::msg::JointTrajectory& message,
                                               const rclcpp::Time& now) {
  if (message.joint_names.empty() || message.points.size() != 1) {
    throw RequestError("it has " + std::to_string(message.joint_names.size()) +
                       " joint names and " + std::to_string(message.points.size()) +
                       " points; name the joints and give one point");
  }
  ReceivedReference reference{dynamics_core::select_joints(model, message.joint_names),
                              message.points[0], now};
  const auto check = [&reference](const char* name, const std::vector<double>& values) {
    if (values.size() != reference.joints.size()) {
      throw RequestError(std::string(name) + " has " + std::to_string(values.size()) +
                         " values; give one for each of the " +
                         std::to_string(reference.joints.size()) + " joints");
    }
    dynamics_core::check_values(name, values, reference.joints);
  };
  check("positions", reference.point.positions);
  if (!reference.point.velocities.empty()) check("velocities", reference.point.velocities);
  if (!reference.point.accelerations.empty()) check("accelerations", reference.point.accelerations);
  return reference;
}

}  // namespace

DynamicsServer::DynamicsServer(const rclcpp::NodeOptions& options)
    : rclcpp::Node("dynamics_server", options),
      params_(dynamics_server::ParamListener(get_node_parameters_interface()).get_params()),
      service_group_(create_callback_group(rclcpp::CallbackGroupType::Reentrant)),
      description_group_(create_callback_group(rclcpp::CallbackGroupType::MutuallyExclusive)),
      topic_group_(create_callback_group(rclcpp::CallbackGroupType::MutuallyExclusive,
                                         /*automatically_add_to_executor_with_node=*/false)),
      topic_executor_(in_context_of(*this)) {
  subscribe();
  feedforward_publisher_ = create_publisher<JointState>("~/feedforward", rclcpp::QoS(10));
  gravity_publisher_ = create_publisher<JointState>("~/gravity", rclcpp::QoS(10));
  mass_matrix_publisher_ = create_publisher<JointSpaceMatrix>("~/mass_matrix", rclcpp::QoS(10));
  if (params_.publish_rate > 0.0) {
    const std::chrono::duration<double> period(1.0 / params_.publish_rate);
    timer_ = create_timer(
        std::chrono::duration_cast<std::chrono::nanoseconds>(period), [this] { publish(); },
        topic_group_);
  }
  offer_services();
  topic_executor_.add_callback_group(topic_group_, get_node_base_interface());
  topic_thread_ = std::thread(
      [this] { topic_executor_.spin_until_future_complete(stop_.get_future().share()); });
}

DynamicsServer::~DynamicsServer() {
  stop_.set_value();
  topic_executor_.cancel();
  topic_thread_.join();
}

void DynamicsServer::subscribe() {
  rclcpp::SubscriptionOptions on_topics;
  on_topics.callback_group = topic_group_;
  // Best effort, so that publishers of either reliability are heard.
  joint_state_subscription_ = create_subscription<JointState>(
      "joint_states", rclcpp::SensorDataQoS().keep_last(20),
      [this](const JointState& message) { take_joint_state(message); }, on_topics);
  reference_subscription_ = create_subscription<JointTrajectory>(
      "~/reference", rclcpp::SystemDefaultsQoS(),
      [this](const JointTrajectory& message) { take_reference(message); }, on_topics);

  if (!params_.robot_description.empty()) {
    load(params_.robot_description);
    return;
  }
  rclcpp::SubscriptionOptions on_description;
  on_description.callback_group = description_group_;
  description_subscription_ = create_subscription<std_msgs::msg::String>(
      "robot_description", rclcpp::QoS(1).transient_local().reliable(),
      [this](const std_msgs::msg::String& message) { load(message.data); }, on_description);
  problem_ = std::string("no robot_description yet; publish it on ") +
             description_subscription_->get_topic_name() +
             " or set the parameter robot_description";
  RCLCPP_INFO(get_logger(), "Waiting for %s", description_subscription_->get_topic_name());
}

void DynamicsServer::load(const std::string& urdf) {
  const std::shared_ptr<Robot> before = robot();
  if (before && before->urdf == urdf) return;
  try {
    dynamics_core::ModelOptions options;
    options.gravity = Eigen::Vector3d::Map(params_.gravity.data());
    auto robot = std::make_shared<Robot>(urdf, options);
    for (const std::string& warning : robot->model.warnings)
      RCLCPP_WARN(get_logger(), "robot_description: %s", warning.c_str());
    RCLCPP_INFO(get_logger(), "Robot '%s' with the joints %s", robot->model.name.c_str(),
                text::joined(robot->joints.names).c_str());
    const std::lock_guard lock(mutex_);
    robot_ = std::move(robot);
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    problem_ = std::string("robot_description: ") + error.what();
    RCLCPP_ERROR(get_logger(), "%s%s", problem_.c_str(),
                 before ? "; the robot before it stays in use" : "");
  }
}

std::shared_ptr<DynamicsServer::Robot> DynamicsServer::robot() const {
  const std::lock_guard lock(mutex_);
  return robot_;
}

std::shared_ptr<DynamicsServer::Robot> DynamicsServer::require_robot() const {
  const std::lock_guard lock(mutex_);
  if (!robot_) throw RequestError(problem_);
  return robot_;
}

void DynamicsServer::take_joint_state(const JointState& message) {
  const std::shared_ptr<Robot> robot = this->robot();
  if (!robot) return;
  const std::string ignored =
      robot->update_states(message.name, message.position, message.velocity);
  if (!ignored.empty()) {
    RCLCPP_WARN_THROTTLE(get_logger(), *get_clock(), throttle, "Ignored in joint_states: %s",
                         ignored.c_str());
  }
}

void DynamicsServer::take_reference(const JointTrajectory& message) {
  const std::shared_ptr<Robot> robot = this->robot();
  if (!robot) return;
  try {
    robot->reference = read_reference(robot->model, message, now());
  } catch (const RequestError& error) {
    RCLCPP_WARN_THROTTLE(get_logger(), *get_clock(), throttle, "Ignored on ~/reference: %s",
                         error.what());
  }
}

void DynamicsServer::publish() {
  const std::shared_ptr<Robot> robot = this->robot();
  const std::size_t listeners = feedforward_publisher_->get_subscription_count() +
                                gravity_publisher_->get_subscription_count() +
                                mass_matrix_publisher_->get_subscription_count();
  if (!robot || listeners == 0) return;
  if (const auto missing = robot->states().missing(robot->joints); !missing.empty()) {
    RCLCPP_WARN_THROTTLE(get_logger(), *get_clock(), throttle,
                         "Nothing is published until joint_states has told of %s",
                         text::joined(missing).c_str());
    return;
  }
  const rclcpp::Time time = now();
  if (robot->reference && (time - robot->reference->received).seconds() > params_.reference_timeout)
    robot->reference.reset();
  const auto publish_to = [&](auto& publisher, auto compute) {
    if (publisher->get_subscription_count() == 0) return;
    try {
      auto message = (*robot.*compute)();
      message.header.stamp = time;
      publisher->publish(message);
    } catch (const RequestError& error) {
      RCLCPP_WARN_THROTTLE(get_logger(), *get_clock(), throttle, "%s at this state: %s",
                           publisher->get_topic_name(), error.what());
    }
  };
  publish_to(feedforward_publisher_, &Robot::feedforward);
  publish_to(gravity_publisher_, &Robot::gravity);
  publish_to(mass_matrix_publisher_, &Robot::mass_matrix);
}

}  // namespace realtime_dynamics

RCLCPP_COMPONENTS_REGISTER_NODE(realtime_dynamics::DynamicsServer)
