// SPDX-License-Identifier: Apache-2.0
#include <kdl/chain.hpp>
#include <kdl/chaindynparam.hpp>
#include <kdl/chainidsolver_recursive_newton_euler.hpp>
#include <kdl/chainjnttojacsolver.hpp>
#include <memory>

#include "contestant.hpp"

namespace bench {

namespace {

KDL::Vector to_kdl(const Eigen::Vector3d& u) { return {u[0], u[1], u[2]}; }

/// A segment's joint is at its root and its tip is where the next joint is.
KDL::Chain to_kdl(const Robot& robot) {
  KDL::Chain chain;
  const auto frame = [](const Joint& j) {
    const Eigen::Matrix3d& R = j.rotation;
    return KDL::Frame(KDL::Rotation(R(0, 0), R(0, 1), R(0, 2), R(1, 0), R(1, 1), R(1, 2), R(2, 0),
                                    R(2, 1), R(2, 2)),
                      to_kdl(j.translation));
  };
  chain.addSegment(KDL::Segment(KDL::Joint(KDL::Joint::None), frame(robot.joints.front())));
  for (std::size_t i = 0; i < robot.joints.size(); ++i) {
    const Joint& j = robot.joints[i];
    const KDL::Frame tip = i + 1 < robot.joints.size() ? frame(robot.joints[i + 1])
                                                       : KDL::Frame(to_kdl(robot.tip_in_joint));
    const Eigen::Matrix3d& I = j.inertia;
    const KDL::RigidBodyInertia at_root(
        j.mass, to_kdl(j.com),
        KDL::RotationalInertia(I(0, 0), I(1, 1), I(2, 2), I(0, 1), I(0, 2), I(1, 2)));
    chain.addSegment(
        KDL::Segment(KDL::Joint(KDL::Vector::Zero(), to_kdl(j.axis),
                                j.slides ? KDL::Joint::TransAxis : KDL::Joint::RotAxis),
                     tip, tip.Inverse() * at_root));
  }
  return chain;
}

struct Peer {
  explicit Peer(const Robot& robot)
      : n(static_cast<unsigned>(robot.n())),
        chain(to_kdl(robot)),
        parameters(chain, to_kdl(robot.model.gravity)),
        inverse(chain, to_kdl(robot.model.gravity)),
        to_jacobian(chain),
        q(n),
        v(n),
        a(n),
        out(n),
        M(n),
        J(n),
        no_forces(chain.getNrOfSegments(), KDL::Wrench::Zero()) {}
  unsigned n;
  KDL::Chain chain;
  KDL::ChainDynParam parameters;
  KDL::ChainIdSolver_RNE inverse;
  KDL::ChainJntToJacSolver to_jacobian;
  KDL::JntArray q, v, a, out;
  KDL::JntSpaceInertiaMatrix M;
  KDL::Jacobian J;
  KDL::Wrenches no_forces;
  void take(const double* from, KDL::JntArray& to) const {
    to.data = Eigen::Map<const Eigen::VectorXd>(from, static_cast<Eigen::Index>(n));
  }
};

}  // namespace

std::vector<Contestant> kdl_contestants(const Robot& robot) {
  for (int i = 0; i < robot.n(); ++i)
    if (robot.joints[static_cast<std::size_t>(i)].parent != i - 1) return {};
  if (robot.tip_joint != robot.n() - 1) return {};
  const auto p = std::make_shared<Peer>(robot);
  Contestant c;
  c.name = "kdl";
  c.linear_first = true;
  using In = const double*;
  c.compute[inverse_dynamics] = [p](In q, In v, In a) {
    p->take(q, p->q);
    p->take(v, p->v);
    p->take(a, p->a);
    p->inverse.CartToJnt(p->q, p->v, p->a, p->no_forces, p->out);
    return p->out.data.data();
  };
  c.compute[gravity] = [p](In q, In, In) {
    p->take(q, p->q);
    p->parameters.JntToGravity(p->q, p->out);
    return p->out.data.data();
  };
  c.compute[mass_matrix] = [p](In q, In, In) {
    p->take(q, p->q);
    p->parameters.JntToMass(p->q, p->M);
    return p->M.data.data();
  };
  c.compute[jacobian] = [p](In q, In, In) {
    p->take(q, p->q);
    p->to_jacobian.JntToJac(p->q, p->J);
    return p->J.data.data();
  };
  return {std::move(c)};
}

}  // namespace bench
