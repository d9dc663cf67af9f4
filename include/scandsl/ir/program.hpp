#pragma once
#include <bit>
#include <cstdint>

#include "scandsl/core/name.hpp"
#include "scandsl/expr/primitives.hpp"

/// A program: a small structural value, made from expressions by op<"name">(...), rewritten by passes, run by
/// executors. Plain data throughout, so that the same functions work in constant expressions and at run time.
namespace scandsl {

/// A fixed-capacity list; public members, so that a program may be a template argument.
template <class T, int Capacity> struct fixed_list {
  T items[static_cast<std::size_t>(Capacity)]{};
  int count = 0;

  constexpr bool operator==(const fixed_list&) const = default;
  constexpr T& operator[](int i) { return items[i]; }
  constexpr const T& operator[](int i) const { return items[i]; }
  constexpr T* begin() { return items; }
  constexpr T* end() { return items + count; }
  constexpr const T* begin() const { return items; }
  constexpr const T* end() const { return items + count; }
  constexpr int push_back(const T& item) {
    if (count == Capacity) throw "scandsl: the program is too large (see the capacities in ir/program.hpp)";
    items[count] = item;
    return count++;
  }
};

/// Axes of a program as bits: bit i is program::axes[i].
using axis_mask = std::uint32_t;
constexpr axis_mask axis_bit(int axis) { return axis_mask{1} << axis; }

enum class opcode : std::uint8_t {
  constant,   ///< value
  parameter,  ///< program::parameters[target]
  load,       ///< program::tensors[target] at the current position
  apply,      ///< primitive number `function` of operands
  left,       ///< in a scan's combine: component `target` of the left state
  right,      ///< in a scan's combine: component `target` of the right state
  carry,      ///< component `component` of scan `target` before the current position
  scan,       ///< the same after the current position
  last,       ///< the same after the last position in scan order
  sum,        ///< of the operand along the axes that are the bits of `target`; see pass/expand_sums.hpp
  index,      ///< the position along axis `target`
  extent,     ///< the number of positions along axis `target`
  gather,  ///< program::tensors[target] where the operands say; `function` has the dimensions they say it of
};

using node_id = std::int16_t;
inline constexpr node_id no_node = -1;

struct node {
  opcode op = opcode::constant;
  std::uint8_t function = 0;  ///< of gather: bit i: an operand is the position in dimension i
  node_id operand[3] = {no_node, no_node, no_node};
  std::int16_t target = 0;
  std::int8_t component = 0;
  primitive::value_kind kind = primitive::value_kind::real;
  axis_mask axes = 0;  ///< the axes along which the value varies
  double value = 0.0;

  /// Bitwise on the constant, so that 0 and -0 differ and NaN equals itself.
  constexpr bool operator==(const node& other) const {
    return op == other.op && kind == other.kind && function == other.function &&
           operand[0] == other.operand[0] && operand[1] == other.operand[1] &&
           operand[2] == other.operand[2] && target == other.target && component == other.component &&
           axes == other.axes &&
           std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(other.value);
  }
};

/// The axes along which an opcode::sum adds. The operand need not vary along them.
constexpr axis_mask summed_axes(const node& n) {
  return n.op == opcode::sum ? static_cast<std::uint16_t>(n.target) : axis_mask{0};
}

template <class P> constexpr bool is_apply(const node& n) {
  return n.op == opcode::apply && n.function == primitive::index<P>;
}
/// Whether a node is an exponential, a sine or the like.
constexpr bool is_transcendental(const node& n) {
  return n.op == opcode::apply && n.function >= primitive::index<primitive::exp_op> &&
         n.function <= primitive::index<primitive::softplus_op>;
}

inline constexpr int max_axes = 16, max_tensors = 24, max_parameters = 12, max_nodes = 384, max_scans = 24,
                     max_components = 12, max_stores = 16, max_tensor_rank = 8, max_table = 16;

static_assert(max_axes <= 16);  // summed_axes

/// The axes that a node names, beside those that it varies along: they must exist wherever the node does.
constexpr axis_mask named_axes(const node& n) {
  if (n.op == opcode::extent) return axis_bit(n.target);
  return summed_axes(n);
}

constexpr bool is_scan_value(const node& n) {
  return n.op == opcode::carry || n.op == opcode::scan || n.op == opcode::last;
}
constexpr bool is_truth(const node& n) { return n.kind == primitive::value_kind::truth; }
constexpr bool is_integer(const node& n) { return n.kind == primitive::value_kind::integer; }

/// What memory a name stands for. A table is a short list of integers, given by value at every run. Scratch
/// and positions are in kernel programs only: memory between kernels, and no memory at all, but what would be
/// there if element i of an axis were i (pass/address.hpp).
enum class tensor_role : std::uint8_t { input, output, offsets, table, scratch, positions };

struct tensor_decl {
  name id;
  fixed_list<std::int16_t, max_tensor_rank> axes;  ///< indices into program::axes, in the view's order
  tensor_role role = tensor_role::input;
  bool optional = false;
  double fallback = 0.0;  ///< the value everywhere of an optional input that is not bound
  primitive::value_kind kind = primitive::value_kind::real;
  /// In kernel programs, where a tensor is read in one way only: by dimension, how. 0: at the current
  /// position of its axis; computed: where a gather's operand says; k + 1: at position k.
  std::int16_t place[max_tensor_rank] = {};
  static constexpr std::int16_t computed = -1;

  constexpr bool operator==(const tensor_decl&) const = default;
  constexpr bool walks(int dimension) const { return place[dimension] == 0; }
  constexpr bool walks_all() const {
    for (int i = 0; i < axes.count; ++i)
      if (!walks(i)) return false;
    return true;
  }
  constexpr axis_mask mask() const {
    axis_mask m = 0;
    for (int i = 0; i < axes.count; ++i)
      if (walks(i)) m |= axis_bit(axes[i]);
    return m;
  }
};

constexpr bool holds_integers(const tensor_decl& t) {
  return t.role == tensor_role::offsets || t.kind == primitive::value_kind::integer;
}

struct parameter_decl {
  name id;
  bool optional = false;
  double fallback = 0.0;
  primitive::value_kind kind = primitive::value_kind::real;
  bool is_extent = false;  ///< in kernel programs: the extent of the axis of that name
  constexpr bool operator==(const parameter_decl&) const = default;
};

struct store_decl {
  std::int16_t tensor = 0;
  node_id value = no_node;
  constexpr bool operator==(const store_decl&) const = default;
};

/// One scan: its elements are lifted already, `combined` are nodes over opcode::left and opcode::right. The
/// gradient pass differentiates `combined` at (carry, element); executors evaluate it there, or on two states
/// in parallel.
struct scan_decl {
  std::int16_t axis = 0;
  bool reversed = false;                ///< from the last position to the first
  std::int16_t reverse_parameter = -1;  ///< flips the direction when that parameter is not zero
  node_id every = no_node;              ///< restart interval: a node without axes; absent or < 1: none
  std::int16_t offsets = -1;            ///< tensor of packed-sequence boundaries
  std::int16_t segment_axis = -1;       ///< axis that numbers the packed sequences
  std::int16_t components = 0;
  bool log_sum = false;         ///< the state is (m, s), worth m + log(s) for any m: see pass/log_sum.hpp
  bool joins_log_sum = false;   ///< the state is (m, s) and sums of exp(x - m) times something
  std::int16_t scaled_by = -1;  ///< a log-sum in units of whose s the states are: see pass/telescope.hpp
  double identity[max_components] = {};
  node_id initial[max_components] = {};  ///< no_node: the identity
  node_id element[max_components] = {};
  node_id combined[max_components] = {};
  axis_mask axes = 0;  ///< of the scan's values, its own axis included

  constexpr bool operator==(const scan_decl& other) const {
    if (axis != other.axis || reversed != other.reversed || reverse_parameter != other.reverse_parameter ||
        every != other.every || offsets != other.offsets || segment_axis != other.segment_axis ||
        components != other.components || log_sum != other.log_sum || joins_log_sum != other.joins_log_sum ||
        scaled_by != other.scaled_by || axes != other.axes)
      return false;
    for (int k = 0; k < components; ++k)
      if (std::bit_cast<std::uint64_t>(identity[k]) != std::bit_cast<std::uint64_t>(other.identity[k]) ||
          initial[k] != other.initial[k] || element[k] != other.element[k] ||
          combined[k] != other.combined[k])
        return false;
    return true;
  }
  /// Scans in the same direction over the same axis that restart at the same places.
  constexpr bool same_walk(const scan_decl& other) const {
    return axis == other.axis && every == other.every && offsets == other.offsets;
  }
  constexpr bool same_direction(const scan_decl& other) const {
    return reversed == other.reversed && reverse_parameter == other.reverse_parameter;
  }
};

struct program {
  name id;
  fixed_list<name, max_axes> axes;
  std::int16_t parts[max_axes] = {};  ///< by axis: how many expressions are stacked along it; 0: none
  fixed_list<tensor_decl, max_tensors> tensors;
  fixed_list<parameter_decl, max_parameters> parameters;
  fixed_list<node, max_nodes>
      nodes;  ///< operands come before users; a scan's elements before its carry and scan
  fixed_list<scan_decl, max_scans> scans;
  fixed_list<store_decl, max_stores> stores;
  bool only_rows = false;      ///< along_rows() said so
  name contiguous_axis;        ///< contiguous_along() said so; empty: it did not
  bool is_gradient = false;    ///< gradient() made it
  bool reduces_apart = false;  ///< reductions_apart() said so

  constexpr bool operator==(const program&) const = default;

  constexpr int find_axis(const name& n) const {
    for (int i = 0; i < axes.count; ++i)
      if (axes[i] == n) return i;
    return -1;
  }
  constexpr int find_tensor(const name& n) const {
    for (int i = 0; i < tensors.count; ++i)
      if (tensors[i].id == n) return i;
    return -1;
  }
  constexpr int find_parameter(const name& n) const {
    for (int i = 0; i < parameters.count; ++i)
      if (parameters[i].id == n) return i;
    return -1;
  }
};

/// The program, of which nearly every call has the scanned axis contiguous. For the GPU no kernels are
/// compiled for other layouts, which are half of them; calls with such layouts run all the same, slowly. Said
/// of the program that is run, for passes such as gradient make another one.
constexpr program along_rows(program p) {
  p.only_rows = true;
  return p;
}

/// The program, with reductions along an axis in kernels of their own, apart from what is computed of their
/// results along the same axis. Where lanes are long and lie side by side that is faster: each kernel goes
/// through memory in its own best way, and what one reads the other would read again in any case. Of the
/// program that is run, as along_rows.
constexpr program reductions_apart(program p) {
  p.reduces_apart = true;
  return p;
}

/// A program as a type: the template argument of executors. The program lives at namespace scope.
template <const program& P> struct ref {
  static constexpr const program& value = P;
};

}  // namespace scandsl
