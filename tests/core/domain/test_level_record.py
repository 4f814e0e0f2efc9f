"""Level records: what a recovery writes at each transition and at its end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from rung import schemas
from rung.core.domain import events as ev
from rung.core.domain.failures import Kind
from rung.core.domain.ladder import Action
from rung.core.domain.level_record import level_records
from rung.core.policy.presets import LADDERS
from tests.core.domain.test_outcome import NOON, OPENED, PIPELINE, STORY, TASK, WELL, failed

SCHEMA = Draft202012Validator(json.loads(schemas.text("level-record")))


def records_of(events: tuple[ev.Event, ...], ladder: Any = TASK) -> list[dict[str, Any]]:
    records = level_records(events, ladder)
    for record in records:
        SCHEMA.validate(record)
    return records


def test_level_records() -> None:
    """There is one record for each climb, none for a repeat or another try of the same rung, and one for the end."""
    *entered, ended = records_of(STORY)
    assert [(one["recoveryLevel"], one["recoveryAction"], one["errorType"]) for one in entered] == [
        (1, "retry", "timeout"),
        (2, "nudge", "test_failure"),
        (5, "force-done", "test_failure"),
    ]
    assert entered[1] == {
        "taskId": "i1",
        "status": "in_progress",
        "recoveryLevel": 2,
        "recoveryAction": "nudge",
        "errorType": "test_failure",
        "previousLevels": [1],
        "enteredAt": "2023-11-14T22:13:23+00:00",
    }
    assert ended == {
        "taskId": "i1",
        "status": "completed",
        "outcome": "partial",
        "partial": True,
        "escalationLevel": 5,
        "escalationPath": [1, 2, 5],
        "completedSteps": ["built"],
        "failedAt": "tests, docs (attempt 4)",
        "failureReason": "no more; last error: test_failure: still red",
        "recommendation": "Look at the failing test or check; the agent did not find the cause.",
        "explanation": "no more; last error: test_failure: still red",
        "summary": "partial after 4 attempts, level 5",
    }


def test_the_end_of_a_success() -> None:
    """A recovered incident ends with a record that is not partial; one that never failed has no records."""
    assert records_of(WELL) == []
    _, ended = records_of((*STORY[:3], ev.AttemptSucceeded(NOON + 9, 1.0, 0.0)))
    assert (ended["outcome"], ended["partial"], ended["escalationLevel"]) == ("recovered", False, 1)
    assert (ended["explanation"], ended["failureReason"]) == ("timeout: solved at level 1", None)


def test_a_stop_before_any_failure() -> None:
    """What is stopped before it failed still ends with a record."""
    (ended,) = records_of((OPENED, ev.Cancelled(NOON, "stopped")))
    assert (ended["escalationLevel"], ended["summary"]) == (0, "partial after 0 attempts, no recovery")


def test_another_clock_and_numbering() -> None:
    """Times of a clock that does not begin in 1970 are moved by its epoch; levels follow the ladder's numbering."""
    events = (ev.Decided(5.0, ev.Repeat(0, 0.0, "x")),)
    (record,) = level_records(events, PIPELINE, epoch=NOON)
    assert (record["recoveryLevel"], record["errorType"]) == (0, "unknown")
    assert record["enteredAt"] == "2023-11-14T22:13:25+00:00"


@pytest.mark.parametrize(
    ("decision", "action"),
    [
        (ev.Repeat(6, 0.0, "x"), "retry"),
        (ev.Change(6, Action.NUDGE, 0.0, "x"), "nudge"),
        (ev.HandOver(6, "m", "", None, "x"), "fallback"),
        (ev.Ask(6, "?", (), None, "", "", "x"), "ask"),
        (ev.Finish(6, ev.Status.FAILED, "x"), "surface"),
        (ev.Change(0, Action.REPLAN, 0.0, "x"), "compact"),
    ],
)
def test_a_ladder_that_is_not_known(decision: ev.Decision, action: str) -> None:
    """Of a ladder of one's own, the action is that of a rung's name or the one that the decision shows."""
    terms = ev.IncidentContext("mine", "default", rungs=("compact", *(f"step {n}" for n in range(6))))
    events = (OPENED._replace(terms=terms), failed(Kind.UNKNOWN, "x"), ev.Decided(NOON, decision))
    (record,) = records_of(events, LADDERS["task"])
    assert record["recoveryAction"] == action
