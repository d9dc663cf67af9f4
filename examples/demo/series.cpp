#include "series.hpp"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace demo {
namespace {

/// Throws std::invalid_argument.
double decimal_year(const std::string& date) {
  int year = 0, length = 0;
  unsigned month = 0, day = 0;
  std::sscanf(date.c_str(), "%4d-%2u-%2u%n", &year, &month, &day, &length);
  using namespace std::chrono;
  const year_month_day parsed{std::chrono::year{year}, std::chrono::month{month}, std::chrono::day{day}};
  if (length != 10 || date.size() != 10 || !parsed.ok())
    throw std::invalid_argument("not a date yyyy-mm-dd: " + date);
  const sys_days start = std::chrono::year{year} / 1 / 1, next = std::chrono::year{year + 1} / 1 / 1;
  return year + static_cast<double>((sys_days{parsed} - start).count()) /
                    static_cast<double>((next - start).count());
}

/// Throws std::invalid_argument.
float number(const std::string& field) {
  std::size_t used = 0;
  float value = 0.0F;
  try {
    value = std::stof(field, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != field.size()) throw std::invalid_argument("not a number: " + field);
  return value;
}

void append(series& result, const std::string& line) {
  const std::size_t comma = line.find(',');
  if (comma == std::string::npos) throw std::invalid_argument("no comma: " + line);
  const std::string date = line.substr(0, comma), field = line.substr(comma + 1);
  const double year = decimal_year(date);
  if (!result.year.empty() && year <= result.year.back())
    throw std::invalid_argument("not after the line before: " + date);
  const float value = field.empty() ? 0.0F : number(field);
  result.date.push_back(date);
  result.year.push_back(year);
  result.value.push_back(value);
  result.measured.push_back(field.empty() ? 0.0F : 1.0F);
  result.gaps += field.empty() ? 1 : 0;
}

}  // namespace

series read_series(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  series result;
  std::string line;
  for (int count = 1; std::getline(file, line); ++count) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (count == 1 || line.empty()) continue;  // the header, a blank line at the end
    try {
      append(result, line);
    } catch (const std::invalid_argument& wrong) {
      throw std::runtime_error(path + ":" + std::to_string(count) + ": " + wrong.what());
    }
  }
  if (result.gaps == static_cast<int>(result.date.size()))
    throw std::runtime_error(path + " holds no measurement");
  return result;
}

}  // namespace demo
