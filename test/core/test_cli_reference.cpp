// SPDX-License-Identifier: Apache-2.0
/// `dynamics eval` against values of an independent library (Pinocchio 3.7), for every family of
/// algorithms: on the robots in config/robots, whose values are in test/assets/reference, and on a
/// collection of foreign robots where one lies beside the project.

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "dynamics_core/instruction_set.hpp"
#include "support/command.hpp"

namespace {

using nlohmann::json;

const std::string shipped_robots = std::string(RD_SOURCE_DIR) + "/config/robots";
const std::string shipped_values = std::string(RD_SOURCE_DIR) + "/test/assets/reference";
const std::string foreign_robots = std::string(RD_SHARED_DIR) + "/robots";

const std::vector<std::string> methods = {
    "", "newton_euler", "denoc", "gibbs_appell", "articulated_body", "udut", "cholesky"};

/// The names, without the extension, of the files that have it; none where the directory is absent.
std::vector<std::string> names(const std::string& directory, const std::string& extension) {
  std::vector<std::string> found;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(directory, absent))
    if (entry.path().extension() == extension) found.push_back(entry.path().stem().string());
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<double> flat(const json& value) {
  if (value.is_number()) return {value.get<double>()};
  std::vector<double> numbers;
  for (const json& element : value) {
    const std::vector<double> inner = flat(element);
    numbers.insert(numbers.end(), inner.begin(), inner.end());
  }
  return numbers;
}

/// max |x − y| / max(1, max |y|)
double relative_difference(const json& value, const json& reference) {
  const std::vector<double> x = flat(value);
  const std::vector<double> y = flat(reference);
  if (x.size() != y.size()) return INFINITY;
  double difference = 0.0;
  double scale = 1.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    difference = std::max(difference, std::abs(x[i] - y[i]));
    scale = std::max(scale, std::abs(y[i]));
  }
  return difference / scale;
}

std::string input_of(const std::vector<json>& references) {
  std::string input;
  for (const json& r : references)
    input += json({{"joints", r["joints"]},
                   {"q", r["q"]},
                   {"v", r["v"]},
                   {"a", r["a"]},
                   {"tau", r["tau_in"]}})
                 .dump() +
             "\n";
  return input;
}

void expect_near(const json& result, const json& reference, const char* key, double tolerance) {
  ASSERT_TRUE(result.contains(key)) << key << ": " << result.value("error", "");
  ASSERT_EQ(result[key].is_null(), reference[key].is_null()) << key;
  if (!reference[key].is_null()) {
    EXPECT_LE(relative_difference(result[key], reference[key]), tolerance) << key;
  }
}

/// These factorise M without forming it, which mimic joints rule out.
bool needs_independent_joints(const std::string& method) {
  return method == "articulated_body" || method == "udut";
}

void compare(const std::string& urdf, const std::string& values, const std::string& method,
             double tolerance) {
  const auto references = support::json_lines(support::read_file(values));
  ASSERT_FALSE(references.empty()) << values << " has no states";
  const auto outcome = support::run_dynamics(
      "eval " + urdf + (method.empty() ? "" : " --method " + method), input_of(references));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto results = support::json_lines(outcome.out);
  ASSERT_EQ(results.size(), references.size());
  const auto info = json::parse(support::run_dynamics("info --json " + urdf).out);
  const bool refuses = needs_independent_joints(method) && !info["mimics"].empty();
  for (std::size_t i = 0; i < results.size(); ++i) {
    SCOPED_TRACE(urdf + " " + method + " state " + std::to_string(i));
    for (const char* key : {"tau", "bias", "gravity", "M"})
      expect_near(results[i], references[i], key, tolerance);
    if (refuses) {
      EXPECT_FALSE(results[i].contains("qdd"));
      EXPECT_THAT(results[i].value("error", ""), testing::HasSubstr(method));
      EXPECT_THAT(results[i].value("error", ""),
                  testing::HasSubstr(info["mimics"][0]["name"].get<std::string>()));
    } else {
      expect_near(results[i], references[i], "qdd", tolerance);
      EXPECT_FALSE(results[i].contains("error")) << results[i]["error"];
    }
  }
}

/// The shipped values are part of the project: where they are missing, nothing is proved.
TEST(CliReferenceValues, EveryRobotShippedHasEightStates) {
  const std::vector<std::string> robots = names(shipped_robots, ".urdf");
  ASSERT_THAT(robots, testing::SizeIs(testing::Ge(6)));
  EXPECT_EQ(names(shipped_values, ".jsonl"), robots);
  for (const std::string& robot : robots) {
    SCOPED_TRACE(robot);
    const auto info = json::parse(
        support::run_dynamics("info --json " + shipped_robots + "/" + robot + ".urdf").out);
    const auto states =
        support::json_lines(support::read_file(shipped_values + "/" + robot + ".jsonl"));
    EXPECT_EQ(states.size(), 8U);
    for (const json& state : states) {
      EXPECT_EQ(state["joints"].size(), info["joints"].size());
      for (const char* key : {"tau", "bias", "gravity", "qdd"})
        EXPECT_EQ(flat(state[key]).size(), state["joints"].size()) << key;
      EXPECT_EQ(flat(state["M"]).size(), state["joints"].size() * state["joints"].size());
    }
  }
}

void compare_shipped_robots(const std::string& method) {
  const std::vector<std::string> robots = names(shipped_robots, ".urdf");
  ASSERT_FALSE(robots.empty()) << shipped_robots;
  for (const std::string& robot : robots)
    compare(shipped_robots + "/" + robot + ".urdf", shipped_values + "/" + robot + ".jsonl", method,
            1e-12);
}

class CliReference : public testing::TestWithParam<std::string> {};

TEST_P(CliReference, AgreesOnEveryRobotShipped) { compare_shipped_robots(GetParam()); }

/// The algorithms compiled for each set of instructions that this processor has.
TEST(CliReferenceInstructions, AgreeOnEveryRobotShipped) {
  const std::vector<std::string> sets = dynamics_core::instruction_sets();
  ASSERT_FALSE(sets.empty());
  for (const std::string& set : sets) {
    SCOPED_TRACE(set);
    setenv("DYNAMICS_ISA", set.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): there is one thread
    EXPECT_THAT(support::run_dynamics("info --version").out,
                testing::EndsWith("instructions: " + set + "\n"));
    for (const std::string& method : methods) compare_shipped_robots(method);
  }
  unsetenv("DYNAMICS_ISA");  // NOLINT(concurrency-mt-unsafe)
}

TEST(CliReferenceInstructions, AreRefusedWhereTheProcessorHasNone) {
  setenv("DYNAMICS_ISA", "pdp-11", 1);  // NOLINT(concurrency-mt-unsafe): there is one thread
  const auto outcome = support::run_dynamics("eval " + shipped_robots + "/ur5e.urdf");
  unsetenv("DYNAMICS_ISA");  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, testing::HasSubstr("DYNAMICS_ISA = 'pdp-11': name one of "));
  EXPECT_THAT(outcome.err, testing::HasSubstr(dynamics_core::instruction_sets().front()));
}

INSTANTIATE_TEST_SUITE_P(Methods, CliReference, testing::ValuesIn(methods), [](const auto& method) {
  return method.param.empty() ? "default" : method.param;
});

/// More robots as the world has them, where there are any.
TEST(CliReferenceForeign, AgreesOnEveryRobotBesideTheProject) {
  const std::vector<std::string> robots = names(foreign_robots, ".jsonl");
  if (robots.empty()) GTEST_SKIP() << "no collection of foreign robots here";
  for (const std::string& robot : robots) {
    const bool humanoid = robot == "talos_reduced" || robot == "simple_humanoid";
    for (const std::string& method : methods)
      compare(foreign_robots + "/" + robot + ".urdf", foreign_robots + "/" + robot + ".jsonl",
              method, humanoid ? 1e-8 : 1e-9);
  }
}

}  // namespace
