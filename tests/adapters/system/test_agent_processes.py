"""An agent that is ended takes no further step, and no tool of it goes on."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import pytest

from rung.adapters.system.agent_processes import AGENT_VARIABLE, new_agent_run
from rung.adapters.system.process import RunningProcess
from rung.adapters.system.worker_processes import RealProcesses
from rung.engine.process_identity import initial_environment, live_processes

if TYPE_CHECKING:
    from pathlib import Path

# Like Claude Code: the tool runs in a session of its own; on SIGTERM the tool is ended, and the next step is taken.
AGENT = """
import pathlib, signal, subprocess, sys, time
folder = pathlib.Path(sys.argv[1])
tool = subprocess.Popen(["sleep", "60"], start_new_session=True)
signal.signal(signal.SIGTERM, lambda *_: tool.kill())
(folder / "steps").write_text("one\\n")
tool.wait()
with (folder / "steps").open("a") as steps:
    steps.write("two\\n")
"""
SECONDS = 30.0


def begin(folder: Path) -> None:
    """Wait until the agent has begun its first step."""
    until = time.monotonic() + SECONDS
    while not is_written(folder / "steps") and time.monotonic() < until:
        time.sleep(0.01)
    assert is_written(folder / "steps")


def is_written(file: Path) -> bool:
    """Return whether a file has a text: it is there, and empty, a moment before."""
    return file.exists() and bool(file.read_text())


def marked(entry: str) -> list[int]:
    return [pid for pid in live_processes() if entry in initial_environment(pid)]


@pytest.mark.parametrize("own_group", [True, False])
def test_an_agent_takes_no_step_after_its_end(tmp_path: Path, *, own_group: bool) -> None:
    """The agent is killed before its tool is terminated, in its own process group or not."""
    command = [sys.executable, "-c", AGENT, str(tmp_path)]
    run = RunningProcess(command, "", own_group=own_group, is_agent=True)
    begin(tmp_path)
    (entry,) = [one for one in initial_environment(run.process.pid) if one.startswith(AGENT_VARIABLE)]
    assert len(marked(entry)) == 2
    run.terminate()
    assert marked(entry) == []
    assert (tmp_path / "steps").read_text() == "one\n"


@pytest.mark.parametrize("wrapper", [["timeout", "600"], ["sh", "-c", '"$@"; exit $?', "sh"]])
def test_an_agent_behind_another_program_takes_no_step_after_its_end(tmp_path: Path, wrapper: list[str]) -> None:
    """An agent that `timeout`, or the script of its package, starts as a child is killed before its tool, too."""
    run = RunningProcess([*wrapper, sys.executable, "-c", AGENT, str(tmp_path)], "", own_group=False, is_agent=True)
    begin(tmp_path)
    (entry,) = [one for one in initial_environment(run.process.pid) if one.startswith(AGENT_VARIABLE)]
    run.terminate()
    assert marked(entry) == []
    assert (tmp_path / "steps").read_text() == "one\n"


def test_a_command_that_is_no_agent_may_clean_up(tmp_path: Path) -> None:
    """Other commands get SIGTERM first and may finish what they do."""
    run = RunningProcess([sys.executable, "-c", AGENT, str(tmp_path)], "")
    begin(tmp_path)
    run.terminate()
    assert (tmp_path / "steps").read_text() == "one\ntwo\n"


def test_the_agent_of_an_ended_worker_takes_no_step(tmp_path: Path) -> None:
    """A conductor that ends a worker kills its agent first, and its tools are gone when the successor starts."""
    processes = RealProcesses(tmp_path / "runtime")
    agent = new_agent_run()
    processes.launch("task", [sys.executable, "-c", AGENT, str(tmp_path)], agent, None)
    begin(tmp_path)
    processes.end("task")
    assert marked(f"{AGENT_VARIABLE}={agent[AGENT_VARIABLE]}") == []
    assert (tmp_path / "steps").read_text() == "one\n"


def test_a_worker_that_is_launched_by_an_agent_is_not_its_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crew that an agent starts belongs to nobody's run: its workers get SIGTERM and may hand over."""
    monkeypatch.setenv(AGENT_VARIABLE, "of the agent that starts the crew")
    processes = RealProcesses(tmp_path / "runtime")
    processes.launch("task", [sys.executable, "-c", AGENT, str(tmp_path)], {}, None)
    begin(tmp_path)
    processes.end("task")
    assert (tmp_path / "steps").read_text() == "one\ntwo\n"
