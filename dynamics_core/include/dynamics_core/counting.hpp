// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A scalar that records what an algorithm computes, to count its operations as the papers do.
///
/// - Only what the results need is counted: the operations form a graph, and the count walks it
///   back from the outputs. A component that nobody uses costs nothing.
/// - A number that is not made by `Counted::variable` is a constant of the robot. Operations
///   between constants are off-line and cost nothing; so do 0·x, ±1·x, x ± 0 and a change of sign.
///   A sum of constants that cancels but for round-off is zero.
/// - The same operation on the same operands counts once, as for a compiler.
///
/// The same record as a graph, for programs that do something else with it: Counted::graph. It holds
/// for all inputs, not only for those that it was made with, as nothing is recorded by its value but
/// the constants; the judgements (is a pivot lost, is a number finite) are no part of it.
///
/// Not for the real-time path: recording allocates.

#include <Eigen/Core>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dynamics_core/operation_graph.hpp"

namespace dynamics_core {

struct OperationCount {
  int multiplications = 0;
  int additions = 0;  ///< and subtractions
  int divisions = 0;
  int square_roots = 0;
  int sincos = 0;  ///< sine and cosine of one angle together

  friend bool operator==(const OperationCount& x, const OperationCount& y) noexcept {
    return x.multiplications == y.multiplications && x.additions == y.additions &&
           x.divisions == y.divisions && x.square_roots == y.square_roots && x.sincos == y.sincos;
  }
};

class Counted {
 public:
  Counted() = default;
  Counted(double constant) noexcept : value_(constant) {}  // NOLINT: numbers are constants

  /// An input: something that is known only at run time.
  [[nodiscard]] static Counted variable(double value) { return make(value, Op::input, 0, 0); }

  [[nodiscard]] double value() const noexcept { return value_; }
  [[nodiscard]] bool is_constant() const noexcept { return node_ == 0; }

  /// Forgets everything recorded in this thread. Older variables must not be used any more.
  static void forget() {
    tape().nodes.assign(1, no_node);
    tape().known.clear();
  }
  /// What the given results took since the last forget().
  template <class Results>
  [[nodiscard]] static OperationCount count(const Results& results) {
    std::vector<bool> needed(tape().nodes.size(), false);
    for (const Counted& r : results) needed[index(r.node_)] = true;
    return count_needed(needed);
  }
  /// How the given results come about, in their order. The graph's inputs are the variables since
  /// the last forget(), in the order in which they were made; of the operations it has those that
  /// the results need.
  template <class Results>
  [[nodiscard]] static OperationGraph graph(const Results& results) {
    return graph_of(std::vector<Counted>(results.begin(), results.end()));
  }

  friend Counted operator-(const Counted& x) noexcept {
    Counted y = x;
    y.value_ = -x.value_;
    y.node_ = -x.node_;
    return y;
  }
  friend Counted operator+(const Counted& x) noexcept { return x; }
  friend Counted operator+(const Counted& x, const Counted& y) {
    const double value = x.value_ + y.value_;
    if (x.is_constant() && y.is_constant()) return {cancels(x, y) ? 0.0 : value};
    if (x.is_constant(0.0)) return y;
    if (y.is_constant(0.0)) return x;
    return make_commutative(value, Op::add, x, y);
  }
  friend Counted operator-(const Counted& x, const Counted& y) { return x + -y; }
  friend Counted operator*(const Counted& x, const Counted& y) {
    const double value = x.value_ * y.value_;
    if (x.is_constant() && y.is_constant()) return {value};
    if (x.is_constant(0.0) || y.is_constant(0.0)) return {0.0};
    if (x.is_constant(1.0)) return y;
    if (y.is_constant(1.0)) return x;
    if (x.is_constant(-1.0)) return -y;
    if (y.is_constant(-1.0)) return -x;
    return make_commutative(value, Op::multiply, x, y);
  }
  friend Counted operator/(const Counted& x, const Counted& y) {
    const double value = x.value_ / y.value_;
    if (x.is_constant() && y.is_constant()) return {value};
    if (x.is_constant(0.0)) return {0.0};
    if (y.is_constant()) return x * Counted(1.0 / y.value_);  // the reciprocal is off-line
    return make(value, Op::divide, x.reference(), y.reference());
  }
  Counted& operator+=(const Counted& y) { return *this = *this + y; }
  Counted& operator-=(const Counted& y) { return *this = *this - y; }
  Counted& operator*=(const Counted& y) { return *this = *this * y; }
  Counted& operator/=(const Counted& y) { return *this = *this / y; }

  friend Counted sqrt(const Counted& x) {
    const double value = std::sqrt(x.value_);
    return x.is_constant() ? Counted(value) : make(value, Op::square_root, x.node_, 0);
  }
  friend Counted abs(const Counted& x) {
    if (x.is_constant()) return {std::abs(x.value_)};
    return make(std::abs(x.value_), Op::absolute, x.node_ < 0 ? -x.node_ : x.node_, 0);
  }
  friend void sincos(const Counted& x, Counted& s, Counted& c) {
    if (x.is_constant()) {
      s = std::sin(x.value_);
      c = std::cos(x.value_);
      return;
    }
    s = make(std::sin(x.value_), Op::sine, x.node_, 0);
    c = make(std::cos(x.value_), Op::cosine, x.node_, 0);
  }
  // Judgements are not part of the result.
  friend bool is_finite(const Counted& x) noexcept { return std::isfinite(x.value_); }
  friend bool negligible(const Counted& x, const Counted& scale) noexcept {
    return !(std::abs(x.value_) > 1e-13 * scale.value_);
  }
  friend bool is_negative(const Counted& x) noexcept { return x.value_ < 0.0; }
  friend Counted safe_ratio(const Counted& numerator, const Counted& denominator,
                            const Counted& otherwise) {
    const bool zero = denominator.value_ == 0.0;
    if (denominator.is_constant()) return zero ? otherwise : numerator / denominator;
    if (numerator.is_constant(0.0) && otherwise.is_constant(0.0)) return {0.0};
    return make(zero ? otherwise.value_ : numerator.value_ / denominator.value_, Op::safe_ratio,
                numerator.reference(), denominator.reference(), otherwise.reference());
  }

 private:
  using Op = Operation;
  /// Operands are node numbers, negative with a minus sign; constants are numbered by their value.
  struct Node {
    Op op;
    std::int64_t x, y, z;
    double value;
    bool operator==(const Node& o) const noexcept {
      return op == o.op && x == o.x && y == o.y && z == o.z;
    }
  };
  struct Hash {
    std::size_t operator()(const Node& n) const noexcept {
      const auto mix = [](std::size_t h, std::int64_t k) {
        return (h ^ static_cast<std::size_t>(k)) * std::size_t{0x9E3779B97F4A7C15} + (h >> 29U);
      };
      return mix(mix(mix(static_cast<std::size_t>(n.op), n.x), n.y), n.z);
    }
  };
  static constexpr Node no_node{Op::constant, 0, 0, 0, 0.0};  ///< number 0 means "constant"
  struct Tape {
    std::vector<Node> nodes{no_node};
    std::unordered_map<Node, std::int64_t, Hash> known;
    std::unordered_map<double, std::int64_t> constants;
  };
  static constexpr std::int64_t first_constant = std::int64_t{1} << 40;

  /// One for each thread, wherever the code that records was compiled.
  [[nodiscard]] static Tape& tape();
  [[nodiscard]] static std::size_t index(std::int64_t reference) noexcept {
    return static_cast<std::size_t>(reference < 0 ? -reference : reference);
  }
  [[nodiscard]] bool is_constant(double value) const noexcept {
    return is_constant() && value_ == value;
  }
  /// Constants that differ by round-off alone: a zero, had it been worked out by hand.
  [[nodiscard]] static bool cancels(const Counted& x, const Counted& y) noexcept {
    return std::abs(x.value_ + y.value_) < 1e-15 * std::abs(x.value_);
  }
  /// The number of this operand in a node; c and −c share one, as x and −x do.
  [[nodiscard]] std::int64_t reference() const {
    if (!is_constant()) return node_;
    auto& constants = tape().constants;
    const auto next = first_constant + static_cast<std::int64_t>(constants.size());
    const auto number = constants.emplace(std::abs(value_), next).first->second;
    return std::signbit(value_) ? -number : number;
  }
  /// Signs are taken out of products and out of sums that begin with one, so that −(x·y) and
  /// (−x)·y, x − y and y − x are the same node.
  [[nodiscard]] static Counted make_commutative(double value, Op op, const Counted& a,
                                                const Counted& b) {
    std::int64_t x = a.reference();
    std::int64_t y = b.reference();
    if (index(x) > index(y)) std::swap(x, y);
    const bool negate = op == Op::multiply ? (x < 0) != (y < 0) : x < 0;
    if (op == Op::multiply) {
      x = x < 0 ? -x : x;
      y = y < 0 ? -y : y;
    } else if (negate) {
      x = -x;
      y = -y;
    }
    const Counted made = make(negate ? -value : value, op, x, y);
    return negate ? -made : made;
  }
  [[nodiscard]] static Counted make(double value, Op op, std::int64_t x, std::int64_t y,
                                    std::int64_t z = 0) {
    auto& t = tape();
    const auto number = static_cast<std::int64_t>(t.nodes.size());
    const Node node{op, x, y, z, value};
    Counted made(value);
    made.node_ = number;
    if (op != Op::input) {
      const auto found = t.known.emplace(node, number);
      made.node_ = found.first->second;
      if (!found.second) return made;
    }
    t.nodes.push_back(node);
    return made;
  }
  /// Adds to the nodes that are needed all that they are made of.
  static void find_needed(std::vector<bool>& needed) {
    const auto& nodes = tape().nodes;
    for (std::size_t i = nodes.size(); i-- > 1;) {  // operands come before their results
      if (!needed[i]) continue;
      for (const std::int64_t operand : {nodes[i].x, nodes[i].y, nodes[i].z})
        if (index(operand) < needed.size()) needed[index(operand)] = true;
    }
  }
  [[nodiscard]] static OperationGraph graph_of(const std::vector<Counted>& results) {
    const auto& recorded = tape().nodes;
    std::vector<bool> needed(recorded.size(), false);
    for (const Counted& r : results) needed[index(r.node_)] = true;
    find_needed(needed);

    std::vector<OperationGraph::Node> nodes;
    std::unordered_map<std::size_t, std::size_t> places;  // by number, also of constants
    std::unordered_map<std::size_t, double> constants;
    for (const auto& [value, number] : tape().constants) constants.emplace(index(number), value);
    const auto operand = [&](std::int64_t reference) -> OperationGraph::Operand {
      const auto found = places.emplace(index(reference), nodes.size());
      if (found.second) nodes.push_back({Op::constant, constants.at(index(reference)), {}, {}, {}});
      return {found.first->second, reference < 0};
    };

    std::vector<std::size_t> inputs;
    for (std::size_t i = 1; i < recorded.size(); ++i) {
      const Node& from = recorded[i];
      if (from.op != Op::input && !needed[i]) continue;
      OperationGraph::Node node{from.op, from.value, {}, {}, {}};
      const int operands = operand_count(from.op);
      if (operands > 0) node.x = operand(from.x);
      if (operands > 1) node.y = operand(from.y);
      if (operands > 2) node.z = operand(from.z);
      if (from.op == Op::input) inputs.push_back(nodes.size());
      places.emplace(i, nodes.size());
      nodes.push_back(node);
    }
    std::vector<OperationGraph::Operand> outputs;
    for (const Counted& r : results) {
      const std::int64_t reference = r.reference();
      if (r.is_constant()) constants.emplace(index(reference), std::abs(r.value_));
      outputs.push_back(operand(reference));
    }
    return {std::move(nodes), std::move(inputs), std::move(outputs)};
  }
  [[nodiscard]] static OperationCount count_needed(std::vector<bool>& needed) {
    OperationCount out;
    std::unordered_map<std::int64_t, int> angles;
    const auto& nodes = tape().nodes;
    find_needed(needed);
    for (std::size_t i = nodes.size(); i-- > 1;) {
      if (!needed[i]) continue;
      const Node& n = nodes[i];
      switch (n.op) {
        case Op::constant:
        case Op::input:
        case Op::absolute: break;
        case Op::add: ++out.additions; break;
        case Op::multiply: ++out.multiplications; break;
        case Op::divide:
        case Op::safe_ratio: ++out.divisions; break;
        case Op::square_root: ++out.square_roots; break;
        case Op::sine:
        case Op::cosine: out.sincos += angles[n.x]++ == 0 ? 1 : 0; break;
      }
    }
    return out;
  }

  double value_ = 0.0;
  std::int64_t node_ = 0;  ///< 0: a constant; negative: the node with a minus sign
};

}  // namespace dynamics_core

namespace Eigen {
template <>
struct NumTraits<dynamics_core::Counted> : NumTraits<double> {
  using Real = dynamics_core::Counted;
  using NonInteger = dynamics_core::Counted;
  using Nested = dynamics_core::Counted;
  using Literal = double;
  enum {  // NOLINTBEGIN(readability-identifier-naming): Eigen's names
    IsComplex = 0,
    IsInteger = 0,
    IsSigned = 1,
    RequireInitialization = 1,
    ReadCost = 1,
    AddCost = 1,
    MulCost = 1
  };  // NOLINTEND(readability-identifier-naming)
};
}  // namespace Eigen
