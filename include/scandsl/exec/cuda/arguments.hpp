#pragma once
#include <cstdint>

#include "scandsl/core/dtype.hpp"
#include "scandsl/pass/schedule.hpp"

/// What a CUDA kernel is told at launch: plain data, passed by value.
namespace scandsl::cuda_detail {

inline constexpr int max_lane_dimensions = 12, max_walk_dimensions = 4, max_segment_dimensions = 2,
                     max_computed_dimensions = 4;

/// How a thread reaches the elements of one vector: those of neighbouring lanes in a strip, of neighbouring
/// steps in a row.
enum class access : std::uint8_t {
  vector,     ///< side by side and aligned: one access of the whole vector
  same,       ///< one element for all of a vector
  scattered,  ///< one access an element
};

struct tensor_argument {
  void* data = nullptr;  ///< at the origin of the nest
  dtype type = dtype::float32;
  access mode = access::scattered;
  bool bound = false;
  std::int64_t extent = 0;  ///< elements from there to its end
};

/// Division of numbers below 2^31 by one known at launch, at most 2^31: (n * multiplier) >> (31 + shift). By
/// 0 the quotient is 0. Granlund and Montgomery, "Division by invariant integers using multiplication", 1994.
struct small_divisor {
  std::uint32_t multiplier = 0, shift = 0;

  static small_divisor of(std::int64_t divisor) {
    small_divisor d;
    if (divisor <= 0) return d;
    while ((std::int64_t{1} << d.shift) < divisor) ++d.shift;
    d.multiplier = static_cast<std::uint32_t>(
        ((std::uint64_t{1} << (31 + d.shift)) + static_cast<std::uint64_t>(divisor) - 1) /
        static_cast<std::uint64_t>(divisor));
    return d;
  }
  SCANDSL_HD std::uint32_t quotient(std::uint32_t n) const {
#ifdef __CUDA_ARCH__
    return __umulhi(n << 1, multiplier) >> shift;
#else
    return static_cast<std::uint32_t>(std::uint64_t{n} * multiplier >> 31 >> shift);
#endif
  }
  /// Rounded down, of numbers of either sign: of x < 0 it is -1 - (-1 - x) / divisor.
  SCANDSL_HD std::int32_t floor_quotient(std::int32_t x) const {
    const std::int32_t sign = multiplier == 0 ? 0 : x >> 31;
    return static_cast<std::int32_t>(quotient(static_cast<std::uint32_t>(x ^ sign))) ^ sign;
  }
};

/// n / divisor of powers of two.
SCANDSL_HD constexpr int quotient_of_powers(int n, int divisor) {
#ifdef __CUDA_ARCH__
  return n >> (31 - __clz(divisor));
#else
  return n / divisor;
#endif
}

/// `Tensors` strides, in elements.
template <int Tensors> struct strided_dimension {
  std::int64_t extent = 1;
  small_divisor by;  ///< the extent, where all positions are below 2^31
  std::int64_t stride[Tensors > 0 ? Tensors : 1] = {};
};

/// An axis along which positions are computed, in one tensor.
struct computed_axis {
  std::int64_t positions = 0;
  std::int64_t extent[max_computed_dimensions] = {}, stride[max_computed_dimensions] = {};
  int dimensions = 0;
};

/// Where the states of scans before every so many steps of a lane (an arrangement's carry_interval) lie, if
/// anywhere: [of these steps][component][lane], the lanes numbered in an order that does not depend on any
/// tensor's strides.
struct carry_arguments {
  void* data = nullptr;
  std::int64_t lanes = 0;
  std::int64_t lane_stride[max_lane_dimensions] = {};  ///< of threads' units
  std::int64_t inner_stride = 0;                       ///< between a unit's lanes
};

/// What a block has the L2 cache fetch of a tensor for a block that begins a while later.
struct fetch_ahead {
  std::int64_t apart = 0;  ///< bytes from what the block itself reads; 0: nothing is fetched
  int bytes = 0;           ///< of its rows; of a strip, whose steps lie apart, of each step
};

/// How few lanes of a program of several sweeps are cut (sweep_pieces.cuh).
struct sweep_pieces {
  int count = 1;           ///< of each lane; 1: none is cut
  int launch = 0;          ///< which of the launches this is,
  bool joins = false;      ///< or that behind it, which joins what pieces have become
  int tiles = 0;           ///< of a piece
  std::int64_t lanes = 0;  ///< all, empty ones of a thread's among them
  void* states = nullptr;  ///< what scans make of pieces
};

/// How strips keep pace (pace.cuh). Those of a sequence lie side by side, `strips` of `tiles` tiles each.
struct pace_arguments {
  unsigned long long* words = nullptr;  ///< one for each sequence; null: they do not
  int strips = 0, tiles = 0;
};

/// `Computed` positions in all tensors together. Roughly in the order in which a kernel asks for them before
/// its first element comes, and what is seldom asked for last: a multiprocessor's first read of each 64 bytes
/// of arguments takes 170 to 200 cycles (an H200), and a thread's come one after the other.
template <int Tensors, int Computed, class C> struct kernel_arguments {
  static constexpr int slots = Tensors > 0 ? Tensors : 1, computed_slots = Computed > 0 ? Computed : 1;

  tensor_argument tensor[slots];
  std::int64_t lanes = 1;         ///< threads' units: lanes, or vectors of lanes
  std::int64_t inner_extent = 1;  ///< lanes of the innermost dimension, counted singly
  std::int64_t steps = 1;
  std::int64_t chunk =
      0;  ///< length of chunks; where chunk_dimension is -1 they restart within lanes; 0: none
  std::int64_t segments = 1;      ///< packed sequences
  const void* offsets = nullptr;  ///< where they begin and end
  int lane_dimensions = 0, walk_dimensions = 0;
  int chunk_dimension = -1;  ///< the lane dimension that numbers chunks which became lanes; -1: none
  int lane_threads = 1;      ///< of a strip: threads side by side; of a row: threads along it; a power of two
  int log2_lane_threads = 0;
  int log2_rows = 0;  ///< of a row: rows of a block
  bool reversed[max_sweeps] = {};
  bool ragged = false;         ///< rows end within vectors
  bool divides = false;        ///< all divisors of integers are from 0 to 2^31 - 1
  bool wide_offsets = false;   ///< int64
  bool last_wanted = true;     ///< something is computed from the scans' last values
  bool restarts = false;       ///< chunks restart within the walk
  bool in_order = false;       ///< what streams cannot do: restarts, several dimensions to walk, pieces of
                               ///< programs whose framed states differ
  bool along_rows = false;     ///< the arrangement is a row
  bool one_tile = false;       ///< no lane has more than one tile
  bool shares_stages = false;  ///< a strip's threads bring its rows of all operands together, 16 bytes each
  bool reads_vectors = false;  ///< of rows: all operands are there, and a vector of each is one access
  bool small = false;          ///< lanes are numbered below 2^31
  bool one_dimension = false;  ///< all lanes lie along one dimension, and none is a chunk
  C parameters[max_parameters] = {};
  std::int64_t inner_stride[slots] = {};  ///< between the lanes of the innermost dimension
  fetch_ahead ahead[slots];
  carry_arguments carries;  ///< left by a run for its gradient's
  strided_dimension<Tensors> walk[max_walk_dimensions];
  /// Outermost first. In a strip the last dimension counts vectors of lanes, and its strides are a vector's.
  strided_dimension<Tensors> lane[max_lane_dimensions];

  pace_arguments pace;
  sweep_pieces pieces;
  /// Carries at the tiles' starts, for later sweeps: [tile][component][lane]. None of one tile.
  void* saved = nullptr;
  std::int64_t saved_lanes = 0;  ///< lanes that it has room for
  /// Bytes between a thread's rows, and between tiles, where stages are shared, in the order of the first
  /// sweep.
  std::int64_t row_apart[slots] = {}, tile_apart[slots] = {};
  int repeats = 1;  ///< rows that each thread takes, which share what is computed for them,
  strided_dimension<Tensors> repeated;  ///< and how far it is from one to the next

  std::int64_t offsets_stride = 1;
  strided_dimension<Tensors> segment[max_segment_dimensions];
  int segment_dimensions = 0;

  computed_axis computed[computed_slots];
  std::int64_t table[computed_slots][max_table] =
      {};  ///< by computed position: the elements of its tensor, a table
  /// The tables' elements and the parameters as divisors, where integers are divided by them.
  small_divisor by_element[computed_slots][max_table] = {}, by_parameter[max_parameters] = {};
};

/// Steps of each lane, or of each chunk that is a lane of its own, where they are not packed.
template <class A> SCANDSL_HD std::int64_t steps_of_lane(const A& a) {
  return a.chunk_dimension >= 0 ? a.chunk : a.steps;
}

}  // namespace scandsl::cuda_detail
