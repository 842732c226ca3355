// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Motions from which a robot's parameters can be told.
///
///     q(t) = q_0 + s(t) Σ_k [a_k sin(2π k t/T) + b_k cos(2π k t/T)],
///
/// a finite Fourier series (Swevers, Ganseman, Tükel, de Schutter and van Brussel, "Optimal robot
/// excitation and identification", IEEE Trans. Robotics and Automation 13(5), 1997) that a ramp s
/// starts and ends at rest in the pose q_0.

#include <functional>

#include "dynamics_core/model.hpp"
#include "dynamics_core/scalar.hpp"

namespace dynamics_core::identification {

struct ExcitationOptions {
  double duration = 30.0;  ///< s
  double ramp = 2.0;       ///< s, at either end
  int harmonics = 5;
  double period = 10.0;        ///< T, s
  double share = 0.8;          ///< of the limits of position range, velocity and effort
  double acceleration = 10.0;  ///< rad/s² or m/s², the largest
  double step = 0.01;          ///< s, between the samples that the motion is written at
  int tries = 300;
  unsigned seed = 1;
  std::function<void(double share, double condition)> progress;
};

struct Excitation {
  double duration = 0.0, ramp = 0.0, period = 1.0;
  VectorX<double> rest;            ///< q_0
  MatrixX<double> sine, cosine;    ///< a joint a row, a harmonic a column
  double condition = 0.0;          ///< of the base parameters' columns, each in its own size
  std::vector<std::string> still;  ///< joints whose limits leave no motion; they stay at rest

  /// At the time t within 0 and the duration.
  void at(double t, VectorX<double>& q, VectorX<double>& v, VectorX<double>& a) const;
};

/// The best of random series and of changes to them. All joints have to have one degree of freedom.
/// The limits hold at each step and between. Throws ConfigError for options and limits that make no
/// motion.
[[nodiscard]] Excitation excite(const Model& model, const ExcitationOptions& options);

}  // namespace dynamics_core::identification
