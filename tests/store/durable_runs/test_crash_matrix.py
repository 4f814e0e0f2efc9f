"""Crash matrix of meaning: killed before or after any write, a resumed recovery makes the requests of an undisturbed one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rung.store import open_journal
from tests.store.durable_runs.crash_matrix import API_KEY, NEW_KEY, TOKEN, Scenario, crash
from tests.store.durable_runs.mortal import batches, name_of

if TYPE_CHECKING:
    from pathlib import Path

    from rung.store.journal.journal import Journal


@pytest.mark.parametrize("seeds", batches(100), ids=name_of)
def test_killed_at_any_write(memory_directory: Path, seeds: range) -> None:
    """The resumed run is given the same requests as an undisturbed one, and ends the same way."""
    with open_journal(memory_directory / "journal.db") as journal:
        for seed in seeds:
            crash(journal, Scenario(seed))
        assert not keys_in_clear(journal)


@pytest.mark.parametrize("seeds", batches(25), ids=name_of)
def test_killed_at_any_write_in_postgres(postgres_url: str, seeds: range) -> None:
    """The same holds in PostgreSQL."""
    with open_journal(postgres_url) as journal:
        for seed in seeds:
            crash(journal, Scenario(seed))
        assert not keys_in_clear(journal)


def keys_in_clear(journal: Journal) -> list[str]:
    """Tables in which a key can be read."""
    tables = ("run", "step", "event", "incident", "attempt", "session", "ask")
    rows = {table: str(journal.read(f"SELECT * FROM {table}")) for table in tables}
    return [table for table, text in rows.items() if TOKEN in text or API_KEY in text or NEW_KEY in text]
