// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <iostream>
#include <memory>

#include "dynamics_core/control/controller.hpp"
#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/families.hpp"
#include "dynamics_core/joint_selection.hpp"
#include "dynamics_core/load.hpp"
#include "dynamics_core/loops.hpp"
#include "dynamics_core/simulation/simulated_robot.hpp"
#include "dynamics_core/trajectory.hpp"
#include "planar3r_dynamics.hpp"

namespace {

using namespace dynamics_core;

constexpr const char* pendulum = R"(
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
    </robot>)";

template <class... Types>
void print_sizes() {
  ((std::cout << ' ' << sizeof(Types) << '/' << alignof(Types)), ...);
  std::cout << '\n';
}

/// m g l, held horizontally
[[nodiscard]] bool is_right(double effort) { return std::abs(effort - 9.81) < 1e-12; }

/// What the library allocates is freed here, and the other way round.
[[nodiscard]] bool hands_over(const Model& model) {
  Eigen::VectorXd q = model.neutral();
  auto robot = std::make_unique<Dynamics<double>>(model);
  Families<double> families(model);
  auto copy = std::make_unique<Dynamics<double>>(*robot);
  LoopSet none;
  const auto loops = std::make_unique<Loops<double>>(robot->tree(), model, none);
  VectorX<double> tau = VectorX<double>::Zero(1);
  q[0] = std::acos(0.0);
  bool right = families.gibbs_appell.bias(q, tau, tau) == Status::ok && is_right(tau[0]);
  right = right && copy->gravity(q, tau) == Status::ok && is_right(tau[0]);
  const BaseParameters base = base_parameters(model);
  Vec6<double> wrench = Vec6<double>::Ones();
  Eigen::MatrixXd M(1, 1);
  right = right && robot->mass_matrix(q, M) == Status::ok && std::abs(M(0, 0) - 0.6) < 1e-12;
  return right && base.size() > 0 && wrench.sum() == 6.0 && loops->rows() == 0;
}

}  // namespace

int main() {
  print_sizes<Model, Dynamics<double>, Families<double>, Families<float>, Loops<double>,
              Kinematics<double>, OperationalSpace<double>, Friction<double>, Payload<double>,
              BaseParameters, JointStates, trajectory::Spline<double>, control::Config,
              control::Controller, control::Command, simulation::SimulatedRobot>();
  const Model model = load_urdf_string(pendulum);
  Dynamics<double> robot(model);
  const Eigen::VectorXd q = Eigen::VectorXd::Constant(1, std::acos(0.0));
  Eigen::VectorXd tau(1);
  const Status status = robot.gravity(q, tau);
  std::cout << model.name << ": " << to_string(status) << ", " << tau[0] << " N·m\n";
  // The other layers are installed as well.
  const control::Controller controller(model, {});
  simulation::SimulatedRobot simulated(model, {});
  const bool starts = simulated.start(q, Eigen::VectorXd::Zero(1)) == Status::ok;
  // Nothing pulls at an arm that hangs straight down.
  const double down[planar3r::nq] = {-std::acos(0.0), 0.0, 0.0};
  double effort[planar3r::nv];
  planar3r::gravity(down, effort);
  const bool hangs = std::abs(effort[0]) < 1e-12;
  return status == Status::ok && is_right(tau[0]) && hands_over(model) && starts && hangs &&
                 controller.size() == 1
             ? 0
             : 1;
}
