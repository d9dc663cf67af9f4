"""Where the tests find what is built: set by CTest (tests/CMakeLists.txt)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from scandsl import _build

PROJECT = Path(__file__).resolve().parents[2]

NVCC = _build.find_nvcc()

# Each op is tested alone; what other processes on the machine leave is enough.
torch.set_num_threads(2)


def pytest_collection_modifyitems(items: list) -> None:
    for item in items:
        if not item.get_closest_marker("builds"):
            item.add_marker("ops")


def run(*command: object, **options: object) -> str:
    """What a command prints; its messages are shown where it fails."""
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def cuda_architecture() -> str:
    """That of the GPU; where there is none, kernels are compiled and not run."""
    return "{}{}".format(*torch.cuda.get_device_capability()) if torch.cuda.is_available() else "90"


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    return request.param


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C++ library, installed from the build tree."""
    build = os.environ.get("SCANDSL_BUILD")
    if not build:
        pytest.skip("SCANDSL_BUILD names no build tree")
    prefix = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", build, "--prefix", prefix)
    return prefix


@pytest.fixture(scope="session")
def extension(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What tests/python/own builds with CMake, as an author of an extension would."""
    build = tmp_path_factory.mktemp("extension")
    source = PROJECT / "tests/python/own"
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        # Built, not timed.
        **{f"CMAKE_{language}_FLAGS_RELEASE": "-O1 -DNDEBUG" for language in ("CXX", "CUDA")},
        "CMAKE_PREFIX_PATH": installed,
        "Python3_EXECUTABLE": sys.executable,
        "CMAKE_CUDA_ARCHITECTURES": cuda_architecture(),
    }
    if NVCC:
        options["CMAKE_CUDA_COMPILER"] = NVCC
    run("cmake", "-S", source, "-B", build, *(f"-D{name}={value}" for name, value in options.items()))
    run("cmake", "--build", build)
    return build
