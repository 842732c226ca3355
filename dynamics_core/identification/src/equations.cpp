// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/identification/equations.hpp"

#include <algorithm>
#include <cmath>

#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/identification/signals.hpp"
#include "dynamics_core/regressor.hpp"

namespace dynamics_core::identification {

namespace {

using Eigen::Index;

/// Does joint j carry the body?
[[nodiscard]] bool carries(const Model& model, int dof, int body) {
  for (int i = body; i >= 0; i = model.bodies[static_cast<std::size_t>(i)].parent)
    if (model.bodies[static_cast<std::size_t>(i)].dof == dof) return true;
  return false;
}

}  // namespace

Equations::Equations(const Model& model, Basis basis, const Sampling& sampling)
    : model_(model), basis_(std::move(basis)), sampling_(sampling) {
  std::vector<bool> has_links(model.bodies.size(), false);
  for (const LinkInfo& link : model.links)
    if (link.body >= 0) has_links[static_cast<std::size_t>(link.body)] = true;
  std::vector<int> first(model.bodies.size(), -1);
  for (std::size_t b = 0; b < model.bodies.size(); ++b) {
    if (!has_links[b]) continue;
    first[b] = inertial_columns_;
    inertial_columns_ += 10;
  }
  const int signs = static_cast<int>(basis_.transitions.size());
  const int speeds = static_cast<int>(basis_.stribeck.size());
  const int pairs = static_cast<int>(basis_.pairs.size());
  for (int j = 0; j < model.nv; ++j) {
    JointColumns c;
    for (int b = 0; b < model.nb(); ++b)
      if (first[static_cast<std::size_t>(b)] >= 0 && carries(model, j, b))
        for (int k = 0; k < 10; ++k) c.inertial.push_back(first[static_cast<std::size_t>(b)] + k);
    c.rotor = static_cast<int>(c.inertial.size());
    c.offset = c.rotor + 1;
    c.viscous = c.offset + 1;
    c.sign = c.viscous + 1;
    c.stribeck = c.sign + signs;
    c.slide = c.stribeck + signs * speeds;
    c.pair = c.slide + static_cast<int>(basis_.slides.size());
    c.effort = c.pair + pairs * (2 + signs);
    c.count = c.effort + static_cast<int>(basis_.delays.size());
    columns_.push_back(c);
    products_.emplace_back(static_cast<std::size_t>(sampling_.parts),
                           MatrixX<double>::Zero(c.count, c.count));
    samples_.emplace_back(static_cast<std::size_t>(sampling_.parts), 0.0);
  }
}

std::vector<MatrixX<double>> Equations::evaluated(const Recording& recording, const Stretch& raw,
                                                  const Stretch& smooth, int every) const {
  const Index n = smooth.samples();
  std::vector<MatrixX<double>> all;
  for (const JointColumns& c : columns_) all.emplace_back(n, c.count);
  Dynamics<double> robot(model_);
  if (!basis_.gravity) (void)robot.set_gravity(Vec3<double>::Zero());
  Eigen::MatrixXd Y(model_.nv, inertial_columns_);
  MatrixX<double> bent = MatrixX<double>::Zero(joints(), static_cast<Index>(basis_.slides.size()));
  for (Index i = 0; i < n; ++i) {
    const Status status = robot.regressor().matrix(
        smooth.q.row(i).transpose(), smooth.v.row(i).transpose(), smooth.a.row(i).transpose(), Y);
    if (status != Status::ok)
      throw LogError(recording.source, std::string("the regressor is ") + to_string(status),
                     "check the positions for huge values");
    for (int j = 0; j < joints(); ++j) {
      const JointColumns& c = columns(j);
      MatrixX<double>& row = all[static_cast<std::size_t>(j)];
      const double v = smooth.v(i, j);
      for (int k = 0; k < c.rotor; ++k) row(i, k) = Y(j, c.inertial[static_cast<std::size_t>(k)]);
      row(i, c.rotor) = smooth.a(i, j);
      row(i, c.offset) = 1.0;
      row(i, c.viscous) = v;
      int s = c.sign;
      int st = c.stribeck;
      for (const double transition : basis_.transitions) {
        const double sign = smooth_sign(v, transition);
        row(i, s++) = sign;
        for (const double v_s : basis_.stribeck)
          row(i, st++) = sign * std::exp(-v * v / (v_s * v_s));
      }
      const double way = i > 0 ? smooth.q(i, j) - smooth.q(i - 1, j) : 0.0;
      for (std::size_t k = 0; k < basis_.slides.size(); ++k) {
        double& z = bent(j, static_cast<Index>(k));
        const double end = way > 0.0 ? 1.0 : -1.0;
        z = end + (z - end) * std::exp(-std::abs(way) / basis_.slides[k]);
        row(i, c.slide + static_cast<Index>(k)) = z;
      }
      int p = c.pair;
      for (const MotorPair& pair : basis_.pairs) {
        const bool in = j == pair.first || j == pair.second;
        const double lever = j == pair.first ? 1.0 : pair.sign;
        const auto motor = [&](const MatrixX<double>& x) {
          return x(i, pair.first) + pair.sign * x(i, pair.second);
        };
        row(i, p++) = in ? lever * motor(smooth.a) : 0.0;
        row(i, p++) = in ? lever * motor(smooth.v) : 0.0;
        for (const double transition : basis_.transitions)
          row(i, p++) = in ? lever * smooth_sign(motor(smooth.v), transition) : 0.0;
      }
    }
  }
  // The efforts that belong to those positions, by delay.
  const double rate = 1.0 / recording.period;
  MatrixX<double> tau = raw.tau;
  LowPass(smoothing_width * sampling_.cutoff, rate).apply(tau);
  std::vector<double> grid(static_cast<std::size_t>(tau.rows()));
  for (std::size_t k = 0; k < grid.size(); ++k) grid[k] = static_cast<double>(k) * recording.period;
  for (std::size_t d = 0; d < basis_.delays.size(); ++d) {
    std::vector<double> wanted(static_cast<std::size_t>(n));
    for (std::size_t k = 0; k < wanted.size(); ++k)
      wanted[k] = static_cast<double>(k) * every * recording.period + basis_.delays[d];
    const MatrixX<double> later = interpolated(grid, tau, wanted);
    for (int j = 0; j < joints(); ++j)
      all[static_cast<std::size_t>(j)].col(columns(j).effort + static_cast<Index>(d)) =
          later.col(j);
  }
  const LowPass low_pass(sampling_.cutoff, rate / every);
  for (MatrixX<double>& columns : all) low_pass.apply(columns);
  return all;
}

void Equations::add(const Recording& recording, const EffortScale& scale,
                    const VectorX<double>& rest_speed, int part, int count) {
  const double rate = 1.0 / recording.period;
  const int every = std::max(1, static_cast<int>(rate / (10.0 * sampling_.cutoff)));
  const double rate_kept = rate / every;
  redundancy_ = std::max(1.0, rate_kept / (2.0 * sampling_.cutoff));
  const auto edge = static_cast<Index>(rate_kept / sampling_.cutoff);
  const auto long_rest = static_cast<Index>(0.5 * rate_kept);
  // The parts are alike in how much moves in them, however long the robot rests.
  std::vector<Stretch> smoothed;
  const auto moves = [&](const Stretch& s, Index i) {
    return (s.v.row(i).cwiseAbs().transpose().array() >= rest_speed.array()).any();
  };
  Index all = 1;
  for (const Stretch& raw : recording.stretches) {
    smoothed.push_back(
        differentiated(raw, recording.period, smoothing_width * sampling_.cutoff, every));
    for (Index i = 0; i < smoothed.back().samples(); ++i) all += moves(smoothed.back(), i) ? 1 : 0;
  }
  Index before = 0;
  for (std::size_t number = 0; number < smoothed.size(); ++number) {
    const Stretch& raw = recording.stretches[number];
    const Stretch& smooth = smoothed[number];
    const Index n = smooth.samples();
    std::vector<Index> moved(static_cast<std::size_t>(n));  // samples until then
    for (Index i = 0; i < n; ++i) {
      moved[static_cast<std::size_t>(i)] = before;
      before += moves(smooth, i) ? 1 : 0;
    }
    if (n < 4 * edge + 4) continue;
    const std::vector<MatrixX<double>> rows = evaluated(recording, raw, smooth, every);
    for (int j = 0; j < joints(); ++j) {
      if (!scale.used(j) || !recording.has_effort[static_cast<std::size_t>(j)]) continue;
      const JointColumns& c = columns(j);
      // Which samples count, by part.
      std::vector<std::vector<Index>> counted(static_cast<std::size_t>(sampling_.parts));
      Index still = long_rest;
      std::vector<bool> resting(static_cast<std::size_t>(n), false);
      for (Index i = 0; i < n; ++i) {
        still = std::abs(smooth.v(i, j)) < rest_speed[j] ? still + 1 : 0;
        if (still == long_rest)
          for (Index k = std::max<Index>(0, i - long_rest + 1); k < i; ++k)
            resting[static_cast<std::size_t>(k)] = true;
        resting[static_cast<std::size_t>(i)] = still >= long_rest;
      }
      for (Index i = edge; i < n - edge; ++i) {
        const bool near_rest = resting[static_cast<std::size_t>(i - edge / 2)] ||
                               resting[static_cast<std::size_t>(i)] ||
                               resting[static_cast<std::size_t>(i + edge / 2)];
        if (near_rest) continue;
        const auto p = static_cast<std::size_t>(
            part + std::min<Index>(moved[static_cast<std::size_t>(i)] * count / all, count - 1));
        counted[p].push_back(i);
      }
      for (std::size_t p = 0; p < counted.size(); ++p) {
        if (counted[p].empty()) continue;
        MatrixX<double> X(static_cast<Index>(counted[p].size()), c.count);
        for (std::size_t k = 0; k < counted[p].size(); ++k)
          X.row(static_cast<Index>(k)) = rows[static_cast<std::size_t>(j)].row(counted[p][k]);
        X.rightCols(c.count - c.effort) *= scale.factor[static_cast<std::size_t>(j)];
        MatrixX<double>& G = products_[static_cast<std::size_t>(j)][p];
        G.noalias() += X.transpose() * X;
        samples_[static_cast<std::size_t>(j)][p] += static_cast<double>(counted[p].size());
      }
    }
  }
}

void Equations::scale_effort(int joint, double factor) {
  const JointColumns& c = columns(joint);
  const int efforts = c.count - c.effort;
  for (MatrixX<double>& G : products_[static_cast<std::size_t>(joint)]) {
    G.rightCols(efforts) *= factor;
    G.bottomRows(efforts) *= factor;
  }
}

}  // namespace dynamics_core::identification
