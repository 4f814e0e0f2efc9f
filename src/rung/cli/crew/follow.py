"""Output of `rung crew run` while a crew runs, wherever it is conducted, and the exit code at its end."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

import click

from rung.cli.crew.status import format_line, pool_json, shown_note
from rung.cli.exit_codes import EXIT_CODES, STOPPED
from rung.cli.output import print_json
from rung.core.domain.events import Status
from rung.core.text.printable import printable
from rung.store.crew.table_patience import patiently

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.adapters.system.worker_processes import RealProcesses
    from rung.store.crew.rows import TaskRow
    from rung.store.crew.table import CrewTable

POLL_SECONDS: Final = 0.25
PARTIAL: Final = EXIT_CODES[Status.PARTIAL]
BLOCKED: Final = EXIT_CODES[Status.BLOCKED]
T = TypeVar("T")


def follow(table: CrewTable, at: str, processes: RealProcesses | None, *, as_json: bool) -> None:
    """Print each change until the crew ends; Ctrl-C, SIGTERM and SIGHUP stop the crew gracefully."""
    from rung.cli.run.ending_signals import ending_signals, exit_code_of
    from rung.core.crew.contract import STOP_KEY, STOPPED_KEY
    from rung.core.domain.errors import StoreUnavailable
    from rung.crew.watchdog import unfinished_reason

    seen: dict[str, tuple[str, str]] = {}
    live = not as_json and sys.stderr.isatty()
    try:
        with ending_signals():
            if live:
                _show_board(table, processes)
            while not _has_ended(table, processes):
                with suppress(StoreUnavailable):  # away: the crew goes on, and the next look prints what has changed
                    _print_changes(table, seen, as_json=as_json)
                time.sleep(POLL_SECONDS)
    except KeyboardInterrupt as stop:
        click.echo("stopping: waiting for the workers' handoffs …", err=True)
        reason = str(stop) or "Ctrl-C"
        patiently(lambda: table.set_fact(STOP_KEY, reason), log)
        while not _has_ended(table, processes):
            time.sleep(POLL_SECONDS)
        if not live:
            patiently(lambda: _print_changes(table, seen, as_json=as_json))
        _print_stopped(patiently(lambda: table.get_fact(STOPPED_KEY)))
        sys.exit(exit_code_of(stop))
    if not live:
        patiently(lambda: _print_changes(table, seen, as_json=as_json))
    rows = patiently(table.tasks)
    bad = [row for row in rows if row.state != "complete" and row.outcome != "removed"]
    unfinished = patiently(lambda: unfinished_reason(table))
    if not as_json:
        click.echo(patiently(lambda: _summary(rows, table, at)), err=True)
    if bad and unfinished:
        click.echo(f"rung: the crew has not ended: {unfinished}. Run it again: it adopts its workers.", err=True)
        sys.exit(EXIT_CODES[Status.FAILED])
    stopped = patiently(lambda: table.get_fact(STOPPED_KEY))
    if bad and stopped:
        _print_stopped(stopped)
        sys.exit(STOPPED)
    sys.exit(0 if not bad else PARTIAL if len(bad) < len(rows) else BLOCKED)


def _print_stopped(reason: str | None) -> None:
    """Say why the crew was stopped, if it was."""
    if reason:
        click.echo(f"rung: the crew was stopped: {printable(reason)}. Run it again to continue it.", err=True)


def _show_board(table: CrewTable, processes: RealProcesses | None) -> None:
    """Show the board on the terminal until the crew ends."""
    from rung.cli.crew.board import REFRESH_SECONDS, LiveBoard
    from rung.core.domain.errors import StoreUnavailable

    with LiveBoard(table, stderr=True) as refresh:
        while not _has_ended(table, processes):
            time.sleep(REFRESH_SECONDS)
            with suppress(StoreUnavailable):
                refresh()


def _has_ended(table: CrewTable, processes: RealProcesses | None) -> bool:
    """Return whether nobody conducts the crew any more, here or elsewhere, and no watchdog here would restart it."""
    from rung.crew.standby import has_ended
    from rung.crew.watchdog import CONDUCTOR_PROCESS, WATCHDOG_PROCESS
    from rung.engine.process_identity import is_stopped

    watchdog = None if processes is None else processes.pid(WATCHDOG_PROCESS)
    if processes is not None and processes.alive(CONDUCTOR_PROCESS):
        return False
    if processes is not None and watchdog is not None and processes.alive(WATCHDOG_PROCESS):
        return is_stopped(watchdog.number) and reads(lambda: has_ended(table), bool, default=False)
    return reads(table.conductor_lease, lambda lease: not lease.is_live, default=False)


def _print_changes(table: CrewTable, seen: dict[str, tuple[str, str]], *, as_json: bool) -> None:
    _print_pools(table, seen, as_json=as_json)
    for row in table.tasks():
        # A line is printed only if it says something new: `complete` gets the outcome `complete` a moment later.
        now = (row.state.value, (row.outcome or row.note) if as_json else shown_note(row))
        if seen.get(row.task_id, ("watching", "")) != now:
            seen[row.task_id] = now
            if as_json:
                print_json({"task": row.task_id, "state": row.state.value, "outcome": row.outcome, "note": row.note})
            else:
                click.echo(format_line(row), err=True)


def _print_pools(table: CrewTable, seen: dict[str, tuple[str, str]], *, as_json: bool) -> None:
    from rung.core.crew.pool import describe

    for name, pool in table.pools().items():
        now = (pool.state.value, describe(pool))
        if seen.get(f"pool {name}", ("open", "")) != now:
            seen[f"pool {name}"] = now
            if as_json:
                print_json({"pool": name, **pool_json(pool)})
            else:
                click.echo(f"{'pool ' + name:<14} {now[1] or 'open'}", err=True)


def _summary(rows: list[TaskRow], table: CrewTable, at: str) -> str:
    from rung.crew.runtime_dir import runtime_dir

    blocked = _blocked_pools(table)
    reports = runtime_dir(at, table) / "escalations"
    done = sum(row.state == "complete" for row in rows)
    text = f"{done} of {len(rows)} tasks complete"
    given_up = [row for row in rows if row.outcome == "escalated"]
    if given_up:
        text += f"; {len(given_up)} need an operator: see {reports}/"
    if blocked:
        text += f"; pool {', '.join(blocked)} needs an operator: see {reports}/"
    return text


def _blocked_pools(table: CrewTable) -> list[str]:
    return [name for name, pool in table.pools().items() if pool.state == "blocked"]


def reads(read: Callable[[], T], test: Callable[[T], bool], *, default: bool) -> bool:
    """Return whether a test of what is read holds; `default` while the table is away."""
    from rung.core.domain.errors import StoreUnavailable

    try:
        return test(read())
    except StoreUnavailable:
        return default


def log(text: str) -> None:
    """Print a line with its time."""
    click.echo(f"{time.strftime('%FT%TZ', time.gmtime())} {text}", err=True)
