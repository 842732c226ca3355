// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Every quantity of every family in any scalar type, for tests that compare scalar types with each
/// other; and random robots of all kinds of joints with what is set from outside.

#include <Eigen/LU>
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "dynamics_core/families.hpp"
#include "support/kinds.hpp"

namespace support {

// --- Robots --------------------------------------------------------------------------------------

/// A random robot of a kind, some of its revolute joints made screws.
struct Robot {
  Robot(const Kind& kind, unsigned seed_) : seed(seed_), random(seed_ + 1000000) {
    Sample sample(kind, seed);
    for (auto& joint : sample.robot.joints) {
      if (joint.type != dynamics_core::JointType::revolute || !random.chance(0.2)) continue;
      joint.type = dynamics_core::JointType::helical;
      joint.pitch = random.uniform(0.01, 0.2) * (random.chance(0.5) ? 1.0 : -1.0);
    }
    dynamics_core::ModelOptions how;
    how.floating_base = kind.floating_base;
    how.gravity = random.vector(10.0);
    model = dynamics_core::build_model(sample.robot, how);
  }
  [[nodiscard]] std::string trace() const {
    return "seed " + std::to_string(seed) + ", " + std::to_string(model.nv) +
           " degrees of freedom, " + std::to_string(model.nb()) + " bodies";
  }
  [[nodiscard]] bool has_floating_joint() const {
    return std::any_of(model.joints.begin(), model.joints.end(), [](const auto& joint) {
      return joint.type == dynamics_core::JointType::floating;
    });
  }

  unsigned seed;
  Random random;
  dynamics_core::Model model;
};

/// A state; `u` serves as acceleration where one is asked for and as effort where one is.
template <class S>
struct State {
  dynamics_core::VectorX<S> q, v, u;
};

inline State<double> random_state(Robot& robot) {
  return {robot.random.configuration(robot.model), robot.random.vector_x(robot.model.nv, 2.0),
          robot.random.vector_x(robot.model.nv, 3.0)};
}

/// What is set from outside and stays.
template <class S>
struct Surroundings {
  dynamics_core::Vec3<S> gravity;
  int carrier;  ///< link
  dynamics_core::Payload<S> payload;
  std::vector<std::pair<int, dynamics_core::Force<S>>> forces;  ///< by link
  int geared;                                                   ///< degree of freedom
  S rotor;

  /// False where something is refused.
  [[nodiscard]] bool put_on(dynamics_core::Tree<S>& tree) const {
    using dynamics_core::Status;
    bool fits = !failed(tree.set_gravity(gravity));
    fits = fits && tree.set_payload(carrier, payload) == Status::ok;
    for (const auto& [link, force] : forces)
      fits = fits && tree.add_external_force(link, force) == Status::ok;
    return fits && tree.set_rotor_inertia(geared, rotor) == Status::ok;
  }
};

/// Other values at each call, on the same links.
inline Surroundings<double> random_surroundings(Robot& robot) {
  Random& random = robot.random;
  const int links = static_cast<int>(robot.model.links.size());
  Surroundings<double> out;
  out.gravity = random.vector(10.0);
  out.carrier = links / 2;
  const dynamics_core::Inertial body = random.inertial();
  out.payload = {body.mass, body.com, dynamics_core::Symmetric3<double>::from(body.inertia)};
  out.forces = {{links - 1, {random.vector(5.0), random.vector(10.0)}},
                {links / 3, {random.vector(5.0), random.vector(10.0)}}};
  out.geared = robot.model.nv / 2;
  out.rotor = random.uniform(0.0, 0.1);
  return out;
}

// --- Quantities ----------------------------------------------------------------------------------

template <class S>
struct Quantity {
  std::string name;
  dynamics_core::StatusOf<S> status;
  dynamics_core::MatrixX<S> value;
};

/// Computes all of them in one state.
template <class S>
class Quantities {
 public:
  using Matrix = dynamics_core::MatrixX<S>;
  using Vector = dynamics_core::VectorX<S>;
  using Status = dynamics_core::Status;

  Quantities(dynamics_core::Families<S>& families, const State<S>& state)
      : f_(families), q_(state.q), v_(state.v), u_(state.u), n_(families.tree.nv()) {
    efforts();
    matrices();
    accelerations();
    inverses();
    links();
    whole_robot();
    steps();
    tasks();
    regressor();
  }

  [[nodiscard]] const std::vector<Quantity<S>>& all() const { return all_; }
  /// The link whose point the tasks move.
  [[nodiscard]] int last_link() const { return static_cast<int>(f_.tree.links().size()) - 1; }
  /// The name of its Jacobian.
  [[nodiscard]] std::string last_jacobian() const {
    return "jacobian of link " + std::to_string(last_link());
  }
  /// Of the given name; there must be one.
  [[nodiscard]] const Quantity<S>& operator[](const std::string& name) const {
    for (const auto& quantity : all_)
      if (quantity.name == name) return quantity;
    throw std::out_of_range("no quantity " + name);
  }

 private:
  /// Runs `compute(matrix)` and keeps what it gives.
  template <class Compute>
  void add(const std::string& name, Eigen::Index rows, Eigen::Index columns, Compute compute) {
    Quantity<S> quantity{name, Status::ok, Matrix::Zero(rows, columns)};
    quantity.status = compute(quantity.value);
    all_.push_back(std::move(quantity));
  }
  template <class Values>
  void keep(const std::string& name, const dynamics_core::StatusOf<S>& status, const Values& x) {
    all_.push_back({name, status, x});
  }

  void efforts() {
    const auto vector = [this](const char* name, auto compute) {
      add(name, n_, 1, [&](Matrix& x) { return compute(x.col(0)); });
    };
    vector("inverse dynamics, newton_euler",
           [&](auto&& x) { return f_.newton_euler.inverse_dynamics(q_, v_, u_, x); });
    vector("inverse dynamics, denoc",
           [&](auto&& x) { return f_.denoc.inverse_dynamics(q_, v_, u_, x); });
    vector("inverse dynamics, gibbs_appell",
           [&](auto&& x) { return f_.gibbs_appell.inverse_dynamics(q_, v_, u_, x); });
    vector("bias, newton_euler", [&](auto&& x) { return f_.newton_euler.bias(q_, v_, x); });
    vector("bias, gibbs_appell", [&](auto&& x) { return f_.gibbs_appell.bias(q_, v_, x); });
    vector("velocity effort, newton_euler",
           [&](auto&& x) { return f_.newton_euler.velocity_effort(q_, v_, x); });
    vector("velocity effort, gibbs_appell",
           [&](auto&& x) { return f_.gibbs_appell.velocity_effort(q_, v_, x); });
    vector("gravity, newton_euler", [&](auto&& x) { return f_.newton_euler.gravity(q_, x); });
  }

  void matrices() {
    const auto square = [this](const char* name, auto compute) { add(name, n_, n_, compute); };
    square("mass matrix, composite_body",
           [&](Matrix& M) { return f_.composite_body.mass_matrix(q_, M); });
    square("mass matrix, denoc", [&](Matrix& M) { return f_.denoc.mass_matrix(q_, M); });
    square("mass matrix, gibbs_appell",
           [&](Matrix& M) { return f_.gibbs_appell.mass_matrix(q_, M); });
    square("coriolis, denoc", [&](Matrix& C) { return f_.denoc.coriolis(q_, v_, C); });
    square("coriolis of Christoffel, denoc",
           [&](Matrix& C) { return f_.denoc.coriolis_christoffel(q_, v_, C); });
  }

  void accelerations() {
    const auto vector = [this](const char* name, auto compute) {
      add(name, n_, 1, [&](Matrix& x) { return compute(x.col(0)); });
    };
    vector("forward dynamics, articulated_body",
           [&](auto&& a) { return f_.articulated_body.forward_dynamics(q_, v_, u_, a); });
    vector("forward dynamics, udut",
           [&](auto&& a) { return f_.udut.forward_dynamics(q_, v_, u_, a); });
    vector("forward dynamics, cholesky",
           [&](auto&& a) { return f_.cholesky.forward_dynamics(q_, v_, u_, a); });
    vector("forward dynamics with one held, cholesky", [&](auto&& a) {
      return f_.cholesky.forward_dynamics(q_, v_, u_, std::vector<int>{n_ / 2}, a);
    });
    vector("forward dynamics, gibbs_appell",
           [&](auto&& a) { return f_.gibbs_appell.forward_dynamics(q_, v_, u_, a); });
    if (failed(all_.back().status)) return;
    const Quantity<S> first = all_.back();
    add("forward dynamics refined, gibbs_appell", n_, 1, [&](Matrix& a) {
      a = first.value;
      return merged(first.status, f_.gibbs_appell.refine(q_, v_, u_, a.col(0)));
    });
  }

  void inverses() {
    add("inverse mass matrix, udut", n_, n_,
        [&](Matrix& A) { return f_.udut.inverse_mass_matrix(q_, A); });
    add("inverse mass matrix, cholesky", n_, n_,
        [&](Matrix& A) { return f_.cholesky.inverse_mass_matrix(q_, A); });
    keep("factorisation, udut", f_.udut.factorize(q_), Matrix::Zero(0, 0));
    add("factors, udut", n_, n_ + 1, [&](Matrix& UD) {
      Matrix U = Matrix::Zero(n_, n_);
      Vector D = Vector::Zero(n_);
      const auto status = f_.udut.factors(U, D);
      UD << U, D;
      return status;
    });
    add("solution, udut", n_, 1, [&](Matrix& x) { return f_.udut.solve(u_, x.col(0)); });
  }

  /// Of every link, what moves with it is asked here.
  [[nodiscard]] static dynamics_core::Vec3<S> point() { return {S(0.1), S(-0.2), S(0.3)}; }

  void links() {
    using dynamics_core::Vec3;
    const auto& k = f_.kinematics;
    const auto status = f_.kinematics.update(q_, v_);
    const Vec3<S> offset = point();
    for (int link = 0; link <= last_link(); ++link) {
      dynamics_core::Pose<S> X;
      dynamics_core::Motion<S> V, A;
      Matrix J(6, n_), Jd(6, n_);
      dynamics_core::StatusOf<S> all = status;
      for (const auto& s :
           {k.pose(link, X), k.velocity(link, V, offset), k.bias_acceleration(link, A, offset),
            k.jacobian(link, J, offset), k.jacobian_rate(link, Jd, offset)})
        all = merged(all, s);
      const std::string of = " of link " + std::to_string(link);
      Matrix pose(3, 4), motion(6, 2);
      pose << X.R, X.p;
      motion << V.w, A.w, V.v, A.v;
      keep("pose" + of, all, pose);
      keep("velocity and bias acceleration" + of, all, motion);
      keep("jacobian" + of, all, J);
      keep("jacobian rate" + of, all, Jd);
    }
  }

  void whole_robot() {
    auto& k = f_.kinematics;
    const auto update = k.update(q_, v_);
    const auto energy = k.energy();
    Matrix figures(3, 1);
    figures << k.total_mass(), energy.kinetic, energy.potential;
    keep("mass and energy", update, figures);
    const auto centre = [this, &update](const char* name, auto compute) {
      dynamics_core::Vec3<S> x = dynamics_core::Vec3<S>::Zero();
      const auto status = merged(update, compute(x));
      keep(name, status, x);
    };
    centre("centre of mass", [&](auto& x) { return k.centre_of_mass(x); });
    centre("velocity of the centre of mass", [&](auto& x) { return k.centre_of_mass_velocity(x); });
    add("jacobian of the centre of mass", 3, n_,
        [&](Matrix& J) { return merged(update, k.centre_of_mass_jacobian(J)); });
    const auto at_rest = k.update(q_);
    Matrix kinetic(1, 1);
    kinetic << k.energy().kinetic;
    keep("kinetic energy at rest", at_rest, kinetic);
  }

  void steps() {
    const Eigen::Index nq = f_.tree.nq();
    add("rate of the configuration", nq, 1,
        [&](Matrix& x) { return f_.kinematics.configuration_rate(q_, v_, x.col(0)); });
    add("configuration after a step", nq, 1,
        [&](Matrix& x) { return f_.kinematics.integrate(q_, v_, S(0.3), x.col(0)); });
    add("normalized configuration", nq, 1, [&](Matrix& x) {
      x = q_;
      return f_.kinematics.normalize(x.col(0));
    });
  }

  void tasks() {
    const int link = last_link();
    const dynamics_core::Vec3<S> offset = point();
    const auto task = [this](const std::string& name, const dynamics_core::Task<S>& what) {
      auto& os = f_.operational_space;
      const auto status = os.update(q_, v_, what);
      keep(name, status, Matrix::Zero(0, 0));
      if (failed(status)) return;
      keep(name + ", inertia", status, os.inertia());
      keep(name + ", velocity force", status, os.velocity_force());
      keep(name + ", gravity force", status, os.gravity_force());
      keep(name + ", jacobian", status, os.jacobian());
      keep(name + ", consistent inverse", status, os.consistent_inverse());
      add(name + ", null space", n_, n_,
          [&](Matrix& N) { return merged(status, os.null_space_projector(N)); });
      add(name + ", force", os.rows(), 1, [&](Matrix& F) {
        return merged(status, os.task_force(Vector::Constant(os.rows(), S(0.7)), F.col(0)));
      });
    };
    task("task of a pose", {link, offset});
    task("task of a point", dynamics_core::position_task<S>(link, offset));
    task("task of a height", {link, offset, {false, false, false, false, false, true}});
  }

  void regressor() {
    const int columns = f_.regressor.columns();
    add("regressor", n_, columns, [&](Matrix& Y) { return f_.regressor.matrix(q_, v_, u_, Y); });
    add("parameters", columns, 1, [&](Matrix& pi) { return f_.regressor.parameters(pi.col(0)); });
  }

  dynamics_core::Families<S>& f_;
  Vector q_, v_, u_;
  int n_;
  std::vector<Quantity<S>> all_;
};

/// False for a task that the robot, by the Jacobian of the last link's point, can hardly do: Λ is the
/// reciprocal of round-off there. True for all other quantities.
[[nodiscard]] inline bool is_regular(const std::string& name, const Eigen::MatrixXd& J) {
  Eigen::MatrixXd rows = J;
  if (name.rfind("task", 0) != 0) return true;
  if (name.rfind("task of a point", 0) == 0) rows = J.bottomRows(3).eval();
  if (name.rfind("task of a height", 0) == 0) rows = J.bottomRows(1).eval();
  Eigen::FullPivLU<Eigen::MatrixXd> lu(rows);
  lu.setThreshold(1e-2);
  return lu.rank() == rows.rows() && lu.maxPivot() > 1e-2;
}

}  // namespace support
