#include "property/random_programs.hpp"
#include "scandsl/pass/log_sum.hpp"
#include "scandsl/pass/prune.hpp"
#include "scandsl/pass/simplify.hpp"
#include "support/catch.hpp"

using namespace scandsl;
using generate::make_case;
using generate::random_case;
using generate::worst_difference;

namespace {

/// A pass keeps what a program means; `tolerance` is for the roundings it may change.
template <class Pass> void keeps_the_meaning(Pass pass, double tolerance) {
  for (std::size_t i = 0; i < property::all_programs().size(); ++i) {
    const program& before = *property::all_programs()[i];
    const program after = pass(before);
    INFO("random_program<" << i << ">");
    for (unsigned seed = 0; seed < 2; ++seed) {
      random_case c = make_case(before, {}, seed);
      const auto expected = c.expected(before);
      // A pass may drop an input that nothing needs.
      std::erase_if(c.inputs, [&](const auto& each) { return after.find_tensor(make_name(each.first)) < 0; });
      std::erase_if(c.scalars,
                    [&](const auto& each) { return after.find_parameter(make_name(each.first)) < 0; });
      std::erase_if(c.extents, [&](const auto& each) { return after.find_axis(make_name(each.first)) < 0; });
      CHECK(worst_difference(expected, c.expected(after)) <= tolerance);
    }
    CHECK(pass(after) == after);
  }
}

}  // namespace

TEST_CASE("prune keeps the meaning of random programs", "[property][prune]") { keeps_the_meaning(prune, 0); }
TEST_CASE("simplify keeps the meaning of random programs", "[property][simplify]") {
  keeps_the_meaning(simplify, 1e-12);
}
TEST_CASE("drop_rules keeps the meaning of random programs", "[property][simplify]") {
  keeps_the_meaning(drop_rules, 0);
}
TEST_CASE("log_sum keeps the meaning of random programs", "[property][log_sum]") {
  keeps_the_meaning(log_sum, 1e-12);
}
