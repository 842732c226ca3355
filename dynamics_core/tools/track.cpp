// SPDX-License-Identifier: Apache-2.0
#include "track.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

#include "dynamics_core/load.hpp"
#include "dynamics_core/text.hpp"
#include "progress.hpp"
#include "realtime.hpp"

namespace dynamics_core::tools {

namespace {

using Eigen::Index;
using VectorXd = VectorX<double>;
using Json = nlohmann::ordered_json;

struct TrackOptions {
  RobotOptions robot;
  MotionOptions motion;
  std::string laws;
  std::string speed = "70%";
  double rate = 1000.0;
  std::optional<double> budget;
  double bandwidth = 20.0;
  std::string p, d;
  int steps = 20;
  bool realtime = false;
  bool no_effort_limits = false;
  bool estimate_velocity = false;
  std::vector<std::string> mass_errors, friction_errors, unknown_payloads;
  std::string noise, saturation;
  double resolution = 0.0;
  int delay = 0;
  std::uint64_t seed = 1;
  std::string csv, report;
  bool json = false;
};

// --- from the command line to an experiment ------------------------------------------------------

void check(const TrackOptions& o) {
  const auto positive = [](double x, const char* option) {
    if (!(x > 0.0) || !std::isfinite(x))
      throw UsageError(std::string(option) + " has to be a positive number");
  };
  const auto from_zero = [](double x, const char* option) {
    if (!(x >= 0.0) || !std::isfinite(x))
      throw UsageError(std::string(option) + " has to be zero or a positive number");
  };
  positive(o.rate, "--rate");
  positive(o.budget.value_or(1.0), "--budget");
  positive(o.bandwidth, "--bandwidth");
  from_zero(o.motion.travel, "--travel");
  from_zero(o.motion.pause, "--pause");
  from_zero(o.resolution, "--quantisation");
  from_zero(o.delay, "--delay");
  if (o.steps < 1) throw UsageError("--substeps has to be one or more");
  if (o.motion.repeat < 1) throw UsageError("--repeat has to be one or more");
}

/// "10%" is 0.1.
[[nodiscard]] double parse_share(const std::string& text, const std::string& what) {
  if (text.empty() || text.back() != '%')
    throw UsageError(what + ": write it in percent, for instance 10%");
  return 0.01 * parse_number(text.substr(0, text.size() - 1), what);
}

/// 1 + error for each name: "10%" for all, "name=10%" for one, the later use prevails.
[[nodiscard]] std::vector<double> parse_errors(const std::vector<std::string>& texts,
                                               const std::string& option,
                                               const std::vector<std::string>& names) {
  std::vector<double> factors(names.size(), 1.0);
  for (const std::string& text : texts) {
    const std::string what = option + " '" + text + "'";
    const auto equals = text.rfind('=');
    const double factor =
        1.0 + parse_share(equals == std::string::npos ? text : text.substr(equals + 1), what);
    if (factor < 0.0) throw UsageError(what + ": less than nothing is left");
    if (equals == std::string::npos) {
      std::fill(factors.begin(), factors.end(), factor);
      continue;
    }
    const auto it = std::find(names.begin(), names.end(), text.substr(0, equals));
    if (it == names.end())
      throw UsageError(what + ": the robot has no '" + text.substr(0, equals) +
                       "'; `dynamics info` lists its parts");
    factors[static_cast<std::size_t>(it - names.begin())] = factor;
  }
  return factors;
}

template <class Items>
[[nodiscard]] std::vector<std::string> names_of(const Items& items) {
  std::vector<std::string> names;
  names.reserve(items.size());
  for (const auto& item : items) names.push_back(item.name);
  return names;
}

/// One number for all joints, or one for each.
[[nodiscard]] std::vector<double> by_joint(const std::string& text, const char* option,
                                           const Model& model) {
  std::vector<double> x = parse_numbers(text, option);
  if (x.size() == 1) x.resize(model.joints.size(), x.front());
  if (x.size() != model.joints.size())
    throw UsageError(std::string(option) + ": give one number, or one for each of the " +
                     std::to_string(model.joints.size()) + " joints");
  return x;
}

/// A share of the model's effort limits, or efforts.
[[nodiscard]] std::vector<double> parse_saturation(const std::string& text, const Model& model) {
  if (text.empty()) return {};
  if (text.back() != '%') return by_joint(text, "--saturation", model);
  const double share = parse_share(text, "--saturation");
  std::vector<double> limits;
  for (const JointInfo& joint : model.joints) limits.push_back(share * joint.limits.effort);
  return limits;
}

/// A robot that carries both payloads of a link carries their sum.
[[nodiscard]] Payload<double> sum(const Payload<double>& a, const Payload<double>& b) {
  const double mass = a.mass + b.mass;
  if (mass <= 0.0) return a;
  const Vec3<double> com = (a.mass * a.com + b.mass * b.com) / mass;
  Symmetric3<double> inertia = Symmetric3<double>::zero();
  for (const Payload<double>* load : {&a, &b}) {
    const RigidInertia<double> own{load->mass, Vec3<double>::Zero(), load->inertia};
    inertia += shift(own, Vec3<double>(load->com - com)).I;
  }
  return {mass, com, inertia};
}

[[nodiscard]] std::vector<CarriedPayload> sum(std::vector<CarriedPayload> payloads,
                                              const std::vector<CarriedPayload>& more) {
  for (const CarriedPayload& on : more) {
    const auto it =
        std::find_if(payloads.begin(), payloads.end(),
                     [&](const CarriedPayload& other) { return other.link == on.link; });
    if (it == payloads.end()) {
      payloads.push_back(on);
    } else {
      it->payload = sum(it->payload, on.payload);
    }
  }
  return payloads;
}

void require_drives(const Model& model, const RobotOptions& options) {
  if (!options.loops.empty())
    throw UsageError("--loops: control laws treat trees only; leave it out");
  if (model.joints.empty())
    throw ModelError(options.file, "robot", "no joint moves", "there is nothing to control");
  for (const JointInfo& joint : model.joints)
    if (joint.nv != 1)
      throw ModelError(options.file, "joint '" + joint.name + "'",
                       "has several degrees of freedom and no drive for each",
                       "choose joints of one degree of freedom with --joints");
}

void require_effort_limits(const Model& model, const std::string& file) {
  for (const JointInfo& joint : model.joints)
    if (!(joint.limits.effort > 0.0))
      throw ModelError(file, "joint '" + joint.name + "'", "its effort limit is zero",
                       "correct it, or let the controller exceed all limits: --no-effort-limits");
}

/// How late the effort answers the velocity, on average.
[[nodiscard]] double loop_lag(const Experiment& x) {
  const double held_and_under_way = x.period * (0.5 + x.imperfections.delay);
  if (x.velocity_measured) return held_and_under_way;
  constexpr double tau = 6.28318530717958647692;
  return held_and_under_way + 0.5 * x.period + 1.0 / (tau * control::Config{}.velocity_cutoff);
}

/// The inertia that each joint's gains are made for: its mean along the path with the other joints
/// at rest, M_jj. With those free, the joint moves as little as 1/(M⁻¹)_jj, and a damping d that
/// acts late must not overshoot there. d (M⁻¹)_jj lag < π/2 is the bound of stability; 1/4 keeps
/// clear of it.
[[nodiscard]] VectorXd inertias(const Model& model, Dynamics<double>& dynamics,
                                const PlannedMotion& motion, double bandwidth, double lag) {
  MatrixX<double> M(model.nv, model.nv);
  VectorXd mean = VectorXd::Zero(model.nv);
  VectorXd most = VectorXd::Constant(model.nv, std::numeric_limits<double>::infinity());
  Desired at{VectorXd::Zero(model.nq), mean, mean};
  constexpr int samples = 100;
  for (int i = 0; i < samples; ++i) {
    if (motion.path(motion.duration * i / samples, at) != Status::ok ||
        dynamics.mass_matrix(at.q, M) != Status::ok)
      throw std::runtime_error("the mass matrix along the path cannot be computed");
    mean += M.diagonal() / samples;
    if (dynamics.inverse_mass_matrix(at.q, M) != Status::ok) continue;
    most = most.cwiseMin((8.0 * bandwidth * lag * M.diagonal()).cwiseInverse());
  }
  for (Index j = 0; j < mean.size(); ++j)
    if (!(mean[j] > 0.0))
      throw ModelError("", "joint '" + model.joints[static_cast<std::size_t>(j)].name + "'",
                       "moves no mass", "give its links mass and inertia, or lock it");
  return mean.cwiseMin(most);
}

/// Critically damped at the bandwidth, unless given.
[[nodiscard]] std::vector<JointGains> choose_gains(const TrackOptions& o, const Model& model,
                                                   const VectorXd& inertia) {
  std::vector<JointGains> gains;
  for (const double I : inertia)
    gains.push_back({I * o.bandwidth * o.bandwidth, 2.0 * I * o.bandwidth, I});
  const std::vector<double> p = o.p.empty() ? std::vector<double>{} : by_joint(o.p, "--p", model);
  const std::vector<double> d = o.d.empty() ? std::vector<double>{} : by_joint(o.d, "--d", model);
  for (std::size_t j = 0; j < p.size(); ++j) gains[j].p = p[j];
  for (std::size_t j = 0; j < d.size(); ++j) gains[j].d = d[j];
  return gains;
}

void set_cycles(Experiment& x) {
  const double cycles = std::floor(x.motion.duration / x.period + 1e-9) + 1.0;
  constexpr double most = 1e7;
  if (cycles > most)
    throw UsageError("more than ten million cycles; choose a lower --rate or a shorter trajectory");
  x.cycles = static_cast<long>(cycles);
}

[[nodiscard]] Experiment plan(const TrackOptions& o) {
  check(o);
  Experiment x;
  x.model = load_robot(o.robot);
  require_drives(x.model, o.robot);
  if (!o.no_effort_limits) require_effort_limits(x.model, o.robot.file);
  x.robot = simulation::rescaled(
      x.model, parse_errors(o.mass_errors, "--mass-error", names_of(x.model.links)),
      parse_errors(o.friction_errors, "--friction-error", names_of(x.model.joints)));
  x.known_payloads = parse_payloads(x.model, o.robot.payloads, "--payload");
  x.payloads =
      sum(x.known_payloads, parse_payloads(x.model, o.unknown_payloads, "--payload-unknown"));
  const std::vector<double> noise = parse_numbers(o.noise, "--noise");
  if (noise.size() > 2) throw UsageError("--noise: write it as position,velocity");
  if (!noise.empty()) x.imperfections.position_noise = noise[0];
  if (noise.size() > 1) x.imperfections.velocity_noise = noise[1];
  x.imperfections.resolution = o.resolution;
  x.imperfections.delay = o.delay;
  x.imperfections.effort_limits = parse_saturation(o.saturation, x.model);
  x.imperfections.seed = o.seed;
  x.velocity_measured = !o.estimate_velocity;

  Dynamics<double> dynamics = make_dynamics(x.model, o.robot);
  MotionOptions motion = o.motion;
  motion.speed = parse_share(o.speed, "--speed");
  if (!(motion.speed > 0.0)) throw UsageError("--speed has to be above 0%");
  x.motion = plan_motion(x.model, dynamics, motion);
  x.period = 1.0 / o.rate;
  x.budget = o.budget ? 1e-6 * *o.budget : x.period;
  x.gains =
      choose_gains(o, x.model, inertias(x.model, dynamics, x.motion, o.bandwidth, loop_lag(x)));
  set_cycles(x);
  x.steps = o.steps;
  x.effort_limits = !o.no_effort_limits;
  x.realtime = o.realtime;
  x.record = !o.csv.empty() || !o.report.empty();
  return x;
}

[[nodiscard]] std::vector<const Law*> chosen_laws(const std::string& text) {
  std::vector<const Law*> laws;
  if (text.empty())
    for (const Law& law : all_laws) laws.push_back(&law);
  for (const std::string& name : text::split(text)) {
    const auto* it = std::find_if(all_laws.begin(), all_laws.end(),
                                  [&](const Law& law) { return name == law.name; });
    if (it == all_laws.end())
      throw UsageError("--laws: unknown law '" + name +
                       "'; known are pd, pd_gravity, feedforward, computed_torque and passivity");
    if (std::find(laws.begin(), laws.end(), it) != laws.end())
      throw UsageError("--laws: '" + name + "' is named twice");
    laws.push_back(it);
  }
  return laws;
}

// --- what came of it -----------------------------------------------------------------------------

[[nodiscard]] std::string format(double x, int digits) {
  std::ostringstream text;
  text << std::setprecision(digits) << x;
  return text.str();
}
[[nodiscard]] std::string fixed(double x, int decimals) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(decimals) << x;
  return text.str();
}
/// A factor with three digits.
[[nodiscard]] std::string factor(double x) { return fixed(x, x < 10.0 ? 2 : x < 100.0 ? 1 : 0); }
[[nodiscard]] std::string scientific(double x) {
  std::ostringstream text;
  text << std::scientific << std::setprecision(2) << x;
  return text.str();
}

/// The same PD gains alone, where that law ran.
[[nodiscard]] const Outcome* plain_pd(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes)
    if (outcome.law == &all_laws[0] && outcome.failure.empty()) return &outcome;
  return nullptr;
}

/// The largest share of its limit that a joint's effort took; NaN where no joint has one.
[[nodiscard]] double effort_share(const Model& model, const VectorXd& effort) {
  double share = std::nan("");
  for (const JointInfo& joint : model.joints) {
    const double limit = joint.limits.effort;
    if (std::isfinite(limit) && limit > 0.0) share = std::fmax(share, effort[joint.v] / limit);
  }
  return share;
}

void print_results(const Experiment& x, const std::vector<Outcome>& outcomes) {
  const std::string unit = position_unit(x.model);
  std::vector<Row> rows = {{"law", "RMS error [" + unit + "]", "PD/law", "peak error",
                            "peak effort [" + effort_unit(x.model) + "]", "of limit [%]",
                            "p50 [us]", "p99", "p99.9", "max", "over budget", "allocations"}};
  const Outcome* pd = plain_pd(outcomes);
  for (const Outcome& o : outcomes) {
    const Percentiles time = percentiles(o.compute);
    const double share = effort_share(x.model, o.peak_effort);
    rows.push_back({o.law->title, scientific(o.rms), pd != nullptr ? factor(pd->rms / o.rms) : "-",
                    scientific(o.peak), format(o.peak_effort.maxCoeff(), 3),
                    std::isnan(share) ? "-" : fixed(100.0 * share, 0), fixed(time.p50, 1),
                    fixed(time.p99, 1), fixed(time.p999, 1), fixed(time.max, 1),
                    std::to_string(o.over_budget), std::to_string(o.allocations)});
  }
  print_table(std::cout, rows);
}

/// What differs between the robot and the controller's model, in words.
[[nodiscard]] std::string differences(const TrackOptions& o) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const std::string& error : o.mass_errors) add("mass error " + error);
  for (const std::string& error : o.friction_errors) add("friction error " + error);
  for (const std::string& payload : o.unknown_payloads) add("unknown payload " + payload);
  if (!o.noise.empty()) add("noise " + o.noise);
  if (o.resolution > 0.0) add("positions in steps of " + format(o.resolution, 3));
  if (o.delay > 0) add("delay of " + std::to_string(o.delay) + " cycles");
  if (!o.saturation.empty()) add("drives saturate at " + o.saturation);
  if (o.estimate_velocity) add("velocity estimated");
  return text.empty() ? "exact model" : text;
}

void print_heading(const Experiment& x, const std::string& differ) {
  std::cout << "Robot       " << text::printable(x.model.name) << ", " << x.model.nv << " joints; "
            << differ << '\n'
            << "Trajectory  " << x.motion.name << ", " << fixed(x.motion.duration, 2) << " s\n"
            << "Loop        " << format(1.0 / x.period, 6) << " Hz, " << x.cycles << " cycles, "
            << x.steps << (x.steps == 1 ? " step" : " steps") << " of simulation a cycle, budget "
            << format(1e6 * x.budget, 4) << " us\n";
}

void print_realtime(const RealtimeGuard& guard, const std::vector<Outcome>& outcomes) {
  std::vector<std::int64_t> late;
  long missed = 0;
  for (const Outcome& o : outcomes) {
    late.insert(late.end(), o.late.begin(), o.late.end());
    missed += o.missed_beats;
  }
  const Percentiles p = percentiles(std::move(late));
  std::cout << "Real time   " << guard.scheduling() << "; " << guard.memory() << '\n'
            << "            woke up late by p50 " << fixed(p.p50, 0) << ", p99 " << fixed(p.p99, 0)
            << ", p99.9 " << fixed(p.p999, 0) << ", max " << fixed(p.max, 0) << " us; " << missed
            << " beats missed\n";
}

/// Joints that the trajectory asks for more than they have, whatever the law.
void print_overloads(const Experiment& x) {
  Dynamics<double> dynamics(x.robot);
  for (const CarriedPayload& on : x.payloads)
    if (dynamics.set_payload(on.link, on.payload) != Status::ok) return;
  const VectorXd peak = peak_efforts(x.robot, dynamics, x.motion);
  for (const JointInfo& joint : x.model.joints)
    if (joint.limits.effort > 0.0 && peak[joint.v] > joint.limits.effort)
      std::cout << "! The trajectory asks for an effort of " << format(peak[joint.v], 3)
                << " of joint " << text::printable(joint.name) << ", whose limit is "
                << format(joint.limits.effort, 3) << '\n';
}

/// Says what a reader of the table might miss.
void print_notes(const Experiment& x, const std::vector<Outcome>& outcomes) {
  for (const Outcome& o : outcomes) {
    if (!o.failure.empty()) std::cout << "! " << o.law->title << ": " << o.failure << '\n';
    if (o.limited_cycles > 0)
      std::cout << "! " << o.law->title << ": held back by effort limits in " << o.limited_cycles
                << " cycles\n";
    if (o.saturated_cycles > 0)
      std::cout << "! " << o.law->title << ": the drives were saturated in " << o.saturated_cycles
                << " cycles\n";
  }
  const Outcome* pd = plain_pd(outcomes);
  const auto it = std::find_if(outcomes.begin(), outcomes.end(), [](const Outcome& o) {
    return o.law == &all_laws[2] && o.failure.empty();
  });
  if (pd == nullptr || it == outcomes.end()) return;
  std::cout << "Feed-forward has 1/" << factor(pd->rms / it->rms)
            << " of the RMS tracking error of the same PD gains alone: " << scientific(it->rms)
            << " instead of " << scientific(pd->rms) << ' ' << position_unit(x.model) << ".\n";
}

void append(std::string& line, double x) {
  line += ',';
  line += text::to_text(x);
}

void write_csv(const std::string& file, const Experiment& x, const std::vector<Outcome>& outcomes) {
  std::ofstream out(file);
  std::string line = "law,t,compute_us";
  for (const char* prefix : {"q_d.", "v_d.", "a_d.", "q.", "v.", "tau."})
    for (const JointInfo& joint : x.model.joints)
      line += "," + text::csv_field(prefix + joint.name);
  out << line << '\n';
  Desired at{VectorXd::Zero(x.model.nq), VectorXd::Zero(x.model.nv), VectorXd::Zero(x.model.nv)};
  for (const Outcome& o : outcomes) {
    for (long k = 0; k < o.cycles; ++k) {
      const double t = static_cast<double>(k) * x.period;
      if (x.motion.path(t, at) != Status::ok) break;
      line = o.law->name;
      append(line, t);
      append(line, 1e-3 * static_cast<double>(o.compute[static_cast<std::size_t>(k)]));
      for (const VectorXd* vector : {&at.q, &at.v, &at.a})
        for (const double value : *vector) append(line, value);
      for (const MatrixX<double>* matrix : {&o.q, &o.v, &o.tau})
        for (Index j = 0; j < matrix->rows(); ++j) append(line, (*matrix)(j, k));
      out << line << '\n';
    }
  }
  out.flush();
  if (!out) throw std::runtime_error(file + ": cannot be written");
}

int track(const TrackOptions& options) {
  const std::vector<const Law*> laws = chosen_laws(options.laws);
  const Experiment experiment = plan(options);
  const std::string differ = differences(options);
  if (!options.json) print_heading(experiment, differ);
  std::cout.flush();

  std::vector<Outcome> outcomes;
  std::unique_ptr<RealtimeGuard> guard;
  {
    Progress progress(static_cast<double>(experiment.cycles) * static_cast<double>(laws.size()),
                      false);
    guard = std::make_unique<RealtimeGuard>(options.realtime);
    for (const Law* law : laws) {
      const double before =
          static_cast<double>(outcomes.size()) * static_cast<double>(experiment.cycles);
      outcomes.push_back(run_law(experiment, *law, [&](long k) {
        progress.show(before + static_cast<double>(k), law->title);
      }));
    }
  }
  if (options.json) {
    Json json = summary(experiment, outcomes);
    json["differences"] = differ;
    if (options.realtime)
      json["realtime"] = {{"scheduling", guard->scheduling()}, {"memory", guard->memory()}};
    std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else {
    if (options.realtime) print_realtime(*guard, outcomes);
    std::cout << '\n';
    print_results(experiment, outcomes);
    std::cout << '\n';
    print_overloads(experiment);
    print_notes(experiment, outcomes);
  }
  std::cout.flush();
  if (!options.csv.empty()) write_csv(options.csv, experiment, outcomes);
  if (!options.report.empty()) {
    const std::string page =
        write_report(options.report, experiment, outcomes, parse_file(options.robot.file), differ);
    if (!options.json) std::cout << "Report: " << page << '\n';
  }
  return std::all_of(outcomes.begin(), outcomes.end(),
                     [](const Outcome& o) { return o.failure.empty(); })
             ? 0
             : 1;
}

}  // namespace

std::string position_unit(const Model& model) {
  const auto slides = [](const JointInfo& j) { return j.type == JointType::prismatic; };
  if (std::all_of(model.joints.begin(), model.joints.end(), slides)) return "m";
  return std::any_of(model.joints.begin(), model.joints.end(), slides) ? "rad|m" : "rad";
}

std::string effort_unit(const Model& model) {
  const std::string unit = position_unit(model);
  return unit == "m" ? "N" : unit == "rad" ? "N m" : "N m|N";
}

Json summary(const Experiment& x, const std::vector<Outcome>& outcomes) {
  const auto list = [](const VectorXd& v) {
    return std::vector<double>(v.data(), v.data() + v.size());
  };
  Json json = {{"robot", x.model.name},
               {"joints", names_of(x.model.joints)},
               {"position_unit", position_unit(x.model)},
               {"effort_unit", effort_unit(x.model)},
               {"trajectory", x.motion.name},
               {"duration", x.motion.duration},
               {"rate", 1.0 / x.period},
               {"cycles", x.cycles},
               {"substeps", x.steps},
               {"budget_us", 1e6 * x.budget},
               {"laws", Json::array()}};
  json["gains"] = Json::array();
  for (const JointGains& g : x.gains)
    json["gains"].push_back({{"p", g.p}, {"d", g.d}, {"inertia", g.inertia}});
  const Outcome* pd = plain_pd(outcomes);
  for (const Outcome& o : outcomes) {
    const Percentiles time = percentiles(o.compute);
    const double share = effort_share(x.model, o.peak_effort);
    Json law = {{"law", o.law->name},
                {"title", o.law->title},
                {"cycles", o.cycles},
                {"rms_error", o.rms},
                {"peak_error", o.peak},
                {"pd_over_law", pd != nullptr ? Json(pd->rms / o.rms) : Json(nullptr)},
                {"rms_error_by_joint", list(o.rms_by_joint)},
                {"peak_error_by_joint", list(o.peak_by_joint)},
                {"peak_effort", o.peak_effort.maxCoeff()},
                {"peak_effort_by_joint", list(o.peak_effort)},
                {"share_of_effort_limit", std::isnan(share) ? Json(nullptr) : Json(share)},
                {"compute_us",
                 {{"p50", time.p50}, {"p99", time.p99}, {"p99.9", time.p999}, {"max", time.max}}},
                {"over_budget", o.over_budget},
                {"allocations", o.allocations},
                {"limited_cycles", o.limited_cycles},
                {"saturated_cycles", o.saturated_cycles},
                {"failure", o.failure.empty() ? Json(nullptr) : Json(o.failure)}};
    if (x.realtime) {
      const Percentiles late = percentiles(o.late);
      law["late_us"] = {
          {"p50", late.p50}, {"p99", late.p99}, {"p99.9", late.p999}, {"max", late.max}};
      law["missed_beats"] = o.missed_beats;
    }
    json["laws"].push_back(std::move(law));
  }
  return json;
}

Subcommand add_track(CLI::App& program) {
  CLI::App* app =
      program.add_subcommand("track", "Drive a simulated robot along a trajectory, law by law");
  app->footer(
      "Each law has the same stiffness and damping. Errors are those of the true position. The\n"
      "compute time is that of the controller's update alone, allocations those of the whole "
      "loop.\n"
      "\nExample: dynamics track robot.urdf --mass-error 10% --report report");
  const auto o = std::make_shared<TrackOptions>();
  add_robot_options(*app, o->robot);
  const auto option = [&](const char* group, const char* name, auto& value, const char* form,
                          const char* text) {
    return app->add_option(name, value, text)->group(group)->type_name(form);
  };
  const auto repeatable = [&](const char* name, std::vector<std::string>& values, const char* form,
                              const char* text) {
    option("Differences between robot and model", name, values, form, text)
        ->expected(1)
        ->take_all();
  };
  const char* const motion = "Trajectory";
  option(motion, "--trajectory", o->motion.trajectory, "NAME|FILE",
         "cycloid or quintic, there and back; or a file with lines\nof t,q,... joined by a quintic "
         "spline")
      ->capture_default_str();
  option(motion, "--from", o->motion.from, "Q,...", "One end [chosen inside the limits]");
  option(motion, "--to", o->motion.to, "Q,...", "The other end [chosen inside the limits]");
  option(motion, "--travel", o->motion.travel, "SECONDS", "Time for one way [by --speed]");
  option(motion, "--speed", o->speed, "PERCENT", "Share of the velocity limits")
      ->capture_default_str();
  option(motion, "--pause", o->motion.pause, "SECONDS", "Rest at both ends")->capture_default_str();
  option(motion, "--repeat", o->motion.repeat, "N", "So often there and back")
      ->capture_default_str();

  const char* const loop = "Loop";
  option(loop, "--laws", o->laws, "LIST",
         "Of pd,pd_gravity,feedforward,computed_torque,\npassivity [all]");
  option(loop, "--rate", o->rate, "HERTZ", "Cycles a second")->capture_default_str();
  option(loop, "--bandwidth", o->bandwidth, "RAD/S",
         "Of the closed loop; the gains follow from it and from the\ninertia that each joint moves")
      ->capture_default_str();
  option(loop, "--p", o->p, "P,...", "Stiffness instead, one number or one a joint");
  option(loop, "--d", o->d, "D,...", "Damping instead, one number or one a joint");
  option(loop, "--substeps", o->steps, "N", "Steps of the simulation in a cycle")
      ->capture_default_str();
  option(loop, "--budget", o->budget, "MICROSECONDS", "For the controller's update [the period]");
  app->add_flag("--realtime", o->realtime,
                "Keep time with the clock, with SCHED_FIFO and locked\nmemory where allowed")
      ->group(loop);
  app->add_flag("--no-effort-limits", o->no_effort_limits, "Let the controller exceed them")
      ->group(loop);
  app->add_flag("--estimate-velocity", o->estimate_velocity,
                "The controller is told positions only")
      ->group(loop);

  const char* const differ = "Differences between robot and model";
  repeatable("--mass-error", o->mass_errors, "[LINK=]PERCENT",
             "The robot is heavier than the controller's model\n(repeatable)");
  repeatable("--friction-error", o->friction_errors, "[JOINT=]PERCENT",
             "It has more friction (repeatable)");
  repeatable("--payload-unknown", o->unknown_payloads, "LINK,MASS,X,Y,Z",
             "It carries a payload of which the controller is not told\n(repeatable)");
  option(differ, "--noise", o->noise, "POSITION[,VELOCITY]",
         "Standard deviation of what is measured");
  option(differ, "--quantisation", o->resolution, "STEP", "Positions are measured in such steps");
  option(differ, "--delay", o->delay, "CYCLES", "A command takes so long to arrive");
  option(differ, "--saturation", o->saturation, "PERCENT|EFFORT,...",
         "The drives give no more than this, by share of the\nmodel's limits or by joint");
  option(differ, "--seed", o->seed, "N", "Of the noise")->capture_default_str();

  const char* const output = "Output";
  app->add_flag("--json", o->json, "For machines instead of people")->group(output);
  option(output, "--csv", o->csv, "FILE", "A line for each cycle of each law");
  option(output, "--report", o->report, "DIRECTORY", "A page with plots, index.html");
  return {app, [o] { return track(*o); }};
}

}  // namespace dynamics_core::tools
