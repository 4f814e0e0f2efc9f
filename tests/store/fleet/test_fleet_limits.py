"""`rung.policies.fleet_limits`: programs on one journal share breakers and a retry budget, and go on alone without it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest

import rung
from rung.core.domain.errors import ConfigError
from rung.policies import FleetLimits, fleet_limits
from rung.store import open_journal
from tests.store import postgres
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.journal.journal import Journal

BREAKER = rung.BreakerSettings(minimum=2, rate=0.5, pause=0.5)


def fail_twice(limits: FleetLimits) -> None:
    """Have two calls of a model fail, which opens its circuit."""

    def broken(_request: rung.Request) -> str:
        raise ConnectionError("connection refused")

    policy = rung.policy("call", retries=0, patience=0)
    for _ in range(2):
        rung.recover_sync(
            broken, rung.Request(model="m"), policy=policy, breakers=limits.breakers, retry_budget=limits.retry_budget
        )


def test_a_circuit_is_opened_and_closed_for_all(make_journal: Callable[[], Journal]) -> None:
    """A circuit that one program opens is open in the other, and one successful call closes it in both."""
    one, other = (fleet_limits(make_journal(), breaker=BREAKER) for _ in range(2))
    with one, other:
        fail_twice(one)
        assert one.breakers.get("m").circuit == "open"
        wait_until(lambda: other.breakers.get("m").circuit == "open")

        def answered() -> bool:
            outcome = rung.recover_sync(
                lambda _: "fine",
                rung.Request(model="m"),
                policy=rung.policy("call", patience=0),
                breakers=other.breakers,
            )
            return outcome.ok

        wait_until(answered)
        wait_until(lambda: one.breakers.get("m").circuit == "closed")


def test_a_retry_budget_is_shared(make_journal: Callable[[], Journal]) -> None:
    """Tokens that one program takes are missing in the other, and are returned when it ends."""
    settings = {"capacity": 80, "price": 5, "initial": 80, "per_second": 0}
    one, other = (fleet_limits(make_journal(), retry_budget=settings) for _ in range(2))

    def take() -> float:
        if one.retry_budget.affords():
            one.retry_budget.charge()
        return other.retry_budget.tokens + one.retry_budget.tokens

    with other:
        with one:
            assert one.retry_budget.affords()
            wait_until(lambda: take() < 25)
            assert other.retry_budget.tokens <= 25
        assert other.is_shared


def test_without_the_database_each_has_its_own() -> None:
    """When PostgreSQL goes away, retries and breakers go on; it is told once when that begins, and once when it ends."""
    with postgres.server() as url, open_journal(url, on_warning=lambda _: None) as journal:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with fleet_limits(journal, breaker=BREAKER) as limits:
                with postgres.outage(url):
                    wait_until(lambda: not limits.is_shared)
                    fail_twice(limits)
                    assert limits.breakers.get("m").circuit == "open"
                    wait_until(limits.retry_budget.affords)
                wait_until(lambda: limits.is_shared)
                with fleet_limits(journal, breaker=BREAKER) as other:
                    wait_until(lambda: other.breakers.get("m").circuit == "open")
        texts = [str(each.message) for each in told if "fleet's journal" in str(each.message)]
        assert [("out of reach" in text, "is back" in text) for text in texts] == [(True, False), (False, True)]


def test_misuse_is_refused(journal: Journal) -> None:
    """A name with a slash and something that is no journal are refused before anything runs."""
    with pytest.raises(ConfigError, match=r"fleet_limits\.name"):
        fleet_limits(journal, name="a/b")
    with pytest.raises(ConfigError, match=r"fleet_limits\.journal"):
        fleet_limits("postgresql://…")  # type: ignore[arg-type]  # the mistake
