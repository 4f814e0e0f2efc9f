"""Draw each built-in ladder from its data: its rungs, and the kinds of failure that enter at each."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from docpages import drawing
from docpages.kinds import entries
from docpages.markdown import count
from rung.core.domain.failures import GROUPS, Kind
from rung.core.domain.ladder import ACTION_DESCRIPTIONS, ENDING_ACTIONS
from rung.core.policy.presets import LADDERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.core.domain.ladder import Ladder, Rung

WIDTH, ROW, TOP = 860, 66, 44
LEFT_RAIL, RIGHT_RAIL, NAME = 336, 404, 424
ENTRY_CHARS: Final = 44
MAX_ENTRY_LINES: Final = 3


def pictures() -> dict[str, str]:
    """Return the path and SVG of each ladder."""
    return {f"pictures/ladder-{ladder.name}.svg": _draw(ladder) for ladder in LADDERS.values()}


def _draw(ladder: Ladder) -> str:
    height = TOP + ROW * len(ladder.rungs) + 16
    return drawing.picture(f"Ladder {ladder.name}", WIDTH, height, _parts(ladder, height))


def _parts(ladder: Ladder, height: float) -> Iterator[str]:
    yield drawing.text("failures that enter here", LEFT_RAIL - 34, 26, anchor="end", style="pale")
    yield drawing.text(f"Ladder {ladder.name}: cheapest rung at the bottom", NAME, 26, style="title")
    for rail in (LEFT_RAIL, RIGHT_RAIL):
        yield f'<line x1="{rail}" y1="{TOP}" x2="{rail}" y2="{height - 10}" stroke="#7b8794" stroke-width="5" stroke-linecap="round"/>'
    for row, (index, rung) in enumerate(reversed(list(enumerate(ladder.rungs)))):
        middle = TOP + ROW * row + ROW / 2
        yield from _rung(ladder, index, rung, middle)


def _rung(ladder: Ladder, index: int, rung: Rung, middle: float) -> Iterator[str]:
    is_end = rung.action in ENDING_ACTIONS
    colour = drawing.ORANGE if is_end else drawing.GREEN
    yield f'<rect x="{LEFT_RAIL - 5}" y="{middle - 5:g}" width="{RIGHT_RAIL - LEFT_RAIL + 10}" height="10" rx="5" fill="{colour}"/>'
    tries = "" if is_end else f"  ({count(rung.tries, 'try')})"
    yield drawing.text(f"{ladder.level(index)}  {rung.name}{tries}", NAME, middle - 2, style="name")
    yield drawing.text(ACTION_DESCRIPTIONS[rung.action], NAME, middle + 16, style="pale")
    lines = textwrap.wrap(", ".join(_entering(ladder, index)), ENTRY_CHARS)
    if len(lines) > MAX_ENTRY_LINES:
        lines = [*lines[: MAX_ENTRY_LINES - 1], f"{lines[MAX_ENTRY_LINES - 1].rstrip(',')} …"]
    for number, line in enumerate(lines):
        y = middle + 4 - 8 * (len(lines) - 1) + 16 * number
        yield drawing.text(line, LEFT_RAIL - 34, y, anchor="end", style="pale")
    if lines:
        yield drawing.arrow([(LEFT_RAIL - 28, middle), (LEFT_RAIL - 9, middle)], colour=drawing.BLUE)


def _entering(ladder: Ladder, index: int) -> list[str]:
    """Return what enters at a rung: whole groups by name, then single kinds."""
    kinds = {kind for kind in Kind if next(iter(entries(ladder, kind)))[1] == index}
    groups = [name for name, members in GROUPS.items() if set(members) <= kinds]
    grouped = {kind for name in groups for kind in GROUPS[name]}
    return [*(f"all {name}" for name in groups), *(str(kind) for kind in Kind if kind in kinds - grouped)]
