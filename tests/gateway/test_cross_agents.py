"""The real Claude Code, Codex and Gemini CLI, unmodified, finish a task while another provider serves them in another wire.

`RUNG_CROSS_AGENTS=1` runs every outage with each; without it, there is one run of Claude Code and one of Codex.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.gateway.agents import TOOL as TOOLS
from tests.gateway.agents import codex_program
from tests.hooks.rig import command_line

TOOL = {**TOOLS, "gemini": ("run_shell_command", "command")}
RIG = Path(__file__).with_name("cross_agent_rig.py")
COMMANDS = ["one", "two", "three", "four"]
SAID = "Done: one two three four five six seven eight nine"
PATCH = "*** Begin Patch\n*** Update File: ran.txt\n@@\n one\n+two\n*** End Patch\n"
PROGRAMS = (
    "gpt-6-sol"  # with this model, Codex has its tools in the input, and its commands are programs of a custom tool
)
PROGRAM = 'text(await tools.exec_command({"cmd": "echo WORD >> ran.txt"}));'
# With gpt-5.5, Codex has the custom tool apply_patch.
PAIRS = [
    ("claude", "claude-sonnet-4-5", "chat"),
    ("claude", "claude-sonnet-4-5", "responses"),
    ("codex", "gpt-5.5", "messages"),
    ("gemini", "gemini-2.5-pro", "chat"),
    ("gemini", "gemini-2.5-pro", "messages"),
    ("claude", "claude-sonnet-4-5", "gemini"),
    ("codex", "gpt-5.5", "gemini"),
]
# What a translation leaves out, and names.
DROPPED = {
    "claude": {"cache_control", "context_management"},
    "codex": {"include", "prompt_cache_key"},
    "gemini": {"top_p"},
}
OVERLOADED = "overloaded"
# Rules of the own provider. Its requests 2 and later belong to the second turn.
OUTAGES: dict[str, Any] = {
    "not configured": "absent",
    "dead": "dead",
    "dies after the second call": [{"fault": OVERLOADED, "request": "3-999"}],
    "dies in a call": [{"fault": "cut", "request": 2, "after": 10}, {"fault": OVERLOADED, "request": "3-999"}],
    "dies in the last text": [{"fault": "cut", "request": 5, "after": 11}, {"fault": OVERLOADED, "request": "6-999"}],
    "refuses the key": [{"fault": "unauthorized", "request": "2-999"}],
    "has no credit": [{"fault": "quota", "request": "2-999"}],
    # No probe fails: after one that does, the next one may wait longer than the task takes.
    "comes back": [{"fault": "cut", "request": 2, "after": 10}, {"fault": OVERLOADED, "request": "3-4"}],
}
GATE = [(*PAIRS[0], "comes back"), (*PAIRS[2], "comes back")]
ALL = [
    *((*pair, outage) for pair in PAIRS for outage in OUTAGES),
    ("claude", "claude-opus-4-7", "chat", "comes back"),  # thinks adaptively
    ("claude", "claude-opus-4-7", "responses", "dead"),
    ("codex", PROGRAMS, "messages", "dead"),
]


class CrossTask(NamedTuple):
    """Result of a task, with the requests that the agent and both providers got."""

    said: str
    ran: list[str]
    exit: int
    requests: list[str]
    responses: list[dict[str, str]]
    own: list[dict[str, Any]]
    other: list[dict[str, Any]]
    output: str

    @property
    def is_done(self) -> bool:
        """Return whether the task is done, each command once, and the agent asked once for each turn."""
        asked = [request for request in self.requests if request.startswith("POST")]
        return (self.said, self.ran, self.exit, len(asked)) == (SAID, COMMANDS, 0, len(COMMANDS) + 1)


def turns(agent: str, model: str, *, patches: bool = False) -> list[Any]:
    """Return a script of four commands and a final message; with `patches`, the second one is a call of a custom tool."""
    tool, argument = TOOL[agent]
    calls: list[Any] = [{"tool": tool, "input": {argument: f"echo {word} >> ran.txt"}} for word in COMMANDS]
    if model == PROGRAMS:
        calls = [{"tool": "exec", "input": {"input": PROGRAM.replace("WORD", word)}} for word in COMMANDS]
    elif patches:
        calls[1] = {"tool": "apply_patch", "input": {"input": PATCH}}
    return [*calls, {"text": SAID}]


def run(agent: str, model: str, wire: str, outage: Any, root: Path) -> CrossTask:
    """Run the task with the own provider in this outage."""
    own = outage if isinstance(outage, str) else {"turns": turns(agent, model), "rules": outage}
    other = {"wire": wire, "script": {"turns": turns(agent, model, patches=agent == "codex")}}
    told = {"agent": agent, "model": model, "root": str(root), "own": own, "other": other, "probe_seconds": 0.0}
    program = codex_program() if agent == "codex" else None
    work = subprocess.run(
        [sys.executable, str(RIG)], input=json.dumps(told), capture_output=True, text=True, timeout=180, check=False,
        env={**os.environ, **({"RUNG_CODEX": str(program)} if program else {})},
    )  # fmt: skip
    if work.returncode:
        raise RuntimeError(work.stderr[-2_000:])
    found = json.loads(work.stdout)
    return CrossTask(**{field: found[field] for field in CrossTask._fields})


def is_installed(agent: str) -> bool:
    """Return whether an agent is installed: in the package of its SDK, or by make."""
    if agent == "gemini":
        return (Path(sys.prefix) / "clients/gemini-cli/.ready").exists()
    return (command_line() if agent == "claude" else codex_program()) is not None


@pytest.mark.parametrize(("agent", "model", "wire", "outage"), ALL if os.environ.get("RUNG_CROSS_AGENTS") else GATE)
def test_an_agent_finishes_its_task(agent: str, model: str, wire: str, outage: str, tmp_path: Path) -> None:
    """Each command runs once, the agent makes no retry, gets streams, and is told what the other provider was not."""
    if not is_installed(agent):
        if os.environ.get("CI") and not os.environ.get("RUNG_CROSS_AGENTS"):
            pytest.fail(f"{agent} is needed here: make gate-clients")
        pytest.skip(f"{agent} is not installed: make gate-clients, or .venv/clients/gemini-cli/.ready")
    found = run(agent, model, wire, OUTAGES[outage], tmp_path)
    assert found.is_done, found._replace(own=[], other=[])
    assert {each["content-type"].partition(";")[0] for each in found.responses} == {"text/event-stream"}
    assert found.other
    assert all(each["status"] == 200 and each["stream"] for each in found.other)
    assert all("key-of-the-other-provider" in str(each["headers"]) for each in found.other)
    translated = [each for each in found.responses if "x-rung-model" in each or outage == "not configured"]
    assert all(set(each["x-rung-dropped"].split(", ")) >= DROPPED[agent] for each in translated)
    if outage == "comes back":
        check_return(found)
    elif not isinstance(OUTAGES[outage], str):
        assert f"echo {COMMANDS[0]}" in str(found.other[-1]["body"])  # the whole history


def check_return(found: CrossTask) -> None:
    """Check that the own provider serves the end, knows what the other did, and rejected nothing."""
    assert found.own[-1]["status"] == 200
    assert {each["status"] for each in found.own} <= {200, 503, 529}
    body = found.own[-1]["body"]
    history = str(body.get("messages") or body.get("input") or body["contents"])
    assert all(word in history for word in COMMANDS)
    assert len(found.other) < len(COMMANDS)
    assert "x-rung-model" not in found.responses[-1]
