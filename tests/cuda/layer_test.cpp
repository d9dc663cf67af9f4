#include <cstdint>
#include <vector>

#include "cuda/layer_on_gpu.hpp"
#include "support/catch.hpp"
#include "support/layer_reference.hpp"

// An encoding, a scan and a gate in one kernel, and its gradient in one, against loops in float64.
namespace {

using namespace layer_on_gpu;

template <class T> void check_layer(layer_reference of) {
  CAPTURE(sizeof(T), of.batch, of.length, of.heads, of.features, of.every);
  const std::vector<T> xs = of.held<T>(of.x), gs = of.held<T>(of.g), dys = of.held<T>(of.dy);
  const std::vector<float> thetas = of.held<float>(of.theta), decays = of.held<float>(of.decay);
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
  const double unit = sizeof(T) == 2 ? 0x1p-8 : 0x1p-24;
  CHECK(of.error_in(of.size_of_y, ys, of.y, unit) < 8e-6);
  CHECK(of.error_in(of.size_of_dx, dxs, of.dx, unit) < 8e-6);
  CHECK(of.error_in(of.size_of_dg, dgs, of.dg, unit) < 8e-6);
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
