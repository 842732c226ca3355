// SPDX-License-Identifier: Apache-2.0
#include <Eigen/QR>
#include <algorithm>
#include <random>
#include <set>

#include "dynamics_core/regressor.hpp"

#include "dynamics_core/dynamics.hpp"

namespace dynamics_core {

namespace {

/// Draws from the engine alone, so that a seed means the same states on every machine.
class States {
 public:
  explicit States(unsigned seed) : engine_(seed) {}
  [[nodiscard]] Eigen::VectorXd vector(int n, double size) {
    Eigen::VectorXd x(n);
    for (double& value : x)
      value = size * (2.0 * static_cast<double>(engine_()) / 4294967295.0 - 1.0);
    return x;
  }
  [[nodiscard]] Eigen::VectorXd configuration(const Model& model) {
    constexpr double turn = 3.14159265358979323846;  // and as many metres
    Eigen::VectorXd q = vector(model.nq, turn);
    for (const JointInfo& j : model.joints) {
      if (j.type != JointType::floating) continue;
      while (q.segment<4>(j.q + 3).norm() < 0.1) q.segment<4>(j.q + 3) = vector(4, turn);
      q.segment<4>(j.q + 3).normalize();
    }
    return q;
  }

 private:
  std::mt19937 engine_;
};

/// The regressor at enough random states to tell all columns apart that can be.
[[nodiscard]] Eigen::MatrixXd stacked_regressor(const Model& model, unsigned seed) {
  Dynamics<double> robot(model);
  const int columns = robot.regressor().columns();
  const int states = model.nv == 0 ? 0 : 3 * columns / model.nv + 10;
  Eigen::MatrixXd W(states * model.nv, columns);
  Eigen::MatrixXd Y(model.nv, columns);
  States random(seed);
  for (int k = 0; k < states; ++k) {
    const Eigen::VectorXd q = random.configuration(model);
    const Eigen::VectorXd v = random.vector(model.nv, 2.0);
    const Eigen::VectorXd a = random.vector(model.nv, 5.0);
    const Status status = robot.regressor().matrix(q, v, a, Y);
    if (status != Status::ok)
      throw ModelError("", "regressor", to_string(status), "check the model's numbers");
    W.middleRows(k * model.nv, model.nv) = Y;
  }
  return W;
}

}  // namespace

MatrixX<double> BaseParameters::select(const MatrixX<double>& Y) const {
  MatrixX<double> out(Y.rows(), size());
  for (int k = 0; k < size(); ++k) out.col(k) = Y.col(columns[static_cast<std::size_t>(k)]);
  return out;
}

BaseParameters base_parameters(const Model& model, unsigned seed, double tolerance) {
  const Eigen::MatrixXd W = stacked_regressor(model, seed);
  const int n = static_cast<int>(W.cols());
  BaseParameters base;
  if (W.rows() == 0 || n == 0) {
    base.K = MatrixX<double>::Zero(0, n);
    return base;
  }
  Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr;
  qr.setThreshold(tolerance);
  qr.compute(W);
  const int rank = static_cast<int>(qr.rank());
  // W P = Q [R₁ R₂; 0 0], so that the dependent columns are R₁⁻¹ R₂ of the others.
  const Eigen::MatrixXd R = qr.matrixR().topRows(rank).triangularView<Eigen::Upper>();
  const Eigen::MatrixXd share =
      R.leftCols(rank).triangularView<Eigen::Upper>().solve(R.rightCols(n - rank));
  const auto& order = qr.colsPermutation().indices();
  base.columns.assign(order.data(), order.data() + rank);
  std::sort(base.columns.begin(), base.columns.end());
  base.K = MatrixX<double>::Zero(rank, n);
  for (int i = 0; i < rank; ++i) {
    const auto place = std::lower_bound(base.columns.begin(), base.columns.end(), order[i]);
    const auto row = place - base.columns.begin();
    base.K(row, order[i]) = 1.0;
    for (int j = 0; j < n - rank; ++j) {
      const double x = share(i, j);
      base.K(row, order[rank + j]) = std::abs(x) < tolerance ? 0.0 : x;
    }
  }
  return base;
}

std::vector<std::string> parameter_names(const Model& model) {
  static const char* const parameters[] = {"m",   "mcx", "mcy", "mcz", "Ixx",
                                           "Ixy", "Ixz", "Iyy", "Iyz", "Izz"};
  std::vector<std::string> bodies(model.bodies.size());
  std::set<std::string> moved;  // links right behind a joint name their body
  for (const JointInfo& j : model.joints) moved.insert(j.child);
  for (const LinkInfo& l : model.links) {
    if (l.body < 0) continue;
    std::string& name = bodies[static_cast<std::size_t>(l.body)];
    if (name.empty() || (moved.count(name) == 0 && moved.count(l.name) != 0)) name = l.name;
  }
  std::vector<std::string> names;
  for (const std::string& body : bodies) {
    if (body.empty()) continue;  // a joint's massless body
    for (const char* parameter : parameters)
      names.push_back(std::string(parameter) + "(" + body + ")");
  }
  return names;
}

}  // namespace dynamics_core
