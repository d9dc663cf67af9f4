"""kernel_facts.py finds what it is there to find, in kernels that this file has nvcc compile.

usage: kernel_facts_test.py NVCC
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import kernel_facts
from kernel_facts import Kernel, Library

SOURCE = """
template <int> __device__ __noinline__ void slowly(float* x) {
  float many[64];
  for (int i = 0; i < 64; ++i) many[i] = x[i];
  for (int i = 0; i < 64; ++i) x[i] = many[static_cast<int>(x[i]) & 63];
}
// As a kernel should be; what its slow way does is no matter.
template <int> __global__ void __launch_bounds__(256, 2) one_tile_kernel(float* x) {
  float4* const four = reinterpret_cast<float4*>(x) + threadIdx.x;
  if (x == nullptr) return slowly<0>(x + 1);
  float4 value = *four;
  value.x += 1;
  *four = value;
}
template __global__ void one_tile_kernel<0>(float*);
// 4 bytes at a time.
template <> __global__ void __launch_bounds__(256, 2) one_tile_kernel<1>(float* x) { x[threadIdx.x] += 1; }
// 32 registers a thread for 60 numbers.
template <> __global__ void __launch_bounds__(1024, 2) one_tile_kernel<2>(float* x) {
  volatile float4* const from = reinterpret_cast<volatile float4*>(x);
  float4 value[15];
#pragma unroll
  for (int i = 0; i < 15; ++i) value[i] = make_float4(from[i].x, from[i].y, from[i].z, from[i].w);
#pragma unroll
  for (int i = 0; i < 15; ++i) reinterpret_cast<float4*>(x)[threadIdx.x + 15 - i] = value[i];
}
// A loop that brings elements, and one that does not.
template <int> __global__ void __launch_bounds__(256, 2) stream_kernel(float* x, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum = sum * x[0] + 1;
#pragma unroll 1
  for (int i = 0; i < n; ++i) {
    float4 value = reinterpret_cast<const float4*>(x)[i * 256 + threadIdx.x];
#pragma unroll
    for (int k = 0; k < 16; ++k) value.x = value.x * value.y + value.z;
    sum += value.x;
  }
  reinterpret_cast<float4*>(x)[threadIdx.x] = make_float4(sum, 0, 0, 0);
}
template __global__ void stream_kernel<0>(float*, int);
__global__ void walk_kernel(float* x) { x[threadIdx.x] += 1; }
__global__ void __launch_bounds__(256, 2) unheard_of(float* x) {
  reinterpret_cast<float4*>(x)[1] = reinterpret_cast<const float4*>(x)[threadIdx.x];
}
"""


class Compiled(unittest.TestCase):
    nvcc = ""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        source, compiled = Path(folder.name, "kernels.cu"), Path(folder.name, "kernels.o")
        source.write_text(SOURCE)
        subprocess.run([cls.nvcc, "-arch=sm_90", "-std=c++17", "-c", source, "-o", compiled], check=True)
        library = kernel_facts.read_library(compiled, kernel_facts.tools())
        cls.library = Library(library.bytes, sorted(library.kernels, key=lambda kernel: kernel.name))

    def complaints(self, name: str) -> str:
        one = [kernel for kernel in self.library.kernels if name in kernel.name]
        self.assertEqual(len(one), 1, f"{name} among {[kernel.name for kernel in self.library.kernels]}")
        return "; ".join(kernel_facts.complaints(Library(self.library.bytes, one)))

    def test_a_good_kernel_is_right(self):
        self.assertEqual(self.complaints("one_tile_kernel<0>"), "")

    def test_instructions_of_the_loop_that_brings_elements(self):
        one = [kernel for kernel in self.library.kernels if "stream_kernel<0>" in kernel.name]
        self.assertEqual(len(one), 1)
        # Two loops: the one with 16 bytes at a time counts, of a load, sixteen products and what goes round.
        self.assertTrue(20 <= one[0].instructions <= 50, one[0].instructions)

    def test_faults_are_found(self):
        for name, *expected in [
            ("one_tile_kernel<1>", "no read of 16 bytes", "no write of 16 bytes"),
            (
                "one_tile_kernel<2>",
                "instructions read local memory, of 0 that",
                "instructions write local memory, of 20 that",
                "no read of 16 bytes",
            ),
            ("walk_kernel", "no launch bounds"),
            ("unheard_of", "neither among the hot kernels nor"),
        ]:
            with self.subTest(name=name):
                found = self.complaints(name)
                for text in expected:
                    self.assertIn(text, found)
                self.assertEqual(found.count(f"{name}("), len(expected), found)


class Written(unittest.TestCase):
    def kernel(self, **fields) -> Kernel:
        right = {"registers": 80, "threads": 256, "bytes_read": 100, "bytes_written": 100}
        wide = {"wide_bytes_read": 100, "wide_bytes_written": 100}
        named = {"kind": "stream_kernel", "name": "sum float stream row<4, 4, 0>"}
        return Kernel(**{**named, **right, **wide, **fields})

    def complaints(self, size: int = 1, **fields) -> int:
        return len(list(kernel_facts.complaints(Library(size, [self.kernel(**fields)]))))

    def complaints_of_programs(self, programs: int, kernels: int) -> int:
        names = [f"sum{i} float stream row<4, 4, 0>" for i in range(programs)] * kernels
        return len(list(kernel_facts.complaints(Library(1, [self.kernel(name=name) for name in names]))))

    def test_files_without_kernels(self) -> None:
        def read_library(file: Path, _: Path) -> Library:
            return Library(1, [self.kernel()] * int(file.name))

        with mock.patch.object(kernel_facts, "read_library", read_library):
            self.assertEqual(len(kernel_facts.read_libraries(["1", "1"], Path()).kernels), 2)
            with self.assertRaisesRegex(SystemExit, "0: no kernel"):
                kernel_facts.read_libraries(["1", "0"], Path())

    def test_limits(self):
        most = kernel_facts.MOST_OF_A_PROGRAM[-1][1]  # of any program
        self.assertEqual(self.complaints_of_programs(kernel_facts.MOST_KERNELS // most, most), 0)
        self.assertEqual(self.complaints_of_programs(kernel_facts.MOST_KERNELS // most + 1, most), 1)
        self.assertEqual(self.complaints_of_programs(2, most + 1), 2)
        self.assertEqual(self.complaints(size=kernel_facts.MOST_BYTES), 0)
        self.assertEqual(self.complaints(size=kernel_facts.MOST_BYTES + 1), 1)
        self.assertEqual(self.complaints(registers=128), 0)
        self.assertEqual(self.complaints(registers=129), 1)  # one block of 256 threads, for 136 are taken
        self.assertEqual(self.complaints(registers=80, threads=1024), 1)

    def test_the_shortest_loop_that_brings_elements_counts(self):
        code = kernel_facts.Code()

        def add(count, instruction="FADD R0, R0, R1", to=None):
            for _ in range(count):
                code.add(instruction.split()[0], to and kernel_facts.BRANCH.search(f"BRA `({to})"))

        add(2, "LDG.E.128 R0")
        self.assertEqual(code.instructions_of_loop(least=1), 2)  # no loop: all
        loops = [(".L_1", "LDG.E.128 R0", 9), (".L_2", "LDGSTS.E.128", 5), (".L_3", "LDG.E", 3)]
        for label, instruction, count in loops:
            code.labels[label] = len(code.brings)
            add(1, instruction)
            add(count - 2)
            add(1, "BRA", label)
        self.assertEqual(code.instructions_of_loop(least=1), 5)  # the third brings four bytes at a time
        self.assertEqual(code.instructions_of_loop(least=5), 5)
        self.assertEqual(code.instructions_of_loop(least=6), 9)  # the second brings, and does nothing with it
        code.labels[".L_4"] = len(code.brings)
        add(1, "LDS.128 R0")
        add(1)
        add(1, "BRA", ".L_4")
        self.assertEqual(code.instructions_of_stage(), 5 + 3)  # of staged rows both loops

    def test_scans_along_strips_have_accesses_of_eight_bytes(self):
        for name, access in [
            ("logcumsumexp float stream strip<2, 16, 128>", 8),
            ("logcumsumexp.gradient_program bfloat16 stream strip<2, 16, 128>", 16),
            ("logcumsumexp bfloat16 stream row<8, 4, 0>", 16),
        ]:
            kernel = self.kernel(name=name, bytes_read=0, wide_bytes_read=0)
            for width in ("128", "64", "U16"):
                kernel_facts.count(kernel, "LDG", "E", width)
            self.assertEqual((kernel.bytes_read, kernel.wide_bytes_read), (26, 24 if access == 8 else 16))
            code = kernel_facts.Code(kernel.access)
            code.add("LDG.E.64", None)
            self.assertEqual(code.brings, [access == 8])

    def test_tables(self):
        pattern, most = kernel_facts.SPILLS[0]
        name = pattern.replace("*", "x")
        self.assertEqual(self.complaints(name=name, refills=most), 0)
        self.assertEqual(self.complaints(name=name, refills=most + 1), 1)
        self.assertEqual(self.complaints(spills=kernel_facts.ARGUMENT_STORES), 0)
        self.assertEqual(self.complaints(spills=kernel_facts.ARGUMENT_STORES + 1), 1)
        narrow = kernel_facts.NARROW[0].replace("*", "x")
        self.assertEqual(self.complaints(name=narrow, wide_bytes_read=0, wide_bytes_written=0), 0)
        name, (least, most) = next(iter(kernel_facts.PER_ELEMENT.items()))
        wide = {"wide_bytes_read": 100, "wide_bytes_written": 100, "elements": 100}
        for instructions, count in [(least, 0), (most, 0), (least - 0.1, 1), (most + 0.1, 1)]:
            self.assertEqual(self.complaints(name=name, instructions=100 * instructions, **wide), count)
        tables = (
            kernel_facts.SPILLS,
            kernel_facts.SHARES,
            kernel_facts.WARPS,
            kernel_facts.NARROW,
            kernel_facts.PER_ELEMENT,
        )
        # A row fits a line of SHARES and the last one of WARPS.
        unfit = list(kernel_facts.stale(Library(1, [self.kernel()])))
        self.assertEqual(len(unfit), sum(map(len, tables)) - 2)

    def test_shares(self):
        self.assertEqual(self.complaints(wide_bytes_read=70, wide_bytes_written=95), 0)
        self.assertEqual(self.complaints(wide_bytes_read=69), 1)
        self.assertEqual(self.complaints(wide_bytes_written=94), 1)
        strip = "sum float stream strip<4, 4, 128>"
        self.assertEqual(self.complaints(name=strip, wide_bytes_read=50, wide_bytes_written=70), 0)
        self.assertEqual(self.complaints(name=strip, wide_bytes_read=49), 1)

    def test_names(self):
        here = "scandsl::cuda_detail"
        for types, expected in [
            (f"float, float, {here}::any_type", "float"),
            (f"{here}::approximate, scandsl::bfloat16, float", "bfloat16"),
            (f"double, {here}::any_type", "double any"),
        ]:
            group = f"{here}::kernel_group<scandsl::ops::sum_program::program, 0>"
            kernel = f"{here}::typed_kernel<{group}, {types}>"
            row = f"{here}::row<{kernel}, 4, 2, -1, false, ({here}::row_kind)0>"
            ragged = f"{here}::row<{kernel}, 4, 2, -3, false, ({here}::row_kind)2>"
            staged = f"{here}::row<{kernel}, 8, 1, -2, false, ({here}::row_kind)3>"
            strip = f"{here}::strip<{kernel}, 4, 2, 256, true>"
            for kind, arrangements, name in [
                ("one_tile_kernel", row, "one_tile row<4, 2, -1>"),
                ("one_tile_kernel", ragged, "one_tile row<4, 2, -3> ragged"),
                ("one_tile_kernel", staged, "one_tile row<8, 1, -2> staged"),
                ("stream_kernel", strip, "stream strip<4, 2, 256>"),
                ("walk_kernel", f"{strip}, {row}", "walk"),
            ]:
                held = 0 if kind == "walk_kernel" else 8
                symbol = f"void {here}::{kind}<{kernel}, {arrangements} >({kernel}::arguments)"
                self.assertEqual(kernel_facts.short_name(symbol), (kind, f"sum {expected} {name}", held))


if __name__ == "__main__":
    Compiled.nvcc = sys.argv.pop(1)
    unittest.main()
