#pragma once
#include "exec/scan_programs.hpp"

namespace exec_test {

// Programs whose scans depend on each other: of x(b, n), a(n), h(s, b), with the options of
// scan_programs.hpp.

/// A scan of a scan of a scan in one sweep, and a reversed scan of a forward one in two sweeps.
extern const compiled dependent_scans;
/// A value after the last position used at every position, twice.
extern const compiled softmax_scans;
/// Over x(b, n, d) and w(n): a softmax over d scanned over n (two kernels), sums over every choice of axes,
/// outputs along axes that their values lack, an output without scan.
extern const compiled mixed_axes;
/// Of x(b, n): two sets of packed sequences along one axis, offsets(s) and others(t); what follows from their
/// final values, a scan over the sequences among it; and scans of which a run-time flag needs one only.
extern const compiled packed_scans;
/// Direction, exclusion and interval in the program: restart_every(128) reversed, exclusive reversed,
/// exclusive.
extern const compiled fixed_walks;

}  // namespace exec_test
