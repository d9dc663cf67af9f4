#include "layer.hpp"

#include "check.hpp"

using namespace layer_op;

namespace {

constexpr std::size_t batch = 2, length = 300, heads = 2, features = 7;
constexpr std::size_t count = batch * length * heads * features;

/// The layer's outputs, each times its dy, added up.
double weighted_sum(const std::vector<double>& xs, const std::vector<double>& gs,
                    const std::vector<double>& dys, const std::vector<double>& thetas,
                    const std::vector<double>& decays, int every) {
  std::vector<double> ys(2 * count);
  run<layer>(cpu{}, x = view(xs.data(), batch, length, heads, features),
             g = view(gs.data(), batch, length, heads, features),
             theta = view(thetas.data(), heads, features), decay = view(decays.data(), heads), chunk = every,
             y = view(ys.data(), batch, length, heads, 2, features));
  double sum = 0;
  for (std::size_t i = 0; i < ys.size(); ++i) sum += ys[i] * dys[i];
  return sum;
}

std::vector<double> doubled(const std::vector<float>& values) { return {values.begin(), values.end()}; }

/// How that changes along a direction, by central differences.
double slope(std::vector<double> xs, std::vector<double> gs, const std::vector<double>& along_x,
             const std::vector<double>& along_g, const std::vector<double>& dys,
             const std::vector<double>& thetas, const std::vector<double>& decays, int every) {
  constexpr double apart = 1e-5;
  double both[2];
  for (int side = 0; side < 2; ++side) {
    for (std::size_t i = 0; i < count; ++i) {
      xs[i] += (side == 0 ? apart : -2 * apart) * along_x[i];
      gs[i] += (side == 0 ? apart : -2 * apart) * along_g[i];
    }
    both[side] = weighted_sum(xs, gs, dys, thetas, decays, every);
  }
  return (both[0] - both[1]) / (2 * apart);
}

}  // namespace

int main() {
  std::puts(describe(layer).c_str());
  std::puts(describe(dlayer).c_str());
  const std::vector<float> xs = example::wave(count), gs = example::wave(count, 1.5),
                           dys = example::wave(2 * count, 1.0), thetas = example::wave(heads * features, 0.5),
                           decays = {0.9F, 0.5F};
  std::vector<float> ys(2 * count), dxs(count), dgs(count);
  for (const int every : {0, 64}) {
    // [doc:run]
    run<layer>(cpu{}, x = view(xs.data(), batch, length, heads, features),
               g = view(gs.data(), batch, length, heads, features),
               theta = view(thetas.data(), heads, features), decay = view(decays.data(), heads),
               chunk = every, y = view(ys.data(), batch, length, heads, 2, features));
    run<dlayer>(cpu{}, x = view(xs.data(), batch, length, heads, features),
                g = view(gs.data(), batch, length, heads, features),
                theta = view(thetas.data(), heads, features), decay = view(decays.data(), heads),
                chunk = every, dy = view(dys.data(), batch, length, heads, 2, features),
                dx = view(dxs.data(), batch, length, heads, features),
                dg = view(dgs.data(), batch, length, heads, features));
    // [/doc:run]

    std::vector<double> expected(2 * count);
    for (std::size_t lane = 0; lane < batch * heads * features; ++lane) {
      const std::size_t in_batch = lane / (heads * features), head = lane / features % heads,
                        feature = lane % features;
      double cosines = 0, sines = 0;
      for (std::size_t t = 0; t < length; ++t) {
        const std::size_t row = (in_batch * length + t) * heads + head, at = row * features + feature;
        const double value = double{xs[at]} / (1 + std::exp(-double{xs[at]})),
                     angle_here = static_cast<double>(t) * double{thetas[head * features + feature]},
                     gate = 1 / (1 + std::exp(-double{gs[at]}));
        if (every > 0 && t % static_cast<std::size_t>(every) == 0) cosines = sines = 0;
        cosines = double{decays[head]} * cosines + value * std::cos(angle_here);
        sines = double{decays[head]} * sines + value * std::sin(angle_here);
        expected[2 * row * features + feature] = gate * cosines;
        expected[(2 * row + 1) * features + feature] = gate * sines;
      }
    }
    example::expect_close(every == 0 ? "layer" : "layer in chunks", ys, expected, 1e-5);

    const std::vector<double> along_x = doubled(example::wave(count, 0.3)), along_g = doubled(gs);
    double derived = 0;
    for (std::size_t i = 0; i < count; ++i)
      derived += double{dxs[i]} * along_x[i] + double{dgs[i]} * along_g[i];
    example::expect_close(every == 0 ? "its gradient, against differences" : "the same in chunks",
                          std::vector{derived},
                          std::vector{slope(doubled(xs), doubled(gs), along_x, along_g, doubled(dys),
                                            doubled(thetas), doubled(decays), every)},
                          1e-5);
  }
  return example::exit_status();
}
