"""A worker that has to leave while its agent runs a tool: the successor's agent is the only one that goes on."""

from __future__ import annotations

import os
import pty
import shlex
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import MessageType
from rung.store.crew.rows import NewTask
from rung.store.crew.table import CrewTable
from tests.crew.running import RUNG

if TYPE_CHECKING:
    from pathlib import Path

    from tests.crew.running import RunningCrew

# Like Claude Code: tools run in sessions of their own. On SIGTERM the running tool is ended, and the next step is taken,
# which the session file does not have.
AGENT = f"""#!{sys.executable}
import os, pathlib, signal, subprocess
from rung.engine.process_identity import lookup
session, before, asked = pathlib.Path("session"), pathlib.Path("agent.pid"), []
tool = None
def end(*_):
    asked.append(True)
    tool.kill()
signal.signal(signal.SIGTERM, end)
if before.exists() and lookup(int(before.read_text())) is not None:
    pathlib.Path("overlap").touch()
before.write_text(str(os.getpid()))
for step in range(int(session.read_text()) + 1 if session.exists() else 1, 5):
    if not asked:
        session.write_text(str(step))
    tool = subprocess.Popen(["sh", "tool", str(step)], start_new_session=True)
    tool.wait()
"""
# The second step warns of a full context, and still runs when the worker is asked to exit.
WARNING = "Context Usage: 91%\\nSelf-Correction: NO\\nDeviations: none\\nDistance: 2 steps\\nAgents Remaining: 0\\nProposal: stop"
TOOL = f"""
echo "step $1" >> done.txt
if [ "$1" = 2 ]; then
    printf '%b' '{WARNING}' > warning
    {" ".join(RUNG)} worker context-warning --body "$(cat warning)"
    sleep 600
fi
"""


def agent_in(crew: RunningCrew, tool: str) -> Path:
    """Write the agent and its tool into the folder of a crew, and return the program."""
    program = crew.folder / "claude"
    program.write_text(AGENT)
    program.chmod(0o755)
    (crew.folder / "tool").write_text(tool)
    return program


@pytest.mark.parametrize("crew", ["sqlite"], indirect=True)
@pytest.mark.parametrize("wrapper", [[], ["timeout", "600"]], ids=["agent", "timeout"])
def test_no_step_is_taken_twice_at_a_hand_over(crew: RunningCrew, wrapper: list[str]) -> None:
    """The agent of the worker that leaves takes no step more, and is gone before its successor begins."""
    program = agent_in(crew, TOOL)
    command = [*RUNG, "worker", "run", "--check", "true", "--poll-interval", "0.2", "--"]
    task = {"id": "task-01", "workdir": ".", "command": [*command, *wrapper, str(program), "-p", "{instruction}"]}
    crew.plan([task], workers=1)
    crew.run()
    crew.until(lambda: crew.task("task-01").state == "complete", 60.0)
    assert (crew.folder / "done.txt").read_text().split("\n")[:-1] == [f"step {n}" for n in range(1, 5)]
    assert not (crew.folder / "overlap").exists()


@pytest.mark.parametrize("crew", ["sqlite"], indirect=True)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_worker_that_is_ended_by_a_signal_hands_over(crew: RunningCrew, number: signal.Signals) -> None:
    """A signal to the worker alone ends its agent, which takes no step more, and the task is free for a successor."""
    program = agent_in(crew, 'echo "step $1" >> done.txt\nsleep 600\n')
    with CrewTable.open(crew.url, create=True) as table:
        table.add_task(NewTask(task_id="task-01", instruction="do it"))
    words = ["worker", "run", "--db", crew.url, "--task", "task-01", "--poll-interval", "0.2", "--"]
    worker = crew.start(*words, str(program), "-p", "{instruction}")
    crew.until((crew.folder / "done.txt").read_text, 60.0)
    worker.send_signal(number)
    assert worker.wait(60) == 128 + number
    assert crew.processes(str(program)) == []
    assert (crew.folder / "done.txt").read_text() == "step 1\n"
    assert crew.task("task-01").state == "exited"
    (text,) = crew.messages("task-01", MessageType.HANDOFF)
    assert number.name in text


@pytest.mark.parametrize("crew", ["sqlite"], indirect=True)
def test_ctrl_c_in_a_terminal_reaches_the_worker_alone(crew: RunningCrew) -> None:
    """In a terminal, Ctrl-C is the worker's: the agent is ended by it, and gets no interrupt before the hand-over."""
    with CrewTable.open(crew.url, create=True) as table:
        table.add_task(NewTask(task_id="task-01", instruction="do it"))
    heard = shlex.quote(str(crew.folder / "heard"))
    agent = f"trap 'echo INT >> {heard}' INT; trap 'echo TERM >> {heard}; exit' TERM; echo up >> {heard}; while :; do sleep 0.1; done"
    words = [
        *RUNG,
        "worker",
        "run",
        "--db",
        crew.url,
        "--task",
        "task-01",
        "--poll-interval",
        "0.2",
        "--",
        "sh",
        "-c",
        agent,
    ]
    worker, terminal = pty.fork()
    if worker == 0:  # pragma: no cover  # the child: replaced at once
        os.execv(words[0], words)
    crew.until((crew.folder / "heard").exists, 60.0)
    os.write(terminal, b"\x03")
    assert os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) == 130
    os.close(terminal)
    assert (crew.folder / "heard").read_text().split() == ["up", "TERM"]
    assert crew.task("task-01").state == "exited"
    assert "Ctrl-C" in crew.messages("task-01", MessageType.HANDOFF)[0]
