#pragma once
#include <array>
#include <cstdint>

#include "scandsl/core/order.hpp"

namespace scandsl {

/// Into which parts sequences are cut that lie one behind the other, in the order of their addresses. Parts
/// are of a few lengths, long ones first: each costs something once, and while the last ones are at work
/// there is nothing left for others to do.
struct part_list {
  static constexpr int most_grades = 4;
  /// Parts of one length.
  struct grade {
    std::int32_t first = 0;                ///< the number of its first part,
    std::int32_t of_first_sequence = 0;    ///< how many there are in the sequence of that one,
    std::int32_t of_others = 1;            ///< and in each later one
    std::int64_t sequence = 0, begin = 0;  ///< where it begins
    std::int64_t length = 0;               ///< of each; of a sequence's last one at most
  };
  struct part {
    std::int64_t sequence = 0, begin = 0, length = 0;
    friend constexpr bool operator==(const part&, const part&) = default;
  };
  std::array<grade, most_grades> grades{};
  int count_of_grades = 0;
  std::int32_t count = 0;  ///< of parts; 0: there is no such list
  std::int64_t sequences = 1;

  constexpr part operator[](std::int32_t number) const {
    grade of = grades[0];
    for (int i = 1; i < most_grades; ++i)
      if (i < count_of_grades && number >= grades[static_cast<std::size_t>(i)].first)
        of = grades[static_cast<std::size_t>(i)];
    number -= of.first;
    if (number < of.of_first_sequence) return {of.sequence, of.begin + number * of.length, of.length};
    number -= of.of_first_sequence;
    return {of.sequence + 1 + number / of.of_others, number % of.of_others * of.length, of.length};
  }
  /// How many parts there are of the sequences before this one.
  constexpr std::int32_t before(std::int64_t sequence) const {
    grade of = grades[0];
    for (int i = 1; i < most_grades; ++i) {
      const grade& next = grades[static_cast<std::size_t>(i)];
      if (i < count_of_grades && (next.sequence < sequence || (next.sequence == sequence && next.begin == 0)))
        of = next;
    }
    if (sequence == of.sequence) return of.first;
    return of.first + of.of_first_sequence +
           static_cast<std::int32_t>(sequence - of.sequence - 1) * of.of_others;
  }
};

/// Makes a list of parts of sequences of `each` steps. They are fewer than 2^31.
struct part_list_maker {
  std::int64_t each, sequences;
  part_list list{};

  constexpr part_list_maker(std::int64_t of_each, std::int64_t how_many)
      : each(of_each), sequences(how_many) {
    list.sequences = how_many;
  }
  /// Has parts of this length follow the last ones, as soon as `left` is all that is left to cut, or sooner.
  constexpr void add(std::int64_t length, std::int64_t left) {
    const std::int64_t at = larger<std::int64_t>(each * sequences - left, 0);
    part_list::grade next;
    next.length = length;
    next.sequence = at / each;
    if (list.count_of_grades > 0) {
      part_list::grade& last = list.grades[static_cast<std::size_t>(list.count_of_grades - 1)];
      const bool same = next.sequence == last.sequence;
      const std::int64_t base = same ? last.begin : 0;
      const std::int64_t parts = larger<std::int64_t>(at % each - base, 0) / last.length;
      next.begin = base + parts * last.length;
      const std::int64_t before =
          same ? parts
               : last.of_first_sequence + (next.sequence - last.sequence - 1) * last.of_others + parts;
      if (before == 0) --list.count_of_grades;
      next.first = last.first + static_cast<std::int32_t>(before);
    }
    next.of_first_sequence = count_in(each - next.begin, length);
    next.of_others = count_in(each, length);
    list.grades[static_cast<std::size_t>(list.count_of_grades++)] = next;
    list.count = next.first + next.of_first_sequence +
                 static_cast<std::int32_t>(sequences - next.sequence - 1) * next.of_others;
  }

private:
  static constexpr std::int32_t count_in(std::int64_t extent, std::int64_t length) {
    return static_cast<std::int32_t>((extent + length - 1) / length);
  }
};

}  // namespace scandsl
