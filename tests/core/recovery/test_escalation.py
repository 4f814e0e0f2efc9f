"""Escalation and disabled retries: when another model takes over, with whose leave, and when nothing is tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rung
from rung.core.domain.ladder import HANDOVER_ACTIONS, Action
from rung.core.policy.presets import LADDERS
from rung.core.recovery.stream_rules import for_streams
from rung.testing import FakeClock

if TYPE_CHECKING:
    from rung.core.policy.policy import Policy

MODELS = ["haiku", "sonnet", "opus"]
WITH_HANDOVER = sorted(
    name for name, ladder in LADDERS.items() if any(rung.action in HANDOVER_ACTIONS for rung in ladder.rungs)
)
BROKEN = rung.AttemptError("boom", status=500)
# Failures that enter each ladder at different rungs: retried, nudged, handed over.
ERRORS = {
    "server_error": BROKEN,
    "overloaded": rung.AttemptError("Overloaded", status=529),
    "malformed_output": rung.AttemptError("not JSON", finding="malformed_output"),
    "test_failure": rung.AttemptError("2 failed", finding="test_failure"),
    "capability_mismatch": rung.AttemptError("too hard", finding="capability_mismatch"),
}


class Calls:
    """An attempt that always fails, and records the model of each call."""

    def __init__(self, error: Exception = BROKEN) -> None:
        self.error = error
        self.models: list[str] = []

    def __call__(self, request: rung.Request) -> str:
        self.models.append(request.model)
        raise self.error


def run(policy: Policy, calls: Calls, ask: Any = None, request: rung.Request | None = None) -> rung.Outcome[str]:
    clock = FakeClock()
    return rung.recover_sync(
        calls,
        request or rung.Request(prompt="do it", model="haiku"),
        policy=policy,
        ask=ask,
        clock=clock,
        jitter=lambda: 0.5,
        breakers=None,
        retry_budget=None,
    )


def gateway_policy(**settings: Any) -> Policy:
    return for_streams(rung.policy("call", **settings))


def policy_of(ladder: str, **settings: Any) -> Policy:
    settings = {"models": MODELS, "attempts": 40, "seconds": None, "report": "", **settings}
    return gateway_policy(**settings) if ladder == "gateway" else rung.policy(ladder, **settings)


ALL = st.sampled_from([*WITH_HANDOVER, "gateway"])


@given(ALL, st.sampled_from(sorted(ERRORS)), st.integers(0, 4), st.integers(1, 4), st.sampled_from([0, 60]))
def test_another_model_takes_over_at_the_threshold(
    ladder: str, error: str, after: int, retries: int, patience: int
) -> None:
    """On every ladder and for every failure, the first model is asked exactly `escalate_after` times again, never less."""
    calls = Calls(ERRORS[error])
    policy = policy_of(ladder, escalate_after=after, retries=retries, patience=patience)
    run(policy, calls)
    first = next((n for n, model in enumerate(calls.models) if model != "haiku"), None)
    if first is not None:
        assert first == 1 + after
    else:
        # The ladder surfaces this kind at once, or the rungs below ended before the threshold: nobody gave leave.
        assert after > 0 or policy.ladder.entry_index(rung.classify(ERRORS[error])) == len(policy.ladder.rungs) - 1


@pytest.mark.parametrize("ladder", [*WITH_HANDOVER, "gateway"])
@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_a_threshold_within_the_retries_is_always_met(ladder: str, after: int) -> None:
    """With three retries and a lower threshold, a failing server is handed over after exactly so many retries."""
    calls = Calls()
    run(policy_of(ladder, escalate_after=after, retries=3, patience=0), calls)
    assert calls.models[: after + 2] == ["haiku"] * (1 + after) + ["sonnet"]


@given(ALL, st.sampled_from(sorted(ERRORS)), st.integers(1, 4), st.none() | st.integers(0, 4), st.booleans())
def test_no_other_model_without_leave(
    ladder: str,
    error: str,
    retries: int,
    after: int | None,
    attended: bool,  # drawn
) -> None:
    """Without automatic escalation, no call reaches another model unless a person approves it, whatever else is set."""
    asked: list[str] = []

    def decline(question: Any, _: Any) -> str:
        asked.append(question.model)
        return "decline" if question.model else "stop"

    calls = Calls(ERRORS[error])
    policy = policy_of(ladder, auto_escalate=False, escalate_after=after, retries=retries, patience=0)
    outcome = run(policy, calls, decline if attended else None)
    assert set(calls.models) == {"haiku"}
    assert not outcome.ok


def test_a_declined_handover_is_no_rung_that_was_tried() -> None:
    """The next question, and the path of the outcome, name only what was done."""
    asked: list[str] = []

    def decline(question: Any, _: Any) -> str:
        asked.append(question.question)
        return "decline" if question.model else "stop"

    policy = policy_of("model", auto_escalate=False, retries=1, patience=0)
    outcome = run(policy, Calls(), decline)
    assert "(retry)" in asked[-1]
    names = [rung.name for rung in policy.ladder.rungs]
    assert list(outcome.path) == [policy.ladder.level(names.index(name)) for name in ("retry", "surface")]


def test_a_declined_model_is_named_where_no_other_is_left() -> None:
    """The last question says that a person declined a model; that no other one is left is not all."""
    reasons: list[str] = []

    def decline(question: Any, _: Any) -> str:
        reasons.extend(reason for _, reason in question.skipped)
        return "decline" if question.model else "stop"

    run(policy_of("model", models=MODELS[:2], auto_escalate=False, retries=1, patience=0), Calls(), decline)
    assert reasons[-1] == "no other model or agent to hand over to; a person declined sonnet"


@pytest.mark.parametrize("ladder", [*WITH_HANDOVER, "gateway"])
def test_leave_is_asked_for_and_holds(ladder: str) -> None:
    """A person is asked before another model takes over, and an approval lets it."""
    calls, asked = Calls(), []

    def approve(question: Any, _: Any) -> str:
        asked.append(question.model)
        return "approve" if question.model else "stop"

    run(policy_of(ladder, auto_escalate=False, patience=0), calls, approve)
    assert asked[0] == "sonnet"
    assert "sonnet" in calls.models


def test_confirmation_is_asked_at_the_threshold() -> None:
    """With `confirm`, the question about the dearer model comes at the threshold, not after all retries."""
    calls, asked = Calls(), []

    def approve(question: Any, _: Any) -> str:
        asked.append(len(calls.models))
        return "approve" if question.model else "stop"

    run(policy_of("model", escalate_after=1, confirm="more_expensive"), calls, approve)
    assert asked[0] == 2
    assert calls.models[:3] == ["haiku", "haiku", "sonnet"]


def test_each_model_has_its_own_threshold() -> None:
    """A model that took over is asked as often again as the first one before the next takes over."""
    calls = Calls()
    run(policy_of("model", escalate_after=2, patience=0), calls)
    assert calls.models[:9] == ["haiku"] * 3 + ["sonnet"] * 3 + ["opus"] * 3


def test_without_leave_an_outage_is_waited_out() -> None:
    """Where nobody can approve another model, a passing outage is waited for, and only then the run ends blocked."""
    calls = Calls(ERRORS["overloaded"])
    outcome = run(policy_of("task", auto_escalate=False, patience=120), calls)
    assert set(calls.models) == {"haiku"}
    assert len(calls.models) > 4
    assert (outcome.status, outcome.seconds >= 100) == (rung.Status.BLOCKED, True)


def test_another_agent_needs_no_leave_to_change_the_model() -> None:
    """Another agent with the same model takes over first where another model needs leave."""
    calls = Calls()
    policy = policy_of("task", auto_escalate=False, agents=["other"], same_account=[], patience=0)
    seen: list[tuple[str, str]] = []

    def attempt(request: rung.Request) -> str:
        seen.append((request.model, request.agent))
        return calls(request)

    rung.recover_sync(
        attempt, rung.Request(prompt="x", model="haiku"), policy=policy, clock=FakeClock(), breakers=None,
        retry_budget=None,
    )  # fmt: skip
    assert ("haiku", "other") in seen
    assert {model for model, _ in seen} == {"haiku"}


DISABLED: dict[str, dict[str, Any]] = {
    "retries": {"retries": 0},
    "template": {"template": "off"},
    "kinds": {"retry": []},
}


@pytest.mark.parametrize("off", DISABLED)
@pytest.mark.parametrize("ladder", [*sorted(LADDERS), "gateway"])
@pytest.mark.parametrize("error", sorted(ERRORS))
def test_disabled_retrying_is_one_call(off: str, ladder: str, error: str) -> None:
    """With retrying disabled, a failure is passed on after one call: no other model, no wait, no question."""
    calls = Calls(ERRORS[error])
    settings = {"escalate_after": 0, "patience": 60, **DISABLED[off]}

    def ask(*_: Any) -> str:
        raise AssertionError("nobody is asked")

    outcome = run(policy_of(ladder, **settings), calls, ask)
    assert calls.models == ["haiku"]
    assert outcome.seconds == 0
    assert outcome.error is ERRORS[error] or not outcome.ok


@pytest.mark.parametrize("ladder", [*sorted(LADDERS), "gateway"])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_a_refused_request_is_never_repeated_unchanged(ladder: str, status: int) -> None:
    """After a 4xx that says the request itself is refused, no attempt gets a request that was already sent."""
    sent: list[str] = []

    def attempt(request: rung.Request) -> str:
        sent.append(request.digest())
        raise rung.AttemptError("refused", status=status)

    rung.recover_sync(
        attempt,
        rung.Request(prompt="do it", model="haiku"),
        policy=policy_of(ladder, patience=60),
        clock=FakeClock(),
        breakers=None,
        retry_budget=None,
    )
    assert len(sent) == len(set(sent))
    if status == 401:  # the key is refused: nothing in the request can help
        assert len(sent) == 1


def test_kinds_that_a_policy_does_not_retry_wait_for_nothing() -> None:
    """A kind left out of the retried ones gets no wait for the service either."""
    calls = Calls(ERRORS["overloaded"])
    outcome = run(policy_of("call", retry=["rate_limit"], models=[], patience=60), calls)
    assert calls.models == ["haiku"]
    assert outcome.status is rung.Status.FAILED


@pytest.mark.parametrize("after", [0, 2])
def test_another_agent_takes_over_at_the_threshold(after: int) -> None:
    """`escalate_after` holds for another agent as for another model."""
    asked: list[str] = []

    def attempt(request: rung.Request) -> str:
        asked.append(request.agent)
        raise BROKEN

    policy = rung.policy("task", agents=["second"], escalate_after=after, retries=3, patience=0, report="")
    rung.recover_sync(
        attempt, rung.Request(prompt="do it"), policy=policy, clock=FakeClock(), breakers=None, retry_budget=None
    )
    assert asked[: after + 2] == [""] * (1 + after) + ["second"]


def test_the_reason_says_that_recovery_is_off() -> None:
    """A policy without retries asks no other model, and says why."""
    calls = Calls()
    outcome = run(policy_of("call", retries=0), calls)
    assert calls.models == ["haiku"]
    assert "recovery is off: the policy has no retries" in outcome.reason
    assert "recovery is off" not in run(policy_of("call", retries=0, models=[]), Calls()).reason


def test_the_retry_rung_is_not_counted_twice() -> None:
    """The number of retries of a policy is that of its retry rung."""
    assert (rung.policy("task").retries, rung.policy("model", retries=5).retries) == (3, 5)
    assert not rung.policy("crew").is_off
    assert rung.policy("task").with_tries(Action.RETRY, 0).is_off
