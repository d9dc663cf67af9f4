#include "scandsl/core/error.hpp"

#include <clocale>
#include <cstdint>
#include <limits>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>

#include "support/catch.hpp"

using namespace scandsl;

namespace {

/// What a stream prints, in the locale "C".
template <class... Parts> std::string streamed(const Parts&... parts) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  (text << ... << parts);
  return text.str();
}

template <class... Parts> std::string written(const Parts&... parts) {
  return std::string(message(parts...).view());
}

}  // namespace

TEST_CASE("messages print numbers and texts as streams do") {
  for (const double each :
       {0.0, -0.0, 0.5, 1.0 / 3, 123456.0, 1234567.0, 1e15, 1e16, 1e-4, 1e-5, 1e300, 5e-324,
        std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    CHECK(written(each) == streamed(each));
    CHECK(written(static_cast<float>(each)) == streamed(static_cast<float>(each)));
  }
  CHECK(written(-5, " ", 5U, ' ', std::int64_t{-1} << 62, true) ==
        streamed(-5, " ", 5U, ' ', std::int64_t{-1} << 62, true));
  CHECK(written(std::string("extent "), std::string_view("of "), "n: ", std::size_t{7}) == "extent of n: 7");
  CHECK(written().empty());
}

TEST_CASE("messages do not depend on the process's locale") {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"}) {
    if (std::setlocale(LC_ALL, name) == nullptr) continue;  // not on this machine
    CHECK(written(1234567.0, ' ', 0.5) == "1.23457e+06 0.5");
  }
  std::setlocale(LC_ALL, before.c_str());
}

TEST_CASE("texts that are too long end where their memory does") {
  const std::string once(short_text::capacity - 1, 'a'), more(3, 'b');
  CHECK(written(once, more) == once + "b");
  CHECK(written(once, -12345) == once + "-");
  CHECK(written(once, "", 'c', 'd') == once + "c");
}

TEST_CASE("an error joins what was expected, what came and what to do") {
  const argument_error e("one", message("two ", 2), std::string("change it"));
  CHECK(e.what() == std::string("expected one; got two 2; change it"));
  CHECK(shape_error("as it is").what() == std::string("as it is"));
  const std::string longest(2 * short_text::capacity, 'x');
  CHECK(std::string(index_error(longest, longest, longest).what()).size() == 3 * short_text::capacity);
  const argument_error copied = e;
  CHECK(copied.what() == std::string(e.what()));
}

TEST_CASE("the least and the greatest integers are written") {
  CHECK(written(std::numeric_limits<std::int64_t>::min(), ' ', std::numeric_limits<std::int64_t>::max()) ==
        streamed(std::numeric_limits<std::int64_t>::min(), ' ', std::numeric_limits<std::int64_t>::max()));
  CHECK(written(std::numeric_limits<std::uint64_t>::max()) ==
        streamed(std::numeric_limits<std::uint64_t>::max()));
}
