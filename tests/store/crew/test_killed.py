"""Message and state are one: whoever is killed in between leaves both or neither."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.crew.contract import MessageType, TaskState
from rung.store.crew.rows import NewTask
from tests.store.crew.killed import WRITES

if TYPE_CHECKING:
    from rung.store.crew.table import CrewTable

ROOT = Path(__file__).resolve().parents[3]


def everything(table: CrewTable) -> Any:
    """All rows and all messages, without what goes by by itself."""
    rows = [
        replace(task, heartbeat_age=0, progress_age=0, state_age=0) for task in (*table.tasks(), *table.fallbacks())
    ]
    return rows, [message.message_type for message in table.messages()]


@pytest.mark.parametrize("write", WRITES)
def test_a_kill_between_any_two_statements_leaves_all_or_nothing(table: CrewTable, place: str, write: str) -> None:
    """Before every statement in turn, until one run lives to its end; the table can be used at once each time."""
    table.add_task(NewTask(task_id="task-01", instruction="do it"))
    table.add_task(NewTask(task_id="task-02", instruction="do it"))
    claim = table.claim("task-01", "s1")
    if write == "complete":
        table.request_review(claim, "x", checkpoint=1)
        table.reply(table.require_task("task-01"), TaskState.REVIEW_APPROVED, "", MessageType.APPROVAL)
    before = everything(table)
    killed = 0
    command = [sys.executable, "-m", "tests.store.crew.killed", place, write]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        while (word := process.stdout.readline().strip()) == "killed -9":
            killed += 1
            assert everything(table) == before, killed
            process.stdin.write("go on\n")
            process.stdin.flush()
    assert word == "done"
    assert killed >= 3
    rows, messages = everything(table)
    assert rows != before[0]
    assert len(messages) == len(before[1]) + (write != "claim")
