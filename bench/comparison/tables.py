"""The results as the published tables are laid out: a table for a case and pass, a line for each size n."""

from __future__ import annotations

FILLED = 2048  # positions: the first size of the published tables whose work fills a GPU


def lines_of(rows: list[dict]) -> dict[tuple[str, ...], dict[str, list[dict]]]:
    """(case, pass, what else tells two cases apart) to the rows of each provider, by n."""
    lines: dict[tuple[str, ...], dict[str, list[dict]]] = {}
    for row in sorted(rows, key=lambda row: row["n"]):
        by_batch = row["op"] == "chunk_cumsum_decay"
        which = f"b {row['shape'][0]}, d {row['shape'][-1]}" if by_batch else f"along {row['axis']}"
        key = row["case"], row["pass"], "" if row["axis"] is None else which
        lines.setdefault(key, {}).setdefault(row["provider"], []).append(row)
    return lines


def markdown(results: dict) -> str:
    """Times of every provider in ms, with the fraction of a copy's speed; then peak memory in MiB."""
    machine = results["machine"]
    text = [f"# {machine.get('gpu') or machine['cpu']}, commit {results['commit']}, run {results['run']}"]
    text += [f"Least share of a copy's speed, sizes from {FILLED} positions:", least(results["rows"])]
    for op in dict.fromkeys(row["op"] for row in results["rows"]):
        text.append(f"## {op}")
        rows = [row for row in results["rows"] if row["op"] == op and row["provider"] != "copy"]
        for line, by_provider in lines_of(rows).items():
            text += [f"### {', '.join(named(*line))}", table(by_provider, time_cell)]
            if any("peak_mib" in row for own in by_provider.values() for row in own):
                measured = {name: own for name, own in by_provider.items() if "published" not in own[0]}
                text += ["Peak MiB:", table(measured, memory_cell)]
    return "\n\n".join(text) + "\n"


def least(rows: list[dict]) -> str:
    """For each case and pass of scandsl the least of its sizes that fill a GPU, and that of 8192."""
    lines = ["| op | case | pass | least | at | 8192 positions |", "|---|---|---|---|---|---|"]
    for op in dict.fromkeys(row["op"] for row in rows):
        for (case, pass_, which), own in lines_of([row for row in rows if row["op"] == op]).items():
            filled = [
                row
                for row in own.get("scandsl", [])
                if "of_copy" in row and positions_of(row) >= FILLED
            ]
            if filled:
                lowest = min(filled, key=lambda row: row["of_copy"])
                middle = "".join(f"{row['of_copy']:.2f}" for row in filled if positions_of(row) == 8192)
                cells = [op, " ".join(named(case, which)), pass_]
                cells += [f"{lowest['of_copy']:.2f}", str(lowest["n"]), middle]
                lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def named(*parts: str) -> list[str]:
    """As a reader sees them, without those that say nothing."""
    return [part.replace("_", " ") for part in parts if part not in ("", "none")]


def positions_of(row: dict) -> int:
    """Of a grid those without the extra tokens."""
    dims = int(row["case"][0]) if row["op"] == "md_lrpe_cosine" else 1
    return row["n"] ** dims


def time_cell(row: dict) -> str:
    if "published" in row:
        return f"{row['of_torch']:.3g} x torch ({row['published']})"
    if "ms" not in row:
        return "beyond memory" if row["reason"].startswith("beyond") else "-"
    ratio = row.get("of_copy", row.get("of_product"))
    return f"{row['ms']:.4g} ({ratio:.2f})"


def memory_cell(row: dict) -> str:
    return f"{row['peak_mib']:.0f}" if "peak_mib" in row else ""


def table(by_provider: dict[str, list[dict]], cell) -> str:
    cells = {name: {row["n"]: cell(row) for row in own} for name, own in by_provider.items()}
    sizes = sorted({n for own in cells.values() for n in own})
    lines = ["| n | " + " | ".join(cells) + " |", "|---" * (1 + len(cells)) + "|"]
    lines += [f"| {n} | " + " | ".join(own.get(n, "") for own in cells.values()) + " |" for n in sizes]
    return "\n".join(lines)
