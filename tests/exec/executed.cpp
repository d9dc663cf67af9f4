#include "exec/executed.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace exec_test {
namespace {

std::string text(const name& id) { return std::string(id.view()); }

dtype type_of(const operands& given, const tensor_decl& declared) {
  const auto found = given.types.find(text(declared.id));
  if (found != given.types.end()) return found->second;
  return declared.role == tensor_role::offsets ? dtype::int64 : given.usual;
}

layout layout_of(const operands& given, const std::string& id) {
  const auto found = given.layouts.find(id);
  return found == given.layouts.end() ? layout{} : found->second;
}

/// The extents of every axis, from the inputs and `extents`.
std::map<int, std::int64_t> axis_extents(const program& p, const operands& given) {
  std::map<int, std::int64_t> result;
  for (const auto& [axis, extent] : given.extents) result[p.find_axis(make_name(axis))] = extent;
  for (const tensor_decl& declared : p.tensors) {
    const auto found = given.inputs.find(text(declared.id));
    if (declared.role == tensor_role::offsets && found == given.inputs.end()) result[declared.axes[0]] = 1;
    if (found == given.inputs.end()) continue;
    const std::int64_t boundaries = declared.role == tensor_role::offsets ? 1 : 0;
    for (int i = 0; i < declared.axes.count; ++i)
      result[declared.axes[i]] = found->second.extents[static_cast<std::size_t>(i)] - boundaries;
  }
  return result;
}

}  // namespace

outcome run_on_cpu(const compiled& program_, const operands& given, const cpu& device) {
  const program& p = *program_.p;
  const std::map<int, std::int64_t> extents = axis_extents(p, given);
  std::map<std::string, memory_block> held;
  outcome result;
  problem bound = unbound_problem(p);
  bool in_double = false;
  for (const bool outputs : {false, true})
    for (int t = 0; t < p.tensors.count; ++t) {
      const tensor_decl& declared = p.tensors[t];
      const std::string id = text(declared.id);
      const auto values = given.inputs.find(id);
      const bool is_output = declared.role == tensor_role::output;
      if (is_output != outputs || (is_output ? given.unbound.count(id) != 0 : values == given.inputs.end()))
        continue;
      bound_tensor& target = bound.tensors[static_cast<std::size_t>(t)];
      target.bound = true;
      if (const auto source = given.in_place.find(id); source != given.in_place.end()) {
        target.view = bound.tensors[static_cast<std::size_t>(p.find_tensor(make_name(source->second)))].view;
        target.view.writable = true;
        continue;
      }
      std::vector<std::int64_t> shape;
      for (const std::int16_t axis : declared.axes) shape.push_back(extents.at(axis));
      if (declared.role == tensor_role::offsets) ++shape[0];
      const dtype type = type_of(given, declared);
      in_double = in_double || type == dtype::float64;
      memory_block& place = held.emplace(id, memory_block(type, shape, layout_of(given, id))).first->second;
      if (!is_output) {
        place.write(values->second.values);
        result.inputs[id] = {place.read(), shape};
      }
      target.view = place.view(is_output);
    }
  for (const auto& [id, value] : given.scalars)
    bound.parameters[static_cast<std::size_t>(p.find_parameter(make_name(id)))] = value;
  (in_double ? program_.in_double : program_.in_float)(device, bound);
  for (const tensor_decl& declared : p.tensors) {
    const std::string id = text(declared.id);
    const auto source = given.in_place.find(id);
    const auto place = held.find(source == given.in_place.end() ? id : source->second);
    if (place == held.end()) continue;
    result.intact = result.intact && place->second.is_intact_around();
    if (declared.role == tensor_role::output) {
      oracle_tensor& output = result.outputs[id];
      output.values = place->second.read();
      for (const std::int16_t axis : declared.axes) output.extents.push_back(extents.at(axis));
    }
  }
  return result;
}

tensors expected_of(const compiled& program_, const operands& given, const outcome& got) {
  tensors expected = oracle(*program_.p, got.inputs, given.scalars, given.extents);
  for (const std::string& id : given.unbound) expected.erase(id);
  return expected;
}

namespace {

/// size(greatest value of the tensor, exact value) is what an error is relative to.
template <class Size>
std::string mismatch_by(const operands& given, const tensors& expected, const tensors& got, double tolerance,
                        Size size) {
  if (expected.size() != got.size()) return "other outputs than expected";
  for (const auto& [id, want] : expected) {
    const auto found = got.find(id);
    if (found == got.end() || found->second.extents != want.extents)
      return "no " + id + " of the expected extents";
    const auto declared = given.types.find(id);
    const dtype type = declared == given.types.end() ? given.usual : declared->second;
    double greatest = 0;
    for (const double each : want.values)
      if (std::isfinite(each)) greatest = std::max(greatest, std::fabs(each));
    for (std::size_t i = 0; i < want.values.size(); ++i) {
      const double exact = want.values[i], value = found->second.values[i];
      if (value == rounded(type, exact) || (std::isnan(value) && std::isnan(exact))) continue;
      const double error = std::fabs(value - exact) - unit_roundoff(type) * std::fabs(exact);
      if (!(error <= tolerance * size(greatest, exact)))
        return message(id, "[", i, "]: expected ", exact, ", got ", value, " (", error, " of a size of ",
                       size(greatest, exact), ")");
    }
  }
  return "";
}

}  // namespace

std::string mismatch(const operands& given, const tensors& expected, const tensors& got, double tolerance) {
  return mismatch_by(given, expected, got, tolerance,
                     [](double, double exact) { return std::max(1.0, std::fabs(exact)); });
}
std::string gradient_mismatch(const operands& given, const tensors& expected, const tensors& got,
                              double tolerance) {
  return mismatch_by(given, expected, got, tolerance, [](double greatest, double) { return greatest; });
}

std::string mismatch(const compiled& program_, const operands& given, double tolerance, const cpu& device) {
  const outcome got = run_on_cpu(program_, given, device);
  if (!got.intact) return "memory beside the outputs was written";
  return mismatch(given, expected_of(program_, given, got), got.outputs, tolerance);
}

std::string gradient_mismatch(const compiled& program_, const operands& given, double tolerance,
                              const cpu& device) {
  const outcome got = run_on_cpu(program_, given, device);
  if (!got.intact) return "memory beside the outputs was written";
  return gradient_mismatch(given, expected_of(program_, given, got), got.outputs, tolerance);
}

oracle_tensor random_tensor(std::mt19937& random, std::vector<std::int64_t> extents, double low,
                            double high) {
  oracle_tensor result{{}, std::move(extents)};
  std::int64_t size = 1;
  for (const std::int64_t extent : result.extents) size *= extent;
  std::uniform_real_distribution<double> draw(low, high);
  for (std::int64_t i = 0; i < size; ++i) result.values.push_back(draw(random));
  return result;
}

bool same_bits(const tensors& left, const tensors& right) {
  if (left.size() != right.size()) return false;
  for (const auto& [id, one] : left) {
    const auto found = right.find(id);
    if (found == right.end() || found->second.values.size() != one.values.size()) return false;
    if (!one.values.empty() &&
        std::memcmp(one.values.data(), found->second.values.data(), one.values.size() * sizeof(double)) != 0)
      return false;
  }
  return true;
}

}  // namespace exec_test
