"""`rung worker`: the worker's side of a crew, for agents with a shell."""

from __future__ import annotations

import shlex
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from rung.cli.command_group import CommandGroup
from rung.cli.crew.option import claimed_task_option, claiming_session_option, db_option, open_crew_table, read_text
from rung.cli.crew.worker_run import run
from rung.cli.exit_codes import CLAIM_BLOCKED, LEASE_EXPIRED, NO_TASK_AVAILABLE
from rung.cli.help_text import epilogue
from rung.cli.numbers import NUMBER_OF
from rung.cli.output import json_option, print_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rung.store.crew.rows import TaskLease
    from rung.store.crew.table import CrewTable

    Command = Callable[..., Any]


@click.group(cls=CommandGroup)
def command() -> None:
    """Work for a crew from a shell: claim a task, send heartbeats, report errors, request reviews, complete.

    Exit codes: 0 done · 2 invalid input, or an illegal transition · 3 no task available · 5 claim blocked: another
    worker has the task · 6 lease expired: the task was given to another worker, stop working on it.
    """


command.add_command(run)
task_option = click.option(
    "--task", "task_id", envvar="RUNG_TASK", required=True, metavar="ID", help="Task id (default: RUNG_TASK)."
)
session_option = click.option(
    "--session",
    envvar="RUNG_SESSION",
    required=True,
    metavar="ID",
    help="Session of the worker (default: RUNG_SESSION).",
)
generation_option = click.option(
    "--generation",
    type=NUMBER_OF,
    envvar="RUNG_GENERATION",
    required=True,
    metavar="N",
    help="Claim number that `claim` printed (default: RUNG_GENERATION).",
)
report_option = click.option("--report", "report_path", metavar="FILE", default="", help="Path of the full report.")
body_option = click.option("--body", help="Text of the message.")
file_option = click.option(
    "--body-file", metavar="FILE", help="File with the text of the message; - is standard input."
)


def lease_options(function: Command) -> Command:
    """Add the options of a command that needs a lease."""
    for option in (json_option, db_option, generation_option, session_option, task_option):
        function = option(function)
    return function


@contextmanager
def _open_lease(database: str, task_id: str, session: str, generation: int) -> Iterator[tuple[CrewTable, TaskLease]]:
    """Open the crew table with the worker's lease; an expired lease exits with code 6."""
    from rung.core.domain.errors import LeaseExpired
    from rung.store.crew.rows import TaskLease

    try:
        with open_crew_table(database) as table:
            yield table, TaskLease(task_id=task_id, session=session, generation=generation)
    except LeaseExpired as error:
        _exit_with(error, LEASE_EXPIRED)


def _exit_with(error: Exception, code: int) -> None:
    click.echo(f"rung: {error}", err=True)
    sys.exit(code)


def _print_result(as_json: bool, text: str, **facts: Any) -> None:  # noqa: FBT001  # click's flag
    if as_json:
        print_json(facts)
    else:
        click.echo(text)


@command.command("claim", epilog=epilogue(examples=('eval "$(rung worker claim --shell --db crew.db)"',)))
@claimed_task_option
@claiming_session_option
@click.option("--worker-name", "worked_by", default="", metavar="NAME", help="Display name of the worker.")
@click.option("--shell", is_flag=True, help='Print shell variables: eval "$(rung worker claim --shell)".')
@db_option
@json_option
def claim(*, task_id: str | None, session: str, worked_by: str, shell: bool, database: str, as_json: bool) -> None:
    """Claim a task. Pass the number it prints to every later command as --generation."""
    from uuid import uuid4

    from rung.core.domain.errors import ClaimBlocked

    session = session or f"worker-{uuid4().hex[:12]}"
    try:
        with open_crew_table(database) as table:
            lease = table.claim(task_id, session, worked_by) if task_id else table.claim_next(session)
            instruction = _instructions_for(table, lease.task_id) if lease else ""
    except ClaimBlocked as error:
        _exit_with(error, CLAIM_BLOCKED)
        return
    if lease is None:
        _exit_with(
            LookupError("no task available: every task is claimed, waits for another one, or is complete"),
            NO_TASK_AVAILABLE,
        )
        return
    if shell:
        for name, value in (("TASK", lease.task_id), ("SESSION", lease.session), ("GENERATION", lease.generation)):
            click.echo(f"export RUNG_{name}={shlex.quote(str(value))}")
        return
    _print_result(
        as_json,
        f"claimed {lease.task_id} · --session {lease.session} --generation {lease.generation}\n{instruction}".rstrip(),
        task=lease.task_id,
        session=lease.session,
        generation=lease.generation,
        worked_by=lease.worked_by,
        instruction_path=lease.instruction_path,
        instruction=instruction,
    )


def _instructions_for(table: CrewTable, task_id: str) -> str:
    """Return everything that the worker is told; without the text of an instruction file that cannot be read here."""
    from rung.core.domain.errors import ConfigError
    from rung.crew.instruction_file import full_instructions
    from rung.store.crew.briefing import worker_instructions

    task = table.require_task(task_id)
    try:
        return full_instructions(table, task)
    except ConfigError:
        return worker_instructions(table, task)


@command.command(
    "heartbeat",
    epilog=epilogue(examples=('rung worker heartbeat --progress "step 3 of 5"',)),
    short_help="Send a heartbeat.",
)
@click.option(
    "--progress", default="", help="Current progress: a step, a count, a digest. Any change counts as progress."
)
@lease_options
def heartbeat(*, progress: str, database: str, task_id: str, session: str, generation: int, as_json: bool) -> None:
    """Send a heartbeat; prints the state of the task, such as exit_requested."""
    with _open_lease(database, task_id, session, generation) as (table, claim):
        state = table.heartbeat(claim, progress=progress)
    _print_result(as_json, state, task=task_id, state=state)


@command.command("error", epilog=epilogue(examples=('rung worker error "ImportError: no module beam"',)))
@click.argument("summary")
@body_option
@file_option
@report_option
@lease_options
def error(
    summary: str, *, body: str | None, body_file: str | None, report_path: str, database: str, task_id: str, session: str,
    generation: int, as_json: bool,
) -> None:  # fmt: skip
    """Report an error, and wait for a proposed fix."""
    text = read_text(body, body_file)
    with _open_lease(database, task_id, session, generation) as (table, claim):
        tries = table.report_error(claim, summary, body=text, report_path=report_path)
    _print_result(as_json, f"error {tries} of this task; wait for fix_proposed", task=task_id, tries=tries)


@command.command(
    "context-warning",
    epilog=epilogue(examples=('rung worker context-warning --body "80% used"',)),
    short_help="Report that the context is nearly full.",
)
@body_option
@file_option
@lease_options
def warn(
    *,
    body: str | None,
    body_file: str | None,
    database: str,
    task_id: str,
    session: str,
    generation: int,
    as_json: bool,
) -> None:
    """Report that the context is nearly full; it does not count as an error."""
    text = read_text(body, body_file) or "CONTEXT WARNING"
    with _open_lease(database, task_id, session, generation) as (table, claim):
        table.warn_context(claim, text)
    _print_result(as_json, "warning sent; wait for a reply", task=task_id)


@command.command(
    "review",
    epilog=epilogue(examples=("rung worker review --checkpoint 1 --report work.md",)),
    short_help="Request a review of a checkpoint.",
)
@click.option("--checkpoint", type=NUMBER_OF, required=True, metavar="N", help="Checkpoint number.")
@body_option
@file_option
@report_option
@lease_options
def review(
    *, checkpoint: int, body: str | None, body_file: str | None, report_path: str, database: str, task_id: str,
    session: str, generation: int, as_json: bool,
) -> None:  # fmt: skip
    """Request a review of a checkpoint, and wait for its verdict."""
    text = read_text(body, body_file)
    with _open_lease(database, task_id, session, generation) as (table, claim):
        cycle = table.request_review(claim, text, checkpoint=checkpoint, report_path=report_path)
    _print_result(
        as_json,
        f"review {cycle} of checkpoint {checkpoint} requested",
        task=task_id,
        checkpoint=checkpoint,
        cycle=cycle,
    )


@command.command("resume", epilog=epilogue(examples=("rung worker resume",)), short_help="Resume after a reply.")
@body_option
@file_option
@lease_options
def resume(
    *,
    body: str | None,
    body_file: str | None,
    database: str,
    task_id: str,
    session: str,
    generation: int,
    as_json: bool,
) -> None:
    """Resume after a reply; a message describes the state in which a taken-over task was found."""
    text = read_text(body, body_file)
    with _open_lease(database, task_id, session, generation) as (table, claim):
        table.resume(claim, text)
    _print_result(as_json, "working", task=task_id, state="working")


@command.command("complete", epilog=epilogue(examples=("rung worker complete --report work.md",)))
@body_option
@file_option
@report_option
@lease_options
def complete(
    *, body: str | None, body_file: str | None, report_path: str, database: str, task_id: str, session: str,
    generation: int, as_json: bool,
) -> None:  # fmt: skip
    """Complete the task; a review must have approved it."""
    text = read_text(body, body_file)
    with _open_lease(database, task_id, session, generation) as (table, claim):
        table.complete(claim, text, report_path=report_path)
    _print_result(as_json, "complete", task=task_id, state="complete")


@command.command("handoff", epilog=epilogue(examples=('rung worker handoff --body "tests pass, docs missing"',)))
@body_option
@file_option
@report_option
@lease_options
def handoff(
    *, body: str | None, body_file: str | None, report_path: str, database: str, task_id: str, session: str,
    generation: int, as_json: bool,
) -> None:  # fmt: skip
    """Stop, and leave a handoff for the next worker."""
    text = read_text(body, body_file)
    if not text.strip():
        raise click.UsageError("a handoff needs a text: --body or --body-file")
    with _open_lease(database, task_id, session, generation) as (table, claim):
        table.hand_off(claim, text, report_path=report_path)
    _print_result(as_json, "exited", task=task_id, state="exited")


@command.command("messages", epilog=epilogue(examples=("rung worker messages --task task-01 --db crew.db",)))
@task_option
@click.option("--after", type=NUMBER_OF, default=0, metavar="N", help="Only messages after this number.")
@click.option("--type", "types", multiple=True, metavar="NAME", help="Only messages of this type. May be repeated.")
@db_option
@json_option
def messages(*, task_id: str, after: int, types: tuple[str, ...], database: str, as_json: bool) -> None:
    """Print the messages of a task, oldest first."""
    from dataclasses import asdict

    from rung.core.crew.contract import MessageType
    from rung.core.domain.errors import ConfigError

    for name in types:
        if name not in tuple(MessageType):
            raise ConfigError("--type", name, f"one of {', '.join(MessageType)}")
    with open_crew_table(database) as table:
        if table.task(task_id) is None:
            table.require_task(task_id)
        found = table.messages(task_id, after=after, types=[MessageType(name) for name in types])
    if as_json:
        print_json({"messages": [asdict(message) for message in found]})
        return
    for message in found:
        click.echo(f"{message.id}  {message.timestamp}  {message.message_type} from {message.from_session}")
        for line in message.message.splitlines():
            click.echo(f"    {line}")
