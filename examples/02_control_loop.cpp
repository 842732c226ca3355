// SPDX-License-Identifier: Apache-2.0
// A controller in a loop of your own, without any middleware. The drives of this example are
// perfect: what they are told is where the joints are in the next cycle. 03 has a robot in place.
//
//     02_control_loop [robot.urdf]

#include <algorithm>
#include <exception>
#include <iostream>
// [includes]
#include <dynamics_core/control/controller.hpp>
#include <dynamics_core/load.hpp>
// [includes]

namespace {

/// Stands for your drives and sensors.
struct Drives {
  Eigen::VectorXd q, v;
  double largest_effort = 0.0;
  void send(const dynamics_core::control::Command& command) {
    largest_effort = std::max(largest_effort, command.effort.cwiseAbs().maxCoeff());
    q = command.position;
    v = command.velocity;
  }
};

}  // namespace

int main(int argc, char** argv) try {
  const char* file = argc > 1 ? argv[1] : "config/robots/panda.urdf";
  const double dt = 1e-3;  // s

  // [set up]
  using namespace dynamics_core;

  const Model model = load_urdf(file);
  control::Config config;
  config.joints = {};  // all; or names, in the order of your drives
  config.mode = control::Mode::feedforward;
  config.gains = {{200.0, 20.0}};                 // p and d, the same for all joints
  control::Controller controller(model, config);  // throws ConfigError
  const control::Command& command = controller.command();
  // [set up]

  const Eigen::Index n = controller.size();
  Drives drives{Eigen::VectorXd::Zero(n), Eigen::VectorXd::Zero(n)};
  Eigen::VectorXd q_d(n), v_d(n), a_d(n);

  // [loop]
  if (controller.activate({drives.q, drives.v}) == control::ControllerState::inactive) {
    std::cerr << "the measurement cannot be used\n";
    return 1;
  }
  for (int cycle = 0; cycle < 1000; ++cycle) {  // real-time safe from here on
    const double t = cycle * dt;
    q_d.setConstant(0.2 * t * t);  // the reference: position, velocity, acceleration
    v_d.setConstant(0.4 * t);
    a_d.setConstant(0.4);
    if (controller.update({drives.q, drives.v}, {q_d, v_d, a_d}, dt) ==
        control::ControllerState::fault)
      break;
    drives.send(command);  // safe to send in every state
  }
  // [loop]

  std::cout << "state: " << to_string(controller.state()) << '\n';
  for (const control::Event event : control::all_events)
    std::cout << to_string(event) << ": " << controller.count(event) << '\n';
  for (Eigen::Index j = 0; j < n; ++j)
    std::cout << controller.joints()[static_cast<std::size_t>(j)] << ": " << command.effort[j]
              << " N m or N\n";
  std::cout << "largest effort: " << drives.largest_effort << '\n';
  return controller.state() == control::ControllerState::running && drives.largest_effort > 0.0 ? 0
                                                                                                : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
