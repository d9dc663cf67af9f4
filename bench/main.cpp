#include <benchmark/benchmark.h>

#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "results.hpp"
#include "row.hpp"

// usage: scandsl_bench [--out=FILE] [Google Benchmark's options, such as --benchmark_filter=logcumsumexp]
int main(int argc, char** argv) {
  bench::add_logcumsumexp();
  bench::add_chunk_cumsum_decay();
  bench::add_decayed_sum();
  bench::add_long_row();

  // Repetitions of all rows in random order, so that a slow minute of the machine touches every row alike.
  char interleave[] = "--benchmark_enable_random_interleaving=true";
  std::vector<char*> arguments = {argv[0], interleave};
  std::string path;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--out=", 6) == 0)
      path = argv[i] + 6;
    else
      arguments.push_back(argv[i]);
  }
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;

  bench::fill_pools();
  bench::progress reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  bench::print_table(std::cout);
  if (path.empty()) return 0;
  std::ofstream file(path);
  bench::write_json(file);
  file.close();
  if (!file) {
    std::cerr << "cannot write " << path << "\n";
    return 1;
  }
  return 0;
}
