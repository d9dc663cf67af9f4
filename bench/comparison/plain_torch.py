"""The ops' mathematics in plain torch: what torch runs, what torch.compile compiles, what float64 checks."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from .workloads import CHUNK, Workload

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64}


def inputs_of(work: Workload, device: str, dtype: torch.dtype) -> dict[str, Tensor]:
    """Random inputs, by name. theta is float32, as in a model; float64 beside float64."""
    op, axes = work.case.op, work.axes
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    x = torch.randn(work.shape, device=device, dtype=dtype)
    if op == "decayed_sum":
        shape = work.shape if work.case.name == "element_decay" else [1]
        return {"x": x, "decay": torch.rand(shape, device=device, dtype=dtype) * 0.5 + 0.5}
    if op == "lrpe_cosine":
        return {"x": x, "theta": torch.rand(axes["h"], axes["d"], device=device, dtype=wide)}
    if op == "md_lrpe_cosine":
        features = -(-axes["d"] // work.case.options["dims"])
        return {"x": x, "theta": torch.rand(axes["h"], features, device=device, dtype=wide)}
    if op == "linear_cross_entropy":
        weight = torch.randn(work.n, axes["d"], device=device, dtype=dtype) * axes["d"] ** -0.5
        return {"x": x, "weight": weight, "target": torch.randint(work.n, (axes["tokens"],), device=device)}
    return {"x": x}


def chunk_cumsum(x: Tensor, reverse: bool) -> Tensor:
    chunks = x.unflatten(1, (-1, CHUNK))
    if not reverse:
        return chunks.cumsum(2).flatten(1, 2)
    return chunks.flip(2).cumsum(2).flip(2).flatten(1, 2)


def turned(f: Tensor, angle: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.cat([f * angle.cos(), f * angle.sin()], -1).to(dtype)


def lrpe_cosine(x: Tensor, theta: Tensor, act: str, act_dim: int | None) -> Tensor:
    f = {"none": lambda: x, "silu": lambda: functional.silu(x), "softmax": lambda: x.softmax(act_dim)}[act]()
    position = torch.arange(x.shape[1], device=x.device, dtype=theta.dtype)
    return turned(f, position[:, None, None] * theta, x.dtype)


def md_lrpe_angles(theta: Tensor, features: int, grid: tuple[int, ...], extra_tokens: int) -> Tensor:
    """[h, tokens, features]"""
    each = torch.meshgrid(
        *(torch.arange(size, device=theta.device, dtype=theta.dtype) for size in grid), indexing="ij"
    )
    by_dim = [position.flatten()[:, None] * theta[:, None, :] for position in each]
    angles = torch.cat(by_dim, -1)[..., :features]
    return functional.pad(angles, (0, 0, extra_tokens, 0))


def function(work: Workload):
    """The op of a workload as a function of its inputs by name; None where torch has nothing for it."""
    op, axis, options = work.case.op, work.case.axis, work.case.options
    if op in ("logcumsumexp", "log_add_exp"):
        return lambda x: torch.logcumsumexp(x, axis)
    if op == "plain_sum":
        return lambda x: x.cumsum(axis)
    if op == "decayed_sum":
        return None
    if op == "chunk_cumsum_decay":
        return lambda x: chunk_cumsum(x, options["reverse"])
    if op == "lrpe_cosine":
        return lambda x, theta: lrpe_cosine(x, theta, options["act"], options["act_dim"])
    if op == "md_lrpe_cosine":
        grid, extra = work.grid, options["extra_tokens"]
        return lambda x, theta: turned(x, md_lrpe_angles(theta, x.shape[-1], grid, extra), x.dtype)
    return lambda x, weight, target: functional.cross_entropy(functional.linear(x, weight), target)


def decayed_sum_loop(x: Tensor, decay: Tensor, axis: int) -> Tensor:
    """One step after the other: the reference of a check, too slow to stand for torch."""
    states = []
    for a, step in zip(decay.expand(x.shape).unbind(axis), x.unbind(axis)):
        states.append(a * states[-1] + step if states else step)
    return torch.stack(states, axis)


def decayed_sum_scan(x: Tensor, decay: Tensor, axis: int) -> Tensor:
    """By torch's associative scan, which only runs compiled."""
    from torch._higher_order_ops.associative_scan import associative_scan

    def combine(left, right):
        return left[0] * right[0], left[1] * right[0] + right[1]

    mode = "pointwise" if x.is_cuda else "generic"
    decays = decay.expand(x.shape).contiguous()
    return associative_scan(combine, (decays, x), axis, combine_mode=mode)[1]
