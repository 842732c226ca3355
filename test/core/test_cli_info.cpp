// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "support/command.hpp"

namespace {

using nlohmann::json;
using support::Outcome;
using support::run_dynamics;
using testing::HasSubstr;
using testing::Not;

class CliInfo : public testing::Test {
 protected:
  support::TemporaryDirectory files;
  std::string arm = files.write("arm.urdf", support::two_link_arm);
  std::string gripper = files.write("gripper.urdf", support::mimic_gripper);
};

TEST_F(CliInfo, ShowsJointsInOrder) {
  const Outcome outcome = run_dynamics("info " + arm);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, HasSubstr("Degrees of freedom  2"));
  EXPECT_LT(outcome.out.find(" shoulder "), outcome.out.find(" elbow "));
  EXPECT_THAT(outcome.out, HasSubstr("3.5 kg"));
  EXPECT_THAT(outcome.out, HasSubstr("continuous"));
}

TEST_F(CliInfo, JsonIsComplete) {
  const Outcome outcome = run_dynamics("info --json " + arm);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json info = json::parse(outcome.out);
  EXPECT_EQ(info["name"], "two_link");
  EXPECT_EQ(info["nq"], 2);
  EXPECT_EQ(info["nv"], 2);
  ASSERT_EQ(info["joints"].size(), 2U);
  const json& shoulder = info["joints"][0];
  EXPECT_EQ(shoulder["name"], "shoulder");
  EXPECT_EQ(shoulder["type"], "revolute");
  EXPECT_EQ(shoulder["parent"], "base");
  EXPECT_EQ(shoulder["child"], "upper");
  EXPECT_EQ(shoulder["lower"], -2.0);
  EXPECT_EQ(shoulder["upper"], 2.0);
  EXPECT_EQ(shoulder["velocity"], 3.0);
  EXPECT_EQ(shoulder["effort"], 40.0);
  EXPECT_EQ(shoulder["damping"], 0.2);
  EXPECT_EQ(shoulder["friction"], 0.1);
  EXPECT_EQ(shoulder["rotor_inertia"], 0.0);
  EXPECT_TRUE(info["joints"][1]["upper"].is_null());
  ASSERT_EQ(info["links"].size(), 4U);
  EXPECT_EQ(info["links"][0]["joint"], nullptr);
  EXPECT_EQ(info["links"][3]["name"], "tool");
  EXPECT_EQ(info["links"][3]["joint"], "elbow");
  EXPECT_EQ(info["total_mass"], 3.5);
  // Masses of 2 kg at 0.5 m and of 1.5 kg at 0.9 m.
  EXPECT_NEAR(info["center_of_mass"][0], (2 * 0.5 + 1.5 * 0.9) / 3.5, 1e-15);
  EXPECT_EQ(info["gravity"], json({0.0, 0.0, -9.81}));
  EXPECT_TRUE(info["warnings"].is_array());
}

TEST_F(CliInfo, ShowsMimicJoints) {
  EXPECT_THAT(run_dynamics("info " + gripper).out, HasSubstr("Mimic joints"));
  const json info = json::parse(run_dynamics("info --json " + gripper).out);
  ASSERT_EQ(info["joints"].size(), 1U);
  EXPECT_EQ(info["mimics"], json::array({{{"name", "right_slide"},
                                          {"joint", "left_slide"},
                                          {"multiplier", -2.0},
                                          {"offset", 0.0}}}));
}

TEST_F(CliInfo, OptionsAlterTheRobot) {
  const json info = json::parse(
      run_dynamics("info --json --locked shoulder=0.5 --gravity -1,0,2.5 --payload tool,2,0,0,0.1 "
                   "--damping elbow=0.7 --friction elbow=0.3 --rotor-inertia elbow=1e-4 "
                   "--gear-ratio elbow=100 " +
                   arm)
          .out);
  ASSERT_EQ(info["joints"].size(), 1U);
  const json& elbow = info["joints"][0];
  EXPECT_EQ(elbow["name"], "elbow");
  EXPECT_EQ(elbow["damping"], 0.7);
  EXPECT_EQ(elbow["friction"], 0.3);
  EXPECT_EQ(elbow["rotor_inertia"], 1e-4);
  EXPECT_EQ(elbow["gear_ratio"], 100.0);
  EXPECT_EQ(info["gravity"], json({-1.0, 0.0, 2.5}));
  EXPECT_EQ(info["total_mass"], 5.5);
  EXPECT_EQ(info["moving_mass"], 3.5);
  EXPECT_EQ(info["links"][3]["payload"], 2.0);

  const json subset = json::parse(run_dynamics("info --json --joints shoulder " + arm).out);
  ASSERT_EQ(subset["joints"].size(), 1U);
  EXPECT_EQ(subset["joints"][0]["name"], "shoulder");

  const json floating = json::parse(run_dynamics("info --json --floating-base " + arm).out);
  EXPECT_EQ(floating["nq"], 9);
  EXPECT_EQ(floating["nv"], 8);
  EXPECT_EQ(floating["joints"][0]["type"], "floating");
}

TEST_F(CliInfo, CheckSaysOkInOneLine) {
  const Outcome outcome = run_dynamics("check " + gripper);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out, gripper + ": OK, 1 joint, 1 degree of freedom, 3 links, 0 warnings\n");
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST_F(CliInfo, CheckWarnsOrRefusesWhatIsOdd) {
  const std::string odd =
      files.write("odd.urdf", replaced(support::two_link_arm, "0 1 0", "0 2 0"));
  const Outcome lenient = run_dynamics("check " + odd);
  EXPECT_EQ(lenient.code, 0);
  EXPECT_THAT(lenient.out, HasSubstr(": OK"));
  EXPECT_THAT(lenient.out, HasSubstr("\nwarning: "));
  EXPECT_THAT(lenient.out, HasSubstr("shoulder"));
  EXPECT_THAT(run_dynamics("info " + odd).out, HasSubstr("\nWarnings\n"));

  const Outcome strict = run_dynamics("check --strict " + odd);
  EXPECT_EQ(strict.code, 1);
  EXPECT_EQ(strict.out, "");
  EXPECT_THAT(strict.err, HasSubstr("shoulder"));
}

TEST_F(CliInfo, ModelErrorsAreOneLineAndExitOne) {
  const std::string bad = files.write(
      "bad.urdf", replaced(support::two_link_arm, "<mass value=\"2\"/>", "<mass value=\"-2\"/>"));
  const std::string empty = files.write("empty.urdf", "");
  for (const std::string& arguments :
       {"check " + bad, "info " + bad, "eval " + bad, "check " + empty,
        "check " + files.path("absent.urdf"), "check " + files.path(""),
        "info --locked nowhere=1 " + arm, "info --payload nowhere,1,0,0,0 " + arm,
        "eval --link nowhere " + arm}) {
    const Outcome outcome = run_dynamics(arguments);
    EXPECT_EQ(outcome.code, 1) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_EQ(support::lines_of(outcome.err).size(), 1U) << arguments << '\n' << outcome.err;
    EXPECT_THAT(outcome.err, testing::StartsWith("dynamics: ")) << arguments;
  }
  EXPECT_THAT(run_dynamics("check " + bad).err, HasSubstr("upper"));
}

TEST_F(CliInfo, MistakesOnTheCommandLineExitTwoWithAHint) {
  for (const std::string& arguments : {std::string(),
                                       std::string("nonsense"),
                                       std::string("info"),
                                       "info --nonsense " + arm,
                                       "info --gravity 1,2 " + arm,
                                       "info --gravity 1,2,x " + arm,
                                       "info --gravity 1,2,nan " + arm,
                                       "info --gravity 1,2,1e999 " + arm,
                                       "info --gravity , " + arm,
                                       "info --locked shoulder " + arm,
                                       "info --locked =1 " + arm,
                                       "info --locked elbow=1 --locked elbow=2 " + arm,
                                       "info --locked elbow= " + arm,
                                       "info --payload tool,1,2 " + arm,
                                       "info --payload tool " + arm,
                                       "info --payload tool,-1,0,0,0 " + arm,
                                       "info --payload tool,1,0,0,0,1,0,0,0.1,0,0.1 " + arm,
                                       "info --payload tool,1,0,0,0 --payload tool,1,0,0,0 " + arm,
                                       "info " + arm + " " + arm,
                                       "eval --method nonsense " + arm,
                                       "eval --compute M,nonsense " + arm}) {
    const Outcome outcome = run_dynamics(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_THAT(outcome.err, HasSubstr("--help")) << arguments;
  }
  EXPECT_THAT(run_dynamics("nonsense").err, HasSubstr("'nonsense'"));
  EXPECT_THAT(run_dynamics("info --gravity 1,2,x " + arm).err, HasSubstr("'x'"));
  EXPECT_THAT(run_dynamics("info --payload tool,1,0,0,0,1,0,0,0.1,0,0.1 " + arm).err,
              HasSubstr("no principal moment negative or above the sum of the others"));
}

TEST_F(CliInfo, HelpAndVersion) {
  EXPECT_THAT(run_dynamics("--version").out,
              testing::ContainsRegex("^dynamics [0-9.]+, instructions: [a-z0-9-]+\n$"));
  EXPECT_EQ(run_dynamics("--version").code, 0);
  EXPECT_THAT(run_dynamics("--help").out, HasSubstr("simulate"));
  for (const std::string command : {"info", "check", "eval", "simulate", "count"}) {
    const Outcome outcome = run_dynamics(command + " --help");
    EXPECT_EQ(outcome.code, 0) << command;
    EXPECT_EQ(outcome.err, "") << command;
    EXPECT_THAT(outcome.out, HasSubstr("Usage: dynamics " + command)) << command;
    EXPECT_THAT(outcome.out, HasSubstr("Example: ")) << command;
  }
}

TEST_F(CliInfo, SaysSoWhenTheOutputCannotBeWritten) {
  const Outcome outcome = run_dynamics("info " + arm + " >/dev/full; echo $?");
  EXPECT_EQ(outcome.out, "1\n");
  EXPECT_THAT(outcome.err, HasSubstr("cannot write"));
  for (const std::string request : {"--help", "--version", "info --help"})
    EXPECT_EQ(run_dynamics(request + " >/dev/full; echo $?").out, "1\n") << request;
}

TEST_F(CliInfo, AReaderThatLeavesIsNoError) {
  const Outcome outcome = run_dynamics("info " + arm + " | head -n 1");
  EXPECT_EQ(support::lines_of(outcome.out).size(), 1U);
  EXPECT_EQ(outcome.err, "");
}

}  // namespace
