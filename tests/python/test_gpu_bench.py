"""bench/gpu/run.py: what its rows are called, and who runs them beside scandsl."""

import importlib.util
import sys
import time
from dataclasses import replace

import pytest

from conftest import PROJECT

sys.path.insert(0, str(PROJECT / "bench"))

import growth  # noqa: E402
import profile_kernels  # noqa: E402
import result_file  # noqa: E402
from comparison import timing  # noqa: E402
from comparison.workloads import CASES  # noqa: E402

SPEC = importlib.util.spec_from_file_location("gpu_run", PROJECT / "bench/gpu/run.py")
gpu_run = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(gpu_run)

RESULTS = sorted((PROJECT / "bench/results").glob("*.json"))
KERNELS = result_file.read(PROJECT / "bench/results/h200-kernels.json")["rows"]
OURS = [row for row in KERNELS if row["provider"] == "scandsl"]


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_all_files_have_one_vocabulary(path) -> None:
    cases = {(case.op, case.name, case.axis) for case in (*CASES, *gpu_run.ROWS)}
    cases |= {(op, f"{name}_theta_gradient", axis) for op, name, axis in cases if op == "lrpe_cosine"}
    # Of the GPU alone.
    cases |= {("logcumsumexp", case, 1) for case in ("leaving_carries", *growth.VARIES)}
    cases.add(("linear_cross_entropy", "between_products", None))
    for row in result_file.read(path)["rows"]:
        assert (row["op"], row["case"], row["axis"]) in cases, row
        together = row["op"] == "linear_cross_entropy"
        assert row["pass"] in (("forward_backward",) if together else ("forward", "backward")), row
        assert "n" in row or not together or row["case"] == "between_products"


def growth_row(sweep: str, shape: list[int], ms: float) -> dict:
    mib = shape[0] * shape[1] * shape[-1]
    return {"provider": "scandsl", "case": sweep, "pass": "forward", "shape": shape, "ms": ms, "mib": mib}


def test_growth_names_the_sizes_where_a_byte_takes_longer() -> None:
    # Launched in 5 whatever their size, then 1 a step; but 4096 take twice as long as 2048 let expect.
    times = {1024: 5, 1536: 5, 2048: 5.5, 3072: 8, 4096: 21, 6144: 31}
    rows = [growth_row("longer_lanes", [4, size, 1], ms) for size, ms in reversed(times.items())]
    (step,) = growth.report([*rows, {**rows[0], "provider": "copy"}])
    assert step.split()[:5] == ["longer_lanes", "forward", "3072", "->", "4096"]
    # Of as many bytes each, less is a step as well as more.
    times = {16: 10, 24: 10, 32: 14, 48: 12, 64: 8}
    rows = [{**growth_row("lanes_side_by_side", [1, 1, n], ms), "mib": 1} for n, ms in times.items()]
    assert [line.split()[2] for line in growth.report(rows)] == ["24", "48"]


def test_a_profile_has_each_kernel_of_a_call_once_with_what_it_waits_for() -> None:
    assert profile_kernels.fields("lrpe_cosine/silu/bf16/12x8/axis3/forward")["axis"] == 3
    names = profile_kernels.ROWS.values()
    assert all((row := profile_kernels.fields(name))["dtype"] == "bf16" and row["shape"] for name in names)
    kernel = {"kernel": "piece", "blocks": 8, "threads": 128, "registers": 64, "dram": 50, "issue": 25}
    waits = {"memory": 2.0, "arithmetic": 3.0, "stores": 0.1}
    calls = [{**kernel, "us": us, "warps": 4, "warp_instructions": 64, "waits": waits} for us in (3, 9, 5)]
    calls.append({**calls[0], "kernel": "part", "us": 1})
    calls.append({**calls[0], "warp_instructions": 99, "us": 2})  # the same kernel, which does something else
    middle, other, third = profile_kernels.of_one_call(calls)
    assert (middle["us"], other["kernel"], third["us"]) == (5, "part", 2)
    *_, line = profile_kernels.table([{"row": "a row", "shape": [32, 8], **middle}])
    assert line == "| a row, piece | 5 | 50 | 25 | 4.0 | 8 | arithmetic 3.0, memory 2.0 |"


def chunks_backward(row: dict) -> bool:
    return (row["op"], row["pass"]) == ("chunk_cumsum_decay", "backward")


def test_rows_are_workloads_of_their_size() -> None:
    for row in OURS:
        work = gpu_run.workload_of(row)
        # Nothing of torch's does that, or no published table times it.
        if row["case"] in ("leaving_carries", "between_products") or chunks_backward(row):
            assert work is None
            continue
        key = work.key(row["pass"])
        assert {**key, **{name: row[name] for name in key if name in row}} == key
        # Four digits are written.
        assert row["mib"] == pytest.approx(work.bytes(row["pass"]) / 2**20, rel=5e-4)
        if "theta_gradient" in row["case"]:
            assert work.case.differentiable == ("x", "theta")


def test_torch_runs_each_workload_once() -> None:
    rows = gpu_run.TorchRows(OURS).rows
    assert len({str(row) for row in rows}) == len(rows)
    assert all(row["reason"] and "ms" not in row for row in rows)
    eager, compiled = ({row["op"] for row in rows if row["provider"] == name} for name in gpu_run.PROVIDERS)
    assert compiled == {row["op"] for row in OURS}
    assert eager == compiled - {"decayed_sum"}
    providers = [row["provider"] for row in rows]
    assert providers == sorted(providers, key=gpu_run.PROVIDERS.index)


def test_times_and_reasons(monkeypatch) -> None:
    effort = timing.Effort(0.0, 1)
    monkeypatch.setattr(timing, "Effort", lambda *_, **__: effort)
    beside = gpu_run.TorchRows([row for row in OURS if "8192" in str(row["shape"])])
    small, seen = [], set()
    for row, job in beside.jobs:
        if job.provider == "torch" and (row["op"], row["pass"]) not in seen:
            seen.add((row["op"], row["pass"]))
            small.append((row, replace(job, work=job.work.small())))
    beside.jobs = [*small, (small[0][0], replace(small[0][1], provider="nobody"))]
    beside.run(timing.Cpu(), time.monotonic() + 60)
    done = beside.rows[: len(small)]
    assert len(done) >= 5
    assert all(row["ms"] > 0 and row["of_copy"] > 0 and "reason" not in row for row in done)
    assert beside.rows[len(small)]["reason"] == "KeyError: 'nobody'"
    assert beside.rows[len(small) + 1]["reason"] == "the time was over"
