"""The standard sqlite3 driver: the promises of the journal without apsw, for one process at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WITHOUT = "import sys; sys.modules['apsw'] = None\n"  # makes its import fail
# Tests that need a second process, which is rejected.
SHARED = ("test_two_processes", "test_fork")

OPENED = """
import sys
from rung.core.domain import events as ev
from rung.store import open_journal
from rung.core.domain.errors import StoreError
told = []
try:
    journal = open_journal(sys.argv[1], on_warning=told.append)
except StoreError as error:
    sys.exit(str(error))
name = sys.argv[2]
journal.append(name, 0, [ev.Opened(1.0, name, ev.IncidentContext("task", "task"))]).result(30)
print("mine", told, flush=True)
sys.stdin.readline()
journal.close()
print(len(journal.events(name)), journal.read("SELECT count(*) FROM event"), flush=True)
"""
FORKED = """
import os, sys
from rung.core.domain import events as ev
from rung.store import open_journal
told = []
journal = open_journal(sys.argv[1], on_warning=told.append)
def append(name):
    return journal.append(name, 0, [ev.Opened(1.0, name, ev.IncidentContext("task", "task"))]).result(30)
append("before")
child = os.fork()
if child == 0:
    append("child")
    print(told[0].partition("(")[0], flush=True)
    sys.exit()  # the interpreter's clean-up must not delete the parent's WAL
os.waitpid(child, 0)
append("after")
journal.close()
print(journal.read("SELECT incident FROM event ORDER BY seq"), journal.read("PRAGMA integrity_check"))
"""


def process(code: str, *words: str | Path, apsw: bool = False) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", "-c", ("" if apsw else WITHOUT) + code, *map(str, words)]
    return subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_same_suite() -> None:
    """The conformance tests pass, except those that need two processes."""
    code = f"{WITHOUT}import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    but = " and ".join(f"not {name}" for name in SHARED)
    words = ("tests/store/test_conformance.py", "-k", f"not postgres and {but}", "-W", "ignore:rung. apsw")
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:]


def test_told_once() -> None:
    """One warning line says that only this process can use the journal."""
    code = "from rung.store import open_journal\nfor _ in range(2): open_journal(sys.argv[1]).close()"
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT + code, "/tmp/rung-standard-told.db"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    Path("/tmp/rung-standard-told.db").unlink()
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "rung: " in line]
    assert len(lines) == 1
    assert "apsw cannot be imported: the journal uses Python's sqlite3 and is limited to this process" in lines[0]


@pytest.mark.parametrize("other_has_apsw", [False, True])
def test_another_process_has_it(tmp_path: Path, other_has_apsw: bool) -> None:
    """While another process holds the file, opening it fails in one line; afterwards it succeeds."""
    path = tmp_path / "journal.db"
    first = process(OPENED, path, "a", apsw=other_has_apsw)
    assert first.stdout is not None
    assert first.stdout.readline() == "mine []\n"
    second = process(OPENED, path, "b")
    _, said = second.communicate(timeout=60)
    assert second.returncode == 1
    assert said == (f"{path}: is locked by another process; sharing it requires apsw: pip install apsw\n")
    out, said = first.communicate("go\n", timeout=60)
    assert (out, said) == ("1 [(1,)]\n", "")
    third = process(OPENED, path, "b")
    out, said = third.communicate("go\n", timeout=60)
    assert (out, said) == ("mine []\n1 [(2,)]\n", "")


def test_keeps_apsw_out(tmp_path: Path) -> None:
    """A process with apsw finds the file locked, too: a WAL is never shared with an old SQLite."""
    path = tmp_path / "journal.db"
    first = process(OPENED, path, "a")
    assert first.stdout is not None
    assert first.stdout.readline() == "mine []\n"
    second = process(OPENED, path, "b", apsw=True)
    _, said = second.communicate(timeout=60)
    assert second.returncode == 1
    assert "database is locked" in said
    first.communicate("go\n", timeout=60)


def test_fork(tmp_path: Path) -> None:
    """A forked child reports that it cannot write; the parent's past and later writes are unaffected."""
    forked = process(FORKED, tmp_path / "journal.db")
    out, said = forked.communicate(timeout=60)
    assert forked.returncode == 0, said
    assert out.splitlines() == ["the journal cannot be written ", "[('before',), ('after',)] [('ok',)]"]
