#!/usr/bin/env python3
"""Draws the results of a benchmark: for each workload, the fraction of a copy's speed that everybody reaches.

usage: bench/plot.py RESULTS.json...
Writes RESULTS.svg next to each file, the same bytes for the same results. Needs matplotlib.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

# In the order in which bars stand, with what the legend says and a colour (Okabe and Ito's, for all eyes).
PROVIDERS = {
    "scandsl": ("scandsl", "#0072b2"),
    "torch": ("PyTorch", "#e69f00"),
    "torch_compile": ("PyTorch, compiled", "#d55e00"),
    "loop": ("loop", "#bbbbbb"),
    "loop_blocked": ("loop, lanes inside", "#777777"),
}
BAR = 0.16  # inches


class Workload(NamedTuple):
    op: str
    case: str
    dtype: str
    shape: tuple
    axis: int | None
    n: int | None  # of linear cross entropy: classes
    pass_: str

    @property
    def label(self) -> str:
        shape = " x ".join(map(size_text, self.shape))
        case = "" if self.case == "none" else f"{self.case.replace('_', ' ')}, "
        axis = "" if self.axis is None else f" along {self.axis}"
        classes = "" if self.n is None else f", {self.n} classes"
        pass_ = "" if self.pass_ == "forward" else f", {self.pass_.replace('_', ' and ')}"
        return f"{case}{shape}{axis}{classes}, {self.dtype}{pass_}"


def size_text(size: int) -> str:
    """1048576 as 2^20: large powers of two are read that way."""
    return f"2^{size.bit_length() - 1}" if size >= 1 << 16 and size & (size - 1) == 0 else str(size)


def workloads_of(rows: list) -> dict:
    """For each workload, in the file's order, the rows of its providers."""
    workloads = {}
    for row in rows:
        shape = tuple(row["shape"])
        key = Workload(
            row["op"], row["case"], row["dtype"], shape, row["axis"], row.get("n"), row["pass"]
        )
        if row["provider"] in PROVIDERS and "of_copy" in row:
            workloads.setdefault(key, {})[row["provider"]] = row
    return workloads


def draw(results: dict, path: Path) -> None:
    workloads = workloads_of(results["rows"])
    drawn = [name for name in PROVIDERS if any(name in rows for rows in workloads.values())]
    most = max(row["of_copy"] for rows in workloads.values() for row in rows.values())
    ops = list(dict.fromkeys(each.op for each in workloads))
    groups = [{key: rows for key, rows in workloads.items() if key.op == op} for op in ops]
    # A workload is as high as its bars and a gap; an op has its title's height, too.
    heights = [sum(len(rows) + 1 for rows in group.values()) * BAR + 0.45 for group in groups]
    figure, axes = plt.subplots(
        len(ops),
        1,
        figsize=(9, sum(heights) + 1),
        height_ratios=heights,
        squeeze=False,
        sharex=True,
        layout="constrained",
    )
    for axis, op, group in zip(axes[:, 0], ops, groups):
        draw_op(axis, op, group, drawn, most)
    machine = results["machine"]
    where = machine.get("gpu") or f"{machine['cpu']}, {machine['cores']} cores"
    figure.suptitle(f"Fraction of a copy's speed on {where} (commit {results['commit']})", fontsize=11)
    handles = [plt.Rectangle((0, 0), 1, 1, color=PROVIDERS[name][1]) for name in drawn]
    figure.legend(
        handles,
        [PROVIDERS[name][0] for name in drawn],
        loc="outside lower center",
        ncols=len(drawn),
        frameon=False,
    )
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def draw_op(axis, op: str, group: dict, drawn: list, most: float) -> None:
    ticks, position = [], 0.0
    for rows in group.values():
        present = [name for name in drawn if name in rows]
        ticks.append(position + (len(present) - 1) / 2)
        for name in present:
            fraction = rows[name]["of_copy"]
            axis.barh(position, fraction, height=0.9, color=PROVIDERS[name][1])
            text = f"{fraction:.2f}" if fraction >= 0.01 else f"{fraction:.1g}"
            axis.text(fraction + 0.008, position, text, va="center", fontsize=7)
            position += 1
        position += 1
    axis.set_ylim(position - 1.3, -0.7)
    axis.set_xlim(0, max(1.05, 1.06 * most))
    axis.axvline(1, color="#444444", linewidth=0.8, linestyle=":")
    axis.set_yticks(ticks, [each.label for each in group], fontsize=8)
    axis.set_title(op, fontsize=10, loc="left")
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(axis="y", length=0)


def reproducible() -> None:
    """Names of clip paths and the like are otherwise drawn at random."""
    plt.rcParams.update({"svg.hashsalt": "scandsl", "svg.fonttype": "none", "font.family": "sans-serif"})


def main(paths: list) -> int:
    if not paths:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    reproducible()
    for path in map(Path, paths):
        draw(json.loads(path.read_text()), path.with_suffix(".svg"))
        print(path.with_suffix(".svg"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
