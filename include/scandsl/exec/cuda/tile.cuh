#pragma once
#include "scandsl/exec/cuda/thread.cuh"

/// The part of a tile that one thread holds in registers, and what is done with it alone: load, fold, finish.
/// How threads are arranged over a tile, and how their states are joined, is said in strip.cuh and row.cuh.
namespace scandsl::cuda_detail {

/// What a thread holds of one tensor: `Vectors` vectors of `Width` elements.
template <class T, class C, int Vectors, int Width> struct held {
  packed<T, Width> vector[Vectors];
  __device__ __forceinline__ C get(int v, int e) const { return vector[v].template get<C>(e); }
};
template <class C, int Vectors, int Width> struct held<any_type, C, Vectors, Width> {
  C value[Vectors][Width];
  __device__ __forceinline__ C get(int v, int e) const { return value[v][e]; }
};

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
///   steps(run)           steps of a run that exist (the first ones)
///   position(run, step)  of the walk
///   reach(t, vector, f)  calls f(whole, offset, stride, count) for a vector in tensor t: its first element,
///   the
///                        distance to the next and how many exist; where one access reaches it (`whole`), the
///                        offset is of its lowest address
///   flipped()            whether a vector's elements lie in memory the other way round (can_flip: ever)
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
      auto& registers = held_of<I>(loads);
      const auto& memory = this->thread.a.tensor[t];
      if (optional && !memory.bound) return;
#pragma unroll
      for (int v = 0; v < vectors; ++v)
        this->reach(t, v, [&](bool whole, std::int64_t offset, std::int64_t stride, int count) {
          if constexpr (std::is_same_v<T, any_type>) {
#pragma unroll
            for (int e = 0; e < width; ++e)
              registers.value[v][e] =
                  e < count ? load_any<C>(memory.data, memory.type, offset + e * stride) : C(0);
          } else {
            const T* const from = static_cast<const T*>(memory.data) + offset;
#pragma unroll
            for (int w = 0; w < packed<T, width>::count; ++w) registers.vector[v].word[w] = 0;
            if (count > 0) {
              if (whole) {
                registers.vector[v].load(from);
                if constexpr (Place::can_flip) registers.vector[v].reverse_if(this->flipped());
              } else if (memory.mode == access::same) {
                const T element = *from;
#pragma unroll
                for (int e = 0; e < width; ++e) registers.vector[v].set_bits(e, element);
              } else {
#pragma unroll
                for (int e = 0; e < width; ++e)
                  if (e < count) registers.vector[v].set_bits(e, from[e * stride]);
              }
            }
          }
        });
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
  __device__ __forceinline__ C* scratch_at(int stream, int run, int step) const {
    const auto& a = this->thread.a;
    return a.scratch + stream * a.scratch_stream +
           (this->thread.first_lane + Place::lane_of(run)) * a.scratch_lane +
           this->position(run, step) * a.scratch_step;
  }
  template <int Stream> __device__ __forceinline__ C read_scratch(int run, int step) const {
    return step < this->steps(run) ? *scratch_at(Stream, run, step) : C(0);
  }

  /// Advances the scans of rounds up to Round through one run. Only steps that exist count in a ragged tile,
  /// where what comes after them is used.
  template <int Round, class Uniforms>
  __device__ __forceinline__ void fold(Uniforms& u, int run, bool ragged, states<group, C>& state) const {
    const int limit = ragged ? this->steps(run) : length;
#pragma unroll
    for (int step = 0; step < length; ++step) {
      if (uses_last<group> && step >= limit) continue;
      typename fold_stage::template variables<C> v;
      fold_stage::evaluate(u, v,
                           step_memory<K, stage_kind::aggregate, S, Round, tile>{*this, run, step, state});
    }
  }

  /// Walks every run from its state and writes the outputs.
  template <class Uniforms>
  __device__ __forceinline__ void finish(Uniforms& u, states<group, C> (&state)[runs]) {
    constexpr int stores = stage_of<group, stage_kind::sweep, S>.stores.count;
#pragma unroll
    for (int v = 0; v < vectors; ++v) {
      C out[stores > 0 ? stores : 1][width];
#pragma unroll
      for (int e = 0; e < width; ++e) {
        const int run = Place::run_of(v, e), step = Place::step_of(v, e);
        typename sweep_stage::template variables<C> values;
        sweep_stage::evaluate(u, values,
                              step_memory<K, stage_kind::sweep, S, 0, tile>{*this, run, step, state[run]});
        for_each_index(std::make_integer_sequence<int, stores>{}, [&]<int N>(index_constant<N>) {
          constexpr store_decl store = store_at<group, stage_of<group, stage_kind::sweep, S>.stores[N]>;
          out[N][e] = sweep_stage::template get<store.value>(u, values);
        });
        for_each_index(std::make_integer_sequence<int, stage_of<group, stage_kind::sweep, S>.keeps.count>{},
                       [&]<int N>(index_constant<N>) {
                         constexpr int node_index = stage_of<group, stage_kind::sweep, S>.keeps[N];
                         if (step < this->steps(run) && Place::lane_of(run) < this->thread.valid)
                           *scratch_at(position_in<scratch_nodes<group>, node_index>, run, step) =
                               sweep_stage::template get<node_index>(u, values);
                       });
      }
      for_each_index(std::make_integer_sequence<int, stores>{}, [&]<int N>(index_constant<N>) {
        constexpr store_decl store = store_at<group, stage_of<group, stage_kind::sweep, S>.stores[N]>;
        write<store.tensor>(v, out[N]);
      });
    }
  }

private:
  template <int Tensor> __device__ __forceinline__ void write(int v, const C (&values)[width]) const {
    using T = typename K::template element<Tensor>;
    const auto& memory = this->thread.a.tensor[Tensor];
    if (!memory.bound) return;
    this->reach(Tensor, v, [&](bool whole, std::int64_t offset, std::int64_t stride, int count) {
      if constexpr (std::is_same_v<T, any_type>) {
#pragma unroll
        for (int e = 0; e < width; ++e)
          if (e < count) store_any<C>(memory.data, memory.type, offset + e * stride, values[e]);
      } else if (count > 0) {
        packed<T, width> all;
        all.set_all(values);
        if (this->flipped()) all.reverse_if(true);
        T* const to = static_cast<T*>(memory.data) + offset;
        if (whole) {
          all.store(to);
        } else {
#pragma unroll
          for (int e = 0; e < width; ++e)
            if (e < count) to[e * stride] = all.bits_of(e);
        }
      }
    });
  }
};

}  // namespace scandsl::cuda_detail
