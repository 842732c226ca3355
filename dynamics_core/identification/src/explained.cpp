// SPDX-License-Identifier: Apache-2.0
#include "explained.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/identification/equations.hpp"
#include "dynamics_core/identification/signals.hpp"

namespace dynamics_core::identification {

std::vector<Explained> explained(const Model& model, const std::vector<Recording>& recordings) {
  constexpr double cutoff = 3.0;
  constexpr int columns = 6;  // gravity, inertias, rotor, viscous, Coulomb, offset
  const VectorX<double> rest = rest_speed(recordings);
  Dynamics<double> robot(model);
  const auto nv = static_cast<std::size_t>(model.nv);
  std::vector<MatrixX<double>> products(nv, MatrixX<double>::Zero(columns + 1, columns + 1));
  for (const Recording& recording : recordings) {
    const double rate = 1.0 / recording.period;
    const int every = std::max(1, static_cast<int>(rate / (10.0 * cutoff)));
    for (const Stretch& raw : recording.stretches) {
      const Stretch s = differentiated(raw, recording.period, smoothing_width * cutoff, every);
      std::vector<MatrixX<double>> X(nv, MatrixX<double>(s.samples(), columns + 1));
      Eigen::VectorXd gravity(model.nv), effort(model.nv);
      for (Eigen::Index i = 0; i < s.samples(); ++i) {
        (void)robot.gravity(s.q.row(i).transpose(), gravity);
        (void)robot.inverse_dynamics(s.q.row(i).transpose(), s.v.row(i).transpose(),
                                     s.a.row(i).transpose(), effort);
        for (int j = 0; j < model.nv; ++j)
          X[static_cast<std::size_t>(j)].row(i) << gravity[j], effort[j] - gravity[j], s.a(i, j),
              s.v(i, j), smooth_sign(s.v(i, j), rest[j] + 1e-9), 1.0, s.tau(i, j);
      }
      const LowPass low_pass(cutoff, rate / every);
      for (int j = 0; j < model.nv; ++j) {
        MatrixX<double>& x = X[static_cast<std::size_t>(j)];
        low_pass.apply(x);
        for (Eigen::Index i = 0; i < s.samples(); ++i)
          if (std::abs(s.v(i, j)) > rest[j])
            products[static_cast<std::size_t>(j)] += x.row(i).transpose() * x.row(i);
      }
    }
  }
  std::vector<Explained> joints;
  for (const MatrixX<double>& G : products) {
    const double n = std::max(G(5, 5), 1.0);
    const Eigen::VectorXd size = (G.diagonal() / n).cwiseSqrt();
    Eigen::MatrixXd H = G.topLeftCorner(columns, columns);
    for (int k = 0; k < columns; ++k) H(k, k) += 1e-3 * n * size[k] * size[k] + 1e-12;
    const Eigen::VectorXd x = H.llt().solve(Eigen::VectorXd(G.col(columns).head(columns)));
    Explained joint;
    joint.gravity = x[0];
    joint.gravity_size = std::sqrt(std::max(0.0, G(0, 0) - G(0, 5) * G(0, 5) / n) / n);
    joint.balance = x[0] * joint.gravity_size;
    for (int k = 1; k < 5; ++k) joint.balance += x[k] * size[k];
    const double weight = joint.gravity_size + size[1];
    const double factor =
        weight > 0.0 ? (std::abs(x[0]) * joint.gravity_size + std::abs(x[1]) * size[1]) / weight
                     : 0.0;
    joint.gain = factor > 0.0 ? 1.0 / factor : 0.0;
    joints.push_back(joint);
  }
  return joints;
}

}  // namespace dynamics_core::identification
