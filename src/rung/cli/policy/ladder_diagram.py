"""A ladder as a picture: two rails, the highest rung on top, what each rung does beside it."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.text import Text

from rung.cli.output import count, dollars, seconds
from rung.core.domain.failures import GROUPS, Kind
from rung.core.domain.ladder import ACTION_DESCRIPTIONS

if TYPE_CHECKING:
    from rung.core.domain.ladder import Ladder, Rung

COLOURS: Final = ("green", "cyan", "yellow", "magenta", "red")
LABEL: Final = 8
NARROWEST: Final = 28


class DiagramGlyphs(NamedTuple):
    """What the picture is made of."""

    rail: str
    left: str
    bar: str
    right: str
    ground: str
    foot: str
    dot: str


FINE: Final = DiagramGlyphs("┃", "┣", "━", "┫", "─", "┸", " · ")
PLAIN: Final = DiagramGlyphs("|", "+", "=", "+", "-", "+", ", ")


def draw(ladder: Ladder, width: int, *, plain: bool = False) -> list[Text]:
    """The lines of the picture, for a screen this wide; `plain` uses ASCII alone."""
    wood = PLAIN if plain else FINE
    inner = max(20, max(len(rung.name) for rung in ladder.rungs) + 6)
    number = max(len(str(ladder.level(index))) for index in (0, len(ladder.rungs) - 1))
    edge = number + 4
    room = max(NARROWEST, width - edge - inner - 5)
    rails = _rails(edge, inner, wood)
    lines = [_title(ladder), Text(), rails.copy()]
    for index in reversed(range(len(ladder.rungs))):
        rung = ladder.rungs[index]
        colour = COLOURS[round(index / max(1, len(ladder.rungs) - 1) * (len(COLOURS) - 1))]
        start = Text(f"  {ladder.level(index):>{number}}  ", "bold")
        start.append(wood.left + f" {rung.name} ".center(inner, wood.bar) + wood.right, f"bold {colour}")
        lines.append(start.append("  ").append(_limits(rung, wood), "bold"))
        lines += [rails.copy().append("  ").append_text(line) for line in _details(ladder, index, room)]
        lines.append(rails.copy())
    feet = wood.ground * 3 + wood.foot + wood.ground * inner + wood.foot + wood.ground * 3
    lines.append(Text(" " * (edge - 3) + feet, "dim"))
    for line in lines:
        line.rstrip()
    return lines


def _title(ladder: Ladder) -> Text:
    return Text(ladder.name, "bold").append(f"  {ladder.about}", "not bold")


def _rails(edge: int, inner: int, wood: DiagramGlyphs) -> Text:
    return Text(" " * edge).append(wood.rail + " " * inner + wood.rail, "dim")


def _limits(rung: Rung, wood: DiagramGlyphs) -> str:
    parts = [] if rung.name == rung.action else [rung.action.value]
    parts.append(count(rung.tries, "try", "tries"))
    if rung.seconds is not None:
        parts.append(seconds(rung.seconds))
    if rung.cost:
        parts.append(f"{dollars(rung.cost)} a try")
    return wood.dot.join([*parts, f"per {rung.scope}"])


def _details(ladder: Ladder, index: int, room: int) -> list[Text]:
    rung = ladder.rungs[index]
    lines = _labelled("does", ACTION_DESCRIPTIONS[rung.action], room)
    entering = entrants(ladder, rung.name)
    if entering:
        lines += _labelled("enter", ", ".join(entering), room)
    if rung.applies_to is not None:
        helps = ", ".join(_grouped(rung.applies_to))
        if rung.max_missing_sections is not None:
            helps += f"; while at most {count(rung.max_missing_sections, 'section')} missing"
        lines += _labelled("only for", helps, room)
    return lines


def entrants(ladder: Ladder, name: str) -> list[str]:
    """The kinds that enter the ladder at this rung, in words."""
    kinds: list[str] = [kind for kind in Kind if ladder.entry.get(kind) == name]
    if ladder.entry.get(Kind.LOOP_DETECTED, ladder.default_entry) != name:
        kinds += [f"{Kind.LOOP_DETECTED} from {repeats} repeats" for repeats, rung in ladder.loops if rung == name]
    kinds += [f"errors of size {size}" for size, rung in ladder.sizes.items() if rung == name]
    if ladder.default_entry == name:
        kinds.append("all others" if kinds else "every kind not named elsewhere")
    return kinds


def _grouped(kinds: frozenset[Kind]) -> list[str]:
    """The kinds by name, and whole groups of them by the group's."""
    whole = [group for group in GROUPS.values() if len(group) > 1 and kinds.issuperset(group)]
    names = [f"every {name} kind" for name, group in GROUPS.items() if group in whole]
    return names + [kind for kind in Kind if kind in kinds and not any(kind in group for group in whole)]


def _labelled(label: str, text: str, room: int) -> list[Text]:
    rows = wrap(text, room - LABEL - 1, break_on_hyphens=False) or [""]
    heads = [label] + [""] * (len(rows) - 1)
    return [Text(f"{head:<{LABEL}} ", "dim").append(row, "not dim") for head, row in zip(heads, rows, strict=True)]
