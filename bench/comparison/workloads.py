"""The workloads of the comparison: those of the published tables, and the goals' own beside them.

A case is a line of a plot: an op with one set of options. A workload is a case at one size n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

CHUNK = 128  # positions, of the chunked cumulative sum


def powers(first: int, last: int) -> tuple[int, ...]:
    return tuple(1 << each for each in range(first, last + 1))


@dataclass(frozen=True)
class Case:
    """units: for each pass, bytes moved in units of x's: every input read once, every output written once.

    axes: x's axes in order, by name, to their extents; that of n is what n stands for in `length`.
    """

    op: str
    name: str
    axes: dict[str, int | None]
    scanned: str | None
    sizes: tuple[int, ...]
    units: dict[str, float]
    options: dict[str, Any] = field(default_factory=dict)
    published: bool = True
    dtype: str = "bf16"

    def at(self, n: int) -> Workload:
        lengths = {name: self.length(n) if extent is None else extent for name, extent in self.axes.items()}
        return Workload(self, n, lengths)

    def length(self, n: int) -> int:
        """How many positions size n has."""
        return self.options.get("extra_tokens", 0) + n ** self.options.get("dims", 1)

    @property
    def axis(self) -> int | None:
        return None if self.scanned is None else list(self.axes).index(self.scanned)

    @property
    def differentiable(self) -> tuple[str, ...]:
        if self.op == "linear_cross_entropy":
            return ("x", "weight")
        if self.op == "decayed_sum":
            return ("x", "decay")
        return ("x", "theta") if self.options.get("theta_gradient") else ("x",)


@dataclass(frozen=True)
class Workload:
    case: Case
    n: int
    axes: dict[str, int]

    @property
    def shape(self) -> list[int]:
        return list(self.axes.values())

    @property
    def label(self) -> str:
        shape = "x".join(map(str, self.shape))
        axis = "" if self.case.axis is None else f"/axis{self.case.axis}"
        classes = f"/v{self.n}" if self.case.op == "linear_cross_entropy" else ""
        return f"{self.case.op}/{self.case.name}/{self.case.dtype}/{shape}{classes}{axis}"

    @property
    def grid(self) -> tuple[int, ...]:
        """The sizes of the grid of tokens, of md_lrpe_cosine."""
        return (self.n,) * self.case.options["dims"]

    @property
    def x_bytes(self) -> int:
        return math.prod(self.shape) * ELEMENT_BYTES[self.case.dtype]

    def bytes(self, pass_: str) -> float:
        """Of inputs and outputs together, each once. Angles and targets are few and not counted."""
        weights = self.n * self.axes["d"] * ELEMENT_BYTES[self.case.dtype] if self.flops else 0
        return self.case.units[pass_] * (self.x_bytes + weights)

    @property
    def flops(self) -> float | None:
        """Of the three matrix products of linear_cross_entropy."""
        if self.case.op != "linear_cross_entropy":
            return None
        return 6.0 * self.n * math.prod(self.shape)

    def key(self, pass_: str) -> dict[str, Any]:
        """The fields of a row that say what was run."""
        case = self.case
        return {
            "op": case.op,
            "pass": pass_,
            "case": case.name,
            "dtype": case.dtype,
            "shape": self.shape,
            "axis": case.axis,
            "n": self.n,
        }

    def within(self, x_bytes: float, flops: float) -> Workload:
        """The same with as many halvings of the axes that n does not name as it takes to keep the limits."""
        work = self
        order = [name for name in ("b", "tokens", "h", "d") if name in self.axes]
        while work.x_bytes > x_bytes or (work.flops or 0) > flops:
            larger = [name for name in order if work.axes[name] > SMALLEST.get((work.case.op, name), 1)]
            if not larger:
                break
            name = larger[0]
            work = replace(work, axes={**work.axes, name: max(work.axes[name] // 2, 1)})
        return work

    def small(self) -> Workload:
        """A size at which a check in float64 costs nothing; the options stay."""
        n = {1: min(self.n, 512), 2: 8, 3: 4}[self.case.options.get("dims", 1)]
        if self.case.op == "linear_cross_entropy":
            n = 1024
        work = self.case.at(n)
        few = {"b": 2, "h": 2, "tokens": 256}
        if self.case.op in COLUMNS:
            few["n" if self.case.scanned == "d" else "d"] = 64
        if self.case.op == "linear_cross_entropy":
            few["d"] = 256
        axes = {name: min(extent, few.get(name, extent)) for name, extent in work.axes.items()}
        return replace(work, axes=axes)


ELEMENT_BYTES = {"bf16": 2, "f16": 2, "f32": 4, "f64": 8}
COLUMNS = ("logcumsumexp", "decayed_sum")  # [b, n, d]
# Where `within` stops: features that cosines and chunks are laid out for, products that fill vector units.
SMALLEST = {
    ("lrpe_cosine", "d"): 128,
    ("md_lrpe_cosine", "d"): 128,
    ("chunk_cumsum_decay", "d"): 128,
    ("linear_cross_entropy", "d"): 256,
    ("linear_cross_entropy", "tokens"): 64,
}


def columns(op: str, name: str, scanned: str, units: dict, published: bool = False) -> Case:
    axes = {"b": 12, "n": None, "d": 2048}
    return Case(op, name, axes, scanned, powers(9, 15), units, published=published)


def chunked(batch: int, features: int, direction: str) -> Case:
    axes = {"b": batch, "n": None, "h": 16, "d": features}
    options = {"reverse": direction == "reverse"}
    return Case("chunk_cumsum_decay", direction, axes, "n", powers(10, 15), {"forward": 2}, options)


def encoding(name: str, act: str, scanned: str | None, backward: int, **more: Any) -> Case:
    axes = {"b": 12, "n": None, "h": 12, "d": 128}
    forward = 4 if scanned == "n" else 3
    options = {"act": act, "act_dim": {"d": -1, "n": 1, None: None}[scanned], **more}
    published = not more
    units = {"forward": forward, "backward": backward}
    return Case("lrpe_cosine", name, axes, scanned, powers(8, 15), units, options, published)


def on_grid(dims: int, extra_tokens: int) -> Case:
    axes = {"b": 12, "h": 12, "n": None, "d": 128}
    sizes = {1: powers(8, 15), 2: powers(4, 7), 3: powers(2, 5)}[dims]
    options = {"dims": dims, "extra_tokens": extra_tokens}
    units = {"forward": 3, "backward": 3}
    return Case("md_lrpe_cosine", f"{dims}d_l{extra_tokens}", axes, None, sizes, units, options)


CASES = (
    columns("logcumsumexp", "none", "d", {"forward": 2, "backward": 3}, published=True),
    columns("logcumsumexp", "none", "n", {"forward": 2, "backward": 3}),
    columns("decayed_sum", "element_decay", "d", {"forward": 3, "backward": 5}),
    columns("decayed_sum", "element_decay", "n", {"forward": 3, "backward": 5}),
    columns("decayed_sum", "scalar_decay", "d", {"forward": 2, "backward": 3}),
    columns("decayed_sum", "scalar_decay", "n", {"forward": 2, "backward": 3}),
    *(
        chunked(batch, features, direction)
        for direction in ("forward", "reverse")
        for batch in (4, 16)
        for features in (1, 128)
    ),
    encoding("none", "none", None, 3),
    encoding("silu", "silu", None, 4),
    encoding("softmax_features", "softmax", "d", 4),
    encoding("softmax_sequence", "softmax", "n", 7),
    encoding("theta_gradient", "none", None, 4, theta_gradient=True),
    *(on_grid(dims, extra) for dims in (1, 2, 3) for extra in (0, 10)),
    Case(
        "linear_cross_entropy",
        "none",
        {"tokens": 12288, "d": 4096},
        None,
        powers(10, 17),
        {"forward_backward": 2},
    ),
)
OPS = tuple(dict.fromkeys(case.op for case in CASES))
