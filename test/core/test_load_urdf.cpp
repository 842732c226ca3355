// SPDX-License-Identifier: Apache-2.0
#include <console_bridge/console.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <array>
#include <clocale>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <thread>

#include "dynamics_core/load.hpp"
#include "support/errors.hpp"

namespace {

using namespace dynamics_core;
using support::error_of;
using support::replaced;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr double infinity = std::numeric_limits<double>::infinity();
const std::string assets = std::string(RD_SOURCE_DIR) + "/test/assets/";

const char* const small = R"(<?xml version="1.0"?>
<robot name="small">
  <link name="base"/>
  <link name="arm">
    <inertial>
      <origin xyz="0.1 0 0" rpy="0 0 0"/>
      <mass value="2"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.25"/>
    </inertial>
  </link>
  <joint name="elbow" type="revolute">
    <origin xyz="0 0 1" rpy="0 0 0"/>
    <parent link="base"/>
    <child link="arm"/>
    <axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="10" velocity="3"/>
    <dynamics damping="0.5" friction="0.25"/>
  </joint>
</robot>
)";

std::string read(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::string error_in(const std::string& xml) {
  return error_of([&] { (void)validate(parse_urdf(xml, "arm.urdf"), false); });
}

/// The error about `small` with one piece replaced.
std::string error_with(const std::string& from, const std::string& to) {
  return error_in(replaced(small, from, to));
}

RobotDescription small_with(const std::string& from, const std::string& to) {
  return parse_urdf(replaced(small, from, to), "arm.urdf");
}

const JointDescription& find_joint(const RobotDescription& d, const std::string& name) {
  for (const JointDescription& joint : d.joints) {
    if (joint.name == name) return joint;
  }
  throw std::logic_error("no joint " + name);
}

// --- What is read --------------------------------------------------------------------------------

TEST(LoadUrdf, ReadsASmallArm) {
  const RobotDescription d = parse_urdf(small, "arm.urdf");
  EXPECT_EQ(d.name, "small");
  EXPECT_EQ(d.source, "arm.urdf");
  EXPECT_THAT(d.warnings, IsEmpty());
  ASSERT_EQ(d.links.size(), 2U);
  EXPECT_FALSE(d.links[0].inertial);
  ASSERT_TRUE(d.links[1].inertial);
  EXPECT_EQ(d.links[1].inertial->mass, 2.0);
  EXPECT_EQ(d.links[1].inertial->com, Eigen::Vector3d(0.1, 0, 0));
  const Eigen::Matrix3d inertia = Eigen::Vector3d(0.1, 0.2, 0.25).asDiagonal();
  EXPECT_EQ(d.links[1].inertial->inertia, inertia);
  ASSERT_EQ(d.joints.size(), 1U);
  const JointDescription& j = d.joints[0];
  EXPECT_EQ(j.name, "elbow");
  EXPECT_EQ(j.type, JointType::revolute);
  EXPECT_EQ(j.parent, "base");
  EXPECT_EQ(j.child, "arm");
  EXPECT_EQ(j.origin.p, Eigen::Vector3d(0, 0, 1));
  EXPECT_EQ(j.origin.R, Eigen::Matrix3d::Identity());
  EXPECT_EQ(j.axis, Eigen::Vector3d::UnitZ());
  EXPECT_EQ(j.damping, 0.5);
  EXPECT_EQ(j.friction, 0.25);
  ASSERT_TRUE(j.limits);
  EXPECT_EQ(j.limits->lower, -1.0);
  EXPECT_EQ(j.limits->upper, 1.0);
  EXPECT_EQ(j.limits->effort, 10.0);
  EXPECT_EQ(j.limits->velocity, 3.0);
  EXPECT_FALSE(j.mimic);
}

TEST(LoadUrdf, ReadsEveryKindOfJoint) {
  const RobotDescription d = parse_file(assets + "all_joints.urdf");
  EXPECT_THAT(validate(d, true), IsEmpty());
  EXPECT_EQ(d.source, assets + "all_joints.urdf");
  EXPECT_EQ(find_joint(d, "mount").type, JointType::fixed);
  EXPECT_EQ(find_joint(d, "shoulder").type, JointType::revolute);
  EXPECT_EQ(find_joint(d, "elbow").type, JointType::continuous);
  EXPECT_EQ(find_joint(d, "right_finger_joint").type, JointType::prismatic);
  EXPECT_EQ(find_joint(d, "cart_joint").type, JointType::planar);
  EXPECT_EQ(find_joint(d, "ball_joint").type, JointType::floating);
  const std::optional<Mimic> mimic = find_joint(d, "left_finger_joint").mimic;
  ASSERT_TRUE(mimic);
  EXPECT_EQ(mimic->joint, "right_finger_joint");
  EXPECT_EQ(mimic->multiplier, 0.9);
  EXPECT_EQ(mimic->offset, 0.001);
}

TEST(LoadUrdf, KeepsTheOrderOfTheFile) {
  const RobotDescription d = parse_file(assets + "all_joints.urdf");
  std::vector<std::string> joints;
  std::vector<std::string> links;
  for (const auto& joint : d.joints) joints.push_back(joint.name);
  for (const auto& link : d.links) links.push_back(link.name);
  EXPECT_THAT(joints, ElementsAre("mount", "shoulder", "elbow", "tool_mount", "right_finger_joint",
                                  "left_finger_joint", "cart_joint", "ball_joint"));
  EXPECT_THAT(links, ElementsAre("world", "base", "upper_arm", "forearm", "flange", "right_finger",
                                 "left_finger", "cart", "ball"));
}

TEST(LoadUrdf, TurnsInertiasIntoTheLinksAxes) {
  const RobotDescription d = parse_file(assets + "all_joints.urdf");
  Eigen::Matrix3d about_com;
  about_com << 0.01, 0.001, -0.002, 0.001, 0.03, 0.0005, -0.002, 0.0005, 0.028;
  // Roll, pitch, yaw about fixed axes.
  const Eigen::Matrix3d R = (Eigen::AngleAxisd(1.5, Eigen::Vector3d::UnitZ()) *
                             Eigen::AngleAxisd(-0.2, Eigen::Vector3d::UnitY()) *
                             Eigen::AngleAxisd(0.3, Eigen::Vector3d::UnitX()))
                                .toRotationMatrix();
  const Inertial& upper_arm = *d.links[2].inertial;
  EXPECT_LT((upper_arm.inertia - R * about_com * R.transpose()).norm(), 1e-16);
  EXPECT_EQ(upper_arm.inertia, upper_arm.inertia.transpose());
}

TEST(LoadUrdf, TurnsJointOrigins) {
  const RobotDescription d =
      small_with(R"(xyz="0 0 1" rpy="0 0 0")", R"(xyz="1 2 3" rpy="0.4 -0.7 2.1")");
  const Eigen::Matrix3d R = (Eigen::AngleAxisd(2.1, Eigen::Vector3d::UnitZ()) *
                             Eigen::AngleAxisd(-0.7, Eigen::Vector3d::UnitY()) *
                             Eigen::AngleAxisd(0.4, Eigen::Vector3d::UnitX()))
                                .toRotationMatrix();
  EXPECT_LT((d.joints[0].origin.R - R).norm(), 1e-15);
  EXPECT_EQ(d.joints[0].origin.p, Eigen::Vector3d(1, 2, 3));
}

TEST(LoadUrdf, GivesRangesToRevoluteAndPrismaticJointsOnly) {
  const RobotDescription d = parse_file(assets + "all_joints.urdf");
  const Limits elbow = *find_joint(d, "elbow").limits;
  EXPECT_EQ(elbow.lower, -infinity);
  EXPECT_EQ(elbow.upper, infinity);
  EXPECT_EQ(elbow.effort, 40.0);
  EXPECT_EQ(elbow.velocity, 3.0);
  EXPECT_EQ(find_joint(d, "right_finger_joint").limits->upper, 0.04);
  EXPECT_FALSE(find_joint(d, "cart_joint").limits);
}

TEST(LoadUrdf, DefaultsTheAxisToX) {
  EXPECT_EQ(small_with(R"(<axis xyz="0 0 1"/>)", "").joints[0].axis, Eigen::Vector3d::UnitX());
}

TEST(LoadUrdf, AcceptsWhatUrdfdomMerelyStumblesOver) {
  // Tabs and line breaks between numbers, spaces around them, a plus sign, an empty <dynamics>.
  EXPECT_EQ(small_with(R"(<axis xyz="0 0 1"/>)", "<axis xyz=\" 0\t0\n+1 \"/>").joints[0].axis,
            Eigen::Vector3d::UnitZ());
  EXPECT_EQ(small_with(R"("2")", R"(" 2 ")").links[1].inertial->mass, 2.0);
  EXPECT_EQ(
      small_with(R"(<dynamics damping="0.5" friction="0.25"/>)", "<dynamics/>").joints[0].damping,
      0.0);
  EXPECT_EQ(small_with(R"("2")", R"("1e-400")").links[1].inertial->mass, 0.0);
}

TEST(LoadUrdf, IgnoresWhatDoesNotMove) {
  const std::string broken = R"(<visual><geometry><box size="a b c"/></geometry></visual>)"
                             R"(<collision><origin xyz="nan"/></collision></link>)";
  EXPECT_EQ(error_with("</link>", broken), "");
  EXPECT_EQ(error_with("</joint>", "<safety_controller/><calibration rising='x'/></joint>"), "");
  EXPECT_EQ(error_with("<link", "<material/><material/><link"), "");
}

TEST(LoadUrdf, KeepsUnusualNames) {
  const RobotDescription d = parse_urdf(
      R"(<robot name="r"><link name=" &lt;b&amp;se&gt; &#10;"/><link name="ärm"/>
      <joint name="'" type="fixed"><parent link=" &lt;b&amp;se&gt; &#10;"/><child link="ärm"/>
      </joint></robot>)");
  EXPECT_EQ(d.links[0].name, " <b&se> \n");
  EXPECT_EQ(d.joints[0].parent, " <b&se> \n");
  EXPECT_EQ(d.links[1].name, "ärm");
  EXPECT_EQ(d.joints[0].name, "'");
}

TEST(LoadUrdf, ReadsNumbersAlikeInAnyLocale) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  const std::locale cpp_before;
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::setlocale(LC_ALL, "de_DE.UTF-8");  // where it is installed
  std::locale::global(std::locale(cpp_before, new Comma));
  const RobotDescription d = parse_file(assets + "six_axis_arm.urdf");
  const std::string error = error_with(R"(upper="1")", R"(upper="-1234.5")");
  std::locale::global(cpp_before);
  std::setlocale(LC_ALL, before.c_str());
  EXPECT_EQ(d.links[2].inertial->mass, 12.3);
  EXPECT_EQ(find_joint(d, "joint_6").limits->upper, 6.2);
  EXPECT_THAT(error, HasSubstr("-1234.5"));
}

// --- Files ---------------------------------------------------------------------------------------

TEST(LoadUrdfFile, NamesAMissingFile) {
  for (const std::string& error : {error_of([] { (void)load_urdf("/nowhere/arm.urdf"); }),
                                   error_of([] { (void)load_model("/nowhere/arm.urdf"); }),
                                   error_of([] { (void)parse_file("/nowhere/arm.urdf"); })}) {
    EXPECT_THAT(error, AllOf(StartsWith("/nowhere/arm.urdf: file: cannot be read"),
                             HasSubstr("No such file"), HasSubstr("check the path")));
  }
  EXPECT_THAT(error_of([] { (void)parse_file(assets); }), HasSubstr("cannot be read"));
}

TEST(LoadUrdfFile, RefusesWhatIsEmpty) {
  for (const char* text : {"", " ", "\n\t \r\n"}) {
    EXPECT_THAT(error_in(text), HasSubstr("arm.urdf: file: is empty")) << '"' << text << '"';
  }
}

TEST(LoadUrdfFile, RefusesMoreThan10MB) {
  std::string xml = small;
  xml.resize(10'000'000, ' ');
  EXPECT_EQ(error_in(xml), "");
  xml += ' ';
  EXPECT_THAT(error_in(xml), HasSubstr("arm.urdf: file: is larger than 10 MB"));
}

TEST(LoadUrdfFile, RefusesAnElementOfManyAttributes) {
  const auto with = [](int attributes) {
    std::string xml = "<!-- ' = <a -->\n<robot name='arm'>\n<link name='base' note='a > \" ='";
    for (int i = 2; i < attributes; ++i) xml += " a" + std::to_string(i) + "='='";
    return xml + "/></robot>";
  };
  EXPECT_EQ(error_in(with(1000)), "");
  EXPECT_THAT(error_in(with(400'000)),
              HasSubstr("arm.urdf: line 3: an element has more than 1000 attributes"));
}

TEST(LoadUrdfFile, RefusesAnEndlessFile) {
  if (!std::filesystem::exists("/dev/zero")) GTEST_SKIP();
  EXPECT_THAT(error_of([] { (void)parse_file("/dev/zero"); }), HasSubstr("larger than 10 MB"));
}

TEST(LoadUrdfFile, TellsUrdfFromTables) {
  EXPECT_EQ(parse_file(assets + "six_axis_arm.urdf").name, "six_axis_arm");
  EXPECT_EQ(parse_file(std::string(RD_SOURCE_DIR) + "/config/robots/planar3r.yaml").name,
            "planar3r");
}

TEST(LoadUrdfFile, BuildsModels) {
  EXPECT_EQ(load_urdf(assets + "six_axis_arm.urdf").nv, 6);
  EXPECT_EQ(load_model(assets + "six_axis_arm.urdf").nv, 6);
  EXPECT_EQ(load_urdf_string(small).nv, 1);
  EXPECT_EQ(load_urdf(assets + "all_joints.urdf").nv, 3 + 3 + 6);
}

// --- What is refused -----------------------------------------------------------------------------

TEST(LoadUrdfRefuses, WhatIsNotXml) {
  EXPECT_THAT(error_in("hello"), HasSubstr("not XML"));
  EXPECT_THAT(error_in("<robot name='r'>\n<link name='a'>\n</robot>"),
              AllOf(HasSubstr("arm.urdf: line "), HasSubstr("not XML"), HasSubstr("MISMATCHED")));
  EXPECT_THAT(error_in("<robot name='r'>" + std::string(1, '\0') + "</robot>"),
              HasSubstr("not XML"));
  EXPECT_THAT(error_in("\xFF\xFE<" + std::string(1, '\0') + "r"), HasSubstr("not XML"));
}

TEST(LoadUrdfRefuses, OtherXml) {
  EXPECT_THAT(error_in("<sdf version='1.6'/>"), HasSubstr("has <sdf> where <robot> is expected"));
  EXPECT_THAT(error_in("<?xml version='1.0'?><!-- nothing -->"), HasSubstr("no <robot> element"));
}

TEST(LoadUrdfRefuses, DeepNesting) {
  std::string xml = "<robot name='r'>";
  for (int i = 0; i < 1'000'000; ++i) xml += "<a>";
  EXPECT_THAT(error_in(xml), HasSubstr("not XML"));
  std::string closed = xml;
  for (int i = 0; i < 1'000'000; ++i) closed += "</a>";
  EXPECT_THAT(error_in(closed + "</robot>"), HasSubstr("not XML"));
}

TEST(LoadUrdfRefuses, ARobotWithoutNameOrLinks) {
  EXPECT_THAT(error_with(R"( name="small")", ""), HasSubstr("robot: <robot> has no name"));
  EXPECT_THAT(error_in("<robot name='r'/>"), HasSubstr("arm.urdf: robot: has no links"));
}

TEST(LoadUrdfRefuses, OtherVersions) {
  EXPECT_EQ(error_with(R"(name="small")", R"(name="small" version="1.0")"), "");
  EXPECT_THAT(error_with(R"(name="small")", R"(name="small" version="1.2")"),
              HasSubstr("robot: URDF version '1.2' is not supported"));
}

TEST(LoadUrdfRefuses, Xacro) {
  EXPECT_THAT(error_with("<link", "<xacro:property name='a' value='1'/><link"),
              AllOf(HasSubstr("<xacro:property> is not expanded"), HasSubstr("run xacro")));
  EXPECT_THAT(error_with("</link>", "<xacro:box/></link>"), HasSubstr("run xacro"));
  EXPECT_THAT(error_with(R"(value="2")", R"(value="${mass}")"),
              AllOf(HasSubstr("link 'arm': <mass value=\"${mass}\">"), HasSubstr("run xacro")));
  EXPECT_THAT(error_with(R"(name="elbow")", R"(name="$(arg prefix)elbow")"),
              HasSubstr("run xacro"));
  EXPECT_EQ(error_with(R"(name="small")", R"(name="small" xmlns:xacro="http://ros.org/xacro")"),
            "");
}

TEST(LoadUrdfRefuses, NamelessElements) {
  EXPECT_THAT(error_with(R"(<link name="base"/>)", "<link/>"),
              HasSubstr("link on line 3: <link> has no name"));
  EXPECT_THAT(error_with(R"(<link name="base"/>)", "<link name=''/>"),
              HasSubstr("link on line 3: <link> has no name"));
  EXPECT_THAT(error_with(R"(<joint name="elbow")", "<joint"),
              HasSubstr("joint on line 11: <joint> has no name"));
}

TEST(LoadUrdfRefuses, UnknownTypes) {
  EXPECT_THAT(error_with(R"(type="revolute")", R"(type="revolut")"),
              HasSubstr("joint 'elbow': unknown type 'revolut'; use revolute"));
  EXPECT_THAT(error_with(R"(type="revolute")", R"(type="helical")"),
              HasSubstr("joint 'elbow': unknown type 'helical'; use revolute"))
      << "URDF has no screws";
  EXPECT_THAT(error_with(R"( type="revolute")", ""),
              HasSubstr("joint 'elbow': <joint> has no type"));
}

TEST(LoadUrdfRefuses, MissingEnds) {
  EXPECT_THAT(error_with(R"(<parent link="base"/>)", ""),
              HasSubstr("joint 'elbow': has no <parent>"));
  EXPECT_THAT(error_with(R"(<child link="arm"/>)", ""), HasSubstr("joint 'elbow': has no <child>"));
  EXPECT_THAT(error_with(R"(<child link="arm"/>)", "<child/>"),
              HasSubstr("joint 'elbow': <child> has no link"));
}

TEST(LoadUrdfRefuses, BrokenTrees) {
  EXPECT_THAT(error_with(R"(<parent link="base"/>)", R"(<parent link="bass"/>)"),
              HasSubstr("joint 'elbow': parent link 'bass' does not exist"));
  EXPECT_THAT(error_with("</robot>", "<link name='stray'/></robot>"),
              HasSubstr("2 root links, 'base', 'stray'"));
  EXPECT_THAT(error_with("</robot>", "<link name='arm'/></robot>"),
              HasSubstr("link 'arm': exists twice"));
  const std::string joint = R"(<joint name="%" type="fixed"><parent link="%"/><child link="%"/>)";
  const auto fixed = [&](const std::string& name, const std::string& p, const std::string& c) {
    return replaced(replaced(replaced(joint, "%", name), "%", p), "%", c) + "</joint>";
  };
  EXPECT_THAT(error_with("</robot>", fixed("elbow", "base", "arm") + "</robot>"),
              HasSubstr("joint 'elbow': exists twice"));
  EXPECT_THAT(error_with("</robot>", fixed("brace", "base", "arm") + "</robot>"),
              HasSubstr("link 'arm': has two parents, through joints 'elbow' and 'brace'"));
  EXPECT_THAT(error_with("</robot>", fixed("back", "arm", "base") + "</robot>"),
              HasSubstr("no link is the root"));
  EXPECT_THAT(error_with("</robot>", "<link name='a'/><link name='b'/>" + fixed("ab", "a", "b") +
                                         fixed("ba", "b", "a") + "</robot>"),
              AllOf(HasSubstr("link '"), HasSubstr("detached from the root 'base'")));
}

TEST(LoadUrdfRefuses, TooManyJoints) {
  const auto chain = [](int joints) {
    std::string xml = "<robot name='chain'><link name='0'/>";
    for (int i = 1; i <= joints; ++i) {
      std::ostringstream text;
      text << "<link name='" << i << "'/><joint name='" << i << "' type='fixed'><parent link='"
           << i - 1 << "'/><child link='" << i << "'/></joint>";
      xml += text.str();
    }
    return xml + "</robot>";
  };
  EXPECT_EQ(error_in(chain(1024)), "");
  EXPECT_THAT(error_in(chain(1025)), HasSubstr("robot: has 1025 joints, more than 1024"));
  EXPECT_THAT(error_in(chain(80000)), HasSubstr("robot: has 80000 joints"));
}

/// Every number that is read, with the text around it.
const std::vector<std::pair<std::string, std::string>> numbers = {
    {"link 'arm': <origin xyz=", R"(xyz="0.1 0 %")"},
    {"link 'arm': <mass value=", R"(value="%")"},
    {"link 'arm': <inertia ixx=", R"(ixx="%")"},
    {"link 'arm': <inertia ixy=", R"(ixy="%")"},
    {"link 'arm': <inertia ixz=", R"(ixz="%")"},
    {"link 'arm': <inertia iyy=", R"(iyy="%")"},
    {"link 'arm': <inertia iyz=", R"(iyz="%")"},
    {"link 'arm': <inertia izz=", R"(izz="%")"},
    {"joint 'elbow': <origin xyz=", R"(xyz="0 0 %")"},
    {"joint 'elbow': <origin rpy=", R"(rpy="0 % 0")"},
    {"joint 'elbow': <axis xyz=", R"(axis xyz="% 0 1")"},
    {"joint 'elbow': <limit lower=", R"(lower="%")"},
    {"joint 'elbow': <limit upper=", R"(upper="%")"},
    {"joint 'elbow': <limit effort=", R"(effort="%")"},
    {"joint 'elbow': <limit velocity=", R"(velocity="%")"},
    {"joint 'elbow': <dynamics damping=", R"(damping="%")"},
    {"joint 'elbow': <dynamics friction=", R"(friction="%")"},
};

/// `small` with the number that `pattern` stands for replaced.
std::string small_with_number(const std::string& owner, const std::string& pattern,
                              const std::string& number) {
  const std::string text = small;
  const std::string attribute = pattern.substr(0, pattern.find('"') + 1);
  const std::size_t from = owner.find("joint") == 0 ? text.find("<joint") : 0;
  const std::size_t begin = text.find(attribute, from);
  const std::size_t end = text.find('"', begin + attribute.size()) + 1;
  return text.substr(0, begin) + replaced(pattern, "%", number) + text.substr(end);
}

TEST(LoadUrdfRefuses, NonFiniteNumbersAnywhere) {
  for (const auto& [where, pattern] : numbers) {
    for (const char* number : {"nan", "NaN", "inf", "-inf", "Infinity", "1e999", "-1e999"}) {
      EXPECT_THAT(error_in(small_with_number(where, pattern, number)),
                  AllOf(HasSubstr("arm.urdf: " + where),
                        HasSubstr("'" + std::string(number) + "' is not finite")));
    }
  }
}

TEST(LoadUrdfRefuses, BadNumbersAnywhere) {
  for (const auto& [where, pattern] : numbers) {
    for (const char* number : {"abc", "1,5", "1.0.0", "0x10", "1e", "--1", "+-1", "1d0", "½"}) {
      EXPECT_THAT(error_in(small_with_number(where, pattern, number)),
                  AllOf(HasSubstr("arm.urdf: " + where),
                        HasSubstr("'" + std::string(number) + "' is not a number")));
    }
  }
  EXPECT_THAT(error_with(R"(value="2")", R"(value="1,5")"), HasSubstr("use a decimal point"));
}

TEST(LoadUrdfRefuses, WrongCounts) {
  EXPECT_THAT(error_with(R"(<axis xyz="0 0 1"/>)", R"(<axis xyz="0 1"/>)"),
              HasSubstr("joint 'elbow': <axis xyz=\"0 1\">: 2 numbers; write 3"));
  EXPECT_THAT(error_with(R"(xyz="0.1 0 0")", R"(xyz="0.1 0 0 0")"),
              HasSubstr("link 'arm': <origin xyz=\"0.1 0 0 0\">: 4 numbers; write 3"));
  EXPECT_THAT(error_with(R"(value="2")", R"(value="2 3")"), HasSubstr("2 numbers; write 1"));
  EXPECT_THAT(error_with(R"(value="2")", R"(value=" ")"), HasSubstr("0 numbers; write 1"));
  EXPECT_THAT(error_with(R"(value="2")", R"(value="")"), HasSubstr("<mass> has no value"));
}

TEST(LoadUrdfRefuses, HalfAnInertial) {
  // urdfdom keeps the link and what it has read so far.
  EXPECT_THAT(error_with(R"(<mass value="2"/>)", ""),
              HasSubstr("link 'arm': <inertial> has no <mass>"));
  EXPECT_THAT(error_with(R"( value="2")", ""), HasSubstr("link 'arm': <mass> has no value"));
  EXPECT_THAT(error_with(R"(<inertia ixx)", "<inertja ixx"),
              HasSubstr("link 'arm': <inertial> has no <inertia>"));
  for (const char* moment : {"ixx", "ixy", "ixz", "iyy", "iyz", "izz"}) {
    EXPECT_THAT(error_with(std::string(moment) + "=", "i="),
                HasSubstr("link 'arm': <inertia> has no " + std::string(moment)));
  }
}

TEST(LoadUrdfRefuses, ImpossibleValues) {
  EXPECT_THAT(error_with(R"(value="2")", R"(value="-2")"),
              HasSubstr("arm.urdf: link 'arm': mass -2 is negative"));
  EXPECT_THAT(error_with(R"(<axis xyz="0 0 1"/>)", R"(<axis xyz="0 0 0"/>)"),
              HasSubstr("joint 'elbow': axis (0, 0, 0) is zero"));
  EXPECT_THAT(error_with(R"(<axis xyz="0 0 1"/>)", "<axis/>"),
              HasSubstr("joint 'elbow': <axis> has no xyz"));
  EXPECT_EQ(error_with(R"(lower="-1")", R"(lower="2")"),
            "arm.urdf: joint 'elbow': lower limit 2 is above upper limit 1; swap them or correct "
            "one");
}

TEST(LoadUrdfRefuses, BadMimics) {
  const auto mimic = [](const std::string& xml) {
    return error_with("</joint>", xml + "</joint>");
  };
  EXPECT_THAT(mimic("<mimic/>"), HasSubstr("joint 'elbow': <mimic> has no joint"));
  EXPECT_THAT(mimic("<mimic joint='gone'/>"), HasSubstr("joint 'elbow': mimics joint 'gone'"));
  EXPECT_THAT(mimic("<mimic joint='elbow'/>"), HasSubstr("joint 'elbow': mimics itself"));
  EXPECT_THAT(mimic("<mimic joint='elbow' multiplier='nan'/>"),
              HasSubstr("joint 'elbow': <mimic multiplier=\"nan\">"));
  EXPECT_THAT(mimic("<mimic joint='elbow' offset='x'/>"),
              HasSubstr("joint 'elbow': <mimic offset=\"x\">"));
}

// --- What is loaded with a warning ---------------------------------------------------------------

std::vector<std::string> warnings_of(const RobotDescription& d) {
  std::vector<std::string> warnings = d.warnings;
  for (const std::string& warning : validate(d, false)) warnings.push_back(warning);
  EXPECT_THAT(error_of([&] { (void)validate(d, true); }),
              StartsWith(warnings.empty() ? "" : d.source + ": " + warnings.front()));
  return warnings;
}

TEST(LoadUrdfWarns, MissingLimits) {
  const std::string limit = R"(<limit lower="-1" upper="1" effort="10" velocity="3"/>)";
  const RobotDescription none = small_with(limit, "");
  EXPECT_THAT(warnings_of(none),
              ElementsAre(StartsWith("joint 'elbow': is revolute but has no <limit>")));
  EXPECT_FALSE(none.joints[0].limits);

  const RobotDescription half = small_with(R"( effort="10")", "");
  EXPECT_THAT(warnings_of(half), ElementsAre(StartsWith("joint 'elbow': <limit> has no effort")));
  EXPECT_EQ(half.joints[0].limits->effort, infinity);
  EXPECT_EQ(half.joints[0].limits->velocity, 3.0);

  EXPECT_THAT(warnings_of(small_with(R"( velocity="3")", "")),
              ElementsAre(StartsWith("joint 'elbow': <limit> has no velocity")));
}

TEST(LoadUrdfWarns, LimitsThatForbidMotion) {
  const RobotDescription range = small_with(R"(lower="-1" upper="1" )", "");
  EXPECT_THAT(warnings_of(range),
              ElementsAre(StartsWith("joint 'elbow': lower and upper limit are both 0")));
  EXPECT_EQ(range.joints[0].limits->upper, 0.0);
  const RobotDescription rates =
      small_with(R"(effort="10" velocity="3")", R"(effort="0" velocity="0")");
  EXPECT_THAT(warnings_of(rates), ElementsAre(StartsWith("joint 'elbow': effort limit is 0"),
                                              StartsWith("joint 'elbow': velocity limit is 0")));
  EXPECT_EQ(rates.joints[0].limits->effort, 0.0);
}

TEST(LoadUrdfWarns, ElementsGivenTwice) {
  EXPECT_THAT(warnings_of(small_with(R"(<axis xyz="0 0 1"/>)",
                                     R"(<axis xyz="0 0 1"/><axis xyz="1 0 0"/>)")),
              ElementsAre(StartsWith("joint 'elbow': <axis> is given more than once")));
  EXPECT_THAT(warnings_of(small_with("</inertial>", "</inertial><inertial/>")),
              ElementsAre(StartsWith("link 'arm': <inertial> is given more than once")));
}

TEST(LoadUrdfWarns, AMimicOnAFixedJoint) {
  const RobotDescription d = parse_urdf(
      replaced(replaced(small, "revolute", "fixed"), "</joint>", "<mimic joint='x'/></joint>"));
  EXPECT_THAT(d.warnings, ElementsAre(HasSubstr("joint 'elbow': is fixed, its <mimic> of 'x'")));
  EXPECT_FALSE(d.joints[0].mimic);
}

TEST(LoadUrdfWarns, UnphysicalLinks) {
  EXPECT_THAT(warnings_of(small_with(R"(izz="0.25")", R"(izz="0.35")")),
              ElementsAre(StartsWith("link 'arm': inertia breaks the triangle inequality")));
  EXPECT_THAT(warnings_of(small_with(R"(ixx="0.1")", R"(ixx="-0.1")")),
              ElementsAre(StartsWith("link 'arm': inertia is not positive semi-definite")));
  EXPECT_THAT(warnings_of(small_with(R"(<axis xyz="0 0 1"/>)", R"(<axis xyz="0 0 2"/>)")),
              ElementsAre(StartsWith("joint 'elbow': axis (0, 0, 2) has length 2")));
}

// --- urdfdom's output ----------------------------------------------------------------------------

TEST(LoadUrdfOutput, IsRestored) {
  console_bridge::OutputHandler* const before = console_bridge::getOutputHandler();
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  (void)parse_urdf(small);
  EXPECT_NE(error_with(R"(value="2")", R"(value="x")"), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(console_bridge::getOutputHandler(), before);
}

TEST(LoadUrdfOutput, StaysSilentOverWhatUrdfdomWouldRefuse) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  (void)small_with(R"(<limit lower="-1" upper="1" effort="10" velocity="3"/>)", "");
  (void)small_with(R"( effort="10" velocity="3")", "");
  (void)small_with(R"(<dynamics damping="0.5" friction="0.25"/>)", "<dynamics/>");
  (void)small_with("</link>", "<visual/></link>");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST(LoadUrdfOutput, IsRestoredAfterManyThreads) {
  console_bridge::OutputHandler* const before = console_bridge::getOutputHandler();
  std::array<std::thread, 4> threads;
  for (std::thread& thread : threads) {
    thread = std::thread([] {
      for (int k = 0; k < 50; ++k) (void)parse_urdf(small);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(console_bridge::getOutputHandler(), before);
}

// --- Robustness ----------------------------------------------------------------------------------

/// Reads anything; only a ModelError may come out.
void survive(const std::string& xml) {
  try {
    (void)load_urdf_string(xml);
  } catch (const ModelError&) {
  }
}

TEST(LoadUrdfSurvives, Truncation) {
  const std::string xml = read(assets + "all_joints.urdf");
  ASSERT_GT(xml.size(), 1000U);
  const std::size_t end = xml.rfind("</robot>") + 8;
  for (std::size_t size = 0; size < end; size += 3) {
    EXPECT_NE(error_in(xml.substr(0, size)), "") << size << " bytes";
  }
}

TEST(LoadUrdfSurvives, Mutations) {
  const unsigned seed = 20240607;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string original = read(assets + "all_joints.urdf");
  const std::string alphabet = "<>\"'/=&;!-?0123456789.eE+nainf xyz\n\t";
  for (int round = 0; round < 2000; ++round) {
    std::string xml = original;
    const std::size_t count = 1 + random() % 8;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = random() % xml.size();
      switch (random() % 4) {
        case 0: xml[at] = static_cast<char>(random() % 256); break;
        case 1: xml[at] = alphabet[random() % alphabet.size()]; break;
        case 2: xml.erase(at, 1 + random() % 40); break;
        default: xml.insert(at, xml.substr(random() % xml.size(), 1 + random() % 60)); break;
      }
    }
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_THROW(survive(xml));
  }
}

TEST(LoadUrdfSurvives, ForeignFiles) {
  const std::string shared = std::string(RD_SHARED_DIR) + "/robots";
  if (!std::filesystem::exists(shared)) GTEST_SKIP() << "no collection of robots here";
  int loaded = 0;
  for (const auto& entry : std::filesystem::directory_iterator(shared)) {
    if (entry.path().extension() != ".urdf") continue;
    SCOPED_TRACE(entry.path().string());
    RobotDescription d;
    ASSERT_NO_THROW(d = parse_file(entry.path().string()));
    ASSERT_NO_THROW((void)validate(d, false));
    EXPECT_EQ(d.links.size(), d.joints.size() + 1);
    ++loaded;
  }
  EXPECT_GT(loaded, 0);
}

}  // namespace
