// SPDX-License-Identifier: Apache-2.0
/// `dynamics excite`: a motion from which `dynamics identify` can tell the parameters.

#include <iostream>
#include <sstream>

#include "common.hpp"
#include "dynamics_core/identification/excitation.hpp"
#include "dynamics_core/text.hpp"
#include "output.hpp"
#include "progress.hpp"

namespace dynamics_core::tools {

namespace {

using namespace identification;
using text::to_short_text;

struct ExciteCommand {
  RobotOptions robot;
  ExcitationOptions options;
  std::string csv = "excitation.csv";
  std::string goal;
  double rate = 100.0;
};

[[nodiscard]] std::string path_of(const Model& model, const Excitation& e, double rate) {
  std::ostringstream out;
  out << "time";
  for (const char* column : {"q_", "v_", "a_"})
    for (const JointInfo& joint : model.joints) out << ',' << column << joint.name;
  out << '\n';
  VectorX<double> q, v, a;
  const int samples = static_cast<int>(e.duration * rate);
  for (int i = 0; i <= samples; ++i) {
    const double t = i / rate;
    e.at(t, q, v, a);
    out << text::to_text(t);
    for (const VectorX<double>* x : {&q, &v, &a})
      for (const double value : *x) out << ',' << text::to_text(value);
    out << '\n';
  }
  return out.str();
}

/// A goal of control_msgs/action/FollowJointTrajectory, ten points a second.
[[nodiscard]] std::string goal_of(const Model& model, const Excitation& e) {
  std::ostringstream out;
  const auto list = [](const VectorX<double>& x) {
    std::vector<std::string> words;
    for (const double value : x) words.push_back(yaml_number(value));
    return "[" + text::joined(words) + "]";
  };
  std::vector<std::string> names;
  for (const JointInfo& joint : model.joints) names.push_back(yaml_name(joint.name));
  out << "trajectory:\n  joint_names: [" << text::joined(names) << "]\n  points:\n";
  VectorX<double> q, v, a;
  const int points = static_cast<int>(10.0 * e.duration);
  for (int i = 0; i <= points; ++i) {
    e.at(0.1 * i, q, v, a);
    // The controller starts from where the robot is.
    const int tenths = i + 10;
    out << "    - {positions: " << list(q) << ", velocities: " << list(v)
        << ", accelerations: " << list(a) << ", time_from_start: {sec: " << tenths / 10
        << ", nanosec: " << tenths % 10 * 100000000 << "}}\n";
  }
  return out.str();
}

int excite_command(const ExciteCommand& command) {
  check_writable(command.csv);
  if (!command.goal.empty()) check_writable(command.goal);
  const Model model = load_robot(command.robot);
  ExcitationOptions options = command.options;
  options.step = 1.0 / command.rate;
  Excitation best;
  {
    Progress progress(1.0, false);
    options.progress = [&](double share, double condition) {
      progress.show(share, ("condition number " + to_short_text(condition)).c_str());
    };
    best = excite(model, options);
  }
  std::vector<OutputFile> files = {{command.csv, path_of(model, best, command.rate)}};
  if (!command.goal.empty()) files.push_back({command.goal, goal_of(model, best)});
  write_files(files);
  std::cout << "Condition number " << to_short_text(best.condition) << ", "
            << to_short_text(best.duration) << " s from rest to rest at";
  for (const double q : best.rest) std::cout << ' ' << to_short_text(q);
  if (!best.still.empty())
    std::cout << "\nLeft at rest, as their limits leave no motion: " << text::joined(best.still);
  std::cout << "\nWritten to " << command.csv
            << (command.goal.empty() ? "" : " and " + command.goal)
            << ". It knows the joints' limits, not what stands around the robot.\n";
  return 0;
}

}  // namespace

Subcommand add_excite(CLI::App& program) {
  CLI::App* app =
      program.add_subcommand("excite", "A motion from which identify can tell the parameters");
  auto command = std::make_shared<ExciteCommand>();
  add_robot_options(*app, command->robot);
  app->add_option("-o,--output", command->csv, "CSV: time, q_, v_ and a_ of each joint")
      ->type_name("FILE")
      ->capture_default_str();
  app->add_option("--goal", command->goal, "Goal for joint_trajectory_controller (YAML)")
      ->type_name("FILE");
  app->add_option("--rate", command->rate, "Lines a second")
      ->check(number_between(0.1, 1e4))
      ->capture_default_str();
  app->add_option("--duration", command->options.duration, "s")
      ->check(number_between(0.1, 3600.0))
      ->capture_default_str();
  app->add_option("--period", command->options.period, "Of the first harmonic, s")
      ->check(number_between(0.01, 3600.0))
      ->capture_default_str();
  app->add_option("--harmonics", command->options.harmonics, "Sines and cosines a joint")
      ->check(CLI::Range(1, 50))
      ->capture_default_str();
  app->add_option("--share", command->options.share, "Of the limits that is used")
      ->check(number_between(0.01, 1.0))
      ->capture_default_str();
  app->add_option("--acceleration", command->options.acceleration, "Largest, rad/s^2 or m/s^2")
      ->check(number_between(1e-3, 1e6))
      ->capture_default_str();
  app->add_option("--tries", command->options.tries, "How long to search")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app->add_option("--seed", command->options.seed, "Of the search")->capture_default_str();
  return {app, [command] { return excite_command(*command); }};
}

}  // namespace dynamics_core::tools
