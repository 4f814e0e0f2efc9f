"""Crash matrix of meaning: killed before or after any write, a resumed recovery makes the requests of an undisturbed one."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from rung.store import open_journal
from tests.store.durable_runs.crash_matrix import API_KEY, NEW_KEY, TOKEN, crash

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.store.journal.journal import Journal

CRASHES = int(os.environ.get("RUNG_CRASHES", "500"))
BATCH = 125


@pytest.fixture
def directory() -> Iterator[Path]:
    """Directory in memory, where there is one: simulated deaths lose no page, so nothing needs a disk."""
    memory = Path("/dev/shm")  # a private directory in it
    with TemporaryDirectory(prefix="rung-", dir=memory if memory.is_dir() else None) as made:
        yield Path(made)


@pytest.mark.parametrize("first", range(0, CRASHES, BATCH))
def test_killed_at_any_write(directory: Path, first: int) -> None:
    """The resumed run is given the same requests as an undisturbed one, and ends the same way."""
    with open_journal(directory / "journal.db") as journal:
        for seed in range(first, min(first + BATCH, CRASHES)):
            crash(journal, seed)
        assert not keys_in_clear(journal)


def test_killed_at_any_write_in_postgres(postgres_url: str) -> None:
    """The same holds in PostgreSQL."""
    with open_journal(postgres_url) as journal:
        for seed in range(max(25, CRASHES // 20)):
            crash(journal, seed)
        assert not keys_in_clear(journal)


def keys_in_clear(journal: Journal) -> list[str]:
    """Tables in which a key can be read."""
    tables = ("run", "step", "event", "incident", "attempt", "session", "ask")
    rows = {table: str(journal.read(f"SELECT * FROM {table}")) for table in tables}
    return [table for table, text in rows.items() if TOKEN in text or API_KEY in text or NEW_KEY in text]
