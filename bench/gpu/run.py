#!/usr/bin/env python3
"""Runs the GPU benchmarks and writes one result file, as bench/README.md describes it.

usage: bench/gpu/run.py EXECUTABLE OUTPUT.json [SECONDS]
EXECUTABLE: build/bench/bench/scandsl_gpu_bench

Where PyTorch is installed with CUDA, its own functions are timed on the same workloads, eager and compiled,
as bench/compare.py times them. After SECONDS (500 if not given) what has not run is left out with a reason.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import result_file  # noqa: E402
from comparison.workloads import CASES, Case, Workload  # noqa: E402

if TYPE_CHECKING:  # these import torch
    from comparison import runner, timing

SECONDS = 500.0
PROVIDERS = ("torch", "torch_compile")
# One long row, which the published tables do not have.
ROWS = tuple(
    Case(op, "none", {"b": None, "n": None}, "n", (), {"forward": 2}) for op in ("plain_sum", "log_add_exp")
)


def workload_of(row: dict) -> Workload | None:
    """The comparison's workload of a row; None where it has none (carries that stay, chunks backward)."""
    name = row["case"].removesuffix("_theta_gradient")
    for case in (*CASES, *ROWS):
        if [case.op, case.name, case.axis] != [row["op"], name, row["axis"]] or row["pass"] not in case.units:
            continue
        if name != row["case"]:
            case = replace(case, name=row["case"], options={**case.options, "theta_gradient": True})
        axes = dict(zip(case.axes, row["shape"]))
        extra, dims = case.options.get("extra_tokens", 0), case.options.get("dims", 1)
        n = row["n"] if "n" in row else round((axes["n"] - extra) ** (1 / dims))
        return Workload(replace(case, dtype=row["dtype"]), n, axes)
    return None


class TorchRows:
    """The rows of torch and torch_compile, one after the other.

    ours: the rows of scandsl. Whatever has no time yet has a reason.
    """

    def __init__(self, ours: list[dict]) -> None:
        from comparison import providers
        from comparison.runner import Job

        jobs = [
            (row, Job(work, provider))
            for row in ours
            if (work := workload_of(row))
            for provider in PROVIDERS
            if providers.serves(provider, row["op"])
        ]
        first: dict[tuple, dict] = {}
        for row, job in jobs:
            first.setdefault((job.case.op, job.case.name, job.case.axis, row["pass"]), row)

        def turn(row_and_job: tuple) -> tuple:
            """Compiling may take all the time that there is: eager calls before it, then every case once.

            Associative scans, which may not come back, last.
            """
            row, job = row_and_job
            return PROVIDERS.index(job.provider), job.case.op == "decayed_sum", row not in first.values()

        self.jobs = sorted(jobs, key=turn)
        self.rows = [
            {**{name: row[name] for name in job.key(row["pass"]) if name in row}, "provider": job.provider}
            for row, job in self.jobs
        ]
        for row in self.rows:
            row["reason"] = "the time was over"

    def run(self, machine: timing.Gpu | timing.Cpu, until: float) -> None:
        from comparison.runner import reason_of

        for (row, job), result in zip(self.jobs, self.rows):
            if time.monotonic() > until:
                return
            try:
                ms = milliseconds(machine, job, row)
                speed = row["ms"] / ms
                result.update(ms=ms, gbs=row["gbs"] * speed, of_copy=row["of_copy"] * speed)
                result.update({name: float(f"{result[name]:.4g}") for name in ("ms", "gbs", "of_copy")})
                result["mib"] = row["mib"]
                del result["reason"]
            except Exception as error:  # one that fails leaves its reason, and the others go on
                result["reason"] = reason_of(error)
            print_row(result)
            machine.keeps(job.provider)


def milliseconds(machine: timing.Gpu | timing.Cpu, job: runner.Job, row: dict) -> float:
    """Of a call, several of which the host queues before the GPU starts."""
    from comparison import providers, timing
    from comparison.runner import peak_of, rotation_of

    call = providers.PROVIDERS[job.provider](job.work, machine.name)
    rotation = rotation_of(machine, job, call, row["pass"], peak_of(machine, job, call, row["pass"]))
    return timing.measure(machine, rotation, None, timing.Effort(0.1, 5, sample=0.01)).ms


def print_row(row: dict) -> None:
    n = f"n = {row['n']}" if "n" in row else ""
    axis = "" if row["axis"] is None else row["axis"]
    what = f"{row['op']:20} {row['case']:30} {row['dtype']:5} {row['shape']!s:22} {n}{axis} {row['pass']}"
    ms = f"{row['ms']:9.4g} ms  {row['of_copy']:.3f} of copy" if "ms" in row else row["reason"]
    print(f"{what} {row['provider']:14} {ms}", flush=True)


def versions() -> dict:
    found = {
        "nvcc": result_file.nvcc_version(),
        "driver": result_file.gpu_driver(),
    }
    if torch := torch_with_cuda():
        found["torch"] = torch.__version__
    return found


def torch_with_cuda():
    """The module; None where there is none that has a GPU."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def main(executable: str, output: str, seconds: float = SECONDS) -> None:
    until = time.monotonic() + float(seconds)
    printed = subprocess.run([executable], stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = [json.loads(line) for line in printed.splitlines()]
    for row in rows:
        print_row(row)
    result = result_file.new("gpu", {"gpu": result_file.gpu_name()}, versions())
    result["rows"] = rows
    if torch_with_cuda():
        result_file.write(Path(output), result)  # in case that what follows is interrupted
        from comparison import timing

        beside = TorchRows([row for row in rows if row["provider"] == "scandsl"])
        result["rows"] = rows + beside.rows

        def give_up() -> None:
            """While a call does not come back, which may be one that compiles for minutes."""
            result_file.write(Path(output), result)
            os._exit(0)

        watch = threading.Timer(max(until + 20 - time.monotonic(), 0), give_up)
        watch.daemon = True
        watch.start()
        beside.run(timing.Gpu(), until)
        watch.cancel()
    result_file.write(Path(output), result)


if __name__ == "__main__":
    main(*sys.argv[1:])
