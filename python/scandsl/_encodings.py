"""The positional encodings: lrpe_cosine and md_lrpe_cosine."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ._library import explained
from ._operation import INTEGERS, TENSOR, Kind, Operation
from ._second_encodings import ACTIVATIONS, Angles, second, wide_dtype

# Second derivatives are composed from torch's operations, so that their kernels are defined here.
_LIBRARY = torch.library.Library("scandsl", "FRAGMENT")


def _encoded(x, *_):
    return [x.new_empty([*x.shape[:-1], 2 * x.shape[-1]])]


def _lrpe_cosine_second(along_x, along_theta, cotangent, x, theta, positions, offset, act, act_dim, wanted):
    wide = wide_dtype(x)
    _, length, heads, features = x.shape
    samples = positions.shape[0] if positions is not None and positions.dim() == 2 else 1
    ones = x.new_ones((), dtype=wide).expand(samples, length, heads, features)
    angle = theta if theta.dtype == wide else theta.float()
    (turned,) = torch.ops.scandsl.lrpe_cosine(ones, angle, positions, offset, 0, -1)
    if positions is None:
        positions = torch.arange(length, device=x.device) + offset
    position = positions.reshape(-1, length, 1, 1).to(wide)
    angles = Angles(turned, position, lambda v: v, lambda each: each.sum_to_size(theta.shape))
    activated = list(ACTIVATIONS.values())[act](x.to(wide), act_dim)
    return second(x, theta, activated, angles, along_x, along_theta, cotangent, wanted)


_LIBRARY.define(
    "lrpe_cosine_double_backward(Tensor? x_gradient_cotangent, Tensor? theta_gradient_cotangent, "
    "Tensor? y_cotangent, Tensor x, Tensor theta, Tensor? positions, SymInt offset, int act, int act_dim, "
    "bool[] wanted) -> Tensor[]"
)
for _device in ("CPU", "CUDA"):
    _LIBRARY.impl("lrpe_cosine_double_backward", _lrpe_cosine_second, _device)
_LRPE_COSINE = Operation(
    "scandsl", "lrpe_cosine", operands=(TENSOR, TENSOR, INTEGERS), outputs=(TENSOR,), results=_encoded
)


def lrpe_cosine(
    x: Tensor,
    theta: Tensor,
    *,
    offset: int = 0,
    positions: Tensor | None = None,
    act: str = "none",
    act_dim: int | None = None,
) -> Tensor:
    """Linearised relative positional encoding: f cos(angle), and behind it f sin(angle).

    f = act(x) and angle = (offset + position) * theta; the two stand one behind the other along the last
    dimension. The product is exact: cosines and sines are within 2e-6 of their values. Arithmetic is in
    float32 (float64 for float64); the result is rounded once.

    Args:
        x: [b, n, h, d], any strides; float32, float64, bfloat16 or float16.
        theta: [h, d], [h, 1] or [1, d]; float32 or x's dtype.
        offset: the position of the first token.
        positions: int32 or int64 [n] or [b, n], in place of offset + index.
        act: "none", "relu", "sigmoid", "silu" or "softmax".
        act_dim: the dimension of softmax: -1, the features (also where it is left out), or 1, the sequence.

    Returns:
        [b, n, h, 2 d], of x's dtype.

    Raises:
        ValueError: shapes that do not match, tensors on several devices, an unknown act, an offset beyond
            2^31 where x is not float64.
        TypeError: an unsupported dtype.
        IndexError: ``act_dim`` of softmax that is neither.

    Derivatives: first, second and forward mode, by x and theta. The first are one fused kernel. The others
    are composed from torch's operations and take memory of a few times the result.
    Source: ops/lrpe_cosine.
    """
    if act not in ACTIVATIONS:
        raise ValueError(f"expected {', '.join(ACTIVATIONS)} for act; got {act!r}")
    number = list(ACTIVATIONS).index(act)
    return _LRPE_COSINE.run(x, theta, positions, offset, number, -1 if act_dim is None else act_dim)[0]


def _md_lrpe_cosine_second(along_x, along_theta, cotangent, x, theta, angles, shape, extra_tokens, wanted):
    wide = wide_dtype(x)
    _, heads, tokens, features = x.shape
    dims = len(shape)
    ones = x.new_ones((), dtype=wide).expand(1, heads, tokens, features)
    angle, table = (each if each is None or each.dtype == wide else each.float() for each in (theta, angles))
    (turned,) = torch.ops.scandsl.md_lrpe_cosine(ones, angle, table, shape, extra_tokens)
    per_dim = -(-features // dims)
    feature = torch.arange(features, device=x.device)
    sizes, strides = ([*each] for each in (shape, [math.prod(shape[i + 1 :]) for i in range(dims)]))
    token = torch.arange(tokens - extra_tokens, device=x.device)
    grid = torch.stack([token // max(stride, 1) % max(size, 1) for size, stride in zip(sizes, strides)], -1)
    grid = torch.cat([grid.new_zeros(extra_tokens, dims), grid])
    position = grid[:, feature // max(per_dim, 1)].to(wide)

    def spread(along):
        return along[:, None, feature % max(per_dim, 1)]

    def gathered(each):
        padded = torch.nn.functional.pad(each.sum((0, 2)), (0, dims * per_dim - features))
        return padded.reshape(heads, dims, per_dim).sum(1)

    activated = ACTIVATIONS["none"](x.to(wide), -1)
    encoding = Angles(turned, position, spread, gathered)
    return second(x, theta, activated, encoding, along_x, along_theta, cotangent, wanted)


_LIBRARY.define(
    "md_lrpe_cosine_double_backward(Tensor? x_gradient_cotangent, Tensor? theta_gradient_cotangent, "
    "Tensor? y_cotangent, Tensor x, Tensor? theta, Tensor? angles, SymInt[] shape, SymInt extra_tokens, "
    "bool[] wanted) -> Tensor[]"
)
for _device in ("CPU", "CUDA"):
    _LIBRARY.impl("md_lrpe_cosine_double_backward", _md_lrpe_cosine_second, _device)
_MD_LRPE_COSINE = Operation(
    "scandsl",
    "md_lrpe_cosine",
    operands=(TENSOR, TENSOR, Kind("angles", differentiable=False)),
    outputs=(TENSOR,),
    results=_encoded,
)


def md_lrpe_cosine(
    x: Tensor,
    theta: Tensor | None,
    shape: Sequence[int],
    *,
    extra_tokens: int = 0,
    angles: Tensor | None = None,
) -> Tensor:
    """lrpe_cosine of tokens on a grid of any number m of dimensions, up to 16.

    Feature j has position number j // e along the grid, e = ceil(d / m), and the angle of that position and
    theta[:, j % e]. The first ``extra_tokens`` tokens have angle 0: they become x and zeros.

    Args:
        x: [b, h, extra_tokens + the product of ``shape``, d], tokens row-major (the last size fastest), any
            strides; float32, float64, bfloat16 or float16.
        theta: [h, e]; float32 or x's dtype. None beside ``angles``.
        shape: the grid's sizes.
        extra_tokens: how many tokens come before the grid's.
        angles: what md_lrpe_angles gave for the same shape and extra_tokens. Then theta is not looked at and
            has no gradient; nor have the angles.

    Returns:
        [b, h, tokens, 2 d], of x's dtype.

    Raises:
        ValueError: shapes that do not match, tensors on several devices, a negative extra_tokens.
        TypeError: an unsupported dtype.

    Derivatives: first, second and forward mode, by x and theta. The first are one fused kernel. The others
    are composed from torch's operations and take memory of a few times the result.
    Source: ops/md_lrpe_cosine.
    """
    if angles is not None:
        theta = None
        if isinstance(x, Tensor) and isinstance(angles, Tensor) and x.dim() == 4 and angles.dim() == 3:
            angles = _for_features(angles, x.shape[-1], len(shape))
    return _MD_LRPE_COSINE.run(x, theta, angles, shape, extra_tokens)[0]


def _for_features(angles: Tensor, features: int, dims: int) -> Tensor:
    """A table is made for as many features as the dimensions can share evenly; x may have fewer."""
    made_for = dims * -(-features // dims) if dims else features
    return angles[..., :features] if angles.shape[-1] == made_for else angles


@torch.library.register_fake("scandsl::md_lrpe_angles", lib=_LIBRARY)
def _angles_like(theta, shape, extra_tokens):
    return theta.new_empty([theta.shape[0], extra_tokens + math.prod(shape), theta.shape[1] * len(shape)])


def _batched_angles(info, in_dims, theta, shape, extra_tokens):
    """Samples are further heads."""
    theta = theta.movedim(in_dims[0], 0)
    angles = torch.ops.scandsl.md_lrpe_angles(theta.flatten(0, 1), shape, extra_tokens)
    return angles.unflatten(0, theta.shape[:2]), 0


torch.library.register_vmap("scandsl::md_lrpe_angles", _batched_angles, lib=_LIBRARY)


def md_lrpe_angles(theta: Tensor, shape: Sequence[int], *, extra_tokens: int = 0) -> Tensor:
    """The angles of md_lrpe_cosine, which takes them as ``angles``: computed once, used by every layer.

    Args:
        theta: [h, e].
        shape, extra_tokens: as in md_lrpe_cosine.

    Returns:
        [h, extra_tokens + the product of ``shape``, m e] for a grid of m sizes: the exact product of position
        and theta, reduced to [-pi, pi], in float32 (float64 for float64). It has no gradient. md_lrpe_cosine
        takes as many of its features as x has.

    Raises:
        ValueError, TypeError: as md_lrpe_cosine.

    Source: ops/md_lrpe_cosine.
    """
    try:
        if isinstance(theta, Tensor):
            theta = theta.detach()
            if theta.dtype in (torch.bfloat16, torch.float16):
                theta = theta.float()
        return torch.ops.scandsl.md_lrpe_angles(theta, shape, extra_tokens)
    except (RuntimeError, NotImplementedError) as error:
        raise explained(error) from None
