// SPDX-License-Identifier: Apache-2.0
/// Wall-clock times by Google Benchmark. On a shared machine only their ratios mean something.
///
///     bench_time ROBOT [Google Benchmark's options]

#include <benchmark/benchmark.h>

#include <iostream>

#include "quantities.hpp"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: bench_time ROBOT [OPTIONS]\n";
    return 2;
  }
  const bench::Quantities quantities(argv[1]);
  for (const auto& quantity : quantities.all()) {
    benchmark::RegisterBenchmark(quantity.first.c_str(), [&quantity](benchmark::State& state) {
      for (auto _ : state) benchmark::DoNotOptimize(quantity.second());
    });
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
