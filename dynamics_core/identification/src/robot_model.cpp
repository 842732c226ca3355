// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/identification/robot_model.hpp"

#include <cmath>
#include <limits>

#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/identification/equations.hpp"
#include "dynamics_core/identification/signals.hpp"

namespace dynamics_core::identification {

namespace {
using Eigen::Index;
}  // namespace

Drives nominal_drives(const Model& model) {
  Drives drives;
  const Friction<double> friction(model);
  for (int j = 0; j < model.nv; ++j) {
    Drive drive;
    drive.friction = friction[j];
    const JointInfo& joint = model.joints[static_cast<std::size_t>(j)];
    drive.rotor = joint.rotor_inertia * joint.gear_ratio * joint.gear_ratio;
    drives.joints.push_back(drive);
  }
  return drives;
}

MatrixX<double> efforts(const Stretch& s, double period, const Model& model, const Drives& drives) {
  Dynamics<double> robot(model);
  if (!drives.gravity) (void)robot.set_gravity(Vec3<double>::Zero());
  MatrixX<double> effort(s.samples(), model.nv);
  Eigen::VectorXd row(model.nv);
  std::vector<JointFriction<double>> joints;
  for (const Drive& drive : drives.joints) joints.push_back(drive.friction);
  Friction<double> friction(joints);
  for (Index i = 0; i < s.samples(); ++i) {
    const Status status = robot.inverse_dynamics(s.q.row(i).transpose(), s.v.row(i).transpose(),
                                                 s.a.row(i).transpose(), row);
    if (status != Status::ok) row.setZero();
    friction.advance(s.v.row(i).transpose(), period);
    for (int j = 0; j < model.nv; ++j) {
      const Drive& drive = drives.joints[static_cast<std::size_t>(j)];
      const double rubbing = drive.friction.stiffness > 0.0
                                 ? drive.friction.stiffness * friction.deflection()[j] +
                                       drive.friction.viscous * s.v(i, j)
                                 : drive.friction.effort(s.v(i, j));
      // A rotor of the model's own is in the inverse dynamics already.
      const double rotor = drive.rotor - robot.rotor_inertia(j);
      row[j] += rotor * s.a(i, j) + rubbing + drive.offset;
    }
    for (const SharedMotor& motor : drives.shared) {
      const double v = s.v(i, motor.first) + motor.sign * s.v(i, motor.second);
      const double a = s.a(i, motor.first) + motor.sign * s.a(i, motor.second);
      const double shared = motor.rotor * a + motor.friction.effort(v);
      row[motor.first] += shared;
      row[motor.second] += motor.sign * shared;
    }
    effort.row(i) = row.transpose();
  }
  return effort;
}

MatrixX<double> aligned(const Stretch& raw, double period, int every, const Drives& drives) {
  MatrixX<double> tau = raw.tau;
  LowPass(smoothing_width * drives.cutoff, 1.0 / period).apply(tau);
  std::vector<double> grid(static_cast<std::size_t>(tau.rows()));
  for (std::size_t k = 0; k < grid.size(); ++k) grid[k] = static_cast<double>(k) * period;
  const Index n = (tau.rows() + every - 1) / every;
  MatrixX<double> out(n, tau.cols());
  for (Index j = 0; j < tau.cols(); ++j) {
    const Drive& drive = drives.joints[static_cast<std::size_t>(j)];
    std::vector<double> wanted(static_cast<std::size_t>(n));
    for (std::size_t k = 0; k < wanted.size(); ++k)
      wanted[k] = static_cast<double>(k) * every * period + drive.delay;
    out.col(j) = drive.factor * interpolated(grid, tau.col(j), wanted);
  }
  return out;
}

MatrixX<double> predicted(const Recording& recording, const Model& model, const Drives& drives) {
  const auto n = static_cast<Index>(recording.clock.size());
  MatrixX<double> tau = MatrixX<double>::Zero(n, model.nv);
  for (std::size_t part = 0; part < recording.stretches.size(); ++part) {
    const Stretch s = differentiated(recording.stretches[part], recording.period,
                                     smoothing_width * drives.cutoff, 1);
    const MatrixX<double> effort = efforts(s, recording.period, model, drives);
    std::vector<double> grid(static_cast<std::size_t>(s.samples()));
    for (std::size_t k = 0; k < grid.size(); ++k)
      grid[k] = s.start + static_cast<double>(k) * recording.period;
    std::vector<Index> rows;
    for (Index i = 0; i < n; ++i)
      if (recording.stretch[static_cast<std::size_t>(i)] == static_cast<int>(part))
        rows.push_back(i);
    for (int j = 0; j < model.nv; ++j) {
      std::vector<double> wanted;
      wanted.reserve(rows.size());
      for (const Index i : rows)
        wanted.push_back(recording.clock[static_cast<std::size_t>(i)] -
                         drives.joints[static_cast<std::size_t>(j)].delay);
      const MatrixX<double> values = interpolated(grid, effort.col(j), wanted);
      for (std::size_t k = 0; k < rows.size(); ++k)
        tau(rows[k], j) = values(static_cast<Index>(k), 0);
    }
  }
  return tau;
}

MatrixX<double> measured(const Recording& recording, const Drives& drives) {
  MatrixX<double> tau = recording.tau;
  for (Index j = 0; j < tau.cols(); ++j)
    tau.col(j) *= drives.joints[static_cast<std::size_t>(j)].factor;
  return tau;
}

Score score(const Recording& recording, const Drives& drives, const MatrixX<double>& predicted,
            double cutoff) {
  const MatrixX<double> tau = measured(recording, drives);
  const Index nv = tau.cols();
  const double rate = 1.0 / recording.period;
  const LowPass low_pass(cutoff, rate);
  VectorX<double> errors = VectorX<double>::Zero(nv);
  VectorX<double> signals = errors;
  constexpr double slowest = 3e-3;  // rad/s or m/s: sensors at rest seem to move
  double counted = 0.0;
  for (std::size_t part = 0; part < recording.stretches.size(); ++part) {
    // Both sides at even spacing, by the nearest row.
    std::vector<double> times;
    std::vector<Index> rows;
    for (std::size_t i = 0; i < recording.clock.size(); ++i) {
      if (recording.stretch[i] != static_cast<int>(part)) continue;
      if (!times.empty() && recording.clock[i] <= times.back()) continue;
      times.push_back(recording.clock[i]);
      rows.push_back(static_cast<Index>(i));
    }
    const Stretch smooth = differentiated(recording.stretches[part], recording.period, cutoff, 1);
    const Index n = smooth.samples();
    MatrixX<double> both(static_cast<Index>(rows.size()), 2 * nv);
    for (std::size_t k = 0; k < rows.size(); ++k)
      both.row(static_cast<Index>(k)) << tau.row(rows[k]), predicted.row(rows[k]);
    std::vector<double> grid(static_cast<std::size_t>(n));
    for (std::size_t k = 0; k < grid.size(); ++k)
      grid[k] = smooth.start + static_cast<double>(k) * recording.period;
    MatrixX<double> even = interpolated(times, both, grid);
    low_pass.apply(even);
    const VectorX<double> rest =
        (0.01 * smooth.v.cwiseAbs().colwise().maxCoeff().transpose()).cwiseMax(slowest);
    for (Index i = 0; i < n; ++i) {
      if ((smooth.v.row(i).cwiseAbs().transpose().array() <= rest.array()).all()) continue;
      counted += 1.0;
      for (Index j = 0; j < nv; ++j) {
        signals[j] += even(i, j) * even(i, j);
        errors[j] += std::pow(even(i, j) - even(i, nv + j), 2);
      }
    }
  }
  Score result;
  result.seconds = counted * recording.period;
  double error = 0.0;
  double signal = 0.0;
  for (Index j = 0; j < nv; ++j) {
    const auto k = static_cast<std::size_t>(j);
    if (recording.has_effort[k] && drives.joints[k].factor != 0.0) {
      error += errors[j];
      signal += signals[j];
    } else {
      errors[j] = signals[j] = no_number;
    }
  }
  result.error = (errors / counted).cwiseSqrt();
  result.signal = (signals / counted).cwiseSqrt();
  result.overall = std::sqrt(error / signal);
  return result;
}

}  // namespace dynamics_core::identification
