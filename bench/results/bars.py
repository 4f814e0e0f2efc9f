"""Horizontal bars as SVG, one group for each measure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.results.section import Comparison

LEFT, WIDTH, NUMBERS, STEP, HEAD = 250, 420, 90, 17, 26
OURS, OTHER, YARDSTICK = "#1b8a5a", "#c2571a", "#9aa5b1"
STYLE: Final = "text{font:11px system-ui,sans-serif;fill:#1f2933}.title{font-weight:600;font-size:13px}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar: its label, length, the text of its value, and its colour."""

    label: str
    value: float
    shown: str
    colour: str


def bars_of(found: Comparison, place: int) -> list[Bar]:
    """Return the bars of one measure of a comparison, without subjects that were not measured."""
    measure = found.measures[place]
    made = []
    for name, values in found.rows.items():
        value = values[place]
        if value is not None:
            colour = OURS if name in found.ours else YARDSTICK if name in found.yardsticks else OTHER
            made.append(Bar(label=name, value=value, shown=measure.show(value), colour=colour))
    return made


def picture(title: str, groups: Sequence[tuple[str, Sequence[Bar]]], *, is_logarithmic: bool = False) -> str:
    """Return an SVG with a group of bars for each (title, bars); all groups share one scale."""
    most = max((bar.value for _, bars in groups for bar in bars), default=0.0)
    height = HEAD + sum(HEAD + STEP * len(bars) for _, bars in groups)
    size = f'width="{LEFT + WIDTH + NUMBERS}" height="{height}"'
    note = ", logarithmic" if is_logarithmic else ""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text class="title" x="8" y="18">{escape(title + note)}</text>',
    ]
    top = HEAD
    for name, bars in groups:
        parts.append(f'<text class="title" x="8" y="{top + 18}">{escape(name)}</text>')
        parts += _group(bars, top + HEAD, most, is_logarithmic=is_logarithmic)
        top += HEAD + STEP * len(bars)
    return "\n".join([*parts, "</svg>", ""])


def _group(bars: Sequence[Bar], top: int, most: float, *, is_logarithmic: bool) -> Iterator[str]:
    for number, bar in enumerate(bars):
        y = top + STEP * number
        length = WIDTH * _share(bar.value, most, is_logarithmic=is_logarithmic)
        yield f'<text x="{LEFT - 8}" y="{y + 11}" text-anchor="end">{escape(bar.label)}</text>'
        yield f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{STEP - 4}" fill="{bar.colour}"/>'
        yield f'<text x="{LEFT + length + 6:.1f}" y="{y + 11}">{escape(bar.shown)}</text>'


def _share(value: float, most: float, *, is_logarithmic: bool) -> float:
    """Return the share of the full length; a logarithmic bar of 1 or less is a thin line."""
    if most <= 0 or value <= 0:
        return 0.0
    if not is_logarithmic:
        return value / most
    return max(0.005, math.log10(value) / math.log10(most)) if most > 1 else 1.0
