"""The machine code of the CUDA kernels is what the design counts on.

usage: kernel_facts.py --all|--sample LIBRARY
LIBRARY holds kernels for sm_90, all that the ops have or a sample. It must not have more kernels or bytes
than MOST_KERNELS and MOST_BYTES.
Each kernel must keep within the registers that its launch bounds leave. The kernels that nearly all work
goes through (HOT) must read no register back from local memory, and must read and write global memory 16
bytes at a time, but for what SPILLS and NARROW list. The code of functions that are not inlined is left
out: those are the slow ways (walk_on, fold_in_order, gather_elements and others). Exits with 77 where
cuobjdump and nvdisasm are not to be had.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

ARCHITECTURE = "sm_90"
MOST_KERNELS = 400
MOST_BYTES = 48 << 20  # without debug information
REGISTERS_OF_A_MULTIPROCESSOR = 65536

HOT = {"one_tile_kernel", "stream_kernel", "piece_kernel", "lookback_kernel", "scale_vectors"}
SLOW = {"walk_kernel", "scale_elements"}  # walk_kernel calls walk_on and does nothing else

# Hot kernels that read registers back from local memory, and at how many places at most. The counts are nvcc
# 13.0's, rounded up a little for other releases. The first line that fits a kernel's name counts.
SPILLS = [
    # Two operands of 32 elements a thread wait in registers.
    ("decayed_sum *16 stream row*", 4),
    ("decayed_sum.gradient_without_decay bfloat16 stream row*", 64),
    ("decayed_sum.gradient_without_decay_per_lane * stream strip*", 8),
    # 512 threads leave 128. What a thread knows of its lanes waits while they are gone through.
    ("* piece strip*", 60),
    # Two blocks of a look-back and their messengers leave 112. The numbers and addresses of the tiles that a
    # block has begun wait between the turns of its loop.
    ("logcumsumexp * lookback row*", 28),
    ("decayed_sum * lookback row*", 36),
    ("decayed_sum.program_per_lane * lookback row*", 28),
    ("decayed_sum.gradient_without_decay* lookback row*", 60),
    # Gradients hold two or three operands of 32 elements a thread, and what their first sweep leaves. Rows
    # of several tiles wait for a kernel that keeps them in shared memory.
    ("logcumsumexp.gradient_program * stream row*", 120),
    ("logcumsumexp.gradient_program * strip*", 24),
    ("decayed_sum.gradient_per_lane * stream *", 100),
    ("decayed_sum.gradient_per_element * one_tile row*", 24),
    ("decayed_sum.gradient_per_element * stream row*", 184),
    # What a thread knows of its lanes, before and behind its walks.
    ("decayed_sum.gradient_per_element * stream strip*", 8),
    ("logcumsumexp *16 stream strip*", 8),
    # Positional encodings are not tuned: a product's sine and cosine for each of a thread's elements.
    ("lrpe_cosine.*", 128),
    ("md_lrpe_cosine*", 96),
    # Nor is cross entropy's pass over the logits.
    ("linear_cross_entropy*", 128),
]
# Hot kernels with narrower accesses.
NARROW = [
    # What a sum along a lane gives is one number.
    "decayed_sum.gradient_per_lane *",
    "*lrpe_cosine.*_dtheta *",
    "linear_cross_entropy*",
    # Programs of several sweeps: two lanes a thread and many steps, for each sweep joins the threads.
    "* strip<2, *",
]


@dataclass
class Kernel:
    """What the machine code says of one kernel. The counts leave out functions that are not inlined."""

    kind: str  # the template's name
    name: str  # of op, elements, kind and arrangement
    registers: int = 0
    most_registers: int = 0  # that the launch bounds leave; 255 where there are none
    threads: int = 0  # of a block at most; 0 where there are no launch bounds
    refills: int = 0  # instructions that read local memory
    wide_reads: int = 0  # of global memory, 16 bytes a thread or more
    wide_writes: int = 0


@dataclass
class Library:
    bytes: int
    kernels: list = field(default_factory=list)


def short_name(symbol: str) -> tuple:
    """The template's name, and a readable name, of a kernel whose symbol is demangled."""
    plain = symbol.strip().replace("scandsl::", "").replace("cuda_detail::", "").removeprefix("void ")
    plain = plain.removeprefix("ops::(anonymous namespace)::")
    kind = re.match(r"\w+", plain)[0]
    typed = re.search(r"(?:kernel|framed)_group<(?:ops::)?([\w:]+), \d+>, (\w+), ([\w, ]+)", plain)
    if not typed:
        return kind, plain
    sizes = r"((?:-?\d+, )*-?\d+)(?:, (?:false|true))+"
    arrangement = re.search(rf"\b(strip|row)<typed_kernel<.*>, {sizes}> ?>\(", plain)
    if kind == "walk_kernel":  # has both
        arrangement = None
    op, compute, types = typed.groups()
    # What is read once a lane is of any type all the same.
    element = next((each for each in types.split(", ") if each != "any_type"), "any_type")
    op = op.removesuffix("_program::program").replace("_program::", ".")  # decayed_sum.gradient_per_step
    elements = f"{compute} any" if element == "any_type" else element
    where = f"{arrangement[1]}<{arrangement[2]}>" if arrangement else ""
    return kind, f"{op} {elements} {kind.removesuffix('_kernel')} {where}".rstrip()


def output_of(*command, folder: str = ".") -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout


SECTION = re.compile(r"^\s*\.section\s+\.(nv\.info|text)\.([^,\s]+)")
FUNCTION = re.compile(r"^\s*\.type\s+(\S+),@function")
INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+\{?\s*(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")
NUMBER = re.compile(r"\.(?:short|word)\s+(0x[0-9a-f]+)")


def read_code(listing: str, kernels: dict) -> None:
    """Adds to `kernels`, by their symbols, what nvdisasm's listing of one file says of them."""
    kernel, symbol, attribute = None, "", ""
    in_text = own = False  # own: of the kernel itself, not of a function that it calls
    for line in listing.splitlines():
        if match := SECTION.match(line):
            symbol, in_text, own = match[2], match[1] == "text", True
            kernel = kernels.get(symbol)
        elif kernel is None:
            continue
        elif not in_text:
            if "nvinfo : " in line:
                attribute = line.split("nvinfo : ")[1].strip()
            elif attribute and (number := NUMBER.search(line)):
                if attribute == "EIATTR_MAXREG_COUNT":
                    kernel.most_registers = int(number[1], 16)
                elif attribute == "EIATTR_MAX_THREADS":
                    kernel.threads = int(number[1], 16)
                attribute = ""
        elif match := FUNCTION.match(line):
            own = match[1] == symbol
        elif own and (match := INSTRUCTION.match(line)):
            base, _, rest = match[1].partition(".")
            wide = "128" in rest.split(".")
            kernel.refills += base == "LDL"
            kernel.wide_reads += base in ("LDG", "LDGSTS") and wide or base in ("UBLKCP", "UTMALDG")
            kernel.wide_writes += base == "STG" and wide or base == "UTMASTG"


def read_library(library: Path, tools: Path) -> Library:
    dump = [tools / "cuobjdump", "--gpu-architecture", ARCHITECTURE]
    usage = output_of(*dump, "--dump-resource-usage", library)
    registers = dict(re.findall(r"Function (\S+):\s+REG:(\d+)", usage))
    kernels = {
        symbol: Kernel(*short_name(output_of("c++filt", symbol)), registers=int(count))
        for symbol, count in registers.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        output_of(*dump, "--extract-elf", "all", library.resolve(), folder=folder)
        for file in sorted(Path(folder).iterdir()):
            read_code(output_of(tools / "nvdisasm", file), kernels)
        stripped = Path(folder) / "stripped"
        subprocess.run(["strip", "--strip-debug", "-o", stripped, library], check=True)
        return Library(stripped.stat().st_size, list(kernels.values()))


def complaints(library: Library) -> Iterator[str]:
    if not library.kernels:
        yield f"no kernel for {ARCHITECTURE}"
    if len(library.kernels) > MOST_KERNELS:
        yield f"{len(library.kernels)} kernels; at most {MOST_KERNELS}"
    if library.bytes > MOST_BYTES:
        yield f"{library.bytes} bytes without debug information; at most {MOST_BYTES}"
    for kernel in library.kernels:
        for complaint in [*complaints_of_registers(kernel), *complaints_of_code(kernel)]:
            yield f"{kernel.name}: {complaint}"


def complaints_of_registers(kernel: Kernel) -> Iterator[str]:
    if kernel.threads == 0:
        yield "no launch bounds"
    elif kernel.registers > kernel.most_registers:
        yield f"{kernel.registers} registers; its launch bounds leave {kernel.most_registers}"
    elif kernel.registers * kernel.threads > REGISTERS_OF_A_MULTIPROCESSOR:
        yield f"{kernel.registers} registers for each of {kernel.threads} threads"


def complaints_of_code(kernel: Kernel) -> Iterator[str]:
    if kernel.kind in SLOW:
        return
    if kernel.kind not in HOT:
        yield "neither among the hot kernels nor among the slow ones"
    allowed = next((most for pattern, most in SPILLS if fnmatchcase(kernel.name, pattern)), 0)
    if kernel.refills > allowed:
        yield f"{kernel.refills} instructions read local memory, of {allowed} that the table grants"
    if any(fnmatchcase(kernel.name, pattern) for pattern in NARROW):
        return
    if kernel.wide_reads == 0:
        yield "no read of 16 bytes"
    if kernel.wide_writes == 0:
        yield "no write of 16 bytes"


def stale(library: Library) -> Iterator[str]:
    """Lines of the tables that fit no kernel."""
    for pattern in [each for each, _ in SPILLS] + NARROW:
        if not any(fnmatchcase(kernel.name, pattern) for kernel in library.kernels):
            yield f"no kernel is called {pattern}: take the line out of the table"


def tools() -> Path:
    """The folder of cuobjdump and nvdisasm. Exits with 77 and a reason where there is none."""
    script = Path(__file__).resolve().parents[2] / "scripts/cuda_tools.sh"
    found = subprocess.run([script], stdout=subprocess.PIPE, text=True)
    if found.returncode != 0:
        raise SystemExit(found.returncode)
    return Path(found.stdout.strip())


def main(extent: str, path: str) -> int:
    library = read_library(Path(path), tools())
    for kernel in sorted(library.kernels, key=lambda each: each.name):
        print(
            f"{kernel.name:55} {kernel.registers:3} of {kernel.most_registers:3} registers, "
            f"{kernel.refills:3} refills, {kernel.wide_reads:2} wide reads, {kernel.wide_writes} wide writes"
        )
    judged = library if extent == "--all" else Library(0, library.kernels)  # a sample is not compressed
    found = [*complaints(judged), *(stale(library) if extent == "--all" else [])]
    hot = sum(kernel.kind in HOT for kernel in library.kernels)
    size = f"{library.bytes / (1 << 20):.1f} MiB without debug information"
    print("\n".join([*found, f"{len(library.kernels)} kernels ({hot} hot), {size}"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
