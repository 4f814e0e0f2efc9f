"""`rung worker run -- COMMAND …`: runs any command as a worker of a crew."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import click

from rung.cli.crew.option import claimed_task_option, claiming_session_option, db_option
from rung.cli.exit_codes import CLAIM_BLOCKED, EXIT_CODES, LEASE_EXPIRED, NO_TASK_AVAILABLE, TRY_LATER
from rung.cli.help_text import epilogue
from rung.cli.numbers import SOME_SECONDS
from rung.core.domain.events import Status

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCKED: Final = EXIT_CODES[Status.BLOCKED]


@click.command(
    "run",
    short_help="Claim a task and run a command for it.",
    epilog=epilogue(examples=('rung worker run --check "make test" -- claude -p',)),
)
@click.argument("command_line", nargs=-1, required=True, metavar="-- COMMAND …")
@claimed_task_option
@claiming_session_option
@click.option(
    "--worker-name",
    "worked_by",
    envvar="RUNG_WORKED_BY",
    default="",
    metavar="NAME",
    help="Display name of the worker.",
)
@click.option(
    "--check",
    default="",
    metavar="COMMAND",
    help="Command that exits 0 if the work is done; without it, a judge or a person must approve the work.",
)
@click.option(
    "--heartbeat-interval",
    "beat",
    type=SOME_SECONDS,
    envvar="RUNG_BEAT",
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds between two heartbeats.",
)
@click.option(
    "--poll-interval",
    "poll",
    type=SOME_SECONDS,
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds between two polls for an answer.",
)
@click.option(
    "--resume-session/--no-resume-session",
    "resume_session",
    default=True,
    help="Let a known agent continue its own session (default), or start it afresh in every run.",
)
@db_option
def run(
    command_line: tuple[str, ...], *, task_id: str | None, session: str, worked_by: str, check: str, beat: float,
    poll: float, resume_session: bool, database: str,
) -> None:  # fmt: skip
    """Claim a task and run COMMAND for it; failures are reported, replies become its input.

    The command gets the instructions on standard input, or in place of {instruction} in the command. Its output is
    passed on as it comes: in a crew, to the log of the worker.

    If the service behind the command is unavailable (overload, a limit, exit code 75), the task is handed back and
    waits for its pool: exit code 75, or 4 if only a person can raise the limit.

    Ctrl-C, SIGTERM and SIGHUP end COMMAND and hand the task over: exit code 130, 143 or 129.
    """
    from rung.adapters.system.command_line import require_program
    from rung.cli.run.ending_signals import ending_signals, exit_code_of
    from rung.core.domain.errors import ClaimBlocked, LeaseExpired, NoTaskAvailable, PoolUnavailable
    from rung.crew.command_worker import CommandWorker
    from rung.store.crew.worker import CrewWorker
    from rung.wiring.agents import agent_sessions

    require_program("COMMAND", command_line)
    if check:
        require_program("--check", check)
    sessions = agent_sessions(lambda text: click.echo(f"rung: {text}", err=True)) if resume_session else None
    try:
        crew_worker = CrewWorker(database, task_id, session=session, worked_by=worked_by, beat_every=beat)
        with ending_signals(), crew_worker as worker:
            CommandWorker(
                command=command_line,
                check=check,
                poll=poll,
                sessions=sessions,
                show_output=_writer(1),
                show_errors=_writer(2),
            ).work(worker)
    except KeyboardInterrupt as stop:
        click.echo("rung: stopped", err=True)
        sys.exit(exit_code_of(stop))
    except ClaimBlocked as error:
        click.echo(f"rung: {error}", err=True)
        sys.exit(CLAIM_BLOCKED)
    except NoTaskAvailable as error:
        click.echo(f"rung: {error}", err=True)
        sys.exit(NO_TASK_AVAILABLE)
    except LeaseExpired as error:
        click.echo(f"rung: {error}", err=True)
        sys.exit(LEASE_EXPIRED)
    except PoolUnavailable as error:
        click.echo(f"rung: the task was handed back: {error}", err=True)
        sys.exit(TRY_LATER if error.is_temporary else BLOCKED)


def _writer(descriptor: int) -> Callable[[bytes], None]:
    """Return a function that writes to standard output (1) or standard error (2) at once, without a buffer."""

    def write(chunk: bytes) -> None:
        while chunk:
            chunk = chunk[os.write(descriptor, chunk) :]

    return write
