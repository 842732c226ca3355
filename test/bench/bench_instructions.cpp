// SPDX-License-Identifier: Apache-2.0
/// Runs one algorithm a given number of times on a robot, for callgrind: the difference between
/// two runs of different length is the cost of a call, free of loading and start-up.
///
///     bench_instructions ROBOT list
///     bench_instructions ROBOT NUMBER REPETITIONS

#include <cstdlib>
#include <iostream>
#include <string>

#include "quantities.hpp"

int main(int argc, char** argv) {
  const bool list = argc == 3 && std::string(argv[2]) == "list";
  if (argc != 4 && !list) {
    std::cerr << "usage: bench_instructions ROBOT (list | NUMBER REPETITIONS)\n";
    return 2;
  }
  const bench::Quantities quantities(argv[1]);
  if (list) {
    for (const auto& quantity : quantities.all()) std::cout << quantity.first << '\n';
    return 0;
  }
  const auto& call = quantities.all().at(static_cast<std::size_t>(std::atoi(argv[2]))).second;
  for (int i = std::atoi(argv[3]); i > 0; --i)
    if (call() != dynamics_core::Status::ok) return 1;
  return 0;
}
