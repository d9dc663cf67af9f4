#!/usr/bin/env python3
"""Runs the GPU benchmarks and writes one result file, as bench/README.md describes it.

usage: bench/gpu/run.py EXECUTABLE OUTPUT.json    EXECUTABLE: build/bench/bench/gpu/scandsl_gpu_bench

Where PyTorch is installed with CUDA, its own functions are timed on the same shapes, eager and compiled.
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import result_file  # noqa: E402


def torch_rows(ours: list[dict]) -> list[dict]:
    """Rows of torch and torch_compile for the shapes of `ours`, with the same count of bytes."""
    try:
        import torch
    except ImportError:
        return []
    if not torch.cuda.is_available():
        return []
    dtypes = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}

    def chunk_sum(x, reverse):
        chunks = x.unflatten(1, (-1, 128))
        if not reverse:
            return chunks.cumsum(2).flatten(1, 2)
        return chunks.flip(2).cumsum(2).flip(2).flatten(1, 2)

    def function(row):
        axis = row["axis"]
        if row["op"] in ("logcumsumexp", "log_add_exp"):
            return lambda x: torch.logcumsumexp(x, axis)
        if row["op"] == "plain_sum":
            return lambda x: x.cumsum(axis)
        if row["op"] == "chunk_cumsum_decay":
            return lambda x: chunk_sum(x, row["case"] == "reverse")
        return None  # torch has no decayed sum

    rows = []
    for row in ours:
        eager = function(row)
        if eager is None:
            continue
        torch.compiler.reset()  # else many shapes reach the limit of recompilations and run eagerly
        for provider, call in (("torch", eager), ("torch_compile", torch.compile(eager, dynamic=False))):
            inputs = [torch.randn(row["shape"], device="cuda").to(dtypes[row["dtype"]]) for _ in range(2)]
            backward = row["pass"] == "backward"
            cotangent = torch.randn_like(inputs[0]) if backward else None
            times = []
            try:
                for i in range(12):
                    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                    x = inputs[i % 2].requires_grad_(backward)
                    y = call(x) if backward else None
                    begin.record()
                    if backward:
                        torch.autograd.grad(y, x, cotangent)
                    else:
                        call(x)
                    end.record()
                    end.synchronize()
                    if i >= 2:
                        times.append(begin.elapsed_time(end))
            except (RuntimeError, torch.OutOfMemoryError) as reason:
                print(f"{row['op']} {row['shape']}: {provider} left out: {reason}", file=sys.stderr)
                continue
            ms = statistics.median(times)
            ratio = row["of_copy"] * row["ms"] / ms
            gbs = row["gbs"] * row["ms"] / ms
            rows.append({**row, "provider": provider, "ms": ms, "gbs": gbs, "of_copy": round(ratio, 4)})
            del inputs
            torch.cuda.empty_cache()
    return rows


def main() -> None:
    executable, output = sys.argv[1:3]
    printed = subprocess.run([executable], stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = [json.loads(line) for line in printed.splitlines()]
    rows += torch_rows([row for row in rows if row["provider"] == "scandsl"])
    versions = {"nvcc": result_file.command("sh", "-c", "nvcc --version | tail -n 1")}
    versions["driver"] = result_file.gpu_driver()
    try:
        import torch

        versions["torch"] = torch.__version__
    except ImportError:
        pass
    result = result_file.new("gpu", {"gpu": result_file.gpu_name()}, versions)
    result_file.write(Path(output), {**result, "rows": rows})
    for row in rows:
        what = f"{row['op']:20} {row['case']:14} {row['dtype']:5} {row['shape']!s:22} {row['axis']}"
        print(f"{what} {row['provider']:14} {row['ms']:9.4g} ms  {row['of_copy']:.3f} of copy")


if __name__ == "__main__":
    main()
