"""Options shared by the commands that read the journal: its location, a project, and times."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from rung.core.text.when import ALLOWED, parse_when

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.store.journal.journal import Journal

journal_option = click.option(
    "--journal",
    "journal_at",
    metavar="PATH|URL",
    help="Journal to read (default: RUNG_JOURNAL, `journal` in ./rung.toml, or your data directory).",
)

project_option = click.option("--project", metavar="NAME", help="Only this project (default: all).")


@contextmanager
def existing_journal(journal_at: str | None) -> Iterator[Journal]:
    """Open an existing journal; an unavailable one becomes a one-line error."""
    from rung.core.domain.errors import StoreError, StoreUnavailable
    from rung.wiring.journals import open_existing

    try:
        with open_existing(journal_at) as journal:
            yield journal
    except StoreUnavailable as error:
        raise StoreError(f"the journal is unavailable: {error}") from None


def parse_time(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Parse a time: an age (7d, 12h, 30m), a date with or without a time of day, in UTC, or Unix seconds."""
    if value is None:
        return None
    try:
        return parse_when(value, now())
    except ValueError:
        raise click.BadParameter(f"{value!r} is invalid; must be {ALLOWED}", ctx, param) from None


since_option = click.option(
    "--since",
    callback=parse_time,
    metavar="WHEN",
    help="Start of the time range: 7d, 12h, or a date such as 2026-11-01 (UTC).",
)
until_option = click.option("--until", callback=parse_time, metavar="WHEN", help="End of the time range.")


def now() -> float:
    """Return the current time in Unix seconds."""
    from time import time

    return time()
