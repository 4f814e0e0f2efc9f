"""When an agent's session is continued, and what the agent is told."""

from __future__ import annotations

from typing import Any

import pytest

from rung.core.domain import events as ev
from rung.core.domain.agent_session import AgentSession
from rung.core.domain.failures import Evidence, Failure, Kind
from rung.core.domain.incident import Incident
from rung.core.domain.ladder import Action
from rung.core.domain.request import Request
from rung.core.policy.parser import policy
from rung.core.recovery.resume_point import decide_after_process_death, process_death_failure
from rung.core.recovery.session_resume import continuation_prompt, handed_over_request, session_to_continue

POLICY = policy("task")
REQUEST = Request(prompt="write four files")
OPENED = ev.Opened(0.0, "i", ev.IncidentContext("task", "task"), REQUEST)
SESSION = ev.AgentSessionOpened(1.0, "", "claude", "s-1")
CONTINUED = SESSION._replace(continued=True)


def failed(kind: Kind, text: str = "it broke", **facts: Any) -> ev.AttemptFailed:
    failure = Failure(kind, False, "rule", text, evidence=Evidence(text=text, **facts))
    return ev.AttemptFailed(2.0, failure, 1.0, 0.0, may_retry=True)


def decided(decision: ev.Decision) -> ev.Decided:
    return ev.Decided(3.0, decision)


REPEAT = decided(ev.Repeat(0, 0.0, "again"))


def change(action: Action, text: str = "") -> list[ev.Event]:
    request = REQUEST.replace(prompt=text, recovery=text)
    return [decided(ev.Change(1, action, 0.0, "")), ev.Changed(4.0, request, request.digest(), ("prompt",), "p")]


def continued(*events: ev.Event) -> AgentSession | None:
    return session_to_continue(Incident.of([OPENED, *events]), POLICY)


@pytest.mark.parametrize(
    "kind",
    [
        Kind.WORKER_DEAD, Kind.RATE_LIMIT, Kind.QUOTA_EXHAUSTED, Kind.OVERLOADED, Kind.NETWORK, Kind.TIMEOUT, Kind.STALLED,
        Kind.TEST_FAILURE, Kind.UNKNOWN, Kind.AUTH_ERROR,
    ],
)  # fmt: skip
def test_the_next_attempt_continues_the_session(kind: Kind) -> None:
    """After a crash, a limit, a failing service, a stall or a time limit, the same agent goes on where it was."""
    assert continued(SESSION, failed(kind), REPEAT) == AgentSession("claude", "s-1")


@pytest.mark.parametrize(
    "kind", [Kind.CONTEXT_LIMIT, Kind.CONTEXT_WARNING, Kind.INVALID_REQUEST, Kind.CONTENT_FILTER, Kind.REFUSAL]
)
def test_a_failure_that_the_session_causes_ends_it(kind: Kind) -> None:
    """A session that is too long, or that the provider refuses, would fail in the same way again."""
    assert continued(SESSION, failed(kind), REPEAT) is None
    assert continued(SESSION, failed(kind), REPEAT, failed(Kind.OVERLOADED), REPEAT) is None


@pytest.mark.parametrize("action", Action)
def test_another_approach_starts_afresh(action: Action) -> None:
    """A new plan, a new worker and a new division of the work do not go on in the session of the former approach."""
    is_fresh = action in (Action.REPLAN, Action.RESPAWN, Action.RESTRUCTURE)
    found = continued(SESSION, failed(Kind.UNKNOWN), *change(action))
    assert (found is None) is is_fresh
    assert (
        continued(SESSION, failed(Kind.UNKNOWN), *change(action), failed(Kind.OVERLOADED), REPEAT) is None
    ) is is_fresh


def test_a_new_worker_takes_over_the_session_of_one_that_was_killed() -> None:
    """The approach of an agent that died is not discredited: the respawn rung of a pipeline continues its session."""
    assert continued(SESSION, failed(Kind.WORKER_DEAD), *change(Action.RESPAWN)) is not None
    assert continued(SESSION, failed(Kind.WORKER_DEAD), *change(Action.REPLAN)) is None


@pytest.mark.parametrize(
    ("agent", "model", "kind", "is_kept"),
    [
        ("codex", "", Kind.OVERLOADED, False),
        ("", "other", Kind.OVERLOADED, True),
        ("", "other", Kind.CAPABILITY_MISMATCH, False),
    ],
)
def test_a_handover(agent: str, model: str, kind: Kind, is_kept: bool) -> None:
    """Another agent has a session of its own. Another model goes on in the session if only the provider failed."""
    request = REQUEST.replace(agent=agent, model=model)
    changed = ev.Changed(4.0, request, request.digest(), ("agent",), "")
    found = continued(SESSION, failed(kind), decided(ev.HandOver(3, model, agent, None, "")), changed)
    assert (found is not None) is is_kept


def test_the_first_agent_keeps_its_session_during_a_handover() -> None:
    """After a fallback that failed, too, the first agent goes on in its own session."""
    request = REQUEST.replace(agent="codex")
    events: list[ev.Event] = [
        SESSION,
        failed(Kind.OVERLOADED),
        decided(ev.HandOver(3, "", "codex", None, "")),
        ev.Changed(4.0, request, request.digest(), ("agent",), ""),
        ev.AgentSessionOpened(5.0, "codex", "codex", "s-2"),
        failed(Kind.OVERLOADED),
    ]
    assert continued(*events, REPEAT) == AgentSession("codex", "s-2")
    assert continued(*events, ev.ModelRestored(6.0, "", ""), REPEAT) == AgentSession("claude", "s-1")


def test_a_session_that_fails_twice_alike_is_given_up() -> None:
    """What is in the session may be the cause: the third attempt starts afresh. A failing service is never the cause."""
    again: list[ev.Event] = [CONTINUED, failed(Kind.UNKNOWN), REPEAT]
    assert continued(SESSION, failed(Kind.UNKNOWN), REPEAT, *again) is not None
    assert continued(SESSION, failed(Kind.UNKNOWN), REPEAT, *again, *again) is None
    other: list[ev.Event] = [CONTINUED, failed(Kind.UNKNOWN, "another error"), REPEAT]
    assert continued(SESSION, failed(Kind.UNKNOWN), REPEAT, *again, *other) is not None
    outside: list[ev.Event] = [CONTINUED, failed(Kind.OVERLOADED), REPEAT]
    assert continued(SESSION, failed(Kind.OVERLOADED), REPEAT, *outside * 5) is not None


def test_nothing_is_continued() -> None:
    """There is no session before the first attempt, without an id, or where the policy says so."""
    assert continued() is None
    assert continued(SESSION) is None
    assert continued(failed(Kind.OVERLOADED), REPEAT) is None
    incident = Incident.of([OPENED, SESSION, failed(Kind.OVERLOADED), REPEAT])
    assert session_to_continue(incident, POLICY.replace(resume_sessions=False)) is None


def test_the_agent_is_told_what_it_has_not_seen() -> None:
    """A rung's text is sent without the task, which the session has; what it has read already is not sent again."""
    text = "The tests fail.\n\nThe task:\nwrite four files"
    failing = failed(Kind.TEST_FAILURE)
    nudged = Incident.of([OPENED, SESSION, failing, *change(Action.NUDGE, text)])
    assert continuation_prompt(nudged, POLICY) == "The tests fail."
    cut = Incident.of([OPENED, SESSION, failing, *change(Action.NUDGE, text), failed(Kind.NETWORK), REPEAT])
    assert "The tests fail." not in continuation_prompt(cut, POLICY)  # a failing service is no reason for advice
    again = Incident.of(
        [OPENED, SESSION, failing, *change(Action.NUDGE, text), CONTINUED, failed(Kind.TIMEOUT), REPEAT]
    )
    assert "The tests fail." not in continuation_prompt(again, POLICY)
    assert continuation_prompt(again, POLICY).startswith("Your session was interrupted")


def test_a_killed_agent_gets_no_advice() -> None:
    """The nudge after a death says nothing of use to an agent that only has to go on."""
    events: list[ev.Event] = [
        OPENED,
        SESSION,
        failed(Kind.WORKER_DEAD),
        *change(Action.NUDGE, "Adjust it.\n\nThe task:\nx"),
    ]
    text = continuation_prompt(Incident.of(events), POLICY)
    assert "Adjust it." not in text
    assert "do not do it again" in text


def test_a_process_death_is_no_end_for_a_session() -> None:
    """A run that is not idempotent goes on unattended if its agent can continue its session; else it ends partial."""
    known, unknown = Incident.of([OPENED, SESSION]), Incident.of([OPENED])
    for incident in (known, unknown):
        incident.fold(ev.AttemptFailed(2.0, process_death_failure(incident), 1.0, 0.0, may_retry=True))
    assert isinstance(decide_after_process_death(known, POLICY, 3.0), ev.Repeat)
    assert isinstance(decide_after_process_death(unknown, POLICY, 3.0), ev.Finish)
    off = POLICY.replace(resume_sessions=False)
    assert isinstance(decide_after_process_death(known, off, 3.0), ev.Finish)


def test_another_agent_is_told_what_was_done() -> None:
    """A handover after a failing service sends no text of its own: the agent that takes over learns what was done."""
    request = REQUEST.replace(agent="codex")
    changed = ev.Changed(4.0, request, request.digest(), ("agent",), "")
    events = (OPENED, failed(Kind.OVERLOADED, output="half"), decided(ev.HandOver(3, "", "codex", None, "")), changed)
    found = handed_over_request(request, Incident.of(events), POLICY, "")
    assert found.agent == "codex"
    assert "> half" in found.prompt
    assert found.prompt.endswith("The task:\nwrite four files")


def test_a_fresh_start_is_told_what_was_done() -> None:
    """Steps, the last output and changed files precede the task; where nothing is known, the request is unchanged."""
    nothing = Incident.of([OPENED, failed(Kind.OVERLOADED), REPEAT])
    assert handed_over_request(REQUEST, nothing, POLICY, "") is REQUEST
    assert handed_over_request(REQUEST, Incident.of([OPENED]), POLICY, " a.py | 3 +++") is REQUEST
    some = Incident.of([OPENED, ev.StepCompleted(1.0, "one"), failed(Kind.WORKER_DEAD, output="half"), REPEAT])
    found = handed_over_request(REQUEST, some, POLICY, " a.py | 3 +++")
    assert found.prompt.endswith("The task:\nwrite four files")
    for part in ("Reported as done: one", "> half", "> a.py | 3 +++"):
        assert part in found.prompt
        assert part in found.recovery
    nudge = REQUEST.replace(prompt="Adjust.\n\nThe task:\nx", recovery="Adjust.\n\nThe task:\nx")
    climbed = Incident.of([OPENED, failed(Kind.UNKNOWN, output="half"), *change(Action.REPLAN)])
    assert handed_over_request(nudge, climbed, POLICY, "") is nudge  # the rung's text says it
    assert handed_over_request(nudge, climbed, POLICY, " a.py").prompt.endswith("Adjust.\n\nThe task:\nx")
