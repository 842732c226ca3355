// SPDX-License-Identifier: Apache-2.0
#pragma once

/// From logs to the parameters of a robot.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dynamics_core/identification/equations.hpp"
#include "dynamics_core/identification/robot_model.hpp"
#include "dynamics_core/identification/samples.hpp"

namespace dynamics_core::identification {

enum class EffortContent {
  find_out,
  whole,            ///< all that the drive gives
  without_gravity,  ///< the hardware subtracts gravity before it reports
};

struct IdentifyOptions {
  std::vector<double> gains;  ///< by joint: N·m for one unit of the log; 0: not
                              ///< used; NaN: find out from the URDF's masses
  double cutoff = 0.0;        ///< Hz; 0: from the data
  EffortContent content = EffortContent::find_out;
  std::vector<MotorPair> couplings;  ///< their signs are found out
  bool stribeck = true;              ///< may be part of the friction where it is there
  std::function<void(double share, const char* what)> progress;
};

enum class Candidate { nominal, friction, full };
[[nodiscard]] constexpr const char* to_string(Candidate candidate) noexcept {
  switch (candidate) {
    case Candidate::nominal: return "nominal";
    case Candidate::friction: return "nominal + friction + rotors";
    case Candidate::full: return "full";
  }
  return "unknown candidate";
}

/// How well one of the candidates does where it was not fitted.
struct CandidateScore {
  Candidate candidate = Candidate::nominal;
  double training = 0.0;     ///< RMS error over RMS effort of all joints
  double held_out = 0.0;     ///< the same on the data held out
  VectorX<double> by_joint;  ///< error over effort on the data held out; NaN: no effort
  VectorX<double> error;     ///< RMS on the data held out, N·m
};

/// A parameter that the efforts tell.
struct BaseParameter {
  std::string name;
  double nominal = 0.0, value = 0.0, deviation = 0.0;
};

struct Identification {
  Candidate chosen = Candidate::nominal;
  std::vector<CandidateScore> scores;  ///< of nominal, friction, full
  VectorX<double> pi;                  ///< inertial parameters by body, of the chosen one
  VectorX<double> pi_nominal;
  Drives drives;             ///< of the chosen one
  double weight = 0.0;       ///< λ of the full model
  bool constrained = false;  ///< consistency kept the full model from a better fit
  std::vector<BaseParameter> parameters;
  double condition = 0.0;           ///< of the base parameters' columns, by noise and size
  double bandwidth = 0.0;           ///< Hz, of the motion
  std::vector<std::string> notes;   ///< what was found out, a sentence each
  std::vector<std::string> advice;  ///< what to move for a better identification
};

/// Fits to the recordings; what is held out is the last quarter of each or, where there are such,
/// the recordings `validation`. Throws LogError where that cannot be done.
[[nodiscard]] Identification identify(const Model& model, const std::vector<Recording>& recordings,
                                      const std::vector<Recording>& validation,
                                      const IdentifyOptions& options);

}  // namespace dynamics_core::identification
