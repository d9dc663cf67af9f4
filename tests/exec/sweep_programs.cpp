#include "exec/sweep_programs.hpp"

namespace exec_test {
namespace {

using namespace names;

constexpr tensor<"w"> w;
constexpr auto gate = fn([](auto v) { return v / (1.0 + abs(v)); });

constexpr auto decayed_walk = walk.starting_from(value_or(h(s, b), 0.0));
constexpr auto first = scan(decayed_sum, decayed_walk, a(n), x(b, n));
constexpr auto second = scan(log_add_exp, walk, gate(first));
constexpr auto third = scan(kept_mean, walk, a(n), gate(second) - x(b, n), a(n));
constexpr auto backwards = scan(decayed_sum, decayed_walk.reversed(), a(n), gate(first));
inline constexpr auto dependent_program = op<"dependent">(
    out<"y">(b, n) = third, out<"z">(b, n).optional() = backwards + second,
    out<"l_first">(s, b).optional() = last(first), out<"l_third">(s, b).optional() = last(third),
    out<"l_back">(s, b).optional() = last(backwards));

constexpr auto soft = exp(x(b, n) - last(scan(log_add_exp, over(n), x(b, n))));
constexpr auto centred = soft - last(scan(maximum, over(n), soft));
inline constexpr auto softmax_program = op<"softmax">(
    out<"y">(b, n) = soft, out<"z">(n, b) = scan(plain_sum, over(n).reversed(), centred),
    out<"top">(b) = last(scan(maximum, over(n), soft)), out<"t">(b, n) = last(scan(minimum, over(n), soft)));

constexpr auto over_d = exp(x(b, n, d) - last(scan(log_add_exp, over(d), x(b, n, d))));
constexpr auto row_sum = sum(over(n), x(b, n, d) * w(n));
inline constexpr auto mixed_program =
    op<"mixed">(out<"y">(b, n, d) = scan(plain_sum, over(n), over_d), out<"s_n">(b, d) = row_sum,
                out<"s_nd">(b) = sum(over(d), row_sum), out<"s_all">() = sum(over(b), sum(over(d), row_sum)),
                out<"wide">(d, b, n) = scan(plain_sum, over(n), w(n)),
                out<"map">(d, n, b) = x(b, n, d) * exp(w(n)), out<"constant">(n) = 2.5);

constexpr axis<"t"> t;
constexpr tensor<"others"> others;
constexpr scalar<"flag"> flag;
constexpr auto one_way =
    scan(plain_sum, over(n).restart_at(offsets(s)).starting_from(value_or(h(s, b), 0.5)), x(b, n));
constexpr auto other_way = scan(maximum, over(n).restart_at(others(t)).reversed(), x(b, n));
inline constexpr auto packed_program =
    op<"packed">(out<"y">(b, n) = one_way + other_way, out<"l_one">(s, b) = last(one_way),
                 out<"l_other">(t, b) = last(other_way), out<"start">(s, b) = value_or(h(s, b), 0.5) * 2.0,
                 out<"sums">(s, b) = scan(plain_sum, over(s), last(one_way)),
                 out<"products">(s, t, b) = last(one_way) * last(other_way),
                 out<"either">(b, n) = select(flag > 0.0, scan(plain_sum, over(n), exp(x(b, n))),
                                              scan(product, over(n).reversed(), tanh(x(b, n)))));

inline constexpr auto fixed_program = op<"fixed">(
    out<"chunks">(b, n) = scan(plain_sum, over(n).restart_every(128).reversed(), x(b, n)),
    out<"after">(b, n) = scan(maximum, over(n).reversed().exclusive(), x(b, n)),
    out<"earlier">(b, n) = scan(decayed_sum, over(n).exclusive().starting_from(2.0), a(n), x(b, n)),
    out<"none">(b, n) = scan(plain_sum, over(n).restart_every(0), x(b, n)));

}  // namespace

const compiled dependent_scans = compile_float<dependent_program>();
const compiled softmax_scans = compile_float<softmax_program>();
const compiled mixed_axes = compile_float<mixed_program>();
const compiled packed_scans = compile_float<packed_program>();
const compiled fixed_walks = compile_float<fixed_program>();

}  // namespace exec_test
