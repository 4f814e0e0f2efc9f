"""Prices of real usage records are those of the providers' published arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rung.adapters.system.list_prices import fetch_list_prices
from rung.core.domain.usage_formats import anthropic_usage, chat_usage, gemini_usage, responses_usage
from tests.gateway.spending.billed_records import BILLED
from tests.gateway.spending.usage_records import RECORDS

if TYPE_CHECKING:
    from rung.core.policy.model_prices import ModelPrice
    from tests.gateway.spending.usage_records import UsageRecord

ROUNDING = 1e-12
READERS = {"messages": anthropic_usage, "chat": chat_usage, "responses": responses_usage, "gemini": gemini_usage}


@pytest.fixture(scope="module")
def prices() -> dict[str, ModelPrice | None]:
    return fetch_list_prices(sorted({record.model for record in [*RECORDS, *BILLED]}))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_a_record_costs_what_its_provider_charges(record: UsageRecord, prices: dict[str, ModelPrice | None]) -> None:
    """The list's price of a usage object equals the published arithmetic, to a millionth of a cent."""
    price = prices[record.model]
    assert price is not None
    assert price.cost(READERS[record.wire](record.usage)) == pytest.approx(record.dollars, abs=1e-8)


@pytest.mark.parametrize("record", BILLED, ids=lambda record: record.name)
def test_a_record_costs_what_was_billed(record: UsageRecord, prices: dict[str, ModelPrice | None]) -> None:
    """The list's price of a real call equals the amount that its provider stated, to a millionth of a cent."""
    price = prices[record.model]
    assert price is not None
    assert price.cost(READERS[record.wire](record.usage)) == pytest.approx(record.dollars, abs=1e-8)


def test_there_are_enough_records() -> None:
    """At least 30 records, with reads, writes of both lifetimes, tiers, reasoning, audio and images."""
    usages = [READERS[record.wire](record.usage) for record in RECORDS]
    assert len(RECORDS) >= 30
    for kind in ("cache_read", "cache_write", "cache_write_1h", "reasoning", "input_audio", "output_image"):
        assert any(getattr(usage, kind) for usage in usages), kind
    assert sum(usage.prompt > 200_000 for usage in usages) >= 5


def test_the_bound_of_a_record_covers_it(prices: dict[str, ModelPrice | None]) -> None:
    """What is reserved for the tokens of a record is never less than its cost."""
    for record in RECORDS:
        usage, price = READERS[record.wire](record.usage), prices[record.model]
        assert price is not None
        assert price.highest_cost((usage.prompt, usage.output)) >= price.cost(usage) - ROUNDING
