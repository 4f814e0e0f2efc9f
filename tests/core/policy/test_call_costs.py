"""Estimates of a call on another model: which facts they rest on, in which order."""

from __future__ import annotations

import pytest

from rung.core.policy.call_costs import ANSWER_TOKENS, KnownModelCost, SessionUsage, estimate_call
from rung.core.policy.spend_estimates import ModelPrice

NONE = SessionUsage()
USED = SessionUsage(calls=2, tokens_in=2_000, tokens_out=200, cached=1_000)
CHEAP = ModelPrice(3e-6, 15e-6, cached=0.3e-6)
DEAR = ModelPrice(15e-6, 75e-6, cached=1.5e-6)


def test_the_sessions_own_tokens_at_list_prices() -> None:
    """The average call, with its cached share, at the price of each model: a total and a difference."""
    found = estimate_call(USED, 0.0, 0, KnownModelCost("sonnet", CHEAP), KnownModelCost("opus", DEAR))
    total = 500 * 15e-6 + 500 * 1.5e-6 + 100 * 75e-6
    assert found.total == pytest.approx(total)
    assert found.difference == pytest.approx(0.8 * total)
    assert found.basis == (
        "the session's average call of 1,000 input (50% of it cached) and 100 output tokens, at list prices"
    )


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
    found = estimate_call(NONE, 0.2, 0, current, target)
    assert [found.total, found.difference] == pytest.approx([total, total - 0.2])


def test_the_policys_cost() -> None:
    """The expected cost of an attempt counts where the session has cost nothing so far."""
    found = estimate_call(NONE, 0.0, 9_000, KnownModelCost("a", None, 0.01), KnownModelCost("b", None, 0.1))
    assert [found.total, found.difference] == pytest.approx([0.1, 0.09])


def test_the_size_of_the_request() -> None:
    """A session without usage is estimated from its request, for a model with a list price."""
    found = estimate_call(NONE, 0.0, 4_000, KnownModelCost("a"), KnownModelCost("b", DEAR))
    assert found.total == pytest.approx(1_000 * 15e-6 + ANSWER_TOKENS * 75e-6)
    assert found.difference is None


def test_the_same_model_costs_the_same() -> None:
    """A retry on the same model has no difference, at whatever is known."""
    found = estimate_call(NONE, 0.2, 0, KnownModelCost("a"), KnownModelCost("a"))
    assert (found.total, found.difference) == (0.2, 0.0)


def test_what_is_unknown_says_why() -> None:
    """No price and no usage: no figure, and the reason."""
    unknown = estimate_call(NONE, 0.0, 0, KnownModelCost("a"), KnownModelCost("b"))
    assert (unknown.total, unknown.difference) == (None, None)
    assert "the price of b is unknown" in unknown.basis
    assert "no usage" in estimate_call(NONE, 0.0, 0, KnownModelCost("a"), KnownModelCost("b", DEAR)).basis
