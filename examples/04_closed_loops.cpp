// SPDX-License-Identifier: Apache-2.0
// A mechanism with closed loops: a tree in a URDF, and beside it a YAML with the joints that close
// the loops. (A URDF cannot have loops.)
//
//     04_closed_loops [robot.urdf robot.loops.yaml]

#include <dynamics_core/dynamics.hpp>
#include <dynamics_core/load.hpp>
#include <dynamics_core/loops.hpp>
#include <exception>
#include <iostream>

int main(int argc, char** argv) try {
  using namespace dynamics_core;
  const bool given = argc > 2;
  const Model model = load_urdf(given ? argv[1] : "config/robots/four_bar.urdf");
  const char* loops_file = given ? argv[2] : "config/robots/four_bar.loops.yaml";

  // [loops]
  const LoopSet set = load_loops(loops_file, model);  // throws ModelError
  Dynamics<double> robot(model);
  Loops<double> loops(robot.tree(), model, set);  // all memory is taken here

  Eigen::VectorXd q = model.neutral();
  q[0] += 0.5;             // turn the first joint, the crank of a four-bar linkage,
  loops.weights[0] = 0.0;  // keep it there,
  if (loops.project(q) != Status::ok) return 1;  // and let the others follow

  // What the mechanism does when it is let go there: accelerations, and a multiplier for each of
  // the equations that hold the loops together.
  const Eigen::VectorXd v = Eigen::VectorXd::Zero(robot.nv());
  const Eigen::VectorXd tau = Eigen::VectorXd::Zero(robot.nv());
  Eigen::VectorXd a(robot.nv()), lambda(loops.rows());
  if (loops.null_space(q, v, tau, a, lambda) != Status::ok) return 1;
  Force<double> F_W;  // of the first loop joint on its link b
  if (loops.joint_force(lambda, 0, F_W) != Status::ok) return 1;
  // [loops]

  Eigen::VectorXd gap(loops.rows());
  if (loops.position_error(q, gap) != Status::ok) return 1;
  std::cout << model.name << ": " << robot.nv() << " joints, " << loops.rank()
            << " independent equations, " << robot.nv() - loops.rank() << " degrees of freedom\n"
            << "q = " << q.transpose() << "\na = " << a.transpose() << "\nforce of "
            << set.front().name << ": " << F_W.f.transpose() << " N\n"
            << "the loops are closed within " << gap.cwiseAbs().maxCoeff() << '\n';

  // Another method has to say the same.
  Eigen::VectorXd a_bordered(robot.nv());
  if (loops.bordered(q, v, tau, a_bordered, lambda) != Status::ok) return 1;
  const double difference = (a - a_bordered).cwiseAbs().maxCoeff();
  std::cout << "two methods agree within " << difference << '\n';
  return difference < 1e-8 * (1.0 + a.cwiseAbs().maxCoeff()) ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
