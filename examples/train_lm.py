#!/usr/bin/env python3
"""Trains a small byte-level language model on this repository's own text, with the ops of scandsl.

    python examples/train_lm.py                  two minutes on two cores; --device cuda on a GPU
    python examples/train_lm.py --resume         goes on from the last checkpoint
    python examples/train_lm.py --compare        trains the same model on plain torch ops, too

Writes checkpoints and loss.svg to --out, then shows what the model makes of a prompt.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from language_model import OPS, LanguageModel, Size
from loss_figure import loss_figure
from torch import Tensor

PROJECT = Path(__file__).resolve().parent.parent
TEXTS = ("README.md", "docs/*.md", "include/**/*.hpp", "ops/**/*.[chm]*")
PROMPT = "The gradient of a scan is "


# How far the loss curves of a model may lie apart on different ops, in nats a byte. Rounding errors grow from
# step to step.
TOLERANCE = {"float32": 1e-3, "float64": 1e-9}


@dataclass(frozen=True)
class Settings:
    """What a run's numbers depend on, the device aside."""

    ops: str
    text: str  # a digest
    steps: int
    batch: int
    length: int
    size: Size
    rate: float
    seed: int
    dtype: str


class Progress:
    """One line that is written again and again; where nobody watches, a line every tenth of the way."""

    def __init__(self, name: str, done: int, steps: int) -> None:
        self.name, self.first, self.steps = name, done, steps
        self.start = time.monotonic()
        self.live = sys.stderr.isatty()

    def show(self, done: int, loss: float) -> None:
        if not self.live and done % max(1, self.steps // 10) and done != self.steps:
            return
        elapsed = time.monotonic() - self.start
        left = elapsed / (done - self.first) * (self.steps - done)
        bar = ("#" * (30 * done // self.steps)).ljust(30, ".")
        line = f"{self.name} [{bar}] {done}/{self.steps}  loss {loss:.3f}  {elapsed:.0f} s, {left:.0f} s left"
        ends = "\n" if not self.live or done == self.steps else ""
        print(f"\r{line:<79}" if self.live else line, end=ends, file=sys.stderr, flush=True)


class Run:
    """A model in training."""

    def __init__(self, settings: Settings, text: Tensor, device: torch.device) -> None:
        self.settings, self.text = settings, text
        torch.manual_seed(settings.seed)
        self.model = LanguageModel(settings.size, settings.ops).to(device, getattr(torch, settings.dtype))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.0, betas=(0.9, 0.99))
        self.draw = torch.Generator().manual_seed(settings.seed)
        self.losses, self.seconds = [], []

    def step(self) -> None:
        start = time.monotonic()
        settings = self.settings
        for group in self.optimizer.param_groups:
            group["lr"] = rate(settings, len(self.losses))
        self.optimizer.zero_grad()
        loss = self.model.loss(self.excerpts())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.losses.append(loss.item())
        self.seconds.append(time.monotonic() - start)

    def excerpts(self) -> Tensor:
        """Random ones of the text: [batch, length + 1]."""
        length = self.settings.length + 1
        starts = torch.randint(len(self.text) - length + 1, (self.settings.batch, 1), generator=self.draw)
        return self.text[(starts + torch.arange(length)).to(self.text.device)]

    def save(self, path: Path) -> None:
        """The file is whole at any time: the new one takes the old one's place."""
        state = {
            "settings": asdict(self.settings),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "draw": self.draw.get_state(),
            "losses": self.losses,
            "seconds": self.seconds,
        }
        unfinished = path.with_suffix(".new")
        torch.save(state, unfinished)
        unfinished.replace(path)

    def restore(self, path: Path) -> None:
        state = torch.load(path, map_location=self.text.device)
        given = asdict(self.settings)
        other = {key: was for key, was in state["settings"].items() if was != given[key]}
        if other:
            these = {key: given[key] for key in other}
            raise SystemExit(f"{path} was made with {other}; this run has {these}")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.draw.set_state(state["draw"].cpu())
        self.losses, self.seconds = state["losses"], state["seconds"]

    @torch.no_grad()
    def loss_of(self, text: Tensor) -> float:
        """The mean over the batches of excerpts that the text holds, at most 16."""
        window = self.settings.length + 1
        excerpts = text[: len(text) // window * window].reshape(-1, window)
        batches = excerpts.split(self.settings.batch)[:16]
        return statistics.mean(self.model.loss(batch).item() for batch in batches)


def rate(settings: Settings, step: int) -> float:
    """Rises over the first twentieth of the steps, then falls to a tenth along a cosine."""
    warm = max(1, settings.steps // 20)
    if step < warm:
        return settings.rate * (step + 1) / warm
    through = (step - warm) / max(1, settings.steps - warm)
    return settings.rate * (0.1 + 0.45 * (1 + math.cos(math.pi * through)))


def train(run: Run, checkpoint: Path, every: int, resume: bool) -> None:
    if resume and checkpoint.exists():
        run.restore(checkpoint)
    steps = run.settings.steps
    progress = Progress(run.settings.ops, len(run.losses), steps)
    while len(run.losses) < steps:
        run.step()
        progress.show(len(run.losses), run.losses[-1])
        if len(run.losses) % every == 0 or len(run.losses) == steps:
            run.save(checkpoint)


def settings_of(given: argparse.Namespace, ops: str, digest: str) -> Settings:
    return Settings(
        ops,
        digest,
        given.steps,
        given.batch,
        given.length,
        Size(given.width, given.heads, given.layers),
        given.rate,
        given.seed,
        given.dtype,
    )


def read_text(files: list[Path]) -> bytes:
    if not files:
        files = [file for pattern in TEXTS for file in sorted(PROJECT.glob(pattern)) if file.is_file()]
    return b"".join(file.read_bytes() for file in files)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    size = Size()
    parser.add_argument(
        "--text",
        type=Path,
        nargs="+",
        default=[],
        help="files; those of this repository where none are given",
    )
    parser.add_argument("--out", type=Path, default=PROJECT / "build/train_lm", help="folder")
    parser.add_argument("--device", type=torch.device, default="cpu")
    parser.add_argument("--ops", choices=OPS, default="scandsl")
    parser.add_argument("--compare", action="store_true", help="with all ops, one after the other")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --out")
    parser.add_argument("--checkpoint-every", type=int, default=25, metavar="STEPS")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=256, help="of an excerpt, in bytes")
    parser.add_argument("--width", type=int, default=size.width)
    parser.add_argument("--heads", type=int, default=size.heads)
    parser.add_argument("--layers", type=int, default=size.layers)
    parser.add_argument("--rate", type=float, default=3e-3, help="learning rate")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--sample", type=int, default=200, help="how many bytes to generate at the end")
    return parser.parse_args()


def main() -> int:
    given = options()
    read = read_text(given.text)
    text = torch.frombuffer(bytearray(read), dtype=torch.uint8).long().to(given.device)
    training, held_out = text.split([len(text) * 19 // 20, len(text) - len(text) * 19 // 20])
    if len(held_out) <= given.length:
        raise SystemExit(f"expected a text of more than {20 * given.length} bytes; got {len(text)}")
    given.out.mkdir(parents=True, exist_ok=True)
    runs = {}
    for ops in OPS if given.compare else [given.ops]:
        settings = settings_of(given, ops, hashlib.sha256(read).hexdigest())
        run = runs[ops] = Run(settings, training, given.device)
        train(run, given.out / f"{ops}.pt", given.checkpoint_every, given.resume)
        loss = run.loss_of(held_out)
        print(
            f"{ops}: {statistics.median(run.seconds):.3f} s a step; loss on the last twentieth of the text: "
            f"{loss:.3f} nats a byte ({loss / math.log(2):.2f} bits)"
        )
    figure = given.out / "loss.svg"
    title = f"{len(training)} bytes of text, {given.device}, {given.dtype}"
    figure.write_text(loss_figure(title, {ops: run.losses for ops, run in runs.items()}))
    print(f"loss curve: {figure}")
    if given.sample:
        print(sample(next(iter(runs.values())), given.sample))
    return compare(runs, given.dtype) if given.compare else 0


def compare(runs: dict[str, Run], dtype: str) -> int:
    """Says how far the curves lie apart; an exit status."""
    one, other = (run.losses for run in runs.values())
    apart = [abs(a - b) for a, b in zip(one, other)]
    worst = max(apart)
    agree = worst <= TOLERANCE[dtype]
    print(
        f"the curves of {' and '.join(runs)} differ by {statistics.mean(apart):.1e} on average and by "
        f"{worst:.1e} at most (step {apart.index(worst) + 1}), "
        f"{'within' if agree else 'beyond'} {TOLERANCE[dtype]:g}"
    )
    return 0 if agree else 1


def sample(run: Run, count: int) -> str:
    prompt = torch.tensor(list(PROMPT.encode()), device=run.text.device)
    generator = torch.Generator().manual_seed(run.settings.seed)
    drawn = run.model.generate(prompt, count, generator)
    return PROMPT + bytes(drawn.tolist()).decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
