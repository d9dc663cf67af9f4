"""Time and memory of calls, on a GPU and on the CPU, each beside a copy of as many bytes."""

from __future__ import annotations

import gc
import math
import os
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True)
class Effort:
    """How long a row is measured: seconds in all, at least so many samples; warm: seconds before, untimed."""

    seconds: float
    least: int
    warm: float = 0.0
    sample: float = 0.001  # seconds that a sample should take, by as many calls as that needs
    turns: int = 1  # of calls that are timed in turns with others


@dataclass(frozen=True)
class Timing:
    ms: float  # median, one call
    copy_ms: float | None  # the same of the copies between the samples
    host_us: float | None  # what the calls cost the CPU, where the GPU runs behind it
    samples: int


class Gpu:
    name = "cuda"

    def __init__(self) -> None:
        properties = torch.cuda.get_device_properties(0)
        self.cache_bytes = properties.L2_cache_size
        self.memory_bytes = properties.total_memory
        self.kept: dict[str, int] = {}  # bytes that each provider holds on to between its calls

    def wait(self) -> None:
        torch.cuda.synchronize()

    def works(self) -> bool:
        """Whether no call took the GPU down."""
        try:
            self.wait()
        except RuntimeError:
            return False
        return True

    def sample(self, call: Callable[[], None], calls: int, head_start: float = 0.0) -> tuple[float, float]:
        """Seconds a call, on the GPU and on the host. head_start: seconds by which the host may run ahead."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if head_start:
            torch.cuda._sleep(int(head_start * 2e9))  # clock cycles
        begin.record()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        host = time.perf_counter() - start
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / calls * 1e-3, host / calls

    def clear(self) -> None:
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()

    def peak(self, provider: str, call: Callable[[], object]) -> float:
        """Bytes allocated at most while `call` runs, all that its provider holds included."""
        others = sum(kept for name, kept in self.kept.items() if name != provider)
        torch.cuda.reset_peak_memory_stats()
        result = call()
        del result
        return torch.cuda.max_memory_allocated() - others

    def keeps(self, provider: str) -> None:
        """Call it when nothing of a run is alive: what is allocated still belongs to the provider."""
        gc.collect()
        self.clear()
        others = sum(kept for name, kept in self.kept.items() if name != provider)
        self.kept[provider] = torch.cuda.memory_allocated() - others


class Cpu:
    name = "cpu"

    def __init__(self) -> None:
        self.cache_bytes = last_level_cache()
        self.memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    def wait(self) -> None:
        pass

    def works(self) -> bool:
        return True

    def sample(self, call: Callable[[], None], calls: int, head_start: float = 0.0) -> tuple[float, float]:
        start = time.perf_counter()
        for _ in range(calls):
            call()
        seconds = (time.perf_counter() - start) / calls
        return seconds, seconds

    def clear(self) -> None:
        pass

    def peak(self, provider: str, call: Callable[[], object]) -> None:
        """torch does not count what it allocates on the CPU."""

    def keeps(self, provider: str) -> None:
        gc.collect()


def last_level_cache() -> int:
    sizes = [each.read_text().strip() for each in Path("/sys/devices/system/cpu/cpu0/cache").glob("*/size")]
    return max((int(size[:-1]) << {"K": 10, "M": 20}[size[-1]] for size in sizes), default=32 << 20)


class Rotation:
    """Calls that take turns over several sets of inputs and keep as many results alive.

    So a call finds nothing of those before it in the cache, neither what it reads nor where it writes.
    """

    def __init__(self, calls: Iterable[Callable[[], object]]) -> None:
        self.calls = list(calls)
        self.results: deque = deque(maxlen=len(self.calls))
        self.turn = 0

    def __call__(self) -> None:
        self.results.append(self.calls[self.turn]())
        self.turn = (self.turn + 1) % len(self.calls)


def sets_needed(machine: Gpu | Cpu, bytes_of_one: float) -> int:
    """So many that, by the time the first comes round again, the cache was filled twice over."""
    return min(max(math.ceil(2 * machine.cache_bytes / max(bytes_of_one, 1)), 1), 128)


def copy_of(machine: Gpu | Cpu, bytes_moved: float) -> Rotation:
    """A copy that moves so many bytes, half of them read and half written."""
    shape = sets_needed(machine, bytes_moved), max(int(bytes_moved) // 8, 4)
    sources = torch.zeros(shape, device=machine.name)
    targets = torch.zeros_like(sources)
    return Rotation((lambda a=a, b=b: b.copy_(a)) for a, b in zip(sources, targets))


class Samples:
    """Times of a call that has run before, so that everything is compiled."""

    def __init__(self, machine: Gpu | Cpu, call: Rotation, effort: Effort, least_calls: int = 1) -> None:
        self.machine = machine
        self.call = call
        machine.wait()
        pairs = [machine.sample(call, 1) for _ in range(2)]
        seconds, host = (min(each) for each in zip(*pairs))
        self.calls = min(max(math.ceil(effort.sample / seconds), least_calls), 64)
        # The host queues them before the GPU starts on the first.
        self.head_start = min(1.5 * host * self.calls + 2e-5, 0.02)
        self.seconds: list[float] = []
        self.hosts: list[float] = []

    def warm(self, seconds: float) -> None:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            self.machine.sample(self.call, 1)

    def add(self) -> None:
        on_device, on_host = self.machine.sample(self.call, self.calls, self.head_start)
        self.seconds.append(on_device)
        self.hosts.append(on_host)

    def timing(self, copy_ms: float | None = None) -> Timing:
        # A call that waits for the GPU has waited for the head start, too: that is no cost of its own.
        host = statistics.median(self.hosts)
        ran_ahead = self.machine.name == "cuda" and host * self.calls < self.head_start
        return Timing(
            statistics.median(self.seconds) * 1e3,
            copy_ms,
            host * 1e6 if ran_ahead else None,
            len(self.seconds),
        )


def measure(machine: Gpu | Cpu, call: Rotation, copy: Rotation | None, effort: Effort) -> Timing:
    """call, and a copy in turns with it. Both have run before."""
    own = Samples(machine, call, effort)
    own.warm(effort.warm)
    copies = None if copy is None else Samples(machine, copy, effort)
    until = time.perf_counter() + effort.seconds
    while len(own.seconds) < effort.least or (time.perf_counter() < until and len(own.seconds) < 200):
        if copies is not None:
            copies.add()
        own.add()
    return own.timing(None if copies is None else copies.timing().ms)


def measure_in_turns(machine: Gpu | Cpu, calls: list[Rotation], effort: Effort) -> list[Timing]:
    """Calls that have run before and heat the machine, whose clock follows what it has done for a while.

    Each is timed effort.turns times, for effort.seconds in all, and every time it goes on for effort.warm
    before. From turn to turn their order is the other way round. Of several calls that a GPU is given at once
    only the first is waited for.
    """
    least_calls = 4 if machine.name == "cuda" else 1
    each = [Samples(machine, call, effort, least_calls) for call in calls]
    for turn in range(effort.turns):
        for own in each if turn % 2 == 0 else reversed(each):
            own.warm(effort.warm)
            least = len(own.seconds) + math.ceil(effort.least / effort.turns)
            until = time.perf_counter() + effort.seconds / effort.turns
            while len(own.seconds) < least or time.perf_counter() < until:
                own.add()
    return [own.timing() for own in each]


def sustained_product(machine: Gpu | Cpu, seconds: float) -> float:
    """FLOP/s of a product of 8192 x 8192 bfloat16 matrices after the GPU ran it for so long.

    On the CPU the matrices are 2048 x 2048, float32.
    """
    size, dtype = (8192, torch.bfloat16) if machine.name == "cuda" else (2048, torch.float32)
    a, b = (torch.randn(size, size, device=machine.name, dtype=dtype) for _ in range(2))
    product = torch.empty_like(a)
    rate, until = 0.0, time.perf_counter() + seconds
    while rate == 0.0 or time.perf_counter() < until:
        one, _ = machine.sample(lambda: torch.mm(a, b, out=product), 20)
        rate = 2 * size**3 / one
    return rate
