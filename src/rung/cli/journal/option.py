"""Options shared by the commands that read the journal: its location, and times."""

from __future__ import annotations

import re
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rung.store.journal.journal import Journal

UNIT_SECONDS: Final[Mapping[str, int]] = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGE: Final = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")

journal_option = click.option(
    "--journal",
    "journal_at",
    metavar="PATH|URL",
    help="Journal to read (default: RUNG_JOURNAL, `journal` in ./rung.toml, or your data directory).",
)


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
    """Parse a time: an age (7d, 12h, 30m), or a date with or without a time of day, in UTC."""
    if value is None:
        return None
    ago = _AGE.fullmatch(value.strip())
    if ago:
        return now() - float(ago[1]) * UNIT_SECONDS[ago[2]]
    try:
        when = datetime.fromisoformat(value.strip())
    except ValueError:
        allowed = "an age (30m, 12h, 7d, 2w) or a date (2026-11-01)"
        raise click.BadParameter(f"{value!r} is invalid; must be {allowed}", ctx, param) from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def now() -> float:
    """Return the current time in Unix seconds."""
    from time import time

    return time()
