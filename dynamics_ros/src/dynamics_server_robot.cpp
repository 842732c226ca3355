// SPDX-License-Identifier: Apache-2.0
#include "dynamics_server_robot.hpp"

#include <utility>

#include "dynamics_core/load.hpp"

namespace realtime_dynamics {

using dynamics_core::Batch;
using dynamics_core::BatchQuery;
using dynamics_core::JointStates;
using dynamics_core::VectorX;

namespace {

/// Puts the values in their places, zeros if there are none.
void scatter(const std::vector<double>& values, const std::vector<int>& places,
             VectorX<double>& x) {
  for (std::size_t i = 0; i < places.size(); ++i) x[places[i]] = values.empty() ? 0.0 : values[i];
}

[[nodiscard]] std::vector<double> gather(const VectorX<double>& x, const std::vector<int>& places) {
  std::vector<double> values;
  values.reserve(places.size());
  for (const int place : places) values.push_back(x[place]);
  return values;
}

}  // namespace

DynamicsServer::Robot::Robot(const std::string& description,
                             const dynamics_core::ModelOptions& options)
    : urdf(description),
      model(dynamics_core::load_urdf_string(description, options)),
      workspaces(std::make_shared<dynamics_core::BatchWorkspaces>(model)),
      joints(dynamics_core::select_joints(model)),
      keeper_(model) {}

JointStates DynamicsServer::Robot::states() const {
  const std::lock_guard lock(mutex_);
  return keeper_.states();
}

std::string DynamicsServer::Robot::update_states(const std::vector<std::string>& names,
                                                 const std::vector<double>& positions,
                                                 const std::vector<double>& velocities) {
  const std::lock_guard lock(mutex_);
  return keeper_.update(names, positions, velocities);
}

DynamicsServer::JointState DynamicsServer::Robot::message(const JointStates& at,
                                                          std::vector<double>&& effort) const {
  JointState message;
  message.name = joints.names;
  message.position = gather(at.q, joints.q);
  message.velocity = gather(at.v, joints.v);
  message.effort = std::move(effort);
  return message;
}

DynamicsServer::JointState DynamicsServer::Robot::feedforward() const {
  JointStates at = states();
  VectorX<double> a = VectorX<double>::Zero(model.nv);
  if (reference) {
    scatter(reference->point.positions, reference->joints.q, at.q);
    scatter(reference->point.velocities, reference->joints.v, at.v);
    scatter(reference->point.accelerations, reference->joints.v, a);
  }
  BatchQuery query;
  query.accelerations = gather(a, joints.v);
  return message(at, Batch(workspaces, at).inverse_dynamics(query).data);
}

DynamicsServer::JointState DynamicsServer::Robot::gravity() const {
  const JointStates at = states();
  return message(at, Batch(workspaces, at).gravity({}).data);
}

DynamicsServer::JointSpaceMatrix DynamicsServer::Robot::mass_matrix() const {
  const JointStates at = states();
  JointSpaceMatrix message;
  message.joint_names = joints.names;
  message.data = Batch(workspaces, at).mass_matrix({}).data;
  return message;
}

}  // namespace realtime_dynamics
