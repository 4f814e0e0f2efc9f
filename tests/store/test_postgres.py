"""PostgreSQL only: URLs, locks, restarts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import psycopg
import pytest

from rung.core.domain.errors import StoreError, StoreUnavailable
from rung.store import open_journal
from rung.store.backends.postgres import PostgresBackend
from rung.store.durable_runs import LEASE_SECONDS
from tests.store import postgres as real
from tests.store.stories import failed, opened, succeeded

if TYPE_CHECKING:
    from pathlib import Path

LONG = 120.0


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@127.0.0.1:1/db",
        "postgresql://me:hunter2@/db?host=/nowhere",
        "postgresql://127.0.0.1:1/db?user=me&password=hunter2",
        "postgresql://me:hunter2@host.invalid/db",
        "postgresql://me:hunter2@127.0.0.1:1,127.0.0.1:2/db",
    ],
)
def test_nowhere(url: str) -> None:
    """An unreachable server is reported in one line with the address, without the password."""
    with pytest.raises(StoreError) as raised:
        open_journal(url)
    said = str(raised.value)
    assert said.startswith("postgresql://")
    assert re.search("refused|No such file|resolve|known", said)
    assert "\n" not in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter@2/x@127.0.0.1:1/db",
        "postgresql://me:hun/ter2@127.0.0.1:1/db",
        "postgresql://me:hunter2#@127.0.0.1:1/db?nonsense=1",
        "postgresql://me:hunter2%zz@127.0.0.1/db",
        "postgresql://[hunter2",
    ],
)
def test_no_url(url: str) -> None:
    """An invalid URL is not quoted: any part may contain a password."""
    with pytest.raises(StoreError) as raised:
        open_journal(url)
    said = str(raised.value)
    assert "invalid URL" in said
    assert "hun" not in said
    assert "ter2" not in said


def test_wrong_user(postgres_server: str) -> None:
    """An error of the server is reported."""
    with pytest.raises(StoreError, match=r'postgresql://.*/nowhere: .*database "nowhere" does not exist'):
        open_journal(postgres_server.replace("/postgres?", "/nowhere?"))


def test_schema(postgres_server: str, postgres_url: str) -> None:
    """The journal uses the schema in the URL or `rung`; an invalid name is rejected."""
    assert PostgresBackend(postgres_server).schema == "rung"
    with open_journal(postgres_url) as journal:
        assert isinstance(journal.backend, PostgresBackend)
        assert journal.read("SELECT current_schema()") == [(journal.backend.schema,)]
    with pytest.raises(StoreError, match="lower-case letters"):
        PostgresBackend(f"{postgres_server}&options=-csearch_path%3D%22a%3Bb%22")


def test_foreign_schema(postgres_server: str, postgres_url: str) -> None:
    """A schema with another program's table of the same name is not modified."""
    schema = PostgresBackend(postgres_url).schema
    with psycopg.connect(postgres_server, autocommit=True) as other:
        other.execute(f"CREATE SCHEMA {schema}")
        other.execute(f"CREATE TABLE {schema}.incident (mine int)")
        with pytest.raises(StoreError, match='relation "incident" already exists'):
            open_journal(postgres_url)
        found = other.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
    assert found == [("incident",)]


def test_latin_database(postgres_server: str) -> None:
    """A database with an encoding other than UTF-8 is rejected."""
    with psycopg.connect(postgres_server, autocommit=True) as other:
        other.execute(f"CREATE DATABASE latin{os.getpid()} ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
        with pytest.raises(StoreError, match="encoding is LATIN1; a journal needs UTF8"):
            open_journal(postgres_server.replace("/postgres?", f"/latin{os.getpid()}?"))
        other.execute(f"DROP DATABASE latin{os.getpid()} WITH (FORCE)")


def test_without_psycopg() -> None:
    """Without psycopg, the error says what to install."""
    code = "import sys; sys.modules['psycopg'] = None; from rung.store import open_journal; open_journal('postgresql://x/y')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip().endswith("needs psycopg: pip install 'rung[postgres]'")


def test_all_begin_at_once(postgres_url: str) -> None:
    """Concurrent first openings create the schema once."""
    gate, wrong = threading.Barrier(8), []

    def begin() -> None:
        gate.wait(LONG)
        try:
            PostgresBackend(postgres_url).connect(write=True).close()
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert wrong == []


def test_writers_take_turns(postgres_url: str) -> None:
    """A writer waits for another one until the lock timeout, then gets StoreUnavailable."""
    backend = PostgresBackend(postgres_url, writer_settings="SET lock_timeout = '50ms'")
    first, second = backend.connect(write=True), backend.connect(write=True)
    first.begin()
    with pytest.raises(StoreUnavailable, match="lock timeout"):
        second.begin()
    first.commit()
    second.begin()
    second.rollback()
    first.close()
    second.close()


def test_commit_after_an_error(postgres_url: str) -> None:
    """A commit that the server turns into a rollback raises."""
    connection = PostgresBackend(postgres_url).connect(write=True)
    connection.begin()
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute("SELECT * FROM nowhere")
    with pytest.raises(StoreUnavailable, match="ROLLBACK"):
        connection.commit()
    connection.close()


def test_commits_are_synced(postgres_url: str) -> None:
    """Synchronous commit is enabled even where the database's default is off."""
    connection = PostgresBackend(f"{postgres_url}%20-csynchronous_commit%3Doff").connect(write=True)
    assert connection.execute("SHOW synchronous_commit") == [("on",)]
    connection.close()


def test_readers_rest(postgres_url: str) -> None:
    """Repeated queries use one connection, and closing the journal leaves none."""
    with open_journal(postgres_url) as journal:
        journal.append("a", 0, [opened("a")]).result(LONG)
        pids = {journal.read("SELECT pg_backend_pid()")[0][0] for _ in range(5)}
        assert len(pids) == 1
        reader = journal.backend.connect(write=False)
        with pytest.raises(psycopg.errors.SyntaxError):
            reader.execute("SELECT FROM WHERE")
        reader.close()
        assert journal.events("a")
    other = PostgresBackend(postgres_url).connect(write=True)
    assert other.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = ?", tuple(pids)) == [(0,)]
    other.close()


def test_connection_is_lost(postgres_server: str, postgres_url: str) -> None:
    """A connection ended by the server is reopened: readers at once, the writer with the next batch."""
    told: list[str] = []
    with open_journal(postgres_url, on_warning=told.append) as journal:
        journal.append("a", 0, [opened("a")]).result(LONG)
        who = "SELECT pg_backend_pid()"
        ((reader,),) = journal.read(who)
        ((writer,),) = journal.write(lambda connection: connection.execute(who), lambda _: True).result(LONG)
        with psycopg.connect(postgres_server, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s), pg_terminate_backend(%s)", (reader, writer))
        assert len(journal.events("a")) == 1
        journal.append("a", 1, [failed()])
        assert journal.events("a")
        while not journal.flush(LONG):
            pass
        assert len(journal.events("a")) == 2
    assert len(told) == 2


def test_server_restarts(tmp_path: Path) -> None:
    """A server crash and restart loses no acknowledged event and duplicates none."""
    with real.server(fsync="on") as url:
        told: list[str] = []
        with open_journal(url, on_warning=told.append) as journal:
            down = threading.Thread(target=real.restart, args=(url,))
            kept = []
            for number in range(400):
                name = f"i{number}"
                ticket = journal.append(name, 0, [opened(name), succeeded()])
                if ticket.result(LONG) is not None:
                    kept.append(name)
                if number == 50:
                    down.start()
            down.join(LONG)
            while not journal.flush(LONG):
                pass
            found = journal.read("SELECT incident, count(*) FROM event GROUP BY incident")
            assert {name for name, _ in found} >= set(kept)
            assert dict(found) == {f"i{number}": 2 for number in range(400)}
            assert journal.read("SELECT sum(n) FROM by_hour") == [(400,)]


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_writer_that_hangs_in_mid_transaction(postgres_url: str, rows: int) -> None:
    """A host that hangs or is cut off in mid-transaction blocks all writers, but not until the leases of their runs end."""
    with open_journal(postgres_url) as journal:
        lease, claimed_until = journal.runs.claim("run", "task"), time.time() + LEASE_SECONDS
        hanging = PostgresBackend(postgres_url).connect(write=True)
        hanging.begin()
        hanging.executemany(
            "INSERT INTO step (run, key, result, at) VALUES (?, ?, '', 0)", [("x", str(n)) for n in range(rows)]
        )
        while True:
            with suppress(StoreUnavailable):
                lease.renew()
                break
        assert time.time() < claimed_until, "the lease ended: any other process could have claimed the run"
        hanging.close()
