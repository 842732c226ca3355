// SPDX-License-Identifier: Apache-2.0
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <cmath>
#include <unordered_map>

#include "dynamics_core/description.hpp"
#include "dynamics_core/text.hpp"
#include "load_common.hpp"

namespace dynamics_core {
namespace {

using text::quoted;
using text::to_short_text;
using text::to_text;

/// Below this, numbers that ought to be equal differ by rounding only.
constexpr double tolerance = 1e-9;
/// Axes are often written with six digits.
constexpr double axis_tolerance = 1e-6;

std::string to_text(const Eigen::Vector3d& u) {
  return "(" + to_text(u[0]) + ", " + to_text(u[1]) + ", " + to_text(u[2]) + ")";
}

/// One element of the description: throws errors about it, and warnings as well if strict.
class Element {
 public:
  Element(const std::string& source, std::string name, std::vector<std::string>* warnings)
      : source_(source), name_(std::move(name)), warnings_(warnings) {}

  [[noreturn]] void refuse(const std::string& problem, const std::string& remedy) const {
    throw ModelError(source_, name_, problem, remedy);
  }
  void warn(const std::string& problem, const std::string& remedy) const {
    if (warnings_ == nullptr) refuse(problem, remedy);
    warnings_->push_back(name_ + ": " + problem + "; " + remedy);
  }
  void finite(double value, const std::string& what) const {
    if (!std::isfinite(value)) refuse(what + " is " + to_text(value), "write a finite number");
  }
  template <class Derived>
  void finite(const Eigen::MatrixBase<Derived>& values, const std::string& what) const {
    for (Eigen::Index i = 0; i < values.rows(); ++i) {
      for (Eigen::Index j = 0; j < values.cols(); ++j) finite(values(i, j), what);
    }
  }
  void not_negative(double value, const std::string& what) const {
    finite(value, what);
    if (value < 0.0) {
      refuse(what + " " + to_text(value) + " is negative", "write zero or a positive number");
    }
  }

 private:
  const std::string& source_;
  std::string name_;
  std::vector<std::string>* warnings_;  ///< null: strict
};

// --- Links ---------------------------------------------------------------------------------------

void check_inertia(const Element& element, const Eigen::Matrix3d& inertia) {
  const double largest = inertia.cwiseAbs().maxCoeff();
  if ((inertia - inertia.transpose()).cwiseAbs().maxCoeff() > tolerance * largest) {
    element.refuse("inertia is not symmetric", "set both halves of the matrix alike");
  }
  const double scale = largest > 0.0 ? largest : 1.0;
  // Relative to the largest, so that no product leaves the range of a double; ascending.
  const Eigen::Vector3d moments =
      Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d>(inertia / scale, Eigen::EigenvaluesOnly)
          .eigenvalues();
  std::string text = "(principal moments ";
  for (int i = 0; i < 3; ++i) {
    const bool rounding = std::abs(moments[i]) < 1e-14;
    text += (i == 0 ? "" : ", ") + to_short_text(rounding ? 0.0 : scale * moments[i]);
  }
  text += ")";
  if (moments[0] < -tolerance) {
    element.warn("inertia is not positive semi-definite " + text, "correct the inertia");
  } else if (moments[0] + moments[1] - moments[2] < -tolerance) {
    element.warn("inertia breaks the triangle inequality " + text,
                 "no body has the largest above the sum of the others; correct the inertia");
  }
}

void check_inertial(const Element& element, const Inertial& inertial) {
  element.not_negative(inertial.mass, "mass");
  element.finite(inertial.com, "centre of mass");
  element.finite(inertial.inertia, "inertia");
  check_inertia(element, inertial.inertia);
  if (inertial.mass == 0.0 && !inertial.inertia.isZero(0.0)) {
    element.warn(
        "mass is 0 but inertia is not (trace " + to_short_text(inertial.inertia.trace()) + ")",
        "give it a mass or remove the inertia");
  }
}

// --- Joints --------------------------------------------------------------------------------------

void check_axis(const Element& element, const JointDescription& joint) {
  element.finite(joint.axis, "axis");
  if (!has_one_coordinate(joint.type) && joint.type != JointType::planar) return;
  const double length = joint.axis.norm();
  if (length < tolerance) {
    element.refuse("axis " + to_text(joint.axis) + " is zero", "give it a direction");
  }
  element.finite(length, "length of axis " + to_text(joint.axis));
  if (std::abs(length - 1.0) > axis_tolerance) {
    element.warn("axis " + to_text(joint.axis) + " has length " + to_short_text(length),
                 "it is normalised; write a unit vector");
  }
}

void check_pitch(const Element& element, const JointDescription& joint) {
  if (joint.type == JointType::helical) {
    element.finite(joint.pitch, "pitch");
    if (joint.pitch == 0.0) element.refuse("is helical but its pitch is 0", "use revolute");
  } else if (joint.pitch != 0.0) {
    element.refuse(
        "is " + std::string(to_string(joint.type)) + " but has a pitch of " + to_text(joint.pitch),
        "remove the pitch or use helical");
  }
}

void check_pose(const Element& element, const Pose<double>& origin) {
  element.finite(origin.p, "origin");
  element.finite(origin.R, "rotation of the origin");
  const Eigen::Matrix3d error = origin.R.transpose() * origin.R - Eigen::Matrix3d::Identity();
  if (error.cwiseAbs().maxCoeff() > tolerance || origin.R.determinant() < 0.0) {
    element.refuse("rotation of the origin is not orthonormal", "give a proper rotation matrix");
  }
}

/// Position limits may be infinite, each in its own direction.
void check_range(const Element& element, const Limits& limits) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (std::isnan(limits.lower) || limits.lower == infinity) {
    element.finite(limits.lower, "lower limit");
  }
  if (std::isnan(limits.upper) || limits.upper == -infinity) {
    element.finite(limits.upper, "upper limit");
  }
  if (limits.lower > limits.upper) {
    element.refuse(
        "lower limit " + to_text(limits.lower) + " is above upper limit " + to_text(limits.upper),
        "swap them or correct one");
  }
  if (limits.lower == limits.upper) {
    element.warn("lower and upper limit are both " + to_text(limits.lower) + ", so it cannot move",
                 "give it a range or make it fixed");
  }
}

void check_rate(const Element& element, double limit, const std::string& what) {
  if (std::isnan(limit)) element.finite(limit, what);
  if (limit <= 0.0) {
    element.warn(what + " is " + to_text(limit) + ", so it cannot move", "write a positive number");
  }
}

void check_limits(const Element& element, const JointDescription& joint) {
  if (!joint.limits || joint.type == JointType::fixed) return;
  if (has_one_coordinate(joint.type)) check_range(element, *joint.limits);
  check_rate(element, joint.limits->effort, "effort limit");
  check_rate(element, joint.limits->velocity, "velocity limit");
}

void check_joint(const Element& element, const JointDescription& joint) {
  check_pose(element, joint.origin);
  check_axis(element, joint);
  check_pitch(element, joint);
  check_limits(element, joint);
  element.not_negative(joint.damping, "damping");
  element.not_negative(joint.friction, "friction");
  element.not_negative(joint.rotor_inertia, "rotor inertia");
  element.finite(joint.gear_ratio, "gear ratio");
}

using JointsByName = std::unordered_map<std::string, const JointDescription*>;

const JointDescription& mimicked(const Element& element, const JointsByName& joints,
                                 const Mimic& mimic) {
  const auto found = joints.find(mimic.joint);
  if (found == joints.end()) {
    element.refuse("mimics joint " + quoted(mimic.joint) + ", which does not exist",
                   "correct the name");
  }
  return *found->second;
}

void check_mimic(const Element& element, const JointsByName& joints,
                 const JointDescription& joint) {
  if (!joint.mimic) return;
  const std::string target = quoted(joint.mimic->joint);
  element.finite(joint.mimic->multiplier, "multiplier of mimic");
  element.finite(joint.mimic->offset, "offset of mimic");
  if (!has_one_coordinate(joint.type)) {
    element.refuse("is " + std::string(to_string(joint.type)) + " and cannot mimic joint " + target,
                   "remove the mimic or make it revolute, continuous or prismatic");
  }
  if (joint.mimic->joint == joint.name) {
    element.refuse("mimics itself", "name another joint or remove the mimic");
  }
  const JointDescription& first = mimicked(element, joints, *joint.mimic);
  if (!has_one_coordinate(first.type)) {
    element.refuse("mimics the " + std::string(to_string(first.type)) + " joint " + target +
                       ", which has not one coordinate",
                   "name a revolute, continuous or prismatic joint");
  }
  const JointDescription* leader = &first;
  for (std::size_t steps = 0; leader->mimic; ++steps) {
    if (leader == &joint || steps > joints.size()) {
      element.refuse("mimics joint " + target + " in a loop", "let one of them move by itself");
    }
    leader = &mimicked(element, joints, *leader->mimic);
  }
}

// --- Bodies --------------------------------------------------------------------------------------

/// A body is a link with everything fixed to it. Each that moves needs a mass somewhere.
void check_masses(const RobotDescription& description, std::vector<std::string>* warnings) {
  std::unordered_map<std::string, const JointDescription*> parent;
  for (const JointDescription& joint : description.joints) parent[joint.child] = &joint;

  std::unordered_map<std::string, bool> massive;
  for (const LinkDescription& link : description.links) {
    if (!link.inertial) continue;
    // Massless with inertia has its own warning.
    if (link.inertial->mass == 0.0 && link.inertial->inertia.isZero(0.0)) continue;
    const std::string* body = &link.name;
    for (auto up = parent.find(*body); up != parent.end() && up->second->type == JointType::fixed;
         up = parent.find(*body)) {
      body = &up->second->parent;
    }
    massive[*body] = true;
  }
  for (const JointDescription& joint : description.joints) {
    if (joint.type == JointType::fixed || massive.count(joint.child) != 0) continue;
    Element(description.source, "link " + quoted(joint.child), warnings)
        .warn("moves with joint " + quoted(joint.name) +
                  ", but its mass and that of all links fixed to it is 0",
              "give it an inertial");
  }
}

}  // namespace

std::vector<std::string> validate(const RobotDescription& description, bool strict) {
  detail::check_tree(description);
  if (strict && !description.warnings.empty()) {
    detail::throw_warning(description.source, description.warnings.front());
  }
  std::vector<std::string> warnings;
  std::vector<std::string>* sink = strict ? nullptr : &warnings;

  Element(description.source, "robot", sink).finite(description.gravity, "gravity");
  for (const LinkDescription& link : description.links) {
    const Element element(description.source, "link " + quoted(link.name), sink);
    if (link.inertial) check_inertial(element, *link.inertial);
  }
  JointsByName joints;
  for (const JointDescription& joint : description.joints) joints[joint.name] = &joint;
  for (const JointDescription& joint : description.joints) {
    const Element element(description.source, "joint " + quoted(joint.name), sink);
    check_joint(element, joint);
    check_mimic(element, joints, joint);
  }
  check_masses(description, sink);
  return warnings;
}

}  // namespace dynamics_core
