"""Option shared by the commands of a fleet: its journal."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rung.cli.journal.option import existing_journal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.store.journal.journal import Journal


@contextmanager
def fleet_journal(journal_at: str | None) -> Iterator[Journal]:
    """Open the journal that the fleet shares: the given one, `[fleet] url` of rung.toml, or the default."""
    from rung.wiring.engines import fleet_settings

    settings = None if journal_at else fleet_settings()
    own = settings.url if settings is not None and settings.engine != "temporal" else ""
    with existing_journal(journal_at or own or None) as journal:
        yield journal
