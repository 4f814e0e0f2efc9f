"""The board in the terminal: one screen, even with ten thousand tasks."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import ASKS_PREFIX
from rung.store.crew.conductor_key import load_key
from rung.store.crew.rows import NewTask
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> str:
    """Return a crew with tasks in several states."""
    at = str(tmp_path / "crew.db")
    with CrewTable.open(at, create=True) as table:
        for number in range(1, 6):
            table.add_task(NewTask(task_id=f"task-{number:02}", instruction="do it", title=f"work {number}"))
        table.heartbeat(table.claim("task-02", "a-session", "worker-two"), progress="12 of 30 files")
        table.report_error(table.claim("task-04", "b-session", "worker-four"), "it broke")
        table.update_columns("task-04", note=f"{ASKS_PREFIX}which of the two?")
    return at


def run(*words: str, columns: str = "140") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rung", "crew", *words],
        capture_output=True, text=True, check=False, timeout=60, env={**os.environ, "COLUMNS": columns},
    )  # fmt: skip


def test_the_board_is_printed_once(place: str) -> None:
    """Prints conductor, watchdog, counts and tasks; a task that needs an operator comes first."""
    done = run("board", "--once", "--db", place)
    assert done.returncode == 0, done.stderr
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert lines[0].startswith("conductor  watching")
    assert lines[1].startswith("watchdog   watching")
    assert lines[2] == "tasks      5: 3 watching, 1 working, 1 error  · 1 need an operator"
    tasks = [line for line in lines if line.startswith("task-")]
    assert [line.split()[0] for line in tasks] == ["task-04", "task-02", "task-01", "task-03", "task-05"]
    assert all(words in tasks[0] for words in ("error", "worker-four", "which of the two?"))
    assert all(words in tasks[1] for words in ("working", "worker-two", "12 of 30 files"))


def test_a_task_is_one_line_also_on_a_narrow_screen(place: str) -> None:
    """Each task takes one line, so that the computed number fits the screen."""
    with CrewTable.open(place) as table:
        table.update_columns(
            "task-04", note=f"{ASKS_PREFIX} {'a long question ' * 20}", progress="much has been done " * 20
        )
    lines = run("board", "--once", "--db", place, columns="80").stdout.splitlines()
    assert len([line for line in lines if line.startswith("task")]) == len(lines) - 3 == 7
    assert all(len(line) <= 80 for line in lines)


def test_many_tasks_are_counted_and_the_active_shown(tmp_path: Path) -> None:
    """Of ten thousand tasks, active ones are listed and the rest is counted."""
    at = str(tmp_path / "crew.db")
    with CrewTable.open(at, create=True) as table:
        table.connection.begin()
        table.connection.execute("INSERT INTO crew_conductor (key) VALUES (?)", [load_key(table.connection)])
        table.connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)"
            " INSERT INTO orchestration_tasks (task_id, state) SELECT printf('t%05d', i), 'watching' FROM n"
        )
        table.connection.execute("DELETE FROM crew_conductor")
        table.connection.commit()
        table.claim("t09999", "a-session", "somebody")
    done = run("board", "--once", "--rows", "3", "--db", at)
    assert "10,000: 9,999 watching, 1 working" in done.stdout
    assert "and 9,997 more" in done.stdout
    names = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("t0")]
    assert names == ["t09999", "t00001", "t00002"]


def test_what_is_no_table_is_said_in_a_line(tmp_path: Path) -> None:
    """A missing database is exit code 2, with the command that creates it."""
    done = run("board", "--once", "--db", str(tmp_path / "none.db"))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "rung crew init" in done.stderr


@pytest.mark.usefixtures("unmeasured_processes")
def test_on_a_terminal_it_goes_on_and_follows_the_table(place: str) -> None:
    """Changes appear on the live board; Ctrl-C ends it without a traceback."""
    main, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "rung", "crew", "board", "--interval", "0.1", "--db", place],
        stdin=other, stdout=other, stderr=subprocess.PIPE, env={**os.environ, "COLUMNS": "140", "LINES": "40"},
    )  # fmt: skip
    os.close(other)
    try:
        assert "3 watching" in _until(main, "3 watching")
        with CrewTable.open(place) as table:
            table.claim("task-05", "c-session", "worker-five")
        assert "worker-five" in _until(main, "worker-five")
        process.send_signal(2)
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        _, said = process.communicate()
        os.close(main)
    assert said == b""


def _until(main: int, words: str, seconds: float = 30.0) -> str:
    seen, until = "", time.monotonic() + seconds
    while words not in seen:
        assert time.monotonic() < until, seen[-2_000:]
        ready, _, _ = select.select([main], [], [], 0.2)
        if ready:
            seen += os.read(main, 65_536).decode(errors="replace")
    return seen
