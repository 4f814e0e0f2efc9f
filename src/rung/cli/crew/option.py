"""Options shared by the crew commands: the database, the task to claim, and text from an option, a file or standard input."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rung.store.crew.table import CrewTable

MAX_LISTED_FILES: Final = 12

claimed_task_option = click.option(
    "--task",
    "task_id",
    envvar="RUNG_TASK",
    metavar="ID",
    help="Task to claim (default: RUNG_TASK, else the next free one).",
)
claiming_session_option = click.option(
    "--session",
    envvar="RUNG_SESSION",
    default="",
    metavar="ID",
    help="Session of the worker (default: RUNG_SESSION, else a new one).",
)
db_option = click.option(
    "--db",
    "database",
    metavar="PATH|URL",
    envvar="RUNG_CREW",
    required=True,
    help="Crew database (default: RUNG_CREW).",
)


class FoundDatabase(click.Option):
    """A database option that is found if it is not given: the only crew table in the current folder."""

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """Return the value that was given, else the table that was found; several tables are an error that lists them."""
        value, source = super().consume_value(ctx, opts)
        if isinstance(value, str) or ctx.resilient_parsing:
            return value, source
        from rung.store.crew.crew_files import crew_files

        found = [file.name for file in crew_files(Path.cwd())]
        if len(found) > 1:
            shown = ", ".join(found[:MAX_LISTED_FILES]) + (" …" if len(found) > MAX_LISTED_FILES else "")
            raise click.UsageError(f"--db is missing: there are {len(found)} crew databases here: {shown}", ctx)
        if found:
            click.echo(f"rung: using the crew database {found[0]}", err=True)
            return found[0], ParameterSource.DEFAULT
        return value, source


found_db_option = click.option(
    "--db",
    "database",
    cls=FoundDatabase,
    metavar="PATH|URL",
    envvar="RUNG_CREW",
    required=True,
    help="Crew database (default: RUNG_CREW, else the only one in the current folder).",
)


@contextmanager
def open_crew_table(database: str, *, create: bool = False) -> Iterator[CrewTable]:
    """Open the crew table; what it rejects becomes a one-line error with exit code 2."""
    from rung.cli.usage import UsageError
    from rung.core.domain.errors import IllegalTransition, StoreError, StoreUnavailable, TaskChanged
    from rung.store.crew.table import CrewTable
    from rung.store.crew.table_patience import COMMAND_PATIENCE_SECONDS

    def warn(text: str) -> None:
        click.echo(f"rung: {text}", err=True)

    try:
        with CrewTable.open(database, create=create, patience=COMMAND_PATIENCE_SECONDS, log=warn) as table:
            yield table
    except (IllegalTransition, TaskChanged) as error:
        raise UsageError(str(error)) from None
    except StoreUnavailable as error:
        raise StoreError(f"the crew database is unavailable: {error}") from None


def read_text(text: str | None, file: str | None) -> str:
    """Return the text of `--body`, or of `--body-file`; - is standard input."""
    if text is not None and file is not None:
        raise click.UsageError("--body and --body-file exclude each other")
    if file is None:
        return text or ""
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
