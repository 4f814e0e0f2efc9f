"""Fixtures of operation: a new schema, or a new database, in a real PostgreSQL."""

from __future__ import annotations

import os
from itertools import count
from typing import TYPE_CHECKING

import pytest

from tests.store.conftest import postgres_server, postgres_url

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["databases", "postgres_server", "postgres_url"]
_NUMBERS = count(1)


@pytest.fixture
def databases(postgres_server: str) -> Iterator[tuple[str, str]]:
    """URLs of two new databases on the test server: one to back up, one to restore into."""
    import psycopg

    names = [f"test_{os.getpid()}_{next(_NUMBERS)}" for _ in range(2)]
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        for name in names:
            connection.execute(f"CREATE DATABASE {name}")
    first, second = (postgres_server.replace("/postgres?", f"/{name}?") for name in names)
    yield first, second
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        for name in names:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
