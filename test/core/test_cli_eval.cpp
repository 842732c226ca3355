// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>

#include <cmath>

#include "support/command.hpp"

namespace {

using nlohmann::json;
using support::json_lines;
using support::Outcome;
using support::run_dynamics;
using testing::HasSubstr;

constexpr double g = 9.81;
constexpr double l1 = 0.5, l2 = 0.4, m1 = 2.0, m2 = 1.5;  // of support::two_link_arm

/// The textbook equations of two point masses on rods that hinge about y; x points along the rods,
/// so a positive angle turns them down.
struct TwoLinks {
  double q1, q2, v1, v2;

  [[nodiscard]] double c2() const { return std::cos(q2); }
  [[nodiscard]] double M11() const {
    return m1 * l1 * l1 + m2 * (l1 * l1 + l2 * l2 + 2 * l1 * l2 * c2());
  }
  [[nodiscard]] double M12() const { return m2 * (l2 * l2 + l1 * l2 * c2()); }
  [[nodiscard]] double M22() const { return m2 * l2 * l2; }
  [[nodiscard]] double g1() const { return -(m1 + m2) * g * l1 * std::cos(q1) + g2(); }
  [[nodiscard]] double g2() const { return -m2 * g * l2 * std::cos(q1 + q2); }
  [[nodiscard]] double h() const { return m2 * l1 * l2 * std::sin(q2); }
  [[nodiscard]] double c1v() const { return -h() * (2 * v1 * v2 + v2 * v2); }
  [[nodiscard]] double c2v() const { return h() * v1 * v1; }
};

void expect_near(const json& value, const json& expected, double tolerance) {
  ASSERT_EQ(value.is_array(), expected.is_array()) << value << " is not " << expected;
  if (!expected.is_array()) {
    EXPECT_NEAR(value.get<double>(), expected.get<double>(), tolerance);
    return;
  }
  ASSERT_EQ(value.size(), expected.size()) << value << " is not " << expected;
  for (std::size_t i = 0; i < expected.size(); ++i) expect_near(value[i], expected[i], tolerance);
}

json product(const json& A, const json& B) {
  json C = json::array();
  for (const json& row : A) {
    json out = json::array();
    for (std::size_t j = 0; j < B[0].size(); ++j) {
      double sum = 0.0;
      for (std::size_t k = 0; k < B.size(); ++k)
        sum += row[k].get<double>() * B[k][j].get<double>();
      out.push_back(sum);
    }
    C.push_back(out);
  }
  return C;
}

class CliEval : public testing::Test {
 protected:
  std::vector<json> eval(const std::string& arguments, const std::string& input) {
    const Outcome outcome = run_dynamics("eval " + arguments, input);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return json_lines(outcome.out);
  }
  json eval_one(const std::string& arguments, const json& input) {
    const std::vector<json> records = eval(arguments, input.dump() + "\n");
    EXPECT_EQ(records.size(), 1U);
    return records.at(0);
  }

  support::TemporaryDirectory files;
  std::string arm = files.write("arm.urdf", support::two_link_arm);
  std::string gripper = files.write("gripper.urdf", support::mimic_gripper);
  std::string four_bar = files.write("four_bar.urdf", support::parallelogram) + " --loops " +
                         files.write("four_bar.yaml", support::parallelogram_loops);
};

TEST_F(CliEval, TwoLinkArmInClosedForm) {
  const TwoLinks x{0.3, -1.1, 0.7, -0.4};
  const double a1 = 1.3, a2 = -2.1, t1 = 3.0, t2 = -1.0;
  const json out =
      eval_one(arm, {{"q", {x.q1, x.q2}}, {"v", {x.v1, x.v2}}, {"a", {a1, a2}}, {"tau", {t1, t2}}});
  EXPECT_EQ(out.size(), 5U);
  const double b1 = x.c1v() + x.g1(), b2 = x.c2v() + x.g2();
  expect_near(out["M"], {{x.M11(), x.M12()}, {x.M12(), x.M22()}}, 1e-15);
  expect_near(out["gravity"], {x.g1(), x.g2()}, 1e-14);
  expect_near(out["bias"], {b1, b2}, 1e-14);
  expect_near(out["tau"], {x.M11() * a1 + x.M12() * a2 + b1, x.M12() * a1 + x.M22() * a2 + b2},
              1e-14);
  const double det = x.M11() * x.M22() - x.M12() * x.M12();
  const double r1 = t1 - b1, r2 = t2 - b2;
  expect_near(out["qdd"],
              {(x.M22() * r1 - x.M12() * r2) / det, (x.M11() * r2 - x.M12() * r1) / det}, 1e-12);
}

TEST_F(CliEval, PrintedNumbersLoseNothing) {
  const json state = {{"q", {0.1, 0.2}}, {"v", {1.0 / 3.0, -0.7}}, {"a", {0.9, 1e-3}}};
  json back = state;
  back["tau"] = eval_one(arm + " --compute tau", state)["tau"];
  expect_near(eval_one(arm + " --compute qdd", back)["qdd"], state["a"], 1e-13);
}

TEST_F(CliEval, JointsGiveTheOrderOfEverything) {
  const json straight = eval_one(arm + " --compute tau,bias,gravity,M,qdd,C,Minv,jacobian,friction",
                                 {{"joints", {"shoulder", "elbow"}},
                                  {"q", {0.3, 0.4}},
                                  {"v", {1, 2}},
                                  {"a", {3, 4}},
                                  {"tau", {5, 6}}});
  const json turned = eval_one(arm + " --compute tau,bias,gravity,M,qdd,C,Minv,jacobian,friction",
                               {{"joints", {"elbow", "shoulder"}},
                                {"q", {0.4, 0.3}},
                                {"v", {2, 1}},
                                {"a", {4, 3}},
                                {"tau", {6, 5}}});
  for (const char* key : {"tau", "bias", "gravity", "qdd", "friction"}) {
    EXPECT_EQ(straight[key][0], turned[key][1]) << key;
    EXPECT_EQ(straight[key][1], turned[key][0]) << key;
    EXPECT_NE(straight[key][0], straight[key][1]) << key;
  }
  for (const char* key : {"M", "C", "Minv"})
    for (std::size_t i : {0U, 1U})
      for (std::size_t j : {0U, 1U})
        EXPECT_EQ(straight[key][i][j], turned[key][1 - i][1 - j]) << key;
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t j : {0U, 1U})
      EXPECT_EQ(straight["jacobian"][i][j], turned["jacobian"][i][1 - j]);
}

TEST_F(CliEval, WhatIsAbsentIsZero) {
  const auto records = eval(arm, R"({"q": [0.3, 0.4]}
{"q": [0.3, 0.4], "v": [0, 0], "a": [0, 0], "tau": [0, 0], "external": {}}
{"q": [0.3, 0.4], "v": null, "a": null, "tau": null, "external": null, "gravity": null}
)");
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0], records[1]);
  EXPECT_EQ(records[0], records[2]);
  EXPECT_EQ(records[0]["bias"], records[0]["gravity"]);
}

TEST_F(CliEval, GravityOfALineIsItsOwn) {
  const auto records = eval(arm + " --compute gravity", R"({"q": [0.3, 0.4]}
{"q": [0.3, 0.4], "gravity": [0, 0, 0]}
{"q": [0.3, 0.4], "gravity": [0, 0, -19.62]}
{"q": [0.3, 0.4]}
)");
  ASSERT_EQ(records.size(), 4U);
  expect_near(records[1]["gravity"], {0.0, 0.0}, 0.0);
  for (std::size_t i : {0U, 1U})
    EXPECT_NEAR(records[2]["gravity"][i].get<double>(),
                2.0 * records[0]["gravity"][i].get<double>(), 1e-14);
  EXPECT_EQ(records[3], records[0]);
}

TEST_F(CliEval, ExternalForces) {
  // Straight out along x, a force f along z at the tool works against lever arms of 0.9 and 0.4 m.
  const json still = eval_one(arm, {{"q", {0.0, 0.0}}});
  const json pushed =
      eval_one(arm, {{"q", {0.0, 0.0}}, {"external", {{"tool", {0.0, 0.0, 0.0, 0.0, 0.0, 10.0}}}}});
  expect_near(pushed["tau"],
              {still["tau"][0].get<double>() + 9.0, still["tau"][1].get<double>() + 4.0}, 1e-14);
  EXPECT_EQ(pushed["bias"], still["bias"]);
  // The forward dynamics feels the same force: balanced, nothing moves.
  const json balanced = eval_one(arm, {{"q", {0.0, 0.0}},
                                       {"tau", pushed["tau"]},
                                       {"external", {{"tool", {0.0, 0.0, 0.0, 0.0, 0.0, 10.0}}}}});
  expect_near(balanced["qdd"], {0.0, 0.0}, 1e-13);
}

TEST_F(CliEval, ComputesOnRequest) {
  const TwoLinks x{0.3, -1.1, 0.7, -0.4};
  const json out = eval_one(arm + " --compute C,Minv,jacobian,energy,friction,M --link tool",
                            {{"q", {x.q1, x.q2}}, {"v", {x.v1, x.v2}}});
  EXPECT_FALSE(out.contains("tau"));
  expect_near(product(out["C"], {{x.v1}, {x.v2}}), {{x.c1v()}, {x.c2v()}}, 1e-15);
  expect_near(product(out["Minv"], out["M"]), {{1.0, 0.0}, {0.0, 1.0}}, 1e-14);
  const double s1 = std::sin(x.q1), c1 = std::cos(x.q1);
  const double s12 = std::sin(x.q1 + x.q2), c12 = std::cos(x.q1 + x.q2);
  EXPECT_EQ(out["link"], "tool");
  expect_near(out["jacobian"],
              {{0.0, 0.0},
               {1.0, 1.0},
               {0.0, 0.0},
               {-l1 * s1 - l2 * s12, -l2 * s12},
               {0.0, 0.0},
               {-l1 * c1 - l2 * c12, -l2 * c12}},
              1e-15);
  const double kinetic =
      0.5 * (x.M11() * x.v1 * x.v1 + 2 * x.M12() * x.v1 * x.v2 + x.M22() * x.v2 * x.v2);
  EXPECT_NEAR(out["energy"]["kinetic"], kinetic, 1e-15);
  EXPECT_NEAR(out["energy"]["potential"], -g * ((m1 + m2) * l1 * s1 + m2 * l2 * s12), 1e-14);
  // Damping 0.2, Coulomb friction 0.1 whose sign is smooth below 1 mm/s.
  expect_near(out["friction"], {0.2 * x.v1 + 0.1 * x.v1 / std::hypot(x.v1, 1e-3), 0.0}, 1e-15);
}

/// ∂τ₂/∂v₁ = 2 h v₁ and ∂τ₂/∂v₂ = 0; ∂g₂/∂q₁ = ∂g₂/∂q₂; and what a turn of the first joint does to
/// the efforts is what it does to gravity's.
TEST_F(CliEval, DerivativesInClosedForm) {
  const TwoLinks x{0.3, -1.1, 0.7, -0.4};
  const json state = {{"q", {x.q1, x.q2}}, {"v", {x.v1, x.v2}}};
  const json out = eval_one(arm + " --compute tau_derivatives,qdd_derivatives,M,qdd", state);
  const json& of_tau = out["tau_derivatives"];
  expect_near(of_tau["a"], out["M"], 1e-15);
  expect_near(of_tau["v"],
              {{-2.0 * x.h() * x.v2, -2.0 * x.h() * (x.v1 + x.v2)}, {2.0 * x.h() * x.v1, 0.0}},
              1e-14);
  const double slope2 = m2 * g * l2 * std::sin(x.q1 + x.q2);
  const double slope1 = (m1 + m2) * g * l1 * std::sin(x.q1) + slope2;
  const double centrifugal = m2 * l1 * l2 * x.c2();
  EXPECT_NEAR(of_tau["q"][0][0].get<double>(), slope1, 1e-13);
  EXPECT_NEAR(of_tau["q"][1][0].get<double>(), slope2, 1e-13);
  EXPECT_NEAR(of_tau["q"][0][1].get<double>(),
              slope2 - centrifugal * (2 * x.v1 * x.v2 + x.v2 * x.v2), 1e-13);
  EXPECT_NEAR(of_tau["q"][1][1].get<double>(), slope2 + centrifugal * x.v1 * x.v1, 1e-13);
  // M ∂q̈/∂v = −∂τ/∂v, and M ∂q̈/∂τ = 1.
  const json& of_qdd = out["qdd_derivatives"];
  expect_near(product(out["M"], of_qdd["tau"]), {{1.0, 0.0}, {0.0, 1.0}}, 1e-13);
  const json back = product(out["M"], of_qdd["v"]);
  for (std::size_t i : {0U, 1U})
    for (std::size_t j : {0U, 1U})
      EXPECT_NEAR(back[i][j].get<double>(), -of_tau["v"][i][j].get<double>(), 1e-12);
  // The order of the joints is that of rows and columns.
  json turned = {{"joints", {"elbow", "shoulder"}}, {"q", {x.q2, x.q1}}, {"v", {x.v2, x.v1}}};
  const json swapped = eval_one(arm + " --compute tau_derivatives", turned)["tau_derivatives"];
  EXPECT_EQ(swapped["q"][0][1], of_tau["q"][1][0]);
  EXPECT_EQ(swapped["v"][1][0], of_tau["v"][0][1]);
  // A closed loop has forces that these know nothing of.
  const json refused = eval_one(four_bar + " --compute qdd_derivatives", {{"q", {0.3, -0.3, 0.3}}});
  EXPECT_THAT(refused["error"].get<std::string>(), HasSubstr("closed loops"));
}

TEST_F(CliEval, RegressorTimesParametersIsTau) {
  const json out = eval_one(arm + " --compute tau,regressor", {{"joints", {"elbow", "shoulder"}},
                                                               {"q", {-1.1, 0.3}},
                                                               {"v", {-0.4, 0.7}},
                                                               {"a", {-2.1, 1.3}}});
  json column = json::array();
  for (const json& parameter : out["parameters"]) column.push_back({parameter});
  ASSERT_EQ(column.size(), 20U);
  ASSERT_EQ(out["regressor"].size(), 2U);
  const json product_of = product(out["regressor"], column);
  for (std::size_t i : {0U, 1U}) expect_near(product_of[i][0], out["tau"][i], 1e-14);
  const json info = json::parse(run_dynamics("info --json " + arm).out);
  ASSERT_EQ(info["parameters"].size(), 20U);
  EXPECT_EQ(info["parameters"]["m(lower)"], 1.5);
}

TEST_F(CliEval, JacobianOfAnyLink) {
  const std::string options = arm + " --compute jacobian";
  const json tip = eval_one(options, {{"q", {0.0, 0.0}}});
  EXPECT_EQ(tip["link"], "tool");
  expect_near(tip["jacobian"][5], {-0.9, -0.4}, 1e-15);
  const json elbow = eval_one(options, {{"q", {0.0, 0.0}}, {"link", "lower"}});
  EXPECT_EQ(elbow["link"], "lower");
  expect_near(elbow["jacobian"][5], {-0.5, 0.0}, 1e-15);
  const json base = eval_one(options + " --link base", {{"q", {0.0, 0.0}}});
  expect_near(base["jacobian"][5], {0.0, 0.0}, 0.0);
}

TEST_F(CliEval, MimicJointsAndMethodsThatCannotTreatThem) {
  const json input = {{"q", {0.1}}, {"tau", {26.0}}, {"gravity", {0, 0, 0}}};
  // 1 kg along, and 3 kg twice as far: 1 + 2²·3 = 13 kg.
  const json out = eval_one(gripper + " --compute M,qdd,Minv", input);
  expect_near(out["M"], {{13.0}}, 1e-15);
  expect_near(out["qdd"], {2.0}, 1e-15);
  expect_near(out["Minv"], {{1.0 / 13.0}}, 1e-15);
  for (const std::string method : {"articulated_body", "udut"}) {
    const json refused = eval_one(gripper + " --method " + method, input);
    EXPECT_THAT(refused["error"].get<std::string>(), HasSubstr(method));
    EXPECT_THAT(refused["error"].get<std::string>(), HasSubstr("'right_slide'"));
    EXPECT_FALSE(refused.contains("qdd"));
    expect_near(refused["M"], {{13.0}}, 1e-15);
  }
}

TEST_F(CliEval, EveryMethodAgrees) {
  const json input = {
      {"q", {0.3, -1.1}}, {"v", {0.7, -0.4}}, {"a", {1.3, -2.1}}, {"tau", {3.0, -1.0}}};
  const std::string compute = arm + " --compute tau,bias,gravity,M,qdd,C,Minv";
  const json expected = eval_one(compute, input);
  for (const std::string method :
       {"newton_euler", "denoc", "gibbs_appell", "articulated_body", "udut", "cholesky"}) {
    SCOPED_TRACE(method);
    const json out = eval_one(compute + " --method " + method, input);
    EXPECT_EQ(out.size(), 7U);
    for (const auto& item : expected.items()) expect_near(out[item.key()], item.value(), 1e-12);
  }
}

TEST_F(CliEval, SingularMassMatrix) {
  // Without its masses the lower link has no inertia about the elbow.
  std::string text = support::two_link_arm;
  text.replace(text.find("<mass value=\"1.5\"/>"), 19, "<mass value=\"0\"/>");
  const json out = eval_one(files.write("massless.urdf", text) +
                                " --compute tau,M,qdd,Minv,tau_derivatives,qdd_derivatives",
                            {{"q", {0.3, 0.4}}, {"a", {1, 1}}});
  EXPECT_TRUE(out["tau_derivatives"].is_object());
  EXPECT_TRUE(out.contains("qdd_derivatives") && out["qdd_derivatives"].is_null());
  EXPECT_TRUE(out["tau"].is_array());
  EXPECT_TRUE(out.contains("qdd") && out["qdd"].is_null());
  EXPECT_TRUE(out.contains("Minv") && out["Minv"].is_null());
  EXPECT_FALSE(out.contains("error"));
}

TEST_F(CliEval, FloatingBaseFalls) {
  std::string text = support::two_link_arm;
  text.replace(text.find("<link name=\"base\"/>"), 19,
               "<link name=\"base\"><inertial><mass value=\"1\"/><inertia ixx=\"1\" ixy=\"0\" "
               "ixz=\"0\" iyy=\"1\" iyz=\"0\" izz=\"1\"/></inertial></link>");
  const std::string options =
      files.write("satellite.urdf", text) + " --floating-base --compute qdd";
  // Everything falls alike, and nothing turns. A quaternion may have any length.
  const json out = eval_one(options, {{"q", {1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 2.0, 0.3, 0.4}}});
  expect_near(out["qdd"], {0.0, 0.0, 0.0, 0.0, 0.0, -g, 0.0, 0.0}, 1e-13);
  const json zero = {{"q", {0, 0, 0, 0, 0, 0, 0, 0, 0}}};
  EXPECT_THAT(eval_one(options, zero)["error"].get<std::string>(), HasSubstr("quaternion"));
  // The order of the joints moves whole groups of coordinates.
  const json turned = eval_one(arm + " --floating-base --compute tau",
                               {{"joints", {"elbow", "floating_base", "shoulder"}},
                                {"q", {0.4, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0, 0.3}}});
  const json straight = eval_one(arm + " --floating-base --compute tau",
                                 {{"q", {1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0, 0.3, 0.4}}});
  EXPECT_EQ(turned["tau"][0], straight["tau"][7]);
  EXPECT_EQ(turned["tau"][7], straight["tau"][6]);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(turned["tau"][i + 1], straight["tau"][i]);
  EXPECT_NEAR(straight["tau"][5], 3.5 * g, 1e-13);
}

TEST_F(CliEval, ClosedLoops) {
  // All three masses hang on arms of 0.5 m: a pendulum, q̈ = g/l cos q.
  const double expected = g / 0.5 * std::cos(0.3);
  const json out = eval_one(four_bar + " --compute qdd", {{"q", {0.3, -0.3, 0.3}}});
  expect_near(out["qdd"], {expected, -expected, expected}, 1e-12);
}

TEST_F(CliEval, BadLinesAreAnsweredAndTheStreamGoesOn) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "empty"},
      {"   \r", "empty"},
      {"nonsense", "not JSON"},
      {R"({"q": [0.1, 0.2])", "not JSON"},
      {R"({"q": [NaN, 0.2]})", "not JSON"},
      {R"({"q": [1e999, 0.2]})", "not JSON"},
      {"{\"q\": [0.1, 0.2], \"id\": \"\xff\"}", "not JSON"},
      {std::string(100000, '['), "nested more than 100 deep"},
      {R"({"q": [0.1, 0.2], "id": )" + std::string(100000, '[') + std::string(100000, ']') + "}",
       "nested more than 100 deep"},
      {R"({"q": [0.1, 0.2], "id": "\"[[)" + std::string(200, '[') + R"(", "v": 1})",
       "v is not an array"},
      {"[0.1, 0.2]", "not a JSON object"},
      {"17", "not a JSON object"},
      {"{}", "q is missing"},
      {R"({"v": [0.1, 0.2]})", "q is missing"},
      {R"({"q": 0.1})", "q is not an array"},
      {R"({"q": [0.1]})", "q has 1 elements instead of 2"},
      {R"({"q": [0.1, 0.2, 0.3]})", "q has 3 elements instead of 2"},
      {R"({"q": [0.1, "0.2"]})", "q[1] is not a number"},
      {R"({"q": [0.1, true]})", "q[1] is not a number"},
      {R"({"q": [0.1, null]})", "q[1] is not a number"},
      {R"({"q": [[0.1], 0.2]})", "q[0] is not a number"},
      {R"({"q": [0.1, 0.2], "v": [1]})", "v has 1 elements"},
      {R"({"q": [0.1, 0.2], "a": {}})", "a is not an array"},
      {R"({"q": [0.1, 0.2], "tau": [1, 2, 3]})", "tau has 3 elements"},
      {R"({"q": [0.1, 0.2], "gravity": [1, 2]})", "gravity has 2 elements"},
      {R"({"q": [0.1, 0.2], "gravity": -9.81})", "gravity is not an array"},
      {R"({"q": [0.1, 0.2], "velocity": [1, 2]})", "unknown key 'velocity'"},
      {R"({"q": [0.1, 0.2], "joints": ["shoulder"]})", "lacks 'elbow'"},
      {R"({"q": [0.1, 0.2], "joints": ["shoulder", "wrist"]})", "'wrist'"},
      {R"({"q": [0.1, 0.2], "joints": ["shoulder", "flange"]})", "'flange'"},
      {R"({"q": [0.1, 0.2], "joints": ["elbow", "shoulder", "elbow"]})", "'elbow' twice"},
      {R"({"q": [0.1, 0.2], "joints": "shoulder"})", "joints is not an array"},
      {R"({"q": [0.1, 0.2], "joints": [1, 2]})", "not a name"},
      {R"({"q": [0.1, 0.2], "external": [1]})", "external is not an object"},
      {R"({"q": [0.1, 0.2], "external": {"nowhere": [0, 0, 0, 0, 0, 0]}})", "'nowhere'"},
      {R"({"q": [0.1, 0.2], "external": {"tool": [0, 0, 1]}})", "3 elements instead of 6"},
      {R"({"q": [0.1, 0.2], "link": "nowhere"})", "'nowhere'"},
      {R"({"q": [0.1, 0.2], "link": 3})", "link is not a name"},
      {R"({"q": [0.1, 0.2], "v": [1e200, 1e200]})", "not finite"},
  };
  const std::string good = R"({"q": [0.1, 0.2]})";
  std::string input;
  for (const auto& [line, message] : cases) input.append(line).append("\n").append(good) += "\n";
  const auto records = eval(arm, input);
  ASSERT_EQ(records.size(), 2 * cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const json& bad = records[2 * i];
    ASSERT_TRUE(bad.contains("error")) << cases[i].first << '\n' << bad;
    EXPECT_THAT(bad["error"].get<std::string>(), HasSubstr(cases[i].second)) << cases[i].first;
    EXPECT_EQ(bad["line"], 2 * i + 1);
    EXPECT_LT(bad["error"].get<std::string>().size(), 400U);
    EXPECT_EQ(records[2 * i + 1], records[1]) << "after " << cases[i].first;
    EXPECT_FALSE(records[2 * i + 1].contains("error"));
  }
}

TEST_F(CliEval, NamesTheLeaderOfAMimicJoint) {
  const json out =
      eval_one(gripper, {{"q", {0.1, 0.2}}, {"joints", {"left_slide", "right_slide"}}});
  EXPECT_THAT(out["error"].get<std::string>(), HasSubstr("mimics 'left_slide'"));
}

TEST_F(CliEval, IdIsHandedThrough) {
  EXPECT_EQ(eval_one(arm, {{"q", {0.1, 0.2}}, {"id", {{"run", 7}}}})["id"], json({{"run", 7}}));
  EXPECT_EQ(eval_one(arm, {{"q", {0.1}}, {"id", "x"}})["id"], "x");
}

TEST_F(CliEval, LongLinesAndNoNewlineAtTheEnd) {
  const std::string line = R"({"q": [0.1, 0.2], "id": ")" + std::string(5'000'000, 'x') + R"("})";
  const auto records = eval(arm + " --compute tau", line + "\r\n" + R"({"q": [0.1, 0.2]})");
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0]["tau"], records[1]["tau"]);
}

TEST_F(CliEval, RefusesALineThatDoesNotEnd) {
  for (const std::string& arguments :
       {"eval " + arm + " --input /dev/zero", "simulate " + arm + " --torque /dev/zero"}) {
    const Outcome outcome = run_dynamics(arguments);
    EXPECT_EQ(outcome.code, 1) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr("10 MB")) << arguments;
  }
}

TEST_F(CliEval, ReadsAFile) {
  const std::string input = R"({"q": [0.1, 0.2]})";
  EXPECT_EQ(eval(arm + " --input " + files.write("states.jsonl", input), ""), eval(arm, input));
  EXPECT_EQ(eval(arm + " --input -", input), eval(arm, input));
  for (const std::string& path : {files.path("absent"), files.path("")}) {
    const Outcome outcome = run_dynamics("eval " + arm + " --input " + path);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr(path));
  }
  EXPECT_TRUE(eval(arm, "").empty());
}

/// Each answer comes before the next question is asked.
TEST_F(CliEval, ServesAsACoProcess) {
  int to_child[2];
  int from_child[2];
  ASSERT_EQ(pipe(to_child), 0);
  ASSERT_EQ(pipe(from_child), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    dup2(to_child[0], STDIN_FILENO);
    dup2(from_child[1], STDOUT_FILENO);
    close(to_child[1]);
    close(from_child[0]);
    execl(RD_DYNAMICS_EXE, "dynamics", "eval", arm.c_str(), "--compute", "gravity", nullptr);
    _exit(127);
  }
  close(to_child[0]);
  close(from_child[1]);
  const std::string question = "{\"q\": [0.1, 0.2]}\n";
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(write(to_child[1], question.data(), question.size()),
              static_cast<ssize_t>(question.size()));
    std::string answer;
    for (char c = 0; c != '\n';) {
      pollfd ready{from_child[0], POLLIN, 0};
      ASSERT_EQ(poll(&ready, 1, 30'000), 1) << "no answer";
      ASSERT_EQ(read(from_child[0], &c, 1), 1);
      answer += c;
    }
    EXPECT_TRUE(json::parse(answer).contains("gravity"));
  }
  // It ends with its input, or quietly when nobody listens any more.
  close(from_child[0]);
  ASSERT_GT(write(to_child[1], question.data(), question.size()), 0);
  close(to_child[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGPIPE : WEXITSTATUS(status) <= 1);
}

}  // namespace
