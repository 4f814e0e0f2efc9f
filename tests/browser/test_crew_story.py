"""A crew of three real Claude Code agents before a failing provider, watched on the dashboard."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import FINDER, ROOT
from tests.hooks.rig import command_line

if TYPE_CHECKING:
    from pathlib import Path

IS_HERE = command_line() is not None and FINDER["find"]() is not None


@pytest.mark.skipif(not IS_HERE, reason="no Claude Code (claude-agent-sdk) or no Chromium")
@pytest.mark.skipif("RUNG_CREW_STORY" not in os.environ, reason="takes part in `make crew-demo`, not in the gate")
def test_three_real_agents_meet_faults_and_finish(tmp_path: Path) -> None:
    """An error is fixed, a review sends back, a context warning ends in a hand-over: the successor goes on in the session."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.crew.claude_crew", "--json", "--shots", str(tmp_path / "shots")],
        cwd=ROOT, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
    result = json.loads(done.stdout.splitlines()[-1])
    told = {name: [one["type"] for one in result["story"] if one["task"] == name] for name in result["done"]}
    assert in_order(told["parser"], "error", "fix_proposal", "review_request", "approval", "completion"), told["parser"]
    assert in_order(told["prices"], "review_request", "rejection", "review_request", "approval"), told["prices"]
    warned = ("context_warning", "exit_request", "handoff", "instruction", "resumption", "approval", "completion")
    assert in_order(told["guide"], *warned), told["guide"]
    steps = [f"guide, step {n}" for n in range(1, 5)]
    assert result["done"]["guide"].splitlines() == steps  # nothing twice: the successor knows what is done
    conversation = result["heard"]["guide"][-1]
    assert [conversation.count(f'"command": "./step {n}"') for n in range(1, 5)] == [1, 1, 1, 1]
    shots = {file.stem.partition("-")[2] for file in (tmp_path / "shots").glob("*.png")}
    assert {"parser-error", "prices-sent-back", "guide-context-warning", "guide-successor", "task-guide"} <= shots


def in_order(found: list[str], *wanted: str) -> bool:
    """Return whether the wanted items occur in this order."""
    rest = iter(found)
    return all(one in rest for one in wanted)
