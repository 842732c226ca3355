// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/simulation/integrators.hpp"

#include <algorithm>
#include <boost/fusion/include/make_vector.hpp>
#include <boost/numeric/odeint/stepper/adaptive_adams_bashforth_moulton.hpp>
#include <boost/numeric/odeint/stepper/controlled_adams_bashforth_moulton.hpp>
#include <boost/numeric/odeint/stepper/controlled_runge_kutta.hpp>
#include <boost/numeric/odeint/stepper/explicit_error_generic_rk.hpp>
#include <boost/numeric/odeint/stepper/runge_kutta_dopri5.hpp>
#include <cmath>

namespace dynamics_core::simulation {
namespace {

namespace odeint = boost::numeric::odeint;

using Flat = std::vector<double>;  // q, then v

// --- Fehlberg's method ---------------------------------------------------------------------------

template <std::size_t n>
boost::array<double, n> row(const double (&values)[n], double divisor = 1.0) {
  boost::array<double, n> out;
  std::transform(values, values + n, out.begin(), [=](double x) { return x / divisor; });
  return out;
}

/// E. Fehlberg, "Klassische Runge-Kutta-Formeln vierter und niedrigerer Ordnung mit
/// Schrittweiten-Kontrolle", Computing 6 (1970), Table 2 (formula 4(5) with α₅ = 1/2). The step
/// continues with the fifth order; its difference from the fourth estimates the error.
class Fehlberg45 : public odeint::explicit_error_generic_rk<6, 5, 5, 4, Flat> {
 public:
  Fehlberg45()
      : explicit_error_generic_rk(
            boost::fusion::make_vector(
                row({1.0 / 4}), row({3.0 / 32, 9.0 / 32}), row({1932.0, -7200.0, 7296.0}, 2197.0),
                row({439.0 / 216, -8.0, 3680.0 / 513, -845.0 / 4104}),
                row({-8.0 / 27, 2.0, -3544.0 / 2565, 1859.0 / 4104, -11.0 / 40})),
            row({16.0 / 135, 0.0, 6656.0 / 12825, 28561.0 / 56430, -9.0 / 50, 2.0 / 55}),
            row({16.0 / 135 - 25.0 / 216, 0.0, 6656.0 / 12825 - 1408.0 / 2565,
                 28561.0 / 56430 - 2197.0 / 4104, -9.0 / 50 + 1.0 / 5, 2.0 / 55}),
            row({0.0, 1.0 / 4, 3.0 / 8, 12.0 / 13, 1.0, 1.0 / 2})) {}
};

// --- The loop ------------------------------------------------------------------------------------

struct Failure {
  Status status;
};

/// ẋ of the flat state for odeint, and the count of evaluations.
class System {
 public:
  System(const Dynamics<double>& robot, const Acceleration& acceleration, const Options& options,
         Result& result)
      : robot_(robot), acceleration_(acceleration), options_(options), result_(result) {}

  void operator()(const Flat& x, Flat& rate, double t) const {
    if (result_.evaluations >= options_.max_evaluations) throw Failure{Status::not_converged};
    ++result_.evaluations;
    const Eigen::Map<const VectorX<double>> q(x.data(), robot_.nq());
    const Eigen::Map<const VectorX<double>> v(x.data() + robot_.nq(), robot_.nv());
    Eigen::Map<VectorX<double>> q_rate(rate.data(), robot_.nq());
    Eigen::Map<VectorX<double>> a(rate.data() + robot_.nq(), robot_.nv());
    check(robot_.kinematics().configuration_rate(q, v, q_rate));
    check(acceleration_(t, q, v, a));
    if (!all_finite<double>(a)) throw Failure{Status::not_finite};
  }

  static void check(Status status) {
    if (status != Status::ok) throw Failure{status};
  }

 private:
  const Dynamics<double>& robot_;
  const Acceleration& acceleration_;
  const Options& options_;
  Result& result_;
};

void flatten(const State& state, Flat& x) {
  std::copy_n(state.q.data(), state.q.size(), x.begin());
  std::copy_n(state.v.data(), state.v.size(), x.begin() + state.q.size());
}

void unflatten(const Flat& x, State& state) {
  std::copy_n(x.begin(), state.q.size(), state.q.data());
  std::copy_n(x.begin() + state.q.size(), state.v.size(), state.v.data());
}

/// One try of a step that ends at `end` at the latest. `step` is the controller's proposal, which
/// `end` does not shorten.
template <class Stepper>
void try_step(Stepper& stepper, const System& system, const Dynamics<double>& robot, double end,
              double shortest, double& step, Flat& x, Result& result) {
  State& state = result.state;
  const bool last = state.t + step >= end - shortest;
  double dt = last ? end - state.t : step;
  double t = state.t;
  if (stepper.try_step(system, x, t, dt) != odeint::success) {
    ++result.rejected;
    step = dt;
    if (!(step > shortest)) throw Failure{Status::not_converged};
    return;
  }
  ++result.steps;
  step = last ? std::max(step, dt) : dt;
  unflatten(x, state);
  System::check(robot.kinematics().normalize(state.q));
  flatten(state, x);
  state.t = last ? end : t;
}

template <class Stepper>
void run(Stepper stepper, const System& system, const Dynamics<double>& robot,
         const Options& options, const Observer& observer, Result& result) {
  Flat x(static_cast<std::size_t>(robot.nq() + robot.nv()));
  flatten(result.state, x);
  if (observer && !observer(result.state)) return;
  const double start = result.state.t;
  const double finish = start + options.duration;
  const double shortest = 8.0 * std::numeric_limits<double>::epsilon() * std::max(1.0, finish);
  const bool every_step = options.interval == 0.0;
  double step = options.first_step;
  double mark = start;
  for (long k = 1; mark < finish; ++k) {
    mark = every_step ? finish : start + static_cast<double>(k) * options.interval;
    // A last interval that round-off has left over is none.
    if (!(mark < finish - 1e-9 * options.interval)) mark = finish;
    while (result.state.t < mark) {
      const long steps = result.steps;
      try_step(stepper, system, robot, mark, shortest, step, x, result);
      const bool due = every_step ? result.steps > steps : result.state.t == mark;
      if (due && observer && !observer(result.state)) return;
    }
  }
}

[[nodiscard]] bool sensible(const Options& o) {
  return o.absolute_tolerance >= 0.0 && o.relative_tolerance >= 0.0 &&
         o.absolute_tolerance + o.relative_tolerance > 0.0 && std::isfinite(o.duration) &&
         o.duration >= 0.0 && o.interval >= 0.0 && o.first_step > 0.0;
}

template <class Stepper>
[[nodiscard]] auto controlled(const Options& options) {
  using Controlled = odeint::controlled_runge_kutta<Stepper>;
  return Controlled(typename Controlled::error_checker_type(options.absolute_tolerance,
                                                            options.relative_tolerance));
}

/// Predictor and corrector of Shampine and Gordon, which judge order and step by their difference.
[[nodiscard]] auto adams(const Options& options) {
  using Adams = odeint::adaptive_adams_bashforth_moulton<8, Flat>;
  using Controlled = odeint::controlled_adams_bashforth_moulton<Adams>;
  return Controlled(Controlled::step_adjuster_type(
      options.absolute_tolerance, options.relative_tolerance, std::numeric_limits<double>::max()));
}

}  // namespace

Result simulate(const Dynamics<double>& robot, const Acceleration& acceleration, const State& start,
                const Options& options, const Observer& observer) {
  Result result;
  result.state = start;
  try {
    if (!sensible(options)) throw Failure{Status::out_of_range};
    System::check(check_vector<double>(robot.tree(), start.v));
    System::check(robot.kinematics().normalize(result.state.q));
    const System system(robot, acceleration, options, result);
    switch (options.integrator) {
      case Integrator::fehlberg45:
        run(controlled<Fehlberg45>(options), system, robot, options, observer, result);
        break;
      case Integrator::dormand_prince:
        run(controlled<odeint::runge_kutta_dopri5<Flat>>(options), system, robot, options, observer,
            result);
        break;
      case Integrator::adams: run(adams(options), system, robot, options, observer, result); break;
    }
  } catch (const Failure& failure) {
    result.status = failure.status;
  }
  return result;
}

}  // namespace dynamics_core::simulation
