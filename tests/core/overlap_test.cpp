#include "scandsl/core/overlap.hpp"

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "support/catch.hpp"

using namespace scandsl;

namespace {

/// The address of each position, in row-major order.
std::vector<std::uintptr_t> addresses(const footprint& view) {
  std::vector<std::uintptr_t> result{view.address};
  for (const dim& each : view.where) {
    std::vector<std::uintptr_t> next;
    for (const std::uintptr_t start : result)
      for (std::int64_t i = 0; i < each.extent; ++i)
        next.push_back(start + static_cast<std::uintptr_t>(i * each.stride) * view.element_size);
    result = next;
  }
  return result;
}

/// Every byte of every position, in row-major order; a byte touched twice comes twice.
std::vector<std::uintptr_t> bytes(const footprint& view) {
  std::vector<std::uintptr_t> result;
  for (const std::uintptr_t start : addresses(view))
    for (std::size_t byte = 0; byte < view.element_size; ++byte) result.push_back(start + byte);
  return result;
}

bool self_overlaps_by_force(const footprint& view) {
  const auto all = bytes(view);
  return std::set<std::uintptr_t>(all.begin(), all.end()).size() != all.size();
}

bool overlaps_by_force(const footprint& left, const footprint& right) {
  const auto all = bytes(left);
  const std::set<std::uintptr_t> taken(all.begin(), all.end());
  for (const std::uintptr_t byte : bytes(right))
    if (taken.count(byte) != 0) return true;
  return false;
}

footprint random_view(std::mt19937& random) {
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const int element_size = 1 << draw(0, 3);
  footprint result{static_cast<std::uintptr_t>(100000 + draw(-60, 60) * (draw(0, 3) == 0 ? 1 : element_size)),
                   static_cast<std::size_t>(element_size),
                   {}};
  const int rank = draw(0, 4);
  for (int i = 0; i < rank; ++i) result.where.push_back({draw(0, 12) == 0 ? 0 : draw(1, 5), draw(-20, 20)});
  return result;
}

/// A view of a 4-byte element type, at an offset in elements.
footprint at(std::int64_t offset, std::vector<dim> where) {
  return {static_cast<std::uintptr_t>((std::int64_t{1} << 40) + 4 * offset), 4, std::move(where)};
}

}  // namespace

TEST_CASE("overlap agrees with a search through every byte", "[core][overlap]") {
  std::mt19937 random(3);
  int found = 0, found_within = 0, wrong = 0;
  for (int i = 0; i < 20000; ++i) {
    const footprint left = random_view(random), right = random_view(random);
    wrong += overlaps(left, right) != overlaps_by_force(left, right);
    wrong += self_overlaps(left) != self_overlaps_by_force(left);
    found += overlaps(left, right);
    found_within += self_overlaps(left);
  }
  REQUIRE(wrong == 0);
  CHECK((found > 2000 && found < 18000));  // both answers come often
  CHECK((found_within > 2000 && found_within < 18000));
}

TEST_CASE("views that overlap lie where they might", "[core][overlap]") {
  std::mt19937 random(5);
  const auto view_of = [](const footprint& from) {
    erased_view view{reinterpret_cast<void*>(from.address), dtype::float32, false, 1, {}};
    for (const dim& each : from.where) view.axis[0].push_back(each);
    return view;
  };
  int missed = 0, apart = 0;
  for (int i = 0; i < 20000; ++i) {
    footprint left = random_view(random), right = random_view(random);
    left.element_size = right.element_size = size_of(dtype::float32);
    const bool might = might_overlap(view_of(left), view_of(right));
    missed += !might && overlaps(left, right);
    apart += !might;
  }
  REQUIRE(missed == 0);
  CHECK(apart > 2000);
  const float memory[8] = {};
  CHECK_FALSE(might_overlap(erase(view(memory, 4)), erase(view(memory + 4, 4))));
  CHECK(might_overlap(erase(view(memory, 4)), erase(view(memory + 3, 4))));
}

TEST_CASE("views that walk the same bytes in the same order are identical", "[core][overlap]") {
  std::mt19937 random(4);
  for (int i = 0; i < 20000; ++i) {
    footprint left = random_view(random), right = random_view(random);
    right.address = left.address;
    right.element_size = left.element_size;
    if (addresses(left).empty() || addresses(right).empty()) continue;
    REQUIRE((!identical(left, right) || addresses(left) == addresses(right)));
  }
  CHECK(identical(at(0, {{6, 4}, {4, 1}}), at(0, {{2, 12}, {1, 99}, {12, 1}})));
  CHECK(identical(at(5, {{6, -1}}), at(5, {{2, -3}, {3, -1}})));
  CHECK_FALSE(identical(at(0, {{6, 4}, {4, 1}}), at(1, {{6, 4}, {4, 1}})));
  CHECK_FALSE(identical(at(0, {{4, 1}, {6, 4}}), at(0, {{6, 4}, {4, 1}})));
}

TEST_CASE("interleaved views of large tensors do not overlap", "[core][overlap]") {
  const std::int64_t rows = 1 << 20, columns = 4096;
  const auto even = at(0, {{rows, columns}, {columns / 2, 2}});
  const auto odd = at(1, {{rows, columns}, {columns / 2, 2}});
  CHECK_FALSE(overlaps(even, odd));
  CHECK(overlaps(even, even));
  CHECK_FALSE(self_overlaps(even));

  const auto left_half = at(0, {{rows, columns}, {columns / 2, 1}});
  const auto right_half = at(columns / 2, {{rows, columns}, {columns / 2, 1}});
  const auto shifted = at(columns / 2 - 1, {{rows, columns}, {columns / 2, 1}});
  CHECK_FALSE(overlaps(left_half, right_half));
  CHECK(overlaps(left_half, shifted));

  // Parts of one (batch, length, 3, heads, width) tensor, their axes permuted.
  const std::int64_t row = 3 * 12 * 64;
  const auto query = at(0, {{8, 2048 * row}, {12, 64}, {2048, row}, {64, 1}});
  const auto key = at(12 * 64, {{2048, row}, {8, 2048 * row}, {12, 64}, {64, 1}});
  CHECK_FALSE(overlaps(query, key));
  CHECK_FALSE(self_overlaps(query));
}

TEST_CASE("repeats, mirrors and empty views", "[core][overlap]") {
  CHECK(self_overlaps(at(0, {{3, 4}, {2, 0}})));
  CHECK_FALSE(self_overlaps(at(0, {{3, 4}, {1, 0}})));
  CHECK(self_overlaps(at(0, {{3, 1}, {3, 1}})));
  CHECK(overlaps(at(9, {{10, -1}}), at(0, {{10, 1}})));
  CHECK_FALSE(overlaps(at(-1, {{10, -1}}), at(0, {{10, 1}})));
  CHECK(overlaps(at(0, {}), at(0, {})));
  CHECK_FALSE(overlaps(at(0, {{0, 1}}), at(0, {{10, 1}})));
  CHECK_FALSE(self_overlaps(at(0, {{0, 1}, {7, 0}})));
}

TEST_CASE("elements of different sizes meet in single bytes", "[core][overlap]") {
  const footprint words{1024, 8, {{4, 2}}};        // bytes 0-7, 16-23, 32-39, 48-55
  const footprint between{1024 + 8, 2, {{3, 8}}};  // bytes 8-9, 24-25, 40-41
  const footprint touching{1024 + 6, 4, {{3, 4}}};
  CHECK_FALSE(overlaps(words, between));
  CHECK(overlaps(words, touching));
}

TEST_CASE("a view too intricate to decide counts as overlapping", "[core][overlap]") {
  // Eight strides of one size without a common structure: the sums are far too many to try, and they fill
  // so little of the range that these two views almost surely do not meet. The search must end all the same.
  std::vector<dim> where;
  for (const std::int64_t stride : {100000000003, 100372910417, 100718293141, 101293847561, 101561929837,
                                    101923847183, 102349182737, 102718293847})
    where.push_back({9, stride});
  CHECK(overlaps(at(0, where), at(123456789, where)));
}

TEST_CASE("a bound view has the footprint of its axes", "[core][overlap]") {
  const float memory[24] = {};
  const footprint taken = footprint_of(erase(view(memory, dims{{2, 12}, {3, 4}}, dim{4, 1})));
  CHECK(taken.address == reinterpret_cast<std::uintptr_t>(memory));
  CHECK(taken.element_size == 4);
  CHECK(taken.where == std::vector<dim>{{2, 12}, {3, 4}, {4, 1}});
}
