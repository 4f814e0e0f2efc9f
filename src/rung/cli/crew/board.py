"""`rung crew board`: shows the crew on one screen, refreshed live."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.crew.option import found_db_option, open_crew_table
from rung.cli.help_text import epilogue
from rung.cli.numbers import refresh_option
from rung.cli.terminal import console

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.crew.board import BoardHeader
    from rung.store.crew.rows import TaskRow
    from rung.store.crew.table import CrewTable

REFRESH_SECONDS: Final = 1.0
DEFAULT_ROWS: Final = 40  # in a pipe, which has no height
OTHER_LINES: Final = 9  # lines of the screen that are not tasks
COLUMN_RATIOS: Final = {"progress": 2, "note": 3}  # of the remaining width
MAX_PROGRESS_CHARS: Final = 40
MAX_NOTE_CHARS: Final = 60
STATE_STYLES: Final = {
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


@click.command(
    "board",
    short_help="Show the crew on one screen, live.",
    epilog=epilogue(examples=("rung crew board --db crew.db",)),
)
@click.option("--once", is_flag=True, help="Print the board once.")
@refresh_option(REFRESH_SECONDS)
@click.option(
    "--rows",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Maximum number of tasks (default: as many as fit the screen).",
)
@found_db_option
def board(*, once: bool, every: float, rows: int | None, database: str) -> None:
    """Show the crew on one screen: conductor, watchdog, active tasks, and counts by state.

    Tasks that need an operator come first, then those that wait for a reply, then those in progress. Ctrl-C stops it.
    """
    with open_crew_table(database) as table:
        if once or not sys.stdout.isatty():
            console(max_width=None).print(render_board(table, rows or DEFAULT_ROWS))
            return
        with LiveBoard(table, rows) as refresh:
            try:
                while True:
                    time.sleep(every)
                    refresh()
            except KeyboardInterrupt:
                return


class LiveBoard:
    """Context manager that shows the board on the terminal and yields a refresh function; the last board stays."""

    def __init__(self, table: CrewTable, rows: int | None = None, *, stderr: bool = False) -> None:
        from rich.live import Live

        self._table, self._rows = table, rows
        self._console = console(stderr=stderr, max_width=None)
        self._live = Live(
            self._render(), console=self._console, auto_refresh=False, screen=False, vertical_overflow="crop"
        )

    def __enter__(self) -> Callable[[], None]:
        self._live.__enter__()
        return self._refresh

    def __exit__(self, *why: Any) -> None:
        self._refresh()
        self._live.__exit__(*why)

    def _refresh(self) -> None:
        from rung.core.domain.errors import StoreUnavailable

        try:
            self._live.update(self._render(), refresh=True)
        except StoreUnavailable:
            return  # the database is locked: the next refresh will do

    def _render(self) -> Any:
        return render_board(self._table, self._rows or max(3, self._console.height - OTHER_LINES))


def render_board(table: CrewTable, max_tasks: int) -> Any:
    """Return the conductor, the watchdog, counts by state, and the most important tasks."""
    from rich.console import Group
    from rich.table import Table as Grid
    from rich.text import Text

    from rung.store.crew import board

    head = board.load_header(table)
    page = board.load_page(table, max_tasks)
    grid = Grid(box=None, pad_edge=False, show_edge=False, header_style="dim", expand=True)
    for name in ("task", "state", "worker", "beat", "tries", "progress", "note"):
        # One line per task, so that the computed number fits the screen; the long columns share the remaining width.
        side = "right" if name in ("beat", "tries") else "left"
        grid.add_column(name, overflow="ellipsis", no_wrap=True, justify=side, ratio=COLUMN_RATIOS.get(name))  # type: ignore[arg-type]  # Rich's literal
    for task in page.tasks:
        grid.add_row(*_cells(task))
    left = head.tasks - len(page.tasks)
    more = [Text(f"and {left:,} more: see rung crew status --json", style="dim")] if left > 0 else []
    return Group(*_header_lines(head), Text(), grid, *more)


def _header_lines(head: BoardHeader) -> list[Any]:
    from rich.text import Text

    lines = [
        Text.assemble((f"{what:<10} ", "dim"), *_process_texts(row))
        for what, row in (("conductor", head.conductor), ("watchdog", head.watchdog))
    ]
    counts = ", ".join(f"{number:,} {state.value}" for state, number in head.counts.items() if number)
    tasks = Text.assemble(("tasks      ", "dim"), f"{head.tasks:,}" + (f": {counts}" if counts else ""))
    if head.for_person:
        tasks.append(f"  · {head.for_person:,} need an operator", style="bold magenta")
    return [*lines, tasks, *(Text(f"{name}: {why}", style="magenta") for name, why in head.facts.items())]


def _process_texts(row: TaskRow | None) -> list[tuple[str, str]]:
    if row is None:
        return [("not running", "red")]
    return [
        (f"{row.state.value:<17}", STATE_STYLES.get(row.state.value, "")),
        (f"beat {format_age(row.heartbeat_age)}", "dim"),
    ]


def _cells(task: TaskRow) -> list[Any]:
    from rich.text import Text

    state = task.outcome if task.state == "exited" and task.outcome else task.state.value
    owned = task.session_id and task.state.value not in ("complete", "exited", "watching")
    tries = f"{task.error_tries}" + (f"+{task.redispatches}" if task.redispatches else "")
    note = task.note if task.note not in (state, task.state.value) else ""
    return [
        Text(task.task_id, style="bold magenta" if task.needs_person else ""),
        Text(state, style=STATE_STYLES.get(task.state.value, "")),
        Text((task.worked_by or task.session_id[:12]) if owned else ""),
        Text(format_age(task.heartbeat_age) if owned else "", style="red" if owned and task.is_stale else ""),
        Text(tries if tries != "0" else ""),
        Text(_clip(task.progress, MAX_PROGRESS_CHARS)),
        Text(_clip(note or task.title, MAX_NOTE_CHARS), style="" if note else "dim"),
    ]


def _clip(text: str, max_chars: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"


def format_age(seconds: float | None) -> str:
    """Return an age as short text: 3 d, 2 h, 5 m, 12 s."""
    if seconds is None:
        return "never"
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{max(0, round(seconds))} s"
