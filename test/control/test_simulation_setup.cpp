// SPDX-License-Identifier: Apache-2.0
/// A simulated robot from a URDF and settings in words.

#include "dynamics_core/simulation/simulation_setup.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>

#include "dynamics_core/control/config.hpp"

namespace {

using namespace dynamics_core;

using simulation::read_simulation;
using simulation::SimulationSetup;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Settings = std::unordered_map<std::string, std::string>;

/// A slider, a hinge on it, and a claw whose fingers go together.
const char* const urdf = R"(<robot name="gripper">
  <link name="rail"/>
  <link name="cart">
    <inertial><mass value="3"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <link name="arm">
    <inertial><origin xyz="0.2 0 0"/><mass value="2"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>
  <link name="left">
    <inertial><mass value="0.1"/>
    <inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial></link>
  <link name="right">
    <inertial><mass value="0.1"/>
    <inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial></link>
  <joint name="slide" type="prismatic"><parent link="rail"/><child link="cart"/><axis xyz="1 0 0"/>
    <limit lower="0.5" upper="2" effort="100" velocity="1"/><dynamics damping="4" friction="2"/>
  </joint>
  <joint name="hinge" type="continuous"><parent link="cart"/><child link="arm"/>
    <axis xyz="0 1 0"/><limit effort="30" velocity="2"/></joint>
  <joint name="claw" type="revolute"><parent link="arm"/><child link="left"/>
    <axis xyz="0 0 1"/><limit lower="0" upper="1" effort="0" velocity="1"/></joint>
  <joint name="other" type="revolute"><parent link="arm"/><child link="right"/>
    <axis xyz="0 0 1"/><mimic joint="claw" multiplier="-1"/>
    <limit lower="-1" upper="0" effort="1" velocity="1"/></joint>
  <ros2_control name="gripper" type="system"/>
</robot>)";

SimulationSetup read(const Settings& settings,
                     const std::vector<std::string>& joints = {"hinge", "slide"}) {
  return read_simulation(urdf, joints, settings);
}

std::vector<std::string> names(const Model& model) {
  std::vector<std::string> out;
  for (const JointInfo& joint : model.joints) out.push_back(joint.name);
  return out;
}

TEST(SimulationSetup, HasDefaults) {
  const SimulationSetup setup = read({});
  EXPECT_THAT(names(setup.model), ElementsAre("slide", "hinge"));
  EXPECT_EQ(setup.imperfections.position_noise, 0.0);
  EXPECT_EQ(setup.imperfections.delay, 0);
  EXPECT_THAT(setup.imperfections.effort_limits, ElementsAre(100.0, 30.0));
  EXPECT_TRUE(setup.mechanics.joint_stops);
  EXPECT_EQ(setup.max_step, 1e-4);
  EXPECT_EQ(setup.model.gravity[2], -9.81);
}

TEST(SimulationSetup, TakesEverySetting) {
  const SimulationSetup setup = read({{"max_step", "5e-4"},
                                      {"position_noise", " 0.001 "},
                                      {"velocity_noise", "+0.02"},
                                      {"resolution", "1e-5"},
                                      {"delay", "3"},
                                      {"seed", "42"},
                                      {"mass_error", "10%, arm=-50%"},
                                      {"friction_error", "slide=25%"},
                                      {"effort_limits", "false"},
                                      {"joint_stops", "False"},
                                      {"stop_frequency", "80"},
                                      {"servo_frequency", "20"},
                                      {"gravity", "1, 2, -3"},
                                      {"locked", "claw=0.25"}});
  EXPECT_EQ(setup.max_step, 5e-4);
  EXPECT_EQ(setup.imperfections.position_noise, 0.001);
  EXPECT_EQ(setup.imperfections.velocity_noise, 0.02);
  EXPECT_EQ(setup.imperfections.resolution, 1e-5);
  EXPECT_EQ(setup.imperfections.delay, 3);
  EXPECT_EQ(setup.imperfections.seed, 42U);
  EXPECT_TRUE(setup.imperfections.effort_limits.empty());
  EXPECT_FALSE(setup.mechanics.joint_stops);
  EXPECT_EQ(setup.mechanics.stop_frequency, 80.0);
  EXPECT_EQ(setup.mechanics.servo_frequency, 20.0);
  EXPECT_EQ(setup.model.gravity, Eigen::Vector3d(1.0, 2.0, -3.0));
  const auto mass = [&](const char* link) {
    return setup.model.links[static_cast<std::size_t>(setup.model.find_link(link))].inertial.mass;
  };
  EXPECT_DOUBLE_EQ(mass("cart"), 3.3);
  EXPECT_DOUBLE_EQ(mass("arm"), 1.0);
  EXPECT_DOUBLE_EQ(setup.model.joints[0].damping, 5.0);
  EXPECT_DOUBLE_EQ(setup.model.joints[0].friction, 2.5);
}

/// Locked at 0.25 rad, the claw stands elsewhere than at zero.
TEST(SimulationSetup, LocksWhatDoesNotMove) {
  const auto turn = [](const SimulationSetup& setup) {
    return setup.model.links[static_cast<std::size_t>(setup.model.find_link("left"))].X_BL.R;
  };
  const Eigen::Matrix3d relative =
      turn(read({})).transpose() * turn(read({{"locked", "claw=0.25"}}));
  EXPECT_NEAR(std::acos((relative.trace() - 1.0) / 2.0), 0.25, 1e-12);
}

TEST(SimulationSetup, MimicsMoveWithTheirJointWhetherNamedOrNot) {
  const Settings without_limits = {{"effort_limits", "false"}};
  for (const auto& joints : {std::vector<std::string>{"claw"}, {"claw", "other"}}) {
    const SimulationSetup setup = read(without_limits, joints);
    EXPECT_THAT(names(setup.model), ElementsAre("claw"));
    ASSERT_EQ(setup.model.mimics.size(), 1U);
    EXPECT_EQ(setup.model.mimics[0].name, "other");
  }
}

std::string in_short(double x) {
  std::ostringstream text;
  text << x;
  return text.str();
}

std::string complaint(const Settings& settings,
                      const std::vector<std::string>& joints = {"hinge", "slide"}) {
  try {
    const SimulationSetup setup = read(settings, joints);
    const simulation::SimulatedRobot robot(setup.model, setup.imperfections, setup.mechanics);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(SimulationSetup, NamesWhatIsWrong) {
  const std::pair<Settings, std::vector<const char*>> cases[] = {
      {{{"max_stepp", "1"}}, {"max_stepp", "unknown", "max_step, "}},
      {{{"max_step", "0"}}, {"max_step", "1e-06 to 0.1"}},
      {{{"max_step", "fast"}}, {"max_step", "'fast'", "finite number"}},
      {{{"max_step", ""}}, {"max_step", "''"}},
      {{{"position_noise", "-1"}}, {"position_noise", "-1", "not below zero"}},
      {{{"velocity_noise", "nan"}}, {"velocity_noise", "'nan'", "finite number"}},
      {{{"resolution", "0.1mm"}}, {"resolution", "'0.1mm'"}},
      {{{"delay", "1.5"}}, {"delay", "'1.5'", "whole number"}},
      {{{"delay", "-1"}}, {"delay", "-1", "0 to 10000"}},
      {{{"delay", "99999"}}, {"delay", "99999"}},
      {{{"seed", "-3"}}, {"seed", "'-3'", "whole number"}},
      {{{"mass_error", "10"}}, {"mass_error", "'10'", "percent"}},
      {{{"mass_error", "leg=10%"}}, {"mass_error", "'leg=10%'", "no 'leg'"}},
      {{{"mass_error", "-150%"}}, {"mass_error", "-100% or more"}},
      {{{"friction_error", "claw=5%"}}, {"friction_error", "no 'claw'"}},
      {{{"effort_limits", "yes"}}, {"effort_limits", "'yes'", "true or false"}},
      {{{"joint_stops", "1"}}, {"joint_stops", "'1'", "true or false"}},
      {{{"stop_frequency", "0"}}, {"stop_frequency", "above zero"}},
      {{{"servo_frequency", "-5"}}, {"servo_frequency", "above zero"}},
      {{{"gravity", "-9.81"}}, {"gravity", "'-9.81'", "X,Y,Z"}},
      {{{"gravity", "0,0,down"}}, {"gravity", "'down'"}},
      {{{"locked", "claw"}}, {"locked", "'claw'", "JOINT=POSITION"}},
      {{{"locked", "claw=0,claw=1"}}, {"locked", "twice"}},
      {{{"locked", "hinge=0"}}, {"locked", "'hinge'", "driven"}},
      {{{"locked", "tail=0"}}, {"tail"}},
  };
  for (const auto& [settings, words] : cases)
    for (const char* word : words)
      EXPECT_THAT(complaint(settings), HasSubstr(word)) << settings.begin()->first;
  EXPECT_EQ(complaint({}), "");
}

TEST(SimulationSetup, HasAUserPageThatTellsOfEverySetting) {
  std::ifstream file(RD_SOURCE_DIR "/dynamics_ros/doc/simulated_system.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  for (const char* name : simulation::simulation_settings)
    EXPECT_THAT(page, HasSubstr("| `" + std::string(name) + "` | "));
  const simulation::Mechanics mechanics;
  EXPECT_THAT(page, HasSubstr("| `servo_frequency` | " + in_short(mechanics.servo_frequency)));
  EXPECT_THAT(page, HasSubstr("| `stop_frequency` | " + in_short(mechanics.stop_frequency)));
}

TEST(SimulationSetup, NamesJointsThatCannotBeDriven) {
  EXPECT_THAT(complaint({}, {"hinge", "tail"}), HasSubstr("tail"));
  EXPECT_THAT(complaint({}, {"claw"}),
              AllOf(HasSubstr("effort limit of joint 'claw'"), HasSubstr("effort_limits")));
}

TEST(SimulationSetup, RefusesJointsWithSeveralDegreesOfFreedom) {
  for (const std::string type : {"floating", "planar"}) {
    std::string other = urdf;
    const std::string hinge = "type=\"continuous\"";
    other.replace(other.find(hinge), hinge.size(), "type=\"" + type + "\"");
    try {
      (void)read_simulation(other, {"slide"}, {});
      FAIL() << type;
    } catch (const ModelError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("'hinge'"), HasSubstr(type), HasSubstr("fixed")));
    }
  }
}

TEST(InitialPosition, IsTheNearestToZeroWithinTheLimits) {
  const Model model = read({}).model;
  EXPECT_EQ(simulation::initial_position(model.joints[0], ""), 0.5);
  EXPECT_EQ(simulation::initial_position(model.joints[1], ""), 0.0);
}

TEST(InitialPosition, IsWhatTheTextSays) {
  const Model model = read({}).model;
  EXPECT_EQ(simulation::initial_position(model.joints[0], "1.25"), 1.25);
  EXPECT_EQ(simulation::initial_position(model.joints[1], "-20"), -20.0);
}

TEST(InitialPosition, RefusesWhatIsNoPlaceToBe) {
  const Model model = read({}).model;
  EXPECT_THROW((void)simulation::initial_position(model.joints[0], "0.4"), ConfigError);
  EXPECT_THROW((void)simulation::initial_position(model.joints[0], "up"), ConfigError);
  EXPECT_THROW((void)simulation::initial_position(model.joints[1], "inf"), ConfigError);
}

}  // namespace
