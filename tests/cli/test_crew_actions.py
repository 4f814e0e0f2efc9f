"""What an operator does to a crew from the command line is in the audit trail, and restarts are counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import TaskState
from rung.store.crew.rows import NewTask
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def crew(tmp_path: Path) -> str:
    """Return a crew with a task that was given up, one with an error, and one that waits for a review."""
    at = str(tmp_path / "shop.db")
    with CrewTable.open(at, create=True) as table:
        for name in ("lost", "broken", "waits"):
            table.add_task(NewTask(task_id=name, instruction="do it"))
        table.hand_off(table.claim("lost", "a-session"), "HANDOFF: it died three times")
        table.report_error(table.claim("broken", "b-session"), "it broke")
        table.request_review(table.claim("waits", "c-session"), "Summary: done\nTests: 3 passed", checkpoint=1)
    return at


def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rung", *words], capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, **env},
    )  # fmt: skip


def test_restarts_from_the_command_line_are_counted(crew: str) -> None:
    """`crew restart` and `crew reply --fix` are manual restarts; an approval and a message are not."""
    for words in (
        ("restart", "lost", "the key is there now"),
        ("reply", "broken", "use the other file", "--fix"),
        ("reply", "waits", "well done", "--approve"),
        ("reply", "broken", "a word"),
    ):
        done = run("crew", *words, "--db", crew)
        assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(run("report", "success", "--json").stdout)["rows"]
    assert [row["numerator"] for row in rows if row["figure"] == "manualInterventions"] == [2]


def test_a_journal_that_cannot_be_opened_stops_no_operator(crew: str, tmp_path: Path) -> None:
    """The task is restarted, and one line says that the audit trail lacks it."""
    broken = tmp_path / "no.db"
    broken.write_bytes(b"no database" * 100)
    done = run("crew", "restart", "lost", "--db", crew, RUNG_JOURNAL=str(broken))
    assert (done.returncode, done.stdout) == (0, "lost: reset\n")
    assert "not recorded in the audit trail" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    with CrewTable.open(crew) as table:
        assert table.require_task("lost").state is TaskState.WATCHING
