"""The layers include downwards only: core <- expr <- ir <- pass <- exec <- ops.

usage: include_direction.py PROJECT
Reads the headers and sources under PROJECT/include/scandsl and PROJECT/ops and prints every include that
points up, from one executor to the other, or to CUDA from outside the CUDA executor.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

# The umbrella headers stand above exec and below ops.
LAYERS = ["core", "expr", "ir", "pass", "exec", "umbrella", "ops"]
EXECUTORS = {"exec/cpu", "exec/cuda"}
SUFFIXES = {".hpp", ".cpp", ".cuh", ".cu"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CUDA = re.compile(r"(cuda|cub|thrust|cute|cutlass|nv|nvtx3)/|(cuda|cublas|cooperative_groups)\w*(\.h$|/)")


def layer_of(header: str) -> Optional[str]:
    """The layer of a path below include/scandsl (ops/... for an op), None where the folder is unknown."""
    first, *rest = header.split("/")
    layer = first if rest else "umbrella"
    return layer if layer in LAYERS else None


def executor_of(header: str) -> Optional[str]:
    folder = "/".join(header.split("/")[:2])
    return "exec/cuda" if header == "cuda.cuh" else folder if folder in EXECUTORS else None


def headers_of(project: Path) -> Iterator[tuple]:
    """Pairs of a file and its path as the layers see it."""
    for root in (project / "include/scandsl", project / "ops"):
        for file in sorted(root.rglob("*")):
            if file.suffix in SUFFIXES:
                name = file.relative_to(root).as_posix()
                yield file, name if root.name == "scandsl" else f"ops/{name}"


def target_of(project: Path, file: Path, quote: str, included: str) -> Optional[str]:
    """What an include names: a path below scandsl, or None for a header of somebody else."""
    if included.startswith("scandsl/"):
        return included[len("scandsl/") :]
    relative = (file.parent / included).resolve()
    if quote == "<" or not relative.exists():
        return None
    for root, prefix in ((project / "include/scandsl", ""), (project / "ops", "ops/")):
        if root.resolve() in relative.parents:
            return prefix + relative.relative_to(root.resolve()).as_posix()
    return None


def offence(name: str, target: Optional[str], included: str) -> Optional[str]:
    """Why the file called `name` may not include `included` (which is `target` where it is ours)."""
    if target is None:
        # The matrix products of an op are the vendor's library's.
        of_vendor = name.startswith("ops/") and name.endswith("_cuda.cpp")
        if CUDA.match(included) and executor_of(name) != "exec/cuda" and not of_vendor:
            return "only exec/cuda, cuda.cuh and ops/*/*_cuda.cpp include CUDA headers"
        return None
    layer, below = layer_of(name), layer_of(target)
    if layer is None or below is None:
        return f"{name if layer is None else target} is in no layer ({', '.join(LAYERS)})"
    if LAYERS.index(below) > LAYERS.index(layer):
        return f"{layer} may not include {below}"
    if executor_of(target) not in (None, executor_of(name)):
        if layer == "exec":
            return f"only {executor_of(target)} itself includes its headers inside exec"
        if executor_of(target) == "exec/cuda" and not name.endswith((".cu", ".cuh")):
            return "host headers and sources may not include the CUDA executor"
    return None


def offenders(project: Path) -> list:
    found = []
    for file, name in headers_of(project):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if match := INCLUDE.match(line):
                why = offence(name, target_of(project, file, match[1], match[2]), match[2])
                if why:
                    found.append(f"{file.relative_to(project)}:{number}: {line.strip()}: {why}")
    return found


def main(project: str) -> int:
    files = len(list(headers_of(Path(project))))
    if not files:
        raise SystemExit(f"no header under {project}/include/scandsl")
    found = offenders(Path(project))
    print("\n".join([*found, f"{files} files, {len(found)} includes that point the wrong way"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
