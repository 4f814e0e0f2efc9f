"""Retries of sessions that coding agents reported over hooks or MCP: real processes on a real journal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.hooks.handlers import handle_event
from rung.hooks.spool_drain import drain
from rung.mcp.recovery_service import RecoveryService, evidence

if TYPE_CHECKING:
    from pathlib import Path

SESSION = "0b5c2f6e-8a51-4c0e-9a0b-5b8e1c1d2e3f"
# An agent that notes how it was called.
AGENT = '#!/bin/sh\necho "$0 $@" > called\ncat > given\necho done\n'


@pytest.fixture(autouse=True)
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put agents of our own on the search path; journal and data are the test's."""
    (tmp_path / "bin").mkdir()
    for name in ("claude", "codex", "gemini"):
        (tmp_path / "bin" / name).write_text(AGENT)
        (tmp_path / "bin" / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("RUNG_JOURNAL", str(tmp_path / "j.db"))
    (tmp_path / "work").mkdir()


def tell(folder: Path, agent: str, event: str, **facts: Any) -> None:
    payload = {"hook_event_name": event, "session_id": SESSION, "cwd": str(folder / "work"), **facts}
    handle_event(agent, str(folder / "hooks"), json.dumps(payload).encode())


def retry(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rung", "retry", SESSION, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL)


def interrupted(folder: Path) -> None:
    """Let Claude Code report a session that its provider's failure ended."""
    tell(folder, "claude-code", "UserPromptSubmit", prompt="turn the widget")
    tell(folder, "claude-code", "StopFailure", error="overloaded_error: try again later")
    tell(folder, "claude-code", "SessionEnd", reason="other")
    drain(folder / "hooks", str(folder / "j.db"))


def test_a_session_of_an_agent_is_continued_with_its_error(tmp_path: Path) -> None:
    """The agent continues its own session in its directory, and is told the error and the task."""
    interrupted(tmp_path)
    done = retry()
    assert done.returncode == 0, done.stderr
    assert f"claude --resume {SESSION} -p" in (tmp_path / "work" / "called").read_text()
    given = (tmp_path / "work" / "given").read_text()
    assert "overloaded_error: try again later" in given
    assert given.rstrip().endswith("turn the widget")
    with rung.journal(tmp_path / "j.db") as journal:
        assert journal.read("SELECT count(*) FROM incident WHERE session = ?", (SESSION,)) == [(2,)]


@pytest.mark.parametrize(
    ("agent", "words"), [("codex", f"exec resume {SESSION} -"), ("gemini-cli", f"--resume {SESSION} --prompt=")]
)
def test_other_agents(tmp_path: Path, agent: str, words: str) -> None:
    """Each agent's own command continues the session."""
    from rung.hooks.agent_formats import EVENTS

    names = {ours: theirs for theirs, ours in EVENTS[agent].items()}
    tell(tmp_path, agent, names["prompt"], prompt="turn the widget")
    call = {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_response": {"error": "Exit code 2\nno rule"}}
    for number in range(40):
        tell(tmp_path, agent, names["after"], **call, tool_use_id=str(number))
        tell(tmp_path, agent, names["before"], **call, tool_use_id=str(number))
    tell(tmp_path, agent, names["end"], reason="other")
    drain(tmp_path / "hooks", str(tmp_path / "j.db"))
    done = retry()
    assert done.returncode == 0, done.stderr
    assert words in (tmp_path / "work" / "called").read_text()


def test_a_session_that_runs_is_left_to_its_agent(tmp_path: Path) -> None:
    """No order is left that nobody takes: the refusal names the command that continues the session."""
    tell(tmp_path, "claude-code", "UserPromptSubmit", prompt="turn the widget")
    tell(tmp_path, "claude-code", "StopFailure", error="overloaded_error")
    drain(tmp_path / "hooks", str(tmp_path / "j.db"))
    refused = retry()
    assert refused.returncode == 4
    assert f"continue it there: claude --resume {SESSION}\n" in refused.stderr
    assert not (tmp_path / "work" / "called").exists()


def test_without_recording_a_session_is_left_to_its_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With recording off the refusal says so, and names the command that continues the session."""
    monkeypatch.setenv("RUNG_RECORDING", "off")
    interrupted(tmp_path)
    refused = retry()
    assert refused.returncode == 4
    assert "was not recorded: recording is off" in refused.stderr
    assert f"claude --resume {SESSION}\n" in refused.stderr


def test_a_session_over_mcp_is_its_agents(tmp_path: Path) -> None:
    """Neither an open nor an ended session of MCP is sent to a model without its agent: the reason says who can retry."""
    with rung.journal(tmp_path / "j.db") as journal:
        service = RecoveryService(journal, lambda: rung.policy("task"))
        failed = evidence("429 too many requests", "", None, 429, "")
        service.report_failure(SESSION, failed, task="turn the widget", model="claude-x")
        journal.flush()
        for words in ((), ("--prompt", "turn it")):
            refused = retry(*words)
            assert (refused.returncode, "over MCP" in refused.stderr) == (4, True), refused.stderr
        service.finish_partial(SESSION, ["nothing"], "the provider is down")
        journal.flush()
    refused = retry()
    assert (refused.returncode, "over MCP" in refused.stderr) == (4, True), refused.stderr
