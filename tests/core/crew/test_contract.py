"""The contract of a crew: states, legal transitions and the message for an illegal one."""

from __future__ import annotations

import pickle

import pytest

from rung.core.crew.contract import (
    CONDUCTOR,
    OWNED,
    RESERVED,
    TERMINAL,
    WATCHDOG,
    WORKER_TRANSITIONS,
    Actor,
    MessageType,
    TaskState,
    Transition,
    TransitionGuard,
    illegal_transition_message,
    legal_transitions,
    transitions_of,
)
from rung.core.domain.errors import ClaimBlocked

# The contract, written by hand: the legal next states of a task, each with its guard.
CONTRACT = {
    "watching": "working/claim exited",
    "working": "needs_review/reported error/reported complete/approved exited",
    "needs_review": "review_approved review_failed exited",
    "error": "fix_proposed review_approved exit_requested review_failed/warned exited",
    "review_approved": "working/owned needs_review/reported exited",
    "review_failed": "working/owned needs_review/reported exited",
    "fix_proposed": "working/claim working/owned needs_review/reported exited",
    "exit_requested": "working/claim exited",
    "exited": "fix_proposed watching",
    "complete": "",
    "reviewing": "exited",
    "context_recovery": "exited",
    "confirmed": "exited",
}


def test_there_are_thirteen_states_and_fifteen_types_of_messages() -> None:
    """States and message types have the names that SQL workers rely on."""
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
    """The worker transitions equal the hand-written list, apart from hand-over and reset of stale tasks."""
    found = {
        (transition.after.value, transition.guard.value)
        for transition in legal_transitions(before)
        if transition.guard is not TransitionGuard.STALE
        and (transition.after, transition.by) != (TaskState.EXITED, Actor.WORKER)
    }
    expected = {tuple(f"{way}/".split("/")[:2]) for way in CONTRACT[before].split()}
    assert found == expected


def test_whatever_somebody_has_can_be_handed_over_or_reset_once_it_is_stale() -> None:
    """Every owned task can be handed over or reset once its worker is stale; unclaimed and ended tasks cannot."""
    by_stale = {
        (transition.before, transition.after)
        for transition in WORKER_TRANSITIONS
        if transition.guard is TransitionGuard.STALE
    }
    for state in OWNED:
        assert (state, TaskState.WATCHING) in by_stale
        assert (state, TaskState.FIX_PROPOSED) in by_stale or state is TaskState.FIX_PROPOSED
    assert not {before for before, _ in by_stale} & {*TERMINAL, TaskState.WATCHING}


def test_a_worker_never_makes_a_verdict_and_the_conductor_never_does_a_workers_work() -> None:
    """Each transition names the role that may make it."""
    for transition in WORKER_TRANSITIONS:
        if transition.after in {
            TaskState.REVIEW_APPROVED,
            TaskState.REVIEW_FAILED,
            TaskState.FIX_PROPOSED,
            TaskState.EXIT_REQUESTED,
        }:
            assert transition.by is Actor.CONDUCTOR
        if transition.after in {TaskState.WORKING, TaskState.NEEDS_REVIEW, TaskState.ERROR, TaskState.COMPLETE}:
            assert transition.by is Actor.WORKER


@pytest.mark.parametrize("task_id", ["", *RESERVED])
@pytest.mark.parametrize("before", list(TaskState))
def test_a_refusal_says_what_was_legal_and_who_may(before: TaskState, task_id: str) -> None:
    """The message is one line and lists every legal state."""
    message = illegal_transition_message(before, task_id)
    assert message.startswith("rung: ")
    assert "\n" not in message
    assert before in message
    for transition in legal_transitions(before, task_id):
        assert transition.after in message
        assert transition.by in message


def test_reserved_rows_have_moves_of_their_own() -> None:
    """The conductor and the watchdog have transitions of their own."""
    assert Transition(TaskState.REVIEWING, TaskState.CONTEXT_RECOVERY, Actor.CONDUCTOR) in transitions_of(CONDUCTOR)
    assert Transition(TaskState.WATCHING, TaskState.CONFIRMED, Actor.WATCHDOG) in transitions_of(WATCHDOG)
    assert not any(transition.after is TaskState.WORKING for name in RESERVED for transition in transitions_of(name))


def test_a_blocked_claim_can_be_sent_to_another_process() -> None:
    """A ClaimBlocked error survives pickling."""
    error = pickle.loads(pickle.dumps(ClaimBlocked("task-01", "s2", "it is working")))
    assert (str(error), error.task_id, error.session) == (
        "task-01 cannot be claimed by s2: it is working",
        "task-01",
        "s2",
    )
