"""Layer forms of the ops."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ._encodings import lrpe_cosine, md_lrpe_cosine
from ._losses import linear_cross_entropy
from ._scans import decayed_sum, logcumsumexp


class LogCumSumExp(nn.Module):
    """scandsl.logcumsumexp along ``dim``."""

    def __init__(self, dim: int = -1, *, reverse: bool = False, exclusive: bool = False) -> None:
        super().__init__()
        self.dim, self.reverse, self.exclusive = dim, reverse, exclusive

    def forward(
        self,
        x: Tensor,
        *,
        initial_state: Tensor | None = None,
        return_final_state: bool = False,
        cu_seqlens: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        return logcumsumexp(
            x,
            self.dim,
            reverse=self.reverse,
            exclusive=self.exclusive,
            initial_state=initial_state,
            return_final_state=return_final_state,
            cu_seqlens=cu_seqlens,
        )

    def extra_repr(self) -> str:
        return f"dim={self.dim}, reverse={self.reverse}, exclusive={self.exclusive}"


class DecayedSum(nn.Module):
    """scandsl.decayed_sum along ``dim``, of an input and its decays."""

    def __init__(
        self, dim: int, *, log_decay: bool = False, reverse: bool = False, exclusive: bool = False
    ) -> None:
        super().__init__()
        self.dim, self.log_decay, self.reverse, self.exclusive = dim, log_decay, reverse, exclusive

    def forward(
        self,
        x: Tensor,
        decay: Tensor,
        *,
        initial_state: Tensor | None = None,
        return_final_state: bool = False,
        cu_seqlens: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        return decayed_sum(
            x,
            decay,
            self.dim,
            log_decay=self.log_decay,
            reverse=self.reverse,
            exclusive=self.exclusive,
            initial_state=initial_state,
            return_final_state=return_final_state,
            cu_seqlens=cu_seqlens,
        )

    def extra_repr(self) -> str:
        return (
            f"dim={self.dim}, log_decay={self.log_decay}, reverse={self.reverse}, exclusive={self.exclusive}"
        )


class LrpeCosine(nn.Module):
    """scandsl.lrpe_cosine of an input and its theta."""

    def __init__(self, *, act: str = "none", act_dim: int | None = None) -> None:
        super().__init__()
        self.act, self.act_dim = act, act_dim

    def forward(
        self, x: Tensor, theta: Tensor, *, offset: int = 0, positions: Tensor | None = None
    ) -> Tensor:
        return lrpe_cosine(x, theta, offset=offset, positions=positions, act=self.act, act_dim=self.act_dim)

    def extra_repr(self) -> str:
        return f"act={self.act!r}, act_dim={self.act_dim}"


class MdLrpeCosine(nn.Module):
    """scandsl.md_lrpe_cosine on a grid of ``shape``, of an input and its theta."""

    def __init__(self, shape: Sequence[int], *, extra_tokens: int = 0) -> None:
        super().__init__()
        self.shape, self.extra_tokens = tuple(shape), extra_tokens

    def forward(self, x: Tensor, theta: Tensor | None, *, angles: Tensor | None = None) -> Tensor:
        return md_lrpe_cosine(x, theta, self.shape, extra_tokens=self.extra_tokens, angles=angles)

    def extra_repr(self) -> str:
        return f"shape={self.shape}, extra_tokens={self.extra_tokens}"


class LinearCrossEntropyLoss(nn.Module):
    """scandsl.linear_cross_entropy of an input, the weight and bias of the last layer, and targets."""

    def __init__(
        self,
        *,
        class_weight: Tensor | None = None,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        z_loss: float = 0.0,
        softcap: float | None = None,
        reduction: str = "mean",
        return_lse: bool = False,
        accumulate: str | torch.dtype = "auto",
    ) -> None:
        super().__init__()
        self.register_buffer("class_weight", class_weight)
        self.ignore_index, self.label_smoothing, self.z_loss = ignore_index, label_smoothing, z_loss
        self.softcap, self.reduction = softcap, reduction
        self.return_lse, self.accumulate = return_lse, accumulate

    def forward(
        self, x: Tensor, weight: Tensor, target: Tensor, bias: Tensor | None = None
    ) -> Tensor | tuple[Tensor, Tensor]:
        return linear_cross_entropy(
            x,
            weight,
            target,
            bias,
            class_weight=self.class_weight,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            z_loss=self.z_loss,
            softcap=self.softcap,
            reduction=self.reduction,
            return_lse=self.return_lse,
            accumulate=self.accumulate,
        )

    def extra_repr(self) -> str:
        return (
            f"ignore_index={self.ignore_index}, label_smoothing={self.label_smoothing}, "
            f"z_loss={self.z_loss}, softcap={self.softcap}, reduction={self.reduction!r}"
        )
