// SPDX-License-Identifier: Apache-2.0
/// Every mistake in a configuration is refused with the parameter, its value and a remedy.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "dynamics_core/control/controller.hpp"
#include "support/closed_loop.hpp"

namespace {

using namespace dynamics_core;
using namespace dynamics_core::control;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// base – joint_1 – joint_2 – joint_3, and a finger that mimics joint_3; maybe on a floating base.
Model robot(bool floating_base = false) {
  RobotDescription description = support::random_arm(1, 4);
  description.joints[3].name = "finger";
  description.joints[3].mimic = Mimic{"joint_3", 0.5, 0.0};
  description.joints[1].damping = 0.25;
  description.joints[1].friction = 0.75;
  for (int j = 0; j < 4; ++j)
    description.joints[static_cast<std::size_t>(j)].limits->effort = 10.0 + j;
  ModelOptions options;
  options.floating_base = floating_base;
  return build_model(description, options);
}

template <class Change>
std::string error_after(Change change, bool floating_base = false) {
  Config config;
  change(config);
  try {
    const Controller controller(robot(floating_base), config);
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), StartsWith(error.parameter()));
    return error.what();
  }
  return "";
}

TEST(ControlConfig, FillsInWhatIsNotGiven) {
  Config config;
  config.joints = {"joint_3", "joint_2"};
  config.gains = {{5.0, 1.0}};
  const Config out = Controller(robot(), config).config();
  ASSERT_EQ(out.gains.size(), 2U);
  EXPECT_EQ(out.gains[1].p, 5.0);
  EXPECT_EQ(out.effort_limits, (std::vector<double>{12.0, 11.0}));
  EXPECT_EQ(out.effort_rate_limits, (std::vector<double>{infinity, infinity}));
  EXPECT_EQ(out.friction[0].viscous, 0.0);
  EXPECT_EQ(out.friction[1].viscous, 0.25);
  EXPECT_EQ(out.friction[1].coulomb, 0.75);
  EXPECT_EQ(out.gravity, Eigen::Vector3d(0.0, 0.0, -9.81));
}

TEST(ControlConfig, CommandsAllJointsOfOneDegreeOfFreedomByDefault) {
  EXPECT_EQ(Controller(robot(true), {}).joints(),
            (std::vector<std::string>{"joint_1", "joint_2", "joint_3"}));
}

TEST(ControlConfig, RefusesJointsThatItCannotCommand) {
  EXPECT_THAT(error_after([](Config& c) {
                c.joints = {"joint_1", "elbow"};
              }),
              AllOf(StartsWith("joints = 'elbow'"), HasSubstr("no such"),
                    HasSubstr("'joint_1', 'joint_2', 'joint_3'")));
  EXPECT_THAT(error_after([](Config& c) { c.joints = {"finger"}; }),
              AllOf(HasSubstr("mimics 'joint_3'"), HasSubstr("name that one")));
  EXPECT_THAT(error_after([](Config& c) {
                c.joints = {"joint_1", "joint_1"};
              }),
              AllOf(HasSubstr("joints = 'joint_1'"), HasSubstr("once")));
  const Model floating = robot(true);
  const std::string base = floating.joints[0].name;
  EXPECT_THAT(error_after([&](Config& c) { c.joints = {base}; }, true),
              AllOf(HasSubstr(base), HasSubstr("floating"), HasSubstr("one degree of freedom")));
  EXPECT_THAT(error_after([](Config& c) { c.locked["elbow"] = 0.0; }),
              StartsWith("locked = 'elbow'"));
  EXPECT_THAT(error_after([](Config& c) { c.locked["joint_1"] = 0.0; }),
              AllOf(StartsWith("locked.joint_1 = 0"), HasSubstr("commanded")));
  EXPECT_THAT(error_after([](Config& c) {
                c.joints = {"joint_1"};
                c.locked["joint_2"] = nan;
              }),
              AllOf(StartsWith("locked.joint_2 = nan"), HasSubstr("finite")));
}

TEST(ControlConfig, RefusesARobotWithoutJoints) {
  RobotDescription description = support::random_arm(1, 1);
  description.joints[0].type = JointType::floating;
  const Model model = build_model(description);
  EXPECT_THROW(Controller(model, {}), ConfigError);
}

TEST(ControlConfig, RefusesListsOfTheWrongLength) {
  EXPECT_THAT(error_after([](Config& c) { c.gains.resize(2); }),
              AllOf(StartsWith("gains = list of 2"), HasSubstr("each of the 3 joints")));
  EXPECT_THAT(error_after([](Config& c) { c.friction.resize(4); }), StartsWith("friction = "));
  EXPECT_THAT(error_after([](Config& c) {
                c.effort_limits = {1.0, 2.0};
              }),
              StartsWith("effort_limits = "));
  EXPECT_THAT(error_after([](Config& c) {
                c.effort_rate_limits = {1.0, 2.0};
              }),
              StartsWith("effort_rate_limits = "));
}

TEST(ControlConfig, RefusesNumbersOutOfRange) {
  struct Row {
    const char* text;
    std::function<void(Config&)> change;
  };
  const std::vector<Row> rows = {
      {"gains.joint_1.p = -1",
       [](Config& c) {
         c.gains = {{-1.0, 0.0}};
       }},
      {"gains.joint_1.d = nan",
       [](Config& c) {
         c.gains = {{1.0, nan}};
       }},
      {"gains.joint_1.i = inf",
       [](Config& c) {
         c.gains = {{1.0, 1.0, infinity}};
       }},
      {"gains.joint_1.i_clamp = -2",
       [](Config& c) {
         c.gains = {{1.0, 1.0, 0.0, -2.0}};
       }},
      {"gains.joint_1.i = 3: mode feedforward has no integral",
       [](Config& c) {
         c.gains = {{1.0, 1.0, 3.0}};
       }},
      {"friction.joint_1.viscous = -1", [](Config& c) { c.friction = {{-1.0}}; }},
      {"friction.joint_1.coulomb = -1",
       [](Config& c) {
         c.friction = {{0.0, -1.0}};
       }},
      {"friction.joint_1.breakaway = 1",
       [](Config& c) {
         c.friction = {{0.0, 2.0, 1.0}};
       }},
      {"friction.joint_1.stribeck_velocity = 0",
       [](Config& c) {
         c.friction = {{0.0, 1.0, 2.0, 0.0}};
       }},
      {"friction.joint_1.transition = 0",
       [](Config& c) {
         c.friction = {{0.0, 1.0, 2.0, 1.0, 0.0}};
       }},
      {"effort_limits.joint_1 = 0", [](Config& c) { c.effort_limits = {0.0}; }},
      {"effort_limits.joint_1 = nan", [](Config& c) { c.effort_limits = {nan}; }},
      {"effort_rate_limits.joint_1 = -5", [](Config& c) { c.effort_rate_limits = {-5.0}; }},
      {"gravity = 0 nan 0", [](Config& c) { c.gravity = Eigen::Vector3d(0.0, nan, 0.0); }},
      {"soft_start = -1", [](Config& c) { c.soft_start = -1.0; }},
      {"reference_timeout = inf", [](Config& c) { c.reference_timeout = infinity; }},
      {"max_held_cycles = -1", [](Config& c) { c.max_held_cycles = -1; }},
      {"max_dt = 0", [](Config& c) { c.max_dt = 0.0; }},
      {"velocity_cutoff = 0", [](Config& c) { c.velocity_cutoff = 0.0; }},
      {"reference_cutoff = nan", [](Config& c) { c.reference_cutoff = nan; }},
      {"reference_margin = -0.1", [](Config& c) { c.reference_margin = -0.1; }},
      {"reference_margin = nan", [](Config& c) { c.reference_margin = nan; }},
  };
  for (const Row& row : rows) {
    const std::string error = error_after(row.change);
    EXPECT_THAT(error, StartsWith(row.text));
    EXPECT_GT(error.size(), std::string(row.text).size() + 5) << "no remedy: " << error;
  }
}

TEST(ControlConfig, AsksForALimitWhereTheModelHasNone) {
  RobotDescription description = support::random_arm(1, 2);
  description.joints[1].limits->effort = 0.0;
  const Model model = build_model(description);
  try {
    const Controller controller(model, {});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(StartsWith("effort_limits.joint_2 = 0"),
                                    HasSubstr("so says the model; set effort_limits")));
  }
  Config config;
  config.effort_limits = {infinity};
  EXPECT_NO_THROW(Controller(model, config));
}

TEST(ControlConfig, AllowsAnIntegralInComputedTorque) {
  EXPECT_EQ(error_after([](Config& c) {
              c.mode = Mode::computed_torque;
              c.gains = {{1.0, 1.0, 3.0}};
            }),
            "");
}

TEST(ControlConfig, NamesAreFoundAgain) {
  for (const Mode mode : {Mode::gravity_compensation, Mode::feedforward, Mode::computed_torque,
                          Mode::passivity, Mode::pass_through})
    EXPECT_EQ(find_mode(to_string(mode)), mode);
  for (const auto c : {Compensation::none, Compensation::gravity, Compensation::full})
    EXPECT_EQ(find_compensation(to_string(c)), c);
  for (const auto m : {Missing::zero, Missing::differentiate})
    EXPECT_EQ(find_missing(to_string(m)), m);
  EXPECT_FALSE(find_mode("pid"));
  EXPECT_FALSE(find_compensation(""));
  EXPECT_FALSE(find_missing("one"));
}

// --- Loads ---------------------------------------------------------------------------------------

constexpr Symmetric3<double> of_a_ball{0.01, 0.0, 0.0, 0.01, 0.0, 0.01};

std::string payload_error(const std::string& link, double mass, double x,
                          const Symmetric3<double>& inertia) {
  try {
    (void)checked_payload(robot(), link, {mass, {x, 0.0, 0.0}, inertia});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(CheckedPayload, FindsTheLinkOfAUsableLoad) {
  const Model model = robot();
  const std::string last = model.links.back().name;
  EXPECT_EQ(checked_payload(model, last, {2.0, {0.0, 0.0, 0.1}, of_a_ball}), model.find_link(last));
  EXPECT_EQ(payload_error(last, 0.0, 0.0, Symmetric3<double>::zero()), "");      // takes it off
  EXPECT_EQ(payload_error(last, 2.0, 0.0, Symmetric3<double>::zero()), "");      // a point mass
  EXPECT_EQ(payload_error(last, 2.0, 0.0, {0.0, 0.0, 0.0, 1.0, 0.0, 1.0}), "");  // a rod
}

TEST(CheckedPayload, RefusesWhatNoBodyCanBe) {
  const std::string last = robot().links.back().name;
  const std::string base = robot().links.front().name;
  EXPECT_THAT(payload_error("hook", 1.0, 0.0, of_a_ball), StartsWith("payload.link = 'hook'"));
  EXPECT_THAT(payload_error(base, 1.0, 0.0, of_a_ball), HasSubstr("does not move"));
  EXPECT_THAT(payload_error(last, -1.0, 0.0, of_a_ball), StartsWith("payload.mass = -1:"));
  EXPECT_THAT(payload_error(last, infinity, 0.0, of_a_ball), StartsWith("payload.mass = inf:"));
  EXPECT_THAT(payload_error(last, 1.0, nan, of_a_ball), StartsWith("payload.center_of_mass = nan"));
  EXPECT_THAT(payload_error(last, 1.0, 0.0, {nan, 0.0, 0.0, 1.0, 0.0, 1.0}),
              StartsWith("payload.inertia = nan"));
  EXPECT_THAT(payload_error(last, 1.0, 0.0, {-1.0, 0.0, 0.0, 1.0, 0.0, 1.0}),
              HasSubstr("principal moment"));
  EXPECT_THAT(payload_error(last, 1.0, 0.0, {1.0, 0.0, 0.0, 1.0, 0.0, 3.0}),
              HasSubstr("principal moment"));
  EXPECT_THAT(payload_error(last, 0.0, 0.0, of_a_ball), HasSubstr("give its mass"));
}

}  // namespace
