// SPDX-License-Identifier: Apache-2.0
#include "support/global_analysis.hpp"

#include <Eigen/Dense>

namespace support {

namespace {

Matrix3d skew(const Vector3d& u) {
  Matrix3d A;
  A << 0, -u[2], u[1], u[2], 0, -u[0], -u[1], u[0], 0;
  return A;
}

/// v× on motions, [ω× 0; v× ω×]; on forces it is −(v×)ᵀ.
Matrix6d motion_cross(const Vector6d& V) {
  Matrix6d A = Matrix6d::Zero();
  A.topLeftCorner<3, 3>() = A.bottomRightCorner<3, 3>() = skew(V.head<3>());
  A.bottomLeftCorner<3, 3>() = skew(V.tail<3>());
  return A;
}

}  // namespace

Matrix4d homogeneous(const Matrix3d& R, const Vector3d& p) {
  Matrix4d T = Matrix4d::Identity();
  T.topLeftCorner<3, 3>() = R;
  T.topRightCorner<3, 1>() = p;
  return T;
}

GlobalAnalysis::GlobalAnalysis(const dynamics_core::RobotDescription& description,
                               const dynamics_core::Model& model, bool floating_base)
    : model_(model), gravity_(model.gravity), n_(model.nv) {
  for (const auto& l : description.links) {
    link_index_[l.name] = static_cast<int>(links_.size());
    links_.push_back(l);
  }
  incoming_.resize(links_.size());
  for (const auto& j : description.joints) {
    incoming_[index(j.child)] = j;
    by_name_[j.name] = j;
  }
  if (floating_base) {
    dynamics_core::JointDescription j;
    j.name = "floating_base";
    j.type = dynamics_core::JointType::floating;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (!incoming_[i].child.empty()) continue;
      j.child = links_[i].name;
      incoming_[i] = j;
      break;
    }
  }
  order();
  N_ = static_cast<int>(links_.size());
}

void GlobalAnalysis::set_state(const VectorXd& q, const VectorXd& v) {
  poses_.assign(links_.size(), Matrix4d::Identity());
  H_ = MatrixXd::Zero(6 * N_, n_);
  rotors_ = MatrixXd::Zero(n_, n_);
  for (const int i : order_) place(i, q);
  P_ = MatrixXd::Identity(6 * N_, 6 * N_);
  inertia_ = MatrixXd::Zero(6 * N_, 6 * N_);
  for (int i = 0; i < N_; ++i) {
    if (const int p = parent(i); p >= 0) P_.block<6, 6>(6 * i, 6 * p).diagonal().setConstant(-1.0);
    inertia_.block<6, 6>(6 * i, 6 * i) = spatial_inertia(i);
  }
  const Eigen::PartialPivLU<MatrixXd> P(P_);
  S_ = P.solve(H_);  // S = P⁻¹ H
  V_ = S_ * v;
  VectorXd Hd_v = VectorXd::Zero(6 * N_);
  for (int i = 0; i < N_; ++i) Hd_v.segment<6>(6 * i) = axis_rates(i, v);
  a0_ = P.solve(Hd_v);
}

MatrixXd GlobalAnalysis::mass_matrix() const { return S_.transpose() * inertia_ * S_ + rotors_; }

VectorXd GlobalAnalysis::inverse_dynamics(const VectorXd& qdd) const {
  VectorXd A = S_ * qdd + a0_;
  for (int i = 0; i < N_; ++i) A.segment<3>(6 * i + 3) -= gravity_;
  VectorXd F = inertia_ * A;
  for (int i = 0; i < N_; ++i) {
    const Vector6d V = V_.segment<6>(6 * i);
    F.segment<6>(6 * i) -= motion_cross(V).transpose() * inertia_.block<6, 6>(6 * i, 6 * i) * V;
  }
  return S_.transpose() * F + rotors_ * qdd;
}

MatrixXd GlobalAnalysis::jacobian(int link) const {
  return at_origin(link) * S_.middleRows<6>(6 * link);
}

Vector6d GlobalAnalysis::bias_acceleration(int link) const {
  const Vector6d V = at_origin(link) * V_.segment<6>(6 * link);
  Vector6d A = at_origin(link) * a0_.segment<6>(6 * link);
  A.tail<3>() += V.head<3>().cross(V.tail<3>());
  return A;
}

double GlobalAnalysis::kinetic_energy(const VectorXd& v) const {
  return 0.5 * v.dot(mass_matrix() * v);
}

Eigen::Vector4d GlobalAnalysis::first_moment() const {
  Eigen::Vector4d sum = Eigen::Vector4d::Zero();
  for (int i = 0; i < N_; ++i) {
    if (S_.middleRows<6>(6 * i).isZero(0.0) || !link(i).inertial) continue;
    const auto& I = *link(i).inertial;
    sum += I.mass * (pose(i) * I.com.homogeneous());
  }
  return sum;
}

void GlobalAnalysis::order() {
  std::vector<bool> done(links_.size(), false);
  while (order_.size() < links_.size()) {
    for (int i = 0; i < static_cast<int>(links_.size()); ++i) {
      const int p = parent(i);
      if (done[static_cast<std::size_t>(i)] || (p >= 0 && !done[static_cast<std::size_t>(p)]))
        continue;
      done[static_cast<std::size_t>(i)] = true;
      order_.push_back(i);
    }
  }
}

GlobalAnalysis::Coordinate GlobalAnalysis::coordinate(
    const dynamics_core::JointDescription& j) const {
  if (j.mimic) {
    Coordinate c = coordinate(by_name_.at(j.mimic->joint));
    c.offset = j.mimic->multiplier * c.offset + j.mimic->offset;
    c.multiplier *= j.mimic->multiplier;
    return c;
  }
  const int k = model_.find_joint(j.name);
  return {1.0, 0.0, model_.joints[static_cast<std::size_t>(k)].q,
          model_.joints[static_cast<std::size_t>(k)].v};
}

Matrix3d GlobalAnalysis::plane(const dynamics_core::JointDescription& j) {
  const Vector3d turn = Vector3d::UnitZ().cross(j.axis);
  const double angle = std::atan2(turn.norm(), j.axis.z());
  const Vector3d about = turn.isZero() ? Vector3d::UnitX() : turn.normalized();
  return Eigen::AngleAxisd(angle, about).toRotationMatrix();
}

Vector6d GlobalAnalysis::turn(const Matrix4d& T, const Vector3d& axis) {
  const Vector3d z = T.topLeftCorner<3, 3>() * axis;
  Vector6d h;
  h << z, T.topRightCorner<3, 1>().cross(z);
  return h;
}

Vector6d GlobalAnalysis::slide(const Matrix4d& T, const Vector3d& axis) {
  Vector6d h;
  h << Vector3d::Zero(), T.topLeftCorner<3, 3>() * axis;
  return h;
}

void GlobalAnalysis::place(int i, const VectorXd& q) {
  const auto& j = joint(i);
  const Matrix4d at = (parent(i) < 0 ? Matrix4d(Matrix4d::Identity()) : pose(parent(i))) *
                      homogeneous(j.origin.R, j.origin.p);
  Matrix4d& T = poses_[static_cast<std::size_t>(i)];
  T = at;
  if (j.child.empty() || j.type == Type::fixed) return;
  const Coordinate c = coordinate(j);
  auto h = [&](int k) { return H_.block<6, 1>(6 * i, c.v + k); };
  if (j.type == Type::floating) {
    const Eigen::Quaterniond rotation(q[c.q + 6], q[c.q + 3], q[c.q + 4], q[c.q + 5]);
    T = at * homogeneous(rotation.normalized().toRotationMatrix(), q.segment<3>(c.q));
    for (int k = 0; k < 3; ++k) {
      h(k) = turn(T, Vector3d::Unit(k));
      h(k + 3) = slide(T, Vector3d::Unit(k));
    }
  } else if (j.type == Type::planar) {
    const Matrix4d R = homogeneous(plane(j), Vector3d::Zero());
    const Matrix3d Rz = Eigen::AngleAxisd(q[c.q + 2], Vector3d::UnitZ()).toRotationMatrix();
    T = at * R * homogeneous(Rz, Vector3d(q[c.q], q[c.q + 1], 0.0)) * R.transpose();
    h(0) = slide(at, plane(j).col(0));
    h(1) = slide(at, plane(j).col(1));
    h(2) = turn(T, j.axis.normalized());
  } else {
    const Vector3d axis = j.axis.normalized();
    const double x = c.multiplier * q[c.q] + c.offset;
    const double turned = j.type == Type::prismatic ? 0.0 : 1.0;  // rad and m by coordinate
    const double slid = j.type == Type::prismatic ? 1.0 : j.pitch;
    T = at * homogeneous(Eigen::AngleAxisd(turned * x, axis).toRotationMatrix(), slid * x * axis);
    h(0) = c.multiplier * (turned * turn(T, axis) + slid * slide(T, axis));
  }
  const double rotor = j.rotor_inertia * j.gear_ratio * j.gear_ratio;
  const int d = j.type == Type::floating || j.type == Type::planar ? 0 : 1;
  if (d == 1) rotors_(c.v, c.v) += rotor * c.multiplier * c.multiplier;
}

Vector6d GlobalAnalysis::axis_rates(int i, const VectorXd& v) const {
  const Vector6d V = V_.segment<6>(6 * i);
  if (joint(i).type != Type::planar) return motion_cross(V) * H_.middleRows<6>(6 * i) * v;
  const int at = coordinate(joint(i)).v;
  const int p = parent(i);
  const Vector6d V_p = p < 0 ? Vector6d(Vector6d::Zero()) : Vector6d(V_.segment<6>(6 * p));
  return motion_cross(V_p) * H_.block<6, 2>(6 * i, at) * v.segment<2>(at) +
         motion_cross(V) * H_.block<6, 1>(6 * i, at + 2) * v[at + 2];
}

Matrix6d GlobalAnalysis::spatial_inertia(int i) const {
  Matrix6d I = Matrix6d::Zero();
  if (!link(i).inertial) return I;
  const auto& own = *link(i).inertial;
  const Matrix3d R = pose(i).topLeftCorner<3, 3>();
  const Matrix3d c = skew((pose(i) * own.com.homogeneous()).head<3>());
  I.topLeftCorner<3, 3>() = R * own.inertia * R.transpose() + own.mass * c * c.transpose();
  I.topRightCorner<3, 3>() = own.mass * c;
  I.bottomLeftCorner<3, 3>() = own.mass * c.transpose();
  I.bottomRightCorner<3, 3>() = own.mass * Matrix3d::Identity();
  return I;
}

Matrix6d GlobalAnalysis::at_origin(int i) const {
  Matrix6d X = Matrix6d::Identity();
  X.bottomLeftCorner<3, 3>() = -skew(pose(i).topRightCorner<3, 1>());
  return X;
}

}  // namespace support
