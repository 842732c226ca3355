// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The simulations of the papers, as experiments that tests check and a program prints as tables.

#include <Eigen/LU>
#include <cmath>
#include <stdexcept>
#include <string>

#include "dynamics_core/load.hpp"
#include "dynamics_core/simulation/integrators.hpp"
#include "dynamics_core/trajectory.hpp"

namespace support {

using dynamics_core::Dynamics;
using dynamics_core::Method;
using dynamics_core::Model;
using dynamics_core::Status;
using dynamics_core::simulation::Options;
using dynamics_core::simulation::Result;
using dynamics_core::simulation::State;
using Eigen::VectorXd;

void require(Status status);

Model paper_robot(const std::string& name);

// --- Saha 1999 and 2001 --------------------------------------------------------------------------

/// A robot and the cycloid (Saha 2001, Eq. 18) it has to follow in ten seconds.
struct Experiment {
  Experiment(Model robot, const VectorXd& from, const VectorXd& to)
      : model(std::move(robot)), path(from, to, duration), start(from) {}

  [[nodiscard]] VectorXd desired(double t) const;
  /// The efforts that the path takes, by Newton and Euler.
  void efforts(Dynamics<double>& dynamics, double t, Eigen::Ref<VectorXd> tau) const;
  [[nodiscard]] State at_rest() const { return {0.0, start, VectorXd::Zero(model.nv)}; }

  static constexpr double duration = 10.0;
  Model model;
  dynamics_core::trajectory::Cycloid<double> path;
  VectorXd start;
};

Experiment planar_experiment();

/// θ₂ from 90° and the others from 0 to 60°, the slide to 0.1 m (Saha 1999, §6.2; 2001, §4).
Experiment stanford_experiment(int year = 2001);

/// The two readings of the PUMA's Table II(ii): its moments of inertia as they are printed, some of
/// them negative, and with those minus signs taken for errors of the print.
enum class PumaMoments { as_printed, positive };

std::string puma_name(PumaMoments moments);

/// All joints from 0 to π (Saha 2001, §4).
Experiment puma_experiment(PumaMoments moments);

/// When a quantity first passes a threshold; linear between samples.
class Crossing {
 public:
  explicit Crossing(double threshold) : threshold_(threshold) {}
  void sample(double t, double x) {
    if (std::isnan(time_) && started_ && (x_ < threshold_) != (x < threshold_))
      time_ = t_ + (t - t_) * (threshold_ - x_) / (x - x_);
    started_ = true;
    t_ = t;
    x_ = x;
  }
  [[nodiscard]] bool happened() const { return !std::isnan(time_); }
  [[nodiscard]] double time() const { return time_; }  ///< NaN: never

 private:
  double threshold_;
  double time_ = std::nan("");
  double t_ = 0.0, x_ = 0.0;
  bool started_ = false;
};

struct Forced {
  Result result;
  double leaves_hundredth;  ///< s, when a joint is 0.01 rad or m off the path; NaN: never
  double leaves_tenth;      ///< s, the same for 0.1
  double worst;             ///< largest error that was seen
};

/// The efforts of the path, as a function of time alone, drive the robot from the path's start:
/// open loop, so that every error grows as the motion is unstable.
Forced forced_simulation(const Experiment& experiment, Options options,
                         Method method = Method::udut);

/// The Stanford arm in free fall. `coriolis` scales the forces from products of the slide's
/// velocity with other velocities: one is mechanics, less asks what a program without them shows.
struct FreeFall {
  Result result;
  double joint2_zero;  ///< s, NaN: never
  double slide_there;  ///< m
};

FreeFall stanford_free_fall(const Experiment& experiment, const Options& options,
                            double coriolis = 1.0, Method method = Method::udut);

/// The PUMA in free fall.
struct PumaFall {
  Result result;
  double turns_back;  ///< s, the last sample before joint 2 turns the other way; NaN: never
  double farthest;    ///< rad, joint 2 there
  double energy;      ///< J, the largest change of the total energy that was seen
};

PumaFall puma_free_fall(const Experiment& experiment, const Options& options,
                        Method method = Method::udut);

// --- Mata et al. 2002, §5.2 ----------------------------------------------------------------------

/// A tool that moves on a straight line at constant speed without turning, and the joints' motion
/// by inverse kinematics.
class StraightLine {
 public:
  StraightLine(const Model& model, int link);

  static constexpr double duration = 5.0;  ///< s

  [[nodiscard]] Eigen::Vector3d point(double t) const { return from_ + (t / duration) * way(); }
  [[nodiscard]] const Eigen::Matrix3d& attitude() const { return attitude_; }

  /// Newton's method from the last solution, or from the guess.
  void evaluate(double t, VectorXd& q, VectorXd& v, VectorXd& a);

 private:
  [[nodiscard]] Eigen::Vector3d way() const { return to_ - from_; }

  Dynamics<double> dynamics_;
  int link_;
  Eigen::MatrixXd J_;
  Eigen::Matrix3d attitude_;
  VectorXd guess_;
  Eigen::Vector3d from_{0.50, 0.00, 0.05};
  Eigen::Vector3d to_{0.62, 0.30, 0.11};
};

/// The PUMA 560 without its motors, as in the paper's equations.
Model puma560_links();

struct LineSimulation {
  Result result;
  VectorXd q_error, v_error, a_error;  ///< averages over the samples, by joint
};

/// Inverse kinematics → inverse dynamics → forward dynamics → integration, sampled every 0.1 s.
LineSimulation line_simulation(const Model& model, Options options, Method method);

}  // namespace support
