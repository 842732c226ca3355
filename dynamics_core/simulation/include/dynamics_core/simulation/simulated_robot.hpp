// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A robot to try a controller on: the core's forward dynamics behind drives and sensors that are
/// as imperfect as you ask for. After construction it does not allocate.
///
///     simulation::SimulatedRobot robot(model, {});
///     robot.start(q, v);
///     while (running) {
///       controller.update({robot.measured_position(), robot.measured_velocity()}, ...);
///       robot.cycle(command.effort, dt);
///     }
///
/// Drives may also have loops of their own, and brakes; see Drive.

#include <Eigen/Core>
#include <cstdint>
#include <random>
#include <vector>

#include "dynamics_core/friction.hpp"
#include "dynamics_core/model.hpp"
#include "dynamics_core/payload_ramp.hpp"
#include "dynamics_core/simulation/integrators.hpp"

namespace dynamics_core::simulation {

/// What lies between a controller and the links it moves.
struct Imperfections {
  double position_noise = 0.0;        ///< standard deviation, rad or m
  double velocity_noise = 0.0;        ///< standard deviation, rad/s or m/s
  double resolution = 0.0;            ///< of the measured position, rad or m; zero: unlimited
  int delay = 0;                      ///< cycles that a command takes to reach the drives
  std::vector<double> effort_limits;  ///< of the drives, N·m or N, by joint; empty: none
  std::uint64_t seed = 1;             ///< of the noise
};

/// What a drive makes of its command. q, v: where the joint is and how fast; all loops act at the
/// end of a step, so that they are stable however stiff.
enum class Drive : unsigned char {
  brake,     ///< nothing; the brake holds the joint where it is
  effort,    ///< effort
  velocity,  ///< effort + d (velocity − v) + p ∫ (velocity − v) dt
  position,  ///< effort + d (velocity − v) + p (position − q)
};

/// A command to each drive, by degree of freedom. A drive reads what its kind needs.
struct Setpoints {
  explicit Setpoints(Eigen::Index nv)
      : drives(static_cast<std::size_t>(nv), Drive::effort),
        position(VectorX<double>::Zero(nv)),
        velocity(position),
        effort(position) {}

  std::vector<Drive> drives;
  VectorX<double> position;  ///< rad or m
  VectorX<double> velocity;  ///< rad/s or m/s
  VectorX<double> effort;    ///< N·m or N
};

/// Loops and stops are as strong as the inertia m asks that a joint moves where the robot starts,
/// M's diagonal element: p = m ω², d = 2 m ω, ω = 2π frequency. They are critically damped there.
struct Mechanics {
  double servo_frequency = 50.0;  ///< Hz, of the drives' own loops
  /// Stops at the limits of the positions. A joint that meets one at the speed v goes at most
  /// v/(e ω) beyond, one that is pressed against it by the effort τ stays τ/(m ω²) beyond. Drives
  /// do not aim beyond them.
  bool joint_stops = false;
  double stop_frequency = 150.0;  ///< Hz
  /// N·m/rad or N/m: how stiff the joints' dry friction is before they slide; see friction.hpp.
  /// Zero: friction without memory.
  double friction_stiffness = 0.0;
};

/// The same robot with other mass properties and friction: mass and inertia of each link times its
/// factor, viscous and Coulomb friction of each joint times its own. An empty list changes nothing.
/// Throws ConfigError for a factor that is negative or not finite, or lists of the wrong size.
[[nodiscard]] Model rescaled(const Model& model, const std::vector<double>& mass_factors,
                             const std::vector<double>& friction_factors);

class SimulatedRobot {
 public:
  /// All joints have to have one degree of freedom. Throws ConfigError.
  SimulatedRobot(const Model& model, const Imperfections& imperfections,
                 const Mechanics& mechanics = {});
  SimulatedRobot(const SimulatedRobot&) = delete;
  SimulatedRobot& operator=(const SimulatedRobot&) = delete;

  /// A payload on a link (index into Model::links), in place of the one it carries; at once or, as
  /// the robot moves on, within so many seconds.
  [[nodiscard]] Status set_payload(int link, const Payload<double>& payload,
                                   double transition_time = 0.0) noexcept {
    const Status s = loads_.start(link, payload, transition_time);
    return s == Status::ok ? loads_.advance(0.0, robot_.tree()) : s;
  }

  /// At this state, at the start of the sequence of noise. Until the first command has arrived the
  /// drives bear the robot's weight there.
  [[nodiscard]] Status start(VectorIn<double> q, VectorIn<double> v) noexcept;

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
  /// of Euler. The springs and dampers of stops and loops are taken at the new state likewise.
  [[nodiscard]] Status cycle(VectorIn<double> effort, double dt, int steps = 10) noexcept;
  /// The same with drives that have loops.
  [[nodiscard]] Status cycle(const Setpoints& setpoints, double dt, int steps = 10) noexcept;

  [[nodiscard]] const VectorX<double>& position() const noexcept { return q_; }
  [[nodiscard]] const VectorX<double>& velocity() const noexcept { return v_; }
  [[nodiscard]] const VectorX<double>& measured_position() const noexcept { return measured_q_; }
  [[nodiscard]] const VectorX<double>& measured_velocity() const noexcept { return measured_v_; }
  /// In the last step; zero after start().
  [[nodiscard]] const VectorX<double>& acceleration() const noexcept { return a_; }
  /// What the drives gave in the last step, their loops included. A brake is no drive.
  [[nodiscard]] const VectorX<double>& effort() const noexcept { return effort_; }
  /// How many cycles the drives of at least one joint were at their limits.
  [[nodiscard]] std::uint64_t saturated_cycles() const noexcept { return saturated_cycles_; }

 private:
  /// A force that is linear in a joint's new state: push − D v − K (q − q_old).
  struct JointForce {
    double push = 0.0, D = 0.0, K = 0.0;
  };

  /// a, as above, for steps of the length h.
  struct Acceleration {
    SimulatedRobot* robot;
    double h;
    [[nodiscard]] Status operator()(double t, VectorIn<double> q, VectorIn<double> v,
                                    VectorOut<double> a) noexcept;
  };

  void receive(const Setpoints& setpoints) noexcept;
  [[nodiscard]] JointForce drive(std::size_t j, double h) const noexcept;
  [[nodiscard]] JointForce resistance(std::size_t j, double h) const noexcept;
  [[nodiscard]] Status accelerate(double h) noexcept;
  [[nodiscard]] bool saturate(double h) noexcept;
  void measure() noexcept;

  Dynamics<double> robot_;
  PayloadRamp loads_;
  Imperfections imperfections_;
  Mechanics mechanics_;
  Friction<double> friction_;
  VectorX<double> q_, v_, a_, measured_q_, measured_v_, effort_;
  VectorX<double> left_;     ///< what all that acts on the joints leaves of the effort
  VectorX<double> inertia_;  ///< by joint: what it moves at the start
  VectorX<double> target_;   ///< by joint: where a velocity loop wants it to be
  VectorX<double> lower_, upper_;
  MatrixX<double> M_;
  simulation::FixedStep<double> stepper_;
  std::vector<double> rotor_;  ///< by joint: its reflected rotor inertia
  std::vector<double> limit_;  ///< by joint: of its drive's effort
  std::vector<JointForce> drives_, resistances_;
  std::vector<bool> at_limit_;        ///< by joint: its drive gives all that it has in this step
  bool saturated_ = false;            ///< a drive gave all that it has in this cycle
  Setpoints plain_;                   ///< of a cycle with efforts only
  Setpoints now_;                     ///< what the drives act on
  std::vector<Setpoints> under_way_;  ///< to the drives
  std::size_t next_ = 0;              ///< the one to arrive next
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uint64_t saturated_cycles_ = 0;
};

}  // namespace dynamics_core::simulation
