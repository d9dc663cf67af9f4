"""Derivatives of the library's ops: what torch is told of three kernels.

An op f is three kernels of the same operands and options (python/src/scan_call.hpp): f, its backward pass
b(w, x) = J(x)^T w, and the backward pass of that, which gives J(x) v and the gradient by x of <b(w, x), v>,
called h(v, w, x) below. All three are derived from f's program in C++. They are all that first and second
derivatives of every kind are made of:

    reverse over f: b               forward over f: J v, from h
    reverse over b: h               forward over b: b(tw, x) + the gradient in h(tx, w, x), Hessians being
    reverse over J v: b and h                       symmetric

Third derivatives, and forward mode over forward mode, raise NotImplementedError.

On a GPU a scan that will be differentiated can leave carries behind, with which its backward pass begins
(leaves_carries): two more kernels, which nothing but autograd's plain reverse mode calls. torch.compile does
not, for how many bytes there are depends on the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional

import torch
from torch import Tensor
from torch._C import _are_functorch_transforms_active
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

from ._library import explained

Tensors = Sequence[Optional[Tensor]]


class Kind(NamedTuple):
    """What an operand or a result is: a word for batching rules, and whether derivatives are taken by it."""

    name: str
    differentiable: bool = True


TENSOR = Kind("tensor")
INTEGERS = Kind("integers", differentiable=False)


class Carries(NamedTuple):
    """When a scan leaves carries.

    operand: the number of the one whose gradient begins with them.
    results: from the arguments of a call, how many results it has beside them.
    """

    operand: int
    results: Callable[..., int]


class Kernel:
    """A kernel of the dispatcher.

    op: the overload that torch.compile, torch.func and autograd know.
    function: its autograd.Function.
    carrying, carried_for: the autograd.Function of the kernel that leaves carries on a GPU, if there is one,
        and the number of the operand whose gradient begins with them.
    run: its results, for all of its arguments.
    """

    __slots__ = ("op", "function", "carrying", "carried_for", "run")

    def __init__(self, op: Any, tensors: int | None = None) -> None:
        """tensors: how many of the first arguments are tensors, if only they are; None: any may be."""
        self.op, self.carrying, self.carried_for = op, None, 0
        self.run = _runner(self, tensors)

    def with_gradient(self, arguments: Sequence[Any]) -> Sequence[Tensor]:
        if self.carrying is not None and _is_on_gpu_with_gradient(arguments[self.carried_for]):
            return self.carrying.apply(*arguments)
        return self.function.apply(*arguments)


def _runner(kernel: Kernel, tensors: int | None) -> Callable:
    """Kernel.run. The dispatcher would do; without its detours the call takes half the time.

    A closure, and one function, for what Python looks up and calls is a tenth of a microsecond each.
    """
    op, overload = kernel.op, _no_grad(kernel.op)
    no_grad = _guarded(op) if overload is None else overload._op
    defaults = () if overload is None else _defaults(overload)[::-1]

    def run(*arguments):
        try:
            if traced_or_transformed():
                return op(*arguments)
            if torch.is_grad_enabled():
                # torch._C._any_requires_grad takes twice as long for a few, any() half as long again.
                for each in arguments[:tensors]:
                    if each is not None and isinstance(each, Tensor) and each.requires_grad:
                        return kernel.with_gradient(arguments)
            # What is as by default is left out: torch takes a fifth of a microsecond for each argument.
            given = len(arguments)
            for default in defaults:
                if arguments[given - 1] is not default:
                    break
                given -= 1
            return no_grad(*arguments[:given])
        except RuntimeError as error:
            raise explained(error) from None

    return run


class Operation:
    """An op of the dispatcher with its derivatives, its shapes and its batching rule.

    namespace, name: the op is torch.ops.<namespace>.<name>; its other kernels are <name>_backward and
        <name>_double_backward.
    operands, outputs: the tensors that the op takes (options follow them), and those that it gives at most:
        an option may leave out the last ones.
    results: from the arguments of a call, empty tensors like its results. The arguments may be fake tensors.
    batched: from a kernel and the kinds of what it takes and gives, its rule for torch.library.register_vmap.
        Without one each sample is a call of its own.
    linear: in all its operands, so that every higher derivative is 0.
    first_only: there is no kernel <name>_double_backward; what needs it raises NotImplementedError.
    leaves_carries: there are kernels <name>_leaving_carries, which gives one more tensor where it left
        carries there, and <name>_backward_with_carries, which takes it.
    """

    def __init__(
        self,
        namespace: str,
        name: str,
        operands: Sequence[Kind],
        outputs: Sequence[Kind],
        results: Callable[..., list[Tensor]],
        batched: Callable | None = None,
        linear: bool = False,
        first_only: bool = False,
        leaves_carries: Carries | None = None,
    ) -> None:
        ops = getattr(torch.ops, namespace)
        self.name = name
        self.differentiable = tuple(kind.differentiable for kind in operands)
        self.outputs = len(outputs)
        self.linear = linear
        self.forward = Kernel(getattr(ops, name).default, len(operands))
        self.run = self.forward.run
        self.backward = Kernel(getattr(ops, f"{name}_backward").default)
        self.second = None if first_only else Kernel(getattr(ops, f"{name}_double_backward").default)
        self._results = results
        self._library = torch.library.Library(namespace, "IMPL")  # the registrations live as long as it
        by, batched = self.of_differentiable(operands), batched or one_by_one

        def register(kernel, function, fake, taken, given):
            op, no_grad = kernel.op, _no_grad(kernel.op)
            kernel.function = function
            rule = batched(op, taken, given)
            self._library.impl(op.name(), _completed(op, _autograd_kernel(op, function)), "Autograd")
            torch.library.register_fake(op.name(), _completed(op, fake), lib=self._library)
            torch.library.register_vmap(op, _completed_rule(op, rule), lib=self._library)
            if no_grad is not None:
                self._plain(no_grad, fake)

        register(self.forward, _forward(self), results, operands, outputs)
        register(self.backward, _backward(self), self._backward_results, [*outputs, *operands], by)
        if self.second is not None:
            taken, given = [*by, *outputs, *operands], [*outputs, *by]
            register(self.second, _second(self), self._second_results, taken, given)
        if leaves_carries is not None:
            scan = self._plain(getattr(ops, f"{name}_leaving_carries").no_grad, results)
            gradient = self._plain(
                getattr(ops, f"{name}_backward_with_carries").no_grad,
                lambda *arguments: self._backward_results(*arguments[:-1]),
            )
            self.forward.carrying = _forward_with_carries(self, scan, gradient, leaves_carries.results)
            self.forward.carried_for = leaves_carries.operand

    def _plain(self, op: Any, fake: Callable) -> Callable:
        """A kernel that autograd takes no notice of."""
        self._library.impl(op.name(), torch.library.fallthrough_kernel, "Autograd")
        torch.library.register_fake(op.name(), _completed(op, fake), lib=self._library)
        return op._op

    def of_second(self, *arguments: Any) -> Sequence[Tensor]:
        """What the kernel <name>_double_backward gives."""
        if self.second is None:
            raise NotImplementedError(
                f"{self.name} has first derivatives; this is a second one, or forward mode"
            )
        return self.second.run(*arguments)

    def _backward_results(self, *arguments: Any) -> list[Tensor]:
        """A gradient is like its operand."""
        operands, _ = self.operands_of(arguments[self.outputs : -1])
        return [torch.empty_like(each) for each in _wanted(arguments[-1], self.of_differentiable(operands))]

    def _second_results(self, *arguments: Any) -> list[Tensor]:
        """J v is like the op's results."""
        operands, options = self.operands_of(arguments[sum(self.differentiable) + self.outputs : -1])
        results = self._results(*operands, *options)
        missing = [None] * (self.outputs - len(results))
        like = [*results, *missing, *self.of_differentiable(operands)]
        return [torch.empty_like(each) for each in _wanted(arguments[-1], like)]

    def operands_of(self, arguments: Sequence[Any]) -> tuple:
        """`arguments` as operands and options."""
        return tuple(arguments[: len(self.differentiable)]), tuple(arguments[len(self.differentiable) :])

    def of_differentiable(self, each: Sequence[Any]) -> list:
        """Of a list with an entry for each operand, those of operands with a gradient."""
        return [entry for entry, has in zip(each, self.differentiable) if has]

    def per_operand(self, each: Sequence[Any]) -> list:
        """The other way round, None for operands without a gradient."""
        rest = iter(each)
        return [next(rest) if has else None for has in self.differentiable]


def _no_grad(op: Any) -> Any:
    """The overload that autograd takes no notice of (torch/kernel.hpp), which ops in Python do not have."""
    namespace, name = op.name().split("::")
    return getattr(getattr(getattr(torch.ops, namespace), name), "no_grad", None)


def _defaults(op: Any) -> tuple:
    """What the last arguments of an op are where they are left out."""
    return tuple(each.default_value for each in op._schema.arguments if each.has_default_value())


def _left_out(op: Any) -> Callable:
    """From the arguments of a call, those behind them: torch leaves out last ones that are as by default."""
    defaults, count = _defaults(op), len(op._schema.arguments)
    return lambda arguments: defaults[len(defaults) - count + len(arguments) :]


def _completed(op: Any, call: Callable) -> Callable:
    """`call` for all of the op's arguments."""
    left_out = _left_out(op)
    return lambda *arguments: call(*arguments, *left_out(arguments))


def _completed_rule(op: Any, rule: Callable) -> Callable:
    """The same for a batching rule."""
    left_out = _left_out(op)

    def with_all(info, in_dims, *arguments):
        rest = left_out(arguments)
        return rule(info, (*in_dims, *(None for _ in rest)), *arguments, *rest)

    return with_all


def _is_on_gpu_with_gradient(operand: Any) -> bool:
    return isinstance(operand, Tensor) and operand.is_cuda and operand.requires_grad


def _guarded(op: Any) -> Callable:
    """A call that autograd is told to stand aside for."""

    def call(*arguments):
        with torch._C._AutoDispatchBelowAutograd():
            return op._op(*arguments)

    return call


def traced_or_transformed() -> bool:
    """Whether torch.compile, torch.func or forward mode does more with a call than plain reverse mode."""
    return (
        torch.compiler.is_dynamo_compiling()
        or torch.compiler._is_compiling_flag  # of these two torch.compiler.is_compiling() is a slow call
        or _are_functorch_transforms_active()
        or forward_ad._current_level >= 0
    )


def one_by_one(kernel: Callable, *_: Any) -> Callable:
    """The batching rule of a kernel that has none."""

    def rule(info, in_dims, *arguments):
        def sample(i):
            return [
                each.select(dim, i) if isinstance(each, Tensor) and dim is not None else each
                for each, dim in zip(arguments, in_dims)
            ]

        results = [torch.stack(each) for each in zip(*(kernel(*sample(i)) for i in range(info.batch_size)))]
        return results, [0] * len(results)

    return rule


def _chosen(wanted: Sequence[bool], values: Sequence[Any]) -> list:
    """A list with an entry for each result, from the values of those that were wanted."""
    rest = iter(values)
    return [next(rest) if want else None for want in wanted]


def _wanted(wanted: Sequence[bool], each: Sequence[Any]) -> list:
    return [entry for want, entry in zip(wanted, each) if want]


def _any(tensors: Sequence[Any]) -> bool:
    return any(tensor is not None for tensor in tensors)


def _sum(left: Tensors, right: Tensors) -> list:
    return [b if a is None else a if b is None else a + b for a, b in zip(left, right)]


def _gradients_of_forward(
    op: Operation, ctx: Any, arguments: Sequence[Any], cotangents: Tensors, run: Callable
) -> tuple:
    """What autograd wants of f, from run(*the arguments of its backward pass)."""
    operands, options = op.operands_of(arguments)
    wanted = op.of_differentiable(ctx.needs_input_grad)
    if not _any(cotangents) or not any(wanted):
        return (None,) * len(ctx.needs_input_grad)
    missing = (None,) * (op.outputs - len(cotangents))
    gradients = run(*cotangents, *missing, *operands, *options, wanted)
    return (*op.per_operand(_chosen(wanted, gradients)), *(None for _ in options))


def _forward_with_carries(op: Operation, scan: Callable, gradient: Callable, given: Callable) -> type:
    """f(operands, options) for autograd's plain reverse mode."""

    def forward(ctx, *arguments):
        results, count = scan(*arguments), given(*arguments)
        _save(ctx, arguments, results[count:])
        ctx.carries = len(results) > count
        return tuple(results[:count])

    def backward(ctx, *cotangents):
        saved = ctx.saved_tensors  # once: hooks may count (torch.utils.checkpoint)

        def run(*arguments):
            plain = torch.is_grad_enabled() or traced_or_transformed()
            if ctx.carries and not plain:
                return gradient(*arguments, saved[-1])
            return op.backward.run(*arguments)

        return _gradients_of_forward(op, ctx, _restored(ctx, saved), cotangents, run)

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type(f"{op.name}_with_carries", (torch.autograd.function._SingleLevelFunction,), members)


def _forward(op: Operation) -> type:
    """f(operands, options)."""

    def backward(ctx, *cotangents):
        return _gradients_of_forward(op, ctx, _arguments(ctx), cotangents, op.backward.run)

    def jvp(ctx, *tangents):
        operands, options = op.operands_of(_arguments(ctx, primal=True))
        along = op.of_differentiable(tangents)
        nothing = [None] * op.outputs
        wanted = [i < ctx.results for i in range(op.outputs)] + [False] * len(along)
        return tuple(op.of_second(*along, *nothing, *operands, *options, wanted))

    return _function(op.forward, backward, jvp)


def _backward(op: Operation) -> type:
    """b(cotangents, operands, options, wanted): gradients of the operands that `wanted` names."""

    def split(arguments):
        cotangents, rest = arguments[: op.outputs], arguments[op.outputs : -1]
        return (list(cotangents), *op.operands_of(rest), arguments[-1])

    def backward(ctx, *results):
        cotangents, operands, options, wanted = split(_arguments(ctx))
        along = _chosen(wanted, results)
        needs = ctx.needs_input_grad
        by = [*needs[: op.outputs], *op.of_differentiable(needs[op.outputs :])]
        if not _any(along) or not any(by):
            return (None,) * len(needs)
        gradients = _chosen(by, op.of_second(*along, *cotangents, *operands, *options, by))
        return (
            *gradients[: op.outputs],
            *op.per_operand(gradients[op.outputs :]),
            *(None for _ in options),
            None,
        )

    def jvp(ctx, *tangents):
        cotangents, operands, options, wanted = split(_arguments(ctx, primal=True))
        of_cotangents, of_operands, _, _ = split(tangents)
        along = op.of_differentiable(of_operands)
        result = [None] * ctx.results
        if _any(of_cotangents):
            result = op.backward.run(*of_cotangents, *operands, *options, wanted)
        if _any(along):
            by = [False] * op.outputs + list(wanted)
            result = _sum(result, op.of_second(*along, *cotangents, *operands, *options, by))
        return tuple(result)

    return _function(op.backward, backward, jvp)


def _second(op: Operation) -> type:
    """h(tangents, cotangents, operands, options, wanted): J v for each result of the op, then gradients."""
    count = sum(op.differentiable)

    def backward(ctx, *results):
        arguments = _arguments(ctx)
        along, rest = list(arguments[:count]), arguments[count:-1]
        operands, options = op.operands_of(rest[op.outputs :])
        given = _chosen(arguments[-1], results)
        cotangents, needs = given[: op.outputs], ctx.needs_input_grad
        if _any(given[op.outputs :]) and not op.linear:
            raise _third_derivative(op)
        if not _any(cotangents):
            return (None,) * len(needs)
        of_along, of_operands = list(needs[:count]), op.of_differentiable(needs[count + op.outputs :])
        gradients = [None] * count
        if any(of_along):
            gradients = _chosen(of_along, op.backward.run(*cotangents, *operands, *options, of_along))
        by_operands = [None] * count
        if any(of_operands):
            by = [False] * op.outputs + of_operands
            by_operands = _chosen(of_operands, op.of_second(*along, *cotangents, *operands, *options, by))
        return (
            *gradients,
            *(None for _ in cotangents),
            *op.per_operand(by_operands),
            *(None for _ in options),
            None,
        )

    def jvp(ctx, *tangents):
        if not op.linear:
            raise _third_derivative(op)
        arguments = _arguments(ctx, primal=True)
        if not _any(tangents[:count]):
            return tuple(each.zero_() for each in op._second_results(*arguments))
        return tuple(op.of_second(*tangents[:count], *arguments[count:]))

    return _function(op.second, backward, jvp)


def _third_derivative(op: Operation) -> NotImplementedError:
    return NotImplementedError(
        f"{op.name} has first and second derivatives; this is a third, or forward mode over forward mode"
    )


def _function(kernel: Kernel, backward: Callable, jvp: Callable) -> type:
    """The autograd.Function of a kernel, for one level of torch.func or for none."""

    guarded = _guarded(kernel.op)

    def forward(*arguments):
        return tuple(guarded(*arguments))

    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*_save(ctx, inputs))
        ctx.results = len(output)

    members = {
        "forward": _for_outer_levels(forward),
        "setup_context": setup_context,
        "backward": backward,
        "jvp": _for_outer_levels(jvp),
    }
    # Not torch.autograd.Function: its apply inspects a signature at every call, and under torch.func it
    # goes around the dispatcher.
    bases = (torch.autograd.function._SingleLevelFunction,)
    name = kernel.op.name().split("::")[1]
    return type(name, bases, {key: staticmethod(each) for key, each in members.items()})


def _save(ctx: Any, arguments: Sequence[Any], carries: Sequence[Tensor] = ()) -> list[Tensor]:
    """Keeps what a Function is applied to (see _arguments). Returns its tensors."""
    tensors, others = [], []
    for each in arguments:
        if isinstance(each, Tensor):
            tensors.append(each)
            others.append(None)
        else:
            others.append((each,))
    ctx.save_for_backward(*tensors, *carries)
    ctx.others = others
    ctx.set_materialize_grads(False)
    return tensors


def _for_outer_levels(method: Callable) -> Callable:
    """torch switches gradients off inside of a Function, but outer levels of torch.func differentiate it."""

    def call(*arguments):
        if not _are_functorch_transforms_active():
            return method(*arguments)
        with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
            return method(*arguments)

    return call


def _arguments(ctx: Any, primal: bool = False) -> list:
    """What a Function was applied to, without tangents where `primal`."""
    if not primal:
        return _restored(ctx, ctx.saved_tensors)
    return _restored(ctx, [torch._VF._unpack_dual(each, level=0)[0] for each in ctx.saved_tensors])


def _restored(ctx: Any, saved: Sequence[Tensor]) -> list:
    """The arguments of which `saved` has the tensors, and maybe more."""
    tensors = iter(saved)
    return [next(tensors) if other is None else other[0] for other in ctx.others]


def _autograd_kernel(kernel: Callable, function: type) -> Callable:
    """What the dispatcher calls for tensors that may need derivatives."""

    def call(*arguments):
        if not _differentiates(arguments):
            with torch._C._AutoDispatchBelowAutograd():
                return kernel(*arguments)
        with enable_single_level_autograd_function():
            return list(function.apply(*arguments))

    return call


def _differentiates(arguments: Sequence[Any]) -> bool:
    if torch.is_grad_enabled() and torch._C._any_requires_grad(*arguments):
        return True
    tensors = (each for each in arguments if isinstance(each, Tensor))
    return any(torch._VF._unpack_dual(tensor, level=0)[1] is not None for tensor in tensors)
