// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/control/controller.hpp"

#include <algorithm>
#include <cmath>

namespace dynamics_core::control {

namespace {

[[nodiscard]] std::vector<Reach> reaches(const Model& model, const Config& config) {
  std::vector<Reach> out;
  for (const std::string& name : config.joints)
    out.push_back(reach(model.joints[static_cast<std::size_t>(model.find_joint(name))].limits,
                        config.reference_margin));
  return out;
}

[[nodiscard]] VectorX<double> zeros(Eigen::Index size) { return VectorX<double>::Zero(size); }

}  // namespace

Controller::Controller(const Model& model, const Config& config)
    : config_(resolve(model, config)),
      n_(static_cast<Eigen::Index>(config_.joints.size())),
      robot_(model, config_),
      feedforward_{{config_.compensation}},
      computed_torque_(n_),
      passivity_(n_),
      wraps_(without_end_stops(model, config_.joints)),
      limits_(config_.joints.size()),
      reference_(config_, reaches(model, config_), wraps_),
      velocity_estimate_(n_, config_.velocity_cutoff, wraps_),
      payload_ramp_(model.links.size()),
      q_(zeros(n_)),
      v_(zeros(n_)),
      e_(zeros(n_)),
      ed_(zeros(n_)),
      integral_(zeros(n_)),
      effort_(zeros(n_)),
      command_{zeros(n_), zeros(n_), zeros(n_)},
      effort_left_off_(zeros(n_)) {
  (void)set_gravity(*config_.gravity);  // resolve() has checked it
}

// --- States --------------------------------------------------------------------------------------

bool Controller::may_start(const Measurement& measurement) noexcept {
  if (state_ != ControllerState::inactive) return false;
  if (usable(measurement)) return true;
  counts_.add(Event::bad_measurement);
  return false;
}

ControllerState Controller::activate(const Measurement& measurement) noexcept {
  if (!may_start(measurement)) return state_;
  velocity_estimate_.restart();
  take(measurement);
  reference_.restart(q_);
  start_ramp_.start(config_.soft_start);
  integral_.setZero();
  bad_cycles_ = 0;
  reacting_ = false;
  command_.effort.setZero();
  command_.position = q_;
  command_.velocity.setZero();
  return state_ = next(state_, Trigger::activate);
}

/// Within a hundredth, and what the last velocity makes of a tenth of a second. A robot that fell
/// meanwhile must not be pulled back with full effort.
bool Controller::is_where_it_left_off(const Measurement& measurement) const noexcept {
  for (Eigen::Index j = 0; j < n_; ++j) {
    const bool wraps = wraps_[static_cast<std::size_t>(j)];
    const double moved = difference(measurement.position[j], q_[j], wraps);
    if (std::abs(moved) > 0.01 + 0.1 * std::abs(v_[j])) return false;
  }
  return true;
}

ControllerState Controller::resume(const Measurement& measurement) noexcept {
  if (!left_off_) return activate(measurement);
  if (!may_start(measurement)) return state_;
  if (!is_where_it_left_off(measurement)) return activate(measurement);
  take(measurement);
  reference_.restart(reference_.position());
  bad_cycles_ = 0;
  reacting_ = false;
  command_.effort = effort_left_off_;
  return state_ = next(state_, Trigger::activate);
}

ControllerState Controller::deactivate() noexcept {
  if (state_ != ControllerState::inactive && state_ != ControllerState::fault) {
    left_off_ = true;
    effort_left_off_ = command_.effort;
  }
  return state_ = next(state_, Trigger::deactivate);
}

void Controller::reset() noexcept {
  left_off_ = false;
  reacting_ = false;
  state_ = next(state_, Trigger::reset);
  counts_.clear();
  std::fill(limits_.begin(), limits_.end(), LimitReport{});
}

ControllerState Controller::update(const Measurement& measurement, const Reference& reference,
                                   double dt) noexcept {
  if (state_ == ControllerState::inactive || state_ == ControllerState::fault)
    return stop(measurement);
  const double step = checked_step(dt);
  if (config_.mode != Mode::gravity_compensation && !reacting_)
    reference_.update(reference, step, counts_);
  velocity_estimate_.advance(step);
  start_ramp_.advance(step);
  const Status loaded = payload_ramp_.advance(step, robot_.dynamics().tree());

  if (!usable(measurement)) return hold(Event::bad_measurement);
  take(measurement);
  react(measurement.touched);
  if (floats())
    reference_.restart(q_);
  else
    reference_.follow(q_);
  compare();
  if (loaded != Status::ok || run_law() != Status::ok || !effort_.allFinite())
    return hold(Event::bad_result);

  limit(step);
  integrate(step);
  command_.position = reference_.position();
  command_.velocity = reference_.velocity();
  bad_cycles_ = 0;
  const bool alive = floats() || reference_.alive();
  return state_ = next(state_, alive ? Trigger::cycle : Trigger::cycle_without_reference);
}

ControllerState Controller::hold(Event event) noexcept {
  counts_.add(event);
  ++bad_cycles_;
  if (bad_cycles_ > config_.max_held_cycles) {
    fault_cause_ = event;
    command_.effort.setZero();
    command_.velocity.setZero();
    state_ = next(state_, Trigger::too_many_bad_cycles);
  } else {
    state_ = next(state_, Trigger::bad_cycle);
  }
  return state_;
}

/// Effort 0. A drive with its own loop stays where it is while inactive, in a fault where it was
/// last told to be.
ControllerState Controller::stop(const Measurement& measurement) noexcept {
  if (state_ == ControllerState::inactive && measurement.position.usable(n_))
    command_.position = measurement.position.vector();
  command_.effort.setZero();
  command_.velocity.setZero();
  for (LimitReport& report : limits_) report.effort_limited = report.rate_limited = false;
  return state_;
}

// --- Changes while it runs -----------------------------------------------------------------------

Status Controller::set_gravity(const Eigen::Vector3d& gravity) noexcept {
  if (!gravity.allFinite()) return Status::not_finite;
  config_.gravity = gravity;
  return robot_.dynamics().set_gravity(
      config_.hardware_compensates_gravity ? Eigen::Vector3d(Eigen::Vector3d::Zero()) : gravity);
}

Status Controller::set_gains(Eigen::Index joint, const Gains& gains) noexcept {
  if (joint < 0 || joint >= n_) return Status::out_of_range;
  if (!control::usable(gains, config_.mode)) return Status::out_of_range;
  config_.gains[static_cast<std::size_t>(joint)] = gains;
  return Status::ok;
}

Status Controller::set_payload(int link, const Payload<double>& payload,
                               double transition) noexcept {
  const bool active = state_ != ControllerState::inactive && state_ != ControllerState::fault;
  if (const Status s = payload_ramp_.start(link, payload, active ? transition : 0.0);
      s != Status::ok)
    return s;
  return active ? Status::ok : payload_ramp_.advance(0.0, robot_.dynamics().tree());
}

// --- The steps of a cycle ------------------------------------------------------------------------

/// dt, or zero where the clock cannot be trusted: then nothing moves on in time.
double Controller::checked_step(double dt) noexcept {
  if (dt > 0.0 && dt <= config_.max_dt) return dt;
  counts_.add(Event::bad_clock);
  return 0.0;
}

bool Controller::usable(const Measurement& measurement) const noexcept {
  const auto others = static_cast<Eigen::Index>(robot_.other_joints().size());
  return measurement.position.usable(n_) &&
         (measurement.velocity.absent() || measurement.velocity.usable(n_)) &&
         (measurement.others.absent() || measurement.others.size() == others);
}

void Controller::take(const Measurement& measurement) noexcept {
  q_ = measurement.position.vector();
  if (measurement.velocity.absent()) {
    velocity_estimate_.sample(q_);
    v_ = velocity_estimate_.rate();
  } else {
    v_ = measurement.velocity.vector();
  }
  robot_.set_others(measurement.others);
}

/// A contact begins a reaction, which lasts.
void Controller::react(bool touched) noexcept {
  if (!touched || reacting_ || config_.reaction == Reaction::none) return;
  counts_.add(Event::contact);
  reacting_ = true;
  reference_.restart(q_);
}

void Controller::compare() noexcept {
  for (Eigen::Index j = 0; j < n_; ++j)
    e_[j] = difference(reference_.position()[j], q_[j], wraps_[static_cast<std::size_t>(j)]);
  ed_ = reference_.velocity() - v_;
}

Status Controller::run_law() noexcept {
  const LawInput x{
      q_,  v_,        reference_.position(), reference_.velocity(), reference_.acceleration(), e_,
      ed_, integral_, config_.gains};
  if (floats()) return GravityCompensation::effort(robot_, x, effort_);
  switch (config_.mode) {
    case Mode::gravity_compensation: break;  // floats, as above
    case Mode::feedforward: return feedforward_.effort(robot_, x, effort_);
    case Mode::computed_torque: return computed_torque_.effort(robot_, x, effort_);
    case Mode::passivity: return passivity_.effort(robot_, x, effort_);
    case Mode::pass_through: return feedforward_.model.effort(robot_, x, effort_);
  }
  return Status::out_of_range;
}

/// First the effort limit, then the rate limit, so that the way back from a limit is smooth as
/// well.
void Controller::limit(double step) noexcept {
  const double ramp = start_ramp_.value();
  for (std::size_t j = 0; j < limits_.size(); ++j)
    limit_joint(j, ramp * effort_[static_cast<Eigen::Index>(j)], step);
}

void Controller::limit_joint(std::size_t j, double wanted, double step) noexcept {
  LimitReport& report = limits_[j];
  double& out = command_.effort[static_cast<Eigen::Index>(j)];
  const double bound = config_.effort_limits[j];
  const double within = std::clamp(wanted, -bound, bound);
  report.effort_limited = within != wanted;
  const double rate = config_.effort_rate_limits[j];
  const double reach = std::isfinite(rate) ? rate * step : rate;
  const double reached = std::clamp(within, out - reach, out + reach);
  report.rate_limited = reached != within;
  report.effort_limited_cycles += report.effort_limited ? 1 : 0;
  report.rate_limited_cycles += report.rate_limited ? 1 : 0;
  out = reached;
}

/// ∫ i e dt, for the next cycle. It does not grow further into a limit that holds the effort back.
void Controller::integrate(double step) noexcept {
  if (config_.mode != Mode::computed_torque) return;
  const double ramp = start_ramp_.value();
  for (Eigen::Index j = 0; j < n_; ++j) {
    const Gains& gains = config_.gains[static_cast<std::size_t>(j)];
    const double missing = ramp * effort_[j] - command_.effort[j];  // what the limits took away
    if (missing * e_[j] > 0.0) continue;
    integral_[j] =
        std::clamp(integral_[j] + ramp * gains.i * e_[j] * step, -gains.i_clamp, gains.i_clamp);
  }
}

}  // namespace dynamics_core::control
