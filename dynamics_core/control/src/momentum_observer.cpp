// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/control/momentum_observer.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "checks.hpp"
#include "dynamics_core/kinematics.hpp"

namespace dynamics_core::control {

namespace {

void check_thresholds(const std::vector<std::string>& joints,
                      std::vector<ContactThreshold>& thresholds) {
  expand("thresholds", thresholds, joints.size());
  for (std::size_t j = 0; j < joints.size(); ++j) {
    const std::string prefix = "thresholds." + joints[j] + ".";
    const ContactThreshold& t = thresholds[j];
    require(above_zero(t.constant), prefix + "constant", t.constant,
            "give an effort above zero, the largest error of the model");
    require(from_zero(t.speed), prefix + "speed", t.speed, "give a finite number, not below zero");
    require(above_zero(t.stiction_velocity), prefix + "stiction_velocity", t.stiction_velocity,
            "give a speed above zero");
  }
}

[[nodiscard]] ObserverConfig checked(const std::vector<std::string>& joints,
                                     ObserverConfig config) {
  check_thresholds(joints, config.thresholds);
  require(above_zero(config.cutoff), "cutoff", config.cutoff, "give a frequency above zero");
  require(from_zero(config.confirm_time), "confirm_time", config.confirm_time,
          "give a finite time, not below zero");
  require(from_zero(config.release_time), "release_time", config.release_time,
          "give a finite time, not below zero");
  require(config.release > 0.0 && config.release <= 1.0, "release", config.release,
          "give a part of the threshold, above 0 and at most 1");
  require(above_zero(config.length), "length", config.length, "give a length above zero");
  require(above_zero(config.damping), "damping", config.damping, "give a number above zero");
  return config;
}

[[nodiscard]] int checked_frame(const Model& model, const std::string& frame) {
  if (frame.empty()) return -1;
  const int link = model.find_link(frame);
  if (link < 0) throw ConfigError("frame", "'" + frame + "'", "name a link of the robot");
  if (model.links[static_cast<std::size_t>(link)].body < 0)
    throw ConfigError("frame", "'" + frame + "'",
                      "this link does not move, no joint feels a force on it; name a moving link");
  return link;
}

/// How many joints are between a joint and the root.
[[nodiscard]] int depth(const Model& model, const JointInfo& joint) {
  int count = 0;
  const int link = model.find_link(joint.child);
  for (int body = model.links[static_cast<std::size_t>(link)].body; body >= 0; ++count)
    body = model.bodies[static_cast<std::size_t>(body)].parent;
  return count;
}

}  // namespace

MomentumObserver::MomentumObserver(const Model& model, const ObserverConfig& config)
    : balance_(model, config),
      payload_ramp_(model.links.size()),
      config_(checked(balance_.config().joints, config)),
      residual_(VectorX<double>::Zero(balance_.size())),
      threshold_(residual_),
      above_(residual_),
      felt_(joints().size(), false),
      frame_(checked_frame(model, config.frame)),
      J_(MatrixX<double>::Zero(6, model.nv)),
      seen_(Eigen::Matrix<double, 6, Eigen::Dynamic>::Zero(6, balance_.size())),
      gram_(Eigen::Matrix<double, 6, 6>::Zero()) {
  for (const std::string& name : joints()) {
    const JointInfo& joint = model.joints[static_cast<std::size_t>(model.find_joint(name))];
    link_.push_back(model.find_link(joint.child));
    depth_.push_back(depth(model, joint));
  }
}

void MomentumObserver::restart() noexcept {
  balance_.restart();
  residual_.setZero();
  threshold_.setZero();
  above_.setZero();
  std::fill(felt_.begin(), felt_.end(), false);
  below_ = 0.0;
  started_ = false;
  contact_ = Contact{};
  wrench_ = FrameWrench{};
}

Status MomentumObserver::set_gravity(const Eigen::Vector3d& gravity) noexcept {
  if (!gravity.allFinite()) return Status::not_finite;
  return balance_.robot().dynamics().set_gravity(gravity);
}

Status MomentumObserver::set_payload(int link, const Payload<double>& payload,
                                     double transition) noexcept {
  const Status s = payload_ramp_.start(link, payload, transition);
  return s == Status::ok ? payload_ramp_.advance(0.0, balance_.robot().dynamics().tree()) : s;
}

Status MomentumObserver::update(const JointSample& sample, double dt) noexcept {
  Status status = balance_.advance(sample, dt);
  if (status == Status::ok) status = payload_ramp_.advance(dt, balance_.robot().dynamics().tree());
  if (status == Status::ok && balance_.complete()) {
    status = filter(dt);
    if (status == Status::ok) decide(dt);
    if (status == Status::ok && frame_ >= 0) status = find_wrench();
  }
  if (status != Status::ok) restart();
  return status;
}

/// (2)
double MomentumObserver::bound(Eigen::Index joint) const noexcept {
  const ContactThreshold& t = config_.thresholds[static_cast<std::size_t>(joint)];
  return t.constant + t.speed * std::abs(balance_.velocity()[joint]) +
         balance_.stiction(joint, t.stiction_velocity);
}

/// (1), (2)
Status MomentumObserver::filter(double dt) noexcept {
  const double share = filter_share(config_.cutoff, dt);
  for (Eigen::Index j = 0; j < residual_.size(); ++j) {
    residual_[j] =
        without_dust(residual_[j] + share * (balance_.external_effort()[j] - residual_[j]));
    const double limit = bound(j);
    threshold_[j] = started_ ? threshold_[j] + share * (limit - threshold_[j]) : limit;
  }
  started_ = true;
  return residual_.allFinite() && threshold_.allFinite() ? Status::ok : Status::not_finite;
}

void MomentumObserver::decide(double dt) noexcept {
  bool quiet = true;
  for (std::size_t j = 0; j < felt_.size(); ++j) {
    const auto i = static_cast<Eigen::Index>(j);
    const double size = std::abs(residual_[i]);
    above_[i] = size > threshold_[i] ? above_[i] + dt : 0.0;
    if (above_[i] > config_.confirm_time) felt_[j] = true;
    if (size < config_.release * threshold_[i]) felt_[j] = false;
    quiet = quiet && !felt_[j];
  }
  below_ = quiet ? below_ + dt : 0.0;
  if (!quiet) {
    contact_.time = contact_.touched ? contact_.time + dt : 0.0;
    contact_.touched = true;
    contact_.link = touched_link();
  } else if (contact_.touched && below_ > config_.release_time) {
    contact_ = Contact{};
  } else if (contact_.touched) {
    contact_.time += dt;
  }
}

/// Of joints equally far from the root, as in branches of a tree, the one that feels most.
int MomentumObserver::touched_link() const noexcept {
  int link = -1;
  int farthest = -1;
  double most = 0.0;
  for (std::size_t j = 0; j < felt_.size(); ++j) {
    const auto i = static_cast<Eigen::Index>(j);
    if (!felt_[j]) continue;
    const double size = std::abs(residual_[i]) / threshold_[i];
    if (depth_[j] < farthest || (depth_[j] == farthest && size <= most)) continue;
    link = link_[j];
    farthest = depth_[j];
    most = size;
  }
  return link;
}

/// w that minimises |Jᵀ w − r|² by the eigenvectors of J Jᵀ, moments divided by the length. Along a
/// direction u with the singular value σ it is uᵀ J r/(σ² + λ²), with the damping λ² = damping² − σ²
/// where that is positive, and none elsewhere (after Maciejewski and Klein, "Numerical Filtering for
/// the Operation of Robotic Manipulators through Kinematically Singular Configurations", J. Robotic
/// Systems 5(6), 1988).
Status MomentumObserver::find_wrench() noexcept {
  Dynamics<double>& robot = balance_.robot().dynamics();
  const VectorX<double>& q = balance_.robot().model_position();
  Status status = robot.kinematics().update(q);
  if (status != Status::ok) return status;
  Pose<double> X_WF;
  status = robot.kinematics().pose(frame_, X_WF);
  if (status != Status::ok) return status;
  status = robot.kinematics().jacobian(frame_, J_);
  if (status != Status::ok) return status;
  const Eigen::Matrix3d R = X_WF.R.transpose();
  for (Eigen::Index j = 0; j < seen_.cols(); ++j) {
    const Eigen::Index dof = balance_.robot().dofs()[static_cast<std::size_t>(j)];
    const Eigen::Vector3d w = J_.col(dof).head<3>();
    const Eigen::Vector3d v = J_.col(dof).tail<3>();
    seen_.col(j).head<3>() = config_.length * (R * w);
    seen_.col(j).tail<3>() = R * v;
  }
  Eigen::Matrix<double, 6, 1> felt = Eigen::Matrix<double, 6, 1>::Zero();
  gram_.setZero();
  for (Eigen::Index j = 0; j < seen_.cols(); ++j) {
    gram_.noalias() += seen_.col(j) * seen_.col(j).transpose();
    felt += seen_.col(j) * residual_[j];
  }
  const Eigen::SelfAdjointEigenSolver<Eigen::Matrix<double, 6, 6>> directions(gram_);
  if (directions.info() != Eigen::Success) return Status::not_converged;
  const double least = config_.damping * config_.damping;
  Eigen::Matrix<double, 6, 1> w = Eigen::Matrix<double, 6, 1>::Zero();
  wrench_.directions = 0;
  for (int k = 0; k < 6; ++k) {
    const double square = std::max(directions.eigenvalues()[k], 0.0);
    if (square >= least) ++wrench_.directions;
    const auto u = directions.eigenvectors().col(k);
    w += u * (u.dot(felt) / std::max(square, least));
  }
  const double largest = directions.eigenvalues()[5];
  wrench_.conditioning =
      largest > 0.0 ? std::sqrt(std::max(directions.eigenvalues()[0], 0.0) / largest) : 0.0;
  wrench_.torque = config_.length * w.head<3>();
  wrench_.force = w.tail<3>();
  return w.allFinite() && wrench_.torque.allFinite() ? Status::ok : Status::not_finite;
}

}  // namespace dynamics_core::control
