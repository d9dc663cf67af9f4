#!/usr/bin/env python3
"""Runs the ops beside those of torch and other libraries, on the workloads of the published tables.

Speed and memory of every pass, each time beside a copy of as many bytes; on a GPU where there is one. The
file of results grows row by row: an interrupted run goes on where it stopped when it is started again. Exit
code 75 says that there is more to run (the time given was over, or a call took the GPU down or did not come
back).

bench/README.md says what is measured and what a row means.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import math
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import result_file
import torch
from comparison import providers, published, tables, timing
from comparison.runner import Job, Runner
from comparison.workloads import CASES, OPS, Case, Workload

MORE_TO_RUN = 75
KEY = ("op", "pass", "case", "dtype", "shape", "axis", "n", "provider")
PACKAGES = ("torch", "triton", "fla-core", "liger-kernel", "cut-cross-entropy", "quack-kernels")
CPU_X_BYTES = 64 << 20
CPU_FLOPS = 2e11


def jobs_of(
    cases: Iterable[Case], names: list[str], fit: Callable[[Workload], Workload], together: bool = False
) -> list[Job]:
    """The size nearest to 8192 of every case first, and those who start fast before those who compile.

    together: one workload's providers one after the other, for machines whose speed changes; where they
    multiply matrices they are anyway.
    """
    ordered = {}
    for place, case in enumerate(cases):
        sizes = sorted(case.sizes, key=lambda n: (abs(math.log2(n ** case.options.get("dims", 1) / 8192)), n))
        for round_, n in enumerate(sizes):
            for provider in names:
                if providers.serves(provider, case.op):
                    job = Job(fit(case.at(n)), provider)
                    deferred = not together and job.work.flops is None
                    slow = deferred and provider in providers.SLOW_TO_START
                    order = (round_ > 0, slow, round_, place, names.index(provider))
                    ordered.setdefault(str(job.keys), (order, job))  # cases may shrink to the same
    return [job for _, job in sorted(ordered.values(), key=lambda each: each[0])]


class Results:
    """The file of results, with the rows that an earlier run left in it."""

    def __init__(self, path: Path, device: str, retry: bool) -> None:
        versions = {name: version for name in PACKAGES if (version := installed(name))}
        if device == "cuda":
            machine = {"gpu": torch.cuda.get_device_name()}
            versions["driver"] = result_file.gpu_driver()
        else:
            machine = {"cpu": result_file.cpu_name(), "cores": torch.get_num_threads()}
        self.path = path
        self.content = result_file.new("compare", machine, versions)
        if path.exists():
            found = result_file.read(path)
            for name in ("commit", "machine"):
                if found[name] != self.content[name]:
                    raise SystemExit(
                        f"{path} holds results of {name} {found[name]}, this is {self.content[name]}; "
                        "give another --output"
                    )
            self.content = found
        if retry:
            self.content["rows"] = [row for row in self.content["rows"] if "ms" in row]
        self.known = {self.key(row) for row in self.content["rows"]}

    @staticmethod
    def key(row: dict[str, Any]) -> str:
        return str([row.get(name) for name in KEY])

    def has(self, job: Job) -> bool:
        return all(self.key(key) in self.known for key in job.keys)

    def add(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if self.key(row) not in self.known:
                self.known.add(self.key(row))
                self.content["rows"].append(row)
        result_file.write(self.path, self.content)


def installed(package: str) -> str | None:
    """Its version."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def told(row: dict[str, Any]) -> str:
    """A row in a few words."""
    if "ms" not in row:
        return f"{row['pass']} {row['reason']}"
    ratio = f" {row['of_copy']:.3g} of copy" if "of_copy" in row else f" {row['of_product']:.3g} of product"
    return f"{row['pass']} {row['ms']:.4g} ms{ratio}"


class Progress:
    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.start = time.monotonic()

    def step(self, job: Job, rows: list[dict[str, Any]]) -> None:
        """One line a job; on a terminal a bar below it."""
        self.done += 1
        own = [told(row) for row in rows if row["provider"] == job.provider]
        line = f"{self.done}/{self.total} {job.work.label} {job.provider}: {'; '.join(own)}"
        if not sys.stderr.isatty():
            print(line, file=sys.stderr, flush=True)
            return
        full = 30 * self.done // self.total
        left = (time.monotonic() - self.start) / self.done * (self.total - self.done)
        bar = f"[{'#' * full}{'.' * (30 - full)}] {left / 60:.0f} min left"
        print(f"\r\x1b[K{line}\n{bar}", end="", file=sys.stderr, flush=True)


class Watch:
    """Calls give_up(*jobs) where some take longer than so many seconds each."""

    def __init__(self, patience: float, give_up: Callable[..., None]) -> None:
        self.patience = patience
        self.give_up = give_up
        self.timer: threading.Timer | None = None

    def begins(self, *jobs: Job) -> None:
        self.ends()
        self.timer = threading.Timer(self.patience * len(jobs), self.give_up, jobs)
        self.timer.daemon = True
        self.timer.start()

    def ends(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


def in_turns(jobs: list[Job]) -> list[list[Job]]:
    """Jobs in the order given, those of one workload that are timed in turns together."""
    groups: list[list[Job]] = []
    for job in jobs:
        if groups and job.work.flops is not None and job.work == groups[-1][0].work:
            groups[-1].append(job)
        else:
            groups.append([job])
    return groups


def run(jobs: list[Job], runner: Runner, results: Results, until: float, patience: float) -> int:
    jobs = [job for job in jobs if not results.has(job)]
    progress = Progress(len(jobs))

    def give_up(*hanging: Job) -> None:
        reason = f"did not come back in {patience * len(hanging):g} s"
        results.add([{**key, "reason": reason} for job in hanging for key in job.keys])
        names = ", ".join(job.provider for job in hanging)
        print(f"{hanging[0].work.label} {names} hangs; start again to go on", file=sys.stderr)
        os._exit(MORE_TO_RUN)

    watch = Watch(patience, give_up)
    runner.begins = watch.begins
    for together in in_turns(jobs):
        if time.monotonic() > until:
            print(f"{len(jobs) - progress.done} left", file=sys.stderr)
            return MORE_TO_RUN
        try:
            rows = runner.rows_in_turns(together)
        finally:
            watch.ends()
        results.add(rows)
        for job in together:
            progress.step(job, rows)
        if not runner.machine.works():
            print("the GPU does not answer any more; start again to go on", file=sys.stderr)
            return MORE_TO_RUN
    return 0


def words(text: str) -> list[str]:
    return [word for word in re.split(r"[,\s]+", text) if word]


def options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    gpu = torch.cuda.is_available()
    add("--output", type=Path, required=True, help="file of results, written or gone on with")
    add("--device", choices=("cuda", "cpu"), default="cuda" if gpu else "cpu")
    add("--ops", type=words, help="some ops only, with commas between them")
    add("--only", metavar="REGEX", default="", help="found in the name: op/case/dtype/shape/axis")
    add("--providers", type=words, default=list(providers.PROVIDERS), help="some only, in this order")
    add("--dtype", choices=("bf16", "f16", "f32"), help="bf16 on a GPU, f32 on the CPU")
    add("--sizes-limit", type=float, metavar="BYTES", default=math.inf,
        help="leave out workloads whose inputs and outputs take more")  # fmt: skip
    add("--x-bytes", type=float, metavar="BYTES",
        help="shrink batch, heads, features until x takes no more; on the CPU 2^26 by default")  # fmt: skip
    add("--quick", action="store_true", help="few repetitions")
    add("--seconds", type=float, metavar="BUDGET", default=math.inf, help="start nothing new after so long")
    add("--patience", type=float, default=180, metavar="SECONDS", help="for one workload and provider")
    add("--retry", action="store_true", help="run again what has a reason in the file in place of a time")
    add("--plots", type=Path, metavar="FOLDER", help="draw the results there, an SVG for each op")
    add("--tables", type=Path, metavar="FILE.md", help="write the results as tables there")
    add("--no-run", action="store_true", help="only draw and write what --output holds")
    add("--list", action="store_true", help="print the workloads' names and run nothing")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    given = options(arguments)
    until = time.monotonic() + given.seconds
    gpu = given.device == "cuda"
    dtype = given.dtype or ("bf16" if gpu else "f32")
    for what, names, all_names in (
        ("op", given.ops or [], OPS),
        ("provider", given.providers, providers.PROVIDERS),
    ):
        for name in names:
            if name not in all_names:
                raise SystemExit(f"no {what} {name}; there are {', '.join(sorted(all_names))}")
    cases = [replace(case, dtype=dtype) for case in CASES if not given.ops or case.op in given.ops]
    x_bytes = given.x_bytes or (math.inf if gpu else CPU_X_BYTES)
    flops = math.inf if gpu else CPU_FLOPS
    jobs = jobs_of(cases, given.providers, lambda work: work.within(x_bytes, flops), together=not gpu)
    jobs = [job for job in jobs if re.search(given.only, job.work.label)]
    if given.list:
        print("\n".join(dict.fromkeys(job.work.label for job in jobs)))
        return 0
    if given.plots:
        from comparison import plots  # before the run: it needs matplotlib
    status = 0
    if given.no_run:
        content = result_file.read(given.output)
    else:
        results = Results(given.output, given.device, given.retry)
        content = results.content
        if gpu:
            results.add(published.rows(job.work for job in jobs))
        effort = timing.Effort(0.03, 3, warm=0.2) if given.quick else timing.Effort(0.2, 5, warm=0.4, turns=5)
        machine = timing.Gpu() if gpu else timing.Cpu()
        gc.freeze()  # what is imported stays; garbage is collected after every job
        status = run(jobs, Runner(machine, effort, given.sizes_limit), results, until, given.patience)
    if given.plots:
        print("\n".join(map(str, plots.draw(content, given.plots))))
    if given.tables:
        given.tables.write_text(tables.markdown(content), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
