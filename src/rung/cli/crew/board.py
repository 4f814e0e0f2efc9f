"""`rung crew board`: the crew on one screen, live; what needs a person first."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.crew.option import db_option, opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.crew.board import BoardHeader
    from rung.store.crew.rows import TaskRow
    from rung.store.crew.table import CrewTable

EVERY: Final = 1.0  # seconds between two looks
MANY: Final = 40  # rows in a pipe, where nothing says how many fit
AROUND: Final = 9  # lines that are not tasks
SHARES: Final = {"progress": 2, "note": 3}  # of what is left of the width
PROGRESS: Final = 40
NOTE: Final = 60
STYLES: Final = {
    "working": "cyan",
    "error": "red",
    "needs_review": "yellow",
    "review_failed": "yellow",
    "fix_proposed": "yellow",
    "exit_requested": "magenta",
    "complete": "green",
    "exited": "red",
    "confirmed": "green",
    "context_recovery": "magenta",
}


@click.command("board")
@click.option("--once", is_flag=True, help="Print the board once.")
@click.option(
    "--interval",
    "every",
    type=click.FloatRange(0.1, 3_600),
    default=EVERY,
    show_default=True,
    help="Seconds between two refreshes.",
)
@click.option("--rows", type=click.IntRange(1, 10_000), help="Most tasks to show (default: as many as fit the screen).")
@db_option
def board(*, once: bool, every: float, rows: int | None, place: str) -> None:
    """Show the crew on one screen: conductor, watchdog, active tasks, and counts by state.

    Tasks that need a person come first, then those that wait for an answer, then those at work. Ctrl-C ends it.
    """
    with opened(place) as table:
        if once or not sys.stdout.isatty():
            console = _console(stderr=False)
            console.print(picture(table, rows or MANY))
            return
        with shown(table, rows) as refresh:
            try:
                while True:
                    time.sleep(every)
                    refresh()
            except KeyboardInterrupt:
                return


class shown:  # noqa: N801  # used as `with shown(table) as refresh`
    """The board on the terminal until the block ends; the last look stays there."""

    def __init__(self, table: CrewTable, rows: int | None = None, *, stderr: bool = False) -> None:
        from rich.live import Live

        self._table, self._rows = table, rows
        self._console = _console(stderr=stderr)
        self._live = Live(
            self._look(), console=self._console, auto_refresh=False, screen=False, vertical_overflow="crop"
        )

    def __enter__(self) -> Callable[[], None]:
        self._live.__enter__()
        return self._again

    def __exit__(self, *why: Any) -> None:
        self._again()
        self._live.__exit__(*why)

    def _again(self) -> None:
        from rung.core.domain.errors import StoreUnavailable

        try:
            self._live.update(self._look(), refresh=True)
        except StoreUnavailable:
            return  # somebody holds the table: the next look will do

    def _look(self) -> Any:
        return picture(self._table, self._rows or max(3, self._console.height - AROUND))


def _console(*, stderr: bool) -> Any:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, emoji=False, markup=False)


def picture(table: CrewTable, most: int) -> Any:
    """Who leads, how many are where, and the tasks that matter most."""
    from rich.console import Group
    from rich.table import Table as Grid
    from rich.text import Text

    from rung.store.crew import board

    head = board.load_header(table)
    page = board.load_page(table, most)
    grid = Grid(box=None, pad_edge=False, show_edge=False, header_style="dim", expand=True)
    for name in ("task", "state", "worker", "beat", "tries", "progress", "note"):
        # One line each, so that as many fit the screen as were counted; what is long shares what is left of the width.
        side = "right" if name in ("beat", "tries") else "left"
        grid.add_column(name, overflow="ellipsis", no_wrap=True, justify=side, ratio=SHARES.get(name))  # type: ignore[arg-type]  # Rich's literal
    for task in page.tasks:
        grid.add_row(*_cells(task))
    left = head.tasks - len(page.tasks)
    more = [Text(f"and {left:,} more: rung crew status --json tells of all", style="dim")] if left > 0 else []
    return Group(*_top(head), Text(), grid, *more)


def _top(head: BoardHeader) -> list[Any]:
    from rich.text import Text

    lines = [
        Text.assemble((f"{what:<10} ", "dim"), *_own(row))
        for what, row in (("conductor", head.conductor), ("watchdog", head.watchdog))
    ]
    counts = ", ".join(f"{number:,} {state.value}" for state, number in head.counts.items() if number)
    tasks = Text.assemble(("tasks      ", "dim"), f"{head.tasks:,}" + (f": {counts}" if counts else ""))
    if head.for_person:
        tasks.append(f"  · {head.for_person:,} need a person", style="bold magenta")
    return [*lines, tasks, *(Text(f"{name}: {why}", style="magenta") for name, why in head.facts.items())]


def _own(row: TaskRow | None) -> list[tuple[str, str]]:
    if row is None:
        return [("is not there", "red")]
    return [(f"{row.state.value:<17}", STYLES.get(row.state.value, "")), (f"beat {age(row.heartbeat_age)}", "dim")]


def _cells(task: TaskRow) -> list[Any]:
    from rich.text import Text

    state = task.outcome if task.state == "exited" and task.outcome else task.state.value
    owned = task.session_id and task.state.value not in ("complete", "exited", "watching")
    tries = f"{task.error_tries}" + (f"+{task.redispatches}" if task.redispatches else "")
    said = task.note if task.note not in (state, task.state.value) else ""
    return [
        Text(task.task_id, style="bold magenta" if task.needs_person else ""),
        Text(state, style=STYLES.get(task.state.value, "")),
        Text((task.worked_by or task.session_id[:12]) if owned else ""),
        Text(age(task.heartbeat_age) if owned else "", style="red" if owned and task.is_stale else ""),
        Text(tries if tries != "0" else ""),
        Text(_line(task.progress, PROGRESS)),
        Text(_line(said or task.title, NOTE), style="" if said else "dim"),
    ]


def _line(text: str, most: int) -> str:
    words = " ".join(text.split())
    return words if len(words) <= most else f"{words[: most - 1]}…"


def age(seconds: float | None) -> str:
    """How long ago, in as few letters as say it."""
    if seconds is None:
        return "never"
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{max(0, round(seconds))} s"
