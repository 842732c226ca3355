// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/batch.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_set>

#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/friction.hpp"
#include "dynamics_core/regressor.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using text::quoted;

/// How many configurations of so many values are brought into the robot's order at a time: enough
/// for every thread, without much memory.
[[nodiscard]] std::size_t portion_of(int values) {
  return std::clamp<std::size_t>(1'000'000 / static_cast<std::size_t>(values), 16, 1024);
}

/// Elements of some of a whole, in their order.
using Places = std::vector<int>;

/// Is it the whole, as it is?
[[nodiscard]] bool is_all(const Places& places, std::size_t size) {
  if (places.size() != size) return false;
  for (std::size_t i = 0; i < size; ++i)
    if (places[i] != static_cast<int>(i)) return false;
  return true;
}

/// The elements (i, j) of a matrix with so many columns, by rows.
[[nodiscard]] Places elements(const Places& rows, const Places& columns, int all_columns) {
  Places places;
  places.reserve(rows.size() * columns.size());
  for (const int i : rows)
    for (const int j : columns) places.push_back(i * all_columns + j);
  return places;
}

/// What a query gives of one quantity: values of some coordinates in k configurations, or none; the
/// other coordinates stay as they are.
class Given {
 public:
  Given(const std::vector<double>& values, const Places& places, const VectorX<double>& otherwise)
      : values_(values),
        places_(places),
        otherwise_(otherwise),
        whole_(is_all(places, static_cast<std::size_t>(otherwise.size()))) {}

  /// Of the configurations from `first` on, until the next call.
  [[nodiscard]] BatchIn view(std::size_t first, std::size_t count) {
    const auto size = static_cast<int>(otherwise_.size());
    if (values_.empty()) return in_every_configuration(otherwise_.data(), size);
    const double* from = values_.data() + first * places_.size();
    if (whole_) return by_configuration(from, size);
    MatrixXd& all = all_;
    all.resize(size, static_cast<Index>(count));
    for (Index k = 0; k < all.cols(); ++k) {
      all.col(k) = otherwise_;
      for (const int place : places_) all(place, k) = *from++;
    }
    return by_configuration<const double>(all.data(), size);
  }

 private:
  const std::vector<double>& values_;
  const Places& places_;
  const VectorX<double>& otherwise_;
  bool whole_;
  MatrixXd all_;  ///< configurations in columns
};

[[nodiscard]] std::vector<int> all_but(const Places& places, int size) {
  std::vector<int> others;
  for (int i = 0; i < size; ++i)
    if (std::find(places.begin(), places.end(), i) == places.end()) others.push_back(i);
  return others;
}

/// The same places in each of three matrices, one after the other.
[[nodiscard]] Places in_three(const Places& of_one, int size) {
  Places places;
  for (int k = 0; k < 3; ++k)
    for (const int place : of_one) places.push_back(k * size + place);
  return places;
}

/// An answer of three matrices, one below the other.
[[nodiscard]] BatchDerivatives taken_apart(const BatchAnswer& from) {
  const std::size_t n = from.columns;
  BatchDerivatives out;
  std::size_t part = 0;
  for (BatchAnswer* to : {&out.by_positions, &out.by_velocities, &out.by_input}) {
    *to = {from.joint_names, from.configurations, n, n, {}};
    to->data.reserve(from.configurations * n * n);
    for (std::size_t k = 0; k < from.configurations; ++k) {
      const double* data = from.data.data() + (3 * k + part) * n * n;
      to->data.insert(to->data.end(), data, data + n * n);
    }
    ++part;
  }
  return out;
}

using ByRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// From the derivatives of the efforts those of the accelerations, −M⁻¹ ∂τ/∂(q, v) and M⁻¹, of some
/// coordinates while the others are held. All three matrices are `size` × `size`, by rows.
void solve_for_accelerations(const Places& places, int size, double* derivatives) {
  const auto part = [&](int k) {
    return Eigen::Map<ByRows>(derivatives + k * size * size, size, size);
  };
  const auto n = static_cast<Index>(places.size());
  const MatrixXd M = part(2)(places, places);
  MatrixXd right(n, 3 * n);
  right << -part(0)(places, places), -part(1)(places, places), MatrixXd::Identity(n, n);
  const MatrixXd solution = M.ldlt().solve(right);
  for (int k = 0; k < 3; ++k) part(k)(places, places) = solution.middleCols(k * n, n);
}

/// A configuration's vector in a view that is by configuration.
[[nodiscard]] Eigen::Map<const VectorXd> vector(const BatchIn& view, std::size_t configuration) {
  return {view.data + static_cast<std::ptrdiff_t>(configuration) * view.between_configurations,
          view.size};
}
[[nodiscard]] Eigen::Map<VectorXd> vector(const BatchOut& view, std::size_t configuration) {
  return {view.data + static_cast<std::ptrdiff_t>(configuration) * view.between_configurations,
          view.size};
}

[[nodiscard]] std::string explain(Status status) {
  if (status == Status::singular) {
    return "the mass matrix is singular, as a joint moves no inertia; give the links behind it "
           "mass or leave the joint out";
  }
  if (status == Status::not_finite)  // the values given are, as has been checked
    return "the result is not finite; the values given are too large";
  return to_string(status);
}

}  // namespace

// --- Workspaces ----------------------------------------------------------------------------------

BatchWorkspaces::Loan::Loan(BatchWorkspaces& from) : from_(from) {
  {
    const std::lock_guard lock(from_.mutex_);
    if (!from_.free_.empty()) {
      robot_ = std::move(from_.free_.back());
      from_.free_.pop_back();
    }
  }
  if (robot_ == nullptr) robot_ = std::make_unique<BatchDynamics>(from_.model_, from_.threads_);
}

BatchWorkspaces::Loan::~Loan() {
  const Payload<double> none{0.0, Vec3<double>::Zero(), Symmetric3<double>::zero()};
  robot_->clear_external_forces();
  for (const int link : loaded_) (void)robot_->set_payload(link, none);
  const std::lock_guard lock(from_.mutex_);
  from_.free_.push_back(std::move(robot_));
}

Status BatchWorkspaces::Loan::set_payload(int link, const Payload<double>& payload) {
  loaded_.push_back(link);
  return robot_->set_payload(link, payload);
}

// --- Queries -------------------------------------------------------------------------------------

/// The state of some configurations.
struct Batch::States {
  std::size_t count;
  BatchIn q, v, a, tau;
};

/// A query on its way: its joints, its workspace, and where its configurations come from.
class Batch::Job {
 public:
  Job(const Batch& batch, const BatchQuery& query)
      : joints(select_joints(batch.model_, query.joint_names)),
        loan_(*batch.workspaces_),
        q_(batch.latest_.q),
        v_(VectorXd::Zero(batch.model_.nv)),
        zero_(VectorXd::Zero(batch.model_.nv)),
        query_(query),
        limits_(batch.limits_) {
    if (joints.size() == 0) {
      throw RequestError("robot " + quoted(batch.model_.name) +
                         " has no joint of one degree of freedom; there is nothing to compute");
    }
    check_values("positions", query.positions, joints);
    check_values("velocities", query.velocities, joints);
    check_values("accelerations", query.accelerations, joints);
    check_values("efforts", query.efforts, joints);
    count_configurations();
    if (query.positions.empty()) take_latest(batch.latest_);
    add_wrenches(batch);
    add_payloads(batch);
  }

  [[nodiscard]] std::size_t n() const noexcept { return joints.size(); }

  [[nodiscard]] BatchDynamics& robot() noexcept { return loan_.robot(); }

  /// Calls compute(states, out, statuses) for all configurations, some at a time. `out` has `all`
  /// elements of each, and the answer those at `places`.
  template <class Compute>
  [[nodiscard]] BatchAnswer run(std::size_t rows, std::size_t columns, const Places& places,
                                int all, Compute compute) {
    const std::size_t size = rows * columns;
    if (configurations_ * size > limits_.max_values) {
      throw RequestError(std::to_string(configurations_) + " configurations of " +
                         std::to_string(size) + " values each are more than max_values, " +
                         std::to_string(limits_.max_values) + "; ask in several calls");
    }
    BatchAnswer answer{joints.names, configurations_, rows, columns, {}};
    answer.data.resize(configurations_ * size);
    const bool whole = is_all(places, static_cast<std::size_t>(all));
    Given q(query_.positions, joints.q, q_);
    Given v(query_.velocities, joints.v, v_);
    Given a(query_.accelerations, joints.v, zero_);
    Given tau(query_.efforts, joints.v, zero_);
    const std::size_t portion = portion_of(all);
    MatrixXd result(whole ? 0 : all, static_cast<Index>(std::min(portion, configurations_)));
    std::vector<Status> statuses(std::min(portion, configurations_));
    for (std::size_t first = 0; first < configurations_; first += portion) {
      const std::size_t count = std::min(portion, configurations_ - first);
      const States states{count, q.view(first, count), v.view(first, count), a.view(first, count),
                          tau.view(first, count)};
      double* to = answer.data.data() + first * size;
      compute(states, by_configuration(whole ? to : result.data(), all), statuses.data());
      for (std::size_t k = 0; k < count; ++k)
        if (statuses[k] != Status::ok) fail(first + k, explain(statuses[k]));
      if (whole) continue;
      for (Index k = 0; k < static_cast<Index>(count); ++k)
        for (const int place : places) *to++ = result(place, k);
    }
    return answer;
  }

  JointSelection joints;

 private:
  [[noreturn]] static void fail(std::size_t configuration, const std::string& problem) {
    throw RequestError("configuration " + std::to_string(configuration) + ": " + problem);
  }

  /// All arrays that are given must agree; if none is, there is one configuration, the latest.
  void count_configurations() {
    const std::pair<const char*, const std::vector<double>&> arrays[] = {
        {"positions", query_.positions},
        {"velocities", query_.velocities},
        {"accelerations", query_.accelerations},
        {"efforts", query_.efforts}};
    const char* first = nullptr;
    for (const auto& [name, values] : arrays) {
      if (values.empty()) continue;
      const std::size_t k = values.size() / n();
      if (first != nullptr && k != configurations_) {
        throw RequestError(std::string(name) + " has " + std::to_string(k) +
                           " configurations, but " + first + " has " +
                           std::to_string(configurations_) + "; give as many of each or none");
      }
      first = name;
      configurations_ = k;
    }
    if (configurations_ > limits_.max_configurations) {
      throw RequestError(std::to_string(configurations_) +
                         " configurations are more than max_configurations, " +
                         std::to_string(limits_.max_configurations) + "; ask in several calls");
    }
  }

  void take_latest(const JointStates& latest) {
    if (const auto missing = latest.missing(joints); !missing.empty()) {
      throw RequestError("no positions are given and joint " + quoted(missing.front()) +
                         " has not been in any joint state yet; give positions or publish it");
    }
    if (!query_.velocities.empty()) return;
    for (const int place : joints.v) v_[place] = latest.v[place];
  }

  void add_wrenches(const Batch& batch) {
    for (const LinkWrench& on : query_.wrenches) {
      const Status status = robot().add_external_force(batch.find_link(on.link), on.wrench);
      if (status != Status::ok) {
        throw RequestError("the wrench on link " + quoted(on.link) + " is " + to_string(status) +
                           "; give finite values");
      }
    }
  }

  void add_payloads(const Batch& batch) {
    std::unordered_set<int> loaded;
    for (const LinkPayload& on : query_.payloads) {
      const int link = batch.find_link(on.link);
      const std::string& name = batch.model_.links[static_cast<std::size_t>(link)].name;
      if (!loaded.insert(link).second)
        throw RequestError("link " + quoted(name) + " carries two payloads; give their sum");
      try {
        (void)checked_payload(batch.model_, name, on.payload);
      } catch (const ConfigError& error) {
        throw RequestError("payload on link " + quoted(name) + ": " + error.what());
      }
      if (const Status status = loan_.set_payload(link, on.payload); status != Status::ok)
        throw RequestError("payload on link " + quoted(name) + ": " + to_string(status));
    }
  }

  BatchWorkspaces::Loan loan_;
  VectorX<double> q_, v_, zero_;  ///< of the coordinates that are not given
  const BatchQuery& query_;
  BatchLimits limits_;
  std::size_t configurations_ = 1;
};

int Batch::find_link(const std::string& name) const {
  if (name.empty()) return tip_link(model_);
  const int link = model_.find_link(name);
  if (link >= 0) return link;
  throw RequestError("link " + quoted(name) + " is not a link of robot " + quoted(model_.name) +
                     "; its tip is " +
                     quoted(model_.links[static_cast<std::size_t>(tip_link(model_))].name));
}

BatchAnswer Batch::mass_matrix(const BatchQuery& query) const {
  Job job(*this, query);
  return job.run(job.n(), job.n(), elements(job.joints.v, job.joints.v, model_.nv),
                 model_.nv * model_.nv, [&](const States& s, const BatchOut& M, Status* statuses) {
                   (void)job.robot().mass_matrix(s.count, s.q, M, statuses);
                 });
}

BatchAnswer Batch::gravity(const BatchQuery& query) const {
  Job job(*this, query);
  return job.run(job.n(), 1, job.joints.v, model_.nv,
                 [&](const States& s, const BatchOut& tau, Status* statuses) {
                   (void)job.robot().gravity(s.count, s.q, tau, statuses);
                 });
}

BatchAnswer Batch::coriolis(const BatchQuery& query, CoriolisFactor factor) const {
  Job job(*this, query);
  return job.run(job.n(), job.n(), elements(job.joints.v, job.joints.v, model_.nv),
                 model_.nv * model_.nv, [&](const States& s, const BatchOut& C, Status* statuses) {
                   if (factor == CoriolisFactor::christoffel)
                     (void)job.robot().coriolis_christoffel(s.count, s.q, s.v, C, statuses);
                   else
                     (void)job.robot().coriolis(s.count, s.q, s.v, C, statuses);
                 });
}

BatchAnswer Batch::inverse_dynamics(const BatchQuery& query) const {
  Job job(*this, query);
  const Friction<double> friction(model_);
  return job.run(job.n(), 1, job.joints.v, model_.nv,
                 [&](const States& s, const BatchOut& tau, Status* statuses) {
                   (void)job.robot().inverse_dynamics(s.count, s.q, s.v, s.a, tau, statuses);
                   if (!query.friction) return;
                   for (std::size_t k = 0; k < s.count; ++k)
                     statuses[k] =
                         merged(statuses[k], friction.add(vector(s.v, k), vector(tau, k)));
                 });
}

BatchAnswer Batch::forward_dynamics(const BatchQuery& query) const {
  Job job(*this, query);
  const Friction<double> friction(model_);
  const std::vector<int> held = all_but(job.joints.v, model_.nv);
  MatrixXd left;  // of the efforts after friction
  return job.run(job.n(), 1, job.joints.v, model_.nv,
                 [&](const States& s, const BatchOut& a, Status* statuses) {
                   BatchIn tau = s.tau;
                   if (query.friction) {
                     left.resize(model_.nv, static_cast<Index>(s.count));
                     for (std::size_t k = 0; k < s.count; ++k) {
                       left.col(static_cast<Index>(k)) = vector(s.tau, k);
                       // What is not finite is found below.
                       (void)friction.subtract(vector(s.v, k), left.col(static_cast<Index>(k)));
                     }
                     tau = by_configuration<const double>(left.data(), model_.nv);
                   }
                   BatchDynamics& robot = job.robot();
                   if (held.empty())
                     (void)robot.forward_dynamics(s.count, s.q, s.v, tau, a, statuses);
                   else
                     (void)robot.forward_dynamics(s.count, s.q, s.v, tau, held, a, statuses);
                 });
}

BatchDerivatives Batch::inverse_dynamics_derivatives(const BatchQuery& query) const {
  Job job(*this, query);
  const int all = model_.nv * model_.nv;
  return taken_apart(job.run(
      3 * job.n(), job.n(), in_three(elements(job.joints.v, job.joints.v, model_.nv), all), 3 * all,
      [&](const States& s, const BatchOut& out, Status* statuses) {
        (void)job.robot().inverse_dynamics_derivatives(s.count, s.q, s.v, s.a, out, statuses);
      }));
}

BatchDerivatives Batch::forward_dynamics_derivatives(const BatchQuery& query) const {
  Job job(*this, query);
  const int all = model_.nv * model_.nv;
  const std::vector<int> held = all_but(job.joints.v, model_.nv);
  MatrixXd a;  // where joints are held
  std::vector<Status> of_a;
  return taken_apart(job.run(
      3 * job.n(), job.n(), in_three(elements(job.joints.v, job.joints.v, model_.nv), all), 3 * all,
      [&](const States& s, const BatchOut& out, Status* statuses) {
        BatchDynamics& robot = job.robot();
        if (held.empty()) {
          (void)robot.forward_dynamics_derivatives(s.count, s.q, s.v, s.tau, out, statuses);
          return;
        }
        a.resize(model_.nv, static_cast<Index>(s.count));
        of_a.resize(s.count);
        (void)robot.forward_dynamics(s.count, s.q, s.v, s.tau, held,
                                     by_configuration(a.data(), model_.nv), of_a.data());
        for (Index k = 0; k < a.cols(); ++k)
          if (of_a[static_cast<std::size_t>(k)] != Status::ok) a.col(k).setZero();
        (void)robot.inverse_dynamics_derivatives(
            s.count, s.q, s.v, by_configuration<const double>(a.data(), model_.nv), out, statuses);
        for (std::size_t k = 0; k < s.count; ++k) {
          statuses[k] = merged(of_a[k], statuses[k]);
          if (statuses[k] == Status::ok)
            solve_for_accelerations(job.joints.v, model_.nv, vector(out, k).data());
        }
      }));
}

BatchAnswer Batch::jacobian(const BatchQuery& query, const std::string& link, JacobianAxes axes,
                            const Eigen::Vector3d& offset) const {
  if (!offset.allFinite())
    throw RequestError("the point on the link is not finite; give finite values");
  const int index = find_link(link);
  Job job(*this, query);
  return job.run(6, job.n(), elements({3, 4, 5, 0, 1, 2}, job.joints.v, model_.nv), 6 * model_.nv,
                 [&](const States& s, const BatchOut& J, Status* statuses) {
                   (void)job.robot().jacobian(s.count, s.q, index, J, offset, axes, statuses);
                 });
}

/// One configuration after the other: it is asked for off-line.
BatchAnswer Batch::regressor(const BatchQuery& query) const {
  Job job(*this, query);
  Dynamics<double> robot(model_);
  const int columns = robot.regressor().columns();
  Places all(static_cast<std::size_t>(columns));
  std::iota(all.begin(), all.end(), 0);
  MatrixXd Y(model_.nv, columns);
  return job.run(job.n(), all.size(), elements(job.joints.v, all, columns), model_.nv * columns,
                 [&](const States& s, const BatchOut& out, Status* statuses) {
                   for (std::size_t k = 0; k < s.count; ++k) {
                     statuses[k] = robot.regressor().matrix(vector(s.q, k), vector(s.v, k),
                                                            vector(s.a, k), Y);
                     const MatrixXd by_rows = Y.transpose();
                     vector(out, k) = by_rows.reshaped();
                   }
                 });
}

std::vector<double> Batch::parameters() const {
  const Dynamics<double> robot(model_);
  VectorXd pi(robot.regressor().columns());
  if (const Status status = robot.regressor().parameters(pi); status != Status::ok)
    throw RequestError(to_string(status));
  return {pi.data(), pi.data() + pi.size()};
}

}  // namespace dynamics_core
