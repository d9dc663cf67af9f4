"""The checks of the tree find what they are there to find."""

import sys
import tempfile
import unittest
from pathlib import Path

import compile_fail
import cpu_instructions
import include_direction
import syntax

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import check_docs  # noqa: E402


class Tree(unittest.TestCase):
    """A test with a throw-away project folder."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.project = Path(folder.name)

    def write(self, path: str, text: str) -> Path:
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file


class CpuInstructions(unittest.TestCase):
    def test_what_a_run_does_once_is_left_out(self):
        self.assertEqual(cpu_instructions.per_element({2000: 25000, 1000: 15000}), 10)

    def test_more_less_and_nothing_are_complaints(self):
        right = {name: sum(band) / 2 for name, band in cpu_instructions.PER_ELEMENT.items()}
        self.assertEqual(cpu_instructions.complaints(right), [])
        for least, most in cpu_instructions.PER_ELEMENT.values():
            self.assertTrue(0 < least < most)
        for factor in (0.9, 1.1):
            found = cpu_instructions.complaints({**right, "lrpe_cosine": factor * right["lrpe_cosine"]})
            self.assertEqual(len(found), 1)
        del right["lrpe_cosine"]
        self.assertEqual(len(cpu_instructions.complaints({**right, "another": 1.0})), 2)


class Flags(unittest.TestCase):
    def test_what_compiles_alone_has_no_precompiled_header(self):
        flags = ["g++", "-O2", "-Winvalid-pch", "-include", "cmake_pch.hxx"]
        self.assertEqual(syntax.without_precompiled([*flags, "-MD"]), ["g++", "-O2", "-Winvalid-pch", "-MD"])
        self.assertEqual(syntax.without_precompiled(["g++", "-O2"]), ["g++", "-O2"])


class IncludeDirection(Tree):
    def offenders(self, path: str, include: str) -> list:
        self.write(path, f"#include {include}\n")
        return include_direction.offenders(self.project)

    def test_downwards_is_right(self):
        self.assertEqual(self.offenders("include/scandsl/ir/a.hpp", "<scandsl/core/b.hpp>"), [])
        self.assertEqual(self.offenders("include/scandsl/scandsl.hpp", "<scandsl/exec/cpu/run.hpp>"), [])
        self.assertEqual(self.offenders("include/scandsl/cuda.cuh", "<scandsl/exec/cuda/run.cuh>"), [])
        self.assertEqual(self.offenders("include/scandsl/exec/cuda/a.cuh", "<cuda_runtime.h>"), [])
        self.assertEqual(self.offenders("ops/a/a.cpp", "<scandsl/ops/b.hpp>"), [])
        self.assertEqual(self.offenders("ops/a/a.cu", "<scandsl/cuda.cuh>"), [])

    def test_upwards_is_found(self):
        for path, include in [
            ("include/scandsl/core/a.hpp", "<scandsl/expr/b.hpp>"),
            ("include/scandsl/exec/a.hpp", "<scandsl/scandsl.hpp>"),
            ("include/scandsl/pass/a.hpp", '"scandsl/ops/b.hpp"'),
            ("include/scandsl/exec/bind.hpp", "<scandsl/exec/cpu/run.hpp>"),
            ("include/scandsl/exec/cpu/a.hpp", "<scandsl/exec/cuda/b.cuh>"),
            ("include/scandsl/scandsl.hpp", "<scandsl/exec/cuda/b.cuh>"),
            ("include/scandsl/exec/cpu/a.hpp", "<cuda_fp16.h>"),
            ("include/scandsl/odd/a.hpp", "<scandsl/core/b.hpp>"),
            ("ops/a/a.cpp", "<cub/cub.cuh>"),
        ]:
            with self.subTest(path=path, include=include):
                self.setUp()
                self.assertEqual(len(self.offenders(path, include)), 1)

    def test_relative_includes_are_followed(self):
        self.write("include/scandsl/ir/b.hpp", "")
        self.assertEqual(len(self.offenders("include/scandsl/core/a.hpp", '"../ir/b.hpp"')), 1)


class CompileFail(unittest.TestCase):
    def test_expectations_lead_the_file(self):
        text = "// expect: one\n// a remark\n// expect: two  \nint x;\n// expect: three\n"
        self.assertEqual(compile_fail.expectations(text), ["one", "two"])

    def test_the_first_error_counts(self):
        right = "a.cpp:1:2: error: axis n twice\na.cpp:2:2: note: in tensor x\n"
        self.assertEqual(compile_fail.complaints(["axis n", "tensor [a-z]"], right), [])
        self.assertEqual(len(compile_fail.complaints(["axis n", "tensor q"], right)), 1)
        self.assertEqual(len(compile_fail.complaints(["axis n"], "a.cpp:1:1: error: noise\n" + right)), 1)
        self.assertEqual(len(compile_fail.complaints(["axis n"], right + "a.cpp:3:1: error: noise\n" * 9)), 1)
        self.assertEqual(len(compile_fail.complaints(["axis n"], "a.cpp:1:2: note: axis n\n")), 1)


class CheckDocs(Tree):
    SOURCE = "int main() {\n  // [doc:body]\n  if (a)\n    b();\n  // [/doc:body]\n}\n"
    BLOCK = "<!-- quote: a.cpp#body -->\n```cpp\n{}```\n"

    def complaints(self, page: str, write: bool = False) -> list:
        self.write("a.cpp", self.SOURCE)
        return check_docs.check_page(self.project, self.write("README.md", page), write)

    def test_equal_is_right(self):
        self.assertEqual(self.complaints(self.BLOCK.format("if (a)\n  b();\n")), [])
        self.assertEqual(self.complaints("```json\n{}\n```\n"), [])

    def test_faults_are_found(self):
        for page in [
            self.BLOCK.format("if (a)\n  c();\n"),
            "```cpp\nint x;\n```\n",
            "```\nint x;\n```\n",
            "<!-- quote: b.cpp#body -->\n```cpp\n```\n",
            "<!-- quote: a.cpp#other -->\n```cpp\n```\n",
            "<!-- output: a.cpp#body -->\n```cpp\nif (a)\n  b();\n```\n",
            "<!-- quote: a.cpp#body -->\n\nNothing.\n",
            "```cmake\n",
        ]:
            with self.subTest(page=page):
                self.assertEqual(len(self.complaints(page)), 1)

    def test_write_mends(self):
        page = self.BLOCK + "\n- in a list\n  <!-- output: a.cpp#body -->\n  ```text\n  old\n  ```\n"
        self.assertEqual(self.complaints(page.format("stale\n"), write=True), [])
        mended = (self.project / "README.md").read_text()
        self.assertIn("```cpp\nif (a)\n  b();\n```\n\n- in a list\n", mended)
        self.assertIn("  ```text\n  if (a)\n    b();\n  ```\n", mended)
        self.assertEqual(self.complaints(mended), [])


if __name__ == "__main__":
    unittest.main()
