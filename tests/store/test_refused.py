"""Files that cannot be opened are reported in one line and not modified."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.domain.errors import StoreError
from rung.store import open_journal
from rung.store.backends.migrations import LATEST_VERSION
from rung.store.backends.sqlite import SqliteBackend
from rung.store.backends.sqlite_drivers import ApswDriver, OpenedDatabase
from tests.store.rights import bound
from tests.store.stories import opened, succeeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONG = 120.0


def said(where: str | Path) -> str:
    """Return the one-line error of opening it."""
    with pytest.raises(StoreError) as raised:
        open_journal(where)
    text = str(raised.value)
    assert "\n" not in text
    assert len(text) < 500
    return text


def refused(where: str | Path) -> str:
    """Return the error of opening this file for writing; reading must raise the same."""
    text = said(where)
    with pytest.raises(StoreError) as raised:
        SqliteBackend(where).connect(write=False)
    assert str(raised.value) == text
    return text


def test_newer_schema(url: str) -> None:
    """A journal written by a newer Rung is neither written nor read."""
    with open_journal(url) as journal:
        journal.append("a", 0, [opened("a")]).result(LONG)
        assert journal.events("a")
        newer = LATEST_VERSION + 1
        journal.write(
            lambda connection: connection.execute("UPDATE rung_schema SET version = ?", (newer,)), lambda _: True
        ).result(LONG)
        with pytest.raises(StoreError, match=f"newer Rung .schema {newer}"):
            journal.events("a")
    assert f"newer Rung (schema {newer}; this one supports {LATEST_VERSION}): update Rung" in said(url)


def test_reader_without_a_journal(url: str) -> None:
    """Reading a missing journal raises and creates nothing."""
    if url.startswith("postgresql"):
        from rung.store.backends.postgres import PostgresBackend

        backend: Any = PostgresBackend(url)
    else:
        backend = SqliteBackend(url)
    for _ in range(2):
        with pytest.raises(StoreError, match="there is no journal yet"):
            backend.connect(write=False)
    assert not Path(url).exists()


class Untouched:
    """Assert that a file, its mode and its directory are unchanged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.before = self._seen()

    def _seen(self) -> Any:
        return (
            self.path.read_bytes(),
            self.path.stat().st_mode,
            self.path.stat().st_mtime_ns,
            # Reading a database in WAL mode creates an index and an empty WAL.
            sorted(
                path.name for path in self.path.parent.iterdir() if path.suffix != ".db-shm" and path.stat().st_size
            ),
        )

    def check(self) -> None:
        assert self._seen() == self.before


@pytest.mark.parametrize("text", [b"hello\n", b"x", b"# notes\n" * 2000, b"SQLite format 3\0" + b"?" * 5000])
def test_text_file(tmp_path: Path, text: bytes) -> None:
    """A file that is not a database is not modified."""
    path = tmp_path / "notes.db"
    path.write_bytes(text)
    file = Untouched(path)
    assert re.search("is not a journal|is damaged", refused(str(path)))
    file.check()


@pytest.mark.parametrize("mode", ["delete", "wal", "left over"])
def test_foreign_database(tmp_path: Path, mode: str) -> None:
    """Another program's database is not modified, nor is its WAL checkpointed."""
    import apsw

    path = tmp_path / "other.db"
    other = apsw.Connection(str(path))
    for statement in (
        f"PRAGMA journal_mode={'delete' if mode == 'delete' else 'wal'}",
        "CREATE TABLE mine (x)",
        "INSERT INTO mine VALUES (1)",
    ):
        list(other.execute(statement))
    if mode == "left over":  # as after a crash
        crashed = tmp_path / "crashed"
        crashed.mkdir()
        for file in tmp_path.glob("other.db*"):
            shutil.copy(file, crashed)
        path = crashed / "other.db"
        assert Path(f"{path}-wal").stat().st_size
    other.close()
    untouched = Untouched(path)
    assert "is not a journal: another program's SQLite file" in refused(str(path))
    untouched.check()


def test_damaged(sqlite_url: str) -> None:
    """A journal with damaged pages is not modified: it may be the only copy."""
    with open_journal(sqlite_url) as journal:
        for number in range(200):
            journal.append(f"i{number}", 0, [opened(f"i{number}"), succeeded()])
    path = Path(sqlite_url)
    data = bytearray(path.read_bytes())
    for page in range(3, len(data) // 4096, 2):
        data[page * 4096 : page * 4096 + 200] = b"\xa5" * 200
    path.write_bytes(data)
    file = Untouched(path)
    assert "is damaged" in refused(sqlite_url)
    file.check()


def test_cut_short(sqlite_url: str) -> None:
    """A truncated journal is not modified."""
    with open_journal(sqlite_url) as journal:
        for number in range(200):
            journal.append(f"i{number}", 0, [opened(f"i{number}"), succeeded()])
    path = Path(sqlite_url)
    path.write_bytes(path.read_bytes()[: -4096 * 5])
    file = Untouched(path)
    assert "is damaged" in refused(sqlite_url)
    file.check()


def test_symlink(tmp_path: Path) -> None:
    """A symbolic link is not followed: it may be planted."""
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    file = Untouched(target)
    (tmp_path / "link.db").symlink_to(target)
    assert "is a symbolic link" in refused(str(tmp_path / "link.db"))
    (tmp_path / "link.db").unlink()
    (tmp_path / "dangling.db").symlink_to(tmp_path / "nowhere")
    assert "is a symbolic link" in refused(str(tmp_path / "dangling.db"))
    assert not (tmp_path / "nowhere").exists()
    (tmp_path / "dangling.db").unlink()
    file.check()


def test_directory(tmp_path: Path) -> None:
    """A directory, a pipe, and a file in place of a directory are rejected."""
    assert "is a directory; name a file" in refused(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in refused(str(tmp_path / "pipe"))
    (tmp_path / "file").write_bytes(b"")
    assert re.search("File exists|Not a directory", said(tmp_path / "file" / "journal.db"))


NOBODY = """
import os, sys
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
from rung.core.domain.errors import StoreError
from rung.store.backends.sqlite import SqliteBackend
from rung.store.backends.sqlite_drivers import ApswDriver, OpenedDatabase
for write in (True, False):
    try:
        SqliteBackend(sys.argv[1]).connect(write=write)
    except StoreError as error:
        print(error)
"""


def as_nobody(where: Path) -> list[str]:
    """Return the errors of opening it without rights, for writing and for reading."""
    code = (
        "import rung.store.backends.sqlite, rung.store.backends.migrations, apsw, stat\n" + NOBODY
    )  # imported before the rights are dropped
    done = subprocess.run([sys.executable, "-c", code, str(where)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """Directory that every user can read; pytest's is private."""
    import tempfile

    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("mode", [0o000, 0o555], ids=["closed", "read-only"])
def test_directory_without_rights(open_dir: Path, mode: int) -> None:
    """A directory without write or read permission is reported."""
    closed = open_dir / "closed"
    closed.mkdir(mode=mode)
    try:
        to_write, to_read = as_nobody(closed / "journal.db")
        below, _ = as_nobody(closed / "below" / "journal.db")
    finally:
        closed.chmod(0o700)
    assert to_write == f"{closed / 'journal.db'}: Permission denied"
    assert below == f"{closed / 'below' / 'journal.db'}: Permission denied"
    assert to_read.startswith(f"{closed / 'journal.db'}: ")
    assert list(closed.iterdir()) == []


def test_file_without_rights(open_dir: Path) -> None:
    """A journal without permissions is not modified."""
    path = open_dir / "journal.db"
    with open_journal(path) as journal:
        journal.append("a", 0, [opened("a")]).result(LONG)
    file = Untouched(path)
    path.chmod(0)
    lines = as_nobody(path)
    path.chmod(0o600)
    file.check()
    assert len(lines) == 2
    assert all(line.startswith(f"{path}: cannot be opened: ") for line in lines)


def test_owner_alone(tmp_path: Path) -> None:
    """The file, its WAL and its directory are private whatever the umask; a public file is made private."""
    before = os.umask(0)
    try:
        path = tmp_path / "new" / "journal.db"
        with open_journal(path) as journal:
            journal.append("a", 0, [opened("a")]).result(LONG)
            modes = {file.name: oct(file.stat().st_mode & 0o777) for file in (path.parent, *path.parent.iterdir())}
        assert modes == {"new": "0o700", "journal.db": "0o600", "journal.db-wal": "0o600", "journal.db-shm": "0o600"}
        path.chmod(0o644)
        open_journal(path).close()
        assert path.stat().st_mode & 0o777 == 0o600
        assert os.umask(0) == 0
    finally:
        os.umask(before)


def test_file_alone_at_the_end(sqlite_url: str) -> None:
    """A closed journal is one file, which can be copied."""
    with open_journal(sqlite_url) as journal:
        journal.append("a", 0, [opened("a")]).result(LONG)
        assert journal.events("a")
    assert [path.name for path in Path(sqlite_url).parent.iterdir()] == ["journal.db"]


def test_another_file_in_its_place(sqlite_url: str, tmp_path: Path) -> None:
    """An idle reader does not continue to read a deleted file."""
    with open_journal(tmp_path / "other.db") as other:
        other.append("b", 0, [opened("b")]).result(LONG)
    with open_journal(sqlite_url) as journal:
        assert journal.read("SELECT count(*) FROM event") == [(0,)]
        for file in tmp_path.glob("journal.db*"):
            file.unlink()
        with pytest.raises(StoreError, match="there is no journal yet"):
            journal.read("SELECT count(*) FROM event")
        (tmp_path / "other.db").rename(sqlite_url)
        assert journal.read("SELECT count(*) FROM event") == [(1,)]


# -- through the command line --------------------------------------------------------------------------


def damaged(path: Path) -> None:
    with open_journal(path) as journal:
        for number in range(100):
            journal.append(f"i{number}", 0, [opened(f"i{number}"), succeeded()])
    data = bytearray(path.read_bytes())
    for page in range(3, len(data) // 4096, 2):
        data[page * 4096 : page * 4096 + 200] = b"\xa5" * 200
    path.write_bytes(data)


def foreign(path: Path) -> None:
    import sqlite3

    other = sqlite3.connect(path)
    other.execute("CREATE TABLE mine (x)")
    other.close()


def closed(path: Path) -> None:
    path.write_bytes(b"x" * 600)
    path.chmod(0)


BAD_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "text": (lambda path: path.write_text("hello\n"), "is not a journal: not an SQLite file"),
    "foreign": (foreign, "is not a journal: another program's SQLite file"),
    "damaged": (damaged, "is damaged"),
    "directory": (lambda path: path.mkdir(), "is a directory; name a file"),
    "closed": (closed, "cannot be opened"),
}
COMMANDS = (("report",), ("log",), ("journal", "check"), ("journal", "vacuum"), ("resume",), ("run", "--", "echo", "x"))


@pytest.mark.parametrize("bad", BAD_FILES)
def test_commands_refuse(tmp_path: Path, bad: str) -> None:
    """Every command prints one line with the file and the problem, exits with 2, and leaves the file unchanged."""
    make, why = BAD_FILES[bad]
    path = tmp_path / "journal.db"
    make(path)
    before = None if path.is_dir() or bad == "closed" else path.read_bytes()
    for words in COMMANDS:
        place = words.index("--") if "--" in words else len(words)
        done = bound("-m", "rung.cli.main", *words[:place], "--journal", path, *words[place:])
        assert done.returncode == 2, (words, done.stdout)
        assert done.stdout == ""
        assert done.stderr.startswith(f"rung: {path}: {why}"), words
        assert done.stderr.count("\n") == 1
    if before is not None:
        assert path.read_bytes() == before


@pytest.mark.parametrize("words", COMMANDS)
def test_commands_without_a_server(words: tuple[str, ...]) -> None:
    """An unreachable URL gives one line without its password, and exit code 2."""
    place = words.index("--") if "--" in words else len(words)
    url = "postgresql://me:hunter2@127.0.0.1:1/nowhere"
    done = bound("-m", "rung.cli.main", *words[:place], "--journal", url, *words[place:])
    assert done.returncode == 2
    assert done.stderr.startswith("rung: postgresql://me@127.0.0.1:1/nowhere: ")
    assert "Connection refused" in done.stderr
    assert "hunter2" not in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("after", range(13))
def test_a_journal_made_while_it_is_opened_is_recognised(tmp_path: Path, after: int) -> None:
    """Another process may create the journal between any two statements of opening it."""
    place = tmp_path / "journal.db"
    statements = []

    class Overtaken(ApswDriver):
        def open(self, path: Path, *, write: bool, vfs: str | None = None, immutable: bool = False) -> OpenedDatabase:
            connection = super().open(path, write=write, vfs=vfs, immutable=immutable)
            connection.raw.exec_trace = self._trace
            return connection

        def _trace(self, _cursor: object, sql: str, _values: object) -> bool:
            statements.append(sql)
            if len(statements) == after + 1:
                open_journal(place).close()
            return True

    backend = SqliteBackend(place, driver=Overtaken())
    backend.connect(write=True).close()
    assert len(statements) > after
