"""Cost of a call: an upper bound before it is made, and an estimate where the provider reports no usage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rung.core.policy.model_prices import DEFAULT_WINDOW

if TYPE_CHECKING:
    from rung.core.policy.model_prices import ModelPrice

BYTES_PER_TOKEN: Final = 4  # of text, on average; no tokenizer makes more than one token of a byte
DEFAULT_OUTPUT: Final = 128_000  # output tokens of a call without a limit on a model that is not listed
_TOKENS_PER_SECOND: Final = 100  # that a model generates unseen, for example while it reasons
# A request that refers to content which the provider has stored can be as large as the context window.
_STORED_INPUT: Final = ("previous_response_id", "conversation", "prompt", "cachedContent", "cached_content")
_CANDIDATE_COUNTS: Final = ("candidateCount", "candidate_count")
_OUTPUT_LIMITS: Final = (
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens_to_sample",
    "maxOutputTokens",
)
_DEARER_OPTIONS: Final = (("service_tier", "priority"), ("speed", "fast"))
_LONG_CONTEXT: Final = "context-1m"  # beta of Anthropic: a window of a million tokens, at the price of its tier


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


def asks_long_context(body: Mapping[str, Any], betas: str = "") -> bool:
    """Return whether a request asks for a longer context window than its model has: by its `anthropic-beta` header or body."""
    return _LONG_CONTEXT in f"{betas} {body.get('anthropic_beta')} {body.get('betas')}"


def token_bound(
    body: Mapping[str, Any],
    size: int,
    limit: int | None,
    price: ModelPrice,
    max_output: int | None = None,
    betas: str = "",
) -> tuple[int, int]:
    """Return the most input and output tokens that a request can use.

    `size` is its body's length in bytes, `limit` its own output limit, `max_output` the model's, `betas` its
    `anthropic-beta` header.
    """
    window = price.window or DEFAULT_WINDOW
    if asks_long_context(body, betas):
        window = max(window, DEFAULT_WINDOW)
    is_stored = any(body.get(name) for name in _STORED_INPUT)
    count = _choices(body)
    output = limit if limit is not None and limit > 0 else max_output or DEFAULT_OUTPUT
    return (window if is_stored else min(size, window)), output * count


def _choices(body: Mapping[str, Any]) -> int:
    """Return the number of answers that a request asks for. Gemini's API has two spellings of it."""
    found = [body.get("n")]
    found += [config.get(name) for config in _generation_configs(body) for name in _CANDIDATE_COUNTS]
    return max([1, *(count for count in found if isinstance(count, int))])


def named_output_limit(body: Mapping[str, Any]) -> int | None:
    """Return the lowest output limit, in tokens, that a request or its parameters name; None without one."""
    tables = [body, *_generation_configs(body)]
    found = [table.get(name) for table in tables for name in _OUTPUT_LIMITS]
    return min((limit for limit in found if isinstance(limit, int) and limit > 0), default=None)


def _generation_configs(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the tables of generation settings in a request of Gemini's API, which has two spellings."""
    configs = (body.get(name) for name in ("generationConfig", "generation_config"))
    return [config for config in configs if isinstance(config, Mapping)]


def estimated_tokens(size: int) -> int:
    """Estimate the tokens of a text or a JSON body from its length in bytes."""
    return -(-size // BYTES_PER_TOKEN)


def unseen_tokens(seconds: float) -> int:
    """Estimate the output tokens that a model has generated in a time in which nothing of them was received."""
    return int(seconds * _TOKENS_PER_SECOND)
