#include "docs/golden.hpp"
#include "docs/program_table.hpp"
#include "scandsl/scandsl.hpp"
#include "support/catch.hpp"

using namespace docs_test;

namespace {

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr tensor<"decay"> decay;

// The program of examples/pipeline.cpp.
constexpr auto weight = exp(x(b, n, d) - last(scan(log_add_exp, over(d), x(b, n, d))));
constexpr auto attended = op<"attended">(out<"y">(b, n, d) = scan(decayed_sum, over(n), decay(d), weight));

// [doc:softmax]
constexpr auto row_softmax =
    op<"softmax">(out<"y">(b, d) = exp(x(b, d) - last(scan(log_add_exp, over(d), x(b, d)))));
// [/doc:softmax]

// [doc:hoisted]
constexpr auto faded =
    op<"faded">(out<"y">(n, d) = scan(decayed_sum, over(n), exp(-square(decay(d))), x(n, d)));
// [/doc:hoisted]

// [doc:simplify]
constexpr auto written = op<"square">(out<"y">(n) = (x(n) * 1.0 - (-decay(n))) * (decay(n) + x(n) + 0.0));
constexpr auto simplified = simplify(written);
// [/doc:simplify]

constexpr auto prepared = prepare(row_softmax);

std::string page(const char* region) { return golden("pipeline.txt", region); }

}  // namespace

TEST_CASE("the pages show the program that the example runs", "[docs]") {
  const std::string shown_there = golden("../../examples/output/pipeline.txt", "written");
  CHECK(describe(attended) + "\n" == shown_there);
}

TEST_CASE("the program, node by node", "[docs]") { CHECK(table_of(attended) == page("program")); }

TEST_CASE("the program, simplified", "[docs]") { CHECK(describe(simplified) + "\n" == page("simplified")); }

TEST_CASE("the program as LaTeX", "[docs]") { CHECK(describe_latex(attended) + "\n" == page("latex")); }

TEST_CASE("the program as executors take it, node by node", "[docs]") {
  CHECK(table_of(prepared) == page("prepared"));
}

TEST_CASE("the schedule of a softmax: two sweeps", "[docs]") {
  CHECK(kernels_of<row_softmax>.programs.count == 1);
  CHECK(schedule_text(kernel_program<row_softmax, 0>, kernel_schedule<row_softmax, 0>) == page("sweeps"));
}

TEST_CASE("what does not vary along the walk is computed before it", "[docs]") {
  CHECK(schedule_text(kernel_program<faded, 0>, kernel_schedule<faded, 0>) == page("hoisted"));
}

TEST_CASE("the plan of a softmax", "[docs]") {
  const cpu_plan planned =
      plan<row_softmax>(cpu{2}, x = shape<float>(3000, 500), y = shape<float>(3000, 500));
  CHECK(planned.kernels.size() == 1);
  CHECK(planned.kernels[0].table.sweeps == 2);
  // [doc:floor]
  CHECK(planned.floor_bytes == 2 * 3000 * 500 * 4);   // x read once, y written once
  CHECK(planned.moved_bytes == planned.floor_bytes);  // the second sweep finds a strip of x in the cache
  // [/doc:floor]
}
