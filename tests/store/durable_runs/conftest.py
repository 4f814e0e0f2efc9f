"""Fixtures of both back ends for durable runs."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from tests.store.conftest import postgres_server, postgres_url, sqlite_url, url

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["memory_directory", "postgres_server", "postgres_url", "sqlite_url", "url"]


@pytest.fixture
def memory_directory() -> Iterator[Path]:
    """Directory in memory, where there is one: simulated deaths lose no page, so nothing needs a disk."""
    memory = Path("/dev/shm")  # a private directory in it
    with TemporaryDirectory(prefix="rung-", dir=memory if memory.is_dir() else None) as made:
        yield Path(made)
