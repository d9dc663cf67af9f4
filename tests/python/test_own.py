"""Ops of one's own: built by scandsl.load and by CMake; all of their derivatives are derived."""

import shutil
import sys

import pytest
import torch

import scandsl
from conftest import NVCC, PROJECT, cuda_architecture, run

pytestmark = pytest.mark.builds


@pytest.fixture(scope="module")
def own(extension):
    return scandsl.load_library(extension / "own_ops.so")


@pytest.fixture(scope="module")
def own_cu(tmp_path_factory):
    """The same file under the name that nvcc compiles."""
    if not NVCC:
        pytest.skip("no nvcc")
    if not torch.cuda.is_available():
        pytest.skip("minutes of nvcc for kernels that no GPU runs; squared.cu is built in any case")
    folder = tmp_path_factory.mktemp("own_cu")
    source = shutil.copy(PROJECT / "tests/python/own/spread.cpp", folder / "spread.cu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCANDSL_CACHE", str(folder))
        yield scandsl.load(source, cuda_architectures=[cuda_architecture()])


@pytest.fixture(scope="module")
def gated_sum(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCANDSL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield scandsl.load(PROJECT / "examples/torch/gated_sum.cpp").gated_sum


def draw(*shapes, dtype=torch.float64, device="cpu"):
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(shape, generator=generator, dtype=torch.float64).to(device, dtype).requires_grad_()
        for shape in shapes
    ]


def gated_loop(gate, x):
    h, hs = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        h = gate[:, t].sigmoid() * h + x[:, t]
        hs.append(h)
    return torch.nn.functional.silu(torch.stack(hs, 1))


def test_the_example(gated_sum) -> None:
    values = draw((2, 5, 3), (2, 5, 3))
    torch.testing.assert_close(gated_sum(*values), gated_loop(*values))
    torch.testing.assert_close(gated_sum(x=values[1], gate=values[0]), gated_loop(*values))
    assert torch.autograd.gradcheck(gated_sum, values, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(gated_sum, values, check_fwd_over_rev=True)
    got = torch.autograd.grad(gated_sum(*values).sin().sum(), values)
    torch.testing.assert_close(got, torch.autograd.grad(gated_loop(*values).sin().sum(), values))


def test_the_example_as_a_script(gated_sum) -> None:
    # In the same cache, so that nothing is compiled again.
    assert "differs from" in run(sys.executable, PROJECT / "examples/torch/gated_sum.py")


def test_the_example_in_16_bits_compiled_and_batched(gated_sum) -> None:
    gate, x = draw((2, 5, 3), (2, 5, 3), dtype=torch.bfloat16)
    y = gated_sum(gate, x)
    assert y.dtype == torch.bfloat16
    expected = gated_loop(gate.double(), x.double())
    torch.testing.assert_close(y.double(), expected, rtol=2**-8, atol=2**-8)
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda *values: gated_sum(*values).float().sum(), fullgraph=True, backend="aot_eager", dynamic=True
    )
    got, expected = (
        torch.autograd.grad(f(gate, x), (gate, x)) for f in (compiled, lambda *v: gated_sum(*v).float().sum())
    )
    torch.testing.assert_close(got, expected)
    batch = torch.stack([x, 2 * x]).detach()
    got = torch.func.vmap(lambda each: gated_sum(gate.detach(), each))(batch)
    torch.testing.assert_close(got, torch.stack([gated_sum(gate.detach(), each) for each in batch]))


def test_two_components_an_optional_operand_a_scalar_and_two_outputs(own) -> None:
    check_two_components(own, "cpu")


def test_the_same_compiled_by_nvcc(own_cu, device) -> None:
    check_two_components(own_cu, device)
    x, start = draw((2, 3000), (2,), dtype=torch.bfloat16, device=device)
    y, total = own_cu.weighted(x, start, weight=1.0)
    gradient = torch.autograd.grad(y.float().mean(), x)[0]
    other = x.detach().double().requires_grad_()
    expected = other.logcumsumexp(1)
    torch.testing.assert_close(y.double(), expected, rtol=2**-8, atol=2**-8)
    expected = torch.autograd.grad(expected.mean(), other)[0]
    torch.testing.assert_close(gradient.double(), expected, rtol=2**-7, atol=1e-7)


def check_two_components(own, device) -> None:
    x, start = draw((3, 7), (3,), device=device)

    def op(x, start):
        return own.weighted(x, start, weight=1.5)

    y, total = op(x, start)
    torch.testing.assert_close(y, 1.5 * x.logcumsumexp(1))
    torch.testing.assert_close(total, start + x.sum(1))
    torch.testing.assert_close(own.weighted(x, weight=2.0)[1], x.sum(1))
    assert torch.autograd.gradcheck(op, (x, start), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(op, (x, start), check_fwd_over_rev=True)
    others = x.detach(), start.detach()

    def along(f, place):
        def at(each):
            return f(*(each if i == place else others[i] for i in (0, 1)))

        return torch.func.jvp(at, (others[place],), (torch.ones_like(others[place]),))[1]

    def loop(x, start):
        return 1.5 * x.exp().cumsum(1).log(), start + x.sum(1)

    for place in (0, 1):
        torch.testing.assert_close(along(op, place), along(loop, place))


def test_an_extension_for_both_devices(extension, device) -> None:
    if not NVCC:
        pytest.skip("no nvcc")
    squared = scandsl.load_library(extension / "own_cuda_ops.so").squared
    assert list(extension.rglob("squared.cu.o")), "scandsl was built without CUDA"
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        (x,) = draw((40,), dtype=dtype, device=device)
        torch.testing.assert_close(squared(x), x * x)
        torch.testing.assert_close(torch.autograd.grad(squared(x).sum(), x)[0], 2 * x.detach())
    assert torch.autograd.gradgradcheck(squared, draw((5,), device=device))


def test_opcheck(own) -> None:
    torch.library.opcheck(torch.ops.own_ops.weighted.default, [*draw((3, 7), (3,)), 1.5])


def test_what_is_built_is_kept(gated_sum) -> None:
    assert scandsl.load(PROJECT / "examples/torch/gated_sum.cpp").gated_sum is gated_sum


def test_errors(own, tmp_path, monkeypatch) -> None:
    x = torch.zeros(3, 7)
    for call, error, words in [
        (lambda: own.weighted(x), TypeError, "expected weight for weighted; got none"),
        (lambda: own.weighted(weight=1), TypeError, "expected x for weighted; got none"),
        (lambda: own.weighted(x, wait=1), TypeError, "x, start, weight for weighted"),
        (lambda: own.weighted(x, x, x, weight=1), TypeError, "at most 2 tensors"),
        (lambda: own.weighted(x[0], weight=1), ValueError, r"x\(b, n\); got rank 1"),
        (lambda: own.weighted(x, torch.zeros(4), weight=1), ValueError, "extent"),
        (lambda: own.weighted(x.int(), weight=1), TypeError, "float32"),
        (lambda: scandsl.load("nowhere.cpp"), FileNotFoundError, "nowhere.cpp"),
    ]:
        with pytest.raises(error, match=words):
            call()
    monkeypatch.setenv("SCANDSL_CACHE", str(tmp_path))
    broken = tmp_path / "broken.cpp"
    broken.write_text("int main() { return nothing; }")
    with pytest.raises(RuntimeError, match="nothing"):
        scandsl.load(broken)
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(RuntimeError, match="no-such-compiler"):
        scandsl.load(broken)
