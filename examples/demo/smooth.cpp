#include "smooth.hpp"

#include <algorithm>
#include <cmath>
#include <scandsl/scandsl.hpp>

#include "figure.hpp"
#include "series.hpp"
#include "text.hpp"
#include "timing.hpp"

namespace demo {
namespace {

using namespace scandsl;

constexpr axis<"scale"> scale;
constexpr axis<"week"> week;
constexpr tensor<"co2"> co2;
constexpr tensor<"measured"> measured;
constexpr tensor<"decay"> decay;
constexpr tensor<"level"> level;

// [doc:smooth]
// The sum of v over all weeks, each weighted by decay^distance: what came before and the week itself by a
// scan forward, what comes after by a scan backward up to the week after it, one step further away.
constexpr auto around = [](auto v) {
  return scan(decayed_sum, over(week), decay(scale), v) +
         decay(scale) * scan(decayed_sum, over(week).reversed().exclusive(), decay(scale), v);
};
// A gap has weight 0 above and below the line, so the result is a mean over the weeks that were measured.
constexpr auto smooth =
    op<"smooth">(out<"level">(scale, week) = around(measured(week) * co2(week)) / around(measured(week)));
// [/doc:smooth]

constexpr int scales = 2;
constexpr double half_life[scales] = {2, 26};  // weeks
constexpr double accuracy = 1e-5;

/// The same mean, summed week by week in float64; the largest relative difference.
double largest_error(const series& record, const std::vector<float>& decays,
                     const std::vector<float>& levels) {
  const std::size_t weeks = record.value.size();
  double largest = 0.0;
  for (std::size_t s = 0; s < decays.size(); ++s) {
    std::vector<double> weight(weeks, 1.0);
    for (std::size_t k = 1; k < weeks; ++k) weight[k] = weight[k - 1] * static_cast<double>(decays[s]);
    for (std::size_t t = 0; t < weeks; ++t) {
      double sum = 0.0, total = 0.0;
      for (std::size_t u = 0; u < weeks; ++u) {
        const double w = weight[t > u ? t - u : u - t] * static_cast<double>(record.measured[u]);
        sum += w * static_cast<double>(record.value[u]);
        total += w;
      }
      const double mean = sum / total, got = static_cast<double>(levels[s * weeks + t]);
      largest = std::max(largest, std::abs(got - mean) / mean);
    }
  }
  return largest;
}

panel::curve measurements(const series& record) {
  panel::curve dots{panel::curve::mark::dots, "weekly averages", "#9a9aa4", {}, {}};
  for (std::size_t t = 0; t < record.value.size(); ++t)
    if (record.measured[t] != 0.0F) {
      dots.x.push_back(record.year[t]);
      dots.y.push_back(static_cast<double>(record.value[t]));
    }
  return dots;
}

void draw(const series& record, const std::vector<float>& levels, const std::string& path) {
  const auto weeks = static_cast<std::ptrdiff_t>(record.value.size());
  const char* const colour[scales] = {"#1f6fb4", "#d1495b"};
  std::vector<panel::curve> curves = {measurements(record)};
  for (std::ptrdiff_t s = 0; s < scales; ++s) {
    const std::string label =
        "smoothed, half-life " + std::to_string(static_cast<int>(half_life[s])) + " weeks";
    curves.push_back({panel::curve::mark::line,
                      label,
                      colour[s],
                      record.year,
                      {levels.begin() + s * weeks, levels.begin() + (s + 1) * weeks}});
  }
  const double first = std::floor(record.year.front());
  const std::string unit = "CO\u2082, parts per million";
  panel whole{"The whole record",       "year", unit, {first, std::ceil(record.year.back())},
              round_range(curves[0].y), curves};
  std::vector<double> early;
  for (std::size_t i = 0; i < curves[0].x.size(); ++i)
    if (curves[0].x[i] < first + 8) early.push_back(curves[0].y[i]);
  panel closer{"The first eight years, where most gaps are",
               "year",
               unit,
               {first, first + 8},
               round_range(early),
               curves};
  write_svg(path, "Carbon dioxide in the air at Mauna Loa, Hawaii", {whole, closer});
}

}  // namespace

bool smooth_record(const std::string& csv_path, const std::string& folder) {
  const series record = read_series(csv_path);
  const auto weeks = static_cast<std::int64_t>(record.value.size());
  heading("1. The weekly CO2 record of Mauna Loa, smoothed");
  std::printf("%lld weeks from %s to %s; %d of them have no measurement.\n"
              "A smoothed value is the mean of the measured weeks around it, weighted by 2^(-distance / "
              "half-life):\n\n",
              static_cast<long long>(weeks), record.date.front().c_str(), record.date.back().c_str(),
              record.gaps);
  print_block(describe(smooth));

  std::vector<float> decays, levels(static_cast<std::size_t>(scales * weeks));
  for (const double weeks_to_half : half_life)
    decays.push_back(static_cast<float>(std::exp2(-1.0 / weeks_to_half)));
  const auto bound = [&](auto&& use) {
    return use(co2 = view(record.value.data(), weeks), measured = view(record.measured.data(), weeks),
               decay = view(decays.data(), scales), level = view(levels.data(), scales, weeks));
  };
  std::puts("How it runs:\n");
  print_block(explain(bound([](auto... bindings) { return plan<smooth>(cpu{}, bindings...); })));
  const double seconds =
      median_seconds(21, [&] { bound([](auto... bindings) { run<smooth>(cpu{}, bindings...); }); });
  const double error = largest_error(record, decays, levels);
  const std::string picture = folder + "/co2.svg";
  draw(record, levels, picture);
  std::printf(
      "Half-lives of %g weeks (the seasons stay) and %g weeks (the seasons go) together: %.0f microseconds.\n"
      "Largest difference from the same mean in float64: %.1e of the value.\n"
      "Picture: %s\n",
      half_life[0], half_life[1], 1e6 * seconds, error, picture.c_str());
  return error < accuracy;
}

}  // namespace demo
