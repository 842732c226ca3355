// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A robot as its source describes it, before it is compiled into a Model. Every loader (URDF,
/// Denavit–Hartenberg tables) produces one of these, and a program may write one by hand.

#include <Eigen/Core>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "dynamics_core/spatial.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core {

/// A model that cannot be built. The text names the source, the element, the value and the remedy.
class ModelError : public std::runtime_error {
 public:
  ModelError(const std::string& source, const std::string& element, const std::string& problem,
             const std::string& remedy)
      : std::runtime_error(text::printable((source.empty() ? std::string() : source + ": ") +
                                           element + ": " + problem +
                                           (remedy.empty() ? std::string() : "; " + remedy))),
        element_(element) {}
  /// e.g. "joint 'elbow'"
  [[nodiscard]] const std::string& element() const noexcept { return element_; }

 private:
  std::string element_;
};

enum class JointType {
  revolute,
  continuous,
  prismatic,
  fixed,
  planar,
  floating,
  helical,  ///< a screw: turns about its axis and advances along it; its coordinate is the angle
};

[[nodiscard]] constexpr const char* to_string(JointType type) noexcept {
  switch (type) {
    case JointType::revolute: return "revolute";
    case JointType::continuous: return "continuous";
    case JointType::prismatic: return "prismatic";
    case JointType::fixed: return "fixed";
    case JointType::planar: return "planar";
    case JointType::floating: return "floating";
    case JointType::helical: return "helical";
  }
  return "unknown type";
}

/// Does one number say where a joint of this type is?
[[nodiscard]] constexpr bool has_one_coordinate(JointType type) noexcept {
  switch (type) {
    case JointType::revolute:
    case JointType::continuous:
    case JointType::prismatic:
    case JointType::helical: return true;
    case JointType::fixed:
    case JointType::planar:
    case JointType::floating: return false;
  }
  return false;
}

/// Mass properties of a link: inertia about the centre of mass, in the link's axes.
struct Inertial {
  double mass = 0.0;                                  ///< kg
  Eigen::Vector3d com = Eigen::Vector3d::Zero();      ///< m, in the link's frame
  Eigen::Matrix3d inertia = Eigen::Matrix3d::Zero();  ///< kg·m², about the centre of mass
};

struct LinkDescription {
  std::string name;
  std::optional<Inertial> inertial;
};

struct Limits {
  double lower = -std::numeric_limits<double>::infinity();    ///< rad or m
  double upper = std::numeric_limits<double>::infinity();     ///< rad or m
  double velocity = std::numeric_limits<double>::infinity();  ///< rad/s or m/s
  double effort = std::numeric_limits<double>::infinity();    ///< N·m or N
};

struct Mimic {
  std::string joint;
  double multiplier = 1.0;
  double offset = 0.0;
};

struct JointDescription {
  std::string name;
  JointType type = JointType::fixed;
  std::string parent;                               ///< link
  std::string child;                                ///< link
  Pose<double> origin = Pose<double>::identity();   ///< of the joint (and child) in the parent link
  Eigen::Vector3d axis = Eigen::Vector3d::UnitX();  ///< in the joint's frame; planar: the normal
  double pitch = 0.0;                               ///< helical: metres along the axis per radian
  std::optional<Limits> limits;
  double damping = 0.0;        ///< viscous friction, N·m·s/rad or N·s/m
  double friction = 0.0;       ///< Coulomb friction, N·m or N
  double rotor_inertia = 0.0;  ///< kg·m², on the motor's side of the gear
  double gear_ratio = 1.0;     ///< motor turns per joint turn
  std::optional<Mimic> mimic;
};

struct RobotDescription {
  std::string name;
  std::string source;  ///< file name, for messages; may be empty
  std::vector<LinkDescription> links;
  std::vector<JointDescription> joints;  ///< siblings move in this order
  std::vector<std::string> warnings;     ///< found by the loader, each names its element
  Eigen::Vector3d gravity{0.0, 0.0, -9.81};
};

/// How to turn a description into a model.
struct ModelOptions {
  bool strict = false;                             ///< warnings become errors
  bool floating_base = false;                      ///< the root link floats freely in the world
  std::optional<Eigen::Vector3d> gravity;          ///< m/s², in the world (root link) frame
  std::map<std::string, double> locked;            ///< joints held at these positions
  std::optional<std::vector<std::string>> joints;  ///< only these move; others are locked (at
                                                   ///< `locked`, else 0)
  std::map<std::string, double> damping;           ///< overrides by joint name
  std::map<std::string, double> friction;
  std::map<std::string, double> rotor_inertia;
  std::map<std::string, double> gear_ratio;
};

/// The joints that move `tip` in `root` (empty: the robot's root), from the root on; fixed and
/// mimic joints left out. Throws ModelError where a link is unknown or the one is not above the
/// other.
[[nodiscard]] std::vector<std::string> chain_joints(const RobotDescription& description,
                                                    const std::string& root,
                                                    const std::string& tip);

/// Throws ModelError where the description cannot become a model; returns named warnings about
/// what is unphysical but loads all the same (with `strict` those are thrown, too).
[[nodiscard]] std::vector<std::string> validate(const RobotDescription& description, bool strict);

}  // namespace dynamics_core
