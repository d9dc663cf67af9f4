#include "scandsl/exec/cuda/look_ahead.hpp"

#include "support/catch.hpp"

// What blocks have fetched for later ones: plain numbers of what a kernel is told.
namespace {

using namespace scandsl;
using namespace scandsl::cuda_detail;

struct declared {
  tensor_role role;
};
struct declarations {
  declared tensors[3];
};
/// A kernel of two inputs and an output.
struct kernel {
  static constexpr int tensors = 3;
  using arguments = kernel_arguments<tensors, 0, float>;
  struct group {
    static constexpr declarations value{{{tensor_role::input}, {tensor_role::input}, {tensor_role::output}}};
  };
};
using arguments = kernel::arguments;

/// Blocks of 1 << log2_rows whole rows.
struct rows {
  static std::int64_t elements_at_once(const arguments& a, int) { return a.steps << a.log2_rows; }
  static int units_of_block(const arguments& a) { return 1 << a.log2_rows; }
};
/// Blocks of 16 threads with four lanes each.
struct strips {
  static std::int64_t elements_at_once(const arguments&, int) { return 64; }
  static int units_of_block(const arguments&) { return 16; }
};

alignas(16) unsigned char memory[32];

arguments of_rows(std::int64_t lanes, std::int64_t steps, dtype type = dtype::bfloat16) {
  arguments a;
  a.along_rows = true;
  a.lanes = lanes;
  a.steps = steps;
  a.lane_dimensions = a.walk_dimensions = 1;
  a.lane[0].extent = lanes;
  for (int t = 0; t < 3; ++t) {
    a.tensor[t] = {memory, type, access::vector, true, lanes * steps};
    a.lane[0].stride[t] = steps;
    a.walk[0].stride[t] = 1;
  }
  return a;
}

}  // namespace

TEST_CASE("blocks have as much fetched as memory delivers while a request is under way", "[cuda][plan]") {
  arguments a = of_rows(98304, 2048);
  describe_ahead<kernel, rows>(a);
  for (const int t : {0, 1}) {  // 8 KB a row, of both
    CHECK(a.ahead[t].bytes == 4096);
    CHECK(a.ahead[t].apart == 512 * 4096);
  }
  CHECK(a.ahead[2].apart == 0);  // what is written is not read

  a = of_rows(98304, 512);
  a.log2_rows = 2;
  describe_ahead<kernel, rows>(a);
  CHECK(a.ahead[0].bytes == 4096);
  CHECK(a.ahead[0].apart == 2048 * 1024);

  a = of_rows(98304, 512, dtype::float32);
  a.tensor[1].bound = false;
  describe_ahead<kernel, rows>(a);
  CHECK(a.ahead[0].bytes == 2048);
  CHECK(a.ahead[0].apart == cuda_ahead_policy::bytes);
  CHECK(a.ahead[1].apart == 0);

  a = of_rows(512, 2048);  // all of them begin at once
  describe_ahead<kernel, rows>(a);
  CHECK(a.ahead[0].apart == 0);
}

TEST_CASE("nothing is fetched where a request cannot be made, or would be for something else",
          "[cuda][plan]") {
  const auto apart_where = [](auto change) {
    arguments a = of_rows(98304, 2048);
    change(a);
    describe_ahead<kernel, rows>(a);
    CHECK(a.ahead[1].apart > 0);
    return a.ahead[0].apart;
  };
  CHECK(apart_where([](arguments&) {}) > 0);
  CHECK(apart_where([](arguments& a) { a.tensor[0].data = memory + 2; }) == 0);
  CHECK(apart_where([](arguments& a) { a.tensor[0].mode = access::scattered; }) == 0);
  CHECK(apart_where([](arguments& a) { a.tensor[0].mode = access::same; }) == 0);
  CHECK(apart_where([](arguments& a) { a.lane[0].stride[0] = 2049; }) == 0);
  CHECK(apart_where([](arguments& a) { a.lane[0].stride[0] = -2048; }) == 0);
  CHECK(apart_where([](arguments& a) { a.walk[0].stride[0] = 0; }) == 0);  // read once a lane
  arguments walked = of_rows(98304, 2048);
  walked.walk_dimensions = 2;
  describe_ahead<kernel, rows>(walked);
  CHECK(walked.ahead[0].apart == 0);
}

TEST_CASE("what later blocks read is as far away everywhere", "[cuda][plan]") {
  // [12, 64 chunks of 128 steps, 2048 lanes]: 512 units of four lanes side by side, then the next chunk.
  arguments a;
  a.steps = 8192;
  a.chunk = 128;
  a.chunk_dimension = 1;
  a.lane_dimensions = 3;
  a.walk_dimensions = 1;
  a.lanes = 12 * 64 * 512;
  const std::int64_t extents[] = {12, 64, 512}, strides[] = {8192 * 2048, 128 * 2048, 4};
  for (int d = 0; d < 3; ++d) a.lane[d].extent = extents[d];
  for (int t = 0; t < 3; ++t) {
    a.tensor[t] = {memory, dtype::bfloat16, access::vector, true, std::int64_t{12} * 8192 * 2048};
    for (int d = 0; d < 3; ++d) a.lane[d].stride[t] = strides[d];
    a.walk[0].stride[t] = 2048;
  }
  a.tensor[1].bound = false;
  describe_ahead<kernel, strips>(a);
  CHECK(a.ahead[0].bytes == 128);
  CHECK(a.ahead[0].apart == 8 * 128 * 2048 * 2);  // 256 blocks of 16 KB: eight chunks

  // What is read once a lane is not counted.
  arguments once = a;
  once.tensor[1].bound = true;
  for (int d = 0; d < 2; ++d) once.lane[d].stride[1] = 512 * 4;
  once.walk[0].stride[1] = 0;
  describe_ahead<kernel, strips>(once);
  CHECK(once.ahead[0].apart == a.ahead[0].apart);
  CHECK(once.ahead[1].apart == 0);

  // Steps that do not begin where a request may.
  arguments odd = a;
  odd.walk[0].stride[0] = 2044;
  describe_ahead<kernel, strips>(odd);
  CHECK(odd.ahead[0].apart == 0);

  // A gap between the sequences: blocks of a sequence's end would look for the next one's elsewhere.
  arguments gaps = a;
  gaps.lane[0].stride[0] += 2048;
  describe_ahead<kernel, strips>(gaps);
  CHECK(gaps.ahead[0].apart == 0);
}

TEST_CASE("behind a gap a block's later one lies in the next dimension, if that is not much further",
          "[cuda][plan]") {
  // Rows of two operands in groups of `group`, which have a gap behind them: 512 rows further on would be
  // best.
  const auto groups_of = [](std::int64_t group) {
    arguments a = of_rows(64 * group, 2048);
    a.lane_dimensions = 2;
    a.lane[0].extent = 64;
    a.lane[1].extent = group;
    for (int t = 0; t < 3; ++t) {
      a.lane[0].stride[t] = (group + 1) * 2048;
      a.lane[1].stride[t] = 2048;
    }
    describe_ahead<kernel, rows>(a);
    return a.ahead[0].apart / (a.lane[0].stride[0] * 2);
  };
  CHECK(groups_of(16) == 32);
  CHECK(groups_of(300) == 2);
  CHECK(groups_of(600) == 1);
  CHECK(groups_of(1024) == 1);
  CHECK(groups_of(1025) == 0);
}
