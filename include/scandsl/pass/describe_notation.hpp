#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "scandsl/expr/primitives.hpp"

/// How formulas look: the two notations of describe. A notation puts parts together; pass/describe_writer.hpp
/// says which parts.
namespace scandsl::detail {

/// How strongly an expression holds together, loosest first.
enum class binding { choice, disjunction, conjunction, comparison, sum, product, prefix, atom };

/// A formula's text and what it needs parentheses for.
struct piece {
  std::string text;
  binding holds = binding::atom;
};

/// left = right, and remarks on it.
struct line {
  std::string left, right;
  std::vector<std::string> remarks;
};

struct function_notation {
  std::string_view symbol, latex;
  primitive::notation style;
};
inline constexpr auto function_notations = []<class... P>(std::type_identity<std::tuple<P...>>) {
  return std::array<function_notation, sizeof...(P)>{function_notation{P::symbol, P::latex, P::style}...};
}(std::type_identity<primitive::primitive_list>{});
constexpr const function_notation& notation_of(int function) {
  return function_notations[static_cast<std::size_t>(function)];
}

/// An infix function that is not listed here always stands in parentheses.
constexpr binding binding_of(int function) {
  using namespace primitive;
  using primitive::index;
  if (function == index<multiply_op> || function == index<divide_op> || function == index<floor_divide_op> ||
      function == index<modulo_op>)
    return binding::product;
  if (function == index<add_op> || function == index<subtract_op>) return binding::sum;
  if (function == index<less_op> || function == index<less_equal_op> || function == index<equal_op>)
    return binding::comparison;
  if (function == index<and_op>) return binding::conjunction;
  return function == index<or_op> ? binding::disjunction : binding::choice;
}

inline std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) text.append(i > 0 ? separator : "").append(parts[i]);
  return text;
}
inline std::string printed(double value) {
  if (std::isnan(value)) return "nan";
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.9g", value);
  return buffer;
}

/// What the notations share: where parentheses stand. N says how: parenthesised(text), spaced(symbol, right)
/// and before(symbol).
template <class N> struct precedence_rules {
  /// The text of an operand that must hold at least as strongly as `least`.
  static std::string operand(const piece& p, binding least) {
    return p.holds < least ? N::parenthesised(p.text) : p.text;
  }
  /// Operators of one strength are read from left to right: a - (b - c) keeps its parentheses. A sign inside
  /// stands in parentheses: a - (-b).
  static piece infix(std::string_view symbol, binding own, const piece& x, const piece& y) {
    const bool chains = own == binding::conjunction || own == binding::disjunction;
    const binding tighter = static_cast<binding>(static_cast<int>(own) + (chains ? 0 : 1));
    const bool arithmetic = own == binding::sum || own == binding::product;
    const bool bare_sign = arithmetic && y.text.front() == '-' && y.holds >= tighter;
    const std::string right = bare_sign ? N::parenthesised(y.text) : operand(y, tighter);
    return {operand(x, own) + N::spaced(symbol, right) + right, own};
  }
  /// A sign goes with a product as it does in print: -(a * b) and (-a) * b are the same number.
  static piece prefix(std::string_view symbol, const piece& x) {
    if (symbol != "-") return {N::before(symbol) + operand(x, binding::atom), binding::prefix};
    const bool bare = x.holds >= binding::product && x.text.front() != '-';
    return {std::string("-").append(bare ? x.text : N::parenthesised(x.text)),
            bare ? std::min(x.holds, binding::prefix) : binding::prefix};
  }
};

/// x(b,n-1) * exp(y(b)), for terminals and source files.
struct text_notation : precedence_rules<text_notation> {
  static std::string name(std::string_view id) { return std::string(id); }
  static std::string numbered(const std::string& base, int number) { return base + std::to_string(number); }
  static std::string indexed(const std::string& name, const std::vector<std::string>& indices) {
    return indices.empty() ? name : name + "(" + join(indices, ",") + ")";
  }
  static std::string words(const std::string& words) { return words; }
  static piece number(double value) {
    return {printed(value), printed(value).front() == '-' ? binding::prefix : binding::atom};
  }
  static std::string parenthesised(const std::string& text) { return "(" + text + ")"; }
  static std::string spaced(std::string_view symbol, const std::string&) {
    std::string text(" ");  // grown, not prepended to: g++ 12 warns of an overlap there (GCC bug 105651)
    return text.append(symbol).append(" ");
  }
  static std::string before(std::string_view symbol) { return std::string(symbol); }

  static piece apply(int function, const std::vector<piece>& x) {
    const function_notation& f = notation_of(function);
    if (f.style == primitive::notation::infix) return infix(f.symbol, binding_of(function), x[0], x[1]);
    if (f.style == primitive::notation::prefix) return prefix(f.symbol, x[0]);
    if (f.style == primitive::notation::call_of_product)
      return {std::string(f.symbol) + "(" + infix("*", binding::product, x[0], x[1]).text + ")"};
    std::vector<std::string> arguments;
    for (const piece& p : x) arguments.push_back(p.text);
    return {std::string(f.symbol) + "(" + join(arguments, ", ") + ")"};
  }
  static piece unequal(const piece& x, const piece& y) { return infix("!=", binding::comparison, x, y); }
  static piece choice(const piece& condition, const piece& x, const piece& y) {
    const binding inner = binding::disjunction;
    return {operand(x, inner) + " if " + operand(condition, inner) + " else " + y.text, binding::choice};
  }
  static piece sum(const std::vector<std::string>& along, const piece& x) {
    return {"sum(over(" + join(along, ",") + "), " + x.text + ")"};
  }
  static piece extent(const std::string& axis) { return {"extent(" + axis + ")"}; }
  static std::string derivative(const std::string& value, const piece& argument) {
    return "d " + value + " / d " + operand(argument, binding::atom);
  }
  static std::string document(std::string_view id, const std::vector<line>& lines) {
    std::string text = std::string(id) + ":";
    for (const line& l : lines) {
      text += "\n  " + l.left + " = " + l.right;
      if (!l.remarks.empty()) text += ",  " + join(l.remarks, ", ");
    }
    return text;
  }
};

/// x_{b,n-1} \, \exp(y_{b}), for documents.
struct latex_notation : precedence_rules<latex_notation> {
  /// Letters and Greek letters are symbols, longer names are upright words; dx is the gradient of x,
  /// tx the tangent.
  static std::string name(std::string_view id) {
    static constexpr std::string_view greek[] = {
        "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda", "mu",
        "nu",    "xi",   "pi",    "rho",   "sigma",   "tau",  "phi", "chi",   "psi",   "omega"};
    if (id.size() == 1) return std::string(id);
    if (std::find(std::begin(greek), std::end(greek), id) != std::end(greek))
      return std::string("\\").append(id);
    if (id.front() == 'd') {
      const std::string of = name(id.substr(1));
      if (of.find("\\mathrm") == std::string::npos) return "\\mathrm{d}" + of;
    }
    if (id.front() == 't' && name(id.substr(1)).find("\\mathrm") == std::string::npos)
      return "\\dot{" + name(id.substr(1)) + "}";
    std::string text = "\\mathrm{";
    for (const char c : id) text.append(c == '_' ? "\\" : "").push_back(c);
    return text + "}";
  }
  static std::string numbered(const std::string& base, int number) {
    return base + "^{(" + std::to_string(number) + ")}";
  }
  static std::string indexed(const std::string& name, const std::vector<std::string>& indices) {
    return indices.empty() ? name : name + "_{" + join(indices, ",") + "}";
  }
  static std::string words(const std::string& words) { return "\\text{" + words + "}"; }
  static piece number(double value) {
    if (std::isinf(value))
      return {value < 0 ? "-\\infty" : "\\infty", value < 0 ? binding::prefix : binding::atom};
    if (std::isnan(value)) return {"\\mathrm{nan}"};
    const std::string text = printed(value);
    const std::size_t exponent = text.find('e');
    if (exponent == std::string::npos) return {text, std::signbit(value) ? binding::prefix : binding::atom};
    const std::string mantissa = text.substr(0, exponent);
    const std::string power = "10^{" + std::to_string(std::stoi(text.substr(exponent + 1))) + "}";
    if (mantissa == "1") return {power};
    return {mantissa + " \\cdot " + power, binding::product};
  }
  static std::string parenthesised(const std::string& text) {
    const bool tall = text.find("\\frac") != std::string::npos || text.find("\\begin") != std::string::npos;
    return tall ? "\\left(" + text + "\\right)" : "(" + text + ")";
  }
  /// Two numbers side by side would read as one.
  static std::string spaced(std::string_view symbol, const std::string& right) {
    const bool digit = right.front() >= '0' && right.front() <= '9';
    return symbol == "\\," && digit ? " \\cdot " : std::string(" ").append(symbol).append(" ");
  }
  static std::string before(std::string_view symbol) { return std::string(symbol) + " "; }

  static piece apply(int function, const std::vector<piece>& x) {
    const function_notation& f = notation_of(function);
    if (function == primitive::index<primitive::divide_op>)
      return {"\\frac{" + x[0].text + "}{" + x[1].text + "}"};
    if (function == primitive::index<primitive::floor_divide_op>)
      return {"\\left\\lfloor \\frac{" + x[0].text + "}{" + x[1].text + "} \\right\\rfloor"};
    if (f.style == primitive::notation::infix) return infix(f.latex, binding_of(function), x[0], x[1]);
    if (f.style == primitive::notation::prefix) return prefix(f.latex, x[0]);
    if (f.style == primitive::notation::call_of_product)
      return {std::string(f.latex) + parenthesised(infix("\\,", binding::product, x[0], x[1]).text)};
    std::vector<std::string> arguments;
    for (const piece& p : x) arguments.push_back(p.text);
    return {std::string(f.latex) + parenthesised(join(arguments, ", "))};
  }
  static piece unequal(const piece& x, const piece& y) { return infix("\\ne", binding::comparison, x, y); }
  static piece choice(const piece& condition, const piece& x, const piece& y) {
    return {"\\begin{cases} " + x.text + " & \\text{if } " + condition.text + " \\\\ " + y.text +
                " & \\text{otherwise} \\end{cases}",
            binding::choice};
  }
  static piece sum(const std::vector<std::string>& along, const piece& x) {
    return {"\\sum_{" + join(along, ",") + "} " + operand(x, binding::product), binding::product};
  }
  static piece extent(const std::string& axis) { return {"\\lvert " + axis + " \\rvert"}; }
  static std::string derivative(const std::string& value, const piece& argument) {
    return "\\frac{\\partial " + value + "}{\\partial " + operand(argument, binding::atom) + "}";
  }
  static std::string document(std::string_view, const std::vector<line>& lines) {
    std::string text = "\\begin{align*}";
    for (std::size_t i = 0; i < lines.size(); ++i) {
      text += "\n  " + lines[i].left + " &= " + lines[i].right;
      if (!lines[i].remarks.empty()) text += ", \\quad " + join(lines[i].remarks, ", \\; ");
      if (i + 1 < lines.size()) text += " \\\\";
    }
    return text + "\n\\end{align*}";
  }
};

}  // namespace scandsl::detail
