#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "scandsl/exec/cpu/convert.hpp"
#include "scandsl/exec/cpu/integers.hpp"
#include "scandsl/exec/cpu/rotation.hpp"
#include "scandsl/pass/cpu_plan.hpp"

/// The CPU kernels of one program: boundaries, sweeps over some steps of some packs of lanes, and combine on
/// single states. They see memory as streams of packs; which part of which tensor that is, and whether it was
/// copied into a tile first, is the driver's business.
namespace scandsl::cpu_detail {

template <class C> inline constexpr int pack_width = static_cast<int>(xsimd::batch<C>::size);

/// Whether packs are whole lines, so that they may be written past the caches.
template <class C>
inline constexpr bool packs_are_lines = sizeof(xsimd::batch<C>) == scandsl::detail::line_bytes;
/// Writes a pack so, where that is asked for. False: nothing has been written.
template <class C>
[[gnu::always_inline]] inline bool store_past_cache(bool asked, C* to, const xsimd::batch<C>& value) {
  if constexpr (packs_are_lines<C>)
    if (asked) scandsl::detail::store_streaming(to, value.data);
  return packs_are_lines<C> && asked;
}

/// Where one pack of one stream lies: its W lanes at `data`, the next step `step` elements on.
template <class C> struct pack_stream {
  C* data = nullptr;
  std::int64_t step = 0;
  bool past_cache = false;  ///< what is written there goes past the caches
};

/// What a kernel is called with. (Here and in what calls these, `Instructions` keeps apart what files of one
/// executable have of the same name, where they are compiled for other instructions: a library for this
/// machine, and who uses it.)
template <class C, class Instructions = xsimd::default_arch> struct kernel_frame {
  const pack_stream<C>* const* streams = nullptr;  ///< [stream][pack]: loads, kept values, scratch
  const gather_place<pack_width<C>>* const* gathers = nullptr;  ///< [stream][pack]: where gathers read
  const pack_stream<C>* const* stores = nullptr;                ///< [index into program::stores][pack]
  C* const* carries = nullptr;    ///< [scan * max_components + component]: packs * W states
  const C* parameters = nullptr;  ///< by program::parameters
  int packs = 0;
  std::int64_t steps = 0;
  std::int64_t ahead = 0;  ///< steps from what is computed to what is fetched
};

template <class C> using kernel = void (*)(const kernel_frame<C>&);

/// `Group` has a program `value` and its schedule `plan`.
template <class Group, stage_kind Kind, int Index, class C> class stage_kernel {
  using pack = xsimd::batch<C>;
  using here_stage = stage<Group, Kind, Index>;
  static constexpr int width = pack_width<C>;
  using uniforms = typename here_stage::template uniforms<C>;
  using variables = typename here_stage::template variables<pack>;

  /// The carries of one pack, in registers: in memory, the next step would wait for the store of the last.
  struct register_carries {
    pack value[static_cast<std::size_t>(std::max(1, Group::value.scans.count))][max_components];

    explicit register_carries(const kernel_frame<C>& frame) {
      for_each_live([&]<int S, int K>(index_constant<S>, index_constant<K>) {
        value[S][K] = pack::load_unaligned(frame.carries[S * max_components + K]);
      });
    }
    void write(const kernel_frame<C>& frame) const {
      for_each_live([&]<int S, int K>(index_constant<S>, index_constant<K>) {
        value[S][K].store_unaligned(frame.carries[S * max_components + K]);
      });
    }
    template <class F> static void for_each_live(F&& f) {
      for_each_index(
          std::make_integer_sequence<int, Group::value.scans.count>{}, [&]<int S>(index_constant<S>) {
            for_each_index(std::make_integer_sequence<int, Group::value.scans[S].components>{},
                           [&]<int K>(index_constant<K>) {
                             if constexpr (Group::plan.sweep_of_scan[S] == Index &&
                                           (here_stage::template live_components<S> >> K & 1U) != 0)
                               f(index_constant<S>{}, index_constant<K>{});
                           });
          });
    }
    template <int S, int K> pack get(int) const { return value[S][K]; }
    template <int S, int K> void set(int, pack state) { value[S][K] = state; }
  };
  struct memory_carries {
    static constexpr int count = Group::value.scans.count * max_components;
    C* at[static_cast<std::size_t>(std::max(1, count))];

    explicit memory_carries(const kernel_frame<C>& frame) {
      for (int i = 0; i < count; ++i) at[i] = frame.carries[i];
    }
    template <int S, int K> pack get(int lanes) const {
      return pack::load_unaligned(at[S * max_components + K] + lanes * width);
    }
    template <int S, int K> void set(int lanes, pack state) {
      state.store_unaligned(at[S * max_components + K] + lanes * width);
    }
  };

  /// The pack of lanes and the step at which the nodes are evaluated.
  template <class Carries> struct position {
    static constexpr bool takes_branches = true;
    const kernel_frame<C>& frame;
    int lanes;
    std::int64_t step;
    Carries& carries;

    /// Where stream K is at the step.
    template <int K> C* stream() const { return fetched(frame.streams[K]); }
    C* fetched(const pack_stream<C>* of) const {
      C* const at = of[lanes].data + step * of[lanes].step;
      prefetch(at, ahead(of[lanes]));
      return at;
    }
    /// Bytes from what is computed to what is fetched.
    std::int64_t ahead(const pack_stream<C>& of) const {
      return frame.ahead * of.step * static_cast<std::int64_t>(sizeof(C));
    }
    /// Has the cache fetch what will be read or written some steps on: strides of a kilobyte or more are
    /// beyond what processors foresee.
    static void prefetch(const C* at, std::int64_t bytes) {
      if constexpr (Kind != stage_kind::boundary)
        __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(at) +
                                                         static_cast<std::uintptr_t>(bytes)));
    }

    template <int I> value_of_node<Group, I, pack> read(index_constant<I>) const {
      return loaded<I>(stream<Group::plan.stream_of[I]>());
    }
    template <int I> static value_of_node<Group, I, pack> loaded(const C* at) {
      const pack value = pack::load_unaligned(at);
      if constexpr (is_integer(Group::value.nodes[I]))
        return std::bit_cast<typename arithmetic<pack>::integer>(value);
      else
        return value;
    }
    template <int I, class... Position>
    value_of_node<Group, I, pack> gather(index_constant<I>, const Position&... positions) const {
      constexpr node each = Group::value.nodes[I];
      using result = value_of_node<Group, I, pack>;
      using element = typename result::value_type;
      constexpr tensor_decl tensor = Group::value.tensors[each.target];
      typename arithmetic<C>::integer at[sizeof...(Position)][static_cast<std::size_t>(width)];
      int from = 0;
      (positions.store_unaligned(at[from++]), ...);
      element gathered[static_cast<std::size_t>(width)];
      gather_elements<sizeof...(Position)>(frame.gathers[Group::plan.stream_of[I]][lanes], step, at,
                                           static_cast<element>(tensor.fallback), gathered);
      return result::load_unaligned(gathered);
    }
    template <int S, int K> pack last(index_constant<S>, index_constant<K>) const {
      return carries.template get<S, K>(lanes);
    }
    /// One step of a scan: carry = combine(carry, element).
    template <int S, class Element, class Before, class After>
    void advance(index_constant<S>, const Element& element, Before&& before, After&& after) const {
      constexpr unsigned live = here_stage::template live_components<S>;
      constexpr std::make_integer_sequence<int, Group::value.scans[S].components> components{};
      using combine = combiner<Group, S, live>;
      typename combine::template states<pack> state{};
      for_each_index(components, [&]<int K>(index_constant<K>) {
        if constexpr (live >> K & 1U) std::get<K>(state) = carries.template get<S, K>(lanes);
      });
      before(state);
      combine::apply(state, element);
      after(state);
      for_each_index(components, [&]<int K>(index_constant<K>) {
        if constexpr (live >> K & 1U) carries.template set<S, K>(lanes, std::get<K>(state));
      });
    }
  };

  /// Where one pack's streams are. In the frame they would be looked up, and their steps multiplied, at every
  /// step anew: what is stored might be the frame.
  struct pack_places {
    struct place {
      C* at = nullptr;
      std::int64_t step = 0, ahead = 0;
      bool past_cache = false;
    };
    place streams[static_cast<std::size_t>(std::max(1, Group::plan.streams))];
    place stores[static_cast<std::size_t>(std::max(1, Group::value.stores.count))];

    template <class Here> explicit pack_places(const Here& here) {
      const auto place_of = [&](const pack_stream<C>* of) {
        const pack_stream<C>& each = of[here.lanes];
        return place{each.data + here.step * each.step, each.step, here.ahead(each), each.past_cache};
      };
      for_each_stream([&]<int K>(index_constant<K>) { streams[K] = place_of(here.frame.streams[K]); });
      for_each_store([&]<int S>(index_constant<S>) { stores[S] = place_of(here.frame.stores[S]); });
    }
    void advance() {
      for_each_stream([&]<int K>(index_constant<K>) { streams[K].at += streams[K].step; });
      for_each_store([&]<int S>(index_constant<S>) { stores[S].at += stores[S].step; });
    }
    /// Whether a frame's packs are neighbours in memory, so that the first one's places tell all.
    static bool tell_all(const kernel_frame<C>& frame) {
      bool all = true;
      const auto look_at = [&](const pack_stream<C>* of) {
        for (int j = 1; j < frame.packs; ++j)
          all = all && of[j].step == of[0].step && of[j].data == of[0].data + j * width &&
                of[j].past_cache == of[0].past_cache;
      };
      for_each_stream([&]<int K>(index_constant<K>) { look_at(frame.streams[K]); });
      for_each_store([&]<int S>(index_constant<S>) { look_at(frame.stores[S]); });
      return all;
    }

  private:
    static constexpr bool uses(int stream) {
      const stage_schedule& here = stage_of<Group, Kind, Index>;
      bool any = false;
      for (const node_id kept : here.keeps) any = any || Group::plan.stream_of[kept] == stream;
      for (int i = 0; i < Group::value.nodes.count; ++i)
        any = any || (Group::plan.stream_of[i] == stream &&
                      (here.from[i] == source::memory || here.from[i] == source::kept ||
                       here.from[i] == source::scratch));
      return any;
    }
    template <class F> static void for_each_stream(F&& f) {
      for_each_index(std::make_integer_sequence<int, Group::plan.streams>{}, [&]<int K>(index_constant<K> k) {
        if constexpr (uses(K)) f(k);
      });
    }
    template <class F> static void for_each_store(F&& f) {
      for_each_index(
          std::make_integer_sequence<int, stage_of<Group, Kind, Index>.stores.count>{},
          [&]<int S>(index_constant<S>) { f(index_constant<stage_of<Group, Kind, Index>.stores[S]>{}); });
    }
  };
  /// A position whose streams' places are known: those of its own pack, or so many elements before.
  template <class Carries> struct placed_position : position<Carries> {
    const pack_places& places;
    std::ptrdiff_t beside = 0;

    template <int K> C* stream() const { return fetched(places.streams[K]); }
    template <int S> void store(const pack& value) const {
      const typename pack_places::place& to = places.stores[S];
      if (!store_past_cache(to.past_cache, to.at + beside, value)) value.store_unaligned(fetched(to));
    }
    template <int K> C* keep() const { return places.streams[K].at + beside; }
    template <int I> value_of_node<Group, I, pack> read(index_constant<I>) const {
      return position<Carries>::template loaded<I>(stream<Group::plan.stream_of[I]>());
    }

  private:
    C* fetched(const typename pack_places::place& of) const {
      C* const at = of.at + beside;
      position<Carries>::prefetch(at, of.ahead);
      return at;
    }
  };

  template <int I> static value_of_node<Group, I, pack> get(uniforms& u, variables& v) {
    return here_stage::template get<I>(u, v);
  }

  /// The carries at a start: the initial state, or the identity.
  template <int Scan, class Here> static void seed(const Here& here, uniforms& u, variables& v) {
    constexpr scan_decl scan = Group::value.scans[Scan];
    for_each_index(std::make_integer_sequence<int, scan.components>{}, [&]<int K>(index_constant<K>) {
      if constexpr (scan.initial[K] == no_node)
        here.carries.template set<Scan, K>(here.lanes, arithmetic<pack>::constant(scan.identity[K]));
      else
        here.carries.template set<Scan, K>(here.lanes, get<scan.initial[K]>(u, v));
    });
  }

  template <class Here> static void evaluate(const Here& here, uniforms& u) {
    variables v;
    here_stage::evaluate(u, v, here);
    if constexpr (Kind == stage_kind::boundary)
      for_each_index(std::make_integer_sequence<int, Group::value.scans.count>{},
                     [&]<int S>(index_constant<S>) {
                       if constexpr (Group::plan.sweep_of_scan[S] == Index) seed<S>(here, u, v);
                     });
    for_each_index(std::make_integer_sequence<int, stage_of<Group, Kind, Index>.stores.count>{},
                   [&]<int S>(index_constant<S>) {
                     constexpr store_decl store = Group::value.stores[stage_of<Group, Kind, Index>.stores[S]];
                     here.template store<stage_of<Group, Kind, Index>.stores[S]>(get<store.value>(u, v));
                   });
    for_each_index(std::make_integer_sequence<int, stage_of<Group, Kind, Index>.keeps.count>{},
                   [&]<int S>(index_constant<S>) {
                     constexpr int kept = stage_of<Group, Kind, Index>.keeps[S];
                     C* const to = here.template keep<Group::plan.stream_of[kept]>();
                     if constexpr (is_integer(Group::value.nodes[kept]))
                       std::bit_cast<pack>(get<kept>(u, v)).store_unaligned(to);
                     else
                       get<kept>(u, v).store_unaligned(to);
                   });
  }

  /// Where something rotates, pack by pack, a few steps at a time, which lie in few enough places for the
  /// first-level cache; carries wait in memory meanwhile. Exact angles are every so many steps from where a
  /// walk begins, however it is cut.
  using rotation = pack_rotation<Group, Kind, Index, C>;
  static constexpr bool rotates = Kind == stage_kind::sweep && rotation::count > 0;
  static void run_rotating(const kernel_frame<C>& given, uniforms& u) {
    constexpr int most_packs = strip_policy::adjacent_packs;
    kernel_frame<C> frame = given;  // the next steps of a pack are those after all other packs'
    frame.ahead = std::max<std::int64_t>(frame.ahead, rotation_steps);
    memory_carries carries(frame);
    using here = position<memory_carries>;
    using placed = placed_position<memory_carries>;
    for (int first = 0; first < frame.packs; first += most_packs) {
      const int packs = std::min(most_packs, frame.packs - first);
      typename rotation::pack_walk walks[most_packs];
      for (int i = 0; i < packs && frame.steps > 1; ++i)
        walks[i].begin(u, here{frame, first + i, 0, carries}, here{frame, first + i, 1, carries});
      for (std::int64_t low = 0; low < frame.steps; low += rotation_steps) {
        const std::int64_t high = std::min(frame.steps, low + rotation_steps);
        for (int i = 0; i < packs; ++i) {
          const auto at = [&](std::int64_t step) { return here{frame, first + i, step, carries}; };
          pack_places places(at(low));
          rotation rotating;
          rotating.start(walks[i], low, high - low > 1, u, placed{at(low), places}, at);
          for (std::int64_t step = low;;) {
            evaluate(rotated_position<placed, rotation>{{at(step), places}, rotating}, u);
            if (++step == high) break;
            places.advance();
            rotating.advance(walks[i], step, high - step > 1, u, at);
          }
        }
      }
    }
  }

  /// Step by step, f(step, places): where pack `first` is, and those beside it.
  template <class Carries, class F>
  static void for_each_step(const kernel_frame<C>& frame, int first, Carries& carries, F&& f) {
    if (frame.steps == 0) return;
    pack_places places(position<Carries>{frame, first, 0, carries});
    for (std::int64_t step = 0;;) {
      f(step, places);
      if (++step == frame.steps) return;
      places.advance();
    }
  }

public:
  static void run(const kernel_frame<C>& frame) {
    uniforms u = here_stage::evaluate_uniforms(frame.parameters);
    if constexpr (rotates) return run_rotating(frame, u);
    if constexpr (Kind != stage_kind::boundary && stage_of<Group, Kind, Index>.has_scans)
      if (frame.packs == 1) {
        register_carries carries(frame);
        for_each_step(frame, 0, carries, [&](std::int64_t step, const pack_places& places) {
          evaluate(placed_position<register_carries>{{frame, 0, step, carries}, places}, u);
        });
        carries.write(frame);
        return;
      }
    memory_carries carries(frame);
    const int together = pack_places::tell_all(frame) ? frame.packs : 1;
    for (int first = 0; first < frame.packs; first += together)
      for_each_step(frame, first, carries, [&](std::int64_t step, const pack_places& places) {
        for (int i = 0; i < together; ++i)
          evaluate(placed_position<memory_carries>{{frame, first + i, step, carries}, places, i * width}, u);
      });
  }
};

}  // namespace scandsl::cpu_detail
