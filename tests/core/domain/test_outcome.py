"""Outcomes and their JSON contracts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import rung
from rung import schemas
from rung.core.classify.classifier import classify
from rung.core.domain import events as ev
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Evidence, Failure, Kind
from rung.core.domain.incident import Incident
from rung.core.domain.ladder import Action
from rung.core.domain.level_record import level_records
from rung.core.domain.outcome import (
    Outcome,
    annotate,
    build_outcome,
    note_lines,
    report_text,
)
from rung.core.domain.recommendation import failed_at, recommendation
from rung.core.domain.request import Request
from rung.core.policy.presets import LADDERS

TASK, PIPELINE = LADDERS["task"], LADDERS["pipeline"]
REQUEST = Request(prompt="do it", model="small")
NOON = 1_700_000_000.0
OPENED = ev.Opened(NOON, "i1", ev.IncidentContext("task", "default"), REQUEST)


def failed(kind: Kind, message: str, at: float = NOON + 1, **facts: Any) -> ev.AttemptFailed:
    failure = Failure(kind=kind, retryable=True, rule="r", message=message, evidence=Evidence(text=message, **facts))
    return ev.AttemptFailed(at, failure, 1.0, 0.25, may_retry=True)


STORY: tuple[ev.Event, ...] = (
    OPENED,
    failed(Kind.TIMEOUT, "too slow"),
    ev.Decided(NOON + 2, ev.Repeat(0, 1.0, "timeout")),
    failed(Kind.TEST_FAILURE, "red"),
    ev.Decided(NOON + 3, ev.Change(1, Action.NUDGE, 0.0, "test_failure")),
    ev.StepCompleted(NOON + 4, "built"),
    failed(Kind.TIMEOUT, "slow again"),
    ev.Decided(NOON + 5, ev.Repeat(0, 1.0, "timeout")),
    ev.Decided(NOON + 5, ev.Change(1, Action.NUDGE, 0.0, "once more")),
    failed(Kind.TEST_FAILURE, "still red", missing=("tests", "docs")),
    ev.Decided(
        NOON + 6,
        ev.Finish(4, ev.Status.PARTIAL, "no more", ((3, "no other model or agent to hand over to"), (1, "exhausted"))),
    ),
    ev.Closed(NOON + 6, ev.Status.PARTIAL, "no more"),
)
WELL: tuple[ev.Event, ...] = (OPENED, ev.AttemptSucceeded(NOON + 1, 1.0, 0.5))


def outcome_of(events: tuple[ev.Event, ...], value: Any = None, error: Exception | None = None) -> Outcome[Any]:
    return build_outcome(Incident.of(events), TASK, events, value=value, error=error, now=NOON + 7.1239)


def validate(schema: str, table: Any) -> None:
    Draft202012Validator(json.loads(schemas.text(schema))).validate(json.loads(json.dumps(table, allow_nan=False)))


def test_the_outcome_of_a_story() -> None:
    """An outcome tells status, reason, what was done, where it stopped, the path by level, and what it took."""
    outcome = outcome_of(STORY, error=ValueError("x"))
    reason = "no more; last error: test_failure: still red"
    assert (outcome.status, outcome.reason, outcome.ok) == (ev.Status.PARTIAL, reason, False)
    assert (outcome.attempts, outcome.dollars) == (4, 1.0)
    assert outcome.seconds == pytest.approx(7.1239)
    assert (outcome.path, outcome.steps, outcome.failed_at) == ((1, 2, 5), ("built",), "tests, docs (attempt 4)")
    assert (outcome.model, outcome.ladder, outcome.id, outcome.events) == ("small", "task", "i1", STORY)
    assert outcome.failure is not None
    assert outcome.recommendation == recommendation(outcome.failure)


def test_contract() -> None:
    """The contract is JSON, fulfils both its schemas, and is there even when nothing was done."""
    contract = outcome_of(STORY).to_dict()
    validate("outcome", contract)
    validate("partial", contract)
    assert contract == {
        "status": "partial",
        "completedSteps": ["built"],
        "failedAt": "tests, docs (attempt 4)",
        "failureReason": "no more; last error: test_failure: still red",
        "escalationPath": [1, 2, 5],
        "recommendation": "Look at the failing test or check; the agent did not find the cause.",
        "errorType": "test_failure",
        "attempts": 4,
        "probes": 0,
        "seconds": 7.124,
        "dollars": 1.0,
        "model": "small",
        "provider": "",
        "attempt": 0,
        "ladder": "task",
        "incident": "i1",
        "skipped": [{"rung": "rung 3", "reason": "no other model or agent to hand over to"}],
        "levels": level_records(STORY, TASK),
    }
    nothing = outcome_of((OPENED, ev.Cancelled(NOON, "stopped"))).to_dict()
    validate("partial", nothing)
    assert (nothing["completedSteps"], nothing["failedAt"], nothing["errorType"]) == ([], "attempt 0", None)


def test_contract_of_a_success() -> None:
    """A good outcome has its value and tells no reason, place or advice."""
    outcome = outcome_of(WELL, value=42)
    assert outcome.ok
    assert outcome.unwrap() == 42
    contract = outcome.to_dict()
    validate("outcome", contract)
    assert {contract[key] for key in ("failedAt", "failureReason", "recommendation", "errorType")} == {None}
    assert contract["attempt"] == contract["attempts"]


def test_pipeline_failure() -> None:
    """What a stage hands downstream names level, kind, what is missing and whom to ask."""
    table = outcome_of(STORY).pipeline_failure("planner")
    validate("pipeline-failure", table)
    assert table == {
        "status": "FAIL",
        "failure_level": "L5",
        "failure_type": "test_failure",
        "retry_count": 2,
        "partial_output": "built",
        "missing": "tests, docs",
        "route_to": "planner",
    }
    nothing = outcome_of((OPENED, ev.Cancelled(NOON, "stopped"))).pipeline_failure()
    validate("pipeline-failure", nothing)
    assert (nothing["failure_level"], nothing["failure_type"], nothing["retry_count"]) == ("L0", "unknown", 0)
    assert (nothing["missing"], nothing["route_to"]) == ("attempt 0", "lead")


@pytest.mark.parametrize(
    ("endings", "model"),
    [
        ((ev.AttemptSucceeded(NOON + 9, 1.0, 0.0),), "large"),
        ((ev.ModelRestored(NOON + 9, "small", ""), ev.Closed(NOON + 9, ev.Status.FAILED, "x")), "small"),
    ],
)
def test_the_model_that_answered(endings: tuple[ev.Event, ...], model: str) -> None:
    """The model of an outcome is the one that answered, or the one that a failed handover went back to."""
    events = (
        OPENED,
        failed(Kind.OVERLOADED, "busy"),
        ev.Decided(NOON + 2, ev.HandOver(3, "large", "", None, "overloaded")),
        ev.Changed(NOON + 2, REQUEST.replace(model="large"), "d", ("model",), ""),
        *endings,
    )
    outcome = build_outcome(Incident.of(events), TASK, events, value=1, error=None, now=NOON + 9)
    assert outcome.model == model


def test_partial_output() -> None:
    """What is handed on is the last turn's answer, else the last output of an attempt, else the completed steps."""
    cut = (OPENED, failed(Kind.PARTIAL_OUTPUT, "half", output="# Summary"), *STORY[1:])
    assert outcome_of(cut).pipeline_failure()["partial_output"] == "# Summary"
    assert outcome_of(cut, value="I did A").pipeline_failure()["partial_output"] == "I did A"
    assert outcome_of(STORY).pipeline_failure()["partial_output"] == "built"


def test_a_call_that_was_no_request_has_no_model() -> None:
    """Where no request was given, no model is named."""
    events = (ev.Opened(NOON, "i", ev.IncidentContext("call", "default")), ev.AttemptSucceeded(NOON, 1.0, 0.0))
    assert build_outcome(Incident.of(events), TASK, events, value=1, error=None, now=NOON).model == ""


def test_unwrap_raises_the_last_error() -> None:
    """A failed outcome raises the last error again, once with the whole path as notes, however often it is unwrapped."""
    error = ValueError("still red")
    outcome = outcome_of(STORY, error=error)
    for _ in range(2):
        with pytest.raises(ValueError, match="still red") as raised:
            outcome.unwrap()
        assert raised.value is error
    assert error.__notes__ == note_lines(outcome)
    assert error.__notes__ == [
        "rung: partial after 4 attempts in 7.1 s: no more; last error: test_failure: still red",
        "rung:   timeout (rule r): too slow",
        "rung:   → repeat: timeout",
        "rung:   test_failure (rule r): red",
        "rung:   → change: test_failure",
        "rung:   timeout (rule r): slow again",
        "rung:   → repeat: timeout",
        "rung:   → change: once more",
        "rung:   test_failure (rule r): still red",
        "rung:     skipped rung 3: no other model or agent to hand over to",
        "rung:     skipped rung 1: exhausted",
        "rung:   → finish: no more",
        "rung: Look at the failing test or check; the agent did not find the cause.",
    ]


def test_unwrap_without_an_error() -> None:
    """Where no error was raised, one of our own says why it ended."""
    with pytest.raises(AttemptError, match="stopped"):
        outcome_of((OPENED, ev.Cancelled(NOON, "stopped"))).unwrap()


@pytest.mark.parametrize("error", [TimeoutError("slow"), AttemptError("slow", finding="timeout")])
def test_an_outer_ladder_does_not_repeat_it(error: Exception) -> None:
    """An error that was recovered in vain keeps its kind for an outer ladder, and is not repeated there."""
    events = (OPENED, failed(Kind.TIMEOUT, "slow"), ev.Closed(NOON, ev.Status.FAILED, "slow"))
    assert classify(error).retryable
    failure = classify(annotate(error, outcome_of(events, error=error)))
    assert (failure.kind, failure.retryable, failure.evidence.spent) == (Kind.TIMEOUT, False, True)


def test_an_error_without_a_failure_is_unknown_outside() -> None:
    """Where nothing had failed (it was stopped), an outer ladder sees an unknown kind with the reason."""
    failure = classify(annotate(ValueError("x"), outcome_of((OPENED, ev.Cancelled(NOON, "stopped")))))
    assert (failure.kind, failure.message, failure.evidence.spent) == (Kind.UNKNOWN, "stopped", True)


@pytest.mark.parametrize("kind", Kind)
def test_there_is_always_advice(kind: Kind) -> None:
    """For every kind there is a sentence that says what a person should do."""
    failure = Failure(kind=kind, retryable=False, rule="x")
    assert recommendation(failure).endswith(".")
    assert recommendation(None) == "Run it again."


def test_where_it_stopped() -> None:
    """The place is the step that failed, its missing parts or its tool; else the attempt and the last finished step."""
    assert failed_at(Incident.of(STORY[:2])) == "attempt 1"
    assert failed_at(Incident.of(STORY[:6])) == "attempt 2, after: built"
    assert failed_at(Incident.of((OPENED, failed(Kind.TOOL_ERROR, "x", tool="Bash")))) == "tool Bash (attempt 1)"
    assert failed_at(Incident.of((OPENED, failed(Kind.TOOL_ERROR, "x", tool="Bash", step="deploy")))) == "deploy"


def test_report() -> None:
    """The report of a blocked incident says what was tried, why it failed, where it stands and what can be done."""
    report = report_text(replace(outcome_of(STORY), status=ev.Status.BLOCKED), TASK)
    assert report.startswith("# BLOCKED: test_failure (2023-11-14T22:13:27+00:00)\n\nno more; last error: ")
    assert "- level 2, nudge, after test_failure\n" in report
    assert "4 attempts, 7 s, $1.00." in report
    assert "- test_failure: still red\n" in report
    assert "Done: built. Stopped at tests, docs (attempt 4)." in report
    assert "1. Look at the failing test or check; the agent did not find the cause.\n2. " in report
    assert report.endswith("\n\n")


def test_report_of_a_question() -> None:
    """Where a person was asked, the report offers the options of the last question."""
    options = (ev.Option("retry", "Retry unchanged"), ev.Option("stop", "Stop here"))
    ask = ev.Ask(4, "What should be done?", options, None, "", "", "test_failure")
    events = (*STORY[:4], ev.Decided(NOON + 5, ask), ev.Closed(NOON + 6, ev.Status.BLOCKED, "nobody there"))
    assert report_text(outcome_of(events), TASK).endswith("## Options\n\n1. Retry unchanged\n2. Stop here\n\n")


def test_report_of_nothing() -> None:
    """A report can be written of an outcome without events or failure."""
    report = report_text(replace(outcome_of((OPENED, ev.Cancelled(NOON, "stopped"))), events=()), TASK)
    assert report.startswith("# BLOCKED: unknown (1970-01-01T00:00:07+00:00)")
    assert "Done: nothing." in report


def test_an_outcome_is_shown_in_a_line() -> None:
    """The representation names the status, the value, the attempts and why it failed, without events."""
    good = rung.recover_sync(lambda _: "x", "go")
    assert repr(good) == "Outcome(status='succeeded', value='x', attempts=1)"
    bad = rung.recover_sync(lambda _: 1 / 0, "go", policy=rung.policy("call"))
    assert repr(bad) == f"Outcome(status='failed', value=None, attempts=1, reason={bad.reason!r})"
