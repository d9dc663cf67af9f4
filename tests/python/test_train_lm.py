"""examples/train_lm.py: its model learns, on the ops of scandsl as on plain ones, and runs resume exactly."""

import os
import subprocess
import sys
import time
import xml.etree.ElementTree
from pathlib import Path

import pytest
import torch

from cases import DEVICE
from conftest import PROJECT, run

EXAMPLES = PROJECT / "examples"
TEXT = PROJECT / "docs/scans.md"
SMALL = ["--width", 16, "--heads", 2, "--layers", 2, "--length", 32, "--batch", 4, "--sample", 5]


@pytest.fixture
def train_lm(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(EXAMPLES)
    import train_lm

    return train_lm


def small_run(train_lm, ops: str, dtype: str):
    size = train_lm.Size(width=16, heads=2, layers=2)
    settings = train_lm.Settings(
        ops, text="", steps=20, batch=4, length=32, size=size, rate=1e-2, seed=3, dtype=dtype
    )
    text = torch.frombuffer(bytearray(TEXT.read_bytes()), dtype=torch.uint8).long().to(DEVICE)
    return train_lm.Run(settings, text, torch.device(DEVICE))


# Rounding grows over the steps: to 3e-15 and 1.4e-6 of a nat when this was written.
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-4)])
def test_plain_ops_give_the_same_losses(train_lm, dtype: str, tolerance: float) -> None:
    runs = [small_run(train_lm, ops, dtype) for ops in ("scandsl", "torch")]
    for each in runs:
        for _ in range(each.settings.steps):
            each.step()
    losses, expected = (torch.tensor(each.losses) for each in runs)
    assert expected[-1] < expected[0] - 1
    assert (losses - expected).abs().max() < tolerance


@pytest.mark.parametrize("ops", ["scandsl", "torch"])
def test_a_byte_at_a_time(train_lm, ops: str) -> None:
    from language_model import Memory

    started = small_run(train_lm, ops, "float64")
    text = started.excerpts()
    with torch.no_grad():
        whole, _ = started.model.features(text, Memory())
        memory, pieces = Memory(), []
        for piece in text.split([20, 3, *[1] * (text.shape[1] - 23)], 1):
            x, memory = started.model.features(piece, memory)
            pieces.append(x)
    torch.testing.assert_close(torch.cat(pieces, 1), whole)


def train(out: Path, *options: object) -> list:
    command = [sys.executable, EXAMPLES / "train_lm.py", "--text", TEXT, "--out", out, "--device", DEVICE]
    return [*map(str, [*command, *SMALL, "--steps", 60, "--checkpoint-every", 10, *options])]


def test_killed_and_resumed(train_lm, tmp_path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run(*train(whole), env=environment)
    with subprocess.Popen(train(killed), env=environment, stderr=subprocess.DEVNULL) as process:
        while not (killed / "scandsl.pt").exists() and process.poll() is None:
            time.sleep(0.001)
        process.kill()
    assert process.returncode < 0, "the run ended before it could be killed"
    assert not (killed / "loss.svg").exists()
    told = run(*train(killed, "--resume"), env=environment)
    assert "loss on the last twentieth" in told
    first, second = (torch.load(folder / "scandsl.pt") for folder in (whole, killed))
    assert len(first["losses"]) == 60
    if DEVICE == "cpu":
        assert first["losses"] == second["losses"]
        assert all(torch.equal(value, second["model"][name]) for name, value in first["model"].items())
    else:  # each process times cuBLASLt's ways to multiply, and may take another: rounding, which grows
        assert (torch.tensor(first["losses"]) - torch.tensor(second["losses"])).abs().max() < 1e-3
    (curve,) = xml.etree.ElementTree.parse(killed / "loss.svg").iter("{http://www.w3.org/2000/svg}polyline")
    assert len(curve.get("points").split()) == 60


def test_another_model_is_not_resumed(train_lm, tmp_path: Path) -> None:
    started = small_run(train_lm, "torch", "float32")
    started.save(tmp_path / "run.pt")
    with pytest.raises(SystemExit, match="'ops': 'torch'.*'ops': 'scandsl'"):
        small_run(train_lm, "scandsl", "float32").restore(tmp_path / "run.pt")
