"""A real coding agent as a worker: claim, error, fix, review, completion."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rung.core.crew.contract import MessageType, TaskState
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from rung.store.crew.rows import TaskRow

RIG = Path(__file__).with_name("agent_rig.py")


def carry_out(root: Path, rule: dict[str, Any]) -> tuple[dict[str, Any], TaskRow, list[MessageType]]:
    """Run a task whose provider has this fault. Return what the rig saw, the task's row and the types of its messages."""
    turns = [{"tool": "Bash", "input": {"command": "echo 7 >> made.txt"}}, {"text": "Done: I wrote made.txt."}]
    told = {
        "root": str(root),
        "instruction": "write 7 to made.txt",
        "check": f"test -s {root}/project/made.txt",
        "script": {"turns": turns, "rules": [{"tools": True, **rule}]},
    }
    work = subprocess.run(
        [sys.executable, str(RIG)], input=json.dumps(told), capture_output=True, text=True, timeout=180, check=False
    )
    assert work.returncode == 0, work.stderr[-2_000:]
    done = json.loads(work.stdout)
    assert done["exit"] == 0, done["said"]
    assert (root / "project" / "made.txt").read_text() == "7\n"
    assert "write 7 to made.txt" in done["heard"][0]
    with CrewTable.open(str(root / "crew.db")) as table:
        row = table.require_task("task-01")
        said = [message.message_type for message in table.messages("task-01")]
    assert row.state is TaskState.COMPLETE
    assert said[-3:] == [MessageType.REVIEW_REQUEST, MessageType.APPROVAL, MessageType.COMPLETION]
    return done, row, said


def test_the_real_claude_code_as_a_worker(tmp_path: Path) -> None:
    """The provider rejects two requests, then works; the model receives the conductor's fix proposal."""
    done, row, said = carry_out(tmp_path, {"fault": "too_large", "request": "1-2"})
    assert row.generation == 1
    assert row.error_tries >= 1
    assert said[said.index(MessageType.ERROR) + 1] is MessageType.FIX_PROPOSAL
    assert any("FIX PROPOSAL" in heard for heard in done["heard"])


def test_the_real_claude_code_waits_out_an_overload(tmp_path: Path) -> None:
    """The provider is overloaded for two requests: the agent is started again as a probe, and nothing is counted."""
    done, row, said = carry_out(tmp_path, {"fault": "overloaded", "request": "1-2"})
    assert (row.error_tries, row.redispatches) == (0, 0)
    assert MessageType.ERROR not in said
    assert "pool default   backing off: overloaded" in done["said"]


def test_the_real_claude_code_goes_on_after_an_overload(tmp_path: Path) -> None:
    """The provider is overloaded after the first command: the next worker continues the session, and nothing runs twice."""
    done, row, _ = carry_out(tmp_path, {"fault": "overloaded", "request": "2-3"})
    assert (row.error_tries, row.redispatches) == (0, 0)
    assert row.generation > 1
    assert len(done["heard"]) == 4
    assert "Your session was interrupted" in done["heard"][-1]
    assert done["heard"][-1].count("echo 7 >> made.txt") == 1
    assert not list((tmp_path / "home").rglob("agent-sessions/*"))  # forgotten when the task is complete
