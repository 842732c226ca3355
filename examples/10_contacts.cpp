// SPDX-License-Identifier: Apache-2.0
// A simulated arm swings with a load that it does not know of, weighs it, and is pushed.
//
//     10_contacts [robot.urdf]

#include <algorithm>
#include <cmath>
#include <dynamics_core/control/controller.hpp>
#include <dynamics_core/control/load_estimator.hpp>
#include <dynamics_core/control/momentum_observer.hpp>
#include <dynamics_core/dynamics.hpp>
#include <dynamics_core/joint_selection.hpp>
#include <dynamics_core/load.hpp>
#include <dynamics_core/simulation/simulated_robot.hpp>
#include <exception>
#include <iostream>
#include <stdexcept>

using namespace dynamics_core;

namespace {

constexpr double dt = 1e-3;  // s

void require(Status status) {
  if (status != Status::ok) throw std::runtime_error(to_string(status));
}

/// Near the middle of the joints' ranges, each at a speed of its own.
struct Swing {
  explicit Swing(const Model& model) : q(model.neutral()), v(q), a(q), middle(q), range(q) {
    for (const JointInfo& joint : model.joints) {
      const bool bounded = std::isfinite(joint.limits.lower) && std::isfinite(joint.limits.upper);
      middle[joint.q] = bounded ? 0.4 * joint.limits.lower + 0.6 * joint.limits.upper : 0.8;
      range[joint.q] = bounded ? 0.05 * (joint.limits.upper - joint.limits.lower) : 0.5;
    }
    move(0.0);
  }
  void move(double t) {
    for (Eigen::Index j = 0; j < q.size(); ++j) {
      const double w = 1.0 + 0.3 * static_cast<double>(j);
      q[j] = middle[j] + range[j] * (1.0 - std::cos(w * t));
      v[j] = range[j] * w * std::sin(w * t);
      a[j] = range[j] * w * w * std::cos(w * t);
    }
  }
  Eigen::VectorXd q, v, a, middle, range;
};

}  // namespace

int main(int argc, char** argv) try {
  // All joints have to have one degree of freedom here.
  const Model model = load_urdf(argc > 1 ? argv[1] : "config/robots/ur5e.urdf");
  const int tip = tip_link(model);
  const Payload<double> load{1.5, {0.0, 0.02, 0.06}, {0.004, 0.0, 0.0, 0.004, 0.0, 0.002}};
  Swing swing(model);
  Eigen::VectorXd q = swing.q, v = swing.v, tau = Eigen::VectorXd::Zero(model.nv);
  Dynamics<double> kinematics(model);
  Eigen::MatrixXd J(6, model.nv);

  simulation::SimulatedRobot robot(model, {});
  require(robot.start(q, v));
  require(robot.set_payload(tip, load));
  control::Config law;
  law.mode = control::Mode::computed_torque;
  law.gains = {{400.0, 40.0}};
  law.soft_start = 0.0;
  control::Controller controller(model, law);
  controller.activate({q, v});

  // [set up]
  control::LoadEstimator scales(model, {});  // throws ConfigError

  control::ObserverConfig config;
  config.frame = model.links[tip].name;  // where the wrench is wanted; or empty
  config.thresholds = {{2.0, 0.5, 0.01}};
  control::MomentumObserver observer(model, config);
  // [set up]

  double felt_after = -1.0;
  for (int cycle = 0; cycle < 12000; ++cycle) {
    const double t = cycle * dt;
    // [weigh]
    require(scales.update({q, v, tau}, dt));  // real-time safe, as all of these are
    control::LoadEstimate weighed;
    if (cycle == 8000) {
      require(scales.estimate(weighed));
      std::cout << weighed.mass << " ± " << weighed.mass_deviation << " kg\n";
      require(observer.set_payload(scales.link(), control::payload(weighed)));
    }
    // [weigh]
    if (cycle == 8000 && std::abs(weighed.mass - load.mass) > 0.05) return 1;

    // [observe]
    require(observer.update({q, v, tau}, dt));
    const control::Contact& contact = observer.contact();    // touched? where?
    const Eigen::Vector3d& force = observer.wrench().force;  // N, in the frame's axes
    // [observe]
    if (contact.touched && t > 9.0 && felt_after < 0.0) {
      felt_after = t - 10.0;
      std::cout << "touched at " << model.links[contact.link].name << '\n';
    }
    if (cycle == 10499) std::cout << force.norm() << " N\n";
    if (cycle == 10499 && std::abs(force.norm() - 30.0) > 1.5) return 1;

    swing.move(t);
    if (controller.update({q, v}, {swing.q, swing.v, swing.a}, dt) ==
        control::ControllerState::fault)
      throw std::runtime_error("the controller has a fault");
    tau = controller.command().effort;  // what the drives report
    Eigen::VectorXd pushed = tau;       // and what moves the joints
    if (t >= 10.0 && t < 10.5) {
      require(kinematics.jacobian(q, tip, J));
      pushed += J.bottomRows<3>().transpose() * Eigen::Vector3d(30.0, 0.0, 0.0);
    }
    require(robot.cycle(pushed, dt));
    q = robot.position();
    v = robot.velocity();
  }
  std::cout << "felt after " << 1e3 * felt_after << " ms\n";
  return felt_after >= 0.0 && felt_after <= 0.01 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
