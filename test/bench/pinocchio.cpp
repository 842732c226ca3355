// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/frames.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/multibody/data.hpp>
#include <pinocchio/multibody/joint/joint-generic.hpp>
#include <pinocchio/multibody/model.hpp>

#include "contestant.hpp"

namespace bench {

namespace {

namespace pin = pinocchio;

/// The joint's type with its axis built in where Pinocchio has one, as its URDF reader does.
pin::JointModel joint_model(const Joint& joint) {
  const Eigen::Vector3d& u = joint.axis;
  if (u.isApprox(Eigen::Vector3d::UnitX()))
    return joint.slides ? pin::JointModel(pin::JointModelPX()) : pin::JointModelRX();
  if (u.isApprox(Eigen::Vector3d::UnitY()))
    return joint.slides ? pin::JointModel(pin::JointModelPY()) : pin::JointModelRY();
  if (u.isApprox(Eigen::Vector3d::UnitZ()))
    return joint.slides ? pin::JointModel(pin::JointModelPZ()) : pin::JointModelRZ();
  if (joint.slides) return pin::JointModelPrismaticUnaligned(u);
  return pin::JointModelRevoluteUnaligned(u);
}

pin::Model to_pinocchio(const Robot& robot) {
  pin::Model model;
  model.gravity.linear() = robot.model.gravity;
  for (int i = 0; i < robot.n(); ++i) {
    const Joint& j = robot.joints[static_cast<std::size_t>(i)];
    const pin::JointIndex id =
        model.addJoint(static_cast<pin::JointIndex>(j.parent + 1), joint_model(j),
                       pin::SE3(j.rotation, j.translation), "joint " + std::to_string(i));
    model.appendBodyToJoint(id, pin::Inertia(j.mass, j.com, j.inertia));
  }
  const auto tip = static_cast<pin::JointIndex>(robot.tip_joint + 1);
  model.addFrame(pin::Frame("tip", tip, pin::SE3(Eigen::Matrix3d::Identity(), robot.tip_in_joint),
                            pin::OP_FRAME));
  return model;
}

struct Peer {
  explicit Peer(const Robot& robot)
      : model(to_pinocchio(robot)),
        data(model),
        n(robot.n()),
        tip(model.getFrameId("tip")),
        J(Eigen::MatrixXd::Zero(6, n)),
        derivatives(Eigen::MatrixXd::Zero(n, 3 * n)) {}
  pin::Model model;
  pin::Data data;
  int n;
  pin::FrameIndex tip;
  pin::Data::Matrix6x J;
  Eigen::MatrixXd derivatives;  ///< by q, v, and the third argument
  [[nodiscard]] Eigen::Map<Eigen::MatrixXd> part(int k) {
    return {derivatives.data() + k * n * n, n, n};
  }
  [[nodiscard]] Eigen::Map<const Eigen::VectorXd> in(const double* u) const { return {u, n}; }
};

/// It computes one triangle.
const double* mirrored(pin::Data::MatrixXs& M) {
  M.triangularView<Eigen::StrictlyLower>() = M.transpose().triangularView<Eigen::StrictlyLower>();
  return M.data();
}
const double* mirrored(pin::Data::RowMatrixXs& M) {
  M.triangularView<Eigen::StrictlyLower>() = M.transpose().triangularView<Eigen::StrictlyLower>();
  return M.data();
}

}  // namespace

std::vector<Contestant> pinocchio_contestants(const Robot& robot) {
  const auto p = std::make_shared<Peer>(robot);
  using In = const double*;
  Contestant c;
  c.name = "pinocchio";
  c.linear_first = true;
  c.compute[inverse_dynamics] = [p](In q, In v, In a) {
    return pin::rnea(p->model, p->data, p->in(q), p->in(v), p->in(a)).data();
  };
  c.compute[bias] = [p](In q, In v, In) {
    return pin::nonLinearEffects(p->model, p->data, p->in(q), p->in(v)).data();
  };
  c.compute[gravity] = [p](In q, In, In) {
    return pin::computeGeneralizedGravity(p->model, p->data, p->in(q)).data();
  };
  c.compute[mass_matrix] = [p](In q, In, In) {
    pin::crba(p->model, p->data, p->in(q), pin::Convention::LOCAL);
    return mirrored(p->data.M);
  };
  c.compute[forward_dynamics] = [p](In q, In v, In tau) {
    return pin::aba(p->model, p->data, p->in(q), p->in(v), p->in(tau), pin::Convention::LOCAL)
        .data();
  };
  c.compute[inverse_mass_matrix] = [p](In q, In, In) {
    pin::computeMinverse(p->model, p->data, p->in(q));
    return mirrored(p->data.Minv);
  };
  c.compute[jacobian] = [p](In q, In, In) {
    pin::computeFrameJacobian(p->model, p->data, p->in(q), p->tip, pin::LOCAL_WORLD_ALIGNED, p->J);
    return p->J.data();
  };
  c.compute[inverse_dynamics_derivatives] = [p](In q, In v, In a) {
    auto by_q = p->part(0), by_v = p->part(1), by_a = p->part(2);
    pin::computeRNEADerivatives(p->model, p->data, p->in(q), p->in(v), p->in(a), by_q, by_v, by_a);
    return p->derivatives.data();
  };
  c.compute[forward_dynamics_derivatives] = [p](In q, In v, In tau) {
    auto by_q = p->part(0), by_v = p->part(1), by_tau = p->part(2);
    pin::computeABADerivatives(p->model, p->data, p->in(q), p->in(v), p->in(tau), by_q, by_v,
                               by_tau);
    return p->derivatives.data();
  };
  Contestant world;
  world.name = "pinocchio, world";
  world.compute[mass_matrix] = [p](In q, In, In) {
    pin::crba(p->model, p->data, p->in(q), pin::Convention::WORLD);
    return mirrored(p->data.M);
  };
  world.compute[forward_dynamics] = [p](In q, In v, In tau) {
    return pin::aba(p->model, p->data, p->in(q), p->in(v), p->in(tau), pin::Convention::WORLD)
        .data();
  };
  return {std::move(c), std::move(world)};
}

}  // namespace bench
