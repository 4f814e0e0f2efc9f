"""List prices: the names under which models are found, and the arithmetic of the list's own package."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from genai_prices import Usage as ListUsage
from genai_prices import calc_price
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.adapters.system.list_prices import fetch_list_prices, listed_table
from rung.core.domain.usage import Usage
from rung.core.policy.model_prices import price_per_million

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
MODELS = ("claude-sonnet-4-5", "claude-haiku-4-5", "gpt-5", "gpt-5.4", "o3", "gemini-2.5-pro", "gemini-2.5-flash")
PRICES = {model: price_per_million(listed_table(model, NOON) or {}) for model in MODELS}
COUNTS = st.integers(0, 300_000)
SONNET = {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75, "cache_write_1h": 6.0}
IN_ONE_REGION = {"input": 3.3, "output": 16.5, "cache_read": 0.33, "cache_write": 4.125, "cache_write_1h": 6.6}


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=30)
@given(fresh=COUNTS, read=COUNTS, five=COUNTS, hour=COUNTS, output=COUNTS)
def test_the_cost_is_that_of_the_list(model: str, fresh: int, read: int, five: int, hour: int, output: int) -> None:
    """A call costs what the package of the list computes for it, in every tier."""
    written = five + hour if PRICES[model].cache_write is not None else 0
    usage = Usage(input=fresh, cache_read=read, cache_write=written, cache_write_1h=hour, output=output)
    listed = ListUsage(
        input_tokens=usage.prompt,
        cache_read_tokens=read,
        cache_write_tokens=written,
        cache_write_1h_tokens=min(hour, written),
        output_tokens=output,
    )
    assert PRICES[model].cost(usage) == pytest.approx(float(calc_price(listed, model).total_price), abs=1e-9)


@pytest.mark.parametrize(
    ("name", "rates"),
    [
        ("claude-sonnet-4-5-20250929", SONNET),
        ("claude-sonnet-4-5@20250929", SONNET),
        ("vertex_ai/claude-sonnet-4-5@20250929", SONNET),
        ("anthropic/claude-sonnet-4-5", SONNET),
        ("global.anthropic.claude-sonnet-4-5-20250929-v1:0", SONNET),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", IN_ONE_REGION),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", IN_ONE_REGION),
        ("bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0", IN_ONE_REGION),
        (
            "arn:aws:bedrock:us-east-1:1234:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            IN_ONE_REGION,
        ),
        ("azure/gpt-4o", {"input": 2.5, "cache_read": 1.25, "output": 10.0}),
        ("openai/gpt-5", {"input": 1.25, "cache_read": 0.125, "output": 10.0}),
        ("models/gemini-2.5-pro", {"input": 1.25, "cache_read": 0.125, "output": 10.0}),
        ("publishers/google/models/gemini-2.5-pro", {"input": 1.25, "cache_read": 0.125, "output": 10.0}),
        ("litellm_proxy/gpt-4.1", {"input": 2.0, "cache_read": 0.5, "output": 8.0}),
        ("openai/text-embedding-3-small", {"input": 0.02, "output": 0.0}),
    ],
)
def test_a_model_is_found_under_the_names_of_the_clouds(name: str, rates: dict[str, float]) -> None:
    """A model has a price under the names of its maker, Bedrock, Vertex AI, Azure and routers; Bedrock has its own."""
    table = listed_table(name, NOON)
    assert table is not None
    assert {kind: price for kind, price in table.items() if kind not in ("tiers", "window")} == rates


@pytest.mark.parametrize("name", ["no-such-model", "", "/", "a/b/c", "us.anthropic.", "openrouter/"])
def test_a_model_without_a_price(name: str) -> None:
    """An unknown name has no price."""
    assert listed_table(name, NOON) is None


def test_prices_cross_the_process() -> None:
    """The subprocess sends tiers and context windows as they are in the list."""
    prices = fetch_list_prices(["claude-sonnet-4-5", "no-such-model"])
    assert prices["no-such-model"] is None
    found = prices["claude-sonnet-4-5"]
    assert found is not None
    assert (found.window, [tier.above for tier in found.tiers]) == (200_000, [200_000])
    assert found.at(200_001).output == pytest.approx(22.5e-6)


@pytest.mark.parametrize("model", ["deepseek-chat", "deepseek-reasoner"])
def test_a_price_that_is_lower_at_night_is_that_of_the_day(model: str) -> None:
    """The price does not depend on the hour at which the list is read: a gateway that starts at night must not undercount."""
    tables = [listed_table(model, NOON + timedelta(hours=hour)) for hour in range(24)]
    assert tables[0] is not None
    assert all(table == tables[0] for table in tables)
    assert tables[0]["input"] >= 0.27
