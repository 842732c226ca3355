// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The functions that can be generated, and their graphs for a robot.

#include <functional>
#include <string>
#include <vector>

#include "dynamics_core/model.hpp"
#include "dynamics_core/operation_graph.hpp"

namespace dynamics_core::generation {

/// An array that a generated function takes or fills, its rows one after another.
struct Array {
  std::string name;
  std::string meaning;
  int rows = 0;
  int columns = 1;
  bool symmetric = false;  ///< the graph has the lower triangle alone, row by row
  bool of_robot = false;   ///< gravity or a payload: the same for all configurations of a call

  [[nodiscard]] int size() const noexcept { return rows * columns; }
};

/// What else may be an argument, and of which link the Jacobian is.
struct Request {
  std::vector<int> payload_links;  ///< indices into Model::links
  bool gravity = false;
  int link = 0;
};

struct Recording {
  std::string name;
  std::string formula;
  std::string method;
  std::vector<Array> inputs, outputs;  ///< the graph has their elements, one array after another
  OperationGraph graph;                ///< simplified
  double difference = 0.0;             ///< from the library's results, relative to the largest
};

/// In the order of documentation.
[[nodiscard]] std::vector<std::string> function_names();
/// Records the function by every family of algorithms that has it, and takes the one of the fewest
/// operations. Throws ConfigError where none can treat the robot.
[[nodiscard]] Recording record(const std::string& name, const Model& model, const Request& request);

}  // namespace dynamics_core::generation
