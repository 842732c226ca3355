// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A log made fit for computing: wild values removed, a clock chosen, gaps cut out, evenly spaced,
/// filtered without phase, differentiated.

#include <map>
#include <string>
#include <vector>

#include "dynamics_core/identification/log.hpp"
#include "dynamics_core/model.hpp"

namespace dynamics_core::identification {

/// How a log's numbers become efforts at the joints in the URDF's sign. By joint of the model.
struct EffortScale {
  std::vector<double> factor;  ///< N·m for one of the log's units; 0: this joint's are not used

  [[nodiscard]] bool used(int joint) const {
    return factor[static_cast<std::size_t>(joint)] != 0.0;
  }
};

/// An evenly spaced part of a log without gaps. A sample a row, a degree of freedom a column.
struct Stretch {
  double start = 0.0;  ///< s, on the log's clock
  MatrixX<double> q, v, a;
  MatrixX<double> tau;  ///< in the log's own units

  [[nodiscard]] Eigen::Index samples() const noexcept { return q.rows(); }
};

/// The cleaned log.
struct Recording {
  std::string source;
  double period = 0.0;        ///< s, of the stretches
  std::vector<double> clock;  ///< s, by row of the log
  std::vector<int> stretch;   ///< by row of the log
  MatrixX<double> tau;        ///< by row of the log, wild values replaced; in the log's own units
  std::vector<bool> has_effort;  ///< by joint of the model
  std::vector<bool> current;     ///< by joint of the model: the efforts are currents, A
  std::vector<Stretch> stretches;
  std::vector<std::string> notes;  ///< what was done and why, a sentence each
};

/// The joints of the log that the robot has, in the log's order. Throws LogError where there are
/// none.
[[nodiscard]] std::vector<std::string> joints_of(const Log& log, const RobotDescription& robot);

/// Refuses the efforts of drives that are off and those that no drive gives, of the joints that are
/// `used`. Throws LogError.
void check_efforts(const Model& model, const std::vector<Recording>& recordings,
                   const std::vector<bool>& used);

/// Cleans a log. `rate` is that of logs without stamps, Hz; 0: not given. All joints of the model
/// have to have one degree of freedom. The stretches have positions and efforts only, unfiltered.
/// Throws LogError.
[[nodiscard]] Recording cleaned(const Log& log, const Model& model, double rate = 0.0);

/// The stretch with positions and efforts low-passed, velocities and accelerations, each
/// `every`-th sample.
[[nodiscard]] Stretch differentiated(const Stretch& raw, double period, double cutoff, int every);

/// The frequency, Hz, below which most of the motion is: 95 % of the velocities' energy.
[[nodiscard]] double bandwidth(const Recording& recording);

/// rad/s or m/s, by joint: slower is standing still.
[[nodiscard]] VectorX<double> rest_speed(const std::vector<Recording>& recordings);

}  // namespace dynamics_core::identification
