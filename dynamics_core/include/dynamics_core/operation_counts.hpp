// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Operation counts of every method on a robot, and as formulas in the number of joints, in the
/// way of the papers' complexity tables. See counting.hpp for what counts.

#include <optional>
#include <string>
#include <vector>

#include "dynamics_core/counting.hpp"
#include "dynamics_core/model.hpp"

namespace dynamics_core {

struct MethodCount {
  std::string quantity;  ///< e.g. "inverse dynamics"
  std::string method;    ///< e.g. "gibbs_appell"
  OperationCount count;
};

/// All methods that can treat the robot. Of symmetric matrices one triangle is asked for.
[[nodiscard]] std::vector<MethodCount> count_operations(const Model& model);

/// A serial arm of n revolute joints with nothing special about it: all of α, a, d and the mass
/// properties of every link differ from zero and one. Gravity along the first axis, as in the
/// papers.
[[nodiscard]] Model general_arm(int joints);

/// A polynomial in n with coefficients in sixths, as the sums of a cubic algorithm need.
class Formula {
 public:
  Formula() = default;
  /// Coefficients of 1, n, n², … in sixths.
  explicit Formula(std::vector<long> sixths) : sixths_(std::move(sixths)) {}
  /// The polynomial of least degree (at most three) through the values at n = first, first + 1, …
  /// None if there is no such polynomial with at least two values more than it has coefficients.
  [[nodiscard]] static std::optional<Formula> through(const std::vector<int>& values, int first);

  [[nodiscard]] double operator()(double n) const noexcept;
  [[nodiscard]] const std::vector<long>& sixths() const noexcept { return sixths_; }
  /// e.g. "11.5n² + 19.5n − 49"; thirds as "1/6n³".
  [[nodiscard]] std::string text() const;

 private:
  std::vector<long> sixths_;
};

/// What a paper states for a general arm of revolute joints.
struct PublishedCount {
  std::string source;                                 ///< e.g. "Mata 2002, Table 1"
  std::optional<Formula> multiplications, additions;  ///< none: only the figures for n = 6
  int multiplications_at_six = 0;
  int additions_at_six = 0;
};

struct FormulaRow {
  std::string quantity;
  std::string method;
  OperationCount at_six;  ///< on the general arm of six joints
  int from = 3;           ///< the formulas hold for n = from … 10
  std::optional<Formula> multiplications, additions, divisions;  ///< none: no polynomial
  std::optional<PublishedCount> published;
};

/// The operation tables of the general arm, with the papers' figures where they have any.
[[nodiscard]] std::vector<FormulaRow> operation_formulas();

}  // namespace dynamics_core
