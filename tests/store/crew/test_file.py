"""The file of a crew's table: its own, its owner's, safe for strangers with an old SQLite; and time that is made up."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import MessageType, TaskState
from rung.core.domain.errors import ClaimBlocked, ConfigError, IllegalTransition, StoreError, StoreUnavailable
from rung.store import open_journal
from rung.store.crew.connection import SqliteCrewConnection
from rung.store.crew.rows import NewTask
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TASK = "task-01"
HOLDS = """
import sqlite3, sys
raw = sqlite3.connect(sys.argv[1], isolation_level=None)
raw.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "crew.db"


def test_it_is_its_owners_alone_and_in_rollback_mode(file: Path) -> None:
    """No log beside it that an old SQLite could spoil; every commit synced."""
    with CrewTable.open(str(file), create=True) as table:
        table.add_task(NewTask(task_id=TASK, instruction="do it"))
        table.claim(TASK, "s1")
        assert table.connection.execute("PRAGMA journal_mode") == [("delete",)]
        assert table.connection.execute("PRAGMA synchronous") == [(2,)]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["crew.db"]


def test_what_somebody_set_to_a_log_is_set_back(file: Path) -> None:
    """By whoever opens it next."""
    CrewTable.open(str(file), create=True).close()
    stranger = sqlite3.connect(file)
    stranger.execute("PRAGMA journal_mode=WAL")
    stranger.close()
    with CrewTable.open(str(file)) as table:
        assert table.connection.execute("PRAGMA journal_mode") == [("delete",)]


def _journal(file: Path) -> None:
    open_journal(file).close()


def _foreign(file: Path) -> None:
    raw = sqlite3.connect(file)
    raw.execute("CREATE TABLE recipes (name TEXT)")
    raw.commit()
    raw.close()


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "a journal": (_journal, "is not a crew table: it is another program's SQLite file, or a journal"),
    "another's database": (_foreign, "is not a crew table: it is another program's SQLite file, or a journal"),
    "a text": (lambda file: file.write_text("x" * 2_000), "is not a crew table: it is not a SQLite file"),
    "a short text": (lambda file: file.write_text("x"), "is not a crew table: it is not a SQLite file"),
    "a directory": (lambda file: file.mkdir(), "is a directory; name a file"),
    "a pipe": (os.mkfifo, "is not a regular file"),
    "a link": (lambda file: file.symlink_to(file.parent / "other.db"), "is a symbolic link; name the file itself"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("create", [True, False])
def test_what_is_not_ours_is_refused_untouched(file: Path, case: str, create: bool) -> None:
    """In one line, whether it should be made or only opened."""
    make, said = BAD[case]
    make(file)
    before = file.read_bytes() if file.is_file() else b""
    with pytest.raises(StoreError) as refused:
        CrewTable.open(str(file), create=create)
    assert str(refused.value) == f"{file}: {said}"
    assert (file.read_bytes() if file.is_file() else b"") == before
    assert not (file.parent / "other.db").exists()


def test_a_table_is_no_journal_either(file: Path) -> None:
    """Nor is it taken for one."""
    CrewTable.open(str(file), create=True).close()
    with pytest.raises(StoreError, match="is not a journal"):
        open_journal(file).close()


def test_what_is_not_there_is_only_made_when_that_is_asked(file: Path) -> None:
    """An empty file is nothing yet."""
    with pytest.raises(StoreError, match=r"no such file; .* rung crew init --db .*an empty one"):
        CrewTable.open(str(file))
    assert not file.exists()
    file.touch()
    with pytest.raises(StoreError, match="there is no crew table yet"):
        CrewTable.open(str(file))
    CrewTable.open(str(file), create=True).close()
    CrewTable.open(str(file)).close()
    with pytest.raises(StoreError, match=r"nowhere.*: "):
        CrewTable.open("/proc/nowhere/crew.db", create=True)


def test_the_command_says_it_in_one_line(file: Path) -> None:
    """Exit code 2."""
    file.mkdir()
    command = [sys.executable, "-m", "rung", "crew", "init", "--db", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"rung: {file}: is a directory; name a file\n"


@pytest.mark.parametrize(("version", "what_to_do"), [("99", "upgrade Rung"), ("2", "a new --db"), ("?", "a new --db")])
def test_another_versions_table_is_refused(file: Path, version: str, what_to_do: str) -> None:
    """Nobody guesses what is in it; the error says what to do."""
    with CrewTable.open(str(file), create=True) as table:
        table.set_fact("version", version)
    with pytest.raises(StoreError, match=what_to_do):
        CrewTable.open(str(file))


def test_a_lock_that_stays_is_busy(file: Path) -> None:
    """Whoever holds it too long is said, not waited for without end."""

    def connect(*, create: bool = False) -> SqliteCrewConnection:
        return SqliteCrewConnection(str(file), create=create, clock=None, busy_timeout_ms=50)

    with CrewTable(connect(create=True), connect) as table:
        table.add_task(NewTask(task_id=TASK, instruction="do it"))
        # Another process: within one, two copies of SQLite do not see each other's locks.
        command = [sys.executable, "-c", HOLDS, str(file)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            with pytest.raises(StoreUnavailable):
                table.claim(TASK, "s1")
        assert table.claim(TASK, "s1").generation == 1


def test_pythons_own_driver_will_do(file: Path) -> None:
    """In rollback mode it is as good: beside apsw, on the same file, with the same refusals."""

    def connect() -> SqliteCrewConnection:
        return SqliteCrewConnection(str(file), create=True, clock=None, use_stdlib=True)

    with CrewTable(connect(), connect) as standard, CrewTable.open(str(file)) as by_apsw:
        assert isinstance(standard.connection.raw, sqlite3.Connection)  # type: ignore[attr-defined]  # of this driver
        standard.add_task(NewTask(task_id=TASK, instruction="Ünïcødé"))
        claim = standard.claim(TASK, "s1")
        with pytest.raises(ClaimBlocked):
            by_apsw.claim(TASK, "s2")
        with pytest.raises(IllegalTransition, match="once a review has approved it"):
            standard.complete(claim)
        assert by_apsw.heartbeat(claim) is TaskState.WORKING
        with standard.clone() as again:
            assert again.require_task(TASK).session_id == "s1"


@pytest.mark.parametrize("standard", [True, False])
def test_time_can_be_made_up(file: Path, standard: bool) -> None:
    """By a clock of the caller's: triggers, ages and messages go by it, and nothing else does."""
    now = [1_000_000_000.0]

    def connect() -> SqliteCrewConnection:
        return SqliteCrewConnection(str(file), create=True, clock=lambda: now[0], use_stdlib=standard)

    with CrewTable(connect(), connect) as table:
        table.add_task(NewTask(task_id=TASK, instruction="do it", stale_after=100))
        claim = table.claim(TASK, "s1")
        assert table.require_task(TASK).started_at == "2001-09-09 01:46:40"
        now[0] += 99
        assert not any(task.is_stale for task in table.claimed_tasks())
        now[0] += 2
        assert [task.task_id for task in table.claimed_tasks() if task.is_stale] == [TASK]
        table.heartbeat(claim)
        assert not any(task.is_stale for task in table.claimed_tasks())
        assert table.reply(table.require_task(TASK), TaskState.EXITED, "x", MessageType.SYSTEM)
        assert table.require_task(TASK).last_heartbeat == "2001-09-09 01:48:21"
        assert table.messages()[-1].timestamp == "2001-09-09 01:48:21"
        table.record_restart(TASK, "why")
        now[0] += 60
        assert len(table.restarts(61)) == 1
        assert not table.restarts(59)


def test_a_servers_time_is_its_own() -> None:
    """It cannot be made up."""
    with pytest.raises(ConfigError, match="uses the server's time"):
        CrewTable.open("postgresql://x@/y", clock=lambda: 0.0)
