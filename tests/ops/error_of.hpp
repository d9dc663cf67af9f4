#pragma once
#include <exception>
#include <string>

#include "support/catch.hpp"

namespace op_test {

/// What the Error says that a call throws whose operands `spoil` has changed; it has written nothing by then.
template <class Error, class Call, class Spoil>
std::string error_of(void (Call::*entry)(), const Spoil& spoil) {
  Call operands;
  spoil(operands);
  std::string text = "no error";
  try {
    (operands.*entry)();
  } catch (const Error& e) {
    text = e.what();
  } catch (const std::exception& e) {
    text = std::string("another error: ") + e.what();
  }
  CHECK(operands.is_unwritten());
  return text;
}
inline auto says(const std::string& text) { return Catch::Matchers::ContainsSubstring(text); }

}  // namespace op_test
