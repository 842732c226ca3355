// SPDX-License-Identifier: Apache-2.0
// The robot as its tool sees it: the inertia that a force on the tool feels, and the torques that
// accelerate the tool as wanted and nothing else.
//
//     05_operational_space [robot.urdf [link]]

#include <cmath>
#include <dynamics_core/dynamics.hpp>
#include <dynamics_core/joint_selection.hpp>
#include <dynamics_core/kinematics.hpp>
#include <dynamics_core/load.hpp>
#include <dynamics_core/operational_space.hpp>
#include <exception>
#include <iostream>

int main(int argc, char** argv) try {
  using namespace dynamics_core;
  const Model model = load_urdf(argc > 1 ? argv[1] : "config/robots/panda.urdf");
  const int link = argc > 2 ? model.find_link(argv[2]) : tip_link(model);
  Dynamics<double> robot(model);
  Eigen::VectorXd q = model.neutral();
  for (const JointInfo& joint : model.joints)  // away from where arms are straight
    if (joint.nq == 1) q[joint.q] = joint.limits.lower * 0.4 + joint.limits.upper * 0.6;
  q = q.unaryExpr([](double x) { return std::isfinite(x) ? x : 0.7; });
  const Eigen::VectorXd v = Eigen::VectorXd::Constant(robot.nv(), 0.1);

  // [operational space]
  const Task<double> task = position_task<double>(link, Eigen::Vector3d::Zero());
  OperationalSpace<double>& tool = robot.operational_space();
  if (tool.update(q, v, task) != Status::ok) {  // singular where the tool cannot move freely
    std::cerr << "there is no such link, or it cannot move in all directions here\n";
    return 1;
  }
  const Eigen::Vector3d wanted(0.0, 0.0, 1.0);  // m/s² of the tool, in world axes
  Eigen::VectorXd force(tool.rows());
  if (tool.task_force(wanted, force) != Status::ok) return 1;  // Λ ẍ + μ + p
  const Eigen::VectorXd tau = tool.jacobian().transpose() * force;
  // [operational space]

  std::cout << "inertia that " << model.links[static_cast<std::size_t>(link)].name
            << " feels, kg:\n"
            << tool.inertia() << "\nforce on it: " << force.transpose()
            << " N\ntau = " << tau.transpose() << '\n';

  // Do these torques do it? The joints accelerate by forward dynamics, the tool by J a + J̇ v.
  Eigen::VectorXd a(robot.nv());
  Motion<double> bias;
  if (robot.forward_dynamics(q, v, tau, a) != Status::ok) return 1;
  if (robot.kinematics().update(q, v) != Status::ok) return 1;
  if (robot.kinematics().bias_acceleration(link, bias) != Status::ok) return 1;
  const Eigen::Vector3d got = tool.jacobian() * a + bias.v;
  std::cout << "acceleration of it: " << got.transpose() << " m/s^2\n";
  return (got - wanted).norm() < 1e-6 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
