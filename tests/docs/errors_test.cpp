#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "docs/golden.hpp"
#include "scandsl/ops/logcumsumexp.hpp"
#include "scandsl/scandsl.hpp"
#include "support/catch.hpp"

using namespace scandsl;

namespace {

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"seq"> seq;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr tensor<"offsets"> offsets;
constexpr auto sums = op<"sums">(out<"y">(b, n) = scan(plain_sum, over(n).restart_at(offsets(seq)), x(b, n)));

/// The parts of a message, a line each.
std::string broken(std::string text) {
  for (std::size_t at = 0; (at = text.find("; ", at)) != std::string::npos;) text.replace(at, 2, ";\n    ");
  return text;
}

/// "shape_error: expected ...": what a call throws.
template <class Call> std::string thrown_by(Call call) {
  try {
    call();
  } catch (const shape_error& e) {
    return std::string("shape_error: ") + e.what();
  } catch (const dtype_error& e) {
    return std::string("dtype_error: ") + e.what();
  } catch (const argument_error& e) {
    return std::string("argument_error: ") + e.what();
  } catch (const index_error& e) {
    return std::string("index_error: ") + e.what();
  } catch (const overlap_error& e) {
    return std::string("overlap_error: ") + e.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("what a wrong call throws", "[docs]") {
  std::vector<float> in(6, 1.0F), result(6);
  const std::vector<std::int64_t> where = {0, 2, 4};
  std::vector<std::int32_t> whole(6);
  const auto array_of = [](auto& values) { return array::of(values.data(), {2, 3}); };

  std::string text;
  const auto show = [&](auto call) { text += broken(thrown_by(call)) + "\n"; };
  // [doc:calls]
  show([&] { run<sums>(cpu{}, x = view(in.data(), 2, 3), y = view(result.data(), 3, 2)); });
  show([&] { run<sums>(cpu{}, x = view(in.data(), 2, 3), y = erase(view(result.data(), 6))); });
  show([&] { run<sums>(cpu{}, x = erase(view(whole.data(), 2, 3)), y = view(result.data(), 2, 3)); });
  show([&] { run<sums>(cpu{}, x = view(in.data(), 2, 3), y = view(static_cast<float*>(nullptr), 2, 3)); });
  show([&] { run<sums>(cpu{}, x = view(in.data(), 2, 3), y = view(result.data(), dim{2, 0}, dim{3, 1})); });
  show([&] { run<sums>(cpu{}, x = view(in.data(), 2, 3), y = view(in.data(), dim{2, 1}, dim{3, 2})); });
  show([&] {
    run<sums>(cpu{}, x = view(in.data(), 2, 3), y = view(result.data(), 2, 3),
              offsets = view(where.data(), 3));
  });
  show([&] { ops::logcumsumexp(cpu{}, array_of(in), 2, array_of(result)); });
  // [/doc:calls]
  CHECK(text == docs_test::golden("errors.txt", "messages"));
  CHECK(result == std::vector<float>(6));  // nothing was written
}

namespace {

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// The messages of expr/check.hpp, adjacent literals joined, runs of spaces as one.
std::string messages_of_the_compiler() {
  std::ifstream file(std::filesystem::path(SCANDSL_GOLDEN) / "../../include/scandsl/expr/check.hpp");
  std::stringstream stream;
  stream << file.rdbuf();
  std::string text, word;
  while (stream >> word) text += (text.empty() ? "" : " ") + word;
  replace_all(text, " \" \"", " ");
  return text;
}

}  // namespace

TEST_CASE("the messages of the compiler are those in the source", "[docs]") {
  const std::string messages = messages_of_the_compiler();
  for (const char* const mistake : {"scan_axis", "output_axis", "bound", "rank"}) {
    std::string shown_text = docs_test::golden("errors.txt", mistake), line, message;
    std::stringstream lines(shown_text);
    while (lines >> line) message += (message.empty() ? "" : " ") + line;
    CHECK_THAT(messages, Catch::Matchers::ContainsSubstring("\"" + message + "\""));
  }
}
