"""Every public header compiles alone, without a warning.

usage: headers_alone.py BUILD CONTROL [--nvcc=NVCC] ROOT...
BUILD is the CMake build folder, CONTROL a source it compiles (for the flags), ROOT a folder of headers. With
NVCC the public header of kernels, scandsl/cuda.cuh, is compiled, too; those below exec/ take minutes.
"""

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import syntax

CUDA_FLAGS = ("-std=c++20", "--expt-relaxed-constexpr", "-arch=sm_90", "--Werror=all-warnings", "--ptx")


def found(roots: list, pattern: str) -> list:
    return [header.relative_to(root) for root in roots for header in sorted(root.glob(pattern))]


def check_cuda(nvcc: str, includes: list, header: Path) -> subprocess.CompletedProcess:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "alone.cu")
        source.write_text(f"#include <{header}>\n")
        command = [nvcc, *CUDA_FLAGS, *includes, source, "-o", Path(folder, "alone.ptx")]
        return subprocess.run(command, capture_output=True, text=True)


def main(build: str, control: str, *rest: str) -> int:
    nvcc = next((each.removeprefix("--nvcc=") for each in rest if each.startswith("--nvcc=")), None)
    roots = [Path(each) for each in rest if not each.startswith("--")]
    includes = [f"-I{root}" for root in roots]
    headers, of_kernels = found(roots, "**/*.hpp"), found(roots, "scandsl/*.cuh") if nvcc else []
    if not headers:
        raise SystemExit(f"no header under {', '.join(map(str, roots))}")
    flags = [*syntax.flags_of(Path(build), Path(control)), *includes, "-Werror"]
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = [
            *pool.map(lambda header: syntax.check(flags, f"#include <{header}>\n"), headers),
            *pool.map(lambda header: check_cuda(nvcc, includes, header), of_kernels),
        ]
    return syntax.report([*headers, *of_kernels], results, "does not compile alone", "headers compile alone")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
