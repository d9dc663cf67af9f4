"""Sources that this build leaves out compile all the same, as far as their syntax tells.

usage: sources_compile.py BUILD CONTROL SOURCE... [FLAG...]
BUILD is the CMake build folder, CONTROL a source it compiles (for the flags); FLAG begins with a dash.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import syntax


def main(build: str, control: str, *rest: str) -> int:
    more = [each for each in rest if each.startswith("-")]
    sources = [Path(each) for each in rest if not each.startswith("-")]
    flags = [*syntax.flags_of(Path(build), Path(control)), *more, "-Werror"]
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(lambda source: syntax.check(flags, source.read_text()), sources))
    return syntax.report(sources, results, "does not compile", "sources compile")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
