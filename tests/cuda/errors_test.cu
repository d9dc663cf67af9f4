#include <string>

#include "scandsl/exec/cuda/plan.cuh"
#include "scandsl/ir/lower.hpp"
#include "support/catch.hpp"

// What a run on the GPU refuses before it launches anything, for which no memory and no GPU are needed; and a
// launch that fails.
namespace {

using namespace scandsl;

constexpr axis<"b"> b;
constexpr axis<"c"> c;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
inline constexpr program sums = along_rows(op<"sums">(out<"y">(b, n) = scan(plain_sum, over(n), x(b, n))));
inline constexpr auto sums_of_three_axes =
    op<"sums_of_three_axes">(out<"y">(b, c, n) = scan(plain_sum, over(n), x(b, c, n)));

constexpr cuda_device h200{132};

/// What Error says; else what happened.
template <class Error, class Call> std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("another error: ") + e.what();
  }
  return "no error";
}

/// An address where nothing is, which nobody looks at.
float* nothing_at(int power) { return reinterpret_cast<float*>(std::uintptr_t{1} << power); }

/// Sums of so many rows, at such addresses.
void run_on_nothing(std::int64_t rows, std::int64_t length, cuda_workspace workspace) {
  const problem bound = bind<sums>(x = view(static_cast<const float*>(nothing_at(20)), rows, length),
                                   y = view(nothing_at(60), rows, length));
  cuda_detail::run_typed<sums, float, cuda_detail::uniform_types<float>>(
      cuda{nullptr, workspace}, bound, validate(sums, bound, works_in_place<sums>(), false), h200);
}

/// `count` dimensions of two, none of which merges with the next one.
dims scattered(int count) {
  dims result;
  std::int64_t stride = 1;
  for (int i = 0; i < count; ++i, stride *= 3) result.push_back({2, stride});
  return result;
}
std::string error_of_dimensions(int of_b, int of_c, int of_n) {
  return error_of<shape_error>([&] {
    const auto operand = shape<float>(scattered(of_b), scattered(of_c), scattered(of_n));
    static_cast<void>(plan<sums_of_three_axes>(h200, x = operand, y = operand));
  });
}

/// What an allocator was asked for that gives nothing.
struct refused {
  std::int64_t bytes;
};
void* refuse(void*, std::int64_t bytes) { throw refused{bytes}; }

}  // namespace

TEST_CASE("a launch has less than 2^31 blocks", "[cuda][errors]") {
  CHECK(error_of<cuda_error>([] { run_on_nothing(std::int64_t{1} << 50, 4, {}); }) ==
        "expected at most 2^31 - 1 blocks; got 17592186044416; run it in parts");
}

TEST_CASE("a look-back has less than 2^31 tiles", "[cuda][errors]") {
  const cuda_workspace nowhere{reinterpret_cast<void*>(std::uintptr_t{1} << 30), std::int64_t{1} << 50};
  CHECK(error_of<cuda_error>([=] { run_on_nothing(1, std::int64_t{1} << 43, nowhere); }) ==
        "expected at most 2^31 tiles; got 2147483648; run it in parts");
}

TEST_CASE("dimensions that do not merge are limited", "[cuda][errors]") {
  const auto message_of = [](int most, const std::string& where, int count) {
    return "expected at most " + std::to_string(most) + " dimensions " + where + " that do not merge; got " +
           std::to_string(count) + "; bind views whose dimensions merge";
  };
  CHECK(error_of_dimensions(6, 6, 1) == "no error");
  CHECK(error_of_dimensions(7, 6, 1) == message_of(12, "across the lanes", 13));
  CHECK(error_of_dimensions(1, 1, 4) == "no error");
  CHECK(error_of_dimensions(1, 1, 5) == message_of(4, "of the walked axis", 5));
}

TEST_CASE("a launch that fails is a cuda_error, and says what CUDA says", "[cuda][errors]") {
  const auto run_on = [](cudaStream_t stream, float* data) {
    return error_of<cuda_error>([=] {
      run<sums>(cuda{stream}, x = view(static_cast<const float*>(data), 2, 3), y = view(data, 2, 3));
    });
  };
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    cudaGetLastError();
    float data[6] = {};
    CHECK_THAT(run_on(nullptr, data), Catch::Matchers::ContainsSubstring(" to succeed; got "));
    return;
  }
  float* data = nullptr;
  cudaStream_t stream = nullptr;
  REQUIRE(cudaMalloc(&data, 6 * sizeof(float)) == cudaSuccess);
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  // To wait for a stream that is captured is a mistake which no later launch may follow.
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) != cudaSuccess);
  CHECK(run_on(stream, data) == std::string("expected a kernel launch to succeed; got ") +
                                    cudaGetErrorString(cudaErrorStreamCaptureInvalidated) +
                                    "; see the CUDA runtime's description of that error");
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  // It was told, so not to whoever asks next; and the device goes on.
  CHECK(run_on(stream, data) == "no error");
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
  REQUIRE(cudaFree(data) == cudaSuccess);
}

TEST_CASE("a run asks for all of its workspace before it launches anything", "[cuda][plan]") {
  constexpr std::int64_t length = 1 << 28;
  std::int64_t asked = 0;
  try {
    run<sums>(cuda{nullptr, refuse, nullptr}, x = view(static_cast<const float*>(nothing_at(40)), 1, length),
              y = view(nothing_at(41), 1, length));
  } catch (const refused& request) {
    asked = request.bytes;
  }
  CHECK(asked > 0);
  CHECK(asked == workspace_bytes<sums>(x = shape<float>(1, length), y = shape<float>(1, length)));
}
