"""`rung crew run`: runs a plan, and prints what changes; and the processes of its conductor and watchdog."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from rung.cli.crew.option import db_option, open_crew_table
from rung.cli.crew.status import format_line, pool_json
from rung.cli.exit_codes import ALREADY_CONDUCTED, EXIT_CODES, LEASE_EXPIRED
from rung.cli.output import json_option, print_json
from rung.core.domain.events import Status
from rung.store.crew.table_patience import patiently

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.adapters.system.worker_processes import RealProcesses
    from rung.crew.settings import ConductorSettings
    from rung.store.crew.rows import TaskRow
    from rung.store.crew.table import CrewTable

POLL_SECONDS: Final = 0.25
START_POLL_SECONDS: Final = 0.05
PARTIAL: Final = EXIT_CODES[Status.PARTIAL]
BLOCKED: Final = EXIT_CODES[Status.BLOCKED]
T = TypeVar("T")


@click.command("run", short_help="Run a plan: dispatch its tasks to workers.")
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--db", "database", metavar="PATH|URL", envvar="RUNG_CREW", help="Crew database (default: beside the plan)."
)
@click.option("--detach", is_flag=True, help="Run in the background, and return at once.")
@click.option(
    "--standby", is_flag=True, help="If another process conducts the crew, wait, and take over when it is gone."
)
@json_option
def run(plan: Path, *, database: str | None, detach: bool, standby: bool, as_json: bool) -> None:
    """Run PLAN: a conductor dispatches its tasks to workers, and a watchdog restarts the conductor.

    One process conducts a crew, wherever it is started: a lease in the crew's database says which.

    Exit codes: 0 all tasks complete · 2 wrong usage · 3 some tasks were given up, with a report each ·
    4 no task was completed · 5 another process conducts the crew · 130 stopped by Ctrl-C.
    """
    from rung.core.crew.plan import checked_plan
    from rung.crew.plan_sync import require_programs, unchecked_tasks
    from rung.crew.settings import ConductorSettings
    from rung.wiring.journals import shown_location
    from rung.wiring.toml_reader import read_table

    content, folder = read_table(plan), plan.parent.resolve()
    made = checked_plan(content)
    require_programs(made, folder)
    for name in unchecked_tasks(made):
        click.echo(
            f"rung: {name}: rung worker run has no --check, and the crew no judge and no person to review", err=True
        )
    at = database or str(plan.with_suffix(".db").resolve())
    shown = shown_location(at)
    with open_crew_table(at, create=True) as table:
        holder = _take_lease(table, at, ConductorSettings.from_plan(made.settings), standby=standby)
        processes = _launch(table, at, content, plan, holder) if holder else None
        if processes is not None and not as_json:
            click.echo(
                f"{made.name}: {len(made.active_tasks)} tasks, {made.settings.workers} at once; {shown}", err=True
            )
        if detach:
            click.echo(f"rung crew status --db {shown}")
            return
        _follow(table, at, processes, as_json=as_json)


def _take_lease(table: CrewTable, at: str, settings: ConductorSettings, *, standby: bool) -> str:
    """Take the lease for the conductor to be launched, and return its holder; empty if the crew ended during a standby.

    Exits with 5, and writes nothing, if another process conducts.
    """
    from rung.core.domain.errors import ConductorLeaseHeld
    from rung.crew.standby import lease_seconds, stand_by
    from rung.crew.watchdog import START_SECONDS
    from rung.store.crew.table import CrewTable
    from rung.wiring.journals import shown_location

    shown = shown_location(at)
    try:
        return table.acquire_lease(START_SECONDS).holder
    except ConductorLeaseHeld as error:
        if not standby:
            hint = f"see rung crew status --db {shown}, or wait for it with --standby"
            click.echo(f"rung: {shown}: {error}; {hint}", err=True)
            sys.exit(ALREADY_CONDUCTED)
        click.echo(f"{shown}: {error}; standing by", err=True)
    with patiently(lambda: CrewTable.open(at), _log) as watched:  # one that tells when it is away
        lease = stand_by(watched, lease_seconds(settings), _log)
    if lease is None:
        return ""
    click.echo(f"{shown}: taking over", err=True)
    table.fence(lease.term)
    return lease.holder


def _launch(table: CrewTable, at: str, content: dict[str, Any], plan: Path, holder: str) -> RealProcesses:
    """Insert the plan, launch the conductor and wait until it has the lease."""
    from rung.adapters.system.worker_processes import RealProcesses
    from rung.crew.conductor_process import rung_command
    from rung.crew.plan_sync import insert_plan
    from rung.crew.runtime_dir import record_runtime_dir
    from rung.crew.watchdog import CONDUCTOR_PROCESS, SUCCEEDS_OPTION

    insert_plan(table, content, plan.parent.resolve(), plan)
    _clear_stop(table)
    processes = RealProcesses(record_runtime_dir(at, table))
    processes.launch(CONDUCTOR_PROCESS, rung_command("conduct", at, SUCCEEDS_OPTION, holder), {}, None)
    table.fence(None)  # from now on this process only asks for a stop, as an operator may
    while _reads(table.conductor_lease, lambda lease: lease.holder == holder, default=True):
        if not processes.alive(CONDUCTOR_PROCESS) and table.conductor_lease().holder == holder:
            click.echo(f"rung: the conductor did not start: see {processes.logs}/{CONDUCTOR_PROCESS}.log", err=True)
            sys.exit(BLOCKED)
        time.sleep(START_POLL_SECONDS)
    return processes


def _reads(read: Callable[[], T], test: Callable[[T], bool], *, default: bool) -> bool:
    """Return whether a test of what is read holds; `default` while the table is away."""
    from rung.core.domain.errors import StoreUnavailable

    try:
        return test(read())
    except StoreUnavailable:
        return default


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


def _follow(table: CrewTable, at: str, processes: RealProcesses | None, *, as_json: bool) -> None:
    """Print each change until the crew ends; Ctrl-C, SIGTERM and SIGHUP stop the crew gracefully."""
    from rung.cli.run.ending_signals import ending_signals, exit_code_of
    from rung.core.crew.contract import STOP_KEY
    from rung.core.domain.errors import StoreUnavailable

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
        patiently(lambda: table.set_fact(STOP_KEY, reason), _log)
        while not _has_ended(table, processes):
            time.sleep(POLL_SECONDS)
        if not live:
            patiently(lambda: _print_changes(table, seen, as_json=as_json))
        sys.exit(exit_code_of(stop))
    if not live:
        patiently(lambda: _print_changes(table, seen, as_json=as_json))
    rows = patiently(table.tasks)
    bad = [row for row in rows if row.state != "complete" and row.outcome != "removed"]
    if not as_json:
        click.echo(patiently(lambda: _summary(rows, table, at)), err=True)
    sys.exit(0 if not bad else PARTIAL if len(bad) < len(rows) else BLOCKED)


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
        return is_stopped(watchdog.number) and _reads(lambda: has_ended(table), bool, default=False)
    return _reads(table.conductor_lease, lambda lease: not lease.is_live, default=False)


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


@click.command("conduct", hidden=True)
@click.option("--succeeds", default="", hidden=True, help="Holder of the lease that this conductor takes over.")
@db_option
def conduct(*, succeeds: str, database: str) -> None:
    """Run the conductor process."""
    from rung.core.domain.errors import ConductorLeaseHeld, ConductorReplaced, StoreError
    from rung.crew.conductor_process import open_context, run_conductor
    from rung.wiring.journals import journal, shown_location

    try:
        crew_journal = journal(None, project="crew")
    except StoreError as error:
        click.echo(f"rung: no journal is written: {error}", err=True)
        crew_journal = None
    try:
        crew = patiently(lambda: open_context(database, journal=crew_journal, log=_log), _log)
        done = run_conductor(crew, succeeds=succeeds)
    except ConductorLeaseHeld as error:
        click.echo(f"rung: {shown_location(database)}: {error}", err=True)
        sys.exit(ALREADY_CONDUCTED)
    except ConductorReplaced as error:
        _log(f"{error}; this one ends")
        sys.exit(LEASE_EXPIRED)
    finally:
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
