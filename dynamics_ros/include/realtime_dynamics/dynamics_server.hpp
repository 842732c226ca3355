// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The dynamics of a robot as topics and services. The user page is
/// dynamics_ros/doc/dynamics_server.md.

#include <future>
#include <memory>
#include <mutex>
#include <rclcpp/executors/single_threaded_executor.hpp>
#include <rclcpp/rclcpp.hpp>
#include <sensor_msgs/msg/joint_state.hpp>
#include <std_msgs/msg/string.hpp>
#include <string>
#include <thread>
#include <trajectory_msgs/msg/joint_trajectory.hpp>
#include <vector>

#include "realtime_dynamics/dynamics_server_parameters.hpp"
#include "realtime_dynamics/msg/joint_space_matrix.hpp"

namespace realtime_dynamics {

/// Services are answered by the executor that spins the node, several at a time if it has several
/// threads. Joint states, references and the publishing timer have a thread and an executor of
/// their own, so that no number of service calls, whatever executor or container the node runs in,
/// takes the thread away that they need. Both sides share the robot and its latest state, under
/// locks that are held while these are copied and never while something is computed.
class DynamicsServer : public rclcpp::Node {
 public:
  explicit DynamicsServer(const rclcpp::NodeOptions& options = rclcpp::NodeOptions());
  DynamicsServer(const DynamicsServer&) = delete;
  DynamicsServer& operator=(const DynamicsServer&) = delete;
  ~DynamicsServer() override;

 private:
  using JointState = sensor_msgs::msg::JointState;
  using JointTrajectory = trajectory_msgs::msg::JointTrajectory;
  using JointSpaceMatrix = msg::JointSpaceMatrix;

  struct Robot;

  void subscribe();
  void offer_services();
  template <class Service, class Answer>
  void offer(const std::string& name, Answer answer);

  /// Replaces the robot. A description that cannot be used leaves the robot as it is.
  void load(const std::string& urdf);
  /// Empty as long as no description could be used.
  [[nodiscard]] std::shared_ptr<Robot> robot() const;
  /// Throws RequestError where there is none.
  [[nodiscard]] std::shared_ptr<Robot> require_robot() const;

  // On the topics' thread:
  void take_joint_state(const JointState& message);
  void take_reference(const JointTrajectory& message);
  void publish();

  dynamics_server::Params params_;

  mutable std::mutex mutex_;
  std::shared_ptr<Robot> robot_;  ///< under mutex_
  std::string problem_;           ///< why there is no robot, under mutex_

  rclcpp::CallbackGroup::SharedPtr service_group_;
  rclcpp::CallbackGroup::SharedPtr description_group_;
  rclcpp::CallbackGroup::SharedPtr topic_group_;
  std::vector<rclcpp::ServiceBase::SharedPtr> services_;
  rclcpp::Subscription<std_msgs::msg::String>::SharedPtr description_subscription_;
  rclcpp::Subscription<JointState>::SharedPtr joint_state_subscription_;
  rclcpp::Subscription<JointTrajectory>::SharedPtr reference_subscription_;
  rclcpp::Publisher<JointState>::SharedPtr feedforward_publisher_;
  rclcpp::Publisher<JointState>::SharedPtr gravity_publisher_;
  rclcpp::Publisher<JointSpaceMatrix>::SharedPtr mass_matrix_publisher_;
  rclcpp::TimerBase::SharedPtr timer_;

  rclcpp::executors::SingleThreadedExecutor topic_executor_;
  std::promise<void> stop_;
  std::thread topic_thread_;
};

}  // namespace realtime_dynamics
