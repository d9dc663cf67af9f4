#include "scandsl/pass/schedule.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/prepare.hpp"
#include "support/catch.hpp"

namespace {

using namespace scandsl;

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"s"> s;
constexpr tensor<"x"> x;
constexpr tensor<"a"> a;
constexpr tensor<"w"> w;
constexpr tensor<"h"> h;
constexpr tensor<"offsets"> offsets;
constexpr scalar<"flag"> flag;

constexpr auto forward = scan(decayed_sum, over(n), a(n), x(b, n));
inline constexpr program plain = op<"plain">(out<"y">(b, n) = forward);
inline constexpr program soft =
    op<"soft">(out<"y">(b, n) = exp(x(b, n) - last(scan(log_add_exp, over(n), x(b, n)))));
inline constexpr program chained = op<"chained">(
    out<"y">(b, n) = scan(plain_sum, over(n), scan(plain_sum, over(n), scan(plain_sum, over(n), x(b, n)))));
inline constexpr program turned =
    op<"turned">(out<"y">(b, n) = scan(plain_sum, over(n).reversed(), exp(forward)) * a(n));
inline constexpr program flags = op<"flags">(
    out<"y">(b, n) = scan(plain_sum, over(n).reversed(flag), x(b, n)) + scan(plain_sum, over(n), x(b, n)));
inline constexpr program guarded =
    op<"guarded">(out<"y">(b, n) = select(flag != 0.0, exp(x(b, n)), log(x(b, n))) * exp(w(b)));
inline constexpr program conditions =
    op<"conditions">(out<"y">(b, n) = select(w(b) < 0.0, scan(plain_sum, over(n), x(b, n)), exp(w(b))),
                     out<"z">(b) = log(w(b)));
inline constexpr program segments =
    op<"segments">(out<"y">(b, n) = scan(welford, over(n).restart_at(offsets(s)), x(b, n)),
                   out<"last">(s, b) = last(scan(welford, over(n).restart_at(offsets(s)), x(b, n))));
inline constexpr program hoisted_map = op<"map">(out<"y">(b, n) = x(b, n) * exp(w(b)));
inline constexpr program one_number = op<"number">(out<"y">() = flag * 2.0);

template <const program& P> constexpr const schedule& schedule_of() { return kernel_schedule<P, 0>; }
template <const program& P> constexpr const program& kernel_of() { return kernel_program<P, 0>; }

/// How a stage gets the only node that a primitive makes.
template <class Primitive> source source_of(const program& p, const stage_schedule& at) {
  for (int i = 0; i < p.nodes.count; ++i)
    if (is_apply<Primitive>(p.nodes[i])) return at.from[i];
  return source::unused;
}

/// Complaints about a stage: a value that is used before it is there.
std::vector<std::string> complaints(const program& p, const schedule& plan, const stage_schedule& at,
                                    bool is_boundary, int index) {
  std::vector<std::string> found;
  std::vector<bool> there(static_cast<std::size_t>(p.nodes.count)),
      advanced(static_cast<std::size_t>(p.scans.count));
  const auto known = [&](node_id v) {
    return at.from[v] == source::uniform || there[static_cast<std::size_t>(v)];
  };
  for (const std::int16_t each : at.instructions) {
    if (each < 0) {
      const scan_decl& scan = p.scans[-1 - each];
      advanced[static_cast<std::size_t>(-1 - each)] = true;
      if (plan.sweep_of_scan[-1 - each] != index) found.push_back("a scan advances in another sweep");
      for (int k = 0; k < scan.components; ++k)
        if (at.from[scan.element[k]] != source::unused && !known(scan.element[k]))
          found.push_back(message("scan ", -1 - each, " advances before its element is there"));
      continue;
    }
    const node& n_ = p.nodes[each];
    const bool is_stream =
        at.from[each] == source::memory || at.from[each] == source::kept || at.from[each] == source::scratch;
    if (is_stream && plan.stream_of[each] < 0) found.push_back(message("node ", each, " has no stream"));
    if (is_stream && is_truth(n_)) found.push_back(message("condition ", each, " in a stream"));
    if (at.from[each] == source::computed && n_.op == opcode::apply)
      for (const node_id o : n_.operand)
        if (o != no_node && !known(o)) found.push_back(message("node ", each, " before its operand ", o));
    if (at.from[each] == source::computed && (n_.op == opcode::carry || n_.op == opcode::scan) &&
        !advanced[static_cast<std::size_t>(n_.target)])
      found.push_back(message("node ", each, " before its scan"));
    if (at.from[each] == source::computed && n_.op == opcode::last && !is_boundary)
      found.push_back("a last value inside a sweep");
    there[static_cast<std::size_t>(each)] = true;
  }
  for (const std::int16_t store : at.stores)
    if (!known(p.stores[store].value))
      found.push_back(message("store ", store, " of a value that is not there"));
  for (const node_id kept : at.keeps)
    if (!known(kept) || plan.stream_of[kept] < 0)
      found.push_back(message("node ", kept, " is kept but not there"));
  if (!is_boundary)
    for (int scan = 0; scan < p.scans.count; ++scan)
      if (plan.sweep_of_scan[scan] == index && !advanced[static_cast<std::size_t>(scan)])
        found.push_back("a scan that never advances");
  return found;
}

/// Every stage of every kernel of a program; every store in one stage; what is kept or scratch comes from
/// earlier.
template <const program& P> std::vector<std::string> complaints_about() {
  std::vector<std::string> found;
  constexpr int kernels = kernels_of<P>.programs.count;
  [&]<int... K>(std::integer_sequence<int, K...>) {
    (
        [&] {
          const program& p = kernel_program<P, K>;
          const schedule& plan = kernel_schedule<P, K>;
          std::vector<int> stored(static_cast<std::size_t>(p.stores.count));
          std::vector<bool> kept(static_cast<std::size_t>(p.nodes.count));
          const auto visit = [&](const stage_schedule& at, bool is_boundary, int index) {
            for (const std::string& each : complaints(p, plan, at, is_boundary, index)) found.push_back(each);
            for (const std::int16_t store : at.stores) ++stored[static_cast<std::size_t>(store)];
            for (int i = 0; i < p.nodes.count; ++i)
              if ((at.from[i] == source::kept || at.from[i] == source::scratch) &&
                  !kept[static_cast<std::size_t>(i)])
                found.push_back(message("node ", i, " is read before it is kept"));
            for (const node_id each : at.keeps) kept[static_cast<std::size_t>(each)] = true;
          };
          for (int i = 0; i <= plan.sweeps; ++i) {
            visit(plan.boundary[i], true, i);
            if (i < plan.sweeps) visit(plan.sweep[i], false, i);
          }
          for (const int times : stored)
            if (times != 1) found.push_back(message("an output is stored ", times, " times"));
        }(),
        ...);
  }(std::make_integer_sequence<int, kernels>{});
  return found;
}

}  // namespace

TEST_CASE("no stage uses what is not there, and every output is stored once", "[schedule]") {
  const std::vector<std::string> none;
  CHECK(complaints_about<plain>() == none);
  CHECK(complaints_about<soft>() == none);
  CHECK(complaints_about<chained>() == none);
  CHECK(complaints_about<turned>() == none);
  CHECK(complaints_about<flags>() == none);
  CHECK(complaints_about<guarded>() == none);
  CHECK(complaints_about<conditions>() == none);
  CHECK(complaints_about<segments>() == none);
  CHECK(complaints_about<hoisted_map>() == none);
  CHECK(complaints_about<one_number>() == none);
}

TEST_CASE("a sequential sweep carries the components that its values read", "[schedule]") {
  constexpr const schedule& plan = schedule_of<plain>();
  STATIC_REQUIRE(plan.sweeps == 1);
  STATIC_REQUIRE(
      !plan.live_component[0][0]);  // the product of the decays is needed to combine stretches only
  STATIC_REQUIRE(plan.live_component[0][1]);
  STATIC_REQUIRE(kernel_table<plain, 0>.live_components[0] == 2);
  STATIC_REQUIRE(schedule_of<segments>().live_component[0][0]);
}

TEST_CASE("a value after the last position waits for the next sweep", "[schedule]") {
  constexpr const schedule& plan = schedule_of<soft>();
  STATIC_REQUIRE(plan.sweeps == 2);
  STATIC_REQUIRE(plan.sweep[0].stores.count == 0);
  STATIC_REQUIRE(plan.sweep[1].stores.count == 1);
  // The sum's reciprocal is taken once, between the sweeps.
  CHECK(source_of<primitive::divide_op>(kernel_of<soft>(), plan.boundary[1]) == source::computed);
  CHECK(source_of<primitive::divide_op>(kernel_of<soft>(), plan.sweep[1]) != source::computed);
}

TEST_CASE("scans that depend on each other and run the same way share a sweep, in rounds", "[schedule]") {
  constexpr const schedule& plan = schedule_of<chained>();
  STATIC_REQUIRE(plan.sweeps == 1);
  STATIC_REQUIRE(plan.rounds[0] == 3);
  STATIC_REQUIRE(plan.streams == 1);
}

TEST_CASE("scans that run different ways take a sweep each", "[schedule]") {
  constexpr const schedule& plan = schedule_of<turned>();
  STATIC_REQUIRE(plan.sweeps == 2);
  STATIC_REQUIRE(!plan.sweep[0].reversed);
  STATIC_REQUIRE(plan.sweep[1].reversed);
  STATIC_REQUIRE(plan.sweep[0].keeps.count == 1);
  // What is elementwise of a scan's value is computed again: only the scan's value is written and read.
  CHECK(source_of<primitive::exp_op>(kernel_of<turned>(), plan.sweep[1]) == source::computed);
  STATIC_REQUIRE(schedule_of<flags>().sweeps == 2);
}

TEST_CASE("what does not vary along the walk is computed before it", "[schedule]") {
  CHECK(source_of<primitive::exp_op>(kernel_of<hoisted_map>(), schedule_of<hoisted_map>().sweep[0]) ==
        source::kept);
  CHECK(source_of<primitive::exp_op>(kernel_of<hoisted_map>(), schedule_of<hoisted_map>().boundary[0]) ==
        source::computed);
  STATIC_REQUIRE(schedule_of<conditions>().boundary[0].stores.count +
                     schedule_of<conditions>().boundary[1].stores.count <=
                 1);
}

TEST_CASE("one side of a uniform condition is guarded by it", "[schedule]") {
  const program& p = kernel_of<guarded>();
  const schedule& plan = schedule_of<guarded>();
  bool seen_exp = false, seen_log = false;
  for (int i = 0; i < p.nodes.count; ++i) {
    if (is_apply<primitive::log_op>(p.nodes[i])) seen_log = plan.guards[i].condition != no_node;
    if (is_apply<primitive::exp_op>(p.nodes[i]) &&
        p.nodes[p.nodes[i].operand[0]].target == p.find_tensor(x.id))
      seen_exp = plan.guards[i].condition != no_node;
  }
  CHECK(seen_exp);
  CHECK(seen_log);
}

TEST_CASE("packed sequences are no part of the iteration space", "[schedule]") {
  constexpr const schedule& plan = schedule_of<segments>();
  STATIC_REQUIRE(plan.segment_axis >= 0);
  STATIC_REQUIRE((plan.space & axis_bit(plan.segment_axis)) == 0);
  STATIC_REQUIRE(plan.boundary[1].stores.count == 1);
}
