"""Rates of keys: a gateway refuses what exceeds `requests_per_minute`, with or without a journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.classify.classifier import classify
from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import Evidence, Kind
from rung.core.policy.key_pool import KeyState, KeyStatus
from rung.gateway.keys import hash_key
from rung.gateway.settings import settings_from
from rung.gateway.upstream.key_pool import KeyPool
from tests.gateway.behind import ASK, Behind

if TYPE_CHECKING:
    from pathlib import Path


def rows() -> list[dict[str, Any]]:
    limited = {"hash": hash_key("rung-slow"), "requests_per_minute": 3}
    return [limited, {"hash": hash_key("rung-fast")}]


@pytest.mark.parametrize("has_journal", [False, True])
def test_a_key_has_a_rate(tmp_path: Path, *, has_journal: bool) -> None:
    """The fourth request within a moment is refused with the time after which to come again; other keys go on."""
    journal = rung.journal(tmp_path / "j.db") if has_journal else None
    asked = {"model": "small", "max_tokens": 40, "messages": ASK}
    with Behind(keys=rows(), journal=journal) as behind, behind.http() as client:
        answers = [client.post("/v1/messages", json=asked, headers={"x-api-key": "rung-slow"}) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert (answers[3].headers["retry-after"], answers[3].headers["x-should-retry"]) == ("20", "true")
        text = answers[3].json()["error"]["message"]
        assert text == "rate limit of this key: 3 requests per minute"
        assert classify(Evidence(text=text, status=429)).kind is Kind.RATE_LIMIT
        assert client.post("/v1/messages", json=asked, headers={"x-api-key": "rung-fast"}).status_code == 200
        assert behind.attempts == 4
        assert client.get("/status").json()["fleet"] == {
            "state": "none",
            "since": None,
            "gateways": 1,
            "spending": "own",
            "leased": 0,
            "leased_until": None,
        }


@pytest.mark.parametrize("rate", [0, 0.5, -1, "many", True])
def test_impossible_rates(rate: object) -> None:
    """A rate below one request is refused with the name of the setting."""
    with pytest.raises(ConfigError, match="requests_per_minute"):
        settings_from({"keys": [{"hash": "a" * 64, "requests_per_minute": rate}]})


def test_a_key_rests_because_another_gateway_learned_it() -> None:
    """A key that another gateway found exhausted is not taken, until its time or until it works elsewhere."""
    pool = KeyPool(["A", "B"])
    exhausted = KeyStatus(KeyState.EXHAUSTED, 100.0)
    assert pool.adopt("A", "", exhausted, 0.0)
    assert not pool.adopt("A", "", exhausted, 0.0)  # known
    assert not pool.adopt("B", "", exhausted, 100.0)  # over
    assert {pool.take("m", "", 1.0) for _ in range(4)} == {"B"}
    assert pool.first_reopening("m", 1.0) == ("B", KeyStatus(), None)
    assert pool.take_news("A") == []
    pool.revive_adopted("A", "")
    assert {pool.take("m", "", 1.0) for _ in range(4)} == {"A", "B"}


def test_what_a_pool_learns_is_told_once() -> None:
    """A failure and a later success of a key are news for other gateways; what the pool knows itself is not revived."""
    pool = KeyPool(["A", "B"])
    status = pool.note_failure(
        "A", "m", classify(Evidence(status=429, text="Rate limit reached", retry_after=30.0)), 0.0
    )
    pool.revive_adopted("A", "m")
    assert pool.take("m", "", 1.0) == "B"
    assert pool.take_news("A") == [("m", status)]
    assert pool.take_news("A") == []
    pool.note_success("A", "m", "")
    assert pool.take_news("A") == [("m", None)]
