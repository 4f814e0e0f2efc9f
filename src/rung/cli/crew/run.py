"""`rung crew run|status|reply|restart|stop`: runs a plan, shows its state, takes an operator's decisions."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.crew.option import db_option, opened
from rung.cli.exit_codes import EXITS, INTERRUPTED
from rung.cli.output import as_json, print_json
from rung.core.domain.events import Status

if TYPE_CHECKING:
    from rung.store.crew.operator_commands import OperatorReply
    from rung.store.crew.rows import TaskRow
    from rung.store.crew.table import CrewTable

LOOK: Final = 0.25
PARTIAL: Final = EXITS[Status.PARTIAL]
BLOCKED: Final = EXITS[Status.BLOCKED]


@click.command("run")
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--db", "place", metavar="PATH|URL", envvar="RUNG_CREW", help="Crew database (default: beside the plan).")
@click.option("--detach", is_flag=True, help="Run in the background, and return at once.")
@as_json
def run(plan: Path, *, place: str | None, detach: bool, as_json: bool) -> None:
    """Run PLAN: a conductor dispatches its tasks to workers, and a watchdog restarts the conductor.

    Exit codes: 0 everything is complete · 2 wrong usage · 3 some tasks were given up, with a report each ·
    4 none was completed · 130 stopped by Ctrl-C.
    """
    from rung.adapters.system.worker_processes import RealProcesses
    from rung.crew.conductor_process import command_of, runtime_of
    from rung.crew.plan_sync import begin
    from rung.crew.watchdog import NAME
    from rung.wiring.files import read_table

    at = place or str(plan.with_suffix(".db").resolve())
    with opened(at, create=True) as table:
        made = begin(table, read_table(plan), plan.parent.resolve())
        processes = RealProcesses(runtime_of(at))
        if processes.alive(NAME):
            raise click.UsageError(f"{at}: this crew is being conducted already; see rung crew status --db {at}")
        _forget_the_end(table)
        processes.launch(NAME, command_of("conduct", at), {}, None)
        if not as_json:
            click.echo(f"{made.name}: {len(made.standing)} tasks, {made.settings.workers} at once; {at}", err=True)
        if detach:
            click.echo(f"rung crew status --db {at}")
            return
        _follow(table, at, as_json=as_json)


def _forget_the_end(table: CrewTable) -> None:
    """An earlier run of the same table ended: this one begins where that one stopped."""
    from rung.core.crew.contract import CONDUCTOR, STOP, TaskState
    from rung.crew.dispatch import HALTED

    for fact in (HALTED, STOP):
        table.set_fact(fact, "")
    row = table.task(CONDUCTOR)
    if row is not None and row.state is not TaskState.WATCHING:
        table.heartbeat_self(CONDUCTOR, TaskState.WATCHING)


def _follow(table: CrewTable, at: str, *, as_json: bool) -> None:
    """Show each change until it is over; Ctrl-C stops the crew, in order."""
    from rung.core.crew.contract import STOP

    seen: dict[str, tuple[str, str]] = {}
    live = not as_json and sys.stderr.isatty()
    try:
        if live:
            _show(table, at)
        while not _over(at):
            _news(table, seen, as_json=as_json)
            time.sleep(LOOK)
    except KeyboardInterrupt:
        click.echo("stopping: the workers hand over …", err=True)
        table.set_fact(STOP, "Ctrl-C")
        while not _over(at):
            time.sleep(LOOK)
        if not live:
            _news(table, seen, as_json=as_json)
        sys.exit(INTERRUPTED)
    if not live:
        _news(table, seen, as_json=as_json)
    rows = table.tasks()
    bad = [row for row in rows if row.state != "complete" and row.outcome != "removed"]
    if not as_json:
        click.echo(_summary(rows, at), err=True)
    sys.exit(0 if not bad else PARTIAL if len(bad) < len(rows) else BLOCKED)


def _show(table: CrewTable, at: str) -> None:
    """The board, for whoever sits before a terminal; it ends with the crew."""
    from rung.cli.crew.board import EVERY, shown

    with shown(table, stderr=True) as refresh:
        while not _over(at):
            time.sleep(EVERY)
            refresh()


def _over(at: str) -> bool:
    """Has the conductor ended, and nobody is there who would start another?"""
    from rung.adapters.system.worker_processes import RealProcesses
    from rung.crew.conductor_process import runtime_of
    from rung.crew.watchdog import ITSELF, NAME

    processes = RealProcesses(runtime_of(at))
    return not processes.alive(NAME) and not processes.alive(ITSELF)


def _news(table: CrewTable, seen: dict[str, tuple[str, str]], *, as_json: bool) -> None:
    for row in table.tasks():
        now = (row.state.value, row.outcome or row.note)
        if seen.get(row.task_id, ("watching", "")) != now:
            seen[row.task_id] = now
            if as_json:
                print_json({"task": row.task_id, "state": row.state.value, "outcome": row.outcome, "note": row.note})
            else:
                click.echo(_line(row), err=True)


def _line(row: TaskRow) -> str:
    said = row.note or row.outcome
    who = f"  {row.worked_by}" if row.worked_by else ""
    return f"{row.task_id:<14} {row.state.value:<15}{who}{'  ' + said if said and said != row.state.value else ''}"


def _summary(rows: list[TaskRow], at: str) -> str:
    from rung.crew.conductor_process import runtime_of

    done = sum(row.state == "complete" for row in rows)
    text = f"{done} of {len(rows)} tasks complete"
    given_up = [row for row in rows if row.outcome == "escalated"]
    if given_up:
        text += f"; {len(given_up)} need a person: see {runtime_of(at)}/escalations/"
    return text


@click.command("status")
@db_option
@as_json
def status(*, place: str, as_json: bool) -> None:
    """Show the state of the conductor, the watchdog and every unfinished task."""
    from rung.core.crew.contract import CONDUCTOR, WATCHDOG

    with opened(place) as table:
        rows, counts = table.tasks(), {state.value: number for state, number in table.counts().items() if number}
        own = {name: table.task(name) for name in (CONDUCTOR, WATCHDOG)}
        facts = {name: table.get_fact(name) or "" for name in ("paused", "halted")}
    if as_json:
        print_json({"tasks": [_told(row) for row in rows], "counts": counts, **facts} | {
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


def _told(row: TaskRow) -> dict[str, Any]:
    return {
        "task": row.task_id, "title": row.title, "state": row.state.value, "worked_by": row.worked_by,
        "heartbeat_age": row.heartbeat_age, "error_tries": row.error_tries, "redispatches": row.redispatches,
        "progress": row.progress, "outcome": row.outcome, "note": row.note,
    }  # fmt: skip


@click.command("reply")
@click.argument("task_id", metavar="TASK")
@click.argument("words")
@click.option("--fix", "how", flag_value="fix", help="Answer its error: WORDS say what to change.")
@click.option("--approve", "how", flag_value="approve", help="Approve its review.")
@click.option("--reject", "how", flag_value="reject", help="Reject its review: WORDS say why.")
@db_option
def reply(task_id: str, words: str, *, how: str | None, place: str) -> None:
    """Send WORDS to the worker of a task, or answer what it waits for."""
    from rung.store.crew.operator_commands import OperatorReply

    _say(place, task_id, words, OperatorReply(how or OperatorReply.TELL))


@click.command("restart")
@click.argument("task_id", metavar="TASK")
@click.argument("words", default="a person asked")
@db_option
def restart(task_id: str, words: str, *, place: str) -> None:
    """Restart a task with a new worker; WORDS say what to do differently."""
    from rung.store.crew.operator_commands import OperatorReply

    _say(place, task_id, words, OperatorReply.RESET)


@click.command("stop")
@click.argument("task_id", metavar="[TASK]", required=False)
@click.option("--why", default="a person asked", show_default=True, help="Reason, for the record.")
@click.option("--hand-over", is_flag=True, help="Stop only this conductor: the watchdog starts another one.")
@db_option
def stop(task_id: str | None, *, why: str, hand_over: bool, place: str) -> None:
    """Stop the crew, or one TASK. Workers are told, then signalled; their work is handed over or given up."""
    from rung.store.crew.operator_commands import OperatorReply, request_stop

    if task_id is not None:
        _say(place, task_id, why, OperatorReply.EXIT)
        return
    with opened(place) as table:
        request_stop(table, why, hand_over=hand_over)
    click.echo("the conductor stops at its next poll")


def _say(place: str, task_id: str, words: str, how: OperatorReply) -> None:
    from rung.store.crew.operator_commands import reply_to_task

    with opened(place) as table:
        reply_to_task(table, task_id, words, how)
    click.echo(f"{task_id}: {how.value}")


@click.command("conduct", hidden=True)
@db_option
def conduct(*, place: str) -> None:
    """Run the conductor process."""
    from rung.core.domain.errors import StoreError
    from rung.crew.conductor_process import conduct, crew_at
    from rung.wiring.journals import journal

    try:
        kept = journal(None, project="crew")
    except StoreError as error:
        click.echo(f"rung: no journal is kept: {error}", err=True)
        kept = None
    done = conduct(crew_at(place, journal=kept, say=_log))
    if kept is not None:
        kept.close()
    sys.exit(0 if done else PARTIAL)


@click.command("watch", hidden=True)
@db_option
def watch(*, place: str) -> None:
    """Run the watchdog process."""
    from rung.crew.conductor_process import watch

    sys.exit(0 if watch(place, say=_log) else PARTIAL)


def _log(words: str) -> None:
    click.echo(f"{time.strftime('%FT%TZ', time.gmtime())} {words}", err=True)
