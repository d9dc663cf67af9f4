"""The published tables (bench/published) as rows of a comparison: ratios to torch, on the GPU named there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from .workloads import CASES, Case, Workload

FOLDER = Path(__file__).resolve().parents[1] / "published"
# Columns of the tables that a provider here stands for itself.
MEASURED_HERE = ("torch", "torch_compile", "fla", "liger", "cut_cross_entropy")


def tables() -> list[dict]:
    """Each table with its file's op and gpu."""
    return [
        {"op": content["op"], "gpu": content["gpu"], **table}
        for content in (json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json")))
        for table in content["tables"]
    ]


def extent(word: str | int, n: int) -> int:
    """What a table's shape says of an axis: 12, "n", "n^3" or "10+n^3"."""
    if isinstance(word, int):
        return word
    extra, power = re.fullmatch(r"(?:(\d+)\+)?n(?:\^(\d))?", word).groups(default="0")
    return int(extra) + n ** (int(power) or 1)


def case_of(table: dict) -> Case | None:
    """The case that a table is about."""
    wanted = [table[name] for name in ("op", "case", "dtype", "axis")]
    shape = [extent(each, table["n"][0]) for each in table["shape"]]
    for case in CASES:
        found = [case.op, case.name, case.dtype, case.axis] == wanted and table["pass"] in case.units
        if found and case.at(table["n"][0]).shape == shape:
            return case
    return None


def rows(works: Iterable[Workload]) -> list[dict]:
    """What cannot be run here, for the workloads given: torch's time and memory over its own."""
    wanted = {str(work.key(pass_)) for work in works for pass_ in work.case.units}
    result = []
    for table in tables():
        case = case_of(table)
        for provider, times in table["ms"].items():
            memory = table["mib"][provider]
            for i, n in enumerate(table["n"]):
                key = case.at(n).key(table["pass"])
                if provider in MEASURED_HERE or str(key) not in wanted:
                    continue
                result.append(
                    {
                        **key,
                        "provider": f"published_{provider}",
                        "published": table["gpu"],
                        "of_torch": round(table["ms"]["torch"][i] / times[i], 4),
                        "memory_of_torch": round(table["mib"]["torch"][i] / memory[i], 4),
                    }
                )
    return result
