#include <scandsl/scandsl.hpp>

#include "check.hpp"

using namespace scandsl;
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr axis<"seq"> seq;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr tensor<"decay"> decay;
constexpr tensor<"start"> start;
constexpr tensor<"end"> end;
constexpr tensor<"offsets"> offsets;

// [doc:program]
// Sequences of any length lie one after the other along n; offsets says where each begins. The carry restarts
// there from the sequence's own start, and the state at each sequence's end comes out, so that it can start
// the next call.
constexpr auto h =
    scan(decayed_sum, over(n).restart_at(offsets(seq)).starting_from(value_or(start(seq, d), 0.0)), decay(d),
         x(n, d));
constexpr auto packed = op<"packed">(out<"y">(n, d) = h, out<"end">(seq, d).optional() = last(h));
// [/doc:program]

constexpr std::int64_t features = 5;

/// Every sequence from `start_at`, by a loop; what is left in `states` are the ends.
std::vector<double> separate_scans(const std::vector<float>& input, const std::vector<std::int64_t>& bounds,
                                   const std::vector<float>& decays, std::vector<double>& states) {
  std::vector<double> result(input.size());
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
    for (std::int64_t t = bounds[i]; t < bounds[i + 1]; ++t)
      for (std::size_t k = 0; k < std::size_t{features}; ++k) {
        const std::size_t at = static_cast<std::size_t>(t * features) + k;
        double& state = states[i * std::size_t{features} + k];
        result[at] = state = static_cast<double>(decays[k]) * state + static_cast<double>(input[at]);
      }
  return result;
}

int main() {
  std::puts(describe(packed).c_str());
  // [doc:lengths]
  const std::vector<std::int64_t> bounds = {0, 3, 3, 40};  // three sequences: 3 positions, none, 37
  // [/doc:lengths]
  const std::vector<float> input = example::wave(40 * features), decays = {0.9F, 0.5F, 1.0F, 0.0F, -0.7F};
  std::vector<float> whole(input.size()), ends(3 * features);
  // [doc:whole]
  run<packed>(cpu{}, x = view(input.data(), 40, features), decay = view(decays.data(), features),
              offsets = view(bounds.data(), 4), y = view(whole.data(), 40, features),
              end = view(ends.data(), 3, features));
  // [/doc:whole]
  std::vector<double> states(3 * features, 0.0);
  example::expect_close("packed sequences against separate scans", whole,
                        separate_scans(input, bounds, decays, states), 1e-6);
  example::expect_close("their ends", ends, states, 1e-6);

  // [doc:pieces]
  // The third sequence again, fed in two pieces: the first one's end is the second one's start.
  std::vector<float> pieces(37 * features), state(features);
  const float* third = input.data() + 3 * features;
  run<packed>(cpu{}, x = view(third, 20, features), decay = view(decays.data(), features),
              y = view(pieces.data(), 20, features), end = view(state.data(), 1, features));
  run<packed>(cpu{}, x = view(third + 20 * features, 17, features), decay = view(decays.data(), features),
              y = view(pieces.data() + 20 * features, 17, features), start = view(state.data(), 1, features));
  // [/doc:pieces]
  example::expect_close("a sequence in pieces against the whole", pieces,
                        std::vector<float>(whole.begin() + 3 * features, whole.end()), 0.0);
  return example::exit_status();
}
