#include <cmath>
#include <cstdint>
#include <vector>

#include "cuda/layer_on_gpu.hpp"
#include "support/catch.hpp"
#include "support/layer_reference.hpp"

// An encoding, a scan and a gate in one kernel, and its gradient in one, against loops in float64.
namespace {

using namespace layer_on_gpu;

/// How far `values` are off, in units of `sizes`, beyond the rounding of what is stored.
template <class T>
double error_in(const std::vector<double>& sizes, const std::vector<T>& values,
                const std::vector<double>& expected) {
  const double unit = sizeof(T) == 2 ? 0x1p-8 : 0x1p-24;
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double error = std::fabs(static_cast<double>(static_cast<float>(values[i])) - expected[i]) -
                         unit * std::fabs(expected[i]);
    if (!(error <= 0)) worst = std::isfinite(error / sizes[i]) ? std::max(worst, error / sizes[i]) : 1e30;
  }
  return worst;
}

template <class T> void check_layer(layer_reference of) {
  CAPTURE(sizeof(T), of.batch, of.length, of.heads, of.features, of.every);
  const auto held = []<class Element>(std::vector<double>& exact, Element) {
    std::vector<Element> values;
    for (double& each : exact)
      each = static_cast<double>(static_cast<float>(values.emplace_back(Element(static_cast<float>(each)))));
    return values;
  };
  const std::vector<T> xs = held(of.x, T()), gs = held(of.g, T()), dys = held(of.dy, T());
  const std::vector<float> thetas = held(of.theta, float()), decays = held(of.decay, float());
  std::vector<T> ys(dys.size()), dxs(xs.size()), dgs(xs.size());
  const auto on_lanes = [&](auto* data) { return view(data, of.batch, of.length, of.heads, of.features); };
  const auto on_parts = [&](auto* data) { return view(data, of.batch, of.length, of.heads, 2, of.features); };
  namespace l = layer_op;
  const auto restart = static_cast<std::int64_t>(of.every);
  run_on_gpu<l::layer, T>(bind<l::layer>(l::x = on_lanes(xs.data()), l::g = on_lanes(gs.data()),
                                         l::theta = view(thetas.data(), of.heads, of.features),
                                         l::decay = view(decays.data(), of.heads), l::chunk = restart,
                                         l::y = on_parts(ys.data())));
  run_on_gpu<l::dlayer, T>(bind<l::dlayer>(l::x = on_lanes(xs.data()), l::g = on_lanes(gs.data()),
                                           l::theta = view(thetas.data(), of.heads, of.features),
                                           l::decay = view(decays.data(), of.heads), l::chunk = restart,
                                           l::dy = on_parts(dys.data()), l::dx = on_lanes(dxs.data()),
                                           l::dg = on_lanes(dgs.data())));
  of.compute();
  // Sines, cosines and, beside 16-bit operands, exponentials err by 2e-6 each.
  CHECK(error_in(of.size_of_y, ys, of.y) < 8e-6);
  CHECK(error_in(of.size_of_dx, dxs, of.dx) < 8e-6);
  CHECK(error_in(of.size_of_dg, dgs, of.dg) < 8e-6);
}

}  // namespace

TEST_CASE("a layer of an encoding, a scan and a gate in one kernel, and its gradient", "[cuda][layer]") {
  for (const std::size_t length : {0U, 1U, 5U, 300U, 5000U})
    for (const std::size_t chunk : {0U, 64U}) {
      for (const std::size_t features : {1U, 7U, 64U}) {
        check_layer<float>({2, length, 2, features, chunk});
        check_layer<bfloat16>({2, length, 2, features, chunk});
      }
      const std::size_t few = length > 1000 ? 1 : 4;  // the loops take long
      check_layer<bfloat16>({few, length, 3 * few, 128, chunk});
      check_layer<float>({0, length, 1, 3, chunk});
    }
}
