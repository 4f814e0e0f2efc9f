"""A read-only journal can be read; writes are reported in one line and work continues."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rung.core.domain.errors import StoreError
from rung.store import open_journal
from rung.store.backends.migrations import LATEST_VERSION
from rung.store.backends.sqlite import SqliteBackend
from tests.store.rights import bound
from tests.store.stories import opened, succeeded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONG = 120.0
LOOK = """
import json, sys
from rung.core.domain import events as ev
from rung.store import open_journal
from rung.core.domain.errors import StoreUnavailable
told = []
with open_journal(sys.argv[1], on_warning=told.append) as journal:
    read = len(journal.events("a"))
    kept = journal.append("b", 0, [ev.Opened(1.0, "b", ev.IncidentContext("task", "task"))]).result(30)
    try:
        journal.runs.claim("r")
    except StoreUnavailable as error:
        refused = str(error)
print(json.dumps([read, kept, refused, told]))
"""


@pytest.fixture(params=["file", "directory", "both", "left open"])
def sealed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Journal that is read-only for one of several reasons."""
    path = tmp_path / "sealed" / "journal.db"
    with open_journal(path) as journal:
        journal.append("a", 0, [opened("a"), succeeded()]).result(LONG)
        if request.param == "left open":
            assert len(list(path.parent.iterdir())) == 3  # its WAL and the index of the WAL exist
        else:
            journal.close()
        if request.param != "directory":
            path.chmod(0o400)
        if request.param != "file":
            path.parent.chmod(0o500)
        yield path
        path.parent.chmod(0o700)


def test_looked_at(sealed: Path) -> None:
    """Events are readable; appends are buffered, other writes are rejected, each reported in one line."""
    before = sealed.read_bytes()
    done = bound("-c", LOOK, sealed)
    assert done.returncode == 0, done.stderr
    read, kept, refused, told = json.loads(done.stdout)
    assert (read, kept) == (2, None)
    assert refused.startswith(f"{sealed}: is read-only")
    assert told[0].startswith(f"the journal cannot be written ({sealed}: is read-only")
    assert "recovery continues" in told[0]
    assert "lost writes: 1" in told[1]
    assert len(told) == 2
    assert sealed.read_bytes() == before


@pytest.mark.parametrize("words", [("report", "--json"), ("log",), ("journal", "check"), ("show", "a")])
def test_commands_that_look(sealed: Path, words: tuple[str, ...]) -> None:
    """Reports, logs and checks work on a read-only journal."""
    done = bound("-m", "rung.cli.main", *words, "--journal", sealed)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert done.stderr == ""


@pytest.mark.parametrize("words", [("journal", "vacuum"), ("journal", "rebuild")])
def test_commands_that_write(sealed: Path, words: tuple[str, ...]) -> None:
    """Commands that write exit with code 2 and one line."""
    before = sealed.read_bytes()
    done = bound("-m", "rung.cli.main", *words, "--journal", sealed)
    assert done.returncode == 2, done.stdout
    assert done.stderr.count("\n") == 1
    assert "is read-only" in done.stderr
    assert sealed.read_bytes() == before


def test_every_page_of_a_small_file(tmp_path: Path) -> None:
    """A small file is checked completely when opened; a large one only for a missing end."""
    path = tmp_path / "journal.db"
    with open_journal(path) as journal:
        for number in range(600):
            journal.append(f"i{number}", 0, [opened(f"i{number}"), succeeded()])
    whole = path.read_bytes()
    pages = len(whole) // 4096
    worn = b"".join(
        b"\xa5" * 200 + whole[page * 4096 + 200 : (page + 1) * 4096]
        if page > pages // 2 and page % 2
        else whole[page * 4096 : (page + 1) * 4096]
        for page in range(pages)
    )
    path.write_bytes(worn)
    with pytest.raises(StoreError, match="is damaged"):
        SqliteBackend(path).connect(write=True)
    large = SqliteBackend(path, quick_check_max_bytes=4096)
    connection = large.connect(write=True)
    assert connection.execute("SELECT version FROM rung_schema") == [(LATEST_VERSION,)]
    connection.close()
    path.write_bytes(whole[: -4096 * 5])
    for write in (True, False):
        with pytest.raises(StoreError, match="is damaged"):
            SqliteBackend(path, quick_check_max_bytes=4096).connect(write=write)
