// SPDX-License-Identifier: Apache-2.0
/// The contract of scalar.hpp, kept with a scalar of four lanes: one call computes four
/// configurations, each as `double` does, and what is wrong with one is its own affair.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "support/lanes.hpp"
#include "support/quantities.hpp"

namespace {

using namespace dynamics_core;
using support::Lanes;
using support::LaneStatus;
using support::Robot;
using support::State;
using support::Surroundings;

constexpr int count = Lanes::count;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

template <class T>
using PerLane = std::array<T, count>;

template <class T, class Function>
[[nodiscard]] PerLane<T> for_each_lane(Function f) {
  PerLane<T> out;
  for (T& x : out) x = f();
  return out;
}

/// A matrix of each part, side by side in the lanes.
template <class Part, class Function>
[[nodiscard]] MatrixX<Lanes> joined(const PerLane<Part>& parts, Function of) {
  const auto& first = of(parts[0]);
  MatrixX<Lanes> out(first.rows(), first.cols());
  for (int k = 0; k < count; ++k)
    for (Eigen::Index j = 0; j < out.cols(); ++j)
      for (Eigen::Index i = 0; i < out.rows(); ++i)
        out(i, j)[k] = of(parts[static_cast<std::size_t>(k)])(i, j);
  return out;
}
template <class Function>
[[nodiscard]] Lanes joined_scalar(const PerLane<Surroundings<double>>& parts, Function of) {
  Lanes out;
  for (int k = 0; k < count; ++k) out[k] = of(parts[static_cast<std::size_t>(k)]);
  return out;
}

[[nodiscard]] State<Lanes> joined(const PerLane<State<double>>& states) {
  const auto part = [&](auto member) {
    return joined(
        states, [&](const auto& s) -> const auto& { return s.*member; });
  };
  return {part(&State<double>::q), part(&State<double>::v), part(&State<double>::u)};
}

[[nodiscard]] Surroundings<Lanes> joined(const PerLane<Surroundings<double>>& parts) {
  Surroundings<Lanes> out;
  const auto vector = [&](auto of) { return Vec3<Lanes>(joined(parts, of)); };
  const auto scalar = [&](auto of) { return joined_scalar(parts, of); };
  out.gravity = vector([](const auto& s) -> const auto& { return s.gravity; });
  out.carrier = parts[0].carrier;
  out.payload = {scalar([](const auto& s) { return s.payload.mass; }),
                 vector([](const auto& s) -> const auto& { return s.payload.com; }),
                 Symmetric3<Lanes>::from(Mat3<Lanes>(
                     joined(parts, [](const auto& s) { return s.payload.inertia.matrix(); })))};
  for (std::size_t i = 0; i < parts[0].forces.size(); ++i) {
    const Force<Lanes> F = {
        vector([i](const auto& s) -> const auto& { return s.forces[i].second.n; }),
        vector([i](const auto& s) -> const auto& { return s.forces[i].second.f; })};
    out.forces.emplace_back(parts[0].forces[i].first, F);
  }
  out.geared = parts[0].geared;
  out.rotor = scalar([](const auto& s) { return s.rotor; });
  return out;
}

[[nodiscard]] Eigen::MatrixXd lane(const MatrixX<Lanes>& x, int k) {
  Eigen::MatrixXd out(x.rows(), x.cols());
  for (Eigen::Index j = 0; j < x.cols(); ++j)
    for (Eigen::Index i = 0; i < x.rows(); ++i) out(i, j) = x(i, j)[k];
  return out;
}

/// Eigen adds up doubles two at a time and lanes one by one, so that sums come out in another order.
/// What follows from an inverse of M feels that by as much as M is ill-conditioned.
[[nodiscard]] double tolerance(const std::string& name) {
  for (const char* inverse : {"forward", "inverse mass", "factors", "solution", "task"})
    if (name.rfind(inverse, 0) == 0) return 1e-8;
  return 1e-13;
}

/// A robot in four states and surroundings, by lanes and one by one.
class Comparison {
 public:
  explicit Comparison(const Model& model) : lanes_(model) {
    for (int k = 0; k < count; ++k) single_.emplace_back(model);
  }

  [[nodiscard]] bool put_in(const PerLane<Surroundings<double>>& surroundings) {
    bool fits = joined(surroundings).put_on(lanes_.tree);
    for (int k = 0; k < count; ++k) fits = fits && surroundings[index(k)].put_on(single(k).tree);
    return fits;
  }

  /// Every quantity in every lane: the status is the same, and where it is ok the value.
  void expect_same(const PerLane<State<double>>& states) {
    const State<Lanes> state = joined(states);
    const support::Quantities<Lanes> actual(lanes_, state);
    for (int k = 0; k < count; ++k) {
      SCOPED_TRACE("lane " + std::to_string(k));
      const support::Quantities<double> expected(single(k), states[index(k)]);
      const Eigen::MatrixXd& J = expected[expected.last_jacobian()].value;
      const bool huge = states[index(k)].v.cwiseAbs().maxCoeff() > 1e100;
      for (const auto& quantity : expected.all()) {
        if (support::is_regular(quantity.name, J)) compare(actual, quantity, huge, k);
      }
    }
  }

  [[nodiscard]] Families<Lanes>& lanes() { return lanes_; }
  [[nodiscard]] Families<double>& single(int k) { return single_[index(k)]; }
  /// How many values have been compared.
  [[nodiscard]] long compared() const { return compared_; }

 private:
  [[nodiscard]] static std::size_t index(int k) { return static_cast<std::size_t>(k); }

  void compare(const support::Quantities<Lanes>& actual, const support::Quantity<double>& expected,
               bool huge, int k) {
    SCOPED_TRACE(expected.name);
    const auto& by_lanes = actual[expected.name];
    ASSERT_EQ(to_string(by_lanes.status[k]), std::string(to_string(expected.status)));
    if (failed(expected.status)) return;
    const Eigen::MatrixXd x = lane(by_lanes.value, k);
    ASSERT_EQ(x.rows(), expected.value.rows());
    ASSERT_EQ(x.cols(), expected.value.cols());
    if (x.size() == 0) return;
    ASSERT_EQ(x.allFinite(), expected.value.allFinite());
    if (!x.allFinite()) return;  // the queries of the kinematics do not judge an overflow
    if (huge) return;            // of what cancels, only round-off is left
    compared_ += x.size();
    const double scale = std::max(1.0, expected.value.cwiseAbs().maxCoeff());
    EXPECT_LE((x - expected.value).cwiseAbs().maxCoeff(), tolerance(expected.name) * scale);
  }

  Families<Lanes> lanes_;
  std::vector<Families<double>> single_;
  long compared_ = 0;
};

[[nodiscard]] PerLane<State<double>> four_states(Robot& robot) {
  return for_each_lane<State<double>>([&] { return support::random_state(robot); });
}
[[nodiscard]] PerLane<Surroundings<double>> four_surroundings(Robot& robot) {
  return for_each_lane<Surroundings<double>>([&] { return support::random_surroundings(robot); });
}

/// The same to the last bit, signs of zeros and NaNs included.
[[nodiscard]] bool identical(const Eigen::MatrixXd& x, const Eigen::MatrixXd& y) {
  return x.rows() == y.rows() && x.cols() == y.cols() &&
         std::memcmp(x.data(), y.data(), static_cast<std::size_t>(x.size()) * sizeof(double)) == 0;
}

class EveryKind : public ::testing::TestWithParam<support::Kind> {};
INSTANTIATE_TEST_SUITE_P(Lanes, EveryKind, ::testing::ValuesIn(support::kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST_P(EveryKind, FourConfigurationsAtOnceAreAsOneByOne) {
  long compared = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    Robot robot(GetParam(), seed);
    SCOPED_TRACE(robot.trace());
    Comparison comparison(robot.model);
    comparison.expect_same(four_states(robot));
    ASSERT_TRUE(comparison.put_in(four_surroundings(robot)));
    comparison.expect_same(four_states(robot));
    if (HasFailure()) return;
    compared += comparison.compared();
  }
  EXPECT_GT(compared, 100000);
}

/// A lane takes the same bits from its own arguments in whatever company.
TEST_P(EveryKind, ALaneDoesNotFeelItsNeighbours) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    Robot robot(GetParam(), seed);
    SCOPED_TRACE(robot.trace());
    Families<Lanes> families(robot.model);
    ASSERT_TRUE(joined(four_surroundings(robot)).put_on(families.tree));
    const PerLane<State<double>> states = four_states(robot);
    const State<Lanes> joined_states = joined(states);
    const support::Quantities<Lanes> before(families, joined_states);
    PerLane<State<double>> others = four_states(robot);
    others[2] = states[2];
    others[1].q.setZero();  // no quaternion is a rotation any more
    others[3].q[0] = nan;
    const State<Lanes> joined_others = joined(others);
    const support::Quantities<Lanes> after(families, joined_others);
    for (const auto& quantity : before.all()) {
      SCOPED_TRACE(quantity.name);
      ASSERT_EQ(after[quantity.name].status[2], quantity.status[2]);
      if (quantity.status[2] != Status::ok) continue;
      ASSERT_TRUE(identical(lane(after[quantity.name].value, 2), lane(quantity.value, 2)));
    }
  }
}

/// Whatever is wrong with a lane's arguments, its status is that of `double` and the others are
/// right; and the next call starts afresh.
TEST_P(EveryKind, AFaultIsItsLanesAlone) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    Robot robot(GetParam(), seed);
    SCOPED_TRACE(robot.trace());
    Comparison comparison(robot.model);
    ASSERT_TRUE(comparison.put_in(four_surroundings(robot)));
    const PerLane<State<double>> good = four_states(robot);
    const int dof = robot.random.integer(0, robot.model.nv - 1);
    const auto expect_same_after = [&](const char* what, auto spoil) {
      SCOPED_TRACE(what);
      PerLane<State<double>> states = good;
      spoil(states);
      comparison.expect_same(states);
      comparison.expect_same(good);
    };
    expect_same_after("NaN in q", [&](auto& s) { s[1].q[dof] = nan; });
    expect_same_after("an infinite v", [&](auto& s) { s[0].v[dof] = infinity; });
    expect_same_after("NaN in the acceleration or effort", [&](auto& s) { s[3].u[dof] = nan; });
    expect_same_after("an overflow", [&](auto& s) { s[2].v.fill(1e200); });
    expect_same_after("all at once", [&](auto& s) {
      s[0].u[dof] = nan;
      s[1].q[dof] = -infinity;
      s[2].v.fill(-1e250);
      s[3].q.setZero();
    });
    if (HasFailure()) return;
  }
}

TEST(Lanes, AZeroQuaternionIsOutOfRangeInItsLane) {
  support::Kind kind{"floating_base", {}, true};
  Robot robot(kind, 7);
  Comparison comparison(robot.model);
  PerLane<State<double>> states = four_states(robot);
  states[1].q.segment(3, 4).setZero();
  comparison.expect_same(states);
  VectorX<Lanes> a(robot.model.nv);
  const State<Lanes> all = joined(states);
  const LaneStatus status =
      comparison.lanes().articulated_body.forward_dynamics(all.q, all.v, all.u, a);
  EXPECT_EQ(status[0], Status::ok);
  EXPECT_EQ(status[1], Status::out_of_range);
  EXPECT_EQ(status[2], Status::ok);
  EXPECT_EQ(status[3], Status::ok);
  // Factors are void in that lane, too, until it is factorised again.
  const LaneStatus factorized = comparison.lanes().udut.factorize(all.q);
  EXPECT_EQ(factorized[1], Status::out_of_range);
  EXPECT_EQ(comparison.lanes().udut.solve(all.u, a)[1], Status::out_of_range);
  EXPECT_EQ(comparison.lanes().udut.solve(all.u, a)[3], Status::ok);
}

/// Two revolute joints about z, a metre apart; the links have no mass of their own.
[[nodiscard]] Model massless_arm() {
  RobotDescription robot;
  robot.name = "arm";
  robot.links = {{"base", {}}, {"upper", {}}, {"lower", {}}};
  for (int i = 0; i < 2; ++i) {
    JointDescription joint;
    joint.name = i == 0 ? "shoulder" : "elbow";
    joint.type = JointType::continuous;
    joint.parent = robot.links[static_cast<std::size_t>(i)].name;
    joint.child = robot.links[static_cast<std::size_t>(i) + 1].name;
    joint.axis = Eigen::Vector3d::UnitZ();
    if (i == 1) joint.origin.p = Eigen::Vector3d::UnitX();
    robot.joints.push_back(joint);
  }
  return build_model(robot);
}

[[nodiscard]] PerLane<State<double>> arm_states() {
  return {{{Eigen::Vector2d(0.3, 0.8), Eigen::Vector2d(1.0, -2.0), Eigen::Vector2d(3.0, 1.0)},
           {Eigen::Vector2d(-0.5, 1.2), Eigen::Vector2d(0.4, 0.7), Eigen::Vector2d(-1.0, 2.0)},
           {Eigen::Vector2d(2.0, -0.9), Eigen::Vector2d(-1.5, 0.2), Eigen::Vector2d(0.5, 0.1)},
           {Eigen::Vector2d(0.1, 2.2), Eigen::Vector2d(0.0, 0.0), Eigen::Vector2d(1.0, -4.0)}}};
}

TEST(Lanes, ASingularMassMatrixIsItsLanesAlone) {
  const Model model = massless_arm();
  Comparison comparison(model);
  for (const char* link : {"upper", "lower"}) {
    Payload<Lanes> payloads = {Lanes(0), Vec3<Lanes>::Zero(), Symmetric3<Lanes>::zero()};
    for (int k = 0; k < count; ++k) {
      // The second lane's arm carries nothing.
      const double mass = k == 1 ? 0.0 : 0.5 + k;
      const Payload<double> payload = {mass, {0.2, 0.1, 0.0}, {0.1, 0.0, 0.0, 0.1, 0.0, 0.1}};
      const Payload<double> own =
          mass > 0.0 ? payload
                     : Payload<double>{0.0, Eigen::Vector3d::Zero(), Symmetric3<double>::zero()};
      payloads.mass[k] = own.mass;
      for (int i = 0; i < 3; ++i) payloads.com[i][k] = own.com[i];
      payloads.inertia.xx[k] = payloads.inertia.yy[k] = payloads.inertia.zz[k] = own.inertia.xx;
      ASSERT_EQ(comparison.single(k).tree.set_payload(model.find_link(link), own), Status::ok);
    }
    ASSERT_EQ(comparison.lanes().tree.set_payload(model.find_link(link), payloads), Status::ok);
  }
  comparison.expect_same(arm_states());
  Families<Lanes>& f = comparison.lanes();
  const State<Lanes> s = joined(arm_states());
  VectorX<Lanes> a(2);
  MatrixX<Lanes> A(2, 2);
  Vec3<Lanes> p;
  ASSERT_FALSE(failed(f.kinematics.update(s.q, s.v)));
  for (const LaneStatus& status :
       {f.articulated_body.forward_dynamics(s.q, s.v, s.u, a),
        f.udut.forward_dynamics(s.q, s.v, s.u, a), f.cholesky.forward_dynamics(s.q, s.v, s.u, a),
        f.gibbs_appell.forward_dynamics(s.q, s.v, s.u, a), f.udut.inverse_mass_matrix(s.q, A),
        f.cholesky.inverse_mass_matrix(s.q, A), f.udut.factorize(s.q), f.udut.solve(s.u, a),
        f.kinematics.centre_of_mass(p)}) {
    EXPECT_EQ(status[0], Status::ok);
    EXPECT_EQ(status[1], Status::singular);
    EXPECT_EQ(status[2], Status::ok);
    EXPECT_EQ(status[3], Status::ok);
  }
}

TEST(Lanes, AStretchedArmIsSingularInItsLane) {
  const Model model = massless_arm();
  Families<Lanes> f(model);
  const Lanes one(1), zero(0);
  const Payload<Lanes> payload = {one, Vec3<Lanes>::Zero(), {one, zero, zero, one, zero, one}};
  for (const char* link : {"upper", "lower"})
    ASSERT_EQ(f.tree.set_payload(model.find_link(link), payload), Status::ok);
  PerLane<State<double>> states = arm_states();
  states[2].q.setZero();
  const State<Lanes> s = joined(states);
  const Task<Lanes> task = {
      model.find_link("lower"), {one, zero, zero}, {false, false, false, true, true, false}};
  const LaneStatus status = f.operational_space.update(s.q, s.v, task);
  EXPECT_EQ(status[0], Status::ok);
  EXPECT_EQ(status[1], Status::ok);
  EXPECT_EQ(status[2], Status::singular);
  EXPECT_EQ(status[3], Status::ok);
  for (const int k : {0, 1, 3}) {
    Families<double> d(model);
    const Payload<double> own = {1.0, Eigen::Vector3d::Zero(), {1.0, 0.0, 0.0, 1.0, 0.0, 1.0}};
    for (const char* link : {"upper", "lower"})
      ASSERT_EQ(d.tree.set_payload(model.find_link(link), own), Status::ok);
    const auto& state = states[static_cast<std::size_t>(k)];
    ASSERT_EQ(d.operational_space.update(state.q, state.v,
                                         {task.link, Eigen::Vector3d::UnitX(), task.rows}),
              Status::ok);
    EXPECT_LE(
        support::difference(lane(f.operational_space.inertia(), k), d.operational_space.inertia()),
        1e-12);
  }
}

/// What stays would spoil every later call: one bad lane, and nothing is taken.
TEST(Lanes, SettingsWithABadLaneAreRefusedAsAWhole) {
  support::Kind kind{"tree", {}, false};
  Robot robot(kind, 3);
  Comparison comparison(robot.model);
  ASSERT_TRUE(comparison.put_in(four_surroundings(robot)));
  Surroundings<Lanes> other = joined(four_surroundings(robot));
  Tree<Lanes>& tree = comparison.lanes().tree;

  other.gravity[1][2] = nan;
  const LaneStatus gravity = tree.set_gravity(other.gravity);
  EXPECT_EQ(gravity[1], Status::ok);
  EXPECT_EQ(gravity[2], Status::not_finite);
  other.payload.com[0][3] = infinity;
  EXPECT_EQ(tree.set_payload(other.carrier, other.payload), Status::not_finite);
  other.payload.com[0][3] = 0.0;
  other.payload.mass[0] = -1.0;
  EXPECT_EQ(tree.set_payload(other.carrier, other.payload), Status::out_of_range);
  other.rotor[1] = nan;
  EXPECT_EQ(tree.set_rotor_inertia(other.geared, other.rotor), Status::not_finite);
  other.forces[0].second.f[2][0] = -infinity;
  EXPECT_EQ(tree.add_external_force(other.forces[0].first, other.forces[0].second),
            Status::not_finite);
  comparison.expect_same(four_states(robot));
}

TEST(Lanes, AWrongSizeIsEveryLanes) {
  Families<Lanes> f(massless_arm());
  const VectorX<Lanes> two = VectorX<Lanes>::Zero(2), three = VectorX<Lanes>::Zero(3);
  VectorX<Lanes> tau(2);
  const LaneStatus status = f.newton_euler.inverse_dynamics(two, three, two, tau);
  for (int k = 0; k < count; ++k) EXPECT_EQ(status[k], Status::wrong_size);
}

}  // namespace
