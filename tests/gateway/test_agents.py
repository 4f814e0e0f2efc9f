"""The real Claude Code behind the gateway: a task of several turns has the same result under every fault.

`make cli-matrix` runs every fault, and Codex.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.gateway.agents import SAID, TOOL, run, task
from tests.hooks.rig import command_line

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    command_line() is None and not os.environ.get("CI"), reason="the claude-agent-sdk package carries no command here"
)


def test_claude_code_comes_to_the_same_end(tmp_path: Path) -> None:
    """With a fault in each turn and its own retries disabled, the final message is the same and each command runs once."""
    faults = [
        {"fault": "overloaded", "request": 1},
        {"fault": "bad_arguments", "request": 3},
        {"fault": "no_end", "request": 5, "after": 1},
        {"fault": "cut", "request": 7, "after": 2},
    ]
    found = task("claude", tmp_path, faults)
    assert found.struck == 4
    assert found.done, found


def test_claude_code_shows_a_whole_text(tmp_path: Path) -> None:
    """A text that was cut in its middle is printed whole, not from the splice on."""
    found = run(
        "claude", tmp_path, {"rules": [{"fault": "cut", "tools": True, "times": 1, "after": 20}]}, prompt="count to 40"
    )
    assert found.said == " ".join(f"word{n}" for n in range(1, 41)), found
    assert (found.exit, found.attempts) == (0, 2)


def test_claude_code_corrects_a_call(tmp_path: Path) -> None:
    """A call that lacks an argument each time reaches the agent, which reports it, and the model makes another."""
    tool, argument = TOOL["claude"]
    turns = [
        {"tool": tool, "input": {"odd": "x"}},
        {"tool": tool, "input": {argument: "echo one >> ran.txt"}},
        {"text": SAID},
    ]
    found = run("claude", tmp_path, {"turns": turns})
    assert (found.said, found.ran, found.exit) == (SAID, ["one"], 0), found
    assert found.attempts == 5
