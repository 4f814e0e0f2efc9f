"""What the commands over the journal share: which journal, and since when."""

from __future__ import annotations

import re
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rung.store.journal.journal import Journal

UNITS: Final[Mapping[str, int]] = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGO: Final = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")

journal_option = click.option(
    "--journal",
    "journal_at",
    metavar="PATH|URL",
    help="Journal to read (default: RUNG_JOURNAL, `journal` in ./rung.toml, or your data directory).",
)


@contextmanager
def opened(journal_at: str | None) -> Iterator[Journal]:
    """The journal that is there; one that cannot be read just now is said in one line."""
    from rung.core.domain.errors import StoreError, StoreUnavailable
    from rung.wiring.journals import open_existing

    try:
        with open_existing(journal_at) as journal:
            yield journal
    except StoreUnavailable as error:
        raise StoreError(f"the journal cannot be used just now: {error}") from None


def moment(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """An option's time: so long ago (7d, 12h, 30m), or a date, with or without the time of day, in UTC."""
    if value is None:
        return None
    ago = _AGO.fullmatch(value.strip())
    if ago:
        return now() - float(ago[1]) * UNITS[ago[2]]
    try:
        when = datetime.fromisoformat(value.strip())
    except ValueError:
        allowed = "an age (30m, 12h, 7d, 2w) or a date (2026-11-01)"
        raise click.BadParameter(f"{value!r} is invalid; must be {allowed}", ctx, param) from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def now() -> float:
    """The time, in UTC seconds."""
    from time import time

    return time()
