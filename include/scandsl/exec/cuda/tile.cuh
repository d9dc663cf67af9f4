#pragma once
#include "scandsl/exec/cuda/thread.cuh"
#include "scandsl/pass/cuda_plan.hpp"

/// The part of a tile that one thread holds in registers, and what is done with it alone: load, fold, finish.
/// How threads are arranged over a tile, and how their states are joined, is said in strip.cuh and row.cuh.
namespace scandsl::cuda_detail {

/// What is held of an element: its bits as stored, or where the type is known at run time only its value.
template <class T, class C>
using held_element = std::conditional_t<std::is_same_v<T, any_type>, typename scratch_type_of<C>::type, T>;

/// What a thread holds of one tensor: `Vectors` vectors of `Width` elements.
template <class T, class C, int Vectors, int Width> struct held {
  packed<held_element<T, C>, Width> vector[Vectors];
  __device__ __forceinline__ C get(int v, int e) const { return vector[v].template get<C>(e); }
};

/// Where the elements of one vector lie that no single access reaches: element e at `position` +
/// `direction` * e of the walk, and `lane_stride` * e elements further.
struct element_path {
  std::int64_t place, position, lane_stride;
  int direction, count;
};

/// Reads such a vector element by element: any strides, any type. One function for all places that call it.
template <class T, int Width, class A>
__device__ __noinline__ packed<T, Width> gather_elements(const A& a, int t, element_path path) {
  packed<T, Width> result;
#pragma unroll
  for (int e = 0; e < Width; ++e) {
    T value{};
    if (e < path.count) {
      const std::int64_t at =
          path.place + walk_offset(a, t, path.position + path.direction * e) + path.lane_stride * e;
      if (a.tensor[t].type == dtype_of<T>)
        value = static_cast<const T*>(a.tensor[t].data)[at];
      else if constexpr (sizeof(T) >= 4)
        value = load_any<T>(a.tensor[t].data, a.tensor[t].type, at);
    }
    result.set_bits(e, value);
  }
  return result;
}
template <class T, int Width, class A>
__device__ __noinline__ void scatter_elements(const A& a, int t, element_path path, packed<T, Width> values) {
#pragma unroll
  for (int e = 0; e < Width; ++e)
    if (e < path.count) {
      const std::int64_t at =
          path.place + walk_offset(a, t, path.position + path.direction * e) + path.lane_stride * e;
      if (a.tensor[t].type == dtype_of<T>)
        static_cast<T*>(a.tensor[t].data)[at] = values.bits_of(e);
      else if constexpr (sizeof(T) >= 4)
        store_any<T>(a.tensor[t].data, a.tensor[t].type, at, values.bits_of(e));
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

/// A tile of sweep S. `Place` says where the thread's elements lie: its constants runs, length, vectors and
/// width, run_of, step_of, vector_of, element_of and lane_of between the two ways of counting them, and
///   steps(run)          steps of a run that exist (the first ones)
///   position(run, step) of the walk
///   count(v)            elements of vector v that exist
///   whole(t)            whether one access reaches each of its vectors in tensor t
///   first(t), next(t)   the lowest address of vector 0, in elements, and from one vector to the next, where
///                       one access reaches them or one element serves all
///   path(t, v)          else
///   flipped()           whether a vector's elements lie in memory the other way round (can_flip: ever)
template <class K, int S, class Place> struct tile : Place {
  using group = typename K::group;
  using C = typename K::compute;
  using sweep_stage = stage<group, stage_kind::sweep, S>;
  using fold_stage = stage<group, stage_kind::aggregate, S>;
  static constexpr int vectors = Place::vectors, width = Place::width, runs = Place::runs,
                       length = Place::length;

  held_loads<K, vectors, width, sequence_of<walked_loads<group, S>>> loads;

  template <class... A> __device__ __forceinline__ explicit tile(const A&... given) : Place(given...) {}

  __device__ __forceinline__ void load() {
    for_each_index(sequence_of<walked_loads<group, S>>{}, [&]<int I>(index_constant<I>) {
      constexpr node each = node_at<group, I>;
      constexpr int t = each.target;
      constexpr bool optional = tensor_at<group, t>.optional;
      using T = typename K::template element<t>;
      using E = held_element<T, C>;
      auto& registers = held_of<I>(loads);
      const auto& memory = this->thread.a.tensor[t];
      if (optional && !memory.bound) return;
      const E* const first = static_cast<const E*>(memory.data) + this->first(t);
      const std::int64_t next = this->next(t);
      if (!std::is_same_v<T, any_type> && this->whole(t)) {
#pragma unroll
        for (int v = 0; v < vectors; ++v) registers.vector[v].load(first + v * next);
        if constexpr (Place::can_flip)
          if (this->flipped()) {
#pragma unroll
            for (int v = 0; v < vectors; ++v) registers.vector[v].reverse();
          }
      } else if (!std::is_same_v<T, any_type> && memory.mode == access::same) {
#pragma unroll
        for (int v = 0; v < vectors; ++v) {
          const E value = this->count(v) > 0 ? first[v * next] : E{};
#pragma unroll
          for (int e = 0; e < width; ++e) registers.vector[v].set_bits(e, value);
        }
      } else {
#pragma unroll
        for (int v = 0; v < vectors; ++v)
          registers.vector[v] = gather_elements<E, width>(this->thread.a, t, this->path(t, v));
      }
    });
  }

  template <int I> __device__ __forceinline__ C read(index_constant<I>, int run, int step) const {
    constexpr node each = node_at<group, I>;
    constexpr tensor_decl declared = tensor_at<group, each.target>;
    const C value = held_of<I>(loads).get(Place::vector_of(run, step), Place::element_of(run, step));
    if constexpr (declared.optional)
      return this->thread.a.tensor[each.target].bound ? value : static_cast<C>(declared.fallback);
    else
      return value;
  }
  using scratch_type = typename scratch_type_of<C>::type;
  __device__ __forceinline__ scratch_type* scratch_at(int stream, int run, int step) const {
    const auto& a = this->thread.a;
    return static_cast<scratch_type*>(a.scratch) + stream * a.scratch_stream +
           (this->thread.first_lane + Place::lane_of(run)) * a.scratch_lane +
           this->position(run, step) * a.scratch_step;
  }
  template <int Stream> __device__ __forceinline__ C read_scratch(int run, int step) const {
    return step < this->steps(run) ? C(*scratch_at(Stream, run, step)) : C(0);
  }

  /// Advances the scans of rounds up to Round through one run; Masked: through the steps that exist. Those
  /// that do not exist come last, so that only what follows the tile is concerned.
  template <int Round, bool Framed, bool Masked, class Uniforms>
  __device__ __forceinline__ void fold(Uniforms& u, int run, states<group, C>& state) const {
    const int limit = this->steps(run);
#pragma unroll
    for (int step = 0; step < length; ++step) {
      if (Masked && step >= limit) continue;
      typename fold_stage::template variables<C> v;
      fold_stage::evaluate(
          u, v, step_memory<K, stage_kind::aggregate, S, Round, Framed, tile>{*this, run, step, state});
    }
  }

  /// Walks every run from its state and writes the outputs.
  template <bool Framed, class Uniforms>
  __device__ __forceinline__ void finish(Uniforms& u, states<group, C> (&state)[runs]) {
    constexpr int stores = stage_of<group, stage_kind::sweep, S>.stores.count;
    outputs held_outputs;
#pragma unroll
    for (int v = 0; v < vectors; ++v) {
      C out[stores > 0 ? stores : 1][width];
#pragma unroll
      for (int e = 0; e < width; ++e) {
        const int run = Place::run_of(v, e), step = Place::step_of(v, e);
        typename sweep_stage::template variables<C> values;
        sweep_stage::evaluate(
            u, values, step_memory<K, stage_kind::sweep, S, 0, Framed, tile>{*this, run, step, state[run]});
        for_each_index(std::make_integer_sequence<int, stores>{}, [&]<int N>(index_constant<N>) {
          constexpr store_decl store = store_at<group, stage_of<group, stage_kind::sweep, S>.stores[N]>;
          out[N][e] = sweep_stage::template get<store.value>(u, values);
        });
        for_each_index(std::make_integer_sequence<int, stage_of<group, stage_kind::sweep, S>.keeps.count>{},
                       [&]<int N>(index_constant<N>) {
                         constexpr int node_index = stage_of<group, stage_kind::sweep, S>.keeps[N];
                         if (step < this->steps(run) && Place::lane_of(run) < this->thread.valid)
                           *scratch_at(position_in<scratch_nodes<group>, node_index>, run, step) =
                               static_cast<scratch_type>(sweep_stage::template get<node_index>(u, values));
                       });
      }
      for_each_index(std::make_integer_sequence<int, stores>{}, [&]<int N>(index_constant<N>) {
        held_output<N>(held_outputs).vector[v].set_all(out[N]);
      });
    }
    for_each_index(std::make_integer_sequence<int, stores>{}, [&]<int N>(index_constant<N>) {
      constexpr store_decl store = store_at<group, stage_of<group, stage_kind::sweep, S>.stores[N]>;
      write<store.tensor>(held_output<N>(held_outputs));
    });
  }

private:
  template <class Sequence> struct output_slots;
  template <int... N>
  struct output_slots<std::integer_sequence<int, N...>>
      : held_slot<N, held<typename K::template element<
                              store_at<group, stage_of<group, stage_kind::sweep, S>.stores[N]>.tensor>,
                          C, vectors, width>>... {};
  using outputs =
      output_slots<std::make_integer_sequence<int, stage_of<group, stage_kind::sweep, S>.stores.count>>;
  template <int N> static __device__ __forceinline__ auto& held_output(outputs& all) {
    return held_of<N>(all);
  }

  template <int Tensor, class Held> __device__ __forceinline__ void write(Held& values) const {
    using T = typename K::template element<Tensor>;
    using E = held_element<T, C>;
    const auto& memory = this->thread.a.tensor[Tensor];
    if (!memory.bound) return;
    if (!std::is_same_v<T, any_type> && this->whole(Tensor)) {
      E* const first = static_cast<E*>(memory.data) + this->first(Tensor);
      const std::int64_t next = this->next(Tensor);
      if constexpr (Place::can_flip)
        if (this->flipped()) {
#pragma unroll
          for (int v = 0; v < vectors; ++v) values.vector[v].reverse();
        }
#pragma unroll
      for (int v = 0; v < vectors; ++v) values.vector[v].store(first + v * next);
    } else {
#pragma unroll
      for (int v = 0; v < vectors; ++v)
        scatter_elements<E, width>(this->thread.a, Tensor, this->path(Tensor, v), values.vector[v]);
    }
  }
};

}  // namespace scandsl::cuda_detail
