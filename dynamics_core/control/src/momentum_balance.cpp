// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/control/momentum_balance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace dynamics_core::control {

namespace {

/// Of a base that floats nobody measures the effort, nor its motion here.
[[nodiscard]] const Model& checked(const Model& model) {
  for (const JointInfo& joint : model.joints)
    if (joint.nv != 1)
      throw ConfigError("robot", "'" + joint.name + "'",
                        std::string("a ") + to_string(joint.type) +
                            " joint has no single effort to observe; load the robot with this "
                            "joint fixed or locked and tell of a base that tilts by its gravity");
  return model;
}

/// A controller's configuration of the same joints, with the checks that it makes.
[[nodiscard]] Config resolved(const Model& model, const BalanceConfig& config) {
  Config out;
  out.joints = config.joints;
  out.friction = config.friction;
  out.locked = config.locked;
  out.gravity = config.gravity;
  out.max_dt = config.max_dt;
  out.velocity_cutoff = config.velocity_cutoff;
  out.effort_limits = {std::numeric_limits<double>::infinity()};
  return resolve(checked(model), std::move(out));
}

}  // namespace

const char* to_string(EffortKind kind) noexcept {
  switch (kind) {
    case EffortKind::total: return "total";
    case EffortKind::without_gravity: return "without_gravity";
  }
  return "unknown kind of effort";
}

std::optional<EffortKind> find_effort_kind(std::string_view name) noexcept {
  for (const EffortKind kind : {EffortKind::total, EffortKind::without_gravity})
    if (name == to_string(kind)) return kind;
  return std::nullopt;
}

MomentumBalance::MomentumBalance(const Model& model, const BalanceConfig& config)
    : config_(resolved(model, config)),
      kind_(config.effort),
      robot_(model, config_),
      wraps_(without_end_stops(model, config_.joints)),
      other_wraps_(without_end_stops(model, robot_.other_joints())),
      velocity_estimate_(robot_.size(), config_.velocity_cutoff, wraps_),
      q_(VectorX<double>::Zero(robot_.size())),
      v_(q_),
      next_v_(q_),
      middle_q_(q_),
      middle_v_(q_),
      mean_a_(q_),
      other_v_(VectorX<double>::Zero(static_cast<Eigen::Index>(robot_.other_joints().size()))),
      other_q_(VectorX<double>::Constant(other_v_.size(), std::nan(""))),
      other_middle_q_(other_q_),
      other_middle_v_(other_v_),
      other_a_(other_v_),
      gravity_(q_),
      external_(q_) {
  (void)robot_.dynamics().set_gravity(*config_.gravity);  // resolve() has checked it
}

double MomentumBalance::stiction(Eigen::Index joint, double width) const noexcept {
  const JointFriction<double>& f = config_.friction[static_cast<std::size_t>(joint)];
  const double v = middle_v_[joint];
  return std::max(f.coulomb, f.breakaway) * (1.0 - std::abs(v) / std::hypot(v, width));
}

void MomentumBalance::restart() noexcept {
  velocity_estimate_.restart();
  primed_ = complete_ = false;
  age_ = 0.0;
  external_.setZero();
}

Status MomentumBalance::advance(const JointSample& sample, double dt) noexcept {
  Status status = check(sample, dt);
  if (status != Status::ok) {
    restart();
    return status;
  }
  velocity_estimate_.advance(dt);
  velocity_estimate_.sample(sample.position);
  take_velocity(sample);
  take_others(sample, dt);
  for (Eigen::Index j = 0; j < size(); ++j) {
    const bool wraps = wraps_[static_cast<std::size_t>(j)];
    middle_q_[j] = sample.position[j] - 0.5 * difference(sample.position[j], q_[j], wraps);
    middle_v_[j] = 0.5 * (v_[j] + next_v_[j]);
    mean_a_[j] = (next_v_[j] - v_[j]) / dt;
  }
  if (primed_) status = balance(sample.effort);
  q_ = sample.position.vector();
  v_ = next_v_;
  age_ += dt;
  const double settling_time = 1.0 / config_.velocity_cutoff;  // six of its time constants
  complete_ = primed_ && (!sample.velocity.absent() || age_ > settling_time);
  primed_ = true;
  if (status != Status::ok) restart();
  return status;
}

Status MomentumBalance::check(const JointSample& sample, double dt) const noexcept {
  const auto others = static_cast<Eigen::Index>(robot_.other_joints().size());
  const auto sized = [](const View& x, Eigen::Index n, bool optional) {
    return x.size() == n || (optional && x.absent());
  };
  if (!sized(sample.position, size(), false) || !sized(sample.velocity, size(), true) ||
      !sized(sample.effort, size(), false) || !sized(sample.others, others, true) ||
      !sized(sample.other_velocities, others, true))
    return Status::wrong_size;
  if (!sample.position.usable(size()) || !sample.effort.usable(size()) ||
      !(sample.velocity.absent() || sample.velocity.usable(size())))
    return Status::not_finite;
  return dt > 0.0 && dt <= config_.max_dt ? Status::ok : Status::out_of_range;
}

void MomentumBalance::take_velocity(const JointSample& sample) noexcept {
  if (sample.velocity.absent())
    next_v_ = velocity_estimate_.rate();
  else
    next_v_ = sample.velocity.vector();
}

/// As the joints observed: their positions in the middle of the period. A position that is not told
/// stays; a speed that is not told is none, which is no deceleration either.
void MomentumBalance::take_others(const JointSample& sample, double dt) noexcept {
  for (Eigen::Index j = 0; j < other_v_.size(); ++j) {
    const double q = sample.others.absent() ? std::nan("") : sample.others[j];
    const bool told = std::isfinite(q);
    const bool moved = told && primed_ && std::isfinite(other_q_[j]);
    const bool wraps = other_wraps_[static_cast<std::size_t>(j)];
    other_middle_q_[j] = moved ? q - 0.5 * difference(q, other_q_[j], wraps) : q;
    other_q_[j] = told ? q : other_q_[j];
    const double v = sample.other_velocities.absent() ? std::nan("") : sample.other_velocities[j];
    const double next = std::isfinite(v) ? v : 0.0;
    const bool change_told = primed_ && std::isfinite(v) && std::isfinite(other_v_[j]);
    const double last = change_told ? other_v_[j] : next;
    other_middle_v_[j] = 0.5 * (last + next);
    other_a_[j] = (next - last) / dt;
    other_v_[j] = v;
  }
  robot_.set_others(other_middle_q_);
  robot_.set_other_motion(other_middle_v_, other_a_);
}

/// (2)
Status MomentumBalance::balance(const View& effort) noexcept {
  Status status = robot_.inverse_dynamics(middle_q_, middle_v_, mean_a_, external_);
  if (status != Status::ok) return status;
  if (kind_ == EffortKind::without_gravity) {
    status = robot_.gravity(middle_q_, gravity_);
    if (status != Status::ok) return status;
    external_ -= gravity_;
  }
  for (Eigen::Index j = 0; j < size(); ++j)
    external_[j] += config_.friction[static_cast<std::size_t>(j)].effort(middle_v_[j]) - effort[j];
  return external_.allFinite() ? Status::ok : Status::not_finite;
}

}  // namespace dynamics_core::control
