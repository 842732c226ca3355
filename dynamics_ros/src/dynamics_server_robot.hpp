// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <rclcpp/time.hpp>
#include <string>
#include <trajectory_msgs/msg/joint_trajectory_point.hpp>
#include <vector>

#include "dynamics_core/batch.hpp"
#include "dynamics_core/joint_selection.hpp"
#include "dynamics_core/model.hpp"
#include "realtime_dynamics/dynamics_server.hpp"

namespace realtime_dynamics {

struct ReceivedReference {
  dynamics_core::JointSelection joints;
  trajectory_msgs::msg::JointTrajectoryPoint point;  ///< by these joints
  rclcpp::Time received;
};

/// A robot, what has been heard of it, and what is published of it. A new description gets a new
/// one; a service that is at work keeps the one it started with.
struct DynamicsServer::Robot {
  /// Throws ModelError.
  Robot(const std::string& description, const dynamics_core::ModelOptions& options);

  const std::string urdf;
  const dynamics_core::Model model;
  const std::shared_ptr<dynamics_core::BatchWorkspaces> workspaces;  ///< of all calls
  const dynamics_core::JointSelection joints;                        ///< all that go by name

  /// For any thread.
  [[nodiscard]] dynamics_core::JointStates states() const;
  /// As JointStateKeeper::update.
  std::string update_states(const std::vector<std::string>& names,
                            const std::vector<double>& positions,
                            const std::vector<double>& velocities);

  // For the topics' thread alone: what is published of the latest state, and of the reference where
  // there is one. They throw RequestError where the state leads beyond what a number can hold.
  [[nodiscard]] JointState feedforward() const;
  [[nodiscard]] JointState gravity() const;
  [[nodiscard]] JointSpaceMatrix mass_matrix() const;
  std::optional<ReceivedReference> reference;

 private:
  [[nodiscard]] JointState message(const dynamics_core::JointStates& at,
                                   std::vector<double>&& effort) const;

  mutable std::mutex mutex_;
  dynamics_core::JointStateKeeper keeper_;  ///< under mutex_
};

}  // namespace realtime_dynamics
