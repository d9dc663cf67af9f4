#include <algorithm>
#include <cmath>

#include "property/random_programs.hpp"
#include "support/catch.hpp"

using namespace scandsl;
using generate::make_case;
using generate::random_case;
using generate::sizes;
using generate::worst_difference;
using tensors = std::map<std::string, oracle_tensor>;

namespace {

constexpr sizes whole_stretches{4, 24, 12, 4};  ///< every axis holds whole stretches of 1, 2 or 4 positions

/// The seed of a program of all_programs().
std::ptrdiff_t seed_of(const program* p) {
  const property::programs& all = property::all_programs();
  return std::find(all.begin(), all.end(), p) - all.begin();
}

bool is_value_of(const node& each, opcode op, int scan) { return each.op == op && each.target == scan; }

bool reads_last(const program& p, int scan) {
  for (const node& each : p.nodes)
    if (is_value_of(each, opcode::last, scan)) return true;
  return false;
}

oracle_tensor flipped(const tensor_decl& declared, const oracle_tensor& values, int axis) {
  const auto found = std::find(declared.axes.begin(), declared.axes.end(), axis);
  if (found == declared.axes.end()) return values;
  std::int64_t inner = 1;
  const auto which = static_cast<std::size_t>(found - declared.axes.begin());
  for (std::size_t i = which + 1; i < values.extents.size(); ++i) inner *= values.extents[i];
  const std::int64_t extent = values.extents[which];
  oracle_tensor result = values;
  for (std::size_t i = 0; i < values.values.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    const std::int64_t t = place / inner % extent;
    result.values[static_cast<std::size_t>(place + (extent - 1 - 2 * t) * inner)] = values.values[i];
  }
  return result;
}

/// Every named tensor turned round along an axis; along n the packed sequences turn round too.
tensors flipped(const program& p, tensors given, const name& axis) {
  for (auto& [id, values] : given) {
    const tensor_decl& declared = p.tensors[p.find_tensor(make_name(id))];
    if (declared.role == tensor_role::offsets) {
      if (!(axis == generate::n.id)) continue;
      const double end = values.values.back();
      std::reverse(values.values.begin(), values.values.end());
      for (double& each : values.values) each = end - each;
      continue;
    }
    values = flipped(declared, values, p.find_axis(axis));
    if (axis == generate::n.id) values = flipped(declared, values, p.find_axis(generate::s.id));
  }
  return given;
}

/// The program in which every scan over the axis runs the other way.
program turned(program p, const name& axis) {
  for (scan_decl& each : p.scans)
    if (p.axes[each.axis] == axis) each.reversed = !each.reversed;
  return p;
}

/// Positions begin ... end - 1 along n of everything that has n, and sequence k of everything that has s.
tensors sliced(const program& p, const tensors& given, std::int64_t begin, std::int64_t end, std::int64_t k) {
  tensors result;
  for (const auto& [id, values] : given) {
    const tensor_decl& declared = p.tensors[p.find_tensor(make_name(id))];
    if (declared.role == tensor_role::offsets) continue;
    oracle_tensor part = values;
    for (int i = 0; i < declared.axes.count; ++i) {
      const name& axis = p.axes[declared.axes[i]];
      const bool along_n = axis == generate::n.id, along_s = axis == generate::s.id;
      if (!along_n && !along_s) continue;
      const auto which = static_cast<std::size_t>(i);
      const std::int64_t from = along_n ? begin : k, to = along_n ? end : k + 1;
      std::int64_t inner = 1;
      for (std::size_t j = which + 1; j < part.extents.size(); ++j) inner *= part.extents[j];
      std::vector<double> kept;
      for (std::size_t j = 0; j < part.values.size(); ++j) {
        const std::int64_t t = static_cast<std::int64_t>(j) / inner % part.extents[which];
        if (t >= from && t < to) kept.push_back(part.values[j]);
      }
      part.values = kept;
      part.extents[which] = to - from;
    }
    result[id] = part;
  }
  return result;
}

/// Whether the program counts positions along the axis: turned round it is another program.
bool counts_along(const program& p, const name& axis) {
  return std::any_of(p.nodes.begin(), p.nodes.end(), [&](const node& each) {
    return each.op == opcode::index && each.target == p.find_axis(axis);
  });
}

}  // namespace

TEST_CASE("random programs cover the language", "[property]") {
  std::map<int, int> functions;
  int reversed = 0, flag = 0, every = 0, packed = 0, both = 0, started = 0, exclusive = 0, last = 0, wide = 0,
      chained = 0;
  for (const program* p : property::all_programs()) {
    for (const node& each : p->nodes) {
      if (each.op == opcode::apply) ++functions[each.function];
      exclusive += each.op == opcode::carry;
      last += each.op == opcode::last;
    }
    chained += p->scans.count > 1;
    for (const scan_decl& each : p->scans) {
      reversed += each.reversed;
      flag += each.reverse_parameter >= 0;
      every += each.every != no_node;
      packed += each.offsets >= 0;
      both += each.every != no_node && each.offsets >= 0;
      started += each.initial[0] != no_node;
      wide += each.components == 3;
    }
  }
  for (int i = 0; i < primitive::count; ++i) {
    INFO("primitive number " << i);
    CHECK(functions[i] > 0);
  }
  for (const int each : {reversed, flag, every, packed, both, started, exclusive, last, wide, chained})
    CHECK(each >= 4);
}

TEST_CASE("random programs give tame values", "[property]") {
  for (const program* p : property::all_programs())
    for (unsigned seed = 0; seed < 3; ++seed) {
      INFO("random_program<" << seed_of(p) << ">");
      for (const auto& [id, values] : make_case(*p, {2, 300, 3, 7}, seed).expected(*p))
        CHECK(std::all_of(values.values.begin(), values.values.end(),
                          [](double v) { return std::fabs(v) < 16; }));
    }
}

TEST_CASE("a scan run the other way is flip, scan, flip", "[property]") {
  for (const program* p : property::all_programs())
    for (const name& axis : {generate::b.id, generate::n.id, generate::d.id}) {
      if (p->find_axis(axis) < 0 || counts_along(*p, axis)) continue;
      const random_case c = make_case(*p, whole_stretches, 3, 4);
      random_case other = c;
      other.inputs = flipped(*p, c.inputs, axis);
      const tensors back = flipped(*p, other.expected(turned(*p, axis)), axis);
      INFO("random_program<" << seed_of(p) << ">");
      CHECK(worst_difference(c.expected(*p), back) == 0);
    }
}

TEST_CASE("a direction chosen at run time is that direction", "[property]") {
  int seen = 0;
  for (const program* p : property::all_programs()) {
    const random_case c = make_case(*p, {}, 4);
    program fixed = *p;
    for (scan_decl& each : fixed.scans) {
      if (each.reverse_parameter < 0) continue;
      const parameter_decl& flag = p->parameters[each.reverse_parameter];
      const auto bound = c.scalars.find(std::string(flag.id.view()));
      each.reversed = each.reversed != ((bound == c.scalars.end() ? flag.fallback : bound->second) != 0);
      each.reverse_parameter = -1;
      ++seen;
    }
    INFO("random_program<" << seed_of(p) << ">");
    CHECK(worst_difference(c.expected(*p), c.expected(fixed)) == 0);
  }
  CHECK(seen >= 4);
}

TEST_CASE("restarts at an interval are packed sequences of that length", "[property]") {
  int seen = 0;
  for (const program* p : property::all_programs()) {
    const random_case c = make_case(*p, {2, 23, 3, 4}, 5);
    program packed = *p;
    std::map<std::string, oracle_tensor> cuts;
    for (int i = 0; i < p->scans.count; ++i) {
      scan_decl& each = packed.scans[i];
      if (each.every == no_node || each.offsets >= 0 || reads_last(*p, i)) continue;
      const node& interval = p->nodes[each.every];
      double k = interval.value;
      if (interval.op == opcode::parameter) {
        const parameter_decl& declared = p->parameters[interval.target];
        const auto bound = c.scalars.find(std::string(declared.id.view()));
        k = bound == c.scalars.end() ? declared.fallback : bound->second;
      }
      const std::string id = message("cuts", i);
      const auto extent = static_cast<double>(c.extents.at(std::string(p->axes[each.axis].view())));
      oracle_tensor& at = cuts[id];
      for (double cut = 0; cut < extent; cut += k < 1 ? extent : k) at.values.push_back(cut);
      at.values.push_back(extent);
      at.extents = {static_cast<std::int64_t>(at.values.size())};
      tensor_decl declared{make_name(id), {}, tensor_role::offsets, true, 0.0};
      each.segment_axis = static_cast<std::int16_t>(packed.axes.push_back(make_name(id)));
      declared.axes.push_back(each.segment_axis);
      each.offsets = static_cast<std::int16_t>(packed.tensors.push_back(declared));
      each.every = no_node;
      ++seen;
    }
    random_case other = c;
    other.inputs.insert(cuts.begin(), cuts.end());
    INFO("random_program<" << seed_of(p) << ">");
    CHECK(worst_difference(c.expected(*p), other.expected(packed)) == 0);
  }
  CHECK(seen >= 4);
}

TEST_CASE("an interval below one or beyond the axis means no restart", "[property]") {
  int seen = 0;
  for (const program* p : property::all_programs()) {
    program whole = *p;
    for (scan_decl& each : whole.scans)
      if (each.every != no_node && p->nodes[each.every].op == opcode::parameter) each.every = no_node, ++seen;
    for (const double none : {0.0, -5.0, 0.5, 25.0, 1e300}) {
      random_case c = make_case(*p, {}, 6);
      for (const name& id : {generate::chunk.id, make_name("interval")})
        if (p->find_parameter(id) >= 0) c.scalars[std::string(id.view())] = none;
      INFO("random_program<" << seed_of(p) << ">");
      CHECK(worst_difference(c.expected(*p), c.expected(whole)) == 0);
    }
  }
  CHECK(seen >= 4);
}

TEST_CASE("packed sequences do not know each other", "[property]") {
  int seen = 0;
  for (const program* p : property::all_programs()) {
    const auto over_n = [&](const scan_decl& each) { return p->axes[each.axis] == generate::n.id; };
    const bool all_packed = std::all_of(p->scans.begin(), p->scans.end(), [&](const scan_decl& each) {
      return !over_n(each) || each.offsets >= 0;
    });
    const random_case c = make_case(*p, {}, 8);
    if (!all_packed || c.inputs.count("offsets") == 0) continue;
    ++seen;
    const tensors together = c.expected(*p);
    const std::vector<double>& cuts = c.inputs.at("offsets").values;
    for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
      const auto begin = static_cast<std::int64_t>(cuts[k]), end = static_cast<std::int64_t>(cuts[k + 1]);
      const auto which = static_cast<std::int64_t>(k);
      random_case alone = c;
      alone.inputs = sliced(*p, c.inputs, begin, end, which);
      alone.extents["n"] = end - begin;
      alone.extents["s"] = 1;
      INFO("random_program<" << seed_of(p) << ">");
      CHECK(worst_difference(sliced(*p, together, begin, end, which), alone.expected(*p)) == 0);
    }
  }
  CHECK(seen >= 3);
}

TEST_CASE("what is not bound is its fallback", "[property]") {
  int seen = 0;
  for (const program* p : property::all_programs()) {
    const random_case c = make_case(*p, {}, 9);
    random_case explicit_ = c;
    for (const tensor_decl& declared : p->tensors) {
      const std::string id(declared.id.view());
      if (declared.role == tensor_role::output || c.inputs.count(id) != 0) continue;
      ++seen;
      oracle_tensor& values = explicit_.inputs[id];
      if (declared.role == tensor_role::offsets) {
        values = {{0, static_cast<double>(c.extents.at("n"))}, {2}};
        continue;
      }
      std::size_t count = 1;
      for (const std::int16_t axis : declared.axes) {
        values.extents.push_back(c.extents.at(std::string(p->axes[axis].view())));
        count *= static_cast<std::size_t>(values.extents.back());
      }
      values.values.assign(count, declared.fallback);
    }
    for (const parameter_decl& declared : p->parameters)
      explicit_.scalars.emplace(std::string(declared.id.view()), declared.fallback);
    INFO("random_program<" << seed_of(p) << ">");
    CHECK(worst_difference(c.expected(*p), explicit_.expected(*p)) == 0);
  }
  CHECK(seen >= 4);
}
