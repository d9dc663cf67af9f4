#pragma once
#include <cstdint>

#include "scandsl/exec/cpu/simd.hpp"
#include "scandsl/exec/evaluate.hpp"
#include "scandsl/pass/schedule.hpp"

/// The CPU kernels of one program: boundaries, sweeps over some steps of some packs of lanes, and combine on
/// single states. They see memory as streams of packs; which part of which tensor that is, and whether it was
/// copied into a tile first, is the driver's business.
namespace scandsl::cpu_detail {

template <class C> inline constexpr int pack_width = static_cast<int>(xsimd::batch<C>::size);

/// Where one pack of one stream lies: its W lanes at `data`, the next step `step` elements on.
template <class C> struct pack_stream {
  C* data = nullptr;
  std::int64_t step = 0;
};

template <class C> struct kernel_frame {
  const pack_stream<C>* const* streams = nullptr;  ///< [stream][pack]: loads, kept values, scratch
  const pack_stream<C>* const* stores = nullptr;   ///< [index into program::stores][pack]
  C* const* carries = nullptr;                     ///< [scan * max_components + component]: packs * W states
  const C* parameters = nullptr;                   ///< by program::parameters
  int packs = 0;
  std::int64_t steps = 0;
};

template <class C> using kernel = void (*)(const kernel_frame<C>&);

enum class stage_kind { boundary, sweep, aggregate };

/// `Group` has a program `value` and its schedule `plan`.
template <class Group, stage_kind Kind, int Index, class C> class stage_kernel {
  using pack = xsimd::batch<C>;
  static constexpr int width = pack_width<C>;
  static constexpr const program& p = Group::value;
  static constexpr const schedule& plan = Group::plan;
  static constexpr const stage_schedule& at = Kind == stage_kind::boundary ? plan.boundary[Index]
                                              : Kind == stage_kind::sweep  ? plan.sweep[Index]
                                                                           : plan.aggregate[Index];

  struct uniform_nodes {
    static constexpr node_list list = [] {
      node_list nodes;
      for (int i = 0; i < p.nodes.count; ++i)
        if (at.from[i] == source::uniform) nodes.push_back(i);
      return nodes;
    }();
  };
  struct variable_nodes {
    static constexpr node_list list = [] {
      node_list nodes;
      for (int i = 0; i < p.nodes.count; ++i)
        if (at.from[i] != source::uniform && at.from[i] != source::unused) nodes.push_back(i);
      return nodes;
    }();
  };
  struct instructions {
    static constexpr node_list list = [] {
      node_list all;
      for (const std::int16_t each : at.instructions) all.push_back(each);
      return all;
    }();
  };
  using uniforms = node_slots<Group, C, sequence_of<uniform_nodes>>;
  using variables = node_slots<Group, pack, sequence_of<variable_nodes>>;

  /// The pack of lanes and the step at which the nodes are evaluated.
  struct position {
    const kernel_frame<C>& frame;
    int lanes;
    std::int64_t step;

    C* address(const pack_stream<C>* stream) const { return stream[lanes].data + step * stream[lanes].step; }
    C* carry(int scan, int component) const {
      return frame.carries[scan * max_components + component] + lanes * width;
    }
  };

  template <int I> static constexpr bool is_uniform = I >= 0 && at.from[I < 0 ? 0 : I] == source::uniform;

  template <int I> static value_of_node<Group, I, pack> get(uniforms& u, variables& v) {
    if constexpr (is_uniform<I>)
      return value_of_node<Group, I, pack>(slot<I>(u));
    else
      return slot<I>(v);
  }

  /// Whether node I is wanted at all: see schedule::guards.
  template <int I> static bool wanted(uniforms& u) {
    constexpr guard g = plan.guards[I];
    if constexpr (g.condition == no_node)
      return true;
    else
      return slot<g.condition>(u) == g.when;
  }

  template <int I> static void compute(const position& here, uniforms& u, variables& v) {
    constexpr node each = p.nodes[I];
    if constexpr (at.from[I] != source::computed)
      slot<I>(v) = pack::load_unaligned(here.address(here.frame.streams[plan.stream_of[I]]));
    else if constexpr (each.op == opcode::last)
      slot<I>(v) = pack::load_unaligned(here.carry(each.target, each.component));
    else if constexpr (is_apply<primitive::select_op>(each) && is_uniform<each.operand[0]>)
      slot<I>(v) = slot<each.operand[0]>(u) ? get<each.operand[1]>(u, v) : get<each.operand[2]>(u, v);
    else if constexpr (each.op == opcode::apply)
      slot<I>(v) = apply_node<Group, I>([&]<int J>(index_constant<J>) { return get<J>(u, v); });
  }

  template <int Scan>
  static constexpr unsigned live_components = [] {
    unsigned live = 0;
    for (int k = 0; k < p.scans[Scan].components; ++k)
      if (Kind == stage_kind::aggregate || plan.live_component[Scan][k]) live |= 1U << k;
    return live;
  }();

  /// One step of a scan, carry = combine(carry, element), which also gives its carry and scan nodes their
  /// values.
  template <int Scan> static void advance(const position& here, uniforms& u, variables& v) {
    constexpr scan_decl scan = p.scans[Scan];
    constexpr unsigned live = live_components<Scan>;
    constexpr std::make_integer_sequence<int, scan.components> components{};
    using combine = combiner<Group, Scan, live>;
    typename combine::template states<pack> state{}, element{};
    for_each_index(components, [&]<int K>(index_constant<K>) {
      if constexpr (live >> K & 1U) std::get<K>(state) = pack::load_unaligned(here.carry(Scan, K));
      if constexpr (at.from[scan.element[K]] != source::unused)
        std::get<K>(element) = get<scan.element[K]>(u, v);
    });
    assign<Scan, opcode::carry>(state, v);
    combine::apply(state, element);
    assign<Scan, opcode::scan>(state, v);
    for_each_index(components, [&]<int K>(index_constant<K>) {
      if constexpr (live >> K & 1U) std::get<K>(state).store_unaligned(here.carry(Scan, K));
    });
  }
  template <int Scan, opcode Which, class States> static void assign(const States& state, variables& v) {
    for_each_index(sequence_of<variable_nodes>{}, [&]<int I>(index_constant<I>) {
      constexpr node each = p.nodes[I];
      if constexpr (each.op == Which && each.target == Scan && at.from[I] == source::computed)
        slot<I>(v) = std::get<each.component>(state);
    });
  }

  /// The carries at a start: the initial state, or the identity.
  template <int Scan> static void seed(const position& here, uniforms& u, variables& v) {
    constexpr scan_decl scan = p.scans[Scan];
    for_each_index(std::make_integer_sequence<int, scan.components>{}, [&]<int K>(index_constant<K>) {
      if constexpr (scan.initial[K] == no_node)
        arithmetic<pack>::constant(scan.identity[K]).store_unaligned(here.carry(Scan, K));
      else
        get<scan.initial[K]>(u, v).store_unaligned(here.carry(Scan, K));
    });
  }

  static void evaluate(const position& here, uniforms& u) {
    variables v;
    for_each_index(sequence_of<instructions>{}, [&]<int I>(index_constant<I>) {
      if constexpr (I < 0) {
        advance<-1 - I>(here, u, v);
      } else {
        if (wanted<I>(u)) compute<I>(here, u, v);
      }
    });
    if constexpr (Kind == stage_kind::boundary)
      for_each_index(std::make_integer_sequence<int, p.scans.count>{}, [&]<int S>(index_constant<S>) {
        if constexpr (plan.sweep_of_scan[S] == Index) seed<S>(here, u, v);
      });
    for_each_index(std::make_integer_sequence<int, at.stores.count>{}, [&]<int S>(index_constant<S>) {
      constexpr store_decl store = p.stores[at.stores[S]];
      get<store.value>(u, v).store_unaligned(here.address(here.frame.stores[at.stores[S]]));
    });
    for_each_index(std::make_integer_sequence<int, at.keeps.count>{}, [&]<int S>(index_constant<S>) {
      constexpr int kept = at.keeps[S];
      get<kept>(u, v).store_unaligned(here.address(here.frame.streams[plan.stream_of[kept]]));
    });
  }

public:
  static void run(const kernel_frame<C>& frame) {
    uniforms u;
    for_each_index(sequence_of<uniform_nodes>{},
                   [&]<int I>(index_constant<I>) { slot<I>(u) = uniform_value<Group, I>(frame.parameters); });
    for (std::int64_t step = 0; step < frame.steps; ++step)
      for (int lanes = 0; lanes < frame.packs; ++lanes) evaluate({frame, lanes, step}, u);
  }
};

}  // namespace scandsl::cpu_detail
