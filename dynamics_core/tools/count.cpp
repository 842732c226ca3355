// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common.hpp"
#include "dynamics_core/operation_counts.hpp"

namespace dynamics_core::tools {

namespace {

using Json = nlohmann::ordered_json;

constexpr int most_joints = 64;

struct CountOptions {
  RobotOptions robot;
  std::optional<int> joints;
  bool json = false;
};

[[nodiscard]] Json to_json(const OperationCount& count) {
  return {{"multiplications", count.multiplications},
          {"additions", count.additions},
          {"divisions", count.divisions},
          {"square_roots", count.square_roots},
          {"sincos", count.sincos}};
}

[[nodiscard]] Json to_json(const std::optional<Formula>& formula) {
  return formula ? Json(formula->text()) : Json(nullptr);
}

[[nodiscard]] std::string text(const std::optional<Formula>& formula) {
  return formula ? formula->text() : "-";
}

// --- one robot -----------------------------------------------------------------------------------

[[nodiscard]] Json to_json(const std::vector<MethodCount>& counts) {
  Json array = Json::array();
  for (const MethodCount& row : counts) {
    Json json = {{"quantity", row.quantity}, {"method", row.method}};
    json.update(to_json(row.count));
    array.push_back(json);
  }
  return array;
}

void print(const std::vector<MethodCount>& counts) {
  std::vector<Row> rows = {{"quantity", "method", "mul", "add", "div", "sqrt", "sincos"}};
  for (const MethodCount& row : counts) {
    const OperationCount& c = row.count;
    rows.push_back({row.quantity, row.method, std::to_string(c.multiplications),
                    std::to_string(c.additions), std::to_string(c.divisions),
                    std::to_string(c.square_roots), std::to_string(c.sincos)});
  }
  print_table(std::cout, rows);
}

// --- formulas ------------------------------------------------------------------------------------

[[nodiscard]] Json to_json(const FormulaRow& row) {
  Json json = {{"quantity", row.quantity},
               {"method", row.method},
               {"multiplications", to_json(row.multiplications)},
               {"additions", to_json(row.additions)},
               {"divisions", to_json(row.divisions)},
               {"from", row.from},
               {"at_six", to_json(row.at_six)},
               {"published", nullptr}};
  if (row.published)
    json["published"] = {{"source", row.published->source},
                         {"multiplications", to_json(row.published->multiplications)},
                         {"additions", to_json(row.published->additions)},
                         {"multiplications_at_six", row.published->multiplications_at_six},
                         {"additions_at_six", row.published->additions_at_six}};
  return json;
}

void print_formulas(const std::vector<FormulaRow>& formulas) {
  std::vector<Row> rows = {{"quantity", "method", "multiplications", "additions", "divisions"}};
  for (const FormulaRow& row : formulas)
    rows.push_back({row.quantity, row.method, text(row.multiplications), text(row.additions),
                    text(row.divisions)});
  std::cout << "A general serial arm of n revolute joints\n";
  print_table(std::cout, rows);
}

void print_beside_papers(const std::vector<FormulaRow>& formulas) {
  const auto pair = [](int multiplications, int additions) {
    return std::to_string(multiplications) + " M, " + std::to_string(additions) + " A";
  };
  std::vector<Row> rows = {{"quantity", "method", "here", "paper", "source", "in general"}};
  for (const FormulaRow& row : formulas) {
    const auto& p = row.published;
    if (!p) continue;
    rows.push_back(
        {row.quantity, row.method, pair(row.at_six.multiplications, row.at_six.additions),
         pair(p->multiplications_at_six, p->additions_at_six), p->source,
         p->multiplications ? text(p->multiplications) + " M, " + text(p->additions) + " A" : ""});
  }
  std::cout << "\nBeside the papers, for n = 6\n";
  print_table(std::cout, rows);
}

int count(const CountOptions& options) {
  if (options.joints && !options.robot.file.empty())
    throw UsageError("give a ROBOT or --joints, not both");
  if (options.joints && (*options.joints < 1 || *options.joints > most_joints))
    throw UsageError("--joints takes a number from 1 to " + std::to_string(most_joints));
  if (options.joints || !options.robot.file.empty()) {
    const Model model = options.joints ? general_arm(*options.joints) : load_robot(options.robot);
    const std::vector<MethodCount> counts = count_operations(model);
    if (options.json) {
      std::cout << to_json(counts).dump(2) << '\n';
    } else {
      print(counts);
    }
    return 0;
  }
  const std::vector<FormulaRow> formulas = operation_formulas();
  if (!options.json) {
    print_formulas(formulas);
    print_beside_papers(formulas);
    return 0;
  }
  Json array = Json::array();
  for (const FormulaRow& row : formulas) array.push_back(to_json(row));
  std::cout << array.dump(2) << '\n';
  return 0;
}

}  // namespace

Subcommand add_count(CLI::App& program) {
  CLI::App* app = program.add_subcommand("count", "Count multiplications and additions");
  app->footer(
      "Without ROBOT and --joints: formulas in the number n of joints of a general serial arm,\n"
      "beside those of the papers. Operations with constants of the robot that are zero or one\n"
      "are not counted, nor what can be computed before the motion.\n\n"
      "Example: dynamics count --joints 6");
  const auto options = std::make_shared<CountOptions>();
  app->add_option("ROBOT", options->robot.file, "URDF or Denavit-Hartenberg file (YAML or JSON)");
  app->add_option("--joints", options->joints, "A general serial arm of N revolute joints")
      ->type_name("N");
  app->add_flag("--floating-base", options->robot.floating_base, "Let the root link float freely");
  app->add_option("--locked", options->robot.locked, "Hold a joint at a position (repeatable)")
      ->expected(1)
      ->type_name("JOINT=VALUE")
      ->take_all();
  app->add_flag("--json", options->json, "Print everything as one JSON array");
  return {app, [options] { return count(*options); }};
}

}  // namespace dynamics_core::tools
