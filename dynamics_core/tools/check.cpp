// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "common.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core::tools {

namespace {

[[nodiscard]] std::string counted(std::size_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

int check(const RobotOptions& options) {
  const Model model = load_robot(options);
  const Dynamics<double> robot = make_dynamics(model, options);
  const LoopSet loops = load_loops(model, options);
  std::cout << options.file << ": OK, " << counted(model.joints.size(), "joint") << ", "
            << counted(static_cast<std::size_t>(model.nv), "degree") << " of freedom, "
            << counted(model.links.size(), "link") << ", "
            << (loops.empty() ? "" : counted(loops.size(), "loop joint") + ", ")
            << counted(model.warnings.size(), "warning") << '\n';
  for (const std::string& warning : model.warnings)
    std::cout << "warning: " << text::printable(warning) << '\n';
  return 0;
}

}  // namespace

Subcommand add_check(CLI::App& program) {
  CLI::App* app = program.add_subcommand("check", "Say whether a robot loads, and what is odd");
  app->footer(
      "Exits with 0 if the robot loads, with 1 and a message on stderr if not. With --strict "
      "every\n"
      "warning is an error.\n\nExample: dynamics check robot.urdf --strict");
  const auto options = std::make_shared<RobotOptions>();
  add_robot_options(*app, *options);
  return {app, [options] { return check(*options); }};
}

}  // namespace dynamics_core::tools
