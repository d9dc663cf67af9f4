#include "figure.hpp"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace demo {
namespace {

constexpr double width = 960, panel_height = 330, left = 78, right = 24, top = 84, above = 34, below = 54;

/// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  char text[512];
  std::va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text)
    result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return result;
}

/// 1, 2 or 5 times a power of ten, so that an axis gets about `count` ticks.
double tick_step(range axis, double count) {
  const double rough = (axis.high - axis.low) / count, power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power) return factor * power;
  return 10.0 * power;
}

std::vector<double> ticks(range axis, double count) {
  const double step = tick_step(axis, count);
  std::vector<double> result;
  for (double i = std::ceil(axis.low / step - 1e-9); i * step <= axis.high + 1e-9 * step; ++i)
    result.push_back(i * step);
  return result;
}

/// One panel in the figure, its upper left corner at (left, y_offset).
struct frame {
  const panel& source;
  double y_offset, plot_width = width - left - right, plot_height = panel_height - above - below;

  double x(double value) const {
    return left + (value - source.x.low) / (source.x.high - source.x.low) * plot_width;
  }
  double y(double value) const {
    return y_offset + plot_height - (value - source.y.low) / (source.y.high - source.y.low) * plot_height;
  }

  std::string axes() const {
    std::string svg = format("<rect x='%.1f' y='%.1f' width='%.1f' height='%.1f' class='frame'/>\n", left,
                             y_offset, plot_width, plot_height);
    const double bottom = y_offset + plot_height, end = left + plot_width;
    for (const double tick : ticks(source.x, 10)) {
      svg += format("<path d='M%.1f %.1fv%.1f' class='grid'/>", x(tick), y_offset, plot_height);
      svg += format("<path d='M%.1f %.1fv5' class='tick'/>", x(tick), bottom);
      svg += format("<text x='%.1f' y='%.1f' text-anchor='middle'>%g</text>\n", x(tick), bottom + 19, tick);
    }
    for (const double tick : ticks(source.y, 6)) {
      svg += format("<path d='M%.1f %.1fh%.1f' class='grid'/>", left, y(tick), end - left);
      svg += format("<path d='M%.1f %.1fh-5' class='tick'/>", left, y(tick));
      svg += format("<text x='%.1f' y='%.1f' text-anchor='end'>%g</text>\n", left - 9, y(tick) + 4, tick);
    }
    svg += format("<text x='%.1f' y='%.1f' class='heading'>%s</text>\n", left, y_offset - 10,
                  escaped(source.title).c_str());
    svg += format("<text x='%.1f' y='%.1f' text-anchor='middle'>%s</text>\n", left + plot_width / 2,
                  bottom + 40, escaped(source.x_label).c_str());
    svg += format("<text transform='translate(24 %.1f) rotate(-90)' text-anchor='middle'>%s</text>\n",
                  y_offset + plot_height / 2, escaped(source.y_label).c_str());
    return svg;
  }

  std::string drawn(const panel::curve& curve) const {
    const bool is_line = curve.drawn == panel::curve::mark::line;
    std::string path;
    bool pen_down = false;
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      const bool inside = source.x.holds(curve.x[i]) && source.y.holds(curve.y[i]);
      if (inside)
        path += format(is_line && pen_down ? "L%.1f %.1f" : "M%.1f %.1f", x(curve.x[i]), y(curve.y[i]));
      if (inside && !is_line) path += "h0";
      pen_down = inside;
    }
    return format("<path stroke='%s' class='%s' d='", curve.colour.c_str(), is_line ? "line" : "dots") +
           path + "'/>\n";
  }
};

std::string legend(const panel& shown) {
  std::string svg;
  double x = left;
  for (const panel::curve& curve : shown.curves) {
    if (curve.drawn == panel::curve::mark::line)
      svg += format("<path d='M%.1f 52h22' stroke='%s' class='line'/>", x, curve.colour.c_str());
    else
      svg +=
          format("<path d='M%.1f 52h0m8 -3h0m8 4h0' stroke='%s' class='dots'/>", x + 3, curve.colour.c_str());
    svg += format("<text x='%.1f' y='56'>%s</text>\n", x + 29, escaped(curve.label).c_str());
    x += 62 + 6.6 * static_cast<double>(curve.label.size());
  }
  return svg;
}

}  // namespace

range round_range(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double step = tick_step({*low, *high + 1e-9}, 6);
  return {std::floor(*low / step) * step, std::ceil(*high / step) * step};
}

void write_svg(const std::string& path, const std::string& title, const std::vector<panel>& panels) {
  const double height = top + panel_height * static_cast<double>(panels.size()) + 4;
  std::string svg =
      format("<svg xmlns='http://www.w3.org/2000/svg' width='%.0f' height='%.0f' viewBox='0 0 %.0f %.0f' ",
             width, height, width, height);
  svg += "font-family='DejaVu Sans, Helvetica, Arial, sans-serif' font-size='12.5' fill='#333'>\n"
         "<style>path,rect{fill:none} .frame{stroke:#555} .grid{stroke:#e4e4e4} .tick{stroke:#555}\n"
         ".line{stroke-width:1.7;stroke-linejoin:round} .dots{stroke-width:2.6;stroke-linecap:round}\n"
         ".heading{font-weight:bold}</style>\n<rect width='100%' height='100%' style='fill:#fff'/>\n";
  svg += format("<text x='%.1f' y='30' font-size='18'>%s</text>\n", left, escaped(title).c_str());
  if (!panels.empty()) svg += legend(panels.front());
  double y_offset = top + above - 10;
  for (const panel& each : panels) {
    const frame drawing{each, y_offset};
    svg += drawing.axes();
    for (const panel::curve& curve : each.curves) svg += drawing.drawn(curve);
    y_offset += panel_height;
  }
  std::ofstream file(path);
  file << svg << "</svg>\n";
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

}  // namespace demo
