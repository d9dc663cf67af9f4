"""The wheel, in an environment of its own."""

import site
import sys
from pathlib import Path

import pytest

from conftest import PROJECT, run

pytestmark = pytest.mark.builds


def test_a_wheel_in_an_empty_environment(installed: Path, tmp_path: Path) -> None:
    """It suits every version of Python. The ops come from the build tree, so that none is compiled anew."""
    run(
        *(sys.executable, "-m", "pip", "wheel", PROJECT, "--no-deps", "--no-build-isolation"),
        *("--wheel-dir", tmp_path, "-C", "cmake.source-dir=python", "-C", f"build-dir={tmp_path / 'build'}"),
        *("-C", f"cmake.define.CMAKE_PREFIX_PATH={installed}"),
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert "-py3-none-" in wheel.name
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    run(python, "-m", "pip", "install", "--no-deps", "--no-index", wheel)
    # torch itself is that of this environment.
    (packages,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    (packages / "torch.pth").write_text("\n".join(site.getsitepackages()))
    program = """
import scandsl, torch
print(scandsl.__file__)
print(scandsl.logcumsumexp(torch.zeros(3))[2].exp().item())
print(scandsl.linear_cross_entropy(torch.ones(2, 3), torch.zeros(4, 3), torch.tensor([0, 3])).exp().item())
print(*{line.split()[-1] for line in open("/proc/self/maps") if "openblas" in line})
"""
    where, last_sum, loss, blas = run(python, "-I", "-c", program, cwd=tmp_path).splitlines()
    assert Path(where).is_relative_to(tmp_path)
    assert float(last_sum) == pytest.approx(3)
    assert float(loss) == pytest.approx(4)
    # Whoever installs a wheel may have no OpenBLAS but those of Python packages.
    assert blas
    assert all("site-packages" in library for library in blas.split())
