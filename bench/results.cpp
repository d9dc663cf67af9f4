#include "results.hpp"

#include <boost/version.hpp>
#include <xsimd/xsimd.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <ostream>
#include <sstream>
#include <thread>

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

double gigabytes_a_second(const row& r, double seconds) {
  return static_cast<double>(r.bytes) / seconds * 1e-9;
}

/// Rows are compared with the copy that was registered for the same work.
bool same_work(const row& left, const row& right) {
  return left.op == right.op && left.variant == right.variant && left.dtype == right.dtype &&
         left.shape == right.shape && left.axis == right.axis;
}

}  // namespace

bool collector::ReportContext(const Context&) { return true; }

void collector::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (run.run_type != Run::RT_Iteration) continue;
    if (run.error_occurred) throw std::runtime_error(run.benchmark_name() + ": " + run.error_message);
    const std::string name = run.run_name.function_name;
    const auto found =
        std::find_if(rows().begin(), rows().end(), [&](const row& r) { return name_of(r) == name; });
    const double seconds = run.real_accumulated_time / static_cast<double>(run.iterations);
    times.at(static_cast<std::size_t>(found - rows().begin())).push_back(seconds);
    std::fprintf(stderr, "%s: %s ms\n", name.c_str(), number(1e3 * seconds).c_str());
  }
}

double collector::seconds(std::size_t row_index) const {
  std::vector<double> sorted = times[row_index];
  if (sorted.empty()) return 0.0;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : 0.5 * (sorted[middle - 1] + sorted[middle]);
}

double collector::of_copy(std::size_t row_index) const {
  const std::vector<row>& all = rows();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].provider == "copy" && same_work(all[i], all[row_index]) && seconds(row_index) > 0.0)
      return seconds(i) / seconds(row_index);
  return 0.0;
}

void print_table(std::ostream& stream, const collector& results) {
  char line[160];
  std::snprintf(line, sizeof line, "%-20s %-13s %-5s %-18s %4s  %-12s %9s %7s %7s\n", "op", "case", "dtype",
                "shape", "axis", "provider", "ms", "GB/s", "of copy");
  stream << line;
  for (std::size_t i = 0; i < rows().size(); ++i) {
    const row& r = rows()[i];
    const double seconds = results.seconds(i);
    if (seconds == 0.0) continue;
    std::snprintf(line, sizeof line, "%-20s %-13s %-5s %-18s %4d  %-12s %9.3f %7.2f %7.3f\n", r.op.c_str(),
                  r.variant.c_str(), r.dtype.c_str(), shape_text(r).c_str(), r.axis, r.provider.c_str(),
                  1e3 * seconds, gigabytes_a_second(r, seconds), results.of_copy(i));
    stream << line;
  }
}

void write_json(std::ostream& stream, const collector& results) {
  const std::string commit = environment("SCANDSL_COMMIT");
  std::ostringstream xsimd_version, boost_version;
  xsimd_version << XSIMD_VERSION_MAJOR << '.' << XSIMD_VERSION_MINOR << '.' << XSIMD_VERSION_PATCH;
  boost_version << BOOST_VERSION / 100000 << '.' << BOOST_VERSION / 100 % 1000 << '.' << BOOST_VERSION % 100;
  stream << "{\n  \"run\": " << quoted("cpu-" + commit + "-" + time_now("%Y%m%dT%H%M%SZ"))
         << ",\n  \"commit\": " << quoted(commit)
         << ",\n  \"date\": " << quoted(time_now("%Y-%m-%dT%H:%M:%SZ"))
         << ",\n  \"machine\": {\"cpu\": " << quoted(processor())
         << ", \"cores\": " << std::thread::hardware_concurrency()
         << "},\n  \"versions\": {\"compiler\": " << quoted(BENCH_COMPILER)
         << ", \"flags\": " << quoted(BENCH_FLAGS) << ", \"xsimd\": " << quoted(xsimd_version.str())
         << ", \"boost\": " << quoted(boost_version.str())
         << ", \"google_benchmark\": " << quoted(BENCH_LIBRARY) << "},\n  \"rows\": [";
  const char* separator = "\n";
  for (std::size_t i = 0; i < rows().size(); ++i) {
    const row& r = rows()[i];
    const double seconds = results.seconds(i), ratio = results.of_copy(i);
    if (seconds == 0.0) continue;
    stream << separator << "    {\"op\": " << quoted(r.op)
           << ", \"pass\": \"forward\", \"case\": " << quoted(r.variant) << ", \"dtype\": " << quoted(r.dtype)
           << ", \"shape\": " << shape_text(r) << ", \"axis\": " << r.axis
           << ", \"provider\": " << quoted(r.provider) << ", \"ms\": " << number(1e3 * seconds)
           << ", \"gbs\": " << number(gigabytes_a_second(r, seconds))
           << ", \"of_copy\": " << (ratio > 0.0 ? number(ratio) : "null")
           << ", \"mib\": " << number(static_cast<double>(r.memory) / (1 << 20)) << "}";
    separator = ",\n";
  }
  stream << "\n  ]\n}\n";
}

}  // namespace bench
