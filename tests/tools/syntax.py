"""Runs the project's compiler with the project's flags, to check syntax and nothing more."""

import json
import os
import shlex
import subprocess
from pathlib import Path


def flags_of(build: Path, source: Path, precompiled: bool = False) -> list:
    """Compiler and flags with which the CMake build folder `build` compiles `source`; no input, no output.

    precompiled: with its precompiled header. What is to compile alone must do without.
    """
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if Path(entry["file"]).resolve() == source.resolve():
            flags = without_files(shlex.split(entry["command"]))
            return flags if precompiled else without_precompiled(flags)
    raise SystemExit(f"{build}/compile_commands.json does not compile {source}")


def without_files(command: list) -> list:
    """Drops a launcher before the compiler, and `-o output -c source` from its arguments."""
    if "ccache" in Path(command[0]).name:
        command = command[1:]
    return command[: command.index("-o")]


def without_precompiled(flags: list) -> list:
    """Drops `-include header` of a precompiled header."""
    if "-include" not in flags:
        return flags
    at = flags.index("-include")
    return [*flags[:at], *flags[at + 2 :]]


def report(names: list, results: list, complaint: str, what: str) -> int:
    """Prints whose result is a failure and why, and how many are none. 1 where any is, or nobody is."""
    failures = [(name, result) for name, result in zip(names, results) if result.returncode]
    for name, result in failures:
        print(f"{name} {complaint}:\n{result.stderr}")
    print(f"{len(results) - len(failures)} of {len(names)} {what}")
    return 1 if failures or not names else 0


def check(flags: list, text: str) -> subprocess.CompletedProcess:
    """Compiles `text` as a C++ file that has no name, with -fsyntax-only."""
    command = [*flags, "-fsyntax-only", "-fdiagnostics-color=never", "-x", "c++", "-"]
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, input=text, capture_output=True, text=True, env=environment)
