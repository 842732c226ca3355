// SPDX-License-Identifier: Apache-2.0
/// Prints the simulations of the papers as the tables of docs/papers.md.

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "dynamics_core/families.hpp"
#include "support/paper_simulations.hpp"

namespace {

using namespace support;
using dynamics_core::simulation::all_integrators;
using dynamics_core::simulation::Integrator;

const char* name(Integrator integrator) {
  switch (integrator) {
    case Integrator::fehlberg45: return "Runge–Kutta–Fehlberg 4(5)";
    case Integrator::dormand_prince: return "Dormand–Prince 5(4)";
    case Integrator::adams: return "Adams–Bashforth–Moulton";
  }
  return "";
}

const char* name(Method method) {
  switch (method) {
    case Method::articulated_body: return "articulated body";
    case Method::cholesky: return "composite body, Cholesky";
    case Method::gibbs_appell: return "Gibbs–Appell, Cholesky";
    default: return to_string(method);
  }
}

Options with(Integrator integrator, double tolerance, double interval, double duration = 10.0) {
  Options o;
  o.integrator = integrator;
  o.absolute_tolerance = o.relative_tolerance = tolerance;
  o.interval = interval;
  o.duration = duration;
  o.max_evaluations = 300'000;
  return o;
}

std::string seconds(double t) {
  if (std::isnan(t)) return "–";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", t);
  return text;
}

void torque_table(const char* title, const Experiment& experiment) {
  std::printf("\n%s\n\n| t in s |", title);
  for (int i = 1; i <= experiment.model.nv; ++i) std::printf(" τ%d |", i);
  std::printf("\n|---|");
  for (int i = 1; i <= experiment.model.nv; ++i) std::printf("---|");
  std::printf("\n");
  Dynamics<double> robot(experiment.model);
  VectorXd tau(experiment.model.nv);
  for (const double t : {0.0, 2.5, 5.0, 7.5, 10.0}) {
    experiment.efforts(robot, t, tau);
    std::printf("| %.1f |", t);
    for (int i = 0; i < tau.size(); ++i)
      std::printf(" %.4f |", std::abs(tau[i]) < 5e-5 ? 0.0 : tau[i]);
    std::printf("\n");
  }
}

void planar_ranges(const Experiment& experiment) {
  Dynamics<double> robot(experiment.model);
  VectorXd tau(3);
  double low = 0.0, high = 0.0;
  for (int k = 0; k <= 1000; ++k) {
    experiment.efforts(robot, 0.01 * k, tau);
    low = std::min(low, tau.minCoeff());
    high = std::max(high, tau.maxCoeff());
  }
  double angle_low = 0.0, angle_high = 0.0;
  dynamics_core::simulation::Plant plant(robot, dynamics_core::simulation::NoEffort{});
  (void)simulate(robot, plant, experiment.at_rest(), with(Integrator::fehlberg45, 1e-8, 0.01, 3.5),
                 [&](const State& s) {
                   angle_low = std::min(angle_low, s.q[0]);
                   angle_high = std::max(angle_high, s.q[0]);
                   return true;
                 });
  std::printf("\n| three-link planar arm | here | axis of the paper's plot |\n|---|---|---|\n");
  std::printf("| torques along the path in N·m | %.2f … %.2f | −2 … 5 (Fig. 5) |\n", low, high);
  std::printf("| θ1 in free fall, first 3.5 s, in rad | %.2f … %.2f | −4 … 0 (Fig. 6) |\n",
              angle_low, angle_high);
}

bool print_positions(const State& s) {
  std::printf("| %.2f |", s.t);
  for (const double x : s.q) std::printf(" %.4f |", x);
  std::printf("\n");
  return true;
}

void free_fall_tables() {
  const Experiment arm = stanford_experiment();
  std::printf(
      "\n| Stanford arm in free fall | θ2 = 0 at t in s | b3 there in m | b3 at 10 s in m |"
      " evaluations |\n|---|---|---|---|---|\n");
  std::printf("| Saha 2001, Fig. 4(i) | a little after 0.5 | | | |\n");
  for (const Integrator i : all_integrators) {
    const FreeFall f = stanford_free_fall(arm, with(i, 1e-6, 0.01));
    std::printf("| %s | %s | %.2f | %.1f | %ld |\n", name(i), seconds(f.joint2_zero).c_str(),
                f.slide_there, f.result.state.q[2], f.result.evaluations);
  }
  for (const double part : {0.5, 0.0}) {
    const FreeFall f = stanford_free_fall(arm, with(Integrator::fehlberg45, 1e-6, 0.01, 1.0), part);
    std::printf("| *not mechanics:* %s the slide's Coriolis forces | %s | %.2f | | |\n",
                part > 0.0 ? "with half" : "without", seconds(f.joint2_zero).c_str(),
                f.slide_there);
  }
  std::printf("\n| t in s | θ1 | θ2 | b3 | θ4 | θ5 | θ6 |\n|---|---|---|---|---|---|---|\n");
  Dynamics<double> robot(arm.model);
  dynamics_core::simulation::Plant plant(robot, dynamics_core::simulation::NoEffort{});
  (void)simulate(robot, plant, arm.at_rest(), with(Integrator::fehlberg45, 1e-10, 0.25, 1.0),
                 print_positions);
}

void forced_table(const Experiment& experiment, const char* tolerance_there, const char* paper) {
  std::printf(
      "\n| integrator | tolerance | free steps: off by 0.01 at t in s | by 0.1 at |"
      " failed | evaluations | stops every 0.01 s: off by 0.01 at | by 0.1 at | failed |"
      " evaluations |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|---|\n");
  std::printf("| Saha 2001 | %s | after about %s | | | | | | | |\n", tolerance_there, paper);
  for (const Integrator i : all_integrators) {
    for (const double tolerance : {1e-4, 1e-6, 1e-8, 1e-10}) {
      std::printf("| %s | %.0e |", name(i), tolerance);
      for (const double interval : {0.0, 0.01}) {
        const Forced f = forced_simulation(experiment, with(i, tolerance, interval));
        char end[64];
        const bool ok = f.result.status == Status::ok;
        std::snprintf(end, sizeof end, "%s at %.2f", ok ? "" : to_string(f.result.status),
                      f.result.state.t);
        std::printf(" %s | %s | %s | %ld |", seconds(f.leaves_hundredth).c_str(),
                    seconds(f.leaves_tenth).c_str(), ok ? "" : end, f.result.evaluations);
      }
      std::printf("\n");
    }
  }
}

/// How far off a path that is kept, stopping every 0.01 s.
void error_table(const Experiment& experiment) {
  std::printf(
      "\n| largest error in rad | 1e-04 | 1e-06 | 1e-08 | 1e-10 |\n|---|---|---|---|---|\n");
  for (const Integrator i : all_integrators) {
    std::printf("| %s |", name(i));
    for (const double tolerance : {1e-4, 1e-6, 1e-8, 1e-10})
      std::printf(" %.1e |", forced_simulation(experiment, with(i, tolerance, 0.01)).worst);
    std::printf("\n");
  }
}

const char* name(PumaMoments moments) {
  return moments == PumaMoments::as_printed ? "as printed" : "without the minus signs";
}

void puma_definiteness(PumaMoments moments) {
  const Experiment puma = puma_experiment(moments);
  Dynamics<double> robot(puma.model);
  Eigen::MatrixXd M(6, 6);
  std::printf("\nEigenvalues of M along the path, moments %s:", name(moments));
  Eigen::Index last = -1;
  double smallest = INFINITY;
  for (int k = 0; k <= 100000; ++k) {
    require(robot.families().composite_body.mass_matrix(puma.desired(1e-4 * k), M));
    const auto values = Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(M).eigenvalues();
    const Eigen::Index negative = (values.array() < 0.0).count();
    smallest = std::min(smallest, values[0]);
    if (last < 0)
      std::printf(" at first %ld of six negative (the least is %.4f);", static_cast<long>(negative),
                  values[0]);
    else if (negative != last)
      std::printf(" %ld from t = %.3f s;", static_cast<long>(negative), 1e-4 * k);
    last = negative;
  }
  std::printf(" the least of all is %.4f\n", smallest);
}

void puma_free_fall_tables() {
  std::printf(
      "\n| PUMA in free fall | integrator | joint 2 turns forward until t in s | to rad |"
      " ends at t in s | energy changes by J | evaluations |\n|---|---|---|---|---|---|---|\n");
  std::printf("| Saha 2001, Fig. 4(ii) | Runge–Kutta–Fehlberg | it turns forward | | 10 | | |\n");
  for (const PumaMoments moments : {PumaMoments::as_printed, PumaMoments::positive}) {
    for (const Integrator i : all_integrators) {
      const PumaFall f = puma_free_fall(puma_experiment(moments), with(i, 1e-6, 0.01));
      const bool ok = f.result.status == Status::ok;
      std::printf("| %s | %s | %s | %.3f | %.2f%s%s | %.1e | %ld |\n", name(moments), name(i),
                  seconds(f.turns_back).c_str(), f.farthest, f.result.state.t, ok ? "" : ", ",
                  ok ? "" : to_string(f.result.status), f.energy, f.result.evaluations);
    }
  }
  std::printf("\n| t in s | θ1 | θ2 | θ3 | θ4 | θ5 | θ6 |\n|---|---|---|---|---|---|---|\n");
  const Experiment puma = puma_experiment(PumaMoments::positive);
  Dynamics<double> robot(puma.model);
  dynamics_core::simulation::Plant plant(robot, dynamics_core::simulation::NoEffort{});
  (void)simulate(robot, plant, puma.at_rest(), with(Integrator::fehlberg45, 1e-10, 1.0),
                 print_positions);
}

/// µs a call, the fastest of many rounds.
double microseconds(const Model& model, Method method) {
  Dynamics<double> robot(model);
  robot.use(method);
  const VectorXd q = VectorXd::LinSpaced(6, -1.0, 1.0);
  VectorXd a(6);
  constexpr int calls = 1000;
  double best = 1e9;
  for (int round = 0; round < 50; ++round) {
    const auto before = std::chrono::steady_clock::now();
    for (int k = 0; k < calls; ++k) require(robot.forward_dynamics(q, q, q, a));
    const std::chrono::duration<double, std::micro> time =
        std::chrono::steady_clock::now() - before;
    best = std::min(best, time.count() / calls);
  }
  return best;
}

void line_table() {
  std::printf(
      "\n| robot | tolerance | method | average error of q in rad | of v in rad/s |"
      " of a in rad/s² | function evaluations | forward dynamics in µs |\n"
      "|---|---|---|---|---|---|---|---|\n");
  for (const bool motors : {true, false}) {
    const Model model = motors ? paper_robot("puma560") : puma560_links();
    for (const double tolerance : {1e-6, 1e-10}) {
      for (const Method m : {Method::articulated_body, Method::cholesky, Method::gibbs_appell}) {
        const LineSimulation s =
            line_simulation(model, with(Integrator::fehlberg45, tolerance, 0.1), m);
        std::printf("| %s | %.0e | %s | %.1e | %.1e | %.1e | %ld | %.2f |\n",
                    motors ? "with motors" : "links alone", tolerance, name(m), s.q_error.mean(),
                    s.v_error.mean(), s.a_error.mean(), s.result.evaluations,
                    microseconds(model, m));
      }
    }
  }
}

}  // namespace

int main() {
  std::printf("## Saha 1999\n");
  planar_ranges(planar_experiment());
  torque_table("Torques of the Stanford arm along the cycloid, in N·m (τ3 in N)",
               stanford_experiment(1999));
  std::printf("\n## Saha 2001\n");
  free_fall_tables();
  std::printf("\nForced simulation of the Stanford arm\n");
  forced_table(stanford_experiment(), "1e-6", "2.5");
  puma_free_fall_tables();
  for (const PumaMoments moments : {PumaMoments::as_printed, PumaMoments::positive}) {
    const Experiment puma = puma_experiment(moments);
    puma_definiteness(moments);
    std::printf("\nThe PUMA, moments %s\n", name(moments));
    torque_table("Torques along the cycloid, in N·m", puma);
    std::printf("\nForced simulation\n");
    forced_table(puma, "not given", "6");
    if (moments == PumaMoments::positive) error_table(puma);
  }
  std::printf("\n## Mata 2002 §5.2\n");
  line_table();
}
