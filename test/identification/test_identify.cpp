// SPDX-License-Identifier: Apache-2.0
/// A robot that is known is found again from its log.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <random>

#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/friction.hpp"
#include "dynamics_core/identification/consistent.hpp"
#include "dynamics_core/identification/identify.hpp"
#include "dynamics_core/identification/signals.hpp"
#include "dynamics_core/identification/urdf_edit.hpp"
#include "dynamics_core/identification/weigh.hpp"
#include "dynamics_core/load.hpp"
#include "dynamics_core/regressor.hpp"
#include "dynamics_core/simulation/simulated_robot.hpp"
#include "support/command.hpp"

namespace {

using namespace dynamics_core;
using namespace dynamics_core::identification;
using testing::HasSubstr;

constexpr double pi = 3.14159265358979323846;

// --- signals -------------------------------------------------------------------------------------

TEST(Signals, TheFilterHalvesASineAtItsCutoffAndDoesNotShiftIt) {
  constexpr double rate = 200.0;
  constexpr double cutoff = 4.0;
  const LowPass low_pass(cutoff, rate);
  for (const double frequency : {0.5, 2.0, 4.0, 8.0}) {
    MatrixX<double> x(4000, 1);
    for (Eigen::Index i = 0; i < x.rows(); ++i)
      x(i, 0) = std::sin(2.0 * pi * frequency * static_cast<double>(i) / rate);
    MatrixX<double> y = x;
    low_pass.apply(y);
    // |H|² of Butterworth's filter after the bilinear transform
    const double r = std::tan(pi * frequency / rate) / std::tan(pi * cutoff / rate);
    const MatrixX<double> wanted = x / (1.0 + std::pow(r, 4));
    EXPECT_LT((y - wanted).middleRows(1000, 2000).cwiseAbs().maxCoeff(), 1e-6) << frequency;
  }
}

TEST(Signals, InterpolationGoesThroughThePointsAndFollowsAParabola) {
  std::vector<double> known, wanted;
  for (int i = 0; i < 20; ++i) known.push_back(0.1 * i);
  MatrixX<double> x(20, 1);
  for (int i = 0; i < 20; ++i)
    x(i, 0) = 1.0 - known[static_cast<std::size_t>(i)] +
              2.0 * std::pow(known[static_cast<std::size_t>(i)], 2);
  for (double t = 0.1; t < 1.8; t += 0.013) wanted.push_back(t);
  const MatrixX<double> y = interpolated(known, x, wanted);
  for (std::size_t k = 0; k < wanted.size(); ++k)
    EXPECT_NEAR(y(static_cast<Eigen::Index>(k), 0), 1.0 - wanted[k] + 2.0 * wanted[k] * wanted[k],
                1e-12);
}

TEST(Signals, AccelerationsAreRightUpToTheEndsOfALogThatEndsInMotion) {
  constexpr double rate = 200.0;
  constexpr double w = 2.0 * pi * 0.5;
  Stretch raw;
  raw.q.resize(1000, 1);
  for (Eigen::Index i = 0; i < raw.q.rows(); ++i)
    raw.q(i, 0) = std::cos(w * static_cast<double>(i) / rate);
  raw.tau = raw.q;
  const Stretch s = differentiated(raw, 1.0 / rate, 15.0, 1);
  ASSERT_EQ(s.samples(), raw.samples());
  EXPECT_LT((s.q - raw.q).cwiseAbs().maxCoeff(), 0.01);
  // A point-symmetric continuation has zero there: all of it wrong.
  EXPECT_LT((s.a + w * w * raw.q).cwiseAbs().maxCoeff(), 0.3 * w * w);
}

// --- consistent bodies ---------------------------------------------------------------------------

TEST(Consistent, ABodyStaysOneWhateverTheDataSay) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  BodyParameters prior;
  prior << 2.0, 0.1, -0.2, 0.3, 0.2, 0.01, -0.02, 0.25, 0.03, 0.15;
  for (int round = 0; round < 20; ++round) {
    ConsistentProblem problem;
    problem.H = MatrixX<double>::Identity(10, 10);
    problem.g = VectorX<double>(10);
    for (double& g : problem.g) g = normal(random);  // rarely a body
    problem.bodies = {BodyPrior(prior)};
    problem.weight = 1e-3;
    const ConsistentSolution solution = solve(problem);
    const Eigen::Matrix4d P = pseudo_inertia(solution.x.head<10>());
    EXPECT_GT(Eigen::SelfAdjointEigenSolver<Eigen::Matrix4d>(P).eigenvalues()[0], 0.0);
    const auto cost = [&](const VectorX<double>& x) -> double {
      return 0.5 * x.dot(problem.H * x) - problem.g.dot(x);
    };
    EXPECT_LT(cost(solution.x), cost(VectorX<double>(prior)));
  }
}

// --- a robot that is known -----------------------------------------------------------------------

const std::string panda = RD_SOURCE_DIR "/config/robots/panda.urdf";

/// What a robot with such drives would log along sums of sines, after sensors with noise and steps.
struct Rig {
  Model truth;
  Model believed;
  std::vector<JointFriction<double>> friction;
  std::vector<double> rotors;
  unsigned seed = 1;

  explicit Rig(double mass_error) : truth(load_urdf(panda)), believed(truth) {
    std::mt19937 random(3);
    std::vector<double> factors;
    for (std::size_t i = 0; i < truth.links.size(); ++i)
      factors.push_back(1.0 + mass_error * (random() % 2 == 0 ? 1.0 : -1.0));
    believed = simulation::rescaled(truth, factors, {});
    for (int j = 0; j < truth.nv; ++j) {
      JointFriction<double> f;
      f.viscous = 0.5 + 0.1 * j;
      f.coulomb = 0.8 - 0.1 * j;
      f.transition = 0.03;
      friction.push_back(f);
      rotors.push_back(j < 4 ? 0.6 : 0.2);
    }
  }

  [[nodiscard]] Log log(double seconds, unsigned phases, const Payload<double>* load = nullptr,
                        double delay = 0.0, double sign = 1.0) const {
    constexpr double rate = 200.0;
    const auto n = static_cast<Eigen::Index>(seconds * rate);
    std::mt19937 random(phases);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform(0.0, 2.0 * pi);
    constexpr int harmonics = 5;
    Eigen::MatrixXd amplitude(truth.nv, harmonics), phase(truth.nv, harmonics);
    for (double& x : phase.reshaped()) x = uniform(random);
    for (int k = 0; k < harmonics; ++k)
      for (int j = 0; j < truth.nv; ++j)
        amplitude(j, k) = 0.25 * (0.6 + 0.4 * std::cos(phase(j, k)));
    Dynamics<double> robot(truth);
    if (load != nullptr) {
      EXPECT_EQ(robot.set_payload(truth.find_link("panda_link7"), *load), Status::ok);
    }
    for (int j = 0; j < truth.nv; ++j)
      EXPECT_EQ(robot.set_rotor_inertia(j, rotors[static_cast<std::size_t>(j)]), Status::ok);
    Log log;
    log.source = "rig";
    log.q.resize(n, truth.nv);
    log.tau.resize(n, truth.nv);
    for (const JointInfo& joint : truth.joints) log.joints.push_back(joint.name);
    log.current.assign(log.joints.size(), false);
    Eigen::VectorXd q(truth.nv), v(truth.nv), a(truth.nv), tau(truth.nv);
    const auto move = [&](double t) {
      for (int j = 0; j < truth.nv; ++j) {
        const JointInfo& joint = truth.joints[static_cast<std::size_t>(j)];
        q[j] = 0.5 * (joint.limits.lower + joint.limits.upper);
        v[j] = a[j] = 0.0;
        for (int k = 0; k < harmonics; ++k) {
          const double w = 2.0 * pi * 0.1 * (k + 1);
          q[j] += amplitude(j, k) * std::sin(w * t + phase(j, k));
          v[j] += amplitude(j, k) * w * std::cos(w * t + phase(j, k));
          a[j] -= amplitude(j, k) * w * w * std::sin(w * t + phase(j, k));
        }
      }
    };
    constexpr double step = 1e-5;  // of the encoders
    for (Eigen::Index i = 0; i < n; ++i) {
      const double t = static_cast<double>(i) / rate;
      log.time.push_back(t);
      move(t);
      for (int j = 0; j < truth.nv; ++j)
        log.q(i, j) = step * std::round((q[j] + 1e-5 * normal(random)) / step);
      move(t - delay);
      EXPECT_EQ(robot.inverse_dynamics(q, v, a, tau), Status::ok);
      for (int j = 0; j < truth.nv; ++j)
        log.tau(i, j) = sign * (tau[j] + friction[static_cast<std::size_t>(j)].effort(v[j]) +
                                0.05 * normal(random));
    }
    return log;
  }
};

/// Error over effort of the drives and bodies found, on a motion of the rig that they have not seen.
double torque_error(const Rig& rig, const Identification& found, const Log& other) {
  const Recording recording = cleaned(other, rig.believed);
  // The bodies in the user's own file.
  const std::string urdf = support::read_file(panda);
  Model believed = load_urdf_string(edited_urdf(urdf, link_inertials(rig.believed, found.pi), {}));
  const Score score_of = score(recording, found.drives,
                               predicted(recording, believed, found.drives), found.drives.cutoff);
  return score_of.overall;
}

TEST(Identify, FindsARobotAgainWhoseMassesWereFifteenPerCentWrong) {
  const Rig rig(0.15);
  const Log log = rig.log(40.0, 11);
  const Identification found = identify(rig.believed, {cleaned(log, rig.believed)}, {}, {});
  EXPECT_EQ(found.chosen, Candidate::full);
  EXPECT_GT(found.scores[0].held_out, 5.0 * found.scores[2].held_out);

  // Base parameters: all of them together, weighed by what each does to the efforts of a motion.
  const BaseParameters base = base_parameters(rig.truth);
  Dynamics<double> truth(rig.truth);
  VectorX<double> pi_true(found.pi.size());
  ASSERT_EQ(truth.regressor().parameters(pi_true), Status::ok);
  const VectorX<double> wanted = base.reduce(pi_true);
  const VectorX<double> got = base.reduce(found.pi);
  const VectorX<double> believed = base.reduce(found.pi_nominal);
  // The first joint's rotor and inertia about its axis are one.
  double worst = 0.0;
  for (Eigen::Index k = 0; k < wanted.size(); ++k)
    if (std::abs(wanted[k]) > 0.5) worst = std::max(worst, std::abs(got[k] / wanted[k] - 1.0));
  std::printf("base parameters: %.2f %% off (before: %.2f %%); the large ones at most %.2f %%\n",
              100.0 * (got - wanted).norm() / wanted.norm(),
              100.0 * (believed - wanted).norm() / wanted.norm(), 100.0 * worst);
  EXPECT_LT((got - wanted).norm(), 0.01 * wanted.norm());
  EXPECT_GT((believed - wanted).norm(), 0.03 * wanted.norm());

  const double error = torque_error(rig, found, rig.log(20.0, 12));
  std::printf("efforts of another motion: %.2f %%\n", 100.0 * error);
  EXPECT_LT(error, 0.01);
}

TEST(Identify, RestBeforeTheMotionTakesNoShareOfTheParts) {
  const Rig rig(0.15);
  const Log motion = rig.log(20.0, 5);
  const Eigen::Index n = motion.samples();
  Log log = motion;
  log.time.clear();
  log.q.resize(2 * n, motion.q.cols());
  log.tau.resize(2 * n, motion.q.cols());
  log.q << motion.q.row(0).replicate(n, 1), motion.q;
  log.tau << motion.tau.row(0).replicate(n, 1), motion.tau;
  const Recording recording = cleaned(log, rig.believed, 200.0);
  Basis basis;
  basis.transitions = {0.03};
  constexpr int parts = 8;
  Equations equations(rig.believed, basis, {5.0, parts});
  const auto joints = static_cast<std::size_t>(rig.believed.nv);
  equations.add(recording, {std::vector<double>(joints, 1.0)}, rest_speed({recording}), 0, parts);
  for (int j = 0; j < equations.joints(); ++j)
    for (int part = 1; part < parts; ++part)
      EXPECT_GT(equations.samples(j, part), 0.7 * equations.samples(j, 0)) << j << ' ' << part;
}

TEST(Identify, FindsTheSignAndTheDelayOfTheEfforts) {
  const Rig rig(0.1);
  const Log log = rig.log(20.0, 5, nullptr, 0.016, -1.0);
  const Identification found = identify(rig.believed, {cleaned(log, rig.believed)}, {}, {});
  for (const Drive& drive : found.drives.joints) {
    EXPECT_EQ(drive.factor, -1.0);
    EXPECT_NEAR(drive.delay, 0.016, 0.0041);
  }
}

TEST(Identify, KnowsEffortsWithoutGravity) {
  const Rig rig(0.1);
  Log log = rig.log(20.0, 6);
  Dynamics<double> robot(rig.truth);
  Eigen::VectorXd g(rig.truth.nv);
  for (Eigen::Index i = 0; i < log.samples(); ++i) {
    ASSERT_EQ(robot.gravity(log.q.row(i).transpose(), g), Status::ok);
    log.tau.row(i) -= g.transpose();
  }
  EXPECT_FALSE(identify(rig.believed, {cleaned(log, rig.believed)}, {}, {}).drives.gravity);
}

TEST(Weigh, FindsALoadAndFindsNoneWhereThereIsNone) {
  const Rig rig(0.0);
  Drives drives = nominal_drives(rig.truth);
  for (int j = 0; j < rig.truth.nv; ++j) {
    drives.joints[static_cast<std::size_t>(j)].friction = rig.friction[static_cast<std::size_t>(j)];
    drives.joints[static_cast<std::size_t>(j)].rotor = rig.rotors[static_cast<std::size_t>(j)];
  }
  const int link = rig.truth.find_link("panda_link7");
  const Payload<double> load{1.3, {0.02, -0.01, 0.15}, {0.004, 0.0, 0.0, 0.005, 0.0, 0.003}};
  const WeighedLoad found =
      weigh(rig.truth, drives, true, {cleaned(rig.log(20.0, 8, &load), rig.truth)}, link);
  EXPECT_NEAR(found.payload.mass, load.mass, 0.013);
  EXPECT_LT((found.payload.com - load.com).norm(), 0.003);
  const WeighedLoad none =
      weigh(rig.truth, drives, true, {cleaned(rig.log(20.0, 9), rig.truth)}, link);
  EXPECT_LT(std::abs(none.payload.mass), 0.02);
}

// --- the user's own file -------------------------------------------------------------------------

TEST(EditedUrdf, ChangesInertialsAndDynamicsAndNothingElse) {
  const std::string urdf =
      "<?xml version=\"1.0\"?>\n<!-- mine: <link name=\"b\"/> -->\n<robot name=\"r\">\n"
      "  <link name=\"a\"/>\n  <link name='b'><!-- a <b> -->\n    <inertial><mass value=\"1\"/>"
      "<inertia ixx=\"1\" ixy=\"0\" ixz=\"0\" iyy=\"1\" iyz=\"0\" izz=\"1\"/></inertial>\n  "
      "</link>\n"
      "  <joint name=\"j\" type=\"continuous\"><parent link=\"a\"/><child link=\"b\"/>"
      "<dynamics  friction='3'/></joint>\n"
      "  <ros2_control name=\"x\" type=\"system\"><joint name=\"j\"><dynamics "
      "damping=\"9\"/></joint>"
      "</ros2_control>\n</robot>\n";
  const Inertial inertial{2.5, {0.1, 0.2, 0.3}, Eigen::Matrix3d::Identity() * 0.5};
  const std::string out = edited_urdf(urdf, {{"b", inertial}}, {{"j", {0.25, 0.75}}});
  const Model model = load_urdf_string(out);
  EXPECT_EQ(model.joints[0].damping, 0.25);
  EXPECT_EQ(model.joints[0].friction, 0.75);
  EXPECT_EQ(model.links[1].inertial.mass, 2.5);
  EXPECT_EQ(model.links[1].inertial.com[2], 0.3);
  const auto masked = [](std::string text) {  // both kinds of elements taken out
    for (const auto& [from, to] :
         {std::pair("<inertial>", "</inertial>"), std::pair("<dynamics ", "/>")})
      for (std::size_t at = text.find(from); at != text.npos && text.find("ros2") > at;
           at = text.find(from))
        text.erase(at, text.find(to, at) + std::string(to).size() - at);
    return text;
  };
  EXPECT_EQ(masked(out), masked(urdf));
  EXPECT_THAT(out, HasSubstr("<dynamics damping=\"9\"/>"));
}

TEST(EditedUrdf, HasTheBodiesThatWereFound) {
  const Model model = load_urdf(panda);
  Dynamics<double> robot(model);
  VectorX<double> parameters(robot.regressor().columns());
  ASSERT_EQ(robot.regressor().parameters(parameters), Status::ok);
  parameters *= 1.25;  // every body heavier
  const Model heavier = load_urdf_string(
      edited_urdf(support::read_file(panda), link_inertials(model, parameters), {}));
  Dynamics<double> other(heavier);
  VectorX<double> got(parameters.size());
  ASSERT_EQ(other.regressor().parameters(got), Status::ok);
  EXPECT_LT((got - parameters).cwiseAbs().maxCoeff(), 1e-9);
}

}  // namespace
