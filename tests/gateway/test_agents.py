"""The real Claude Code behind the gateway: a task of several turns comes to the same whatever the provider does.

`make cli-matrix` has every fault, and Codex.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.gateway.agents import task
from tests.hooks.rig import command_line

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    command_line() is None and not os.environ.get("CI"), reason="the claude-agent-sdk package carries no command here"
)


def test_claude_code_comes_to_the_same_end(tmp_path: Path) -> None:
    """With a fault in each of its turns and its own tries off: the same last words, each command run once."""
    faults = [
        {"fault": "overloaded", "request": 1},
        {"fault": "bad_arguments", "request": 3},
        {"fault": "no_end", "request": 5, "after": 1},
        {"fault": "cut", "request": 7, "after": 2},
    ]
    found = task("claude", tmp_path, faults)
    assert found.struck == 4
    assert found.done, found
