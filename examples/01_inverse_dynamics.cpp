// SPDX-License-Identifier: Apache-2.0
// The torques, the gravity effort and the mass matrix of any robot with a URDF.
//
//     01_inverse_dynamics [robot.urdf]

#include <exception>
#include <iostream>
// [includes]
#include <dynamics_core/dynamics.hpp>
#include <dynamics_core/load.hpp>
// [includes]

int main(int argc, char** argv) try {
  const char* file = argc > 1 ? argv[1] : "config/robots/panda.urdf";

  // [inverse dynamics]
  using namespace dynamics_core;

  const Model model = load_urdf(file);  // throws ModelError
  Dynamics<double> robot(model);        // all memory is taken here; one for each thread

  // q has nq entries, all others nv, in the order of model.joints. Units are SI.
  const Eigen::VectorXd q = model.neutral();
  const Eigen::VectorXd v = Eigen::VectorXd::Constant(robot.nv(), 0.2);
  Eigen::VectorXd a = Eigen::VectorXd::Constant(robot.nv(), 0.5);
  Eigen::VectorXd tau(robot.nv()), g(robot.nv());
  Eigen::MatrixXd M(robot.nv(), robot.nv());

  // From here on nothing allocates, throws or locks.
  Status status = robot.inverse_dynamics(q, v, a, tau);                     // M a + C v + g
  if (status == Status::ok) status = robot.gravity(q, g);                   // g
  if (status == Status::ok) status = robot.mass_matrix(q, M);               // M
  if (status == Status::ok) status = robot.forward_dynamics(q, v, tau, a);  // and back
  if (status != Status::ok) {  // a wrong size, a value that is not finite, or M is singular
    std::cerr << to_string(status) << '\n';
    return 1;
  }
  // [inverse dynamics]

  std::cout << model.name << ", nv = " << robot.nv() << "\ntau = " << tau.transpose()
            << "\ng   = " << g.transpose() << "\nM   =\n"
            << M << '\n';

  // Forward dynamics go another way through the robot, so this is worth a look.
  const double error = (a.array() - 0.5).abs().maxCoeff();
  std::cout << "forward dynamics find the acceleration again within " << error << '\n';
  return error < 1e-6 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
