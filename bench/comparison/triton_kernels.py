"""The ops as a user of Triton would write them: tl.associative_scan and tl.cumsum over tiles, with a carry.

They stand in for the kernels of the publication. A tile is [lanes, steps]; a lane is everything of x but the
scanned axis, and its stride tells rows from columns.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from .workloads import CHUNK


@triton.jit
def combine_exponentials(m, s, k, t):
    """(maximum, sum of exponentials below it) of two stretches."""
    both = tl.maximum(m, k)
    left = tl.where(m == both, 1.0, tl.exp(m - both))
    right = tl.where(k == both, 1.0, tl.exp(k - both))
    return both, s * left + t * right


@triton.jit
def combine_decays(a, h, b, g):
    return a * b, h * b + g


@triton.jit
def logcumsumexp_forward(
    x, y, lanes, length, lane_stride, step_stride, outer_stride,
    tile_lanes: tl.constexpr, tile_steps: tl.constexpr,
):  # fmt: skip
    lane = tl.program_id(0).to(tl.int64) * tile_lanes + tl.arange(0, tile_lanes)
    base = tl.program_id(1).to(tl.int64) * outer_stride
    carry_max = tl.full([tile_lanes], float("-inf"), tl.float32)
    carry_sum = tl.zeros([tile_lanes], tl.float32)
    for first in range(0, length, tile_steps):
        step = first + tl.arange(0, tile_steps)
        where = base + lane[:, None] * lane_stride + step[None, :] * step_stride
        mask = (lane[:, None] < lanes) & (step[None, :] < length)
        value = tl.load(x + where, mask, float("-inf")).to(tl.float32)
        m, s = tl.associative_scan((value, tl.full(value.shape, 1.0, tl.float32)), 1, combine_exponentials)
        m, s = combine_exponentials(carry_max[:, None], carry_sum[:, None], m, s)
        tl.store(y + where, m + tl.log(s), mask)
        carry_max, carry_sum = last_of(m, s, tile_steps)


@triton.jit
def last_of(m, s, tile_steps: tl.constexpr):
    """The last column of two tiles [lanes, tile_steps]."""
    is_last = (tl.arange(0, tile_steps) == tile_steps - 1)[None, :]
    return tl.max(tl.where(is_last, m, float("-inf")), 1), tl.sum(tl.where(is_last, s, 0.0), 1)


@triton.jit
def logcumsumexp_backward(
    x, y, g, dx, lanes, length, lane_stride, step_stride, outer_stride,
    tile_lanes: tl.constexpr, tile_steps: tl.constexpr,
):  # fmt: skip
    lane = tl.program_id(0).to(tl.int64) * tile_lanes + tl.arange(0, tile_lanes)
    base = tl.program_id(1).to(tl.int64) * outer_stride
    later = tl.zeros([tile_lanes], tl.float32)
    tiles = tl.cdiv(length, tile_steps)
    for tile in range(0, tiles):
        step = (tiles - 1 - tile) * tile_steps + tl.arange(0, tile_steps)
        where = base + lane[:, None] * lane_stride + step[None, :] * step_stride
        inside = lane[:, None] < lanes
        mask = inside & (step[None, :] < length)
        result = tl.load(y + where, mask, 0.0).to(tl.float32)
        next_result = tl.load(y + where + step_stride, inside & (step[None, :] + 1 < length), float("inf"))
        decay = tl.exp(result - next_result.to(tl.float32))
        upstream = tl.load(g + where, mask, 0.0).to(tl.float32)
        a, h = tl.associative_scan((decay, upstream), 1, combine_decays, reverse=True)
        r = h + a * later[:, None]
        value = tl.load(x + where, mask, float("-inf")).to(tl.float32)
        tl.store(dx + where, tl.exp(value - result) * r, mask)
        later = tl.sum(tl.where((tl.arange(0, tile_steps) == 0)[None, :], r, 0.0), 1)


@triton.jit
def chunk_cumsum(
    x, y, lanes, lane_stride, step_stride, outer_stride,
    reverse: tl.constexpr, tile_lanes: tl.constexpr, tile_steps: tl.constexpr,
):  # fmt: skip
    lane = tl.program_id(0) * tile_lanes + tl.arange(0, tile_lanes)
    step = tl.program_id(1).to(tl.int64) * tile_steps + tl.arange(0, tile_steps)
    base = tl.program_id(2).to(tl.int64) * outer_stride
    where = base + step[:, None] * step_stride + lane[None, :] * lane_stride
    mask = lane[None, :] < lanes
    value = tl.load(x + where, mask, 0.0).to(tl.float32)
    tl.store(y + where, tl.cumsum(value, 0, reverse=reverse), mask)


@triton.jit
def encoding_angle(
    theta, row, heads, tokens, extra_tokens, size_1, size_2, per_dim, feature, mask, head_first: tl.constexpr
):
    """[rows, features] of x seen as rows: position along the feature's dimension of the grid, times theta."""
    if head_first:  # [b, h, tokens, d]
        head = (row // tokens) % heads
        token = row % tokens
    else:  # [b, tokens, h, d]
        head = row % heads
        token = (row // heads) % tokens
    on_grid = tl.maximum(token - extra_tokens, 0)[:, None]
    number = (feature // per_dim)[None, :]
    position = tl.where(
        number == 0,
        on_grid // (size_1 * size_2),
        tl.where(number == 1, on_grid // size_2 % size_1, on_grid % size_2),
    )
    value = tl.load(theta + head[:, None] * per_dim + (feature % per_dim)[None, :], mask, 0.0)
    return position.to(tl.float32) * value


@triton.jit
def softmax_of_rows(value):
    e = tl.exp(value - tl.max(value, 1)[:, None])
    return e / tl.sum(e, 1)[:, None]


@triton.jit
def encoding_forward(
    x, theta, y, rows, heads, tokens, extra_tokens, size_1, size_2, per_dim, features,
    head_first: tl.constexpr, act: tl.constexpr, tile_rows: tl.constexpr, tile_features: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
    feature = tl.arange(0, tile_features)
    mask = (row[:, None] < rows) & (feature[None, :] < features)
    value = tl.load(x + row[:, None] * features + feature[None, :], mask, float("-inf")).to(tl.float32)
    if act == "silu":
        value = value * tl.sigmoid(value)
    elif act == "softmax":
        value = softmax_of_rows(value)
    angle = encoding_angle(
        theta, row, heads, tokens, extra_tokens, size_1, size_2, per_dim, feature, mask, head_first
    )
    where = row[:, None] * (2 * features) + feature[None, :]
    tl.store(y + where, value * tl.cos(angle), mask)
    tl.store(y + where + features, value * tl.sin(angle), mask)


@triton.jit
def encoding_backward(
    x, theta, g, dx, rows, heads, tokens, extra_tokens, size_1, size_2, per_dim, features,
    head_first: tl.constexpr, act: tl.constexpr, tile_rows: tl.constexpr, tile_features: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
    feature = tl.arange(0, tile_features)
    mask = (row[:, None] < rows) & (feature[None, :] < features)
    angle = encoding_angle(
        theta, row, heads, tokens, extra_tokens, size_1, size_2, per_dim, feature, mask, head_first
    )
    where = row[:, None] * (2 * features) + feature[None, :]
    along_cos = tl.load(g + where, mask, 0.0).to(tl.float32)
    along_sin = tl.load(g + where + features, mask, 0.0).to(tl.float32)
    gradient = along_cos * tl.cos(angle) + along_sin * tl.sin(angle)
    place = row[:, None] * features + feature[None, :]
    if act != "none":
        value = tl.load(x + place, mask, float("-inf")).to(tl.float32)
    if act == "silu":
        gate = tl.sigmoid(value)
        gradient = gradient * gate * (1 + value * (1 - gate))
    elif act == "softmax":
        value = softmax_of_rows(value)
        gradient = value * (gradient - tl.sum(value * gradient, 1)[:, None])
    tl.store(dx + place, gradient, mask)


class Tiles:
    """How a tensor is cut along one axis: the launch grid and the integers that a scan kernel takes."""

    def __init__(self, x: Tensor, axis: int) -> None:
        inner = math.prod(x.shape[axis + 1 :])
        length = x.shape[axis]
        outer = x.numel() // (length * inner)
        if inner == 1:  # rows: a few of them a tile, as long as registers allow
            self.steps = min(triton.next_power_of_2(length), 2048)
            self.lanes = max(1, 2048 // self.steps)
            lanes, strides, self.outer = outer, (length, 1), 1
        else:  # columns: pieces of 64 elements side by side
            self.lanes = min(triton.next_power_of_2(inner), 64)
            self.steps = min(triton.next_power_of_2(length), 64)
            lanes, strides, self.outer = inner, (1, inner), outer
        self.integers = (lanes, length, *strides, length * inner)
        self.grid = (triton.cdiv(lanes, self.lanes), self.outer)

    @property
    def sizes(self) -> dict[str, int]:
        return {"tile_lanes": self.lanes, "tile_steps": self.steps}


class LogCumSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, axis: int) -> Tensor:
        y = torch.empty_like(x)
        tiles = Tiles(x, axis)
        logcumsumexp_forward[tiles.grid](x, y, *tiles.integers, **tiles.sizes)
        ctx.save_for_backward(x, y)
        ctx.axis = axis
        return y

    @staticmethod
    def backward(ctx, g: Tensor) -> tuple:
        x, y = ctx.saved_tensors
        dx = torch.empty_like(x)
        tiles = Tiles(x, ctx.axis)
        logcumsumexp_backward[tiles.grid](x, y, g, dx, *tiles.integers, **tiles.sizes)
        return dx, None


def chunked_sum(x: Tensor, reverse: bool) -> Tensor:
    """Of x [b, n, h, d] along n, a multiple of CHUNK."""
    y = torch.empty_like(x)
    batch, length, inner = x.shape[0], x.shape[1], x.shape[2] * x.shape[3]
    lanes = min(triton.next_power_of_2(inner), 64)
    grid = (triton.cdiv(inner, lanes), length // CHUNK, batch)
    sizes = {"tile_lanes": lanes, "tile_steps": CHUNK}
    chunk_cumsum[grid](x, y, inner, 1, inner, length * inner, reverse=reverse, **sizes)
    return y


class Encoding(torch.autograd.Function):
    """x [b, n, h, d] (no grid) or [b, h, extra_tokens + n, d]. The gradient is x's alone."""

    @staticmethod
    def forward(ctx, x: Tensor, theta: Tensor, act: str, grid: tuple | None, extra_tokens: int) -> Tensor:
        head_first = grid is not None
        heads, tokens = (x.shape[1], x.shape[2]) if head_first else (x.shape[2], x.shape[1])
        sizes = (grid or (tokens,)) + (1, 1)
        rows, features = x.numel() // x.shape[-1], x.shape[-1]
        # A grid of one size has its positions in the slowest place.
        integers = (rows, heads, tokens, extra_tokens, sizes[1], sizes[2], theta.shape[1], features)
        wide = triton.next_power_of_2(features)
        tile = {"tile_rows": max(1, 1024 // wide), "tile_features": wide}
        constants = {"head_first": head_first, "act": act, **tile}
        ctx.launch = (triton.cdiv(rows, constants["tile_rows"]),), integers, constants
        ctx.save_for_backward(x, theta)
        y = x.new_empty([*x.shape[:-1], 2 * features])
        encoding_forward[ctx.launch[0]](x, theta, y, *integers, **constants)
        return y

    @staticmethod
    def backward(ctx, g: Tensor) -> tuple:
        x, theta = ctx.saved_tensors
        dx = torch.empty_like(x)
        grid, integers, constants = ctx.launch
        encoding_backward[grid](x, theta, g, dx, *integers, **constants)
        return dx, None, None, None, None
