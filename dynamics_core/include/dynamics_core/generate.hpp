// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Straight-line C or C++ for one robot, from the record of what the algorithms compute on it
/// (counting.hpp). The code depends on nothing. docs/generate.md is the page for its users. Off the
/// real-time path; what is generated may run on it.

#include <string>
#include <vector>

#include "dynamics_core/counting.hpp"
#include "dynamics_core/model.hpp"

namespace dynamics_core {

enum class GeneratedScalar {
  double_precision,
  single_precision,
  lanes,  ///< several configurations at once, in double
};
enum class GeneratedLanguage { c, cpp };

struct GenerateOptions {
  std::vector<std::string> functions;  ///< of generated_functions(); empty: all
  GeneratedScalar scalar = GeneratedScalar::double_precision;
  GeneratedLanguage language = GeneratedLanguage::cpp;
  std::string name;                        ///< of the code; empty: the robot's
  std::vector<std::string> payload_links;  ///< whose payloads are arguments
  bool gravity = false;                    ///< gravity is an argument
  std::string link;     ///< of the Jacobian; empty: the last link that the last joint moves
  std::string version;  ///< of this program, for the comment
};

/// A header and a source.
struct GeneratedCode {
  struct File {
    std::string name;
    std::string text;
  };
  File header;
  File source;
  struct Array {
    std::string name;
    int rows = 0;
    int columns = 1;
  };
  struct Function {
    std::string name;
    std::string method;                  ///< the cheapest way that the library knows
    std::vector<Array> inputs, outputs;  ///< the parameters, in their order
    OperationCount operations;
    double difference = 0.0;  ///< from the library's results in ten states, relative to the largest
  };
  std::vector<Function> functions;
};

/// The names that GenerateOptions::functions may have.
[[nodiscard]] std::vector<std::string> generated_functions();

/// The same text for the same robot and options, wherever it is made. Throws ConfigError for an
/// unknown function or link, a link that is named twice, and a function that the robot cannot have.
[[nodiscard]] GeneratedCode generate(const Model& model, const GenerateOptions& options);

/// Writes both files into the directory, which is made if need be. A file is there as a whole or not
/// at all. Throws std::runtime_error.
void write(const GeneratedCode& code, const std::string& directory);

}  // namespace dynamics_core
