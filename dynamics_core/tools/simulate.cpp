// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iostream>
#include <optional>

#include "common.hpp"
#include "drive.hpp"
#include "dynamics_core/simulation/integrators.hpp"
#include "dynamics_core/text.hpp"
#include "progress.hpp"

namespace dynamics_core::tools {

namespace {

using VectorXd = VectorX<double>;
using simulation::State;

struct SimulateOptions {
  RobotOptions robot;
  std::string q0, v0;
  std::string torque, trajectory, goal;
  std::optional<double> travel;
  std::string integrator = "dopri5";
  double duration = 1.0;
  double interval = 0.01;
  double step = 1e-3;
  double tolerance = 1e-8;
  double stabilisation = 10.0;
  bool no_friction = false;
  bool statistics = false;
  std::string method;
  std::string columns = "q,v";
  std::string output = "-";
};

struct NamedIntegrator {
  const char* name;
  std::optional<simulation::Integrator> adaptive;  ///< none: fixed steps
};
constexpr std::array<NamedIntegrator, 5> integrators = {{
    {"rkf45", simulation::Integrator::fehlberg45},
    {"dopri5", simulation::Integrator::dormand_prince},
    {"abm", simulation::Integrator::adams},
    {"rk4", std::nullopt},
    {"semi_implicit_euler", std::nullopt},
}};

[[nodiscard]] const NamedIntegrator& find_integrator(const std::string& name) {
  const auto* it = std::find_if(integrators.begin(), integrators.end(),
                                [&](const NamedIntegrator& i) { return name == i.name; });
  if (it != integrators.end()) return *it;
  throw UsageError("--integrator: unknown integrator '" + name +
                   "'; known are rkf45, dopri5, abm, rk4 and semi_implicit_euler");
}

void check(const SimulateOptions& o) {
  const auto positive = [](double x, const char* option) {
    if (!(x > 0.0) || !std::isfinite(x))
      throw UsageError(std::string(option) + " has to be a positive number");
  };
  positive(o.duration, "--duration");
  positive(o.interval, "--interval");
  positive(o.step, "--step");
  positive(o.tolerance, "--tolerance");
  if (!(o.stabilisation >= 0.0) || !std::isfinite(o.stabilisation))
    throw UsageError("--stabilisation has to be zero or a positive number");
  positive(o.travel.value_or(1.0), "--travel");
  const int drives =
      (o.torque.empty() ? 0 : 1) + (o.trajectory.empty() ? 0 : 1) + (o.goal.empty() ? 0 : 1);
  if (drives > 1)
    throw UsageError("--torque, --trajectory and --goal exclude each other; give one of them");
  if (o.travel && o.goal.empty()) throw UsageError("--travel goes with --goal");
}

[[nodiscard]] VectorXd parse_vector(const std::string& text, const char* option, int size,
                                    const VectorXd& otherwise) {
  if (text.empty()) return otherwise;
  const std::vector<double> x = parse_numbers(text, option);
  if (static_cast<int>(x.size()) != size)
    throw UsageError(std::string(option) + " has " + std::to_string(x.size()) +
                     " numbers instead of " + std::to_string(size));
  return Eigen::Map<const VectorXd>(x.data(), size);
}

/// The robot in motion: its state's derivative, and what drives it.
class Mechanism {
 public:
  Mechanism(const Model& model, Dynamics<double>& dynamics, const SimulateOptions& options)
      : dynamics_(dynamics),
        loops_(dynamics.tree(), model, load_loops(model, options.robot)),
        lambda_(VectorXd::Zero(loops_.rows())),
        friction_(model),
        rubs_(!options.no_friction),
        tau_(VectorXd::Zero(model.nv)),
        left_(tau_) {
    dynamics_.use(parse_method(options.method));
    start_.q = parse_vector(options.q0, "--q0", model.nq, model.neutral());
    start_.v = parse_vector(options.v0, "--v0", model.nv, VectorXd::Zero(model.nv));
    if (dynamics.kinematics().normalize(start_.q) != Status::ok)
      throw UsageError("--q0: the quaternion of a floating joint is zero");
    set_drive(model, options);
    close_loops(options);
  }

  [[nodiscard]] const State& start() const { return start_; }

  [[nodiscard]] Status operator()(double t, const Eigen::Ref<const VectorXd>& q,
                                  const Eigen::Ref<const VectorXd>& v, Eigen::Ref<VectorXd> a) {
    if (const Status s = drive_(t, tau_); s != Status::ok) return s;
    left_ = tau_;
    if (rubs_)
      if (const Status s = friction_.subtract(v, left_); s != Status::ok) return s;
    if (loops_.rows() == 0) return dynamics_.forward_dynamics(q, v, left_, a);
    return loops_.null_space(q, v, left_, a, lambda_);
  }

  /// The drive's efforts at the last evaluation.
  [[nodiscard]] const VectorXd& tau() const { return tau_; }

 private:
  void set_drive(const Model& model, const SimulateOptions& options) {
    drive_ = free_fall();
    if (!options.torque.empty()) drive_ = efforts_from_file(model, options.torque);
    Path path;
    if (!options.goal.empty()) {
      const VectorXd goal = parse_vector(options.goal, "--goal", model.nq, start_.q);
      path = cycloid(model, start_.q, goal, options.travel.value_or(options.duration));
    }
    if (!options.trajectory.empty()) path = path_from_file(model, options.trajectory);
    if (!path) return;
    drive_ = inverse_dynamics_along(path, model, dynamics_, rubs_);
    Desired at{start_.q, start_.v, start_.v};
    if (path(start_.t, at) != Status::ok) return;
    if (options.q0.empty()) start_.q = at.q;  // else the robot starts off the path
    if (options.v0.empty()) start_.v = at.v;
  }

  /// Moves the start to the nearest state in which all loops are closed.
  void close_loops(const SimulateOptions& options) {
    loops_.alpha = options.stabilisation;
    loops_.beta = options.stabilisation;
    if (loops_.rows() == 0) return;
    if (loops_.project(start_.q) != Status::ok)
      throw ModelError(options.robot.loops, "loops", "cannot be closed near the start",
                       "give a --q0 nearer to a closed configuration");
    if (loops_.project_velocity(start_.q, start_.v) != Status::ok)
      throw UsageError("--v0: no velocity near it respects the loops");
  }

  Dynamics<double>& dynamics_;
  Loops<double> loops_;
  VectorXd lambda_;
  Friction<double> friction_;
  bool rubs_;
  EffortSource drive_;
  State start_;
  VectorXd tau_, left_;
};

/// Writes a line of comma-separated values for each state.
class Recorder {
 public:
  Recorder(std::ostream& out, const Model& model, Dynamics<double>& dynamics, Mechanism& plant,
           const std::string& columns)
      : out_(out), dynamics_(dynamics), plant_(plant), a_(VectorXd::Zero(model.nv)) {
    const std::vector<std::string> wanted = text::split(columns);
    for (const std::string& name : wanted)
      if (name != "q" && name != "v" && name != "a" && name != "tau" && name != "energy")
        throw UsageError("--columns: unknown column '" + name + "'; known are q,v,a,tau,energy");
    const auto has = [&](const char* name) {
      return std::find(wanted.begin(), wanted.end(), name) != wanted.end();
    };
    q_ = has("q");
    v_ = has("v");
    a_wanted_ = has("a");
    tau_ = has("tau");
    energy_ = has("energy");
    write_heading(coordinate_names(model));
  }

  [[nodiscard]] Status operator()(const State& state) {
    line_.clear();
    append(state.t);
    if (q_) append(state.q);
    if (v_) append(state.v);
    if (a_wanted_ || tau_)
      if (const Status s = plant_(state.t, state.q, state.v, a_); s != Status::ok) return s;
    if (a_wanted_) append(a_);
    if (tau_) append(plant_.tau());
    if (energy_) {
      if (const Status s = dynamics_.kinematics().update(state.q, state.v); s != Status::ok)
        return s;
      const Energy<double> E = dynamics_.kinematics().energy();
      append(E.kinetic);
      append(E.potential);
    }
    out_ << line_ << '\n';
    return Status::ok;
  }

 private:
  void write_heading(const CoordinateNames& names) {
    line_ = "t";
    const auto add = [this](bool wanted, const char* prefix, const std::vector<std::string>& list) {
      for (const std::string& name : list)
        if (wanted) line_ += "," + text::csv_field(prefix + name);
    };
    add(q_, "q.", names.q);
    add(v_, "v.", names.v);
    add(a_wanted_, "a.", names.v);
    add(tau_, "tau.", names.v);
    add(energy_, "energy.", {"kinetic", "potential"});
    out_ << line_ << '\n';
  }

  void append(double x) {
    if (!line_.empty()) line_ += ',';
    line_ += text::to_text(x);
  }
  void append(const VectorXd& x) {
    for (const double element : x) append(element);
  }

  std::ostream& out_;
  Dynamics<double>& dynamics_;
  Mechanism& plant_;
  VectorXd a_;
  bool q_ = false, v_ = false, a_wanted_ = false, tau_ = false, energy_ = false;
  std::string line_;
};

using Observe = std::function<Status(const State&)>;

/// Steps of equal length, none longer than --step, that end at the multiples of --interval.
[[nodiscard]] simulation::Result fixed_steps(const Dynamics<double>& dynamics, Mechanism& plant,
                                             const SimulateOptions& options,
                                             const Observe& observe) {
  simulation::FixedStep<double> stepper(dynamics);
  simulation::Result result;
  result.state = plant.start();
  State& x = result.state;
  result.status = observe(x);
  const auto intervals = std::ceil(options.duration / options.interval - 1e-9);
  for (double k = 1.0; k <= intervals && result.status == Status::ok; ++k) {
    const double begin = x.t;
    const double end = k < intervals ? k * options.interval : options.duration;
    const double n = std::max(1.0, std::ceil((end - begin) / options.step - 1e-9));
    const double dt = (end - begin) / n;
    for (double i = 0.0; i < n && result.status == Status::ok; ++i) {
      const double t = begin + i * dt;
      result.status = options.integrator == "rk4"
                          ? stepper.runge_kutta4(plant, t, dt, x.q, x.v)
                          : stepper.semi_implicit_euler(plant, t, dt, x.q, x.v);
      if (result.status == Status::ok) {
        ++result.steps;
        x.t = t + dt;
      }
    }
    if (result.status != Status::ok) break;
    x.t = end;
    result.status = observe(x);
  }
  result.evaluations = stepper.evaluations();
  return result;
}

[[nodiscard]] simulation::Result adaptive_steps(const Dynamics<double>& dynamics, Mechanism& plant,
                                                const SimulateOptions& options,
                                                simulation::Integrator integrator,
                                                const Observe& observe) {
  simulation::Options o;
  o.integrator = integrator;
  o.absolute_tolerance = options.tolerance;
  o.relative_tolerance = options.tolerance;
  o.duration = options.duration;
  o.interval = options.interval;
  o.first_step = options.step;
  Status observed = Status::ok;
  simulation::Result result =
      simulation::simulate(dynamics, std::ref(plant), plant.start(), o, [&](const State& state) {
        observed = observe(state);
        return observed == Status::ok;
      });
  if (result.status == Status::ok) result.status = observed;
  return result;
}

[[nodiscard]] int report(const simulation::Result& result, const SimulateOptions& options) {
  if (options.statistics)
    std::cerr << result.steps << " steps, " << result.rejected << " rejected, "
              << result.evaluations << " evaluations\n";
  if (result.status == Status::ok) return 0;
  const char* const remedy =
      result.status == Status::singular ? "the mass matrix cannot be inverted there"
      : result.status == Status::not_converged
          ? "the step vanished; the motion may run away, or --tolerance is too small"
      : result.status == Status::not_finite ? "the motion runs away; try a smaller --step"
                                            : "the robot may not suit the method";
  throw std::runtime_error("the simulation ended at t = " + std::to_string(result.state.t) + ": " +
                           to_string(result.status) + " (" + remedy + ")");
}

int simulate(const SimulateOptions& options) {
  check(options);
  const NamedIntegrator& integrator = find_integrator(options.integrator);
  const Model model = load_robot(options.robot);
  Dynamics<double> dynamics = make_dynamics(model, options.robot);
  Mechanism plant(model, dynamics, options);

  const bool to_stdout = options.output == "-";
  std::ofstream file;
  if (!to_stdout) {
    file.open(options.output);
    if (!file) throw std::runtime_error(options.output + ": cannot be written");
  }
  std::ostream& out = to_stdout ? std::cout : file;
  Recorder record(out, model, dynamics, plant, options.columns);
  simulation::Result result;
  {
    Progress progress(options.duration, to_stdout);
    const Observe observe = [&](const State& state) {
      progress.show(state.t);
      return record(state);
    };
    result = integrator.adaptive
                 ? adaptive_steps(dynamics, plant, options, *integrator.adaptive, observe)
                 : fixed_steps(dynamics, plant, options, observe);
  }
  out.flush();
  if (!to_stdout && !out) throw std::runtime_error(options.output + ": cannot be written");
  return report(result, options);
}

}  // namespace

Subcommand add_simulate(CLI::App& program) {
  CLI::App* app = program.add_subcommand("simulate", "Let a robot fall or drive it");
  app->footer(
      "Without --torque, --trajectory or --goal the robot falls freely. Along a path it gets the\n"
      "efforts that the inverse dynamics asks for; nothing is fed back.\n\n"
      "Example: dynamics simulate robot.urdf --duration 2 --integrator rkf45 --output fall.csv");
  const auto o = std::make_shared<SimulateOptions>();
  add_robot_options(*app, o->robot);
  const auto option = [&](const char* name, auto& value, const char* form,
                          const std::string& text) {
    return app->add_option(name, value, text)->type_name(form);
  };
  option("--q0", o->q0, "Q,...", "Positions at the start [neutral, or the path's start]");
  option("--v0", o->v0, "V,...", "Velocities at the start [at rest]");
  option("--torque", o->torque, "FILE", "Efforts: lines of t,tau,... in between linear");
  option("--trajectory", o->trajectory, "FILE",
         "Positions: lines of t,q,... joined by a quintic spline");
  option("--goal", o->goal, "Q,...", "Positions to go to along a cycloid");
  option("--travel", o->travel, "SECONDS", "Time on the way to --goal [the duration]");
  option("--duration", o->duration, "SECONDS", "How long")->capture_default_str();
  option("--interval", o->interval, "SECONDS", "Time between two lines")->capture_default_str();
  option("--integrator", o->integrator, "NAME",
         "rkf45, dopri5, abm (step-size control);\nrk4, semi_implicit_euler (fixed steps)")
      ->capture_default_str();
  option("--tolerance", o->tolerance, "NUMBER", "Of each step, absolute and relative")
      ->capture_default_str();
  option("--step", o->step, "SECONDS", "Fixed step, or the first one")->capture_default_str();
  option("--stabilisation", o->stabilisation, "RATE",
         "How fast errors of closed loops decay (Baumgarte), 1/s")
      ->capture_default_str();
  option("--method", o->method, "NAME", method_help());
  option("--columns", o->columns, "LIST", "Besides the time, of q,v,a,tau,energy")
      ->capture_default_str();
  option("--output", o->output, "FILE", "Where the lines go; - is standard output")
      ->capture_default_str();
  app->add_flag("--no-friction", o->no_friction, "Leave the joints' friction out");
  app->add_flag("--statistics", o->statistics, "Print steps and evaluations to stderr");
  return {app, [o] { return simulate(*o); }};
}

}  // namespace dynamics_core::tools
