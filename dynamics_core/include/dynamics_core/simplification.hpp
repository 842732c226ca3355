// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Fewer operations for the same results: what `dynamics generate` does to a recorded graph before
/// it writes it out. Off the real-time path.

#include "dynamics_core/counting.hpp"
#include "dynamics_core/operation_graph.hpp"

namespace dynamics_core {

/// A graph of the same inputs and outputs, equal but for round-off:
///
/// - constants are folded, and combined where they meet in a product or a sum;
/// - a factor that terms of one sum share is taken out of it: a b + a c = a (b + c);
/// - of several divisions by one number one is left, for its reciprocal;
/// - the same operation on the same operands is done once, whatever their order and signs;
/// - nothing is left that no output needs, but for the inputs.
///
/// The nodes stay in the order in which they were recorded.
[[nodiscard]] OperationGraph simplified(const OperationGraph& graph);

/// The operations in a graph. Changes of sign are not counted, nor what has constants alone.
[[nodiscard]] OperationCount count(const OperationGraph& graph);

/// About the time that operations take, in that of a multiplication.
[[nodiscard]] double cost(const OperationCount& c) noexcept;

}  // namespace dynamics_core
