"""`rung crew run`: runs a plan, and prints what changes; and the processes of its conductor and watchdog."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from rung.cli.crew.option import db_option, open_crew_table
from rung.cli.crew.status import format_line, pool_json
from rung.cli.exit_codes import EXIT_CODES
from rung.cli.output import json_option, print_json
from rung.core.domain.events import Status

if TYPE_CHECKING:
    from rung.store.crew.rows import TaskRow
    from rung.store.crew.table import CrewTable

POLL_SECONDS: Final = 0.25
PARTIAL: Final = EXIT_CODES[Status.PARTIAL]
BLOCKED: Final = EXIT_CODES[Status.BLOCKED]


@click.command("run", short_help="Run a plan: dispatch its tasks to workers.")
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--db", "database", metavar="PATH|URL", envvar="RUNG_CREW", help="Crew database (default: beside the plan)."
)
@click.option("--detach", is_flag=True, help="Run in the background, and return at once.")
@json_option
def run(plan: Path, *, database: str | None, detach: bool, as_json: bool) -> None:
    """Run PLAN: a conductor dispatches its tasks to workers, and a watchdog restarts the conductor.

    Exit codes: 0 all tasks complete · 2 wrong usage · 3 some tasks were given up, with a report each ·
    4 no task was completed · 130 stopped by Ctrl-C.
    """
    from rung.adapters.system.worker_processes import RealProcesses
    from rung.core.crew.plan import checked_plan
    from rung.crew.conductor_process import rung_command, runtime_dir
    from rung.crew.plan_sync import insert_plan, require_programs
    from rung.crew.watchdog import CONDUCTOR_PROCESS
    from rung.wiring.journals import shown_location
    from rung.wiring.toml_reader import read_table

    content, folder = read_table(plan), plan.parent.resolve()
    require_programs(checked_plan(content), folder)
    at = database or str(plan.with_suffix(".db").resolve())
    shown = shown_location(at)
    with open_crew_table(at, create=True) as table:
        made = insert_plan(table, content, folder)
        processes = RealProcesses(runtime_dir(at))
        if processes.alive(CONDUCTOR_PROCESS):
            raise click.UsageError(f"{shown}: this crew is already running; see rung crew status --db {shown}")
        _clear_stop(table)
        processes.launch(CONDUCTOR_PROCESS, rung_command("conduct", at), {}, None)
        if not as_json:
            click.echo(
                f"{made.name}: {len(made.active_tasks)} tasks, {made.settings.workers} at once; {shown}", err=True
            )
        if detach:
            click.echo(f"rung crew status --db {shown}")
            return
        _follow(table, at, as_json=as_json)


def _clear_stop(table: CrewTable) -> None:
    """Clear the stop requests of an earlier run, so that this one continues where it stopped."""
    from rung.core.crew.contract import CONDUCTOR, STOP_KEY, TaskState
    from rung.core.crew.pool import PoolState
    from rung.crew.dispatch import HALTED_KEY
    from rung.store.crew.operator_commands import wake_pools

    for fact in (HALTED_KEY, STOP_KEY):
        table.set_fact(fact, "")
    wake_pools(table, time.time(), only=(PoolState.BLOCKED,))  # a parked pool stays parked
    row = table.task(CONDUCTOR)
    if row is not None and row.state is not TaskState.WATCHING:
        table.heartbeat_self(CONDUCTOR, TaskState.WATCHING)


def _follow(table: CrewTable, at: str, *, as_json: bool) -> None:
    """Print each change until the crew ends; Ctrl-C, SIGTERM and SIGHUP stop the crew gracefully."""
    from rung.cli.run.ending_signals import ending_signals, exit_code_of
    from rung.core.crew.contract import STOP_KEY
    from rung.core.domain.errors import StoreUnavailable

    seen: dict[str, tuple[str, str]] = {}
    live = not as_json and sys.stderr.isatty()
    try:
        with ending_signals():
            if live:
                _show_board(table, at)
            while not _has_ended(at):
                with suppress(StoreUnavailable):  # locked: the crew goes on, and the next look prints what has changed
                    _print_changes(table, seen, as_json=as_json)
                time.sleep(POLL_SECONDS)
    except KeyboardInterrupt as stop:
        click.echo("stopping: waiting for the workers' handoffs …", err=True)
        table.set_fact(STOP_KEY, str(stop) or "Ctrl-C")
        while not _has_ended(at):
            time.sleep(POLL_SECONDS)
        if not live:
            _print_changes(table, seen, as_json=as_json)
        sys.exit(exit_code_of(stop))
    if not live:
        _print_changes(table, seen, as_json=as_json)
    rows = table.tasks()
    bad = [row for row in rows if row.state != "complete" and row.outcome != "removed"]
    if not as_json:
        click.echo(_summary(rows, _blocked_pools(table), at), err=True)
    sys.exit(0 if not bad else PARTIAL if len(bad) < len(rows) else BLOCKED)


def _show_board(table: CrewTable, at: str) -> None:
    """Show the board on the terminal until the crew ends."""
    from rung.cli.crew.board import REFRESH_SECONDS, LiveBoard

    with LiveBoard(table, stderr=True) as refresh:
        while not _has_ended(at):
            time.sleep(REFRESH_SECONDS)
            refresh()


def _has_ended(at: str) -> bool:
    """Return whether both the conductor and the watchdog, which would restart it, have ended."""
    from rung.adapters.system.worker_processes import RealProcesses
    from rung.crew.conductor_process import runtime_dir
    from rung.crew.watchdog import CONDUCTOR_PROCESS, WATCHDOG_PROCESS

    processes = RealProcesses(runtime_dir(at))
    return not processes.alive(CONDUCTOR_PROCESS) and not processes.alive(WATCHDOG_PROCESS)


def _print_changes(table: CrewTable, seen: dict[str, tuple[str, str]], *, as_json: bool) -> None:
    _print_pools(table, seen, as_json=as_json)
    for row in table.tasks():
        now = (row.state.value, row.outcome or row.note)
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


def _summary(rows: list[TaskRow], blocked: list[str], at: str) -> str:
    from rung.crew.conductor_process import runtime_dir

    done = sum(row.state == "complete" for row in rows)
    text = f"{done} of {len(rows)} tasks complete"
    given_up = [row for row in rows if row.outcome == "escalated"]
    if given_up:
        text += f"; {len(given_up)} need an operator: see {runtime_dir(at)}/escalations/"
    if blocked:
        text += f"; pool {', '.join(blocked)} needs an operator: see {runtime_dir(at)}/escalations/"
    return text


def _blocked_pools(table: CrewTable) -> list[str]:
    return [name for name, pool in table.pools().items() if pool.state == "blocked"]


@click.command("conduct", hidden=True)
@db_option
def conduct(*, database: str) -> None:
    """Run the conductor process."""
    from rung.core.domain.errors import StoreError
    from rung.crew.conductor_process import open_context, run_conductor
    from rung.wiring.journals import journal

    try:
        crew_journal = journal(None, project="crew")
    except StoreError as error:
        click.echo(f"rung: no journal is written: {error}", err=True)
        crew_journal = None
    done = run_conductor(open_context(database, journal=crew_journal, log=_log))
    if crew_journal is not None:
        crew_journal.close()
    sys.exit(0 if done else PARTIAL)


@click.command("watch", hidden=True)
@db_option
def watch(*, database: str) -> None:
    """Run the watchdog process."""
    from rung.crew.conductor_process import run_watchdog

    sys.exit(0 if run_watchdog(database, log=_log) else PARTIAL)


def _log(text: str) -> None:
    click.echo(f"{time.strftime('%FT%TZ', time.gmtime())} {text}", err=True)
