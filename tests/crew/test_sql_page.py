"""The statements on the page, read from it and typed into the real shells: they do what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rung.core.crew import MOVES, State, When
from rung.core.errors import StaleClaim
from rung.store.crew.rows import NewTask
from tests.crew.shells import typed

if TYPE_CHECKING:
    from rung.store.crew.table import Table

PAGE = Path(__file__).resolve().parents[2] / "docs/howto/work-for-a-crew.md"
STATEMENTS = dict(re.findall(r"^### (.+?)\n.*?```sql\n(.*?)```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL))
TASK = "task-01"


class Shell:
    """Somebody with the page and a shell."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.used: set[str] = set()

    def tells(self, heading: str, session: str = "s1", **words: str) -> str:
        """Type what stands under a heading; what the shell prints."""
        done = self.types(heading, session, **words)
        assert done[0] == 0, (heading, done)
        return done[1].strip()

    def types(self, heading: str, session: str = "s1", **words: str) -> tuple[int, str, str]:
        self.used.add(heading)
        words = {"task": TASK, "session": session, "checkpoint": "1", "last": "0", **words}
        sql = re.sub(r"\{(\w+)\}", lambda name: words.get(name[1], f"the {name[1]}"), STATEMENTS[heading])
        done = typed(self.place, sql)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def shell(table: Table, place: str) -> Shell:
    table.add(NewTask(task_id=TASK, instruction="do it"))
    return Shell(place)


def test_a_whole_life_in_sql(table: Table, shell: Shell) -> None:
    """Claim, beat, error, fix, warning, review, hand-off, resumption, completion: every statement of the page."""
    assert shell.tells("Did I get it?") == ""
    shell.tells("Claim a task")
    assert shell.tells("Did I get it?") == f"{TASK}|1"
    shell.tells("Claim a task", "s2")
    assert shell.tells("Did I get it?", "s2") == ""
    shell.tells("Blocked: somebody else has it", "s2")
    assert [task.task_id for task in table.fallbacks()] == ["fallback-s2"]
    shell.tells("Clean up after a blocked claim", "s2")
    assert not table.fallbacks()
    shell.tells("Give a sign of life")
    _errs_and_is_answered(table, shell)
    _warns_and_hands_off(table, shell)
    shell.tells("Claim a task", "s3")
    shell.tells("Take up another's work", "s3", previous="s1", step="4")
    shell.tells("Ask for a review", "s3")
    assert (table.known(TASK).state, table.known(TASK).review_cycles) == (State.NEEDS_REVIEW, 1)
    shell.tells("Approve a review", "s3")
    shell.tells("Go on after an answer", "s3")
    shell.tells("Complete it", "s3")
    found = table.known(TASK)
    assert (found.state, found.session_id, found.error_tries, found.warnings) == (State.COMPLETE, "s3", 1, 1)
    assert [message.message_type.value for message in table.messages(TASK)] == [
        *("instruction", "claim_blocked", "error", "fix_proposal", "context_warning", "handoff", "resumption"),
        *("review_request", "approval", "completion"),
    ]
    assert shell.used == set(STATEMENTS) - {"Stale workers"}


def _errs_and_is_answered(table: Table, shell: Shell) -> None:
    shell.tells("Report an error", summary="tests fail", report="r.md")
    assert shell.tells("Errors to be answered") == f"{TASK}|tests fail|1|1"
    assert shell.tells("Context warnings") == ""
    shell.tells("Propose a fix")
    assert "fix_proposal|FIX PROPOSAL (Retry 1/5):" in shell.tells("Read what was answered", last="2")
    shell.tells("Go on after an answer")
    assert table.known(TASK).state is State.WORKING


def _warns_and_hands_off(table: Table, shell: Shell) -> None:
    shell.tells("Warn that the context runs out")
    assert shell.tells("Errors to be answered") == ""
    assert shell.tells("Context warnings") == f"{TASK}|error|context_exhaustion_warning|1"
    shell.tells("Hand it off")
    assert table.known(TASK).state is State.EXITED
    shell.tells("Reset a task whose worker is gone")
    assert (table.known(TASK).state, table.known(TASK).session_id) == (State.WATCHING, "")


def test_stale_workers_are_found_whatever_they_wait_for(table: Table, shell: Shell) -> None:
    """Also one that never gave a sign of life, and one that waits for a verdict."""
    claim = table.claim(TASK, "s1")
    assert shell.tells("Stale workers") == ""
    typed(shell.place, f"UPDATE orchestration_tasks SET last_heartbeat = NULL WHERE task_id = '{TASK}';")
    assert shell.tells("Stale workers") == f"{TASK}|working||"
    table.ask_review(claim, "x", checkpoint=1)
    old = "2020-01-01 00:00:00"
    typed(shell.place, f"UPDATE orchestration_tasks SET last_heartbeat = '{old}' WHERE task_id = '{TASK}';")
    name, state, heartbeat, seconds = shell.tells("Stale workers").split("|")
    assert (name, state, heartbeat) == (TASK, "needs_review", old)
    assert float(seconds) > 100_000_000


def test_a_refusal_is_told_and_nothing_is_written(table: Table, shell: Shell) -> None:
    """A stale worker's report, and a completion that nobody approved: no message without its move."""
    claim = table.claim(TASK, "s1")
    said = len(table.messages())
    code, _, told = shell.types("Report an error", "s2")
    assert code != 0
    assert "stop working on it" in told
    code, _, told = shell.types("Complete it")
    assert code != 0
    assert (
        "legal from there: needs_review (worker), error (worker), complete (worker once a review has approved" in told
    )
    assert len(table.messages()) == said
    assert table.beat(claim) is State.WORKING
    shell.tells("Reset a task whose worker is gone")
    shell.tells("Give a sign of life")  # changes no row
    assert table.known(TASK).generation == 2
    with pytest.raises(StaleClaim):
        table.beat(claim)
    shell.tells("Go on after an answer")
    assert table.known(TASK).state is State.WATCHING


def test_what_an_unmodified_worker_runs_needs_no_transaction(table: Table, shell: Shell, place: str) -> None:
    """Statement by statement, as agents with a SQL tool do, with a narrower query for staleness."""
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
    found = table.known(TASK)
    assert (found.state, found.retry_count, found.error_tries, found.session_id) == (State.ERROR, 1, 1, "raw")


def test_the_page_has_every_command_and_exit_code() -> None:
    """Of `rung worker`, and both of `rung crew` that a worker's world begins with."""
    from rung.cli.exits import CLAIM_BLOCKED, NOTHING_TO_CLAIM, STALE_CLAIM, USAGE
    from rung.cli.worker import command

    page = PAGE.read_text("utf-8")
    for name in command.commands:
        assert f"rung worker {name}" in page, name
    assert "rung crew init" in page
    assert "rung crew add" in page
    for code in (0, USAGE, NOTHING_TO_CLAIM, CLAIM_BLOCKED, STALE_CLAIM):
        assert f"| {code} |" in page, code


def test_the_page_has_every_legal_move() -> None:
    """Of a worker's row, as the core has them."""
    rows = re.findall(r"^\| (`.+?|any.+?) \| (.+?) \| .+? \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    said = {
        (before, after)
        for befores, afters in rows
        for before in re.findall(r"`(\w+)`", befores)
        for after in re.findall(r"`(\w+)`", afters)
    }
    for move in MOVES:
        if move.condition not in {When.STALE, When.WARNED} and move.after is not State.EXITED:
            assert (move.before.value, move.after.value) in said, move
