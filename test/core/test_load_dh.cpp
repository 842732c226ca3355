// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <cmath>
#include <fstream>
#include <limits>
#include <locale>
#include <map>
#include <random>
#include <sstream>

#include "dynamics_core/load.hpp"
#include "support/errors.hpp"

namespace {

using namespace dynamics_core;
using support::error_of;
using support::replaced;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr double pi = 3.14159265358979323846;
constexpr double infinity = std::numeric_limits<double>::infinity();
const std::string robots = std::string(RD_SOURCE_DIR) + "/config/robots/";

const char* const small = R"(name: small
convention: saha
gravity: [0, -9.81, 0]
joints:
  - name: hinge
    type: revolute
    a: 0.3
    b: 0.1
    alpha: pi/2
    theta: 0.25
    mass: 2
    r: [0.15, 0, 0]
    inertia: [0.1, 0.2, 0.25]
  - name: slide
    type: prismatic
    b: 0.4
    mass: 1
)";

std::string read(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::string error_in(const std::string& text) {
  return error_of([&] { (void)validate(parse_dh(text, "arm.yaml"), false); });
}

std::string error_with(const std::string& from, const std::string& to) {
  return error_in(replaced(small, from, to));
}

// --- Poses ---------------------------------------------------------------------------------------

using Homogeneous = Eigen::Matrix4d;

Homogeneous turn_z(double angle) {
  Homogeneous T = Homogeneous::Identity();
  T.topLeftCorner<2, 2>() << std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle);
  return T;
}
Homogeneous turn_x(double angle) {
  Homogeneous T = Homogeneous::Identity();
  T.block<2, 2>(1, 1) << std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle);
  return T;
}
Homogeneous shift(double x, double y, double z) {
  Homogeneous T = Homogeneous::Identity();
  T.topRightCorner<3, 1>() << x, y, z;
  return T;
}

/// A row of a paper's table, for computing poses by elementary matrices.
struct Row {
  bool prismatic;
  double a, b, alpha, theta;
};

/// Poses of frames 2 … n+1 in frame 1, by the definition of the four parameters.
std::vector<Homogeneous> frames(const std::vector<Row>& table, const std::vector<double>& q) {
  std::vector<Homogeneous> poses;
  Homogeneous T = Homogeneous::Identity();
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Row& row = table[i];
    T = T * turn_z(row.theta + (row.prismatic ? 0.0 : q[i])) *
        shift(0, 0, row.b + (row.prismatic ? q[i] : 0.0)) * shift(row.a, 0, 0) * turn_x(row.alpha);
    poses.push_back(T);
  }
  return poses;
}

/// Poses of all links by walking the description; q by joint name.
std::map<std::string, Homogeneous> link_poses(const RobotDescription& d,
                                              const std::map<std::string, double>& q) {
  std::map<std::string, Homogeneous> poses = {{"base", Homogeneous::Identity()}};
  for (const JointDescription& joint : d.joints) {  // parents come first in these files
    Homogeneous T = Homogeneous::Identity();
    T.topLeftCorner<3, 3>() = joint.origin.R;
    T.topRightCorner<3, 1>() = joint.origin.p;
    if (joint.type != JointType::fixed) {
      EXPECT_EQ(joint.axis, Eigen::Vector3d::UnitZ());
    }
    if (joint.type == JointType::revolute) T = T * turn_z(q.at(joint.name));
    if (joint.type == JointType::prismatic) T = T * shift(0, 0, q.at(joint.name));
    poses[joint.child] = poses.at(joint.parent) * T;
  }
  return poses;
}

void expect_poses(const RobotDescription& d, const std::vector<Row>& table) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> angle(-3.0, 3.0);
  for (int k = 0; k < 20; ++k) {
    std::vector<double> q;
    std::map<std::string, double> by_name;
    for (std::size_t i = 0; i < table.size(); ++i) {
      q.push_back(k == 0 ? 0.0 : angle(random));
      by_name["joint" + std::to_string(i + 1)] = q.back();
    }
    const std::vector<Homogeneous> expected = frames(table, q);
    const std::map<std::string, Homogeneous> poses = link_poses(d, by_name);
    for (std::size_t i = 0; i < table.size(); ++i) {
      EXPECT_LT((poses.at("link" + std::to_string(i + 1)) - expected[i]).norm(), 1e-14)
          << "link " << i + 1;
    }
  }
}

std::vector<Row> stanford(double b1) {
  const double right = pi / 2;
  return {{false, 0, b1, -right, 0}, {false, 0, 0.1, -right, 0}, {true, 0, 0, 0, 0},
          {false, 0, 0.6, right, 0}, {false, 0, 0, -right, 0},   {false, 0, 0, 0, 0}};
}

TEST(LoadDhPoses, PlanarArm) {
  const RobotDescription d = parse_file(robots + "planar3r.yaml");
  expect_poses(d, {{false, 0.3, 0, 0, 0}, {false, 0.3, 0, 0, 0}, {false, 0.2, 0, 0, 0}});
  // By hand: the tip at θ = (90°, −90°, 90°).
  const auto poses = link_poses(d, {{"joint1", pi / 2}, {"joint2", -pi / 2}, {"joint3", pi / 2}});
  EXPECT_LT((poses.at("link3").topRightCorner<3, 1>() - Eigen::Vector3d(0.3, 0.5, 0)).norm(),
            1e-15);
}

TEST(LoadDhPoses, StanfordArms) {
  expect_poses(parse_file(robots + "stanford_saha1999.yaml"), stanford(0.2));
  expect_poses(parse_file(robots + "stanford_saha2001.yaml"), stanford(0.1));
}

TEST(LoadDhPoses, Puma) {
  const double right = pi / 2;
  expect_poses(parse_file(robots + "puma_saha2001.yaml"), {{false, 0, 0, -right, 0},
                                                           {false, 0.432, 0.149, 0, 0},
                                                           {false, 0.02, 0, right, 0},
                                                           {false, 0, 0.432, -right, 0},
                                                           {false, 0, 0, right, 0},
                                                           {false, 0, 0.056, 0, 0}});
}

TEST(LoadDhPoses, GeneralRows) {
  const std::vector<Row> table = {
      {false, 0.3, -0.2, 0.7, 0.4}, {true, -0.1, 0.5, -1.1, 2.0}, {false, 0.25, 0.15, 2.5, -0.6}};
  std::ostringstream text;
  text << "joints:\n";
  for (const Row& row : table) {
    text << "  - {type: " << (row.prismatic ? "prismatic" : "revolute") << ", a: " << row.a
         << ", b: " << row.b << ", alpha: " << row.alpha << ", theta: " << row.theta << "}\n";
  }
  expect_poses(parse_dh(text.str()), table);
}

// --- Mass properties -----------------------------------------------------------------------------

TEST(LoadDh, PutsMassCentresWhereTheTableSays) {
  // Saha's r leads from the mass centre to O_{i+1}: the first link of the Stanford arm has its mass
  // centre halfway up the column, the planar links in their middle.
  const RobotDescription d = parse_file(robots + "stanford_saha1999.yaml");
  const auto poses = link_poses(d, {{"joint1", 0.3},
                                    {"joint2", 0.0},
                                    {"joint3", 0.0},
                                    {"joint4", 0.0},
                                    {"joint5", 0.0},
                                    {"joint6", 0.0}});
  const Eigen::Vector4d com = poses.at("link1") * d.links[2].inertial->com.homogeneous();
  EXPECT_LT((com.head<3>() - Eigen::Vector3d(0, 0, 0.1)).norm(), 1e-15);

  const RobotDescription planar = parse_file(robots + "planar3r.yaml");
  const auto upright = link_poses(planar, {{"joint1", pi / 2}, {"joint2", 0}, {"joint3", 0}});
  const Eigen::Vector4d middle = upright.at("link2") * planar.links[4].inertial->com.homogeneous();
  EXPECT_LT((middle.head<3>() - Eigen::Vector3d(0, 0.45, 0)).norm(), 1e-15);
}

TEST(LoadDh, ReadsASmallTable) {
  const RobotDescription d = parse_dh(small, "arm.yaml");
  EXPECT_EQ(d.name, "small");
  EXPECT_EQ(d.source, "arm.yaml");
  EXPECT_EQ(d.gravity, Eigen::Vector3d(0, -9.81, 0));
  ASSERT_THAT(d.links, SizeIs(5));
  EXPECT_EQ(d.links[0].name, "base");
  EXPECT_EQ(d.links[1].name, "hinge_axis");
  EXPECT_EQ(d.links[2].name, "link1");
  EXPECT_EQ(d.links[3].name, "slide_axis");
  EXPECT_EQ(d.links[4].name, "link2");
  EXPECT_FALSE(d.links[1].inertial);
  EXPECT_EQ(d.links[2].inertial->mass, 2.0);
  EXPECT_EQ(d.links[2].inertial->com, Eigen::Vector3d(-0.15, 0, 0));
  EXPECT_EQ(d.links[2].inertial->inertia.diagonal(), Eigen::Vector3d(0.1, 0.2, 0.25));
  ASSERT_THAT(d.joints, SizeIs(4));
  EXPECT_EQ(d.joints[0].name, "hinge");
  EXPECT_EQ(d.joints[0].type, JointType::revolute);
  EXPECT_EQ(d.joints[0].parent, "base");
  EXPECT_FALSE(d.joints[0].limits);
  EXPECT_EQ(d.joints[1].type, JointType::fixed);
  EXPECT_EQ(d.joints[2].type, JointType::prismatic);
  EXPECT_EQ(d.joints[2].parent, "link1");
  EXPECT_THAT(validate(d, true), IsEmpty());
}

TEST(LoadDh, ReadsEveryKey) {
  const RobotDescription d = parse_dh(R"(
joints:
  - type: revolute
    link: trunk
    mass: 1
    com: [1, 2, 3]
    inertia: [3, 0.1, 0.2, 4, 0.3, 5]
    damping: 0.5
    friction: 0.25
    rotor_inertia: 1e-4
    gear_ratio: 100
    limits: {lower: -pi, upper: 3*pi/4, velocity: 2, effort: 30}
  - type: prismatic
    mass: 1
    limits: {upper: 0.5}
)");
  const JointDescription& j = d.joints[0];
  EXPECT_EQ(d.name, "robot");
  EXPECT_EQ(j.name, "joint1");
  EXPECT_EQ(d.joints[1].child, "trunk");
  EXPECT_EQ(d.links[2].inertial->com, Eigen::Vector3d(1, 2, 3));
  Eigen::Matrix3d inertia;
  inertia << 3, 0.1, 0.2, 0.1, 4, 0.3, 0.2, 0.3, 5;
  EXPECT_EQ(d.links[2].inertial->inertia, inertia);
  EXPECT_EQ(j.damping, 0.5);
  EXPECT_EQ(j.friction, 0.25);
  EXPECT_EQ(j.rotor_inertia, 1e-4);
  EXPECT_EQ(j.gear_ratio, 100.0);
  EXPECT_DOUBLE_EQ(j.limits->lower, -pi);
  EXPECT_DOUBLE_EQ(j.limits->upper, 0.75 * pi);
  EXPECT_EQ(j.limits->velocity, 2.0);
  EXPECT_EQ(j.limits->effort, 30.0);
  EXPECT_EQ(d.joints[2].limits->lower, -infinity);
  EXPECT_EQ(d.joints[2].limits->upper, 0.5);
  EXPECT_EQ(d.gravity, Eigen::Vector3d(0, 0, -9.81));
}

TEST(LoadDh, ReadsAScrew) {
  const RobotDescription d = parse_dh(R"(
angles: degrees
joints:
  - type: helical
    pitch: 0.002
    b: 0.5
    theta: 90
    mass: 1
    limits: {lower: -360, upper: 180}
  - {type: revolute, mass: 1}
)");
  const JointDescription& j = d.joints[0];
  EXPECT_EQ(j.type, JointType::helical);
  EXPECT_EQ(j.pitch, 0.002) << "metres per radian, although angles are in degrees";
  EXPECT_EQ(j.axis, Eigen::Vector3d::UnitZ());
  EXPECT_DOUBLE_EQ(j.limits->lower, -2.0 * pi);
  EXPECT_DOUBLE_EQ(j.limits->upper, pi);
  EXPECT_EQ(d.joints[1].origin.p, Eigen::Vector3d(0, 0, 0.5));
  EXPECT_EQ(d.joints[1].origin.R * Eigen::Vector3d::UnitX(), Eigen::Vector3d::UnitY());
  EXPECT_EQ(d.joints[2].pitch, 0.0);
  EXPECT_THAT(validate(d, true), IsEmpty());
}

TEST(LoadDh, ReadsJson) {
  const RobotDescription d = parse_dh(
      R"({"name": "j", "angles": "degrees",
          "joints": [{"type": "revolute", "alpha": -90, "mass": 1.5, "r": [0, 0, 0.1]}]})");
  EXPECT_EQ(d.name, "j");
  EXPECT_EQ(d.links[2].inertial->mass, 1.5);
  EXPECT_EQ(d.joints[1].origin.R * Eigen::Vector3d::UnitZ(), Eigen::Vector3d::UnitY());
}

TEST(LoadDh, MakesRightAnglesExact) {
  Eigen::Matrix3d expected;
  expected << 1, 0, 0, 0, 0, -1, 0, 1, 0;
  for (const char* alpha :
       {"pi/2", "1.5707963267948966", "0.5*pi", "+pi/2", "5pi/2", "-3 * pi / 2"}) {
    const RobotDescription d =
        parse_dh("joints: [{type: revolute, alpha: " + std::string(alpha) + "}]");
    EXPECT_EQ(d.joints[1].origin.R, expected) << alpha;
  }
  const RobotDescription d = parse_dh("{angles: degrees, joints: [{type: revolute, alpha: 90}]}");
  EXPECT_EQ(d.joints[1].origin.R, expected);
}

TEST(LoadDh, ReadsNumbersAlikeInAnyLocale) {
  const std::locale before;
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
  };
  std::locale::global(std::locale(before, new Comma));
  const RobotDescription d = parse_dh(small);
  std::locale::global(before);
  EXPECT_EQ(d.links[2].inertial->inertia(2, 2), 0.25);
}

TEST(LoadDh, BuildsModels) {
  for (const char* name : {"stanford_saha1999", "stanford_saha2001", "puma_saha2001"}) {
    EXPECT_EQ(load_dh(robots + name + ".yaml").nv, 6) << name;
  }
  EXPECT_EQ(load_model(robots + "planar3r.yaml").nv, 3);
  EXPECT_EQ(load_dh_string(small).nv, 2);
}

TEST(LoadDh, WarnsOfThePumasNegativeMoments) {
  const std::vector<std::string> warnings =
      validate(parse_file(robots + "puma_saha2001.yaml"), false);
  ASSERT_THAT(warnings, SizeIs(4));
  EXPECT_THAT(warnings, Each(HasSubstr("not positive semi-definite")));
  EXPECT_THAT(warnings[0], AllOf(StartsWith("link 'link1'"), HasSubstr("-1.612")));
  EXPECT_THAT(error_of([] { (void)validate(parse_file(robots + "puma_saha2001.yaml"), true); }),
              AllOf(HasSubstr("puma_saha2001.yaml: link 'link1'"), HasSubstr("-1.612")));
}

// --- What is refused -----------------------------------------------------------------------------

TEST(LoadDhRefuses, WhatIsNotATable) {
  EXPECT_THAT(error_in(""), HasSubstr("arm.yaml: file: is empty"));
  EXPECT_THAT(error_in("hello"), HasSubstr("is no Denavit–Hartenberg table"));
  EXPECT_THAT(error_in("- 1\n- 2"), HasSubstr("is no Denavit–Hartenberg table"));
  EXPECT_THAT(error_in("# nothing"), HasSubstr("is no Denavit–Hartenberg table"));
  EXPECT_THAT(error_in("name: x\njoints: [{"),
              AllOf(HasSubstr("arm.yaml: line "), HasSubstr("not YAML")));
  EXPECT_THAT(error_in("name: x"), HasSubstr("has no list of joints"));
  EXPECT_THAT(error_in("joints: []"), HasSubstr("has no list of joints"));
  EXPECT_THAT(error_in("joints: 3"), HasSubstr("line 1: has no list of joints"));
  EXPECT_THAT(error_in("joints:\n  - 3"), HasSubstr("joint 1 (line 2): is not a mapping"));
}

TEST(LoadDhRefuses, UnknownKeys) {
  EXPECT_THAT(error_with("gravity:", "gravty:"),
              AllOf(StartsWith("arm.yaml: line 3: unknown key 'gravty'"), HasSubstr("gravity")));
  EXPECT_THAT(
      error_with("mass: 2", "mas: 2"),
      AllOf(StartsWith("arm.yaml: joint 'hinge' (line 11): unknown key 'mas'"), HasSubstr("mass")));
  EXPECT_THAT(error_with("b: 0.4", "limits: {low: 1}"),
              StartsWith("arm.yaml: joint 'slide' (line 16): unknown key 'low'"));
  EXPECT_THAT(error_with("mass: 2", "[mass]: 2"), HasSubstr("(line 11): unknown key"));
  EXPECT_THAT(error_with("    b: 0.1\n", "    a: 0.1\n"),
              StartsWith("arm.yaml: joint 'hinge' (line 8): key 'a' is given twice"));
}

TEST(LoadDhRefuses, BadValues) {
  EXPECT_THAT(error_with("a: 0.3", "a: long"),
              StartsWith("arm.yaml: joint 'hinge' (line 7): a 'long' is not a finite number"));
  EXPECT_THAT(error_with("a: 0.3", "a: 0,3"), HasSubstr("a '0,3' is not a finite number"));
  EXPECT_THAT(error_with("a: 0.3", "a: [1]"), HasSubstr("(line 7): a is not a single value"));
  EXPECT_THAT(error_with("a: 0.3", "a:"), HasSubstr("a is not a single value"));
  for (const char* value : {".nan", "nan", ".inf", "inf", "1e999"}) {
    EXPECT_THAT(error_with("mass: 2", "mass: " + std::string(value)),
                HasSubstr("mass '" + std::string(value) + "' is not a finite number"));
  }
  EXPECT_THAT(error_with("type: revolute", "type: ball"),
              AllOf(HasSubstr("joint 'hinge' (line 6): type 'ball' is unknown"),
                    HasSubstr("revolute or prismatic")));
  EXPECT_THAT(error_with("    type: revolute\n", ""),
              HasSubstr("joint 'hinge' (line 5): has no type"));
  EXPECT_THAT(error_with("convention: saha", "convention: craig"),
              HasSubstr("line 2: convention 'craig' is unknown; write saha"));
  EXPECT_THAT(error_with("convention: saha", "angles: grad"),
              HasSubstr("line 2: angles 'grad' is unknown; write radians or degrees"));
}

TEST(LoadDhRefuses, BadPitches) {
  const auto screw = [](const std::string& pitch) {
    return error_with("type: revolute", "type: helical" + pitch);
  };
  EXPECT_EQ(screw("\n    pitch: -0.01"), "");
  EXPECT_EQ(
      screw(""),
      "arm.yaml: joint 'hinge' (line 5): is helical but has no pitch; add it, in metres along "
      "the axis per radian");
  EXPECT_EQ(screw("\n    pitch: 0"),
            "arm.yaml: joint 'hinge': is helical but its pitch is 0; use revolute");
  EXPECT_THAT(screw("\n    pitch: steep"),
              HasSubstr("joint 'hinge' (line 7): pitch 'steep' is not a finite number"));
  EXPECT_THAT(screw("\n    pitch: inf"), HasSubstr("pitch 'inf' is not a finite number"));
  EXPECT_EQ(error_with("type: prismatic", "type: prismatic\n    pitch: 0.01"),
            "arm.yaml: joint 'slide' (line 16): is prismatic but has a pitch; remove the pitch or "
            "write type: helical");
}

TEST(LoadDhRefuses, BadAngles) {
  for (const char* angle : {"pi/", "pi/0", "/pi", "pip", "x*pi", "*pi", "2**pi", "pi*2", "nan"}) {
    EXPECT_THAT(
        error_with("alpha: pi/2", "alpha: '" + std::string(angle) + "'"),
        AllOf(HasSubstr("joint 'hinge' (line 9): alpha"), HasSubstr(angle), HasSubstr("-pi/2")))
        << angle;
  }
  EXPECT_THAT(error_with("convention: saha", "angles: degrees"),
              HasSubstr("alpha 'pi/2' is not a finite number; write a number of degrees"));
}

TEST(LoadDhRefuses, BadLists) {
  EXPECT_THAT(error_with("[0, -9.81, 0]", "[0, -9.81]"),
              HasSubstr("line 3: gravity has 2 numbers; write a list of 3 numbers"));
  EXPECT_THAT(error_with("[0, -9.81, 0]", "9.81"), HasSubstr("line 3: gravity is not a list"));
  EXPECT_THAT(error_with("[0.1, 0.2, 0.25]", "[0.1, 0.2, 0.25, 0]"),
              HasSubstr("joint 'hinge' (line 13): inertia has 4 numbers; write a list of 3 or 6"));
  EXPECT_THAT(error_with("[0.15, 0, 0]", "[0.15, 0, x]"),
              HasSubstr("(line 12): r 'x' is not a finite number"));
  EXPECT_THAT(error_with("b: 0.4", "limits: 3"), HasSubstr("(line 16): limits is not a mapping"));
}

TEST(LoadDhRefuses, Contradictions) {
  EXPECT_THAT(error_with("    mass: 2\n", "    com: [0, 0, 0]\n    mass: 2\n"),
              HasSubstr("has both r and com"));
  EXPECT_THAT(error_with("    mass: 2\n", ""), HasSubstr("but no mass; add the mass"));
  EXPECT_THAT(error_with("mass: 2", "mass: -2"), HasSubstr("link 'link1': mass -2 is negative"));
  EXPECT_THAT(error_with("b: 0.4", "limits: {lower: 1, upper: 0.5}"),
              HasSubstr("joint 'slide': lower limit 1 is above upper limit 0.5"));
  EXPECT_THAT(error_with("name: slide", "name: hinge"), HasSubstr("joint 'hinge': exists twice"));
}

TEST(LoadDhRefuses, TooMuch) {
  std::string text = "joints:\n";
  for (int i = 0; i < 512; ++i) text += "  - {type: revolute, mass: 1}\n";
  EXPECT_EQ(error_in(text), "");
  EXPECT_THAT(error_in(text + "  - {type: revolute, mass: 1}\n"), HasSubstr("513 joints"));
  text.resize(10'000'001, '#');
  EXPECT_THAT(error_in(text), HasSubstr("larger than 10 MB"));
}

// --- Robustness ----------------------------------------------------------------------------------

void survive(const std::string& text) {
  try {
    (void)load_dh_string(text);
  } catch (const ModelError&) {
  }
}

TEST(LoadDhSurvives, DeepNesting) {
  for (const char* open : {"[", "{", "- ", "{a: ", "? "}) {
    std::string text = "joints: ";
    for (int i = 0; i < 20000; ++i) text += open;
    EXPECT_NE(error_in(text), "") << open;
  }
}

TEST(LoadDhSurvives, Aliases) {
  EXPECT_NE(error_in("joints: &a [*a]"), "");
  EXPECT_NE(error_in("joints: [&a {type: revolute, limits: *a}]"), "");
  EXPECT_EQ(error_in("joints: [{type: revolute, mass: &m 1, a: *m}]"), "");
}

TEST(LoadDhSurvives, Truncation) {
  const std::string text = read(robots + "stanford_saha1999.yaml");
  ASSERT_GT(text.size(), 500U);
  for (std::size_t size = 0; size < text.size(); ++size) {
    ASSERT_NO_THROW(survive(text.substr(0, size))) << size << " bytes";
  }
}

TEST(LoadDhSurvives, Mutations) {
  const unsigned seed = 20240608;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string original = small;
  const std::string alphabet = "{}[]:,-#&*!|>'\"%@`?0123456789.eE+pi nainf\n\t";
  for (int round = 0; round < 4000; ++round) {
    std::string text = original;
    const std::size_t count = 1 + random() % 6;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = static_cast<char>(random() % 256); break;
        case 1: text[at] = alphabet[random() % alphabet.size()]; break;
        case 2: text.erase(at, 1 + random() % 10); break;
        default: text.insert(at, text.substr(random() % text.size(), 1 + random() % 20)); break;
      }
      if (text.empty()) text = " ";
    }
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_THROW(survive(text));
  }
}

}  // namespace
