#pragma once
#include "scandsl/pass/reduction.hpp"
#include "scandsl/pass/rewrite.hpp"

/// Sums of a softmax times something, sum(over(n), exp(x - y) * g) with y = last(scan(log_add_exp, over(n),
/// x)): what its gradient is made of, and what attention is. As written, such a sum is a walk of its own,
/// behind the one that gives y. With w, the sum of exp(x - m) g beside the sum s of exp(x - m), both come out
/// of one walk, and the sum is w / s. (Milakov and Gimelshein, "Online normalizer calculation for softmax",
/// arXiv:1805.02867.)
namespace scandsl::detail {

constexpr bool is_log_add_exp(const program& p, int scan) {
  const scan_decl& s = p.scans[scan];
  if (s.components != 1) return false;
  const node& n = p.nodes[s.combined[0]];
  if (!is_apply<primitive::logaddexp_op>(n)) return false;
  const opcode a = p.nodes[n.operand[0]].op, b = p.nodes[n.operand[1]].op;
  return (a == opcode::left && b == opcode::right) || (a == opcode::right && b == opcode::left);
}
/// A value of a log-add-exp scan.
constexpr bool is_log_sum_value(const program& p, node_id id) {
  return is_scan_value(p.nodes[id]) && is_log_add_exp(p, p.nodes[id].target);
}
/// From the first position to the last, or back, and from nothing.
constexpr bool walks_once(const scan_decl& s) {
  return s.every == no_node && s.offsets < 0 && s.initial[0] == no_node;
}

struct weighted_sum {
  std::int16_t scan = -1;     ///< the sum
  std::int16_t log_sum = -1;  ///< the log-add-exp scan that it joins
  node_id share = no_node;    ///< exp(x - y), a factor of the sum's element
};
using weighted_sum_list = fixed_list<weighted_sum, max_scans>;

/// The nodes that some scan leads to.
struct scan_followers {
  bool nodes[max_nodes]{};
  constexpr explicit scan_followers(const program& p) {
    for (int i = 0; i < p.nodes.count; ++i) {
      nodes[i] = is_scan_value(p.nodes[i]);
      for (const node_id operand : p.nodes[i].operand)
        nodes[i] = nodes[i] || (operand != no_node && nodes[operand]);
    }
  }
  /// Of a product (a quotient, a negated value) with one factor that a scan leads to: which operand has it;
  /// -1 for other nodes.
  constexpr int factor_of(const node& n) const {
    if (is_apply<primitive::neg_op>(n)) return 0;
    const bool product = is_apply<primitive::multiply_op>(n), quotient = is_apply<primitive::divide_op>(n);
    if (!(product || quotient) || nodes[n.operand[0]] == nodes[n.operand[1]]) return -1;
    return nodes[n.operand[0]] ? 0 : product ? 1 : -1;
  }
};

/// Which weighted sums there are and which of them to join to their log-sums.
class weighted_sum_finder {
public:
  weighted_sum_list found;

  constexpr explicit weighted_sum_finder(const program& source) : p_(source), followers_(source) {
    const liveness live(p_);
    for (int s = 0; s < p_.scans.count; ++s) {
      const weighted_sum candidate = is_plain_sum(p_, s) ? candidate_of(s) : weighted_sum{};
      if (candidate.scan >= 0) candidates_.push_back(candidate);
    }
    for (const weighted_sum& each : candidates_)
      if (feeds_the_walk(each.scan, live) || is_all_that_walks_again(each.log_sum, live))
        found.push_back(each);
  }

private:
  const program& p_;
  scan_followers followers_;
  weighted_sum_list candidates_;

  /// The sum's last value alone is read, and what multiplies the share depends on no scan: it can be computed
  /// where the log-sum's elements are.
  constexpr weighted_sum candidate_of(int s) const {
    const scan_decl& sum = p_.scans[s];
    for (const node& n : p_.nodes)
      if ((n.op == opcode::carry || n.op == opcode::scan) && n.target == s) return {};
    node_id share = sum.element[0];
    for (int at = followers_.factor_of(p_.nodes[share]); at >= 0; at = followers_.factor_of(p_.nodes[share]))
      share = p_.nodes[share].operand[at];
    const int log_sum = log_sum_of(p_.nodes[share]);
    if (log_sum < 0) return {};
    const scan_decl& walk = p_.scans[log_sum];
    if (!walks_once(sum) || !walks_once(walk) || walk.axis != sum.axis || walk.axes != sum.axes) return {};
    return {static_cast<std::int16_t>(s), static_cast<std::int16_t>(log_sum), share};
  }
  /// The scan of which a node is exp(x - last value), x being its element; -1 for other nodes.
  constexpr int log_sum_of(const node& n) const {
    if (!is_apply<primitive::exp_op>(n) || !is_apply<primitive::subtract_op>(p_.nodes[n.operand[0]]))
      return -1;
    const node& gap = p_.nodes[n.operand[0]];
    const node& y = p_.nodes[gap.operand[1]];
    const bool fits = y.op == opcode::last && is_log_add_exp(p_, y.target) &&
                      p_.scans[y.target].element[0] == gap.operand[0];
    return fits ? y.target : -1;
  }

  /// Marks what follows from the last value of a scan; `but_for` marks scans that pass nothing on.
  constexpr void mark(int scan, const bool (&but_for)[max_scans], bool (&depends)[max_nodes]) const {
    for (int i = 0; i < p_.nodes.count; ++i) {
      const node& n = p_.nodes[i];
      const bool of_scan = is_scan_value(n);
      if (of_scan && n.target == scan) depends[i] = n.op == opcode::last;
      if (of_scan && !but_for[n.target])
        for (int k = 0; k < p_.scans[n.target].components; ++k)
          depends[i] = depends[i] || depends[p_.scans[n.target].element[k]];
      for (const node_id operand : n.operand)
        depends[i] = depends[i] || (operand != no_node && depends[operand]);
    }
  }
  /// Whether a walk along the scan's axis needs something that is marked.
  constexpr bool is_walked(int scan, const bool (&depends)[max_nodes], const bool (&but_for)[max_scans],
                           const liveness& live) const {
    const int axis = p_.scans[scan].axis;
    for (const store_decl& store : p_.stores)
      if ((p_.tensors[store.tensor].mask() & axis_bit(axis)) != 0 && depends[store.value]) return true;
    for (int s = 0; s < p_.scans.count; ++s) {
      if (p_.scans[s].axis != axis || but_for[s] || !live.scans[s]) continue;
      for (int k = 0; k < p_.scans[s].components; ++k)
        if (depends[p_.scans[s].element[k]]) return true;
    }
    return false;
  }
  /// Whether a later walk waits for the sum.
  constexpr bool feeds_the_walk(int sum, const liveness& live) const {
    bool depends[max_nodes] = {}, none[max_scans] = {};
    mark(sum, none, depends);
    return is_walked(sum, depends, none, live);
  }
  /// Whether there would be no second walk but for such sums.
  constexpr bool is_all_that_walks_again(int log_sum, const liveness& live) const {
    bool depends[max_nodes] = {}, sums[max_scans] = {};
    for (const weighted_sum& each : candidates_)
      if (each.log_sum == log_sum) sums[each.scan] = true;
    mark(log_sum, sums, depends);
    return !is_walked(log_sum, depends, sums, live);
  }
};

constexpr weighted_sum_list weighted_sums_of(const program& p) { return weighted_sum_finder(p).found; }

/// The copy of a node that no scan leads to, before its turn.
constexpr node_id copy_ahead(rewriting& copy, node_id id) {
  if (id == no_node || copy.nodes[id] != no_node) return copy.at(id);
  for (const node_id operand : copy.source.nodes[id].operand) copy_ahead(copy, operand);
  return copy.nodes[id] = copy.copy(copy.source.nodes[id]);
}
/// What a weighted sum multiplies the shares by: its element without that factor.
constexpr node_id weight_of(rewriting& copy, const weighted_sum& sum) {
  const program& p = copy.source;
  const scan_followers followers(p);
  const auto without_share = [&](const auto& self, node_id id) -> node_id {
    if (id == sum.share) return copy.target.constant(1.0);
    const node& n = p.nodes[id];
    const int at = followers.factor_of(n);
    const node_id x = at == 0 ? self(self, n.operand[0]) : copy_ahead(copy, n.operand[0]);
    return copy.target.apply(n.function, x,
                             at == 1 ? self(self, n.operand[1]) : copy_ahead(copy, n.operand[1]));
  };
  return without_share(without_share, p.scans[sum.scan].element[0]);
}

}  // namespace scandsl::detail
