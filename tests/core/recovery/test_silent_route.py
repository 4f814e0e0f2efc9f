"""A silent route is not asked again while another one is left, and a stream that stands still is resumed elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain.failures import Phase
from rung.core.domain.ladder import Action
from rung.core.policy.policy import Confirm
from rung.core.recovery.silent_route import SILENT_SECONDS
from rung.testing import FakeClock

if TYPE_CHECKING:
    from rung.core.policy.policy import Policy

SILENT = {"finding": "timeout", "silence": 60.0}
STREAM = {"phase": Phase.STREAM, "output_started": True}
CUT = {"finding": "stream_interrupted", **STREAM}


def models_asked(policy: Policy, *failures: dict[str, Any]) -> list[str]:
    """Play these failures, then a success; return the models that were asked."""
    left, asked = list(failures), []

    def attempt(request: rung.Request) -> str:
        asked.append(request.model)
        if left:
            raise rung.AttemptError("trouble", **left.pop(0))
        return "done"

    rung.recover_sync(
        attempt,
        rung.Request(prompt="x", model="a"),
        policy=policy,
        clock=FakeClock(),
        breakers=rung.BreakerRegistry(),
        retry_budget=rung.RetryBudget(),
        rung_handlers={"resume": lambda request, incident: request.replace(prompt=f"resume {len(incident.failures)}")},
        jitter=lambda: 0.5,
    )
    return asked


TWO = rung.policy("call", models=["a", "b"])
ONE = rung.policy("call", models=["a"])


def test_a_silent_provider_is_not_asked_again() -> None:
    """After one timeout of a silent provider, the next model is asked."""
    assert models_asked(TWO, SILENT) == ["a", "b"]


def test_the_sdk_of_a_provider_tells_its_silence() -> None:
    """A timeout of a provider's SDK is its silence; a timeout that nobody explains is retried."""
    assert models_asked(TWO, {"finding": "timeout", "provider": "openai"}) == ["a", "b"]
    assert models_asked(TWO, {"finding": "timeout"}) == ["a", "a"]


def test_the_last_route_is_asked_again() -> None:
    """Without another model, and on the last one, a silent provider is asked again."""
    assert models_asked(ONE, SILENT, SILENT) == ["a", "a", "a"]
    assert models_asked(TWO, SILENT, SILENT, SILENT) == ["a", "b", "b", "b"]


def test_a_status_is_an_answer() -> None:
    """A provider that reports a timeout of its own (504) is not silent."""
    assert models_asked(TWO, {"finding": "timeout", "status": 504, "provider": "openai"}) == ["a", "a"]


def test_an_approval_is_not_another_route() -> None:
    """A handover that a person must approve does not spare the retry."""
    asking = TWO.replace(confirm=Confirm.ALWAYS)
    assert models_asked(asking, SILENT) == ["a", "a"]


@pytest.mark.parametrize(("silence", "asked"), [(SILENT_SECONDS, ["a", "b"]), (SILENT_SECONDS - 1, ["a", "a"])])
def test_a_stream_that_stalls_is_resumed_elsewhere(silence: float, asked: list[str]) -> None:
    """A stream that breaks after a long silence is resumed by the next model; after a short one, by the same."""
    assert models_asked(TWO, {**CUT, "silence": silence, "progress": True}) == asked


def test_a_stream_that_stands_still_is_resumed_elsewhere() -> None:
    """A resumed stream that breaks without progress is handed over; one that makes progress is resumed again."""
    moving, still = {**CUT, "progress": True}, {**CUT, "progress": False}
    assert models_asked(TWO, moving, still) == ["a", "a", "b"]
    assert models_asked(TWO, moving, moving, moving) == ["a", "a", "a", "a"]
    assert models_asked(ONE, moving, still, still) == ["a", "a", "a", "a"]


def test_a_stream_that_breaks_again_and_again_is_resumed_elsewhere() -> None:
    """A stream that breaks five times, each time further on, is resumed by the next model; the last one keeps resuming it."""
    moving = {**CUT, "progress": True}
    assert models_asked(TWO, *[moving] * 7) == [*["a"] * 5, "b", "b", "b"]
    assert models_asked(ONE, *[moving] * 7) == ["a"] * 8


def test_each_model_may_break_as_often() -> None:
    """The breaks of a model that was left do not count against the one that took over."""
    rungs = [replace(each, tries=2) if each.action is Action.FALLBACK else each for each in TWO.ladder.rungs]
    policy = rung.policy("call", models=["a", "b", "c"], attempts=20)
    policy = policy.replace(ladder=replace(policy.ladder, rungs=tuple(rungs)))
    assert models_asked(policy, *[{**CUT, "progress": True}] * 11) == [*["a"] * 5, *["b"] * 5, "c", "c"]


@pytest.mark.parametrize("attempts", [2, 3, 4])
def test_resumptions_leave_an_attempt_to_the_fallback(attempts: int) -> None:
    """The last attempt of a budget resumes the stream on another model, not on the one that breaks it."""
    policy = rung.policy("call", models=["a", "b"], attempts=attempts)
    assert models_asked(policy, *[{**CUT, "progress": True}] * (attempts - 1)) == [*["a"] * (attempts - 1), "b"]


def test_a_refused_resumption_is_repeated() -> None:
    """A resumption that is refused (529) says nothing about the stream: it is tried again on the same model."""
    refused = {"finding": "overloaded", "status": 529, **STREAM, "progress": False}
    assert models_asked(TWO, {**CUT, "progress": True}, refused) == ["a", "a", "a"]
