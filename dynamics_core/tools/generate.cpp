// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/generate.hpp"

#include <iostream>

#include "common.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core::tools {

namespace {

struct Options {
  RobotOptions robot;
  std::string functions;
  std::string scalar = "double";
  std::string language = "c++";
  std::string directory = ".";
  std::string name;
  std::string link;
  std::vector<std::string> payload_links;
  bool gravity = false;
};

[[nodiscard]] GeneratedScalar parse_scalar(const std::string& name) {
  if (name == "double") return GeneratedScalar::double_precision;
  if (name == "float") return GeneratedScalar::single_precision;
  if (name == "lanes") return GeneratedScalar::lanes;
  throw UsageError("--scalar: unknown scalar '" + name + "'; known are double, float, lanes");
}

[[nodiscard]] GeneratedLanguage parse_language(const std::string& name) {
  if (name == "c++") return GeneratedLanguage::cpp;
  if (name == "c") return GeneratedLanguage::c;
  throw UsageError("--language: unknown language '" + name + "'; known are c++, c");
}

void print(const GeneratedCode& code, const std::string& directory) {
  std::vector<Row> rows = {{"function", "method", "mul", "add", "div", "sqrt", "sincos", "error"}};
  for (const GeneratedCode::Function& f : code.functions) {
    const OperationCount& c = f.operations;
    rows.push_back({f.name, f.method, std::to_string(c.multiplications),
                    std::to_string(c.additions), std::to_string(c.divisions),
                    std::to_string(c.square_roots), std::to_string(c.sincos),
                    text::to_short_text(f.difference)});
  }
  print_table(std::cout, rows);
  std::cout << directory << '/' << code.header.name << '\n'
            << directory << '/' << code.source.name << '\n';
}

int run(const Options& options) {
  GenerateOptions how;
  how.functions = text::split(options.functions);
  how.scalar = parse_scalar(options.scalar);
  how.language = parse_language(options.language);
  how.name = options.name;
  how.payload_links = options.payload_links;
  how.gravity = options.gravity;
  how.link = options.link;
  how.version = RD_VERSION;
  const GeneratedCode code = generate(load_robot(options.robot), how);
  write(code, options.directory);
  print(code, options.directory);
  return 0;
}

}  // namespace

Subcommand add_generate(CLI::App& program) {
  CLI::App* app = program.add_subcommand("generate", "Write C or C++ code for one robot");
  app->footer(
      "A header and a source that depend on nothing, many times faster than the general\n"
      "algorithms. `error` in the table is the largest difference from their results,\n"
      "relative to the largest.\n\n"
      "Example: dynamics generate robot.urdf --functions inverse_dynamics,gravity -o src");
  const auto options = std::make_shared<Options>();
  app->add_option("ROBOT", options->robot.file, "URDF or Denavit-Hartenberg file (YAML or JSON)")
      ->required();
  app->add_option("--functions", options->functions,
                  "Of " + text::joined(generated_functions(), ",\n") + " (default: all)")
      ->type_name("A,B,...");
  app->add_option("--scalar", options->scalar,
                  "double, float, or lanes: several configurations at once")
      ->capture_default_str();
  app->add_option("--language", options->language, "c++ or c")->capture_default_str();
  app->add_option("-o,--output", options->directory, "The directory of both files")
      ->type_name("DIR")
      ->capture_default_str();
  app->add_option("--name", options->name, "Of files and functions (default: the robot's)");
  app->add_option("--link", options->link,
                  "Whose Jacobian (default: the last link that the last joint moves)");
  app->add_option("--payload", options->payload_links,
                  "The load on this link becomes an argument (repeatable)")
      ->expected(1)
      ->type_name("LINK")
      ->take_all();
  app->add_flag("--gravity", options->gravity, "Gravity becomes an argument");
  const char* const group = "Robot";
  app->add_flag("--floating-base", options->robot.floating_base, "Let the root link float freely")
      ->group(group);
  app->add_option("--joints", options->robot.joints,
                  "Only these joints move, the others are locked")
      ->group(group)
      ->type_name("A,B,...");
  const auto repeatable = [&](const char* option, std::vector<std::string>& values,
                              const char* text) {
    app->add_option(option, values, text)
        ->group(group)
        ->expected(1)
        ->type_name("JOINT=VALUE")
        ->take_all();
  };
  repeatable("--locked", options->robot.locked, "Hold a joint at a position (repeatable)");
  repeatable("--rotor-inertia", options->robot.rotor_inertia,
             "Inertia of a motor's rotor, kg m^2 (repeatable)");
  repeatable("--gear-ratio", options->robot.gear_ratio, "Motor turns per joint turn (repeatable)");
  return {app, [options] { return run(*options); }};
}

}  // namespace dynamics_core::tools
