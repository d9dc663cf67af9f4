"""A figure of loss curves, as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 40, 50
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7")  # Okabe and Ito's, for all eyes
DASHES = ("none", "6 4", "2 3", "8 3 2 3")  # curves that agree are seen through one another


def loss_figure(title: str, curves: Mapping[str, Sequence[float]]) -> str:
    """The text of an SVG file. curves: for each name, the loss of steps 1, 2, ..."""
    steps = max(2, *map(len, curves.values()))
    every = [loss for curve in curves.values() for loss in curve if math.isfinite(loss)]
    low, high = (math.floor(2 * min(every)) / 2, math.ceil(2 * max(every)) / 2) if every else (0, 1)
    high = max(high, low + 0.5)

    def across(step: float) -> float:
        return LEFT + (step - 1) / (steps - 1) * (WIDTH - LEFT - RIGHT)

    def down(loss: float) -> float:
        return TOP + (high - loss) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{WIDTH / 2}" y="20" text-anchor="middle" font-size="14">{escape(title)}</text>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">step</text>',
        f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" '
        f'transform="rotate(-90 16 {HEIGHT / 2})">nats per byte</text>',
    ]
    for loss in ticks(low, high):
        y = down(loss)
        parts += [
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>',
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{loss:g}</text>',
        ]
    for step in ticks(1, steps):
        x, y = across(step), HEIGHT - BOTTOM + 18
        parts.append(f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{step:g}</text>')
    for number, (name, curve) in enumerate(curves.items()):
        style = f'stroke="{COLOURS[number]}" stroke-width="1.5" stroke-dasharray="{DASHES[number]}"'
        finite = ((step, loss) for step, loss in enumerate(curve, 1) if math.isfinite(loss))
        points = " ".join(f"{across(step):.1f},{down(loss):.1f}" for step, loss in finite)
        y = TOP + 14 + 18 * number
        parts += [
            f'<polyline points="{points}" fill="none" {style}/>',
            f'<line x1="{WIDTH - 150}" x2="{WIDTH - 120}" y1="{y}" y2="{y}" {style}/>',
            f'<text x="{WIDTH - 112}" y="{y + 4}">{escape(name)}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def ticks(low: float, high: float) -> list[float]:
    """About five round numbers from low to high."""
    unit = 10 ** math.floor(math.log10((high - low) / 5))
    step = next(unit * factor for factor in (1, 2, 5, 10) if (high - low) / (unit * factor) <= 6)
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]
