"""`rung worker` and `rung crew init|add`: what a shell agent needs instead of SQL, and what it is told when it errs."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from click.testing import CliRunner

from rung.cli.group import root
from rung.core.crew.contract import MessageType, TaskState
from rung.store.crew.rows import NewTask
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from pathlib import Path

TASK = "task-01"
HELD = ("--task", TASK, "--session", "s1", "--generation", "1")
WRITES = {
    "heartbeat": ("--progress", "3 files"),
    "error": ("boom",),
    "context-warning": ("--body", "65 %"),
    "review": ("--checkpoint", "1", "--body", "x"),
    "resume": (),
    "complete": (),
    "handoff": ("--body", "how far it got"),
}


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def facts(self) -> Any:
        return json.loads(self.out)


class Shell:
    """Somebody who types commands about one crew."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __call__(self, *words: str, given: str = "", environment: dict[str, str] | None = None) -> Done:
        done = CliRunner().invoke(
            root, list(words), input=given, env={"RUNG_CREW": self.place, **(environment or {})}, prog_name="rung"
        )
        assert not done.exception or isinstance(done.exception, SystemExit), done.exception
        return Done(done.exit_code, done.stdout, done.stderr)


@pytest.fixture
def shell(table: CrewTable, place: str) -> Shell:
    table.add_task(NewTask(task_id=TASK, instruction="write the parser"))
    return Shell(place)


def answered(table: CrewTable, to: TaskState) -> None:
    assert table.reply(table.require_task(TASK), to, f"now {to}", MessageType.SYSTEM)


def test_a_whole_life_by_commands(table: CrewTable, shell: Shell, tmp_path: Path) -> None:
    """Claim, beat, error, fix, review, completion; each says in JSON what came of it."""
    claimed = shell("worker", "claim", "--task", TASK, "--session", "s1", "--json").facts
    assert (claimed["generation"], claimed["instruction"]) == (1, "write the parser")
    assert shell("worker", "heartbeat", *HELD, "--progress", "1 of 7", "--json").facts == {
        "task": TASK,
        "state": "working",
    }
    report = tmp_path / "report.md"
    report.write_text("three tests fail", encoding="utf-8")
    done = shell("worker", "error", "tests fail", "--body-file", str(report), "--report", str(report), *HELD, "--json")
    assert done.facts == {"task": TASK, "tries": 1}
    assert table.messages(TASK)[-1].message == "three tests fail"
    answered(table, TaskState.FIX_PROPOSED)
    found = shell("worker", "messages", "--task", TASK, "--after", "2", "--json").facts["messages"]
    assert [message["message"] for message in found] == ["now fix_proposed"]
    assert shell("worker", "resume", *HELD).code == 0
    done = shell("worker", "review", "--checkpoint", "1", "--body-file", "-", *HELD, "--json", given="all green")
    assert done.facts == {"task": TASK, "checkpoint": 1, "cycle": 1}
    answered(table, TaskState.REVIEW_APPROVED)
    assert shell("worker", "complete", *HELD, "--json").facts["state"] == "complete"
    row = table.require_task(TASK)
    assert (row.state, row.progress, row.report_path) == (TaskState.COMPLETE, "1 of 7", str(report))


def test_variables_stand_for_options(table: CrewTable, shell: Shell) -> None:
    """`claim --shell` prints them; the next free task is taken where none is named."""
    done = shell("worker", "claim", "--shell")
    assert done.code == 0
    lines = [shlex.split(line)[1] for line in done.out.splitlines()]
    environment = dict(line.split("=", 1) for line in lines)
    assert environment["RUNG_TASK"] == TASK
    assert shell("worker", "heartbeat", environment=environment).out == "working\n"
    nothing = shell("worker", "claim")
    assert (nothing.code, nothing.out) == (3, "")
    assert "no task available" in nothing.err
    assert not table.fallbacks()


def test_a_blocked_claim_has_a_code_of_its_own(table: CrewTable, shell: Shell) -> None:
    """One line that says who has it; the fallback row is there."""
    assert shell("worker", "claim", "--task", TASK, "--session", "s1").code == 0
    done = shell("worker", "claim", "--task", TASK, "--session", "s2")
    assert (done.code, done.out) == (5, "")
    assert done.err == "rung: task-01 cannot be claimed by s2: it is working, owned by s1\n"
    assert [row.session_id for row in table.fallbacks()] == ["s2"]


def test_every_command_of_a_stale_worker_is_refused_and_told(table: CrewTable, shell: Shell) -> None:
    """Exit code 6, one line, nothing written."""
    table.claim(TASK, "s1")
    answered(table, TaskState.EXITED)
    answered(table, TaskState.WATCHING)
    table.claim(TASK, "s2")
    said = len(table.messages())
    for name, words in WRITES.items():
        done = shell("worker", name, *words, *HELD)
        assert (done.code, done.out) == (6, ""), name
        assert done.err.startswith("rung: s1 no longer owns task-01"), name
        assert done.err.endswith("stop working on it\n"), name
        assert done.err.count("\n") == 1, name
    row = table.require_task(TASK)
    assert (row.state, row.session_id, len(table.messages())) == (TaskState.WORKING, "s2", said)


def test_what_is_not_legal_now_says_what_is(table: CrewTable, shell: Shell) -> None:
    """Exit code 2: it is done before an approval, reported twice, or asked back after a request to stop."""
    claim = table.claim(TASK, "s1")
    assert "complete (worker once a review has approved it)" in _refused(shell("worker", "complete", *HELD))
    table.warn_context(claim, "65 %")
    assert "fix_proposed (conductor" in _refused(shell("worker", "error", "boom", *HELD))
    answered(table, TaskState.EXIT_REQUESTED)
    assert "by a claim that names its session" in _refused(shell("worker", "resume", *HELD))
    assert shell("worker", "heartbeat", *HELD).out == "exit_requested\n"
    assert shell("worker", "handoff", "--body", "step 3 is half done", *HELD).out == "exited\n"


def _refused(done: Done) -> str:
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("rung: ")
    assert done.err.count("\n") == 1
    return done.err


BAD = {
    "unknown task": (("worker", "claim", "--task", "task-99"), "a task of this crew: task-01"),
    "a session with blanks": (("worker", "claim", "--task", TASK, "--session", "a b"), "without whitespace"),
    "no generation": (("worker", "heartbeat", "--task", TASK, "--session", "s1"), "--generation"),
    "no number": (("worker", "heartbeat", *HELD[:-1], "one"), "must be a whole number from 0 to 2147483647"),
    "no checkpoint": (("worker", "review", *HELD), "--checkpoint"),
    "a checkpoint below 0": (("worker", "review", "--checkpoint", "-1", *HELD), "-1"),
    "the warning as an error": (
        ("worker", "error", "context_exhaustion_warning", *HELD),
        "report a context warning as such",
    ),
    "a file that is not there": (
        ("worker", "context-warning", "--body-file", "none.md", *HELD),
        "none.md: cannot be read",
    ),
    "said twice": (("worker", "context-warning", "--body", "a", "--body-file", "-", *HELD), "exclude each other"),
    "a hand-off without a word": (("worker", "handoff", *HELD), "a handoff needs a text"),
    "a type that is none": (("worker", "messages", "--task", TASK, "--type", "gossip"), "review_request"),
    "messages of nobody": (("worker", "messages", "--task", "task-99"), "a task of this crew"),
    "a task twice": (("crew", "add", TASK, "--body", "x"), "an id that no task of this crew has"),
    "a reserved name": (("crew", "add", "task-00", "--body", "x"), "not task-00"),
    "a bad name": (("crew", "add", "a b", "--body", "x"), "letters, digits"),
    "no instruction": (("crew", "add", "task-02", "--title", "a name"), "a text (--body)"),
    "a blank instruction": (("crew", "add", "task-02", "--body", "  "), "a text (--body)"),
    "after nobody": (("crew", "add", "task-02", "--after", "task-77", "--body", "x"), "another task that exists"),
    "after itself": (("crew", "add", "task-02", "--after", "task-02", "--body", "x"), "another task that exists"),
    "no patience": (
        ("crew", "add", "task-02", "--stale-after", "0", "--body", "x"),
        "must be a number of seconds, 1 or more",
    ),
    "half a command": (("crew", "add", "task-02", "--command", "sh -c 'x"), "no closing quotation"),
    "no command": (("crew", "add", "task-02", "--command", ""), "must be a command"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_used_is_said(tmp_path: Path, case: str) -> None:
    """Exit code 2, and nothing is written."""
    place = str(tmp_path / "crew.db")
    with CrewTable.open(place, create=True) as table:
        table.add_task(NewTask(task_id=TASK, instruction="do it"))
        table.claim(TASK, "s1")
        words, said = BAD[case]
        done = Shell(place)(*words)
        assert done.code == 2, done
        assert said in done.err
        assert "Traceback" not in done.err
        assert ([row.task_id for row in table.tasks()], len(table.messages())) == ([TASK], 1)
        assert table.require_task(TASK).state is TaskState.WORKING


def test_a_table_is_made_and_tasks_are_added(place: str) -> None:
    """By `init`, which leaves alone what is there; a task has all that it was given."""
    shell = Shell(place)
    assert "0 tasks" in shell("crew", "init").out
    assert shell("crew", "add", TASK, "--body", "write it", "--title", "parser").out == "added task-01\n"
    done = shell(
        *("crew", "add", "task-02", "--after", TASK, "--writes", "a.py", "--writes", "b.py", "--priority", "3"),
        *("--command", "sh -c 'echo hi'", "--stale-after", "60", "--instruction", "tasks/02.md", "--json"),
    )
    assert done.facts == {"task": "task-02"}
    assert shell("crew", "init", "--json").facts["tasks"] == 2
    with CrewTable.open(place) as table:
        found = table.require_task("task-02")
        assert (found.depends_on, found.writes, found.priority) == ((TASK,), ("a.py", "b.py"), 3)
        assert (found.command, found.stale_after) == (("sh", "-c", "echo hi"), 60)
        assert [message.message for message in table.messages()] == ["write it", "tasks/02.md"]


def test_the_real_command_too(tmp_path: Path) -> None:
    """As a process of its own: its exit code, its one line, and no Rich in it."""
    place = str(tmp_path / "crew.db")
    CrewTable.open(place, create=True).close()
    command = [sys.executable, "-m", "rung", "worker", "claim", "--task", "nobody", "--db", place]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "rung: task: 'nobody' is invalid; must be a task of this crew: none yet\n"
