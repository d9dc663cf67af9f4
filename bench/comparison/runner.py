"""Runs one provider on one workload and makes rows of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from . import plain_torch, providers, timing
from .workloads import Case, Workload

Row = dict[str, Any]
SUSTAINED = 1.0  # seconds that the product which others are compared with has run


@dataclass(frozen=True)
class Job:
    """One provider's passes of one workload: they share inputs, and what a compiler makes of them."""

    work: Workload
    provider: str

    @property
    def case(self) -> Case:
        return self.work.case

    def key(self, pass_: str) -> Row:
        return {**self.work.key(pass_), "provider": self.provider}

    @property
    def keys(self) -> list[Row]:
        return [self.key(pass_) for pass_ in self.case.units]


@dataclass
class Ready:
    """A job that has run once."""

    job: Job
    call: providers.Call
    checked: Row
    peaks: dict[str, float | None]  # bytes, of each pass that has run


class Runner:
    """bytes_limit: of the inputs and outputs of a workload; larger ones are left out, with a reason.

    begins(*jobs) is called where something begins that may not come back; set it to know.
    """

    def __init__(self, machine: timing.Gpu | timing.Cpu, effort: timing.Effort, bytes_limit: float) -> None:
        self.machine = machine
        self.effort = effort
        self.bytes_limit = bytes_limit
        self.begins: Callable[..., None] = lambda *jobs: None
        self.checks: dict[tuple, Row] = {}
        self.flops_a_second: float | None = None

    def rows_in_turns(self, jobs: list[Job]) -> list[Row]:
        """Of one workload's providers a row for each pass, or the reason why there is none, and the copy.

        Where products are timed the providers take turns. When the GPU does not answer any more, those that
        have not run have no rows.
        """
        rows: list[Row] = []
        ready: list[Ready] = []
        for job in jobs:
            self.begins(job)
            try:
                ready.append(self.prepared(job, rows))
            except Exception as error:  # one that fails leaves its reason, and the others go on
                done = [row["pass"] for row in rows if row["provider"] == job.provider]
                rows += [{**job.key(p), "reason": reason_of(error)} for p in job.case.units if p not in done]
            if not self.machine.works():
                return rows
            self.machine.keeps(job.provider)
        for pass_ in jobs[0].case.units:
            rows += self.rows_of_pass([each for each in ready if pass_ in each.peaks], pass_)
            if not self.machine.works():
                return rows
        ready.clear()
        if len(jobs) == 1:
            self.machine.keeps(jobs[0].provider)
        return rows

    def prepared(self, job: Job, rows: list[Row]) -> Ready:
        """What has run, checked, and its peaks of memory. A pass that fails leaves its reason."""
        machine = self.machine
        if max(map(job.work.bytes, job.case.units)) > self.bytes_limit:
            raise providers.UnavailableError("beyond the limit of sizes")
        call = providers.PROVIDERS[job.provider](job.work, machine.name)
        peaks = {}
        for pass_ in job.case.units:
            try:
                peaks[pass_] = peak_of(machine, job, call, pass_)
            except Exception as error:
                rows.append({**job.key(pass_), "reason": reason_of(error)})
        return Ready(job, call, self.checked(job), peaks)

    def rows_of_pass(self, ready: list[Ready], pass_: str) -> list[Row]:
        rows: list[Row] = []
        together = []
        for each in ready:
            self.begins(each.job)
            try:
                rotation = rotation_of(
                    self.machine, each.job, each.call, pass_, each.peaks[pass_], len(ready)
                )
                together.append((each, rotation))
            except Exception as error:
                rows.append({**each.job.key(pass_), "reason": reason_of(error)})
        return rows + self.timed(together, pass_)

    def timed(self, together: list[tuple[Ready, timing.Rotation]], pass_: str) -> list[Row]:
        if not together:
            return []
        machine, work = self.machine, together[0][0].job.work
        ready, rotations = zip(*together)
        self.begins(*(each.job for each in ready))
        moved = work.bytes(pass_)
        try:
            if work.flops is not None:
                product = self.sustained_flops()
                times = timing.measure_in_turns(machine, rotations, self.effort)
            else:
                # On the CPU a process waits for every page of memory that it has not had before.
                effort = self.effort if machine.name == "cpu" else replace(self.effort, warm=0.0)
                copy = timing.copy_of(machine, moved)
                times = [timing.measure(machine, rotation, copy, effort) for rotation in rotations]
        except Exception as error:
            if len(together) > 1 and machine.works():  # it is one's fault
                return [row for each in together for row in self.timed([each], pass_)]
            return [{**each.job.key(pass_), "reason": reason_of(error)} for each in ready]
        rows = []
        for each, found in zip(ready, times):
            row = {**each.job.key(pass_), "ms": rounded(found.ms)}
            copied = []
            if found.copy_ms is not None:
                row["gbs"] = rounded(moved / found.ms * 1e-6)
                row["of_copy"] = rounded(found.copy_ms / found.ms)
                of_copy = {"provider": "copy", "ms": rounded(found.copy_ms), "of_copy": 1.0}
                of_copy["gbs"] = rounded(moved / found.copy_ms * 1e-6)
                copied = [{**work.key(pass_), **of_copy, "mib": rounded(moved / 2**20)}]
            if work.flops is not None:
                row["of_product"] = rounded(work.flops / product / (found.ms * 1e-3))
                row["product_tflops"] = rounded(product * 1e-12)
            row["mib"] = rounded(moved / 2**20)
            if (peak := each.peaks[pass_]) is not None:
                row["peak_mib"] = round(peak / 2**20, 1)
            if found.host_us is not None:
                row["host_us"] = rounded(found.host_us)
            rows += [{**row, "samples": found.samples, **each.checked}, *copied]
        return rows

    def sustained_flops(self) -> float:
        """FLOP/s of a large product, measured once in a run."""
        if self.flops_a_second is None:
            self.flops_a_second = timing.sustained_product(self.machine, SUSTAINED)
        return self.flops_a_second

    def checked(self, job: Job) -> Row:
        """The error of values and gradients against float64, at a small size, once for a case."""
        case = job.case
        key = (case.op, case.name, tuple(case.axes.items()), case.scanned, job.provider)
        if job.provider == "torch_compile":  # it would be compiled once more, for what torch checks
            return {}
        if key not in self.checks:
            self.checks[key] = self.check(job)
        found = self.checks[key]
        allowed = max(2 * torch.finfo(plain_torch.DTYPES[case.dtype]).eps, 1e-4)
        if job.provider.startswith("scandsl") and not found.get("error", float("inf")) <= allowed:
            raise ArithmeticError(f"wrong results: {found}")
        return found

    def check(self, job: Job) -> Row:
        small = job.work.small()
        try:
            call = providers.PROVIDERS[job.provider](small, self.machine.name)
            return {"error": rounded(relative_error(small, call, self.machine.name))}
        except providers.UnavailableError:
            raise
        except Exception as error:  # some peers refuse sizes as small as this
            return {"unchecked": reason_of(error)}


def peak_of(machine: timing.Gpu | timing.Cpu, job: Job, call: providers.Call, pass_: str) -> float | None:
    """Bytes that the pass has allocated at most, once it has run."""
    machine.clear()
    first = timed_call(job.work, call, pass_, machine.name)
    first()
    machine.clear()
    return machine.peak(job.provider, first)


def rotation_of(
    machine: timing.Gpu | timing.Cpu,
    job: Job,
    call: providers.Call,
    pass_: str,
    peak: float | None,
    together: int = 1,
) -> timing.Rotation:
    """The pass on so many sets of operands that none is in the cache, each run once.

    together: how many providers have their sets at once.
    """
    moved = job.work.bytes(pass_)
    sets = timing.sets_needed(machine, moved)
    sets = max(1, min(sets, int(machine.memory_bytes / (3 + together) / (peak or 4 * moved))))
    rotation = timing.Rotation([timed_call(job.work, call, pass_, machine.name) for _ in range(sets)])
    for _ in range(sets):
        rotation()
    return rotation


def timed_call(work: Workload, call: providers.Call, pass_: str, device: str) -> Callable[[], object]:
    """The pass on inputs of its own; a backward on a graph that is kept."""
    dtype = plain_torch.DTYPES[work.case.dtype]
    inputs = plain_torch.inputs_of(work, device, dtype)
    if pass_ == "forward":

        def forward() -> object:
            with torch.no_grad():
                return call(**inputs)

        return forward
    wanted = [inputs[name].requires_grad_() for name in work.case.differentiable]
    if pass_ == "backward":
        y = call(**inputs)
        upstream = torch.randn_like(y)
        return lambda: torch.autograd.grad(y, wanted, upstream, retain_graph=True)
    upstream = torch.randn_like(call(**inputs))
    return lambda: torch.autograd.grad(call(**inputs), wanted, upstream)


def relative_error(work: Workload, call: providers.Call, device: str) -> float:
    """The largest error of results and gradients, each relative to its largest value."""
    dtype = plain_torch.DTYPES[work.case.dtype]
    inputs = plain_torch.inputs_of(work, device, dtype)
    exact = {
        name: each.double() if each.is_floating_point() else each.clone() for name, each in inputs.items()
    }
    reference = plain_torch.function(work) or (
        lambda x, decay: plain_torch.decayed_sum_loop(x, decay, work.case.axis)
    )
    got, expected = [], []
    differentiable = len(work.case.units) > 1 or "forward_backward" in work.case.units
    upstream = None
    for function, values, results in ((call, inputs, got), (reference, exact, expected)):
        wanted = [values[name].requires_grad_(differentiable) for name in work.case.differentiable]
        y = function(**values)
        results.append(y.detach())
        if differentiable:
            upstream = torch.randn_like(y) if upstream is None else upstream.to(y.dtype)
            results += torch.autograd.grad(y, wanted, upstream)
    worst = 0.0
    for ours, theirs in zip(got, expected):
        if ours.shape != theirs.shape:
            return float("inf")
        error = ((ours.double() - theirs).abs().max() / theirs.abs().max()).item()
        worst = error if error != error else max(worst, error)
    return worst


def reason_of(error: Exception) -> str:
    text = str(error).strip().splitlines() or [""]
    if isinstance(error, torch.OutOfMemoryError):
        return f"beyond the memory: {text[0]}"
    if isinstance(error, (providers.UnavailableError, ArithmeticError)):
        return text[0]
    return f"{type(error).__name__}: {text[0]}"


def rounded(value: float) -> float:
    """Four significant digits."""
    return float(f"{value:.4g}")
