"""`rung crew run|status|reply|restart|stop`: runs a plan, shows its state, applies an operator's decisions."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.crew.option import db_option, open_crew_table
from rung.cli.exit_codes import EXIT_CODES
from rung.cli.output import json_option, print_json
from rung.core.domain.events import Status

if TYPE_CHECKING:
    from rung.store.crew.operator_commands import OperatorReply
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
    from rung.crew.dispatch import HALTED_KEY

    for fact in (HALTED_KEY, STOP_KEY):
        table.set_fact(fact, "")
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
        click.echo(_summary(rows, at), err=True)
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
    for row in table.tasks():
        now = (row.state.value, row.outcome or row.note)
        if seen.get(row.task_id, ("watching", "")) != now:
            seen[row.task_id] = now
            if as_json:
                print_json({"task": row.task_id, "state": row.state.value, "outcome": row.outcome, "note": row.note})
            else:
                click.echo(_line(row), err=True)


def _line(row: TaskRow) -> str:
    note = row.note or row.outcome
    worker = f"  {row.worked_by}" if row.worked_by else ""
    return f"{row.task_id:<14} {row.state.value:<15}{worker}{'  ' + note if note and note != row.state.value else ''}"


def _summary(rows: list[TaskRow], at: str) -> str:
    from rung.crew.conductor_process import runtime_dir

    done = sum(row.state == "complete" for row in rows)
    text = f"{done} of {len(rows)} tasks complete"
    given_up = [row for row in rows if row.outcome == "escalated"]
    if given_up:
        text += f"; {len(given_up)} need an operator: see {runtime_dir(at)}/escalations/"
    return text


@click.command("status", short_help="Show the state of every unfinished task.")
@db_option
@json_option
def status(*, database: str, as_json: bool) -> None:
    """Show the state of the conductor, the watchdog and every unfinished task."""
    from rung.core.crew.contract import CONDUCTOR, WATCHDOG

    with open_crew_table(database) as table:
        rows, counts = table.tasks(), {state.value: number for state, number in table.counts().items() if number}
        own = {name: table.task(name) for name in (CONDUCTOR, WATCHDOG)}
        facts = {name: table.get_fact(name) or "" for name in ("paused", "halted")}
    if as_json:
        print_json({"tasks": [_task_json(row) for row in rows], "counts": counts, **facts} | {
            name: None if row is None else {"state": row.state.value, "heartbeat_age": row.heartbeat_age}
            for name, row in own.items()
        })  # fmt: skip
        return
    for name, row in own.items():
        age = "never" if row is None or row.heartbeat_age is None else f"{row.heartbeat_age:.0f} s ago"
        click.echo(f"{name:<14} {row.state.value if row else '-':<15} beat {age}")
    for name, value in facts.items():
        if value:
            click.echo(f"{name}: {value}")
    for row in rows:
        if row.state != "complete":
            click.echo(_line(row))
    click.echo(", ".join(f"{number} {state}" for state, number in counts.items()) or "no tasks")


def _task_json(row: TaskRow) -> dict[str, Any]:
    return {
        "task": row.task_id, "title": row.title, "state": row.state.value, "worked_by": row.worked_by,
        "heartbeat_age": row.heartbeat_age, "error_tries": row.error_tries, "redispatches": row.redispatches,
        "progress": row.progress, "outcome": row.outcome, "note": row.note,
    }  # fmt: skip


@click.command("reply")
@click.argument("task_id", metavar="TASK")
@click.argument("text")
@click.option("--fix", "how", flag_value="fix", help="Answer its error; TEXT is the fix.")
@click.option("--approve", "how", flag_value="approve", help="Approve its review.")
@click.option("--reject", "how", flag_value="reject", help="Reject its review; TEXT is the reason.")
@db_option
def reply(task_id: str, text: str, *, how: str | None, database: str) -> None:
    """Send TEXT to the worker of a task, or answer what it waits for."""
    from rung.store.crew.operator_commands import OperatorReply

    _send_reply(database, task_id, text, OperatorReply(how or OperatorReply.TELL))


@click.command("restart", short_help="Restart a task with a new worker.")
@click.argument("task_id", metavar="TASK")
@click.argument("text", default="requested by the operator")
@db_option
def restart(task_id: str, text: str, *, database: str) -> None:
    """Restart a task with a new worker; TEXT says what to do differently."""
    from rung.store.crew.operator_commands import OperatorReply

    _send_reply(database, task_id, text, OperatorReply.RESET)


@click.command("stop")
@click.argument("task_id", metavar="[TASK]", required=False)
@click.option("--why", default="requested by the operator", show_default=True, help="Reason, for the record.")
@click.option("--hand-over", is_flag=True, help="Stop only this conductor: the watchdog starts another one.")
@db_option
def stop(task_id: str | None, *, why: str, hand_over: bool, database: str) -> None:
    """Stop the crew, or one TASK. Workers are asked to stop, then signalled; their work is handed over or given up."""
    from rung.store.crew.operator_commands import OperatorReply, request_stop

    if task_id is not None:
        _send_reply(database, task_id, why, OperatorReply.EXIT)
        return
    with open_crew_table(database) as table:
        request_stop(table, why, hand_over=hand_over)
    click.echo("the conductor stops at its next poll")


def _send_reply(database: str, task_id: str, text: str, how: OperatorReply) -> None:
    from rung.store.crew.operator_commands import reply_to_task

    with open_crew_table(database) as table:
        reply_to_task(table, task_id, text, how)
    click.echo(f"{task_id}: {how.value}")


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
