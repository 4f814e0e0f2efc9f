"""Options shared by the crew commands: the database, and text from an option, a file or standard input."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.store.crew.table import CrewTable

db_option = click.option(
    "--db",
    "database",
    metavar="PATH|URL",
    envvar="RUNG_CREW",
    required=True,
    help="Crew database (default: RUNG_CREW).",
)


@contextmanager
def open_crew_table(database: str, *, create: bool = False) -> Iterator[CrewTable]:
    """Open the crew table; what it rejects becomes a one-line error with exit code 2."""
    from rung.cli.group import UsageError
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
    from pathlib import Path

    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
