"""Second derivatives and forward mode of the positional encodings, in torch's own operations.

With f = act(x), an angle a = p theta, c = cos a and s = sin a, the encoding is (f c, f s). For a cotangent
(w_c, w_s) let A = w_c c + w_s s and B = w_s c - w_c s, so that B is A's derivative by a, and -A that of B.
The backward pass gives b_x = f'^T A and b_theta = sum p f B. Along tangents v of x and q of a, those are

    tangent of the encoding: (f'v c - f s q, f'v s + f c q)
    gradient of <A, f'v> + <f B, q> by x: f''[A, v] + f'^T (B q); by theta: sum p (B f'v - f A q)

f' is symmetric for every activation here. All is in float32 (float64 for float64) and rounded once.
"""

from __future__ import annotations

from typing import Callable, NamedTuple

import torch
from torch import Tensor


class Activated(NamedTuple):
    """f = act(x), v -> f'v, and (u, v) -> the gradient of <u, f'v> by x."""

    value: Tensor
    slope: Callable[[Tensor], Tensor]
    curve: Callable[[Tensor, Tensor], Tensor | None]


def _none(x: Tensor, dim: int) -> Activated:
    return Activated(x, lambda v: v, lambda u, v: None)


def _relu(x: Tensor, dim: int) -> Activated:
    return Activated(x.relu(), lambda v: torch.where(x > 0, v, 0), lambda u, v: None)


def _sigmoid(x: Tensor, dim: int) -> Activated:
    f = x.sigmoid()
    first = f * (1 - f)
    return Activated(f, lambda v: first * v, lambda u, v: first * (1 - 2 * f) * u * v)


def _silu(x: Tensor, dim: int) -> Activated:
    p = x.sigmoid()
    first, second = p * (1 + x * (1 - p)), p * (1 - p) * (2 + x * (1 - 2 * p))
    return Activated(x * p, lambda v: first * v, lambda u, v: second * u * v)


def _softmax(x: Tensor, dim: int) -> Activated:
    f = x.softmax(dim)

    def centred(v: Tensor) -> Tensor:
        return v - (f * v).sum(dim, keepdim=True)

    return Activated(f, lambda v: f * centred(v), lambda u, v: f * centred(centred(u) * centred(v)))


ACTIVATIONS = {"none": _none, "relu": _relu, "sigmoid": _sigmoid, "silu": _silu, "softmax": _softmax}


class Angles(NamedTuple):
    """The angles of one call.

    turned: the encoding of ones, cosines and behind them sines, which broadcasts against that of x.
    position: the angles' derivatives by theta, which broadcast against x.
    spread, gathered: from something of theta's shape to what broadcasts against x, and back, by sums.
    """

    turned: Tensor
    position: Tensor
    spread: Callable[[Tensor], Tensor]
    gathered: Callable[[Tensor], Tensor]


def wide_dtype(x: Tensor) -> torch.dtype:
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def second(
    x: Tensor,
    theta: Tensor | None,
    act: Activated,
    angles: Angles,
    along_x: Tensor | None,
    along_theta: Tensor | None,
    cotangent: Tensor | None,
    wanted: list[bool],
) -> list[Tensor]:
    """Those of the encoding's tangent and the gradients by x and theta that are wanted."""
    wide = wide_dtype(x)
    cos, sin = angles.turned.chunk(2, -1)
    zero = x.new_zeros((), dtype=wide)
    tangent = act.slope(along_x.to(wide)) if along_x is not None else zero
    turn = zero if along_theta is None else angles.position * angles.spread(along_theta.to(wide))
    results = []
    if wanted[0]:
        turned = act.value * turn
        parts = (tangent * cos - turned * sin, tangent * sin + turned * cos)
        results.append(torch.cat([part.expand(x.shape) for part in parts], -1).to(x.dtype))
    if not any(wanted[1:]):
        return results
    if cotangent is None:
        return [*results, *(torch.zeros_like(each) for each, want in zip((x, theta), wanted[1:]) if want)]
    of_cos, of_sin = cotangent.to(wide).chunk(2, -1)
    along, across = of_cos * cos + of_sin * sin, of_sin * cos - of_cos * sin
    if wanted[1]:
        gradient = act.slope((across * turn).expand(x.shape))
        curved = None if along_x is None else act.curve(along, along_x.to(wide))
        results.append(_like(x, gradient if curved is None else gradient + curved))
    if wanted[2]:
        each = angles.position * (across * tangent - act.value * along * turn)
        results.append(_like(theta, angles.gathered(each)))
    return results


def _like(operand: Tensor, value: Tensor) -> Tensor:
    return torch.empty_like(operand).copy_(value)
