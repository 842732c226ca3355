// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/simulation/simulated_robot.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "dynamics_core/config_error.hpp"
#include "dynamics_core/text.hpp"
#include "dynamics_core/tree.hpp"

namespace dynamics_core::simulation {

namespace {

using Eigen::Index;
using VectorXd = VectorX<double>;

void require(bool holds, const char* parameter, double value, const char* remedy) {
  if (!holds) throw ConfigError(parameter, text::to_short_text(value), remedy);
}

void check_factors(const char* parameter, const std::vector<double>& factors, std::size_t size) {
  if (!factors.empty() && factors.size() != size)
    throw ConfigError(parameter, "list of " + std::to_string(factors.size()),
                      "give none, or " + std::to_string(size));
  for (const double factor : factors)
    require(std::isfinite(factor) && factor >= 0.0, parameter, factor,
            "give finite numbers, not below zero");
}

void require_from_zero(const char* parameter, double value) {
  require(std::isfinite(value) && value >= 0.0, parameter, value,
          "give a finite number, not below zero");
}

[[nodiscard]] Imperfections checked(const Model& model, Imperfections x) {
  for (const JointInfo& joint : model.joints)
    if (joint.nv != 1)
      throw ConfigError("joint", "'" + joint.name + "'",
                        "has several degrees of freedom and no drive for each; lock it");
  require_from_zero("position_noise", x.position_noise);
  require_from_zero("velocity_noise", x.velocity_noise);
  require_from_zero("resolution", x.resolution);
  require(x.delay >= 0, "delay", x.delay, "give a number of cycles, not below zero");
  if (!x.effort_limits.empty() && x.effort_limits.size() != model.joints.size())
    throw ConfigError(
        "effort_limits", "list of " + std::to_string(x.effort_limits.size()),
        "give none, or one for each of the " + std::to_string(model.joints.size()) + " joints");
  for (const double limit : x.effort_limits)
    require(limit > 0.0, "effort_limits", limit, "give numbers above zero; infinity for none");
  return x;
}

[[nodiscard]] Friction<double> bristled(const Model& model, double stiffness) {
  const Friction<double> stiff(model);
  std::vector<JointFriction<double>> joints;
  for (Index i = 0; i < stiff.size(); ++i) {
    joints.push_back(stiff[i]);
    joints.back().stiffness = stiffness;
  }
  return Friction<double>(std::move(joints));
}

[[nodiscard]] Mechanics checked(const Mechanics& x) {
  require_from_zero("friction_stiffness", x.friction_stiffness);
  const auto above_zero = [](const char* parameter, double value) {
    require(std::isfinite(value) && value > 0.0, parameter, value,
            "give a finite number above zero");
  };
  above_zero("servo_frequency", x.servo_frequency);
  above_zero("stop_frequency", x.stop_frequency);
  return x;
}

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double two_pi = 6.28318530717958647692;
/// For the other joints a brake makes its own as heavy as so many times its inertia.
constexpr double brake_strength = 1e12;

}  // namespace

Model rescaled(const Model& model, const std::vector<double>& mass_factors,
               const std::vector<double>& friction_factors) {
  check_factors("mass_factors", mass_factors, model.links.size());
  check_factors("friction_factors", friction_factors, model.joints.size());
  Model other = model;
  for (std::size_t i = 0; i < mass_factors.size(); ++i) {
    Inertial& inertial = other.links[i].inertial;
    inertial.mass *= mass_factors[i];
    inertial.inertia *= mass_factors[i];
  }
  for (std::size_t j = 0; j < friction_factors.size(); ++j) {
    other.joints[j].damping *= friction_factors[j];
    other.joints[j].friction *= friction_factors[j];
  }
  return other;
}

SimulatedRobot::SimulatedRobot(const Model& model, const Imperfections& imperfections,
                               const Mechanics& mechanics)
    : robot_(model),
      loads_(model.links.size()),
      imperfections_(checked(model, imperfections)),
      mechanics_(checked(mechanics)),
      friction_(bristled(model, mechanics_.friction_stiffness)),
      q_(model.neutral()),
      v_(VectorXd::Zero(model.nv)),
      a_(v_),
      measured_q_(q_),
      measured_v_(v_),
      effort_(v_),
      left_(v_),
      inertia_(v_),
      target_(q_),
      lower_(VectorXd::Constant(model.nv, -infinity)),
      upper_(-lower_),
      M_(MatrixX<double>::Zero(model.nv, model.nv)),
      stepper_(robot_),
      rotor_(model.joints.size()),
      limit_(imperfections_.effort_limits),
      drives_(model.joints.size()),
      resistances_(model.joints.size()),
      at_limit_(model.joints.size()),
      plain_(model.nv),
      now_(model.nv),
      under_way_(static_cast<std::size_t>(imperfections_.delay), Setpoints(model.nv)),
      random_(imperfections_.seed) {
  limit_.resize(model.joints.size(), infinity);
  for (std::size_t j = 0; j < rotor_.size(); ++j)
    rotor_[j] = robot_.tree().rotor_inertia(static_cast<int>(j));
  if (!mechanics_.joint_stops) return;
  for (const JointInfo& joint : model.joints) {
    lower_[joint.v] = joint.limits.lower;
    upper_[joint.v] = joint.limits.upper;
  }
}

Status SimulatedRobot::start(VectorIn<double> q, VectorIn<double> v) noexcept {
  if (const Status s = check_vector<double>(robot_.tree(), v); s != Status::ok) return s;
  if (const Status s = robot_.gravity(q, plain_.effort); s != Status::ok) return s;
  if (const Status s = robot_.mass_matrix(q, M_); s != Status::ok) return s;
  q_ = target_ = q;
  v_ = v;
  a_.setZero();
  friction_.reset();
  inertia_ = M_.diagonal();
  now_ = plain_;
  effort_ = plain_.effort;
  for (Setpoints& setpoints : under_way_) setpoints = plain_;
  next_ = 0;
  random_.seed(imperfections_.seed);
  normal_.reset();
  saturated_cycles_ = 0;
  measure();
  return Status::ok;
}

Status SimulatedRobot::cycle(VectorIn<double> effort, double dt, int steps) noexcept {
  if (const Status s = check_vector<double>(robot_.tree(), effort); s != Status::ok) return s;
  plain_.effort = effort;
  return cycle(plain_, dt, steps);
}

Status SimulatedRobot::cycle(const Setpoints& setpoints, double dt, int steps) noexcept {
  if (setpoints.drives.size() != drives_.size()) return Status::wrong_size;
  for (const VectorXd* x : {&setpoints.position, &setpoints.velocity, &setpoints.effort})
    if (const Status s = check_vector<double>(robot_.tree(), *x); s != Status::ok) return s;
  if (!(dt > 0.0) || steps < 1) return Status::out_of_range;
  if (const Status s = loads_.advance(dt, robot_.tree()); s != Status::ok) return s;
  saturated_ = false;
  receive(setpoints);
  const double step = dt / steps;
  Acceleration acceleration{this, step};
  for (int k = 0; k < steps; ++k) {
    const Status s = stepper_.semi_implicit_euler(acceleration, 0.0, step, q_, v_);
    if (s != Status::ok) return s;
    friction_.advance(v_, step);
  }
  if (saturated_) ++saturated_cycles_;
  measure();
  return Status::ok;
}

/// Takes over what arrives at the drives.
void SimulatedRobot::receive(const Setpoints& setpoints) noexcept {
  const Setpoints& arriving = under_way_.empty() ? setpoints : under_way_[next_];
  for (std::size_t j = 0; j < drives_.size(); ++j)
    if (arriving.drives[j] == Drive::velocity && now_.drives[j] != Drive::velocity)
      target_[static_cast<Index>(j)] = q_[static_cast<Index>(j)];
  now_ = arriving;
  if (!under_way_.empty()) {
    under_way_[next_] = setpoints;
    next_ = (next_ + 1) % under_way_.size();
  }
  for (std::size_t j = 0; j < drives_.size(); ++j) {
    if (now_.drives[j] != Drive::effort) continue;
    double& effort = now_.effort[static_cast<Index>(j)];
    saturated_ = saturated_ || std::abs(effort) > limit_[j];
    effort = std::clamp(effort, -limit_[j], limit_[j]);
  }
}

SimulatedRobot::JointForce SimulatedRobot::drive(std::size_t j, double h) const noexcept {
  const auto i = static_cast<Index>(j);
  if (now_.drives[j] == Drive::brake) return {};
  if (now_.drives[j] == Drive::effort) return {now_.effort[i]};
  const double wanted =
      now_.drives[j] == Drive::position ? now_.position[i] : target_[i] + h * now_.velocity[i];
  const double omega = two_pi * mechanics_.servo_frequency;
  const double p = inertia_[i] * omega * omega;
  const double d = 2.0 * inertia_[i] * omega;
  const double reachable = std::clamp(wanted, lower_[i], upper_[i]);
  return {now_.effort[i] + p * (reachable - q_[i]) + d * now_.velocity[i], d, p};
}

/// Friction, stops and brake.
SimulatedRobot::JointForce SimulatedRobot::resistance(std::size_t j, double h) const noexcept {
  const auto i = static_cast<Index>(j);
  const auto friction = friction_.linearized(i, v_[i], h);
  JointForce f{-friction.rest, friction.slope};
  if (now_.drives[j] == Drive::brake) f.D += brake_strength * inertia_[i] / h;
  const double next = q_[i] + h * v_[i];
  const double nearest = std::clamp(next, lower_[i], upper_[i]);
  if (next == nearest) return f;
  const double omega = two_pi * mechanics_.stop_frequency;
  f.K = inertia_[i] * omega * omega;
  f.D += 2.0 * inertia_[i] * omega;
  f.push += f.K * (nearest - q_[i]);
  return f;
}

Status SimulatedRobot::Acceleration::operator()(double /*t*/, VectorIn<double> /*q*/,
                                                VectorIn<double> /*v*/,
                                                VectorOut<double> a) noexcept {
  SimulatedRobot& r = *robot;
  for (std::size_t j = 0; j < r.drives_.size(); ++j) {
    r.drives_[j] = r.drive(j, h);
    r.resistances_[j] = r.resistance(j, h);
    r.at_limit_[j] = false;
  }
  Status s = Status::ok;
  do {
    s = r.accelerate(h);
  } while (s == Status::ok && r.saturate(h));
  for (std::size_t j = 0; j < r.drives_.size(); ++j) {
    const auto i = static_cast<Index>(j);
    if (r.now_.drives[j] == Drive::brake) r.a_[i] = 0.0 - r.v_[i] / h;  // exactly to rest
  }
  a = r.a_;
  return s;
}

/// With forces push − D (v + h a) − K h (v + h a): what depends on a goes beside M's diagonal.
Status SimulatedRobot::accelerate(double h) noexcept {
  Status beside = Status::ok;
  for (std::size_t j = 0; j < drives_.size(); ++j) {
    const auto i = static_cast<Index>(j);
    const double slope = drives_[j].D + resistances_[j].D + h * (drives_[j].K + resistances_[j].K);
    left_[i] = drives_[j].push + resistances_[j].push - slope * v_[i];
    beside =
        merged(beside, robot_.tree().set_rotor_inertia(static_cast<int>(j), rotor_[j] + h * slope));
  }
  const Status s = robot_.forward_dynamics(q_, v_, left_, a_);
  for (std::size_t j = 0; j < drives_.size(); ++j)
    beside = merged(beside, robot_.tree().set_rotor_inertia(static_cast<int>(j), rotor_[j]));
  return merged(beside, s);
}

/// Notes what the drives give. Those whose loop asks for more than they have give just that
/// instead; true if there are any, as the step has to be computed anew then. Within a step a drive
/// comes to its limit once, so that this ends.
bool SimulatedRobot::saturate(double h) noexcept {
  bool anew = false;
  for (std::size_t j = 0; j < drives_.size(); ++j) {
    const auto i = static_cast<Index>(j);
    const JointForce& f = drives_[j];
    const double v = v_[i] + h * a_[i];
    const double wanted = f.push - (f.D + h * f.K) * v;
    effort_[i] = std::clamp(wanted, -limit_[j], limit_[j]);
    if (!(std::abs(wanted) > limit_[j])) continue;
    drives_[j] = {effort_[i]};
    at_limit_[j] = true;
    saturated_ = true;
    anew = true;
  }
  if (anew) return true;
  for (std::size_t j = 0; j < drives_.size(); ++j) {
    if (now_.drives[j] != Drive::velocity) continue;
    const auto i = static_cast<Index>(j);  // at its limit a loop stops to integrate its error
    const double v = at_limit_[j] ? v_[i] + h * a_[i] : now_.velocity[i];
    target_[i] = std::clamp(target_[i] + h * v, lower_[i], upper_[i]);
  }
  return false;
}

void SimulatedRobot::measure() noexcept {
  const Imperfections& x = imperfections_;
  measured_q_ = q_;
  measured_v_ = v_;
  for (Index j = 0; j < q_.size(); ++j) {
    if (x.position_noise > 0.0) measured_q_[j] += x.position_noise * normal_(random_);
    if (x.velocity_noise > 0.0) measured_v_[j] += x.velocity_noise * normal_(random_);
    if (x.resolution > 0.0)
      measured_q_[j] = x.resolution * std::round(measured_q_[j] / x.resolution);
  }
}

}  // namespace dynamics_core::simulation
