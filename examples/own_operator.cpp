#include <complex>
#include <scandsl/scandsl.hpp>

#include "check.hpp"

using namespace scandsl;
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"re"> re;
constexpr tensor<"im"> im;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;

// [doc:operator]
// A resonator: h_t = w_t h_{t-1} + x_t with complex w and h, y_t the real part of h_t. One stretch of
// positions maps h to w h + k, so the state of a stretch is (w, k), and two neighbouring stretches combine as
// functions compose.
constexpr auto resonator = scan_op(
    state(1.0, 0.0, 0.0, 0.0),                                                       // identity: w = 1, k = 0
    [](auto w_re, auto w_im, auto input) { return state(w_re, w_im, input, 0.0); },  // lift: one position
    [](auto left, auto right) {  // combine: left, then right
      auto [u_re, u_im, j_re, j_im] = left;
      auto [w_re, w_im, k_re, k_im] = right;
      return state(w_re * u_re - w_im * u_im, w_re * u_im + w_im * u_re,                 // w u
                   w_re * j_re - w_im * j_im + k_re, w_re * j_im + w_im * j_re + k_im);  // w j + k
    },
    [](auto whole) { return std::get<2>(whole); });  // project: the value that the scan gives
// [/doc:operator]

// [doc:use]
constexpr auto ring = op<"ring">(out<"y">(b, n) = scan(resonator, over(n), re(b), im(b), x(b, n)));
// [/doc:use]

int main() {
  std::puts(describe(ring).c_str());
  const std::size_t rows = 3, length = 20000;  // long enough to be scanned in pieces, in parallel
  const std::vector<float> input = example::wave(rows * length);
  std::vector<float> real(rows), imag(rows), output(rows * length);
  std::vector<double> expected(rows * length);
  for (std::size_t r = 0; r < rows; ++r) {
    const std::complex<double> w = std::polar(0.99, 0.1 * static_cast<double>(r + 1));
    real[r] = static_cast<float>(w.real());
    imag[r] = static_cast<float>(w.imag());
    std::complex<double> h = 0.0;
    for (std::size_t t = 0; t < length; ++t) {
      h = std::complex<double>(static_cast<double>(real[r]), static_cast<double>(imag[r])) * h +
          static_cast<double>(input[r * length + t]);
      expected[r * length + t] = h.real();
    }
  }
  run<ring>(cpu{}, re = view(real.data(), rows), im = view(imag.data(), rows),
            x = view(input.data(), rows, length), y = view(output.data(), rows, length));
  example::expect_close("resonators against a loop", output, expected, 2e-5);
  return example::exit_status();
}
