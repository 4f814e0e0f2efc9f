"""Cost of a call: an upper bound before it is made, and an estimate where the provider reports no usage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BYTES_PER_TOKEN: Final = 4  # of text, on average; no tokenizer makes more than one token of a byte
DEFAULT_WINDOW: Final = 1_000_000  # input tokens of a model whose context window is unknown
DEFAULT_OUTPUT: Final = 128_000  # output tokens of a call without a limit on a model that is not listed
_TOKENS_PER_SECOND: Final = 100  # that a model generates unseen, for example while it reasons
# A request that refers to content which the provider has stored can be as large as the context window.
_STORED_INPUT: Final = ("previous_response_id", "conversation", "prompt")
_DEARER_OPTIONS: Final = (("service_tier", "priority"), ("speed", "fast"))


class ModelPrice(NamedTuple):
    """US dollars per input token and per output token, and the context window in tokens if it is known.

    `cached`: US dollars per input token that is read from the provider's cache; None if it is unknown.
    """

    input: float
    output: float
    window: int | None = None
    cached: float | None = None

    def cost(self, tokens: tuple[int, int]) -> float:
        """Return the US dollars of input and output tokens. A count below zero is no refund."""
        return max(0, tokens[0]) * self.input + max(0, tokens[1]) * self.output


def highest_price(prices: Sequence[ModelPrice]) -> ModelPrice:
    """Return a price that is as high as each of these, for a request that several models may answer."""
    if len(prices) == 1:
        return prices[0]
    windows = [price.window or DEFAULT_WINDOW for price in prices]
    return ModelPrice(max(price.input for price in prices), max(price.output for price in prices), max(windows))


def named_models(model: str, body: Mapping[str, Any]) -> list[str]:
    """Return all models that a request may be charged for: its own, those of a fallback list, and those of tools."""
    models, fallbacks, tools = [model], body.get("models"), body.get("tools")
    if isinstance(fallbacks, list):
        models += map(str, fallbacks)
    if isinstance(tools, list):
        models += [str(tool["model"]) for tool in tools if isinstance(tool, dict) and "model" in tool]
    return models


def unpriced_option(body: Mapping[str, Any]) -> str:
    """Return an option of a request that multiplies the list price; empty if it has none."""
    for name, value in _DEARER_OPTIONS:
        if body.get(name) == value:
            return f"{name} = {value}"
    return ""


def token_bound(
    body: dict[str, Any], size: int, limit: int | None, price: ModelPrice, max_output: int | None = None
) -> tuple[int, int]:
    """Return the most input and output tokens that a request can use.

    `size` is its body's length in bytes, `limit` its own output limit, `max_output` the model's.
    """
    window = price.window or DEFAULT_WINDOW
    is_stored = any(body.get(name) for name in _STORED_INPUT)
    choices = body.get("n")
    count = choices if isinstance(choices, int) and choices > 1 else 1
    output = limit if limit is not None and limit > 0 else max_output or DEFAULT_OUTPUT
    return (window if is_stored else min(size, window)), output * count


def estimated_tokens(size: int) -> int:
    """Estimate the tokens of a text or a JSON body from its length in bytes."""
    return -(-size // BYTES_PER_TOKEN)


def unseen_tokens(seconds: float) -> int:
    """Estimate the output tokens that a model has generated in a time in which nothing of them was received."""
    return int(seconds * _TOKENS_PER_SECOND)
