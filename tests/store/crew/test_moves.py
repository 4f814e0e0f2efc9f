"""Every move of every row, tried by a stranger's raw SQL: what is not legal the database refuses, in words."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import CONDUCTOR, WATCHDOG, TaskState, legal_transitions
from rung.store.crew.rows import NewTask
from tests.store.crew.stranger import OLD, Refused

if TYPE_CHECKING:
    from rung.store.crew.table import CrewTable
    from tests.store.crew.stranger import Stranger

# What a worker's row may become, written out by hand; a star: only where its condition is so.
ALWAYS = {
    "watching": {"exited"},
    "working": {"needs_review", "error", "exited"},
    "needs_review": {"review_approved", "review_failed", "exited"},
    "error": {"fix_proposed", "review_approved", "exit_requested", "exited"},
    "review_approved": {"working", "needs_review", "exited"},
    "review_failed": {"working", "needs_review", "exited"},
    "fix_proposed": {"working", "needs_review", "exited"},
    "exit_requested": {"working", "exited"},
    "exited": {"fix_proposed", "watching"},
    "complete": set(),
    "reviewing": {"exited"},
    "context_recovery": {"exited"},
    "confirmed": {"exited"},
}
OF_CONDUCTOR = {
    "watching": "reviewing exit_requested context_recovery complete error exited",
    "reviewing": "watching exit_requested context_recovery complete error exited",
    "exit_requested": "watching complete exited",
    "context_recovery": "watching",
    "complete": "watching",
    "error": "watching",
    "exited": "watching",
}
OF_WATCHDOG = {
    "watching": "confirmed error exited complete",
    "confirmed": "watching error exited complete",
    "error": "watching confirmed exited",
    "exited": "watching",
    "complete": "watching",
}
FREE = ("watching", "exited", "complete")  # where nobody is to be found stale


def allowed(before: str, after: str, *, stale: bool, approved: bool, warned: bool) -> bool:
    """May a row of a session, moved without a word about the session, become that?"""
    if (before, after) == ("working", "complete"):
        return approved
    if (before, after) == ("error", "review_failed"):
        return warned
    handed_over = stale and before not in FREE and after in {"watching", "fix_proposed"}
    return after in ALWAYS[before] or handed_over


@pytest.mark.parametrize("before", list(TaskState))
def test_a_stranger_can_make_every_legal_move_and_no_other(
    table: CrewTable, stranger: Stranger, before: TaskState
) -> None:
    """13 x 13, each with a fresh and a stale heartbeat, approved or not, warned or not."""
    table.add_task(NewTask(task_id="task-01", instruction="do it"))
    for stale, approved, warned in product((False, True), (False, True), (False, True)):
        stranger.force(
            "task-01",
            state=f"'{before}'",
            session_id="NULL" if before is TaskState.WATCHING else "'s1'",
            open_for_claim="0",
            approved=str(int(approved)),
            last_error="'context_exhaustion_warning'" if warned else "'boom'",
            last_heartbeat=f"'{OLD}'" if stale else "datetime('now')",
        )
        for after in TaskState:
            may = after == before or allowed(before, after, stale=stale, approved=approved, warned=warned)
            with stranger.takes_back():
                _tried(stranger, before, after, may=may)


def _tried(stranger: Stranger, before: TaskState, after: TaskState, *, may: bool) -> None:
    move = f"UPDATE orchestration_tasks SET state = '{after}' WHERE task_id = 'task-01'"
    if may:
        assert stranger.changed(move) == 1, (before, after)
        assert stranger.row("task-01", "state") == (after,), (before, after)
        return
    with pytest.raises(Refused) as refused:
        stranger.changed(move)
    words = str(refused.value)
    assert f"the task is {before}; legal from there: " in words or "complete is final" in words, (before, after)
    for legal_move in legal_transitions(before):
        assert legal_move.after in words, (before, after)
        assert legal_move.by in words, (before, after)


@pytest.mark.parametrize(("task_id", "moves"), [(CONDUCTOR, OF_CONDUCTOR), (WATCHDOG, OF_WATCHDOG)])
def test_reserved_rows_keep_to_moves_of_their_own(
    table: CrewTable, stranger: Stranger, task_id: str, moves: dict[str, str]
) -> None:
    """13 x 13 of the conductor's row and of the watchdog's."""
    for before in TaskState:
        stranger.force(task_id, state=f"'{before}'")
        for after in TaskState:
            move = f"UPDATE orchestration_tasks SET state = '{after}' WHERE task_id = '{task_id}'"
            with stranger.takes_back():
                if after == before or after in moves.get(before, "").split():
                    assert stranger.changed(move) == 1, (before, after)
                    continue
                with pytest.raises(Refused, match=f"{task_id} is {before}; legal from there: "):
                    stranger.changed(move)


@pytest.mark.parametrize("state", ["banana", "WORKING", ""])
def test_there_are_no_other_states(table: CrewTable, stranger: Stranger, state: str) -> None:
    """Neither for new rows nor for old ones."""
    table.add_task(NewTask(task_id="task-01", instruction="do it"))
    with pytest.raises(Refused, match="legal from there"):
        stranger.changed(f"UPDATE orchestration_tasks SET state = '{state}' WHERE task_id = 'task-01'")
    with pytest.raises(Refused):
        stranger.changed("UPDATE orchestration_tasks SET state = NULL WHERE task_id = 'task-01'")
    with pytest.raises(Refused, match="begins as watching"), stranger.conducts():
        stranger.changed(f"INSERT INTO orchestration_tasks (task_id, state) VALUES ('task-02', '{state}')")


@pytest.mark.parametrize("state", [state for state in TaskState if state is not TaskState.WATCHING])
def test_a_task_begins_as_watching_and_a_fallback_as_exited(
    table: CrewTable, stranger: Stranger, state: TaskState
) -> None:
    """Nothing is inserted half-way."""
    with pytest.raises(Refused, match="begins as watching"), stranger.conducts():
        stranger.changed(f"INSERT INTO orchestration_tasks (task_id, state) VALUES ('task-02', '{state}')")
    fallback = f"INSERT INTO orchestration_tasks (task_id, state) VALUES ('fallback-x', '{state}')"
    if state is TaskState.EXITED:
        assert stranger.changed(fallback) == 1
    else:
        with pytest.raises(Refused, match="fallback"):
            stranger.changed(fallback)


def test_rows_are_neither_replaced_deleted_nor_renamed(table: CrewTable, stranger: Stranger) -> None:
    """Otherwise a task could begin its life anew, and its errors would be forgotten."""
    table.add_task(NewTask(task_id="task-01", instruction="do it"))
    with pytest.raises(Refused, match="only rows of blocked sessions"):
        stranger.changed("DELETE FROM orchestration_tasks WHERE task_id = 'task-01'")
    with pytest.raises(Refused, match="keeps its task_id"):
        stranger.changed("UPDATE orchestration_tasks SET task_id = 'task-09' WHERE task_id = 'task-01'")
    with pytest.raises(Refused):
        stranger.changed("INSERT INTO orchestration_tasks (task_id, state) VALUES ('task-01', 'watching')")
    if not stranger.is_postgres:  # which has no such words
        with pytest.raises(Refused, match="never replaced"), stranger.conducts():
            stranger.changed(
                "INSERT OR REPLACE INTO orchestration_tasks (task_id, state) VALUES ('task-01', 'watching')"
            )
    for column in ("error_tries", "generation"):
        stranger.force("task-01", **{column: "3"})
        with pytest.raises(Refused, match="never become less"), stranger.conducts():
            stranger.changed(f"UPDATE orchestration_tasks SET {column} = 0 WHERE task_id = 'task-01'")


def test_a_fallback_row_only_waits_to_be_deleted(table: CrewTable, stranger: Stranger) -> None:
    """It is no task: nobody can work on it."""
    stranger.changed(
        "INSERT INTO orchestration_tasks (task_id, state, session_id) VALUES ('fallback-x', 'exited', 'x')"
    )
    with pytest.raises(Refused, match="until it is deleted"):
        stranger.changed("UPDATE orchestration_tasks SET state = 'watching' WHERE task_id = 'fallback-x'")
    assert stranger.changed("DELETE FROM orchestration_tasks WHERE task_id LIKE 'fallback-%' AND session_id = 'x'") == 1


def test_a_message_is_of_a_known_type(table: CrewTable, stranger: Stranger) -> None:
    """Never of none."""
    for kind in ("'gossip'", "NULL", "''"):
        with pytest.raises(Refused, match="message_type is one of: review_request error"):
            stranger.changed(
                "INSERT INTO orchestration_messages (task_id, from_session, message, message_type)"
                f" VALUES ('task-00', 's', 'm', {kind})"
            )


def test_what_a_worker_says_must_come_from_who_has_the_task(table: CrewTable, stranger: Stranger) -> None:
    """A stale worker's report is refused, and it is told to stop; warnings of the table's own kind are anybody's."""
    table.add_task(NewTask(task_id="task-01", instruction="do it"))
    table.claim("task-01", "s1")
    for kind in ("review_request", "error", "context_warning", "completion", "handoff", "resumption"):
        with pytest.raises(Refused, match="stop working on it"):
            stranger.changed(_message("s2", kind))
        assert stranger.changed(_message("s1", kind)) == 1
    assert stranger.changed(_message("s2", "claim_blocked")) == 1
    with pytest.raises(Refused, match="stop working on it"):
        stranger.changed(_message("s1", "error").replace("task-01", "task-77"))


def _message(session: str, kind: str) -> str:
    return (
        "INSERT INTO orchestration_messages (task_id, from_session, message, message_type)"
        f" VALUES ('task-01', '{session}', 'm', '{kind}')"
    )
