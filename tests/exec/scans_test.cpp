#include <algorithm>

#include "exec/sweep_programs.hpp"
#include "support/catch.hpp"

using namespace exec_test;

namespace {

const std::vector<const compiled*> with_options = {&simple_scans, &statistics_scans, &decayed_scans,
                                                   &dependent_scans};

/// The case with the options that the bits of `flags` choose.
scan_case with_flags(scan_case c, int flags, std::mt19937& random, int sequences) {
  c.reversed = (flags & 1) != 0;
  c.exclusive = (flags & 2) != 0;
  c.packed = (flags & 4) != 0;
  c.seeded = (flags & 8) != 0;
  c.offsets.clear();
  if (c.packed) c.offsets = random_offsets(random, c.length, sequences);
  return c;
}

void check_all(const std::vector<const compiled*>& programs, const scan_case& c, unsigned seed,
               double tolerance = 1e-5, const cpu& device = {}) {
  INFO(c);
  for (const compiled* each : programs) {
    INFO(each->p->id.view());
    CHECK(mismatch(*each, make_operands(*each, c, seed), tolerance, device) == "");
  }
}

}  // namespace

TEST_CASE("every operator scans as the oracle does, with every option", "[exec][scan]") {
  std::mt19937 random(1);
  unsigned seed = 0;
  for (const std::int64_t length : {0, 1, 2, 7, 33})
    for (const std::int64_t chunk : {0, 1, 3, 1000})
      for (int flags = 0; flags < 16; ++flags) {
        const int sequences = 1 + static_cast<int>(seed % 6);
        ++seed;
        check_all(with_options, with_flags({1 + seed % 18, length, chunk}, flags, random, sequences), seed);
      }
}

TEST_CASE("restarts are counted from position 0 of the sequence, in both directions", "[exec][scan]") {
  std::mt19937 random(2);
  for (const int flags : {0, 1, 4, 5, 12, 13})
    for (const std::int64_t chunk : {1, 3, 128, 299, 300, 301})
      check_all(with_options, with_flags({3, 300, chunk}, flags, random, 3), 7);
}

TEST_CASE("sizes around powers of two, and primes", "[exec][scan]") {
  std::mt19937 random(3);
  unsigned seed = 100;
  for (const std::int64_t batch : {1, 3, 15, 16, 17, 31, 33, 127})
    for (const std::int64_t length : {1, 13, 63, 64, 65, 127, 257}) {
      ++seed;
      const int flags = static_cast<int>(seed % 16);
      check_all({with_options[seed % 4]}, with_flags({batch, length}, flags, random, 2), seed);
    }
}

TEST_CASE("programs of several sweeps, kernels and axes", "[exec][scan]") {
  unsigned seed = 200;
  for (const std::int64_t batch : {0, 1, 2, 17, 40})
    for (const std::int64_t length : {0, 1, 5, 33, 130})
      for (const std::int64_t width : {0, 1, 4, 19}) {
        scan_case c{batch, length, 0, width};
        if (width == 1) check_all({&softmax_scans, &fixed_walks}, c, ++seed);
        // Of sums of length x width products of about 1, each addition errs by 2^-24 of what it adds to.
        check_all({&mixed_axes}, c, ++seed, std::max(1e-5, 0x1p-24 * static_cast<double>(length * width)));
      }
}

TEST_CASE("two sets of packed sequences, and what follows from their final values", "[exec][scan]") {
  std::mt19937 random(5);
  for (const std::int64_t batch : {1, 3, 17})
    for (const std::int64_t length : {0, 1, 40, 4200})
      for (int bound = 0; bound < 8; ++bound) {
        operands given;
        const std::int64_t sequences = (bound & 1) != 0 ? 3 : 1;
        given.inputs["x"] = random_tensor(random, {batch, length});
        const auto boundary = [&](std::int64_t part) { return static_cast<double>(length / part); };
        if ((bound & 1) != 0) given.inputs["offsets"] = {{0, boundary(3), boundary(3), boundary(1)}, {4}};
        if ((bound & 2) != 0) given.inputs["others"] = {{0, boundary(2), boundary(1)}, {3}};
        if ((bound & 4) != 0) given.inputs["h"] = random_tensor(random, {sequences, batch});
        given.scalars["flag"] = bound % 2 == 0 ? 1 : -1;
        INFO(batch << " x " << length << " bound " << bound);
        CHECK(mismatch(packed_scans, given, 1e-3) == "");
      }
}

TEST_CASE("long rows are cut into pieces", "[exec][scan][pieces]") {
  std::mt19937 random(4);
  unsigned seed = 300;
  for (const std::int64_t batch : {1, 2, 5, 31, 32, 33})
    for (const std::int64_t length : {4095, 4096, 4159, 5003}) {
      if (batch > 2 && length != 4096) continue;
      const auto first = static_cast<std::size_t>(seed % 4);
      ++seed;
      check_all({with_options[first], with_options[(first + 1) % 4]},
                with_flags({batch, length}, static_cast<int>(seed * 7 % 16), random,
                           1 + static_cast<int>(seed % 9)),
                seed, 2e-4);
    }
  for (const std::int64_t length : {4096, 4099, 9000}) {
    ++seed;
    check_all({&softmax_scans, &fixed_walks}, {1, length}, seed, 1e-4);
    check_all({&mixed_axes}, {1, length, 0, 1}, seed, 1e-4);
    check_all({&mixed_axes}, {2, length, 0, 2}, seed, 1e-4);
  }
  for (int flags = 0; flags < 16; ++flags) {
    const auto first = static_cast<std::size_t>(flags + flags / 4) % 4;
    check_all({with_options[first], with_options[(first + 2) % 4]},
              with_flags({1, 4500 + 4600 * (flags / 2 % 2)}, flags, random, 4), ++seed, 2e-4);
  }
}
