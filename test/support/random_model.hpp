#pragma once

/// Random robots and states for property tests. Everything follows from one seed, which a failing
/// test prints.

#include <Eigen/Geometry>
#include <random>
#include <string>

#include "dynamics_core/model.hpp"

namespace support {

struct RandomOptions {
  int joints = 6;
  double branching = 0.0;  ///< chance that a joint hangs on any earlier link, not on the last one
  double prismatic = 0.0;  ///< chance of a sliding joint
  double fixed = 0.0;      ///< chance of a fixed joint
  double planar = 0.0;     ///< chance of a planar joint
  double floating = 0.0;   ///< chance of a floating joint
  double mimic = 0.0;      ///< chance that a moving joint mimics an earlier one
  bool rotors = false;     ///< rotor inertias and gears
  bool aligned = false;    ///< axes parallel or perpendicular, as in most industrial arms
};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine_);
  }
  bool chance(double p) { return uniform(0.0, 1.0) < p; }
  int integer(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  Eigen::Vector3d vector(double size) {
    return {uniform(-size, size), uniform(-size, size), uniform(-size, size)};
  }
  Eigen::VectorXd vector_x(int n, double size) {
    Eigen::VectorXd x(n);
    for (int i = 0; i < n; ++i) x[i] = uniform(-size, size);
    return x;
  }
  Eigen::Vector3d direction() {
    Eigen::Vector3d u;
    do u = vector(1.0);
    while (u.norm() < 0.1 || u.norm() > 1.0);
    return u.normalized();
  }
  Eigen::Matrix3d rotation() {
    return Eigen::AngleAxisd(uniform(-3.0, 3.0), direction()).toRotationMatrix();
  }
  /// A physical body: the inertia of a box with its own axes.
  dynamics_core::Inertial inertial() {
    dynamics_core::Inertial out;
    out.mass = uniform(0.2, 4.0);
    out.com = vector(0.2);
    const Eigen::Vector3d s = Eigen::Vector3d::Constant(0.05) + vector(0.04);
    const Eigen::Vector3d sq = s.cwiseProduct(s);
    const Eigen::Vector3d principal(sq[1] + sq[2], sq[0] + sq[2], sq[0] + sq[1]);
    const Eigen::Matrix3d R = rotation();
    out.inertia = out.mass * (R * principal.asDiagonal() * R.transpose());
    return out;
  }

  dynamics_core::RobotDescription robot(const RandomOptions& options);

  /// A state of the model: unit quaternions where they belong.
  Eigen::VectorXd configuration(const dynamics_core::Model& model) {
    Eigen::VectorXd q = vector_x(model.nq, 2.0);
    for (const auto& j : model.joints)
      if (j.type == dynamics_core::JointType::floating) q.segment(j.q + 3, 4).normalize();
    return q;
  }

 private:
  dynamics_core::JointType type(const RandomOptions& options) {
    using dynamics_core::JointType;
    if (chance(options.fixed)) return JointType::fixed;
    if (chance(options.planar)) return JointType::planar;
    if (chance(options.floating)) return JointType::floating;
    if (chance(options.prismatic)) return JointType::prismatic;
    return chance(0.3) ? JointType::continuous : JointType::revolute;
  }

  std::mt19937 engine_;
};

inline dynamics_core::RobotDescription Random::robot(const RandomOptions& options) {
  using dynamics_core::JointType;
  dynamics_core::RobotDescription robot;
  robot.name = "random";
  robot.links.push_back({"link_0", inertial()});
  std::vector<std::string> leaders;
  for (int i = 1; i <= options.joints; ++i) {
    dynamics_core::JointDescription j;
    j.name = "joint_" + std::to_string(i);
    j.type = type(options);
    j.parent = "link_" + std::to_string(chance(options.branching) ? integer(0, i - 1) : i - 1);
    j.child = "link_" + std::to_string(i);
    j.origin = {rotation(), vector(0.4)};
    j.axis = direction();
    if (options.aligned) {
      j.origin.R = Eigen::AngleAxisd(integer(0, 3) * M_PI / 2, Eigen::Vector3d::Unit(integer(0, 2)))
                       .toRotationMatrix();
      j.axis = Eigen::Vector3d::UnitZ();
    }
    j.limits = dynamics_core::Limits{-3.0, 3.0, 5.0, 100.0};
    if (options.rotors) {
      j.rotor_inertia = uniform(0.0, 1e-4);
      j.gear_ratio = uniform(1.0, 100.0);
    }
    const bool single = j.type == JointType::revolute || j.type == JointType::continuous ||
                        j.type == JointType::prismatic;
    if (single && !leaders.empty() && chance(options.mimic)) {
      const int leader = integer(0, static_cast<int>(leaders.size()) - 1);
      j.mimic = dynamics_core::Mimic{leaders[static_cast<std::size_t>(leader)], uniform(-2.0, 2.0),
                                     uniform(-1.0, 1.0)};
    }
    if (single) leaders.push_back(j.name);
    robot.links.push_back({j.child, inertial()});
    robot.joints.push_back(j);
  }
  return robot;
}

}  // namespace support
