// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Everything a joint controller decides, without any middleware.
///
///     control::Controller controller(model, config);  // throws ConfigError
///     const control::Command& command = controller.command();
///     controller.activate({q, v});
///     while (controller.update({q, v}, {q_d, v_d, a_d}, dt) != control::ControllerState::fault)
///       drives.send(command);
///
/// examples/02_control_loop.cpp has the whole of it, examples/03_simulated_robot.cpp with a robot.
/// docs/control_laws.md has the laws, the parameters and what happens when something goes wrong;
/// the table of states is in state.hpp.

#include <string>
#include <vector>

#include "dynamics_core/control/commanded_robot.hpp"
#include "dynamics_core/control/config.hpp"
#include "dynamics_core/control/laws/computed_torque.hpp"
#include "dynamics_core/control/laws/feedforward.hpp"
#include "dynamics_core/control/laws/passivity.hpp"
#include "dynamics_core/control/reference_keeper.hpp"
#include "dynamics_core/control/signals.hpp"
#include "dynamics_core/control/state.hpp"
#include "dynamics_core/payload_ramp.hpp"
#include "dynamics_core/ramp.hpp"

namespace dynamics_core::control {

/// What the limits did to one joint.
struct LimitReport {
  bool effort_limited = false;              ///< in the last cycle, by the effort limit
  bool rate_limited = false;                ///< in the last cycle, by the rate limit
  std::uint64_t effort_limited_cycles = 0;  ///< since reset()
  std::uint64_t rate_limited_cycles = 0;    ///< since reset()
};

/// A control law with its limits, its faults and its memory. All memory is taken in the
/// constructor; every other member function is real-time safe. All of them belong to one thread at
/// a time.
class Controller {
 public:
  /// Throws ConfigError. The model is not needed any longer afterwards.
  Controller(const Model& model, const Config& config);

  // --- the joints --------------------------------------------------------------------------------
  /// The joints commanded, in the order of all signals.
  [[nodiscard]] const std::vector<std::string>& joints() const noexcept { return config_.joints; }
  [[nodiscard]] Eigen::Index size() const noexcept { return n_; }
  /// The model's other joints of one degree of freedom, in the order of Measurement::others. They
  /// stand still wherever they are. Planar and floating joints stay where the model has them; a
  /// base that tilts is told through set_gravity().
  [[nodiscard]] const std::vector<std::string>& other_joints() const noexcept {
    return robot_.other_joints();
  }
  /// The configuration in use, with every list filled in.
  [[nodiscard]] const Config& config() const noexcept { return config_; }

  // --- the cycle ---------------------------------------------------------------------------------
  /// From inactive: at rest at the measured position, the effort ramping in from zero. A
  /// measurement that cannot be used is counted and leaves the controller inactive. In any other
  /// state: nothing.
  ControllerState activate(const Measurement& measurement) noexcept;
  /// As activate(), but goes on where deactivate() left off: at rest at the last reference
  /// position, without a soft start, the effort from the last one. For a controller that leaves the
  /// loop for a cycle or two, as it does when the source of its references changes. After a
  /// reset(), or where a joint is elsewhere by now: as activate().
  ControllerState resume(const Measurement& measurement) noexcept;
  /// Effort 0 from the next update() on. A fault stays a fault.
  ControllerState deactivate() noexcept;
  /// The only way out of a fault, and the only thing that clears the counts. Leaves the controller
  /// inactive; gains, gravity and payloads stay as they were set.
  void reset() noexcept;
  /// One cycle, dt seconds after the last one. What comes out is command().
  [[nodiscard]] ControllerState update(const Measurement& measurement, const Reference& reference,
                                       double dt) noexcept;
  /// The command of the last cycle; after activate() or resume(), the one to begin with. It is safe
  /// to send in every state.
  [[nodiscard]] const Command& command() const noexcept { return command_; }

  // --- changes while it runs ---------------------------------------------------------------------
  /// Gravity in the root link's frame, m/s². For a base that accelerates: less that acceleration.
  [[nodiscard]] Status set_gravity(const Eigen::Vector3d& gravity) noexcept;
  /// Status::out_of_range for a gain that is negative, NaN, or i in a law without integral.
  [[nodiscard]] Status set_gains(Eigen::Index joint, const Gains& gains) noexcept;
  /// The payload of a link (index into Model::links) changes within `transition` seconds, or at
  /// once while the controller is not active. Mass zero takes it off.
  [[nodiscard]] Status set_payload(int link, const Payload<double>& payload,
                                   double transition) noexcept;

  // --- what it did -------------------------------------------------------------------------------
  [[nodiscard]] ControllerState state() const noexcept { return state_; }
  [[nodiscard]] std::uint64_t count(Event event) const noexcept { return counts_[event]; }
  [[nodiscard]] const EventCounts& counts() const noexcept { return counts_; }
  /// What led to the fault; meaningful in ControllerState::fault.
  [[nodiscard]] Event fault_cause() const noexcept { return fault_cause_; }
  /// By joint.
  [[nodiscard]] const std::vector<LimitReport>& limits() const noexcept { return limits_; }
  /// Has it been touched since it was activated, so that Config::reaction is what it does?
  [[nodiscard]] bool reacting() const noexcept { return reacting_; }
  /// How far the soft start has come, from 0 to 1.
  [[nodiscard]] double start_ramp() const noexcept { return start_ramp_.value(); }
  [[nodiscard]] bool payload_settled() const noexcept { return payload_ramp_.done(); }
  /// The last usable measurement, the velocity estimated where it was not measured.
  [[nodiscard]] const VectorX<double>& position() const noexcept { return q_; }
  [[nodiscard]] const VectorX<double>& velocity() const noexcept { return v_; }
  /// The reference in use.
  [[nodiscard]] const VectorX<double>& reference_position() const noexcept {
    return reference_.position();
  }
  [[nodiscard]] const VectorX<double>& reference_velocity() const noexcept {
    return reference_.velocity();
  }
  [[nodiscard]] const VectorX<double>& reference_acceleration() const noexcept {
    return reference_.acceleration();
  }
  /// e and ė of the last usable cycle; a joint without end stops goes the short way round.
  [[nodiscard]] const VectorX<double>& position_error() const noexcept { return e_; }
  [[nodiscard]] const VectorX<double>& velocity_error() const noexcept { return ed_; }

 private:
  // the steps of a cycle
  [[nodiscard]] double checked_step(double dt) noexcept;
  [[nodiscard]] bool usable(const Measurement& measurement) const noexcept;
  void take(const Measurement& measurement) noexcept;
  void react(bool touched) noexcept;
  /// Does it need no reference?
  [[nodiscard]] bool floats() const noexcept {
    return config_.mode == Mode::gravity_compensation ||
           (reacting_ && config_.reaction == Reaction::give_way);
  }
  [[nodiscard]] bool may_start(const Measurement& measurement) noexcept;
  [[nodiscard]] bool is_where_it_left_off(const Measurement& measurement) const noexcept;
  void compare() noexcept;
  [[nodiscard]] Status run_law() noexcept;
  void limit(double step) noexcept;
  void limit_joint(std::size_t j, double wanted, double step) noexcept;
  void integrate(double step) noexcept;

  // what leaves a cycle
  ControllerState hold(Event event) noexcept;
  ControllerState stop(const Measurement& measurement) noexcept;

  Config config_;
  Eigen::Index n_;
  CommandedRobot robot_;
  Feedforward feedforward_;
  ComputedTorque computed_torque_;
  Passivity passivity_;
  std::vector<bool> wraps_;  ///< joints without end stops

  ControllerState state_ = ControllerState::inactive;
  EventCounts counts_;
  Event fault_cause_ = Event::bad_result;
  std::vector<LimitReport> limits_;
  int bad_cycles_ = 0;  ///< in a row
  bool reacting_ = false;
  bool left_off_ = false;  ///< deactivated, with what resume() needs still there

  ReferenceKeeper reference_;
  Derivative velocity_estimate_;
  Ramp start_ramp_;
  PayloadRamp payload_ramp_;

  VectorX<double> q_, v_, e_, ed_;   ///< n
  VectorX<double> integral_;         ///< ∫ i e dt, so that a new gain i makes no step
  VectorX<double> effort_;           ///< of the law, before ramp and limits
  Command command_;                  ///< the last safe one
  VectorX<double> effort_left_off_;  ///< the last before deactivation
};

}  // namespace dynamics_core::control
