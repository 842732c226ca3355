// SPDX-License-Identifier: Apache-2.0
/// The `dynamics` command: rigid-body dynamics of a robot from the shell.

#include <cerrno>
#include <cstring>
#include <exception>
#include <iostream>

#include "common.hpp"
#include "dynamics_core/config_error.hpp"
#include "dynamics_core/instruction_set.hpp"

namespace {

using dynamics_core::tools::Subcommand;
using dynamics_core::tools::UsageError;

constexpr int failure = 1;
constexpr int misuse = 2;

int report(const std::string& message) {
  std::cerr << "dynamics: " << message << '\n';
  return failure;
}

int report_misuse(const std::string& message, const std::string& command) {
  std::cerr << "dynamics: " << message << "\nTry `dynamics " << command
            << (command.empty() ? "" : " ") << "--help`.\n";
  return misuse;
}

int run(const Subcommand& command) {
  try {
    const int code = command.run();
    std::cout.flush();
    if (std::cout) return code;
    // A reader that has seen enough and closed its end is no error worth a message.
    return errno == EPIPE ? failure
                          : report("cannot write the output: " + std::string(std::strerror(errno)));
  } catch (const UsageError& error) {
    return report_misuse(error.what(), command.app->get_name());
  } catch (const std::exception& error) {  // ModelError and the like
    return report(error.what());
  }
}

/// Why a command that the documents name is not there.
std::string left_out([[maybe_unused]] const std::string& command) {
#ifndef RD_HAVE_IDENTIFICATION
  if (command == "excite" || command == "identify" || command == "validate")
    return "; this program was built without Ceres (libceres-dev)";
#endif
  return {};
}

/// CLI11 would only say that a subcommand is required.
std::string explain(const CLI::ParseError& error, const CLI::App& program, int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "-";
  if (first[0] != '-' && program.get_subcommands().empty())
    return "there is no command '" + first + "'" + left_out(first);
  return error.what();
}

std::string chosen(const CLI::App& program) {
  const auto commands = program.get_subcommands();
  return commands.empty() ? std::string() : commands.front()->get_name();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("Rigid-body dynamics of a robot given as a URDF or a Denavit-Hartenberg table.");
  program.name("dynamics");
  const auto version = [] {
    return "dynamics " RD_VERSION ", instructions: " + dynamics_core::instruction_set();
  };
  program.require_subcommand(1);
  program.get_formatter()->column_width(34);
  program.footer("Example: dynamics info robot.urdf");

  namespace tools = dynamics_core::tools;
  std::vector<Subcommand> commands = {tools::add_info(program),    tools::add_check(program),
                                      tools::add_eval(program),    tools::add_simulate(program),
                                      tools::add_count(program),   tools::add_track(program),
                                      tools::add_generate(program)};
#ifdef RD_HAVE_IDENTIFICATION
  for (const auto add : {tools::add_excite, tools::add_identify, tools::add_validate})
    commands.push_back(add(program));
#endif
  for (CLI::App* app : program.get_subcommands({}))
    app->set_version_flag("--version", version, "Print the version and the instructions in use");
  program.set_version_flag("--version", version, "Print the version and the instructions in use");
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help, --version
    program.exit(request);
    std::cout.flush();
    return std::cout ? 0 : report("cannot write the output: " + std::string(std::strerror(errno)));
  } catch (const CLI::ParseError& error) {
    return report_misuse(explain(error, program, argc, argv), chosen(program));
  } catch (const dynamics_core::ConfigError& error) {  // an instruction set that there is not
    return report(error.what());
  }
  for (const Subcommand& command : commands)
    if (command.app->parsed()) return run(command);
  return failure;
}
