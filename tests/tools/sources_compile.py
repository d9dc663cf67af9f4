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
    failures = [(source, result) for source, result in zip(sources, results) if result.returncode]
    for source, result in failures:
        print(f"{source} does not compile:\n{result.stderr}")
    print(f"{len(sources) - len(failures)} of {len(sources)} sources compile")
    return 1 if failures or not sources else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
