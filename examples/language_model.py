"""A small byte-level language model, and its ops: those of scandsl, or the same in plain torch."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

BYTES = 256


def fused_ops() -> SimpleNamespace:
    import scandsl

    return SimpleNamespace(
        lrpe_cosine=scandsl.lrpe_cosine,
        decayed_sum=scandsl.decayed_sum,
        linear_cross_entropy=scandsl.linear_cross_entropy,
    )


def plain_ops() -> SimpleNamespace:
    """As their formulas read, in torch alone, with the options that the model uses."""

    def lrpe_cosine(x: Tensor, theta: Tensor, *, offset: int = 0, act: str = "none") -> Tensor:
        position = torch.arange(offset, offset + x.shape[1], device=x.device, dtype=theta.dtype)
        angle = position[:, None, None] * theta
        f = functional.silu(x) if act == "silu" else x
        return torch.cat([f * angle.cos(), f * angle.sin()], -1)

    def decayed_sum(x, decay, dim, *, log_decay, initial_state, return_final_state):
        assert log_decay and return_final_state
        decay = decay.exp()
        h = torch.zeros_like(x.select(dim, 0)) if initial_state is None else initial_state
        y = []
        for a_t, x_t in zip(decay.unbind(dim), x.unbind(dim)):
            h = a_t * h + x_t
            y.append(h)
        return torch.stack(y, dim), h

    def linear_cross_entropy(x: Tensor, weight: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy((x @ weight.T).flatten(0, -2), target.flatten())

    return SimpleNamespace(
        lrpe_cosine=lrpe_cosine, decayed_sum=decayed_sum, linear_cross_entropy=linear_cross_entropy
    )


OPS = {"scandsl": fused_ops, "torch": plain_ops}


@dataclass(frozen=True)
class Size:
    width: int = 128
    heads: int = 4
    layers: int = 3


class Memory(NamedTuple):
    """What the layers remember of the bytes so far: how many they were, and a state for each layer."""

    length: int = 0
    states: list[Tensor] | None = None


class Mixer(nn.Module):
    """y_t = silu(q_t) * sum over s <= t of a_{s+1} ... a_t v_s cos((t - s) theta), for each feature.

    The cosine of a difference is what cosines and sines of both positions add up to.
    """

    def __init__(self, size: Size, ops: SimpleNamespace) -> None:
        super().__init__()
        self.ops, self.heads = ops, size.heads
        self.project = nn.Linear(size.width, 3 * size.width)
        self.out = nn.Linear(size.width, size.width, bias=False)
        # Wavelengths from 2 pi positions to a thousand times that; memories from 2 positions to some 150.
        frequencies = torch.logspace(0, -3, size.width // size.heads).repeat(size.heads, 1)
        self.theta = nn.Parameter(frequencies)
        with torch.no_grad():
            self.project.bias[2 * size.width :] = torch.linspace(0, 5, size.width)

    # [doc:mixer]
    def forward(self, x: Tensor, offset: int, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """x: [batch, length, width]; offset: how many positions came before. Returns y and the new state."""
        query, value, gate = self.project(x).unflatten(-1, (3, self.heads, -1)).unbind(2)
        query = self.ops.lrpe_cosine(query, self.theta, offset=offset, act="silu")
        value = self.ops.lrpe_cosine(value * torch.sigmoid(-gate), self.theta, offset=offset)
        decay = functional.logsigmoid(gate).repeat(1, 1, 1, 2)  # the same of cosines and of sines
        mixed, state = self.ops.decayed_sum(
            value, decay, 1, log_decay=True, initial_state=state, return_final_state=True
        )
        return self.out((query * mixed).unflatten(-1, (2, -1)).sum(-2).flatten(-2)), state
        # [/doc:mixer]


class Layer(nn.Module):
    def __init__(self, size: Size, ops: SimpleNamespace) -> None:
        super().__init__()
        self.mixer = Mixer(size, ops)
        self.before_mixer, self.before_features = nn.RMSNorm(size.width), nn.RMSNorm(size.width)
        self.features = nn.Sequential(
            nn.Linear(size.width, 4 * size.width), nn.GELU(), nn.Linear(4 * size.width, size.width)
        )

    def forward(self, x: Tensor, offset: int, state: Tensor | None) -> tuple[Tensor, Tensor]:
        mixed, state = self.mixer(self.before_mixer(x), offset, state)
        x = x + mixed
        return x + self.features(self.before_features(x)), state


class LanguageModel(nn.Module):
    """ops: a name in OPS."""

    def __init__(self, size: Size, ops: str) -> None:
        super().__init__()
        self.ops = OPS[ops]()
        self.embedding = nn.Embedding(BYTES, size.width)
        self.layers = nn.ModuleList(Layer(size, self.ops) for _ in range(size.layers))
        self.norm = nn.RMSNorm(size.width)
        self.head = nn.Parameter(torch.randn(BYTES, size.width) / size.width)

    def features(self, text: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """text: bytes as integers, [batch, length]. Returns [batch, length, width]."""
        x = self.embedding(text)
        states = []
        for layer, state in zip(self.layers, memory.states or [None] * len(self.layers)):
            x, state = layer(x, memory.length, state)
            states.append(state)
        return self.norm(x), Memory(memory.length + text.shape[1], states)

    def loss(self, text: Tensor) -> Tensor:
        """The mean over text [batch, length + 1] of -log p(byte | the bytes before it), in nats."""
        x, _ = self.features(text[:, :-1], Memory())
        return self.ops.linear_cross_entropy(x, self.head, text[:, 1:])

    @torch.no_grad()
    def generate(self, prompt: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """prompt: [length]. Draws `count` bytes after it, feeding the model one at a time."""
        x, memory = self.features(prompt[None], Memory())
        drawn = []
        for _ in range(count):
            likely = (x[0, -1] @ self.head.T).softmax(-1)
            drawn.append(torch.multinomial(likely.cpu(), 1, generator=generator).to(prompt.device))
            x, memory = self.features(drawn[-1][None], memory)
        return torch.cat(drawn)
