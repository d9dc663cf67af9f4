#include "property/random_programs.hpp"
#include "support/catch.hpp"
#include "support/derivative.hpp"

using namespace scandsl;
using derivative::tensors;
using generate::make_case;
using generate::random_case;

namespace {

constexpr generate::sizes small{2, 9, 2, 3};

random_case spread_case(const program& p, unsigned seed, std::mt19937& random) {
  random_case c = make_case(p, small, seed);
  derivative::spread(p, c, random);
  return c;
}

/// Every third operand, from the `which`-th on.
operand_names some_operands(const program& p, unsigned which) {
  operand_names result;
  unsigned i = 0;
  for (const tensor_decl& t : p.tensors)
    if (t.role == tensor_role::input && i++ % 3 == which) result.push_back(t.id);
  return result;
}

/// What fits the capacities of a program; `too_large` counts what does not.
template <class Pass> bool fits(Pass pass, int& too_large) {
  try {
    pass();
    return true;
  } catch (const char* message) {
    if (std::string(message).find("too large") == std::string::npos) throw;
    ++too_large;
    return false;
  }
}

}  // namespace

TEST_CASE("gradients of random programs agree with forward mode and with differences",
          "[property][gradient]") {
  std::mt19937 random(17);
  int different = 0;
  for (std::size_t i = 0; i < property::all_programs().size(); ++i) {
    const program& p = *property::all_programs()[i];
    const program dp = gradient(p), tp = jvp(p);
    INFO("random_program<" << i << ">");
    CHECK(simplify(dp) == dp);
    for (unsigned seed = 0; seed < 3; ++seed) {
      const random_case c = spread_case(p, seed, random);
      CHECK(derivative::adjoint_mismatch(p, dp, tp, c, random) < 1e-13);
      if (!derivative::is_differentiable(p)) continue;
      ++different;
      CHECK(derivative::difference_mismatch(p, dp, c, random) < 1e-8);
    }
  }
  CHECK(different > 30);
}

TEST_CASE("second-order gradients of random programs agree with forward mode and with differences",
          "[property][gradient]") {
  std::mt19937 random(19);
  int too_large = 0, tried = 0, different = 0;
  for (std::size_t i = 0; i < property::all_programs().size(); ++i) {
    const program& p = *property::all_programs()[i];
    const program dp = detail::gradient_of(p, some_operands(p, static_cast<unsigned>(i % 3)));
    INFO("random_program<" << i << ">");
    program ddp, tdp;
    ++tried;
    if (!fits([&] { ddp = gradient(dp), tdp = jvp(dp); }, too_large)) continue;
    random_case c = spread_case(p, 1, random);
    for (const auto& [id, values] : derivative::random_like(derivative::outputs_of(p, c), "d", random))
      c.inputs[id] = values;
    c = derivative::restricted_to(dp, c);
    CHECK(derivative::adjoint_mismatch(dp, ddp, tdp, c, random) < 1e-13);
    if (!derivative::is_differentiable(dp)) continue;
    ++different;
    CHECK(derivative::difference_mismatch(dp, ddp, c, random) < 1e-8);
  }
  CHECK(different > 10);
  CHECK(too_large * 4 < tried);
}

TEST_CASE("gradients of tangents agree with differences", "[property][jvp]") {
  std::mt19937 random(23);
  int too_large = 0, tried = 0;
  for (std::size_t i = 0; i < property::all_programs().size(); ++i) {
    const program& p = *property::all_programs()[i];
    if (!derivative::is_differentiable(p)) continue;
    const program tp = jvp(p);
    INFO("random_program<" << i << ">");
    program dtp;
    ++tried;
    if (!fits([&] { dtp = gradient(tp); }, too_large)) continue;
    random_case c = spread_case(p, 2, random);
    for (const auto& [id, values] : derivative::random_like(c.inputs, "t", random)) c.inputs[id] = values;
    c = derivative::restricted_to(tp, c);
    CHECK(derivative::difference_mismatch(tp, dtp, c, random) < 1e-8);
  }
  CHECK(too_large * 3 < tried);
}
