// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The input of `dynamics eval`: one JSON object a line.

#include <Eigen/Core>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "dynamics_core/dynamics.hpp"

namespace dynamics_core::tools {

/// What is wrong with one line of input.
class LineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The places in q and in v of the coordinates, in the order in which a line names the joints.
struct Order {
  std::vector<int> q, v;
};

/// What a line says, ordered as the model orders it.
struct LineValues {
  VectorX<double> q, v, a, tau;
  Order order;
  int link = 0;  ///< index into Model::links, of the Jacobian
};

/// Checks and reads lines. The model must outlive it.
class LineReader {
 public:
  using Line = nlohmann::json;

  /// `link` is taken where a line names none.
  LineReader(const Model& model, int link);

  /// Throws LineError unless the text is JSON.
  [[nodiscard]] static Line parse(const std::string& text);

  /// Reads the state, and sets the robot's gravity and external forces. Throws LineError.
  [[nodiscard]] LineValues read(const Line& line, Dynamics<double>& robot) const;

 private:
  [[nodiscard]] VectorX<double> read_rates(const Line& line, const char* key,
                                           const Order& order) const;
  [[nodiscard]] Order read_order(const Line& names) const;
  [[nodiscard]] std::string no_such_joint(const std::string& name) const;
  [[nodiscard]] int find_link(const std::string& name) const;
  void check_quaternions(const VectorX<double>& q) const;
  void read_external(const Line& forces, Dynamics<double>& robot) const;

  const Model& model_;
  int link_;
  std::unordered_map<std::string, std::size_t> joints_;
  Order source_order_;
};

}  // namespace dynamics_core::tools
