"""What the commands about a crew share: which table, and a text from an option, a file or standard input."""

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
    "place",
    metavar="PATH|URL",
    envvar="RUNG_CREW",
    required=True,
    help="Crew database (default: RUNG_CREW).",
)


@contextmanager
def opened(place: str, *, create: bool = False) -> Iterator[CrewTable]:
    """The table; what it refuses is said in one line, exit code 2."""
    from rung.cli.group import UsageError
    from rung.core.domain.errors import IllegalTransition, StoreError, StoreUnavailable, TaskChanged
    from rung.store.crew.table import CrewTable

    try:
        with CrewTable.open(place, create=create) as table:
            yield table
    except (IllegalTransition, TaskChanged) as error:
        raise UsageError(str(error)) from None
    except StoreUnavailable as error:
        raise StoreError(f"the crew's table cannot be used just now: {error}") from None


def given(text: str | None, file: str | None) -> str:
    """The text of `--body`, or of a file; - is standard input."""
    if text is not None and file is not None:
        raise click.UsageError("say it once: --body or --body-file")
    if file is None:
        return text or ""
    if file == "-":
        return sys.stdin.read()
    from pathlib import Path

    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
