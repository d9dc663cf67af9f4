#include "scandsl/pass/expand_sums.hpp"
#include "scandsl/pass/summed_parts.hpp"

#include <map>
#include <random>
#include <string>

#include "scandsl/ir/lower.hpp"
#include "scandsl/ir/oracle.hpp"
#include "support/catch.hpp"

namespace {

using namespace scandsl;

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr axis<"m"> m;
constexpr axis<"s"> s;
constexpr tensor<"x"> x;
constexpr tensor<"w"> w;
constexpr tensor<"h"> h;
constexpr tensor<"offsets"> offsets;

constexpr auto over_d = exp(x(b, n, d) - last(scan(log_add_exp, over(d), x(b, n, d))));
constexpr auto over_n = scan(plain_sum, over(n), x(b, n, d));

constexpr program one_scan = op<"one">(out<"y">(b, n, d) = over_n, out<"last">(d, b) = last(over_n));
constexpr program softmax_scan = op<"softmax">(out<"y">(b, n, d) = scan(plain_sum, over(n), over_d));
constexpr program softmax_alone = op<"softmax_alone">(out<"y">(b, n, d) = over_d);
constexpr program beside =
    op<"beside">(out<"y">(b, n, d) = x(b, n, d) * w(n), out<"t">(b, n) = sum(over(d), x(b, n, d)));
constexpr program one_walk = op<"shared">(out<"y">(b, n, d) = scan(maximum, over(n).reversed(), over_n) +
                                                              scan(product, over(n), x(b, n, d)));
constexpr program two_walks =
    op<"walks">(out<"y">(b, n, d) = over_n + scan(plain_sum, over(n).restart_every(4), x(b, n, d)));
constexpr program two_spaces = op<"spaces">(out<"y">(b, n, d) = over_n * scan(plain_sum, over(n), w(n)),
                                            out<"z">(n) = scan(plain_sum, over(n), w(n)));
constexpr program total = op<"total">(out<"y">() = sum(over(d), sum(over(n), sum(over(b), x(b, n, d)))));
constexpr auto packed_scan =
    scan(plain_sum, over(n).restart_at(offsets(s)).starting_from(value_or(h(s, b), 0.0)), x(b, n, d));
constexpr program packed =
    op<"packed">(out<"y">(b, n, d) = packed_scan, out<"last">(s, b, d) = last(packed_scan),
                 out<"twice">(s, b, n, d) = last(packed_scan) * x(b, n, d));
constexpr program map = op<"map">(out<"y">(b, n, d) = x(b, n, d) * cos(w(n)), out<"t">(d, n, b) = x(b, n, d),
                                  out<"small">(n) = w(n) + 1.0);
constexpr program broadcast = op<"broadcast">(out<"y">(b, n, d) = scan(plain_sum, over(n), w(n)));

constexpr int count(const program& p) { return split(p).programs.count; }
constexpr std::string_view walked(const program& p, int kernel) {
  const kernel_programs kernels = split(p);
  const int axis = kernels.walked_axis[kernel];
  if (axis < 0) return "";
  return axis_list{{kernels.programs[kernel].axes[axis]}, 1}.items[0] == make_name("n") ? "n"
         : kernels.programs[kernel].axes[axis] == make_name("d")                        ? "d"
                                                                                        : "b";
}
constexpr int scratch_tensors(const program& p, bool stored) {
  int found = 0;
  for (int t = 0; t < p.tensors.count; ++t) {
    bool is_stored = false;
    for (const store_decl& store : p.stores) is_stored = is_stored || store.tensor == t;
    found += p.tensors[t].role == tensor_role::scratch && is_stored == stored;
  }
  return found;
}

using tensors = std::map<std::string, oracle_tensor>;

/// Runs the kernels one after the other, scratch handed from one to the next.
tensors run_kernels(const program& p, bool reduces_apart, const tensors& inputs,
                    const std::map<std::string, std::int64_t>& extents) {
  const kernel_programs kernels = split(p, reduces_apart);
  tensors known = inputs, outputs;
  for (const program& kernel : kernels.programs) {
    tensors given;
    for (const auto& [id, values] : known)
      if (const int t = kernel.find_tensor(make_name(id));
          t >= 0 && kernel.tensors[t].role != tensor_role::output)
        given[id] = values;
    std::map<std::string, std::int64_t> sizes;
    for (const auto& [id, extent] : extents)
      if (kernel.find_axis(make_name(id)) >= 0) sizes[id] = extent;
    for (const auto& [id, values] : oracle(kernel, given, {}, sizes)) {
      known[id] = values;
      if (p.find_tensor(make_name(id)) >= 0) outputs[id] = values;
    }
  }
  return outputs;
}

}  // namespace

TEST_CASE("a scan, its last value and what is computed from them are one kernel", "[split]") {
  STATIC_REQUIRE(count(one_scan) == 1);
  STATIC_REQUIRE(walked(one_scan, 0) == "n");
  STATIC_REQUIRE(split(one_scan).programs[0] == prune(one_scan));
}

TEST_CASE("scans over two axes are two kernels, with scratch between them", "[split]") {
  STATIC_REQUIRE(count(softmax_scan) == 2);
  STATIC_REQUIRE(walked(softmax_scan, 0) == "d");
  STATIC_REQUIRE(walked(softmax_scan, 1) == "n");
  // Only the reduced value crosses; what is elementwise is computed again.
  STATIC_REQUIRE(scratch_tensors(split(softmax_scan).programs[0], true) == 1);
  STATIC_REQUIRE(scratch_tensors(split(softmax_scan).programs[1], false) == 1);
  STATIC_REQUIRE(split(softmax_scan).programs[0].tensors[1].axes.count == 2);
}

TEST_CASE("scans with one walk share a kernel, whichever way they run", "[split]") {
  STATIC_REQUIRE(count(one_walk) == 1);
  STATIC_REQUIRE(split(one_walk).programs[0].scans.count == 3);
  STATIC_REQUIRE(count(two_walks) == 2);
}

TEST_CASE("scans of different spaces are kernels of their own", "[split]") {
  STATIC_REQUIRE(count(two_spaces) == 3);
  STATIC_REQUIRE(count(broadcast) == 2);
  STATIC_REQUIRE(count(total) == 3);
}

TEST_CASE("a kernel that adds up along one more axis what another one sums is found", "[split]") {
  // [doc:summed_parts]
  constexpr program all = op<"all">(out<"y">(d) = sum(over(b), sum(over(n), x(b, n, d))));
  constexpr program scaled = op<"scaled">(out<"y">(d) = sum(over(b), 2.0 * sum(over(n), x(b, n, d))));
  // [/doc:summed_parts]
  constexpr program twice = op<"twice">(out<"y">(d) = sum(over(b), sum(over(n), x(b, n, d))),
                                        out<"z">(b, d) = sum(over(n), x(b, n, d)));
  constexpr program products_ =
      op<"products">(out<"y">(d) = sum(over(b), last(scan(product, over(n), x(b, n, d)))));
  constexpr program numbered =
      op<"numbered">(out<"y">(d) = sum(over(b), index(b) + sum(over(n), x(b, n, d))));
  const auto producer = [](const program& p, int kernel) {
    return find_summed_parts(split(expand_sums(p)), kernel).producer;
  };
  STATIC_REQUIRE(count(expand_sums(all)) == 2);
  STATIC_REQUIRE(producer(all, 1) == 0);
  STATIC_REQUIRE(producer(all, 0) == -1);
  STATIC_REQUIRE(producer(scaled, 1) == -1);  // it is not these sums that are added up
  STATIC_REQUIRE(producer(twice, 1) == -1);   // somebody else reads them, too
  STATIC_REQUIRE(producer(products_, 1) == -1);
  STATIC_REQUIRE(producer(numbered, 1) == -1);
  STATIC_REQUIRE(producer(two_spaces, 2) == -1);
  // And what that one itself only adds up.
  constexpr program of_three =
      op<"of_three">(out<"y">(d) = sum(over(b), sum(over(n), sum(over(m), x(b, n, m, d)))));
  constexpr program scaled_first =
      op<"scaled_first">(out<"y">(d) = sum(over(b), sum(over(n), 2.0 * sum(over(m), x(b, n, m, d)))));
  const auto before = [](const program& p, int kernel) {
    return find_summed_parts(split(expand_sums(p)), kernel).before;
  };
  STATIC_REQUIRE(count(expand_sums(of_three)) == 3);
  STATIC_REQUIRE(before(of_three, 2) >= 0);
  STATIC_REQUIRE(before(of_three, 1) == -1);  // that one reads an operand
  STATIC_REQUIRE(producer(scaled_first, 2) == 1);
  STATIC_REQUIRE(before(scaled_first, 2) == -1);
  // Along an inner axis no parts, but that it can.
  constexpr program inner =
      op<"inner">(out<"z">(b) = w(b), out<"y">(b) = sum(over(s), sum(over(n), sum(over(m), x(b, n, s, m)))));
  constexpr program innermost =
      op<"innermost">(out<"z">(b) = w(b), out<"y">(b) = sum(over(s), sum(over(n), x(b, n, s))));
  STATIC_REQUIRE(before(inner, 2) >= 0);
  STATIC_REQUIRE(!find_summed_parts(split(expand_sums(inner)), 2).parts);
  STATIC_REQUIRE(find_summed_parts(split(expand_sums(of_three)), 2).parts);
  STATIC_REQUIRE(producer(innermost, 1) == -1);
}

TEST_CASE("what needs a reduction's result is a kernel of its own where that is asked for", "[split]") {
  STATIC_REQUIRE(count(softmax_alone) == 1);
  STATIC_REQUIRE(split(softmax_alone, true).programs.count == 2);
  STATIC_REQUIRE(split(softmax_alone, true).programs[1].scans.count == 0);
  // Neither what does not need it, nor scans of which every value is read.
  STATIC_REQUIRE(split(beside, true).programs.count == 1);
  STATIC_REQUIRE(split(one_scan, true).programs.count == 1);
}

TEST_CASE("without scans there is a kernel for each space, walked where work can be hoisted", "[split]") {
  STATIC_REQUIRE(count(map) == 2);
  STATIC_REQUIRE(walked(map, 0) == "b");  // the cosine is outside of the loop over b
  STATIC_REQUIRE(walked(map, 1) == "");
  STATIC_REQUIRE(split(map).has_other[0]);  // where b is short
  STATIC_REQUIRE(split(map).other_axis[0] == -1);
  STATIC_REQUIRE(!split(map).has_other[1]);
}

TEST_CASE("the kernels, run one after the other, are the program", "[split]") {
  std::mt19937 random(61);
  std::uniform_real_distribution<double> draw(-2, 2);
  const auto values = [&](std::vector<std::int64_t> extents) {
    oracle_tensor result{{}, extents};
    std::int64_t size = 1;
    for (const std::int64_t extent : extents) size *= extent;
    while (static_cast<std::int64_t>(result.values.size()) < size) result.values.push_back(draw(random));
    return result;
  };
  for (const program* p : {&one_scan, &softmax_scan, &one_walk, &two_walks, &two_spaces, &total, &packed,
                           &map, &broadcast, &softmax_alone, &beside}) {
    const program pruned = prune(*p);
    const tensors all{{"x", values({2, 6, 3})},
                      {"w", values({6})},
                      {"h", values({3, 2})},
                      {"offsets", {{0, 2, 2, 6}, {4}}}};
    tensors given;
    for (const auto& [id, tensor] : all)
      if (pruned.find_tensor(make_name(id)) >= 0) given[id] = tensor;
    std::map<std::string, std::int64_t> extents{{"b", 2}, {"n", 6}, {"d", 3}, {"s", 3}};
    std::erase_if(extents, [&](const auto& each) { return pruned.find_axis(make_name(each.first)) < 0; });
    const tensors expected = oracle(pruned, given, {}, extents);
    for (const bool apart : {false, true}) {
      const tensors got = run_kernels(*p, apart, given, extents);
      INFO(p->id.view());
      REQUIRE(got.size() == expected.size());
      for (const auto& [id, want] : expected) CHECK(got.at(id).values == want.values);
    }
  }
}

TEST_CASE("split is a constant expression that leaves a split program as it is", "[split]") {
  for (const program* p : {&softmax_scan, &two_walks, &total})
    for (const program& kernel : split(*p).programs) {
      const kernel_programs again = split(kernel);
      CHECK(again.programs.count == 1);
    }
}
