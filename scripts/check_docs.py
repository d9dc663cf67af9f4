#!/usr/bin/env python3
"""Holds the code in the Markdown pages to the files it is quoted from.

usage: check_docs.py [--write] [PROJECT]

A block of C++, Python, CMake, shell, console or text stands under a comment that says where it comes from:

    <!-- quote: examples/softmax.cpp#program -->
    ```cpp
    ...
    ```

The file marks the region by lines that contain [doc:program] and [/doc:program], in comments of its language.
The block holds the region without its common indentation and without marker lines. A path without #name
quotes the whole file. A text block may say `output:` instead of `quote:`, for what a program prints, kept in
a file that a test compares with the real output. --write puts the regions into the blocks instead of
complaining.
"""

import re
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple, Optional

QUOTED = {"cpp", "python", "cmake", "sh", "console", "text"}
FENCE = re.compile(r"^( *)(`{3,}) *([\w+-]*) *$")
COMMENT = re.compile(r"^ *<!-- (quote|output): (\S+?)(?:#([\w-]+))? -->$")
MARKER = re.compile(r"\[/?doc:[\w-]+\]")


class Block(NamedTuple):
    """A fenced block: `first` and `last` are the indices of its fences among the page's lines."""

    first: int
    last: int
    indent: str
    language: str
    source: Optional[re.Match]


def blocks_of(lines: list) -> list:
    blocks = []
    number = 0
    while number < len(lines):
        fence = FENCE.match(lines[number])
        if not fence:
            number += 1
            continue
        first = number
        number += 1
        while number < len(lines) and lines[number].strip() != fence[2]:
            number += 1
        if number == len(lines):
            raise ValueError(f"line {first + 1}: this block is never closed")
        source = COMMENT.match(lines[first - 1]) if first else None
        blocks.append(Block(first, number, fence[1], fence[3], source))
        number += 1
    return blocks


def region(text: str, name: Optional[str]) -> list:
    """The lines between the markers of `name`, or all where it is None: dedented, without marker lines."""
    lines = text.splitlines()
    if name is not None:
        begin = [i for i, line in enumerate(lines) if f"[doc:{name}]" in line]
        end = [i for i, line in enumerate(lines) if f"[/doc:{name}]" in line]
        if len(begin) != 1 or len(end) != 1 or end[0] < begin[0]:
            raise ValueError(f"needs one line with [doc:{name}] and, after it, one with [/doc:{name}]")
        lines = lines[begin[0] + 1 : end[0]]
    kept = "\n".join(line.rstrip() for line in lines if not MARKER.search(line))
    return textwrap.dedent(kept).strip("\n").split("\n")


def expected(project: Path, block: Block) -> Optional[list]:
    """The lines a block owes its source, None where it needs no source."""
    if block.source is None:
        if not block.language:
            raise ValueError("name the block's language")
        if block.language in QUOTED:
            raise ValueError(f"a {block.language} block needs <!-- quote: path#name --> on the line above")
        return None
    kind, path, name = block.source.groups()
    if kind == "output" and block.language != "text":
        raise ValueError(f"an output is a text block, not {block.language or 'one without a language'}")
    if not (project / path).is_file():
        raise ValueError(f"there is no file {path}")
    try:
        lines = region((project / path).read_text(), name)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return [block.indent + line if line else "" for line in lines]


def check_page(project: Path, page: Path, write: bool) -> list:
    """Complaints about one page, each with its line; with `write` the stale blocks are mended first."""
    lines = page.read_text().splitlines()
    complaints = []
    name = page.relative_to(project)
    try:
        blocks = blocks_of(lines)
    except ValueError as error:
        return [f"{name}: {error}"]
    quoting = {block.first - 1 for block in blocks}
    for number, line in enumerate(lines):
        if COMMENT.match(line) and number not in quoting:
            complaints.append(f"{name}:{number + 1}: quotes into no block: put a fenced one below")
    for block in reversed(blocks):  # from the end, so that a mended block moves no line still to be read
        try:
            owed = expected(project, block)
        except ValueError as error:
            complaints.append(f"{name}:{block.first + 1}: {error}")
            continue
        if owed is None or owed == lines[block.first + 1 : block.last]:
            continue
        if write:
            lines[block.first + 1 : block.last] = owed
        else:
            complaints.append(f"{name}:{block.first + 1}: differs from {block.source[2]}: run with --write")
    if write:
        page.write_text("\n".join(lines) + "\n")
    return complaints[::-1]


def pages_of(project: Path) -> list:
    """Every Markdown file of the project, but for what is built or hidden."""

    def is_ours(page: Path) -> bool:
        parts = page.relative_to(project).parts
        return parts[0] != "build" and not any(part.startswith(".") for part in parts)

    return sorted(filter(is_ours, project.rglob("*.md")))


def main(arguments: list) -> int:
    write = "--write" in arguments
    places = [argument for argument in arguments if argument != "--write"]
    project = Path(places[0]) if places else Path(__file__).resolve().parent.parent
    pages = pages_of(project)
    complaints = [text for page in pages for text in check_page(project, page, write)]
    print("\n".join([*complaints, f"{len(pages)} pages, {len(complaints)} complaints"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
