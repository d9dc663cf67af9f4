"""Every public header compiles alone, without a warning.

usage: headers_alone.py BUILD CONTROL ROOT...
BUILD is the CMake build folder, CONTROL a source it compiles (for the flags), ROOT a folder of headers.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import syntax


def main(build: str, control: str, *roots: str) -> int:
    headers = [h.relative_to(root) for root in map(Path, roots) for h in sorted(root.rglob("*.hpp"))]
    if not headers:
        raise SystemExit(f"no header under {', '.join(roots)}")
    flags = [*syntax.flags_of(Path(build), Path(control)), *(f"-I{root}" for root in roots), "-Werror"]
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(lambda header: syntax.check(flags, f"#include <{header}>\n"), headers))
    failures = [(h, r) for h, r in zip(headers, results) if r.returncode]
    for header, result in failures:
        print(f"{header} does not compile alone:\n{result.stderr}")
    print(f"{len(headers) - len(failures)} of {len(headers)} headers compile alone")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
