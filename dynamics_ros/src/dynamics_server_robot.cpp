// SPDX-License-Identifier: Apache-2.0
#include "dynamics_server_robot.hpp"

#include "dynamics_core/load.hpp"

namespace realtime_dynamics {

using dynamics_core::Status;

namespace {

/// Puts the values in their places, zeros if there are none.
void scatter(const std::vector<double>& values, const std::vector<int>& places,
             Eigen::VectorXd& x) {
  for (std::size_t i = 0; i < places.size(); ++i) x[places[i]] = values.empty() ? 0.0 : values[i];
}

}  // namespace

DynamicsServer::Robot::Robot(const std::string& description,
                             const dynamics_core::ModelOptions& options)
    : urdf(description),
      model(dynamics_core::load_urdf_string(description, options)),
      joints(dynamics_core::select_joints(model)),
      keeper_(model),
      dynamics_(model),
      at_(model),
      a_(Eigen::VectorXd::Zero(model.nv)),
      tau_(Eigen::VectorXd::Zero(model.nv)),
      M_(Eigen::MatrixXd::Zero(model.nv, model.nv)) {
  const std::size_t n = joints.size();
  feedforward.name = gravity.name = mass_matrix.joint_names = joints.names;
  for (JointState* message : {&feedforward, &gravity}) {
    message->position.resize(n);
    message->velocity.resize(n);
    message->effort.resize(n);
  }
  mass_matrix.data.resize(n * n);
}

dynamics_core::JointStates DynamicsServer::Robot::states() const {
  const std::lock_guard lock(mutex_);
  return keeper_.states();
}

std::string DynamicsServer::Robot::update_states(const std::vector<std::string>& names,
                                                 const std::vector<double>& positions,
                                                 const std::vector<double>& velocities) {
  const std::lock_guard lock(mutex_);
  return keeper_.update(names, positions, velocities);
}

Status DynamicsServer::Robot::fill(JointState& message) const {
  for (std::size_t i = 0; i < joints.size(); ++i) {
    message.position[i] = at_.q[joints.q[i]];
    message.velocity[i] = at_.v[joints.v[i]];
    message.effort[i] = tau_[joints.v[i]];
  }
  return tau_.allFinite() ? Status::ok : Status::not_finite;
}

Status DynamicsServer::Robot::compute_feedforward() {
  at_ = states();
  a_.setZero();
  if (reference) {
    scatter(reference->point.positions, reference->joints.q, at_.q);
    scatter(reference->point.velocities, reference->joints.v, at_.v);
    scatter(reference->point.accelerations, reference->joints.v, a_);
  }
  const Status status = dynamics_.inverse_dynamics(at_.q, at_.v, a_, tau_);
  return status == Status::ok ? fill(feedforward) : status;
}

Status DynamicsServer::Robot::compute_gravity() {
  at_ = states();
  const Status status = dynamics_.gravity(at_.q, tau_);
  return status == Status::ok ? fill(gravity) : status;
}

Status DynamicsServer::Robot::compute_mass_matrix() {
  at_ = states();
  const Status status = dynamics_.mass_matrix(at_.q, M_);
  auto out = mass_matrix.data.begin();
  for (const int row : joints.v)
    for (const int column : joints.v) *out++ = M_(row, column);
  return status;
}

}  // namespace realtime_dynamics
