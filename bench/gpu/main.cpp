#include <cstring>

#include "measure.hpp"

// usage: scandsl_gpu_bench [--filter=TEXT] [--growth]
// Prints one JSON object a line: the rows of bench/README.md, or those of its sweeps through sizes.
int main(int argc, char** argv) {
  using namespace bench;
  bool growth = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--filter=", 9) == 0) filter = argv[i] + 9;
    growth = growth || std::strcmp(argv[i], "--growth") == 0;
  }
  pool_x.fill_with(true, -2.0F, 2.0F);
  pool_decay.fill_with(true, 0.8F, 1.0F);
  pool_y.fill_with(true, 0.0F, 0.0F);
  pool_g.fill_with(true, -1.0F, 1.0F);
  pool_z.fill_with(true, 0.0F, 0.0F);
  if (growth) {
    add_growth();
    return 0;
  }
  add_scans();
  add_scan_gradients();
  add_encodings();
  add_cross_entropy();
  pool_x.fill_with(false, -2.0F, 2.0F);
  add_float32();
  return 0;
}
