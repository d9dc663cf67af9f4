"""Draws a comparison: for each op an SVG with time, ratios and memory against n, a line for each provider."""

from __future__ import annotations

from pathlib import Path

import plot  # bench/plot.py
from matplotlib import pyplot as plt

from .tables import lines_of

LABELS = {
    **{name: text for name, (text, _) in plot.PROVIDERS.items()},
    "scandsl_angles": "scandsl, table of angles",
    "triton": "Triton (ours)",
    "fla": "flash-linear-attention",
    "liger": "Liger",
    "cut_cross_entropy": "cut-cross-entropy",
    "quack_2048": "QuACK, chunks of 2048",
    "quack_6144": "QuACK, chunks of 6144",
}
COLOURS = {
    **{name: colour for name, (_, colour) in plot.PROVIDERS.items()},
    "scandsl_angles": "#56b4e9",
    "triton": "#009e73",
    "fla": "#cc79a7",
    "liger": "#8c564b",
    "cut_cross_entropy": "#bcbd22",
    "quack_2048": "#9467bd",
    "quack_6144": "#c5b0d5",
}
PUBLISHED_LINES = ("--", ":", "-.")  # as many kinds as a table has providers that are not run here


def draw(results: dict, folder: Path) -> list[Path]:
    """An SVG for each op of the results; the same bytes for the same results."""
    plot.reproducible()
    folder.mkdir(parents=True, exist_ok=True)
    rows = [row for row in results["rows"] if row["provider"] != "copy"]
    paths = []
    for op in dict.fromkeys(row["op"] for row in rows):
        path = folder / f"{Path(results['machine'].get('gpu', 'cpu')).name.split()[-1].lower()}-{op}.svg"
        draw_op(results, op, [row for row in rows if row["op"] == op], path)
        paths.append(path)
    return paths


def draw_op(results: dict, op: str, rows: list[dict], path: Path) -> None:
    lines = lines_of(rows)
    figure, axes = plt.subplots(
        len(lines), 4, figsize=(15, 2.2 * len(lines) + 1.5), squeeze=False, layout="constrained"
    )
    for (line, by_provider), row_of_axes in zip(lines.items(), axes):
        row_of_axes[0].set_ylabel("\n".join(each for each in line if each != "none").replace("_", " "))
        draw_line(by_provider, *row_of_axes)
    peer = "a product's rate" if op == "linear_cross_entropy" else "a copy's speed"
    titles = ("ms (x: beyond the memory)", f"fraction of {peer}", "times as fast as torch", "peak MiB")
    for axis, title in zip(axes[0], titles):
        axis.set_title(title, fontsize=9)
    machine = results["machine"]
    where = machine.get("gpu") or f"{machine['cpu']}, {machine['cores']} cores"
    figure.suptitle(f"{op} against n, on {where} (commit {results['commit']})", fontsize=11)
    handles = {}
    for axis in (*axes[:, 0], *axes[:, 2]):
        handles.update({text: handle for handle, text in zip(*axis.get_legend_handles_labels())})
    placed = {"loc": "outside lower center", "ncols": 4, "frameon": False, "fontsize": 8}
    figure.legend(handles.values(), handles, **placed)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def draw_line(by_provider: dict[str, list[dict]], time, ratio, to_torch, memory) -> None:
    """One case and pass, into its four axes."""
    torch_ms = {row["n"]: row["ms"] for row in by_provider.get("torch", []) if "ms" in row}
    kinds = iter(PUBLISHED_LINES)
    for provider, rows in by_provider.items():
        if "published" in rows[0]:
            name = provider.removeprefix("published_").replace("_", " ")
            style = {"color": "#777777", "linestyle": next(kinds), "linewidth": 1}
            style["label"] = f"{name}, published on {rows[0]['published']}"
            to_torch.plot([row["n"] for row in rows], [row["of_torch"] for row in rows], **style)
            continue
        style = {"color": COLOURS[provider], "linewidth": 1.3, "label": LABELS[provider]}
        measured = [row for row in rows if "ms" in row]
        against = {row["n"]: torch_ms[row["n"]] / row["ms"] for row in measured if row["n"] in torch_ms}
        for axis, values in (
            (time, {row["n"]: row["ms"] for row in measured}),
            (ratio, {row["n"]: row.get("of_copy", row.get("of_product")) for row in measured}),
            (to_torch, against),
            (memory, {row["n"]: row["peak_mib"] for row in measured if "peak_mib" in row}),
        ):
            if values:
                axis.plot(list(values), list(values.values()), **style)
        beyond = [row["n"] for row in rows if row.get("reason", "").startswith("beyond")]
        at_the_top = {"transform": time.get_xaxis_transform(), "clip_on": False}
        if beyond:
            time.plot(beyond, [1.0] * len(beyond), "x", color=COLOURS[provider], **at_the_top)
    ratio.axhline(1, color="#444444", linewidth=0.8, linestyle=":")
    ratio.set_ylim(0, None)
    for axis in (time, ratio, to_torch, memory):
        axis.spines[["top", "right"]].set_visible(False)
        if axis is not ratio and axis.has_data():
            axis.set_yscale("log")
        axis.set_xscale("log", base=2)
        axis.minorticks_off()
        axis.tick_params(labelsize=7)
