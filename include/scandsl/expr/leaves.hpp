#pragma once
#include "scandsl/core/name.hpp"

namespace scandsl {

/// One use of a name in an expression.
struct leaf {
  enum class role { input, output, offsets, scalar, integers, table, integer };
  static constexpr int most_axes = axis_list::capacity;

  name id;
  role as = role::input;
  bool optional = false;
  name axes[most_axes]{};  ///< in the order of the use

  constexpr bool operator==(const leaf&) const = default;
  constexpr bool is_tensor() const { return as != role::scalar && as != role::integer; }
  constexpr bool same_axes(const leaf& other) const {
    for (int i = 0; i < most_axes; ++i)
      if (!(axes[i] == other.axes[i])) return false;
    return true;
  }
};

/// The names that an expression uses, each way of using one once. Expressions list theirs by a static member
/// list_leaves(leaf_list&); checks of whole programs read them.
struct leaf_list {
  static constexpr int capacity = 64;
  leaf items[capacity]{};
  int count = 0;

  constexpr void add(const leaf& use) {
    for (int i = 0; i < count; ++i)
      if (items[i] == use) return;
    if (count == capacity) throw "scandsl: more than 64 names in one program";
    items[count++] = use;
  }
  constexpr void add(const name& id, leaf::role as, bool optional, const axis_list& axes) {
    leaf use{id, as, optional, {}};
    for (int i = 0; i < axes.count; ++i) use.axes[i] = axes.items[i];
    add(use);
  }
  /// The first name with two uses that clash; an empty name where there is none.
  template <class Clash> constexpr name first_with(Clash clash) const {
    for (int i = 0; i < count; ++i)
      for (int j = 0; j < i; ++j)
        if (items[i].id == items[j].id && clash(items[i], items[j])) return items[i].id;
    return {};
  }
};

/// What the expressions of types E use.
template <class... E> constexpr leaf_list leaves_of() {
  leaf_list list;
  (E::list_leaves(list), ...);
  return list;
}
/// The first name that expressions load; none where they load nothing. (Assigned, for a constant that is made
/// as a copy of it crashes g++ 13.2.)
template <class... E> constexpr name first_name() {
  name found;
  found = leaves_of<E...>().items[0].id;
  return found;
}

}  // namespace scandsl
