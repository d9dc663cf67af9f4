"""torch.compile, torch.func and opcheck on the ops."""

import copy
import pickle

import pytest
import torch

import scandsl
from cases import ALL, CHUNK_CUMSUM_DECAY, DECAYED_SUM, LOGCUMSUMEXP, Case

SOME = [
    LOGCUMSUMEXP[1],
    LOGCUMSUMEXP[6],
    DECAYED_SUM[1],
    DECAYED_SUM[10],
    DECAYED_SUM[-1],
    CHUNK_CUMSUM_DECAY[1],
]


def compiled(function, **options):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend="aot_eager", **options)


def run_of(case: Case, names):
    return lambda *values: case.got(dict(zip(names, values)))


@pytest.mark.parametrize("case", SOME, ids=str)
def test_compiled_forward_and_backward(case: Case) -> None:
    tensors = {name: each.requires_grad_() for name, each in case.tensors().items()}

    def loss(*values):
        return sum(result.sin().sum() for result in run_of(case, tensors)(*values))

    values = list(tensors.values())
    expected = torch.autograd.grad(loss(*values), values)
    got = torch.autograd.grad(compiled(loss)(*values), values)
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("dynamic", [True, None])
def test_dynamic_shapes(dynamic) -> None:
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    torch._dynamo.reset()

    def loss(x, decay):
        y = scandsl.logcumsumexp(scandsl.decayed_sum(x, decay, 1), 1)
        return scandsl.chunk_cumsum_decay(y, chunk_size=x.shape[1] // 2).sum()

    run = torch.compile(loss, fullgraph=True, backend=counter, dynamic=dynamic)
    for length in (8, 11, 14, 21):
        x = torch.randn(2, length, 3, requires_grad=True)
        decay = torch.rand(3, requires_grad=True)
        expected = torch.autograd.grad(loss(x, decay), (x, decay))
        torch.testing.assert_close(torch.autograd.grad(run(x, decay), (x, decay)), expected)
    assert counter.frame_count <= (1 if dynamic else 2)


def test_inductor() -> None:
    torch._dynamo.reset()

    def model(x, decay):
        return scandsl.decayed_sum(torch.sin(x), torch.sigmoid(decay), -1).exp()

    x, decay = torch.randn(4, 33, requires_grad=True), torch.randn(33, requires_grad=True)
    expected = torch.autograd.grad(model(x, decay).sum(), (x, decay))
    got = torch.autograd.grad(torch.compile(model, fullgraph=True)(x, decay).sum(), (x, decay))
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("case", SOME, ids=str)
def test_vmap(case: Case) -> None:
    samples = [case.tensors(seed) for seed in range(3)]
    names = list(samples[0])
    expected = [torch.stack(each) for each in zip(*(case.got(sample) for sample in samples))]
    for in_dim in (0, -1):
        batch = [torch.stack([sample[name] for sample in samples], in_dim) for name in names]
        got = torch.func.vmap(run_of(case, names), in_dims=in_dim)(*batch)
        torch.testing.assert_close(list(got), expected)


@pytest.mark.parametrize("case", SOME, ids=str)
def test_vmap_of_one_operand(case: Case) -> None:
    tensors = case.tensors()
    for name in tensors:
        values = torch.stack([case.tensors(seed)[name] for seed in range(3)])

        def run(each, name=name):
            return case.got({**tensors, name: each})

        expected = [torch.stack(each) for each in zip(*map(run, values))]
        torch.testing.assert_close(list(torch.func.vmap(run)(values)), expected)


@pytest.mark.parametrize("case", SOME, ids=str)
def test_gradient_of_each_sample(case: Case) -> None:
    samples = [case.tensors(seed) for seed in range(3)]
    names = list(samples[0])

    def loss(*values):
        return sum(result.sin().sum() for result in run_of(case, names)(*values))

    gradient = torch.func.grad(loss, argnums=tuple(range(len(names))))
    expected = [torch.stack(each) for each in zip(*(gradient(*sample.values()) for sample in samples))]
    batch = [torch.stack([sample[name] for sample in samples]) for name in names]
    torch.testing.assert_close(list(torch.func.vmap(gradient)(*batch)), expected)
    torch.testing.assert_close(list(compiled(torch.func.vmap(gradient))(*batch)), expected)


def test_vmap_over_boundaries() -> None:
    x, offsets = torch.randn(3, 7), torch.tensor([[0, 2, 7], [0, 0, 7], [0, 5, 7]])
    run = lambda x, offsets: scandsl.logcumsumexp(x, cu_seqlens=offsets)  # noqa: E731
    expected = torch.stack([run(*each) for each in zip(x, offsets)])
    torch.testing.assert_close(torch.func.vmap(run)(x, offsets), expected)


def test_compiled_forward_mode() -> None:
    x, v = torch.randn(2, 5, 7, dtype=torch.float64)

    def jvp(x, v):
        return torch.func.jvp(lambda x: scandsl.logcumsumexp(x), (x,), (v,))

    torch.testing.assert_close(compiled(jvp)(x, v), jvp(x, v))


def test_compiled_second_derivatives() -> None:
    x = torch.randn(5, dtype=torch.float64)
    hessian = torch.func.jacrev(torch.func.grad(lambda x: scandsl.logcumsumexp(x).square().sum()))
    torch.testing.assert_close(compiled(hessian)(x), hessian(x))


@pytest.mark.parametrize("case", SOME, ids=str)
def test_opcheck(case: Case) -> None:
    op = getattr(torch.ops.scandsl, case.op).default
    tensors = case.tensors()
    values = [case.laid_out(tensors["x"]).requires_grad_()]
    values += [tensors[name].requires_grad_() for name in ("decay",) if name in tensors]
    flags = [case.options.get(name, False) for name in ("reverse", "exclusive")]
    if case.op == "chunk_cumsum_decay":
        options = [case.dim, case.options["chunk_size"], *flags, None]
    else:
        values.append(tensors["initial_state"].requires_grad_() if case.seeded else None)
        options = [
            case.dim,
            *([case.options.get("log_decay", False)] if "decay" in tensors else []),
            *flags,
            True,
        ]
    operands = [*values, case.cu_seqlens]
    torch.library.opcheck(op, [*operands, *options])
    cotangents = [each.detach().requires_grad_() for each in op(*operands, *options)]
    differentiable = [each for each in values if each is not None]
    if case.op != "chunk_cumsum_decay" and not case.seeded:
        return
    wanted = [True] * len(differentiable)
    backward = getattr(torch.ops.scandsl, f"{case.op}_backward").default
    torch.library.opcheck(backward, [*cotangents, *operands, *options, wanted])
    double_backward = getattr(torch.ops.scandsl, f"{case.op}_double_backward").default
    wanted = [True] * len(cotangents) + wanted
    detached = [each if each is None else each.detach() for each in operands]
    arguments = [
        *(each.detach() for each in differentiable),
        *(each.detach() for each in cotangents),
        *detached,
    ]
    torch.library.opcheck(double_backward, [*arguments, *options, wanted])


@pytest.mark.parametrize("case", ALL[::5], ids=str)
def test_on_the_meta_device(case: Case) -> None:
    tensors = case.tensors()
    for real, meta in zip(
        case.got(tensors), case.got({name: each.to("meta") for name, each in tensors.items()})
    ):
        assert (meta.shape, meta.dtype, meta.stride()) == (real.shape, real.dtype, real.stride())


@pytest.mark.parametrize(
    "module", [scandsl.LogCumSumExp(1, reverse=True), scandsl.DecayedSum(1, log_decay=True)]
)
def test_modules_are_copied_and_pickled(module: torch.nn.Module) -> None:
    operands = [torch.randn(2, 5)] + [torch.randn(5)] * isinstance(module, scandsl.DecayedSum)
    expected = module(*operands)
    for copied in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert torch.equal(copied(*operands), expected)
    torch.testing.assert_close(compiled(module)(*operands), expected)
    assert "dim=1" in repr(module)
