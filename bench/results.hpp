#pragma once
#include <benchmark/benchmark.h>

#include <iosfwd>
#include <vector>

namespace bench {

/// Says on stderr how far the run is. The results stand in rows().
class progress : public benchmark::BenchmarkReporter {
public:
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
};

/// A table for people.
void print_table(std::ostream& stream);
/// The result file: bench/README.md explains the fields.
void write_json(std::ostream& stream);

}  // namespace bench
