"""`rung.report_cost`: add the cost of a call to the running attempt, in dollars or by the usage of the response."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, overload

from rung.core.domain.errors import ConfigError, is_number
from rung.core.domain.usage import TokenKind
from rung.core.domain.usage_formats import read_usage
from rung.core.policy.model_prices import price_per_million
from rung.engine import attempt_api

if TYPE_CHECKING:
    from rung.core.domain.usage import Usage
    from rung.core.policy.model_prices import ModelPrice

_PRICES_PACKAGE: Final = "genai_prices"
_USAGE_TYPES: Final = (
    "the usage of a response of Anthropic, of OpenAI (chat or responses) or of Gemini, or its JSON object"
)
_PRICE_KEYS: Final = frozenset({*map(str, TokenKind), "tiers"})


@overload
def report_cost(dollars: float) -> float: ...
@overload
def report_cost(*, usage: object, model: str, price: Mapping[str, Any] | None = None) -> float: ...
def report_cost(
    dollars: float | None = None, *, usage: object = None, model: str = "", price: Mapping[str, Any] | None = None
) -> float:
    """Add to the cost of the running attempt, in US dollars, and return what was added.

    Call it in the attempt, once for each call of a model. A dollar budget (`rung.policy(dollars=…)`) and the cost in
    outcomes, reports and the dashboard count what is reported here. Outside of an attempt it has no effect.

    Args:
        dollars: Cost in US dollars, 0 or more. Leave it out if you pass `usage`.
        usage: Usage of a response: `response.usage` of Anthropic and OpenAI (chat and responses),
            `response.usage_metadata` of Gemini, or the same as a JSON object. Tokens read from and written to a prompt
            cache, reasoning, audio and image tokens have their own prices.
        model: Name of the model that answered, for its list price: `response.model`.
        price: US dollars for a million tokens, by kind: `{"input": 3, "output": 15, "cache_read": 0.3}`. Default: the list
            price of the package genai-prices (`pip install 'rung[prices]'`).

    Returns:
        The US dollars that were added.

    Raises:
        ConfigError: The cost is no number, the usage is not recognised, or the price of the model is not known.

    Example:
        >>> import rung
        >>> rung.report_cost(0.25)
        0.25
        >>> usage = {"input_tokens": 1_000_000, "output_tokens": 100_000}
        >>> rung.report_cost(usage=usage, model="my-model", price={"input": 3, "output": 15})
        4.5
    """
    if dollars is not None and usage is not None:
        raise ConfigError("dollars", dollars, "left out if `usage` is given")
    if dollars is None and usage is None:
        raise ConfigError(
            "dollars", dollars, "a finite number of US dollars, 0 or more, or else give `usage` and `model`"
        )
    if usage is not None:
        tokens = _usage_of(usage)
        dollars = _price_of(model, price).cost(tokens)
    attempt_api.report_cost(dollars)  # type: ignore[arg-type]  # one of the two is given
    return float(dollars)  # type: ignore[arg-type]


def _usage_of(usage: object) -> Usage:
    table: object = usage
    if not isinstance(usage, Mapping) and callable(dump := getattr(usage, "model_dump", None)):  # all SDKs use pydantic
        table = dump(mode="json", by_alias=True)
    found = read_usage(table) if isinstance(table, Mapping) else None
    if found is None:
        raise ConfigError("usage", usage, _USAGE_TYPES)
    return found


def _price_of(model: str, price: Mapping[str, Any] | None) -> ModelPrice:
    if price is not None:
        return _given_price(price)
    if not isinstance(model, str) or not model:
        raise ConfigError("model", model, "the name of the model that answered, or give `price`")
    listed = _list_price(model)
    if listed is None:
        raise ConfigError(
            "model", model, "a model with a list price; for others give `price` in dollars per million tokens"
        )
    return listed


def _given_price(price: Mapping[str, Any]) -> ModelPrice:
    for key, rate in price.items():
        if key not in _PRICE_KEYS:
            raise ConfigError("price", key, f"one of {', '.join(sorted(_PRICE_KEYS))}")
        if key != "tiers" and not is_number(rate):
            raise ConfigError(f"price.{key}", rate, "US dollars for a million tokens, 0 or more")
    if not {"input", "output"} <= price.keys():
        raise ConfigError("price", dict(price), "a table with `input` and `output`")
    return price_per_million(price)


@lru_cache(maxsize=256)
def _list_price(model: str) -> ModelPrice | None:
    """Return the list price of a model. The list is read once for each model, and takes 30 MB of memory."""
    from importlib.util import find_spec

    from rung.adapters.system.list_prices import listed_table

    if find_spec(_PRICES_PACKAGE) is None:
        raise ConfigError("price", None, "given, or install the list prices: pip install 'rung[prices]'")
    table = listed_table(model, datetime.now(UTC))
    return None if table is None else price_per_million(table, table["window"])
