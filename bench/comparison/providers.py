"""Who runs the workloads. Each is imported when it is first asked for; one that cannot serve says why."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import torch
from torch import Tensor

from . import plain_torch
from .workloads import CHUNK, OPS, Workload

Call = Callable[..., Tensor]  # takes a workload's inputs by name


class UnavailableError(Exception):
    """A provider does not serve a workload on this machine; the message says why."""


def module(name: str, package: str):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UnavailableError(f"{package} cannot be imported: {error}") from None


def on_gpu(device: str) -> None:
    if device != "cuda":
        raise UnavailableError("runs on a GPU only")


def scandsl(work: Workload, device: str) -> Call:
    ops = module("scandsl", "scandsl")
    op, axis, options = work.case.op, work.case.axis, work.case.options
    if op == "logcumsumexp":
        return lambda x: ops.logcumsumexp(x, axis)
    if op == "decayed_sum":
        return lambda x, decay: ops.decayed_sum(x, decay, axis)
    if op == "chunk_cumsum_decay":
        return lambda x: ops.chunk_cumsum_decay(x, dim=1, chunk_size=CHUNK, reverse=options["reverse"])
    if op == "lrpe_cosine":
        act, dim = options["act"], options["act_dim"]
        return lambda x, theta: ops.lrpe_cosine(x, theta, act=act, act_dim=dim)
    if op == "md_lrpe_cosine":
        grid, extra = work.grid, options["extra_tokens"]
        return lambda x, theta: ops.md_lrpe_cosine(x, theta, grid, extra_tokens=extra)
    return ops.linear_cross_entropy


def scandsl_angles(work: Workload, device: str) -> Call:
    if work.case.op != "md_lrpe_cosine":
        raise UnavailableError("only md_lrpe_cosine takes a table of angles")
    ops = module("scandsl", "scandsl")
    grid, extra = work.grid, work.case.options["extra_tokens"]
    tables: dict[int, Tensor] = {}  # made once, as a model would for all its layers

    def call(x: Tensor, theta: Tensor) -> Tensor:
        if theta.data_ptr() not in tables:
            tables[theta.data_ptr()] = ops.md_lrpe_angles(theta, grid, extra_tokens=extra)
        return ops.md_lrpe_cosine(x, None, grid, extra_tokens=extra, angles=tables[theta.data_ptr()])

    return call


def eager(work: Workload, device: str) -> Call:
    return plain_torch.function(work)


def compiled(work: Workload, device: str) -> Call:
    torch.compiler.reset()  # else many shapes reach the limit of recompilations and run eagerly
    torch._functorch.config.donated_buffer = False  # a backward is timed again and again on one graph
    function = plain_torch.function(work)
    if function is None:
        axis = work.case.axis

        def function(x: Tensor, decay: Tensor) -> Tensor:
            return plain_torch.decayed_sum_scan(x, decay, axis)

    return torch.compile(function, dynamic=False)


def triton(work: Workload, device: str) -> Call:
    on_gpu(device)
    module("triton", "triton")
    from . import triton_kernels as kernels

    op, axis, options = work.case.op, work.case.axis, work.case.options
    if op == "logcumsumexp":
        return lambda x: kernels.LogCumSumExp.apply(x, axis)
    if op == "chunk_cumsum_decay":
        return lambda x: kernels.chunked_sum(x, options["reverse"])
    if work.case.differentiable == ("x",):
        if op == "lrpe_cosine" and work.case.name != "softmax_sequence":
            return lambda x, theta: kernels.Encoding.apply(x, theta, options["act"], None, 0)
        if op == "md_lrpe_cosine":
            return lambda x, theta: kernels.Encoding.apply(
                x, theta, "none", work.grid, options["extra_tokens"]
            )
    raise UnavailableError("no Triton kernel was written for this here")


def fla(work: Workload, device: str) -> Call:
    on_gpu(device)
    op = work.case.op
    if op == "chunk_cumsum_decay":
        sums = module("fla.ops.utils.cumsum", "flash-linear-attention").chunk_local_cumsum
        reverse = work.case.options["reverse"]

        def call(x: Tensor) -> Tensor:
            scalars = x.squeeze(-1) if x.shape[-1] == 1 else x
            return sums(scalars, CHUNK, reverse=reverse, output_dtype=x.dtype).view_as(x)

        return call
    if op == "linear_cross_entropy":
        name = "fla.modules.fused_linear_cross_entropy"
        loss = module(name, "flash-linear-attention").FusedLinearCrossEntropyLoss()
        return lambda x, weight, target: loss(x, target, weight)
    raise UnavailableError("flash-linear-attention has no such op")


def liger(work: Workload, device: str) -> Call:
    on_gpu(device)
    only_losses(work, "liger-kernel")
    loss = module("liger_kernel.transformers", "liger-kernel").LigerFusedLinearCrossEntropyLoss()
    return lambda x, weight, target: loss(weight, x, target)


def cut_cross_entropy(work: Workload, device: str) -> Call:
    on_gpu(device)
    only_losses(work, "cut-cross-entropy")
    return cut_call(module("cut_cross_entropy", "cut-cross-entropy").linear_cross_entropy)


def cut_call(loss: Call) -> Call:
    return lambda x, weight, target: loss(x, weight, target, impl="cce")


def quack(chunk_size: int) -> Callable[[Workload, str], Call]:
    """chunk_size: tokens; one that equals the features is refused."""

    def provider(work: Workload, device: str) -> Call:
        on_gpu(device)
        only_losses(work, "quack-kernels")
        loss = module("quack.linear_cross_entropy", "quack-kernels").chunked_linear_cross_entropy
        return lambda x, weight, target: loss(x, weight, target, chunk_size=chunk_size)

    return provider


def only_losses(work: Workload, package: str) -> None:
    if work.case.op != "linear_cross_entropy":
        raise UnavailableError(f"{package} has no such op")


PROVIDERS: dict[str, Callable[[Workload, str], Call]] = {
    "scandsl": scandsl,
    "scandsl_angles": scandsl_angles,
    "torch": eager,
    "triton": triton,
    "fla": fla,
    "liger": liger,
    "cut_cross_entropy": cut_cross_entropy,
    "quack_2048": quack(2048),
    "quack_6144": quack(6144),
    "torch_compile": compiled,
}
# Those whose first call takes seconds to minutes.
SLOW_TO_START = ("cut_cross_entropy", "quack_2048", "quack_6144", "torch_compile")
# What each can run at all, so that a result has no rows for the rest.
SERVES = {
    "torch": (*(op for op in OPS if op != "decayed_sum"), "plain_sum", "log_add_exp"),
    "scandsl_angles": ("md_lrpe_cosine",),
    "triton": ("logcumsumexp", "chunk_cumsum_decay", "lrpe_cosine", "md_lrpe_cosine"),
    "fla": ("chunk_cumsum_decay", "linear_cross_entropy"),
    "liger": ("linear_cross_entropy",),
    "cut_cross_entropy": ("linear_cross_entropy",),
    "quack_2048": ("linear_cross_entropy",),
    "quack_6144": ("linear_cross_entropy",),
}


def serves(provider: str, op: str) -> bool:
    return provider not in SERVES or op in SERVES[provider]
