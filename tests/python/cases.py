"""Calls of the ops that the tests share: shapes, layouts and options, with operands drawn from a seed.

SCANDSL_TEST_DEVICE=cuda puts the operands on the GPU.
"""

import dataclasses
import os
from typing import Any, Callable, Optional

import torch

import reference
import scandsl

DEVICE = os.environ.get("SCANDSL_TEST_DEVICE", "cpu")
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


@dataclasses.dataclass(frozen=True)
class Case:
    """One call of an op. Operands are named; those in `tensors` are drawn by it, in float64."""

    op: str
    shape: tuple
    dim: int
    options: dict = dataclasses.field(default_factory=dict)
    offsets: Optional[tuple] = None
    seeded: bool = False
    decay_shape: Optional[tuple] = None
    layout: str = "contiguous"

    def __str__(self) -> str:
        words = [self.op, "x".join(map(str, self.shape)), f"dim{self.dim}"]
        words += [key for key, value in self.options.items() if value]
        words += ["packed"] * (self.offsets is not None) + ["seeded"] * self.seeded
        words += [f"decay{self.decay_shape}"] * (self.decay_shape is not None)
        return "-".join([*words, self.layout])

    @property
    def state_shape(self) -> list:
        shape = list(self.shape)
        del shape[self.dim]
        return shape if self.offsets is None else [len(self.offsets) - 1, *shape]

    def tensors(self, seed: int = 0) -> dict:
        """The floating operands, in float64."""
        generator = torch.Generator().manual_seed(seed)

        def normal(shape):
            return torch.randn(shape, generator=generator, dtype=torch.float64)

        drawn = {"x": normal(self.shape)}
        if self.op == "decayed_sum":
            drawn["decay"] = torch.rand(self.decay_shape, generator=generator, dtype=torch.float64)
            if self.options.get("log_decay"):
                drawn["decay"] = drawn["decay"].log()
        if self.seeded:
            drawn["initial_state"] = normal(self.state_shape)
        return {name: each.to(DEVICE) for name, each in drawn.items()}

    def laid_out(self, x: torch.Tensor) -> torch.Tensor:
        """The values of x in memory of the case's layout."""
        if self.layout == "contiguous":
            return x
        if self.layout == "transposed":
            order = list(range(x.dim()))[::-1]
            return x.permute(order).contiguous().permute(order)
        if self.layout == "sliced":
            wide = x.new_zeros([2 * extent + 1 for extent in x.shape])
            view = wide[tuple(slice(1, None, 2) for _ in x.shape)]
            return view.copy_(x)
        assert self.layout == "expanded"
        return x[:1].expand(x.shape)

    @property
    def cu_seqlens(self) -> Optional[torch.Tensor]:
        return None if self.offsets is None else torch.tensor(self.offsets, dtype=torch.int32, device=DEVICE)

    def call(self, module: Any, tensors: dict, **more: Any) -> Any:
        """The op of `module` (scandsl, or the reference) on these operands."""
        function: Callable = getattr(module, self.op)
        options = {**self.options, **more, "cu_seqlens": self.cu_seqlens}
        if self.op == "chunk_cumsum_decay":
            return function(tensors["x"], dim=self.dim, **options)
        positional = [tensors["x"], *([tensors["decay"]] if "decay" in tensors else []), self.dim]
        return function(*positional, initial_state=tensors.get("initial_state"), **options)

    def results(self, module: Any, tensors: dict) -> tuple:
        """All results, the final state among them."""
        if self.op == "chunk_cumsum_decay":
            return (self.call(module, tensors),)
        return self.call(module, tensors, return_final_state=True)

    def expected(self, tensors: dict) -> tuple:
        return self.results(reference, {name: each.double() for name, each in tensors.items()})

    def got(self, tensors: dict) -> tuple:
        return self.results(scandsl, tensors)


def scan_cases(op: str, **more: Any) -> list:
    packed = {"offsets": (0, 3, 3, 11)}
    return [
        Case(op, (3, 11), -1, **more),
        Case(op, (2, 11, 5), 1, seeded=True, layout="transposed", **more),
        Case(op, (2, 11, 5), 1, {"reverse": True}, seeded=True, **more),
        Case(op, (11, 3), 0, {"exclusive": True}, seeded=True, layout="sliced", **more),
        Case(op, (2, 11, 5), -2, {"reverse": True, "exclusive": True}, **more),
        Case(op, (2, 11, 5), 1, **packed, seeded=True, **more),
        Case(op, (2, 11, 5), 1, {"reverse": True, "exclusive": True}, **packed, seeded=True, **more),
        Case(op, (4, 11), 1, {"exclusive": True}, **packed, layout="expanded", **more),
    ]


LOGCUMSUMEXP = scan_cases("logcumsumexp")
DECAYED_SUM = [
    *scan_cases("decayed_sum", decay_shape=()),
    *(
        Case("decayed_sum", (2, 11, 5), 1, options, decay_shape=shape, seeded=True, offsets=offsets)
        for shape in [(2, 11, 5), (5,), (11, 1), (2, 1, 1)]
        for options in [{}, {"log_decay": True, "reverse": True}]
        for offsets in [None, (0, 3, 3, 11)]
    ),
]
CHUNK_CUMSUM_DECAY = [
    Case("chunk_cumsum_decay", (2, 11, 5), 1, {"chunk_size": 4}),
    Case("chunk_cumsum_decay", (2, 11, 5), 1, {"chunk_size": 4, "reverse": True}, layout="transposed"),
    Case("chunk_cumsum_decay", (11, 5), 0, {"chunk_size": 3, "exclusive": True}, layout="sliced"),
    Case("chunk_cumsum_decay", (3, 11), -1, {"chunk_size": 3, "exclusive": True, "reverse": True}),
    Case("chunk_cumsum_decay", (3, 11), 1, {"chunk_size": 3}, offsets=(0, 4, 4, 11)),
    Case("chunk_cumsum_decay", (3, 11), 1, {"chunk_size": 3, "reverse": True}, offsets=(0, 4, 4, 11)),
]
ALL = [*LOGCUMSUMEXP, *DECAYED_SUM, *CHUNK_CUMSUM_DECAY]
