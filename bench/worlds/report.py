"""Write the results into a page between its markers, with the frontier plots beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench.worlds.goal import goal
from bench.worlds.plot import COSTS, plot
from bench.worlds.printing import DASH, describe, markdown, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bench.worlds.results import Result
    from bench.worlds.world import World

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
# Columns of the overview: the longest row whose name begins so.
OVERVIEW: Final = ("one attempt", "tenacity", "retry for ever", "always", "promotion", "LangChain")


def write_report(page: Path, found: Sequence[tuple[World, Sequence[Result]]], rounds: int) -> None:
    """Replace the text between the markers of a page."""
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no text between {BEGIN} and {END}")
    draw(page.parent, found, f"{page.stem}-")
    images = [f"![Success against {title}]({page.stem}-{cost}.svg)\n" for cost, title in COSTS.items()]
    lines = [*overview(found), "", *images]
    for world, rows in found:
        lines += [f"### {world.name}", "", f"Systems: {describe(world, rounds).removeprefix(f'{world.name}: ')}.", ""]
        lines += [*markdown(_without_templates(rows)), "", f"The {verdict(rows)}.", ""]
    page.write_text("\n".join([before + begin, "", *lines, end + after]))


def draw(folder: Path, found: Sequence[tuple[World, Sequence[Result]]], prefix: str = "") -> None:
    """Write the frontier plots."""
    folder.mkdir(parents=True, exist_ok=True)
    for cost in COSTS:
        (folder / f"{prefix}{cost}.svg").write_text(plot([(world.name, rows) for world, rows in found], cost))


def overview(found: Sequence[tuple[World, Sequence[Result]]]) -> Iterator[str]:
    """Yield one line for each world: success and attempts of the default ladder and of the others."""
    names = [*OVERVIEW[:3], "the expensive one", "promotion", "LangChain, all fallbacks"]
    yield f"| world | Rung's default | {' | '.join(names)} | goal |"
    yield "| --- " * (len(names) + 3) + "|"
    for world, rows in found:
        ours = next(row for row in rows if row.is_default)
        others = [[row for row in rows if row.owner != "rung" and row.policy.startswith(name)] for name in OVERVIEW]
        met = goal(rows)
        held = "holds" if met.holds else "waste" if not met.better else "dominated"
        share = "" if met.waste is None else f" {met.waste:.0%}"
        yield f"| {world.name} | **{_point(ours)}** | {' | '.join(_point(each[-1]) for each in others)} | {held}{share} |"


def _point(row: Result) -> str:
    if not row.is_played:
        return DASH
    unknown = f" + {row.unknown:.2f}?" if row.unknown else ""
    return f"{row.mean('success'):.3f} at {row.mean('attempts'):.2f}{unknown}"


def _without_templates(rows: Sequence[Result]) -> list[Result]:
    """Return the rows of others, and of ours those of a ladder's own settings."""
    return [row for row in rows if row.owner != "rung" or "," not in row.policy]
