// SPDX-License-Identifier: Apache-2.0
/// The FeedforwardController in one process: loading, its life cycle, its interfaces, what it
/// refuses, and what it does in a fault.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <diagnostic_msgs/msg/diagnostic_array.hpp>
#include <functional>
#include <pluginlib/class_loader.hpp>

#include "controller_rig.hpp"
#include "dynamics_core/families.hpp"
#include "dynamics_core/load.hpp"

namespace {

using namespace std::chrono_literals;
using controller_interface::return_type;
using Eigen::VectorXd;
using support::nan;
using support::panda_joints;
using support::panda_ready;
using support::Rig;
using support::robot_urdf;
using testing::ElementsAre;
using testing::HasSubstr;

const VectorXd zero = VectorXd::Zero(7);

/// Inverse dynamics of the panda as the core has it, without friction.
VectorXd inverse_dynamics(const VectorXd& q, const VectorXd& v, const VectorXd& a) {
  const auto model = dynamics_core::load_urdf_string(robot_urdf("panda"));
  dynamics_core::Dynamics<double> robot(model);
  VectorXd tau(7);
  EXPECT_EQ(robot.families().newton_euler.inverse_dynamics(q, v, a, tau),
            dynamics_core::Status::ok);
  return tau;
}

/// The panda's friction, as its URDF has it, at a speed well above the transition.
VectorXd friction(const VectorXd& v) {
  const auto model = dynamics_core::load_urdf_string(robot_urdf("panda"));
  VectorXd out(7);
  for (std::size_t j = 0; j < 7; ++j) {
    const auto i = static_cast<Eigen::Index>(j);
    out[i] = model.joints[j].damping * v[i] +
             model.joints[j].friction * v[i] / std::sqrt(v[i] * v[i] + 1e-6);
  }
  return out;
}

/// Lets callbacks run until something is true, or gives up.
bool spin_until(const rclcpp::node_interfaces::NodeBaseInterface::SharedPtr& a,
                const rclcpp::node_interfaces::NodeBaseInterface::SharedPtr& b,
                const std::function<bool()>& done) {
  rclcpp::executors::SingleThreadedExecutor executor;
  executor.add_node(a);
  executor.add_node(b);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done() && std::chrono::steady_clock::now() < end) executor.spin_once(10ms);
  return done();
}

// --- Loading and configuring ---------------------------------------------------------------------

TEST(Load, ThroughPluginlib) {
  pluginlib::ClassLoader<controller_interface::ChainableControllerInterface> loader(
      "controller_interface", "controller_interface::ChainableControllerInterface");
  const auto controller = loader.createSharedInstance("realtime_dynamics/FeedforwardController");
  EXPECT_TRUE(controller->is_chainable());
}

TEST(Configure, ClaimsEffortsAndOffersReferences) {
  Rig rig({{"joints", std::vector<std::string>{"panda_joint3", "panda_joint1"}}});
  ASSERT_TRUE(rig.init());
  ASSERT_TRUE(rig.configure());
  EXPECT_THAT(rig.controller.command_interface_configuration().names,
              ElementsAre("panda_joint3/effort", "panda_joint1/effort"));
  EXPECT_THAT(rig.controller.state_interface_configuration().names,
              ElementsAre("panda_joint3/position", "panda_joint1/position", "panda_joint3/velocity",
                          "panda_joint1/velocity", "panda_joint2/position", "panda_joint4/position",
                          "panda_joint5/position", "panda_joint6/position", "panda_joint7/position",
                          "panda_joint3/effort", "panda_joint1/effort"));
  std::vector<std::string> names;
  for (const auto& reference : rig.references) names.push_back(reference->get_name());
  EXPECT_THAT(names, ElementsAre("feedforward_controller/panda_joint3/position",
                                 "feedforward_controller/panda_joint1/position",
                                 "feedforward_controller/panda_joint3/velocity",
                                 "feedforward_controller/panda_joint1/velocity",
                                 "feedforward_controller/panda_joint3/acceleration",
                                 "feedforward_controller/panda_joint1/acceleration"));
}

TEST(Configure, PassThroughClaimsPositionVelocityAndEffort) {
  Rig rig({{"joints", std::vector<std::string>{"panda_joint2"}}, {"mode", "pass_through"}});
  ASSERT_TRUE(rig.init());
  ASSERT_TRUE(rig.configure());
  EXPECT_THAT(rig.controller.command_interface_configuration().names,
              ElementsAre("panda_joint2/position", "panda_joint2/velocity", "panda_joint2/effort"));
}

TEST(Configure, RefusesWhatItCannotUse) {
  using Parameter = rclcpp::Parameter;
  const auto with = [](const Parameter& parameter) {
    auto all = Rig::panda();
    for (auto& known : all)
      if (known.get_name() == parameter.get_name()) {
        known = parameter;
        return all;
      }
    all.push_back(parameter);
    return all;
  };
  const std::string good = robot_urdf("panda");
  struct Case {
    const char* what;
    Rig::Parameters parameters;
    std::string urdf;
    bool initialises;
  };
  const Case cases[] = {
      {"no joints", {}, good, false},
      {"a joint twice", {{"joints", std::vector<std::string>{"a", "a"}}}, good, false},
      {"unknown mode", with(Parameter("mode", "magic")), good, false},
      {"negative gain", with(Parameter("gains.panda_joint1.p", -1.0)), good, false},
      {"two gravities", with(Parameter("gravity", std::vector<double>{0.0, 1.0})), good, false},
      {"no description", Rig::panda(), "", true},
      {"not a URDF", Rig::panda(), "<robot", true},
      {"unknown joint", {{"joints", std::vector<std::string>{"elbow"}}}, good, true},
      {"reaction to nobody", with(Parameter("contact.reaction", "hold")), good, true},
      {"integral", with(Parameter("gains.panda_joint1.i", 1.0)), good, true},
      {"limits of two", with(Parameter("effort_limits", std::vector<double>{1.0, 2.0})), good,
       true},
      {"rotors of two", with(Parameter("rotor_inertia", std::vector<double>{1.0, 2.0})), good,
       true},
      {"load on nothing", with(Parameter("payload.link", "hook")), good, true},
      {"friction", with(Parameter("friction.panda_joint1.viscous", -1.0)), good, true},
      {"locked without position",
       with(Parameter("locked.joints", std::vector<std::string>{"panda_joint1"})), good, true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    Rig rig(c.parameters, c.urdf);
    EXPECT_EQ(rig.init(), c.initialises);
    if (c.initialises) {
      EXPECT_FALSE(rig.configure());
    }
  }
}

TEST(Configure, AgainAfterACleanUp) {
  Rig rig(Rig::panda());
  ASSERT_TRUE(rig.start(panda_ready()));
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(rig.deactivate());
    rig.controller.release_interfaces();
    ASSERT_EQ(rig.controller.get_node()->cleanup().id(),
              Rig::Lifecycle::PRIMARY_STATE_UNCONFIGURED);
    ASSERT_TRUE(rig.configure());
    rig.assign();
    ASSERT_TRUE(rig.activate());
    ASSERT_EQ(rig.update(), return_type::OK);
  }
}

// --- Activating ----------------------------------------------------------------------------------

TEST(Activate, NeedsAFinitePositionOfEveryJoint) {
  Rig rig(Rig::panda());
  ASSERT_TRUE(rig.init());
  ASSERT_TRUE(rig.configure());
  rig.assign();
  EXPECT_FALSE(rig.activate());  // nothing measured yet
  rig.set_state(panda_ready(), zero);
  EXPECT_TRUE(rig.activate());
}

TEST(Activate, NeedsAPositionInterfaceOfEveryJoint) {
  Rig rig(Rig::panda());
  ASSERT_TRUE(rig.init());
  ASSERT_TRUE(rig.configure());
  rig.assign({"panda_joint4/position"});
  rig.set_state(panda_ready(), zero);
  EXPECT_FALSE(rig.activate());
}

TEST(Activate, WithoutVelocitiesEstimatesThem) {
  Rig rig(Rig::panda());
  ASSERT_TRUE(rig.init());
  ASSERT_TRUE(rig.configure());
  rig.assign({"panda_joint4/velocity"});
  const VectorXd q = panda_ready();
  rig.set_state(q, zero);
  rig.set_state_interface("panda_joint4/velocity", nan);
  ASSERT_TRUE(rig.activate());
  EXPECT_EQ(rig.update(), return_type::OK);
  EXPECT_LT((rig.effort() - inverse_dynamics(q, zero, zero)).norm(), 1e-9);
}

TEST(Activate, HoldsWithASoftStart) {
  auto parameters = Rig::panda();
  for (auto& parameter : parameters)
    if (parameter.get_name() == "soft_start") parameter = rclcpp::Parameter("soft_start", 0.1);
  Rig rig(parameters);
  const VectorXd q = panda_ready();
  ASSERT_TRUE(rig.start(q));
  const VectorXd weight = inverse_dynamics(q, zero, zero);
  double share = 0.0;
  for (int k = 0; k < 100; ++k) {
    ASSERT_EQ(rig.update(), return_type::OK);
    const double now = rig.effort()[1] / weight[1];
    EXPECT_GE(now, share);
    share = now;
  }
  EXPECT_NEAR(share, 1.0, 1e-3);
}

// --- The law at the references -------------------------------------------------------------------

TEST(Update, CommandsTheInverseDynamicsAtTheReference) {
  Rig rig(Rig::panda());
  const VectorXd q = panda_ready();
  ASSERT_TRUE(rig.start(q));
  const VectorXd q_d = q + VectorXd::Constant(7, 0.1);
  const VectorXd v_d = VectorXd::Constant(7, 0.5);
  const VectorXd a_d = VectorXd::Constant(7, -1.5);
  rig.set_reference(q_d, v_d, a_d);
  ASSERT_EQ(rig.update(), return_type::OK);
  const VectorXd wanted =
      inverse_dynamics(q_d, v_d, a_d) + friction(v_d) + 50.0 * (q_d - q) + 5.0 * v_d;
  EXPECT_LT((rig.effort() - wanted).norm(), 1e-9);
}

TEST(Update, FollowsTheTopicWhenNotChained) {
  Rig rig(Rig::panda());
  const VectorXd q = panda_ready();
  ASSERT_TRUE(rig.start(q, false));
  const auto node = std::make_shared<rclcpp::Node>("planner");
  const auto publisher = node->create_publisher<trajectory_msgs::msg::JointTrajectoryPoint>(
      "/feedforward_controller/reference", rclcpp::SystemDefaultsQoS());
  trajectory_msgs::msg::JointTrajectoryPoint wrong;
  wrong.positions = {1.0, 2.0};
  trajectory_msgs::msg::JointTrajectoryPoint with_effort;
  with_effort.effort = std::vector<double>(7, 1.0);
  trajectory_msgs::msg::JointTrajectoryPoint right;
  const VectorXd q_d = q + VectorXd::Constant(7, 0.05);
  right.positions.assign(q_d.begin(), q_d.end());

  const VectorXd held = inverse_dynamics(q, zero, zero);
  const VectorXd moved = inverse_dynamics(q_d, zero, zero) + 50.0 * (q_d - q);
  ASSERT_EQ(rig.update(), return_type::OK);
  EXPECT_LT((rig.effort() - held).norm(), 1e-9);
  const bool arrived = spin_until(node->get_node_base_interface(),
                                  rig.controller.get_node()->get_node_base_interface(), [&] {
                                    publisher->publish(wrong);
                                    publisher->publish(with_effort);
                                    publisher->publish(right);
                                    EXPECT_EQ(rig.update(1e-4), return_type::OK);
                                    return (rig.effort() - moved).norm() < 1e-9;
                                  });
  EXPECT_TRUE(arrived);
  // Without a further one it holds there.
  for (int k = 0; k < 300; ++k) ASSERT_EQ(rig.update(), return_type::OK);
  EXPECT_LT((rig.effort() - moved).norm(), 1e-9);
}

TEST(Update, TakesPartOfAReferenceAfterAWholeOne) {
  Rig rig(Rig::panda());
  const VectorXd q = panda_ready();
  ASSERT_TRUE(rig.start(q, false));
  const auto node = std::make_shared<rclcpp::Node>("planner");
  const auto publisher = node->create_publisher<trajectory_msgs::msg::JointTrajectoryPoint>(
      "/feedforward_controller/reference", rclcpp::SystemDefaultsQoS());
  const auto follows = [&](const trajectory_msgs::msg::JointTrajectoryPoint& point,
                           const VectorXd& wanted) {
    return spin_until(node->get_node_base_interface(),
                      rig.controller.get_node()->get_node_base_interface(), [&] {
                        publisher->publish(point);
                        EXPECT_EQ(rig.update(1e-4), return_type::OK);
                        return (rig.effort() - wanted).norm() < 1e-9;
                      });
  };
  trajectory_msgs::msg::JointTrajectoryPoint whole;
  whole.positions.assign(q.begin(), q.end());
  whole.velocities.assign(7, 0.0);
  whole.accelerations.assign(7, 1.0);
  EXPECT_TRUE(follows(whole, inverse_dynamics(q, zero, VectorXd::Ones(7))));
  trajectory_msgs::msg::JointTrajectoryPoint part;
  part.positions = whole.positions;
  EXPECT_TRUE(follows(part, inverse_dynamics(q, zero, zero)));

  // Beyond the limits of joint 4 it does not go.
  part.positions[3] = 0.5;
  int cycles = 0;
  (void)spin_until(node->get_node_base_interface(),
                   rig.controller.get_node()->get_node_base_interface(), [&] {
                     publisher->publish(part);
                     EXPECT_EQ(rig.update(1e-4), return_type::OK);
                     EXPECT_LT((rig.effort() - inverse_dynamics(q, zero, zero)).norm(), 1e-9);
                     return ++cycles == 100;
                   });
}

TEST(Update, KnowsWhereTheOtherJointsAre) {
  std::vector<std::string> six = panda_joints();
  six.pop_back();
  Rig rig({{"joints", std::vector<std::string>{"panda_joint2"}}, {"soft_start", 0.0}});
  ASSERT_TRUE(rig.init());
  ASSERT_TRUE(rig.configure());
  rig.assign();
  const VectorXd q = panda_ready();
  for (std::size_t j = 0; j < 7; ++j)
    rig.set_state_interface(panda_joints()[j] + "/position", q[static_cast<Eigen::Index>(j)]);
  rig.set_state_interface("panda_joint2/velocity", 0.0);
  ASSERT_TRUE(rig.activate());
  ASSERT_EQ(rig.update(), return_type::OK);
  EXPECT_NEAR(rig.command("panda_joint2/effort"), inverse_dynamics(q, zero, zero)[1], 1e-9);
}

TEST(Update, LocksJointsThatAreNotMeasuredWhereTheParametersSay) {
  const VectorXd q = panda_ready();
  Rig rig({{"joints", std::vector<std::string>{"panda_joint2"}},
           {"soft_start", 0.0},
           {"locked.joints", std::vector<std::string>{"panda_joint4", "panda_joint6"}},
           {"locked.positions", std::vector<double>{q[3], q[5]}}});
  ASSERT_TRUE(rig.init());
  ASSERT_TRUE(rig.configure());
  rig.assign({"panda_joint1/position", "panda_joint3/position", "panda_joint4/position",
              "panda_joint5/position", "panda_joint6/position", "panda_joint7/position"});
  rig.set_state_interface("panda_joint2/position", q[1]);
  rig.set_state_interface("panda_joint2/velocity", 0.0);
  ASSERT_TRUE(rig.activate());
  ASSERT_EQ(rig.update(), return_type::OK);
  VectorXd at = q;
  at[6] = 0.0;
  EXPECT_NEAR(rig.command("panda_joint2/effort"), inverse_dynamics(at, zero, zero)[1], 1e-9);
}

TEST(Update, PassThroughSendsTheReferenceToTheDrives) {
  Rig rig(Rig::panda("pass_through"));
  const VectorXd q = panda_ready();
  ASSERT_TRUE(rig.start(q));
  const VectorXd q_d = q + VectorXd::Constant(7, 0.1);
  const VectorXd v_d = VectorXd::Constant(7, 0.5);
  rig.set_reference(q_d, v_d, zero);
  ASSERT_EQ(rig.update(), return_type::OK);
  EXPECT_LT((rig.effort() - inverse_dynamics(q_d, v_d, zero) - friction(v_d)).norm(), 1e-9);
  EXPECT_EQ(rig.command("panda_joint5/position"), q_d[4]);
  EXPECT_EQ(rig.command("panda_joint5/velocity"), 0.5);
  ASSERT_TRUE(rig.deactivate());
  EXPECT_EQ(rig.effort(), zero);
  EXPECT_EQ(rig.command("panda_joint5/position"), q[4]);  // stays where it is
  EXPECT_EQ(rig.command("panda_joint5/velocity"), 0.0);
}

// --- Changes while it runs -----------------------------------------------------------------------

TEST(Parameters, GainsAndGravityChangeWhileActive) {
  Rig rig(Rig::panda());
  const VectorXd q = panda_ready();
  ASSERT_TRUE(rig.start(q));
  VectorXd q_d = q;
  q_d[2] += 0.1;
  rig.set_reference(q_d, zero, zero);
  const auto node = rig.controller.get_node();
  EXPECT_TRUE(node->set_parameter({"gravity", std::vector<double>{0.0, 0.0, 0.0}}).successful);
  EXPECT_TRUE(node->set_parameter({"gains.panda_joint3.p", 80.0}).successful);
  ASSERT_EQ(rig.update(), return_type::OK);
  EXPECT_NEAR(rig.effort()[2], 8.0, 1e-9);
  EXPECT_NEAR(rig.effort()[1], 0.0, 1e-9);
}

TEST(Parameters, RefusesBadChangesWithAReason) {
  Rig rig(Rig::panda());
  ASSERT_TRUE(rig.start(panda_ready()));
  const auto node = rig.controller.get_node();
  const auto reason = [&](const rclcpp::Parameter& parameter) {
    const auto result = node->set_parameter(parameter);
    EXPECT_FALSE(result.successful) << parameter.get_name();
    return result.reason;
  };
  EXPECT_THAT(reason({"gains.panda_joint3.p", -1.0}), HasSubstr("gains.panda_joint3.p"));
  EXPECT_THAT(reason({"gains.panda_joint3.d", nan}), HasSubstr("give a finite number"));
  EXPECT_THAT(reason({"gains.panda_joint3.i", 2.0}), HasSubstr("use computed_torque"));
  EXPECT_THAT(reason({"gravity", std::vector<double>{0.0, 0.0, nan}}), HasSubstr("gravity"));
  EXPECT_THAT(reason({"mode", "passivity"}), HasSubstr("read-only"));
  EXPECT_THAT(reason({"joints", std::vector<std::string>{}}), HasSubstr("read-only"));
  EXPECT_EQ(rig.update(), return_type::OK);
  EXPECT_LT((rig.effort() - inverse_dynamics(panda_ready(), zero, zero)).norm(), 1e-9);
}

class Payload : public testing::Test {
 protected:
  using SetPayload = realtime_dynamics::srv::SetPayload;

  SetPayload::Response call(Rig& rig, const SetPayload::Request& request) {
    const auto node = std::make_shared<rclcpp::Node>("gripper");
    const auto client = node->create_client<SetPayload>("/feedforward_controller/set_payload");
    EXPECT_TRUE(client->wait_for_service(20s));
    auto future = client->async_send_request(std::make_shared<SetPayload::Request>(request));
    EXPECT_TRUE(spin_until(node->get_node_base_interface(),
                           rig.controller.get_node()->get_node_base_interface(),
                           [&] { return future.wait_for(0s) == std::future_status::ready; }));
    return *future.get();
  }

  static SetPayload::Request two_kilos() {
    SetPayload::Request request;
    request.link = "panda_link8";
    request.mass = 2.0;
    request.center_of_mass.z = 0.1;
    request.ixx = request.iyy = request.izz = 0.01;
    return request;
  }

  static VectorXd loaded_weight(double mass) {
    const auto model = dynamics_core::load_urdf_string(robot_urdf("panda"));
    dynamics_core::Dynamics<double> robot(model);
    const auto s = robot.set_payload(model.find_link("panda_link8"),
                                     {mass, {0.0, 0.0, 0.1}, {0.01, 0.0, 0.0, 0.01, 0.0, 0.01}});
    EXPECT_EQ(s, dynamics_core::Status::ok);
    VectorXd tau(7);
    EXPECT_EQ(robot.families().newton_euler.gravity(panda_ready(), tau), dynamics_core::Status::ok);
    return tau;
  }
};

TEST_F(Payload, RampsInOnRequest) {
  Rig rig(Rig::panda());
  ASSERT_TRUE(rig.start(panda_ready()));
  auto request = two_kilos();
  request.transition_time = 0.1;
  EXPECT_TRUE(call(rig, request).success);
  for (int k = 0; k < 50; ++k) ASSERT_EQ(rig.update(), return_type::OK);
  EXPECT_LT((rig.effort() - loaded_weight(1.0)).norm(), 1e-9);  // half way
  for (int k = 0; k < 51; ++k) ASSERT_EQ(rig.update(), return_type::OK);
  EXPECT_LT((rig.effort() - loaded_weight(2.0)).norm(), 1e-9);
}

TEST_F(Payload, IsThereFromTheStartWhereTheParametersSaySo) {
  auto parameters = Rig::panda();
  parameters.emplace_back("payload.link", "panda_link8");
  parameters.emplace_back("payload.mass", 2.0);
  parameters.emplace_back("payload.center_of_mass", std::vector<double>{0.0, 0.0, 0.1});
  parameters.emplace_back("payload.inertia", std::vector<double>{0.01, 0.0, 0.0, 0.01, 0.0, 0.01});
  Rig rig(parameters);
  ASSERT_TRUE(rig.start(panda_ready()));
  ASSERT_EQ(rig.update(), return_type::OK);
  EXPECT_LT((rig.effort() - loaded_weight(2.0)).norm(), 1e-9);
}

TEST_F(Payload, OnRequestBeforeActivationIsThereAtOnce) {
  Rig rig(Rig::panda());
  ASSERT_TRUE(rig.init());
  ASSERT_TRUE(rig.configure());
  auto request = two_kilos();
  request.transition_time = 5.0;
  EXPECT_TRUE(call(rig, request).success);
  rig.assign();
  rig.set_state(panda_ready(), zero);
  ASSERT_TRUE(rig.activate());
  ASSERT_EQ(rig.update(), return_type::OK);
  EXPECT_LT((rig.effort() - loaded_weight(2.0)).norm(), 1e-9);
}

TEST_F(Payload, RefusesWhatNoBodyCanBe) {
  Rig rig(Rig::panda());
  ASSERT_TRUE(rig.start(panda_ready()));
  const auto refused = [&](const std::function<void(SetPayload::Request&)>& change) {
    auto request = two_kilos();
    change(request);
    const auto response = call(rig, request);
    EXPECT_FALSE(response.success);
    return response.message;
  };
  EXPECT_THAT(refused([](auto& r) { r.link = "hook"; }), HasSubstr("'hook'"));
  EXPECT_THAT(refused([](auto& r) { r.mass = -1.0; }), HasSubstr("-1"));
  EXPECT_THAT(refused([](auto& r) { r.mass = nan; }), HasSubstr("nan"));
  EXPECT_THAT(refused([](auto& r) { r.ixx = 5.0; }), HasSubstr("principal moment"));
  EXPECT_THAT(refused([](auto& r) { r.transition_time = -1.0; }), HasSubstr("transition_time"));
  ASSERT_EQ(rig.update(), return_type::OK);
  EXPECT_LT((rig.effort() - inverse_dynamics(panda_ready(), zero, zero)).norm(), 1e-9);
}

// --- Stopping and faults -------------------------------------------------------------------------

/// A panda that carries two kilos on its last link and swings all its joints.
class Weigh : public Payload {
 protected:
  using WeighLoad = realtime_dynamics::srv::WeighLoad;

  Weigh() : arm_(dynamics_core::load_urdf_string(robot_urdf("panda"))), robot_(arm_) {
    (void)robot_.set_payload(arm_.find_link("panda_link8"), load_);
  }
  WeighLoad::Response weigh(bool start, bool apply = false, double transition_time = 0.0) {
    const auto node = std::make_shared<rclcpp::Node>("operator");
    const auto client = node->create_client<WeighLoad>("/feedforward_controller/weigh_load");
    EXPECT_TRUE(client->wait_for_service(20s));
    const auto request = std::make_shared<WeighLoad::Request>();
    request->start = start;
    request->link = "panda_link8";
    request->apply = apply;
    request->transition_time = transition_time;
    auto future = client->async_send_request(request);
    EXPECT_TRUE(spin_until(node->get_node_base_interface(),
                           rig.controller.get_node()->get_node_base_interface(),
                           [&] { return future.wait_for(0s) == std::future_status::ready; }));
    return *future.get();
  }
  /// Measures the state, with the mean effort of the period that ends at the time.
  void sample(double t) {
    VectorXd tau(7);
    at(t - 0.5e-3);
    EXPECT_EQ(robot_.inverse_dynamics(q_, v_, a_, tau), dynamics_core::Status::ok);
    tau += friction(v_);
    at(t);
    rig.set_state(q_, v_);
    for (std::size_t j = 0; j < 7; ++j)
      rig.set_state_interface(panda_joints()[j] + "/effort", tau[static_cast<Eigen::Index>(j)]);
  }
  void swing(double from, double to) {
    for (double t = from; t < to; t += 1e-3) {
      sample(t);
      ASSERT_EQ(rig.update(), return_type::OK);
    }
  }

  Rig rig{Rig::panda()};
  dynamics_core::Payload<double> load_{2.0, {0.0, 0.0, 0.1}, {0.01, 0.0, 0.0, 0.01, 0.0, 0.01}};
  dynamics_core::Model arm_;
  dynamics_core::Dynamics<double> robot_;

 private:
  void at(double t) {
    q_ = panda_ready();
    for (int j = 0; j < 7; ++j) {
      const double w = 1.3 + 0.37 * j;
      q_[j] += 0.3 * std::sin(w * t + j);
      v_[j] = 0.3 * w * std::cos(w * t + j);
      a_[j] = -0.3 * w * w * std::sin(w * t + j);
    }
  }
  VectorXd q_ = zero, v_ = zero, a_ = zero;
};

TEST_F(Weigh, GoesOnWhereItCannotStopAsAskedFor) {
  ASSERT_TRUE(rig.start(panda_ready()));
  ASSERT_TRUE(weigh(true).success);
  swing(0.0, 0.1);
  const auto early = weigh(false, true);
  EXPECT_FALSE(early.success);
  EXPECT_THAT(early.message, HasSubstr("the mass is not known to"));
  EXPECT_GT(early.mass_deviation, 0.2);
  swing(0.1, 8.0);
  const auto bad = weigh(false, true, -1.0);
  EXPECT_FALSE(bad.success);
  EXPECT_THAT(bad.message, HasSubstr("transition_time = -1"));
  const auto done = weigh(false, true);
  EXPECT_TRUE(done.success) << done.message;
  EXPECT_NEAR(done.mass, 2.0, 0.05);
  EXPECT_NEAR(done.time, 8.0, 0.1);
  EXPECT_FALSE(weigh(false).success);
}

TEST_F(Weigh, RefusesAMassThatNothingHas) {
  load_.mass = 2.0;
  ASSERT_TRUE(rig.start(panda_ready()));
  auto known = two_kilos();  // that are told of, on the link before, but are not there
  known.link = "panda_link6";
  known.mass = 6.0;
  ASSERT_TRUE(call(rig, known).success);
  ASSERT_TRUE(weigh(true).success);
  swing(0.0, 8.0);
  const auto answer = weigh(false, true);
  EXPECT_FALSE(answer.success);
  EXPECT_LT(answer.mass, -0.2);
}

/// The robot is elsewhere when the controller is active again: without a new start of the filters the
/// jump would count as a motion, with enormous efforts.
TEST_F(Weigh, SkipsWhatHappensWhileNotActive) {
  ASSERT_TRUE(rig.start(panda_ready()));
  ASSERT_TRUE(weigh(true).success);
  swing(0.0, 4.0);
  ASSERT_TRUE(rig.deactivate());
  sample(4.9);
  ASSERT_TRUE(rig.activate());
  swing(4.9, 8.9);
  const auto answer = weigh(false);
  EXPECT_TRUE(answer.success) << answer.message;
  EXPECT_NEAR(answer.mass, 2.0, 0.05);
  EXPECT_LT(answer.mass_deviation, 0.3);
}

/// What is told meanwhile of another link, and of gravity, is not taken for the load.
TEST_F(Weigh, HearsOfPayloadsAndGravityMeanwhile) {
  ASSERT_TRUE(rig.start(panda_ready()));
  ASSERT_TRUE(weigh(true).success);
  auto other = two_kilos();
  other.link = "panda_link6";
  ASSERT_TRUE(call(rig, other).success);
  ASSERT_EQ(robot_.set_payload(arm_.find_link("panda_link6"), load_), dynamics_core::Status::ok);
  const Eigen::Vector3d tilted(3.0, 0.0, -9.0);
  ASSERT_TRUE(rig.controller.get_node()
                  ->set_parameter({"gravity", std::vector<double>{3.0, 0.0, -9.0}})
                  .successful);
  ASSERT_EQ(robot_.set_gravity(tilted), dynamics_core::Status::ok);
  swing(0.0, 8.0);
  const auto answer = weigh(false);
  EXPECT_TRUE(answer.success) << answer.message;
  EXPECT_NEAR(answer.mass, 2.0, 0.05);
}

TEST(Deactivate, WritesEffortZeroAndForgetsTheReference) {
  Rig rig(Rig::panda());
  ASSERT_TRUE(rig.start(panda_ready()));
  rig.set_reference(panda_ready(), zero, zero);
  ASSERT_EQ(rig.update(), return_type::OK);
  EXPECT_GT(rig.effort().norm(), 1.0);
  ASSERT_TRUE(rig.deactivate());
  EXPECT_EQ(rig.effort(), zero);
  for (const auto& reference : rig.references)
    EXPECT_TRUE(std::isnan(reference->get_optional().value_or(0.0)));
}

TEST(Restart, WithinACycleKeepsTheEffortUp) {
  auto parameters = Rig::panda();
  for (auto& parameter : parameters)
    if (parameter.get_name() == "soft_start") parameter = rclcpp::Parameter("soft_start", 0.05);
  Rig rig(parameters);
  const VectorXd q = panda_ready();
  ASSERT_TRUE(rig.start(q));
  rig.set_reference(q, zero, zero);
  for (int k = 0; k < 60; ++k) ASSERT_EQ(rig.update(), return_type::OK);
  const VectorXd before = rig.effort();
  ASSERT_TRUE(rig.deactivate());
  ASSERT_TRUE(rig.controller.set_chained_mode(false));
  ASSERT_TRUE(rig.activate());
  EXPECT_LT((rig.effort() - before).norm(), 1e-9);  // at once, not only with the next cycle
  // The next controller to command this one finds where it stands.
  EXPECT_EQ(rig.references[1]->get_optional().value_or(nan), q[1]);
  EXPECT_TRUE(std::isnan(rig.references[8]->get_optional().value_or(0.0)));
  ASSERT_EQ(rig.update(), return_type::OK);
  EXPECT_LT((rig.effort() - before).norm(), 1e-9);
}

TEST(Restart, OfARobotThatFellMeanwhileIsAStart) {
  auto parameters = Rig::panda();
  for (auto& parameter : parameters)
    if (parameter.get_name() == "soft_start") parameter = rclcpp::Parameter("soft_start", 0.05);
  Rig rig(parameters);
  VectorXd q = panda_ready();
  ASSERT_TRUE(rig.start(q));
  for (int k = 0; k < 60; ++k) ASSERT_EQ(rig.update(), return_type::OK);
  ASSERT_TRUE(rig.deactivate());
  q[1] += 0.2;
  rig.set_state(q, zero);
  ASSERT_TRUE(rig.activate());
  EXPECT_EQ(rig.effort(), zero);  // ramps in from here
}

TEST(Restart, KeepsDifferentiatingWhatNobodyWrites) {
  auto parameters = Rig::panda();
  parameters.emplace_back("missing_velocity", "differentiate");
  Rig rig(parameters);
  VectorXd q_d = panda_ready();
  ASSERT_TRUE(rig.start(q_d));
  ASSERT_EQ(rig.update(), return_type::OK);
  ASSERT_TRUE(rig.deactivate());
  ASSERT_TRUE(rig.activate());
  for (int k = 0; k < 200; ++k) {  // position references alone, moving by 0.1 rad/s
    q_d[0] += 1e-4;
    for (std::size_t j = 0; j < 7; ++j)
      (void)rig.references[j]->set_value(q_d[static_cast<Eigen::Index>(j)]);
    rig.set_state(q_d, zero);
    ASSERT_EQ(rig.update(), return_type::OK);
  }
  const VectorXd rest = inverse_dynamics(q_d, zero, zero);
  EXPECT_NEAR(rig.effort()[0] - rest[0], 5.0 * 0.1 + friction(VectorXd::Constant(7, 0.1))[0], 1e-2);
}

TEST(Fault, StopsTheChainAndReactivationIsClean) {
  Rig rig(Rig::panda());
  const VectorXd q = panda_ready();
  ASSERT_TRUE(rig.start(q));
  rig.set_reference(q, zero, zero);
  ASSERT_EQ(rig.update(), return_type::OK);
  const VectorXd before = rig.effort();
  rig.set_state_interface("panda_joint3/position", nan);
  for (int k = 0; k < 5; ++k) {
    ASSERT_EQ(rig.update(), return_type::OK) << k;
    EXPECT_EQ(rig.effort(), before);  // bridged
  }
  EXPECT_EQ(rig.update(), return_type::ERROR);
  EXPECT_EQ(rig.effort(), zero);
  EXPECT_EQ(rig.update(), return_type::ERROR);

  ASSERT_TRUE(rig.deactivate());
  EXPECT_EQ(rig.effort(), zero);
  EXPECT_FALSE(rig.activate());  // the cause is still there
  rig.set_state_interface("panda_joint3/position", q[2]);
  ASSERT_TRUE(rig.activate());
  rig.set_reference(q, zero, zero);
  ASSERT_EQ(rig.update(), return_type::OK);
  EXPECT_LT((rig.effort() - before).norm(), 1e-9);
}

TEST(Fault, BadReferencesAreDroppedNotFollowed) {
  Rig rig(Rig::panda());
  const VectorXd q = panda_ready();
  ASSERT_TRUE(rig.start(q));
  rig.set_reference(q, zero, zero);
  ASSERT_EQ(rig.update(), return_type::OK);
  const VectorXd before = rig.effort();
  rig.set_reference(VectorXd::Constant(7, std::numeric_limits<double>::infinity()), zero, zero);
  for (int k = 0; k < 50; ++k) ASSERT_EQ(rig.update(), return_type::OK);
  EXPECT_LT((rig.effort() - before).norm(), 1e-9);
  rig.set_reference(q + VectorXd::Constant(7, 100.0), zero, zero);  // no joint gets there
  for (int k = 0; k < 50; ++k) ASSERT_EQ(rig.update(), return_type::OK);
  EXPECT_LT((rig.effort() - before).norm(), 1e-9);
}

/// References may be anywhere, as in the tests of what an error of 100 rad leads to.
Rig::Parameters panda_without_margin() {
  auto parameters = Rig::panda();
  parameters.emplace_back("reference_margin", std::numeric_limits<double>::infinity());
  return parameters;
}

TEST(Limits, OfTheUrdfBoundEveryCommand) {
  Rig rig(panda_without_margin());
  const VectorXd q = panda_ready();
  ASSERT_TRUE(rig.start(q));
  rig.set_reference(q + VectorXd::Constant(7, 100.0), zero, zero);
  ASSERT_EQ(rig.update(), return_type::OK);
  const VectorXd limits = (VectorXd(7) << 87, 87, 87, 87, 12, 12, 12).finished();
  EXPECT_EQ(rig.effort(), limits);
}

// --- What it tells -------------------------------------------------------------------------------

TEST(State, IsPublishedWithTheCommandedEffort) {
  Rig rig(Rig::panda());
  const VectorXd q = panda_ready();
  ASSERT_TRUE(rig.start(q));
  const auto node = std::make_shared<rclcpp::Node>("observer");
  control_msgs::msg::JointTrajectoryControllerState last;
  const auto subscription =
      node->create_subscription<control_msgs::msg::JointTrajectoryControllerState>(
          "/feedforward_controller/controller_state", rclcpp::SystemDefaultsQoS(),
          [&](const control_msgs::msg::JointTrajectoryControllerState& m) { last = m; });
  VectorXd q_d = q;
  q_d[0] += 0.25;
  rig.set_reference(q_d, zero, zero);
  ASSERT_TRUE(spin_until(node->get_node_base_interface(),
                         rig.controller.get_node()->get_node_base_interface(), [&] {
                           EXPECT_EQ(rig.update(), return_type::OK);
                           return !last.joint_names.empty() && last.header.stamp.sec >= 100 &&
                                  last.reference.positions[0] == q_d[0];
                         }));
  EXPECT_EQ(last.joint_names, panda_joints());
  EXPECT_EQ(last.feedback.positions[0], q[0]);
  EXPECT_DOUBLE_EQ(last.error.positions[0], 0.25);
  EXPECT_EQ(last.output.effort[0], rig.effort()[0]);
  EXPECT_TRUE(last.output.positions.empty());
}

TEST(Diagnostics, TellFaultsSaturationsAndComputeTimes) {
  Rig rig(panda_without_margin());
  const VectorXd q = panda_ready();
  ASSERT_TRUE(rig.start(q));
  const auto node = std::make_shared<rclcpp::Node>("observer");
  diagnostic_msgs::msg::DiagnosticStatus last;
  const auto subscription = node->create_subscription<diagnostic_msgs::msg::DiagnosticArray>(
      "/diagnostics", 10, [&](const diagnostic_msgs::msg::DiagnosticArray& m) {
        if (!m.status.empty() && m.status[0].name == "feedforward_controller: control law")
          last = m.status[0];
      });
  const auto value = [&](const std::string& key) {
    for (const auto& entry : last.values)
      if (entry.key == key) return std::stod(entry.value);
    return -1.0;
  };
  const auto wait_for = [&](unsigned char level) {
    return spin_until(node->get_node_base_interface(),
                      rig.controller.get_node()->get_node_base_interface(),
                      [&] { return last.level == level && !last.values.empty(); });
  };
  rig.set_reference(q + VectorXd::Constant(7, 100.0), zero, zero);
  for (int k = 0; k < 10; ++k) ASSERT_EQ(rig.update(), return_type::OK);
  ASSERT_TRUE(wait_for(diagnostic_msgs::msg::DiagnosticStatus::WARN));
  EXPECT_THAT(last.message, HasSubstr("limited"));
  EXPECT_EQ(value("cycles at the effort limit, panda_joint2"), 10.0);
  EXPECT_EQ(value("cycles"), 10.0);
  EXPECT_GT(value("compute time p99 (us)"), 0.0);
  EXPECT_GE(value("compute time max (us)"), value("compute time p99 (us)"));

  rig.set_state_interface("panda_joint3/position", nan);
  while (rig.update() == return_type::OK) {
  }
  ASSERT_TRUE(wait_for(diagnostic_msgs::msg::DiagnosticStatus::ERROR));
  EXPECT_THAT(last.message, HasSubstr("bad measurement"));
  EXPECT_EQ(value("count of bad measurement"), 6.0);
  EXPECT_EQ(last.hardware_id, "panda");
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  rclcpp::init(argc, argv);
  const int result = RUN_ALL_TESTS();
  rclcpp::shutdown();
  return result;
}
