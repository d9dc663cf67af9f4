"""Bad input ends in an exception that names the argument, what came and what it takes."""

import pytest
import torch

import scandsl

X = torch.zeros(2, 5, 3)
HALF = torch.tensor(0.5)


def decayed(decay, dim=1):
    return lambda: scandsl.decayed_sum(X, decay, dim)


def chunked(**options):
    return lambda: scandsl.chunk_cumsum_decay(X, **options)


def scanned(**options):
    return lambda: scandsl.logcumsumexp(X, 1, **options)


def packed(*offsets):
    return scanned(cu_seqlens=torch.tensor(offsets))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: scandsl.logcumsumexp(X, 3), IndexError, ["dim in [-3, 3)", "got 3"]),
        (lambda: scandsl.logcumsumexp(X, -4), IndexError, ["dim in [-3, 3)", "got -4"]),
        (lambda: scandsl.logcumsumexp(X, 2**40), IndexError, ["dim in [-3, 3)"]),
        (lambda: scandsl.logcumsumexp(torch.zeros(())), IndexError, ["dim", "rank 0"]),
        (lambda: scandsl.logcumsumexp(X.int()), TypeError, ["x", "float32", "int32"]),
        (lambda: scandsl.logcumsumexp(X.bool()), TypeError, ["x", "float32", "Bool"]),
        (lambda: scandsl.logcumsumexp(X.to(torch.complex64)), TypeError, ["x", "float32", "Complex"]),
        (lambda: scandsl.logcumsumexp([1.0]), TypeError, ["Tensor for x", "got list"]),
        (lambda: scandsl.logcumsumexp(None), TypeError, ["Tensor", "got None"]),
        (lambda: scandsl.logcumsumexp(X, 1.5), TypeError, ["int for dim", "got float"]),
        (lambda: scandsl.logcumsumexp(X, reverse="yes"), TypeError, ["bool for reverse", "got str"]),
        (lambda: scandsl.logcumsumexp(X, initial_state=1.0), TypeError, ["initial_state", "got float"]),
        (scanned(initial_state=torch.zeros(2, 5)), ValueError, ["[2, 3] for initial_state", "got [2, 5]"]),
        (scanned(initial_state=torch.zeros(2, 3).half()), TypeError, ["for initial_state", "float16"]),
        (packed(0, 4), ValueError, ["cu_seqlens ending at 5", "got 4"]),
        (packed(1, 5), ValueError, ["cu_seqlens starting at 0", "got 1"]),
        (packed(0, 4, 3, 5), ValueError, ["cu_seqlens", "decrease", "4 then 3"]),
        (packed(0.0, 5.0), TypeError, ["cu_seqlens", "int32 or int64", "float32"]),
        (scanned(cu_seqlens=torch.zeros(2, 2).int()), ValueError, ["cu_seqlens of shape [S + 1]", "[2, 2]"]),
        (lambda: scandsl.logcumsumexp(torch.zeros([1] * 9)), ValueError, ["at most 8 dimensions", "got 9"]),
        (decayed(torch.zeros(2)), ValueError, ["decay that broadcasts against x", "[2, 5, 3]", "got [2]"]),
        (decayed(HALF.double()), TypeError, ["float32 for decay", "float64"]),
        (decayed(0.5), TypeError, ["Tensor for decay", "got float"]),
        (lambda: scandsl.decayed_sum(X, HALF, 7), IndexError, ["dim in [-3, 3)", "got 7"]),
        (chunked(chunk_size=0), ValueError, ["chunk_size of at least 1", "got 0"]),
        (chunked(chunk_size=2.5), TypeError, ["int for chunk_size", "got float"]),
        (chunked(dim=3), IndexError, ["dim in [-3, 3) for log_decay", "got 3"]),
        (chunked(out_dtype=torch.float64), TypeError, ["out_dtype", "float32", "Double"]),
        (lambda: scandsl.chunk_cumsum_decay(X.long()), TypeError, ["log_decay", "int64"]),
    ],
)  # fmt: skip
def test_messages(call, error: type, words: list) -> None:
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


def test_errors_of_calls_that_need_gradients() -> None:
    with pytest.raises(ValueError, match="initial_state"):
        scandsl.logcumsumexp(X.clone().requires_grad_(), 1, initial_state=torch.zeros(2))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_meta_device_still_works() -> None:
    assert scandsl.logcumsumexp(X.to("meta")).shape == X.shape
