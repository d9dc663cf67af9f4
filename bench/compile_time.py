#!/usr/bin/env python3
"""How long nvcc takes for one program's kernels of one element type: processor seconds on one core.

usage: bench/compile_time.py BUILD OUTPUT.json
BUILD: a folder that `cmake --preset dev` has configured, where nvcc is; nothing in it is changed. Its sample
of the kernels has a file for each program and type. Each is compiled once more, alone, and its processor time
taken, user's and system's together: other work on the machine makes the clock's time longer, and this less.
"""

from __future__ import annotations

import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import result_file  # noqa: E402

SAMPLE = re.compile(r" -c (\S*/ops/generated/(\w+)\.cu) ")


def commands_of(build: Path) -> dict[str, str]:
    """How ninja would compile each file of the sample, by its name."""
    command = ["ninja", "-C", str(build), "-t", "commands", "scandsl_ops_sample"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {match[2]: line for line in lines if (match := SAMPLE.search(line))}


def seconds_of(command: str, build: Path, folder: str) -> tuple[float, float]:
    """Processor seconds and seconds of the clock."""
    words = shlex.split(command)
    words = words[next(i for i, word in enumerate(words) if word.endswith("nvcc")) :]  # no compiler cache
    words.insert(1, "-O3")  # of the host's code, as in a release
    for option, name in (("-o", "out.o"), ("-MF", "out.d")):
        words[words.index(option) + 1] = f"{folder}/{name}"

    def used() -> float:
        of_children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return of_children.ru_utime + of_children.ru_stime

    before, clock = used(), time.monotonic()
    subprocess.run(words, cwd=build, check=True)
    return used() - before, time.monotonic() - clock


def main(build: str, output: str) -> None:
    versions = {"nvcc": result_file.nvcc_version()}
    result = result_file.new("compile", {"cpu": result_file.cpu_name()}, versions)
    result["compiled"] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, command in commands_of(Path(build)).items():
            cpu, clock = seconds_of(command, Path(build), folder)
            times = {"program": name, "cpu_seconds": round(cpu, 1), "seconds": round(clock, 1)}
            result["compiled"].append(times)
            print(f"{name:48} {cpu:6.1f} processor seconds, {clock:6.1f} of the clock", flush=True)
    result_file.write(Path(output), result)


if __name__ == "__main__":
    main(*sys.argv[1:])
