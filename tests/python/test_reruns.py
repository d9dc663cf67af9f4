"""Forward and backward passes have the same bits in every run, gradients summed for a parameter too."""

from typing import Callable

import pytest
import torch

import scandsl
from cases import DEVICE, Case

SHAPES = [(3, 5000), (2, 700, 128), (70, 333)]


def drawn(*shape: int, low: float = -2, high: float = 2, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(len(shape))
    values = low + (high - low) * torch.rand(shape, generator=generator)
    return values.to(DEVICE, dtype)


def bits(values: torch.Tensor) -> torch.Tensor:
    return values.contiguous().reshape(-1).view(torch.uint8)


def check_reruns(run: Callable, *operands: torch.Tensor) -> None:
    runs = []
    for _ in range(3):
        leaves = [each.clone().requires_grad_() for each in operands]
        results = run(*leaves)
        weights = [drawn(*each.shape, dtype=each.dtype) for each in results]
        runs.append([*(each.detach() for each in results), *torch.autograd.grad(results, leaves, weights)])
    for again in runs[1:]:
        for one, other in zip(runs[0], again):
            assert one.shape == other.shape
            assert torch.equal(bits(one), bits(other))


each_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)


@each_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_logcumsumexp(shape: tuple, dtype: torch.dtype) -> None:
    case = Case("logcumsumexp", shape, 1)
    check_reruns(lambda x: case.got({"x": x}), drawn(*shape, dtype=dtype))


@each_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("varies", ["everywhere", "along lanes", "nowhere"])
def test_decayed_sum(shape: tuple, varies: str, dtype: torch.dtype) -> None:
    decay_shape = {"everywhere": shape, "along lanes": (shape[0], 1, *shape[2:]), "nowhere": (1,)}[varies]
    case = Case("decayed_sum", shape, 1, decay_shape=decay_shape)
    decay = drawn(*decay_shape, low=0.5, high=1, dtype=dtype)
    check_reruns(lambda x, decay: case.got({"x": x, "decay": decay}), drawn(*shape, dtype=dtype), decay)


@each_dtype
@pytest.mark.parametrize("act", ["none", "softmax"])
@pytest.mark.parametrize("theta_shape", [(4, 32), (1, 32), (4, 1)], ids=str)
def test_lrpe_cosine(theta_shape: tuple, act: str, dtype: torch.dtype) -> None:
    check_reruns(
        lambda x, theta: (scandsl.lrpe_cosine(x, theta, act=act),),
        drawn(3, 300, 4, 32, dtype=dtype),
        drawn(*theta_shape, low=0, high=1),
    )


@each_dtype
def test_md_lrpe_cosine(dtype: torch.dtype) -> None:
    check_reruns(
        lambda x, theta: (scandsl.md_lrpe_cosine(x, theta, (12, 16)),),
        drawn(3, 4, 192, 32, dtype=dtype),
        drawn(4, 16, low=0, high=1),
    )


@pytest.mark.skipif(
    not hasattr(torch.ops.scandsl, "linear_cross_entropy"), reason="the library was built without it"
)
@each_dtype
def test_linear_cross_entropy(dtype: torch.dtype) -> None:
    target = torch.randint(0, 300, (500,), generator=torch.Generator().manual_seed(0)).to(DEVICE)
    check_reruns(
        lambda x, weight, bias: (scandsl.linear_cross_entropy(x, weight, target, bias),),
        drawn(500, 64, dtype=dtype),
        drawn(300, 64, dtype=dtype),
        drawn(300, dtype=dtype),
    )
