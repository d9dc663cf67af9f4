#pragma once
#include <string>
#include <vector>

namespace demo {

/// A series of measurements with gaps.
struct series {
  std::vector<std::string> date;  ///< ISO 8601
  std::vector<double> year;       ///< the same as a decimal year
  std::vector<float> value;       ///< 0 where nothing was measured
  std::vector<float> measured;    ///< 1 where `value` was measured, 0 in a gap
  int gaps = 0;
};

/// Reads a CSV file of two columns under one header line: a date yyyy-mm-dd, and a number or an empty field.
/// Throws std::runtime_error that names the file, the line and what is wrong with it.
series read_series(const std::string& path);

}  // namespace demo
