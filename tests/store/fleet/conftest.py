"""Journals of a fleet's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rung.store import open_journal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.store.journal.journal import Journal


@pytest.fixture
def postgres_journal(postgres_url: str) -> Iterator[Journal]:
    """Journal in a new schema of a real PostgreSQL."""
    with open_journal(postgres_url) as opened:
        yield opened
