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
  quantities
};

constexpr std::array<const char*, quantities> quantity_names = {
    "inverse dynamics",    "bias",    "gravity", "mass matrix", "forward dynamics",
    "inverse mass matrix", "jacobian"};

/// Computes from q, v and a third vector (q̈, or τ for the forward dynamics). Where the result is, is
/// the library's own affair: n numbers, n × n by columns (both triangles), or 6 × n for the
/// Jacobian.
using Compute = std::function<const double*(const double* q, const double* v, const double* a)>;

struct Contestant {
  std::string name;
  std::array<Compute, quantities> compute;  ///< empty: it does not offer this
  bool linear_first = false;                ///< the Jacobian's rows are [v; ω]
};

/// With the default methods first, then one for each method.
[[nodiscard, gnu::visibility("default")]] std::vector<Contestant> ours(const Robot& robot);
/// With all in its default frames, and what it also has in the world's.
[[nodiscard, gnu::visibility("default")]] std::vector<Contestant> pinocchio_contestants(
    const Robot& robot);
[[nodiscard, gnu::visibility("default")]] Contestant rbdl_contestant(const Robot& robot);
[[nodiscard, gnu::visibility("default")]] Contestant kdl_contestant(const Robot& robot);

}  // namespace bench
