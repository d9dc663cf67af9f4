"""Ops of one's own: a file with a program in the language, built and registered."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, NamedTuple

import torch
from torch import Tensor

from ._build import build
from ._operation import INTEGERS, TENSOR, Operation


class Declared(NamedTuple):
    """A tensor or a scalar of a program: as python/include/scandsl/torch/program_op.hpp describes it."""

    role: str
    name: str
    optional: bool
    axes: tuple[str, ...]
    default: float


def _declared(line: str) -> Declared:
    role, name, *rest = line.split()
    is_scalar = role.startswith("scalar")
    return Declared(
        role.rstrip("?"),
        name,
        role.endswith("?"),
        () if is_scalar else tuple(rest),
        float(rest[0]) if is_scalar else 0.0,
    )


def load(
    source: str | Path, *, cuda_architectures: Sequence[str] | None = None, verbose: bool = False
) -> SimpleNamespace:
    """Builds the ops of a C++ or CUDA file and gives them as functions.

    The file includes ``scandsl/torch.hpp`` and holds programs in the language, and for each a line
    ``const torch_op<program> registered;``. It is compiled once for each content (that of files which it
    includes by quotes counts) into ``$SCANDSL_CACHE`` or ``~/.cache/scandsl``. A ``.cpp`` is for the CPU. A
    ``.cu`` is for CUDA too where nvcc is found (``$CUDA_HOME/bin``, PATH), which then compiles it beside the
    C++ compiler, and for the CPU alone where not.

    Args:
        source: the file.
        cuda_architectures: such as ``["90"]``; where absent, that of the current GPU.
        verbose: print the command that compiles.

    Returns:
        An object with a function for each op, named as the program. It takes the program's tensors in their
        order or by name, one dimension for each axis, and its scalars by name. It gives the outputs: a tensor
        or a tuple. They have the dtype of the operand with the most axes. Derivatives, torch.compile and
        torch.func work as for the prebuilt ops.

    Raises:
        FileNotFoundError: no such file.
        RuntimeError: no compiler, or what the compiler says.
    """
    return load_library(build(Path(source), cuda_architectures, verbose))


def load_library(library: str | Path) -> SimpleNamespace:
    """The ops of a library that was built before, as ``load`` gives them.

    library: what CMake's ``scandsl_torch_module(<name> ...)`` builds, ``<name>.so``.
    """
    torch.ops.load_library(library)
    namespace, suffix = Path(library).stem, "_description"
    names = (name.split("::") for name in torch._C._dispatch_get_all_op_names())
    own = [name[: -len(suffix)] for space, name in names if space == namespace and name.endswith(suffix)]
    return SimpleNamespace(**{name: _function(namespace, name) for name in own})


@functools.cache
def _function(namespace: str, name: str) -> Callable:
    description = getattr(getattr(torch.ops, namespace), f"{name}_description")()
    declared = [_declared(line) for line in description.splitlines()]
    operands = [each for each in declared if each.role in ("operand", "offsets")]
    outputs = [each for each in declared if each.role == "output"]
    scalars = [each for each in declared if each.role == "scalar"]
    operation = Operation(
        namespace,
        name,
        operands=[INTEGERS if each.role == "offsets" else TENSOR for each in operands],
        outputs=[TENSOR] * len(outputs),
        results=_results(operands, outputs),
    )
    names = [each.name for each in operands]
    optional = {each.name for each in operands if each.optional}
    defaults = {each.name: each.default if each.optional else None for each in scalars}

    def call(*tensors: Tensor, **named: Any) -> Tensor | tuple[Tensor, ...]:
        if len(tensors) > len(names):
            raise TypeError(f"expected at most {len(names)} tensors for {name}; got {len(tensors)}")
        given = dict(zip(names, tensors))
        for key, value in named.items():
            if key in given or (key not in names and key not in defaults):
                raise TypeError(f"expected {', '.join([*names, *defaults])} for {name}, each once; got {key}")
            given[key] = value
        for key in [*names, *defaults]:
            if given.get(key) is None and key not in optional and defaults.get(key) is None:
                raise TypeError(f"expected {key} for {name}; got none")
        scalar_values = [float(given.get(key, default)) for key, default in defaults.items()]
        results = operation.run(*(given.get(key) for key in names), *scalar_values)
        return results[0] if len(results) == 1 else tuple(results)

    call.__name__ = call.__qualname__ = name
    described = [f"{each.name}({', '.join(each.axes)})" for each in [*operands, *outputs]]
    call.__doc__ = (
        f"{', '.join(described[len(operands) :])} = {name}({', '.join(described[: len(operands)])})"
    )
    return call


def _results(operands: Sequence[Declared], outputs: Sequence[Declared]) -> Callable[..., list[Tensor]]:
    def results(*arguments: Any) -> list[Tensor]:
        extents: dict = {}
        principal, rank = None, -1
        for declared, tensor in zip(operands, arguments):
            if tensor is None:
                continue
            for axis, extent in zip(declared.axes, tensor.shape):
                extents.setdefault(axis, extent - 1 if declared.role == "offsets" else extent)
            if declared.role == "operand" and len(declared.axes) > rank:
                principal, rank = tensor, len(declared.axes)
        return [principal.new_empty([extents.get(axis, 1) for axis in each.axes]) for each in outputs]

    return results
