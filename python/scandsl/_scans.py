"""The scans: logcumsumexp, decayed_sum and chunk_cumsum_decay."""

from __future__ import annotations

import torch
from torch import Tensor

from ._operation import Carries, Operation
from ._scan_shapes import BROADCAST, OFFSETS, ROWS, STATE, batched, state_like


def _scan_results(*arguments):
    """The number of results: y, and with return_final_state, which is the last argument, a state."""
    return 1 + arguments[-1]


def _logcumsumexp_results(x, initial_state, cu_seqlens, dim, reverse, exclusive, return_final_state):
    return [torch.empty_like(x), *([state_like(x, cu_seqlens, dim)] if return_final_state else [])]


_LOGCUMSUMEXP = Operation(
    "scandsl",
    "logcumsumexp",
    operands=(ROWS, STATE, OFFSETS),
    outputs=(ROWS, STATE),
    results=_logcumsumexp_results,
    batched=batched,
    leaves_carries=Carries(operand=0, results=_scan_results),
)


def logcumsumexp(
    x: Tensor,
    dim: int = -1,
    *,
    reverse: bool = False,
    exclusive: bool = False,
    initial_state: Tensor | None = None,
    return_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """y_t = log(sum over s <= t of exp(x_s)) along ``dim``.

    Range-safe: a prefix of -inf gives -inf, and from a +inf on y is +inf. Arithmetic and carries are in
    float32 (float64 for float64); y is rounded once.

    Args:
        x: any shape and strides; float32, float64, bfloat16 or float16.
        dim: the dimension to scan.
        reverse: from the last position to the first.
        exclusive: y_t is the sum before t (the initial state at the first position); the final state is
            unaffected.
        initial_state: log of the sum so far, -inf where absent. x's shape without ``dim``, with a leading S
            where S sequences are packed; float32 or x's dtype.
        return_final_state: return (y, state), the state being the sum of all positions in float32 (float64
            for float64), so that a sequence can be fed in pieces.
        cu_seqlens: int32 or int64 [S + 1], boundaries from 0 to x's extent along ``dim``: packed sequences,
            each a scan of its own. An empty one returns its initial state.

    Returns:
        y of x's shape and dtype; with ``return_final_state``, (y, state).

    Raises:
        ValueError: shapes that do not match, tensors on several devices, cu_seqlens that decrease (on the
            CPU).
        TypeError: an unsupported dtype.
        IndexError: ``dim`` out of range.

    Derivatives: first, second and forward mode, by x and initial_state. A position of -inf has gradient 0.
    Source: ops/logcumsumexp.
    """
    results = _LOGCUMSUMEXP.run(x, initial_state, cu_seqlens, dim, reverse, exclusive, return_final_state)
    return tuple(results) if return_final_state else results[0]


def _decayed_sum_results(
    x, decay, initial_state, cu_seqlens, dim, log_decay, reverse, exclusive, return_final_state
):
    return [torch.empty_like(x), *([state_like(x, cu_seqlens, dim)] if return_final_state else [])]


_DECAYED_SUM = Operation(
    "scandsl",
    "decayed_sum",
    operands=(ROWS, BROADCAST, STATE, OFFSETS),
    outputs=(ROWS, STATE),
    results=_decayed_sum_results,
    batched=batched,
    leaves_carries=Carries(operand=1, results=_scan_results),
)


def decayed_sum(
    x: Tensor,
    decay: Tensor,
    dim: int,
    *,
    log_decay: bool = False,
    reverse: bool = False,
    exclusive: bool = False,
    initial_state: Tensor | None = None,
    return_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """h_t = a_t h_{t-1} + x_t along ``dim``; y = h.

    Arithmetic and carries are in float32 (float64 for float64); y is rounded once.

    Args:
        x: any shape and strides; float32, float64, bfloat16 or float16.
        decay: a, of any shape that broadcasts against x (per element, per head, one number); x's dtype or
            float32.
        dim: the dimension to scan.
        log_decay: ``decay`` holds log(a).
        reverse: from the last position to the first.
        exclusive: y_t = h_{t-1}; the final state is unaffected.
        initial_state: h before the first position, 0 where absent. x's shape without ``dim``, with a leading
            S where S sequences are packed; float32 or x's dtype.
        return_final_state: return (y, state), the state being the last h in float32 (float64 for float64), so
            that a sequence can be fed in pieces.
        cu_seqlens: int32 or int64 [S + 1], boundaries from 0 to x's extent along ``dim``: packed sequences,
            each a scan of its own. An empty one returns its initial state.

    Returns:
        y of x's shape and dtype; with ``return_final_state``, (y, state).

    Raises:
        ValueError: shapes that do not match, tensors on several devices, cu_seqlens that decrease (on the
            CPU).
        TypeError: an unsupported dtype.
        IndexError: ``dim`` out of range.

    Derivatives: first, second and forward mode, by x, decay and initial_state. The gradient of a decay that
    repeats is the sum over what it repeats along, in a fixed order.
    Source: ops/decayed_sum.
    """
    results = _DECAYED_SUM.run(
        x, decay, initial_state, cu_seqlens, dim, log_decay, reverse, exclusive, return_final_state
    )
    return tuple(results) if return_final_state else results[0]


def _chunk_cumsum_decay_results(log_decay, cu_seqlens, dim, chunk_size, reverse, exclusive, out_dtype):
    return [torch.empty_like(log_decay, dtype=out_dtype)]


_CHUNK_CUMSUM_DECAY = Operation(
    "scandsl",
    "chunk_cumsum_decay",
    operands=(ROWS, OFFSETS),
    outputs=(ROWS,),
    results=_chunk_cumsum_decay_results,
    batched=batched,
    linear=True,
)


def chunk_cumsum_decay(
    log_decay: Tensor,
    *,
    dim: int = 1,
    chunk_size: int = 128,
    reverse: bool = False,
    exclusive: bool = False,
    cu_seqlens: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """Cumulative sum along ``dim`` that restarts every ``chunk_size`` positions.

    Chunks are counted from position 0 (of the sequence) in both directions; the last one may be short.
    Arithmetic is in float32 (float64 for float64); the result is rounded once.

    Args:
        log_decay: any shape and strides; float32, float64, bfloat16 or float16.
        dim: the dimension to scan.
        chunk_size: positions in a chunk, at least 1.
        reverse: from each chunk's end to its start, added in that order.
        exclusive: the sum before each position: 0 at a chunk's first.
        cu_seqlens: int32 or int64 [S + 1], boundaries from 0 to the extent along ``dim``: packed sequences,
            each with chunks of its own.
        out_dtype: None or log_decay's dtype, or float32.

    Returns:
        The sums: log_decay's shape, ``out_dtype``.

    Raises:
        ValueError: chunk_size below 1, tensors on several devices, cu_seqlens that decrease (on the CPU).
        TypeError: an unsupported dtype.
        IndexError: ``dim`` out of range.

    Derivatives: all; it is linear.
    Source: ops/chunk_cumsum_decay.
    """
    return _CHUNK_CUMSUM_DECAY.run(log_decay, cu_seqlens, dim, chunk_size, reverse, exclusive, out_dtype)[0]
