"""A worker that was asked to exit and goes on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rung.core.crew.contract import MessageType

if TYPE_CHECKING:
    from tests.crew.running import RunningCrew

# Warns that its context is nearly full, and goes on with heartbeats and progress, whatever it is told.
DEAF = """
import itertools, os, time
from rung.store.crew.table import CrewTable
table = CrewTable.open(os.environ["RUNG_CREW"])
claim = table.claim(os.environ["RUNG_TASK"], os.environ["RUNG_SESSION"])
if claim.generation > 1:
    time.sleep(600)
table.warn_context(claim, "CONTEXT WARNING\\nContext Usage: 85%\\nSelf-Correction: YES\\nProposal: go on")
for step in itertools.count():
    table.heartbeat(claim, progress=f"step {step}")
    time.sleep(0.1)
"""


def test_a_worker_that_ignores_its_exit_is_ended(crew: RunningCrew) -> None:
    """A worker that beats on after `exit_requested` is ended after `exit_within` seconds, and the task has a successor."""
    crew.plan([{"id": "task-01", "command": [sys.executable, "-c", DEAF]}], workers=1, exit_within=2.0)
    crew.run()
    crew.until_state("task-01", "exit_requested")
    (first,) = crew.processes(DEAF)
    crew.until(lambda: crew.task("task-01").generation >= 3 and crew.task("task-01").state == "working")
    assert first not in crew.processes(DEAF)
    assert any(text.startswith("EVICTED (overdue)") for text in crew.messages("task-01", MessageType.SYSTEM))
