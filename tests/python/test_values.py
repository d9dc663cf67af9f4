"""Results of the ops against loops in float64."""

import pytest
import torch

import scandsl
from cases import ALL, DTYPES, Case
from closeness import assert_close


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("case", ALL, ids=str)
def test_results(case: Case, dtype: torch.dtype) -> None:
    tensors = {name: each.to(dtype) for name, each in case.tensors().items()}
    tensors["x"] = case.laid_out(tensors["x"])
    results = case.got(tensors)
    for result, expected in zip(results, case.expected(tensors)):
        assert_close(result, expected)
    state_dtype = torch.float64 if dtype == torch.float64 else torch.float32
    assert [each.dtype for each in results] == [dtype, *[state_dtype] * (len(results) - 1)]


def test_float32_operands_beside_a_16_bit_x() -> None:
    case = Case("decayed_sum", (2, 11, 5), 1, decay_shape=(5,), seeded=True)
    tensors = {name: each.float() for name, each in case.tensors().items()}
    tensors["x"] = tensors["x"].bfloat16()
    y, state = case.got(tensors)
    assert (y.dtype, state.dtype) == (torch.bfloat16, torch.float32)
    for result, expected in zip((y, state), case.expected(tensors)):
        assert_close(result, expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_chunk_sums_in_float32(dtype: torch.dtype) -> None:
    case = Case("chunk_cumsum_decay", (2, 300, 3), 1, {"chunk_size": 128, "out_dtype": torch.float32})
    tensors = {"x": case.tensors()["x"].to(dtype)}
    (got,) = case.got(tensors)
    assert got.dtype == torch.float32
    assert_close(got, case.expected(tensors)[0])


@pytest.mark.parametrize("op", ["logcumsumexp", "decayed_sum", "chunk_cumsum_decay"])
def test_defaults(op: str) -> None:
    x = torch.randn(2, 3, 4)
    if op == "logcumsumexp":
        torch.testing.assert_close(scandsl.logcumsumexp(x), torch.logcumsumexp(x, -1))
    elif op == "decayed_sum":
        torch.testing.assert_close(scandsl.decayed_sum(x, torch.ones(()), 1), x.cumsum(1))
    else:
        torch.testing.assert_close(scandsl.chunk_cumsum_decay(x), x.cumsum(1))


@pytest.mark.parametrize("op", ["logcumsumexp", "decayed_sum"])
@pytest.mark.parametrize("reverse", [False, True])
def test_in_pieces(op: str, reverse: bool) -> None:
    """A sequence that is fed in pieces, down to single steps, gives what it gives at once."""
    x = torch.randn(3, 10, 2)
    decay = [torch.rand(2)] if op == "decayed_sum" else []
    run = getattr(scandsl, op)
    whole, last = run(x, *decay, 1, reverse=reverse, return_final_state=True)
    pieces = list(x.split([4, 1, 1, 0, 4], 1))
    state, ys = None, []
    for piece in pieces[::-1] if reverse else pieces:
        y, state = run(piece, *decay, 1, reverse=reverse, initial_state=state, return_final_state=True)
        ys.append(y)
    torch.testing.assert_close(torch.cat(ys[::-1] if reverse else ys, 1), whole)
    torch.testing.assert_close(state, last)


def test_the_ends_of_the_range() -> None:
    inf = torch.inf
    x = torch.tensor([-inf, -inf, 1.0, 1e4, -1e4, inf, 2.0, -inf])
    expected = torch.tensor([-inf, -inf, 1.0, 1e4, 1e4, inf, inf, inf])
    assert torch.equal(scandsl.logcumsumexp(x), expected)
    nan = torch.tensor([1.0, torch.nan, 2.0, inf])
    assert scandsl.logcumsumexp(nan).isnan().tolist() == [False, True, True, True]
    assert scandsl.decayed_sum(nan, torch.tensor(0.5), 0).isnan().tolist() == [False, True, True, True]
    assert scandsl.chunk_cumsum_decay(nan, dim=0, chunk_size=2).isnan().tolist() == [
        False,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 0, 3)], ids=str)
@pytest.mark.parametrize("dim", [0, -1])
def test_empty(shape: tuple, dim: int) -> None:
    x = torch.empty(shape, requires_grad=True)
    state_shape = list(shape)
    del state_shape[dim]
    for run, identity in [
        (lambda: scandsl.logcumsumexp(x, dim, return_final_state=True), -torch.inf),
        (lambda: scandsl.decayed_sum(x, torch.tensor(0.5), dim, return_final_state=True), 0.0),
    ]:
        y, state = run()
        assert y.shape == shape
        assert list(state.shape) == state_shape
        if shape[dim] == 0:
            assert (state == identity).all()
        (gradient,) = torch.autograd.grad(y.sum() + state.nan_to_num(neginf=0).sum(), x)
        assert gradient.shape == shape
    assert scandsl.chunk_cumsum_decay(x, dim=dim).shape == shape


def test_no_copy_of_what_is_not_contiguous() -> None:
    """Outputs keep a dense layout; expanded inputs are read as they lie."""
    x = torch.randn(4, 5, 6).permute(2, 0, 1)
    assert scandsl.logcumsumexp(x, 0).stride() == x.stride()
    row = torch.randn(1, 1000)
    wide = row.expand(1000, 1000)
    torch.testing.assert_close(scandsl.logcumsumexp(wide, 1)[7], torch.logcumsumexp(row, 1)[0])


@pytest.mark.parametrize("case", [ALL[1], ALL[9], ALL[-1]], ids=str)
def test_determinism(case: Case) -> None:
    tensors = {name: each.float() for name, each in case.tensors().items()}
    for first, second in zip(case.got(tensors), case.got(tensors)):
        assert torch.equal(first, second)
