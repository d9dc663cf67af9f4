"""Compiles the file of one's own ops with the compiler at hand, once for each content."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

_package = Path(__file__).parent
_torch = Path(torch.__file__).parent
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_TARGET = "0x020a000000000000"  # the LibTorch interface of 2.10, as in cmake/scandsl-torch.cmake
# g++ 12 takes the undefined operands of its own AVX-512 intrinsics for ours (GCC bug 105593).
_FLAGS = ["-std=c++20", "-O2", "-w"]
_HOST_FLAGS = ["-fPIC", "-fvisibility=hidden", "-fopenmp"]


def build(source: Path, cuda_architectures: Sequence[str] | None, verbose: bool) -> Path:
    """The library of a source file, from the cache where it is there."""
    if not source.is_file():
        raise FileNotFoundError(f"expected a C++ or CUDA file; got {source}")
    commands = _commands(source, cuda_architectures)
    said = [torch.__version__, *(_version(command[0]) for command in commands), *sum(commands, [])]
    digest = hashlib.sha256("\0".join(said).encode())
    headers = [file for folder in _own_folders() for file in sorted(folder.rglob("*.[hc]*"))]
    for file in [*_with_quoted_includes(source.resolve()), *headers]:
        digest.update(file.read_bytes())
    namespace = f"{re.sub(r'[^0-9A-Za-z_]', '_', source.stem)}_{digest.hexdigest()[:16]}"
    library = _cache() / f"{namespace}.so"
    if not library.exists():
        define = f'-DSCANDSL_TORCH_NAMESPACE="{namespace}"'
        _compile([[compiler, define, *flags] for compiler, *flags in commands], source, library, verbose)
    return library


def _cache() -> Path:
    folder = Path(os.environ.get("SCANDSL_CACHE") or Path.home() / ".cache/scandsl")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _with_quoted_includes(source: Path) -> list[Path]:
    files = [source]
    for file in files:
        found = (file.parent / name for name in _INCLUDE.findall(file.read_text()))
        files += [each.resolve() for each in found if each.is_file() and each.resolve() not in files]
    return files


def _commands(source: Path, cuda_architectures: Sequence[str] | None) -> list[list[str]]:
    """What compiles the file: a C++ compiler for the CPU and, where it is a .cu, nvcc for CUDA."""
    nvcc = find_nvcc() if source.suffix == ".cu" else None
    folders = [*_own_folders(), _torch / "include"]
    includes = [flag for folder in folders for flag in ("-isystem", str(folder))]
    common = [*_FLAGS, *includes, f"-DTORCH_TARGET_VERSION={_TARGET}"]
    cpu = [_cxx(), *common, *_HOST_FLAGS, "-march=native", "-ffp-contract=off", "-x", "c++"]
    if nvcc is None:
        return [cpu]
    host = [part for flag in _HOST_FLAGS for part in ("-Xcompiler", flag)]
    codes = [
        f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in cuda_architectures or _architectures()
    ]
    cuda = [nvcc, "-ccbin", _cxx(), *common, "--expt-relaxed-constexpr", "-cudart", "static", *codes, *host]
    return [[*cpu, "-DSCANDSL_TORCH_CUDA=1"], cuda]


def _own_folders() -> list[Path]:
    return [_package / "include", _package / "include_torch"]


def _cxx() -> str:
    candidates = [os.environ["CXX"]] if "CXX" in os.environ else ["g++", "c++", "clang++"]
    found = next(filter(None, map(shutil.which, candidates)), None)
    if found is None:
        raise RuntimeError(f"expected a C++20 compiler ($CXX, or g++ on PATH); got none of {candidates}")
    return found


def find_nvcc() -> str | None:
    home = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    return shutil.which("nvcc", path=home / "bin") or shutil.which("nvcc")


def _architectures() -> list[str]:
    if not torch.cuda.is_available():
        raise RuntimeError("expected a GPU, or cuda_architectures=['90'] to compile for one; got neither")
    return ["{}{}".format(*torch.cuda.get_device_capability())]


def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout


def _compile(commands: list[list[str]], source: Path, library: Path, verbose: bool) -> None:
    """Compiles a file once for each kernel of an op and each device, side by side, and links them."""
    with tempfile.TemporaryDirectory(dir=library.parent) as folder, ThreadPoolExecutor() as threads:
        compilations, objects = [], []
        for device, command in enumerate(commands):
            for part in (1, 2, 3):
                objects.append(str(Path(folder, f"{device}_{part}.o")))
                define = f"-DSCANDSL_TORCH_PART={part}"
                compilations.append([*command, define, "-c", str(source), "-o", objects[-1]])
        list(threads.map(lambda each: _run(each, source, verbose), compilations))
        built = Path(folder, library.name)
        link = [*_link_command(commands[-1]), *objects, "-o", str(built)]
        _run([*link, "-L", str(_torch / "lib"), "-ltorch_cpu", "-ldl"], source, verbose)
        built.replace(library)


def _link_command(command: list[str]) -> list[str]:
    """`command` without what concerns sources alone."""
    return [*command[: command.index("-x")], "-shared"] if "-x" in command else [*command, "-shared"]


def _run(command: list[str], source: Path, verbose: bool) -> None:
    if verbose:
        print(*command, file=sys.stderr)
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"the compiler refused {source}:\n{result.stderr[-8000:]}")
