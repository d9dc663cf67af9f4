"""How the tensors of a scan lie along x, which says their shapes and their batching rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

import torch
from torch import Tensor

from ._operation import Kind, one_by_one

ROWS = Kind("x's shape")
STATE = Kind("x's shape without the scanned dimension; a leading one where sequences are packed")
BROADCAST = Kind("a shape that broadcasts against x")
OFFSETS = Kind("cu_seqlens", differentiable=False)


def normalised(dim: int, rank: int) -> int:
    if not -rank <= dim < rank:
        raise IndexError(f"expected dim in [{-rank}, {rank}) for x of rank {rank}; got {dim}")
    return dim % rank


def state_like(x: Tensor, cu_seqlens: Tensor | None, dim: int) -> Tensor:
    """An empty final state."""
    shape = list(x.shape)
    del shape[normalised(dim, x.dim())]
    if cu_seqlens is not None:
        shape.insert(0, cu_seqlens.shape[0] - 1)
    return x.new_empty(shape, dtype=torch.float64 if x.dtype == torch.float64 else torch.float32)


def batched(kernel: Callable, taken: Sequence[Kind], given: Sequence[Kind]) -> Callable:
    """The batching rule of a scan's kernel whose options start with dim: one more dimension, in front."""
    x_at = max(i for i, kind in enumerate(taken) if kind == ROWS)  # behind cotangents, the one operand so
    offsets_at = taken.index(OFFSETS)

    def rule(info: Any, in_dims: Sequence[Any], *arguments: Any) -> tuple:
        if in_dims[offsets_at] is not None:
            return one_by_one(kernel)(info, in_dims, *arguments)
        rank = arguments[x_at].dim() - (in_dims[x_at] is not None)
        front = {ROWS: 0, BROADCAST: 0, STATE: 0 if arguments[offsets_at] is None else 1}
        broadcast_shape = []

        def with_batch(tensor, dim, kind):
            if tensor is None or kind == OFFSETS:
                return tensor
            if dim is None:
                shape = [*tensor.shape[: front[kind]], info.batch_size, *tensor.shape[front[kind] :]]
                tensor = tensor.unsqueeze(front[kind]).expand(shape)
            else:
                tensor = tensor.movedim(dim, front[kind])
            if kind == BROADCAST:
                broadcast_shape[:] = tensor.shape
                tensor = tensor[(slice(None), *(None,) * (rank + 1 - tensor.dim()))]
            return tensor

        tensors = [with_batch(*each) for each in zip(arguments, in_dims, taken)]
        dim, *options = arguments[len(taken) :]
        results = kernel(*tensors, normalised(dim, rank) + 1, *options)
        wanted = options[-1] if isinstance(options[-1], (list, tuple)) else [True] * len(results)
        kinds = [kind for kind, want in zip(given, wanted) if want]
        results = [
            each.reshape(broadcast_shape) if kind == BROADCAST else each for each, kind in zip(results, kinds)
        ]
        return results, [front[kind] for kind in kinds]

    return rule
