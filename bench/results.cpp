#include "results.hpp"

#include <boost/version.hpp>
#include <xsimd/xsimd.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <ostream>
#include <stdexcept>
#include <string>
#include <thread>

#include "row.hpp"

namespace bench {
namespace {

std::string environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? value : "unknown";
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(": ") + 2);
  return "unknown";
}

std::string time_now(const char* format) {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, format, std::gmtime(&now));
  return text;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return result + "\"";
}

std::string shape_text(const row& r) {
  std::string text = "[";
  for (std::size_t i = 0; i < r.shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(r.shape[i]);
  return text + "]";
}

/// Four significant digits.
std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

/// A row as it is reported.
struct summary {
  const row& source;
  std::string provider;
  double seconds, of_copy;

  double gigabytes_a_second() const { return static_cast<double>(source.bytes) / seconds * 1e-9; }
};

/// The rows that were run, and after each of the library's own the copy that was timed beside it.
std::vector<summary> summaries() {
  std::vector<summary> result;
  for (const row& r : rows()) {
    if (r.seconds.empty()) continue;
    const double own = median(r.seconds), copy = median(r.copy_seconds);
    result.push_back({r, r.provider, own, copy / own});
    if (r.provider == "scandsl") result.push_back({r, "copy", copy, 1.0});
  }
  return result;
}

}  // namespace

bool progress::ReportContext(const Context&) { return true; }

void progress::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (run.run_type != Run::RT_Iteration) continue;
    if (run.error_occurred) throw std::runtime_error(run.benchmark_name() + ": " + run.error_message);
    const double seconds = run.real_accumulated_time / static_cast<double>(run.iterations);
    std::fprintf(stderr, "%s: %s ms\n", run.run_name.function_name.c_str(), number(1e3 * seconds).c_str());
  }
}

void print_table(std::ostream& stream) {
  char line[160];
  std::snprintf(line, sizeof line, "%-20s %-13s %-5s %-18s %4s  %-12s %9s %7s %7s\n", "op", "case", "dtype",
                "shape", "axis", "provider", "ms", "GB/s", "of copy");
  stream << line;
  for (const summary& s : summaries()) {
    const row& r = s.source;
    std::snprintf(line, sizeof line, "%-20s %-13s %-5s %-18s %4d  %-12s %9.3f %7.2f %7.3f\n", r.op.c_str(),
                  r.variant.c_str(), r.dtype.c_str(), shape_text(r).c_str(), r.axis, s.provider.c_str(),
                  1e3 * s.seconds, s.gigabytes_a_second(), s.of_copy);
    stream << line;
  }
}

void write_json(std::ostream& stream) {
  const std::string commit = environment("SCANDSL_COMMIT");
  stream << "{\n  \"run\": " << quoted("cpu-" + commit + "-" + time_now("%Y%m%dT%H%M%SZ"))
         << ",\n  \"commit\": " << quoted(commit)
         << ",\n  \"date\": " << quoted(time_now("%Y-%m-%dT%H:%M:%SZ"))
         << ",\n  \"machine\": {\"cpu\": " << quoted(processor())
         << ", \"cores\": " << std::thread::hardware_concurrency()
         << "},\n  \"versions\": {\"compiler\": " << quoted(BENCH_COMPILER)
         << ", \"flags\": " << quoted(BENCH_FLAGS) << ", \"xsimd\": \"" << XSIMD_VERSION_MAJOR << '.'
         << XSIMD_VERSION_MINOR << '.' << XSIMD_VERSION_PATCH << "\", \"boost\": \"" << BOOST_VERSION / 100000
         << '.' << BOOST_VERSION / 100 % 1000 << '.' << BOOST_VERSION % 100
         << "\", \"google_benchmark\": " << quoted(BENCH_LIBRARY) << "},\n  \"rows\": [";
  const char* separator = "\n";
  for (const summary& s : summaries()) {
    const row& r = s.source;
    stream << separator << "    {\"op\": " << quoted(r.op)
           << ", \"pass\": \"forward\", \"case\": " << quoted(r.variant) << ", \"dtype\": " << quoted(r.dtype)
           << ", \"shape\": " << shape_text(r) << ", \"axis\": " << r.axis
           << ", \"provider\": " << quoted(s.provider) << ", \"ms\": " << number(1e3 * s.seconds)
           << ", \"gbs\": " << number(s.gigabytes_a_second()) << ", \"of_copy\": " << number(s.of_copy)
           << ", \"mib\": " << number(static_cast<double>(r.bytes) / (1 << 20)) << "}";
    separator = ",\n";
  }
  stream << "\n  ]\n}\n";
}

}  // namespace bench
