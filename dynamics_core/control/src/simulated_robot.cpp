#include "dynamics_core/control/simulated_robot.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "dynamics_core/control/config.hpp"
#include "dynamics_core/methods.hpp"
#include "dynamics_core/newton_euler.hpp"

namespace dynamics_core::control {

namespace {

using Eigen::Index;
using Eigen::VectorXd;

void require(bool holds, const char* parameter, double value, const char* remedy) {
  if (!holds) throw ConfigError(parameter, std::to_string(value), remedy);
}

void check_factors(const char* parameter, const std::vector<double>& factors, std::size_t size) {
  if (!factors.empty() && factors.size() != size)
    throw ConfigError(parameter, "list of " + std::to_string(factors.size()),
                      "give none, or " + std::to_string(size));
  for (const double factor : factors)
    require(std::isfinite(factor) && factor >= 0.0, parameter, factor,
            "give finite numbers, not below zero");
}

[[nodiscard]] Imperfections checked(const Model& model, Imperfections x) {
  for (const JointInfo& joint : model.joints)
    if (joint.nv != 1)
      throw ConfigError("joint", "'" + joint.name + "'",
                        "has several degrees of freedom and no drive for each; lock it");
  const auto from_zero = [](const char* parameter, double value) {
    require(std::isfinite(value) && value >= 0.0, parameter, value,
            "give a finite number, not below zero");
  };
  from_zero("position_noise", x.position_noise);
  from_zero("velocity_noise", x.velocity_noise);
  from_zero("resolution", x.resolution);
  require(x.delay >= 0, "delay", x.delay, "give a number of cycles, not below zero");
  if (!x.effort_limits.empty() && x.effort_limits.size() != model.joints.size())
    throw ConfigError(
        "effort_limits", "list of " + std::to_string(x.effort_limits.size()),
        "give none, or one for each of the " + std::to_string(model.joints.size()) + " joints");
  for (const double limit : x.effort_limits)
    require(limit > 0.0, "effort_limits", limit, "give numbers above zero; infinity for none");
  return x;
}

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
  for (BodyData& body : other.bodies) body.inertia = RigidInertia<double>::zero();
  for (const LinkInfo& link : other.links)
    if (link.body >= 0)
      other.bodies[static_cast<std::size_t>(link.body)].inertia +=
          in_body<double>(link.X_BL, link.inertial.mass, link.inertial.com, link.inertial.inertia);
  for (std::size_t j = 0; j < friction_factors.size(); ++j) {
    other.joints[j].damping *= friction_factors[j];
    other.joints[j].friction *= friction_factors[j];
  }
  return other;
}

SimulatedRobot::SimulatedRobot(const Model& model, const Imperfections& imperfections)
    : ws_(model),
      imperfections_(checked(model, imperfections)),
      friction_(model),
      q_(model.neutral()),
      v_(VectorXd::Zero(model.nv)),
      measured_q_(q_),
      measured_v_(v_),
      effort_(v_),
      left_(v_),
      forward_dynamics_(default_algorithms<double>(ws_).forward_dynamics),
      stepper_(ws_),
      body_(model.joints.size()),
      rotor_(model.joints.size()),
      under_way_(Eigen::MatrixXd::Zero(model.nv, imperfections_.delay)),
      random_(imperfections_.seed) {
  for (std::size_t i = 0; i < ws_.bodies.size(); ++i) {
    const Body<double>& b = ws_.bodies[i];
    if (b.mimic) continue;
    body_[static_cast<std::size_t>(b.dof)] = i;
    rotor_[static_cast<std::size_t>(b.dof)] = b.rotor;
  }
}

Status SimulatedRobot::start(const VectorXd& q, const VectorXd& v) noexcept {
  if (const Status s = check_v<double>(ws_, v); s != Status::ok) return s;
  if (const Status s = newton_euler::gravity<double>(ws_, q, effort_); s != Status::ok) return s;
  q_ = q;
  v_ = v;
  for (Index k = 0; k < under_way_.cols(); ++k) under_way_.col(k) = effort_;
  next_ = 0;
  random_.seed(imperfections_.seed);
  normal_.reset();
  saturated_cycles_ = 0;
  measure();
  return Status::ok;
}

Status SimulatedRobot::cycle(const VectorXd& effort, double dt, int steps) noexcept {
  if (const Status s = check_v<double>(ws_, effort); s != Status::ok) return s;
  if (!(dt > 0.0) || steps < 1) return Status::out_of_range;
  drive(effort);
  const double step = dt / steps;
  Acceleration acceleration{this, step};
  for (int k = 0; k < steps; ++k)
    if (const Status s = stepper_.semi_implicit_euler(acceleration, 0.0, step, q_, v_);
        s != Status::ok)
      return s;
  measure();
  return Status::ok;
}

Status SimulatedRobot::Acceleration::operator()(double /*t*/, VectorIn<double> q,
                                                VectorIn<double> v, VectorOut<double> a) noexcept {
  SimulatedRobot& r = *robot;
  for (std::size_t j = 0; j < r.body_.size(); ++j) {
    const auto i = static_cast<Index>(j);
    const double D =
        r.friction_.viscous[i] +
        r.friction_.coulomb[i] / std::sqrt(v[i] * v[i] + r.friction_.transition_square);
    r.left_[i] = r.effort_[i] - D * v[i];
    r.ws_.bodies[r.body_[j]].rotor = r.rotor_[j] + h * D;  // h D stands beside M's diagonal
  }
  const Status s = r.forward_dynamics_(r.ws_, q, v, r.left_, a);
  for (std::size_t j = 0; j < r.body_.size(); ++j) r.ws_.bodies[r.body_[j]].rotor = r.rotor_[j];
  return s;
}

void SimulatedRobot::drive(const VectorXd& command) noexcept {
  if (under_way_.cols() == 0) {
    effort_ = command;
  } else {
    effort_ = under_way_.col(next_);
    under_way_.col(next_) = command;
    next_ = (next_ + 1) % under_way_.cols();
  }
  bool saturated = false;
  for (std::size_t j = 0; j < imperfections_.effort_limits.size(); ++j) {
    const double limit = imperfections_.effort_limits[j];
    double& effort = effort_[static_cast<Index>(j)];
    saturated = saturated || std::abs(effort) > limit;
    effort = std::clamp(effort, -limit, limit);
  }
  if (saturated) ++saturated_cycles_;
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

}  // namespace dynamics_core::control
