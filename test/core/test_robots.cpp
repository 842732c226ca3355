// SPDX-License-Identifier: Apache-2.0
// The robots in config/robots: each loads, moves and weighs what its source says. Those from
// published tables are compared with figures published elsewhere, and with the same tables typed in
// a second time and evaluated by other means; our own designs with the solids they are made of.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tinyxml2.h>

#include <Eigen/Dense>
#include <Eigen/Geometry>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <sstream>
#include <vector>

#include "dynamics_core/families.hpp"
#include "dynamics_core/load.hpp"
#include "dynamics_core/loops.hpp"
#include "support/linear_algebra.hpp"

using namespace dynamics_core;
using Eigen::Isometry3d;
using Eigen::Matrix3d;
using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;

namespace {

constexpr double pi = 3.14159265358979323846;

std::string path(const std::string& file) { return RD_SOURCE_DIR "/config/robots/" + file; }

Model load(const std::string& file, bool floating_base = false) {
  ModelOptions options;
  options.floating_base = floating_base;
  return load_model(path(file), options);
}

const LinkInfo& link(const Model& model, const std::string& name) {
  const int index = model.find_link(name);
  if (index < 0) throw std::out_of_range("no link " + name);
  return model.links[static_cast<std::size_t>(index)];
}

double total_mass(const Model& model) {
  double sum = 0.0;
  for (const LinkInfo& l : model.links) sum += l.inertial.mass;
  return sum;
}

MatrixXd mass_matrix(const Model& model, const VectorXd& q) {
  Dynamics<double> dynamics(model);
  MatrixXd M(model.nv, model.nv);
  EXPECT_EQ(dynamics.families().composite_body.mass_matrix(q, M), Status::ok);
  return M;
}

VectorXd gravity(const Model& model, const VectorXd& q) {
  Dynamics<double> dynamics(model);
  VectorXd tau(model.nv);
  EXPECT_EQ(dynamics.families().newton_euler.gravity(q, tau), Status::ok);
  return tau;
}

Isometry3d pose(const Model& model, const std::string& name, const VectorXd& q) {
  Dynamics<double> dynamics(model);
  EXPECT_EQ(dynamics.kinematics().update(q), Status::ok);
  Pose<double> X = Pose<double>::identity();
  EXPECT_EQ(dynamics.kinematics().pose(model.find_link(name), X), Status::ok);
  Isometry3d T = Isometry3d::Identity();
  T.linear() = X.R;
  T.translation() = X.p;
  return T;
}

/// Between the joints' limits, or anywhere for those without.
VectorXd random_configuration(const Model& model, std::mt19937& random) {
  VectorXd q = model.neutral();
  for (const JointInfo& j : model.joints) {
    if (j.nq != 1) continue;  // a floating base
    const double lower = std::isfinite(j.limits.lower) ? j.limits.lower : -pi;
    const double upper = std::isfinite(j.limits.upper) ? j.limits.upper : pi;
    q[j.q] = std::uniform_real_distribution<double>(lower, upper)(random);
  }
  return q;
}

// --- Every robot ---------------------------------------------------------------------------------

struct Robot {
  const char* file;
  int joints;
  int mimics;
  double mass;                        ///< the sum of the source's, all links
  std::vector<const char*> warnings;  ///< what each must name; the source's fault
};

std::ostream& operator<<(std::ostream& out, const Robot& robot) { return out << robot.file; }

const double steel_bars = 7850.0 * 0.03 * 0.01 * (0.15 + 0.45 + 0.42);

/// Column and torso, both arms, and the fingers (see the solids in the file).
const double torso_mass =
    1200.0 * (0.16 * 0.14 * 0.5 + 0.2 * 0.3 * 0.4 +
              2.0 * (pi * (0.055 * 0.055 * 0.12 + 0.05 * 0.05 * 0.11 + 0.045 * 0.045 * 0.25 +
                           0.042 * 0.042 * 0.17 + 0.036 * 0.036 * 0.1) +
                     0.06 * 0.12 * 0.1)) +
    4.0 * 2700.0 * 0.02 * 0.012 * 0.07;

const std::vector<Robot> robots = {
    // Saha 1999, §6.1, with masses of our own.
    {"planar3r.yaml", 3, 0, 0.5 + 0.4 + 0.3, {}},
    // Saha 1999, Table 3.
    {"stanford_saha1999.yaml", 6, 0, 9 + 6 + 4 + 1 + 0.6 + 0.5, {}},
    // Saha 2001, Table II(ii), without the minus signs of its moments of inertia.
    {"puma_saha2001_positive.yaml", 6, 0, 10.521 + 15.761 + 8.767 + 1.052 + 1.052 + 0.351, {}},
    // Armstrong, Khatib & Burdick 1986; of link 1, 13 kg is ours.
    {"puma560.urdf", 6, 0, 13 + 17.4 + 4.8 + 0.82 + 0.34 + 0.09, {"link 'link3'"}},
    // Universal Robots, table "UR5e".
    {"ur5e.urdf", 6, 0, 3.761 + 8.058 + 2.846 + 1.37 + 1.3 + 0.365, {}},
    // Gaz et al. 2019, supplement, Table VIII.
    {"panda.urdf",
     7,
     0,
     4.970684 + 0.646926 + 3.228604 + 3.587895 + 1.225946 + 1.666555 + 0.735522,
     {}},
    {"two_arm_torso.urdf", 16, 2, torso_mass, {}},
    {"four_bar.urdf", 3, 0, steel_bars, {}},
    // de Leva 1996, Table 4: the mean of the male sample.
    {"humanoid.urdf", 31, 0, 73.0, {}},
};

class RobotsTest : public testing::TestWithParam<Robot> {};

std::string test_name(const testing::TestParamInfo<Robot>& info) {
  std::string name = info.param.file;
  return name.substr(0, name.find('.'));
}

}  // namespace

TEST_P(RobotsTest, LoadsAsItsSourceSays) {
  const Robot& robot = GetParam();
  const Model model = load(robot.file);
  EXPECT_EQ(model.nv, robot.joints);
  EXPECT_EQ(static_cast<int>(model.joints.size()), robot.joints);
  EXPECT_EQ(static_cast<int>(model.mimics.size()), robot.mimics);
  // Files of our own round each mass to a milligram.
  EXPECT_NEAR(total_mass(model), robot.mass, 1e-6 * static_cast<double>(model.links.size()));

  ModelOptions strict;
  strict.strict = true;
  if (robot.warnings.empty()) {
    EXPECT_THAT(model.warnings, testing::IsEmpty());
    EXPECT_NO_THROW((void)load_model(path(robot.file), strict));
  } else {
    ASSERT_EQ(model.warnings.size(), robot.warnings.size());
    for (std::size_t i = 0; i < robot.warnings.size(); ++i)
      EXPECT_THAT(model.warnings[i], testing::HasSubstr(robot.warnings[i]));
    EXPECT_THROW((void)load_model(path(robot.file), strict), ModelError);
  }
}

TEST_P(RobotsTest, MassMatrixIsPositiveDefinite) {
  for (const bool floating_base : {false, true}) {
    const Model model = load(GetParam().file, floating_base);
    if (floating_base && model.links.front().inertial.mass == 0.0) continue;  // nothing to float
    for (unsigned seed = 1; seed <= 50; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      std::mt19937 random(seed);
      const MatrixXd M = mass_matrix(model, random_configuration(model, random));
      EXPECT_LT((M - M.transpose()).norm(), 1e-12 * M.norm());
      EXPECT_GT(support::eigenvalues(M).minCoeff(), 0.0);
    }
  }
}

// A controller clamps to these, so they must be there and let the joint move.
TEST_P(RobotsTest, LimitsLetEveryJointMove) {
  const Model model = load(GetParam().file);
  for (const JointInfo& j : model.joints) {
    SCOPED_TRACE(j.name);
    EXPECT_GT(j.limits.effort, 0.0);
    EXPECT_GT(j.limits.velocity, 0.0);
    EXPECT_LT(j.limits.lower, j.limits.upper);
  }
}

INSTANTIATE_TEST_SUITE_P(Shipped, RobotsTest, testing::ValuesIn(robots), test_name);

// A robot at work holds its own weight.
TEST(Robots, MotorsCarryTheArms) {
  for (const char* file : {"puma560.urdf", "ur5e.urdf", "panda.urdf", "two_arm_torso.urdf"}) {
    const Model model = load(file);
    for (unsigned seed = 1; seed <= 200; ++seed) {
      SCOPED_TRACE(std::string(file) + ", seed " + std::to_string(seed));
      std::mt19937 random(seed);
      const VectorXd tau = gravity(model, random_configuration(model, random));
      for (const JointInfo& j : model.joints) EXPECT_LT(std::abs(tau[j.v]), j.limits.effort);
    }
  }
}

// --- Arms from Denavit–Hartenberg tables ---------------------------------------------------------

namespace {

struct Row {
  double a, alpha, d;
  double mass;
  Vector3d com;             ///< in frame i
  std::array<double, 6> I;  ///< xx xy xz yy yz zz, about the mass centre, in frame i
};

/// A serial arm straight from its table: M = Σ m Jᵀ J + J_ωᵀ I J_ω and g = −Σ m Jᵀ g in the world.
class TableArm {
 public:
  TableArm(std::vector<Row> rows, bool modified) : rows_(std::move(rows)), modified_(modified) {}

  void evaluate(const VectorXd& q) {
    const auto n = static_cast<Eigen::Index>(rows_.size());
    M = MatrixXd::Zero(n, n);
    gravity = VectorXd::Zero(n);
    frame = Isometry3d::Identity();
    MatrixXd axis(3, n);
    MatrixXd origin(3, n);
    for (Eigen::Index i = 0; i < n; ++i) {
      const Row& row = rows_[static_cast<std::size_t>(i)];
      const Isometry3d along_x(Eigen::Translation3d(row.a, 0, 0) *
                               Eigen::AngleAxisd(row.alpha, Vector3d::UnitX()));
      const Isometry3d about_z(Eigen::Translation3d(0, 0, row.d) *
                               Eigen::AngleAxisd(q[i], Vector3d::UnitZ()));
      if (modified_) frame = frame * along_x;
      axis.col(i) = frame.linear().col(2);
      origin.col(i) = frame.translation();
      frame = frame * about_z;
      if (!modified_) frame = frame * along_x;
      add_body(row, axis.leftCols(i + 1), origin.leftCols(i + 1));
    }
  }

  MatrixXd M;
  VectorXd gravity;
  Isometry3d frame = Isometry3d::Identity();  ///< the last one

 private:
  void add_body(const Row& row, const MatrixXd& axis, const MatrixXd& origin) {
    const Vector3d centre = frame * row.com;
    MatrixXd J(3, axis.cols());
    for (Eigen::Index k = 0; k < axis.cols(); ++k)
      J.col(k) = Vector3d(axis.col(k)).cross(centre - Vector3d(origin.col(k)));
    Matrix3d I;
    I << row.I[0], row.I[1], row.I[2], row.I[1], row.I[3], row.I[4], row.I[2], row.I[4], row.I[5];
    I = frame.linear() * I * frame.linear().transpose();
    M.topLeftCorner(axis.cols(), axis.cols()) +=
        row.mass * J.transpose() * J + axis.transpose() * I * axis;
    gravity.head(axis.cols()) += row.mass * 9.81 * J.row(2).transpose();
  }

  std::vector<Row> rows_;
  bool modified_;
};

void expect_same(const Model& model, TableArm arm, const std::string& tip) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const VectorXd q = random_configuration(model, random);
    arm.evaluate(q);
    EXPECT_TRUE(pose(model, tip, q).isApprox(arm.frame, 1e-12));
    EXPECT_LT((mass_matrix(model, q) - arm.M).norm(), 1e-12 * arm.M.norm());
    EXPECT_LT((gravity(model, q) - arm.gravity).norm(), 1e-12 * arm.gravity.norm());
  }
}

}  // namespace

// Universal Robots, "DH parameters for calculations of kinematics and dynamics", table "UR5e", and
// the inertias of config/ur5e/physical_parameters.yaml in Universal_Robots_ROS2_Description.
TEST(Ur5e, AgreesWithTheTable) {
  const TableArm arm({{0,
                       pi / 2,
                       0.1625,
                       3.761,
                       {0, -0.02561, 0.00193},
                       {0.0070021, 7.3e-7, -1.053e-5, 0.00648091, 4.9994e-4, 0.00657286}},
                      {-0.425,
                       0,
                       0,
                       8.058,
                       {0.2125, 0, 0.11336},
                       {0.01505885, -5.4e-5, 5.63e-6, 0.33388086, -1.81e-6, 0.33247207}},
                      {-0.3922,
                       0,
                       0,
                       2.846,
                       {0.15, 0, 0.0265},
                       {0.00399632, -1.365e-5, 0.00137272, 0.07879254, -6.6e-6, 0.0784851}},
                      {0,
                       pi / 2,
                       0.1333,
                       1.37,
                       {0, -0.0018, 0.01634},
                       {0.00165491, -2.82e-6, -4.38e-6, 0.00135962, 1.0157e-4, 0.00126279}},
                      {0,
                       -pi / 2,
                       0.0997,
                       1.3,
                       {0, 0.0018, 0.01634},
                       {0.00135617, -2.74e-6, 4.44e-6, 0.00127827, -5.048e-5, 9.6614e-4}},
                      {0,
                       0,
                       0.0996,
                       0.365,
                       {0, 0, -0.001159},
                       {1.8694e-4, 6e-8, -1.7e-7, 1.8908e-4, -9.2e-7, 2.5756e-4}}},
                     false);
  expect_same(load("ur5e.urdf"), arm, "tool0");
}

// At zero every angle of the table is a multiple of 90°, so the flange's place is a sum.
TEST(Ur5e, FlangeAtZero) {
  const Isometry3d T = pose(load("ur5e.urdf"), "tool0", VectorXd::Zero(6));
  EXPECT_LT((T.translation() - Vector3d(-0.425 - 0.3922, -0.1333 - 0.0996, 0.1625 - 0.0997)).norm(),
            1e-12);
  Matrix3d R;  // the tool points along −y of the base, its x along x
  R << 1, 0, 0, 0, 0, -1, 0, 1, 0;
  EXPECT_LT((T.linear() - R).norm(), 1e-12);
}

// Franka's documentation (modified Denavit–Hartenberg) and Gaz et al. 2019, Tables VIII and IX.
TEST(Panda, AgreesWithTheTables) {
  const TableArm arm({{0,
                       0,
                       0.333,
                       4.970684,
                       {3.875e-3, 2.081e-3, -0.175},
                       {7.0337e-1, -1.39e-4, 6.772e-3, 7.0661e-1, 1.9169e-2, 9.117e-3}},
                      {0,
                       -pi / 2,
                       0,
                       0.646926,
                       {-3.141e-3, -2.872e-2, 3.495e-3},
                       {7.962e-3, -3.925e-3, 1.0254e-2, 2.811e-2, 7.04e-4, 2.5995e-2}},
                      {0,
                       pi / 2,
                       0.316,
                       3.228604,
                       {2.7518e-2, 3.9252e-2, -6.6502e-2},
                       {3.7242e-2, -4.761e-3, -1.1396e-2, 3.6155e-2, -1.2805e-2, 1.083e-2}},
                      {0.0825,
                       pi / 2,
                       0,
                       3.587895,
                       {-5.317e-2, 1.04419e-1, 2.7454e-2},
                       {2.5853e-2, 7.796e-3, -1.332e-3, 1.9552e-2, 8.641e-3, 2.8323e-2}},
                      {-0.0825,
                       -pi / 2,
                       0.384,
                       1.225946,
                       {-1.1953e-2, 4.1065e-2, -3.8437e-2},
                       {3.5549e-2, -2.117e-3, -4.037e-3, 2.9474e-2, 2.29e-4, 8.627e-3}},
                      {0,
                       pi / 2,
                       0,
                       1.666555,
                       {6.0149e-2, -1.4117e-2, -1.0517e-2},
                       {1.964e-3, 1.09e-4, -1.158e-3, 4.354e-3, 3.41e-4, 5.433e-3}},
                      {0.088,
                       pi / 2,
                       0,
                       0.735522,
                       {1.0517e-2, -4.252e-3, 6.1597e-2},
                       {1.2516e-2, -4.28e-4, -1.196e-3, 1.0027e-2, -7.41e-4, 4.815e-3}}},
                     true);
  expect_same(load("panda.urdf"), arm, "panda_link7");
}

TEST(Panda, FlangeAtZero) {
  const Isometry3d T = pose(load("panda.urdf"), "panda_link8", VectorXd::Zero(7));
  EXPECT_LT((T.translation() - Vector3d(0.088, 0, 0.333 + 0.316 + 0.384 - 0.107)).norm(), 1e-12);
  EXPECT_LT((T.linear() - Vector3d(1, -1, -1).asDiagonal().toDenseMatrix()).norm(), 1e-12);
}

namespace {

/// The links of the Panda about the origins of their frames, by number.
struct PandaLinks {
  std::array<double, 8> m{};
  std::array<Vector3d, 8> c;
  std::array<Matrix3d, 8> J;

  explicit PandaLinks(const Model& model) {
    for (std::size_t i = 1; i < 8; ++i) {
      const Inertial& body = link(model, "panda_link" + std::to_string(i)).inertial;
      set(i, body, body.com);
    }
  }
  void set(std::size_t i, const Inertial& body, const Vector3d& com) {
    m[i] = body.mass;
    c[i] = com;
    J[i] = body.inertia +
           body.mass * (com.squaredNorm() * Matrix3d::Identity() - com * com.transpose());
  }
};

double square(double x) { return x * x; }

constexpr double four_decimals = 0.5001e-4;

}  // namespace

// Gaz et al. 2019, supplement, Table III, column π(p̂): the dynamic coefficients that the authors
// themselves computed from the parameters in this file, to four decimals. Two have no value there
// (J3xy + …, J6xz); J5xx − J5yy + … has one, −0.0075, that no sign of its terms leads to. Those
// that hold the z coordinate of mass centre 6 have a test of their own.
TEST(Panda, DynamicCoefficientsAreThePublished) {
  const PandaLinks links(load("panda.urdf"));
  const auto& m = links.m;
  const auto& c = links.c;
  const auto& J = links.J;
  const double m57 = m[5] + m[6] + m[7];
  const double m47 = m[4] + m57;
  const struct {
    const char* name;
    double value;
    double published;
  } coefficients[] = {
      {"J2yy + J1zz", J[2](1, 1) + J[1](2, 2), 0.0373},
      {"J2xx − J2yy + …",
       J[2](0, 0) - J[2](1, 1) + J[3](1, 1) + square(0.316) * m[3] + 2 * 0.316 * c[3][2] * m[3] +
           (square(0.316) + square(0.0825)) * m47,
       0.9896},
      {"J2xy", J[2](0, 1), -0.0040},
      {"J2xz", J[2](0, 2), 0.0103},
      {"J2yz", J[2](1, 2), 0.0008},
      {"J3yy + J2zz + …",
       J[3](1, 1) + J[2](2, 2) + square(0.316) * m[3] + 2 * 0.316 * c[3][2] * m[3] +
           (square(0.316) + square(0.0825)) * m47,
       1.0358},
      {"J3xx − J3yy + …", J[3](0, 0) - J[3](1, 1) + J[4](1, 1) - square(0.0825) * m[4], 0.0116},
      {"J3xz", J[3](0, 2), -0.0055},
      {"J3yz", J[3](1, 2), -0.0044},
      {"J4yy + J3zz + …",
       J[4](1, 1) + J[3](2, 2) + square(0.0825) * m[4] + 2 * square(0.0825) * m57, 0.1245},
      {"J4xx − J4yy + …",
       J[4](0, 0) - J[4](1, 1) + J[5](1, 1) + 2 * 0.384 * c[5][2] * m[5] +
           (square(0.384) - square(0.0825)) * m57,
       0.5408},
      {"J4xy + …", J[4](0, 1) + 0.0825 * 0.384 * m57 + 0.0825 * c[5][2] * m[5], 0.1388},
      {"J4xz", J[4](0, 2), 0.0039},
      {"J4yz", J[4](1, 2), -0.0016},
      {"J5yy + J4zz + …",
       J[5](1, 1) + J[4](2, 2) + (square(0.384) + square(0.0825)) * m57 +
           2 * 0.384 * c[5][2] * m[5],
       0.6325},
      {"J5xy", J[5](0, 1), -0.0015},
      {"J5xz", J[5](0, 2), -0.0046},
      {"J5yz", J[5](1, 2), 0.0022},
      {"J6xx − J6yy + …", J[6](0, 0) - J[6](1, 1) + J[7](1, 1) - square(0.088) * m[7], -0.0009},
      {"J6xy + …", J[6](0, 1) + 0.088 * c[7][2] * m[7], 0.0055},
      {"J7yy + J6zz + …", J[7](1, 1) + J[6](2, 2) + square(0.088) * m[7], 0.0304},
      {"J7xx − J7yy", J[7](0, 0) - J[7](1, 1), 0.0024},
      {"J7xy", J[7](0, 1), -0.0004},
      {"J7xz", J[7](0, 2), -0.0017},
      {"J7yz", J[7](1, 2), -0.0005},
      {"J7zz", J[7](2, 2), 0.0049},
      {"c2x m2", c[2][0] * m[2], -0.0020},
      {"c2y m2 − …", c[2][1] * m[2] - 0.316 * (m[3] + m47) - c[3][2] * m[3], -3.1043},
      {"c3x m3 + …", c[3][0] * m[3] + 0.0825 * m47, 0.6842},
      {"c3y m3 − c4z m4", c[3][1] * m[3] - c[4][2] * m[4], 0.0282},
      {"c4x m4 − …", c[4][0] * m[4] - 0.0825 * m57, -0.4901},
      {"c4y m4 + …", c[4][1] * m[4] + c[5][2] * m[5] + 0.384 * m57, 1.7207},
      {"c5x m5", c[5][0] * m[5], -0.0147},
      {"c6x m6 + …", c[6][0] * m[6] + 0.088 * m[7], 0.1650},
      {"c6y m6 − c7z m7", c[6][1] * m[6] - c[7][2] * m[7], -0.0688},
      {"c7x m7", c[7][0] * m[7], 0.0077},
      {"c7y m7", c[7][1] * m[7], -0.0031},
  };
  for (const auto& k : coefficients) EXPECT_NEAR(k.value, k.published, four_decimals) << k.name;
}

// Table VIII has −1.0517e-2 m for the z coordinate of mass centre 6, the digits of link 7's x.
// Table III has c5y m5 − c6z m6 = 0.0824, which asks for another value; the two other coefficients
// that hold it follow from that value and not from the printed one. So the contradiction is the
// source's.
TEST(Panda, MassCentre6ContradictsTableThree) {
  const Model model = load("panda.urdf");
  PandaLinks links(model);
  const auto J6yy_J5zz = [&links] {
    return links.J[6](1, 1) + links.J[5](2, 2) + square(0.088) * links.m[7];
  };
  EXPECT_GT(std::abs(links.c[5][1] * links.m[5] - links.c[6][2] * links.m[6] - 0.0824), 0.01);
  EXPECT_GT(std::abs(J6yy_J5zz() - 0.0276), four_decimals);
  EXPECT_GT(std::abs(links.J[6](1, 2) + 0.0001), four_decimals);

  const Inertial& body = link(model, "panda_link6").inertial;
  const double c6z = (links.c[5][1] * links.m[5] - 0.0824) / body.mass;
  EXPECT_NEAR(c6z, -0.0192, four_decimals);
  links.set(6, body, {body.com[0], body.com[1], c6z});
  EXPECT_NEAR(J6yy_J5zz(), 0.0276, four_decimals);
  EXPECT_NEAR(links.J[6](1, 2), -0.0001, four_decimals);
}

// --- PUMA 560 ------------------------------------------------------------------------------------

namespace {

/// The motors of Corke's model; he gives joints 1 and 3 a sign, which is the direction of turning.
ModelOptions puma_motors() {
  ModelOptions options;
  const double gears[] = {62.6111, 107.815, 53.7063, 76.0364, 71.923, 76.686};
  for (int i = 0; i < 6; ++i) {
    const std::string joint = "joint" + std::to_string(i + 1);
    options.rotor_inertia[joint] = i < 3 ? 200e-6 : 33e-6;
    options.gear_ratio[joint] = gears[i];
  }
  return options;
}

/// Half a unit in the last of four significant digits.
double rounding(double printed) {
  return 0.5001 * std::pow(10.0, std::floor(std::log10(std::abs(printed))) - 3);
}

}  // namespace

// P. I. Corke's Robotics Toolbox for Python, the notebook on dynamics, prints for the pose qn
// p560.gravload(qn) and p560.inertia(qn) to four digits (positive elements only).
TEST(Puma560, InertiaAndGravityAreThePublished) {
  const Model model = load_model(path("puma560.urdf"), puma_motors());
  VectorXd q(6);
  q << 0, pi / 4, pi, 0, pi / 4, 0;
  const VectorXd tau = gravity(model, q);
  EXPECT_NEAR(tau[1], 31.64, rounding(31.64));
  EXPECT_NEAR(tau[2], 6.035, rounding(6.035));
  EXPECT_NEAR(tau[4], 0.02825, rounding(0.02825));

  const MatrixXd M = mass_matrix(model, q);
  const struct {
    int row, column;
    double printed;
  } elements[] = {{0, 0, 3.659},    {0, 2, 0.1006}, {1, 1, 4.414},   {1, 2, 0.3509},
                  {1, 4, 0.00236},  {2, 2, 0.9378}, {2, 4, 0.00148}, {3, 3, 0.1925},
                  {3, 5, 2.828e-5}, {4, 4, 0.1713}, {5, 5, 0.1941}};
  for (const auto& e : elements)
    EXPECT_NEAR(M(e.row, e.column), e.printed, rounding(e.printed)) << e.row << ", " << e.column;
}

// Armstrong, Khatib & Burdick 1986, gravitational constants g1 = −37.2, g2 = −8.44, g3 = 1.02 and
// g4 = 0.249 N·m: the torques of the upper arm and of the forearm, each lying and standing.
TEST(Puma560, GravitationalConstantsAreThePublished) {
  const Model model = load("puma560.urdf");
  VectorXd q = VectorXd::Zero(6);
  VectorXd tau = gravity(model, q);
  EXPECT_NEAR(std::abs(tau[1] - tau[2]), 37.2, 0.05);
  EXPECT_NEAR(std::abs(tau[2]), 0.249, 0.0005);
  q[1] = pi / 2;
  tau = gravity(model, q);
  EXPECT_NEAR(std::abs(tau[1] - tau[2]), 1.02, 0.005);
  q << 0, 0, -pi / 2, 0, pi / 2, 0;  // the wrist bent, so that link 6 counts for nothing
  // Corke has the mass centre of link 4 as far beyond the wrist as Armstrong et al. before it.
  const double link4 = 2 * 0.019 * 0.82 * 9.81;
  EXPECT_NEAR(std::abs(gravity(model, q)[2]) - link4, 8.44, 0.005);
}

// The URDF and the Denavit–Hartenberg file are one robot.
TEST(Puma560, UrdfAndTableAgree) {
  const Model urdf = load_model(path("puma560.urdf"), puma_motors());
  const Model table = load("puma560.yaml");
  ASSERT_EQ(urdf.nv, table.nv);
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const VectorXd q = random_configuration(urdf, random);
    EXPECT_LT((mass_matrix(urdf, q) - mass_matrix(table, q)).norm(), 1e-12);
    EXPECT_LT((gravity(urdf, q) - gravity(table, q)).norm(), 1e-11);
  }
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(urdf.joints[i].damping, table.joints[i].damping);
    EXPECT_EQ(urdf.joints[i].friction, table.joints[i].friction);
    EXPECT_NEAR(urdf.joints[i].limits.lower, table.joints[i].limits.lower, 1e-6);
    EXPECT_NEAR(urdf.joints[i].limits.upper, table.joints[i].limits.upper, 1e-6);
  }
}

// --- Our own designs -----------------------------------------------------------------------------

namespace {

struct Solid {
  double volume = 0.0;
  Vector3d per_mass;  ///< principal moments of a unit mass
};

Vector3d numbers(const char* text) {
  std::istringstream stream(text != nullptr ? text : "");
  Vector3d u = Vector3d::Zero();
  stream >> u[0] >> u[1] >> u[2];
  return u;
}

Solid solid_of(const tinyxml2::XMLElement& geometry) {
  Solid solid;
  if (const auto* box = geometry.FirstChildElement("box")) {
    const Vector3d s = numbers(box->Attribute("size"));
    solid.volume = s.prod();
    const Vector3d s2 = s.cwiseAbs2();
    solid.per_mass = (s2.sum() * Vector3d::Ones() - s2) / 12.0;
  } else if (const auto* cylinder = geometry.FirstChildElement("cylinder")) {
    const double r = cylinder->DoubleAttribute("radius");
    const double l = cylinder->DoubleAttribute("length");
    solid.volume = pi * r * r * l;
    solid.per_mass = {r * r / 4.0 + l * l / 12.0, r * r / 4.0 + l * l / 12.0, r * r / 2.0};
  } else if (const auto* sphere = geometry.FirstChildElement("sphere")) {
    const double r = sphere->DoubleAttribute("radius");
    solid.volume = 4.0 / 3.0 * pi * r * r * r;
    solid.per_mass = Vector3d::Constant(0.4 * r * r);
  }
  return solid;
}

/// Each link with an inertial is the one homogeneous solid that is shown. Returns their densities.
std::map<std::string, double> expect_solids(const std::string& file) {
  std::map<std::string, double> densities;
  tinyxml2::XMLDocument document;
  EXPECT_EQ(document.LoadFile(path(file).c_str()), tinyxml2::XML_SUCCESS);
  for (const auto* l = document.RootElement()->FirstChildElement("link"); l != nullptr;
       l = l->NextSiblingElement("link")) {
    const auto* inertial = l->FirstChildElement("inertial");
    if (inertial == nullptr) continue;
    const std::string name = l->Attribute("name");
    SCOPED_TRACE(name);
    const auto* visual = l->FirstChildElement("visual");
    const auto* geometry = visual != nullptr ? visual->FirstChildElement("geometry") : nullptr;
    if (geometry == nullptr) {
      ADD_FAILURE() << "nothing is shown";
      continue;
    }
    EXPECT_EQ(visual->NextSiblingElement("visual"), nullptr);
    for (const char* what : {"xyz", "rpy"}) {
      const auto at = [what](const tinyxml2::XMLElement* e) {
        const auto* origin = e->FirstChildElement("origin");
        return numbers(origin != nullptr ? origin->Attribute(what) : nullptr);
      };
      EXPECT_EQ(at(inertial), at(visual)) << what;
    }
    const Solid solid = solid_of(*geometry);
    const double mass = inertial->FirstChildElement("mass")->DoubleAttribute("value");
    densities[name] = mass / solid.volume;
    const auto* I = inertial->FirstChildElement("inertia");
    const char* diagonal[] = {"ixx", "iyy", "izz"};
    for (int k = 0; k < 3; ++k)
      EXPECT_NEAR(I->DoubleAttribute(diagonal[k]) / (mass * solid.per_mass[k]), 1.0, 1e-5);
    for (const char* product : {"ixy", "ixz", "iyz"}) EXPECT_EQ(I->DoubleAttribute(product), 0.0);
  }
  return densities;
}

}  // namespace

TEST(TwoArmTorso, LinksAreSolidsOfTheStatedDensity) {
  const auto densities = expect_solids("two_arm_torso.urdf");
  EXPECT_EQ(densities.size(), 18u);
  for (const auto& [name, density] : densities) {
    const bool finger = name.find("finger") != std::string::npos;
    EXPECT_NEAR(density, finger ? 2700.0 : 1200.0, 0.05) << name;
  }
}

TEST(TwoArmTorso, FingersMoveTogether) {
  const Model model = load("two_arm_torso.urdf");
  for (const std::string side : {"left_", "right_"}) {
    VectorXd q = VectorXd::Zero(model.nq);
    q[model.joints[static_cast<std::size_t>(model.find_joint(side + "finger_joint"))].q] = 0.03;
    const Vector3d hand = pose(model, side + "hand", q).translation();
    const Vector3d a = pose(model, side + "left_finger", q).translation() - hand;
    const Vector3d b = pose(model, side + "right_finger", q).translation() - hand;
    EXPECT_LT((a - Vector3d(0, 0.03, -0.1)).norm(), 1e-12);
    EXPECT_LT((b - Vector3d(0, -0.03, -0.1)).norm(), 1e-12);
  }
}

// The arms mirror each other in y = 0: pitch keeps its sign, roll and yaw change it.
TEST(TwoArmTorso, ArmsMirrorEachOther) {
  const Model model = load("two_arm_torso.urdf");
  const auto joint = [&model](const std::string& name) {
    return model.joints[static_cast<std::size_t>(model.find_joint(name))].q;
  };
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    VectorXd q = random_configuration(model, random);
    q[joint("torso_joint")] = 0.0;
    VectorXd sign = VectorXd::Ones(model.nv);
    for (const JointInfo& j : model.joints) {
      if (j.name.rfind("left_", 0) != 0) continue;
      const int right = joint("right_" + j.name.substr(5));
      if (j.name.find("roll") != std::string::npos || j.name.find("yaw") != std::string::npos)
        sign[right] = -1.0;
      q[right] = sign[right] * q[j.q];
    }
    const VectorXd tau = gravity(model, q);
    const MatrixXd M = mass_matrix(model, q);
    for (const JointInfo& j : model.joints) {
      if (j.name.rfind("left_", 0) != 0) continue;
      const int right = joint("right_" + j.name.substr(5));
      EXPECT_NEAR(tau[j.v], sign[right] * tau[right], 1e-11) << j.name;
      EXPECT_NEAR(M(j.v, j.v), M(right, right), 1e-11) << j.name;
    }
  }
}

// de Leva 1996, Table 4, males: masses of the segments in per cent of the whole.
TEST(Humanoid, SegmentsHaveTheFractionsOfTheTable) {
  const Model model = load("humanoid.urdf");
  (void)expect_solids("humanoid.urdf");
  const auto sum = [&model](const std::vector<std::string>& names) {
    double mass = 0.0;
    for (const std::string& name : names) mass += link(model, name).inertial.mass;
    return mass / 73.0 * 100.0;
  };
  EXPECT_NEAR(sum({"neck", "head"}), 6.94, 1e-6);
  EXPECT_NEAR(sum({"chest"}), 15.96, 1e-6);
  EXPECT_NEAR(sum({"waist", "abdomen"}), 16.33, 1e-6);
  EXPECT_NEAR(sum({"pelvis"}), 11.17, 1e-6);
  for (const std::string s : {"left_", "right_"}) {
    EXPECT_NEAR(sum({s + "shoulder", s + "shoulder_cap", s + "upper_arm"}), 2.71, 1e-6);
    EXPECT_NEAR(sum({s + "forearm", s + "wrist", s + "wrist_cap"}), 1.62, 1e-6);
    EXPECT_NEAR(sum({s + "hand"}), 0.61, 1e-6);
    EXPECT_NEAR(sum({s + "hip", s + "hip_cap", s + "thigh"}), 14.16, 1e-6);
    EXPECT_NEAR(sum({s + "shank", s + "ankle"}), 4.33, 1e-6);
    EXPECT_NEAR(sum({s + "foot"}), 1.37, 1e-6);
  }
}

TEST(Humanoid, FloatsWithItsWholeMass) {
  const Model model = load("humanoid.urdf", true);
  EXPECT_EQ(model.nv, 37);
  const MatrixXd M = mass_matrix(model, model.neutral());
  EXPECT_LT((M.block(3, 3, 3, 3) - 73.0 * Matrix3d::Identity()).norm(), 1e-4);
  Dynamics<double> dynamics(model);
  ASSERT_EQ(dynamics.kinematics().update(model.neutral()), Status::ok);
  Vector3d centre;
  ASSERT_EQ(dynamics.kinematics().centre_of_mass(centre), Status::ok);
  EXPECT_NEAR(centre.y(), 0.0, 1e-12);
  // Over its feet, 0.2581 m long around x = 0.06.
  EXPECT_GT(centre.x(), 0.06 - 0.2581 / 2);
  EXPECT_LT(centre.x(), 0.06 + 0.2581 / 2);
}

// The lengths of de Leva's table lie between the joints.
TEST(Humanoid, SegmentsHaveTheLengthsOfTheTable) {
  const Model model = load("humanoid.urdf");
  const VectorXd q = VectorXd::Zero(model.nq);
  const auto distance = [&](const std::string& from, const std::string& to) {
    return (pose(model, from, q).translation() - pose(model, to, q).translation()).norm();
  };
  EXPECT_NEAR(distance("pelvis", "waist"), 0.1457, 1e-12);
  EXPECT_NEAR(distance("abdomen", "chest"), 0.2155, 1e-12);
  EXPECT_NEAR(distance("chest", "neck"), 0.2421, 1e-12);
  for (const std::string s : {"left_", "right_"}) {
    EXPECT_NEAR(distance(s + "thigh", s + "shank"), 0.4222, 1e-12);
    EXPECT_NEAR(distance(s + "shank", s + "ankle"), 0.4403, 1e-12);
    EXPECT_NEAR(distance(s + "upper_arm", s + "forearm"), 0.2817, 1e-12);
    EXPECT_NEAR(distance(s + "forearm", s + "wrist"), 0.2689, 1e-12);
  }
}

// --- The four-bar linkage ------------------------------------------------------------------------

TEST(FourBar, LinksAreSteel) {
  const auto densities = expect_solids("four_bar.urdf");
  EXPECT_EQ(densities.size(), 3u);
  for (const auto& [name, density] : densities) EXPECT_NEAR(density, 7850.0, 0.05) << name;
}

// The crank goes all the way round; the rocker follows by the law of cosines.
TEST(FourBar, ClosesAllTheWayRound) {
  const Model model = load("four_bar.urdf");
  const LoopSet set = load_loops(path("four_bar.loops.yaml"), model);
  Dynamics<double> dynamics(model);
  Loops<double> pin(dynamics.tree(), model, set);
  VectorXd q = VectorXd::Zero(3);
  VectorXd error(pin.rows());
  ASSERT_EQ(pin.position_error(q, error), Status::ok);
  EXPECT_LT(error.norm(), 1e-12);

  for (int degree = 0; degree < 360; ++degree) {
    SCOPED_TRACE(degree);
    q[0] += pi / 180;  // the other two from where they were
    ASSERT_EQ(pin.project(q), Status::ok);
    // In the plane (x, z); a bar's angle is from x, the joints count from upright.
    const double crank = q[0] + pi / 2;
    const double x = 0.36 - 0.15 * std::cos(crank);
    const double z = -0.15 * std::sin(crank);
    const double d = std::hypot(x, z);
    const double at_pin = std::acos((d * d + 0.42 * 0.42 - 0.45 * 0.45) / (2 * d * 0.42));
    const double rocker = std::atan2(-z, -x) - at_pin;
    EXPECT_NEAR(std::remainder(q[2] + pi / 2 - rocker, 2 * pi), 0.0, 1e-9);
  }
}
