// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The equations of motion of a whole robot in a few dense matrices (Featherstone & Orin 2000,
/// §3.5), in world coordinates about the world's origin. An oracle: it starts from the robot's
/// description rather than from the compiled model, keeps every link a body of its own, fixed ones
/// as well, and shares no transform and no recursion with the library. Of the model it uses the
/// order of the joints alone.

#include <Eigen/Core>
#include <map>
#include <string>
#include <vector>

#include "dynamics_core/model.hpp"

namespace support {

using Eigen::Matrix3d;
using Eigen::Matrix4d;
using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;
using Matrix6d = Eigen::Matrix<double, 6, 6>;
using Vector6d = Eigen::Matrix<double, 6, 1>;

/// [R p; 0 1]
Matrix4d homogeneous(const Matrix3d& R, const Vector3d& p);

class GlobalAnalysis {
 public:
  GlobalAnalysis(const dynamics_core::RobotDescription& description,
                 const dynamics_core::Model& model, bool floating_base = false);

  /// Computes everything for the state (q, v).
  void set_state(const VectorXd& q, const VectorXd& v);

  /// M = Hᵀ P⁻ᵀ I P⁻¹ H, and the reflected rotors.
  [[nodiscard]] MatrixXd mass_matrix() const;

  /// Sᵀ(I a + v × I v), gravity as an acceleration −g of everything (Eqs. 25, 26).
  [[nodiscard]] VectorXd inverse_dynamics(const VectorXd& qdd) const;

  // --- kinematics, by index into RobotDescription::links -----------------------------------------
  [[nodiscard]] const Matrix4d& pose(int link) const {
    return poses_[static_cast<std::size_t>(link)];
  }
  /// [ω; v of the link's origin] = J v
  [[nodiscard]] MatrixXd jacobian(int link) const;
  /// The classical acceleration of the link's origin for v̇ = 0.
  [[nodiscard]] Vector6d bias_acceleration(int link) const;
  [[nodiscard]] double kinetic_energy(const VectorXd& v) const;
  /// Of what moves, with the centre of mass weighted by mass.
  [[nodiscard]] Eigen::Vector4d first_moment() const;

 private:
  using Type = dynamics_core::JointType;

  [[nodiscard]] std::size_t index(const std::string& name) const {
    return static_cast<std::size_t>(link_index_.at(name));
  }
  [[nodiscard]] const dynamics_core::LinkDescription& link(int i) const {
    return links_[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] const dynamics_core::JointDescription& joint(int i) const {
    return incoming_[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] int parent(int i) const {
    const auto it = link_index_.find(joint(i).parent);
    return it == link_index_.end() ? -1 : it->second;
  }
  void order();

  /// Multiplier and offset of a joint, and the place of the coordinate it follows.
  struct Coordinate {
    double multiplier = 1.0, offset = 0.0;
    int q = -1, v = -1;
  };
  [[nodiscard]] Coordinate coordinate(const dynamics_core::JointDescription& j) const;

  /// A planar joint's frame, z on the normal.
  [[nodiscard]] static Matrix3d plane(const dynamics_core::JointDescription& j);

  [[nodiscard]] static Vector6d turn(const Matrix4d& T, const Vector3d& axis);
  [[nodiscard]] static Vector6d slide(const Matrix4d& T, const Vector3d& axis);

  /// Pose of link i, and its block row of H.
  void place(int i, const VectorXd& q);

  /// ḣ q̇ = v × h q̇ with the velocity of what the axis is fixed in: the parent for the slides of a
  /// planar joint, the link for all others (the axes of turns, slides and screws are fixed in both).
  [[nodiscard]] Vector6d axis_rates(int i, const VectorXd& v) const;

  /// About the world's origin, in world axes.
  [[nodiscard]] Matrix6d spatial_inertia(int i) const;

  /// Moves a motion from the world's origin to the link's.
  [[nodiscard]] Matrix6d at_origin(int i) const;

  const dynamics_core::Model& model_;
  Vector3d gravity_;
  int n_;
  int N_ = 0;
  std::vector<dynamics_core::LinkDescription> links_;
  std::vector<dynamics_core::JointDescription> incoming_;  ///< by child link
  std::map<std::string, int> link_index_;
  std::map<std::string, dynamics_core::JointDescription> by_name_;
  std::vector<int> order_;  ///< links, parents first

  std::vector<Matrix4d> poses_;
  MatrixXd H_, P_, S_, inertia_, rotors_;
  VectorXd V_, a0_;
};

}  // namespace support
