// SPDX-License-Identifier: Apache-2.0
// Batches against robots whose other joints are truly locked, and the refusals.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "dynamics_core/batch.hpp"
#include "dynamics_core/families.hpp"
#include "dynamics_core/friction.hpp"
#include "dynamics_core/load.hpp"
#include "dynamics_core/regressor.hpp"
#include "support/kinds.hpp"

namespace {

using namespace dynamics_core;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using testing::AllOf;
using testing::HasSubstr;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double tolerance = 1e-10;

const std::string panda = RD_SOURCE_DIR "/config/robots/panda.urdf";
const std::string humanoid = RD_SOURCE_DIR "/config/robots/humanoid.urdf";
const std::vector<std::string> right_arm = {"right_elbow_pitch_joint", "right_shoulder_roll_joint",
                                            "right_wrist_roll_joint"};

std::vector<double> values(const VectorXd& x) { return {x.data(), x.data() + x.size()}; }

/// The matrix of one configuration.
MatrixXd part(const BatchAnswer& answer, std::size_t k) {
  const std::size_t size = answer.rows * answer.columns;
  return Eigen::Map<const Eigen::Matrix<double, -1, -1, Eigen::RowMajor>>(
      answer.data.data() + k * size, static_cast<Eigen::Index>(answer.rows),
      static_cast<Eigen::Index>(answer.columns));
}

/// A robot whose latest state is known, some of its joints, and another robot in which only those
/// move: the others are locked where the first one's are.
class Locked {
 public:
  static constexpr int configurations = 4;

  Locked(const std::string& urdf, const std::vector<std::string>& joints, unsigned seed)
      : names(joints), random(seed), robot(load_urdf(urdf)), latest(robot) {
    JointStateKeeper keeper(robot);
    const JointSelection all = select_joints(robot);
    const VectorXd q = random.vector_x(static_cast<int>(all.size()), 1.0);
    const VectorXd v = random.vector_x(static_cast<int>(all.size()), 1.0);
    EXPECT_EQ(keeper.update(all.names, values(q), values(v)), "");
    latest = keeper.states();
    ModelOptions options;
    options.joints = names;
    for (std::size_t i = 0; i < all.size(); ++i)
      options.locked[all.names[i]] = q[static_cast<Eigen::Index>(i)];
    for (const std::string& name : names) options.locked.erase(name);
    reference = load_urdf(urdf, options);
    order = select_joints(reference, names).v;
    const int n = static_cast<int>(names.size());
    query.joint_names = names;
    query.positions = values(random.vector_x(n * configurations, 1.0));
    query.velocities = values(random.vector_x(n * configurations, 2.0));
    query.accelerations = values(random.vector_x(n * configurations, 3.0));
    query.efforts = values(random.vector_x(n * configurations, 5.0));
  }

  /// Configuration k of an array, in the reference's order.
  [[nodiscard]] VectorXd at(const std::vector<double>& array, int k) const {
    VectorXd x(reference.nv);
    for (std::size_t i = 0; i < order.size(); ++i)
      x[order[i]] = array[static_cast<std::size_t>(k) * order.size() + i];
    return x;
  }

  std::vector<std::string> names;
  support::Random random;
  Model robot;
  JointStates latest;
  Model reference;
  std::vector<int> order;  ///< the names' places in the reference
  BatchQuery query;
};

class BatchTest : public testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static Locked draw() {
    if (GetParam() == 0) return {humanoid, right_arm, 1};
    Locked all(panda, select_joints(load_urdf(panda)).names, 2);
    std::rotate(all.names.begin(), all.names.begin() + 3, all.names.end());
    return {panda, all.names, 3};
  }
  Locked s = draw();
  Batch batch{s.robot, s.latest};
  Dynamics<double> dynamics{s.reference};
  MatrixXd A{s.reference.nv, s.reference.nv};
  VectorXd x{s.reference.nv};

  void compare(const BatchAnswer& answer, int k, const MatrixXd& expected) {
    EXPECT_EQ(answer.joint_names, s.names);
    EXPECT_EQ(answer.configurations, std::size_t{Locked::configurations});
    const MatrixXd got = part(answer, static_cast<std::size_t>(k));
    ASSERT_EQ(got.rows(), expected.rows());
    ASSERT_EQ(got.cols(), expected.cols());
    EXPECT_LT((got - expected).cwiseAbs().maxCoeff(), tolerance * (1.0 + expected.norm()));
  }
};

std::string error_of(const Batch& batch, const BatchQuery& query) {
  try {
    (void)batch.inverse_dynamics(query);
  } catch (const RequestError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Robots, BatchTest, testing::Values(0, 1), [](const auto& test) {
  return test.param == 0 ? std::string("humanoid_subset") : std::string("panda_permuted");
});

TEST_P(BatchTest, GivesMassMatrixGravityAndCoriolis) {
  const BatchAnswer M = batch.mass_matrix(s.query);
  const BatchAnswer g = batch.gravity(s.query);
  const BatchAnswer C = batch.coriolis(s.query, CoriolisFactor::recursive);
  const BatchAnswer Cc = batch.coriolis(s.query, CoriolisFactor::christoffel);
  for (int k = 0; k < Locked::configurations; ++k) {
    const VectorXd q = s.at(s.query.positions, k);
    const VectorXd v = s.at(s.query.velocities, k);
    ASSERT_EQ(dynamics.mass_matrix(q, A), Status::ok);
    compare(M, k, A(s.order, s.order));
    ASSERT_EQ(dynamics.gravity(q, x), Status::ok);
    compare(g, k, x(s.order));
    ASSERT_EQ(dynamics.families().denoc.coriolis_christoffel(q, v, A), Status::ok);
    compare(Cc, k, A(s.order, s.order));
    // The other factor differs as a matrix; its product with v does not.
    const VectorXd product = A * v;
    const VectorXd given = part(C, static_cast<std::size_t>(k)) * VectorXd(v(s.order));
    EXPECT_LT((given - VectorXd(product(s.order))).norm(), tolerance * (1.0 + product.norm()));
  }
}

TEST_P(BatchTest, GivesInverseAndForwardDynamicsWithWrenchLoadAndFriction) {
  const std::string link = s.reference.links[static_cast<std::size_t>(tip_link(s.reference))].name;
  const Force<double> wrench = {s.random.vector(2.0), s.random.vector(9.0)};
  const Payload<double> load = {1.5, s.random.vector(0.1), {0.02, 0.0, 0.001, 0.03, 0.0, 0.01}};
  s.query.wrenches = {{link, wrench}};
  s.query.payloads = {{link, load}};
  s.query.friction = true;
  ASSERT_EQ(dynamics.add_external_force(s.reference.find_link(link), wrench), Status::ok);
  ASSERT_EQ(dynamics.set_payload(s.reference.find_link(link), load), Status::ok);
  const Friction<double> friction(s.reference);
  const BatchAnswer tau = batch.inverse_dynamics(s.query);
  const BatchAnswer qdd = batch.forward_dynamics(s.query);
  for (int k = 0; k < Locked::configurations; ++k) {
    const VectorXd q = s.at(s.query.positions, k);
    const VectorXd v = s.at(s.query.velocities, k);
    ASSERT_EQ(dynamics.inverse_dynamics(q, v, s.at(s.query.accelerations, k), x), Status::ok);
    ASSERT_EQ(friction.add(v, x), Status::ok);
    compare(tau, k, x(s.order));
    VectorXd drive = s.at(s.query.efforts, k);
    ASSERT_EQ(friction.subtract(v, drive), Status::ok);
    ASSERT_EQ(dynamics.forward_dynamics(q, v, drive, x), Status::ok);
    compare(qdd, k, x(s.order));
  }
}

TEST_P(BatchTest, GivesDerivatives) {
  const std::string link = s.reference.links[static_cast<std::size_t>(tip_link(s.reference))].name;
  const Force<double> wrench = {s.random.vector(2.0), s.random.vector(9.0)};
  s.query.wrenches = {{link, wrench}};
  ASSERT_EQ(dynamics.add_external_force(s.reference.find_link(link), wrench), Status::ok);
  const BatchDerivatives efforts = batch.inverse_dynamics_derivatives(s.query);
  const BatchDerivatives accelerations = batch.forward_dynamics_derivatives(s.query);
  MatrixXd by_q = A, by_v = A;
  for (int k = 0; k < Locked::configurations; ++k) {
    const VectorXd q = s.at(s.query.positions, k);
    const VectorXd v = s.at(s.query.velocities, k);
    ASSERT_EQ(
        dynamics.inverse_dynamics_derivatives(q, v, s.at(s.query.accelerations, k), by_q, by_v, A),
        Status::ok);
    compare(efforts.by_positions, k, by_q(s.order, s.order));
    compare(efforts.by_velocities, k, by_v(s.order, s.order));
    compare(efforts.by_input, k, A(s.order, s.order));
    ASSERT_EQ(dynamics.forward_dynamics_derivatives(q, v, s.at(s.query.efforts, k), by_q, by_v, A),
              Status::ok);
    compare(accelerations.by_positions, k, by_q(s.order, s.order));
    compare(accelerations.by_velocities, k, by_v(s.order, s.order));
    compare(accelerations.by_input, k, A(s.order, s.order));
  }
}

TEST_P(BatchTest, GivesTheJacobianLinearRowsFirst) {
  const std::string link = s.reference.links[static_cast<std::size_t>(tip_link(s.reference))].name;
  const Eigen::Vector3d point(0.1, -0.2, 0.3);
  const BatchAnswer in_world = batch.jacobian(s.query, link, JacobianAxes::world, point);
  const BatchAnswer in_link = batch.jacobian(s.query, link, JacobianAxes::link, point);
  MatrixXd J(6, s.reference.nv);
  Pose<double> X = Pose<double>::identity();
  for (int k = 0; k < Locked::configurations; ++k) {
    const int index = s.reference.find_link(link);
    ASSERT_EQ(dynamics.kinematics().update(s.at(s.query.positions, k)), Status::ok);
    ASSERT_EQ(dynamics.kinematics().jacobian(index, J, point), Status::ok);
    ASSERT_EQ(dynamics.kinematics().pose(index, X), Status::ok);
    MatrixXd expected(6, J.cols());
    expected << J.bottomRows<3>(), J.topRows<3>();
    compare(in_world, k, expected(Eigen::all, s.order));
    expected << X.R.transpose() * J.bottomRows<3>(), X.R.transpose() * J.topRows<3>();
    compare(in_link, k, expected(Eigen::all, s.order));
  }
}

TEST_P(BatchTest, GivesARegressorOfTheEfforts) {
  const BatchAnswer Y = batch.regressor(s.query);
  const BatchAnswer tau = batch.inverse_dynamics(s.query);
  const std::vector<double> pi = batch.parameters();
  ASSERT_EQ(pi.size(), parameter_names(s.robot).size());
  ASSERT_EQ(Y.columns, pi.size());
  const Eigen::Map<const VectorXd> parameters(pi.data(), static_cast<Eigen::Index>(pi.size()));
  for (std::size_t k = 0; k < Locked::configurations; ++k)
    EXPECT_LT((part(Y, k) * parameters - part(tau, k)).norm(), 1e-9 * (1.0 + part(tau, k).norm()));
}

TEST(BatchQueryTest, TakesTheLatestStateWhereNothingIsGiven) {
  Locked s(panda, select_joints(load_urdf(panda)).names, 4);
  const Batch batch(s.robot, s.latest);
  const BatchAnswer answer = batch.inverse_dynamics({});
  EXPECT_EQ(answer.configurations, 1u);
  Dynamics<double> dynamics(s.robot);
  VectorXd tau(7);
  ASSERT_EQ(dynamics.families().newton_euler.inverse_dynamics(s.latest.q, s.latest.v,
                                                              VectorXd::Zero(7), tau),
            Status::ok);
  EXPECT_LT((part(answer, 0) - tau).norm(), tolerance);
  // Positions that are given are taken at rest.
  BatchQuery at_rest;
  at_rest.positions = values(s.latest.q);
  EXPECT_EQ(batch.inverse_dynamics(at_rest).data.size(), 7u);
  EXPECT_LT((part(batch.inverse_dynamics(at_rest), 0) - part(batch.gravity({}), 0)).norm(),
            tolerance);
}

TEST(BatchQueryTest, TakesManyVelocitiesAtTheLatestPosition) {
  Locked s(panda, select_joints(load_urdf(panda)).names, 5);
  const Batch batch(s.robot, s.latest);
  BatchQuery query;
  query.velocities = std::vector<double>(14, 0.0);
  const BatchAnswer answer = batch.inverse_dynamics(query);
  EXPECT_EQ(answer.configurations, 2u);
  for (std::size_t k = 0; k < 2; ++k)
    EXPECT_LT((part(answer, k) - part(batch.gravity({}), 0)).norm(), tolerance);
}

TEST(BatchQueryTest, SaysWhatIsWrong) {
  const Model model = load_urdf(panda);
  JointStates latest(model);
  const Batch batch(model, latest, {3, 1000});
  const std::string j1 = "panda_joint1";
  const std::string j2 = "panda_joint2";
  const auto query = [](std::vector<std::string> names, std::vector<double> q,
                        std::vector<double> v = {}, std::vector<double> a = {}) {
    return BatchQuery{
        std::move(names), std::move(q), std::move(v), std::move(a), {}, {}, {}, false};
  };
  EXPECT_EQ(error_of(batch, query({j1, j2}, {0.1, 0.2})), "");
  EXPECT_EQ(error_of(batch, query({j1, j2}, {0.1, 0.2, 0.3})),
            "positions has 3 values, which is no multiple of the number of joints; give 2 for each "
            "configuration");
  EXPECT_EQ(error_of(batch, query({j1, j2}, {0.1, 0.2, 0.3, not_a_number})),
            "positions[3] (configuration 1, joint 'panda_joint2') is nan; give finite values");
  EXPECT_THAT(error_of(batch, query({j1}, {0.1}, {-infinity})), HasSubstr("velocities[0]"));
  EXPECT_THAT(error_of(batch, query({j1}, {0.1}, {}, {infinity})), HasSubstr("accelerations[0]"));
  EXPECT_EQ(error_of(batch, query({j1}, {0.1, 0.2}, {0.1})),
            "velocities has 1 configurations, but positions has 2; give as many of each or none");
  EXPECT_EQ(error_of(batch, query({j1}, {0.1, 0.2, 0.3, 0.4})),
            "4 configurations are more than max_configurations, 3; ask in several calls");
  EXPECT_EQ(error_of(batch, query({j2}, {})),
            "no positions are given and joint 'panda_joint2' has not been in any joint state yet; "
            "give positions or publish it");
  EXPECT_THAT(error_of(batch, query({"wrist"}, {0.1})), HasSubstr("joint 'wrist' is not"));
  EXPECT_THAT(error_of(batch, query({j1, j1}, {0.1, 0.2})), HasSubstr("named twice"));
  EXPECT_EQ(error_of(batch, query({j1}, {0.0}, {1e308})),
            "configuration 0: the result is not finite; the values given are too large");
  EXPECT_THAT([&] { (void)batch.regressor(query({}, std::vector<double>(21, 0.0))); },
              testing::ThrowsMessage<RequestError>(
                  "3 configurations of 490 values each are more than max_values, 1000; ask in "
                  "several calls"));
  EXPECT_THAT([&] { (void)batch.jacobian(query({j1}, {0.0}), "hand"); },
              testing::ThrowsMessage<RequestError>(
                  "link 'hand' is not a link of robot 'panda'; its tip is 'panda_link8'"));
  EXPECT_THAT(
      [&] {
        (void)batch.jacobian(query({j1}, {0.0}), "", JacobianAxes::world, {0.0, not_a_number, 0.0});
      },
      testing::ThrowsMessage<RequestError>(HasSubstr("point")));
}

TEST(BatchQueryTest, SaysWhatIsWrongWithWrenchesAndLoads) {
  const Model model = load_urdf(panda);
  const JointStates latest(model);
  const Batch batch(model, latest);
  BatchQuery query;
  query.positions = std::vector<double>(7, 0.0);
  query.wrenches = {{"hand", Force<double>::zero()}};
  EXPECT_THAT(error_of(batch, query), HasSubstr("link 'hand' is not a link"));
  query.wrenches = {{"panda_link8", {{0.0, not_a_number, 0.0}, {0.0, 0.0, 0.0}}}};
  EXPECT_EQ(error_of(batch, query),
            "the wrench on link 'panda_link8' is not finite; give finite values");
  query.wrenches.clear();
  LinkPayload load;
  load.link = "panda_link8";
  load.payload.mass = -2.0;
  query.payloads = {load};
  EXPECT_THAT(error_of(batch, query),
              HasSubstr("payload on link 'panda_link8': payload.mass = -2: "));
  load.payload.mass = 2.0;
  query.payloads = {load, load};
  EXPECT_EQ(error_of(batch, query), "link 'panda_link8' carries two payloads; give their sum");
  query.payloads = {load};
  EXPECT_EQ(error_of(batch, query), "");
  query.payloads[0].payload.inertia.xx = -1.0;
  EXPECT_THAT(error_of(batch, query), HasSubstr("payload.inertia = -1"));
}

TEST(BatchQueryTest, NamesTheConfigurationWhoseMassMatrixIsSingular) {
  const Model model = load_urdf_string(R"(<robot name="stick">
    <link name="base"/>
    <link name="arm"><inertial><mass value="1"/><origin xyz="1 0 0"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
    <link name="ghost"/>
    <joint name="elbow" type="continuous"><parent link="base"/><child link="arm"/></joint>
    <joint name="nothing" type="continuous"><parent link="arm"/><child link="ghost"/></joint>
  </robot>)");
  const JointStates latest(model);
  const Batch batch(model, latest);
  BatchQuery query;
  query.positions = {0.0, 0.0, 0.1, 0.1};
  EXPECT_THAT([&] { (void)batch.forward_dynamics(query); },
              testing::ThrowsMessage<RequestError>(
                  AllOf(HasSubstr("configuration 0"), HasSubstr("mass matrix is singular"))));
  query.joint_names = {"elbow"};
  EXPECT_EQ(batch.forward_dynamics(query).configurations, 4u);
}

TEST(BatchQueryTest, RefusesARobotWithoutJoints) {
  const Model rock = load_urdf_string("<robot name='rock'><link name='stone'/></robot>");
  const JointStates latest(rock);
  EXPECT_THAT(error_of(Batch(rock, latest), {}), HasSubstr("robot 'rock' has no joint"));
}

TEST(BatchQueryTest, KeepsFloatingAndPlanarJointsNeutral) {
  const Model model = load_urdf(RD_SOURCE_DIR "/test/assets/all_joints.urdf");
  const JointStates latest(model);
  const Batch batch(model, latest);
  BatchQuery query;
  query.positions = {0.3, -0.2, 0.01};
  const BatchAnswer g = batch.gravity(query);
  Dynamics<double> dynamics(model);
  VectorXd q = model.neutral();
  const JointSelection joints = select_joints(model);
  for (std::size_t i = 0; i < 3; ++i) q[joints.q[i]] = query.positions[i];
  VectorXd tau(model.nv);
  ASSERT_EQ(dynamics.families().newton_euler.gravity(q, tau), Status::ok);
  EXPECT_LT((part(g, 0) - VectorXd(tau(joints.v))).norm(), tolerance);
}
