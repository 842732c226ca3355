// SPDX-License-Identifier: Apache-2.0
/// The plugin for inverse_dynamics_solver, loaded as its users load it, against another family of
/// algorithms of the core.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#if __has_include(<inverse_dynamics_solver/inverse_dynamics_solver.hpp>)
#include <inverse_dynamics_solver/inverse_dynamics_solver.hpp>
#else
#include <inverse_dynamics_solver/inverse_dynamics_solver.h>
#endif

#include <pluginlib/class_loader.hpp>
#include <rclcpp/rclcpp.hpp>

#include "controller_rig.hpp"
#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/load.hpp"

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using support::robot_urdf;
using testing::HasSubstr;

class Solver : public testing::Test {
 protected:
  using Interface = inverse_dynamics_solver::InverseDynamicsSolver;

  std::shared_ptr<Interface> make(const std::vector<rclcpp::Parameter>& parameters,
                                  const std::string& urdf = robot_urdf("panda")) {
    const auto node = std::make_shared<rclcpp::Node>(
        "solver", rclcpp::NodeOptions()
                      .parameter_overrides(parameters)
                      .automatically_declare_parameters_from_overrides(true));
    auto solver = loader_.createSharedInstance("realtime_dynamics/InverseDynamicsSolver");
    solver->initialize(node->get_node_parameters_interface(), "arm", urdf);
    return solver;
  }

  std::string error_of(const std::vector<rclcpp::Parameter>& parameters,
                       const std::string& urdf = robot_urdf("panda")) {
    try {
      (void)make(parameters, urdf);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }

  pluginlib::ClassLoader<Interface> loader_{"inverse_dynamics_solver",
                                            "inverse_dynamics_solver::InverseDynamicsSolver"};
  VectorXd q = (VectorXd(7) << 0.1, -0.8, 0.3, -2.3, 0.4, 1.6, 0.7).finished();
  VectorXd v = (VectorXd(7) << 0.5, -0.4, 0.3, -0.2, 0.1, 0.6, -0.7).finished();
  VectorXd a = (VectorXd(7) << -1.0, 2.0, -3.0, 4.0, -5.0, 6.0, -7.0).finished();
};

TEST_F(Solver, GivesTheCoresNumbers) {
  const auto solver = make({});
  const auto model = dynamics_core::load_urdf_string(robot_urdf("panda"));
  dynamics_core::Dynamics<double> core(model, dynamics_core::Method::newton_euler);
  MatrixXd M(7, 7);
  VectorXd tau(7), bias(7), g(7);
  ASSERT_EQ(core.mass_matrix(q, M), dynamics_core::Status::ok);
  ASSERT_EQ(core.inverse_dynamics(q, v, a, tau), dynamics_core::Status::ok);
  ASSERT_EQ(core.bias(q, v, bias), dynamics_core::Status::ok);
  ASSERT_EQ(core.gravity(q, g), dynamics_core::Status::ok);
  EXPECT_LT((solver->getInertiaMatrix(q) - M).norm(), 1e-12);
  EXPECT_LT((solver->getGravityVector(q) - g).norm(), 1e-11);
  EXPECT_LT((solver->getCoriolisVector(q, v) - (bias - g)).norm(), 1e-11);
  EXPECT_LT((solver->getTorques(q, v, a) - tau).norm(), 1e-11);
  // and the three add up
  const auto [H, c, gravity] = solver->getDynamicParameters(q, v);
  EXPECT_LT((H * a + c + gravity - tau).norm(), 1e-10);
  const VectorXd friction = solver->getFrictionVector(v);
  for (std::size_t j = 0; j < 7; ++j) {
    const auto i = static_cast<Eigen::Index>(j);
    const double wanted =
        model.joints[j].damping * v[i] + std::copysign(model.joints[j].friction, v[i]);
    EXPECT_NEAR(friction[i], wanted, 1e-4 * (1.0 + std::abs(wanted)));
  }
}

TEST_F(Solver, TakesTheJointsOfAChain) {
  const auto whole = make({});
  const auto chain = make({{"arm.root", "panda_link2"}, {"arm.tip", "panda_link8"}});
  VectorXd at = q;
  at.head(2).setZero();  // those above the chain are locked at zero
  EXPECT_LT(
      (chain->getInertiaMatrix(q.tail(5)) - whole->getInertiaMatrix(at).bottomRightCorner(5, 5))
          .norm(),
      1e-12);
}

TEST_F(Solver, TakesGravityInTheRootsFrame) {
  // panda_link2 is turned by −90° about x: its y points down.
  const auto plain = make({{"arm.root", "panda_link2"}, {"arm.tip", "panda_link8"}});
  const auto given = make({{"arm.root", "panda_link2"},
                           {"arm.tip", "panda_link8"},
                           {"arm.gravity", std::vector<double>{0.0, 9.81, 0.0}}});
  EXPECT_GT(plain->getGravityVector(q.tail(5)).norm(), 1.0);
  EXPECT_LT((plain->getGravityVector(q.tail(5)) - given->getGravityVector(q.tail(5))).norm(),
            1e-10);
  const auto none = make({{"arm.gravity", std::vector<double>{0.0, 0.0, 0.0}}});
  EXPECT_LT(none->getGravityVector(q).norm(), 1e-12);
}

TEST_F(Solver, SaysWhatIsWrong) {
  EXPECT_THAT(error_of({}, ""), HasSubstr("robot_description"));
  EXPECT_THAT(error_of({}, "<robot"), HasSubstr("XML"));
  EXPECT_THAT(error_of({{"arm.tip", "hook"}}), HasSubstr("'hook'"));
  EXPECT_THAT(error_of({{"arm.gravity", std::vector<double>{1.0}}}), HasSubstr("three numbers"));
  const auto solver = make({});
  EXPECT_THROW((void)solver->getInertiaMatrix(VectorXd::Zero(6)), std::invalid_argument);
  const auto raw = loader_.createSharedInstance("realtime_dynamics/InverseDynamicsSolver");
  EXPECT_THROW((void)raw->getInertiaMatrix(q), std::runtime_error);
}

TEST_F(Solver, ReadsTheDescriptionFromTheNodeToo) {
  EXPECT_EQ(make({{"robot_description", robot_urdf("panda")}}, "")->getGravityVector(q).size(), 7);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  rclcpp::init(argc, argv);
  const int result = RUN_ALL_TESTS();
  rclcpp::shutdown();
  return result;
}
