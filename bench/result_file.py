"""A file of results, as bench/README.md describes it: what stands in it once, and how it is written."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]


def command(*words: str) -> str:
    """First line of what a command prints; "unknown" where it fails."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=PROJECT)
        return done.stdout.strip().splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def commit() -> str:
    """The sources' commit, ending in -dirty where they had changes; $SCANDSL_COMMIT where that is set."""
    describe = ("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    return os.environ.get("SCANDSL_COMMIT") or command(*describe)


def gpu_name() -> str:
    return command("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")


def nvcc_version() -> str:
    return command("sh", "-c", "nvcc --version | tail -n 1")


def gpu_driver() -> str:
    return command("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(": ", 1)[1]
    return "unknown"


def new(kind: str, machine: dict, versions: dict) -> dict:
    """A result without rows. kind: what the identifier of the run begins with."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "run": f"{kind}-{commit()}-{now:%Y%m%dT%H%M%SZ}",
        "commit": commit(),
        "date": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "machine": machine,
        "versions": versions,
        "rows": [],
    }


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def write(path: Path, result: dict) -> None:
    """A row a line. Whoever reads the file meanwhile finds the old or the new one, never a part."""
    once = [f'  "{key}": {json.dumps(value)},' for key, value in result.items() if key != "rows"]
    rows = ",\n".join(f"    {json.dumps(row)}" for row in result["rows"])
    new_file = path.with_name(path.name + ".new")
    new_file.write_text("\n".join(["{", *once, '  "rows": [', rows, "  ]", "}", ""]), encoding="utf-8")
    new_file.replace(path)
