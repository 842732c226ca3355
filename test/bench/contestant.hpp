// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What is compared: a library, or one of this library's methods, that computes some quantities of
/// one robot. Each library is a shared object of its own, as each may be compiled with other options.

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "robot.hpp"

namespace bench {

enum Quantity {
  inverse_dynamics,
  bias,
  gravity,
  mass_matrix,
  forward_dynamics,
  inverse_mass_matrix,
  jacobian,
  inverse_dynamics_derivatives,
  forward_dynamics_derivatives,
  quantities
};

constexpr std::array<const char*, quantities> quantity_names = {"inverse dynamics",
                                                                "bias",
                                                                "gravity",
                                                                "mass matrix",
                                                                "forward dynamics",
                                                                "inverse mass matrix",
                                                                "jacobian",
                                                                "inverse dynamics derivatives",
                                                                "forward dynamics derivatives"};

/// Computes from q, v and a third vector (q̈, or τ for the forward dynamics). Where the result is, is
/// the library's own affair: n numbers, n × n by columns (both triangles), 6 × n for the Jacobian,
/// or one after the other the derivatives by q, by v and by the third vector (which is not compared).
using Compute = std::function<const double*(const double* q, const double* v, const double* a)>;

/// The same for all states in one call; results one after the other, matrices by rows or columns.
using ComputeAll =
    std::function<const double*(const double* q, const double* v, const double* a, int states)>;

struct Contestant {
  std::string name;
  std::array<Compute, quantities> compute;         ///< empty: it does not offer this
  std::array<ComputeAll, quantities> compute_all;  ///< likewise
  bool linear_first = false;                       ///< the Jacobian's rows are [v; ω]
  bool by_rows = false;                            ///< the derivatives are
  [[nodiscard]] bool offers(Quantity q) const { return compute[q] || compute_all[q]; }
};

// Each of these is a shared library, compiled with its own options.

/// With the default methods first, then one for each method, then all states at once.
[[nodiscard, gnu::visibility("default")]] std::vector<Contestant> ours(const Robot& robot);
/// With all in its default frames, and what it also has in the world's.
[[nodiscard, gnu::visibility("default")]] std::vector<Contestant> pinocchio_contestants(
    const Robot& robot);
/// None but for chains.
[[nodiscard, gnu::visibility("default")]] std::vector<Contestant> kdl_contestants(
    const Robot& robot);
/// Straight-line code, where the robot is one of those that the build has generated it for.
[[nodiscard, gnu::visibility("default")]] std::vector<Contestant> generated_contestants(
    const Robot& robot);

}  // namespace bench
