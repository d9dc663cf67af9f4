#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <compare>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "products.hpp"
#include "scale.hpp"

namespace scandsl::ops::cuda_blas {
namespace {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw cuda_error(message(what, " to succeed"), cudaGetErrorString(status),
                     "see the CUDA runtime's documentation");
}
void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw cuda_error(message(what, " to succeed"), cublasLtGetStatusString(status),
                     "see cuBLASLt's documentation");
}

/// Owns a handle of cuBLASLt.
template <class T, cublasStatus_t (*Destroy)(T)> struct destroyer {
  using pointer = T;
  void operator()(T handle) const { Destroy(handle); }
};
template <class T, cublasStatus_t (*Destroy)(T)> using owned = std::unique_ptr<T, destroyer<T, Destroy>>;
using owned_operation = owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using owned_layout = owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using owned_preference = owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

cudaDataType_t data_type(dtype type) {
  switch (type) {
  case dtype::float64: return CUDA_R_64F;
  case dtype::bfloat16: return CUDA_R_16BF;
  case dtype::float16: return CUDA_R_16F;
  default: return CUDA_R_32F;
  }
}

/// The largest power of two, at most 256, that divides the address of a matrix and the distance of its lines.
std::uint32_t alignment_of(const matrix& m, std::int64_t line) {
  const auto bits = reinterpret_cast<std::uintptr_t>(m.data) |
                    static_cast<std::uintptr_t>(line * static_cast<std::int64_t>(size_of(m.type))) | 256U;
  return std::uint32_t{1} << std::countr_zero(bits);
}

/// A matrix as cuBLASLt sees it: column-major, or the transpose of one that is.
struct side {
  bool transposed;
  std::int64_t rows, columns, line;
  std::uint32_t alignment;

  explicit side(const matrix& m)
      : transposed(!m.transposed().is_row_major()), rows(transposed ? m.columns : m.rows),
        columns(transposed ? m.rows : m.columns), line(transposed ? m.row_stride : m.column_stride),
        alignment(alignment_of(m, line)) {}

  friend auto operator<=>(const side&, const side&) = default;
};

/// The product with a column-major result: a row-major one is the transpose of such a product.
product column_major(const product& p) {
  if (p.result.transposed().is_row_major()) return p;
  return {p.right.transposed(), p.left.transposed(), p.result.transposed(), p.factor,
          p.accumulates,        p.earlier_factor};
}

/// What cuBLASLt needs to know of a product, apart from where its matrices are.
struct problem_of_product {
  side left, right, result;
  dtype type, result_type;
  /// Its factors are numbers that the host knows. (A kernel that has to ask the device's memory whether it
  /// adds to its result begins to read that later: on an H200 the weight's gradient takes 2 to 8 % longer.)
  bool host_factors;

  explicit problem_of_product(const product& p)
      : left(p.left), right(p.right), result(p.result), type(p.left.type), result_type(p.result.type),
        host_factors(p.factor == nullptr && p.earlier_factor == nullptr) {}

  friend auto operator<=>(const problem_of_product&, const problem_of_product&) = default;

  std::string key() const {
    return key([](const side& s) { return message(s.rows, "x", s.columns, "/", s.line); });
  }
  /// The same for products of much the same sizes, which one choice serves.
  std::string key_of_alike() const {
    return key([](const side& s) { return message(rounded_up(s.rows), "x", rounded_up(s.columns)); });
  }

private:
  template <class F> std::string key(F sizes_of) const {
    std::string text(
        message(name_of(type), "-", name_of(result_type), host_factors ? " times 1" : " by factors"));
    for (const side* each : {&left, &right, &result})
      text += message(each->transposed ? " T" : " N", sizes_of(*each), "@", each->alignment);
    return text;
  }
  /// To four bits: by an eighth at most.
  static std::int64_t rounded_up(std::int64_t size) {
    const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size)));
    const std::int64_t unit = std::int64_t{1} << std::max(0, bits - 4);
    return (size + unit - 1) / unit * unit;
  }
};

owned_layout make_layout(dtype type, const side& s) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatrixLayoutCreate(&layout, data_type(type), static_cast<std::uint64_t>(s.rows),
                                   static_cast<std::uint64_t>(s.columns), s.line),
        "cublasLtMatrixLayoutCreate");
  return owned_layout(layout);
}
owned_operation make_operation(const problem_of_product& p) {
  const bool wide = p.type == dtype::float64;
  cublasLtMatmulDesc_t operation = nullptr;
  // CUBLAS_COMPUTE_32F: float32 is not rounded to TF32.
  check(cublasLtMatmulDescCreate(&operation, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                 wide ? CUDA_R_64F : CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  owned_operation result(operation);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, p.left.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, p.right.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_POINTER_MODE,
      p.host_factors ? CUBLASLT_POINTER_MODE_HOST : CUBLASLT_POINTER_MODE_DEVICE);
  return result;
}
/// In the host's memory.
one_and_zero one_and_zero_of_host(dtype type) {
  static constexpr float in_float32[] = {1.0F, 0.0F};
  static constexpr double in_float64[] = {1.0, 0.0};
  return type == dtype::float64 ? one_and_zero{&in_float64[0], &in_float64[1]}
                                : one_and_zero{&in_float32[0], &in_float32[1]};
}
owned_preference make_preference(const problem_of_product& p) {
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  owned_preference result(preference);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(scratch_bytes));
  // Partial sums meet in a fixed order and in the sums' type.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p.left.alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p.right.alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p.result.alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p.result.alignment);
  return result;
}

/// Times what a stream is given between marks, without waiting in between.
class stopwatch {
public:
  explicit stopwatch(cudaStream_t on) : stream(on) {}

  void mark() {
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "cudaEventCreate");
    marks.emplace_back(event);
    check(cudaEventRecord(event, stream), "cudaEventRecord");
  }
  void wait() const { check(cudaEventSynchronize(marks.back().get()), "cudaEventSynchronize"); }
  /// From mark number i to the next one.
  float milliseconds(std::size_t i) const {
    float took = 0;
    check(cudaEventElapsedTime(&took, marks[i].get(), marks[i + 1].get()), "cudaEventElapsedTime");
    return took;
  }

private:
  struct event_destroyer {
    using pointer = cudaEvent_t;
    void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  };
  cudaStream_t stream;
  std::vector<std::unique_ptr<cudaEvent_t, event_destroyer>> marks;
};

/// One product, ready to be launched.
class prepared_product {
public:
  prepared_product(cublasLtHandle_t with, const problem_of_product& p)
      : handle(with), operation(make_operation(p)), left(make_layout(p.type, p.left)),
        right(make_layout(p.type, p.right)), result(make_layout(p.result_type, p.result)),
        numbers(p.host_factors ? one_and_zero_of_host(p.type) : one_and_zero_of(p.type)) {
    constexpr int most = 8;
    const owned_preference preference = make_preference(p);
    candidates.resize(most);
    int count = 0;
    check(cublasLtMatmulAlgoGetHeuristic(handle, operation.get(), left.get(), right.get(), result.get(),
                                         result.get(), preference.get(), most, candidates.data(), &count),
          "cublasLtMatmulAlgoGetHeuristic");
    candidates.resize(static_cast<std::size_t>(count));
    if (count == 0)
      throw cuda_error("a product that cuBLASLt offers", p.key(), "try another layout or element type");
    algorithm = candidates[0].algo;
  }

  void launch(cudaStream_t stream, const setting& with, const product& p) const {
    check(launch(algorithm, stream, with, p), "cublasLtMatmul");
  }

  /// Takes the fastest of what is offered, if any of it runs.
  void time(cudaStream_t stream, const setting& with, const product& p) {
    std::erase_if(candidates, [&](const cublasLtMatmulHeuristicResult_t& each) {
      return launch(each.algo, stream, with, p) != CUBLAS_STATUS_SUCCESS;
    });
    if (candidates.empty()) return;
    const trial on{*this, stream, with, p};
    stopwatch first(stream);
    first.mark();
    on.launch_times(candidates[0], 1);
    first.mark();
    first.wait();
    const float once = std::max(first.milliseconds(0), 1e-3F);
    keep_fast_ones(on, once);
    algorithm = fastest_for_long(on, once).algo;
    decided = true;
  }
  /// Takes a choice of an earlier process, if cuBLASLt still offers it.
  bool take(const cublasLtMatmulAlgo_t& chosen) {
    cublasLtMatmulHeuristicResult_t found{};
    if (cublasLtMatmulAlgoCheck(handle, operation.get(), left.get(), right.get(), result.get(), result.get(),
                                &chosen, &found) != CUBLAS_STATUS_SUCCESS ||
        found.workspaceSize > static_cast<std::size_t>(scratch_bytes))
      return false;
    algorithm = chosen;
    decided = true;
    return true;
  }
  const cublasLtMatmulAlgo_t& choice() const { return algorithm; }
  bool is_decided() const { return decided; }

private:
  cublasLtHandle_t handle;
  owned_operation operation;
  owned_layout left, right, result;
  one_and_zero numbers;
  std::vector<cublasLtMatmulHeuristicResult_t> candidates;
  cublasLtMatmulAlgo_t algorithm{};  ///< cuBLASLt's first choice, until it is decided
  bool decided = false;

  using candidate = cublasLtMatmulHeuristicResult_t;
  /// Launches candidates.
  struct trial {
    const prepared_product& of;
    cudaStream_t stream;
    const setting& with;
    const ops::product& p;

    void launch_times(const candidate& each, int times) const {
      for (int i = 0; i < times; ++i) of.launch(each.algo, stream, with, p);
    }
  };
  static int launches_in(float milliseconds, float once) {
    constexpr float most = 200.0F;
    return static_cast<int>(std::clamp(std::ceil(milliseconds / once), 1.0F, most));
  }
  /// Leaves the few fastest: they take short turns behind other work, and nothing waits in between.
  void keep_fast_ones(const trial& on, float once) {
    constexpr std::size_t turns = 2, most = 4;
    constexpr float a_turn = 0.5F, warm = 15.0F;  // milliseconds
    constexpr float near = 1.1F;
    on.launch_times(candidates[0], launches_in(warm, once));
    stopwatch watch(on.stream);
    watch.mark();
    for (std::size_t turn = 0; turn < turns; ++turn)
      for (const candidate& each : candidates) {
        on.launch_times(each, launches_in(a_turn, once));
        watch.mark();
      }
    watch.wait();
    const std::size_t count = candidates.size();
    std::vector<std::pair<float, std::size_t>> least(count);
    for (std::size_t i = 0; i < count; ++i) {
      least[i] = {watch.milliseconds(i), i};
      for (std::size_t turn = 1; turn < turns; ++turn)
        least[i].first = std::min(least[i].first, watch.milliseconds(turn * count + i));
    }
    std::sort(least.begin(), least.end());
    std::vector<candidate> kept;
    for (const auto& [milliseconds, i] : least)
      if (kept.size() < most && milliseconds <= near * least[0].first) kept.push_back(candidates[i]);
    candidates = std::move(kept);
  }
  /// Each goes on for a while before it is timed: a GPU that draws all its power lowers its clock, and by how
  /// much depends on what runs. Calls take 2 % less than with what is fastest in short turns.
  const candidate& fastest_for_long(const trial& on, float once) const {
    constexpr std::size_t turns = 4;
    constexpr float a_while = 20.0F;  // milliseconds
    const int launches = launches_in(a_while, once);
    const std::size_t count = candidates.size();
    // There and back, for a GPU warms up.
    const auto number = [&](std::size_t turn, std::size_t i) { return turn % 2 == 0 ? i : count - 1 - i; };
    stopwatch watch(on.stream);
    for (std::size_t turn = 0; turn < turns; ++turn)
      for (std::size_t i = 0; i < count; ++i)
        for (int part = 0; part < 2; ++part) {
          on.launch_times(candidates[number(turn, i)], launches);
          watch.mark();
        }
    watch.wait();
    std::vector<float> sum(count, 0.0F);
    for (std::size_t turn = 0; turn < turns; ++turn)
      for (std::size_t i = 0; i < count; ++i)
        sum[number(turn, i)] += watch.milliseconds(2 * (turn * count + i));
    return candidates[static_cast<std::size_t>(std::min_element(sum.begin(), sum.end()) - sum.begin())];
  }

  cublasStatus_t launch(const cublasLtMatmulAlgo_t& with_algorithm, cudaStream_t stream, const setting& with,
                        const product& p) const {
    const auto or_one = [&](const void* number) { return number == nullptr ? numbers.one : number; };
    return cublasLtMatmul(handle, operation.get(), or_one(p.factor), p.left.data, left.get(), p.right.data,
                          right.get(), p.accumulates ? or_one(p.earlier_factor) : numbers.zero, p.result.data,
                          result.get(), p.result.data, result.get(), &with_algorithm, with.scratch,
                          static_cast<std::size_t>(scratch_bytes), stream);
  }
};

/// Choices in a file: a line for each, what it is for and the bits of cuBLASLt's algorithm, apart by a tab.
class choice_file {
public:
  explicit choice_file(std::string path) : name(std::move(path)) {}

  bool find(const std::string& key, cublasLtMatmulAlgo_t& choice) const {
    if (name.empty()) return false;
    std::ifstream file(name);
    for (std::string line; std::getline(file, line);) {
      const std::size_t tab = line.find('\t');
      if (tab == std::string::npos || line.compare(0, tab, key) != 0) continue;
      std::istringstream words(line.substr(tab));
      words >> std::hex;
      bool complete = true;
      for (std::uint64_t& word : choice.data) complete = complete && static_cast<bool>(words >> word);
      if (complete) return true;
    }
    return false;
  }
  void append(const std::string& key, const cublasLtMatmulAlgo_t& choice) const {
    if (name.empty()) return;
    std::ostringstream line;
    line << key << '\t' << std::hex;
    for (const std::uint64_t word : choice.data) line << word << ' ';
    std::ofstream(name, std::ios::app) << line.str() + "\n";
  }

private:
  std::string name;
};

/// The products of one device that a process has met.
class product_cache {
public:
  explicit product_cache(int device) {
    check(cublasLtCreate(&handle), "cublasLtCreate");
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
    device_name = message(properties.name, " cublasLt ", cublasLtGetVersion(), " ");
  }

  std::int64_t device_bytes() const { return memory_bytes; }

  prepared_product& find(const product& p) {
    const problem_of_product problem(p);
    const auto found = prepared.find(problem);
    return found != prepared.end()
               ? found->second
               : prepared.emplace(problem, prepared_product(handle, problem)).first->second;
  }
  void choose(cudaStream_t stream, const setting& with, const product& p) {
    prepared_product& product = find(p);
    if (product.is_decided() || !with.tuning.times) return;
    const choice_file file(with.tuning.file);
    const problem_of_product problem(p);
    // What is alike shares a choice, but where that cannot be taken.
    const std::string keys[] = {device_name + problem.key_of_alike(), device_name + problem.key()};
    const std::string* own = nullptr;
    for (const std::string& key : keys) {
      const auto found = choices.find(key);
      cublasLtMatmulAlgo_t choice{};
      const bool known = found != choices.end() || file.find(key, choice);
      if (!known) {
        own = own == nullptr ? &key : own;
        continue;
      }
      if (found != choices.end()) choice = found->second;
      choices.emplace(key, choice);
      if (product.take(choice)) return;
    }
    if (is_capturing(stream)) return;
    product.time(stream, with, p);
    if (!product.is_decided() || own == nullptr) return;
    choices.emplace(*own, product.choice());
    file.append(*own, product.choice());
  }

private:
  cublasLtHandle_t handle = nullptr;
  std::string device_name;
  std::int64_t memory_bytes = 0;
  std::map<problem_of_product, prepared_product> prepared;
  std::map<std::string, cublasLtMatmulAlgo_t> choices;  ///< by what is alike, or exactly

  static bool is_capturing(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
    return status != cudaStreamCaptureStatusNone;
  }
};

/// The current device's cache, for one thread at a time.
struct locked_cache {
  std::unique_lock<std::mutex> lock;
  product_cache& products;
};
/// The caches live as long as the process: at its end the CUDA runtime may be gone before them.
locked_cache cache_of_device() {
  static std::mutex mutex;
  static auto* const caches = new std::map<int, product_cache>;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  std::unique_lock lock(mutex);
  return {std::move(lock), caches->try_emplace(device, device).first->second};
}

bool is_empty(const product& p) { return p.result.rows == 0 || p.result.columns == 0; }

}  // namespace

void choose(const cuda& device, const setting& with, const product& what) {
  if (is_empty(what)) return;
  cache_of_device().products.choose(device.stream, with, column_major(what));
}

void multiply(const cuda& device, const setting& with, const product& what) {
  if (is_empty(what)) return;
  const product p = column_major(what);
  cache_of_device().products.find(p).launch(device.stream, with, p);
}

std::int64_t free_bytes() {
  std::size_t available = 0, total = 0;
  check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
  return static_cast<std::int64_t>(available);
}

std::int64_t all_bytes() { return cache_of_device().products.device_bytes(); }

void read(const cuda& device, void* to, const void* from, std::int64_t bytes) {
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, device.stream),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(device.stream), "cudaStreamSynchronize");
}

}  // namespace scandsl::ops::cuda_blas
