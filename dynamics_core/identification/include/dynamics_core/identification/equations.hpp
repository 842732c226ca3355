// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The identification's linear equations. With the inertial parameters π (regressor.hpp), the
/// effort of joint j at every sample is
///
///     τ_j = Y_j π + I_j a_j + o_j + k_j v_j + c_j s(v_j) + (b_j − c_j) s(v_j) exp(−(v_j/v_s)²) + …
///
/// with rotor inertia I, offset o, viscous and Coulomb friction k and c, and Stribeck's (b; see
/// friction.hpp). All columns and all efforts pass the same low-pass filter. What is kept of the
/// samples are the products of all columns with each other, by joint and by part of the log: every
/// fit to any of the parts and its error on any other follow from those.

#include <vector>

#include "dynamics_core/identification/samples.hpp"
#include "dynamics_core/model.hpp"

namespace dynamics_core::identification {

/// Two motors, of which one turns with a_1 q̇_1 + a_2 q̇_2: `sign` is a_2/a_1, and both joints feel
/// its inertia and friction.
struct MotorPair {
  int first = 0, second = 0;  ///< degrees of freedom
  double sign = 1.0;
};

/// What the columns are.
struct Basis {
  std::vector<double> transitions;  ///< rad/s: ε of s(v) = v/√(v² + ε²)
  std::vector<double> slides;       ///< rad: c/σ of friction with memory, see friction.hpp
  std::vector<double> stribeck;     ///< rad/s: v_s
  std::vector<MotorPair> pairs;
  std::vector<double> delays = {0.0};  ///< s, by which the efforts come later than the positions
  bool gravity = true;                 ///< false: the hardware subtracts it from the efforts
};

/// How the samples are filtered and shared out.
struct Sampling {
  double cutoff = 5.0;  ///< Hz, of efforts and columns alike
  int parts = 1;        ///< in which the samples are summed
};

/// The columns of one joint's equation, in their order.
struct JointColumns {
  std::vector<int> inertial;  ///< columns of the regressor that are not always zero
  int rotor = 0, offset = 0, viscous = 0;
  int sign = 0;      ///< the first of those by transition
  int stribeck = 0;  ///< the first of those by transition and, within, by v_s
  int slide = 0;     ///< the first of z σ/c, by slide
  int pair = 0;      ///< the first of those by pair: acceleration, velocity, signs by transition
  int effort = 0;    ///< the first of those by delay
  int count = 0;
};

class Equations {
 public:
  /// The model has to outlive this.
  Equations(const Model& model, Basis basis, const Sampling& sampling);

  /// Adds a recording's samples to `count` parts from `part` on, one after another in time and alike
  /// in how long something moves in them. The samples of a joint that stands still for long are
  /// left out, as stiction may be anything there.
  void add(const Recording& recording, const EffortScale& scale, const VectorX<double>& rest_speed,
           int part, int count);

  [[nodiscard]] const Basis& basis() const noexcept { return basis_; }
  [[nodiscard]] int joints() const noexcept { return static_cast<int>(columns_.size()); }
  [[nodiscard]] int inertial_columns() const noexcept { return inertial_columns_; }
  [[nodiscard]] const JointColumns& columns(int joint) const {
    return columns_[static_cast<std::size_t>(joint)];
  }
  /// The sum of products over a part.
  [[nodiscard]] const MatrixX<double>& products(int joint, int part) const {
    return products_[static_cast<std::size_t>(joint)][static_cast<std::size_t>(part)];
  }
  [[nodiscard]] double samples(int joint, int part) const {
    return samples_[static_cast<std::size_t>(joint)][static_cast<std::size_t>(part)];
  }
  /// How many samples tell as much as one that is independent of all others.
  [[nodiscard]] double redundancy() const noexcept { return redundancy_; }
  /// Multiplies a joint's efforts.
  void scale_effort(int joint, double factor);

 private:
  [[nodiscard]] std::vector<MatrixX<double>> evaluated(const Recording& recording,
                                                       const Stretch& raw, const Stretch& smooth,
                                                       int every) const;

  const Model& model_;
  Basis basis_;
  Sampling sampling_;
  int inertial_columns_ = 0;
  double redundancy_ = 1.0;
  std::vector<JointColumns> columns_;
  std::vector<std::vector<MatrixX<double>>> products_;  ///< by joint and part
  std::vector<std::vector<double>> samples_;
};

/// How many times the cut-off frequency positions and efforts keep before they enter the columns.
inline constexpr double smoothing_width = 3.0;

}  // namespace dynamics_core::identification
