// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "dynamics_core/description.hpp"
#include "dynamics_core/spatial.hpp"

namespace dynamics_core {

/// How a body moves in its parent; joints.hpp says what each does to motions and forces. A planar
/// joint becomes two prismatic bodies and a revolute one, a floating joint six bodies whose frames
/// share one origin; all but the last have no mass.
enum class JointKind : unsigned char {
  revolute,          ///< turns about z by q
  floating_first,    ///< carries the pose of a floating joint; turns about its x
  floating_angular,  ///< the y and z rates of a floating joint
  prismatic,         ///< slides along z by q
  floating_linear,   ///< the x, y and z velocities of a floating joint
  helical,           ///< turns about z by q and slides along it by pitch · q
};

/// One degree of freedom of motion between a body and its parent, λ(i) < i.
struct BodyData {
  int parent = -1;  ///< index of the parent body, −1: the base
  JointKind kind = JointKind::revolute;
  Transform<double> X{};    ///< at q = 0
  int dof = 0;              ///< index into v, a, τ
  int q = 0;                ///< index into q (floating_first: of x y z qx qy qz qw)
  bool mimic = false;       ///< moves with another joint's coordinate
  double multiplier = 1.0;  ///< body coordinate = multiplier · q + offset
  double offset = 0.0;
  double pitch = 0.0;  ///< helical: metres along z per radian
  double slide = 0.0;  ///< helical: X.d where the body's coordinate is zero
  double rotor = 0.0;  ///< reflected rotor inertia, rotor inertia × gear ratio²
  int joint = 0;       ///< index into Model::joints (mimic: of the joint it follows)
  int axis = 0;        ///< floating joints: which of the six motions (ω x y z, v x y z) this is
  Pose<double> origin = Pose<double>::identity();  ///< floating_first: the joint in its parent
};

/// A joint with coordinates of its own: neither fixed, nor locked, nor a mimic.
struct JointInfo {
  std::string name;
  JointType type = JointType::revolute;
  std::string parent;  ///< link
  std::string child;   ///< link
  int q = 0, nq = 1;   ///< place in q
  int v = 0, nv = 1;   ///< place in v, a, τ
  Limits limits;
  double damping = 0.0;
  double friction = 0.0;
  double rotor_inertia = 0.0;
  double gear_ratio = 1.0;
  double pitch = 0.0;  ///< helical: metres along the axis per radian
};

struct MimicInfo {
  std::string name;
  std::string joint;  ///< the independent joint at the end of the chain of mimics
  double multiplier = 1.0;
  double offset = 0.0;
};

/// A link of the source, fixed in a body. All links are kept, merged ones as well.
struct LinkInfo {
  std::string name;
  int body = -1;                                 ///< −1: fixed in the world
  Pose<double> X_BL = Pose<double>::identity();  ///< pose of the link in the body's frame
  Inertial inertial;                             ///< in the link's own frame, as in the source
};

/// An immutable rigid-body tree. Built off the real-time path by `build_model` or a loader.
///
/// Joint order: depth-first from the root, siblings in the order of the source; `joints` lists
/// them, each with its place in q and v. A floating joint has q = (x y z qx qy qz qw) and
/// v = (ω; v) in the moving link's axes; a planar joint q = (x y θ) in the joint's frame turned so
/// that z is the normal.
struct Model {
  std::string name;
  std::vector<BodyData> bodies;
  std::vector<JointInfo> joints;
  std::vector<MimicInfo> mimics;
  std::vector<LinkInfo> links;
  std::vector<std::string> warnings;
  Eigen::Vector3d gravity{0.0, 0.0, -9.81};      ///< in the world (root link) frame
  Pose<double> X_WB = Pose<double>::identity();  ///< the base frame the bodies start from
  int nq = 0;
  int nv = 0;

  [[nodiscard]] int nb() const noexcept { return static_cast<int>(bodies.size()); }
  /// −1 where there is none of that name.
  [[nodiscard]] int find_link(const std::string& name) const noexcept;
  [[nodiscard]] int find_joint(const std::string& name) const noexcept;
  /// A configuration with all coordinates zero and unit quaternions.
  [[nodiscard]] VectorX<double> neutral() const;
};

/// Validates the description and compiles it. Throws ModelError.
[[nodiscard]] Model build_model(const RobotDescription& description,
                                const ModelOptions& options = {});

}  // namespace dynamics_core
