// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the parts of `dynamics track` share: an experiment, its outcome for each law, and the page
/// that shows them.

#include <array>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common.hpp"
#include "dynamics_core/control/controller.hpp"
#include "dynamics_core/simulation/simulated_robot.hpp"
#include "motion.hpp"

namespace dynamics_core::tools {

struct Law {
  const char* name;   ///< on the command line
  const char* title;  ///< for people
  control::Mode mode;
  control::Compensation compensation;
};
inline constexpr std::array<Law, 5> all_laws = {{
    {"pd", "PD", control::Mode::feedforward, control::Compensation::none},
    {"pd_gravity", "PD + gravity", control::Mode::feedforward, control::Compensation::gravity},
    {"feedforward", "PD + feed-forward", control::Mode::feedforward, control::Compensation::full},
    {"computed_torque", "computed torque", control::Mode::computed_torque,
     control::Compensation::full},
    {"passivity", "passivity", control::Mode::passivity, control::Compensation::full},
}};

/// PD gains of a joint, and the inertia that it moves: what the other laws' gains follow from.
struct JointGains {
  double p = 0.0, d = 0.0, inertia = 1.0;
};
/// Gains that give every law the same stiffness and damping where the inertia is that one.
[[nodiscard]] control::Gains gains_of(const Law& law, const JointGains& pd);

/// All that is the same for every law.
struct Experiment {
  Model model;                                 ///< what the controller knows
  Model robot;                                 ///< what it is
  std::vector<CarriedPayload> known_payloads;  ///< of the controller's model
  std::vector<CarriedPayload> payloads;        ///< of the robot
  simulation::Imperfections imperfections;
  PlannedMotion motion;
  std::vector<JointGains> gains;
  double period = 1e-3;  ///< s
  double budget = 1e-3;  ///< s for the controller in each cycle
  int steps = 1;         ///< of the simulation in each cycle
  long cycles = 0;
  bool effort_limits = true;
  bool velocity_measured = true;
  bool realtime = false;
  bool record = false;
};

struct Percentiles {
  double p50 = 0.0, p99 = 0.0, p999 = 0.0, max = 0.0;
};
/// Of durations in ns, in µs.
[[nodiscard]] Percentiles percentiles(std::vector<std::int64_t> x);

/// What one law did. Errors are those of the true position, by joint.
struct Outcome {
  const Law* law = nullptr;
  long cycles = 0;  ///< fewer than wanted where it failed
  std::string failure;
  double rms = 0.0, peak = 0.0;
  VectorX<double> rms_by_joint, peak_by_joint, peak_effort;
  std::vector<std::int64_t> compute;  ///< ns a cycle in Controller::update()
  std::vector<std::int64_t> late;     ///< ns a cycle between beat and wake-up; only in real time
  long missed_beats = 0;
  long over_budget = 0;
  long allocations = 0;
  std::uint64_t limited_cycles = 0;    ///< the controller's effort limits held a joint back
  std::uint64_t saturated_cycles = 0;  ///< and those of the drives
  MatrixX<double> q, v, tau;           ///< a cycle a column; only with Experiment::record
};

/// Runs one law. `progress(k)` hears of every cycle.
[[nodiscard]] Outcome run_law(const Experiment& experiment, const Law& law,
                              const std::function<void(long)>& progress);

/// "rad", "m" or, for a robot that has both kinds of joints, "rad|m".
[[nodiscard]] std::string position_unit(const Model& model);
[[nodiscard]] std::string effort_unit(const Model& model);

/// The figures of all laws, for machines.
[[nodiscard]] nlohmann::ordered_json summary(const Experiment& x,
                                             const std::vector<Outcome>& outcomes);

/// Writes the page index.html and the data behind it into a directory. `tree` tells which links
/// are joined. Returns the page's path; throws where that cannot be done.
[[nodiscard]] std::string write_report(const std::string& directory, const Experiment& experiment,
                                       const std::vector<Outcome>& outcomes,
                                       const RobotDescription& tree,
                                       const std::string& differences);

}  // namespace dynamics_core::tools
