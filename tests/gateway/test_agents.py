"""The real Claude Code and Codex behind the gateway: a task of several turns has the same result under every fault.

`make survival PARTS=repeated` runs every fault with both.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway.agents import SAID, TOOL, codex_program, run, task
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


@pytest.mark.parametrize(("agent", "window"), [("claude", 25_000), ("codex", 16_000)])
def test_a_conversation_of_an_agent_becomes_small_enough(agent: str, window: int, tmp_path: Path) -> None:
    """Old turns of a conversation that became too long are left out; prompts, tools, task and last turns stay."""
    if agent == "codex" and codex_program() is None and not os.environ.get("CI"):
        pytest.skip("codex is not installed: make gate-clients")
    tool, argument = TOOL[agent]
    commands: list[Any] = [
        {"tool": tool, "input": {argument: f"echo {n} >> ran.txt; seq {n}000 {n + 2}500"}} for n in range(1, 5)
    ]
    # The fifth request and its repetition must fit; after it the provider repeats a command, then ends the task.
    rule = {"fault": "overflow", "tools": True, "request": "5-6", "window": window}
    script = {"turns": [*commands, {"text": SAID}], "rules": [rule]}
    found = run(agent, tmp_path, script, prompt="Do all of it.", with_bodies=True, patient=True)
    assert (found.said, found.exit, found.struck) == (SAID, 0, 1), found._replace(bodies=[])
    history = "messages" if agent == "claude" else "input"
    long, short = found.bodies[4], found.bodies[5]
    for name in ("system", "instructions", "tools"):
        assert short.get(name) == long.get(name)
    task_end = next(n for n, each in enumerate(short[history]) if "earlier messages left out" in str(each))
    assert short[history][:task_end] == long[history][:task_end]
    assert "Do all of it." in str(short[history][:task_end])
    assert [each.get("call_id") for each in short[history][-6:]] == [each.get("call_id") for each in long[history][-6:]]
