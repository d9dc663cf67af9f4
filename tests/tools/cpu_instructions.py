"""The CPU kernels take as many instructions an element as they took when they were measured.

usage: cpu_instructions.py PROGRAM
PROGRAM (cpu_instructions.cpp) runs each kernel on two sizes, under callgrind of valgrind. What one element
more costs is the difference of the counts over that of the elements, so what a run does once is left out.
It must be in the band of PER_ELEMENT: more is a kernel that got slower where no clock on a shared machine
would tell, less is one that does not do all its work, or a reason to lower the band. The numbers are those
of g++ 12 at -O2 for x86-64-v3 (AVX2); where another compiler compiled, the test is left out. Exits with 77
where valgrind or AVX2 is missing.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Instructions an element, at least and at most.
PER_ELEMENT = {
    "chunk_cumsum_decay rows": (5.96, 6.46),
    "chunk_cumsum_decay strips": (2.02, 2.18),
    "decayed_sum backward rows": (21.36, 23.14),
    "decayed_sum backward strips": (18.01, 19.51),
    "decayed_sum rows": (6.54, 7.08),
    "decayed_sum strips": (2.36, 2.56),
    "logcumsumexp backward rows": (38.27, 41.45),
    "logcumsumexp backward strips": (42.92, 46.5),
    "logcumsumexp rows": (17.03, 18.45),
    "logcumsumexp strips": (13.97, 15.13),
    "lrpe_cosine": (5.61, 6.07),
    "md_lrpe_cosine": (11.42, 12.38),
}


def counts_of(program: str) -> dict[str, dict[int, int]]:
    """Instructions by kernel and number of elements."""
    found: dict[str, dict[int, int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", program]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
        for file in Path(folder).iterdir():
            text = file.read_text(errors="replace")
            trigger = re.search(r"^desc: Trigger: Client Request: (.*) (\d+)$", text, re.MULTILINE)
            if trigger:
                total = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
                found.setdefault(trigger[1], {})[int(trigger[2])] = int(total[1])
    return found


def per_element(counts: dict[int, int]) -> float:
    (small, few), (large, many) = sorted(counts.items())
    return (many - few) / (large - small)


def complaints(measured: dict[str, float]) -> list[str]:
    found = [f"{name}: not measured" for name in PER_ELEMENT if name not in measured]
    for name, value in measured.items():
        if name not in PER_ELEMENT:
            found.append(f"{name}: no band for it")
        elif not PER_ELEMENT[name][0] <= value <= PER_ELEMENT[name][1]:
            least, most = PER_ELEMENT[name]
            found.append(f"{name}: {value:.2f} instructions an element, not {least} to {most}")
    return found


def main(program: str) -> int:
    if shutil.which("valgrind") is None or "avx2" not in Path("/proc/cpuinfo").read_text():
        print("valgrind or AVX2 is missing: the CPU kernels' instructions are not counted")
        return 77
    measured = {name: per_element(counts) for name, counts in sorted(counts_of(program).items())}
    for name, value in measured.items():
        print(f"{name:32} {value:6.2f} instructions an element")
    found = complaints(measured)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
