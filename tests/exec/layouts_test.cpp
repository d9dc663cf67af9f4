#include "exec/sweep_programs.hpp"
#include "support/catch.hpp"

using namespace exec_test;

namespace {

/// Axes that bind to lists of dimensions. Two tensors may split an axis differently, as long as the splits
/// nest.
const std::map<std::string, std::vector<std::int64_t>> splits{
    {"b", {2, 3}}, {"n", {3, 2, 5}}, {"d", {2, 2}}, {"s", {4}}};
const scan_case split_case{6, 30, 0, 4};

/// Gives each tensor of the program a layout drawn at random. What repeats in memory repeats in value: the
/// inputs are read back from memory before the oracle sees them.
void scatter(const compiled& program_, operands& given, std::mt19937& random) {
  const program& p = *program_.p;
  for (const tensor_decl& declared : p.tensors) {
    if (declared.role == tensor_role::offsets) continue;
    std::vector<std::int64_t> extents;
    std::vector<std::vector<std::int64_t>> parts;
    for (const std::int16_t axis : declared.axes) {
      parts.push_back(splits.at(std::string(p.axes[axis].view())));
      if (p.axes[axis] == make_name("s") && given.inputs.count("offsets") == 0) parts.back() = {1};
      std::int64_t extent = 1;
      for (const std::int64_t part : parts.back()) extent *= part;
      extents.push_back(extent);
    }
    given.layouts[std::string(declared.id.view())] =
        random_layout(random, extents, parts, declared.role == tensor_role::input);
  }
}

}  // namespace

TEST_CASE("any layout: permuted, sliced, flipped, repeated, several dimensions on an axis",
          "[exec][layout]") {
  std::mt19937 random(21);
  for (unsigned round = 0; round < 60; ++round) {
    scan_case c = split_case;
    c.chunk = round % 3 == 0 ? 7 : 0;
    c.reversed = round % 2 == 1;
    c.exclusive = round % 5 == 0;
    c.seeded = round % 4 != 0;
    c.packed = round % 7 == 0;
    if (c.packed) c.offsets = {0, 4, 4, 29, 30};
    for (const compiled* each :
         {&simple_scans, &decayed_scans, &dependent_scans, &mixed_axes, &softmax_scans}) {
      operands given = make_operands(*each, c, round);
      scatter(*each, given, random);
      INFO(each->p->id.view() << " round " << round << " " << c);
      CHECK(mismatch(*each, given, 1e-5, cpu{1 + static_cast<int>(round % 3)}) == "");
    }
  }
}

TEST_CASE("every element type in and out, in any layout", "[exec][layout][dtype]") {
  std::mt19937 random(22);
  unsigned round = 0;
  for (const dtype in : tested_types())
    for (const dtype out_ : tested_types())
      for (const dtype other : tested_types()) {
        scan_case c = split_case;
        c.reversed = ++round % 2 == 1;
        c.seeded = true;
        c.packed = round % 3 == 0;
        if (c.packed) c.offsets = {0, 0, 11, 12, 30};
        operands given = make_operands(decayed_scans, c, round);
        given.usual = in;
        given.types = {{"y_decayed", out_}, {"y_mean", other}, {"l_mean", out_}, {"a", other}, {"h", out_}};
        if (round % 2 == 0) given.types["offsets"] = dtype::int32;
        for (const bool scattered : {false, true}) {
          if (scattered) scatter(decayed_scans, given, random);
          INFO(name_of(in) << " to " << name_of(out_) << " and " << name_of(other) << " " << c);
          const bool in_double = in == dtype::float64 || out_ == dtype::float64 || other == dtype::float64;
          CHECK(mismatch(decayed_scans, given, in_double ? 1e-14 : 1e-6) == "");
        }
      }
}

TEST_CASE("long rows of every element type", "[exec][layout][pieces]") {
  for (const dtype in : tested_types())
    for (const std::int64_t spacing : {1, 3}) {
      scan_case c{2, 4500};
      c.seeded = true;
      operands given = make_operands(decayed_scans, c, 5);
      given.usual = in;
      for (const char* id : {"x", "y_decayed", "a"}) given.layouts[id].spacing = spacing;
      given.layouts["y_mean"].flipped = {false, true};
      given.layouts["x"].flipped = {true, true};
      INFO(name_of(in));
      CHECK(mismatch(decayed_scans, given, in == dtype::float64 ? 1e-13 : 1e-5) == "");
    }
}

TEST_CASE("storage is rounded once, at the end", "[exec][dtype]") {
  // Rounded at every step, a sum of ones would stay at 256.
  operands given;
  given.inputs["x"] = {std::vector<double>(300, 1.0), {1, 300}};
  given.inputs["a"] = {std::vector<double>(300, 1.0), {300}};
  given.usual = dtype::bfloat16;
  given.unbound = {"y_mean", "l_mean", "l_decayed"};
  const std::vector<double> y = run_on_cpu(decayed_scans, given).outputs.at("y_decayed").values;
  for (std::size_t t = 0; t < y.size(); ++t)
    CHECK(y[t] == rounded(dtype::bfloat16, static_cast<double>(t + 1)));
}
