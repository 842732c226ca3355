// SPDX-License-Identifier: Apache-2.0
/// Contacts and a load in recordings of a real UR10e, where they are at hand beside the project. The
/// robot's links, rotors and friction are fitted to the two runs that excite it, without contact and
/// load.

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

#include "dynamics_core/control/load_estimator.hpp"
#include "dynamics_core/control/momentum_observer.hpp"
#include "dynamics_core/load.hpp"
#include "dynamics_core/regressor.hpp"

namespace {

using namespace dynamics_core;
using namespace dynamics_core::control;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int n = 6;
const std::filesystem::path folder = std::filesystem::path(RD_SHARED_DIR) / "recordings" / "ur10e";

/// From the recordings' description: N·m at the joint for each ampere of the motor.
const VectorXd& torque_per_ampere() {
  static const VectorXd gain =
      (VectorXd(n) << 11.976, 11.976, 9.839, 10.763, 10.763, 10.763).finished();
  return gain;
}

struct Log {
  std::vector<double> t;
  std::vector<VectorXd> q, v, tau;  ///< the torque as the mean since the last sample

  [[nodiscard]] double step(std::size_t k) const { return k == 0 ? 0.01 : t[k] - t[k - 1]; }
};

Log read(const std::string& run) {
  const std::string command = "gzip -dc '" + (folder / (run + ".csv.gz")).string() + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> file(popen(command.c_str(), "r"), pclose);
  Log log;
  char line[4096];
  VectorXd last;
  while (std::fgets(line, sizeof line, file.get()) != nullptr) {
    std::vector<double> x;
    std::stringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');)
      x.push_back(std::strtod(field.c_str(), nullptr));
    if (x.size() != 1 + 3 * n || (!log.t.empty() && x[0] <= log.t.back()) || line[0] == 't')
      continue;
    log.t.push_back(x[0]);
    log.q.push_back(Eigen::Map<VectorXd>(x.data() + 1, n));
    log.v.push_back(Eigen::Map<VectorXd>(x.data() + 1 + n, n));
    const VectorXd now =
        Eigen::Map<VectorXd>(x.data() + 1 + 2 * n, n).cwiseProduct(torque_per_ampere());
    log.tau.push_back(last.size() == 0 ? now : VectorXd(0.5 * (now + last)));
    last = now;
  }
  return log;
}

constexpr double transition = 0.02;  // rad/s

/// The robot as the recordings without contact and load know it.
struct Identified {
  Model model;
  std::vector<JointFriction<double>> friction;
  VectorXd offset = VectorXd::Zero(n);  ///< N·m
};

constexpr int links = 10 * n;
constexpr int columns = links + 4 * n;  ///< of each joint: viscous, Coulomb, rotor, offset

/// The sums of least squares over one run, both sides through a filter of first order.
void add_run(const std::string& run, Dynamics<double>& robot, MatrixXd& A, VectorXd& b) {
  const Log log = read(run);
  MatrixXd Y(n, links), row(n, columns), filtered = MatrixXd::Zero(n, columns);
  VectorXd tau = VectorXd::Zero(n);
  for (std::size_t k = 1; k < log.t.size(); ++k) {
    const double h = log.step(k);
    const VectorXd q = 0.5 * (log.q[k] + log.q[k - 1]);
    const VectorXd v = 0.5 * (log.v[k] + log.v[k - 1]);
    const VectorXd a = (log.v[k] - log.v[k - 1]) / h;
    ASSERT_EQ(robot.regressor().matrix(q, v, a, Y), Status::ok);
    row.setZero();
    row.leftCols(links) = Y;
    for (int j = 0; j < n; ++j)
      row.row(j).segment<4>(links + 4 * j) << v[j], v[j] / std::hypot(v[j], transition), a[j], 1.0;
    const double share = filter_share(5.0, h);
    filtered += share * (row - filtered);
    tau += share * (log.tau[k] - tau);
    // Not while the filters fill, nor in the stop at the end, which no model knows of.
    if (log.t[k] - log.t.front() < 1.0 || log.t.back() - log.t[k] < 1.5) continue;
    for (int j = 0; j < n; ++j) {
      const double noise = j < 2 ? 3.7 : j == 2 ? 2.0 : 0.7;  // N·m
      const VectorXd y = filtered.row(j).transpose() / noise;
      A += y * y.transpose();
      b += tau[j] / noise * y;
    }
  }
}

/// Links near those of the URDF, where the recordings do not tell otherwise.
Identified identify() {
  RobotDescription description = parse_file((folder / "ur10e.urdf").string());
  const Model nominal = build_model(description);
  Dynamics<double> robot(nominal);
  MatrixXd A = MatrixXd::Zero(columns, columns);
  VectorXd b = VectorXd::Zero(columns);
  for (const char* run : {"id_30s_12harm", "id_50s_14harm"}) add_run(run, robot, A, b);
  VectorXd pi(links);
  EXPECT_EQ(robot.regressor().parameters(pi), Status::ok);
  for (int i = 0; i < links; ++i) {
    const double mass = pi[i - i % 10];
    const double deviation = mass * (i % 10 == 0 ? 0.3 : i % 10 < 4 ? 0.1 : 0.01);
    A(i, i) += 1.0 / (deviation * deviation);
    b[i] += pi[i] / (deviation * deviation);
  }
  const VectorXd x = A.ldlt().solve(b);

  Identified found;
  for (int j = 0; j < n; ++j) {
    const Eigen::Vector4d joint = x.segment<4>(links + 4 * j);
    JointFriction<double> friction;
    friction.viscous = joint[0];
    friction.coulomb = joint[1];
    friction.transition = transition;
    found.friction.push_back(friction);
    found.offset[j] = joint[3];
    for (JointDescription& described : description.joints)
      if (described.name == nominal.joints[static_cast<std::size_t>(j)].name)
        described.rotor_inertia = std::max(joint[2], 0.0);
  }
  for (LinkDescription& link : description.links) {  // each moving body has one with a mass
    const LinkInfo& at = nominal.links[static_cast<std::size_t>(nominal.find_link(link.name))];
    if (at.body < 0 || !link.inertial) continue;
    const VectorXd body = x.segment<10>(10 * at.body);
    const double m = body[0];
    const Eigen::Vector3d c = body.segment<3>(1) / m;
    Eigen::Matrix3d I;
    I << body[4], body[5], body[6], body[5], body[7], body[8], body[6], body[8], body[9];
    I -= m * (c.squaredNorm() * Eigen::Matrix3d::Identity() - c * c.transpose());
    link.inertial->mass = m;
    link.inertial->com = at.X_BL.inverse() * c;
    link.inertial->inertia = at.X_BL.R.transpose() * I * at.X_BL.R;
  }
  found.model = build_model(description);
  return found;
}

class Recorded : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(folder / "push_pose_1.csv.gz"))
      GTEST_SKIP() << "the recordings are not here";
    robot_ = identify();
  }
  /// 1.65 % of the effort limit, 2.4 % for each rad/s; the recordings have 94 samples a second.
  [[nodiscard]] ObserverConfig observer_config() const {
    ObserverConfig config;
    config.friction = robot_.friction;
    config.cutoff = 5.0;
    config.confirm_time = 0.15;
    config.release_time = 0.3;
    config.thresholds.clear();
    for (const JointInfo& joint : robot_.model.joints)
      config.thresholds.push_back(
          {0.0165 * joint.limits.effort, 0.024 * joint.limits.effort, 0.05});
    return config;
  }
  struct Touch {
    double from, to;
    std::string link;  ///< that was named longest
  };
  [[nodiscard]] std::vector<Touch> touches(const std::string& run) const {
    MomentumObserver observer(robot_.model, observer_config());
    std::vector<Touch> found;
    const Log log = read(run);
    EXPECT_GT(log.t.size(), 500U);
    bool touched = false;
    for (std::size_t k = 0; k < log.t.size(); ++k) {
      const VectorXd tau = log.tau[k] - robot_.offset;
      EXPECT_EQ(observer.update({log.q[k], log.v[k], tau}, log.step(k)), Status::ok);
      const Contact& contact = observer.contact();
      const double t = log.t[k] - log.t.front();
      if (contact.touched && !touched)
        found.push_back({t, t, robot_.model.links[static_cast<std::size_t>(contact.link)].name});
      if (contact.touched) found.back().to = t;
      touched = contact.touched;
    }
    for (const Touch& touch : found)
      std::printf("%s: touched from %.2f s to %.2f s, first at %s\n", run.c_str(), touch.from,
                  touch.to, touch.link.c_str());
    return found;
  }

  Identified robot_;
};

TEST_F(Recorded, AllFourPushesAreSeen) { EXPECT_EQ(touches("push_pose_1").size(), 4U); }

TEST_F(Recorded, NothingIsReportedWhereNobodyTouches) {
  for (const char* run :
       {"id_30s_12harm", "id_50s_14harm", "jointwise_2", "static_p1", "static_p2", "static_p3"})
    EXPECT_TRUE(touches(run).empty()) << run;
}

TEST_F(Recorded, TheLoadIsWeighedAfterTenSecondsOfMotion) {
  LoadEstimatorConfig config;
  config.friction = robot_.friction;
  const auto weigh = [&](const std::string& run) {
    LoadEstimator scales(robot_.model, config);
    const Log log = read(run);
    double moving = 0.0;  // s
    std::vector<LoadEstimate> found;
    for (std::size_t k = 0; k < log.t.size(); ++k) {
      const VectorXd tau = log.tau[k] - robot_.offset;
      EXPECT_EQ(scales.update({log.q[k], log.v[k], tau}, log.step(k)), Status::ok);
      if (log.v[k].norm() > 0.05) moving += log.step(k);
      if (moving < 10.0) continue;
      found.emplace_back();
      EXPECT_EQ(scales.estimate(found.back()), Status::ok);
    }
    EXPECT_FALSE(found.empty()) << run;
    const auto say = [&](const char* when, const LoadEstimate& x) {
      std::printf("%s, %s: %.3f ± %.3f kg at (%.3f %.3f %.3f) m\n", run.c_str(), when, x.mass,
                  x.mass_deviation, x.com[0], x.com[1], x.com[2]);
    };
    if (!found.empty()) say("after 10 s of motion", found.front());
    if (!found.empty()) say("at the end", found.back());
    return found;
  };
  double worst = 0.0;
  for (const LoadEstimate& x : weigh("load_50s_14harm_2.805kg")) {
    worst = std::max(worst, std::abs(x.mass - 2.805));
    EXPECT_LT(std::abs(x.mass - 2.805), 3.0 * x.mass_deviation);
  }
  std::printf("from then on at most %.3f kg off\n", worst);
  EXPECT_LT(worst, 0.1);
  for (const char* run : {"id_50s_14harm", "id_30s_12harm"}) {
    const std::vector<LoadEstimate> nothing = weigh(run);
    ASSERT_FALSE(nothing.empty());
    EXPECT_LT(std::abs(nothing.back().mass), 3.0 * nothing.back().mass_deviation) << run;
  }
}

}  // namespace
