"""A real coding agent as a worker: claim, error, fix, review, completion."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from rung.core.crew.contract import MessageType, TaskState
from rung.store.crew.table import CrewTable

RIG = Path(__file__).with_name("agent_rig.py")


def test_the_real_claude_code_as_a_worker(tmp_path: Path) -> None:
    """The provider fails twice, then works; the model receives the conductor's fix proposal."""
    turns = [{"tool": "Bash", "input": {"command": "echo 7 > made.txt"}}, {"text": "Done: I wrote made.txt."}]
    script = {"turns": turns, "rules": [{"fault": "overloaded", "tools": True, "request": "1-2"}]}
    told = {
        "root": str(tmp_path),
        "instruction": "write 7 to made.txt",
        "check": f"test -s {tmp_path}/project/made.txt",
        "script": script,
    }
    work = subprocess.run(
        [sys.executable, str(RIG)], input=json.dumps(told), capture_output=True, text=True, timeout=180, check=False
    )
    assert work.returncode == 0, work.stderr[-2_000:]
    done = json.loads(work.stdout)
    assert done["exit"] == 0, done["said"]
    assert (tmp_path / "project" / "made.txt").read_text() == "7\n"
    with CrewTable.open(str(tmp_path / "crew.db")) as table:
        row = table.task("task-01")
        said = [message.message_type for message in table.messages("task-01")]
    assert row is not None
    assert (row.state, row.generation) == (TaskState.COMPLETE, 1)
    assert row.error_tries >= 1
    first = said.index(MessageType.ERROR)
    assert said[first + 1] is MessageType.FIX_PROPOSAL
    assert said[-3:] == [MessageType.REVIEW_REQUEST, MessageType.APPROVAL, MessageType.COMPLETION]
    assert "write 7 to made.txt" in done["heard"][0]
    assert any("FIX PROPOSAL" in heard for heard in done["heard"])
