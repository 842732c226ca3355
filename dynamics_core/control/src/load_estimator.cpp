// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/control/load_estimator.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "checks.hpp"
#include "dynamics_core/joint_selection.hpp"
#include "dynamics_core/regressor.hpp"

namespace dynamics_core::control {

namespace {

/// The parameters of a load about a body's origin in its axes, from those about a link's.
[[nodiscard]] Eigen::Matrix<double, 10, 1> in_body_axes(const Pose<double>& X_BL,
                                                        const Eigen::Matrix<double, 10, 1>& pi) {
  const Symmetric3<double> I{pi[4], pi[5], pi[6], pi[7], pi[8], pi[9]};
  const Eigen::Matrix3d turned = X_BL.R * I.matrix() * X_BL.R.transpose();
  const RigidInertia<double> about_link{
      pi[0],
      X_BL.R * Eigen::Vector3d(pi.segment<3>(1)),
      {turned(0, 0), turned(0, 1), turned(0, 2), turned(1, 1), turned(1, 2), turned(2, 2)}};
  const RigidInertia<double> B = shift<double>(about_link, X_BL.p);
  Eigen::Matrix<double, 10, 1> out;
  out << B.m, B.h, B.I.xx, B.I.xy, B.I.xz, B.I.yy, B.I.yz, B.I.zz;
  return out;
}

/// Where the regressor has a body's ten columns: bodies without links have none.
[[nodiscard]] int column_of(const Model& model, int body) {
  int column = 0;
  for (int i = 0; i < body; ++i)
    if (std::any_of(model.links.begin(), model.links.end(),
                    [i](const LinkInfo& link) { return link.body == i; }))
      column += 10;
  return column;
}

[[nodiscard]] int link_of(const Model& model, const std::string& link) {
  const std::string name =
      link.empty() ? model.links[static_cast<std::size_t>(tip_link(model))].name : link;
  return checked_payload(model, name, {0.0, Vec3<double>::Zero(), Symmetric3<double>::zero()});
}

[[nodiscard]] LoadEstimatorConfig checked(const Model& model,
                                          const std::vector<std::string>& joints,
                                          LoadEstimatorConfig config) {
  if (config.noise.empty())
    for (const std::string& name : joints) {
      const double limit =
          model.joints[static_cast<std::size_t>(model.find_joint(name))].limits.effort;
      config.noise.push_back(std::isfinite(limit) && limit > 0.0 ? 0.01 * limit : 1.0);
    }
  expand("noise", config.noise, joints.size());
  for (std::size_t j = 0; j < joints.size(); ++j)
    require(above_zero(config.noise[j]), "noise." + joints[j], config.noise[j],
            "give an effort above zero");
  const auto positive = [](const char* name, double x, const char* remedy) {
    require(above_zero(x), name, x, remedy);
  };
  positive("cutoff", config.cutoff, "give a frequency above zero");
  positive("correlation_time", config.correlation_time, "give a time above zero");
  positive("stiction_velocity", config.stiction_velocity, "give a speed above zero");
  positive("typical_mass", config.typical_mass, "give a mass above zero");
  positive("typical_radius", config.typical_radius, "give a length above zero");
  require(config.memory > 0.0, "memory", config.memory,
          "give a time above zero; infinity: for ever");
  return config;
}

/// The principal moments of a body are above zero, and none exceeds the sum of the others.
[[nodiscard]] bool is_that_of_a_body(const Symmetric3<double>& inertia) noexcept {
  const Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d> solver(inertia.matrix(),
                                                              Eigen::EigenvaluesOnly);
  const Eigen::Vector3d& moments = solver.eigenvalues();
  return solver.info() == Eigen::Success && moments[0] > 0.0 &&
         moments[2] <= moments[0] + moments[1];
}

}  // namespace

Payload<double> payload(const LoadEstimate& estimate) noexcept {
  if (!(estimate.mass > 0.0)) return {0.0, Vec3<double>::Zero(), Symmetric3<double>::zero()};
  const Symmetric3<double>& I = estimate.inertia;
  const bool known = std::min({I.xx, I.yy, I.zz}) > estimate.inertia_deviation;
  return {estimate.mass, estimate.com,
          known && is_that_of_a_body(I) ? I : Symmetric3<double>::zero()};
}

LoadEstimator::LoadEstimator(const Model& model, const LoadEstimatorConfig& config)
    : balance_(model, config),
      config_(checked(model, balance_.config().joints, config)),
      link_(link_of(model, config.link)),
      column_(column_of(model, model.links[static_cast<std::size_t>(link_)].body)),
      regressor_(
          MatrixX<double>::Zero(model.nv, balance_.robot().dynamics().regressor().columns())),
      Y_(Rows::Zero(balance_.size(), parameters)),
      filtered_Y_(Y_),
      filtered_d_(VectorX<double>::Zero(balance_.size())),
      filtered_stiction_(filtered_d_) {
  const Pose<double>& X_BL = model.links[static_cast<std::size_t>(link_)].X_BL;
  for (int k = 0; k < parameters; ++k)
    link_to_body_.col(k) = in_body_axes(X_BL, Parameters::Unit(k));
  const double m = config_.typical_mass;
  const double r = config_.typical_radius;
  scale_ << m, m * r, m * r, m * r, m * r * r, m * r * r, m * r * r, m * r * r, m * r * r,
      m * r * r;
  restart();
}

void LoadEstimator::restart_filters() noexcept {
  balance_.restart();
  filtered_Y_.setZero();
  filtered_d_.setZero();
  filtered_stiction_.setZero();
}

void LoadEstimator::restart() noexcept {
  restart_filters();
  A_.setZero();
  b_.setZero();
  squares_ = count_ = time_ = 0.0;
}

Status LoadEstimator::set_gravity(const Eigen::Vector3d& gravity) noexcept {
  if (!gravity.allFinite()) return Status::not_finite;
  return balance_.robot().dynamics().set_gravity(gravity);
}

Status LoadEstimator::set_payload(int link, const Payload<double>& payload) noexcept {
  return balance_.robot().dynamics().set_payload(link, payload);
}

Status LoadEstimator::update(const JointSample& sample, double dt) noexcept {
  Status status = balance_.advance(sample, dt);
  if (status == Status::ok && balance_.complete()) {
    status = filter(dt);
    if (status == Status::ok) status = sum_up(dt);
  }
  if (status != Status::ok) restart_filters();
  return status;
}

/// (1)
Status LoadEstimator::filter(double dt) noexcept {
  CommandedRobot& robot = balance_.robot();
  const Status status = robot.dynamics().regressor().matrix(
      robot.model_position(), robot.model_velocity(), robot.model_acceleration(), regressor_);
  if (status != Status::ok) return status;
  const double share = filter_share(config_.cutoff, dt);
  for (Eigen::Index j = 0; j < Y_.rows(); ++j) {
    const Eigen::Index dof = robot.dofs()[static_cast<std::size_t>(j)];
    const Eigen::Matrix<double, 1, parameters> in_body =
        regressor_.block<1, parameters>(dof, column_);
    const Eigen::Matrix<double, 1, parameters> y = in_body * link_to_body_;
    for (int k = 0; k < parameters; ++k)
      filtered_Y_(j, k) = without_dust(filtered_Y_(j, k) + share * (y[k] - filtered_Y_(j, k)));
    filtered_d_[j] =
        without_dust(filtered_d_[j] + share * (-balance_.external_effort()[j] - filtered_d_[j]));
    const double stiction = balance_.stiction(j, config_.stiction_velocity);
    filtered_stiction_[j] =
        without_dust(filtered_stiction_[j] + share * (stiction - filtered_stiction_[j]));
  }
  // What the sums are made of: nothing that overflows may spoil what has been measured.
  const double squares =
      filtered_Y_.squaredNorm() + filtered_d_.squaredNorm() + filtered_stiction_.squaredNorm();
  return std::isfinite(squares) ? Status::ok : Status::not_finite;
}

/// (2)
Status LoadEstimator::sum_up(double dt) noexcept {
  const double kept = std::exp(-dt / config_.memory);
  A_ *= kept;
  b_ *= kept;
  squares_ *= kept;
  count_ *= kept;
  for (Eigen::Index j = 0; j < filtered_Y_.rows(); ++j) {
    const double noise = config_.noise[static_cast<std::size_t>(j)];
    const double weight = dt / (config_.correlation_time *
                                (noise * noise + filtered_stiction_[j] * filtered_stiction_[j]));
    const Parameters y = filtered_Y_.row(j).transpose().cwiseProduct(scale_);
    A_ += weight * y * y.transpose();
    b_ += weight * filtered_d_[j] * y;
    squares_ += weight * filtered_d_[j] * filtered_d_[j];
    count_ += dt / config_.correlation_time;
  }
  time_ += dt;
  if (A_.allFinite() && b_.allFinite() && std::isfinite(squares_)) return Status::ok;
  restart();
  return Status::not_finite;
}

/// (3), both in units of D.
bool LoadEstimator::solve(Parameters& pi, Square& P) const noexcept {
  const Square information = A_ + Square::Identity();
  const Eigen::LDLT<Square> factors(information);
  if (factors.info() != Eigen::Success) return false;
  pi = factors.solve(b_);
  const double squares = squares_ - 2.0 * b_.dot(pi) + pi.dot(A_ * pi);
  P = std::max(1.0, squares / count_) * factors.solve(Square::Identity());
  return pi.allFinite() && P.allFinite();
}

Status LoadEstimator::estimate(LoadEstimate& out) const noexcept {
  out = LoadEstimate{};
  if (!(time_ > 0.0)) return Status::out_of_range;
  Parameters pi;
  Square P;
  if (!solve(pi, P)) return Status::not_finite;
  pi = pi.cwiseProduct(scale_).eval();
  P = (scale_.asDiagonal() * P * scale_.asDiagonal()).eval();
  out.time = time_;
  out.mass = pi[0];
  out.mass_deviation = std::sqrt(std::max(P(0, 0), 0.0));
  for (int k = 4; k < parameters; ++k)
    out.inertia_deviation = std::max(out.inertia_deviation, std::sqrt(std::max(P(k, k), 0.0)));
  if (!(out.mass > 0.0)) return Status::ok;
  const RigidInertia<double> about_link{
      pi[0], pi.segment<3>(1), {pi[4], pi[5], pi[6], pi[7], pi[8], pi[9]}};
  out.com = about_link.h / out.mass;
  for (int k = 0; k < 3; ++k) {  // c = h/m: dc = (dh − c dm)/m
    const double c = out.com[k];
    const double variance = P(1 + k, 1 + k) - 2.0 * c * P(0, 1 + k) + c * c * P(0, 0);
    out.com_deviation[k] = std::sqrt(std::max(variance, 0.0)) / out.mass;
  }
  // Seen from the centre of mass, the link's origin is at −c; m r² counts back towards the centre.
  const double m = out.mass;
  const Eigen::Vector3d c = out.com;
  const Symmetric3<double>& I = about_link.I;
  out.inertia = {I.xx - m * (c[1] * c[1] + c[2] * c[2]),
                 I.xy + m * c[0] * c[1],
                 I.xz + m * c[0] * c[2],
                 I.yy - m * (c[0] * c[0] + c[2] * c[2]),
                 I.yz + m * c[1] * c[2],
                 I.zz - m * (c[0] * c[0] + c[1] * c[1])};
  const bool finite = out.com.allFinite() && out.com_deviation.allFinite() &&
                      out.inertia.matrix().allFinite() && std::isfinite(out.inertia_deviation);
  if (!finite) out = LoadEstimate{};
  return finite ? Status::ok : Status::not_finite;
}

}  // namespace dynamics_core::control
