"""The machine code of the CUDA kernels is what the design counts on.

usage: kernel_facts.py --all|--sample|--record FILE...
The files, libraries or what nvcc -fatbin writes, hold kernels for sm_90, all that the ops have or a sample:
of some programs, for one element type.
--record writes down how many instructions the kernels of a sample take.
- No program may have more kernels for a type than MOST_OF_A_PROGRAM says, and all of them no more kernels or
  bytes than MOST_KERNELS and MOST_BYTES. How many there are in all is known where all are compiled, which a
  machine without a GPU does not do: how many a program has varies too much to add it up from a sample.
- Registers must leave room for as many warps on a multiprocessor as WARPS says; less hides less of the
  memory's latency, and a policy or launch bounds that changed show here.
- The kernels that nearly all work goes through (HOT) must not keep registers in local memory, and must move
  nearly all bytes of global memory 16 at a time (SHARES), but for what SPILLS and NARROW list. An operand of
  two that was read or written element by element would halve its share. What falls short of 1 are the ways
  beside the vectors, states that blocks tell each other, and what is read once a lane.
- What goes round (or all of a kernel that does not) must be as many instructions an element as PER_ELEMENT
  says: more is a kernel that got slower, where no GPU tells.
The code of functions that are not inlined is left out: those are the slow ways (walk_on, fold_in_order,
gather_elements and others). Exits with 77 where cuobjdump and nvdisasm are not to be had.
"""

import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Optional

ARCHITECTURE = "sm_90"
MOST_KERNELS = 400
MOST_BYTES = 48 << 20  # without debug information
REGISTERS_OF_A_MULTIPROCESSOR = 65536
REGISTERS_AT_A_TIME = 8  # a thread's number is rounded up to a multiple
# In front of the call of a slow way, which takes more arguments than there are registers for.
ARGUMENT_STORES = 20

HOT = {"one_tile_kernel", "stream_kernel", "piece_kernel", "part_kernel", "lookback_kernel", "scale_vectors"}
SLOW = {"walk_kernel", "scale_elements"}  # walk_kernel calls walk_on and does nothing else

# Kernels of a program for one element type, at most. The first line that fits "program type" counts.
MOST_OF_A_PROGRAM = [
    ("lrpe_cosine.softmax_sequence*", 16),  # a reduction, and what follows it
    ("lrpe_cosine.softmax_features_dtheta*", 13),  # along the features, the sequence and the batch
    ("*", 9),  # rows and strips of one tile and more, ragged rows, pieces, parts, look-back
]
# Warps that registers leave room for on a multiprocessor, at least. The first line that fits a kernel's name
# counts.
WARPS = [
    ("* piece *", 8),  # one block of 256 threads, faster than two, or one of 512
    ("* lookback *", 18),  # two blocks and their messengers
    ("* strip*", 12),  # three blocks of 128 threads
    ("*.gradient_* stream row*", 12),  # the same, of several sweeps
    ("*.token_gradient * stream row*", 12),
    ("* walk", 12),  # which may have strips alone
    ("*", 16),  # two blocks of 256 threads
]
# Scans of one sweep: along strips a thread's accesses are of 8 bytes, or a block brings 16 at a time.
SHORT = [
    "logcumsumexp * strip*",
    "decayed_sum * strip*",
    "decayed_sum.program_per_lane * strip*",
    "chunk_cumsum_decay * strip*",
    "decayed_sum.gradient_without_decay* strip*",
    "chunk_cumsum_decay.gradient_program * strip*",
]
# Shares of the bytes that are read and written 16 at a time, or of SHORT ones 8, at least. The first line
# that fits counts; where none does, any share above 0 will do.
SHARES = [
    # A thread's other accesses are those of lanes that vectors do not reach.
    ("logcumsumexp * strip*", 0.7, 0.6),
    ("decayed_sum * piece strip*", 0.65, 0.4),
    ("decayed_sum.program_per_lane * piece strip*", 0.65, 0.4),
    # Beside vectors of 8 bytes single elements of 4 weigh twice as much as those of 2.
    ("decayed_sum float one_tile strip*", 0.6, 0.8),
    ("decayed_sum * strip*", 0.7, 0.8),
    ("chunk_cumsum_decay float * strip*", 0.65, 0.75),
    ("chunk_cumsum_decay * strip*", 0.75, 0.75),
    # What is once a thread is read as much as its four steps.
    ("md_lrpe_cosine * one_tile strip<8*", 0.45, 0.9),
    # Programs of several sweeps: two lanes a thread and many steps, for each sweep joins the threads. Whole
    # blocks bring their operands together, 16 bytes a copy.
    ("* strip<2, *", 0.2, 0.0),
    ("* piece strip*", 0.6, 0.15),
    # The second of its programs reads once a lane what the first left, the first writes nothing else.
    ("lrpe_cosine.softmax_sequence *one_tile strip<8*", 0.5, 0.5),
    ("lrpe_cosine.softmax_sequence *stream strip<8*", 0.5, 0.5),
    ("* lookback row*", 0.4, 0.45),
    ("* strip*", 0.5, 0.7),
    # Vectors in which a row begins and ends go element by element, each of which counts.
    ("* row* staged", 0.45, 0.45),
    # What scans make of a piece of a row are a few numbers.
    ("logcumsumexp.gradient_program * stream row*", 0.7, 0.9),
    # Two vectors of a thread, or one, which may begin and end anywhere.
    ("decayed_sum.gradient_per_element * stream row*", 0.7, 0.92),
    ("lrpe_cosine.softmax_features_dx * stream row<8, 1, 0>*", 0.7, 0.7),
    ("* row*", 0.7, 0.95),
]
# Hot kernels that read registers back from local memory, and at how many places at most. The counts are nvcc
# 13.0's, rounded up a little for other releases. The first line that fits a kernel's name counts.
SPILLS = [
    # 64 elements of two operands wait in registers.
    ("decayed_sum.gradient_per_lane * one_tile row*", 16),
    # Two operands of 32 elements a thread wait in registers.
    ("decayed_sum.gradient_without_decay bfloat16 stream row*", 58),
    # ... and where the next ones lie.
    ("decayed_sum.gradient_per_lane bfloat16 stream row*", 10),
    # 512 threads leave 128. What a thread knows of its lanes waits while they are gone through.
    ("* piece strip*", 18),
    # Gradients hold two or three operands of 32 elements a thread, and what their first sweep leaves.
    ("decayed_sum.gradient_per_element * one_tile row*", 4),
    # Where carries are to be left is known all along.
    ("decayed_sum bfloat16 stream row*", 1),
    # What a thread knows of its lanes, before and behind its walks. Thirteen reads more, in tiles, and a
    # log-sum's took a sixth longer; three more, and a decayed sum's 3 %.
    ("*.gradient_* * stream strip*", 7),
    # Positional encodings are not tuned: a product's sine and cosine for each of a thread's elements.
    ("lrpe_cosine.softmax_sequence_dtheta * stream strip*", 160),
    ("lrpe_cosine.*", 104),
    ("linear_cross_entropy*", 12),
]
# Instructions an element of kernels of the sample: those of the shortest loop that brings elements from
# global memory, and has one for each at least, or of all of a kernel that has none. (All that is written
# there, seldom gone through or not.)
# Of staged rows those of all innermost loops that bring elements from there or from shared memory.
# The counts are nvcc 13.0's, written by --record, and may be off by a twelfth.
COUNTS = Path(__file__).resolve().parents[1] / "golden/kernel_instructions.json"
PER_ELEMENT = {
    name: (11 / 12 * count, 13 / 12 * count) for name, count in json.loads(COUNTS.read_text()).items()
}
# Hot kernels with narrower accesses.
NARROW = [
    # Where angles turn a thread has few lanes and many steps: four of 16 bits, 8 bytes.
    "lrpe_cosine.*16 * strip<4, *",
    # What a sum along a lane gives is one number.
    "lrpe_cosine.softmax_sequence* piece *",
    "lrpe_cosine.softmax_sequence* part *",
    "lrpe_cosine.softmax_sequence* row*",
    "decayed_sum.gradient_per_lane *",
    "*lrpe_cosine.*_dtheta *",
    "linear_cross_entropy.*_loss *",
    "linear_cross_entropy.totals *",
]


@dataclass
class Kernel:
    """What the machine code says of one kernel. The counts leave out functions that are not inlined."""

    kind: str  # the template's name
    name: str  # of op, elements, kind and arrangement
    registers: int = 0
    threads: int = 0  # of a block at most; 0 where there are no launch bounds
    refills: int = 0  # instructions that read local memory
    spills: int = 0  # ... that write it
    bytes_read: int = 0  # of global memory, by a thread that takes each instruction once
    bytes_written: int = 0
    wide_bytes_read: int = 0  # ... by accesses of full width
    wide_bytes_written: int = 0
    instructions: int = 0  # of the shortest loop that brings elements, or of all
    elements: int = 0  # that a thread holds of a tile; 0 where there are no tiles

    @property
    def access(self) -> int:
        """Bytes of an access of full width."""
        return 8 if any(fnmatchcase(self.name, pattern) for pattern in SHORT) else 16

    @property
    def per_element(self) -> float:
        return self.instructions / max(self.elements, 1)

    @property
    def warps(self) -> int:
        """That registers leave room for on a multiprocessor."""
        of_thread = -(-self.registers // REGISTERS_AT_A_TIME) * REGISTERS_AT_A_TIME
        return REGISTERS_OF_A_MULTIPROCESSOR // max(of_thread * self.threads, 1) * self.threads // 32

    @property
    def read_share(self) -> float:
        return self.wide_bytes_read / max(self.bytes_read, 1)

    @property
    def write_share(self) -> float:
        return self.wide_bytes_written / max(self.bytes_written, 1)

    @property
    def program(self) -> str:
        """The program with its element type."""
        return self.name.split(f" {self.kind.removesuffix('_kernel')}")[0]


@dataclass
class Library:
    bytes: int
    kernels: list = field(default_factory=list)


def short_name(symbol: str) -> tuple:
    """Of a kernel's demangled symbol the template's name, a readable name, and a thread's elements."""
    plain = symbol.strip().replace("scandsl::", "").replace("cuda_detail::", "").removeprefix("void ")
    plain = plain.removeprefix("ops::(anonymous namespace)::")
    kind = re.match(r"\w+", plain)[0]
    typed = re.search(r"(?:kernel|framed)_group<(?:ops::)?([\w:]+), \d+>, (\w+), ([\w, ]+)", plain)
    if not typed:
        return kind, plain, 0
    sizes = r"((?:-?\d+, )*-?\d+)(?:, (?:false|true))+(?:, \(row_kind\)(\d))?"
    arrangement = re.search(rf"\b(strip|row)<typed_kernel<.*>, {sizes}> ?>\(", plain)
    if kind == "walk_kernel":  # has both
        arrangement = None
    op, compute, types = typed.groups()
    # What is read once a lane is of any type all the same.
    element = next((each for each in types.split(", ") if each != "any_type"), "any_type")
    op = op.removesuffix("_program::program").replace("_program::", ".")  # decayed_sum.gradient_per_step
    elements = f"{compute} any" if element == "any_type" else element
    where, elements_held = "", 0
    if arrangement:
        elements_held = math.prod(int(each) for each in arrangement[2].split(", ")[:2])
        row_kind = {"1": " repeats", "2": " ragged", "3": " staged"}.get(arrangement[3], "")
        where = f"{arrangement[1]}<{arrangement[2]}>{row_kind}"
    return kind, f"{op} {elements} {kind.removesuffix('_kernel')} {where}".rstrip(), elements_held


def output_of(*command, folder: str = ".") -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout


SECTION = re.compile(r"^\s*\.section\s+\.(nv\.info|text)\.([^,\s]+)")
FUNCTION = re.compile(r"^\s*\.type\s+(\S+),@function")
INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+\{?\s*(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")
NUMBER = re.compile(r"\.(?:short|word)\s+(0x[0-9a-f]+)")
LABEL = re.compile(r"^(\.L\w+):")
BRANCH = re.compile(r"\bBRA\b.*\((\.L\w+)\)")


WIDTHS = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}


def count(kernel: Kernel, base: str, *modifiers: str) -> None:
    """Adds an instruction of the kernel's own to what it reads and writes."""
    kernel.refills += base == "LDL"
    kernel.spills += base == "STL"
    width = next((WIDTHS[each] for each in modifiers if each in WIDTHS), 4)
    if base in ("LDG", "LDGSTS"):
        kernel.bytes_read += width
        kernel.wide_bytes_read += width if width >= kernel.access else 0
    elif base == "STG":
        kernel.bytes_written += width
        kernel.wide_bytes_written += width if width >= kernel.access else 0


@dataclass
class Code:
    """A kernel's own instructions: which bring elements, and where loops are."""

    access: int = 16  # bytes of an access that brings some
    brings: list = field(default_factory=list)
    holds: list = field(default_factory=list)  # ... or read them in shared memory
    labels: dict = field(default_factory=dict)  # the instruction that a label is in front of
    loops: list = field(default_factory=list)  # from which instruction to which, the last one included

    def add(self, instruction: str, branch: Optional[re.Match]) -> None:
        wide = any(WIDTHS.get(each, 0) >= self.access for each in instruction.split("."))
        self.brings.append(re.match(r"(LDG|LDGSTS)\b", instruction) is not None and wide)
        self.holds.append(re.match(r"(LDGSTS|LDS)\b", instruction) is not None and "128" in instruction)
        if branch and branch[1] in self.labels:
            self.loops.append((self.labels[branch[1]], len(self.brings)))

    def instructions_of_loop(self, least: int) -> int:
        loops = [(end - begin) for begin, end in self.loops if any(self.brings[begin:end])]
        return min((each for each in loops if each >= least), default=len(self.brings))

    def instructions_of_stage(self) -> int:
        loops = {}  # the shortest of those that begin at one place
        for begin, end in self.loops:
            if any(self.holds[begin:end]):
                loops[begin] = min(end, loops.get(begin, end))
        inner = [
            (begin, end)
            for begin, end in loops.items()
            if not any(begin < other < end and loops[other] <= end for other in loops)
        ]
        return sum(end - begin for begin, end in inner)


def read_code(listing: str, kernels: dict) -> None:
    """Adds to `kernels`, by their symbols, what nvdisasm's listing of one file says of them."""
    kernel, symbol, attribute = None, "", ""
    code, codes = Code(), {}
    in_text = own = False  # own: of the kernel itself, not of a function that it calls
    for line in listing.splitlines():
        if match := SECTION.match(line):
            symbol, in_text, own = match[2], match[1] == "text", True
            kernel = kernels.get(symbol)
            code = Code(16 if kernel is None else kernel.access)
            if kernel is not None and in_text:
                codes[symbol] = code
        elif kernel is None:
            continue
        elif not in_text:
            if "nvinfo : " in line:
                attribute = line.split("nvinfo : ")[1].strip()
            elif attribute and (number := NUMBER.search(line)):
                if attribute == "EIATTR_MAX_THREADS":
                    kernel.threads = int(number[1], 16)
                attribute = ""
        elif match := FUNCTION.match(line):
            own = match[1] == symbol
        elif own and (match := LABEL.match(line)):
            code.labels[match[1]] = len(code.brings)
        elif own and (match := INSTRUCTION.match(line)):
            count(kernel, *match[1].split("."))
            code.add(match[1], BRANCH.search(line))
    for symbol, each in codes.items():
        kernel = kernels[symbol]
        kernel.instructions = (
            each.instructions_of_stage()
            if kernel.name.endswith(" staged")
            else each.instructions_of_loop(kernel.elements)
        )



def read_library(file: Path, tools: Path) -> Library:
    dump = [tools / "cuobjdump", "--gpu-architecture", ARCHITECTURE]
    usage = output_of(*dump, "--dump-resource-usage", file)
    registers = dict(re.findall(r"Function (\S+):\s+REG:(\d+)", usage))
    kernels = {
        symbol: Kernel(kind, name, registers=int(registers[symbol]), elements=elements)
        for symbol in registers
        for kind, name, elements in [short_name(output_of("c++filt", symbol))]
    }
    with tempfile.TemporaryDirectory() as folder:
        output_of(*dump, "--extract-elf", "all", file.resolve(), folder=folder)
        for elf in sorted(Path(folder).iterdir()):
            read_code(output_of(tools / "nvdisasm", elf), kernels)
        if file.suffix == ".fatbin":
            return Library(file.stat().st_size, list(kernels.values()))
        stripped = Path(folder) / "stripped"
        subprocess.run(["strip", "--strip-debug", "-o", stripped, file], check=True)
        return Library(stripped.stat().st_size, list(kernels.values()))


def read_libraries(files: list, tools: Path) -> Library:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        read = list(pool.map(lambda file: read_library(Path(file), tools), files))
    for file, library in zip(files, read):
        if not library.kernels:
            raise SystemExit(f"{file}: no kernel for {ARCHITECTURE}")
    return Library(sum(each.bytes for each in read), [kernel for each in read for kernel in each.kernels])


def complaints(library: Library) -> Iterator[str]:
    if len(library.kernels) > MOST_KERNELS:
        yield f"{len(library.kernels)} kernels; at most {MOST_KERNELS}"
    if library.bytes > MOST_BYTES:
        yield f"{library.bytes} bytes without debug information; at most {MOST_BYTES}"
    programs = Counter(kernel.program for kernel in library.kernels if kernel.kind in HOT)
    for program, kernels in programs.items():
        most = next(most for pattern, most in MOST_OF_A_PROGRAM if fnmatchcase(program, pattern))
        if kernels > most:
            yield f"{program}: {kernels} kernels; at most {most}"
    for kernel in library.kernels:
        for complaints_of in (complaints_of_registers, complaints_of_code, complaints_of_instructions):
            yield from (f"{kernel.name}: {complaint}" for complaint in complaints_of(kernel))


def first_of(table: list, kernel: Kernel) -> Optional[tuple]:
    """What the table's first line that fits the kernel's name says."""
    return next((line[1:] for line in table if fnmatchcase(kernel.name, line[0])), None)


def complaints_of_registers(kernel: Kernel) -> Iterator[str]:
    (least,) = first_of(WARPS, kernel)
    if kernel.threads == 0:
        yield "no launch bounds"
    elif kernel.warps < least:
        yield f"{kernel.registers} registers leave room for {kernel.warps} warps; at least {least} are wanted"


def complaints_of_instructions(kernel: Kernel) -> Iterator[str]:
    least, most = PER_ELEMENT.get(kernel.name, (0, math.inf))
    if not least <= kernel.per_element <= most:
        yield f"{kernel.per_element:.2f} instructions an element, not {least:.2f} to {most:.2f}"


def complaints_of_code(kernel: Kernel) -> Iterator[str]:
    if kernel.kind in SLOW:
        return
    if kernel.kind not in HOT:
        yield "neither among the hot kernels nor among the slow ones"
    (allowed,) = first_of(SPILLS, kernel) or (0,)
    if kernel.refills > allowed:
        yield f"{kernel.refills} instructions read local memory, of {allowed} that the table grants"
    if kernel.spills > (most := max(allowed, ARGUMENT_STORES)):
        yield f"{kernel.spills} instructions write local memory, of {most} that are granted"
    if any(fnmatchcase(kernel.name, pattern) for pattern in NARROW):
        return
    reads, writes = first_of(SHARES, kernel) or (1e-9, 1e-9)
    for share, least, what in ((kernel.read_share, reads, "read"), (kernel.write_share, writes, "write")):
        if share < least:
            text = f"{what} of {kernel.access} bytes"
            yield f"no {text}" if share == 0 else f"{text}: {share:.2f} of the bytes; at least {least}"


def stale(library: Library) -> Iterator[str]:
    """Lines of the tables that fit no kernel."""
    for pattern in [line[0] for line in SPILLS + SHARES + WARPS] + NARROW + list(PER_ELEMENT):
        if not any(fnmatchcase(kernel.name, pattern) for kernel in library.kernels):
            yield f"no kernel is called {pattern}: take the line out of the table"


def tools() -> Path:
    """The folder of cuobjdump and nvdisasm. Exits with 77 and a reason where there is none."""
    script = Path(__file__).resolve().parents[2] / "scripts/cuda_tools.sh"
    found = subprocess.run([script], stdout=subprocess.PIPE, text=True)
    if found.returncode != 0:
        raise SystemExit(found.returncode)
    return Path(found.stdout.strip())


def main(extent: str, *files: str) -> int:
    library = read_libraries(files, tools())
    for kernel in sorted(library.kernels, key=lambda each: each.name):
        print(
            f"{kernel.name:66} {kernel.registers:3} registers, {kernel.warps:2} warps, "
            f"{kernel.spills:3} spills, {kernel.refills:3} refills, "
            f"{kernel.access} bytes at a time: {kernel.read_share:.2f} of reads, "
            f"{kernel.write_share:.2f} of writes, "
            f"{kernel.per_element:.2f} instructions an element"
        )
    if extent == "--record":
        counts = {each.name: round(each.per_element, 2) for each in library.kernels if each.elements > 0}
        COUNTS.write_text(json.dumps(counts, indent=1, sort_keys=True) + "\n")
        return 0
    judged = library if extent == "--all" else Library(0, library.kernels)  # a sample is not compressed
    found = [*complaints(judged), *(stale(library) if extent == "--all" else [])]
    hot = sum(kernel.kind in HOT for kernel in library.kernels)
    size = f"{library.bytes / (1 << 20):.1f} MiB without debug information"
    print("\n".join([*found, f"{len(library.kernels)} kernels ({hot} hot), {size}"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
