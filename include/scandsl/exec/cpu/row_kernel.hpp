#pragma once
#include <algorithm>
#include <array>
#include <tuple>

#include "scandsl/exec/cpu/kernel.hpp"
#include "scandsl/exec/cpu/staging.hpp"

/// The CPU kernel of a program that only reduces, where the reduced axis lies side by side in memory: a pack
/// has consecutive elements of one row. Each of its lanes reduces every W-th element; then the lanes meet.
///
///     row      | x0 .. x15 | x16 .. x31 | ..          combined pack by pack, then lane by lane:
///     state    | s0 .. s15 |  <- one pack              s = s0 s1 .. s15
///
/// No element is moved to another place for that, and sines and cosines whose positions advance from row to
/// row turn, one angle for each element of a row.
namespace scandsl::cpu_detail {

/// Where one stream lies: the row's elements side by side, or one element a row.
template <class C> struct row_stream {
  C* data = nullptr;
  std::int64_t row = 0;     ///< elements on to the next row
  bool past_cache = false;  ///< what is written there goes past the caches
};
template <int W> struct row_gather {
  gather_place<W> place;  ///< lane[0]: of the row's first element
  std::int64_t row = 0, element = 0;
};

/// What a row kernel is called with. Rows of elements that are not read or written are padded to whole packs.
template <class C, class Instructions = xsimd::default_arch> struct row_frame {
  const row_stream<C>* streams = nullptr;  ///< by stream: loads
  const row_gather<pack_width<C>>* gathers = nullptr;
  const row_stream<C>* stores = nullptr;  ///< by program::stores
  const C* parameters = nullptr;
  C* values = nullptr;  ///< row_kernel::value_rows rows of padded elements, which it keeps between calls
  std::int64_t rows = 0, elements = 0;
  bool begins = true;  ///< else the rows follow those of the call before, a multiple of rotation_steps
};
template <class C> using row_function = void (*)(const row_frame<C>&);

/// The sines and cosines that turn from row to row: the position, an integer, is the same all along a row and
/// advances along another axis; theta varies along the row, and not along that axis.
template <class Group, bool Any> struct turning_pairs {
  static constexpr int reduced = Group::plan.axis;
  static constexpr bool can_turn(int i, int along) {
    const program& p = Group::value;
    const node& n = p.nodes[i];
    if (along == reduced || !is_sine_or_cosine_of_product(n) || !is_integer(p.nodes[n.operand[0]]))
      return false;
    return (rotates_along(p, i, along) || may_turn_along(p, i, along)) &&
           !detail::varies_along(p.nodes[n.operand[0]], reduced) && is_at_hand(n.operand[1]);
  }
  /// Not looked up element by element.
  static constexpr bool is_at_hand(int i) {
    const node& n = Group::value.nodes[i];
    if (n.op == opcode::gather && detail::varies_along(n, reduced)) return false;
    for (const node_id o : n.operand)
      if (o != no_node && !is_at_hand(o)) return false;
    return !is_scan_value(n);
  }
  /// The axis whose positions are the rows' in order; -1: any will do.
  static constexpr int axis =
      Any ? axis_of_most(Group::value, [](const program& p, int i,
                                          int a) { return can_turn(i, a) ? likelihood_to_turn(p, i, a) : 0; })
          : -1;
  static constexpr int sweep_of(int i) {
    for (int s = 0; s < Group::plan.sweeps; ++s)
      if (Group::plan.sweep[s].from[i] == source::computed) return s;
    return -1;
  }
  static constexpr bool same_operands(int i, int j) {
    const node &one = Group::value.nodes[i], &other = Group::value.nodes[j];
    return one.operand[0] == other.operand[0] && one.operand[1] == other.operand[1];
  }
  static constexpr bool turns(int i) { return axis >= 0 && can_turn(i, axis) && sweep_of(i) >= 0; }
  static constexpr node_list list = [] {
    node_list nodes;
    for (int i = 0; i < Group::value.nodes.count; ++i) {
      bool found = !turns(i);
      for (const int each : nodes) found = found || same_operands(i, each);
      if (!found) nodes.push_back(i);
    }
    return nodes;
  }();
  static constexpr int pair_of(int i) {
    if (!turns(i)) return -1;
    for (int k = 0; k < list.count; ++k)
      if (same_operands(i, list[k])) return k;
    return -1;
  }
};

/// `Group` has a program `value`, which is_reduction(), and its schedule `plan`.
template <class Group, class C> class row_kernel {
  using pack = xsimd::batch<C>;
  using math = arithmetic<pack>;
  using integer = typename math::integer;
  static constexpr int width = pack_width<C>, sweeps = Group::plan.sweeps;
  static constexpr int streams = std::max(1, Group::plan.streams);
  using turning = turning_pairs<Group, !std::is_same_v<C, double>>;
  static constexpr int pairs = turning::list.count;

  template <stage_kind Kind, class Sequence> struct uniforms_of;
  template <stage_kind Kind, int... I> struct uniforms_of<Kind, std::integer_sequence<int, I...>> {
    std::tuple<typename stage<Group, Kind, I>::template uniforms<C>...> of;
    explicit uniforms_of(const C* parameters) : of(stage<Group, Kind, I>::evaluate_uniforms(parameters)...) {}
  };

  /// A row, as its stages find and leave it.
  struct row_state {
    const row_frame<C>& frame;
    std::int64_t number = 0;
    pack kept[static_cast<std::size_t>(streams)];
    pack carry[static_cast<std::size_t>(Group::value.scans.count)][max_components];
    pack seed[static_cast<std::size_t>(Group::value.scans.count)][max_components];

    C* angle(int pair, int which, std::int64_t element) const {
      const std::int64_t padded = (frame.elements + width - 1) / width * width;
      return frame.values + (pair * 4 + which) * padded + element;
    }
    C* share(int scan, std::int64_t element) const { return angle(pairs, number_of_share(scan), element); }
  };
  enum { cosine, sine, step_cosine, step_sine };

  /// Log-sums, and what is summed with them, are reduced in two passes: the maximum; then sums of exp(x - m),
  /// which wait for no exponential before them.
  static constexpr bool sums_below_maximum(int scan) {
    return Group::value.scans[scan].log_sum || Group::value.scans[scan].joins_log_sum;
  }
  template <int Sweep>
  static constexpr bool has_maxima = [] {
    bool any = false;
    for (int s = 0; s < Group::value.scans.count; ++s)
      any = any || (Group::plan.sweep_of_scan[s] == Sweep && sums_below_maximum(s));
    return any;
  }();

  /// The log-sum whose element less its maximum node i is the exponential of, at the same place of the row;
  /// -1: none. It has been computed for the sum.
  static constexpr int scan_of_share(int i) {
    const program& p = Group::value;
    if (!is_apply<primitive::exp_op>(p.nodes[i])) return -1;
    const node& gap = p.nodes[p.nodes[i].operand[0]];
    if (!is_apply<primitive::subtract_op>(gap)) return -1;
    const node& most = p.nodes[gap.operand[1]];
    const bool is_share = most.op == opcode::last && most.component == 0 && sums_below_maximum(most.target) &&
                          p.scans[most.target].initial[0] == no_node &&
                          p.scans[most.target].element[0] == gap.operand[0];
    return is_share ? most.target : -1;
  }
  static constexpr bool keeps_shares(int scan) {
    for (int i = 0; i < Group::value.nodes.count; ++i)
      if (scan_of_share(i) == scan) return true;
    return false;
  }
  static constexpr int number_of_share(int scan) {
    int number = 0;
    for (int s = 0; s < scan; ++s) number += keeps_shares(s) ? 1 : 0;
    return number;
  }

  /// What stage Index reads at one pack of a row, or of the row as a whole.
  template <stage_kind Kind, int Index> struct position {
    static constexpr bool takes_branches = true, leaves_out = Kind == stage_kind::sweep;
    using here = stage<Group, Kind, Index>;
    row_state& row;
    std::int64_t at;

    template <int I>
    static constexpr int remembered_at =
        Kind == stage_kind::sweep ? std::max(turning::pair_of(I), scan_of_share(I)) : -1;
    template <int I> pack remembered() const {
      if constexpr (scan_of_share(I) >= 0) return pack::load_unaligned(row.share(scan_of_share(I), at));
      constexpr int which = is_apply<primitive::cos_of_product_op>(Group::value.nodes[I]) ? cosine : sine;
      return pack::load_unaligned(row.angle(turning::pair_of(I), which, at));
    }
    template <int I> value_of_node<Group, I, pack> read(index_constant<I>) const {
      constexpr int stream = Group::plan.stream_of[I];
      pack value;
      if constexpr (here::template from<I> == source::kept) {
        value = row.kept[stream];
      } else {
        const row_stream<C>& from = row.frame.streams[stream];
        C* const first = from.data + row.number * from.row;
        if constexpr (detail::varies_along(Group::value.nodes[I], Group::plan.axis)) {
          if constexpr (Index == first_sweep_that_reads(I))
            __builtin_prefetch(first + at + rows_ahead * from.row);
          value = pack::load_unaligned(first + at);
        } else {
          value = pack(*first);
        }
      }
      if constexpr (is_integer(Group::value.nodes[I]))
        return std::bit_cast<integer>(value);
      else
        return value;
    }
    template <int I, class... Position>
    value_of_node<Group, I, pack> gather(index_constant<I>, const Position&... positions) const {
      using result = value_of_node<Group, I, pack>;
      using element = typename result::value_type;
      constexpr tensor_decl tensor = Group::value.tensors[Group::value.nodes[I].target];
      typename arithmetic<C>::integer computed[sizeof...(Position)][static_cast<std::size_t>(width)];
      int from = 0;
      (positions.store_unaligned(computed[from++]), ...);
      const row_gather<width>& given = row.frame.gathers[Group::plan.stream_of[I]];
      gather_place<width> place = given.place;
      for (int l = 0; l < width; ++l)
        place.lane[l] = given.place.lane[0] + row.number * given.row +
                        std::min(at + l, row.frame.elements - 1) * given.element;
      element gathered[static_cast<std::size_t>(width)];
      gather_elements<sizeof...(Position)>(place, 0, computed, static_cast<element>(tensor.fallback),
                                           gathered);
      return result::load_unaligned(gathered);
    }
    template <int S, int K> pack last(index_constant<S>, index_constant<K>) const { return row.carry[S][K]; }
    template <int S, class Element, class Before, class After>
    void advance(index_constant<S>, const Element& element, Before&&, After&&) const {
      auto state = carry_of<S>(row);
      if constexpr (sums_below_maximum(S)) {
        const pack x = std::get<0>(element), m = std::get<0>(state), exponential = math::exp(x - m),
                   share = math::select(x == m, pack(C(1)), exponential);  // both may be infinite
        if constexpr (keeps_shares(S)) exponential.store_unaligned(row.share(S, at));
        for_components<S>([&]<int K>(index_constant<K>) {
          if constexpr (K > 0)
            std::get<K>(state) = math::fma(share, std::get<K>(element), std::get<K>(state));
        });
      } else {
        combiner<Group, S, here::template live_components<S>>::apply(state, element);
      }
      set_existing<S>(state);
    }
    /// Of the row's last pack some lanes lie behind the row: these stay as they are.
    template <int S, class State> void set_existing(State& state) const {
      if (at + width > row.frame.elements) {
        const auto exists = math::truth_of(
            lane_numbers() < integer(static_cast<typename integer::value_type>(row.frame.elements - at)));
        for_components<S>([&]<int K>(index_constant<K>) {
          std::get<K>(state) = math::select(exists, std::get<K>(state), row.carry[S][K]);
        });
      }
      for_components<S>([&]<int K>(index_constant<K>) { row.carry[S][K] = std::get<K>(state); });
    }
  };

  /// Of the same the maxima of log-sums alone.
  template <int Index> struct maxima_position : position<stage_kind::sweep, Index> {
    static constexpr bool wants_element(int s, int k) { return sums_below_maximum(s) && k == 0; }
    template <int S, class Element, class Before, class After>
    void advance(index_constant<S>, const Element& element, Before&&, After&&) const {
      if constexpr (sums_below_maximum(S)) {
        auto state = carry_of<S>(this->row);
        combiner<Group, S, 1U>::apply(state, element);
        this->template set_existing<S>(state);
      }
    }
  };

  static constexpr int first_sweep_that_reads(int i) {
    int s = 0;
    while (s < sweeps && Group::plan.sweep[s].from[i] != source::memory) ++s;
    return s;
  }
  /// Rows from what is computed to what the cache is asked for.
  static constexpr std::int64_t rows_ahead = 2;

  static integer lane_numbers() {
    typename integer::value_type numbers[static_cast<std::size_t>(width)];
    for (int l = 0; l < width; ++l) numbers[l] = static_cast<typename integer::value_type>(l);
    return integer::load_unaligned(numbers);
  }
  template <int S, class F> static void for_components(F&& f) {
    for_each_index(std::make_integer_sequence<int, Group::value.scans[S].components>{},
                   [&]<int K>(index_constant<K> k) {
                     if constexpr (Group::plan.live_component[S][K]) f(k);
                   });
  }
  template <int Sweep, class F> static void for_scans(F&& f) {
    for_each_index(std::make_integer_sequence<int, Group::value.scans.count>{},
                   [&]<int S>(index_constant<S> s) {
                     if constexpr (Group::plan.sweep_of_scan[S] == Sweep) f(s);
                   });
  }
  template <int S> static auto carry_of(const row_state& row) {
    std::array<pack, static_cast<std::size_t>(Group::value.scans[S].components)> state{};
    for_components<S>([&]<int K>(index_constant<K>) { std::get<K>(state) = row.carry[S][K]; });
    return state;
  }

  /// Lane (First + l) % W of x in lane l, or where Step is 0 lane First in all.
  template <int First, int Step, int... I> static pack moved(pack x, std::integer_sequence<int, I...>) {
    using word = detail::staging::word<C>;
    using words = detail::vec<word, width>;
    const words bits = std::bit_cast<words>(x);
    return std::bit_cast<pack>(detail::staging::pick<word, width, (First + Step * I) % width...>(bits, bits));
  }
  template <int S>
  static constexpr unsigned live = stage<Group, stage_kind::sweep, 0>::template live_components<S>;
  /// Combines the lanes' maxima.
  template <int S> static void join_maxima(row_state& row) {
    row.carry[S][0] = joined<combiner<Group, S, 1U>>(carry_of<S>(row))[0];
  }
  /// Combines the lanes' states of scan S, and the seed in front of them.
  template <int S> static void join(row_state& row) {
    using combine = combiner<Group, S, live<S>>;
    auto state = carry_of<S>(row);
    if constexpr (sums_below_maximum(S))
      state = joined<sum_below_maximum>(state);
    else
      state = joined<combine>(state);
    if constexpr (is_seeded<S>) {
      auto first = state;
      for_components<S>([&]<int K>(index_constant<K>) { std::get<K>(first) = row.seed[S][K]; });
      combine::apply(first, state);
      state = first;
    }
    for_components<S>([&]<int K>(index_constant<K>) { row.carry[S][K] = std::get<K>(state); });
  }
  struct sum_below_maximum {
    template <class State> static void apply(State& state, const State& other) {
      for (std::size_t k = 1; k < state.size(); ++k) state[k] = state[k] + other[k];
    }
  };
  /// The lanes' states together, in all lanes.
  template <class Combine, std::size_t Components>
  static std::array<pack, Components> joined(std::array<pack, Components> state) {
    constexpr std::make_integer_sequence<int, width> lanes{};
    for_each_index(std::make_integer_sequence<int, std::bit_width(static_cast<unsigned>(width)) - 1>{},
                   [&]<int N>(index_constant<N>) {
                     auto other = state;
                     for (pack& component : other) component = moved<(width >> (N + 1)), 1>(component, lanes);
                     Combine::apply(state, other);
                   });
    for (pack& component : state) component = moved<0, 0>(component, lanes);  // to the last bit the same
    return state;
  }
  template <int S>
  static constexpr bool is_seeded = [] {
    bool any = false;
    for (int k = 0; k < Group::value.scans[S].components; ++k)
      any = any || Group::value.scans[S].initial[k] != no_node;
    return any;
  }();

  template <int B, class Uniforms> static void boundary(row_state& row, Uniforms& u) {
    using here = stage<Group, stage_kind::boundary, B>;
    constexpr stage_schedule plan = stage_of<Group, stage_kind::boundary, B>;
    typename here::template variables<pack> v;
    here::evaluate(u, v, position<stage_kind::boundary, B>{row, 0});
    for_scans<B>([&]<int S>(index_constant<S>) {
      for_components<S>([&]<int K>(index_constant<K>) {
        constexpr node_id initial = Group::value.scans[S].initial[K];
        row.carry[S][K] = row.seed[S][K] = math::constant(Group::value.scans[S].identity[K]);
        if constexpr (initial != no_node) row.seed[S][K] = here::template get<initial>(u, v);
      });
    });
    for_each_index(std::make_integer_sequence<int, plan.stores.count>{}, [&]<int N>(index_constant<N>) {
      constexpr int store = stage_of<Group, stage_kind::boundary, B>.stores[N];
      const row_stream<C>& to = row.frame.stores[store];
      to.data[row.number * to.row] = pack(here::template get<Group::value.stores[store].value>(u, v)).get(0);
    });
    for_each_index(std::make_integer_sequence<int, plan.keeps.count>{}, [&]<int N>(index_constant<N>) {
      constexpr int kept = stage_of<Group, stage_kind::boundary, B>.keeps[N];
      row.kept[Group::plan.stream_of[kept]] = std::bit_cast<pack>(here::template get<kept>(u, v));
    });
  }
  template <int S, class Uniforms> static void sweep(row_state& row, Uniforms& u) {
    using here = stage<Group, stage_kind::sweep, S>;
    static_assert(stage_of<Group, stage_kind::sweep, S>.keeps.count == 0,
                  "nothing but last values is wanted");
    if constexpr (has_maxima<S>) {
      for (std::int64_t at = 0; at < row.frame.elements; at += width) {
        typename here::template variables<pack> v;
        here::evaluate(u, v, maxima_position<S>{{row, at}});
      }
      for_scans<S>([&]<int Scan>(index_constant<Scan>) {
        if constexpr (sums_below_maximum(Scan)) join_maxima<Scan>(row);
      });
    }
    for (std::int64_t at = 0; at < row.frame.elements; at += width) {
      typename here::template variables<pack> v;
      here::evaluate(u, v, position<stage_kind::sweep, S>{row, at});
      for_each_index(std::make_integer_sequence<int, stage_of<Group, stage_kind::sweep, S>.stores.count>{},
                     [&]<int N>(index_constant<N>) {
                       constexpr int store = stage_of<Group, stage_kind::sweep, S>.stores[N];
                       const row_stream<C>& to = row.frame.stores[store];
                       C* const first = to.data + row.number * to.row + at;
                       const pack value(here::template get<Group::value.stores[store].value>(u, v));
                       if (store_past_cache(to.past_cache, first, value)) return;
                       __builtin_prefetch(first + rows_ahead * to.row, 1);
                       value.store_unaligned(first);
                     });
    }
    for_scans<S>([&]<int Scan>(index_constant<Scan>) { join<Scan>(row); });
  }

  // ---- what turns

  template <class F> static void for_pairs(F&& f) {
    for_each_index(std::make_integer_sequence<int, pairs>{},
                   [&]<int K>(index_constant<K> k) { f(k, index_constant<turning::list[K]>{}); });
  }
  /// Cosine and sine of `whole` times theta of node I, at every element of the row.
  template <int K, int I, class Uniforms>
  static void set_angles(row_state& row, Uniforms& u, integer whole, int to_cosine, int to_sine) {
    constexpr int s = turning::sweep_of(I);
    for (std::int64_t at = 0; at < row.frame.elements; at += width) {
      const pack theta =
          value_alone<stage<Group, stage_kind::sweep, s>, Group, Group::value.nodes[I].operand[1], pack>(
              std::get<s>(u.of), position<stage_kind::sweep, s>{row, at});
      const pack half_turns = math::half_turns_of_product(whole, theta);
      math::cospi(half_turns).store_unaligned(row.angle(K, to_cosine, at));
      math::sinpi(half_turns).store_unaligned(row.angle(K, to_sine, at));
    }
  }
  template <int K> static void turn(row_state& row) {
    for (std::int64_t at = 0; at < row.frame.elements; at += width) {
      C *const to_cosine = row.angle(K, cosine, at), *const to_sine = row.angle(K, sine, at);
      const pack c = pack::load_unaligned(to_cosine), s = pack::load_unaligned(to_sine),
                 by_c = pack::load_unaligned(row.angle(K, step_cosine, at)),
                 by_s = pack::load_unaligned(row.angle(K, step_sine, at));
      math::fma(-s, by_s, c * by_c).store_unaligned(to_cosine);
      math::fma(c, by_s, s * by_c).store_unaligned(to_sine);
    }
  }
  /// Brings the angles to the row, whose first boundary has been evaluated.
  template <class Uniforms>
  static void turn_all(row_state& row, Uniforms& u, integer (&last)[std::max(1, pairs)]) {
    for_pairs([&]<int K, int I>(index_constant<K>, index_constant<I>) {
      constexpr int s = turning::sweep_of(I);
      const integer here =
          value_alone<stage<Group, stage_kind::sweep, s>, Group, Group::value.nodes[I].operand[0], pack>(
              std::get<s>(u.of), position<stage_kind::sweep, s>{row, 0});
      if (row.number == 0 && row.frame.begins) set_angles<K, I>(row, u, integer(1), step_cosine, step_sine);
      const integer step = here - last[K];
      if (row.number % rotation_steps == 0 || xsimd::any((step & integer(-2)) != integer(0)) ||
          xsimd::any(here < last[K]))
        set_angles<K, I>(row, u, here, cosine, sine);
      else if (xsimd::all(step == integer(1)))
        turn<K>(row);
      last[K] = here;
    });
  }

public:
  static constexpr int axis = turning::axis,
                       value_rows = 4 * pairs + number_of_share(Group::value.scans.count);
  static void run(const row_frame<C>& frame) {
    uniforms_of<stage_kind::boundary, std::make_integer_sequence<int, sweeps + 1>> at_boundary(
        frame.parameters);
    uniforms_of<stage_kind::sweep, std::make_integer_sequence<int, sweeps>> in_sweep(frame.parameters);
    row_state row{frame, 0, {}, {}, {}};
    [[maybe_unused]] integer last[std::max(1, pairs)] = {};
    const std::int64_t rows = frame.rows;
    for (std::int64_t number = 0; number < rows; ++number) {
      row.number = number;
      boundary<0>(row, std::get<0>(at_boundary.of));
      if constexpr (pairs > 0) turn_all(row, in_sweep, last);
      for_each_index(std::make_integer_sequence<int, sweeps>{}, [&]<int S>(index_constant<S>) {
        sweep<S>(row, std::get<S>(in_sweep.of));
        boundary<S + 1>(row, std::get<S + 1>(at_boundary.of));
      });
    }
  }
};

}  // namespace scandsl::cpu_detail
