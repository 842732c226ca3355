// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the subcommands of `dynamics` share: how a robot is named and altered on the command line,
/// how numbers are read, and how things go wrong.

#include <CLI/CLI.hpp>
#include <functional>
#include <iosfwd>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/loops.hpp"
#include "dynamics_core/model.hpp"

namespace dynamics_core::tools {

/// A mistake on the command line: exit code 2, with a hint where to read on.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A subcommand: its parser, and what to do when it was chosen. `run` returns the exit code.
struct Subcommand {
  CLI::App* app;
  std::function<int()> run;
};

[[nodiscard]] Subcommand add_info(CLI::App& program);
[[nodiscard]] Subcommand add_check(CLI::App& program);
[[nodiscard]] Subcommand add_eval(CLI::App& program);
[[nodiscard]] Subcommand add_simulate(CLI::App& program);
[[nodiscard]] Subcommand add_count(CLI::App& program);
[[nodiscard]] Subcommand add_track(CLI::App& program);
[[nodiscard]] Subcommand add_generate(CLI::App& program);
[[nodiscard]] Subcommand add_identify(CLI::App& program);
[[nodiscard]] Subcommand add_validate(CLI::App& program);
[[nodiscard]] Subcommand add_excite(CLI::App& program);

/// The robot and the options that alter it, as they stand on the command line.
struct RobotOptions {
  std::string file;
  bool strict = false;
  bool floating_base = false;
  std::string gravity;
  std::string joints;
  std::string loops;
  std::vector<std::string> locked;
  std::vector<std::string> payloads;
  std::vector<std::string> damping;
  std::vector<std::string> friction;
  std::vector<std::string> rotor_inertia;
  std::vector<std::string> gear_ratio;
};

void add_robot_options(CLI::App& app, RobotOptions& options);

/// Throws ModelError for the robot's faults, UsageError for those of the options.
[[nodiscard]] Model load_robot(const RobotOptions& options);

/// The loop joints declared in a file of their own; none without that option. Throws ModelError.
[[nodiscard]] LoopSet load_loops(const Model& model, const RobotOptions& options);

/// A payload on a link (index into Model::links).
struct CarriedPayload {
  int link;
  Payload<double> payload;
};
/// link,mass,x,y,z and optionally the six elements of the inertia, from each use of `option`.
[[nodiscard]] std::vector<CarriedPayload> parse_payloads(const Model& model,
                                                         const std::vector<std::string>& texts,
                                                         const std::string& option);

/// The robot with its payloads.
[[nodiscard]] Dynamics<double> make_dynamics(const Model& model, const RobotOptions& options);

/// The family of algorithms of that name, the default one for an empty name. Throws UsageError.
[[nodiscard]] std::optional<Method> parse_method(const std::string& name);
/// What --method says of itself.
[[nodiscard]] std::string method_help();

/// Finite numbers only. `what` names the option in the message.
[[nodiscard]] double parse_number(const std::string& text, const std::string& what);
[[nodiscard]] std::vector<double> parse_numbers(const std::string& text, const std::string& what);

/// Lets an option take the numbers between these, both with them. NaN is none.
[[nodiscard]] CLI::Validator number_between(double least, double most);

/// A number that every YAML parser takes for one with a fraction: ROS refuses lists of both kinds.
[[nodiscard]] std::string yaml_number(double value);
/// A name in quotes where YAML would read something else.
[[nodiscard]] std::string yaml_name(const std::string& name);

/// Throws std::runtime_error where the file cannot be read.
[[nodiscard]] std::string read_text_file(const std::string& path);

/// A name for each element of q and of v: the joint's, with a suffix where it has several.
struct CoordinateNames {
  std::vector<std::string> q, v;
};
[[nodiscard]] CoordinateNames coordinate_names(const Model& model);

/// Prints left-aligned text and right-aligned numbers in columns. The first row is the heading.
using Row = std::vector<std::string>;
void print_table(std::ostream& out, std::vector<Row> rows);

}  // namespace dynamics_core::tools
