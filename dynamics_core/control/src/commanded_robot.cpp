// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/control/commanded_robot.hpp"

#include <algorithm>
#include <cmath>

namespace dynamics_core::control {

CommandedRobot::CommandedRobot(const Model& model, const Config& config)
    : dynamics_(model),
      friction_(config.friction),
      model_q_(model.neutral()),
      model_v_(VectorX<double>::Zero(model.nv)),
      model_a_(model_v_),
      model_tau_(model_v_) {
  for (const std::string& name : config.joints) {
    const JointInfo& joint = model.joints[static_cast<std::size_t>(model.find_joint(name))];
    q_index_.push_back(joint.q);
    v_index_.push_back(joint.v);
  }
  for (const JointInfo& joint : model.joints) {
    const auto& mine = config.joints;
    if (joint.nv != 1 || std::find(mine.begin(), mine.end(), joint.name) != mine.end()) continue;
    others_.push_back(joint.name);
    other_index_.push_back(joint.q);
    other_dof_.push_back(joint.v);
    const auto at = config.locked.find(joint.name);
    if (at != config.locked.end()) model_q_[joint.q] = at->second;
  }
}

void CommandedRobot::set_others(const View& positions) noexcept {
  if (positions.absent()) return;
  for (std::size_t j = 0; j < other_index_.size(); ++j) {
    const double x = positions[static_cast<Eigen::Index>(j)];
    if (std::isfinite(x)) model_q_[other_index_[j]] = x;
  }
}

void CommandedRobot::set_other_motion(const VectorX<double>& v, const VectorX<double>& a) noexcept {
  for (std::size_t j = 0; j < other_dof_.size(); ++j) {
    model_v_[other_dof_[j]] = v[static_cast<Eigen::Index>(j)];
    model_a_[other_dof_[j]] = a[static_cast<Eigen::Index>(j)];
  }
}

Status CommandedRobot::gravity(const VectorX<double>& q, VectorX<double>& tau) noexcept {
  put_position(q);
  const Status s = dynamics_.gravity(model_q_, model_tau_);
  get(tau);
  return s;
}

Status CommandedRobot::inverse_dynamics(const VectorX<double>& q, const VectorX<double>& v,
                                        const VectorX<double>& a, VectorX<double>& tau) noexcept {
  put_position(q);
  put(v, model_v_);
  put(a, model_a_);
  const Status s = dynamics_.inverse_dynamics(model_q_, model_v_, model_a_, model_tau_);
  get(tau);
  return s;
}

Status CommandedRobot::velocity_effort(const VectorX<double>& q, const VectorX<double>& v,
                                       VectorX<double>& tau) noexcept {
  put_position(q);
  put(v, model_v_);
  const Status s = dynamics_.velocity_effort(model_q_, model_v_, model_tau_);
  get(tau);
  return s;
}

void CommandedRobot::add_friction(const VectorX<double>& v, VectorX<double>& tau) const noexcept {
  for (Eigen::Index j = 0; j < tau.size(); ++j) tau[j] += friction_[j].effort(v[j]);
}

void CommandedRobot::put_position(const VectorX<double>& q) noexcept {
  for (std::size_t j = 0; j < q_index_.size(); ++j)
    model_q_[q_index_[j]] = q[static_cast<Eigen::Index>(j)];
}

void CommandedRobot::put(const VectorX<double>& x, VectorX<double>& model_x) const noexcept {
  for (std::size_t j = 0; j < v_index_.size(); ++j)
    model_x[v_index_[j]] = x[static_cast<Eigen::Index>(j)];
}

void CommandedRobot::get(VectorX<double>& tau) const noexcept {
  for (std::size_t j = 0; j < v_index_.size(); ++j)
    tau[static_cast<Eigen::Index>(j)] = model_tau_[v_index_[j]];
}

}  // namespace dynamics_core::control
