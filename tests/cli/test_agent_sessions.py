"""The real Claude Code and Codex, killed in the middle of a task, go on in their own sessions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.session_rig import SAID, WORDS
from tests.gateway.agents import codex_program
from tests.hooks.rig import command_line

pytestmark = pytest.mark.usefixtures("unmeasured_processes")
RIG = Path(__file__).with_name("session_rig.py")


def run(agent: str, root: Path, *words: str, kill: str = "agent", **told: Any) -> dict[str, Any]:
    program = codex_program() if agent == "codex" else command_line()
    if program is None and not os.environ.get("CI"):
        pytest.skip(f"{agent} is not installed: make gate-clients")
    work = subprocess.run(
        [sys.executable, str(RIG)],
        input=json.dumps({"agent": agent, "root": str(root), "words": words, "kill": kill, **told}),
        capture_output=True, text=True, timeout=240, check=False, env={**os.environ, "RUNG_CODEX": str(program)},
    )  # fmt: skip
    assert work.returncode == 0, work.stderr[-2_000:]
    found: dict[str, Any] = json.loads(work.stdout)
    return found


def history(found: dict[str, Any], request: int = 3) -> str:
    return json.dumps(found["requests"][request])


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_killed_agent_goes_on_in_its_session(agent: str, tmp_path: Path) -> None:
    """Each command runs once, and the agent learns that the effect of the interrupted one is unknown."""
    found = run(agent, tmp_path, "run", "--", "{command}")
    assert (found["ran"], found["exit"]) == (WORDS, [0]), found
    assert SAID in found["output"]
    assert f" of {agent}" in found["errors"]
    assert "continues session" in found["errors"]
    assert len(found["requests"]) == 5
    assert "Its effect is unknown" in history(found)
    assert "Your session was interrupted" in history(found)
    assert len(found["files"]) == 2  # the agent's own file, and the repaired copy


PIPELINE = """
[pipeline]
name = "four"
command = {command}
[[stage]]
id = "write"
prompt = "do it"
"""


def test_a_stage_goes_on_in_its_session(tmp_path: Path) -> None:
    """After `kill -9` of a pipeline and its agent, `--resume` continues the session of the stage's agent."""
    told = {"files": {"p.toml": PIPELINE}, "again": ["pipeline", "run", "p.toml", "--resume", "p-1"]}
    found = run("claude", tmp_path, "pipeline", "run", "p.toml", "--run-id", "p-1", kill="all", **told)
    assert (found["ran"], found["exit"]) == (WORDS, [-9, 0]), found
    assert "continues session" in found["errors"]
    assert (tmp_path / "project" / "tasks" / "four" / "write.md").read_text().strip() == SAID


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_run_whose_processes_were_all_killed_goes_on(agent: str, tmp_path: Path) -> None:
    """After `kill -9` of Rung and its agent, `rung resume` continues the agent's session, without --idempotent."""
    found = run(agent, tmp_path, "run", "--run-id", "r-1", "--", "{command}", kill="all", again=["resume", "r-1"])
    assert (found["ran"], found["exit"]) == (WORDS, [-9, 0]), found
    assert SAID in found["output"]
    assert "continues session" in found["errors"]
    assert len(found["requests"]) == 5
