#pragma once
#include <string>
#include <vector>

namespace demo {

struct range {
  double low, high;
  bool holds(double value) const { return value >= low && value <= high; }
};

/// One pair of axes of a figure.
struct panel {
  std::string title, x_label, y_label;
  range x, y;

  struct curve {
    enum class mark { line, dots } drawn;
    std::string label, colour;
    std::vector<double> x, y;  ///< what lies outside the axes is not drawn
  };
  std::vector<curve> curves;
};

/// The smallest range of whole multiples of a round number that holds all values; for an axis.
range round_range(const std::vector<double>& values);

/// Panels below each other, with ticks, labels and one legend at the top, as an SVG file.
/// Throws std::runtime_error where the file cannot be written.
void write_svg(const std::string& path, const std::string& title, const std::vector<panel>& panels);

}  // namespace demo
