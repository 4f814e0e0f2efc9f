"""Print the rows of a world as a table for the terminal or for a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench.worlds.goal import frontier, goal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.worlds.results import Figure, Result
    from bench.worlds.world import World

DASH: Final = "–"  # noqa: RUF001
COLUMNS: Final = ("policy", "success", "attempts", "seconds", "dollars", "waste", "unknown", "last turns")


def describe(world: World, rounds: int) -> str:
    """Return the heading of a world."""
    weight = sum(task.weight for task in world.tasks)
    dead = sum(task.weight for task in world.tasks if task.solvable is False)
    unsolved = f", {dead:g} never solved" if all(task.solvable is not None for task in world.tasks) else ""
    left_out = f", {world.left_out} left out: their arms differ in the first try" if world.left_out else ""
    draws = f", {rounds} rounds of draws" if world.rounds_differ else ""
    return f"{world.name}: {world.about}; {weight:.0f} tasks{unsolved}{left_out}{draws}"


def cells(row: Result, is_on_frontier: bool) -> list[str]:
    """Return the cells of a row. Dollars of the agent are recorded in no world that has single attempts."""
    mark = "* " if is_on_frontier else "  "
    name = mark + row.policy + (" (default)" if row.is_default else "")
    if not row.is_played:
        return [name, *[DASH] * (len(COLUMNS) - 1)]
    figures = row.figures
    return [
        name, _text(figures["success"], 3), _text(figures["attempts"], 2), _text(figures["seconds"], 0), _text(figures["dollars"], 3),
        _text(figures["waste"], 2), f"{row.unknown:.2f}" if row.unknown else "0", f"{row.last_turns:.2f}" if row.last_turns else "0",
    ]  # fmt: skip


def _text(figure: Figure | None, digits: int) -> str:
    if figure is None:
        return DASH
    return f"{figure.mean:.{digits}f} ({figure.low:.{digits}f}–{figure.high:.{digits}f})"  # noqa: RUF001


def table(rows: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of a table for the terminal, and the rows that were merged."""
    best = {row.policy for row in frontier(rows, "attempts")}
    lines = [list(COLUMNS), *(cells(row, row.policy in best) for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(COLUMNS))]
    for line in lines:
        yield "  ".join(
            f"{text:{'<' if not index else '>'}{widths[index]}}" for index, text in enumerate(line)
        ).rstrip()
    for row in rows:
        if row.same_as:
            yield f"  same plays as {row.policy}: {'; '.join(name.removeprefix('rung ') for name in row.same_as)}"


def markdown(rows: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of a table for a page, without the rows that the world cannot play."""
    best = {row.policy for row in frontier(rows, "attempts")}
    yield f"| {' | '.join(COLUMNS)} |"
    yield "| --- " * len(COLUMNS) + "|"
    for row in rows:
        if row.is_played:
            name, *rest = cells(row, is_on_frontier=False)
            name = name.strip()
            name = f"**{name}**" if row.is_default else name
            yield f"| {name}{' *' * (row.policy in best)} | {' | '.join(rest)} |"


def verdict(rows: Sequence[Result]) -> str:
    """Return the line that says whether the goal holds."""
    return str(goal(rows))
