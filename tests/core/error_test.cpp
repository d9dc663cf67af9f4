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

}  // namespace

TEST_CASE("messages print numbers and texts as streams do") {
  for (const double each :
       {0.0, -0.0, 0.5, 1.0 / 3, 123456.0, 1234567.0, 1e15, 1e16, 1e-4, 1e-5, 1e300, 5e-324,
        std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    CHECK(message(each) == streamed(each));
    CHECK(message(static_cast<float>(each)) == streamed(static_cast<float>(each)));
  }
  CHECK(message(-5, " ", 5U, ' ', std::int64_t{-1} << 62, true) ==
        streamed(-5, " ", 5U, ' ', std::int64_t{-1} << 62, true));
  CHECK(message(std::string("extent "), std::string_view("of "), "n: ", std::size_t{7}) == "extent of n: 7");
  CHECK(message().empty());
}

TEST_CASE("messages do not depend on the process's locale") {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"}) {
    if (std::setlocale(LC_ALL, name) == nullptr) continue;  // not on this machine
    CHECK(message(1234567.0, ' ', 0.5) == "1.23457e+06 0.5");
  }
  std::setlocale(LC_ALL, before.c_str());
}
