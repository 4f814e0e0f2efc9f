"""A crew as a user runs it: real processes, a watchdog, a person's answers and a new plan."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from rung.adapters.system.pid_file import read_pid
from rung.core.crew.contract import CONDUCTOR, WATCHDOG, MessageType, TaskState
from rung.core.policy.serializer import to_toml
from rung.engine.process_identity import ProcessId, is_alive
from rung.store.crew.table import CrewTable
from tests.store.crew.shells import sqlite3_shell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rung.store.crew.rows import TaskRow

LONG = 240.0
pytestmark = pytest.mark.usefixtures("measured_processes")  # the conductor is a process of its own
RUNG = [sys.executable, "-m", "rung"]
GOOD = [
    *RUNG,
    "worker",
    "run",
    "--check",
    "true",
    "--poll-interval",
    "0.1",
    "--",
    "sh",
    "-c",
    "cat >/dev/null; echo done",
]
SLOW = [*RUNG, "worker", "run", "--check", "true", "--poll-interval", "0.1", "--", "sleep", "600"]


class Place:
    """A folder with a plan and the crew that runs it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.db = folder / "crew.db"
        self.runtime = folder / "crew.db.d"
        self.environment = {**os.environ, "RUNG_JOURNAL": str(folder / "journal.db"), "RUNG_CREW": str(self.db)}
        self.front: subprocess.Popen[str] | None = None

    def plan(self, tasks: list[dict[str, Any]], **crew: Any) -> dict[str, Any]:
        settings = {"name": "c", "worker": GOOD, "poll": 0.1, "beat": 0.5, "stale_after": 30.0, "grace": 2.0, **crew}
        lines = ["[crew]", to_toml(settings)]
        tasks = [task if "instruction_path" in task else {"instruction": f"do {task['id']}", **task} for task in tasks]
        for task in tasks:
            lines += ["[[task]]", to_toml(task)]
        (self.folder / "plan.toml").write_text("\n".join(lines))
        return {"crew": settings, "task": tasks}

    def start(self, *options: str) -> None:
        command = [*RUNG, "crew", "run", str(self.folder / "plan.toml"), "--db", str(self.db), *options]
        self.front = subprocess.Popen(
            command, env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def end(self) -> tuple[int, str]:
        assert self.front is not None
        said, _ = self.front.communicate(timeout=LONG)
        return self.front.returncode, said

    def say(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*RUNG, *words], env=self.environment, text=True, capture_output=True, check=False)

    def task(self, name: str) -> TaskRow:
        with CrewTable.open(str(self.db)) as table:
            found = table.task(name)
        assert found is not None
        return found

    def messages(self, name: str, *types: MessageType) -> list[str]:
        with CrewTable.open(str(self.db)) as table:
            return [message.message for message in table.messages(name, types=types)]

    def until(self, true: Callable[[], object]) -> None:
        end = time.monotonic() + LONG
        while not true():
            assert time.monotonic() < end, self.log()
            time.sleep(0.05)

    def until_state(self, name: str, *states: TaskState) -> None:
        self.until(lambda: self.db.exists() and self.db.stat().st_size and self.state(name) in states)

    def state(self, name: str) -> TaskState | None:
        try:
            return self.task(name).state
        except Exception:  # it is only being made
            return None

    def log(self) -> str:
        return "\n".join(file.read_text() for file in sorted(self.runtime.glob("logs/*.log")))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    if made.front is not None:
        if made.front.poll() is None:
            made.say("crew", "stop", "--why", "the test is over")
        try:
            made.front.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            made.front.kill()
            made.front.communicate()
    for file in made.runtime.glob("pids/*.pid"):
        pid = read_pid(file)
        if pid is not None and is_alive(pid):
            os.killpg(pid.number, signal.SIGKILL)


def test_a_plan_is_carried_out(place: Place) -> None:
    """Exit code 0, every task complete, no PID file left."""
    place.plan([{"id": "task-01"}, {"id": "task-02", "depends_on": ["task-01"]}], workers=2)
    place.start()
    code, said = place.end()
    assert code == 0, said
    assert "2 of 2 tasks complete" in said
    assert list((place.runtime / "pids").iterdir()) == []
    assert place.task(CONDUCTOR).state is TaskState.COMPLETE
    assert place.task(WATCHDOG).state is TaskState.COMPLETE


def test_the_conductor_waits_for_its_watchdog(place: Place) -> None:
    """No task is dispatched before the watchdog has confirmed."""
    place.plan([{"id": "task-01", "command": SLOW}])
    place.start()
    place.until_state("task-01", TaskState.WORKING)
    assert place.task(WATCHDOG).state is TaskState.CONFIRMED


def test_each_replaces_the_other(place: Place) -> None:
    """A killed watchdog is replaced by the conductor, a killed conductor by the watchdog."""
    place.plan([{"id": "task-01", "command": SLOW}])
    place.start()
    place.until_state("task-01", TaskState.WORKING)
    for name in ("souffleur", "conductor", "souffleur"):
        file = place.runtime / "pids" / f"{name}.pid"
        before = read_pid(file)
        assert before is not None
        os.kill(before.number, signal.SIGKILL)
        place.until(partial(another, file, before))
        place.until(lambda: place.task(WATCHDOG).state is TaskState.CONFIRMED)
    assert place.task("task-01").generation == 1


def test_a_hand_over_keeps_its_order(place: Place) -> None:
    """A hand-over writes its files, marks and ends the workers, then sets the state that starts the next conductor."""
    place.plan([{"id": "task-01", "command": SLOW}])
    place.start()
    place.until_state("task-01", TaskState.WORKING)
    place.until(lambda: place.task("task-01").progress)  # without any there would be nothing to hand over
    worker = read_pid(place.runtime / "pids" / "task-01.pid")
    assert worker is not None
    assert place.say("crew", "stop", "--why", "context runs out", "--hand-over").returncode == 0
    place.until(lambda: place.task("task-01").generation == 2)
    assert not is_alive(worker)
    assert "context runs out" in (place.runtime / "temp" / "HANDOFFS" / "Conductor" / "handoff.md").read_text()
    assert f"task-01: PID {worker.number}, session" in (place.runtime / "MEMORY.md").read_text()
    assert any("asked for a successor" in text for text in place.messages(WATCHDOG, MessageType.WARNING))
    with CrewTable.open(str(place.db)) as table:
        said = table.messages("task-01")
    order = [message.message.split(":")[0].split(" (")[0] for message in said]
    assert order.index("EXITED") < order.index("HANDOFF")


@pytest.mark.parametrize(
    ("how", "code", "reason"),
    [("stop", 7, "the release is cut"), ("conductor", 7, "stopped by a signal"), ("front", 143, "SIGTERM")],
)
def test_a_crew_that_is_stopped_says_who_stopped_it(place: Place, how: str, code: int, reason: str) -> None:
    """A stop that somebody asked for has its own exit code and sentence, which `crew status` repeats."""
    place.plan([{"id": "task-01", "command": SLOW}, {"id": "task-02", "depends_on": ["task-01"]}])
    place.start()
    place.until_state("task-01", TaskState.WORKING)
    conductor = read_pid(place.runtime / "pids" / "conductor.pid")
    assert conductor is not None
    assert place.front is not None
    if how == "stop":
        place.say("crew", "stop", "--why", reason)
    else:
        os.kill(conductor.number if how == "conductor" else place.front.pid, signal.SIGTERM)
    ended, said = place.end()
    assert ended == code, said
    assert f"rung: the crew was stopped: {reason}. Run it again to continue it." in said
    assert json.loads(place.say("crew", "status", "--json").stdout)["stopped"] == reason


def test_a_conductor_that_gets_nowhere_is_given_up(place: Place) -> None:
    """After three relaunches without progress, the watchdog gives up."""
    place.plan([{"id": "task-01", "command": SLOW}], poll=0.5)
    place.start()
    place.until_state("task-01", TaskState.WORKING)
    file = place.runtime / "pids" / "conductor.pid"
    for _ in range(5):
        before = read_pid(file)
        if before is None:
            break
        os.kill(before.number, signal.SIGKILL)
        place.until(partial(lambda old: another(file, old) or place.task(WATCHDOG).state is TaskState.ERROR, before))
        if place.task(WATCHDOG).state is TaskState.ERROR:
            break
    assert place.task(WATCHDOG).state is TaskState.ERROR
    assert any("without progress" in text for text in place.messages(WATCHDOG, MessageType.EMERGENCY))
    code, said = place.end()
    assert code == 1, said
    assert "the crew has not ended: GIVEN UP: relaunched 3 times without progress" in said


@pytest.mark.usefixtures("unmeasured_processes")
@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_crew_in_order(place: Place, number: int, exit_code: int) -> None:
    """Ctrl-C and SIGTERM exit with their code, mark and end the worker; the same command resumes."""
    place.plan([{"id": "task-01", "command": SLOW}, {"id": "task-02"}], workers=2)
    place.start()
    place.until_state("task-01", TaskState.WORKING)
    place.until_state("task-02", TaskState.COMPLETE)
    assert place.front is not None
    place.front.send_signal(number)
    code, said = place.end()
    assert code == exit_code, said
    assert place.task("task-01").state is TaskState.EXITED
    assert list((place.runtime / "pids").iterdir()) == []
    with CrewTable.open(str(place.db)) as table:
        table.update_columns("task-01", command=GOOD)
    place.start()
    code, said = place.end()
    assert code == 0, said
    assert place.task("task-02").generation == 1


def test_a_person_answers(place: Place) -> None:
    """In an attended crew, a task waits for a person, whose reply reaches its worker unchanged."""
    script = place.folder / "needs.sh"
    script.write_text(
        "read -r line\ncase \"$line\" in *use\\ port\\ 8*) echo done;; *) echo 'invalid x-api-key' >&2; exit 1;; esac\n"
    )
    command = [*RUNG, "worker", "run", "--check", "true", "--poll-interval", "0.1", "--", "sh", str(script)]
    place.plan([{"id": "task-01", "command": command}], attended=True)
    place.start()
    place.until(lambda: place.state("task-01") is TaskState.ERROR and place.task("task-01").note.startswith("asks:"))
    assert "asks" in place.say("crew", "status").stdout
    told = place.say("crew", "reply", "task-01", "use port 8", "--fix")
    assert told.returncode == 0, told.stderr
    code, said = place.end()
    assert code == 0, said


def test_rung_in_a_plan_is_the_running_installation(place: Place) -> None:
    """A worker and a judge named `rung` are found where the environment of the installation is not activated."""
    place.environment["PATH"] = "/usr/bin:/bin"
    assert shutil.which("rung", path=place.environment["PATH"]) is None
    place.plan([{"id": "task-01", "command": ["rung", *GOOD[len(RUNG) :]]}], judge=["rung", "--version"])
    place.start()
    code, said = place.end()
    assert code == 0, said + place.log()


def test_a_new_plan_is_carried_over(place: Place) -> None:
    """The replanner gets the blocker report; its plan revises, adds and removes tasks, and rolls back first."""
    bad = [
        *RUNG,
        "worker",
        "run",
        "--poll-interval",
        "0.1",
        "--",
        "sh",
        "-c",
        "echo 'this needs an architectural decision' >&2; exit 1",
    ]
    log = place.folder / "order.log"
    note = [
        *RUNG,
        "worker",
        "run",
        "--check",
        "true",
        "--poll-interval",
        "0.1",
        "--",
        "sh",
        "-c",
        f"echo $RUNG_TASK >>{log}",
    ]
    old = place.plan(
        [{"id": "task-01", "command": bad}, {"id": "task-02", "depends_on": ["task-01"]}],
        worker=note,
        replanner=[sys.executable, str(place.folder / "replan.py")],
    )
    new = {
        "crew": {**old["crew"], "revision": 2},
        "task": [
            {"id": "task-01", "instruction": "do it another way", "mark": "REVISED"},
            {"id": "task-02", "mark": "REMOVED"},
            {"id": "task-03", "instruction": "new", "depends_on": ["task-01"]},
            {"id": "undo-01", "instruction": "take it back", "mark": "ROLLBACK"},
        ],
    }
    (place.folder / "new.json").write_text(json.dumps(new))
    (place.folder / "replan.py").write_text(
        "import json, sys, pathlib\n"
        f"folder = pathlib.Path({str(place.folder)!r})\n"
        "asked = json.load(sys.stdin)\n"
        "(folder / 'asked.md').write_text(asked['blocker'])\n"
        "print(json.dumps({'plan': json.loads((folder / 'new.json').read_text())}))\n"
    )
    place.start()
    code, said = place.end()
    assert code == 0, said + place.log()
    assert log.read_text().split() == ["undo-01", "task-01", "task-03"]
    assert place.task("task-02").outcome == "removed"
    assert place.task("task-01").plan_mark == "REVISED"
    asked = (place.folder / "asked.md").read_text()
    for part in ("architectural decision", "task-02", "What was tried", "git"):
        assert part in asked


def test_a_plan_that_cannot_run_is_refused(place: Place) -> None:
    """A plan with a conflict is rejected with one line and exit code 2."""
    place.plan([{"id": "task-01", "writes": ["a.py"]}, {"id": "task-02", "writes": ["a.py"]}])
    done = place.say("crew", "run", str(place.folder / "plan.toml"))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "both write a.py" in done.stderr


def test_a_worker_that_knows_only_sql(place: Place) -> None:
    """The sqlite3 shell works with a running conductor: claim, error, fix, review, approval, completion."""
    place.plan([{"id": "task-01"}], worker=["true"], stale_after=60.0, claim_within=600.0)
    assert place.say("crew", "init").returncode == 0
    assert place.say("crew", "add", "task-02", "--body", "by hand").returncode == 0
    with CrewTable.open(str(place.db)) as table:
        table.set_fact("plan", "")
    conductor = subprocess.Popen(
        [*RUNG, "crew", "conduct"], env=place.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        sql(place.db, _CLAIM)
        sql(place.db, _ERROR)
        place.until_state("task-02", TaskState.FIX_PROPOSED)
        assert re.match(r"FIX PROPOSAL \(Retry 1/5\)", place.messages("task-02", MessageType.FIX_PROPOSAL)[0])
        sql(place.db, _RESUME)
        sql(place.db, _REVIEW)
        place.until_state("task-02", TaskState.REVIEW_APPROVED)
        sql(place.db, _RESUME)
        sql(place.db, _COMPLETE)
        assert conductor.wait(LONG) == 0
    finally:
        conductor.kill()
        conductor.wait()
    assert place.task("task-02").outcome == "complete"


def another(file: Path, before: ProcessId) -> bool:
    """Return whether another live process has taken the place of this one."""
    now = read_pid(file)
    return now is not None and now != before and is_alive(now)


def sql(db: Path, text: str) -> str:
    done = subprocess.run(
        [sqlite3_shell(), "-cmd", ".timeout 30000", str(db), text], capture_output=True, text=True, check=True
    )
    return done.stdout


_CLAIM = """UPDATE orchestration_tasks SET state = 'working', session_id = 's1', worked_by = 'musician-task-02',
started_at = datetime('now'), last_heartbeat = datetime('now'), retry_count = 0
WHERE task_id = 'task-02' AND state IN ('watching', 'fix_proposed', 'exit_requested');"""
_ERROR = """INSERT INTO orchestration_messages (task_id, from_session, message, message_type) VALUES
('task-02', 's1', 'ERROR (Retry 1/5):
Context Usage: 20%
Self-Correction: NO
Error: ImportError: No module named foo
Report: docs/error-1.md
Awaiting conductor fix proposal', 'error');
UPDATE orchestration_tasks SET state = 'error', retry_count = retry_count + 1,
last_error = 'ImportError: No module named foo', last_heartbeat = datetime('now') WHERE task_id = 'task-02';"""
_RESUME = (
    "UPDATE orchestration_tasks SET state = 'working', last_heartbeat = datetime('now') WHERE task_id = 'task-02';"
)
_REVIEW = """INSERT INTO orchestration_messages (task_id, from_session, message, message_type) VALUES
('task-02', 's1', 'CHECKPOINT 1: REVIEW REQUEST
Context Usage: 40%
Self-Correction: NO
Deviations: 0
Agents Remaining: 0
Proposal: N/A
Summary: it works
Files Modified: 1
Tests: all pass
Smoothness: 1
Reason: as planned
Key Outputs: a.py (created)', 'review_request');
UPDATE orchestration_tasks SET state = 'needs_review', last_heartbeat = datetime('now') WHERE task_id = 'task-02';"""
_COMPLETE = """INSERT INTO orchestration_messages (task_id, from_session, message, message_type) VALUES
('task-02', 's1', 'TASK COMPLETE', 'completion');
UPDATE orchestration_tasks SET state = 'complete', completed_at = datetime('now'), last_heartbeat = datetime('now')
WHERE task_id = 'task-02';"""
