#pragma once
#include <benchmark/benchmark.h>

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "row.hpp"

namespace bench {

/// Collects the times of all rows; says on stderr how far the run is.
class collector : public benchmark::BenchmarkReporter {
public:
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;

  /// The median seconds of a row, 0 where it was left out.
  double seconds(std::size_t row_index) const;
  /// The time of the copy of the same bytes over the row's time, 0 where either was left out.
  double of_copy(std::size_t row_index) const;

private:
  std::vector<std::vector<double>> times = std::vector<std::vector<double>>(rows().size());
};

/// A table for people.
void print_table(std::ostream& stream, const collector& results);
/// The result file: bench/README.md explains the fields.
void write_json(std::ostream& stream, const collector& results);

}  // namespace bench
