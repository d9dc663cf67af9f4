"""lrpe_cosine and md_lrpe_cosine against their formulas in plain torch, in float64."""

import math

import pytest
import torch

import scandsl
from cases import DEVICE, DTYPES
from closeness import assert_close

ACTS = {
    "none": lambda x, dim: x,
    "relu": lambda x, dim: x.relu(),
    "sigmoid": lambda x, dim: x.sigmoid(),
    "silu": lambda x, dim: torch.nn.functional.silu(x),
    "softmax": lambda x, dim: x.softmax(-1 if dim is None else dim),
}


def turned(f, angle):
    return torch.cat([f * angle.cos(), f * angle.sin()], -1)


def lrpe_reference(x, theta, *, offset=0, positions=None, act="none", act_dim=None):
    if positions is None:
        positions = torch.arange(x.shape[1], device=x.device) + offset
    angle = positions.reshape(-1, x.shape[1], 1, 1) * theta
    return turned(ACTS[act](x, act_dim), angle.expand(x.shape))


def angles_reference(theta, shape, features, extra_tokens):
    """Written with loops over tokens and features."""
    per_dim = math.ceil(features / len(shape))
    rows = [[theta[:, 0] * 0.0] * features] * extra_tokens
    for place in range(math.prod(shape)):
        index = [place // math.prod(shape[i + 1 :]) % shape[i] for i in range(len(shape))]
        rows.append([index[j // per_dim] * theta[:, j % per_dim] for j in range(features)])
    return torch.stack([torch.stack(row, -1) for row in rows], 1)


def md_reference(x, theta, shape, *, extra_tokens=0, angles=None):
    return turned(x, angles_reference(theta, shape, x.shape[-1], extra_tokens).expand(x.shape))


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(DEVICE)


# x's shape, theta's, options
LRPE = [
    ((2, 5, 3, 4), (3, 4), {}),
    ((2, 5, 3, 4), (3, 1), {"offset": 7}),
    ((2, 5, 3, 5), (1, 5), {"act": "silu"}),
    ((1, 4, 1, 1), (1, 1), {"act": "relu"}),
    ((2, 3, 2, 3), (2, 3), {"act": "sigmoid", "offset": -4}),
    ((2, 5, 3, 7), (3, 7), {"act": "softmax"}),
    ((2, 5, 1, 3), (1, 3), {"act": "softmax", "act_dim": -1}),
    ((2, 5, 3, 4), (1, 4), {"act": "softmax", "act_dim": 1}),
    ((2, 5, 3, 4), (3, 4), {"positions": (3, 0, 1, 9, 9)}),
    ((2, 3, 2, 5), (2, 1), {"positions": ((0, 1, 2), (5, 6, 0)), "act": "silu"}),
]
# x's shape, the grid's, extra tokens
MD = [
    ((2, 3, 5, 4), (5,), 0),
    ((2, 2, 8, 5), (2, 3), 2),
    ((1, 1, 12, 7), (2, 3, 2), 0),
    ((2, 1, 7, 1), (3, 2), 1),
]


def lrpe_call(case):
    shape, theta_shape, options = case
    options = dict(options)
    if "positions" in options:
        options["positions"] = torch.tensor(options["positions"], device=DEVICE)
    return (
        {"x": normal(*shape), "theta": normal(*theta_shape, seed=1)},
        lambda module, x, theta: (lrpe_reference if module is None else module.lrpe_cosine)(
            x, theta, **options
        ),
    )


def md_call(case):
    shape, grid, extra_tokens = case
    per_dim = math.ceil(shape[-1] / len(grid))
    return (
        {"x": normal(*shape), "theta": normal(shape[1], per_dim, seed=1)},
        lambda module, x, theta: (md_reference if module is None else module.md_lrpe_cosine)(
            x, theta, grid, extra_tokens=extra_tokens
        ),
    )


CALLS = [*map(lrpe_call, LRPE), *map(md_call, MD)]
IDS = [*(f"lrpe-{i}" for i in range(len(LRPE))), *(f"md-{i}" for i in range(len(MD)))]
each_call = pytest.mark.parametrize(("tensors", "call"), CALLS, ids=IDS)


def pulled(call, module, tensors, weight):
    y = call(module, *tensors)
    return (y.detach(), *torch.autograd.grad(y, tensors, weight.to(y.dtype)))


@each_call
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", ["contiguous", "permuted", "sliced"])
def test_values_and_gradients(tensors, call, dtype, layout) -> None:
    x = tensors["x"].to(dtype)
    if layout == "permuted":
        x = x.permute(3, 1, 0, 2).contiguous().permute(2, 1, 3, 0)
    elif layout == "sliced":
        x = torch.stack([x, x], -1).flatten(-2)[..., ::2]
    operands = [each.detach().requires_grad_() for each in (x, tensors["theta"].to(dtype))]
    exact = [each.detach().double().requires_grad_() for each in operands]
    weight = torch.randn_like(call(None, *exact)).to(dtype)
    got = pulled(call, scandsl, operands, weight)
    expected = pulled(call, None, exact, weight.double())
    assert [each.dtype for each in got] == [dtype] * 3
    for result, reference in zip(got[:2], expected):
        assert_close(result, reference)
    # theta's gradient is a sum over tokens, as large as its terms.
    size = expected[2].abs().max().item() + (weight.double().abs().sum() * 10 / expected[2].numel()).item()
    assert_close(got[2], expected[2], size=size)


def test_float32_theta_beside_a_16_bit_x() -> None:
    x, theta = normal(2, 6, 3, 5).bfloat16(), normal(3, 5, seed=1).float().requires_grad_()
    y = scandsl.lrpe_cosine(x, theta, offset=100)
    assert_close(y.detach(), lrpe_reference(x.double(), theta.detach().double(), offset=100))
    assert torch.autograd.grad(y.sum(), theta)[0].dtype == torch.float32


@pytest.mark.parametrize("offset", [0, 2**20 + 3, 2**24 - 4])
def test_far_positions(offset: int) -> None:
    theta = torch.linspace(-1, 1, 12, device=DEVICE).reshape(2, 6)
    y = scandsl.lrpe_cosine(torch.ones(1, 4, 2, 6, device=DEVICE), theta, offset=offset)
    expected = lrpe_reference(normal(1, 4, 2, 6) * 0 + 1, theta.double(), offset=offset)
    assert (y - expected).abs().max() < 2e-6


@each_call
def test_second_derivatives_and_forward_mode(tensors, call) -> None:
    operands = [each.requires_grad_() for each in tensors.values()]

    def run(x, theta):
        return call(scandsl, x, theta)

    assert torch.autograd.gradcheck(run, operands, check_forward_ad=True, fast_mode=True)
    assert torch.autograd.gradgradcheck(run, operands, check_fwd_over_rev=True, fast_mode=True)


def test_forward_mode_of_16_bits() -> None:
    x, along = normal(2, 5, 3, 4).bfloat16(), normal(2, 5, 3, 4, seed=2).bfloat16()
    theta = normal(3, 4, seed=1).bfloat16()
    _, got = torch.func.jvp(lambda x: scandsl.lrpe_cosine(x, theta, act="silu"), (x,), (along,))
    wide = (x.double(),), (along.double(),)
    _, expected = torch.func.jvp(lambda x: lrpe_reference(x, theta.double(), act="silu"), *wide)
    assert_close(got, expected)


@pytest.mark.parametrize(("shape", "grid", "extra_tokens"), MD)
def test_angles(shape, grid, extra_tokens) -> None:
    features = math.ceil(shape[-1] / len(grid))
    theta = normal(shape[1], features, seed=1).float()
    table = scandsl.md_lrpe_angles(theta, grid, extra_tokens=extra_tokens)
    assert (table.shape, table.dtype) == ((shape[1], shape[2], features * len(grid)), torch.float32)
    assert table.abs().max() <= math.pi + 1e-6
    exact = angles_reference(theta.double(), grid, table.shape[-1], extra_tokens)
    assert ((table - exact) / (2 * math.pi) - ((table - exact) / (2 * math.pi)).round()).abs().max() < 1e-6
    x = normal(*shape).float().requires_grad_()
    theta.requires_grad_()
    y = scandsl.md_lrpe_cosine(x, theta, grid, extra_tokens=extra_tokens, angles=table)
    torch.testing.assert_close(y, scandsl.md_lrpe_cosine(x, theta, grid, extra_tokens=extra_tokens))
    by_x, by_theta = torch.autograd.grad(y.sum(), (x, theta), allow_unused=True)
    assert by_theta is None
    assert torch.equal(scandsl.md_lrpe_cosine(x, None, grid, extra_tokens=extra_tokens, angles=table), y)
    of_formula = scandsl.md_lrpe_cosine(x, theta, grid, extra_tokens=extra_tokens)
    torch.testing.assert_close(by_x, torch.autograd.grad(of_formula.sum(), x)[0])


def test_extra_tokens_become_x_and_zeros() -> None:
    x = normal(2, 3, 6, 5)
    y = scandsl.md_lrpe_cosine(x, normal(3, 3), (2, 2), extra_tokens=2)
    assert torch.equal(y[:, :, :2], torch.cat([x, 0 * x], -1)[:, :, :2])


@pytest.mark.parametrize("shape", [(0, 3, 2, 4), (2, 0, 2, 4), (2, 3, 0, 4), (2, 3, 2, 0)], ids=str)
def test_empty(shape) -> None:
    x = torch.zeros(shape, device=DEVICE, requires_grad=True)
    theta = torch.zeros(shape[2:], device=DEVICE, requires_grad=True)
    for act in ACTS:
        y = scandsl.lrpe_cosine(x, theta, act=act)
        assert y.shape == (*shape[:-1], 2 * shape[-1])
        by_x, by_theta = torch.autograd.grad(y.sum(), (x, theta))
        assert by_x.shape == shape
        assert torch.equal(by_theta, torch.zeros_like(theta))


def test_pieces() -> None:
    x, theta = normal(2, 7, 3, 4), normal(3, 4, seed=1)
    pieces = [scandsl.lrpe_cosine(x[:, :5], theta), scandsl.lrpe_cosine(x[:, 5:], theta, offset=5)]
    assert torch.equal(torch.cat(pieces, 1), scandsl.lrpe_cosine(x, theta))


def test_compiled() -> None:
    x, theta = normal(2, 5, 3, 8).requires_grad_(), normal(3, 8, seed=1).requires_grad_()

    def both(x, theta):
        y = scandsl.lrpe_cosine(x, theta, act="silu")[..., :8]
        return scandsl.md_lrpe_cosine(y.transpose(1, 2), theta, (5,)).sin().sum()

    torch._dynamo.reset()
    run = torch.compile(both, fullgraph=True, backend="aot_eager")
    expected = torch.autograd.grad(both(x, theta), (x, theta))
    torch.testing.assert_close(torch.autograd.grad(run(x, theta), (x, theta)), expected)


def test_vmap() -> None:
    x, theta = normal(4, 2, 5, 3, 4), normal(3, 4, seed=1)
    got = torch.func.vmap(lambda x: scandsl.lrpe_cosine(x, theta))(x)
    assert torch.equal(got, torch.stack([scandsl.lrpe_cosine(each, theta) for each in x]))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_vmap_of_angles(dim: int) -> None:
    theta = normal(4, 3, 2, seed=1)

    def angles(theta):
        return scandsl.md_lrpe_angles(theta, (2, 3), extra_tokens=1)

    got = torch.func.vmap(angles, in_dims=dim)(theta.movedim(0, dim))
    assert torch.equal(got, torch.stack([angles(each) for each in theta]))
    x = normal(2, 3, 7, 4)

    def encoded(theta):
        table = angles(theta)
        return scandsl.md_lrpe_cosine(x, None, (2, 3), extra_tokens=1, angles=table)

    got = torch.func.vmap(encoded, in_dims=dim)(theta.movedim(0, dim))
    assert torch.equal(got, torch.stack([encoded(each) for each in theta]))
    with pytest.raises(ValueError, match=r"theta of shape \[h, e\]"):
        torch.func.vmap(angles)(theta[0])


X = torch.zeros(2, 5, 3, 4)
THETA = torch.zeros(3, 4)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: scandsl.lrpe_cosine(X[0], THETA), ValueError, ["x", "[b, n, h, d]"]),
        (lambda: scandsl.lrpe_cosine(X, THETA[0]), ValueError, ["theta", "[3, 4]", "[4]"]),
        (lambda: scandsl.lrpe_cosine(X, torch.zeros(1, 1)), ValueError, ["theta", "[1, 1]"]),
        (lambda: scandsl.lrpe_cosine(X, THETA.double()), TypeError, ["theta", "float64"]),
        (lambda: scandsl.lrpe_cosine(X, None), TypeError, ["Tensor", "theta", "None"]),
        (lambda: scandsl.lrpe_cosine(None, THETA), TypeError, ["Tensor", "x", "None"]),
        (lambda: scandsl.lrpe_cosine(X.int(), THETA), TypeError, ["x", "int32"]),
        (lambda: scandsl.lrpe_cosine(X, THETA, act="gelu"), ValueError, ["act", "softmax", "gelu"]),
        (lambda: scandsl.lrpe_cosine(X, THETA, act="softmax", act_dim=2), IndexError, ["act_dim", "2"]),
        (lambda: scandsl.lrpe_cosine(X, THETA, offset=1.5), TypeError, ["int for offset", "float"]),
        (lambda: scandsl.lrpe_cosine(X, THETA, offset=2**40), ValueError, ["offset"]),
        (lambda: scandsl.lrpe_cosine(X, THETA, positions=torch.zeros(4).int()), ValueError, ["positions"]),
        (lambda: scandsl.lrpe_cosine(X, THETA, positions=torch.zeros(5)), TypeError, ["positions"]),
        (lambda: scandsl.md_lrpe_cosine(X, THETA, (4,)), ValueError, ["x", "[2, 5, 3, 4]"]),
        (lambda: scandsl.md_lrpe_cosine(X, THETA, (3,)), ValueError, ["theta", "[5, 4]", "[3, 4]"]),
        (lambda: scandsl.md_lrpe_cosine(X, None, (3,)), ValueError, ["theta or angles"]),
        (lambda: scandsl.md_lrpe_cosine(X, THETA, (4,), extra_tokens=-1), ValueError, ["extra_tokens"]),
        (lambda: scandsl.md_lrpe_cosine(X, THETA, 3), TypeError, ["shape", "int"]),
        (lambda: scandsl.md_lrpe_cosine(X, None, (3,), angles=THETA), ValueError, ["angles"]),
        (lambda: scandsl.md_lrpe_angles(THETA[0], (3,)), ValueError, ["theta"]),
        (lambda: scandsl.md_lrpe_angles(THETA, ()), ValueError, ["grid"]),
        (lambda: scandsl.md_lrpe_angles(THETA, (-3,)), ValueError, ["sizes"]),
    ],
)  # fmt: skip
def test_messages(call, error: type, words: list) -> None:
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


def test_modules() -> None:
    x, theta = normal(2, 5, 3, 4), normal(3, 4, seed=1)
    module = scandsl.LrpeCosine(act="softmax", act_dim=1)
    assert torch.equal(module(x, theta), scandsl.lrpe_cosine(x, theta, act="softmax", act_dim=1))
    assert "softmax" in repr(module)
    module = scandsl.MdLrpeCosine((2, 2), extra_tokens=1)
    y = scandsl.md_lrpe_cosine(x.transpose(1, 2), theta[:, :2], (2, 2), extra_tokens=1)
    assert torch.equal(module(x.transpose(1, 2), theta[:, :2]), y)
