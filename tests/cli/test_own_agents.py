"""`rung run` with an agent that settings describe: its session is continued, or handed over to a fresh start."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.test_run import script
from tests.trusting import write_trusted

if TYPE_CHECKING:
    from pathlib import Path

RUNG = [sys.executable, "-m", "rung", "run"]
# Writes down how it is called, prints its session id, and is killed in its first call.
AGENT = """
import json, os, signal, sys
text = sys.stdin.read()
with open("calls.jsonl", "a") as calls:
    calls.write(json.dumps([sys.argv[1:], text]) + "\\n")
with open(os.environ["RUNG_STEPS"], "a") as steps:
    steps.write("read the index\\n")
print(json.dumps({"sid": "s-1"}), flush=True)
if sum(1 for _ in open("calls.jsonl")) == 1:
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1:2] == ["go-on"] and os.path.exists("lost"):
    sys.exit("no such session")
"""
SETTINGS = """
[[agents]]
match = ["my-agent"]
resume = ["my-agent", "go-on", "{session}"]
session_field = "sid"
lost = "no such session"
"""


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    script(tmp_path / "my-agent", AGENT)


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    line = [*RUNG, "--no-notes", *options, "--", "my-agent", "--fast"]
    return subprocess.run(line, cwd=folder, input="the job", capture_output=True, text=True, timeout=60, check=False)


def calls(folder: Path) -> list[Any]:
    return [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]


def test_its_session_is_continued(tmp_path: Path) -> None:
    """The second call continues the session, and its input is the reason of the interruption, without the task."""
    write_trusted(tmp_path / "rung.toml", SETTINGS)
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    first, second = calls(tmp_path)
    assert first == [["--fast"], "the job"]
    assert second[0] == ["go-on", "s-1"]
    assert second[1].startswith("Your session was interrupted before your work was finished (worker_dead)")
    assert "the job" not in second[1]
    assert "rung: continues session s-1 of my-agent" in done.stderr


def test_the_event_names_the_session(tmp_path: Path) -> None:
    """The progress as JSON has the session of each attempt, and whether it existed before."""
    write_trusted(tmp_path / "rung.toml", SETTINGS)
    lines = [json.loads(line) for line in run(tmp_path, "--json").stdout.splitlines()]
    found = [line for line in lines if line["name"] == "agent_session_opened"]
    assert [(line["program"], line["session"], line["continued"]) for line in found] == [
        ("my-agent", "s-1", False),
        ("my-agent", "s-1", True),
    ]


def test_a_lost_session_is_handed_over(tmp_path: Path) -> None:
    """An agent that does not know its session starts afresh in the same attempt, and is told what was done."""
    write_trusted(tmp_path / "rung.toml", SETTINGS)
    (tmp_path / "lost").touch()
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    _, continued, fresh = calls(tmp_path)
    assert continued[0] == ["go-on", "s-1"]
    assert fresh[0] == ["--fast"]
    assert "read the index" in fresh[1]
    assert fresh[1].endswith("the job")


@pytest.mark.parametrize("option", ["--no-resume-session", "--policy=task"])
def test_without_sessions_the_command_is_run_again(option: str, tmp_path: Path) -> None:
    """With the off switch, or without the settings, the agent gets the task again."""
    write_trusted(tmp_path / "rung.toml", SETTINGS)
    done = run(tmp_path, option)
    assert done.returncode == 0, done.stderr
    assert calls(tmp_path)[1][0] == ["--fast"]
    assert calls(tmp_path)[1][1].endswith("the job")


def test_a_file_that_is_not_trusted_describes_no_agent(tmp_path: Path) -> None:
    """A command of a settings file in the directory is not run until the user trusts the file."""
    (tmp_path / "rung.toml").write_text(SETTINGS)
    done = run(tmp_path)
    assert calls(tmp_path)[1][0] == ["--fast"]
    assert "agents" in done.stderr


def test_a_mistake_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    """A row without a way to find the session is refused, and the agent is not started."""
    write_trusted(tmp_path / "rung.toml", '[[agents]]\nmatch = ["my-agent"]\nresume = ["my-agent", "{session}"]\n')
    done = run(tmp_path)
    assert done.returncode == 2
    assert "agents[0].session_field" in done.stderr
    assert not (tmp_path / "calls.jsonl").exists()
