// SPDX-License-Identifier: Apache-2.0
/// Loads weighed in motion: exact ones, noisy ones, and what cannot be known.

#include "dynamics_core/control/load_estimator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/joint_selection.hpp"
#include "support/closed_loop.hpp"
#include "support/random_model.hpp"

namespace {

using namespace dynamics_core;
using namespace dynamics_core::control;
using Eigen::Vector3d;
using Eigen::VectorXd;
using testing::HasSubstr;

constexpr double dt = 1e-3;

const Payload<double> load{2.5, {0.05, -0.03, 0.12}, {0.02, 0.001, -0.002, 0.025, 0.003, 0.015}};

/// An arm that swings every joint, with the efforts that its load takes.
class Swing {
 public:
  Swing(const Model& model, unsigned seed, const Payload<double>& carried, double amplitude = 0.8)
      : robot_(model), random_(seed), n_(model.nv), amplitude_(amplitude) {
    EXPECT_EQ(robot_.set_payload(tip_link(model), carried), Status::ok);
    centre_ = random_.configuration(model);
    tau = VectorXd::Zero(n_);
  }
  /// The state at the time t, and the mean effort since t − dt.
  void move(double t, double noise = 0.0) {
    VectorXd mean(n_);
    at(t - 0.5 * dt, mean);  // the midpoint rule: the observer's own error is of the same order
    tau = mean;
    VectorXd unused(n_);
    at(t, unused);
    for (int j = 0; j < n_; ++j) tau[j] += noise * random_.uniform(-std::sqrt(3.0), std::sqrt(3.0));
  }
  VectorXd q, v, tau;

 private:
  void at(double t, VectorXd& effort) {
    q.resize(n_);
    v.resize(n_);
    VectorXd a(n_);
    for (int j = 0; j < n_; ++j) {
      const double w = 1.3 + 0.37 * j;
      q[j] = centre_[j] + amplitude_ * std::sin(w * t + j);
      v[j] = amplitude_ * w * std::cos(w * t + j);
      a[j] = -amplitude_ * w * w * std::sin(w * t + j);
    }
    EXPECT_EQ(robot_.inverse_dynamics(q, v, a, effort), Status::ok);
  }

  Dynamics<double> robot_;
  support::Random random_;
  int n_;
  double amplitude_;
  VectorXd centre_;
};

LoadEstimatorConfig exact() {
  LoadEstimatorConfig config;
  config.noise = {1e-3};
  return config;
}

TEST(LoadEstimator, WeighsExactlyWhatMovesWithoutNoise) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Model model = build_model(support::random_arm(seed, 6, true));
    LoadEstimator scales(model, exact());
    Swing swing(model, seed, load);
    for (int k = 0; k < 4000; ++k) {
      swing.move(k * dt);
      ASSERT_EQ(scales.update({swing.q, swing.v, swing.tau}, dt), Status::ok);
    }
    LoadEstimate found;
    ASSERT_EQ(scales.estimate(found), Status::ok);
    EXPECT_NEAR(found.mass, load.mass, 1e-3);
    EXPECT_LT((found.com - load.com).norm(), 1e-3);
    EXPECT_LT((found.inertia.matrix() - load.inertia.matrix()).norm(), 1e-3);
    EXPECT_NEAR(found.time, 4.0, 0.01);
    EXPECT_LT(found.mass_deviation, 1e-2);
    const Payload<double> carried = payload(found);
    EXPECT_EQ(carried.mass, found.mass);
    EXPECT_EQ(carried.inertia.matrix(), found.inertia.matrix());
  }
}

/// A load on a link that is fixed to another, turned and away from it.
TEST(LoadEstimator, SpeaksOfTheLinksOwnFrame) {
  RobotDescription description = support::random_arm(3, 6);
  description.links.push_back({"tool", std::nullopt});
  JointDescription joint;
  joint.name = "flange";
  joint.type = JointType::fixed;
  joint.parent = "link_6";
  joint.child = "tool";
  support::Random random(3);
  joint.origin = {random.rotation(), random.vector(0.2)};
  description.joints.push_back(joint);
  const Model model = build_model(description);
  LoadEstimatorConfig config = exact();
  config.link = "tool";
  LoadEstimator scales(model, config);
  ASSERT_EQ(scales.link(), model.find_link("tool"));
  Dynamics<double> robot(model);
  ASSERT_EQ(robot.set_payload(model.find_link("tool"), load), Status::ok);
  const VectorXd amplitude = random.vector_x(6, 1.5);
  VectorXd tau(6);
  for (int k = 0; k < 4000; ++k) {
    VectorXd q, v;
    for (const double t : {(k - 0.5) * dt, k * dt}) {
      VectorXd w(6), a(6);
      for (int j = 0; j < 6; ++j) w[j] = 1.3 + 0.37 * j;
      q = amplitude.array() * (w * t).array().sin();
      v = amplitude.array() * w.array() * (w * t).array().cos();
      a = -amplitude.array() * w.array().square() * (w * t).array().sin();
      if (t < k * dt) {
        ASSERT_EQ(robot.inverse_dynamics(q, v, a, tau), Status::ok);
      }
    }
    ASSERT_EQ(scales.update({q, v, tau}, dt), Status::ok);
  }
  LoadEstimate found;
  ASSERT_EQ(scales.estimate(found), Status::ok);
  EXPECT_NEAR(found.mass, load.mass, 1e-3);
  EXPECT_LT((found.com - load.com).norm(), 1e-3);
  EXPECT_LT((found.inertia.matrix() - load.inertia.matrix()).norm(), 1e-3);
}

/// With white noise of the size that is told, and as many measurements as there are samples, the
/// errors are as large as their deviations say: their squares have the mean one.
TEST(LoadEstimator, KnowsHowUncertainItIs) {
  double mass = 0.0;
  double com = 0.0;
  constexpr int runs = 40;
  for (unsigned seed = 1; seed <= runs; ++seed) {
    const Model model = build_model(support::random_arm(7, 6));
    LoadEstimatorConfig config;
    config.noise = {2.0};
    config.cutoff = 1e4;  // no filter: what is white stays white
    config.correlation_time = dt;
    LoadEstimator scales(model, config);
    Swing swing(model, 7, load);
    support::Random random(seed);
    for (int k = 0; k < 1000; ++k) {
      swing.move(k * dt);
      for (int j = 0; j < 6; ++j)
        swing.tau[j] += random.uniform(-2.0 * std::sqrt(3.0), 2.0 * std::sqrt(3.0));
      ASSERT_EQ(scales.update({swing.q, swing.v, swing.tau}, dt), Status::ok);
    }
    LoadEstimate found;
    ASSERT_EQ(scales.estimate(found), Status::ok);
    mass += std::pow((found.mass - load.mass) / found.mass_deviation, 2) / runs;
    com += ((found.com - load.com).array() / found.com_deviation.array()).square().mean() / runs;
  }
  std::printf("squared errors by their variances: mass %.2f, centre of mass %.2f\n", mass, com);
  EXPECT_GT(mass, 0.5);  // the mean of 40 squares deviates by 0.22
  EXPECT_LT(mass, 1.8);
  EXPECT_GT(com, 0.5);
  EXPECT_LT(com, 1.8);
}

/// Noise that is larger than told is seen in what the load does not explain.
TEST(LoadEstimator, NoticesNoiseThatNobodyToldOf) {
  const auto deviation = [](double noise) {
    const Model model = build_model(support::random_arm(7, 6));
    LoadEstimatorConfig config;
    config.noise = {0.1};
    config.cutoff = 1e4;
    LoadEstimator scales(model, config);
    Swing swing(model, 7, load);
    for (int k = 0; k < 2000; ++k) {
      swing.move(k * dt, noise);
      EXPECT_EQ(scales.update({swing.q, swing.v, swing.tau}, dt), Status::ok);
    }
    LoadEstimate found;
    EXPECT_EQ(scales.estimate(found), Status::ok);
    return found.mass_deviation;
  };
  EXPECT_NEAR(deviation(5.0) / deviation(0.0), 50.0, 5.0);
}

/// In a single pose the weight's moments are known and nothing else: the deviations say so, and the
/// payload that is handed on has no inertia.
TEST(LoadEstimator, AtRestKnowsLittleAndSaysSo) {
  const Model model = build_model(support::random_arm(7, 6));
  LoadEstimator scales(model, exact());
  Swing swing(model, 7, load, 0.0);
  for (int k = 0; k < 2000; ++k) {
    swing.move(k * dt);
    ASSERT_EQ(scales.update({swing.q, swing.v, swing.tau}, dt), Status::ok);
  }
  LoadEstimate found;
  ASSERT_EQ(scales.estimate(found), Status::ok);
  EXPECT_GT(found.inertia_deviation, 0.1);
  EXPECT_TRUE(payload(found).inertia.matrix().isZero(0.0));
}

TEST(LoadEstimator, FindsNothingWhereNothingIs) {
  const Model model = build_model(support::random_arm(7, 6));
  LoadEstimator scales(model, exact());
  Swing swing(model, 7, {0.0, Vector3d::Zero(), Symmetric3<double>::zero()});
  LoadEstimate found;
  EXPECT_EQ(scales.estimate(found), Status::out_of_range);  // nothing measured yet
  for (int k = 0; k < 2000; ++k) {
    swing.move(k * dt);
    ASSERT_EQ(scales.update({swing.q, swing.v, swing.tau}, dt), Status::ok);
  }
  ASSERT_EQ(scales.estimate(found), Status::ok);
  EXPECT_NEAR(found.mass, 0.0, 1e-3);
  found.mass = -0.001;
  EXPECT_EQ(payload(found).mass, 0.0);
}

/// Of a load that is known only the rest is weighed; of efforts without gravity the load's weight is
/// still there, since the hardware does not know of it.
TEST(LoadEstimator, UnderstandsKnownPayloadsAndEffortsWithoutGravity) {
  const Model model = build_model(support::random_arm(9, 6));
  const Payload<double> known{1.0, {0.0, 0.1, 0.0}, {0.01, 0.0, 0.0, 0.01, 0.0, 0.01}};
  LoadEstimatorConfig config = exact();
  LoadEstimator rest(model, config);
  ASSERT_EQ(rest.set_payload(tip_link(model), known), Status::ok);
  config.effort = EffortKind::without_gravity;
  LoadEstimator compensated(model, config);
  Swing swing(model, 9, load);
  Dynamics<double> empty(model);
  VectorXd g(6), last = VectorXd::Zero(6);
  for (int k = 0; k < 4000; ++k) {
    swing.move(k * dt);
    const VectorXd middle = 0.5 * (swing.q + last);
    last = swing.q;
    ASSERT_EQ(empty.gravity(middle, g), Status::ok);
    const VectorXd reported = swing.tau - g;
    ASSERT_EQ(rest.update({swing.q, swing.v, swing.tau}, dt), Status::ok);
    ASSERT_EQ(compensated.update({swing.q, swing.v, reported}, dt), Status::ok);
  }
  LoadEstimate found;
  ASSERT_EQ(rest.estimate(found), Status::ok);
  EXPECT_NEAR(found.mass, load.mass - known.mass, 1e-3);
  const Vector3d moment = load.mass * load.com - known.mass * known.com;
  EXPECT_LT((found.mass * found.com - moment).norm(), 1e-3);
  ASSERT_EQ(compensated.estimate(found), Status::ok);
  EXPECT_NEAR(found.mass, load.mass, 1e-2);
  EXPECT_LT((found.com - load.com).norm(), 1e-2);
}

/// With a memory of a quarter of a second, a load that was put down is gone after two.
TEST(LoadEstimator, ForgetsWhatIsOld) {
  const Model model = build_model(support::random_arm(7, 6));
  LoadEstimatorConfig config = exact();
  config.memory = 0.25;
  LoadEstimator scales(model, config);
  const Payload<double> none{0.0, Vector3d::Zero(), Symmetric3<double>::zero()};
  LoadEstimate found;
  for (const auto& [carried, mass] : {std::pair(load, 2.5), std::pair(none, 0.0)}) {
    Swing swing(model, 7, carried);
    for (int k = 0; k < 4000; ++k) {
      swing.move(k * dt);
      ASSERT_EQ(scales.update({swing.q, swing.v, swing.tau}, dt), Status::ok);
    }
    ASSERT_EQ(scales.estimate(found), Status::ok);
    EXPECT_NEAR(found.mass, mass, 0.01);
  }
}

TEST(LoadEstimator, KeepsWhatItKnowsAfterASampleThatCannotBeUsed) {
  const Model model = build_model(support::random_arm(7, 6));
  LoadEstimator scales(model, exact());
  Swing swing(model, 7, load);
  const VectorXd bad = VectorXd::Constant(6, std::nan(""));
  for (int k = 0; k < 4000; ++k) {
    swing.move(k * dt);
    if (k % 1000 == 500) {
      ASSERT_EQ(scales.update({swing.q, bad, swing.tau}, dt), Status::not_finite);
    } else if (k % 1000 == 700) {
      ASSERT_EQ(scales.update({swing.q, swing.v, swing.tau}, -1.0), Status::out_of_range);
    } else {
      ASSERT_EQ(scales.update({swing.q, swing.v, swing.tau}, dt), Status::ok);
    }
  }
  LoadEstimate found;
  ASSERT_EQ(scales.estimate(found), Status::ok);
  EXPECT_NEAR(found.mass, load.mass, 1e-3);
  scales.restart();
  EXPECT_EQ(scales.estimate(found), Status::out_of_range);
}

/// Efforts whose difference overflows in the filter: the filters start anew before anything reaches
/// the sums, so that what was weighed before is kept.
TEST(LoadEstimator, KeepsWhatItKnowsWhereAFilterOverflows) {
  const Model model = build_model(support::random_arm(7, 6));
  LoadEstimatorConfig config = exact();
  config.max_dt = 1.0;
  LoadEstimator scales(model, config);
  Swing swing(model, 7, load);
  const auto weigh = [&](int from, int to) {
    for (int k = from; k < to; ++k) {
      swing.move(k * dt);
      ASSERT_EQ(scales.update({swing.q, swing.v, swing.tau}, dt), Status::ok);
    }
  };
  weigh(0, 4000);
  LoadEstimate before;
  ASSERT_EQ(scales.estimate(before), Status::ok);
  const VectorXd huge = VectorXd::Constant(6, 1.7e308);
  EXPECT_EQ(scales.update({swing.q, swing.v, huge}, 1.0), Status::not_finite);
  LoadEstimate found;
  ASSERT_EQ(scales.estimate(found), Status::ok);
  EXPECT_EQ(found.mass, before.mass);
  EXPECT_EQ(found.com, before.com);
  weigh(4000, 8000);
  ASSERT_EQ(scales.estimate(found), Status::ok);
  EXPECT_NEAR(found.mass, load.mass, 1e-3);
}

/// A motion in two parts, and between them a jump that nobody measured: where the filters start anew,
/// the load is as exact as ever; where they do not, it is not.
TEST(LoadEstimator, WeighsOnAfterAMotionThatItDidNotSee) {
  const Model model = build_model(support::random_arm(7, 6));
  for (const bool anew : {true, false}) {
    LoadEstimator scales(model, exact());
    Swing swing(model, 7, load);
    for (int k = 0; k < 4000; ++k) {
      if (k == 2000 && anew) scales.restart_filters();
      swing.move((k < 2000 ? k : k + 900) * dt);
      ASSERT_EQ(scales.update({swing.q, swing.v, swing.tau}, dt), Status::ok);
    }
    LoadEstimate found;
    ASSERT_EQ(scales.estimate(found), Status::ok);
    if (anew)
      EXPECT_NEAR(found.mass, load.mass, 1e-3);
    else
      EXPECT_GT(std::abs(found.mass - load.mass), 1e-2);
  }
}

TEST(LoadEstimator, RefusesWhatItCannotUse) {
  const Model model = build_model(support::random_arm(2, 3));
  const auto refused = [&](const std::function<void(LoadEstimatorConfig&)>& change) {
    LoadEstimatorConfig config;
    change(config);
    try {
      const LoadEstimator scales(model, config);
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused([](auto&) {}), "");
  EXPECT_THAT(refused([](auto& c) { c.link = "nowhere"; }), HasSubstr("'nowhere'"));
  EXPECT_THAT(refused([&](auto& c) { c.link = model.links[0].name; }), HasSubstr("does not move"));
  EXPECT_THAT(refused([](auto& c) { c.noise = {1.0, 2.0}; }), HasSubstr("noise = list of 2"));
  EXPECT_THAT(refused([](auto& c) { c.noise = {0.0}; }), HasSubstr("noise.joint_1 = 0"));
  EXPECT_THAT(refused([](auto& c) { c.cutoff = NAN; }), HasSubstr("cutoff = nan"));
  EXPECT_THAT(refused([](auto& c) { c.correlation_time = 0.0; }), HasSubstr("correlation_time"));
  EXPECT_THAT(refused([](auto& c) { c.stiction_velocity = 0.0; }), HasSubstr("stiction_velocity"));
  EXPECT_THAT(refused([](auto& c) { c.memory = 0.0; }), HasSubstr("memory = 0"));
  EXPECT_THAT(refused([](auto& c) { c.typical_mass = -1.0; }), HasSubstr("typical_mass = -1"));
  EXPECT_THAT(refused([](auto& c) { c.typical_radius = 0.0; }), HasSubstr("typical_radius = 0"));
}

}  // namespace
