#pragma once
#include <cuda_pipeline_primitives.h>

#include "scandsl/exec/cuda/rotation.cuh"
#include "scandsl/exec/cuda/scattered.cuh"
#include "scandsl/exec/cuda/thread.cuh"
#include "scandsl/pass/cuda_plan.hpp"

/// The part of a tile that one thread holds in registers, and what is done with it alone: load, fold, finish.
/// How threads are arranged over a tile, and how their states are joined, is said in strip.cuh and row.cuh.
namespace scandsl::cuda_detail {

/// What is held of an element: its bits as stored, or where the type is known at run time only its value.
template <class T, class C>
using held_element = std::conditional_t<std::is_same_v<T, any_type>, typename scratch_type_of<C>::type, T>;

/// What a thread holds of one tensor.
template <class T, class C, int Vectors, int Width>
struct held : packed_vectors<held_element<T, C>, Vectors, Width> {
  __device__ __forceinline__ C get(int v, int e) const { return this->vector[v].template get<C>(e); }
};

/// A vector's elements in another type, rounded once.
template <class To, class From, int Width>
__device__ __forceinline__ packed<To, Width> convert(const packed<From, Width>& from) {
  using value = std::conditional_t<sizeof(From) < sizeof(To), To, From>;
  value values[Width];
#pragma unroll
  for (int e = 0; e < Width; ++e) values[e] = from.template get<value>(e);
  packed<To, Width> to{};
  to.set(0, values);
  return to;
}
/// Calls f(type) with the element type of a tensor of real numbers, where arithmetic in C may meet it.
template <class C, class F> __device__ __forceinline__ void with_element(dtype type, F&& f) {
  switch (type) {
  case dtype::float32: return f(std::type_identity<float>{});
  case dtype::bfloat16: return f(std::type_identity<bfloat16>{});
  case dtype::float16: return f(std::type_identity<float16>{});
  default:
    if constexpr (std::is_same_v<C, double>) f(std::type_identity<double>{});
  }
}

__device__ __forceinline__ std::uint32_t shared_address(const void* generic) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(generic));
}
/// Has the copy engine copy 16 bytes to shared memory, past the L1 cache.
__device__ __forceinline__ void copy_16_async(std::uint32_t to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
/// Has the L2 cache fetch what lies `ahead` of the element at `place` of a tensor of elements T, unless it
/// ends beyond that: with one request (from compute capability 9.0 on), or Little with one for every 128
/// bytes. (Strips of one tile, [1536, 64, 2048], whose rows have 128 bytes: a log-sum takes 0.244 ms without,
/// 0.231 with the former, 0.211 with the latter.)
template <class T, bool Little>
__device__ __forceinline__ void fetch_into_cache(const tensor_argument& memory, std::int64_t place,
                                                 const fetch_ahead& ahead) {
  constexpr int size = static_cast<int>(sizeof(T));
  const std::int64_t at = place * size + ahead.apart;
  if (at < 0 || at + ahead.bytes > memory.extent * size) return;
  if constexpr (Little) {
    constexpr int line = 128;
#pragma unroll 1
    for (int further = 0; further < ahead.bytes; further += line)
      asm volatile("prefetch.global.L2 [%0];" ::"l"(static_cast<const char*>(memory.data) + at + further)
                   : "memory");
  } else {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(static_cast<const char*>(memory.data) + at),
        "r"(ahead.bytes)
        : "memory");
#endif
  }
}
/// Has the copy engine copy to shared memory, at most 16 bytes at a time.
template <int Bytes> __device__ __forceinline__ void copy_async(std::uint32_t to, const void* from) {
  if constexpr (Bytes % 16 == 0) {
#pragma unroll
    for (int at = 0; at < Bytes; at += 16)
      copy_16_async(to + static_cast<std::uint32_t>(at), static_cast<const unsigned char*>(from) + at);
  } else {
    static_assert(Bytes == 4 || Bytes == 8);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(Bytes) : "memory");
  }
}

template <int I, class Held> struct held_slot {
  Held value;
};
template <class K, int Vectors, int Width, class Sequence> struct held_loads;
template <class K, int Vectors, int Width, int... I>
struct held_loads<K, Vectors, Width, std::integer_sequence<int, I...>>
    : held_slot<I, held<typename K::template element<node_at<typename K::group, I>.target>,
                        typename K::compute, Vectors, Width>>... {};
template <int I, class Held> __device__ __forceinline__ Held& held_of(held_slot<I, Held>& s) {
  return s.value;
}
template <int I, class Held> __device__ __forceinline__ const Held& held_of(const held_slot<I, Held>& s) {
  return s.value;
}

/// Which steps that do not exist leave a scan as it is.
enum class tile_mask { none, runs, steps };

/// One run of a tile, and what earlier sweeps computed at its steps. Keeps: what the tile holds of its folds
/// is there.
template <class Tile, bool Keeps = true> struct replayed_run {
  using C = typename Tile::C;
  static constexpr int count = size_of_list<replayed_nodes<typename Tile::group>>;
  static constexpr bool anywhere = Tile::anywhere;

  const Tile& tile;
  decltype((std::declval<const Tile&>().thread)) thread;
  C value[count > 0 ? count : 1][Tile::length];

  __device__ __forceinline__ explicit replayed_run(const Tile& of) : tile(of), thread(of.thread) {}
  static constexpr __device__ __forceinline__ int lane_of(int run) { return Tile::lane_of(run); }
  __device__ __forceinline__ int steps(int run) const { return tile.steps(run); }
  __device__ __forceinline__ bool has_step(int run, int step) const { return tile.has_step(run, step); }
  __device__ __forceinline__ std::int64_t position(int run, int step) const {
    return tile.position(run, step);
  }
  __device__ __forceinline__ int direction() const { return tile.direction(); }
  template <int I> __device__ __forceinline__ C read(index_constant<I> which, int run, int step) const {
    return tile.read(which, run, step);
  }
  template <int N> __device__ __forceinline__ C replayed(int step) const { return value[N][step]; }
  __device__ __forceinline__ C remembered(int number, int run, int step) const {
    return tile.remembered[number][run][step];
  }
  static constexpr bool fills_missing = Tile::fills_missing, has_parts = Tile::has_parts;
  static constexpr bool keeps_exponentials = Keeps && Tile::keeps_exponentials;
  static constexpr bool keeps_common = Keeps && Tile::keeps_common,
                        keeps_shared = Keeps && Tile::keeps_shared;
  __device__ __forceinline__ C shared(int number, int run, int step) const {
    return tile.shared[number][run][step];
  }
  __device__ __forceinline__ C common(int number, int run, int step) const {
    return tile.common[number][run][step];
  }
  __device__ __forceinline__ C& exponential(int number, int run, int step) const {
    return tile.exponential[number][run][step];
  }
};

/// A tile with what sweep S reads, or all sweeps do (Anywhere: of a walk that may have several dimensions, or
/// operands of any type). Its steps are in the order of the first sweep; later ones may go through it Back.
/// `Place` says where the thread's elements lie: its constants runs, length, vectors and
/// width, run_of, step_of, vector_of, element_of and lane_of between the two ways of counting them, and
///   vector_is_step      a vector has one step of every run, else every step of one run
///   rolled              steps are gone through in a loop, not unrolled
///   steps(run)          steps of a run that exist (the first ones)
///   position(run, step) of the walk, which changes by direction() from step to step
///   count(v)            elements of vector v that exist
///   whole(t)            whether one access reaches each of its vectors in tensor t that it has
///   has(v), has_all()   whether it has vector v, or all, where one access reaches each; it has vector 0
///   first(t), next(t)   where, in elements, vector 0 lies in memory, and from one to the next, where one
///                       access reaches each
///   path(t)             else
///   ragged              steps are masked, though a vector is none
///   stage_threads       threads that have a stage: a strip's block, or of rows a warp, so that blocks of
///                       few take no more than they need; in_stage_threads(): which of them this is
///   can_share           whether the block's threads may bring what a stage holds together: then
///   shared_source<T>(t) where the thread's share of tensor t begins, of elements T,
///   bring<T, Whole>(..) has it brought, and
///   is_whole()          says whether the tile has all steps
///   tells_of_all        whether there is reads_all(): it has all vectors, and one access reaches each of
///                       them in all that is read
///   flipped()           whether a vector's elements then lie in memory the other way round (can_flip: ever)
template <class K, int S, class Place, bool Anywhere> struct tile : Place {
  using group = typename K::group;
  using C = typename K::compute;
  template <int Q> using sweep_stage = stage<group, stage_kind::sweep, Q>;
  template <int Q> using fold_stage = stage<group, stage_kind::aggregate, Q>;
  static constexpr bool anywhere = Anywhere;
  static constexpr int vectors = Place::vectors, width = Place::width, runs = Place::runs,
                       length = Place::length;
  static constexpr bool rolled = Place::rolled, rolled_vectors = rolled && Place::vector_is_step;

  held_loads<K, vectors, width, sequence_of<walked_loads<group, S>>> loads;
  static constexpr int remembered_count = most_remembered<group>;
  C remembered[remembered_count > 0 ? remembered_count : 1][runs][length];
  /// The exponentials of log-sums' elements, as their fold left them; in fewer registers they are computed
  /// again. (Along rows of a single sweep compilers see it for themselves, but of tiles that wait as those.)
  static constexpr int exponential_count = size_of_list<kept_exponentials<group>>;
  static constexpr bool several_sweeps = sweep_count<group> > 1;
  static constexpr bool waits = requires { Place::waits; };
  static constexpr bool keeps_exponentials = exponential_count > 0 &&
                                             (waits || (several_sweeps
                                                            ? runs * length <= 32
                                                            : runs * length <= 64 && Place::vector_is_step &&
                                                                  !Anywhere && !rolled));
  mutable C exponential[keeps_exponentials ? exponential_count : 1][runs][length];

  static constexpr int common_count = size_of_list<common_nodes<group>>;
  static constexpr bool keeps_common =
      common_count == 1 && Place::vector_is_step && runs * length <= 32 && !Anywhere && !rolled;
  C common[keeps_common ? common_count : 1][runs][length];
  /// What the rows of a thread share.
  static constexpr int shared_count = size_of_list<shared_nodes<group>>;
  static constexpr bool keeps_shared = shared_count > 0 && Place::repeats&& S == all_sweeps;
  C shared[keeps_shared ? shared_count : 1][runs][length];

  template <class... A> __device__ __forceinline__ explicit tile(const A&... given) : Place(given...) {}

  /// Whether a tensor that is not bound can be held as elements with its fallback: bits that are all 0.
  template <int I>
  static constexpr bool fallback_is_exact = tensor_at<group, node_at<group, I>.target>.fallback == 0.0;

  /// Whether the elements' types are known when compiling.
  static constexpr bool is_typed = [] {
    bool typed = true;
    for_each_index(sequence_of<walked_loads<group, S>>{}, [&]<int I>(index_constant<I>) {
      typed = typed && !std::is_same_v<typename K::template element<node_at<group, I>.target>, any_type>;
    });
    return typed;
  }();
  template <int I>
  static constexpr int vector_bytes =
      packed<held_element<typename K::template element<node_at<group, I>.target>, C>, width>::bytes;
  template <int I>
  static constexpr int stage_offset = [] {
    int bytes = 0;
    for_each_index(sequence_of<walked_loads<group, S>>{}, [&]<int J>(index_constant<J>) {
      if (J < I) bytes += vector_bytes<J> * vectors * Place::stage_threads;
    });
    return bytes;
  }();

  /// Where one question will do for all operands.
  static constexpr bool tells_of_all = [] {
    if constexpr (requires { Place::tells_of_all; })
      return Place::tells_of_all && is_typed && !Anywhere && size_of_list<walked_loads<group, S>> > 0;
    return false;
  }();
  /// (Where nothing was brought before, that is so for three operands of whole warps. Else loads come later
  /// by it: H200, gradients of log-sums along rows of 64 and 1536 0.96 to 0.84 and 0.70 to 0.62 of a copy,
  /// decayed sums along rows of 64 0.97 to 0.82; their gradients along rows of 3072 and 8192 0.80 to 0.83 and
  /// 0.94 to 0.96.)
  __device__ __forceinline__ void load() {
    if constexpr (tells_of_all)
      if constexpr (!Place::shares_warps && size_of_list<walked_loads<group, S>> > 2)
        if (this->reads_all()) return load_all<false>(nullptr);
    for_each_index(sequence_of<walked_loads<group, S>>{},
                   [&]<int I>(index_constant<I>) { load_one<I, false>(nullptr); });
  }
  /// ... of the next row that a thread takes, what it does not share with this one.
  __device__ __forceinline__ void load_others() {
    for_each_index(sequence_of<walked_loads<group, S>>{}, [&]<int I>(index_constant<I>) {
      if constexpr ((node_at<group, I>.axes & axis_bit(sharing_of<group>.axis)) != 0)
        load_one<I, false>(nullptr);
    });
  }
  /// Computes what the rows share.
  __device__ __forceinline__ void share() {
    states<group, C> unused;
    const replayed_run<tile, false> here(*this);
    for_each_index(sequence_of<shared_nodes<group>>{}, [&]<int I>(index_constant<I>) {
      constexpr stage_kind kind = computing<group, I>.kind;
      constexpr int sweep = computing<group, I>.sweep;
      auto u = stage<group, kind, sweep>::evaluate_uniforms(this->thread.a.parameters);
#pragma unroll
      for (int run = 0; run < runs; ++run)
#pragma unroll
        for (int step = 0; step < length; ++step)
          shared[position_in<shared_nodes<group>, I>][run][step] =
              value_alone<stage<group, kind, sweep>, group, I, C>(
                  u,
                  step_memory<K, kind, sweep, 0, false, replayed_run<tile, false>>{here, run, step, unused});
    });
  }

  /// A stage: shared memory for what a block's threads, or a warp's, hold of one tile, each thread's vectors
  /// where it alone reads them, whoever brings them.
  static constexpr int stage_bytes = [] {
    int bytes = 0;
    for_each_index(sequence_of<walked_loads<group, S>>{}, [&]<int I>(index_constant<I>) {
      bytes += vector_bytes<I> * vectors * Place::stage_threads;
    });
    return is_typed ? bytes : 0;
  }();
  /// Has the copy engine bring to a stage what single accesses reach.
  __device__ __forceinline__ void prefetch(unsigned char* stage) const {
    if constexpr (tells_of_all)
      if (this->reads_all()) return prefetch_all(stage, row_sources());
    prefetch_each(stage);
  }
  /// ... each operand asked for itself.
  __device__ __forceinline__ void prefetch_each(unsigned char* stage) const {
    for_each_index(sequence_of<walked_loads<group, S>>{}, [&]<int I>(index_constant<I>) {
      constexpr int t = node_at<group, I>.target;
      using T = typename K::template element<t>;
      if constexpr (!std::is_same_v<T, any_type>) {
        const auto& memory = this->thread.a.tensor[t];
        if (!memory.bound) return;
        if (!this->whole(t)) return;
        const std::uint32_t own = shared_address(stage + stage_offset<I> + own_in_stage<I>(0));
        for_each_place<T>(t, [&](int v, bool exists, auto* at) {
          const auto to = own + static_cast<std::uint32_t>(v * Place::stage_threads * vector_bytes<I>);
          if (exists) copy_async<vector_bytes<I>>(to, at);
        });
      }
    });
  }
  /// The same where the block's threads do that together (can_share), from where shared_sources says that
  /// this thread's share of each operand lies.
  struct sources {
    static constexpr int count = size_of_list<walked_loads<group, S>>;
    const unsigned char* of[count > 0 ? count : 1];
  };
  __device__ __forceinline__ sources shared_sources() const {
    sources found;
    for_each_index(sequence_of<walked_loads<group, S>>{}, [&]<int I>(index_constant<I>) {
      constexpr int t = node_at<group, I>.target;
      found.of[position_in<walked_loads<group, S>, I>] =
          this->template shared_source<typename K::template element<t>>(t);
    });
    return found;
  }
  __device__ __forceinline__ void prefetch(unsigned char* stage, const sources& from) const {
    const auto bring_all = [&]<bool Whole>(std::bool_constant<Whole>) {
      for_each_index(sequence_of<walked_loads<group, S>>{}, [&]<int I>(index_constant<I>) {
        constexpr int t = node_at<group, I>.target;
        if (!tensor_at<group, t>.optional || this->thread.a.tensor[t].bound)
          this->template bring<typename K::template element<t>, Whole>(
              t, shared_address(stage + stage_offset<I>), from.of[position_in<walked_loads<group, S>, I>]);
      });
    };
    if (this->is_whole())
      bring_all(std::true_type{});
    else
      bring_all(std::false_type{});
  }
  /// Makes sources those of the next tile, in the order of the first sweep, or of the one before.
  template <bool Back> __device__ __forceinline__ void move(sources& from) const {
    for_each_index(sequence_of<walked_loads<group, S>>{}, [&]<int I>(index_constant<I>) {
      const std::int64_t apart = this->thread.a.tile_apart[node_at<group, I>.target];
      from.of[position_in<walked_loads<group, S>, I>] += Back ? -apart : apart;
    });
  }
  /// The same of rows: where the thread's first vector lies of each operand, or would, where the tile has
  /// steps there and accesses reach them.
  __device__ __forceinline__ sources row_sources() const {
    sources found;
    for_each_index(sequence_of<walked_loads<group, S>>{}, [&]<int I>(index_constant<I>) {
      found.of[position_in<walked_loads<group, S>, I>] =
          reinterpret_cast<const unsigned char*>(first_vector<I>());
    });
    return found;
  }
  /// ... of which the thread has and reaches all vectors (reads_all).
  __device__ __forceinline__ void prefetch_all(unsigned char* stage, const sources& from) const {
    for_each_index(sequence_of<walked_loads<group, S>>{}, [&]<int I>(index_constant<I>) {
      const unsigned char* at = from.of[position_in<walked_loads<group, S>, I>];
      const std::uint32_t own = shared_address(stage + stage_offset<I> + own_in_stage<I>(0));
#pragma unroll
      for (int v = 0; v < vectors; ++v) {
        copy_async<vector_bytes<I>>(
            own + static_cast<std::uint32_t>(v * Place::stage_threads * vector_bytes<I>), at);
        at += this->next(0) * (vector_bytes<I> / width);
      }
    });
  }
  /// Makes them those of the next tile, `steps` further on in the order of the first sweep, or of the one
  /// before.
  template <bool Back> __device__ __forceinline__ void move_row(sources& from, int steps) const {
    const int further = Back == (this->direction() < 0) ? steps : -steps;
    for_each_index(sequence_of<walked_loads<group, S>>{}, [&]<int I>(index_constant<I>) {
      from.of[position_in<walked_loads<group, S>, I>] += further * (vector_bytes<I> / width);
    });
  }
  /// As load(), from a stage what prefetch brought there.
  __device__ __forceinline__ void load(const unsigned char* stage) {
    if constexpr (tells_of_all)
      if (this->reads_all()) return load_all<true>(stage);
    for_each_index(sequence_of<walked_loads<group, S>>{},
                   [&]<int I>(index_constant<I>) { load_one<I, true>(stage); });
  }
  /// The same of a tile that has all steps, where all threads brought it.
  __device__ __forceinline__ void load_whole(const unsigned char* stage) {
    for_each_index(sequence_of<walked_loads<group, S>>{}, [&]<int I>(index_constant<I>) {
      using E = held_element<typename K::template element<node_at<group, I>.target>, C>;
      if (is_left_out<I>()) return;
#pragma unroll
      for (int v = 0; v < vectors; ++v)
        held_of<I>(loads).vector[v].load(
            reinterpret_cast<const E*>(stage + stage_offset<I> + own_in_stage<I>(v)));
    });
  }
  /// Has the exponentials of a tile of rows wait in its stage, in place of what was there
  /// (exponentials_wait); and takes them from there, each times a scale.
  __device__ __forceinline__ void leave_exponentials(unsigned char* stage) const {
#pragma unroll
    for (int v = 0; v < vectors; ++v) {
      packed<C, width> vector{};
      vector.set(0, exponential[0][v]);
      vector.put(waiting(stage, v));
    }
  }
  __device__ __forceinline__ void take_exponentials(unsigned char* stage, C scale) {
#pragma unroll
    for (int v = 0; v < vectors; ++v) {
      packed<C, width> vector;
      vector.load(waiting(stage, v));
#pragma unroll
      for (int e = 0; e < width; ++e) exponential[0][v][e] = vector.template get<C>(e) * scale;
    }
  }

  /// Steps that do not exist hold 0, and what a log-sum takes -inf, so that sums need no masks (vanishes).
  static constexpr bool fills_missing = Place::vector_is_step && several_sweeps && !Anywhere;
  template <int I, class E> static __device__ __forceinline__ packed<E, width> nothing() {
    packed<E, width> vector{};
    if constexpr (fills_missing && is_filled_low<group>(I))
#pragma unroll
      for (int e = 0; e < width; ++e) vector.set_bits(e, narrow<E>(-INFINITY));
    return vector;
  }
  template <int I> __device__ __forceinline__ void fill_missing() {
    using E = held_element<typename K::template element<node_at<group, I>.target>, C>;
    if constexpr (fills_missing)
#pragma unroll
      for (int v = 0; v < vectors; ++v)
        if (!this->has(v)) held_of<I>(loads).vector[v] = nothing<I, E>();
  }

  template <int I> __device__ __forceinline__ C read(index_constant<I>, int run, int step) const {
    constexpr node each = node_at<group, I>;
    constexpr tensor_decl declared = tensor_at<group, each.target>;
    const int v = Place::vector_of(run, step), e = Place::element_of(run, step);
    const C value = held_of<I>(loads).get(v, e);
    if constexpr (declared.optional && !fallback_is_exact<I>)
      return this->thread.a.tensor[each.target].bound ? value : static_cast<C>(declared.fallback);
    else
      return value;
  }

  /// Whether a step of a run exists: the first ones, but of a place that begins late.
  __device__ __forceinline__ bool has_step(int run, int step) const {
    if constexpr (requires { Place::begins_late; })
      return step >= this->missing && step < this->steps(run);
    else
      return step < this->steps(run);
  }
  /// Whether each run exists as a whole or not at all. Where vectors are steps, a mask of a step serves a
  /// vector; else it would be one an element, and such tiles are left to others.
  static constexpr bool has_parts = Place::vector_is_step || Place::ragged;
  __device__ __forceinline__ bool in_parts() const {
    bool parts = false;
#pragma unroll
    for (int run = 0; run < runs; ++run) parts = parts || (this->steps(run) > 0 && this->steps(run) < length);
    return !has_parts && parts;
  }

  /// Advances the scans of sweep Q of rounds up to Round through one run; Masked: through the steps that
  /// exist. Those that do not exist come last, so that only what follows the tile is concerned; where the
  /// sweep goes Back they come first, and have to be masked. `before`: the states that earlier sweeps had
  /// when they came to the run.
  template <int Q, int Round, bool Framed, tile_mask Masked, bool Back = false, class Uniforms>
  __device__ __forceinline__ void fold(Uniforms& u, int run, const states<group, C>& before,
                                       states<group, C>& state) {
    const replayed_run<tile> here = replay<Q, Framed>(run, before);
    const states<group, C> start = state;
    using memory = step_memory<K, stage_kind::aggregate, Q, Round, Framed, replayed_run<tile>>;
    rotation<K, stage_kind::aggregate, Q, length> rotating[1];
    rotate<memory, Back>(rotating, u, run, &here, 0, state);
    for_count<rolled, length>([&](int i) {
      const int step = Back ? length - 1 - i : i;
      // In a frame what does not exist is computed and left out: branches would keep values apart.
      if (!Framed && !fills_missing && Masked == tile_mask::steps && !Back && !has_step(run, step)) return;
      typename fold_stage<Q>::template variables<C> v;
      const rotated_memory<memory, rotation<K, stage_kind::aggregate, Q, length>> at{
          {here, run, step, state, Masked != tile_mask::steps || has_step(run, step)}, rotating[0]};
      fold_stage<Q>::evaluate(u, v, at);
      rotating[0].advance();
      if constexpr (keeps_common && Q == 0)
        for_each_index(sequence_of<common_nodes<group>>{}, [&]<int I>(index_constant<I>) {
          common[position_in<common_nodes<group>, I>][run][step] = fold_stage<Q>::template get<I>(u, v);
        });
      for_each_index(sequence_of<scans_in<group, Q>>{}, [&]<int Scan>(index_constant<Scan>) {
        constexpr int element = scan_at<group, Scan>.element[0];
        if constexpr (scale_of<group, Scan> >= 0)
          remembered[position_in<remembered_nodes<group, Q>, element>][run][step] =
              at.template masked<Scan>(fold_stage<Q>::template get<element>(u, v));
      });
    });
    if (Masked == tile_mask::runs && this->steps(run) == 0) state = start;
  }

  template <int Q, int N>
  static constexpr int output_tensor =
      store_at<group, stage_of<group, stage_kind::sweep, Q>.stores[N]>.tensor;
  template <int Q> static constexpr int outputs_of = stage_of<group, stage_kind::sweep, Q>.stores.count;
  template <class Sequence, int Q> struct output_slots;
  template <int Q, int... N>
  struct output_slots<std::integer_sequence<int, N...>, Q>
      : held_slot<N, held<typename K::template element<
                              store_at<group, stage_of<group, stage_kind::sweep, Q>.stores[N]>.tensor>,
                          C, vectors, width>>... {};
  template <int Q>
  using outputs =
      output_slots<std::make_integer_sequence<int, stage_of<group, stage_kind::sweep, Q>.stores.count>, Q>;

  /// Walks every run from the states before it, writes the outputs of sweep Q and adds what is tallied to
  /// what the thread has of the run's lane. Folded: this tile has been folded before.
  template <int Q, bool Framed, bool Back = false, bool Folded = several_sweeps>
  __device__ __forceinline__ void finish(const states<group, C> (&before)[runs],
                                         states<group, C> (&tally)[Place::lane_count]) {
    if constexpr (finishes<Q>) {
      outputs<Q> written;
      compute<Q, Framed, Back, Folded>(before, tally, written);
      write_all<Q>(written);
    }
  }
  /// Whether sweep Q writes or tallies anything.
  template <int Q> static constexpr bool finishes = outputs_of<Q> > 0 || has_tallies<group, Q>;
  /// As finish, of outputs that are not written yet.
  template <int Q, bool Framed, bool Back, bool Folded = several_sweeps>
  __device__ __forceinline__ void compute(const states<group, C> (&before)[runs],
                                          states<group, C> (&tally)[Place::lane_count],
                                          outputs<Q>& written) const {
    if constexpr (Place::vector_is_step && replays_any<group>(Q)) {
      walk_lanes<Q, Framed, Back>(before, written, tally);
    } else {
      states<group, C> state[runs];
#pragma unroll
      for (int run = 0; run < runs; ++run) {
        state[run] = before[run];
        set_identity<group, tallies_in<group, Q>>(state[run]);
      }
      walk_vectors<Q, Framed, Back, false, Folded>(before, state, written);
#pragma unroll
      for (int run = 0; run < runs; ++run) add_tallies<Q>(run, state[run], tally);
    }
  }
  template <int Q> __device__ __forceinline__ void write_all(const outputs<Q>& written) const {
    for_each_index(std::make_integer_sequence<int, outputs_of<Q>>{},
                   [&]<int N>(index_constant<N>) { write<output_tensor<Q, N>>(held_of<N>(written)); });
  }

  /// The same in programs of one sweep, with the states moving past the runs; Masked: past the steps that
  /// exist. Writes nothing, and gives false, where fits(state), asked behind the runs, says so.
  template <bool Framed, bool Masked, class Fits>
  __device__ __forceinline__ bool walk(states<group, C> (&state)[runs], Fits&& fits) {
    outputs<0> written;
    walk_vectors<0, Framed, false, Masked, false>(state, state, written);
    if (!fits(state)) return false;
    write_all<0>(written);
    return true;
  }

private:
  /// Of a run from the identity on. Of runs that do not exist none: where they exist as a whole or not at all
  /// no step asks.
  template <int Q>
  __device__ __forceinline__ void add_tallies(int run, const states<group, C>& of_run,
                                              states<group, C> (&tally)[Place::lane_count]) const {
    for_each_index(sequence_of<tallies_in<group, Q>>{}, [&]<int Scan>(index_constant<Scan>) {
      C& sum = std::get<0>(state_of<Scan>(tally[Place::lane_of(run)]));
      const C more = sum + std::get<0>(state_of<Scan>(of_run));
      sum = has_parts || this->steps(run) > 0 ? more : sum;
    });
  }

  /// Computes anew what sweep Later uses of earlier ones.
  template <int Later, bool Framed, bool Folded = true>
  __device__ __forceinline__ replayed_run<tile, Folded> replay(int run,
                                                               const states<group, C>& before) const {
    replayed_run<tile, Folded> known(*this);
    for_each_index(std::make_integer_sequence<int, Later>{}, [&]<int Q>(index_constant<Q>) {
      if constexpr (replays<group>(Later, Q))
        with_heading<group, Q>(this->thread.a, [&]<bool Back>(std::bool_constant<Back>) {
          replay_sweep<Q, Framed, Back>(run, before, known);
        });
    });
    return known;
  }
  template <int Q, bool Framed, bool Back>
  __device__ __forceinline__ void replay_sweep(int run, const states<group, C>& before,
                                               replayed_run<tile>& known) const {
    auto u = sweep_stage<Q>::evaluate_uniforms(this->thread.a.parameters);
    states<group, C> state = before;
    rotation<K, stage_kind::sweep, Q, length> rotating[1];
    rotate<memory_of_sweep<Q, Framed>, Back>(rotating, u, run, &known, 0, state);
    for_count<rolled, length>([&](int i) {
      const int step = Back ? length - 1 - i : i;
      typename sweep_stage<Q>::template variables<C> v;
      step_of<Q, Framed, Back>(u, v, known, run, step, state, rotating[0]);
      for_each_index(std::make_integer_sequence<int, stage_of<group, stage_kind::sweep, Q>.keeps.count>{},
                     [&]<int N>(index_constant<N>) {
                       constexpr int node_index = stage_of<group, stage_kind::sweep, Q>.keeps[N];
                       known.value[position_in<replayed_nodes<group>, node_index>][step] =
                           sweep_stage<Q>::template get<node_index>(u, v);
                     });
    });
  }
  /// Framed: where nothing is left to others, every step is masked; so it is where Masked says so.
  template <int Q, bool Framed, bool Back, bool Masked = false, class Uniforms, class Variables, class Run>
  __device__ __forceinline__ void step_of(Uniforms& u, Variables& v, const Run& here, int run, int step,
                                          states<group, C>& state,
                                          rotation<K, stage_kind::sweep, Q, length>& rotating) const {
    const bool advances = !Masked && (!Back || (Framed && !has_parts));
    sweep_stage<Q>::evaluate(
        u, v,
        rotated_memory<memory_of_sweep<Q, Framed, Run>, rotation<K, stage_kind::sweep, Q, length>>{
            {here, run, step, state, advances || has_step(run, step)}, rotating});
    rotating.advance();
  }
  template <int Q, bool Framed, class Run = replayed_run<tile>>
  using memory_of_sweep = step_memory<K, stage_kind::sweep, Q, 0, Framed, Run>;
  /// Starts rotations where the runs from `first` on begin, or where the sweep goes Back, end. `known`: the
  /// first of them, and how far it is to the next.
  template <class Memory, bool Back, class Rotations, class Uniforms, class Run>
  static __device__ __forceinline__ void rotate(Rotations& rotations, Uniforms& u, int first,
                                                const Run* known, int apart, states<group, C>& unused) {
    constexpr int one = Back ? length - 1 : 0, other = Back ? length - 2 : 1;
    start_rotations(
        rotations, u, [&](int i) { return Memory{known[i * apart], first + i, one, unused}; },
        [&](int i) { return Memory{known[i * apart], first + i, other, unused}; });
  }

  /// Computes the outputs of sweep Q vector by vector, from `state` on.
  template <int Q, bool Framed, bool Back, bool Masked, bool Folded>
  __device__ __forceinline__ void walk_vectors(const states<group, C> (&before)[runs],
                                               states<group, C> (&state)[runs], outputs<Q>& written) const {
    auto u = sweep_stage<Q>::evaluate_uniforms(this->thread.a.parameters);
    using run_type = replayed_run<tile, Folded>;
    using memory = memory_of_sweep<Q, Framed, run_type>;
    rotation<K, stage_kind::sweep, Q, length> rotating[runs];
    if constexpr (Place::vector_is_step) {
      const run_type none(*this);
      rotate<memory, Back>(rotating, u, 0, &none, 0, state[0]);
    }
    for_count<rolled_vectors, vectors>([&](int i) {
      const int v = Back ? vectors - 1 - i : i, first_run = Place::run_of(v, 0);
      const run_type here = replay<Q, Framed, Folded>(first_run, before[first_run]);
      if constexpr (!Place::vector_is_step) {
        rotation<K, stage_kind::sweep, Q, length> of_run[1];
        rotate<memory, Back>(of_run, u, first_run, &here, 0, state[first_run]);
        rotating[first_run] = of_run[0];
      }
      C out[outputs_of<Q> > 0 ? outputs_of<Q> : 1][width];
      for_count<rolled && !Place::vector_is_step, width>([&](int j) {
        const int e = Back ? width - 1 - j : j, run = Place::run_of(v, e);
        typename sweep_stage<Q>::template variables<C> values;
        step_of<Q, Framed, Back, Masked>(u, values, here, run, Place::step_of(v, e), state[run],
                                         rotating[run]);
        take_outputs<Q>(u, values, [&]<int N>(index_constant<N>, C value) { out[N][e] = value; });
      });
      for_each_index(std::make_integer_sequence<int, outputs_of<Q>>{},
                     [&]<int N>(index_constant<N>) { held_of<N>(written).vector[v].set(0, out[N]); });
    });
  }
  /// ... two lanes at a time, for what earlier sweeps computed of them has to be at hand.
  template <int Q, bool Framed, bool Back>
  __device__ __forceinline__ void walk_lanes(const states<group, C> (&before)[runs], outputs<Q>& written,
                                             states<group, C> (&tally)[Place::lane_count]) const {
    constexpr int side = runs < 2 ? runs : 2;
    auto u = sweep_stage<Q>::evaluate_uniforms(this->thread.a.parameters);
#pragma unroll
    for (int first = 0; first < runs; first += side) {
      const replayed_run<tile> here[2] = {replay<Q, Framed>(first, before[first]),
                                          replay<Q, Framed>(first + side - 1, before[first + side - 1])};
      states<group, C> state[2] = {before[first], before[first + side - 1]};
#pragma unroll
      for (int k = 0; k < side; ++k) set_identity<group, tallies_in<group, Q>>(state[k]);
      rotation<K, stage_kind::sweep, Q, length> rotating[side];
      rotate<memory_of_sweep<Q, Framed>, Back>(rotating, u, first, here, 1, state[0]);
      for_count<rolled, length>([&](int i) {
        const int step = Back ? length - 1 - i : i;
        C out[outputs_of<Q> > 0 ? outputs_of<Q> : 1][side];
#pragma unroll
        for (int k = 0; k < side; ++k) {
          typename sweep_stage<Q>::template variables<C> values;
          step_of<Q, Framed, Back>(u, values, here[k], first + k, step, state[k], rotating[k]);
          take_outputs<Q>(u, values, [&]<int N>(index_constant<N>, C value) { out[N][k] = value; });
        }
        for_each_index(std::make_integer_sequence<int, outputs_of<Q>>{}, [&]<int N>(index_constant<N>) {
          held_of<N>(written).vector[step].set(first, out[N]);
        });
      });
#pragma unroll
      for (int k = 0; k < side; ++k) add_tallies<Q>(first + k, state[k], tally);
    }
  }
  template <int Q, class Uniforms, class Variables, class F>
  static __device__ __forceinline__ void take_outputs(Uniforms& u, Variables& values, F&& f) {
    for_each_index(std::make_integer_sequence<int, outputs_of<Q>>{}, [&]<int N>(index_constant<N> which) {
      constexpr store_decl store = store_at<group, stage_of<group, stage_kind::sweep, Q>.stores[N]>;
      f(which, sweep_stage<Q>::template get<store.value>(u, values));
    });
  }

  /// Where instructions are what takes the time, in programs of several sweeps, and in rows, tiles that have
  /// all vectors are asked once; a copy's two ways to load strips would take longer than the questions.
  static constexpr bool asks_once = !rolled && vectors > 1 && (several_sweeps || !Place::vector_is_step);
  /// Calls f(v, whether it has vector v); it has the first ones.
  template <class F> __device__ __forceinline__ void for_each_vector(F&& f) const {
    if (asks_once && this->has_all())
      for_count<rolled_vectors, vectors>([&](int v) { f(v, true); });
    else
      for_count<rolled_vectors, vectors>([&](int v) { f(v, this->has(v)); });
  }

  /// ... and with where it lies in tensor t, of elements T, one access reaching each.
  template <class T, class F> __device__ __forceinline__ void for_each_place(int t, F&& f) const {
    T* at = static_cast<T*>(this->thread.a.tensor[t].data) + this->first(t);
    const std::int64_t next = this->next(t);
    for_each_vector([&](int v, bool exists) {
      f(v, exists, at);
      at += next;
    });
  }

  /// Loads vector v of an operand from `at`, or where a stage has it; Turns: into the other order.
  template <int I, bool Staged, bool Turns, class E>
  __device__ __forceinline__ void load_vector(int v, const E* at, const unsigned char* stage) {
    auto& vector = held_of<I>(loads).vector[v];
    if constexpr (Staged) at = reinterpret_cast<const E*>(stage + stage_offset<I> + own_in_stage<I>(v));
    if constexpr (Staged && Turns)
      vector.load_reversed(at);
    else
      vector.load(at);
    if constexpr (!Staged && Turns) vector.reverse();
  }
  template <int I> __device__ __forceinline__ auto* first_vector() const {
    constexpr int t = node_at<group, I>.target;
    using E = held_element<typename K::template element<t>, C>;
    return static_cast<const E*>(this->thread.a.tensor[t].data) + this->first(t);
  }
  template <bool Staged> __device__ __forceinline__ void load_all(const unsigned char* stage) {
    in_scan_order([&](auto turn) {
      for_each_index(sequence_of<walked_loads<group, S>>{}, [&]<int I>(index_constant<I>) {
        using E = held_element<typename K::template element<node_at<group, I>.target>, C>;
        const E* const first = first_vector<I>();
#pragma unroll
        for (int v = 0; v < vectors; ++v)
          load_vector<I, Staged, decltype(turn)::value, E>(v, first + v * this->next(0), stage);
      });
    });
  }
  static __device__ __forceinline__ C* waiting(unsigned char* stage, int v) {
    return reinterpret_cast<C*>(stage + own_in_stage<walked_loads<group, S>::list[0]>(v));
  }
  template <int I> static __device__ __forceinline__ int own_in_stage(int v) {
    return (v * Place::stage_threads + Place::in_stage_threads()) * vector_bytes<I>;
  }
  /// Whether an operand is none of the call's: its elements are what is read in its place.
  template <int I> __device__ __forceinline__ bool is_left_out() {
    constexpr int t = node_at<group, I>.target;
    if (!tensor_at<group, t>.optional || this->thread.a.tensor[t].bound) return false;
    if constexpr (fallback_is_exact<I>)
#pragma unroll
      for (int v = 0; v < vectors; ++v) held_of<I>(loads).vector[v] = {};
    return true;
  }
  template <int I, bool Staged> __device__ __forceinline__ void load_one(const unsigned char* stage) {
    constexpr int t = node_at<group, I>.target;
    using T = typename K::template element<t>;
    using E = held_element<T, C>;
    auto& registers = held_of<I>(loads);
    const auto& memory = this->thread.a.tensor[t];
    if (is_left_out<I>()) return;
    if (std::is_same_v<T, any_type> && is_floating(memory.type) && this->whole(t)) {
      if constexpr (std::is_same_v<T, any_type>)
        with_element<C>(memory.type, [&]<class Stored>(std::type_identity<Stored>) {
          packed<Stored, width> stored[vectors] = {};
          for_each_place<Stored>(t, [&](int v, bool exists, auto* at) {
            if (exists) stored[v].load(at);
          });
          in_scan_order([&](auto turn) {
#pragma unroll
            for (int v = 0; v < vectors; ++v) {
              if constexpr (decltype(turn)::value) stored[v].reverse();
              registers.vector[v] = convert<E>(stored[v]);
            }
          });
        });
    } else if (!std::is_same_v<T, any_type> && this->whole(t)) {
      in_scan_order([&](auto turn) {
        for_each_place<E>(t, [&](int v, bool exists, auto* at) {
          registers.vector[v] = nothing<I, E>();
          if (!exists) {  // like one that does, as in load_elements
            if (!Place::vector_is_step && v > 0) registers.vector[v] = registers.vector[0];
            return;
          }
          load_vector<I, Staged, decltype(turn)::value, E>(v, at, stage);
        });
      });
    } else if (!std::is_same_v<T, any_type> && !Anywhere && memory.mode == access::same) {
      const element_path path = this->path(t);
      const E* at = static_cast<const E*>(memory.data) + begin_of(t, path);
      for_count<rolled_vectors, vectors>([&](int v) {
        const E value = path.counts.any(v) ? *at : E{};
        at += next_in(t, path);
#pragma unroll
        for (int e = 0; e < width; ++e) registers.vector[v].set_bits(e, value);
      });
      fill_missing<I>();
    } else if constexpr (Anywhere) {
      static_cast<packed_vectors<E, vectors, width>&>(registers) =
          gather_elements<E, vectors, width>(this->thread.a, t, this->path(t));
    } else {
      const element_path path = this->path(t);
      const E* const first = static_cast<const E*>(memory.data) + begin_of(t, path);
      const E* const end = static_cast<const E*>(memory.data) + memory.extent;
      E other{};
      constexpr int called_vectors =
          smaller(vectors, shares_tiles<group> ? larger(2, called_bytes / vector_bytes<I>) : 2);
#pragma unroll
      for (int v = 0; v < vectors; v += called_vectors) {
        const auto some =
            load_elements<called_vectors, width>(first + v * next_in(t, path), apart_in(t, path),
                                                 next_in(t, path), path.counts.from(v), end, other);
        if (v == 0) other = some.vector[0].bits_of(0);
#pragma unroll
        for (int i = 0; i < called_vectors; ++i) registers.vector[v + i] = some.vector[i];
      }
      fill_missing<I>();
    }
  }

  /// What a call reads of short vectors, else two vectors: what it gives is in registers where others are
  /// held.
  static constexpr int called_bytes = 32;
  /// Of a walk of one dimension: where the elements of a path begin, how far apart they are, and how far it
  /// is from vector to vector.
  __device__ __forceinline__ std::int64_t begin_of(int t, const element_path& path) const {
    return path.place + path.position * this->thread.a.walk[0].stride[t];
  }
  __device__ __forceinline__ std::int64_t apart_in(int t, const element_path& path) const {
    return path.direction * this->thread.a.walk[0].stride[t] + path.lane_stride;
  }
  __device__ __forceinline__ std::int64_t next_in(int t, const element_path& path) const {
    return path.next * this->thread.a.walk[0].stride[t];
  }

  /// Calls f(whether vectors are to be turned round), a constant: where the scan goes through memory
  /// backwards their elements change their order. (The empty instruction keeps compilers from making one code
  /// of both with a selection of every word.)
  template <class F> __device__ __forceinline__ void in_scan_order(F&& f) const {
    if constexpr (Place::can_flip)
      if (this->flipped()) [[unlikely]] {
        asm volatile("" ::: "memory");
        return f(std::true_type{});
      }
    f(std::false_type{});
  }

  template <int Tensor, class Held> __device__ __forceinline__ void write(Held& values) const {
    using T = typename K::template element<Tensor>;
    using E = held_element<T, C>;
    const auto& memory = this->thread.a.tensor[Tensor];
    if (!memory.bound) return;
    if (std::is_same_v<T, any_type> && is_floating(memory.type) && this->whole(Tensor)) {
      if constexpr (std::is_same_v<T, any_type>)
        with_element<C>(memory.type, [&]<class Stored>(std::type_identity<Stored>) {
          in_scan_order([&](auto turn) {
            for_each_place<Stored>(Tensor, [&](int v, bool exists, auto* at) {
              packed<Stored, width> stored = convert<Stored>(values.vector[v]);
              if constexpr (decltype(turn)::value) stored.reverse();
              if (exists) stored.store(at);
            });
          });
        });
    } else if (!std::is_same_v<T, any_type> && this->whole(Tensor)) {
      in_scan_order([&](auto turn) {
        for_each_place<E>(Tensor, [&](int v, bool exists, auto* at) {
          packed<E, width> stored = values.vector[v];
          if constexpr (decltype(turn)::value) stored.reverse();
          if (exists) stored.store(at);
        });
      });
    } else if constexpr (Anywhere) {
      scatter_elements<E, vectors, width>(this->thread.a, Tensor, this->path(Tensor), values);
    } else {
      const element_path path = this->path(Tensor);
      // Maps, reductions and rows that share what is computed have no register to spare.
      constexpr bool together = scan_count<group> > 0 && !only_reduces<group, S> && !Place::repeats;
      store_elements<together, vectors, width>(static_cast<E*>(memory.data) + begin_of(Tensor, path),
                                               apart_in(Tensor, path), next_in(Tensor, path), path.counts,
                                               values);
    }
  }
};

/// What a thread's lanes hold at one position, read where it exists.
template <class K, int S, bool Anywhere, int Lanes> struct look {
  using step = tile<K, S, one_step<K, Lanes>, Anywhere>;
  step here;
  bool exists;
  __device__ __forceinline__ look(const lane_group<K, Lanes>& thread, std::int64_t position, bool does)
      : here(thread, position), exists(does) {
    if (exists) here.load();
  }
  /// Calls f(scan, lane, element) for every log-sum of sweep S and every lane, with what the scan takes
  /// there; 0 unless that exists.
  template <class Uniforms, class F> __device__ __forceinline__ void for_elements(Uniforms& u, F&& f) const {
    using group = typename K::group;
    using C = typename K::compute;
#pragma unroll
    for (int lane = 0; lane < Lanes; ++lane)
      for_each_index(sequence_of<scans_in<group, S>>{}, [&]<int Scan>(index_constant<Scan>) {
        if constexpr (is_log_sum<group, Scan>) {
          C element = C(0);
          if (exists) {
            states<group, C> unused;
            using fold_stage = typename step::template fold_stage<S>;
            typename fold_stage::template variables<C> v;
            fold_stage::evaluate(u, v, probe_memory<K, S, Scan, step>(here, lane, unused, element));
          }
          f(index_constant<Scan>{}, lane, element);
        }
      });
  }
};

/// The same at once.
template <class K, int S, bool Anywhere, int Lanes, class Uniforms, class F>
__device__ __forceinline__ void look_at(const lane_group<K, Lanes>& thread, std::int64_t position,
                                        bool exists, Uniforms& u, F&& f) {
  look<K, S, Anywhere, Lanes>(thread, position, exists).for_elements(u, f);
}

/// Has the tiles of a walk fetched one after the other, by each thread for itself or, where a strip's threads
/// share their stages, by all together: a stage is then there when all have waited for it, and free when all
/// have read it. HoldsRows: where the next vectors of a row lie is held from tile to tile.
template <class Tile, bool CanShare, bool Back, bool HoldsRows = false> class tile_bringer {
public:
  /// `steps`: of a tile, where the next vectors of a row are held (HoldsRows).
  __device__ __forceinline__ tile_bringer(bool shares, const Tile& first, int steps = 0)
      : shares_(CanShare && shares), steps_(steps) {
    if constexpr (holds_rows)
      from_ = first.row_sources();
    else if constexpr (holds)
      if (shares_) from_ = first.shared_sources();
  }
  __device__ __forceinline__ bool shares() const { return shares_; }
  /// Waits, before the next tile is asked for, until all have brought their share of this one, and read the
  /// one before. (Of its own each thread waits for what it brought.)
  template <class Threads> __device__ __forceinline__ void wait_for_shared(Threads& threads) const {
    if (!shares_) return;
    __pipeline_wait_prior(0);
    threads.meet();
  }
  __device__ __forceinline__ void prefetch(const Tile& coming, unsigned char* stage) {
    if constexpr (holds_rows) {
      if (coming.reads_all())
        coming.prefetch_all(stage, from_);
      else
        coming.prefetch_each(stage);
      return coming.template move_row<Back>(from_, steps_);
    }
    if constexpr (CanShare)
      if (shares_) {
        if constexpr (holds) {
          coming.prefetch(stage, from_);
          coming.template move<Back>(from_);
        } else {
          coming.prefetch(stage, coming.shared_sources());
        }
        return;
      }
    coming.prefetch(stage);
  }

  __device__ __forceinline__ void load(Tile& now, const unsigned char* stage) const {
    if constexpr (CanShare)
      if (shares_ && now.has_all()) return now.load_whole(stage);
    now.load(stage);
  }

private:
  /// From tile to tile; of strips where that takes few registers. (Decayed sums' gradient, a decay for each
  /// element, has three operands: 0.74 of a copy if all are held, for others spill.)
  static constexpr bool holds_rows = HoldsRows && Tile::tells_of_all,
                        holds = holds_rows || (CanShare && Tile::sources::count <= 2);

  bool shares_;
  int steps_;
  struct none {};
  std::conditional_t<holds, typename Tile::sources, none> from_;
};

}  // namespace scandsl::cuda_detail
