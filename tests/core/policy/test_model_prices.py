"""Prices of models: tiers, kinds without a price of their own, upper bounds."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain.usage import OUTPUT_KINDS, PROMPT_KINDS, TokenKind, Usage
from rung.core.policy.model_prices import ModelPrice, PriceTier, highest_price, price_per_million
from rung.core.policy.spend_estimates import token_bound

LONG_SONNET = ModelPrice(6e-6, 22.5e-6, cache_read=0.6e-6, cache_write=7.5e-6, cache_write_1h=12e-6)
SONNET = ModelPrice(
    3e-6,
    15e-6,
    window=200_000,
    cache_read=0.3e-6,
    cache_write=3.75e-6,
    cache_write_1h=6e-6,
    tiers=(PriceTier(above=200_000, price=LONG_SONNET),),
)
COUNTS = st.integers(0, 400_000)
USAGES = st.builds(Usage, **{field.name: COUNTS for field in fields(Usage)})
RATES = st.one_of(st.none(), st.integers(0, 100).map(lambda cents: cents * 1e-8))
OPTIONAL = [kind for kind in TokenKind if kind not in (TokenKind.INPUT, TokenKind.OUTPUT)]
FLAT = st.builds(
    ModelPrice, st.integers(0, 100).map(lambda cents: cents * 1e-8), st.integers(0, 100).map(lambda cents: cents * 1e-8),
    **dict.fromkeys(OPTIONAL, RATES),
)  # fmt: skip
PRICES = st.builds(
    lambda base, tiers: replace(
        base, tiers=tuple(PriceTier(above=above, price=price) for above, price in sorted(tiers.items()))
    ),
    FLAT,
    st.dictionaries(st.sampled_from([32_000, 128_000, 200_000, 272_000]), FLAT, max_size=3),
)
ROUNDING = 1e-9


@given(USAGES)
def test_every_token_has_one_kind(usage: Usage) -> None:
    """The tokens of all kinds are those of the prompt and of the output, none of them twice."""
    counts = usage.by_kind()
    assert set(counts) == set(TokenKind)
    assert min(counts.values()) >= 0
    assert sum(counts[kind] for kind in PROMPT_KINDS) == usage.prompt
    assert sum(counts[kind] for kind in OUTPUT_KINDS) == usage.output


@given(PRICES, USAGES, st.integers(0, 100_000), st.integers(0, 100_000))
def test_the_bound_covers_every_usage_within_it(price: ModelPrice, usage: Usage, more_in: int, more_out: int) -> None:
    """No usage within the reserved tokens costs more than the reservation: whatever its kinds, whichever its tier."""
    bound = (usage.prompt + more_in, usage.output + more_out)
    assert price.cost(usage) <= price.highest_cost(bound) + ROUNDING


@given(FLAT, USAGES, USAGES)
def test_cost_is_additive_without_tiers(price: ModelPrice, one: Usage, other: Usage) -> None:
    """Two calls cost as much as one with the tokens of both, where no part exceeds its whole and no tier is crossed."""
    one, other = _consistent(one), _consistent(other)
    both = Usage(**{field.name: getattr(one, field.name) + getattr(other, field.name) for field in fields(Usage)})
    assert price.cost(both) == pytest.approx(price.cost(one) + price.cost(other), abs=ROUNDING)


@given(USAGES, st.sampled_from(["input", "output", "cache_read", "cache_write"]), COUNTS)
def test_cost_is_monotonic(usage: Usage, name: str, more: int) -> None:
    """More tokens never cost less, also across a tier."""
    larger = replace(usage, **{name: getattr(usage, name) + more})
    assert SONNET.cost(larger) >= SONNET.cost(usage) - ROUNDING


def _consistent(usage: Usage) -> Usage:
    counts = usage.by_kind()
    return replace(usage, **{kind: counts[kind] for kind in OPTIONAL if kind not in ("cache_read", "cache_write")})


def test_a_tier_holds_for_the_whole_call() -> None:
    """Above the threshold every token has the price of the tier, also the output; at the threshold none has."""
    at = Usage(input=50_000, cache_read=150_000, output=1_000)
    assert SONNET.cost(at) == pytest.approx((50_000 * 3 + 150_000 * 0.3 + 1_000 * 15) / 1e6)
    above = replace(at, cache_write=1)
    assert SONNET.cost(above) == pytest.approx((50_000 * 6 + 150_000 * 0.6 + 7.5 + 1_000 * 22.5) / 1e6)


def test_a_kind_without_a_price_costs_as_the_one_that_contains_it() -> None:
    """Without further prices a token costs as input or output; an hour's write costs twice the input if writes cost."""
    plain = ModelPrice(1.0, 2.0)
    assert [plain.rate(kind) for kind in PROMPT_KINDS] == [1.0] * len(PROMPT_KINDS)
    assert [plain.rate(kind) for kind in OUTPUT_KINDS] == [2.0] * len(OUTPUT_KINDS)
    assert ModelPrice(1.0, 2.0, cache_write=1.25).rate(TokenKind.CACHE_WRITE_1H) == 2.0
    assert ModelPrice(1.0, 2.0, cache_read=0.1).rate(TokenKind.CACHE_READ_AUDIO) == 0.1


def test_a_reservation_reaches_only_the_tiers_of_its_tokens() -> None:
    """A bound below a tier is at the dearest base price, one above it at the dearest price of the tier."""
    assert SONNET.highest_cost((100_000, 1_000)) == pytest.approx((100_000 * 6 + 1_000 * 15) / 1e6)
    assert SONNET.highest_cost((300_000, 1_000)) == pytest.approx((300_000 * 12 + 1_000 * 22.5) / 1e6)
    assert SONNET.highest_cost((-1, -1)) == 0.0


@pytest.mark.parametrize(
    ("body", "betas", "tokens"),
    [
        ({}, "", 200_000),
        ({}, "context-1m-2025-08-07,other", 700_000),
        ({"anthropic_beta": ["context-1m-2025-08-07"]}, "", 700_000),
    ],
)
def test_a_request_for_a_longer_context_is_bound_by_it(body: dict[str, object], betas: str, tokens: int) -> None:
    """Beyond its window a model reads only what a request with the beta for a long context sends."""
    assert token_bound(body, 700_000, 10, SONNET, None, betas) == (tokens, 10)


@given(PRICES, PRICES, USAGES)
def test_the_highest_price_is_as_high_as_each(one: ModelPrice, other: ModelPrice, usage: Usage) -> None:
    """A call that several models may answer costs no less than on any of them, below and above their tiers."""
    assert highest_price([one, other]).cost(usage) >= max(one.cost(usage), other.cost(usage)) - ROUNDING


def test_a_price_from_dollars_for_a_million_tokens() -> None:
    """Settings and the price list state dollars for a million tokens, with tiers in any order."""
    table = {
        "input": 3.0,
        "output": 15.0,
        "cache_read": 0.3,
        "cache_write": None,
        "tiers": [{"above": 400, "input": 9.0, "output": 30.0}, {"above": 200, "input": 6.0, "output": 22.5}],
    }
    price = price_per_million(table, 1_000)
    assert [price.at(prompt).input * 1e6 for prompt in (200, 201, 400, 401)] == pytest.approx([3.0, 6.0, 6.0, 9.0])
    assert (price.cache_write, price.window) == (None, 1_000)


def test_tiers_are_ascending() -> None:
    """A price whose tiers are in no order is refused."""
    with pytest.raises(ValueError, match="ascending"):
        ModelPrice(1.0, 1.0, tiers=(PriceTier(above=2, price=LONG_SONNET), PriceTier(above=1, price=LONG_SONNET)))
