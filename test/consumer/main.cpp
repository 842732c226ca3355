// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <iostream>

#include "dynamics_core/control/controller.hpp"
#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/load.hpp"
#include "dynamics_core/simulation/simulated_robot.hpp"
#include "planar3r_dynamics.hpp"

int main() {
  const auto model = dynamics_core::load_urdf_string(R"(
    <robot name="pendulum">
      <link name="base"/>
      <link name="bob">
        <inertial>
          <origin xyz="0 0 -0.5"/>
          <mass value="2"/>
          <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>
        </inertial>
      </link>
      <joint name="pivot" type="continuous">
        <parent link="base"/>
        <child link="bob"/>
        <axis xyz="0 1 0"/>
      </joint>
    </robot>)");
  dynamics_core::Dynamics<double> robot(model);
  const Eigen::VectorXd q = Eigen::VectorXd::Constant(1, std::acos(0.0));
  Eigen::VectorXd tau(1);
  const auto status = robot.gravity(q, tau);
  std::cout << model.name << ": " << to_string(status) << ", " << tau[0] << " N·m\n";
  // m g l, held horizontally
  const bool right = status == dynamics_core::Status::ok && std::abs(tau[0] - 9.81) < 1e-12;
  // The other layers are installed as well.
  const dynamics_core::control::Controller controller(model, {});
  dynamics_core::simulation::SimulatedRobot simulated(model, {});
  const bool starts = simulated.start(q, Eigen::VectorXd::Zero(1)) == dynamics_core::Status::ok;
  // Nothing pulls at an arm that hangs straight down.
  const double down[planar3r::nq] = {-std::acos(0.0), 0.0, 0.0};
  double effort[planar3r::nv];
  planar3r::gravity(down, effort);
  const bool hangs = std::abs(effort[0]) < 1e-12;
  return right && starts && hangs && controller.size() == 1 ? 0 : 1;
}
