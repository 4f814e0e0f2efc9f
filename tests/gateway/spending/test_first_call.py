"""The first call of a model is booked at its list price, whenever the price has been looked up."""

from __future__ import annotations

import time
from threading import Thread
from typing import TYPE_CHECKING, Any

import anthropic
import pytest

import rung
from rung.gateway.keys import new_key
from rung.store.queries.spend import spent_by_keys, spent_by_sessions, spent_in_month
from tests.gateway.behind import WHOLE, Behind, messages
from tests.gateway.spending.held_lookup import HeldLookup
from tests.store.conftest import postgres_server, postgres_url
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rung.store.journal.journal import Journal

__all__ = ["postgres_server", "postgres_url"]  # fixtures

MODEL = "claude-opus-4-1"
OUTPUT_DOLLARS = 75e-6  # for a token, by the list
SESSION = "s"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new journal of either kind."""
    return str(tmp_path / "j.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url"))


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with rung.journal(tmp_path / "j.db") as opened:
        yield opened


@pytest.fixture
def lookup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldLookup]:
    """A lookup that ends when the test says so."""
    held = HeldLookup(tmp_path / "lookup", monkeypatch)
    yield held
    held.release()


def call(behind: Behind, *, stream: bool = False, key: str = "sk-ant-test") -> str:
    headers = {"x-rung-session": SESSION, "x-rung-project": "shop"}
    client = behind.claude(default_headers=headers).copy(api_key=key)
    return messages(client, stream=stream, model=MODEL).text


def attempts_of(journal: Journal) -> list[tuple[Any, ...]]:
    assert journal.flush()
    return journal.read("SELECT model, dollars FROM attempt")


def release_when(condition: Callable[[], bool], lookup: HeldLookup) -> None:
    wait_until(condition)
    lookup.release()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_lookup_ends_after_the_call(url: str, lookup: HeldLookup, stream: bool) -> None:
    """The client does not wait for the price; the call is booked once, at its price, when the lookup ends."""
    key, digest = new_key()
    keys = [{"hash": digest, "project": "shop"}]
    with Behind(journal=(journal := rung.journal(url)), keys=keys) as behind:
        assert call(behind, stream=stream, key=key) == WHOLE
        wait_until(lambda: lookup.is_running)
        lookup.release()
        ((model, dollars),) = wait_until(lambda: attempts_of(journal))
        assert model == MODEL
        assert dollars >= 40 * OUTPUT_DOLLARS
        session = f"{digest[:12]}/{SESSION}"
        assert spent_by_sessions(journal, [session]) == {session: pytest.approx(dollars)}
        assert spent_in_month(journal, time.time()) == {"shop": pytest.approx(dollars)}
        wait_until(lambda: spent_by_keys(journal).get(digest) == pytest.approx(dollars))
        assert behind.gateway.ledger.spent[digest] == pytest.approx(dollars)
        assert f"rung_dollars_total {dollars}" in behind.http().get("/metrics").text


def test_a_gateway_that_stops_books_first(url: str, lookup: HeldLookup) -> None:
    """A gateway that stops while a price is looked up waits for it, and books the call."""
    with Behind(journal=rung.journal(url)) as behind:
        assert call(behind) == WHOLE
        wait_until(lambda: lookup.is_running)
        app = behind.served.app
        assert app is not None
        releasing = Thread(target=release_when, args=(lambda: not app.ready, lookup))
        releasing.start()
    releasing.join()
    with rung.journal(url) as again:
        ((_, dollars),) = attempts_of(again)
    assert dollars >= 40 * OUTPUT_DOLLARS


def test_a_recovered_call_has_its_cost(url: str, lookup: HeldLookup) -> None:
    """The incident of a call that was retried has its cost, although the lookup ends after the call; there is no other one."""
    with Behind([{"fault": "overloaded", "times": 1}], journal=(journal := rung.journal(url))) as behind:
        assert call(behind) == WHOLE
        wait_until(lambda: lookup.is_running)
        lookup.release()
        dollars = wait_until(lambda: spent_by_sessions(journal, [SESSION])[SESSION])
        assert dollars >= 40 * OUTPUT_DOLLARS
        assert journal.flush()
        cost = pytest.approx(dollars)
        assert journal.read("SELECT status, dollars, own_dollars FROM incident") == [("recovered", cost, cost)]
        assert journal.read("SELECT ok, dollars FROM attempt ORDER BY n") == [(0, 0.0), (1, cost)]
        assert spent_in_month(journal, time.time()) == {"shop": cost}
        assert journal.read("SELECT status, n, dollars FROM by_end") == [("recovered", 1, cost)]


def test_the_incident_of_a_recovered_call_has_its_cost(journal: Journal) -> None:
    """With a cap in dollars, the price is known before the next attempt, and the cost is part of the incident."""
    policy = {"budget": {"dollars": 5.0}}
    with Behind([{"fault": "overloaded", "times": 1}], journal=journal, policy=policy) as behind:
        assert call(behind) == WHOLE
        assert journal.flush()
        ((status, dollars),) = journal.read("SELECT status, dollars FROM incident")
    assert status == "recovered"
    assert dollars >= 40 * OUTPUT_DOLLARS


def test_a_client_that_leaves_pays_later(url: str, lookup: HeldLookup) -> None:
    """What a client received before it left is booked when the price is known."""
    with Behind(journal=(journal := rung.journal(url)), gap=0.2) as behind:
        with (
            behind.claude(default_headers={"x-rung-session": SESSION}) as client,
            client.messages.stream(model=MODEL, max_tokens=100, messages=[{"role": "user", "content": "hi"}]) as events,
        ):
            next(iter(events.text_stream))
        wait_until(lambda: lookup.is_running)
        lookup.release()
        ((_, dollars),) = wait_until(lambda: attempts_of(journal))
        assert dollars > 0


def test_a_budget_holds_for_the_first_call(url: str, lookup: HeldLookup) -> None:
    """Under a budget, the first call waits for the price, reserves its estimate, and is refused if nothing is left."""
    with Behind(journal=rung.journal(url), budgets={"session": 0.001}) as behind:
        lookup.release()
        assert call(behind) == WHOLE
        with pytest.raises(anthropic.RateLimitError, match="spend limit"):
            call(behind)
        assert behind.attempts == 1


def test_a_dollar_cap_of_the_policy_knows_the_fallback(journal: Journal, lookup: HeldLookup) -> None:
    """A policy's cap in dollars waits for the prices of its models before it judges a fallback."""
    policy = {"models": [MODEL, "claude-haiku-4-5"], "escalate_after": 0, "retries": 1, "budget": {"dollars": 5.0}}
    with Behind([{"fault": "overloaded", "model": MODEL}], policy=policy, journal=journal) as behind:
        lookup.release()
        assert call(behind) == WHOLE
        assert behind.lab.calls[-1].json["model"] == "claude-haiku-4-5"


def test_an_unlisted_model_is_named(journal: Journal) -> None:
    """A model without a list price is booked at $0, and the gateway says once that its price is unknown."""
    with Behind(journal=journal) as behind:
        for _ in range(2):
            messages(behind.claude(default_headers={"x-rung-session": SESSION}), stream=False, model="my-own-model")
        wait_until(lambda: len(attempts_of(journal)) == 2)
        told = [line for line in behind.log_lines if "my-own-model" in line]
    assert len(told) == 1
    assert "[gateway.prices" in told[0]


def test_a_list_that_cannot_be_read(journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the list cannot be read, a gateway that stops records the call, and says that its cost is missing."""
    HeldLookup(tmp_path / "broken", monkeypatch, fails=True).release()
    with Behind(journal=journal) as behind:
        assert call(behind) == WHOLE
    told = [line for line in behind.log_lines if MODEL in line]
    assert len(told) == 1
