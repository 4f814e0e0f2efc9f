"""A crew's table on both stores, and the raw SQL of a stranger: Python's own SQLite, psycopg."""

from __future__ import annotations

import os
import sqlite3
from itertools import count
from typing import TYPE_CHECKING

import pytest

from rung.store.crew.conductor_key import load_key
from rung.store.crew.table import CrewTable
from tests.store import postgres
from tests.store.crew.stranger import Stranger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server that is there for the tests; without one they fail, they are not skipped."""
    if given := os.environ.get(postgres.GIVEN):
        yield given
        return
    with postgres.server() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """A schema of its own in that server."""
    import psycopg

    schema = f"crew_{os.getpid()}_{next(_NUMBERS)}"
    yield f"{postgres_server}{'&' if '?' in postgres_server else '?'}options=-csearch_path%3D{schema}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new table may be, on either store."""
    if request.param == "sqlite":
        return str(tmp_path / "crew.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def table(place: str) -> Iterator[CrewTable]:
    """An empty table."""
    with CrewTable.open(place, create=True) as opened:
        yield opened


@pytest.fixture
def stranger(table: CrewTable, place: str) -> Iterator[Stranger]:
    """Somebody who knows nothing but SQL, and the crew's key where it is said."""
    with Stranger(place, load_key(table.connection)) as found:
        yield found


def pytest_report_header() -> str:
    """Say which SQLite the stranger has: it should be an old one."""
    return f"a stranger's SQLite: {sqlite3.sqlite_version}"
