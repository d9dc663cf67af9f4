#include "exec/sweep_programs.hpp"
#include "support/catch.hpp"

using namespace exec_test;

namespace {

void check_same_bits(const compiled& program_, const scan_case& c) {
  const operands given = make_operands(program_, c, 3);
  const tensors once = run_on_cpu(program_, given, cpu{1}).outputs;
  for (const int threads : {1, 2, 3, 7, 0}) {
    INFO(program_.p->id.view() << " " << c << " threads " << threads);
    CHECK(same_bits(once, run_on_cpu(program_, given, cpu{threads}).outputs));
  }
}

}  // namespace

TEST_CASE("every run gives the same bits, on any number of threads", "[exec][threads]") {
  for (const compiled* each :
       {&simple_scans, &statistics_scans, &decayed_scans, &dependent_scans, &softmax_scans}) {
    check_same_bits(*each, {37, 50});
    check_same_bits(*each, {5, 300, 128});
    check_same_bits(*each, {1, 40001, 0, 3, true, false, true, true, {0, 36000, 36000, 40001}});
  }
  check_same_bits(mixed_axes, {3, 40, 0, 20});
  check_same_bits(mixed_axes, {1, 40000, 0, 2});
  check_same_bits(dependent_scans, {1, 130000});  // several batches of blocks for each number of threads
}
