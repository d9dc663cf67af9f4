#!/usr/bin/env python3
"""What the kernels of some of the benchmark's rows wait for on a GPU: profiles them with ncu.

usage: bench/profile_kernels.py EXECUTABLE OUTPUT.json     profiles and writes, then as below
       bench/profile_kernels.py RESULTS.json               prints the table of docs/performance.md
EXECUTABLE: build/bench/bench/scandsl_gpu_bench

A row of the output is one kernel of a call: its time in microseconds at the clock that it runs at, what it
takes of the memory's peak, in which part of the cycles a scheduler issues, how many warps a multiprocessor
has, how many instructions a warp executes, and for how many cycles a warp waits for what between two of them.
"""

from __future__ import annotations

import csv
import math
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import result_file  # noqa: E402

# What the table calls a row: the row's name in the benchmark.
ROWS = {
    "log-sum, rows of 512": "logcumsumexp/none/bf16/12x8192x512/axis2/forward",
    "log-sum, rows of 2048": "logcumsumexp/none/bf16/12x8192x2048/axis2/forward",
    "log-sum, rows of 16384": "logcumsumexp/none/bf16/12x2048x16384/axis2/forward",
    "log-sum, rows of 65536": "logcumsumexp/none/bf16/3x2048x65536/axis2/forward",
    "decayed sum, rows of 512": "decayed_sum/element_decay/bf16/12x8192x512/axis2/forward",
    "log-sum backward, rows of 512": "logcumsumexp/none/bf16/12x8192x512/axis2/backward",
    "log-sum backward, rows of 2048": "logcumsumexp/none/bf16/12x8192x2048/axis2/backward",
    "log-sum backward, rows of 16384": "logcumsumexp/none/bf16/12x2048x16384/axis2/backward",
    "log-sum backward, rows of 65536": "logcumsumexp/none/bf16/3x2048x65536/axis2/backward",
    "decayed sum backward, rows of 65536": "decayed_sum/element_decay/bf16/3x2048x65536/axis2/backward",
    "one decay backward, rows of 2048": "decayed_sum/scalar_decay/bf16/12x8192x2048/axis2/backward",
    "one decay backward, rows of 65536": "decayed_sum/scalar_decay/bf16/3x2048x65536/axis2/backward",
    "log-sum, strided": "logcumsumexp/none/bf16/12x8192x2048/axis1/forward",
    "log-sum, strided, leaving carries": "logcumsumexp/leaving_carries/bf16/12x8192x2048/axis1/forward",
    "decayed sum, strided, one decay": "decayed_sum/scalar_decay/bf16/12x8192x2048/axis1/forward",
    "decayed sum backward, strided": "decayed_sum/element_decay/bf16/12x8192x2048/axis1/backward",
    "one decay backward, strided": "decayed_sum/scalar_decay/bf16/12x8192x2048/axis1/backward",
    "few strips, [1, 1M, 64]": "logcumsumexp/none/bf16/1x1048576x64/axis1/forward",
    "few strips, [1, 65536, 1024]": "logcumsumexp/none/bf16/1x65536x1024/axis1/forward",
    "chunks of d = 1, [16, 8192, 16]": "chunk_cumsum_decay/forward/bf16/16x8192x16x1/axis1/forward",
    "encoding, no activation": "lrpe_cosine/none/bf16/12x8192x12x128/forward",
    "encoding, silu": "lrpe_cosine/silu/bf16/12x8192x12x128/forward",
    "encoding, softmax over features": "lrpe_cosine/softmax_features/bf16/12x8192x12x128/axis3/forward",
    "encoding, softmax over the sequence": "lrpe_cosine/softmax_sequence/bf16/12x8192x12x128/axis1/forward",
    "theta's gradient, silu": "lrpe_cosine/silu_theta_gradient/bf16/12x8192x12x128/backward",
    "grid of two dimensions": "md_lrpe_cosine/2d_l0/bf16/12x12x16384x128/forward",
    "between products, 131072": "linear_cross_entropy/between_products/bf16/2048x131072/forward_backward",
}
# Of these the scan that leaves carries runs beside the gradient.
SCANS = ("logcumsumexp", "decayed_sum")
STALLS = {
    "long_scoreboard": "memory",
    "wait": "arithmetic",
    "short_scoreboard": "shared memory",
    "mio_throttle": "queues",
    "lg_throttle": "queues",
    "math_pipe_throttle": "pipes",
    "barrier": "barriers",
    "no_instruction": "instructions",
    "branch_resolving": "branches",
    "imc_miss": "arguments",
    "membar": "fences",
    "sleeping": "sleep",
    "dispatch_stall": "dispatch",
    "drain": "stores",
}
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
NUMBERS = {
    "us": "gpu__time_duration.sum",
    "dram": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "issue": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "warps": "sm__warps_active.avg.per_cycle_active",
    "warp_instructions": "smsp__inst_executed.sum",
    "blocks": "launch__grid_size",
    "threads": "launch__block_size",
    "registers": "launch__registers_per_thread",
}
SKIPPED, PROFILED = 6, 6  # launches of a row


def number(text: str) -> float:
    return float(text.replace(",", ""))


def profile(executable: list[str], name: str) -> list[dict]:
    """The kernels of a row, one after the other as they were launched."""
    what = fields(name)
    kernels = "gradient" if what["op"] in SCANS and what["pass"] == "backward" else "_kernel"
    metrics = ",".join([*NUMBERS.values(), *map(STALL.format, STALLS)])
    choice = ["--kernel-name-base", "demangled", "--kernel-name", f"regex:{kernels}"]
    launches = ["--launch-skip", str(SKIPPED), "--launch-count", str(PROFILED)]
    ncu = ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base"]
    command = [*ncu, "--metrics", metrics, *choice, *launches, *executable, f"--filter={name}"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    header, _, *lines = csv.reader(line for line in printed.splitlines() if line.startswith('"'))
    found = []
    for line in lines:
        row = dict(zip(header, line))
        numbers = {key: number(row[metric]) for key, metric in NUMBERS.items()}
        numbers["us"] /= 1000
        waits: dict[str, float] = {}
        for stall, called in STALLS.items():
            waits[called] = waits.get(called, 0) + number(row[STALL.format(stall)])
        kernel = row["Kernel Name"].split("_kernel<")[0].split("::")[-1].removeprefix("void ")
        found.append({"kernel": kernel, **numbers, "waits": waits})
    return found


def of_one_call(kernels: list[dict]) -> list[dict]:
    """The kernels that repeat, each with its middle one of those that were profiled."""

    def same(one: dict, other: dict) -> bool:
        instructions = one["warp_instructions"] / max(1, other["warp_instructions"])
        return 0.95 < instructions < 1.05 and all(
            one[key] == other[key] for key in ("kernel", "blocks", "threads", "registers")
        )

    groups: list[list[dict]] = []
    for each in kernels:
        known = next((group for group in groups if same(each, group[0])), None)
        if known is None:
            groups.append([each])
        else:
            known.append(each)
    return [sorted(group, key=lambda each: each["us"])[len(group) // 2] for group in groups]


def fields(name: str) -> dict:
    """What a row's name says, as bench/README.md calls it."""
    op, case, dtype, shape, *axis, pass_ = name.split("/")
    along = int(axis[0].removeprefix("axis")) if axis else None
    sizes = [int(size) for size in shape.split("x")]
    return {"op": op, "pass": pass_, "case": case, "dtype": dtype, "shape": sizes, "axis": along}


def table(rows: list[dict]) -> list[str]:
    """As docs/performance.md has it: instructions are those of a warp for each 32nd of x's elements."""
    lines = [
        "| kernel | us | DRAM, % | issue, % | warps | instructions | waits |",
        "|---|---|---|---|---|---|---|",
    ]
    before = ""
    for row in rows:
        of_element = 32 * row["warp_instructions"] / math.prod(row["shape"])
        per_element = f"{of_element:.0f}" if of_element >= 1 else ""
        time = f"{row['us']:.3g}" if row["us"] < 100 else f"{row['us']:.0f}"
        waits = sorted(row["waits"].items(), key=lambda wait: -wait[1])[:3]
        lines.append(
            f"| {row['row'] if row['row'] != before else '...'}, {row['kernel']} | {time} | "
            f"{row['dram']:.0f} | {row['issue']:.0f} | {row['warps']:.1f} | {per_element} | "
            + ", ".join(f"{what} {cycles:.1f}" for what, cycles in waits if cycles >= 0.3)
            + " |"
        )
        before = row["row"]
    return lines


def main(arguments: list[str]) -> None:
    *executable, path = arguments
    if executable:
        versions = {"nvcc": result_file.nvcc_version(), "driver": result_file.gpu_driver()}
        result = result_file.new("profile", {"gpu": result_file.gpu_name()}, versions)
        for label, name in ROWS.items():
            for kernel in of_one_call(profile(executable, name)):
                result["rows"].append({**fields(name), "provider": "scandsl", "row": label, **kernel})
            result_file.write(Path(path), result)
    print("\n".join(table(result_file.read(Path(path))["rows"])))


if __name__ == "__main__":
    main(sys.argv[1:])
