#!/usr/bin/env python3
"""How time grows with sizes on a GPU: runs the sweeps, names every step, and draws them.

usage: bench/growth.py EXECUTABLE OUTPUT.json     runs and writes, then as below
       bench/growth.py RESULTS.json               names the steps, writes RESULTS.svg next to it
EXECUTABLE: build/bench/bench/scandsl_gpu_bench

A step: between neighbours of a sweep the time a byte grows by more than a factor of 1.3, or, where all
sizes of the sweep have as many bytes, changes by more than that. Drawing needs matplotlib.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import result_file  # noqa: E402

MOST = 1.3
# What varies in a sweep: a dimension of the shape; and what a reader calls it.
VARIES = {
    "one_row": (1, "length of one row"),
    "few_lanes": (1, "steps of 64 lanes"),
    "longer_rows": (1, "length of 8192 rows"),
    "longer_lanes": (1, "steps of 4 x 2048 lanes"),
    "rows_of": (1, "length of rows, 2^27 elements"),
    "lanes_side_by_side": (2, "lanes side by side, 2^27 elements"),
}


def sweeps_of(rows: list[dict]) -> dict[tuple[str, str], list[tuple[int, dict]]]:
    """The rows of scandsl by sweep and pass, each with its size, in the order of sizes."""
    sweeps: dict[tuple[str, str], list[tuple[int, dict]]] = {}
    for row in rows:
        if row["provider"] == "scandsl" and row["case"] in VARIES:
            size = row["shape"][VARIES[row["case"]][0]]
            sweeps.setdefault((row["case"], row["pass"]), []).append((size, row))
    return {key: sorted(sizes, key=lambda each: each[0]) for key, sizes in sweeps.items()}


def steps_of(sizes: list[tuple[int, dict]]) -> list[tuple[int, int, float]]:
    """The neighbours between which there is a step, and by what factor the time a byte changes."""
    found = []
    constant = len({row["mib"] for _, row in sizes}) == 1
    for (small, before), (large, after) in zip(sizes, sizes[1:]):
        factor = after["ms"] / after["mib"] / (before["ms"] / before["mib"])
        if factor > MOST or (constant and factor < 1 / MOST):
            found.append((small, large, factor))
    return found


def report(rows: list[dict]) -> list[str]:
    """One line a step."""
    return [
        f"{case:20} {pass_:9} {small:>10} -> {large:<10} x {factor:.2f}"
        for (case, pass_), sizes in sweeps_of(rows).items()
        for small, large, factor in steps_of(sizes)
    ]


def draw(rows: list[dict], to: Path) -> None:
    import matplotlib.pyplot as plt
    import plot

    plot.reproducible()
    figure, axes = plt.subplots(2, 3, figsize=(12, 6.5), layout="constrained")
    sweeps = sweeps_of(rows)
    for place, (case, (_, label)) in zip(axes.flat, VARIES.items()):
        for pass_, colour in (("forward", "#0072b2"), ("backward", "#d55e00")):
            sizes = sweeps.get((case, pass_), [])
            place.plot(
                [size for size, _ in sizes], [row["gbs"] for _, row in sizes], ".-", color=colour, label=pass_
            )
        place.set(xscale="log", yscale="log", xlabel=label, ylabel="GB/s")
        place.grid(alpha=0.3)
    axes.flat[0].legend()
    figure.savefig(to, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def main(arguments: list[str]) -> None:
    *executable, path = arguments
    if executable:
        printed = subprocess.run([*executable, "--growth"], stdout=subprocess.PIPE, text=True, check=True)
        versions = {"nvcc": result_file.nvcc_version()}
        result = result_file.new("growth", {"gpu": result_file.gpu_name()}, versions)
        result["rows"] = [json.loads(line) for line in printed.stdout.splitlines()]
        result_file.write(Path(path), result)
    rows = result_file.read(Path(path))["rows"]
    print("\n".join(report(rows)) or "no steps")
    draw(rows, Path(path).with_suffix(".svg"))


if __name__ == "__main__":
    main(sys.argv[1:])
