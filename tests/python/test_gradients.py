"""Derivatives of the ops: against autograd through loops in float64, and against finite differences."""

import pytest
import torch
import torch.utils.checkpoint

import scandsl
from cases import ALL, DTYPES, Case
from closeness import assert_close


def gradients(results: tuple, tensors: dict, weights: list) -> tuple:
    loss = sum((result * weight.to(result)).sum() for result, weight in zip(results, weights))
    return torch.autograd.grad(loss, list(tensors.values()))


def leaves(case: Case, dtype: torch.dtype) -> dict:
    tensors = {name: each.to(dtype) for name, each in case.tensors().items()}
    tensors["x"] = case.laid_out(tensors["x"])
    return {name: each.detach().requires_grad_() for name, each in tensors.items()}


def weights_of(results: tuple, dtype: torch.dtype) -> list:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(each.shape, generator=generator).to(each.device, dtype).double() for each in results]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("case", ALL, ids=str)
def test_gradients(case: Case, dtype: torch.dtype) -> None:
    tensors = leaves(case, dtype)
    exact = {name: each.detach().double().requires_grad_() for name, each in tensors.items()}
    expected_results = case.expected(exact)
    weights = weights_of(expected_results, dtype)
    expected = gradients(expected_results, exact, weights)
    for name, got, reference in zip(tensors, gradients(case.got(tensors), tensors, weights), expected):
        assert got.dtype == tensors[name].dtype
        assert_close(got, reference, size=terms(case, exact, weights) if name == "decay" else None)


def terms(case: Case, tensors: dict, weights: list) -> float:
    """How large what decay's gradient adds up is: gradients of a decay for each element."""
    wide = {**tensors, "decay": tensors["decay"].detach().expand(case.shape).clone().requires_grad_()}
    each = gradients(case.expected(wide), wide, weights)[list(tensors).index("decay")]
    return each.abs().sum_to_size(tensors["decay"].shape).max().item()


@pytest.mark.parametrize("case", ALL, ids=str)
def test_against_finite_differences(case: Case) -> None:
    tensors = {name: each.requires_grad_() for name, each in case.tensors().items()}

    def run(*values):
        given = dict(zip(tensors, values))
        results = case.got({**given, "x": case.laid_out(given["x"])})
        return [each.nan_to_num(neginf=0.0) for each in results]  # an exclusive log-sum starts with -inf

    values = list(tensors.values())
    assert torch.autograd.gradcheck(run, values, check_forward_ad=True, fast_mode=True)
    assert torch.autograd.gradgradcheck(run, values, check_fwd_over_rev=True, fast_mode=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("case", ALL, ids=str)
def test_forward_mode(case: Case, dtype: torch.dtype) -> None:
    tensors = {name: each.to(dtype) for name, each in case.tensors().items()}
    tangents = {name: each.to(dtype) for name, each in case.tensors(seed=2).items()}

    def jvp(run, cast):
        given, along = ([cast(each) for each in group.values()] for group in (tensors, tangents))
        return torch.func.jvp(lambda *values: run(dict(zip(tensors, values))), tuple(given), tuple(along))[1]

    expected = jvp(case.expected, torch.Tensor.double)
    for result, reference in zip(jvp(case.got, lambda each: each), expected):
        assert_close(result, reference)


@pytest.mark.parametrize("case", ALL[::3], ids=str)
def test_one_tangent_of_several_operands(case: Case) -> None:
    tensors = case.tensors()
    for name in tensors:
        tangent = case.tensors(seed=2)[name]

        def along(run, name=name, tangent=tangent):
            return torch.func.jvp(lambda each: run({**tensors, name: each}), (tensors[name],), (tangent,))[1]

        for result, reference in zip(along(case.got), along(case.expected)):
            assert_close(result, reference)


def test_hessians() -> None:
    case = Case("logcumsumexp", (4,), 0)
    x = case.tensors()["x"]

    def loss(run):
        return lambda x: run({"x": x})[0].square().sum()

    expected = torch.func.hessian(loss(case.expected))(x)
    torch.testing.assert_close(torch.func.hessian(loss(case.got))(x), expected)
    torch.testing.assert_close(torch.func.jacrev(torch.func.jacfwd(loss(case.got)))(x), expected)
    torch.testing.assert_close(torch.func.jacrev(torch.func.jacrev(loss(case.got)))(x), expected)


def test_third_derivatives_are_refused() -> None:
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(scandsl.logcumsumexp(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="third"):
        torch.autograd.grad(second.sum(), x)
    with pytest.raises(NotImplementedError, match="forward mode over forward mode"):
        torch.func.jacfwd(torch.func.jacfwd(scandsl.logcumsumexp))(x.detach())


def test_all_derivatives_of_a_linear_op() -> None:
    x = torch.randn(2, 6, dtype=torch.float64)

    def loss(x):
        return scandsl.chunk_cumsum_decay(x, chunk_size=4).pow(3).sum(0)

    def reference(x):
        return torch.cat([x[:, :4].cumsum(1), x[:, 4:].cumsum(1)], 1).pow(3).sum(0)

    for first in (torch.func.jacfwd, torch.func.jacrev):
        for second in (torch.func.jacfwd, torch.func.jacrev):
            third = torch.func.jacrev(second(first(loss)))
            torch.testing.assert_close(third(x), torch.func.jacrev(second(first(reference)))(x))


def test_reverse_over_forward_without_torch_func() -> None:
    import torch.autograd.forward_ad as forward_ad

    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    v = torch.randn(5, dtype=torch.float64)

    def tangent_gradient(op):
        with forward_ad.dual_level():
            tangent = forward_ad.unpack_dual(op(forward_ad.make_dual(x, v))).tangent
            return torch.autograd.grad(tangent.square().sum(), x)[0]

    got = tangent_gradient(lambda x: scandsl.logcumsumexp(x))
    torch.testing.assert_close(got, tangent_gradient(lambda x: x.exp().cumsum(0).log()))


def test_a_vjp_that_is_differentiated_outside_of_it() -> None:
    x, weight = torch.randn(2, 5, dtype=torch.float64)
    weight.requires_grad_()

    def gradient(op):
        _, pullback = torch.func.vjp(op, x)
        return torch.autograd.grad(pullback(weight)[0].square().sum(), weight)[0]

    got = gradient(lambda x: scandsl.logcumsumexp(x))
    torch.testing.assert_close(got, gradient(lambda x: x.exp().cumsum(0).log()))


def test_a_retained_graph_gives_the_same_again() -> None:
    x = torch.randn(3, 5, requires_grad=True)
    y = scandsl.logcumsumexp(x).sum()
    first, second = (torch.autograd.grad(y, x, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)


def test_an_input_changed_in_place_is_noticed() -> None:
    x = torch.randn(5, requires_grad=True)
    doubled = x * 2
    y = scandsl.logcumsumexp(doubled)
    doubled += 1
    with pytest.raises(RuntimeError, match="inplace operation"):
        y.sum().backward()


def test_minus_infinity_has_gradient_zero() -> None:
    x = torch.tensor([-torch.inf, -torch.inf, 0.5, -torch.inf, 1.0], requires_grad=True)
    (got,) = torch.autograd.grad(scandsl.logcumsumexp(x).nan_to_num(neginf=0).sum(), x)
    share = torch.tensor([0.5, 1.0]).softmax(0)
    torch.testing.assert_close(got, torch.stack([torch.tensor(v) for v in (0, 0, 2 + share[0], 0, share[1])]))


def test_the_op_of_the_dispatcher_has_a_gradient_and_its_overload_no_grad_none() -> None:
    x = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    arguments = (x, None, None, 1, False, False, False)
    (y,) = torch.ops.scandsl.logcumsumexp(*arguments)
    (plain,) = torch.ops.scandsl.logcumsumexp.no_grad(*arguments)
    assert y.requires_grad and not plain.requires_grad
    assert torch.equal(y, plain)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    (expected,) = torch.autograd.grad(torch.logcumsumexp(x, 1).sum(), x)
    torch.testing.assert_close(gradient, expected)


def test_the_ops_of_the_dispatcher_have_defaults() -> None:
    x = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    op = torch.ops.scandsl.logcumsumexp
    (y,), (plain,) = op(x), op.no_grad(x)
    assert y.requires_grad and torch.equal(y, plain)
    (expected,) = torch.autograd.grad(torch.logcumsumexp(x, 1).sum(), x)
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], expected)
    torch.testing.assert_close(torch.func.grad(lambda each: op(each)[0].sum())(x), expected)
    along_0 = torch.vmap(lambda column: op(column)[0], in_dims=1, out_dims=1)(x)
    torch.testing.assert_close(along_0, torch.logcumsumexp(x, 0))
    fakes = torch._subclasses.FakeTensorMode()
    assert [each.shape for each in op.no_grad(fakes.from_tensor(x.detach()))] == [x.shape]
    compiled = torch.compile(lambda each: op(each)[0] + op(each, None, None, 0)[0], fullgraph=True)
    torch.testing.assert_close(compiled(x), torch.logcumsumexp(x, 1) + torch.logcumsumexp(x, 0))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("op", ["logcumsumexp", "decayed_sum"])
@pytest.mark.parametrize("reverse", [False, True])
def test_carries_that_a_scan_leaves_for_its_backward_pass(op: str, dtype: torch.dtype, reverse: bool) -> None:
    # Longer than a tile of few lanes, and shorter than what is cut into pieces, which leave nothing.
    case = Case(op, (2, 1101, 128), 1, {"reverse": reverse}, decay_shape=(2, 1101, 128))
    tensors = leaves(case, dtype)
    exact = {name: each.detach().double().requires_grad_() for name, each in tensors.items()}
    results = case.got(tensors)
    kept = results[0].grad_fn.saved_tensors[len(tensors) :]
    # On the CPU nothing is kept, and of float64 there are no such kernels (SCANDSL_CUDA_MORE_ELEMENTS).
    assert len(kept) == (1 if tensors["x"].is_cuda and dtype != torch.float64 else 0)
    for each in kept:
        states = 1 if op == "decayed_sum" or dtype == torch.bfloat16 else 2
        assert each.nbytes == 2 * -(-1101 // 64) * 128 * states * max(4, dtype.itemsize)
    weights = weights_of(results, dtype)
    loss = sum((result * weight.to(result)).sum() for result, weight in zip(results, weights))
    got, again, alone = (
        torch.autograd.grad(loss, list(tensors.values()), retain_graph=True, create_graph=create_graph)
        for create_graph in (False, False, True)  # the last one, to be differentiated, without carries
    )
    expected = gradients(case.expected(exact), exact, weights)
    for name, one, two, three, reference in zip(tensors, got, again, alone, expected):
        assert torch.equal(one, two)
        size = terms(case, exact, weights) if name == "decay" else None
        assert_close(one, reference, size=size)
        assert_close(three.detach(), reference, size=size)


@pytest.mark.parametrize("op", ["logcumsumexp", "decayed_sum"])
def test_checkpoints(op: str) -> None:
    case = Case(op, (2, 301, 128), 1, decay_shape=(2, 301, 128))
    tensors = leaves(case, torch.float32)

    def run(*values):
        return case.got(dict(zip(tensors, values)))[0]

    values = list(tensors.values())
    expected = torch.autograd.grad(run(*values).square().sum(), values)
    y = torch.utils.checkpoint.checkpoint(run, *values, use_reentrant=False)
    for got, reference in zip(torch.autograd.grad(y.square().sum(), values), expected):
        assert torch.equal(got, reference)
