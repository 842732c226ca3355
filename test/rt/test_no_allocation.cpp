// SPDX-License-Identifier: Apache-2.0
/// The real-time contract of every algorithm: after construction nothing touches the heap, with
/// good arguments and with bad ones. A canary shows that the guard would see it.

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "dynamics_core/batch_dynamics.hpp"
#include "dynamics_core/families.hpp"
#include "dynamics_core/loops.hpp"
#include "dynamics_core/regressor.hpp"
#include "dynamics_core/simulation/integrators.hpp"
#include "dynamics_core/trajectory.hpp"
#include "support/allocation_guard.hpp"
#include "support/random_model.hpp"

using namespace dynamics_core;

namespace {

/// A robot with all outputs taken before the guard looks. Eight joints of every kind, or mimic
/// joints, or a floating base.
template <class S>
struct Bench {
  explicit Bench(const Model& m, support::Random& random)
      : model(m),
        dynamics(m),
        q(random.configuration(m).cast<S>()),
        v(random.vector_x(m.nv, 1.0).cast<S>()),
        a(random.vector_x(m.nv, 1.0).cast<S>()),
        out(m.nv),
        q_out(m.nq),
        M(m.nv, m.nv),
        by_q(m.nv, m.nv),
        by_v(m.nv, m.nv),
        J(6, m.nv),
        Jc(3, m.nv),
        Y(m.nv, dynamics.regressor().columns()),
        pi(dynamics.regressor().columns()),
        step(dynamics),
        bad(m.nq) {
    bad.setConstant(std::numeric_limits<S>::quiet_NaN());
  }
  const Model& model;
  Dynamics<S> dynamics;
  VectorX<S> q, v, a, out, q_out;
  MatrixX<S> M, by_q, by_v, J, Jc, Y;
  VectorX<S> pi;
  simulation::FixedStep<S> step;
  VectorX<S> bad;
};

template <class S>
struct Case {
  std::string name;
  std::function<Status(Bench<S>&, const VectorX<S>& q)> run;
};

template <class S>
std::vector<Case<S>> cases() {
  std::vector<Case<S>> list;
  for (const Method method : all_methods) {
    const std::string family = to_string(method);
    const auto pick = [method](Bench<S>& b) {
      b.dynamics.use(method);
      return &b.dynamics;
    };
    list.push_back({family + " inverse_dynamics", [pick](Bench<S>& b, const VectorX<S>& q) {
                      return pick(b)->inverse_dynamics(q, b.v, b.a, b.out);
                    }});
    list.push_back({family + " bias", [pick](Bench<S>& b, const VectorX<S>& q) {
                      return pick(b)->bias(q, b.v, b.out);
                    }});
    list.push_back({family + " gravity", [pick](Bench<S>& b, const VectorX<S>& q) {
                      return pick(b)->gravity(q, b.out);
                    }});
    list.push_back({family + " mass_matrix", [pick](Bench<S>& b, const VectorX<S>& q) {
                      return pick(b)->mass_matrix(q, b.M);
                    }});
    list.push_back({family + " coriolis", [pick](Bench<S>& b, const VectorX<S>& q) {
                      return pick(b)->coriolis(q, b.v, b.M);
                    }});
    list.push_back({family + " forward_dynamics", [pick](Bench<S>& b, const VectorX<S>& q) {
                      return pick(b)->forward_dynamics(q, b.v, b.a, b.out);
                    }});
    list.push_back({family + " inverse_mass_matrix", [pick](Bench<S>& b, const VectorX<S>& q) {
                      return pick(b)->inverse_mass_matrix(q, b.M);
                    }});
  }
  list.push_back({"coriolis_christoffel", [](Bench<S>& b, const VectorX<S>& q) {
                    return b.dynamics.families().denoc.coriolis_christoffel(q, b.v, b.M);
                  }});
  list.push_back({"inverse_dynamics_derivatives", [](Bench<S>& b, const VectorX<S>& q) {
                    return b.dynamics.inverse_dynamics_derivatives(q, b.v, b.a, b.by_q, b.by_v,
                                                                   b.M);
                  }});
  list.push_back({"forward_dynamics_derivatives", [](Bench<S>& b, const VectorX<S>& q) {
                    return b.dynamics.forward_dynamics_derivatives(q, b.v, b.a, b.by_q, b.by_v,
                                                                   b.M);
                  }});
  list.push_back({"udut factors and solve", [](Bench<S>& b, const VectorX<S>& q) {
                    if (const Status s = b.dynamics.families().udut.factorize(q); s != Status::ok)
                      return s;
                    if (const Status s = b.dynamics.families().udut.factors(b.M, b.out);
                        s != Status::ok)
                      return s;
                    return b.dynamics.families().udut.solve(b.a, b.out);
                  }});
  list.push_back(
      {"kinematics", [](Bench<S>& b, const VectorX<S>& q) {
         const int link = static_cast<int>(b.model.links.size()) - 1;
         Pose<S> X;
         Vec3<S> u;
         Motion<S> V;
         if (const Status s = b.dynamics.kinematics().update(q, b.v); s != Status::ok) return s;
         if (const Status s = b.dynamics.kinematics().pose(link, X); s != Status::ok) return s;
         if (const Status s = b.dynamics.kinematics().velocity(link, V); s != Status::ok) return s;
         if (const Status s = b.dynamics.kinematics().jacobian(link, b.J); s != Status::ok)
           return s;
         if (const Status s = b.dynamics.kinematics().jacobian_rate(link, b.J); s != Status::ok)
           return s;
         if (const Status s = b.dynamics.kinematics().centre_of_mass(u); s != Status::ok) return s;
         if (const Status s = b.dynamics.kinematics().centre_of_mass_velocity(u); s != Status::ok)
           return s;
         if (const Status s = b.dynamics.kinematics().centre_of_mass_jacobian(b.Jc);
             s != Status::ok)
           return s;
         (void)b.dynamics.kinematics().energy();
         if (const Status s = b.dynamics.kinematics().configuration_rate(q, b.v, b.q_out);
             s != Status::ok)
           return s;
         return b.dynamics.kinematics().integrate(q, b.v, S(0.01), b.q_out);
       }});
  list.push_back({"operational_space", [](Bench<S>& b, const VectorX<S>& q) {
                    const int link = static_cast<int>(b.model.links.size()) - 1;
                    const Task<S> task{link, Vec3<S>(S(0.1), S(0), S(0))};
                    if (const Status s = b.dynamics.operational_space().update(q, b.v, task);
                        s != Status::ok)
                      return s;
                    return b.dynamics.operational_space().null_space_projector(b.M);
                  }});
  list.push_back({"regressor", [](Bench<S>& b, const VectorX<S>& q) {
                    if (const Status s = b.dynamics.regressor().parameters(b.pi); s != Status::ok)
                      return s;
                    return b.dynamics.regressor().matrix(q, b.v, b.a, b.Y);
                  }});
  list.push_back({"fixed steps", [](Bench<S>& b, const VectorX<S>& q) {
                    const auto move = [&b](const S&, VectorIn<S> at, VectorIn<S> v,
                                           VectorOut<S> a) noexcept {
                      return b.dynamics.forward_dynamics(at, v, b.a, a);
                    };
                    if (q.size() != b.dynamics.nq()) return Status::wrong_size;
                    b.q_out = q;
                    b.out = b.v;
                    const Status s = b.step.runge_kutta4(move, S(0), S(0.001), b.q_out, b.out);
                    if (s != Status::ok) return s;
                    return b.step.semi_implicit_euler(move, S(0), S(0.001), b.q_out, b.out);
                  }});
  list.push_back(
      {"payload, gravity and external forces", [](Bench<S>& b, const VectorX<S>& q) {
         const int link = static_cast<int>(b.model.links.size()) - 1;
         b.dynamics.clear_external_forces();
         if (const Status s = b.dynamics.set_gravity(Vec3<S>(q[0], S(0), S(-9.81)));
             s != Status::ok)
           return s;
         const Payload<S> load = {S(1), Vec3<S>(q[0], S(0), S(0)), Symmetric3<S>::zero()};
         if (const Status s = b.dynamics.set_payload(link, load); s != Status::ok) return s;
         return b.dynamics.add_external_force(link, {Vec3<S>::Ones(), Vec3<S>::Ones()});
       }});
  return list;
}

Model draw(unsigned seed, const char* kind, support::Random& random) {
  support::RandomOptions options;
  options.joints = 8;
  options.branching = 0.3;
  options.prismatic = 0.2;
  options.rotors = true;
  const std::string name = kind;
  if (name == "mimic") options.mimic = 0.5;
  if (name == "everything") options.planar = options.floating = 0.2;
  ModelOptions build;
  build.floating_base = name == "floating base" || seed % 5 == 0;
  return build_model(random.robot(options), build);
}

template <class S>
void check_all() {
  if (!support::allocations_are_counted) GTEST_SKIP() << "a sanitizer has the heap";
  int good = 0;
  int refused = 0;
  for (const char* kind : {"tree", "mimic", "everything", "floating base"}) {
    for (unsigned seed = 1; seed <= 5; ++seed) {
      support::Random random(seed);
      const Model model = draw(seed, kind, random);
      Bench<S> bench(model, random);
      const VectorX<S> too_long = VectorX<S>::Zero(model.nq + 1);
      for (const Case<S>& one : cases<S>()) {
        SCOPED_TRACE(one.name + ", " + kind + ", seed " + std::to_string(seed));
        const support::AllocationGuard guard;
        const Status with_good = one.run(bench, bench.q);
        const Status with_nan = one.run(bench, bench.bad);
        // The payload and the external force read no more than q[0].
        const bool checks_size = one.name.rfind("payload", 0) != 0;
        const Status with_wrong_size = checks_size ? one.run(bench, too_long) : Status::wrong_size;
        const long count = guard.count();
        EXPECT_EQ(count, 0);
        (with_good == Status::ok ? good : refused) += 1;
        EXPECT_EQ(with_nan, Status::not_finite);
        EXPECT_EQ(with_wrong_size, Status::wrong_size);
      }
    }
  }
  // Most succeed: what is refused are O(n) inverses of mimic robots and singular tasks.
  EXPECT_GT(good, 5 * refused);
}

TEST(NoAllocation, EveryAlgorithmInDouble) { check_all<double>(); }
TEST(NoAllocation, EveryAlgorithmInFloat) { check_all<float>(); }

TEST(NoAllocation, SingularMassMatrix) {
  if (!support::allocations_are_counted) GTEST_SKIP() << "a sanitizer has the heap";
  support::Random random(1);
  support::RandomOptions options;
  options.joints = 4;
  RobotDescription robot = random.robot(options);
  robot.links.back().inertial.reset();
  const Model model = build_model(robot);
  Bench<double> bench(model, random);
  for (const Method method : all_methods) {
    bench.dynamics.use(method);
    const support::AllocationGuard guard;
    const Status status = bench.dynamics.forward_dynamics(bench.q, bench.v, bench.a, bench.out);
    const Status inverse = bench.dynamics.inverse_mass_matrix(bench.q, bench.M);
    EXPECT_EQ(guard.count(), 0) << to_string(method);
    EXPECT_EQ(status, Status::singular) << to_string(method);
    EXPECT_EQ(inverse, Status::singular) << to_string(method);
  }
  const support::AllocationGuard guard;
  const Status derivatives = bench.dynamics.forward_dynamics_derivatives(
      bench.q, bench.v, bench.a, bench.by_q, bench.by_v, bench.M);
  EXPECT_EQ(guard.count(), 0);
  EXPECT_EQ(derivatives, Status::singular);
}

TEST(NoAllocation, ClosedLoops) {
  if (!support::allocations_are_counted) GTEST_SKIP() << "a sanitizer has the heap";
  support::Random random(3);
  support::RandomOptions options;
  options.joints = 7;
  const Model model = build_model(random.robot(options));
  LoopJoint ball;
  ball.name = "ball";
  ball.type = LoopType::spherical;
  ball.link_a = 0;
  ball.link_b = static_cast<int>(model.links.size()) - 1;
  Bench<double> bench(model, random);
  Loops<double> set(bench.dynamics.tree(), model, {ball});
  Eigen::VectorXd lambda(set.rows());
  const support::AllocationGuard guard;
  const Status one = set.bordered(bench.q, bench.v, bench.a, bench.out, lambda);
  const Status two = set.multipliers_first(bench.q, bench.v, bench.a, bench.out, lambda);
  const Status three = set.null_space(bench.q, bench.v, bench.a, bench.out, lambda);
  const Status bad = set.bordered(bench.bad, bench.v, bench.a, bench.out, lambda);
  EXPECT_EQ(guard.count(), 0);
  EXPECT_EQ(one, Status::ok);
  EXPECT_EQ(two, Status::ok);
  EXPECT_EQ(three, Status::ok);
  EXPECT_EQ(bad, Status::not_finite);
}

/// By the caller alone, and where it shares with threads, which run the same code.
TEST(NoAllocation, ManyConfigurations) {
  if (!support::allocations_are_counted) GTEST_SKIP() << "a sanitizer has the heap";
  for (const char* kind : {"tree", "mimic", "everything", "floating base"}) {
    for (const int threads : {0, 2}) {
      SCOPED_TRACE(std::string(kind) + ", " + std::to_string(threads) + " threads");
      support::Random random(1);
      const Model model = draw(1, kind, random);
      BatchDynamics batch(model, threads);
      const int count = 1001;
      const int link = static_cast<int>(model.links.size()) - 1;
      const int n = model.nv;
      Eigen::MatrixXd q(model.nq, count), v(n, count), a(n, count);
      for (int k = 0; k < count; ++k) {
        q.col(k) = random.configuration(model);
        v.col(k) = random.vector_x(n, 1.0);
        a.col(k) = random.vector_x(n, 1.0);
      }
      q(0, 500) = std::numeric_limits<double>::quiet_NaN();
      std::vector<double> vectors(static_cast<std::size_t>(n * count));
      std::vector<double> matrices(static_cast<std::size_t>(std::max(6, n) * n * count));
      std::vector<Status> statuses(static_cast<std::size_t>(count));
      const std::vector<int> held = {0};
      const BatchIn Q = by_configuration<const double>(q.data(), model.nq);
      const BatchIn V = by_configuration<const double>(v.data(), n);
      const BatchIn A = by_configuration<const double>(a.data(), n);
      const BatchOut x = by_coordinate(vectors.data(), n, count);
      const BatchOut M = by_coordinate(matrices.data(), n * n, count);
      const BatchOut J = by_coordinate(matrices.data(), 6 * n, count);
      Status* s = statuses.data();
      const support::AllocationGuard guard;
      const Status results[] = {
          batch.inverse_dynamics(count, Q, V, A, x, s),
          batch.forward_dynamics(count, Q, V, A, x, s),
          batch.forward_dynamics(count, Q, V, A, held, x, s),
          batch.bias(count, Q, V, x, s),
          batch.velocity_effort(count, Q, V, x, s),
          batch.gravity(count, Q, x, s),
          batch.mass_matrix(count, Q, M, s),
          batch.inverse_mass_matrix(count, Q, M, s),
          batch.coriolis(count, Q, V, M, s),
          batch.coriolis_christoffel(count, Q, V, M, s),
          batch.jacobian(count, Q, link, J, {0.1, 0.2, 0.3}, JacobianAxes::link, s)};
      const Status set[] = {
          batch.set_gravity({0.0, 0.0, -1.0}),
          batch.set_payload(link, {1.0, Vec3<double>::Zero(), Symmetric3<double>::zero()}),
          batch.add_external_force(link, Force<double>::zero()), batch.set_rotor_inertia(0, 0.1)};
      batch.clear_external_forces();
      batch.use(Method::newton_euler);
      EXPECT_EQ(guard.count(), 0);
      for (const Status status : results) EXPECT_EQ(status, Status::not_finite);
      for (const Status status : set) EXPECT_EQ(status, Status::ok);
    }
  }
}

TEST(NoAllocation, Trajectories) {
  if (!support::allocations_are_counted) GTEST_SKIP() << "a sanitizer has the heap";
  const trajectory::Cycloid<double> cycloid(Eigen::VectorXd::Zero(3), Eigen::VectorXd::Ones(3),
                                            2.0);
  Eigen::VectorXd q(3), v(3), a(3), wrong(2);
  const support::AllocationGuard guard;
  const Status good = cycloid.evaluate(0.7, q, v, a);
  const Status bad = cycloid.evaluate(0.7, wrong, v, a);
  EXPECT_EQ(guard.count(), 0);
  EXPECT_EQ(good, Status::ok);
  EXPECT_EQ(bad, Status::wrong_size);
}

/// An Eigen product that needs a temporary, a std::function that outgrows its buffer and a plain
/// new: the guard must see each.
TEST(NoAllocation, CanaryIsCaught) {
  if (!support::allocations_are_counted) GTEST_SKIP() << "a sanitizer has the heap";
  Eigen::MatrixXd A = Eigen::MatrixXd::Random(8, 8);
  support::AllocationGuard product;
  A = A * A;
  EXPECT_GT(product.count(), 0);
  support::AllocationGuard heap;
  std::vector<double> values(3);
  EXPECT_GT(heap.count(), 0);
  EXPECT_EQ(values.size(), 3U);
}

}  // namespace
