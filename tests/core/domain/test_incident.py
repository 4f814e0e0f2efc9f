"""Incident state: a fold of its events."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain import events as ev
from rung.core.domain.failures import Evidence, Failure, Kind
from rung.core.domain.incident import FOLDS, Incident
from rung.core.domain.ladder import Action
from rung.core.domain.request import Request

TERMS = ev.IncidentContext("task", "default")
REQUEST = Request(prompt="do it", model="small", agent="me")
OPENED = ev.Opened(10.0, "i1", TERMS, REQUEST, 100.0, 2.5, "outer", (("fallback", 1),))
REPEAT = ev.Repeat(0, 1.0, "again")
NUDGE = ev.Change(1, Action.NUDGE, 0.0, "nudge")
RESUME = ev.Change(2, Action.RESUME, 0.0, "resume")
HAND_OVER = ev.HandOver(3, "large", "expert", 0.5, "over")
LAST = ev.Change(4, Action.FORCE_DONE, 0.0, "time to end")
ASK = ev.Ask(4, "?", (), None, "", "", "ask")
LEAVE = ev.Ask(3, "?", (), 0.5, "large", "expert", "leave")
FINISH = ev.Finish(4, ev.Status.PARTIAL, "end")


def failed(kind: Kind = Kind.TIMEOUT, output: str = "", dollars: float = 0.0, **more: Any) -> ev.AttemptFailed:
    failure = Failure(kind=kind, retryable=True, rule="x", evidence=Evidence(output=output))
    return ev.AttemptFailed(11.0, failure, 1.0, dollars, **{"may_retry": True, **more})


def decided(decision: ev.Decision, at: float = 12.0) -> ev.Decided:
    return ev.Decided(at, decision)


EVENTS: list[ev.Event] = [
    failed(),
    failed(Kind.OUTPUT_LIMIT, "half", 0.25),
    failed(made=False, may_retry=False),
    ev.AttemptSucceeded(12.0, 1.0, 0.5),
    *[decided(decision) for decision in (REPEAT, NUDGE, RESUME, HAND_OVER, LAST, ASK, LEAVE, FINISH)],
    ev.Changed(13.0, REQUEST.replace(prompt="other"), "d2", ("prompt",), "nudge.general"),
    ev.Abandoned(13.0, 2, "plan: the first", "a lock"),
    ev.Skipped(13.0, 2, "no change"),
    ev.StepCompleted(14.0, "built"),
    ev.AgentSessionOpened(14.0, "", "claude", "s-1"),
    ev.Answered(15.0, "decline"),
    ev.CheckpointTaken(16.0, 2, "ref"),
    ev.RolledBack(17.0, 2, "ref"),
    ev.ModelRestored(18.0, "small", "me"),
    ev.Crashed(19.0, "listener", "boom"),
    ev.Cancelled(20.0, "stop"),
    ev.Closed(21.0, ev.Status.FAILED, "gone"),
]


@given(st.lists(st.sampled_from(EVENTS), max_size=15), st.integers(0, 15))
def test_the_same_events_make_the_same_incident(events: list[ev.Event], cut: int) -> None:
    """Folding the same events, at once or in two goes, makes equal incidents; none leaves a trace in another."""
    untouched = vars(Incident()).copy()
    whole = Incident.of([OPENED, *events])
    halved = Incident.of([OPENED, *events[:cut]])
    for event in events[cut:]:
        halved.fold(event)
    assert whole == halved
    assert vars(Incident()) == untouched
    assert whole.attempts == sum(isinstance(e, ev.AttemptSucceeded) or getattr(e, "made", False) for e in events)
    assert whole.path == tuple(sorted(set(whole.path)))
    assert whole.dollars == pytest.approx(sum(getattr(e, "dollars", 0.0) for e in events))


def test_every_event_can_be_folded() -> None:
    """There is a fold for every event there is, and none for anything else."""
    assert set(FOLDS) == set(ev.Event.__args__)
    with pytest.raises(KeyError):
        Incident().fold("event")  # type: ignore[arg-type]  # that is the point


def test_opened() -> None:
    """An opened incident knows its terms, limits, parent, and that the first request was tried."""
    incident = Incident.of([OPENED])
    assert (incident.id, incident.terms, incident.opened_at, incident.parent) == ("i1", TERMS, 10.0, "outer")
    assert (incident.deadline, incident.dollar_cap, incident.session_used) == (100.0, 2.5, (("fallback", 1),))
    assert incident.first_request is incident.request is REQUEST
    assert (incident.digests, incident.models, incident.agents) == tuple(
        map(frozenset, ([REQUEST.digest()], ["small"], ["me"]))
    )


def test_opened_without_a_request() -> None:
    """A call that was not given as a request has none, and no limits where none were given."""
    incident = Incident.of([ev.Opened(10.0, "i1", TERMS)])
    assert (incident.request, incident.first_request, incident.deadline, incident.dollar_cap) == (
        None,
        None,
        None,
        None,
    )
    assert incident.digests == frozenset()
    assert not incident.handed_over


def test_attempts_and_dollars_add_up() -> None:
    """Attempts that were made are counted and what they cost is added; one that was refused counts for neither."""
    incident = Incident.of([OPENED, failed(dollars=0.25), failed(made=False, may_retry=False), failed(dollars=0.5)])
    assert (incident.attempts, incident.dollars, len(incident.failures)) == (2, 0.75, 3)
    assert incident.failure is incident.failures[-1]
    assert incident.retry_budget_ok


def test_success() -> None:
    """A success without a failure is one, after a failure it is a recovery."""
    assert Incident.of([OPENED, ev.AttemptSucceeded(11.0, 1.0, 0.5)]).status is ev.Status.SUCCEEDED
    incident = Incident.of([OPENED, failed(), ev.AttemptSucceeded(11.0, 1.0, 0.0)])
    assert (incident.status, incident.attempts) == (ev.Status.RECOVERED, 2)


def test_a_last_turn_is_no_recovery() -> None:
    """What a forced last turn writes is partial, also if it had to be repeated."""
    turn: list[ev.Event] = [
        OPENED,
        failed(),
        decided(LAST),
        failed(),
        decided(REPEAT),
        ev.AttemptSucceeded(12.0, 1.0, 0.1),
    ]
    incident = Incident.of(turn)
    assert (incident.status, incident.reason, incident.dollars) == (ev.Status.PARTIAL, "time to end", 0.1)


def test_repeats_are_counted_since_the_last_climb() -> None:
    """Repeats are counted with the seconds waited before them, and forgotten when the ladder climbs."""
    twice = REPEAT._replace(wait=2.0)
    incident = Incident.of([OPENED, decided(twice, 20.0), decided(twice, 25.0)])
    assert (incident.retries, incident.backed_off, incident.rung, incident.path) == ({0: 2}, 4.0, -1, (0,))
    assert incident.active_decision is None
    incident.fold(decided(NUDGE, 30.0))
    assert (incident.retries, incident.rung, incident.entered_at, incident.tries_used) == ({}, 1, {1: 30.0}, {1: 1})
    assert incident.backed_off == 0.0
    incident.fold(decided(twice, 35.0))
    assert (incident.retries, incident.backed_off, incident.path) == ({0: 1}, 2.0, (0, 1))
    assert incident.active_decision is NUDGE


def test_a_rung_is_entered_once() -> None:
    """Further tries of a rung are counted, and its time runs from the first."""
    incident = Incident.of([OPENED, decided(NUDGE, 20.0), decided(REPEAT, 25.0), decided(NUDGE, 30.0)])
    assert (incident.tries_used, incident.entered_at, incident.path) == ({1: 2}, {1: 20.0}, (1,))
    assert incident.retries == {0: 1}


def test_hand_over_remembers_who_was_tried() -> None:
    """Those who took over are remembered, and the request that follows shows who is at work."""
    incident = Incident.of([OPENED, decided(HAND_OVER)])
    assert set(incident.models) == {"small", "large"}
    assert set(incident.agents) == {"me", "expert"}
    other = REQUEST.replace(model="large", agent="expert")
    incident.fold(ev.Changed(13.0, other, other.digest(), ("model",), ""))
    assert incident.handed_over
    assert incident.digests == {REQUEST.digest(), other.digest()}
    incident.fold(ev.ModelRestored(14.0, "small", "me"))
    assert incident.request == REQUEST
    assert not incident.handed_over


def test_nothing_to_restore() -> None:
    """Without a request there is no model to put back."""
    assert Incident.of([ev.Opened(0.0, "i", TERMS), ev.ModelRestored(1.0, "a", "b")]).request is None


def test_asking_for_leave_is_no_try() -> None:
    """A question for approval to hand over spends no try and uses no rung; any other question spends one."""
    incident = Incident.of([OPENED, decided(LEAVE)])
    assert (incident.last_question, incident.tries_used, incident.active_decision, incident.path) == (
        LEAVE,
        {},
        None,
        (),
    )
    for leave in (LEAVE._replace(agent=""), LEAVE._replace(model="")):
        assert Incident.of([OPENED, decided(leave)]).tries_used == {}
    assert Incident.of([OPENED, decided(ASK)]).tries_used == {4: 1}


def test_a_declined_model_is_not_offered_again() -> None:
    """Who was declined counts as tried; any other answer is only remembered."""
    declined = Incident.of([OPENED, decided(LEAVE), ev.Answered(13.0, "decline")])
    assert declined.answer == "decline"
    assert set(declined.models) == {"small", "large"}
    assert set(declined.agents) == {"me", "expert"}
    approved = Incident.of([OPENED, decided(LEAVE), ev.Answered(13.0, "approve")])
    assert approved.answer == "approve"
    assert set(approved.models) == {"small"}
    assert Incident.of([OPENED, ev.Answered(13.0, "decline")]).models == {"small"}


def test_a_finish_spends_nothing() -> None:
    """Deciding to finish is on the path, and no try of its rung."""
    incident = Incident.of([OPENED, decided(FINISH)])
    assert (incident.path, incident.tries_used, incident.active_decision, incident.decision) == ((4,), {}, None, FINISH)


def test_what_was_written_so_far() -> None:
    """Resumptions add to what was written; any other way starts it anew."""
    incident = Incident.of([OPENED])
    seen = []
    for event in (
        failed(output="one "),
        decided(RESUME),
        failed(output="two "),
        failed(output=""),
        decided(NUDGE._replace(rung=3)),
        failed(output="three"),
        failed(output=""),
    ):
        incident.fold(event)
        seen.append((incident.resuming, incident.partial_output))
    assert seen == [
        (False, "one "),
        (True, "one "),
        (True, "one two "),
        (True, "one two "),
        (False, "one two "),
        (False, "three"),
        (False, ""),
    ]


def test_small_facts() -> None:
    """Skipped rungs are spent, steps and checkpoints are kept, and a crash or a rollback moves nothing."""
    before = Incident.of([OPENED])
    before.fold(ev.Crashed(11.0, "listener", "boom"))
    before.fold(ev.RolledBack(11.0, 2, "ref"))
    assert before == Incident.of([OPENED])
    incident = Incident.of(
        [
            OPENED,
            ev.Skipped(11.0, 2, "no change"),
            ev.StepCompleted(12.0, "built"),
            ev.StepCompleted(12.0, "tested"),
            ev.CheckpointTaken(13.0, 1, "a"),
            ev.CheckpointTaken(13.0, 2, "b"),
        ]
    )
    assert set(incident.exhausted) == {2}
    assert (incident.steps, incident.checkpoints) == (("built", "tested"), {1: "a", 2: "b"})


def test_a_rollback_undoes_the_steps_since_its_checkpoint() -> None:
    """Steps completed since the checkpoint of the rung are forgotten, at each rollback to it; another rung's are not."""
    incident = Incident.of(
        [
            OPENED,
            ev.CheckpointTaken(11.0, 1, "a"),
            ev.StepCompleted(12.0, "built"),
            ev.CheckpointTaken(13.0, 2, "b"),
            ev.StepCompleted(14.0, "tested"),
            ev.RolledBack(15.0, 2, "b"),
        ]
    )
    assert incident.steps == ("built",)
    incident.fold(ev.StepCompleted(16.0, "released"))
    incident.fold(ev.RolledBack(17.0, 2, "b"))
    assert incident.steps == ("built",)
    incident.fold(ev.RolledBack(18.0, 1, "a"))
    assert not incident.steps


def test_endings() -> None:
    """A cancelled incident is partial, a closed one is what it was closed as, each with its reason."""
    cancelled = Incident.of([OPENED, ev.Cancelled(11.0, "stop")])
    assert (cancelled.status, cancelled.reason) == (ev.Status.PARTIAL, "stop")
    closed = Incident.of([OPENED, ev.Closed(11.0, ev.Status.BLOCKED, "ask")])
    assert (closed.status, closed.reason) == (ev.Status.BLOCKED, "ask")


def test_how_it_looks() -> None:
    """An incident shows its id, status, attempts and path, equals no other thing, and is never a key."""
    incident = Incident.of([OPENED, failed()])
    assert repr(incident) == "<Incident i1 open attempts=1 path=()>"
    incident.fold(ev.Closed(11.0, ev.Status.FAILED, "x"))
    assert "failed" in repr(incident)
    assert incident != "incident"
    with pytest.raises(TypeError):
        hash(incident)
