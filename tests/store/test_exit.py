"""Process exit: appended events are written without a close, and a stuck store does not block the exit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rung.store import open_journal

ROOT = Path(__file__).parents[2]
MANY = 500
WRITE = f"""
import sys
from rung.core.domain import events as ev
from rung.store import open_journal
journal = open_journal(sys.argv[1], on_warning=lambda said: print(said, flush=True))
def tell(name):
    for number in range({MANY}):
        one = f"{{name}}{{number}}"
        events = [ev.Opened(1.0, one, ev.IncidentContext("task", "task")), ev.AttemptSucceeded(2.0, 1.0, 0.0)]
        journal.append(one, 0, events)
"""
ENDS = {
    "returns": ("tell('a')", 0),
    "sys.exit": ("tell('a'); sys.exit(3)", 3),
    "an exception": ("tell('a'); raise SystemError('x')", 1),
    "a thread": ("import threading; threading.Thread(target=tell, args=('a',)).start()", 0),
    "a child": (
        "import multiprocessing as m; p = m.get_context('fork').Process(target=tell, args=('a',)); p.start(); p.join()",
        0,
    ),
    "a fork that exits": (
        "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nelse: tell('a')",
        0,
    ),
    "a pool": (
        (
            "from concurrent.futures import ProcessPoolExecutor as P; import multiprocessing as m\n"
            "with P(1, mp_context=m.get_context('fork')) as pool: pool.submit(tell, 'a').result()"
        ),
        0,
    ),
}


def ended(url: str, code: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", WRITE + code, url]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("how", ENDS)
def test_written_at_the_end(url: str, how: str) -> None:
    """Appended events are written however the process exits by itself."""
    code, status = ENDS[how]
    done = ended(url, code)
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    with open_journal(url) as journal:
        assert journal.read("SELECT count(*) FROM incident WHERE status = 'succeeded'") == [(MANY,)]


def test_a_stuck_store(sqlite_url: str) -> None:
    """When another process keeps the file locked, the process still exits and reports the loss."""
    open_journal(sqlite_url).close()
    code = (
        "import apsw; other = apsw.Connection(sys.argv[1]); "
        "journal.write(lambda _: None, lambda _: True).result(); journal.close(); "
        "other.execute('BEGIN EXCLUSIVE'); tell('a')"
    )
    done = ended(sqlite_url, code)
    assert done.returncode == 0, done.stderr
    assert "lost" in done.stdout
