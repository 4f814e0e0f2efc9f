"""Tests that run the SQL statements of the how-to page in real database shells."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import WORKER_TRANSITIONS, TaskState, TransitionGuard
from rung.core.domain.errors import LeaseExpired
from rung.store.crew.conductor_key import load_key
from rung.store.crew.rows import NewTask
from tests.store.crew.shells import typed

if TYPE_CHECKING:
    from rung.store.crew.table import CrewTable

PAGE = Path(__file__).resolve().parents[3] / "docs/howto/write-a-crew-worker.md"
STATEMENTS = dict(
    re.findall(r"^### (.+?)\n.*?```(?:sql|text)\n(.*?)```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
)
TASK = "task-01"


class Shell:
    """Database shell that runs the statements of the page by their heading."""

    def __init__(self, place: str, key: str) -> None:
        self.place = place
        self.key = key
        self.used: set[str] = set()

    def run(self, heading: str, session: str = "s1", **values: str) -> str:
        """Run the statement under a heading and return the shell's output."""
        code, output, error = self.execute(heading, session, **values)
        assert code == 0, (heading, error)
        return output.strip()

    def execute(self, heading: str, session: str = "s1", **values: str) -> tuple[int, str, str]:
        """Run the statement under a heading and return exit code, output and error output."""
        self.used.add(heading)
        values = {"task": TASK, "session": session, "checkpoint": "1", "last": "0", "key": self.key, **values}
        sql = re.sub(r"\{(\w+)\}", lambda name: values.get(name[1], f"the {name[1]}"), STATEMENTS[heading])
        completed = typed(self.place, sql)
        return completed.returncode, completed.stdout, completed.stderr


@pytest.fixture
def shell(table: CrewTable, place: str) -> Shell:
    table.add_task(NewTask(task_id=TASK, instruction="do it"))
    return Shell(place, load_key(table.connection))


def test_a_whole_life_in_sql(table: CrewTable, shell: Shell) -> None:
    """Every statement of the page works: claim, heartbeat, error, fix, warning, review, hand-off, resumption, completion."""
    assert shell.run("Verify a claim") == ""
    shell.run("Claim a task")
    assert shell.run("Verify a claim") == f"{TASK}|1"
    shell.run("Claim a task", "s2")
    assert shell.run("Verify a claim", "s2") == ""
    shell.run("Report a blocked claim", "s2")
    assert [task.task_id for task in table.fallbacks()] == ["fallback-s2"]
    shell.run("Delete a blocked claim's fallback row", "s2")
    assert not table.fallbacks()
    shell.run("Send a heartbeat")
    _report_error_and_get_fix(table, shell)
    _warn_and_hand_off(table, shell)
    shell.run("Claim a task", "s3")
    shell.run("Resume another worker's task", "s3", previous="s1", step="4")
    shell.run("Request a review", "s3")
    assert (table.require_task(TASK).state, table.require_task(TASK).review_cycles) == (TaskState.NEEDS_REVIEW, 1)
    shell.run("Approve a review", "s3")
    shell.run("Continue after a reply", "s3")
    shell.run("Complete a task", "s3")
    found = table.require_task(TASK)
    assert (found.state, found.session_id, found.error_tries, found.warnings) == (TaskState.COMPLETE, "s3", 1, 1)
    assert [message.message_type.value for message in table.messages(TASK)] == [
        *("instruction", "claim_blocked", "error", "fix_proposal", "context_warning", "handoff", "resumption"),
        *("review_request", "approval", "completion"),
    ]
    assert shell.used == set(STATEMENTS) - {"Find stale workers"}


def _report_error_and_get_fix(table: CrewTable, shell: Shell) -> None:
    shell.run("Report an error", summary="tests fail", report="r.md")
    assert shell.run("Find unanswered errors") == f"{TASK}|tests fail|1|1"
    assert shell.run("Find context warnings") == ""
    shell.run("Propose a fix")
    assert "fix_proposal|FIX PROPOSAL (Retry 1/5):" in shell.run("Read replies", last="2")
    shell.run("Continue after a reply")
    assert table.require_task(TASK).state is TaskState.WORKING


def _warn_and_hand_off(table: CrewTable, shell: Shell) -> None:
    shell.run("Send a context warning")
    assert shell.run("Find unanswered errors") == ""
    assert shell.run("Find context warnings") == f"{TASK}|error|context_exhaustion_warning|1"
    shell.run("Hand off a task")
    assert table.require_task(TASK).state is TaskState.EXITED
    shell.run("Reset an abandoned task")
    assert (table.require_task(TASK).state, table.require_task(TASK).session_id) == (TaskState.WATCHING, "")


def test_stale_workers_are_found_whatever_they_wait_for(table: CrewTable, shell: Shell) -> None:
    """A worker without any heartbeat and a worker that waits for a review are found as stale."""
    claim = table.claim(TASK, "s1")
    assert shell.run("Find stale workers") == ""
    typed(shell.place, f"UPDATE orchestration_tasks SET last_heartbeat = NULL WHERE task_id = '{TASK}';")
    assert shell.run("Find stale workers") == f"{TASK}|working||"
    table.request_review(claim, "x", checkpoint=1)
    old = "2020-01-01 00:00:00"
    typed(shell.place, f"UPDATE orchestration_tasks SET last_heartbeat = '{old}' WHERE task_id = '{TASK}';")
    name, state, heartbeat, seconds = shell.run("Find stale workers").split("|")
    assert (name, state, heartbeat) == (TASK, "needs_review", old)
    assert float(seconds) > 100_000_000


def test_a_refusal_is_told_and_nothing_is_written(table: CrewTable, shell: Shell) -> None:
    """A stale worker's report and an unapproved completion are rejected, and neither inserts a message."""
    claim = table.claim(TASK, "s1")
    messages_before = len(table.messages())
    code, _, error = shell.execute("Report an error", "s2")
    assert code != 0
    assert "stop working on it" in error
    code, _, error = shell.execute("Complete a task")
    assert code != 0
    assert (
        "legal from there: needs_review (worker that has the task, after its message), error (worker that has the task,"
        " after its message), complete (worker once a review has approved" in error
    )
    assert len(table.messages()) == messages_before
    assert table.heartbeat(claim) is TaskState.WORKING
    shell.run("Reset an abandoned task")
    shell.run("Send a heartbeat")  # changes no row
    assert table.require_task(TASK).generation == 2
    with pytest.raises(LeaseExpired):
        table.heartbeat(claim)
    shell.run("Continue after a reply")
    assert table.require_task(TASK).state is TaskState.WATCHING


def test_what_an_unmodified_worker_runs_needs_no_transaction(table: CrewTable, shell: Shell, place: str) -> None:
    """Statements run one by one without a transaction, as an agent with a SQL tool runs them, take effect."""
    for sql in (
        (
            "UPDATE orchestration_tasks SET state = 'working', session_id = 'raw', worked_by = 'musician-task-01',"
            " started_at = datetime('now'), last_heartbeat = datetime('now'), retry_count = 0 WHERE task_id = 'task-01'"
            " AND state IN ('watching', 'fix_proposed', 'exit_requested');"
        ),
        (
            "INSERT INTO orchestration_messages (task_id, from_session, message, message_type) VALUES ('task-01', 'raw',"
            " 'ERROR (Retry 1/5): no such module', 'error');"
        ),
        (
            "UPDATE orchestration_tasks SET state = 'error', retry_count = retry_count + 1, last_error = 'no such module',"
            " last_heartbeat = datetime('now') WHERE task_id = 'task-01';"
        ),
    ):
        done = typed(place, sql)
        assert (done.returncode, done.stderr) == (0, "")
    asked = typed(
        place,
        "SELECT message FROM orchestration_messages WHERE task_id = 'task-01' AND message_type = 'error'"
        " ORDER BY timestamp DESC LIMIT 1;"
        "SELECT task_id, (julianday('now') - julianday(last_heartbeat)) * 86400 as seconds_stale FROM"
        " orchestration_tasks WHERE state IN ('working', 'review_approved', 'review_failed', 'fix_proposed')"
        " AND (julianday('now') - julianday(last_heartbeat)) * 86400 > 540;",
    )
    assert asked.stdout.strip() == "ERROR (Retry 1/5): no such module"
    found = table.require_task(TASK)
    assert (found.state, found.retry_count, found.error_tries, found.session_id) == (TaskState.ERROR, 1, 1, "raw")


def test_the_page_has_every_command_and_exit_code() -> None:
    """The page names every command of `rung worker`, the commands that create a crew, and every exit code."""
    from rung.cli.crew.worker import command
    from rung.cli.exit_codes import CLAIM_BLOCKED, LEASE_EXPIRED, NO_TASK_AVAILABLE, USAGE

    page = PAGE.read_text("utf-8")
    for name in command.commands:
        assert f"rung worker {name}" in page, name
    assert "rung crew init" in page
    assert "rung crew add" in page
    for code in (0, USAGE, NO_TASK_AVAILABLE, CLAIM_BLOCKED, LEASE_EXPIRED):
        assert f"| {code} |" in page, code


def test_the_page_has_every_legal_move() -> None:
    """The page lists every legal transition of a worker's row."""
    rows = re.findall(r"^\| (`.+?|any.+?) \| (.+?) \| .+? \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    said = {
        (before, after)
        for befores, afters in rows
        for before in re.findall(r"`(\w+)`", befores)
        for after in re.findall(r"`(\w+)`", afters)
    }
    for move in WORKER_TRANSITIONS:
        if move.guard not in {TransitionGuard.STALE, TransitionGuard.WARNED} and move.after is not TaskState.EXITED:
            assert (move.before.value, move.after.value) in said, move
