"""Draw a ladder: two rails, the highest rung on top, what each rung does beside it."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.text import Text

from rung.cli.output import format_seconds, pluralize
from rung.core.domain.dollars import format_dollars
from rung.core.domain.failures import GROUPS, Kind
from rung.core.domain.ladder import ACTION_DESCRIPTIONS

if TYPE_CHECKING:
    from rung.core.domain.ladder import Ladder, Rung

COLOURS: Final = ("green", "cyan", "yellow", "magenta", "red")
LABEL_WIDTH: Final = 8
MIN_TEXT_WIDTH: Final = 26  # columns beside the drawing: a terminal of 60 has them


class DiagramGlyphs(NamedTuple):
    """Characters of the drawing."""

    rail: str
    left: str
    bar: str
    right: str
    ground: str
    foot: str
    dot: str


UNICODE_GLYPHS: Final = DiagramGlyphs("┃", "┣", "━", "┫", "─", "┸", " · ")
ASCII_GLYPHS: Final = DiagramGlyphs("|", "+", "=", "+", "-", "+", ", ")


def draw(ladder: Ladder, width: int, *, plain: bool = False) -> list[Text]:
    """Return the lines of the drawing, for a terminal of this width; `plain` uses only ASCII."""
    glyphs = ASCII_GLYPHS if plain else UNICODE_GLYPHS
    inner = max(20, max(len(rung.name) for rung in ladder.rungs) + 6)
    number = max(len(str(ladder.level(index))) for index in (0, len(ladder.rungs) - 1))
    edge = number + 4
    room = max(MIN_TEXT_WIDTH, width - edge - inner - 5)
    rails = _rails(edge, inner, glyphs)
    lines = [_title(ladder), Text(), rails.copy()]
    for index in reversed(range(len(ladder.rungs))):
        rung = ladder.rungs[index]
        colour = COLOURS[round(index / max(1, len(ladder.rungs) - 1) * (len(COLOURS) - 1))]
        start = Text(f"  {ladder.level(index):>{number}}  ", "bold")
        start.append(glyphs.left + f" {rung.name} ".center(inner, glyphs.bar) + glyphs.right, f"bold {colour}")
        limits = _limits(rung, glyphs)
        if len(start) + 2 + len(limits) <= width:
            lines.append(start.append("  ").append(limits, "bold"))
        else:
            first, *more = wrap(limits, room, break_on_hyphens=False)
            lines.append(start.append("  ").append(first, "bold"))
            lines += [rails.copy().append("  ").append(row, "bold") for row in more]
        lines += [rails.copy().append("  ").append_text(line) for line in _details(ladder, index, room)]
        lines.append(rails.copy())
    feet = glyphs.ground * 3 + glyphs.foot + glyphs.ground * inner + glyphs.foot + glyphs.ground * 3
    lines.append(Text(" " * (edge - 3) + feet, "dim"))
    for line in lines:
        line.rstrip()
    return lines


def _title(ladder: Ladder) -> Text:
    return Text(ladder.name, "bold").append(f"  {ladder.about}", "not bold")


def _rails(edge: int, inner: int, glyphs: DiagramGlyphs) -> Text:
    return Text(" " * edge).append(glyphs.rail + " " * inner + glyphs.rail, "dim")


def _limits(rung: Rung, glyphs: DiagramGlyphs) -> str:
    parts = [] if rung.name == rung.action else [rung.action.value]
    parts.append(pluralize(rung.tries, "try", "tries"))
    if rung.seconds is not None:
        parts.append(format_seconds(rung.seconds) + " of backoff" * rung.is_retry)
    if rung.cost:
        parts.append(f"{format_dollars(rung.cost)} a try")
    return glyphs.dot.join([*parts, f"per {rung.scope}"])


def _details(ladder: Ladder, index: int, room: int) -> list[Text]:
    rung = ladder.rungs[index]
    lines = _labelled_lines("does", ACTION_DESCRIPTIONS[rung.action], room)
    entering = entry_texts(ladder, rung.name)
    if entering:
        lines += _labelled_lines("enter", ", ".join(entering), room)
    if rung.applies_to is not None:
        helps = ", ".join(_kind_names(rung.applies_to))
        if rung.max_missing_sections is not None:
            helps += f"; while at most {pluralize(rung.max_missing_sections, 'section')} missing"
        lines += _labelled_lines("only for", helps, room)
    return lines


def entry_texts(ladder: Ladder, name: str) -> list[str]:
    """Return the kinds that enter the ladder at this rung, as text."""
    kinds: list[str] = [kind for kind in Kind if ladder.entry.get(kind) == name]
    if ladder.entry.get(Kind.LOOP_DETECTED, ladder.default_entry) != name:
        kinds += [f"{Kind.LOOP_DETECTED} from {repeats} repeats" for repeats, rung in ladder.loops if rung == name]
    kinds += [f"errors of size {size}" for size, rung in ladder.sizes.items() if rung == name]
    if ladder.default_entry == name:
        kinds.append("all others" if kinds else "every kind not named elsewhere")
    return kinds


def _kind_names(kinds: frozenset[Kind]) -> list[str]:
    """Return the names of the kinds; a complete group is named as a whole."""
    whole = [group for group in GROUPS.values() if len(group) > 1 and kinds.issuperset(group)]
    names = [f"every {name} kind" for name, group in GROUPS.items() if group in whole]
    return names + [kind for kind in Kind if kind in kinds and not any(kind in group for group in whole)]


def _labelled_lines(label: str, text: str, room: int) -> list[Text]:
    rows = wrap(text, room - LABEL_WIDTH - 1, break_on_hyphens=False) or [""]
    heads = [label] + [""] * (len(rows) - 1)
    return [
        Text(f"{head:<{LABEL_WIDTH}} ", "dim").append(row, "not dim") for head, row in zip(heads, rows, strict=True)
    ]
