/// `dynamics eval` on real robots, against values of an independent library (Pinocchio 3.7), for
/// every family of algorithms. The robots lie outside the project; without them the test is
/// skipped.

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "support/command.hpp"

namespace {

using nlohmann::json;

std::vector<std::string> robots() {
  std::vector<std::string> names;
  const std::filesystem::path directory = std::string(RD_SHARED_DIR) + "/robots";
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(directory, absent))
    if (entry.path().extension() == ".jsonl") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
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

void compare(const std::string& robot, const std::string& method) {
  const std::string path = std::string(RD_SHARED_DIR) + "/robots/" + robot;
  const bool humanoid = robot == "talos_reduced" || robot == "simple_humanoid";
  const double tolerance = humanoid ? 1e-8 : 1e-9;
  const auto references = support::json_lines(support::read_file(path + ".jsonl"));
  const auto outcome = support::run_dynamics(
      "eval " + path + ".urdf" + (method.empty() ? "" : " --method " + method),
      input_of(references));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto results = support::json_lines(outcome.out);
  ASSERT_EQ(results.size(), references.size());
  const auto info = json::parse(support::run_dynamics("info --json " + path + ".urdf").out);
  const bool refuses = needs_independent_joints(method) && !info["mimics"].empty();
  for (std::size_t i = 0; i < results.size(); ++i) {
    SCOPED_TRACE(robot + " " + method + " state " + std::to_string(i));
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

class CliReference : public testing::TestWithParam<std::string> {};

TEST_P(CliReference, AgreesOnEveryRobot) {
  if (robots().empty()) GTEST_SKIP() << "no reference robots here";
  for (const std::string& robot : robots()) compare(robot, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Methods, CliReference,
                         testing::Values("", "newton_euler", "denoc", "gibbs_appell",
                                         "articulated_body", "udut", "cholesky"),
                         [](const auto& method) {
                           return method.param.empty() ? "default" : method.param;
                         });

}  // namespace
