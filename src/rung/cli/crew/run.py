"""`rung crew run`: takes the conductor's lease and runs a plan; and the processes of its conductor and watchdog."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.crew.follow import BLOCKED, PARTIAL, follow, log, reads
from rung.cli.crew.option import db_option, open_crew_table
from rung.cli.exit_codes import ALREADY_CONDUCTED, LEASE_EXPIRED
from rung.cli.help_text import epilogue
from rung.cli.output import json_option, pluralize
from rung.store.crew.table_patience import patiently

if TYPE_CHECKING:
    from rung.adapters.system.worker_processes import RealProcesses
    from rung.crew.settings import ConductorSettings
    from rung.store.crew.table import CrewTable
    from rung.store.journal.journal import Journal
    from rung.wiring.alerts import Alerts

START_POLL_SECONDS: Final = 0.05


@click.command(
    "run",
    short_help="Run a plan: dispatch its tasks to workers.",
    epilog=epilogue(examples=("rung crew run plan.toml", "rung crew run plan.toml --detach")),
)
@click.argument("plan", type=click.Path(path_type=Path))
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

    Exit codes: 0 all tasks complete · 1 the crew has not ended, but nobody conducts it any more · 2 wrong usage ·
    3 some tasks were given up, with a report each · 4 no task was completed · 5 another process conducts the crew ·
    7 a person stopped the crew (rung crew stop) · 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.
    """
    from rung.cli.crew.check import load_plan
    from rung.core.domain.errors import ConductorReplaced
    from rung.crew.settings import ConductorSettings
    from rung.wiring.alerts import check_alerts, warn_if_untrusted
    from rung.wiring.journals import shown_location
    from rung.wiring.settings_file import find

    file = find()
    check_alerts(file)  # before a conductor is launched, whose log nobody reads yet
    warn_if_untrusted(file, lambda text: click.echo(f"rung crew: {text}", err=True))
    content, made, _ = load_plan(plan)
    at = database or str(plan.with_suffix(".db").resolve())
    shown = shown_location(at)
    with open_crew_table(at, create=True) as table:
        try:
            holder = _take_lease(table, at, ConductorSettings.from_plan(made.settings), standby=standby)
            processes = _launch(table, at, content, plan, holder) if holder else None
        except ConductorReplaced as error:  # a start that took longer than its lease
            click.echo(f"rung: {shown}: {error}", err=True)
            sys.exit(ALREADY_CONDUCTED)
        if processes is not None and not as_json:
            tasks = pluralize(len(made.active_tasks), "task")
            click.echo(f"{made.name}: {tasks}, {made.settings.workers} at once; {shown}", err=True)
        if detach:
            click.echo(f"rung crew status --db {shown}")
            return
        follow(table, at, processes, as_json=as_json)


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
    with patiently(lambda: CrewTable.open(at), log) as watched:  # one that tells when it is away
        lease = stand_by(watched, lease_seconds(settings), log)
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
    while reads(table.conductor_lease, lambda lease: lease.holder == holder, default=True):
        if not processes.alive(CONDUCTOR_PROCESS) and table.conductor_lease().holder == holder:
            click.echo(f"rung: the conductor did not start: see {processes.logs}/{CONDUCTOR_PROCESS}.log", err=True)
            sys.exit(BLOCKED)
        time.sleep(START_POLL_SECONDS)
    return processes


def _clear_stop(table: CrewTable) -> None:
    """Clear the stop requests of an earlier run, so that this one continues where it stopped."""
    from rung.core.crew.contract import CONDUCTOR, STOP_KEY, STOPPED_KEY, TaskState
    from rung.core.crew.pool import PoolState
    from rung.crew.dispatch import HALTED_KEY
    from rung.store.crew.operator_commands import wake_pools

    for fact in (HALTED_KEY, STOP_KEY, STOPPED_KEY):
        table.set_fact(fact, "")
    wake_pools(table, time.time(), only=(PoolState.BLOCKED,))  # a parked pool stays parked
    row = table.task(CONDUCTOR)
    if row is not None and row.state is not TaskState.WATCHING:
        table.heartbeat_self(CONDUCTOR, TaskState.WATCHING)


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
    alerts = None
    try:
        crew = patiently(lambda: open_context(database, journal=crew_journal, log=log), log)
        alerts = _start_alerts(database, crew_journal)
        done = run_conductor(crew, succeeds=succeeds)
    except ConductorLeaseHeld as error:
        click.echo(f"rung: {shown_location(database)}: {error}", err=True)
        sys.exit(ALREADY_CONDUCTED)
    except ConductorReplaced as error:
        log(f"{error}; this one ends")
        sys.exit(LEASE_EXPIRED)
    finally:
        if alerts is not None:
            alerts.stop()
        if crew_journal is not None:
            crew_journal.close()
    sys.exit(0 if done else PARTIAL)


def _start_alerts(database: str, crew_journal: Journal | None) -> Alerts | None:
    """Start the alerts of the rung.toml where the crew was started; wrong ones are told, and the crew goes on."""
    from rung.core.domain.errors import ConfigError
    from rung.crew.alert_figures import crew_figures, crew_scope
    from rung.wiring.alerts import alerts_beside

    try:
        figures = {crew_scope(database): crew_figures(database, crew_journal, time.time)}
        alerts = alerts_beside(crew_journal, figures=figures, warn=log)
    except ConfigError as error:
        log(f"no alerts: {error}")
        return None
    return None if alerts is None else alerts.start()


@click.command("watch", hidden=True)
@db_option
def watch(*, database: str) -> None:
    """Run the watchdog process."""
    from rung.crew.conductor_process import run_watchdog

    sys.exit(0 if run_watchdog(database, log=log) else PARTIAL)
