// The smallest program of a user for the GPU, written against the installed headers alone.
#include <cstdio>

#include <scandsl/cuda.cuh>

using namespace scandsl;
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;

inline constexpr auto sums = op<"sums">(out<"y">(b, n) = scan(plain_sum, over(n), x(b, n)));

int main() {
  float* data = nullptr;
  if (cudaMallocManaged(&data, 3 * sizeof(float)) != cudaSuccess) return std::puts("no GPU") < 0;
  for (int i = 0; i < 3; ++i) data[i] = 1;
  run<sums>(cuda{nullptr}, x = view(static_cast<const float*>(data), 1, 3), y = view(data, 1, 3));
  const bool right = cudaDeviceSynchronize() == cudaSuccess && data[2] == 3;
  std::printf("%s\n", right ? "right" : "wrong");
  cudaFree(data);
  return right ? 0 : 1;
}
