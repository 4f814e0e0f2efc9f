"""Attempts and model changes of a session as the API shows them: types, times and pauses of the document's records."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.classify.classifier import classify
from rung.core.classify.error_types import ErrorType
from rung.core.domain import events as ev
from rung.core.domain.incident import Incident
from rung.core.policy.call_costs import SessionUsage
from rung.core.recovery.escalation_reason import escalation_reason
from rung.service.incident_status import live_status
from rung.service.spending import Spending
from rung.store.session_usage import add_usage
from rung.testing import FakeClock, HttpError, Script

if TYPE_CHECKING:
    from tests.service.conftest import Running

MODELS = [{"name": "small", "cost": 0.01}, {"name": "large", "cost": 0.1}]
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
START = 1_790_000_000.0


def recover(service: Running, session: str, *items: Any, **settings: Any) -> None:
    """Recover a call of a session in simulated time, without jitter."""
    backoff = {"base": 1, "multiplier": 2, "cap": 30, "jitter": False}
    rung.recover_sync(
        Script(*items),
        rung.Request(prompt="do it", model="small"),
        policy=rung.policy("model", models=MODELS, confirm="never", backoff=backoff, **settings),
        journal=service.journal,
        session=rung.Session("small", session),
        clock=FakeClock(START),
        breakers=rung.BreakerRegistry(),
        retry_budget=None,
    )
    assert service.journal.flush()


def test_attempts_are_retry_attempts(service: Running) -> None:
    """Each attempt has its error type, an ISO 8601 time and the pause that follows it: 1 s, 2 s, 4 s, then none."""
    recover(service, "s", HttpError(503, "busy"), HttpError(504, "late"), HttpError(429, "slow"), "fine")
    attempts = service.get("/api/sessions/s")["attemptsMade"]
    assert [one["attemptNumber"] for one in attempts] == [1, 2, 3, 4]
    assert [one["error"] for one in attempts] == ["server_error", "server_error", "rate_limit", None]
    assert [one["kind"] for one in attempts] == ["overloaded", "timeout", "rate_limit", ""]
    assert [one["errorMessage"] for one in attempts] == ["busy", "late", "slow", ""]
    assert [one["delayMs"] for one in attempts] == [1_000, 2_000, 4_000, 0]
    assert [one["succeeded"] for one in attempts] == [False, False, False, True]
    assert all(ISO.fullmatch(one["timestamp"]) for one in attempts)
    times = [datetime.fromisoformat(one["timestamp"]).astimezone(UTC).timestamp() for one in attempts]
    assert times == [START, START + 1, START + 3, START + 7]


def test_the_last_attempt_has_no_pause(service: Running) -> None:
    """The attempt after which the recovery ends has a pause of 0; every error is one of the eight types."""
    recover(service, "s", HttpError(401, "no key"))
    attempts = service.get("/api/sessions/s")["attemptsMade"]
    assert (attempts[-1]["delayMs"], {one["error"] for one in attempts}) == (0, {"auth_error"})
    assert {one["error"] for one in attempts} <= set(ErrorType)


@pytest.mark.parametrize(
    ("error", "settings", "reason", "cause"),
    [
        (HttpError(500, "down"), {"retries": 1}, "auto_after_retries", "server_error"),
        (HttpError(400, "prompt is too long: 210000 tokens > 200000 maximum"), {}, "context_limit", "context_limit"),
    ],
)
def test_a_handover_is_an_escalation_record(
    service: Running, error: Exception, settings: dict[str, Any], reason: str, cause: str
) -> None:
    """A model change has one of three reasons, its finer cause, an ISO 8601 time and an estimate."""
    on_small = [error] * 6

    def attempt(request: rung.Request) -> Any:
        return "fine" if request.model == "large" else on_small.pop()

    recover(service, "s", *[attempt] * 8, patience=0, **settings)
    (change,) = service.get("/api/sessions/s")["modelChanges"]
    assert (change["fromModel"], change["toModel"], change["reason"], change["cause"]) == (
        "small", "large", reason, cause,
    )  # fmt: skip
    assert ISO.fullmatch(change["timestamp"])
    assert isinstance(change["costEstimate"], float)


def test_a_handover_without_a_cost_in_the_policy_is_estimated(service: Running) -> None:
    """The estimate is the session's average call at the list price of the model that took over."""
    models = ["claude-haiku-4-5", "claude-opus-4-1"]

    def attempt(request: rung.Request) -> str:
        if request.model == models[0]:
            raise HttpError(500, "down")
        return "fine"

    rung.recover_sync(
        attempt,
        rung.Request(prompt="do it", model=models[0]),
        policy=rung.policy("model", models=models, retries=1, patience=0),
        journal=service.journal,
        session=rung.Session(models[0], "s"),
        clock=FakeClock(START),
        breakers=rung.BreakerRegistry(),
        retry_budget=None,
    )
    add_usage(service.journal, {"s": SessionUsage(2, 2_000_000, 200_000, 0)}, START)
    assert service.journal.flush()
    (change,) = service.get("/api/sessions/s")["modelChanges"]
    assert change["costEstimate"] == pytest.approx(15.0 + 7.5)


def test_a_session_has_its_cache_share(service: Running) -> None:
    """The part of a session's input that came from the cache is shown; without recorded tokens it is unknown."""
    recover(service, "s", "fine")
    assert service.get("/api/sessions/s")["cacheShare"] is None
    add_usage(service.journal, {"s": SessionUsage(2, 1_000, 50, 620, 100)}, START)
    assert service.get("/api/sessions/s")["cacheShare"] == 0.62


def test_a_handover_is_estimated_with_a_cold_cache(service: Running) -> None:
    """The estimate of another model counts what the session has cached as a cache write there, and says so."""
    recover(service, "s", "fine")
    prices = {
        name: {"input": 5.0, "output": 25.0, "cache_read": 0.5, "cache_write": 6.25} for name in ("small", "large")
    }
    service.context.replayers.spending = Spending(service.journal, None, prices)
    add_usage(service.journal, {"s": SessionUsage(1, 1_000_000, 0, 900_000, 100_000)}, START)
    preview = service.get("/api/sessions/s/retry-preview", model="large")
    assert preview["costEstimate"] == pytest.approx(6.25)
    assert preview["costDifference"] == pytest.approx(6.25 - (0.45 + 0.625))
    assert preview["estimateBasis"].endswith("reads nothing from a cache")


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        ("a person approved", "manual"),
        ("a person chose", "manual"),
        ("context_limit", "context_limit"),
        ("context_limit: fallback worked last time", "context_limit"),
        ("rate_limit", "auto_after_retries"),
        ("", "auto_after_retries"),
    ],
)
def test_the_reason_of_an_escalation(cause: str, reason: str) -> None:
    """The reason of a decision is one of manual, auto_after_retries and context_limit."""
    assert escalation_reason(cause) == reason


def test_a_wait_for_a_service_is_no_retry() -> None:
    """The next attempt of a recovery that waits for its service is a probe; that of a retry is not."""
    failed = ev.AttemptFailed(START, classify(HttpError(503, "busy")), 0.1, 0.0, may_retry=True)
    opened = ev.Opened(START, "a", ev.IncidentContext("model", "default", rungs=("retry", "wait", "surface")))
    for decision, is_probe in (
        (ev.Repeat(0, 2.0, "again"), False),
        (ev.Repeat(1, 2.0, "down", until=START + 300), True),
    ):
        events: list[ev.Event] = [opened, failed, ev.Decided(START, decision)]
        retry = live_status(Incident.of(events), events).retry
        assert retry is not None
        assert (retry.is_probe, retry.until) == (is_probe, START + 2)
