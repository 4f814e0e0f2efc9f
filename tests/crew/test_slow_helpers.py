"""A crew whose helpers take long: the conductor stays awake, and ends them with itself. Real processes."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from rung.adapters.system.pid_file import read_pid
from rung.core.crew.contract import WATCHDOG, MessageType, TaskState
from rung.engine.process_identity import ProcessId, is_alive, lookup
from rung.store.crew.table import CrewTable
from tests.crew.test_conducted import GOOD, RUNG, SLOW, Place, place

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["place"]
pytestmark = pytest.mark.usefixtures("measured_processes")  # the conductor is a process of its own

# A helper that notes its process and its child's, and answers once there is a file of this name beside it.
HELPER = """
import json, os, pathlib, subprocess, sys, time
folder = pathlib.Path(__file__).parent
asked = json.load(sys.stdin)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open(folder / "helpers", "a") as file:
    file.write(json.dumps({"pids": [os.getpid(), child.pid], "asked": asked}) + "\\n")
while not (folder / "answer.json").exists():
    time.sleep(0.05)
child.kill()
print((folder / "answer.json").read_text())
"""


def failing(text: str) -> list[str]:
    return [
        *RUNG,
        "worker",
        "run",
        "--poll-interval",
        "0.1",
        "--",
        "sh",
        "-c",
        f"cat >/dev/null; echo '{text}' >&2; exit 1",
    ]


class Helper:
    """The command of a slow helper, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "helper.py").write_text(HELPER)
        self.command = [sys.executable, str(folder / "helper.py")]

    def runs(self) -> list[dict[str, Any]]:
        file = self.folder / "helpers"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def processes(self) -> list[ProcessId | None]:
        return [lookup(number) for run in self.runs() for number in run["pids"]]

    def answer(self, **answer: Any) -> None:
        (self.folder / "answer.new").write_text(json.dumps(answer))
        (self.folder / "answer.new").rename(self.folder / "answer.json")


@pytest.fixture
def helper(tmp_path: Path) -> Helper:
    return Helper(tmp_path)


def conductor(place: Place) -> ProcessId:
    pid = read_pid(place.runtime / "pids" / "conductor.pid")
    assert pid is not None
    return pid


def are_gone(processes: list[ProcessId | None]) -> Callable[[], bool]:
    return lambda: not any(process is not None and is_alive(process) for process in processes)


def relaunches(place: Place) -> list[str]:
    return [text for text in place.messages(WATCHDOG, MessageType.WARNING) if "RELAUNCH" in text]


def test_heartbeats_and_other_tasks_go_on_while_instructions_are_written(place: Place, helper: Helper) -> None:
    """A judge that writes for longer than `conductor_stale` has no conductor replaced, and other tasks are carried out."""
    (place.folder / "empty.md").write_text("")
    place.plan(
        [
            {"id": "a", "instruction_path": "empty.md", "priority": 9},
            {"id": "b"},
            {"id": "c", "depends_on": ["b"]},
        ],
        judge=helper.command,
        conductor_stale=2.0,
        workers=1,
    )
    place.start()
    place.until(helper.runs)
    began = time.monotonic()
    place.until_state("c", TaskState.COMPLETE)
    place.until(lambda: time.monotonic() - began > 4.0)
    assert relaunches(place) == []
    helper.answer(instructions="Do a.")
    code, said = place.end()
    assert code == 0, said + place.log()
    assert len(helper.runs()) == 1


def test_a_slow_judge_holds_up_no_other_answer(place: Place, helper: Helper) -> None:
    """While a cause is investigated, another task's error is answered, its review too, and it completes."""
    flag = place.folder / "flag"
    once = [
        "sh",
        "-c",
        f"cat >/dev/null; test -e {flag} && echo done && exit; touch {flag}; echo 'ls: x: No such file or directory' >&2; exit 1",
    ]
    place.plan(
        [
            {"id": "a", "command": failing("deadlock in the queue")},
            {"id": "b", "command": [*GOOD[: GOOD.index("--") + 1], *once], "depends_on": []},
        ],
        judge=[*helper.command],
        workers=2,
    )
    place.start()
    place.until(lambda: len(helper.runs()) == 2)
    assert {run["asked"]["task"] for run in helper.runs()} == {"a", "b"}
    assert {run["asked"]["question"] for run in helper.runs()} == {"investigate", "propose"}
    place.say("crew", "reply", "b", "--fix", "it is there now")
    place.until_state("b", TaskState.COMPLETE)
    assert place.task("a").state is TaskState.ERROR
    place.until(lambda: "moved on while a helper was at work" in place.log())
    assert place.messages("b", MessageType.FIX_PROPOSAL) == ["it is there now"]


@pytest.mark.usefixtures("unmeasured_processes")
@pytest.mark.parametrize("how", ["stop", "SIGTERM", "SIGKILL"])
def test_helpers_end_with_their_conductor(place: Place, helper: Helper, how: str) -> None:
    """`crew stop`, SIGTERM and SIGKILL wait for no helper: its process group is ended, and nothing of it is applied."""
    place.plan([{"id": "a", "command": failing("deadlock in the queue")}], judge=helper.command)
    place.start()
    place.until(helper.runs)
    processes = helper.processes()
    assert None not in processes
    if how == "stop":
        assert place.say("crew", "stop", "--why", "enough").returncode == 0
    else:
        os.kill(conductor(place).number, getattr(signal, how))
    place.until(are_gone(processes))
    assert place.messages("a", MessageType.FIX_PROPOSAL) == []
    if how != "SIGKILL":
        place.end()
        assert place.task("a").state is TaskState.EXITED


def test_a_pause_ends_with_its_consultation(place: Place, helper: Helper) -> None:
    """Whoever was told to pause is told that it is over, and tasks are dispatched again."""
    old = place.plan(
        [
            {"id": "a", "command": failing("this needs an architectural decision")},
            {"id": "b", "command": SLOW},
            {"id": "c", "depends_on": ["a"]},
        ],
        replanner=helper.command,
        workers=2,
    )
    place.start()
    place.until(helper.runs)
    place.until_state("b", TaskState.WORKING)
    place.until(lambda: place.messages("a", MessageType.EMERGENCY))
    new = {
        "crew": {**old["crew"], "revision": 2},
        "task": [{"id": "a", "instruction": "another way", "mark": "REVISED"}, *old["task"][1:]],
    }
    helper.answer(plan=new)
    place.until_state("c", TaskState.COMPLETE)
    for task in ("a", "b"):
        said = place.messages(task, MessageType.EMERGENCY)
        assert [text.split(":")[0] for text in said] in (["PAUSE", "RESUME"], []), said
    assert "the plan was changed (revision 2)" in place.messages("a", MessageType.EMERGENCY)[-1]


def test_a_pause_does_not_outlive_a_crash(place: Place, helper: Helper) -> None:
    """After a power cut in a consultation, and an end of its task, the next run dispatches the other tasks."""
    place.plan(
        [{"id": "a", "command": failing("this needs an architectural decision")}, {"id": "b", "depends_on": []}],
        replanner=helper.command,
        workers=1,
        attended=True,
    )
    place.start()
    place.until(helper.runs)
    for name in ("souffleur", "conductor", "a"):
        pid = read_pid(place.runtime / "pids" / f"{name}.pid")
        if pid is not None:
            os.killpg(pid.number, signal.SIGKILL)
    assert place.front is not None
    place.front.kill()
    place.front.communicate()
    with CrewTable.open(str(place.db)) as table:
        assert table.get_fact("paused")
        table.update_columns("b", priority=9)
    assert place.say("crew", "stop", "a").returncode == 0
    (place.folder / "helpers").unlink()
    place.start()
    place.until_state("b", TaskState.COMPLETE)
