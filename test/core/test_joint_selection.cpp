// SPDX-License-Identifier: Apache-2.0
// Joints by name, and what a robot's messages tell of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "dynamics_core/joint_selection.hpp"
#include "dynamics_core/load.hpp"

namespace {

using namespace dynamics_core;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// shoulder, elbow, right_finger_joint and its mimic left_finger_joint, a planar and a floating
/// one.
Model all_joints() { return load_urdf(RD_SOURCE_DIR "/test/assets/all_joints.urdf"); }

std::string refusal(const Model& model, const std::vector<std::string>& names) {
  try {
    (void)select_joints(model, names);
  } catch (const RequestError& error) {
    return error.what();
  }
  return "";
}

double position(const Model& model, const JointStateKeeper& keeper, const std::string& joint) {
  return keeper.states().q[select_joints(model, {joint}).q.front()];
}
double velocity(const Model& model, const JointStateKeeper& keeper, const std::string& joint) {
  return keeper.states().v[select_joints(model, {joint}).v.front()];
}

}  // namespace

TEST(JointSelectionTest, TakesAllJointsOfOneDegreeOfFreedomWhereNoneIsNamed) {
  const JointSelection joints = select_joints(all_joints());
  EXPECT_THAT(joints.names, ElementsAre("shoulder", "elbow", "right_finger_joint"));
}

TEST(JointSelectionTest, KeepsTheOrderOfTheNames) {
  const Model model = all_joints();
  const JointSelection joints = select_joints(model, {"right_finger_joint", "shoulder"});
  EXPECT_THAT(joints.names, ElementsAre("right_finger_joint", "shoulder"));
  for (std::size_t i = 0; i < joints.size(); ++i) {
    const JointInfo& joint =
        model.joints[static_cast<std::size_t>(model.find_joint(joints.names[i]))];
    EXPECT_EQ(joints.q[i], joint.q);
    EXPECT_EQ(joints.v[i], joint.v);
  }
}

TEST(JointSelectionTest, SaysWhyANameIsRefused) {
  const Model model = all_joints();
  EXPECT_THAT(refusal(model, {"shoulder", "wrist"}),
              AllOf(HasSubstr("joint 'wrist' is not a moving joint"),
                    HasSubstr("its joints are shoulder, elbow, right_finger_joint")));
  EXPECT_THAT(refusal(model, {"mount"}), HasSubstr("joint 'mount' is not a moving joint"));
  EXPECT_THAT(refusal(model, {""}), HasSubstr("joint '' is not a moving joint"));
  EXPECT_EQ(refusal(model, {"left_finger_joint"}),
            "joint 'left_finger_joint' mimics another; name 'right_finger_joint'");
  EXPECT_EQ(refusal(model, {"ball_joint"}),
            "joint 'ball_joint' is floating and stays at its neutral position; leave it out");
  EXPECT_THAT(refusal(model, {"cart_joint"}), HasSubstr("is planar"));
  EXPECT_EQ(refusal(model, {"elbow", "shoulder", "elbow"}),
            "joint 'elbow' is named twice; name it once");
}

TEST(JointSelectionTest, KnowsTheTip) {
  const Model panda = load_urdf(RD_SOURCE_DIR "/config/robots/panda.urdf");
  EXPECT_EQ(panda.links[static_cast<std::size_t>(tip_link(panda))].name, "panda_link8");
  const Model rock = load_urdf_string("<robot name='rock'><link name='stone'/></robot>");
  EXPECT_EQ(tip_link(rock), 0);
}

TEST(JointStateKeeperTest, StartsNeutralAtRestAndMissingEverything) {
  const Model model = all_joints();
  const JointStateKeeper keeper(model);
  EXPECT_EQ(keeper.states().q, model.neutral());
  EXPECT_EQ(keeper.states().v, Eigen::VectorXd::Zero(model.nv));
  EXPECT_THAT(keeper.states().missing(select_joints(model)),
              ElementsAre("shoulder", "elbow", "right_finger_joint"));
}

TEST(JointStateKeeperTest, PutsPartialMessagesTogether) {
  const Model model = all_joints();
  JointStateKeeper keeper(model);
  EXPECT_EQ(keeper.update({"elbow", "wheel", "left_finger_joint"}, {0.5, 7.0, 8.0}, {0.1, 9, 9}),
            "");
  EXPECT_THAT(keeper.states().missing(select_joints(model)),
              ElementsAre("shoulder", "right_finger_joint"));
  EXPECT_THAT(keeper.states().missing(select_joints(model, {"elbow"})), IsEmpty());
  EXPECT_EQ(keeper.update({"right_finger_joint", "shoulder"}, {0.02, -0.5}, {}), "");
  EXPECT_THAT(keeper.states().missing(select_joints(model)), IsEmpty());
  EXPECT_EQ(position(model, keeper, "elbow"), 0.5);
  EXPECT_EQ(velocity(model, keeper, "elbow"), 0.1);
  EXPECT_EQ(position(model, keeper, "shoulder"), -0.5);
  EXPECT_EQ(velocity(model, keeper, "shoulder"), 0.0);
  EXPECT_EQ(position(model, keeper, "right_finger_joint"), 0.02);
}

TEST(JointStateKeeperTest, TakesAVelocityThatIsNotToldForZero) {
  const Model model = all_joints();
  JointStateKeeper keeper(model);
  EXPECT_EQ(keeper.update({"elbow"}, {0.5}, {2.0}), "");
  EXPECT_EQ(keeper.update({"elbow"}, {0.6}, {not_a_number}), "");
  EXPECT_EQ(position(model, keeper, "elbow"), 0.6);
  EXPECT_EQ(velocity(model, keeper, "elbow"), 0.0);
}

TEST(JointStateKeeperTest, IgnoresWhatIsNotFiniteAndSaysSo) {
  const Model model = all_joints();
  JointStateKeeper keeper(model);
  EXPECT_EQ(keeper.update({"elbow"}, {}, {0.75}), "");
  EXPECT_EQ(keeper.update({"elbow", "shoulder"}, {not_a_number, 0.25}, {1.0, infinity}),
            "position nan of joint 'elbow', velocity inf of joint 'shoulder'");
  EXPECT_THAT(keeper.states().missing(select_joints(model)),
              ElementsAre("elbow", "right_finger_joint"));
  EXPECT_EQ(velocity(model, keeper, "elbow"), 0.75);
  EXPECT_EQ(position(model, keeper, "shoulder"), 0.25);
  EXPECT_EQ(velocity(model, keeper, "shoulder"), 0.0);
}

TEST(JointStateKeeperTest, IgnoresAMessageOfWrongSizes) {
  const Model model = all_joints();
  JointStateKeeper keeper(model);
  EXPECT_THAT(keeper.update({"elbow", "shoulder"}, {0.5}, {}),
              HasSubstr("2 names, 1 positions and 0 velocities"));
  EXPECT_THAT(keeper.update({"elbow"}, {0.5}, {0.1, 0.2}), HasSubstr("2 velocities"));
  EXPECT_EQ(keeper.states().q, model.neutral());
}

TEST(JointStateKeeperTest, DoesNotTakeAVelocityForAPosition) {
  const Model model = all_joints();
  JointStateKeeper keeper(model);
  EXPECT_EQ(keeper.update({"elbow"}, {}, {0.5}), "");
  EXPECT_EQ(velocity(model, keeper, "elbow"), 0.5);
  EXPECT_THAT(keeper.states().missing(select_joints(model, {"elbow"})), ElementsAre("elbow"));
}
