// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What an identification knows of a robot beyond its URDF, and the efforts that follow from both.

#include <map>
#include <string>
#include <vector>

#include "dynamics_core/friction.hpp"
#include "dynamics_core/identification/samples.hpp"
#include "dynamics_core/model.hpp"

namespace dynamics_core::identification {

/// Of one joint.
struct Drive {
  double factor = 1.0;  ///< N·m for one of the log's units, with the sign; 0: nothing is known
  JointFriction<double> friction;
  double rotor = 0.0;   ///< kg·m², reflected
  double offset = 0.0;  ///< N·m, of the effort reported
  double delay = 0.0;   ///< s, by which the log's efforts come later than its positions
  double noise = 0.0;   ///< N·m, standard deviation of what the model does not explain
};

/// A motor that turns with q̇ of `first` + sign · q̇ of `second`, besides their own.
struct SharedMotor {
  int first = 0, second = 0;  ///< degrees of freedom
  double sign = 1.0;
  JointFriction<double> friction;
  double rotor = 0.0;  ///< kg·m², reflected
};

struct Drives {
  std::vector<Drive> joints;  ///< by degree of freedom
  std::vector<SharedMotor> shared;
  double cutoff = 5.0;  ///< Hz, of what was compared
  bool gravity = true;  ///< false: the hardware leaves gravity's share out of the efforts
};

/// The drives as the URDF has them.
[[nodiscard]] Drives nominal_drives(const Model& model);

/// τ of the model at the samples of a stretch, N·m, a sample a row.
[[nodiscard]] MatrixX<double> efforts(const Stretch& stretch, double period, const Model& model,
                                      const Drives& drives);
/// The log's efforts that belong to the positions of `differentiated(raw, …, every)`, N·m.
[[nodiscard]] MatrixX<double> aligned(const Stretch& raw, double period, int every,
                                      const Drives& drives);

/// τ by row of the log, N·m at the joints.
[[nodiscard]] MatrixX<double> predicted(const Recording& recording, const Model& model,
                                        const Drives& drives);
/// The log's efforts by row, N·m at the joints.
[[nodiscard]] MatrixX<double> measured(const Recording& recording, const Drives& drives);

/// RMS of error and signal after the same low-pass on both sides, while the robot moves.
struct Score {
  VectorX<double> error, signal;  ///< by joint, N·m; NaN where there is no effort
  double overall = 0.0;           ///< of all joints together, error over signal
  double seconds = 0.0;           ///< that were counted
};
[[nodiscard]] Score score(const Recording& recording, const Drives& drives,
                          const MatrixX<double>& predicted, double cutoff);

}  // namespace dynamics_core::identification
