#include "scandsl/core/view.hpp"

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "support/catch.hpp"

using namespace scandsl;

TEST_CASE("storage types have run-time names", "[core][dtype]") {
  STATIC_REQUIRE(dtype_of<float> == dtype::float32);
  STATIC_REQUIRE(dtype_of<const double> == dtype::float64);
  STATIC_REQUIRE(dtype_of<bfloat16> == dtype::bfloat16);
  STATIC_REQUIRE(dtype_of<const float16> == dtype::float16);
  STATIC_REQUIRE(dtype_of<std::int32_t> == dtype::int32);
  STATIC_REQUIRE(dtype_of<std::int64_t> == dtype::int64);
  STATIC_REQUIRE(dtype_of<long long> == dtype::int64);
  STATIC_REQUIRE_FALSE(storage_type<char>);
  STATIC_REQUIRE_FALSE(storage_type<unsigned>);
  STATIC_REQUIRE_FALSE(storage_type<wchar_t>);

  STATIC_REQUIRE(size_of(dtype::bfloat16) == 2);
  STATIC_REQUIRE(size_of(dtype::int64) == 8);
  STATIC_REQUIRE(is_floating(dtype::float16));
  STATIC_REQUIRE_FALSE(is_floating(dtype::int32));
}

TEST_CASE("visit_dtype undoes dtype_of", "[core][dtype]") {
  for (const dtype type :
       {dtype::float32, dtype::float64, dtype::bfloat16, dtype::float16, dtype::int32, dtype::int64}) {
    CAPTURE(name_of(type));
    CHECK(visit_dtype(type, []<class T>(std::type_identity<T>) { return dtype_of<T>; }) == type);
  }
  CHECK(std::string(name_of(dtype::bfloat16)) == "bfloat16");
  CHECK_THROWS_AS(size_of(static_cast<dtype>(77)), dtype_error);
}

TEST_CASE("errors say what was expected, what came, what to do", "[core][error]") {
  const argument_error thrown("a chunk of at least 1", message("the chunk ", 0),
                              "leave it out for one chunk");
  CHECK(std::string(thrown.what()) ==
        "expected a chunk of at least 1; got the chunk 0; leave it out for one chunk");
  STATIC_REQUIRE(std::is_base_of_v<error, shape_error>);
  STATIC_REQUIRE(std::is_base_of_v<error, index_error>);
  STATIC_REQUIRE(std::is_base_of_v<error, overlap_error>);
  STATIC_REQUIRE(std::is_base_of_v<std::exception, error>);
}

TEST_CASE("a list of dimensions holds eight", "[core][view]") {
  dims list;
  CHECK(list.empty());
  CHECK(list.count() == 1);
  for (int i = 0; i < max_dims; ++i) list.push_back({2, 1});
  CHECK(list.size() == 8);
  CHECK(list.count() == 256);
  CHECK_THROWS_AS(list.push_back({1, 1}), argument_error);
  CHECK_THROWS_AS((dims{{-1, 1}}), argument_error);
  STATIC_REQUIRE(dims{{2, 3}, {4, 5}}.count() == 8);
  STATIC_REQUIRE(dims{{2, 3}} == dims{{2, 3}});
  STATIC_REQUIRE_FALSE(dims{{2, 3}} == dims{{2, 4}});
  STATIC_REQUIRE_FALSE(dims{} == dims{{1, 0}});
}

TEST_CASE("a list of dimensions is copied whole, over a longer one and over a shorter one", "[core][view]") {
  const dims two{{2, 3}, {4, 5}}, none;
  dims list{{6, 7}};
  list = two;
  CHECK(list == two);
  CHECK(dims(list) == two);
  list = none;
  CHECK(list.empty());
  list.push_back({8, 9});
  CHECK(list == dims{{8, 9}});
}

TEST_CASE("integers bind a contiguous row-major tensor", "[core][view]") {
  std::vector<float> memory(24);
  const auto bound = view(memory.data(), 2, std::int64_t{3}, 4U);
  STATIC_REQUIRE(bound.rank == 3);
  CHECK(bound.data == memory.data());
  CHECK(bound.axis[0] == dims{{2, 12}});
  CHECK(bound.axis[1] == dims{{3, 4}});
  CHECK(bound.axis[2] == dims{{4, 1}});
  CHECK_THROWS_AS(view(memory.data(), 2, -3), argument_error);
}

TEST_CASE("an axis may cover several dimensions", "[core][view]") {
  const double memory[1] = {};
  const auto bound = view(memory, dims{{2, 40}, {3, 5}}, dim{7, -1});
  STATIC_REQUIRE(std::is_same_v<decltype(bound)::element, const double>);
  CHECK(bound.axis[0].count() == 6);
  CHECK(bound.axis[1] == dims{{7, -1}});
  CHECK(view(memory).axis[0].count() == 1);
}

TEST_CASE("a shape is a view without memory", "[core][view]") {
  constexpr auto planned = shape<bfloat16>(3, 5);
  STATIC_REQUIRE(planned.data == nullptr);
  STATIC_REQUIRE(planned.axis[0] == dims{{3, 5}});
  STATIC_REQUIRE(shape<float>().rank == 0);
}

TEST_CASE("a view forgets its types when it is erased", "[core][view]") {
  const float16 memory[6] = {};
  const erased_view erased = erase(view(memory, 2, 3));
  CHECK(erased.data == memory);
  CHECK(erased.type == dtype::float16);
  CHECK_FALSE(erased.writable);
  CHECK(erased.rank == 2);
  CHECK(erased.axis[0] == dims{{2, 3}});
  STATIC_REQUIRE(erase(shape<float>(2)).writable);
}

TEST_CASE("an array is contiguous where it has no strides", "[core][view]") {
  std::vector<std::int64_t> memory(24);
  const array contiguous = array::of(memory.data(), {2, 3, 4});
  CHECK(contiguous.type == dtype::int64);
  CHECK(contiguous.writable);
  CHECK(contiguous.rank == 3);
  CHECK(contiguous.count() == 24);
  CHECK(contiguous.strides[0] == 12);
  CHECK(contiguous.strides[2] == 1);

  const float constant[1] = {};
  const array broadcast = array::of(constant, {5, 6}, {0, 0});
  CHECK_FALSE(broadcast.writable);
  CHECK(broadcast.strides[1] == 0);
  CHECK(array::of(constant, {}).count() == 1);

  CHECK_THROWS_AS(array::of(constant, {5, 6}, {0}), shape_error);
  CHECK_THROWS_AS(array::of(constant, {1, 1, 1, 1, 1, 1, 1, 1, 1}), argument_error);
  CHECK_THROWS_AS(array::of(constant, {2, -1}), argument_error);
}
