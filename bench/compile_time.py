#!/usr/bin/env python3
"""How long nvcc takes for one program's kernels of one element type: processor seconds on one core.

usage: bench/compile_time.py BUILD OUTPUT.json [JOBS [ROUNDS]]
BUILD: a folder that `cmake --preset dev` has configured, where nvcc is; nothing in it is changed. Its sample
of the kernels has a file for each program and type. Each is compiled once more, with its host's part, JOBS
(1) at a time, and its processor time taken, user's and system's together: other work on the machine makes the
clock's time longer, and this less. Still it does, by caches and memory that are shared; so there may be
several ROUNDS (1) through the sample, of which each program's shortest time counts.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import result_file  # noqa: E402

SAMPLE = re.compile(r" (\S*/ops/generated/(\w+)\.cu) ")


def commands_of(build: Path) -> dict[str, str]:
    """How ninja would compile each file of the sample, by its name."""
    command = ["ninja", "-C", str(build), "-t", "commands", "scandsl_ops_sample"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {match[2]: line for line in lines if (match := SAMPLE.search(line))}


def seconds_of(name: str, command: str, build: Path, folder: str) -> dict:
    words = shlex.split(command)
    words = words[next(i for i, word in enumerate(words) if word.endswith("nvcc")) :]  # no compiler cache
    words = [*itertools.takewhile(lambda word: word != "&&", words)]  # and nothing after it
    words[words.index("-fatbin")] = "-c"  # with the host's part,
    words.insert(1, "-O3")  # as in a release
    for option, suffix in (("-o", "o"), ("-MF", "d")):
        words[words.index(option) + 1] = f"{folder}/{name}.{suffix}"
    start = time.monotonic()
    process = subprocess.Popen(words, cwd=build)
    _, status, used = os.wait4(process.pid, 0)  # its children's time, too
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{name} does not compile")
    cpu, clock = used.ru_utime + used.ru_stime, time.monotonic() - start
    print(f"{name:48} {cpu:6.1f} processor seconds, {clock:6.1f} of the clock", flush=True)
    return {"program": name, "cpu_seconds": round(cpu, 1), "seconds": round(clock, 1)}


def round_of(commands: dict[str, str], build: Path, jobs: int) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        compiled = [
            pool.submit(seconds_of, name, command, build, folder) for name, command in commands.items()
        ]
        try:
            return [each.result() for each in compiled]
        finally:
            pool.shutdown(cancel_futures=True)


def main(build: str, output: str, jobs: str = "1", rounds: str = "1") -> None:
    versions = {"nvcc": result_file.nvcc_version()}
    result = result_file.new("compile", {"cpu": result_file.cpu_name()}, versions)
    commands = commands_of(Path(build))
    times = [round_of(commands, Path(build), int(jobs)) for _ in range(int(rounds))]
    result["rounds"] = len(times)
    result["compiled"] = [min(each, key=lambda one: one["cpu_seconds"]) for each in zip(*times, strict=True)]
    result_file.write(Path(output), result)


if __name__ == "__main__":
    main(*sys.argv[1:])
