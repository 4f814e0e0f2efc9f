"""A crew's contract: its states, its moves and the words of a refusal."""

from __future__ import annotations

import pickle

import pytest

from rung.core.crew.contract import (
    CONDUCTOR,
    MOVES,
    OWNED,
    RESERVED,
    TERMINAL,
    WATCHDOG,
    Actor,
    MessageType,
    TaskState,
    Transition,
    TransitionGuard,
    legal,
    moves_of,
    refusal,
)
from rung.core.domain.errors import ClaimBlocked

# The contract, written out by hand: what a worker's row may become, and under what condition.
CONTRACT = {
    "watching": "working/claim exited",
    "working": "needs_review error complete/approved exited",
    "needs_review": "review_approved review_failed exited",
    "error": "fix_proposed review_approved exit_requested review_failed/warned exited",
    "review_approved": "working/owned needs_review/owned exited",
    "review_failed": "working/owned needs_review/owned exited",
    "fix_proposed": "working/claim working/owned needs_review/owned exited",
    "exit_requested": "working/claim exited",
    "exited": "fix_proposed watching",
    "complete": "",
    "reviewing": "exited",
    "context_recovery": "exited",
    "confirmed": "exited",
}


def test_there_are_thirteen_states_and_fifteen_types_of_messages() -> None:
    """The names are a contract with workers that know only SQL."""
    assert " ".join(TaskState) == (
        "watching reviewing exit_requested complete working needs_review review_approved review_failed error"
        " fix_proposed exited context_recovery confirmed"
    )
    assert " ".join(MessageType) == (
        "review_request error context_warning completion emergency handoff approval fix_proposal rejection instruction"
        " claim_blocked resumption system warning exit_request"
    )


@pytest.mark.parametrize("before", list(TaskState))
def test_the_moves_are_those_of_the_contract(before: TaskState) -> None:
    """Besides the hand-over and the reset of a task whose worker is stale."""
    found = {
        (move.after.value, move.condition.value)
        for move in legal(before)
        if move.condition is not TransitionGuard.STALE and (move.after, move.by) != (TaskState.EXITED, Actor.WORKER)
    }
    wanted = {tuple(f"{way}/".split("/")[:2]) for way in CONTRACT[before].split()}
    assert found == wanted


def test_whatever_somebody_has_can_be_handed_over_or_reset_once_it_is_stale() -> None:
    """Also where it is paused; what nobody has, or is at its end, cannot."""
    by_stale = {(move.before, move.after) for move in MOVES if move.condition is TransitionGuard.STALE}
    for state in OWNED:
        assert (state, TaskState.WATCHING) in by_stale
        assert (state, TaskState.FIX_PROPOSED) in by_stale or state is TaskState.FIX_PROPOSED
    assert not {before for before, _ in by_stale} & {*TERMINAL, TaskState.WATCHING}


def test_a_worker_never_makes_a_verdict_and_the_conductor_never_does_a_workers_work() -> None:
    """Who may is part of each move."""
    for move in MOVES:
        if move.after in {
            TaskState.REVIEW_APPROVED,
            TaskState.REVIEW_FAILED,
            TaskState.FIX_PROPOSED,
            TaskState.EXIT_REQUESTED,
        }:
            assert move.by is Actor.CONDUCTOR
        if move.after in {TaskState.WORKING, TaskState.NEEDS_REVIEW, TaskState.ERROR, TaskState.COMPLETE}:
            assert move.by is Actor.WORKER


@pytest.mark.parametrize("task_id", ["", *RESERVED])
@pytest.mark.parametrize("before", list(TaskState))
def test_a_refusal_says_what_was_legal_and_who_may(before: TaskState, task_id: str) -> None:
    """In one line, with every legal state in it."""
    words = refusal(before, task_id)
    assert words.startswith("rung: ")
    assert "\n" not in words
    assert before in words
    for move in legal(before, task_id):
        assert move.after in words
        assert move.by in words


def test_reserved_rows_have_moves_of_their_own() -> None:
    """The conductor's end comes by context_recovery; the watchdog confirms."""
    assert Transition(TaskState.REVIEWING, TaskState.CONTEXT_RECOVERY, Actor.CONDUCTOR) in moves_of(CONDUCTOR)
    assert Transition(TaskState.WATCHING, TaskState.CONFIRMED, Actor.WATCHDOG) in moves_of(WATCHDOG)
    assert not any(move.after is TaskState.WORKING for name in RESERVED for move in moves_of(name))


def test_a_blocked_claim_can_be_sent_to_another_process() -> None:
    """With what it knows."""
    error = pickle.loads(pickle.dumps(ClaimBlocked("task-01", "s2", "it is working")))
    assert (str(error), error.task_id, error.session) == (
        "task-01 cannot be claimed by s2: it is working",
        "task-01",
        "s2",
    )
