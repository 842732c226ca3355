// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/identification/consistent.hpp"

#include <ceres/ceres.h>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <array>
#include <cmath>

namespace dynamics_core::identification {

namespace {

using Eigen::Index;
using Eigen::Matrix4d;
using Weights = Eigen::Matrix<double, 10, 1>;

constexpr std::array<std::array<int, 2>, 10> places = {
    {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {1, 0}, {2, 0}, {2, 1}, {3, 0}, {3, 1}, {3, 2}}};
const double root2 = std::sqrt(2.0);
/// exp(θ) stays between: what is beyond is no link of the robot that the URDF describes.
constexpr double least = 0.05;
constexpr double most = 20.0;

[[nodiscard]] Matrix4d matrix(const Weights& w) {
  Matrix4d W;
  for (int k = 0; k < 10; ++k) {
    const auto [i, j] = places[static_cast<std::size_t>(k)];
    W(i, j) = W(j, i) = i == j ? w[k] : w[k] / root2;
  }
  return W;
}
[[nodiscard]] Weights elements(const Matrix4d& W) {
  Weights w;
  for (int k = 0; k < 10; ++k) {
    const auto [i, j] = places[static_cast<std::size_t>(k)];
    w[k] = i == j ? W(i, i) : root2 * W(i, j);
  }
  return w;
}

/// T of θ: a lower triangle, the diagonal exponential.
[[nodiscard]] Matrix4d triangle(const double* theta) {
  Matrix4d T = Matrix4d::Zero();
  for (int k = 0; k < 10; ++k) {
    const auto [i, j] = places[static_cast<std::size_t>(k)];
    T(i, j) = i == j ? std::exp(theta[k]) : theta[k];
  }
  return T;
}

/// The unknowns in the bodies' own measures: x = scale · z.
struct Scaled {
  explicit Scaled(const ConsistentProblem& p)
      : H(p.H), g(p.g), neutral(VectorX<double>::Zero(g.size())) {
    const auto bodies = static_cast<Index>(p.bodies.size());
    for (Index b = 0; b < bodies; ++b) {
      const auto& S = p.bodies[static_cast<std::size_t>(b)].S;
      H.middleCols(10 * b, 10) = (H.middleCols(10 * b, 10) * S).eval();
      neutral.segment(10 * b, 10) = BodyPrior::neutral();
    }
    for (Index b = 0; b < bodies; ++b) {
      const auto& S = p.bodies[static_cast<std::size_t>(b)].S;
      H.middleRows(10 * b, 10) = (S.transpose() * H.middleRows(10 * b, 10)).eval();
      g.segment(10 * b, 10) = (S.transpose() * g.segment(10 * b, 10)).eval();
    }
    others = g.size() - 10 * bodies;
    scale = VectorX<double>::Ones(others);
    for (Index k = 0; k < others; ++k) {
      const Index i = 10 * bodies + k;
      if (H(i, i) > 0.0) scale[k] = 1.0 / std::sqrt(H(i, i));
      H.row(i) *= scale[k];
      H.col(i) *= scale[k];
      g[i] *= scale[k];
      H(i, i) += 1e-9;  // what the data do not tell is zero
    }
    for (Index i = 0; i < 10 * bodies; ++i) {
      H(i, i) += p.weight;
      g[i] += p.weight * neutral[i];
    }
  }

  [[nodiscard]] VectorX<double> back(const ConsistentProblem& p, const VectorX<double>& z) const {
    VectorX<double> x = z;
    const auto bodies = static_cast<Index>(p.bodies.size());
    for (Index b = 0; b < bodies; ++b)
      x.segment(10 * b, 10) = p.bodies[static_cast<std::size_t>(b)].S * z.segment(10 * b, 10);
    x.tail(others) = z.tail(others).cwiseProduct(scale);
    return x;
  }

  MatrixX<double> H;
  VectorX<double> g;
  VectorX<double> neutral;
  VectorX<double> scale;
  Index others = 0;
};

/// Least squares with those unknowns at zero that would be negative.
[[nodiscard]] VectorX<double> without_negative(const Scaled& s, const std::vector<bool>& bounded) {
  const Index n = s.g.size();
  const Index first = n - s.others;
  std::vector<bool> zero(static_cast<std::size_t>(n), false);
  while (true) {
    std::vector<Index> free;
    for (Index i = 0; i < n; ++i)
      if (!zero[static_cast<std::size_t>(i)]) free.push_back(i);
    const auto m = static_cast<Index>(free.size());
    MatrixX<double> H(m, m);
    VectorX<double> g(m);
    for (Index i = 0; i < m; ++i) {
      g[i] = s.g[free[static_cast<std::size_t>(i)]];
      for (Index j = 0; j < m; ++j)
        H(i, j) = s.H(free[static_cast<std::size_t>(i)], free[static_cast<std::size_t>(j)]);
    }
    const VectorX<double> part = H.llt().solve(g);
    VectorX<double> z = VectorX<double>::Zero(n);
    for (Index i = 0; i < m; ++i) z[free[static_cast<std::size_t>(i)]] = part[i];
    bool fine = true;
    for (Index k = 0; k < s.others; ++k)
      if (bounded[static_cast<std::size_t>(k)] && z[first + k] < 0.0) {
        zero[static_cast<std::size_t>(first + k)] = true;
        fine = false;
      }
    if (fine) return z;
  }
}

[[nodiscard]] bool consistent(const VectorX<double>& z, std::size_t bodies) {
  for (std::size_t b = 0; b < bodies; ++b) {
    const Matrix4d W = matrix(z.segment<10>(static_cast<Index>(10 * b)));
    const Eigen::SelfAdjointEigenSolver<Matrix4d> eigen(W, Eigen::EigenvaluesOnly);
    if (eigen.eigenvalues()[0] < least * least) return false;
  }
  return true;
}

/// Lᵀ z − L⁻¹ g with H = L Lᵀ, as a function of θ and the others.
class Residual final : public ceres::CostFunction {
 public:
  Residual(const Scaled& s, Index bodies) : bodies_(bodies) {
    // A copy with Eigen's own memory, as Ceres maps it.
    const Eigen::MatrixXd H = s.H;
    const Eigen::LLT<Eigen::MatrixXd> llt(H);
    U_ = llt.matrixU();
    r_ = llt.matrixL().solve(Eigen::VectorXd(s.g));
    set_num_residuals(static_cast<int>(r_.size()));
    mutable_parameter_block_sizes()->push_back(static_cast<int>(r_.size()));
  }

  bool Evaluate(const double* const* parameters, double* residuals,
                double** jacobians) const override {
    const double* theta = parameters[0];
    const Index n = r_.size();
    Eigen::VectorXd z = Eigen::Map<const Eigen::VectorXd>(theta, n);
    for (Index b = 0; b < bodies_; ++b) {
      const Matrix4d T = triangle(theta + 10 * b);
      z.segment<10>(10 * b) = elements(T * T.transpose());
    }
    Eigen::Map<Eigen::VectorXd>(residuals, n) = U_.triangularView<Eigen::Upper>() * z - r_;
    if (!Eigen::Map<Eigen::VectorXd>(residuals, n).allFinite()) return false;
    if (jacobians == nullptr || jacobians[0] == nullptr) return true;
    using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    Eigen::Map<RowMajor> J(jacobians[0], n, n);
    J = U_;
    for (Index b = 0; b < bodies_; ++b) {
      const Matrix4d T = triangle(theta + 10 * b);
      Eigen::Matrix<double, 10, 10> dw;
      for (int k = 0; k < 10; ++k) {
        const auto [i, j] = places[static_cast<std::size_t>(k)];
        Matrix4d dT = Matrix4d::Zero();
        dT(i, j) = i == j ? T(i, i) : 1.0;
        dw.col(k) = elements(dT * T.transpose() + T * dT.transpose());
      }
      J.middleCols<10>(10 * b) = U_.middleCols<10>(10 * b) * dw;
    }
    return true;
  }

 private:
  Index bodies_;
  Eigen::MatrixXd U_;
  Eigen::VectorXd r_;
};

/// θ of the consistent W nearest to w.
void start(const Weights& w, double* theta) {
  const Eigen::SelfAdjointEigenSolver<Matrix4d> eigen(matrix(w));
  const Eigen::Vector4d d =
      eigen.eigenvalues().cwiseMax(4.0 * least * least).cwiseMin(most * most / 4.0);
  const Matrix4d W = eigen.eigenvectors() * d.asDiagonal() * eigen.eigenvectors().transpose();
  const Matrix4d T = Eigen::LLT<Matrix4d>(W).matrixL();
  for (int k = 0; k < 10; ++k) {
    const auto [i, j] = places[static_cast<std::size_t>(k)];
    theta[k] = i == j ? std::log(T(i, i)) : T(i, j);
  }
}

}  // namespace

Matrix4d pseudo_inertia(const BodyParameters& pi) {
  Eigen::Matrix3d I;
  I << pi[4], pi[5], pi[6], pi[5], pi[7], pi[8], pi[6], pi[8], pi[9];
  Matrix4d P;
  P.topLeftCorner<3, 3>() = 0.5 * I.trace() * Eigen::Matrix3d::Identity() - I;
  P.topRightCorner<3, 1>() = pi.segment<3>(1);
  P.bottomLeftCorner<1, 3>() = pi.segment<3>(1).transpose();
  P(3, 3) = pi[0];
  return P;
}

BodyParameters body_parameters(const Matrix4d& P) {
  const Eigen::Matrix3d S = P.topLeftCorner<3, 3>();
  const Eigen::Matrix3d I = S.trace() * Eigen::Matrix3d::Identity() - S;
  BodyParameters pi;
  pi << P(3, 3), P(0, 3), P(1, 3), P(2, 3), I(0, 0), I(0, 1), I(0, 2), I(1, 1), I(1, 2), I(2, 2);
  return pi;
}

BodyPrior::BodyPrior(const BodyParameters& prior) {
  // A body without mass or of points and rods gets as much extent as makes it definite.
  Matrix4d P = pseudo_inertia(prior);
  const double mass = std::max(P(3, 3), 0.01);
  const double extent = 0.02;  // m
  Eigen::Vector4d little;
  little << Eigen::Vector3d::Constant(extent * extent * mass), mass;
  if (P(3, 3) < mass) P(3, 3) = mass;
  const Eigen::Vector3d h = P.topRightCorner<3, 1>();
  const Eigen::Matrix3d about_com = P.topLeftCorner<3, 3>() - h * h.transpose() / P(3, 3);
  const Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d> eigen(about_com);
  const Eigen::Vector3d moments = eigen.eigenvalues().cwiseMax(0.1 * little[0]);
  P.topLeftCorner<3, 3>() =
      eigen.eigenvectors() * moments.asDiagonal() * eigen.eigenvectors().transpose() +
      h * h.transpose() / P(3, 3);
  L = Eigen::LLT<Matrix4d>(P).matrixL();
  for (int k = 0; k < 10; ++k)
    S.col(k) = body_parameters(L * matrix(Weights::Unit(k)) * L.transpose());
}

Weights BodyPrior::neutral() {
  Weights w = Weights::Zero();
  w.head<4>().setOnes();
  return w;
}

ConsistentSolution solve(const ConsistentProblem& problem) {
  const Scaled scaled(problem);
  ConsistentSolution solution;
  VectorX<double> z = without_negative(scaled, problem.not_negative);
  if (problem.consistent && !consistent(z, problem.bodies.size())) {
    solution.constrained = true;
    const auto bodies = static_cast<Index>(problem.bodies.size());
    std::vector<double> theta(z.data(), z.data() + z.size());
    for (Index b = 0; b < bodies; ++b) start(z.segment<10>(10 * b), theta.data() + 10 * b);
    ceres::Problem ceres_problem;
    ceres_problem.AddResidualBlock(new Residual(scaled, bodies), nullptr, theta.data());
    for (Index b = 0; b < bodies; ++b)
      for (int k = 0; k < 4; ++k)
        ceres_problem.SetParameterLowerBound(theta.data(), static_cast<int>(10 * b) + k,
                                             std::log(least));
    for (Index b = 0; b < bodies; ++b)
      for (int k = 0; k < 4; ++k)
        ceres_problem.SetParameterUpperBound(theta.data(), static_cast<int>(10 * b) + k,
                                             std::log(most));
    for (Index k = 0; k < scaled.others; ++k)
      if (problem.not_negative[static_cast<std::size_t>(k)])
        ceres_problem.SetParameterLowerBound(theta.data(), static_cast<int>(10 * bodies + k), 0.0);
    ceres::Solver::Options options;
    options.linear_solver_type = ceres::DENSE_QR;
    options.max_num_iterations = 100;
    options.logging_type = ceres::SILENT;
    options.function_tolerance = 1e-9;
    ceres::Solver::Summary summary;
    ceres::Solve(options, &ceres_problem, &summary);
    z = Eigen::Map<const Eigen::VectorXd>(theta.data(), z.size());
    for (Index b = 0; b < bodies; ++b) {
      const Matrix4d T = triangle(theta.data() + 10 * b);
      z.segment<10>(10 * b) = elements(T * T.transpose());
    }
  }
  solution.x = scaled.back(problem, z);
  return solution;
}

}  // namespace dynamics_core::identification
