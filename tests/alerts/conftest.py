"""Fixtures: stores of both kinds, and a receiver of notifications on loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.adapters.alerts.receiver import Receiver, receiving
from tests.store.conftest import journal, make_journal, postgres_server, postgres_url, sqlite_url, url

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["journal", "make_journal", "postgres_server", "postgres_url", "sqlite_url", "url"]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found
