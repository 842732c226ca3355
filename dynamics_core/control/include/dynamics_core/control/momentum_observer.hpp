// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Contacts felt without a sensor: the effort that the environment exerts on each joint, the wrench
/// at a frame, and whether the robot is touched, and where.
///
///     control::MomentumObserver observer(model, config);  // throws ConfigError
///     while (running) {
///       if (observer.update({q, v, tau}, dt) != Status::ok) { ... }  // it has started anew
///       if (observer.contact().touched) { ... }
///     }
///
/// The external effort is the mean over each period by momentum_balance.hpp, d, through a filter of
/// first order that is exact for an effort that stands still,
///
///     r ← r + (1 − exp(−2π f h)) (d − r):                                          (1)
///
/// the generalised-momentum observer with the gain K = 2π f in each joint.
///
/// What is wrong with the model at most is filtered likewise, so that an error within that bound
/// never exceeds the threshold T, however the joint moves:
///
///     T ← T + (1 − exp(−2π f h)) (bound(v̄) − T),
///     bound(v) = constant + speed |v| + stiction (1 − |v|/√(v² + w²)).               (2)
///
/// At rest dry friction takes any value up to the Coulomb friction; so does the last term.
/// docs/contacts.md says more.

#include <optional>
#include <string>
#include <vector>

#include "dynamics_core/control/momentum_balance.hpp"
#include "dynamics_core/payload_ramp.hpp"
#include "dynamics_core/spatial.hpp"

namespace dynamics_core::control {

/// The bound of (2), N·m (N), for one joint.
struct ContactThreshold {
  double constant = 5.0;            ///< N·m
  double speed = 0.0;               ///< N·m·s/rad
  double stiction_velocity = 0.05;  ///< w, rad/s; how far from rest friction is doubtful
};

struct ObserverConfig : BalanceConfig {
  double cutoff = 15.0;  ///< f, Hz
  /// Of each joint. The stiction of (2) is the joint's Coulomb or breakaway friction, whichever is
  /// larger.
  std::vector<ContactThreshold> thresholds = {ContactThreshold{}};
  double confirm_time = 0.0;   ///< s for which a joint has to be above its threshold
  double release = 0.5;        ///< the part of the threshold below which a contact may end
  double release_time = 0.05;  ///< s for which all joints have to be below it
  std::string frame;           ///< link at which the wrench is wanted; empty: none
  /// m; a moment of 1 N·m counts as much as a force of 1 N at this distance.
  double length = 0.5;
  /// m or 1; directions in which a unit of wrench moves the joints by less are damped.
  double damping = 0.05;
};

/// What touches the robot.
struct Contact {
  bool touched = false;
  /// Index into Model::links of the link that it most likely happened on: the one moved by the
  /// farthest joint from the root that feels it, since a force on a link is felt by the joints
  /// between it and the root, and by no other. −1: none.
  int link = -1;
  double time = 0.0;  ///< s since it was first felt
};

/// What the environment exerts on a frame, about its origin in its axes, as a force-torque sensor
/// shows it. Of a subset of directions the joints may feel nothing; there it is zero.
struct FrameWrench {
  Eigen::Vector3d force = Eigen::Vector3d::Zero();   ///< N
  Eigen::Vector3d torque = Eigen::Vector3d::Zero();  ///< N·m
  int directions = 0;                                ///< of six, how many the joints feel undamped
  /// Smallest singular value of Jᵀ by its largest, in the units of ObserverConfig::length: 0 where
  /// some direction is not felt at all, at a singularity or with less than six joints.
  double conditioning = 0.0;
};

/// All memory is taken in the constructor; every other member function is real-time safe.
class MomentumObserver {
 public:
  /// Throws ConfigError. The model is not needed any longer afterwards.
  MomentumObserver(const Model& model, const ObserverConfig& config);

  [[nodiscard]] const std::vector<std::string>& joints() const noexcept {
    return balance_.config().joints;
  }
  /// In the order of JointSample::others.
  [[nodiscard]] const std::vector<std::string>& other_joints() const noexcept {
    return balance_.robot().other_joints();
  }

  /// A sample, dt seconds after the last one. Anything but Status::ok starts anew, with nothing
  /// felt: wrong_size or not_finite for the sample, out_of_range for a dt not above zero or above
  /// max_dt, not_finite where a result overflows.
  [[nodiscard]] Status update(const JointSample& sample, double dt) noexcept;
  /// Starts anew.
  void restart() noexcept;

  /// Gravity in the root link's frame, m/s². For a base that accelerates: less that acceleration.
  [[nodiscard]] Status set_gravity(const Eigen::Vector3d& gravity) noexcept;
  /// What a link (index into Model::links) carries that is no contact; it changes within
  /// `transition` seconds of updates, zero: at once.
  [[nodiscard]] Status set_payload(int link, const Payload<double>& payload,
                                   double transition = 0.0) noexcept;

  /// r of (1): the effort of the environment on each joint, N·m or N. Finite always.
  [[nodiscard]] const VectorX<double>& external_effort() const noexcept { return residual_; }
  /// T of (2).
  [[nodiscard]] const VectorX<double>& threshold() const noexcept { return threshold_; }
  /// By joint: above its threshold, and not yet below the part of it that releases.
  [[nodiscard]] const std::vector<bool>& felt() const noexcept { return felt_; }
  [[nodiscard]] const Contact& contact() const noexcept { return contact_; }
  /// Zero where no frame was named.
  [[nodiscard]] const FrameWrench& wrench() const noexcept { return wrench_; }

 private:
  [[nodiscard]] double bound(Eigen::Index joint) const noexcept;
  [[nodiscard]] Status filter(double dt) noexcept;
  void decide(double dt) noexcept;
  [[nodiscard]] int touched_link() const noexcept;
  [[nodiscard]] Status find_wrench() noexcept;

  MomentumBalance balance_;
  PayloadRamp payload_ramp_;
  ObserverConfig config_;
  VectorX<double> residual_, threshold_;
  VectorX<double> above_;   ///< by joint: s for which it has been above its threshold
  std::vector<bool> felt_;  ///< by joint
  std::vector<int> link_;   ///< by joint: the one it moves
  std::vector<int> depth_;  ///< by joint: how many joints are between it and the root
  double below_ = 0.0;      ///< s for which no joint has felt anything
  bool started_ = false;
  Contact contact_;

  int frame_ = -1;
  MatrixX<double> J_;                              ///< 6 × nv, in the world's axes
  Eigen::Matrix<double, 6, Eigen::Dynamic> seen_;  ///< 6 × joints, in the frame's axes
  Eigen::Matrix<double, 6, 6> gram_;
  FrameWrench wrench_;
};

}  // namespace dynamics_core::control
