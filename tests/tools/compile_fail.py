"""A program that must not compile fails with the error it owes its reader, and with little else.

usage: compile_fail.py BUILD CASE
BUILD is the CMake build folder, CASE the program; beside it lie control.cpp and, for programs that include
all of the library, run_control.cpp, which BUILD compiles and which lend CASE their flags. CASE starts with
one or more lines `// expect: text`, each a literal text or a regular expression that the compiler's
output must contain; the first must stand in the first error's own line.
"""

import re
import sys
from pathlib import Path

import syntax

MAX_ERRORS = 3  # what follows a failed static_assert is noise; more than this hides the message


def expectations(text: str) -> list:
    """The texts of the leading `// expect:` comments; other comment lines may stand between them."""
    expected = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        if match := re.match(r"// expect: *(.+?) *$", line):
            expected.append(match[1])
    return expected


def found(expected: str, text: str) -> bool:
    if expected in text:
        return True
    try:
        return re.search(expected, text) is not None
    except re.error:
        return False


def complaints(expected: list, output: str) -> list:
    """What is wrong with the compiler's output; empty where it is as expected."""
    errors = [line for line in output.splitlines() if re.match(r"\S.*?: (fatal )?error: ", line)]
    if not errors:
        return ["it compiles, or fails without an error line"]
    problems = [f"the output lacks: {text}" for text in expected if not found(text, output)]
    if not found(expected[0], errors[0]):
        problems.append(f"the first error is not the expected one: {errors[0]}")
    if len(errors) > MAX_ERRORS:
        problems.append(f"{len(errors)} errors, at most {MAX_ERRORS} are readable")
    return problems


def main(build: str, case: str) -> int:
    text = Path(case).read_text()
    expected = expectations(text)
    if not expected:
        raise SystemExit(f"{case}: starts without an '// expect: text' line")
    # A warning is not what these programs are about; -w also undoes -Werror.
    # Those that include less must not be given what the control's precompiled header has.
    runs, lowers = (f"#include <scandsl/{header}>" in text for header in ("scandsl.hpp", "ir/lower.hpp"))
    control = Path(case).with_name("run_control.cpp" if runs else "control.cpp")
    flags = syntax.flags_of(Path(build), control, precompiled=runs or lowers)
    result = syntax.check([*flags, "-w"], text)
    problems = complaints(expected, result.stderr) if result.returncode else ["it compiles"]
    for problem in problems:
        print(f"{case}: {problem}")
    print(result.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
