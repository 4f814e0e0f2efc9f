"""The real Codex finishes a task whose calls another provider wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rung.wires.translation.conversation import ToolCallPart, ToolResultPart
from rung.wires.translation.responses_request import read_request, write_request
from rung.wires.translation.self_contained import is_self_contained
from tests.gateway.agents import codex_program

if TYPE_CHECKING:
    from rung.wires.translation.conversation import Conversation

RIG = Path(__file__).with_name("codex_rig.py")
ECHO = {"cmd": "echo one >> ran.txt"}
PATCH = "*** Begin Patch\n*** Add File: ran.txt\n+one\n*** End Patch\n"
SCRIPT = "await tools.exec_command({cmd: 'echo one >> ran.txt'});"
# Codex gives its models other tools: functions; a custom tool and a search for tools; custom tools in namespaces.
TASKS: dict[str, list[tuple[str, Any]]] = {
    "gpt-5-codex": [("exec_command", ECHO)],
    "gpt-5.5": [("apply_patch", {"input": PATCH}), ("tool_search", {"query": "spawn agent"})],
    "gpt-6.1-sol": [("exec", {"input": SCRIPT})],
}


@pytest.mark.parametrize("model", TASKS)
def test_codex_runs_the_calls_of_another_provider(model: str, tmp_path: Path) -> None:
    """Codex runs functions, custom tools and searches that another wire called, and its history says so again."""
    program = codex_program()
    if program is None and not os.environ.get("CI"):
        pytest.skip("codex is not installed: make gate-clients")
    calls = [[name, json.dumps(arguments)] for name, arguments in TASKS[model]]
    told = {"root": str(tmp_path), "model": model, "program": str(program), "calls": calls}
    work = subprocess.run(
        [sys.executable, str(RIG)], input=json.dumps(told), capture_output=True, text=True, check=True
    )
    found = json.loads(work.stdout)
    assert (found["exit"], found["said"].strip()) == (0, "Well."), found["errors"]
    assert found["files"] == {"ran.txt": "one\n"}
    last = found["bodies"][-1]
    conversation = read_request(last)
    assert is_self_contained(read_request(last))
    assert write_request(conversation).body == last
    assert called(conversation) == TASKS[model]


def called(conversation: Conversation) -> list[tuple[str, Any]]:
    """Return the calls of a conversation that have a result."""
    parts = [part for turn in conversation.turns for part in turn.parts]
    results = {part.call_id for part in parts if isinstance(part, ToolResultPart)}
    calls = [part for part in parts if isinstance(part, ToolCallPart) and part.id in results]
    return [(part.name, json.loads(part.arguments)) for part in calls]
