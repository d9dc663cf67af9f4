"""bench/compare.py: each row of the published tables has its workload, and a run goes on after a break."""

import json
import re
import sys

import pytest

from conftest import PROJECT

sys.path.insert(0, str(PROJECT / "bench"))

import compare  # noqa: E402
import result_file  # noqa: E402
from comparison import plain_torch, providers, published, runner, tables, timing  # noqa: E402
from comparison.workloads import CASES, OPS  # noqa: E402

TABLES = published.tables()


def name_of(table: dict) -> str:
    return "-".join([table["op"], table["case"], table["pass"], *map(str, table["shape"])])


@pytest.mark.parametrize("table", TABLES, ids=name_of)
def test_published_rows_are_workloads(table: dict) -> None:
    case = published.case_of(table)
    assert case is not None and case.published
    assert list(case.sizes) == table["n"]
    for n in table["n"]:
        assert case.at(n).shape == [published.extent(each, n) for each in table["shape"]]
    for provider, times in table["ms"].items():
        memory = table["mib"][provider]
        assert len(times) == len(memory) == len(table["n"])
        assert min(times) > 0 and memory == sorted(memory)
        if provider in published.MEASURED_HERE:
            assert provider in providers.PROVIDERS and providers.serves(provider, table["op"])


def test_every_published_case_has_a_table() -> None:
    wanted = [(i, pass_) for i, case in enumerate(CASES) if case.published for pass_ in case.units]
    have = [(CASES.index(published.case_of(table)), table["pass"]) for table in TABLES]
    assert sorted(have) == sorted(wanted)


def test_published_providers_are_listed() -> None:
    rows = published.rows(case.at(n) for case in CASES for n in case.sizes)
    listed = {compare.Results.key(row): row for row in rows}
    assert len(listed) == len(rows)
    for table in TABLES:
        case = published.case_of(table)
        for place, n in enumerate(table["n"]):
            for provider, times in table["ms"].items():
                key = {**case.at(n).key(table["pass"]), "provider": f"published_{provider}"}
                row = listed.get(compare.Results.key(key))
                assert (row is None) == (provider in published.MEASURED_HERE)
                if row:
                    torchs = row["of_torch"] * times[place]
                    assert torchs == pytest.approx(table["ms"]["torch"][place], rel=0.1)
                    assert row["published"] == table["gpu"]


@pytest.mark.parametrize("dims, n, shape", [(2, 16, [12, 12, 266, 128]), (3, 4, [12, 12, 74, 128])])
def test_tokens_of_a_grid(dims: int, n: int, shape: list) -> None:
    (case,) = [case for case in CASES if case.name == f"{dims}d_l10"]
    work = case.at(n)
    assert work.shape == shape and work.grid == (n,) * dims
    x = plain_torch.inputs_of(work.small(), "cpu", plain_torch.DTYPES["f32"])
    y = plain_torch.function(work.small())(**x)
    assert y.shape == (*x["x"].shape[:-1], 2 * shape[-1])


def test_order_begins_near_8192() -> None:
    jobs = compare.jobs_of(CASES, ["torch_compile", "torch"], lambda work: work)
    first = [job for job in jobs if job.work.case == jobs[0].work.case]
    assert [job.work.n for job in first[:3]] == [8192, 8192, 4096]
    assert [job.provider for job in first[:2]] == ["torch", "torch_compile"]


def test_order_where_speed_drifts_has_providers_side_by_side() -> None:
    jobs = compare.jobs_of(CASES, ["torch_compile", "torch"], lambda work: work, together=True)
    one, other = jobs[:2]
    assert (one.work, one.provider, other.provider) == (other.work, "torch_compile", "torch")


def test_products_are_timed_in_turns() -> None:
    jobs = compare.jobs_of(CASES, ["torch_compile", "torch"], lambda work: work)
    groups = compare.in_turns(jobs)
    assert [job for group in groups for job in group] == jobs
    for group in groups:
        products = group[0].work.flops is not None
        assert [job.provider for job in group] == ["torch_compile", "torch"] if products else len(group) == 1
    assert any(len(group) == 2 for group in groups)


def test_turns_go_there_and_back() -> None:
    ran = []
    calls = [timing.Rotation([lambda name=name: ran.append(name)]) for name in "ab"]
    effort = timing.Effort(0.0, 4, turns=3)
    times = timing.measure_in_turns(timing.Cpu(), calls, effort)
    assert all(each.samples >= 4 and each.ms >= 0 for each in times)
    assert re.fullmatch("aabb(a+b+)(b+a+)(a+b+)", "".join(ran))


def test_one_that_fails_leaves_the_others_their_turns(monkeypatch) -> None:
    def broken(work, device):
        raise RuntimeError("broken")

    monkeypatch.setitem(providers.PROVIDERS, "torch_compile", broken)
    case = next(case for case in CASES if case.op == "linear_cross_entropy")
    work = case.at(1024).within(1e4, 1e6)
    jobs = [runner.Job(work, name) for name in ("torch_compile", "torch")]
    failed, timed = runner.Runner(timing.Cpu(), timing.Effort(0.0, 1), float("inf")).rows_in_turns(jobs)
    assert (failed["provider"], failed["reason"]) == ("torch_compile", "RuntimeError: broken")
    assert timed["provider"] == "torch" and timed["ms"] > 0


@pytest.mark.parametrize("fails_at", [1, 2, 3])
def test_a_pass_that_fails_leaves_the_other_its_time(monkeypatch, fails_at: int) -> None:
    """Where it first runs, and where its sets of operands are made."""
    case = next(case for case in CASES if case.op == "logcumsumexp")
    ran = []
    right = runner.timed_call

    def timed_call(work, call, pass_, device):
        ran.append(pass_)
        if pass_ == "backward" and ran.count(pass_) >= fails_at:
            raise RuntimeError("no backward")
        return right(work, call, pass_, device)

    monkeypatch.setattr(runner, "timed_call", timed_call)
    job = runner.Job(case.at(512).within(1e4, 1e9), "torch")
    rows = runner.Runner(timing.Cpu(), timing.Effort(0.0, 1), float("inf")).rows_in_turns([job])
    forward, backward = (
        [row for row in rows if row["pass"] == pass_ and row["provider"] == "torch"]
        for pass_ in ("forward", "backward")
    )
    assert len(forward) == len(backward) == 1 and forward[0]["ms"] > 0
    assert backward[0]["reason"] == "RuntimeError: no backward"


def test_who_hangs_is_told() -> None:
    hanging = []
    watch = compare.Watch(0.01, lambda *jobs: hanging.append(jobs))
    watch.begins("slow")
    watch.timer.join()
    watch.begins("fast")
    watch.ends()
    watch.timer.join()
    assert hanging == [("slow",)]


def test_shrinking_keeps_its_limits() -> None:
    for case in CASES:
        for n in case.sizes:
            work = case.at(n).within(1 << 24, 1e12)
            assert work.n == n and all(extent > 0 for extent in work.shape)
            assert work.x_bytes <= max(1 << 24, case.at(n).within(0, 0).x_bytes)


@pytest.mark.parametrize("op", OPS)
def test_check_sees_a_wrong_result(op: str) -> None:
    case = next(case for case in CASES if case.op == op)
    work = case.at(case.sizes[0]).within(1 << 12, 1e6)
    right = plain_torch.function(work)
    if right is None:

        def right(x, decay):
            return plain_torch.decayed_sum_loop(x, decay, case.axis)

    assert runner.relative_error(work, right, "cpu") < 0.05
    assert runner.relative_error(work, lambda **inputs: right(**inputs) * 1.25, "cpu") > 0.1


def test_interrupted_run_goes_on(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(result_file, "commit", lambda: "0123456789ab")
    output = tmp_path / "result.json"
    arguments = ["--output", str(output), "--device", "cpu", "--quick", "--x-bytes", "1e4"]
    arguments += ["--providers", "torch", "--only", "chunk_cumsum_decay/forward.*x(1024|2048)x"]
    counted = []
    measured = runner.Runner.rows_in_turns
    monkeypatch.setattr(
        runner.Runner, "rows_in_turns", lambda self, jobs: counted.extend(jobs) or measured(self, jobs)
    )
    assert compare.main([*arguments, "--seconds", "0"]) == compare.MORE_TO_RUN
    assert not counted
    assert compare.main([*arguments, "--only", "chunk_cumsum_decay/forward.*x1024x"]) == 0
    first = json.loads(output.read_text())
    before = len(counted)
    assert before and {row["n"] for row in first["rows"]} == {1024}
    assert compare.main(arguments) == 0
    rows = json.loads(output.read_text())["rows"]
    assert rows[: len(first["rows"])] == first["rows"]
    assert len(counted) == 2 * before and {row["n"] for row in rows} == {1024, 2048}
    assert all(row["ms"] > 0 and row["of_copy"] > 0 for row in rows)
    assert {row["provider"] for row in rows} == {"torch", "copy"}


def test_other_machines_results_are_not_gone_on_with(tmp_path, monkeypatch) -> None:
    output = tmp_path / "result.json"
    arguments = ["--output", str(output), "--device", "cpu", "--providers", "torch", "--only", "no such case"]
    monkeypatch.setattr(result_file, "cpu_name", lambda: "one")
    results = compare.Results(output, "cpu", retry=False)
    results.add([])
    assert compare.main(arguments) == 0
    monkeypatch.setattr(result_file, "cpu_name", lambda: "another")
    with pytest.raises(SystemExit, match="one.*another.*--output"):
        compare.main(arguments)


def test_tables() -> None:
    case = CASES[0]
    rows = [
        {**case.at(512).key("forward"), "provider": "scandsl", "ms": 0.125, "of_copy": 0.5, "peak_mib": 48.0},
        {**case.at(1024).key("forward"), "provider": "scandsl", "reason": "beyond the memory: 1 GiB"},
        *published.rows([case.at(512)]),
    ]
    result = {"machine": {"gpu": "G"}, "commit": "c", "run": "r", "rows": rows}
    text = tables.markdown(result)
    assert "| 512 | 0.125 (0.50) | 6.33 x torch (A800) | 0.778 x torch (A800) |" in text
    assert "| 1024 | beyond memory |" in text and "| 512 | 48 |" in text


def test_least_shares() -> None:
    columns, grid = CASES[0], next(case for case in CASES if case.name == "2d_l10")
    shares = [(columns, 1024, 0.1), (columns, 2048, 0.9), (columns, 8192, 0.75), (columns, 16384, 0.8)]
    shares += [(grid, 32, 0.2), (grid, 64, 0.85), (grid, 128, 0.95)]
    rows = [
        {**case.at(n).key("forward"), "provider": "scandsl", "ms": 1.0, "of_copy": share}
        for case, n, share in shares
    ]
    rows.append({**columns.at(32768).key("forward"), "provider": "scandsl", "reason": "beyond the memory"})
    rows.append({**columns.at(4096).key("forward"), "provider": "torch", "ms": 1.0, "of_copy": 0.05})
    text = tables.least(rows)
    assert f"| {columns.op} | along {columns.axis} | forward | 0.75 | 8192 | 0.75 |" in text
    assert "| md_lrpe_cosine | 2d l10 | forward | 0.85 | 64 |  |" in text
    assert text.count("\n") == 3


def test_failure_is_a_row(monkeypatch) -> None:
    def broken(work, device):
        raise RuntimeError("broken\nin detail")

    monkeypatch.setitem(providers.PROVIDERS, "torch", broken)
    small = timing.Effort(0.0, 1)
    job = runner.Job(CASES[0].at(512).within(1e4, 1e9), "torch")
    rows = runner.Runner(timing.Cpu(), small, float("inf")).rows_in_turns([job])
    assert [row["reason"] for row in rows] == ["RuntimeError: broken"] * 2
    assert [row["pass"] for row in rows] == ["forward", "backward"]
