// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "dynamics_core/description.hpp"
#include "support/errors.hpp"

namespace {

using namespace dynamics_core;
using support::error_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

LinkDescription body(const std::string& name) {
  return {name, Inertial{1.0, Eigen::Vector3d(0.1, 0, 0), Eigen::Matrix3d::Identity()}};
}

JointDescription joint(const std::string& name, const std::string& parent, const std::string& child,
                       JointType type = JointType::revolute) {
  JointDescription j;
  j.name = name;
  j.type = type;
  j.parent = parent;
  j.child = child;
  return j;
}

/// base –shoulder– upper –elbow– lower –wrist (fixed)– hand
RobotDescription arm() {
  RobotDescription d;
  d.name = "arm";
  d.source = "arm.urdf";
  d.links = {{"base", std::nullopt}, body("upper"), body("lower"), {"hand", std::nullopt}};
  d.joints = {joint("shoulder", "base", "upper"), joint("elbow", "upper", "lower"),
              joint("wrist", "lower", "hand", JointType::fixed)};
  return d;
}

/// The error about an arm that was changed.
template <class Change>
std::string error_after(Change change) {
  RobotDescription d = arm();
  change(d);
  return error_of([&] { (void)validate(d, false); });
}

/// The warnings about an arm that was changed; checks that strict throws the first of them.
template <class Change>
std::vector<std::string> warnings_after(Change change) {
  RobotDescription d = arm();
  change(d);
  std::vector<std::string> warnings = validate(d, false);
  const std::string error = error_of([&] { (void)validate(d, true); });
  EXPECT_EQ(error, warnings.empty() ? "" : "arm.urdf: " + warnings.front());
  return warnings;
}

TEST(Validate, AcceptsASoundArm) {
  EXPECT_THAT(warnings_after([](RobotDescription&) {}), IsEmpty());
}

TEST(Validate, NamesJointTypes) {
  EXPECT_STREQ(to_string(JointType::revolute), "revolute");
  EXPECT_STREQ(to_string(JointType::continuous), "continuous");
  EXPECT_STREQ(to_string(JointType::prismatic), "prismatic");
  EXPECT_STREQ(to_string(JointType::fixed), "fixed");
  EXPECT_STREQ(to_string(JointType::planar), "planar");
  EXPECT_STREQ(to_string(JointType::floating), "floating");
  EXPECT_STREQ(to_string(JointType::helical), "helical");
  EXPECT_STREQ(to_string(static_cast<JointType>(77)), "unknown type");
}

TEST(Validate, ErrorNamesItsElement) {
  RobotDescription d = arm();
  d.links[1].inertial->mass = -2.0;
  try {
    (void)validate(d, false);
    FAIL() << "accepted a negative mass";
  } catch (const ModelError& error) {
    EXPECT_EQ(error.element(), "link 'upper'");
    EXPECT_STREQ(error.what(),
                 "arm.urdf: link 'upper': mass -2 is negative; write zero or a positive number");
  }
}

// --- The tree ------------------------------------------------------------------------------------

TEST(ValidateTree, RefusesNoLinks) {
  EXPECT_THAT(error_of([] { (void)validate(RobotDescription{}, false); }),
              HasSubstr("robot: has no links"));
}

TEST(ValidateTree, RefusesNamelessAndDoubleNames) {
  EXPECT_THAT(error_after([](auto& d) { d.links[2].name = ""; }),
              HasSubstr("link number 3: has no name"));
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].name = ""; }),
              HasSubstr("joint number 2: has no name"));
  EXPECT_THAT(error_after([](auto& d) { d.links.push_back(body("upper")); }),
              HasSubstr("link 'upper': exists twice"));
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].name = "shoulder"; }),
              HasSubstr("joint 'shoulder': exists twice"));
}

TEST(ValidateTree, RefusesUnknownLinks) {
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].parent = "upr"; }),
              HasSubstr("joint 'elbow': parent link 'upr' does not exist"));
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].child = "lwr"; }),
              HasSubstr("joint 'elbow': child link 'lwr' does not exist"));
}

TEST(ValidateTree, RefusesALinkJoinedToItself) {
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].parent = "lower"; }),
              HasSubstr("joint 'elbow': connects link 'lower' to itself"));
}

TEST(ValidateTree, RefusesTwoParents) {
  EXPECT_THAT(error_after([](auto& d) { d.joints.push_back(joint("brace", "base", "lower")); }),
              HasSubstr("link 'lower': has two parents, through joints 'elbow' and 'brace'"));
}

TEST(ValidateTree, RefusesTwoRoots) {
  EXPECT_THAT(error_after([](auto& d) { d.links.push_back(body("stray")); }),
              HasSubstr("robot: has 2 root links, 'base', 'stray'"));
}

TEST(ValidateTree, ListsOnlySomeOfManyRoots) {
  const std::string error = error_after([](auto& d) {
    for (int i = 0; i < 5000; ++i) d.links.push_back(body("stray" + std::to_string(i)));
  });
  EXPECT_THAT(error, AllOf(HasSubstr("5001 root links"), HasSubstr("…")));
  EXPECT_LT(error.size(), 300U);
}

TEST(ValidateTree, RefusesNoRoot) {
  EXPECT_THAT(error_after([](auto& d) { d.joints.push_back(joint("back", "hand", "base")); }),
              AllOf(HasSubstr("is its own ancestor"), HasSubstr("'base'"),
                    HasSubstr("no link is the root")));
}

TEST(ValidateTree, RefusesADetachedCycle) {
  EXPECT_THAT(error_after([](auto& d) {
                d.links.push_back(body("a"));
                d.links.push_back(body("b"));
                d.joints.push_back(joint("ab", "a", "b"));
                d.joints.push_back(joint("ba", "b", "a"));
              }),
              AllOf(HasSubstr("'a'"), HasSubstr("'b'"), HasSubstr("is its own ancestor"),
                    HasSubstr("detached from the root 'base'")));
}

TEST(ValidateTree, RefusesMoreThan1024Joints) {
  RobotDescription d;
  d.links.push_back(body("l0"));
  const auto extend = [&](int i) {
    d.links.push_back(body("l" + std::to_string(i)));
    d.joints.push_back(
        joint("j" + std::to_string(i), "l" + std::to_string(i - 1), "l" + std::to_string(i)));
  };
  for (int i = 1; i <= 1024; ++i) extend(i);
  EXPECT_THAT(validate(d, true), IsEmpty());
  extend(1025);
  EXPECT_THAT(error_of([&] { (void)validate(d, false); }), HasSubstr("1025 joints"));
}

TEST(ValidateTree, CutsLongNames) {
  const std::string error =
      error_after([](auto& d) { d.joints[1].parent = std::string(100000, 'x'); });
  EXPECT_THAT(error, HasSubstr("xxx…' does not exist"));
  EXPECT_LT(error.size(), 300U);
}

// --- Links ---------------------------------------------------------------------------------------

TEST(ValidateLink, RefusesNonFiniteNumbers) {
  EXPECT_THAT(error_after([](auto& d) { d.links[1].inertial->mass = nan; }),
              HasSubstr("link 'upper': mass is nan"));
  EXPECT_THAT(error_after([](auto& d) { d.links[1].inertial->mass = infinity; }),
              HasSubstr("link 'upper': mass is inf"));
  EXPECT_THAT(error_after([](auto& d) { d.links[2].inertial->com[2] = -infinity; }),
              HasSubstr("link 'lower': centre of mass is -inf"));
  EXPECT_THAT(error_after([](auto& d) { d.links[2].inertial->inertia(1, 2) = nan; }),
              HasSubstr("link 'lower': inertia is nan"));
  EXPECT_THAT(error_after([](auto& d) { d.gravity[0] = infinity; }),
              HasSubstr("robot: gravity is inf"));
}

TEST(ValidateLink, RefusesAnAsymmetricInertia) {
  EXPECT_THAT(error_after([](auto& d) { d.links[1].inertial->inertia(0, 1) = 0.1; }),
              HasSubstr("link 'upper': inertia is not symmetric"));
}

TEST(ValidateLink, WarnsOfAnIndefiniteInertia) {
  EXPECT_THAT(warnings_after([](auto& d) {
                d.links[1].inertial->inertia = Eigen::Vector3d(1.612, -1.612, 0.5).asDiagonal();
              }),
              ElementsAre(AllOf(StartsWith("link 'upper': inertia is not positive semi-definite"),
                                HasSubstr("-1.612, 0.5, 1.612"))));
}

TEST(ValidateLink, WarnsOfAHiddenIndefiniteInertia) {
  // Positive on the diagonal, but the products of inertia are too large.
  EXPECT_THAT(
      warnings_after([](auto& d) { d.links[1].inertial->inertia << 1, 2, 0, 2, 1, 0, 0, 0, 1; }),
      ElementsAre(HasSubstr("principal moments -1, 1, 3")));
}

TEST(ValidateLink, WarnsOfABrokenTriangle) {
  EXPECT_THAT(warnings_after([](auto& d) {
                d.links[2].inertial->inertia = Eigen::Vector3d(1.0, 1.0, 2.25).asDiagonal();
              }),
              ElementsAre(AllOf(StartsWith("link 'lower': inertia breaks the triangle inequality"),
                                HasSubstr("1, 1, 2.25"))));
}

TEST(ValidateLink, AcceptsFlatAndThinBodies) {
  // A lamina meets the triangle inequality with equality, and rounding must not matter.
  EXPECT_THAT(warnings_after([](auto& d) {
                d.links[1].inertial->inertia = Eigen::Vector3d(0.1, 0.2, 0.1 + 0.2).asDiagonal();
                d.links[2].inertial->inertia = Eigen::Vector3d(0.0, 0.1, 0.1).asDiagonal();
              }),
              IsEmpty());
  EXPECT_THAT(warnings_after([](auto& d) {
                d.links[1].inertial->inertia =
                    Eigen::Vector3d(0.1, 0.2, 0.3 * (1 + 1e-8)).asDiagonal();
              }),
              ElementsAre(HasSubstr("triangle")));
}

TEST(ValidateLink, SurvivesExtremeInertias) {
  for (const double size : {1e-320, 1e-200, 1e200, 1e308}) {
    EXPECT_THAT(warnings_after([&](auto& d) {
                  d.links[1].inertial->inertia = size * Eigen::Matrix3d::Identity();
                }),
                IsEmpty())
        << size;
  }
}

TEST(ValidateLink, WarnsOfInertiaWithoutMass) {
  EXPECT_THAT(warnings_after([](auto& d) { d.links[1].inertial->mass = 0.0; }),
              ElementsAre(AllOf(StartsWith("link 'upper': mass is 0 but inertia is not"),
                                HasSubstr("trace 3"))));
}

TEST(ValidateLink, WarnsOfAMovingBodyWithoutMass) {
  const auto names_it =
      ElementsAre(AllOf(StartsWith("link 'lower': moves with joint 'elbow'"), HasSubstr("is 0")));
  EXPECT_THAT(warnings_after([](auto& d) { d.links[2].inertial.reset(); }), names_it);
  EXPECT_THAT(warnings_after([](auto& d) { d.links[2].inertial = Inertial{}; }), names_it);
}

TEST(ValidateLink, CountsWhatIsFixedToABody) {
  EXPECT_THAT(warnings_after([](auto& d) {
                d.links[2].inertial.reset();
                d.links[3].inertial = body("").inertial;
              }),
              IsEmpty());
  // The hand is heavy but moves by itself now.
  EXPECT_THAT(warnings_after([](auto& d) {
                d.links[2].inertial.reset();
                d.links[3].inertial = body("").inertial;
                d.joints[2].type = JointType::continuous;
              }),
              ElementsAre(HasSubstr("link 'lower'")));
}

// --- Joints --------------------------------------------------------------------------------------

TEST(ValidateJoint, RefusesAZeroAxis) {
  for (const JointType type :
       {JointType::revolute, JointType::continuous, JointType::prismatic, JointType::planar}) {
    EXPECT_THAT(error_after([&](auto& d) {
                  d.joints[1].type = type;
                  d.joints[1].axis.setZero();
                }),
                HasSubstr("joint 'elbow': axis (0, 0, 0) is zero"));
  }
  for (const JointType type : {JointType::fixed, JointType::floating}) {
    EXPECT_EQ(error_after([&](auto& d) {
                d.joints[1].type = type;
                d.joints[1].axis.setZero();
              }),
              "");
  }
}

/// Makes the elbow a screw.
void make_helical(RobotDescription& d, double pitch) {
  d.joints[1].type = JointType::helical;
  d.joints[1].pitch = pitch;
}

TEST(ValidateJoint, AcceptsAScrew) {
  for (const double pitch : {0.01, -0.01}) {
    EXPECT_THAT(warnings_after([&](auto& d) {
                  make_helical(d, pitch);
                  d.joints[1].limits = Limits{-1.0, 1.0, 2.0, 3.0};
                }),
                IsEmpty());
  }
  EXPECT_THAT(warnings_after([](auto& d) {
                make_helical(d, 0.01);
                d.joints[0].mimic = Mimic{"elbow"};
              }),
              IsEmpty());
  EXPECT_THAT(warnings_after([](auto& d) {
                make_helical(d, 0.01);
                d.joints[1].mimic = Mimic{"shoulder"};
              }),
              IsEmpty());
}

TEST(ValidateJoint, ChecksAScrewLikeARevoluteJoint) {
  EXPECT_THAT(error_after([](auto& d) {
                make_helical(d, 0.01);
                d.joints[1].axis.setZero();
              }),
              HasSubstr("joint 'elbow': axis (0, 0, 0) is zero"));
  EXPECT_THAT(error_after([](auto& d) {
                make_helical(d, 0.01);
                d.joints[1].limits = Limits{1.0, -1.0, 2.0, 3.0};
              }),
              HasSubstr("joint 'elbow': lower limit 1 is above upper limit -1"));
}

TEST(ValidateJoint, RefusesABadPitch) {
  EXPECT_EQ(error_after([](auto& d) { make_helical(d, 0.0); }),
            "arm.urdf: joint 'elbow': is helical but its pitch is 0; use revolute");
  EXPECT_THAT(error_after([](auto& d) { make_helical(d, nan); }),
              HasSubstr("joint 'elbow': pitch is nan; write a finite number"));
  EXPECT_THAT(error_after([](auto& d) { make_helical(d, -infinity); }),
              HasSubstr("joint 'elbow': pitch is -inf"));
  EXPECT_EQ(error_after([](auto& d) { d.joints[1].pitch = 0.01; }),
            "arm.urdf: joint 'elbow': is revolute but has a pitch of 0.01; remove the pitch or use "
            "helical");
}

TEST(ValidateJoint, WarnsOfANonUnitAxis) {
  EXPECT_THAT(warnings_after([](auto& d) { d.joints[1].axis << 0, 3, -4; }),
              ElementsAre(StartsWith("joint 'elbow': axis (0, 3, -4) has length 5")));
  EXPECT_THAT(warnings_after([](auto& d) { d.joints[1].axis << 0.707107, 0, 0.707107; }),
              IsEmpty());
}

TEST(ValidateJoint, RefusesAnAxisThatCannotBeNormalised) {
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].axis << 1e300, 1e300, 0; }),
              HasSubstr("length of axis (1e+300, 1e+300, 0) is inf"));
}

TEST(ValidateJoint, RefusesNonFiniteNumbers) {
  EXPECT_THAT(error_after([](auto& d) { d.joints[2].axis[1] = nan; }),
              HasSubstr("joint 'wrist': axis is nan"));
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].origin.p[0] = infinity; }),
              HasSubstr("joint 'elbow': origin is inf"));
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].origin.R(0, 0) = nan; }),
              HasSubstr("joint 'elbow': rotation of the origin is nan"));
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].damping = nan; }),
              HasSubstr("joint 'elbow': damping is nan"));
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].friction = infinity; }),
              HasSubstr("joint 'elbow': friction is inf"));
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].rotor_inertia = nan; }),
              HasSubstr("joint 'elbow': rotor inertia is nan"));
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].gear_ratio = infinity; }),
              HasSubstr("joint 'elbow': gear ratio is inf"));
}

TEST(ValidateJoint, RefusesNegativeNumbers) {
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].damping = -0.5; }),
              HasSubstr("joint 'elbow': damping -0.5 is negative"));
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].friction = -1.5; }),
              HasSubstr("joint 'elbow': friction -1.5 is negative"));
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].rotor_inertia = -1e-5; }),
              HasSubstr("joint 'elbow': rotor inertia -1e-05 is negative"));
}

TEST(ValidateJoint, RefusesWhatIsNoRotation) {
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].origin.R(0, 1) = 0.1; }),
              HasSubstr("joint 'elbow': rotation of the origin is not orthonormal"));
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].origin.R(2, 2) = -1.0; }),
              HasSubstr("joint 'elbow': rotation of the origin is not orthonormal"));
}

TEST(ValidateJoint, RefusesLowerAboveUpper) {
  EXPECT_EQ(error_after([](auto& d) {
              d.joints[1].limits = Limits{2.0, 1.0, 1.0, 1.0};
            }),
            "arm.urdf: joint 'elbow': lower limit 2 is above upper limit 1; swap them or correct "
            "one");
}

TEST(ValidateJoint, RefusesImpossibleLimits) {
  EXPECT_THAT(error_after([](auto& d) {
                d.joints[1].limits = Limits{nan, 1.0, 1.0, 1.0};
              }),
              HasSubstr("lower limit is nan"));
  EXPECT_THAT(error_after([](auto& d) {
                d.joints[1].limits = Limits{0.0, nan, 1.0, 1.0};
              }),
              HasSubstr("upper limit is nan"));
  EXPECT_THAT(error_after([](auto& d) {
                d.joints[1].limits = Limits{infinity, infinity, 1, 1};
              }),
              HasSubstr("lower limit is inf"));
  EXPECT_THAT(error_after([](auto& d) {
                d.joints[1].limits = Limits{-infinity, -infinity, 1, 1};
              }),
              HasSubstr("upper limit is -inf"));
  EXPECT_THAT(error_after([](auto& d) {
                d.joints[1].limits = Limits{0.0, 1.0, nan, 1.0};
              }),
              HasSubstr("velocity limit is nan"));
  EXPECT_THAT(error_after([](auto& d) {
                d.joints[1].limits = Limits{0.0, 1.0, 1.0, nan};
              }),
              HasSubstr("effort limit is nan"));
}

TEST(ValidateJoint, WarnsOfLimitsThatForbidMotion) {
  EXPECT_THAT(warnings_after([](auto& d) {
                d.joints[1].limits = Limits{0.0, 1.0, 0.0, -2.0};
              }),
              ElementsAre(StartsWith("joint 'elbow': effort limit is -2"),
                          StartsWith("joint 'elbow': velocity limit is 0")));
  EXPECT_THAT(warnings_after([](auto& d) {
                d.joints[1].limits = Limits{0.0, 0.0, 1.0, 1.0};
              }),
              ElementsAre(StartsWith("joint 'elbow': lower and upper limit are both 0")));
  EXPECT_THAT(warnings_after([](auto& d) {
                d.joints[2].limits = Limits{0.0, 0.0, 0.0, 0.0};
              }),
              IsEmpty())
      << "a fixed joint has nothing to limit";
  EXPECT_THAT(warnings_after([](auto& d) { d.joints[1].limits = Limits{}; }), IsEmpty());
}

TEST(ValidateMimic, AcceptsAChain) {
  EXPECT_THAT(warnings_after([](auto& d) {
                d.joints[2].type = JointType::prismatic;
                d.links[3].inertial = body("").inertial;
                d.joints[2].mimic = Mimic{"elbow", -2.0, 0.5};
                d.joints[1].mimic = Mimic{"shoulder", 0.5, 0.0};
              }),
              IsEmpty());
}

TEST(ValidateMimic, RefusesBadTargets) {
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].mimic = Mimic{"sholder"}; }),
              HasSubstr("joint 'elbow': mimics joint 'sholder', which does not exist"));
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].mimic = Mimic{"elbow"}; }),
              HasSubstr("joint 'elbow': mimics itself"));
  EXPECT_THAT(error_after([](auto& d) { d.joints[1].mimic = Mimic{"wrist"}; }),
              HasSubstr("joint 'elbow': mimics the fixed joint 'wrist'"));
  EXPECT_THAT(error_after([](auto& d) {
                d.joints[0].type = JointType::planar;
                d.joints[1].mimic = Mimic{"shoulder"};
              }),
              HasSubstr("joint 'elbow': mimics the planar joint 'shoulder'"));
  EXPECT_THAT(error_after([](auto& d) {
                d.joints[1].type = JointType::floating;
                d.joints[1].mimic = Mimic{"shoulder"};
              }),
              HasSubstr("joint 'elbow': is floating and cannot mimic joint 'shoulder'"));
}

TEST(ValidateMimic, RefusesLoops) {
  EXPECT_THAT(error_after([](auto& d) {
                d.joints[0].mimic = Mimic{"elbow"};
                d.joints[1].mimic = Mimic{"shoulder"};
              }),
              HasSubstr("joint 'shoulder': mimics joint 'elbow' in a loop"));
  // The first joint leads into a loop that it is not part of.
  EXPECT_THAT(error_after([](auto& d) {
                d.joints[2].type = JointType::continuous;
                d.joints[0].mimic = Mimic{"elbow"};
                d.joints[1].mimic = Mimic{"wrist"};
                d.joints[2].mimic = Mimic{"elbow"};
              }),
              HasSubstr("in a loop"));
  EXPECT_THAT(error_after([](auto& d) {
                d.joints[0].mimic = Mimic{"elbow"};
                d.joints[1].mimic = Mimic{"gone"};
              }),
              HasSubstr("mimics joint 'gone', which does not exist"));
}

TEST(ValidateMimic, RefusesNonFiniteNumbers) {
  EXPECT_THAT(error_after([](auto& d) {
                d.joints[1].mimic = Mimic{"shoulder", nan, 0.0};
              }),
              HasSubstr("joint 'elbow': multiplier of mimic is nan"));
  EXPECT_THAT(error_after([](auto& d) {
                d.joints[1].mimic = Mimic{"shoulder", 1.0, infinity};
              }),
              HasSubstr("joint 'elbow': offset of mimic is inf"));
}

// --- Strict --------------------------------------------------------------------------------------

TEST(ValidateStrict, ThrowsTheLoadersWarnings) {
  RobotDescription d = arm();
  d.warnings = {"joint 'elbow': is odd"};
  EXPECT_THAT(validate(d, false), IsEmpty()) << "the loader has reported it already";
  try {
    (void)validate(d, true);
    FAIL() << "accepted a warning";
  } catch (const ModelError& error) {
    EXPECT_EQ(error.element(), "joint 'elbow'");
    EXPECT_STREQ(error.what(), "arm.urdf: joint 'elbow': is odd");
  }
  d.warnings = {"odd"};
  EXPECT_EQ(error_of([&] { (void)validate(d, true); }), "arm.urdf: robot: odd");
}

}  // namespace
