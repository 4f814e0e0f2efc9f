"""A journal that can only be read is read; whoever writes is told so in one line, and goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rung.core.domain.errors import StoreError
from rung.store import open_journal
from rung.store.backends.migrations import LATEST
from rung.store.backends.sqlite import SqliteBackend
from tests.store.rights import bound
from tests.store.stories import opened, succeeded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONG = 30.0
LOOK = """
import json, sys
from rung.core import events as ev
from rung.store import open_journal
from rung.core.domain.errors import Busy
told = []
with open_journal(sys.argv[1], tell=told.append) as journal:
    read = len(journal.events("a"))
    kept = journal.append("b", 0, [ev.Opened(1.0, "b", ev.Terms("task", "task"))]).result(30)
    try:
        journal.runs.claim("r")
    except Busy as error:
        refused = str(error)
print(json.dumps([read, kept, refused, told]))
"""


@pytest.fixture(params=["file", "directory", "both", "left open"])
def sealed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A journal that must not be written, in one way or another."""
    path = tmp_path / "sealed" / "journal.db"
    with open_journal(path) as journal:
        journal.append("a", 0, [opened("a"), succeeded()]).result(LONG)
        if request.param == "left open":
            assert len(list(path.parent.iterdir())) == 3  # its log and the index of that are there
        else:
            journal.close()
        if request.param != "directory":
            path.chmod(0o400)
        if request.param != "file":
            path.parent.chmod(0o500)
        yield path
        path.parent.chmod(0o700)


def test_looked_at(sealed: Path) -> None:
    """Events are read; what is appended waits, what must be written is refused, and both are said in one line."""
    before = sealed.read_bytes()
    done = bound("-c", LOOK, sealed)
    assert done.returncode == 0, done.stderr
    read, kept, refused, told = json.loads(done.stdout)
    assert (read, kept) == (2, None)
    assert refused.startswith(f"{sealed}: can be read, but not written")
    assert told[0].startswith(f"the journal cannot be written ({sealed}: can be read, but not written")
    assert "the work goes on" in told[0]
    assert "1 parts of what happened are lost" in told[1]
    assert len(told) == 2
    assert sealed.read_bytes() == before


@pytest.mark.parametrize("words", [("report", "--json"), ("log",), ("journal", "check"), ("show", "a")])
def test_commands_that_look(sealed: Path, words: tuple[str, ...]) -> None:
    """Reports, logs and checks work."""
    done = bound("-m", "rung.cli.main", *words, "--journal", sealed)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert done.stderr == ""


@pytest.mark.parametrize("words", [("journal", "vacuum"), ("journal", "rebuild")])
def test_commands_that_write(sealed: Path, words: tuple[str, ...]) -> None:
    """What writes ends with exit code 2 and one line."""
    before = sealed.read_bytes()
    done = bound("-m", "rung.cli.main", *words, "--journal", sealed)
    assert done.returncode == 2, done.stdout
    assert done.stderr.count("\n") == 1
    assert "can be read, but not written" in done.stderr
    assert sealed.read_bytes() == before


def test_every_page_of_a_small_file(tmp_path: Path) -> None:
    """A small file is looked through when it is opened; of a large one only that it is whole."""
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
    large = SqliteBackend(path, looked_through=4096)
    connection = large.connect(write=True)
    assert connection.execute("SELECT version FROM rung_schema") == [(LATEST,)]
    connection.close()
    path.write_bytes(whole[: -4096 * 5])
    for write in (True, False):
        with pytest.raises(StoreError, match="is damaged"):
            SqliteBackend(path, looked_through=4096).connect(write=write)
