// SPDX-License-Identifier: Apache-2.0
// The same controller on a simulated robot, once with the model's feed-forward and once with the
// gains alone. Prints how far the robot is from where it should be.
//
//     03_simulated_robot [robot.urdf]

#include <algorithm>
#include <cmath>
#include <dynamics_core/control/controller.hpp>
#include <dynamics_core/dynamics.hpp>
#include <dynamics_core/load.hpp>
#include <dynamics_core/simulation/simulated_robot.hpp>
#include <dynamics_core/trajectory.hpp>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <vector>

using namespace dynamics_core;

namespace {

/// A position well inside the limits, `share` of the way from the lower to the upper one.
Eigen::VectorXd inside_limits(const Model& model, double share) {
  Eigen::VectorXd q = model.neutral();
  for (const JointInfo& joint : model.joints) {
    const double lower = std::isfinite(joint.limits.lower) ? joint.limits.lower : -1.0;
    const double upper = std::isfinite(joint.limits.upper) ? joint.limits.upper : 1.0;
    q[joint.q] = lower + share * (upper - lower);
  }
  return q;
}

void require(Status status) {
  if (status != Status::ok) throw std::runtime_error(to_string(status));
}

/// Critically damped at 5 Hz, for the inertia m that a joint has to drive while all others are
/// free.
std::vector<control::Gains> gains_at(const Model& model, const Eigen::VectorXd& q) {
  Eigen::MatrixXd inverse(model.nv, model.nv);
  require(Dynamics<double>(model).inverse_mass_matrix(q, inverse));
  const double omega = 2.0 * 3.14159265 * 5.0;  // rad/s
  std::vector<control::Gains> gains;
  for (Eigen::Index j = 0; j < inverse.rows(); ++j) {
    const double m = 1.0 / inverse(j, j);
    gains.push_back({m * omega * omega, 2.0 * m * omega});
  }
  return gains;
}

/// The largest error of a joint on the way, rad or m.
double track(const Model& model, control::Compensation compensation) {
  const Eigen::VectorXd start = inside_limits(model, 0.45);
  const trajectory::Cycloid<double> path(start, inside_limits(model, 0.55), 2.0);
  Eigen::VectorXd q_d = start, v_d = start, a_d = start;

  control::Config config;
  config.compensation = compensation;
  config.gains = gains_at(model, start);
  config.soft_start = 0.0;  // no brake holds this robot meanwhile
  control::Controller controller(model, config);
  const control::Command& command = controller.command();

  // [simulated robot]
  const double dt = 1e-3;  // s
  simulation::SimulatedRobot robot(model, {});
  require(robot.start(start, Eigen::VectorXd::Zero(model.nv)));
  controller.activate({robot.measured_position(), robot.measured_velocity()});
  double largest = 0.0;
  for (int cycle = 0; cycle * dt < path.duration(); ++cycle) {
    require(path.evaluate(cycle * dt, q_d, v_d, a_d));
    const control::ControllerState state = controller.update(
        {robot.measured_position(), robot.measured_velocity()}, {q_d, v_d, a_d}, dt);
    if (state != control::ControllerState::running) throw std::runtime_error(to_string(state));
    require(robot.cycle(command.effort, dt));
    largest = std::max(largest, controller.position_error().cwiseAbs().maxCoeff());
  }
  // [simulated robot]
  return largest;
}

}  // namespace

int main(int argc, char** argv) try {
  // All joints have to have one degree of freedom here.
  const Model model = load_urdf(argc > 1 ? argv[1] : "config/robots/panda.urdf");
  const double feedforward = track(model, control::Compensation::full);
  const double pd = track(model, control::Compensation::none);
  std::cout << "largest error with feed-forward: " << feedforward << " rad or m\n"
            << "largest error with PD alone:     " << pd << " rad or m\n"
            << "feed-forward is " << pd / feedforward << " times better\n";
  return feedforward < 0.1 * pd ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
