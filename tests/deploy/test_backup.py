"""Backup while runs are being written, and restore elsewhere: what was acknowledged is there, and open runs continue."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rung.core.classify.redaction import redacted
from rung.store import open_journal
from tests.deploy import backup_tasks, backup_writer
from tests.deploy.backup_tasks import OPEN, SEALED, SECRET
from tests.deploy.servers import environment
from tests.store import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
ENOUGH = 20  # runs before the backup begins
KEY = "the-key-of-the-journal-as-random-text"


class Host:
    """A machine: its directory, its journal, and its key."""

    def __init__(self, home: Path, journal: str, key: str = KEY) -> None:
        home.mkdir()
        self.home, self.journal = home, journal
        own = {"RUNG_JOURNAL": journal, "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(home)}
        self.env = environment(home, {**own, **({"RUNG_JOURNAL_KEY": key} if key else {})})
        self.log = home / "log"

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run Python on this machine to its end."""
        return subprocess.run([sys.executable, *words], env=self.env, cwd=self.home, capture_output=True, text=True, check=False, timeout=180)  # fmt: skip

    def result(self, run: str) -> subprocess.CompletedProcess[str]:
        """Start or continue a run."""
        return self.run(str(backup_tasks.__file__), run, str(self.log))

    def check(self) -> bool:
        """Return whether `rung journal check` finds everything in order."""
        return self.run("-m", "rung", "journal", "check").returncode == 0

    def done(self) -> set[str]:
        """Return the ids of the runs that have ended."""
        with open_journal(self.journal) as journal:
            return {row[0] for row in journal.read("SELECT id FROM run WHERE state = 'done'")}

    @contextmanager
    def writing(self) -> Iterator[set[str]]:
        """Write runs in a process until the end of the block, then kill it; yield those acknowledged before the block."""
        words = [sys.executable, str(backup_writer.__file__), str(self.log)]
        process = subprocess.Popen(words, env=self.env, cwd=self.home, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            yield {process.stdout.readline().strip() for _ in range(ENOUGH)}
            assert process.poll() is None, "the writer ended: the backup was not taken while it wrote"
        finally:
            process.kill()
            process.communicate()


def verify(restored: Host, acknowledged: set[str]) -> None:
    """Check a restored journal: complete, consistent, its open run continues, and its sealed result can be opened."""
    assert "" not in acknowledged
    assert {*acknowledged, SEALED} <= restored.done()
    assert OPEN not in restored.done()
    assert restored.check()
    assert json.loads(restored.result(SEALED).stdout) == {"token": SECRET}
    continued = restored.result(OPEN)
    assert continued.stdout == '"2026-17 is sent"\n', continued.stderr
    assert OPEN in restored.done()


def verify_without_key(restored: Host) -> None:
    """Check that a sealed result is refused without its key, by an error that names the key, and all else is there."""
    refused = restored.result(SEALED)
    assert refused.returncode == 1
    assert "SealedElsewhere" in refused.stderr
    assert "RUNG_JOURNAL_KEY" in refused.stderr
    assert SECRET not in refused.stderr
    assert restored.result(OPEN).stdout == '"2026-17 is sent"\n'


def test_a_sqlite_journal(tmp_path: Path) -> None:
    """`rung journal backup` takes a snapshot of a SQLite journal that is being written, for its owner alone."""
    first, copy = Host(tmp_path / "first", str(tmp_path / "first/journal.db")), tmp_path / "copy.db"
    with first.writing() as acknowledged:
        done = first.run("-m", "rung", "journal", "backup", str(copy))
        assert done.returncode == 0, done.stderr
        assert "RUNG_JOURNAL_KEY" in done.stderr
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    restored = Host(tmp_path / "second", str(tmp_path / "second/journal.db"))
    stranger = Host(tmp_path / "third", str(tmp_path / "third/journal.db"), key="")
    for host in (restored, stranger):
        shutil.copy(copy, host.journal)
    verify(restored, acknowledged)
    verify_without_key(stranger)


def test_a_backup_replaces_nothing(tmp_path: Path) -> None:
    """A backup onto a file that exists, the journal itself, or a missing directory is refused, and leaves nothing behind."""
    host = Host(tmp_path / "home", str(tmp_path / "home/journal.db"))
    open_journal(host.journal).close()
    before = sorted(path.name for path in host.home.iterdir())
    for target, reason in (("journal.db", "exists already"), ("none/copy.db", "cannot be written")):
        done = host.run("-m", "rung", "journal", "backup", str(host.home / target))
        assert (done.returncode, done.stdout) == (2, "")
        assert reason in done.stderr
    assert sorted(path.name for path in host.home.iterdir()) == before


def test_a_postgresql_journal(tmp_path: Path, databases: tuple[str, str]) -> None:
    """pg_dump and pg_restore carry the journal and the schema of DBOS to another database while runs are being written."""
    tools, dump = postgres.programs(), tmp_path / "fleet.dump"
    first = Host(tmp_path / "first", databases[0])
    done = first.run("-m", "rung", "fleet", "init", "--engine", "dbos")
    assert done.returncode == 0, done.stderr
    with first.writing() as acknowledged:
        _run(tools / "pg_dump", "--format=custom", "--no-owner", f"--file={dump}", f"--dbname={databases[0]}")
        refused = first.run("-m", "rung", "journal", "backup", str(tmp_path / "copy.db"))
        assert (refused.returncode, "pg_dump" in refused.stderr) == (2, True)
    _run(tools / "pg_restore", "--no-owner", "--exit-on-error", f"--dbname={databases[1]}", str(dump))
    assert _tables(databases[1]) == _tables(databases[0])
    assert any(schema != "rung" for schema, _ in _tables(databases[1])), "the schema of DBOS is missing"
    verify(Host(tmp_path / "second", databases[1]), acknowledged)


def test_a_postgresql_journal_without_its_key(tmp_path: Path, databases: tuple[str, str]) -> None:
    """A dump restored without the key keeps sealed results closed, and everything else usable."""
    tools, dump = postgres.programs(), tmp_path / "fleet.dump"
    with Host(tmp_path / "first", databases[0]).writing():
        _run(tools / "pg_dump", "--format=custom", "--no-owner", f"--file={dump}", f"--dbname={databases[0]}")
    _run(tools / "pg_restore", "--no-owner", "--exit-on-error", f"--dbname={databases[1]}", str(dump))
    verify_without_key(Host(tmp_path / "second", databases[1], key=""))


def _run(*words: str | Path) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, done.stderr


def _tables(url: str) -> set[tuple[str, str]]:
    import psycopg

    with psycopg.connect(url) as connection:
        return set(
            connection.execute(
                "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
            ).fetchall()
        )


def test_the_secret_is_one() -> None:
    """The secret of these tests is one that redaction recognizes: otherwise nothing would be sealed."""
    assert redacted(SECRET) != SECRET
