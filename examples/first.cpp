// [doc:first]
#include <cmath>
#include <cstdio>
#include <scandsl/scandsl.hpp>

using namespace scandsl;
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr auto logcumsumexp = op<"logcumsumexp">(out<"y">(b, n) = scan(log_add_exp, over(n), x(b, n)));

int main() {
  const float input[] = {0, 1, 2, 3, 1000, 1000, 1000, 1000};  // two rows of four
  float output[8];
  run<logcumsumexp>(cpu{}, x = view(input, 2, 4), y = view(output, 2, 4));
  for (int i = 0; i < 8; ++i) std::printf("%10.4f%s", output[i], i % 4 == 3 ? "\n" : "");
  return std::abs(output[3] - 3.4402F) < 1e-4F && std::abs(output[7] - 1001.3863F) < 1e-3F ? 0 : 1;
}
// [/doc:first]
