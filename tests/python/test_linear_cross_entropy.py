"""linear_cross_entropy against torch's cross_entropy of all logits, in float64."""

import pytest
import torch
import torch.nn.functional as functional
from torch.utils.checkpoint import checkpoint

import scandsl
from cases import DEVICE, DTYPES

pytestmark = pytest.mark.skipif(
    not hasattr(torch.ops.scandsl, "linear_cross_entropy"), reason="the library was built without it"
)


def reference(
    x, weight, target, bias=None, *, class_weight=None, z_loss=0.0, softcap=None, reduction="mean", **options
):
    """(loss, lse)."""
    z = x @ weight.T + (0 if bias is None else bias)
    if softcap is not None:
        z = softcap * torch.tanh(z / softcap)
    lse = z.logsumexp(-1)
    rows, targets = z.reshape(-1, z.shape[-1]), target.reshape(-1).long()
    weights = None if class_weight is None else class_weight.to(z.dtype)
    counts = targets != options.get("ignore_index", -100)
    each = functional.cross_entropy(rows, targets, weights, reduction="none", **options)
    each = each + z_loss * torch.where(counts, lse.reshape(-1).square(), 0)
    if reduction == "none":
        return each.reshape(target.shape), lse
    if reduction == "sum":
        return each.sum(), lse
    share = torch.ones_like(each) if weights is None else weights[targets.clamp(0, len(weights) - 1)]
    return each.sum() / (share * counts).sum(), lse


class Operands:
    def __init__(self, tokens=(9,), features=5, classes=7, dtype=torch.float64, bias=True):
        generator = torch.Generator().manual_seed(0)

        def normal(*shape):
            return torch.randn(shape, generator=generator).to(DEVICE, dtype).requires_grad_()

        self.x, self.weight = normal(*tokens, features), normal(classes, features)
        self.bias = normal(classes) if bias else None
        self.target = torch.randint(0, classes, tokens, generator=generator).to(DEVICE)
        self.target.reshape(-1)[1::4] = -100
        self.class_weight = (torch.arange(classes, dtype=torch.float32) / classes + 0.5).to(DEVICE)

    @property
    def leaves(self):
        return [each for each in (self.x, self.weight, self.bias) if each is not None]

    def call(self, function, wide=False, **options):
        operands = [each.detach().double().requires_grad_() if wide else each for each in self.leaves]
        x, weight, *bias = operands
        return function(x, weight, self.target, *bias, **options), operands


OPTIONS = [
    {},
    {"label_smoothing": 0.1},
    {"z_loss": 0.01},
    {"softcap": 1.5},
    {"label_smoothing": 0.2, "z_loss": 0.02, "softcap": 3.0},
]


def chunk_of_four(x, weight, target, *_) -> list[int]:
    line = 128 // x.element_size()
    return [min(4, target.numel()), -(-weight.shape[0] // line) * line]


@pytest.fixture(params=["one chunk", "several", "nothing kept"])
def chunks(request, monkeypatch) -> str:
    """Calls as small as those of tests are of one chunk. With the others they go the ways of larger ones."""
    ways = {"several": chunk_of_four, "nothing kept": lambda *_: []}
    if request.param in ways:
        monkeypatch.setattr(torch.ops.scandsl, "linear_cross_entropy_kept_shape", ways[request.param])
    return request.param


TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}


def assert_near(got, expected, dtype):
    """Relative to the largest: the logits of a chunk are rounded to x's dtype."""
    size = max(expected.abs().max().item(), 1e-30)
    assert (got.double() - expected).abs().max().item() <= TOLERANCE[dtype] * size


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_values_and_gradients(options, reduction, weighted, dtype, chunks) -> None:
    operands = Operands(dtype=dtype)
    options = {**options, "reduction": reduction}
    if weighted:
        options["class_weight"] = operands.class_weight
    loss, leaves = operands.call(scandsl.linear_cross_entropy, **options)
    (exact, _), exact_leaves = operands.call(reference, wide=True, **options)
    assert loss.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert_near(loss.detach(), exact.detach(), dtype)
    upstream = torch.linspace(0.5, -2, loss.numel(), device=DEVICE, dtype=loss.dtype).reshape(loss.shape)
    got = torch.autograd.grad(loss, leaves, upstream)
    for one, other in zip(got, torch.autograd.grad(exact, exact_leaves, upstream.double())):
        assert one.dtype == dtype
        assert_near(one, other, dtype)


@pytest.mark.parametrize("tokens", [(), (1,), (2, 3), (2, 1, 3)], ids=str)
@pytest.mark.parametrize("bias", [False, True])
def test_shapes(tokens, bias) -> None:
    operands = Operands(tokens, features=3, classes=1 if tokens == (1,) else 4, bias=bias)
    options = {"reduction": "none", "return_lse": True}
    (loss, lse), leaves = operands.call(scandsl.linear_cross_entropy, **options)
    del options["return_lse"]
    (exact, exact_lse), exact_leaves = operands.call(reference, wide=True, **options)
    torch.testing.assert_close((loss, lse), (exact, exact_lse))
    got = torch.autograd.grad(loss.sum() + lse.square().sum(), leaves)
    expected = torch.autograd.grad(exact.sum() + exact_lse.square().sum(), exact_leaves)
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_lse_is_differentiable(reduction) -> None:
    operands = Operands()
    (loss, lse), leaves = operands.call(scandsl.linear_cross_entropy, reduction=reduction, return_lse=True)
    (exact, exact_lse), exact_leaves = operands.call(reference, wide=True, reduction=reduction)
    for of in (lambda a, b: b.sin().sum(), lambda a, b: 3 * a.sum() + b.sin().sum(), lambda a, b: a.sum()):
        got = torch.autograd.grad(of(loss, lse), leaves, retain_graph=True)
        expected = torch.autograd.grad(of(exact, exact_lse), exact_leaves, retain_graph=True)
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16], ids=str)
def test_a_retained_graph_is_never_scaled_twice(dtype, chunks) -> None:
    loss, leaves = Operands(dtype=dtype).call(scandsl.linear_cross_entropy)
    first = [each.clone() for each in torch.autograd.grad(5 * loss, leaves, retain_graph=True)]
    again = torch.autograd.grad(5 * loss, leaves, retain_graph=True)
    for one, other in zip(first, again):
        assert_near(one, other.double(), dtype)
        assert chunks != "one chunk" or torch.equal(one, other)


def test_what_is_kept_is_freed(chunks) -> None:
    loss, leaves = Operands().call(scandsl.linear_cross_entropy)
    torch.autograd.grad(loss, leaves)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        torch.autograd.grad(loss, leaves)


class Called(torch.utils._python_dispatch.TorchDispatchMode):
    """The names of scandsl's ops, as they are called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.namespace == "scandsl":
            self.names.append(function._opname.removeprefix("linear_cross_entropy_"))
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("tokens", "dtype", "names"),
    [
        (9, torch.float32, ["kept_shape", "with_logits_gradient", "products"]),
        (3000, torch.float32, ["kept_shape", "with_logits_gradient", "complete"]),
        (6000, torch.bfloat16, ["kept_shape", "with_gradients", "scale"]),  # sums in a wider type
    ],
)
def test_which_passes_are_taken(tokens, dtype, names) -> None:
    # But for the first, 195 MiB of logits.
    operands = Operands((tokens,), features=2, classes=17000, dtype=dtype)
    with Called() as called:
        loss, leaves = operands.call(scandsl.linear_cross_entropy, accumulate=torch.float32)
        torch.autograd.grad(loss, leaves)
    assert called.names == names


def test_kept_memory_moved_between_the_passes() -> None:
    operands = Operands(classes=70)
    expected = torch.autograd.grad(operands.call(scandsl.linear_cross_entropy)[0], operands.leaves)
    shapes = []

    def pack(tensor):
        shapes.append(tuple(tensor.shape))
        return tensor.clone()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss, _ = operands.call(scandsl.linear_cross_entropy)
    assert (9, 80) in shapes  # whole cache lines of float64
    assert torch.equal(torch.autograd.grad(loss, operands.x, retain_graph=True)[0], expected[0])
    torch.testing.assert_close(torch.autograd.grad(loss, operands.leaves), expected)


def test_chunks_of_other_sizes_where_the_forward_is_run_again(monkeypatch) -> None:
    """How many tokens a chunk has depends on how much memory is free."""
    operands = Operands()
    expected = torch.autograd.grad(operands.call(scandsl.linear_cross_entropy)[0], operands.leaves)
    sizes = iter([4, 3])
    monkeypatch.setattr(
        torch.ops.scandsl, "linear_cross_entropy_kept_shape", lambda *_: [next(sizes), 16]
    )
    for again in (False, True):
        sizes = iter([4, 3])
        loss = checkpoint(
            lambda: operands.call(scandsl.linear_cross_entropy)[0], use_reentrant=False
        )
        got = torch.autograd.grad(loss, operands.leaves, retain_graph=again)
        torch.testing.assert_close(got, expected)


def test_operands_changed_between_the_passes() -> None:
    operands = Operands()
    loss, leaves = operands.call(scandsl.linear_cross_entropy)
    with torch.no_grad():
        operands.weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(loss, leaves)


def test_fake_tensors() -> None:
    ops = torch.ops.scandsl
    with torch._subclasses.FakeTensorMode():
        operands = Operands()
        loss, leaves = operands.call(scandsl.linear_cross_entropy)
        gradients = torch.autograd.grad(loss, leaves)
        rest = (None, -100, 0.0, 0.0, None, 1, None, True)
        kept = torch.empty(9, 16, dtype=torch.float64, device=DEVICE)
        arguments = (operands.x, operands.weight, operands.target, operands.bias, *rest)
        with torch.no_grad():
            wanted = [True, False, True]
            losses = ops.linear_cross_entropy_with_logits_gradient(*arguments, kept, wanted)
            earlier = ops.linear_cross_entropy_with_logits_gradient(*arguments, kept[:4], wanted)[3:]
            ops.linear_cross_entropy_complete(
                operands.x, operands.weight, kept[:4], loss, losses[-1], earlier, wanted
            )
            products = ops.linear_cross_entropy_products(
                operands.x, operands.weight, operands.bias, kept, loss, losses[-1], wanted
            )
    assert [each.shape for each in gradients] == [each.shape for each in leaves]
    assert [each.shape for each in losses] == [(), (9,), ()]
    assert [each.shape for each in products] == [each.shape for each in earlier] == [(9, 5), (7,)]


def test_float16_under_loss_scaling(chunks) -> None:
    operands = Operands((3000,), features=8, classes=50, dtype=torch.float16)
    loss, leaves = operands.call(scandsl.linear_cross_entropy)
    (exact, _), exact_leaves = operands.call(reference, wide=True)
    got = torch.autograd.grad(loss, leaves, torch.tensor(65536.0, device=DEVICE))
    for one, other in zip(got, torch.autograd.grad(exact * 65536, exact_leaves)):
        assert_near(one, other, torch.float16)


def test_gradients_of_some(chunks) -> None:
    operands = Operands()
    expected = torch.autograd.grad(operands.call(scandsl.linear_cross_entropy)[0], operands.leaves)
    for kept, gradient in zip(("x", "weight", "bias"), expected):
        for name in ("x", "weight", "bias"):
            getattr(operands, name).requires_grad_(name == kept)
        loss, _ = operands.call(scandsl.linear_cross_entropy)
        torch.testing.assert_close(torch.autograd.grad(loss, getattr(operands, kept))[0], gradient)


def test_layouts(chunks) -> None:
    operands = Operands()
    expected = operands.call(scandsl.linear_cross_entropy)[0]
    leaves = [each.detach() for each in operands.leaves]
    transposed = [
        leaves[0].T.contiguous().T,
        leaves[1].T.contiguous().T,
        torch.stack([leaves[2]] * 2, 1)[:, 0],
    ]
    for each in transposed:
        each.requires_grad_()
    loss = scandsl.linear_cross_entropy(*transposed[:2], operands.target, transposed[2])
    torch.testing.assert_close(loss, expected)
    for one, other in zip(
        torch.autograd.grad(loss, transposed), torch.autograd.grad(expected, operands.leaves)
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("tokens", [0, 3])
def test_without_a_token_that_counts(reduction, tokens, chunks) -> None:
    operands = Operands((tokens,))
    operands.target.fill_(-100)
    loss, leaves = operands.call(scandsl.linear_cross_entropy, reduction=reduction)
    expected = functional.cross_entropy(
        torch.zeros(tokens, 7, device=DEVICE), operands.target, reduction=reduction
    )
    torch.testing.assert_close(loss.detach(), expected.double(), equal_nan=True)
    for each in torch.autograd.grad(loss.sum(), leaves):
        assert torch.equal(each, torch.zeros_like(each))


def test_another_ignored_index_and_int32_targets() -> None:
    operands = Operands()
    operands.target = operands.target.clamp(min=0).int()
    got, _ = operands.call(scandsl.linear_cross_entropy, ignore_index=2)
    torch.testing.assert_close(got, operands.call(reference, wide=True, ignore_index=2)[0][0])


@pytest.mark.parametrize("accumulate", [torch.float32, torch.bfloat16, "auto"], ids=str)
def test_accumulate(accumulate) -> None:
    operands = Operands(dtype=torch.bfloat16)
    loss, leaves = operands.call(scandsl.linear_cross_entropy, accumulate=accumulate)
    (exact, _), exact_leaves = operands.call(reference, wide=True)
    for one, other in zip(torch.autograd.grad(loss, leaves), torch.autograd.grad(exact, exact_leaves)):
        assert_near(one, other, torch.bfloat16)


def test_autocast() -> None:
    operands = Operands(dtype=torch.float32)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        loss, leaves = operands.call(scandsl.linear_cross_entropy)
    cast = [each.detach().bfloat16() for each in leaves]
    expected = scandsl.linear_cross_entropy(*cast[:2], operands.target, cast[2])
    assert torch.equal(loss.detach(), expected)
    assert [each.dtype for each in torch.autograd.grad(loss, leaves)] == [torch.float32] * 3


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_no_second_derivatives(reduction, chunks) -> None:
    loss, leaves = Operands().call(scandsl.linear_cross_entropy, reduction=reduction)
    first = torch.autograd.grad(loss.sum(), leaves, create_graph=True)
    with pytest.raises(NotImplementedError, match="linear_cross_entropy has first derivatives only"):
        torch.autograd.grad(first[0].square().sum(), leaves)


def test_no_forward_mode() -> None:
    operands = Operands()

    def loss(x):
        return scandsl.linear_cross_entropy(x, operands.weight.detach(), operands.target)

    x = operands.x.detach()
    with pytest.raises(NotImplementedError, match="linear_cross_entropy has first derivatives only"):
        torch.func.jvp(loss, (x,), (x,))
    torch.testing.assert_close(torch.func.grad(loss)(x), torch.autograd.grad(loss(operands.x), operands.x)[0])


def test_compiled() -> None:
    operands = Operands()

    def loss(x, weight, bias):
        return 2 * scandsl.linear_cross_entropy(x.sin(), weight, operands.target, bias)

    torch._dynamo.reset()
    run = torch.compile(loss, fullgraph=True, backend="aot_eager")
    expected = torch.autograd.grad(loss(*operands.leaves), operands.leaves)
    torch.testing.assert_close(torch.autograd.grad(run(*operands.leaves), operands.leaves), expected)


X, WEIGHT, TARGET = torch.zeros(3, 4), torch.zeros(5, 4), torch.tensor([0, 4, 2])


def called(x=X, weight=WEIGHT, target=TARGET, bias=None, **options):
    return lambda: scandsl.linear_cross_entropy(x, weight, target, bias, **options)


@pytest.mark.parametrize("needs_gradient", [False, True])
@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (called(weight=WEIGHT[:, 1:]), ValueError, ["weight", "[V, 4]", "[5, 3]"]),
        (called(weight=WEIGHT.half()), TypeError, ["weight", "float16"]),
        (called(target=TARGET[1:]), ValueError, ["target", "[3]", "[2]"]),
        (called(target=TARGET.float()), TypeError, ["target", "float32"]),
        (called(target=TARGET + 1), ValueError, ["targets in [0, 5)", "5 at position 1"]),
        (called(bias=torch.zeros(4)), ValueError, ["bias", "[5]", "[4]"]),
        (called(class_weight=torch.zeros(5).double()), TypeError, ["class_weight", "float64"]),
        (called(label_smoothing=1.5), ValueError, ["label_smoothing", "1.5"]),
        (called(softcap=-1.0), ValueError, ["softcap", "-1"]),
        (called(z_loss=torch.inf), ValueError, ["z_loss"]),
        (called(reduction="max"), ValueError, ["reduction", "mean", "max"]),
        (called(accumulate="most"), ValueError, ["accumulate", "auto", "most"]),
        (called(accumulate=torch.float64), TypeError, ["accumulate", "float64"]),
        (called(ignore_index=0.5), TypeError, ["ignore_index", "float"]),
        (called(x=None), TypeError, ["x", "None"]),
        (called(x=X.int()), TypeError, ["x", "int32"]),
    ],
)  # fmt: skip
def test_messages(call, error: type, words: list, needs_gradient, monkeypatch) -> None:
    monkeypatch.setattr(WEIGHT, "requires_grad", needs_gradient)
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


def test_module() -> None:
    operands = Operands()
    options = {"label_smoothing": 0.1, "reduction": "sum", "class_weight": operands.class_weight}
    module = scandsl.LinearCrossEntropyLoss(**options)
    assert torch.equal(operands.call(module)[0], operands.call(scandsl.linear_cross_entropy, **options)[0])
    assert "label_smoothing=0.1" in repr(module)
