"""Estimates of a call on another model: which facts they rest on, in which order."""

from __future__ import annotations

import pytest

from rung.core.domain.usage import Usage
from rung.core.policy.call_costs import (
    ANSWER_TOKENS,
    KnownModelCost,
    RequestSize,
    SessionUsage,
    estimate_call,
    returns_at_once,
)
from rung.core.policy.model_prices import ModelPrice
from rung.core.policy.spend_estimates import named_output_limit

NONE = SessionUsage()
USED = SessionUsage(calls=2, tokens_in=2_000, tokens_out=200, cached=1_000)
CHEAP = ModelPrice(3e-6, 15e-6, cache_read=0.3e-6)
DEAR = ModelPrice(15e-6, 75e-6, cache_read=1.5e-6)
OPUS = ModelPrice(5e-6, 25e-6, cache_read=0.5e-6, cache_write=6.25e-6)
SONNET = ModelPrice(3e-6, 15e-6, cache_read=0.3e-6, cache_write=3.75e-6)
# Ten calls of 100,000 tokens: 90 % from the cache, 5 % written to it.
LONG = SessionUsage(calls=10, tokens_in=1_000_000, tokens_out=10_000, cached=900_000, written=50_000)


def test_the_sessions_own_tokens_at_list_prices() -> None:
    """The average call on each model: on the target nothing is cached yet, on the current one the session's share is."""
    found = estimate_call(USED, 0.0, RequestSize(), KnownModelCost("sonnet", CHEAP), KnownModelCost("opus", DEAR))
    total = 1_000 * 15e-6 + 100 * 75e-6
    assert found.total == pytest.approx(total)
    assert found.difference == pytest.approx(total - (500 * 3e-6 + 500 * 0.3e-6 + 100 * 15e-6))
    assert found.basis == (
        "the session's average call of 1,000 input (50% of it cached) and 100 output tokens, at list prices; "
        "the first call on another model reads nothing from a cache"
    )


def test_a_handover_pays_for_the_cold_cache() -> None:
    """On a model that charges cache writes, what the session has cached is written again; a cheaper model costs more."""
    found = estimate_call(LONG, 0.0, RequestSize(), KnownModelCost("opus", OPUS), KnownModelCost("sonnet", SONNET))
    total = (5_000 * 3.00 + 95_000 * 3.75 + 1_000 * 15.00) / 1e6
    now = (5_000 * 5.00 + 90_000 * 0.50 + 5_000 * 6.25 + 1_000 * 25.00) / 1e6
    assert [found.total, found.difference] == pytest.approx([total, total - now])
    assert total > now


def test_a_cache_that_is_kept_for_an_hour_is_written_again_for_an_hour() -> None:
    """The share of one-hour writes in the session's writes counts for what the target has to write."""
    hourly = LONG._replace(written_1h=25_000)
    assert hourly.cold_cost(SONNET) == pytest.approx(
        (5_000 * 3.00 + 47_500 * 3.75 + 47_500 * 6.00 + 1_000 * 15.00) / 1e6
    )


def test_the_same_model_keeps_its_cache() -> None:
    """A retry on the same model is estimated with the session's cache, and costs no more than a call now."""
    found = estimate_call(LONG, 0.0, RequestSize(), KnownModelCost("opus", OPUS), KnownModelCost("opus", OPUS))
    assert (found.total, found.difference) == (LONG.cost_per_call(OPUS), 0.0)
    assert "cache" not in found.basis.replace("cached", "")


def test_a_session_without_cache_pays_no_writes() -> None:
    """A session that caches nothing is estimated with plain input on every model, and its basis says nothing of a cache."""
    plain = SessionUsage(calls=1, tokens_in=1_000, tokens_out=100)
    found = estimate_call(plain, 0.0, RequestSize(), KnownModelCost("opus", OPUS), KnownModelCost("sonnet", SONNET))
    assert found.total == pytest.approx((1_000 * 3 + 100 * 15) / 1e6)
    assert "reads nothing" not in found.basis


def test_the_share_of_the_cache() -> None:
    """The cache share is that of all input tokens; without input there is none."""
    both = SessionUsage.of(Usage(input=10, cache_read=60, cache_write=30, output=5)).plus(SessionUsage(1, 100, 5))
    assert both == SessionUsage(2, 200, 10, 60, 30)
    assert both.cache_share == 0.3
    assert NONE.cache_share is None


@pytest.mark.parametrize(
    ("usage", "own", "fallback", "at_once"),
    [
        (LONG, SONNET, OPUS, True),  # the fallback costs more per call
        (LONG, OPUS, SONNET, False),  # the cold cache of Opus costs $0.52, and Sonnet is cheaper
        (LONG, OPUS, OPUS, False),  # nothing to gain from the way back
        (LONG._replace(calls=200), OPUS, SONNET, True),  # 5,000 tokens a call: the cold cache costs 3 cents
        (LONG._replace(cached=0, written=0), OPUS, SONNET, True),  # there is no cache to lose
        (NONE, OPUS, SONNET, True),
        (LONG, None, SONNET, True),
        (LONG, OPUS, None, True),
    ],
)
def test_when_a_session_goes_back(
    usage: SessionUsage, own: ModelPrice | None, fallback: ModelPrice | None, *, at_once: bool
) -> None:
    """A session returns at once if its fallback costs more, the cold cache costs little, or nobody knows the costs."""
    assert returns_at_once(usage, own, fallback) is at_once


def test_a_price_without_one_for_cached_tokens() -> None:
    """Cached tokens cost as much as others where the price says nothing about them."""
    price = ModelPrice(1.0, 2.0)
    assert USED.cost_per_call(price) == 1_000 + 2 * 100


@pytest.mark.parametrize(
    ("current", "target", "total"),
    [
        (KnownModelCost("a", None, 0.01), KnownModelCost("b", None, 0.05), 1.0),
        (KnownModelCost("a", CHEAP), KnownModelCost("b", DEAR), 1.0),
        (KnownModelCost("a", ModelPrice(1e-6, 1e-6)), KnownModelCost("b", ModelPrice(2e-6, 5e-6)), 1.0),
    ],
)
def test_the_sessions_cost_scaled_by_prices(current: KnownModelCost, target: KnownModelCost, total: float) -> None:
    """Without tokens, what calls have cost so far is scaled: by the policy's costs, else by the larger price ratio."""
    found = estimate_call(NONE, 0.2, RequestSize(), current, target)
    assert [found.total, found.difference] == pytest.approx([total, total - 0.2])


def test_the_policys_cost() -> None:
    """The expected cost of an attempt counts where the session has cost nothing so far."""
    found = estimate_call(
        NONE, 0.0, RequestSize(9_000), KnownModelCost("a", None, 0.01), KnownModelCost("b", None, 0.1)
    )
    assert [found.total, found.difference] == pytest.approx([0.1, 0.09])


def test_the_size_of_the_request() -> None:
    """A session without usage is estimated from its request, for a model with a list price."""
    found = estimate_call(NONE, 0.0, RequestSize(4_000), KnownModelCost("a"), KnownModelCost("b", DEAR))
    assert found.total == pytest.approx(1_000 * 15e-6 + ANSWER_TOKENS * 75e-6)
    assert found.difference is None


def test_the_requests_own_output_limit() -> None:
    """An answer is not estimated longer than the request allows, and the basis says how long."""
    found = estimate_call(NONE, 0.0, RequestSize(4_000, 50), KnownModelCost("a"), KnownModelCost("b", DEAR))
    assert found.total == pytest.approx(1_000 * 15e-6 + 50 * 75e-6)
    assert "an answer of 50 tokens" in found.basis
    higher = estimate_call(NONE, 0.0, RequestSize(4_000, 64_000), KnownModelCost("a"), KnownModelCost("b", DEAR))
    assert higher.total == pytest.approx(1_000 * 15e-6 + ANSWER_TOKENS * 75e-6)


def test_a_sessions_usage_within_the_requests_limit() -> None:
    """The session's average answer counts, but no more of it than the request allows."""
    plain = SessionUsage(calls=2, tokens_in=2_000, tokens_out=200)
    models = (KnownModelCost("a", CHEAP), KnownModelCost("b", DEAR))
    limited = estimate_call(plain, 0.0, RequestSize(4_000, 10), *models)
    assert limited.total == pytest.approx(1_000 * 15e-6 + 10 * 75e-6)
    assert "10 output tokens" in limited.basis
    assert estimate_call(plain, 0.0, RequestSize(4_000, 5_000), *models) == estimate_call(
        plain, 0.0, RequestSize(), *models
    )


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        ({"max_tokens": 5}, 5),
        ({"max_completion_tokens": 6, "max_tokens": None}, 6),
        ({"max_output_tokens": 7}, 7),
        ({"generationConfig": {"maxOutputTokens": 8}}, 8),
        ({"generation_config": {"max_output_tokens": 9}}, 9),
        ({"max_tokens": "many", "generationConfig": []}, None),
        ({"max_tokens": 0}, None),
        ({}, None),
    ],
)
def test_the_limit_that_a_request_names(body: dict[str, object], limit: int | None) -> None:
    """Each API's own name of the output limit is read; a value that is none is ignored."""
    assert named_output_limit(body) == limit


def test_the_same_model_costs_the_same() -> None:
    """A retry on the same model has no difference, at whatever is known."""
    found = estimate_call(NONE, 0.2, RequestSize(), KnownModelCost("a"), KnownModelCost("a"))
    assert (found.total, found.difference) == (0.2, 0.0)


def test_what_is_unknown_says_why() -> None:
    """No price and no usage: no figure, and the reason."""
    unknown = estimate_call(NONE, 0.0, RequestSize(), KnownModelCost("a"), KnownModelCost("b"))
    assert (unknown.total, unknown.difference) == (None, None)
    assert "the price of b is unknown" in unknown.basis
    assert "no usage" in estimate_call(NONE, 0.0, RequestSize(), KnownModelCost("a"), KnownModelCost("b", DEAR)).basis
