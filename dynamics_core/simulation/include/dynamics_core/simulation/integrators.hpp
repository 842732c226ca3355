// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Motion from efforts: fixed steps for the real-time path, and step-size control off it.
///
/// Both integrate any function `Status acceleration(t, q, v, a)`. `Plant` makes one of a robot's
/// forward dynamics and a function of its efforts; closed loops and other mechanisms bring their
/// own. q̇ follows from q and v, so that floating joints keep unit quaternions.

#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/friction.hpp"
#include "dynamics_core/kinematics.hpp"

namespace dynamics_core::simulation {

namespace detail {
using dynamics_core::detail::Identity;
}  // namespace detail

// --- The robot -----------------------------------------------------------------------------------

/// A robot that `effort(t, q, v, tau)` drives. Real-time safe if that function is.
template <class S, class Effort>
class Plant {
 public:
  Plant(Dynamics<S>& robot, Effort effort)
      : robot_(&robot), effort_(std::move(effort)), tau_(VectorX<S>::Zero(robot.nv())) {}

  /// Joints rub from here on; `friction` has to outlive the plant. nullptr ends it.
  void set_friction(const Friction<S>* friction) noexcept { friction_ = friction; }

  [[nodiscard]] Status operator()(const S& t, VectorIn<S> q, VectorIn<S> v,
                                  VectorOut<S> a) noexcept {
    effort_(t, q, v, VectorOut<S>(tau_));
    if (friction_ != nullptr) {
      if (const Status s = friction_->subtract(v, tau_); s != Status::ok) return s;
    }
    return robot_->forward_dynamics(q, v, tau_, a);
  }

 private:
  Dynamics<S>* robot_;
  Effort effort_;
  const Friction<S>* friction_ = nullptr;
  VectorX<S> tau_;
};

/// The effort function of a robot that is left to itself.
struct NoEffort {
  template <class S, class Vec>
  void operator()(const S& /*t*/, const Vec& /*q*/, const Vec& /*v*/,
                  VectorOut<S> tau) const noexcept {
    tau.setZero();
  }
};

// --- Fixed steps, real-time safe -----------------------------------------------------------------

/// Steps (q, v) in place, without allocation. A step that fails leaves both as they were.
template <class S>
class FixedStep {
 public:
  explicit FixedStep(const Dynamics<S>& dynamics)
      : dynamics_(&dynamics),
        q_stage_(VectorX<S>::Zero(dynamics.nq())),
        q_rate_(VectorX<S>::Zero(dynamics.nq())),
        q_sum_(VectorX<S>::Zero(dynamics.nq())),
        v_stage_(VectorX<S>::Zero(dynamics.nv())),
        a_(VectorX<S>::Zero(dynamics.nv())),
        a_sum_(VectorX<S>::Zero(dynamics.nv())) {}

  /// The classical Runge–Kutta method of order four, with four evaluations.
  template <class Acceleration>
  [[nodiscard]] Status runge_kutta4(Acceleration& acceleration, const S& t, const S& dt,
                                    VectorOut<S> q, VectorOut<S> v) noexcept;

  /// v += a dt, then q moves with the new v: order one, one evaluation, and no drift of the energy
  /// over long times.
  template <class Acceleration>
  [[nodiscard]] Status semi_implicit_euler(Acceleration& acceleration, const S& t, const S& dt,
                                           VectorOut<S> q, VectorOut<S> v) noexcept;

  /// How often the acceleration was asked for.
  [[nodiscard]] long evaluations() const noexcept { return evaluations_; }

 private:
  template <class Acceleration>
  [[nodiscard]] Status evaluate(Acceleration& acceleration, const S& t, VectorIn<S> q,
                                VectorIn<S> v) noexcept {
    ++evaluations_;
    if (const Status s = dynamics_->kinematics().configuration_rate(q, v, q_rate_); s != Status::ok)
      return s;
    return acceleration(t, q, v, VectorOut<S>(a_));
  }
  /// The sum of the increments so far, and the next stage at (q, v) + dt · (q̇, a).
  void accumulate(const S& weight, const S& dt, VectorIn<S> q, VectorIn<S> v) noexcept {
    q_sum_ += weight * q_rate_;
    a_sum_ += weight * a_;
    q_stage_ = q + dt * q_rate_;
    v_stage_ = v + dt * a_;
  }
  /// Takes the stage over where it is finite.
  [[nodiscard]] Status accept(VectorOut<S>& q, VectorOut<S>& v) noexcept {
    if (!all_finite<S>(v_stage_)) return Status::not_finite;
    if (const Status s = dynamics_->kinematics().normalize(q_stage_); s != Status::ok) return s;
    q = q_stage_;
    v = v_stage_;
    return Status::ok;
  }

  const Dynamics<S>* dynamics_;
  VectorX<S> q_stage_, q_rate_, q_sum_, v_stage_, a_, a_sum_;
  long evaluations_ = 0;
};

template <class S>
template <class Acceleration>
Status FixedStep<S>::runge_kutta4(Acceleration& acceleration, const S& t, const S& dt,
                                  VectorOut<S> q, VectorOut<S> v) noexcept {
  const S half = S(0.5) * dt;
  q_sum_.setZero();
  a_sum_.setZero();
  if (const Status s = evaluate(acceleration, t, q, v); s != Status::ok) return s;
  accumulate(S(1), half, q, v);
  if (const Status s = evaluate(acceleration, S(t + half), q_stage_, v_stage_); s != Status::ok)
    return s;
  accumulate(S(2), half, q, v);
  if (const Status s = evaluate(acceleration, S(t + half), q_stage_, v_stage_); s != Status::ok)
    return s;
  accumulate(S(2), dt, q, v);
  if (const Status s = evaluate(acceleration, S(t + dt), q_stage_, v_stage_); s != Status::ok)
    return s;
  accumulate(S(1), dt, q, v);
  const S sixth = dt / S(6);
  q_stage_ = q + sixth * q_sum_;
  v_stage_ = v + sixth * a_sum_;
  return accept(q, v);
}

template <class S>
template <class Acceleration>
Status FixedStep<S>::semi_implicit_euler(Acceleration& acceleration, const S& t, const S& dt,
                                         VectorOut<S> q, VectorOut<S> v) noexcept {
  ++evaluations_;
  if (q.size() != dynamics_->nq() || v.size() != dynamics_->nv()) return Status::wrong_size;
  if (const Status s = acceleration(t, q, v, VectorOut<S>(a_)); s != Status::ok) return s;
  v_stage_ = v + dt * a_;
  if (const Status s = dynamics_->kinematics().integrate(q, v_stage_, dt, q_stage_);
      s != Status::ok)
    return s;
  return accept(q, v);
}

// --- Step-size control, off the real-time path ---------------------------------------------------

enum class Integrator {
  fehlberg45,      ///< Runge–Kutta–Fehlberg 4(5), continued with the fifth order
  dormand_prince,  ///< Runge–Kutta of Dormand and Prince 5(4)
  adams,           ///< Adams–Bashforth–Moulton of variable order (up to eight) and step
};

inline constexpr std::array<Integrator, 3> all_integrators = {
    Integrator::fehlberg45, Integrator::dormand_prince, Integrator::adams};

[[nodiscard]] constexpr const char* to_string(Integrator integrator) noexcept {
  switch (integrator) {
    case Integrator::fehlberg45: return "fehlberg45";
    case Integrator::dormand_prince: return "dormand_prince";
    case Integrator::adams: return "adams";
  }
  return "unknown integrator";
}

[[nodiscard]] constexpr std::optional<Integrator> find_integrator(std::string_view name) noexcept {
  for (const Integrator integrator : all_integrators)
    if (name == to_string(integrator)) return integrator;
  return std::nullopt;
}

/// a = acceleration(t, q, v). Anything but Status::ok ends the simulation.
using Acceleration =
    std::function<Status(double t, VectorIn<double> q, VectorIn<double> v, VectorOut<double> a)>;

struct State {
  double t = 0.0;
  VectorX<double> q;
  VectorX<double> v;
};

/// Is told of the start, of the end of every interval (or step, if the interval is zero) and of the
/// end of the simulation. False ends it there.
using Observer = std::function<bool(const State& state)>;

struct Options {
  Integrator integrator = Integrator::dormand_prince;
  /// A step's error in each coordinate stays below absolute + relative · (|x| + |ẋ dt|).
  double absolute_tolerance = 1e-6;
  double relative_tolerance = 1e-6;
  double duration = 1.0;  ///< s
  /// s; steps end at its multiples. Zero leaves them alone and has every step observed.
  double interval = std::numeric_limits<double>::infinity();
  double first_step = 1e-3;  ///< s
  long max_evaluations = 100'000'000;
};

struct Result {
  /// ok; what the acceleration returned; not_finite; not_converged where the step vanished or the
  /// evaluations were used up; out_of_range for senseless options.
  Status status = Status::ok;
  State state;           ///< the last that was reached
  long evaluations = 0;  ///< of the acceleration
  long steps = 0;        ///< that were accepted
  long rejected = 0;
};

/// Integrates from `start` for options.duration. Allocates; does not throw unless the callables do.
[[nodiscard]] Result simulate(const Dynamics<double>& robot, const Acceleration& acceleration,
                              const State& start, const Options& options,
                              const Observer& observer = nullptr);

}  // namespace dynamics_core::simulation
