// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What an algorithm computes, as a graph that a program can read: to evaluate it, to count it, to
/// write it out as code. Counted::graph (counting.hpp) makes one of any results. Off the real-time
/// path.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "dynamics_core/scalar.hpp"

namespace dynamics_core {

enum class Operation : std::uint8_t {
  constant,     ///< a number that belongs to the robot
  input,        ///< what is known at run time only
  add,          ///< x + y
  multiply,     ///< x y
  divide,       ///< x / y
  safe_ratio,   ///< x / y, z where y is exactly zero
  square_root,  ///< √x
  absolute,     ///< |x|
  sine,         ///< sin x
  cosine,       ///< cos x
};

/// How many of x, y and z an operation has.
[[nodiscard]] constexpr int operand_count(Operation operation) noexcept {
  switch (operation) {
    case Operation::constant:
    case Operation::input: return 0;
    case Operation::square_root:
    case Operation::absolute:
    case Operation::sine:
    case Operation::cosine: return 1;
    case Operation::add:
    case Operation::multiply:
    case Operation::divide: return 2;
    case Operation::safe_ratio: return 3;
  }
  RD_UNREACHABLE();
}

class OperationGraph {
 public:
  /// The result of a node, with or without a change of sign. A subtraction is an addition of such.
  struct Operand {
    std::size_t node = 0;
    bool negative = false;
  };
  struct Node {
    Operation operation = Operation::constant;
    double value = 0.0;  ///< of a constant; else the result when the graph was made
    Operand x, y, z;     ///< as many as operand_count says; nodes before this one
  };

  OperationGraph(std::vector<Node> nodes, std::vector<std::size_t> inputs,
                 std::vector<Operand> outputs)
      : nodes_(std::move(nodes)), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

  /// In an order in which they can be computed: operands come before their results.
  [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }
  /// The nodes that are inputs, in the order of the arguments. Some may have no part in an output.
  [[nodiscard]] const std::vector<std::size_t>& inputs() const noexcept { return inputs_; }
  /// The results; they may be inputs or constants.
  [[nodiscard]] const std::vector<Operand>& outputs() const noexcept { return outputs_; }

  /// The outputs for other inputs, in a scalar type by the contract of scalar.hpp. Throws
  /// std::invalid_argument where their number is not that of inputs().
  template <class S>
  [[nodiscard]] std::vector<S> evaluate(const std::vector<S>& inputs) const;

 private:
  std::vector<Node> nodes_;
  std::vector<std::size_t> inputs_;
  std::vector<Operand> outputs_;
};

template <class S>
std::vector<S> OperationGraph::evaluate(const std::vector<S>& inputs) const {
  using std::abs;
  using std::sqrt;
  if (inputs.size() != inputs_.size())
    throw std::invalid_argument("a graph needs as many values as it has inputs");
  std::vector<S> results(nodes_.size(), S(0));
  for (std::size_t i = 0; i < inputs.size(); ++i) results[inputs_[i]] = inputs[i];
  const auto at = [&results](const Operand& operand) -> S {
    return operand.negative ? S(-results[operand.node]) : results[operand.node];
  };
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    S& result = results[i];
    S other(0);
    switch (node.operation) {
      case Operation::constant: result = S(node.value); break;
      case Operation::input: break;
      case Operation::add: result = at(node.x) + at(node.y); break;
      case Operation::multiply: result = at(node.x) * at(node.y); break;
      case Operation::divide: result = at(node.x) / at(node.y); break;
      case Operation::safe_ratio: result = safe_ratio(at(node.x), at(node.y), at(node.z)); break;
      case Operation::square_root: result = sqrt(at(node.x)); break;
      case Operation::absolute: result = abs(at(node.x)); break;
      case Operation::sine: sincos(at(node.x), result, other); break;
      case Operation::cosine: sincos(at(node.x), other, result); break;
    }
  }
  std::vector<S> out;
  for (const Operand& output : outputs_) out.push_back(at(output));
  return out;
}

}  // namespace dynamics_core
