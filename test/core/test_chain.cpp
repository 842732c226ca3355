// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dynamics_core/description.hpp"
#include "dynamics_core/load.hpp"
#include "support/errors.hpp"

namespace {

using namespace dynamics_core;
using support::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

RobotDescription panda() {
  return parse_file(std::string(RD_SOURCE_DIR) + "/config/robots/panda.urdf");
}

TEST(ChainJoints, GoFromTheRootToTheTip) {
  EXPECT_THAT(
      chain_joints(panda(), "panda_link2", "panda_link8"),
      ElementsAre("panda_joint3", "panda_joint4", "panda_joint5", "panda_joint6", "panda_joint7"));
  EXPECT_THAT(chain_joints(panda(), "", "panda_link2"),
              ElementsAre("panda_joint1", "panda_joint2"));
  EXPECT_THAT(chain_joints(panda(), "panda_link7", "panda_link8"), IsEmpty());  // fixed
  EXPECT_THAT(chain_joints(panda(), "panda_link3", "panda_link3"), IsEmpty());
}

TEST(ChainJoints, LeaveOutMimics) {
  const RobotDescription robot =
      parse_file(std::string(RD_SOURCE_DIR) + "/config/robots/two_arm_torso.urdf");
  for (const JointDescription& joint : robot.joints)
    if (joint.mimic) {
      EXPECT_THAT(chain_joints(robot, joint.parent, joint.child), IsEmpty());
    }
}

TEST(ChainJoints, NameWhatIsWrong) {
  const auto error = [](const char* root, const char* tip) {
    return error_of([&] { (void)chain_joints(panda(), root, tip); });
  };
  EXPECT_THAT(error("table", "panda_link8"), HasSubstr("link 'table': the robot has no such link"));
  EXPECT_THAT(error("panda_link0", "hook"), HasSubstr("link 'hook'"));
  EXPECT_THAT(error("panda_link8", "panda_link0"), HasSubstr("below 'panda_link8'"));
}

}  // namespace
