#pragma once
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

#include "scandsl/exec/cuda/run.cuh"

/// Runs a problem whose operands lie in host memory on the GPU: over copies, surrounded by bytes that must
/// not change, at addresses that are aligned as the host's are.
namespace gpu {

using namespace scandsl;

class device_copies {
public:
  static constexpr std::size_t guard = 512;

  explicit device_copies(const program& p, const problem& host) : bound(host) {
    for (int t = 0; t < p.tensors.count; ++t) {
      bound_tensor& b = bound.tensors[static_cast<std::size_t>(t)];
      if (!b.bound || b.view.data == nullptr || p.tensors[t].role == tensor_role::table) continue;
      std::int64_t lowest = 0, highest = 0;
      bool empty = false;
      for (int a = 0; a < b.view.rank; ++a)
        for (const dim& d : b.view.axis[a]) {
          empty = empty || d.extent == 0;
          (d.stride < 0 ? lowest : highest) += (d.extent - 1) * d.stride;
        }
      if (empty) {
        b.view.data = arena();  // not null, never read
        continue;
      }
      const auto size = static_cast<std::int64_t>(size_of(b.view.type));
      char* const first = static_cast<char*>(b.view.data) + lowest * size;
      const std::size_t bytes = static_cast<std::size_t>((highest - lowest + 1) * size);
      b.view.data = copy(first, bytes, p.tensors[t].role == tensor_role::output) - lowest * size;
    }
  }

  /// Memory for a run that asks for it, full of random bits. A cuda_allocator.
  static void* give(void* context, std::int64_t bytes) {
    return static_cast<device_copies*>(context)->workspace(bytes);
  }

  /// Waits, and brings the outputs back.
  void fetch() {
    check(cudaDeviceSynchronize());
    for (const region& r : regions) {
      std::vector<unsigned char> all(r.bytes + 2 * guard);
      check(cudaMemcpy(all.data(), r.device - guard, all.size(), cudaMemcpyDeviceToHost));
      for (std::size_t i = 0; i < guard; ++i)
        if (all[i] != 0xc3 || all[guard + r.bytes + i] != 0xc3)
          throw std::logic_error("device memory beside an operand was written");
      if (r.written) std::memcpy(r.host, all.data() + guard, r.bytes);
    }
  }

  problem bound;
  std::vector<std::int64_t> asked;  ///< bytes, for each time that memory was asked for

private:
  char* workspace(std::int64_t bytes) {
    asked.push_back(bytes);
    std::vector<unsigned> noise(static_cast<std::size_t>(bytes) / 4 + 1);
    std::mt19937 random(static_cast<unsigned>(bytes));
    for (unsigned& each : noise) each = static_cast<unsigned>(random());
    char* const place = take(noise.size() * 4, 0);
    check(cudaMemcpy(place, noise.data(), noise.size() * 4, cudaMemcpyHostToDevice));
    return place;
  }

  struct region {
    char *host, *device;
    std::size_t bytes;
    bool written;
  };
  std::vector<region> regions;
  std::size_t used = 0;

  static void check(cudaError_t status) {
    if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
  }
  /// One allocation for all tests: they come one after the other.
  static char* arena() {
    static char* const memory = [] {
      void* data = nullptr;
      check(cudaMalloc(&data, arena_bytes));
      return static_cast<char*>(data);
    }();
    return memory;
  }
  static constexpr std::size_t arena_bytes = std::size_t{1} << 30;

  char* take(std::size_t bytes, std::size_t misalignment) {
    used = (used + 255) / 256 * 256;
    char* const place = arena() + used + misalignment;
    used += bytes + misalignment;
    if (used > arena_bytes) throw std::runtime_error("the tests' device memory is too small");
    return place;
  }
  char* copy(char* host, std::size_t bytes, bool written) {
    for (region& r : regions)
      if (r.host <= host && host + bytes <= r.host + r.bytes) {
        r.written = r.written || written;
        return r.device + (host - r.host);
      }
    char* const whole = take(bytes + 2 * guard, reinterpret_cast<std::uintptr_t>(host) % 16);
    check(cudaMemset(whole, 0xc3, bytes + 2 * guard));
    check(cudaMemcpy(whole + guard, host, bytes, cudaMemcpyHostToDevice));
    regions.push_back({host, whole + guard, bytes, written});
    return whole + guard;
  }
};

/// The device that plans are made for: the one at hand, on which the tests' few lanes look back, which is
/// taken to cost nothing to start, or are cut into pieces; or one that a single block keeps busy and that has
/// no clusters, so that lanes are walked (SCANDSL_TEST_WALKS).
inline cuda_device planned_device() {
  if (std::getenv("SCANDSL_TEST_WALKS") != nullptr) return {0, 1};
  cuda_device at_hand = cuda_detail::current_device();
  at_hand.tiles_of_lookback_start = 0;
  return at_hand;
}

/// Runs P with the kernels of the given types. It asks for the workspace that it was said to need, if any.
template <const program& P, class C, class Types>
void run_over_copies(const problem& host, const cuda_device& device = planned_device()) {
  const iteration_space space = validate(P, host, works_in_place<P>());
  device_copies copies(P, host);
  const std::int64_t bytes = cuda_detail::size_typed<P, C, Types>(copies.bound, space, false, device).bytes;
  cuda_detail::run_typed<P, C, Types>(cuda{nullptr, device_copies::give, &copies}, copies.bound, space,
                                      device);
  copies.fetch();
  if (copies.asked != (bytes > 0 ? std::vector{bytes} : std::vector<std::int64_t>{}))
    throw std::logic_error("a run asked for another workspace than it was said to need");
}

/// Every operand that is read or written at every step holds T.
template <class T> using compute_for = std::conditional_t<sizeof(T) == 2, cuda_detail::approximate, T>;
template <const program& P, class T>
void run_all_of(const problem& host, const cuda_device& device = planned_device()) {
  run_over_copies<P, compute_for<T>, cuda_detail::uniform_types<T>>(host, device);
}

/// With the kernels for one element type where the operands have it, with those for any otherwise.
template <const program& P, class C> void execute(const problem& host) {
  if (cuda_detail::types_fit<P, cuda_detail::uniform_types<C>>(host))
    return run_over_copies<P, C, cuda_detail::uniform_types<C>>(host);
  run_over_copies<P, C, cuda_detail::uniform_types<cuda_detail::any_type>>(host);
}

}  // namespace gpu
