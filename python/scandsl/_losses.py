"""linear_cross_entropy, the last layer of a language model and its loss.

Three ways to its gradients, all in C++. Where the loss is one number, forward goes on to the gradient of the
logits, which saves a product with the weights. That of the last chunk is kept, and backward takes the
products with it, in which how much the loss counts is a factor; of chunks before it forward takes the
products, to which backward adds. Where the weight's gradient is summed in a wider type nothing is kept, and
backward multiplies what forward made. Everything else (one loss a token, a gradient of lse, torch.compile,
torch.func) takes the Operation, whose backward computes the logits again.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._library import explained
from ._operation import INTEGERS, TENSOR, Kind, Operation, traced_or_transformed

_REDUCTIONS = ("none", "mean", "sum")  # numbers of loss_reduction
_CLASS_WEIGHT = Kind("class_weight", differentiable=False)


def _losses(x, weight, target, bias, class_weight, *options):
    reduction, return_lse = options[4], options[6]
    sums = torch.float64 if x.dtype == torch.float64 else torch.float32
    loss = x.new_empty(x.shape[:-1] if _REDUCTIONS[reduction] == "none" else [], dtype=sums)
    return [loss, *([x.new_empty(x.shape[:-1], dtype=sums)] if return_lse else [])]


def _no_second_derivative(*_: Any) -> None:
    raise NotImplementedError(
        "linear_cross_entropy has first derivatives only: no double backward and no forward mode"
    )


def _operation() -> Operation | None:
    """None where the library was built without the op."""
    if not hasattr(torch.ops.scandsl, "linear_cross_entropy"):
        return None
    _LIBRARY.define(
        "linear_cross_entropy_double_backward(Tensor? x_gradient_cotangent, "
        "Tensor? weight_gradient_cotangent, Tensor? bias_gradient_cotangent, "
        "Tensor? loss_cotangent, Tensor? lse_cotangent, Tensor x, Tensor weight, Tensor target, "
        "Tensor? bias, Tensor? class_weight, int ignore_index, float label_smoothing, "
        "float z_loss, float? softcap, int reduction, ScalarType? accumulate, "
        "bool return_lse, bool[] wanted) -> Tensor[]"
    )
    for device in ("CPU", "CUDA"):
        _LIBRARY.impl("linear_cross_entropy_double_backward", _no_second_derivative, device)
    return Operation(
        "scandsl",
        "linear_cross_entropy",
        operands=(TENSOR, TENSOR, INTEGERS, TENSOR, _CLASS_WEIGHT),
        outputs=(TENSOR, TENSOR),
        results=_losses,
    )


def _with_gradients_like(x, weight, target, bias, *rest):
    *options, leave_pending, wanted = rest
    losses = _losses(x, weight, target, bias, *options)
    pending = [losses[0].new_empty([])] if leave_pending else []
    return [
        *losses,
        *pending,
        *(torch.empty_like(each) for each, want in zip((x, weight, bias), wanted) if want),
    ]


def _with_logits_gradient_like(x, weight, target, bias, *rest):
    *options, logits_gradient, wanted = rest
    losses = _losses(x, weight, target, bias, *options)
    in_chunks = logits_gradient.shape[0] < target.numel()
    earlier = [torch.empty_like(each) for each, want in zip((x, weight, bias), wanted) if want and in_chunks]
    return [*losses, losses[0].new_empty([]), *earlier]


def _products_like(x, weight, bias, logits_gradient, factor, pending, wanted):
    return [torch.empty_like(each) for each, want in zip((x, weight, bias), wanted) if want]


_LIBRARY = torch.library.Library("scandsl", "FRAGMENT")
_LINEAR_CROSS_ENTROPY = _operation()
if _LINEAR_CROSS_ENTROPY is not None:
    _NAME = "scandsl::linear_cross_entropy"
    torch.library.register_fake(f"{_NAME}_with_gradients", _with_gradients_like, lib=_LIBRARY)
    torch.library.register_fake(f"{_NAME}_scale", lambda *_: None, lib=_LIBRARY)
    # How much memory a chunk may have is not known without a device: nothing is kept.
    torch.library.register_fake(f"{_NAME}_kept_shape", lambda *_: [], lib=_LIBRARY)
    torch.library.register_fake(f"{_NAME}_with_logits_gradient", _with_logits_gradient_like, lib=_LIBRARY)
    torch.library.register_fake(f"{_NAME}_products", _products_like, lib=_LIBRARY)
    torch.library.register_fake(f"{_NAME}_complete", lambda *_: None, lib=_LIBRARY)


class _WithGradients(torch.autograd.Function):
    """The loss, with what backward needs of its gradients: that of the logits; that of the last chunk's
    logits and what the other chunks make of all others; or all others."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        operands, ctx.options = _LINEAR_CROSS_ENTROPY.operands_of(arguments)
        ctx.wanted = _LINEAR_CROSS_ENTROPY.of_differentiable(ctx.needs_input_grad)
        ctx.gradients = ctx.pending = ctx.last_chunk = None
        ops, results, kept = torch.ops.scandsl, 1 + ctx.options[-1], ()
        shape = ops.linear_cross_entropy_kept_shape(*arguments, ctx.wanted)
        if shape:
            logits_gradient = operands[0].new_empty(shape)
            computed = ops.linear_cross_entropy_with_logits_gradient(*arguments, logits_gradient, ctx.wanted)
            kept = (logits_gradient, computed[results])
            if shape[0] < operands[2].numel():
                # Not saved: recomputed with other free memory the chunks might be others.
                ctx.gradients, ctx.last_chunk, kept = computed[results + 1 :], kept, ()
        else:
            # float16 cannot hold a gradient that is divided by the number of tokens before it is scaled.
            pending = operands[0].dtype == torch.float16
            computed = ops.linear_cross_entropy_with_gradients(*arguments, pending, ctx.wanted)
            ctx.pending = computed[results] if pending else None
            ctx.gradients = computed[results + pending :]
        ctx.save_for_backward(*operands, *kept)
        return tuple(computed[:results])

    @staticmethod
    def backward(ctx: Any, loss_cotangent: Tensor | None, lse_cotangent: Tensor | None = None) -> tuple:
        op, ops = _LINEAR_CROSS_ENTROPY, torch.ops.scandsl
        gradients, last_chunk, ctx.gradients, ctx.last_chunk = ctx.gradients, ctx.last_chunk, None, None
        if loss_cotangent is None and lse_cotangent is None:
            return (None,) * len(ctx.needs_input_grad)
        is_factor = lse_cotangent is None and not torch.is_grad_enabled()
        operands, kept = op.operands_of(ctx.saved_tensors)
        x, weight, _, bias, _ = operands
        if is_factor and last_chunk is not None:
            logits_gradient, pending = last_chunk
            ops.linear_cross_entropy_complete(
                x, weight, logits_gradient, loss_cotangent, pending, gradients, ctx.wanted
            )
        elif is_factor and gradients is not None:
            ops.linear_cross_entropy_scale(gradients, loss_cotangent, ctx.pending)
        elif is_factor and kept:
            logits_gradient, pending = kept
            gradients = ops.linear_cross_entropy_products(
                x, weight, bias, logits_gradient, loss_cotangent, pending, ctx.wanted
            )
        else:
            cotangents = (loss_cotangent, lse_cotangent)
            gradients = op.backward.run(*cotangents, *operands, *ctx.options, ctx.wanted)
        rest = iter(gradients)
        by = [next(rest) if want else None for want in ctx.wanted]
        return (*op.per_operand(by), *(None for _ in ctx.options))


def _loss_of(*arguments: Any) -> list[Tensor] | tuple[Tensor, ...]:
    """The op's results, by the shorter of the two ways that serves."""
    op = _LINEAR_CROSS_ENTROPY
    operands, options = op.operands_of(arguments)
    differentiable = [each for each in op.of_differentiable(operands) if isinstance(each, Tensor)]
    if (
        traced_or_transformed()
        or _REDUCTIONS[options[4]] == "none"
        or not isinstance(operands[0], Tensor)
        or not torch.is_grad_enabled()
        or not any(each.requires_grad for each in differentiable)
    ):
        return op.run(*arguments)
    try:
        return _WithGradients.apply(*arguments)
    except (RuntimeError, NotImplementedError) as error:
        raise explained(error) from None


def linear_cross_entropy(
    x: Tensor,
    weight: Tensor,
    target: Tensor,
    bias: Tensor | None = None,
    *,
    class_weight: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    softcap: float | None = None,
    reduction: str = "mean",
    return_lse: bool = False,
    accumulate: str | torch.dtype = "auto",
) -> Tensor | tuple[Tensor, Tensor]:
    """Cross entropy of the logits x weight^T + bias, which never exist all at once.

    The logits z of a chunk of tokens at a time are computed in x's dtype, and c tanh(z / c) of them with a
    softcap c. The loss is torch's cross_entropy of them, in float32 (float64 for float64).

    Args:
        x: [..., D], any strides; float32, float64, bfloat16 or float16. Under autocast it is cast, and so are
            weight and bias.
        weight: [V, D], of x's dtype.
        target: int32 or int64, x's shape without D.
        bias: [V], of x's dtype.
        class_weight: float32 [V]; has no gradient.
        ignore_index: tokens with this target do not count.
        label_smoothing: in [0, 1], the share of the target that is spread over all classes.
        z_loss: adds z_loss lse^2 to the loss of each token that counts, not class-weighted.
        softcap: c > 0; None is none.
        reduction: "mean" over the sum of the class weights of the tokens that count, "sum" or "none".
        return_lse: return (loss, lse) with the log-sum-exp of each token's logits, which is differentiable.
        accumulate: dtype of the weight's gradient while chunks add to it: torch.float32, the weight's, or
            "auto".

    Returns:
        The loss in float32 (float64 for float64): one number, or target's shape without a reduction; with
        ``return_lse`` (loss, lse).

    Raises:
        ValueError: shapes that do not match, tensors on several devices, options out of range, targets that
            are no class (on the CPU; on the GPU the loss of such a token is NaN).
        TypeError: an unsupported dtype.
        RuntimeError: the library was built without OpenBLAS, and so without this op.

    Derivatives: the first, by x, weight and bias. Double backward and forward mode raise
    NotImplementedError.
    Source: ops/linear_cross_entropy.
    """
    if _LINEAR_CROSS_ENTROPY is None:
        raise RuntimeError(
            "scandsl was built without OpenBLAS, which linear_cross_entropy needs; install it "
            "(pip install scipy-openblas32) and build scandsl again"
        )
    if reduction not in _REDUCTIONS:
        raise ValueError(f"expected none, mean or sum for reduction; got {reduction!r}")
    if isinstance(accumulate, str) and accumulate != "auto":
        raise ValueError(f'expected "auto" or a dtype for accumulate; got {accumulate!r}')
    device = x.device.type if isinstance(x, Tensor) else "meta"
    if device != "meta" and torch.is_autocast_enabled(device):
        x, weight, bias = (_autocast(each, torch.get_autocast_dtype(device)) for each in (x, weight, bias))
    results = _loss_of(
        x,
        weight,
        target,
        bias,
        class_weight,
        ignore_index,
        label_smoothing,
        z_loss,
        softcap,
        _REDUCTIONS.index(reduction),
        None if accumulate == "auto" else accumulate,
        return_lse,
    )
    return tuple(results) if return_lse else results[0]


def _autocast(tensor: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """As torch's own ops: float64 stays."""
    if not isinstance(tensor, Tensor) or not tensor.is_floating_point() or tensor.dtype == torch.float64:
        return tensor
    return tensor.to(dtype)
