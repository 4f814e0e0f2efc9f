"""Fixtures of both back ends: a new SQLite file or a new schema in a real PostgreSQL for every test."""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext
from itertools import count
from typing import TYPE_CHECKING

import pytest

from rung.store import open_journal
from tests.store import postgres
from tests.store.recorded import Recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rung.store.journal.journal import Journal

STORES = ("sqlite", "postgres")
_NUMBERS = count(1)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return str(tmp_path / "journal.db")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """URL of the test server; without one, tests fail instead of being skipped."""
    if given := os.environ.get(postgres.GIVEN):
        yield given
        return
    with postgres.server() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """URL of a new schema in the test server."""
    with new_schema(postgres_server) as url:
        yield url


@contextmanager
def new_schema(postgres_server: str) -> Iterator[str]:
    """Yield the URL of a new schema, and drop it afterwards."""
    import psycopg

    schema = f"test_{os.getpid()}_{next(_NUMBERS)}"
    yield f"{postgres_server}{'&' if '?' in postgres_server else '?'}options=-csearch_path%3D{schema}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest) -> str:
    """URL of a new store of either kind."""
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


@pytest.fixture(scope="session", params=STORES)
def read_only_recorded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres_server: str
) -> Iterator[Recorded]:
    """Recorded story in a store of either kind. It is made once, so tests only read it."""
    file = str(tmp_path_factory.mktemp("recorded") / "journal.db")
    with (
        nullcontext(file) if request.param == "sqlite" else new_schema(postgres_server) as url,
        open_journal(url) as journal,
    ):
        made = Recorded(journal)
        made.story()
        yield made


@pytest.fixture
def make_journal(url: str) -> Iterator[Callable[[], Journal]]:
    """Function that opens the same store repeatedly; any warning fails the test at its end."""
    opened: list[Journal] = []
    said: list[str] = []

    def make() -> Journal:
        opened.append(open_journal(url, on_warning=said.append))
        return opened[-1]

    yield make
    for journal in opened:
        journal.close()
    assert not said


@pytest.fixture
def journal(make_journal: Callable[[], Journal]) -> Journal:
    return make_journal()
