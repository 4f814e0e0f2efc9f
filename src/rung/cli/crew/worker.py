"""`rung worker`: a worker's side of a crew's table, so that an agent with a shell needs no SQL."""

from __future__ import annotations

import shlex
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from rung.cli.crew.option import db_option, given, opened
from rung.cli.crew.worker_run import run
from rung.cli.exit_codes import CLAIM_BLOCKED, NOTHING_TO_CLAIM, STALE_CLAIM
from rung.cli.output import as_json, print_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rung.store.crew.rows import TaskLease
    from rung.store.crew.table import CrewTable

    Command = Callable[..., Any]


@click.group(short_help="Work for a crew: claim a task, report, be answered.")
def command() -> None:
    """Work for a crew from a shell: claim a task, send heartbeats, report errors, request reviews, complete.

    Exit codes: 0 done · 2 what was given cannot be used, or is not legal now · 3 nothing to claim · 5 the claim is
    blocked: somebody else has the task · 6 the task is not yours any more: stop working on it.
    """


command.add_command(run)
task_option = click.option("--task", "task_id", envvar="RUNG_TASK", required=True, help="Task id (default: RUNG_TASK).")
session_option = click.option(
    "--session", envvar="RUNG_SESSION", required=True, help="Session of the worker (default: RUNG_SESSION)."
)
generation_option = click.option(
    "--generation",
    type=click.IntRange(min=0),
    envvar="RUNG_GENERATION",
    required=True,
    help="Claim number that `claim` printed (default: RUNG_GENERATION).",
)
report_option = click.option("--report", "report_path", metavar="FILE", default="", help="Path of the full report.")
body_option = click.option("--body", help="Text of the message.")
file_option = click.option(
    "--body-file", metavar="FILE", help="File with the text of the message; - is standard input."
)


def holding(function: Command) -> Command:
    """The options of everything that is done with a claim."""
    for option in (as_json, db_option, generation_option, session_option, task_option):
        function = option(function)
    return function


@contextmanager
def _held(place: str, task_id: str, session: str, generation: int) -> Iterator[tuple[CrewTable, TaskLease]]:
    """The table, and the claim; whose task is another's by now is told so, exit code 6."""
    from rung.core.domain.errors import LeaseExpired
    from rung.store.crew.rows import TaskLease

    try:
        with opened(place) as table:
            yield table, TaskLease(task_id=task_id, session=session, generation=generation)
    except LeaseExpired as error:
        _end(error, STALE_CLAIM)


def _end(error: Exception, code: int) -> None:
    click.echo(f"rung: {error}", err=True)
    sys.exit(code)


def _said(as_json: bool, words: str, **facts: Any) -> None:  # noqa: FBT001  # click's flag
    if as_json:
        print_json(facts)
    else:
        click.echo(words)


@command.command("claim")
@click.option(
    "--task", "task_id", envvar="RUNG_TASK", help="Task to claim (default: RUNG_TASK, else the next free one)."
)
@click.option("--session", envvar="RUNG_SESSION", help="Session of the worker (default: RUNG_SESSION, else a new one).")
@click.option("--worker-name", "worked_by", default="", help="Display name of the worker.")
@click.option("--shell", is_flag=True, help='Print shell variables: eval "$(rung worker claim --shell)".')
@db_option
@as_json
def claim(*, task_id: str | None, session: str | None, worked_by: str, shell: bool, place: str, as_json: bool) -> None:
    """Claim a task. Pass the number it prints to every later command as --generation."""
    from uuid import uuid4

    from rung.core.crew.contract import MessageType
    from rung.core.domain.errors import ClaimBlocked

    session = session or f"worker-{uuid4().hex[:12]}"
    try:
        with opened(place) as table:
            got = table.claim(task_id, session, worked_by) if task_id else table.claim_next(session)
            told = table.messages(got.task_id, types=[MessageType.INSTRUCTION]) if got else []
    except ClaimBlocked as error:
        _end(error, CLAIM_BLOCKED)
        return
    if got is None:
        _end(
            LookupError("there is nothing to claim: every task is taken, waits for another, or is done"),
            NOTHING_TO_CLAIM,
        )
        return
    instruction = told[-1].message if told else ""
    if shell:
        for name, value in (("TASK", got.task_id), ("SESSION", got.session), ("GENERATION", got.generation)):
            click.echo(f"export RUNG_{name}={shlex.quote(str(value))}")
        return
    _said(
        as_json,
        f"claimed {got.task_id} · --session {got.session} --generation {got.generation}\n{instruction}".rstrip(),
        task=got.task_id,
        session=got.session,
        generation=got.generation,
        worked_by=got.worked_by,
        instruction_path=got.instruction_path,
        instruction=instruction,
    )


@command.command("heartbeat")
@click.option(
    "--progress", default="", help="Current progress: a step, a count, a digest. A change counts as progress."
)
@holding
def beat(*, progress: str, place: str, task_id: str, session: str, generation: int, as_json: bool) -> None:
    """Send a heartbeat; prints the state of the task, such as exit_requested."""
    with _held(place, task_id, session, generation) as (table, claim):
        state = table.heartbeat(claim, progress=progress)
    _said(as_json, state, task=task_id, state=state)


@command.command("error")
@click.argument("summary")
@body_option
@file_option
@report_option
@holding
def error(
    summary: str, *, body: str | None, body_file: str | None, report_path: str, place: str, task_id: str, session: str,
    generation: int, as_json: bool,
) -> None:  # fmt: skip
    """Report an error, and wait for a proposed fix."""
    text = given(body, body_file)
    with _held(place, task_id, session, generation) as (table, claim):
        tries = table.report_error(claim, summary, body=text, report_path=report_path)
    _said(as_json, f"error {tries} of this task's life; wait for fix_proposed", task=task_id, tries=tries)


@command.command("context-warning")
@body_option
@file_option
@holding
def warn(
    *, body: str | None, body_file: str | None, place: str, task_id: str, session: str, generation: int, as_json: bool
) -> None:
    """Report that the context is nearly full; it does not count as an error."""
    text = given(body, body_file) or "CONTEXT WARNING"
    with _held(place, task_id, session, generation) as (table, claim):
        table.warn_context(claim, text)
    _said(as_json, "warned; wait for an answer", task=task_id)


@command.command("review")
@click.option("--checkpoint", type=click.IntRange(min=0), required=True, help="Checkpoint number.")
@body_option
@file_option
@report_option
@holding
def review(
    *, checkpoint: int, body: str | None, body_file: str | None, report_path: str, place: str, task_id: str,
    session: str, generation: int, as_json: bool,
) -> None:  # fmt: skip
    """Request a review of a checkpoint, and wait for its verdict."""
    text = given(body, body_file)
    with _held(place, task_id, session, generation) as (table, claim):
        cycle = table.request_review(claim, text, checkpoint=checkpoint, report_path=report_path)
    _said(
        as_json,
        f"review {cycle} of checkpoint {checkpoint} asked for",
        task=task_id,
        checkpoint=checkpoint,
        cycle=cycle,
    )


@command.command("resume")
@body_option
@file_option
@holding
def resume(
    *, body: str | None, body_file: str | None, place: str, task_id: str, session: str, generation: int, as_json: bool
) -> None:
    """Resume after a reply; a message says in which state a taken-over task was found."""
    text = given(body, body_file)
    with _held(place, task_id, session, generation) as (table, claim):
        table.resume(claim, text)
    _said(as_json, "working", task=task_id, state="working")


@command.command("complete")
@body_option
@file_option
@report_option
@holding
def complete(
    *, body: str | None, body_file: str | None, report_path: str, place: str, task_id: str, session: str,
    generation: int, as_json: bool,
) -> None:  # fmt: skip
    """Complete the task; a review must have approved it."""
    text = given(body, body_file)
    with _held(place, task_id, session, generation) as (table, claim):
        table.complete(claim, text, report_path=report_path)
    _said(as_json, "complete", task=task_id, state="complete")


@command.command("handoff")
@body_option
@file_option
@report_option
@holding
def handoff(
    *, body: str | None, body_file: str | None, report_path: str, place: str, task_id: str, session: str,
    generation: int, as_json: bool,
) -> None:  # fmt: skip
    """Stop, and leave a handoff for the next worker."""
    text = given(body, body_file)
    if not text.strip():
        raise click.UsageError("a hand-off says how far the work got: --body or --body-file")
    with _held(place, task_id, session, generation) as (table, claim):
        table.hand_off(claim, text, report_path=report_path)
    _said(as_json, "exited", task=task_id, state="exited")


@command.command("messages")
@task_option
@click.option("--after", type=click.IntRange(min=0), default=0, help="Only messages after this number.")
@click.option("--type", "types", multiple=True, help="Only messages of this type. May be repeated.")
@db_option
@as_json
def messages(*, task_id: str, after: int, types: tuple[str, ...], place: str, as_json: bool) -> None:
    """Print the messages of a task, oldest first."""
    from dataclasses import asdict

    from rung.core.crew.contract import MessageType
    from rung.core.domain.errors import ConfigError

    for name in types:
        if name not in tuple(MessageType):
            raise ConfigError("--type", name, f"one of {', '.join(MessageType)}")
    with opened(place) as table:
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
