#pragma once

/// A robot to try a controller on: the core's forward dynamics behind drives and sensors that are
/// as imperfect as you ask for. After construction it does not allocate.
///
///     control::SimulatedRobot robot(model, {});
///     robot.start(q, v);
///     while (running) {
///       controller.update({robot.measured_position(), robot.measured_velocity()}, ...);
///       robot.cycle(command.effort, dt);
///     }

#include <Eigen/Core>
#include <cstdint>
#include <random>
#include <vector>

#include "dynamics_core/friction.hpp"
#include "dynamics_core/model.hpp"
#include "dynamics_core/simulation.hpp"

namespace dynamics_core::control {

/// What lies between a controller and the links it moves.
struct Imperfections {
  double position_noise = 0.0;        ///< standard deviation, rad or m
  double velocity_noise = 0.0;        ///< standard deviation, rad/s or m/s
  double resolution = 0.0;            ///< of the measured position, rad or m; zero: unlimited
  int delay = 0;                      ///< cycles that a command takes to reach the drives
  std::vector<double> effort_limits;  ///< of the drives, N·m or N, by joint; empty: none
  std::uint64_t seed = 1;             ///< of the noise
};

/// The same robot with other mass properties and friction: mass and inertia of each link times its
/// factor, viscous and Coulomb friction of each joint times its own. An empty list changes nothing.
/// Throws ConfigError for a factor that is negative or not finite, or lists of the wrong size.
[[nodiscard]] Model rescaled(const Model& model, const std::vector<double>& mass_factors,
                             const std::vector<double>& friction_factors);

class SimulatedRobot {
 public:
  /// All joints have to have one degree of freedom. Throws ConfigError.
  SimulatedRobot(const Model& model, const Imperfections& imperfections);
  SimulatedRobot(const SimulatedRobot&) = delete;
  SimulatedRobot& operator=(const SimulatedRobot&) = delete;

  /// A load on a link (index into Model::links).
  [[nodiscard]] Status set_payload(int link, const Payload<double>& payload) noexcept {
    return ws_.set_payload(link, payload);
  }

  /// At this state, at the start of the sequence of noise. Until the first command has arrived the
  /// drives bear the robot's weight there.
  [[nodiscard]] Status start(const Eigen::VectorXd& q, const Eigen::VectorXd& v) noexcept;

  /// Moves on by dt under constant effort, in `steps` equal steps. Where it fails the state stays
  /// as it was after the last step that succeeded.
  ///
  /// Coulomb friction that changes its sign within 1 mrad/s is far too stiff for an explicit
  /// method: a light joint would rattle. It is therefore taken at the new velocity,
  ///
  ///     (M + h D) a = τ − bias − D v,   v += h a,   q moves with the new v,
  ///
  /// with D(v) = friction(v)/v at the old one. Such a step can slow a joint down to rest but not
  /// push it beyond, however stiff the friction; without friction it is the semi-implicit method
  /// of Euler.
  [[nodiscard]] Status cycle(const Eigen::VectorXd& effort, double dt, int steps = 10) noexcept;

  [[nodiscard]] const Eigen::VectorXd& position() const noexcept { return q_; }
  [[nodiscard]] const Eigen::VectorXd& velocity() const noexcept { return v_; }
  [[nodiscard]] const Eigen::VectorXd& measured_position() const noexcept { return measured_q_; }
  [[nodiscard]] const Eigen::VectorXd& measured_velocity() const noexcept { return measured_v_; }
  /// What the drives gave in the last cycle.
  [[nodiscard]] const Eigen::VectorXd& effort() const noexcept { return effort_; }
  /// How many cycles the drives of at least one joint were at their limits.
  [[nodiscard]] std::uint64_t saturated_cycles() const noexcept { return saturated_cycles_; }

 private:
  using ForwardDynamics = decltype(Algorithms<double>::forward_dynamics);

  /// a, as above, for steps of the length h.
  struct Acceleration {
    SimulatedRobot* robot;
    double h;
    [[nodiscard]] Status operator()(double t, VectorIn<double> q, VectorIn<double> v,
                                    VectorOut<double> a) noexcept;
  };

  void drive(const Eigen::VectorXd& command) noexcept;
  void measure() noexcept;

  Workspace<double> ws_;
  Imperfections imperfections_;
  Friction<double> friction_;
  Eigen::VectorXd q_, v_, measured_q_, measured_v_, effort_;
  Eigen::VectorXd left_;  ///< what friction leaves of the effort
  ForwardDynamics forward_dynamics_;
  simulation::FixedStep<double> stepper_;
  std::vector<std::size_t> body_;  ///< by joint: the one that it moves
  std::vector<double> rotor_;      ///< by joint: its reflected rotor inertia
  Eigen::MatrixXd under_way_;      ///< commands on their way to the drives, one a column
  Eigen::Index next_ = 0;          ///< the one to arrive next
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uint64_t saturated_cycles_ = 0;
};

}  // namespace dynamics_core::control
