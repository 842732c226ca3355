// SPDX-License-Identifier: Apache-2.0
#include "support/random_model.hpp"

#include <Eigen/Geometry>
#include <vector>

namespace support {

using dynamics_core::JointDescription;
using dynamics_core::JointType;

// Every draw is a statement or an element of a braced list: the order in which a compiler evaluates
// the arguments of a function is its own, and the robots of a seed would be as well.

double Random::uniform(double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(engine_);
}

int Random::integer(int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(engine_);
}

Eigen::Vector3d Random::vector(double size) {
  return {uniform(-size, size), uniform(-size, size), uniform(-size, size)};
}

Eigen::VectorXd Random::vector_x(int n, double size) {
  Eigen::VectorXd x(n);
  for (int i = 0; i < n; ++i) x[i] = uniform(-size, size);
  return x;
}

Eigen::Vector3d Random::direction() {
  Eigen::Vector3d u;
  do u = vector(1.0);
  while (u.norm() < 0.1 || u.norm() > 1.0);
  return u.normalized();
}

Eigen::Matrix3d Random::rotation() {
  const Eigen::Vector3d axis = direction();
  return Eigen::AngleAxisd(uniform(-3.0, 3.0), axis).toRotationMatrix();
}

dynamics_core::Inertial Random::inertial() {
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

Eigen::VectorXd Random::configuration(const dynamics_core::Model& model) {
  Eigen::VectorXd q = vector_x(model.nq, 2.0);
  for (const auto& j : model.joints)
    if (j.type == JointType::floating) q.segment(j.q + 3, 4).normalize();
  return q;
}

JointType Random::type(const RandomOptions& options) {
  if (options.helical > 0.0 && chance(options.helical)) return JointType::helical;
  if (chance(options.fixed)) return JointType::fixed;
  if (chance(options.planar)) return JointType::planar;
  if (chance(options.floating)) return JointType::floating;
  if (chance(options.prismatic)) return JointType::prismatic;
  return chance(0.3) ? JointType::continuous : JointType::revolute;
}

JointDescription Random::joint(int index, const RandomOptions& options) {
  JointDescription j;
  j.name = "joint_" + std::to_string(index);
  j.type = type(options);
  const int parent = chance(options.branching) ? integer(0, index - 1) : index - 1;
  j.parent = "link_" + std::to_string(parent);
  j.child = "link_" + std::to_string(index);
  j.origin = {rotation(), vector(0.4)};
  j.axis = direction();
  if (options.aligned) {
    const Eigen::Vector3d axis = Eigen::Vector3d::Unit(integer(0, 2));
    j.origin.R = Eigen::AngleAxisd(integer(0, 3) * M_PI / 2, axis).toRotationMatrix();
    j.axis = Eigen::Vector3d::UnitZ();
  }
  j.limits = dynamics_core::Limits{-3.0, 3.0, 5.0, 100.0};
  if (j.type == JointType::helical) j.pitch = uniform(-0.2, 0.2);
  if (options.rotors) {
    j.rotor_inertia = uniform(0.0, 1e-4);
    j.gear_ratio = uniform(1.0, 100.0);
  }
  return j;
}

dynamics_core::RobotDescription Random::robot(const RandomOptions& options) {
  dynamics_core::RobotDescription robot;
  robot.name = "random";
  robot.links.push_back({"link_0", inertial()});
  std::vector<std::string> leaders;
  for (int i = 1; i <= options.joints; ++i) {
    JointDescription j = joint(i, options);
    const bool single =
        j.type != JointType::fixed && j.type != JointType::planar && j.type != JointType::floating;
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
