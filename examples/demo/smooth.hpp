#pragma once
#include <string>

namespace demo {

/// Reads the CO2 record, smooths it at two scales, prints how, and draws it to `folder`/co2.svg. Returns
/// whether the result agrees with float64.
bool smooth_record(const std::string& csv_path, const std::string& folder);

}  // namespace demo
