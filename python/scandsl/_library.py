"""The compiled kernels, and how their errors reach the caller."""

import ctypes
import importlib.util
import re
from pathlib import Path

import torch


def load_kernels() -> None:
    kernels = Path(__file__).parent / "_kernels.so"
    try:
        torch.ops.load_library(kernels)
    except OSError:
        # The OpenBLAS of the kernels lies where pip has put it, which the loader does not know.
        openblas = importlib.util.find_spec("scipy_openblas32")
        if openblas is None or openblas.origin is None:
            raise
        ctypes.CDLL(str(Path(openblas.origin).parent / "lib/libscipy_openblas.so"))
        torch.ops.load_library(kernels)


# What torch's dispatcher says of an argument that a schema does not take.
_MISMATCH = re.compile(
    r"\(\) Expected a value of type '(.+?)' for argument '(\w+)' but instead found type '(.+?)'"
)


def explained(error: RuntimeError) -> Exception:
    """The exception to raise for one that a kernel or torch's dispatcher raised.

    torch turns a C++ exception into a TypeError never, so that the kernels name it in the message.
    """
    text = str(error)
    if text.startswith("TypeError: "):
        return TypeError(text[len("TypeError: ") :].split("\n")[0])
    mismatch = _MISMATCH.search(text)
    if mismatch:
        expected, argument, got = mismatch.groups()
        return TypeError(f"expected {expected} for {argument}; got {got}")
    if isinstance(error, NotImplementedError) and "no tensor arguments" in text:
        return TypeError("expected a Tensor for the first argument; got None")
    return error
