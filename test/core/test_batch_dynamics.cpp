// SPDX-License-Identifier: Apache-2.0
/// Many configurations at once: each result is that of Dynamics<double>, to the last bit the same in
/// every company, and what is wrong with one configuration is its own affair.

#include "dynamics_core/batch_dynamics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/kinematics.hpp"
#include "support/kinds.hpp"
#include "support/quantities.hpp"

namespace {

using namespace dynamics_core;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using support::Robot;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Configurations in columns.
struct States {
  MatrixXd q, v, u;

  States(Robot& robot, int count)
      : q(robot.model.nq, count), v(robot.model.nv, count), u(robot.model.nv, count) {
    for (int k = 0; k < count; ++k) {
      const auto state = support::random_state(robot);
      q.col(k) = state.q;
      v.col(k) = state.v;
      u.col(k) = state.u;
    }
  }
  [[nodiscard]] int count() const { return static_cast<int>(q.cols()); }
  [[nodiscard]] States some(int first, int n) const {
    States out = *this;
    out.q = q.middleCols(first, n).eval();
    out.v = v.middleCols(first, n).eval();
    out.u = u.middleCols(first, n).eval();
    return out;
  }
};

/// One of the functions, and the same by Dynamics<double>. Matrices are by rows.
struct Function {
  std::string name;
  Index size;
  std::function<Status(BatchDynamics&, std::size_t, BatchIn q, BatchIn v, BatchIn u, BatchOut,
                       Status*)>
      batch;
  std::function<Status(Dynamics<double>&, const VectorXd& q, const VectorXd& v, const VectorXd& u,
                       VectorXd& out)>
      single;
};

[[nodiscard]] Status by_rows(const MatrixXd& A, Status status, VectorXd& out) {
  const MatrixXd columns = A.transpose();
  out = Eigen::Map<const VectorXd>(columns.data(), columns.size());
  return status;
}

[[nodiscard]] Status jacobian(Dynamics<double>& d, const VectorXd& q, int link,
                              const Vec3<double>& offset, JacobianAxes axes, VectorXd& out) {
  MatrixXd J = MatrixXd::Zero(6, d.nv());
  Pose<double> X;
  Status status = d.kinematics().update(q);
  status = merged(status, d.kinematics().jacobian(link, J, offset));
  status = merged(status, d.kinematics().pose(link, X));
  if (axes == JacobianAxes::link) {
    J.topRows(3) = X.R.transpose() * J.topRows(3).eval();
    J.bottomRows(3) = X.R.transpose() * J.bottomRows(3).eval();
  }
  return by_rows(J, status, out);
}

[[nodiscard]] std::vector<Function> functions(const Model& model) {
  const Index n = model.nv;
  const int link = static_cast<int>(model.links.size()) - 1;
  const Vec3<double> offset(0.1, -0.2, 0.3);
  const std::vector<int> held = {model.nv / 2};
  using B = BatchDynamics;
  using D = Dynamics<double>;
  using V = const VectorXd&;
  std::vector<Function> out;
  out.push_back({"inverse dynamics", n,
                 [](B& b, std::size_t k, BatchIn q, BatchIn v, BatchIn u, BatchOut x, Status* s) {
                   return b.inverse_dynamics(k, q, v, u, x, s);
                 },
                 [](D& d, V q, V v, V u, VectorXd& x) { return d.inverse_dynamics(q, v, u, x); }});
  out.push_back({"forward dynamics", n,
                 [](B& b, std::size_t k, BatchIn q, BatchIn v, BatchIn u, BatchOut x, Status* s) {
                   return b.forward_dynamics(k, q, v, u, x, s);
                 },
                 [](D& d, V q, V v, V u, VectorXd& x) { return d.forward_dynamics(q, v, u, x); }});
  out.push_back(
      {"forward dynamics with one held", n,
       [held](B& b, std::size_t k, BatchIn q, BatchIn v, BatchIn u, BatchOut x, Status* s) {
         return b.forward_dynamics(k, q, v, u, held, x, s);
       },
       [held](D& d, V q, V v, V u, VectorXd& x) { return d.forward_dynamics(q, v, u, held, x); }});
  out.push_back({"bias", n,
                 [](B& b, std::size_t k, BatchIn q, BatchIn v, BatchIn, BatchOut x, Status* s) {
                   return b.bias(k, q, v, x, s);
                 },
                 [](D& d, V q, V v, V, VectorXd& x) { return d.bias(q, v, x); }});
  out.push_back({"velocity effort", n,
                 [](B& b, std::size_t k, BatchIn q, BatchIn v, BatchIn, BatchOut x, Status* s) {
                   return b.velocity_effort(k, q, v, x, s);
                 },
                 [](D& d, V q, V v, V, VectorXd& x) { return d.velocity_effort(q, v, x); }});
  out.push_back({"gravity", n,
                 [](B& b, std::size_t k, BatchIn q, BatchIn, BatchIn, BatchOut x, Status* s) {
                   return b.gravity(k, q, x, s);
                 },
                 [](D& d, V q, V, V, VectorXd& x) { return d.gravity(q, x); }});
  out.push_back({"mass matrix", n * n,
                 [](B& b, std::size_t k, BatchIn q, BatchIn, BatchIn, BatchOut x, Status* s) {
                   return b.mass_matrix(k, q, x, s);
                 },
                 [n](D& d, V q, V, V, VectorXd& x) {
                   MatrixXd A(n, n);
                   const Status status = d.mass_matrix(q, A);
                   return by_rows(A, status, x);
                 }});
  out.push_back({"inverse mass matrix", n * n,
                 [](B& b, std::size_t k, BatchIn q, BatchIn, BatchIn, BatchOut x, Status* s) {
                   return b.inverse_mass_matrix(k, q, x, s);
                 },
                 [n](D& d, V q, V, V, VectorXd& x) {
                   MatrixXd A(n, n);
                   const Status status = d.inverse_mass_matrix(q, A);
                   return by_rows(A, status, x);
                 }});
  out.push_back({"coriolis", n * n,
                 [](B& b, std::size_t k, BatchIn q, BatchIn v, BatchIn, BatchOut x, Status* s) {
                   return b.coriolis(k, q, v, x, s);
                 },
                 [n](D& d, V q, V v, V, VectorXd& x) {
                   MatrixXd A(n, n);
                   const Status status = d.coriolis(q, v, A);
                   return by_rows(A, status, x);
                 }});
  out.push_back({"coriolis of Christoffel", n * n,
                 [](B& b, std::size_t k, BatchIn q, BatchIn v, BatchIn, BatchOut x, Status* s) {
                   return b.coriolis_christoffel(k, q, v, x, s);
                 },
                 [n](D& d, V q, V v, V, VectorXd& x) {
                   MatrixXd A(n, n);
                   const Status status = d.coriolis_christoffel(q, v, A);
                   return by_rows(A, status, x);
                 }});
  const auto derivatives = [n](auto compute, VectorXd& x) {
    MatrixXd by_q(n, n), by_v(n, n), by_u(n, n), all(3 * n, n);
    const Status status = compute(by_q, by_v, by_u);
    all << by_q, by_v, by_u;
    return by_rows(all, status, x);
  };
  out.push_back({"inverse dynamics' derivatives", 3 * n * n,
                 [](B& b, std::size_t k, BatchIn q, BatchIn v, BatchIn u, BatchOut x, Status* s) {
                   return b.inverse_dynamics_derivatives(k, q, v, u, x, s);
                 },
                 [=](D& d, V q, V v, V u, VectorXd& x) {
                   return derivatives(
                       [&](auto&... A) { return d.inverse_dynamics_derivatives(q, v, u, A...); },
                       x);
                 }});
  out.push_back({"forward dynamics' derivatives", 3 * n * n,
                 [](B& b, std::size_t k, BatchIn q, BatchIn v, BatchIn u, BatchOut x, Status* s) {
                   return b.forward_dynamics_derivatives(k, q, v, u, x, s);
                 },
                 [=](D& d, V q, V v, V u, VectorXd& x) {
                   return derivatives(
                       [&](auto&... A) { return d.forward_dynamics_derivatives(q, v, u, A...); },
                       x);
                 }});
  for (const JacobianAxes axes : {JacobianAxes::world, JacobianAxes::link})
    out.push_back(
        {axes == JacobianAxes::world ? "jacobian" : "jacobian in the link's axes", 6 * n,
         [=](B& b, std::size_t k, BatchIn q, BatchIn, BatchIn, BatchOut x, Status* s) {
           return b.jacobian(k, q, link, x, offset, axes, s);
         },
         [=](D& d, V q, V, V, VectorXd& x) { return jacobian(d, q, link, offset, axes, x); }});
  return out;
}

/// Configurations in columns, and what the call said.
struct Answer {
  MatrixXd x;
  std::vector<Status> statuses;
  Status status;
};

enum class Layout { by_configuration, by_coordinate };

/// Values of either layout, with a gap between the coordinates and a wall behind the last value.
class Values {
 public:
  Values(const MatrixXd& x, Layout layout) : Values(x.rows(), x.cols(), layout) {
    for (Index k = 0; k < x.cols(); ++k)
      for (Index e = 0; e < x.rows(); ++e) data_[at(e, k)] = x(e, k);
  }
  Values(Index size, Index count, Layout layout)
      : size_(static_cast<int>(size)),
        count_(count),
        layout_(layout),
        stride_(count + 3),
        // Not a value more than there is, so that a sanitizer sees what reads or writes beyond.
        data_(layout == Layout::by_coordinate
                  ? static_cast<std::size_t>(std::max<Index>(0, (size - 1) * stride_ + count))
                  : static_cast<std::size_t>(size * count),
              nan) {}

  [[nodiscard]] BatchOut out() {
    return layout_ == Layout::by_coordinate ? by_coordinate(data_.data(), size_, stride_)
                                            : by_configuration(data_.data(), size_);
  }
  [[nodiscard]] BatchIn in() const {
    return layout_ == Layout::by_coordinate ? by_coordinate(data_.data(), size_, stride_)
                                            : by_configuration(data_.data(), size_);
  }
  [[nodiscard]] MatrixXd columns() const {
    MatrixXd x(size_, count_);
    for (Index k = 0; k < count_; ++k)
      for (Index e = 0; e < size_; ++e) x(e, k) = data_[at(e, k)];
    return x;
  }

 private:
  [[nodiscard]] std::size_t at(Index e, Index k) const {
    return static_cast<std::size_t>(layout_ == Layout::by_coordinate ? e * stride_ + k
                                                                     : k * size_ + e);
  }

  int size_;
  Index count_;
  Layout layout_;
  Index stride_;
  std::vector<double> data_;
};

[[nodiscard]] Answer run(const Function& f, BatchDynamics& batch, const States& states,
                         Layout layout = Layout::by_coordinate) {
  const Values q(states.q, layout), v(states.v, layout), u(states.u, layout);
  Values out(f.size, states.count(), layout);
  Answer answer{{}, std::vector<Status>(static_cast<std::size_t>(states.count())), Status::ok};
  answer.status = f.batch(batch, static_cast<std::size_t>(states.count()), q.in(), v.in(), u.in(),
                          out.out(), answer.statuses.data());
  answer.x = out.columns();
  return answer;
}

/// The same to the last bit; one NaN is as good as another.
void expect_identical(const MatrixXd& x, const MatrixXd& y) {
  ASSERT_EQ(x.rows(), y.rows());
  ASSERT_EQ(x.cols(), y.cols());
  for (Index i = 0; i < x.size(); ++i) {
    const double a = x.data()[i];
    const double b = y.data()[i];
    ASSERT_TRUE(std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b)))
        << a << " and " << b << " at " << i;
  }
}

void set_surroundings(Robot& robot, BatchDynamics& batch, Dynamics<double>& single) {
  const auto set = support::random_surroundings(robot);
  ASSERT_TRUE(set.put_on(single.tree()));
  ASSERT_EQ(batch.set_gravity(set.gravity), Status::ok);
  ASSERT_EQ(batch.set_payload(set.carrier, set.payload), Status::ok);
  for (const auto& [link, force] : set.forces)
    ASSERT_EQ(batch.add_external_force(link, force), Status::ok);
  ASSERT_EQ(batch.set_rotor_inertia(set.geared, set.rotor), Status::ok);
}

/// Each configuration has the status of Dynamics<double>, and its value where that is ok.
void expect_as_single(const Function& f, const Answer& answer, Dynamics<double>& single,
                      const States& states, bool huge = false) {
  Status first = Status::ok;
  for (int k = 0; k < states.count(); ++k) {
    SCOPED_TRACE("configuration " + std::to_string(k));
    VectorXd expected = VectorXd::Zero(f.size);
    const Status status =
        f.single(single, states.q.col(k), states.v.col(k), states.u.col(k), expected);
    first = merged(first, status);
    ASSERT_EQ(answer.statuses[static_cast<std::size_t>(k)], status);
    if (failed(status)) {
      ASSERT_TRUE(answer.x.col(k).array().isNaN().all());
      continue;
    }
    ASSERT_TRUE(answer.x.col(k).allFinite());
    if (huge) continue;  // of what cancels, only round-off is left
    const bool inverse = f.name.rfind("forward", 0) == 0 || f.name.rfind("inverse m", 0) == 0;
    EXPECT_LE(support::difference(answer.x.col(k), expected), inverse ? 1e-8 : 1e-12);
  }
  EXPECT_EQ(answer.status, first);
}

class EveryKind : public ::testing::TestWithParam<support::Kind> {};
INSTANTIATE_TEST_SUITE_P(BatchDynamics, EveryKind, ::testing::ValuesIn(support::kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST_P(EveryKind, IsDynamicsForEachConfiguration) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    Robot robot(GetParam(), seed);
    SCOPED_TRACE(robot.trace());
    BatchDynamics batch(robot.model);
    Dynamics<double> single(robot.model);
    const States states(robot, 2 * batch.width() + 1);
    for (const bool surrounded : {false, true}) {
      if (surrounded) set_surroundings(robot, batch, single);
      for (const Function& f : functions(robot.model)) {
        SCOPED_TRACE(f.name);
        expect_as_single(f, run(f, batch, states), single, states);
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(EveryKind, EveryFamilyServes) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    Robot robot(GetParam(), seed);
    SCOPED_TRACE(robot.trace());
    BatchDynamics batch(robot.model);
    Dynamics<double> single(robot.model);
    const States states(robot, batch.width() + 1);
    for (const Method method : all_methods) {
      SCOPED_TRACE(to_string(method));
      batch.use(method);
      single.use(method);
      for (const Function& f : functions(robot.model)) {
        SCOPED_TRACE(f.name);
        expect_as_single(f, run(f, batch, states), single, states);
        if (HasFailure()) return;
      }
    }
  }
}

/// The same bits at every place, in batches of every size, in both layouts, by any number of threads.
TEST_P(EveryKind, AResultIsTheSameInEveryCompany) {
  Robot robot(GetParam(), 1);
  SCOPED_TRACE(robot.trace());
  BatchDynamics batch(robot.model);
  std::vector<BatchDynamics> threaded;
  for (const int threads : {1, 2, 5}) threaded.emplace_back(robot.model, threads);
  const int width = batch.width();
  const States states(robot, 700);  // several portions, and a rest
  for (const Function& f : functions(robot.model)) {
    SCOPED_TRACE(f.name);
    const Answer all = run(f, batch, states);
    ASSERT_EQ(all.status, Status::ok);
    for (int count = 0; count <= 2 * width + 1; ++count) {
      SCOPED_TRACE(count);
      for (const Layout layout : {Layout::by_coordinate, Layout::by_configuration}) {
        const Answer some = run(f, batch, states.some(3, count), layout);
        EXPECT_EQ(some.status, Status::ok);
        expect_identical(some.x, all.x.middleCols(3, count));
      }
    }
    for (BatchDynamics& shared : threaded) {
      SCOPED_TRACE(std::to_string(shared.threads()) + " threads");
      const Answer by_threads = run(f, shared, states);
      EXPECT_EQ(by_threads.status, Status::ok);
      expect_identical(by_threads.x, all.x);
      expect_identical(run(f, shared, states, Layout::by_configuration).x, all.x);
    }
    if (HasFailure()) return;
  }
}

/// What is wrong with a configuration is its status; the others keep their bits.
TEST_P(EveryKind, AFaultIsItsConfigurationsAlone) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    Robot robot(GetParam(), seed);
    SCOPED_TRACE(robot.trace());
    BatchDynamics batch(robot.model);
    BatchDynamics threaded(robot.model, 2);
    Dynamics<double> single(robot.model);
    const States good(robot, 600);
    const int dof = robot.random.integer(0, robot.model.nv - 1);
    States bad = good;
    bad.q(dof, 1) = nan;
    bad.v(dof, 2) = infinity;
    bad.u(dof, 5) = -infinity;
    bad.v.col(130).setConstant(1e200);  // overflows
    bad.q.col(131).setZero();           // no rotation, where there are floating joints
    for (int k = 256; k < 272; ++k) bad.q(0, k) = nan;  // whole blocks
    bad.q(dof, 599) = 1e9;  // far beyond what the polynomials of sine and cosine serve
    for (const Function& f : functions(robot.model)) {
      SCOPED_TRACE(f.name);
      const Answer before = run(f, batch, good);
      const Answer after = run(f, batch, bad);
      expect_as_single(f, run(f, batch, bad.some(128, 4)), single, bad.some(128, 4), true);
      expect_as_single(f, after, single, bad, true);
      for (int k = 0; k < good.count(); ++k)
        if (bad.q.col(k) == good.q.col(k) && bad.v.col(k) == good.v.col(k) &&
            bad.u.col(k) == good.u.col(k))
          expect_identical(after.x.col(k), before.x.col(k));
      const Answer shared = run(f, threaded, bad);
      EXPECT_EQ(shared.status, after.status);
      EXPECT_EQ(shared.statuses, after.statuses);
      expect_identical(shared.x, after.x);
      expect_identical(run(f, batch, good).x, before.x);  // and the next call starts afresh
      if (HasFailure()) return;
    }
  }
}

/// Of a fault nothing stays in what a payload changes.
TEST_P(EveryKind, APayloadAfterAFaultServes) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    Robot robot(GetParam(), seed);
    SCOPED_TRACE(robot.trace());
    BatchDynamics batch(robot.model);
    BatchDynamics fresh(robot.model);
    const States good(robot, batch.width());  // the fault stands in what is computed last
    States bad = good;
    bad.q.col(0).setConstant(nan);
    const auto set = support::random_surroundings(robot);
    for (const Function& f : functions(robot.model)) {
      SCOPED_TRACE(f.name);
      ASSERT_EQ(run(f, batch, bad).status, Status::not_finite);
      ASSERT_EQ(batch.set_payload(set.carrier, set.payload), Status::ok);
      ASSERT_EQ(fresh.set_payload(set.carrier, set.payload), Status::ok);
      const Answer answer = run(f, batch, good);
      const Answer expected = run(f, fresh, good);
      EXPECT_EQ(answer.statuses, expected.statuses);
      expect_identical(answer.x, expected.x);
      if (HasFailure()) return;
    }
  }
}

TEST(BatchDynamics, AMassThatIsMissingIsSingular) {
  Robot robot({"chain", {}}, 1);
  for (auto& link : robot.model.links) link.inertial = {};
  for (auto& body : robot.model.bodies) body.rotor = 0.0;
  BatchDynamics batch(robot.model);
  const States states(robot, batch.width() + 1);
  for (const Function& f : functions(robot.model)) {
    SCOPED_TRACE(f.name);
    const bool inverse = f.name.rfind("forward", 0) == 0 || f.name.rfind("inverse m", 0) == 0;
    const Answer answer = run(f, batch, states);
    EXPECT_EQ(answer.status, inverse ? Status::singular : Status::ok);
    for (const Status status : answer.statuses) EXPECT_EQ(status, answer.status);
  }
}

TEST(BatchDynamics, OneStateServesAllConfigurations) {
  Robot robot({"tree", {}}, 4);
  BatchDynamics batch(robot.model);
  States states(robot, 9);
  for (int k = 1; k < 9; ++k) {
    states.q.col(k) = states.q.col(0);
    states.u.col(k) = states.u.col(0);
  }
  const Answer expected = run(functions(robot.model)[0], batch, states);
  MatrixXd tau(robot.model.nv, 9);
  ASSERT_EQ(batch.inverse_dynamics(9, in_every_configuration(states.q.data(), robot.model.nq),
                                   by_configuration<const double>(states.v.data(), robot.model.nv),
                                   in_every_configuration(states.u.data(), robot.model.nv),
                                   by_configuration(tau.data(), robot.model.nv)),
            Status::ok);
  expect_identical(tau, expected.x);
}

TEST(BatchDynamics, WhatDoesNotFitIsRefused) {
  Robot robot({"chain", {}}, 2);
  BatchDynamics batch(robot.model);
  const int n = robot.model.nv;
  VectorXd x = VectorXd::Zero(n), out = VectorXd::Constant(n, 7.0);
  const BatchIn right = by_configuration<const double>(x.data(), n);
  const BatchIn wrong = by_configuration<const double>(x.data(), n + 1);
  const BatchOut tau = by_configuration(out.data(), n);
  const BatchOut too_small = by_configuration(out.data(), n - 1);
  EXPECT_EQ(batch.inverse_dynamics(1, wrong, right, right, tau), Status::wrong_size);
  EXPECT_EQ(batch.inverse_dynamics(1, right, wrong, right, tau), Status::wrong_size);
  EXPECT_EQ(batch.inverse_dynamics(1, right, right, wrong, tau), Status::wrong_size);
  EXPECT_EQ(batch.inverse_dynamics(1, right, right, right, too_small), Status::wrong_size);
  EXPECT_EQ(batch.mass_matrix(1, right, by_configuration(out.data(), n * n + 1)),
            Status::wrong_size);
  MatrixXd J(6, n);
  const BatchOut j = by_configuration(J.data(), 6 * n);
  EXPECT_EQ(batch.jacobian(1, right, -1, j), Status::out_of_range);
  EXPECT_EQ(batch.jacobian(1, right, static_cast<int>(robot.model.links.size()), j),
            Status::out_of_range);
  EXPECT_EQ(out, VectorXd::Constant(n, 7.0));
  EXPECT_EQ(batch.set_gravity({0.0, nan, 0.0}), Status::not_finite);
  EXPECT_EQ(batch.set_rotor_inertia(n, 1.0), Status::out_of_range);
  EXPECT_EQ(batch.set_payload(-1, {1.0, Vec3<double>::Zero(), Symmetric3<double>::zero()}),
            Status::out_of_range);
  EXPECT_EQ(batch.add_external_force(-1, Force<double>::zero()), Status::out_of_range);
  EXPECT_EQ(batch.inverse_dynamics(1, right, right, right, tau), Status::ok);
}

TEST(BatchDynamics, ForcesAndPayloadsComeOffAgain) {
  Robot robot({"tree", {}}, 5);
  BatchDynamics batch(robot.model);
  const States states(robot, 5);
  const Function f = functions(robot.model)[0];
  const Answer before = run(f, batch, states);
  const int link = static_cast<int>(robot.model.links.size()) - 1;
  ASSERT_EQ(batch.set_payload(link, {2.0, {0.1, 0.2, 0.3}, {1.0, 0.0, 0.0, 1.0, 0.0, 1.0}}),
            Status::ok);
  ASSERT_EQ(batch.add_external_force(link, {{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}), Status::ok);
  EXPECT_NE(run(f, batch, states).x, before.x);
  ASSERT_EQ(batch.set_payload(link, {0.0, Vec3<double>::Zero(), Symmetric3<double>::zero()}),
            Status::ok);
  batch.clear_external_forces();
  expect_identical(run(f, batch, states).x, before.x);
}

}  // namespace
