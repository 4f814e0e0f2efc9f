"""Frontier plots as SVG: success against attempts or seconds, one panel for each world."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from bench.worlds.goal import frontier

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.worlds.results import Result

WIDTH, HEIGHT, COLUMNS = 460, 320, 2
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 40, 42
COSTS: Final = {"attempts": "attempts for each task", "seconds": "seconds for each task"}
STYLE: Final = (
    "text{font:11px sans-serif;fill:#333}.title{font-weight:bold;font-size:13px}.axis{stroke:#999}"
    ".grid{stroke:#eee}.frontier{fill:none;stroke:#bbb;stroke-dasharray:4 3}"
    ".rung{fill:#0a7d5a}.default{fill:#0a7d5a;stroke:#000;stroke-width:2}.other{fill:#c2571a}"
)


def plot(worlds: Sequence[tuple[str, Sequence[Result]]], cost: str) -> str:
    """Return an SVG with a panel for each world that records the cost."""
    panels = [(name, [row for row in rows if row.mean(cost) is not None]) for name, rows in worlds]
    panels = [(name, rows) for name, rows in panels if len(rows) > 1]
    lines = -(-len(panels) // COLUMNS)
    size = f'width="{WIDTH * COLUMNS}" height="{HEIGHT * max(1, lines)}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">', f"<style>{STYLE}</style>"]
    parts.append(f"<title>Success against {COSTS[cost]}</title>")
    for index, (name, rows) in enumerate(panels):
        parts.append(f'<g transform="translate({WIDTH * (index % COLUMNS)},{HEIGHT * (index // COLUMNS)})">')
        parts += _panel(name, rows, cost)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def _panel(name: str, rows: Sequence[Result], cost: str) -> Iterator[str]:
    scale = _Scale(rows, cost)
    yield f'<text class="title" x="{LEFT}" y="20">{escape(name)}</text>'
    yield from scale.axes(COSTS[cost])
    corners = " ".join(f"{scale.x(row):.1f},{scale.y(row):.1f}" for row in frontier(rows, cost))
    yield f'<polyline class="frontier" points="{corners}"/>'
    for row in rows:
        kind = "default" if row.is_default else "rung" if row.owner == "rung" else "other"
        x, y = scale.x(row), scale.y(row)
        title = f"{row.policy}: {row.mean('success'):.3f} at {row.mean(cost):.2f} {cost}"
        yield f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{6 if row.is_default else 4}"><title>{escape(title)}</title></circle>'
        if row.is_default or row.owner != "rung":
            anchor, shift = ("end", -8) if x > WIDTH * 0.6 else ("start", 8)
            height = y - 10 if row.is_default else y + 4  # above its point: the frontier is crowded
            yield f'<text x="{x + shift:.1f}" y="{height:.1f}" text-anchor="{anchor}">{escape(row.policy)}</text>'


class _Scale:
    """Maps success and cost to a place in a panel."""

    def __init__(self, rows: Sequence[Result], cost: str) -> None:
        self._cost = cost
        costs = [row.mean(cost) or 0.0 for row in rows]
        successes = [row.mean("success") or 0.0 for row in rows]
        self._low, self._high = min(costs), max(*costs, min(costs) + 1e-6)
        self._bottom, self._top = min(successes), max(*successes, min(successes) + 1e-6)

    def x(self, row: Result) -> float:
        share = ((row.mean(self._cost) or 0.0) - self._low) / (self._high - self._low)
        return LEFT + 10 + share * (WIDTH - LEFT - RIGHT - 20)

    def y(self, row: Result) -> float:
        share = ((row.mean("success") or 0.0) - self._bottom) / (self._top - self._bottom)
        return HEIGHT - BOTTOM - 10 - share * (HEIGHT - TOP - BOTTOM - 20)

    def axes(self, label: str) -> Iterator[str]:
        """Yield the axes with their lowest and highest values."""
        low, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        yield f'<path class="axis" fill="none" d="M{LEFT} {TOP}V{low}H{right}"/>'
        yield f'<text x="{LEFT + 10}" y="{low + 16}" text-anchor="middle">{self._low:.4g}</text>'
        yield f'<text x="{right - 10}" y="{low + 16}" text-anchor="middle">{self._high:.4g}</text>'
        yield f'<text x="{(LEFT + right) / 2:.0f}" y="{low + 32}" text-anchor="middle">{label}</text>'
        yield f'<text x="{LEFT - 6}" y="{low - 6}" text-anchor="end">{self._bottom:.2f}</text>'
        yield f'<text x="{LEFT - 6}" y="{TOP + 14}" text-anchor="end">{self._top:.2f}</text>'
        yield f'<text x="{LEFT - 6}" y="{(TOP + low) / 2:.0f}" text-anchor="end">success</text>'
