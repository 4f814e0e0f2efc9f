"""List prices of models, from the `genai-prices` package, read in a subprocess: the list takes 30 MB of memory."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.usage import TokenKind
from rung.core.policy.model_prices import price_per_million

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rung.core.policy.model_prices import ModelPrice

_LOOKUP_SECONDS: Final = 60
_LIST_KEYS: Final = {kind: f"{kind}_mtok" for kind in TokenKind} | {
    TokenKind.CACHE_READ_AUDIO: "cache_audio_read_mtok",
    TokenKind.REASONING: "output_reasoning_mtok",
}
# Bedrock: a region or `global`, the maker, the model and its version, alone or as the end of an ARN.
_BEDROCK: Final = re.compile(
    r"(?:^|[/:])((?:[a-z]{2,6}(?:-gov)?\.)?(?:ai21|amazon|anthropic|cohere|deepseek|meta|mistral|openai|qwen|writer)\..+)$"
)


def fetch_list_prices(models: Sequence[str]) -> dict[str, ModelPrice | None]:
    """Return the list prices of models; None for those that have none, nothing if the list cannot be read. Blocks."""
    command = [sys.executable, "-P", "-m", __name__]  # -P: nothing is imported from the working directory
    names = json.dumps(list(models)).encode()
    try:
        process = subprocess.run(command, input=names, capture_output=True, check=True, timeout=_LOOKUP_SECONDS)  # noqa: S603  # this module
        listed = json.loads(process.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return {}
    return {
        model: None if table is None else price_per_million(table, table["window"]) for model, table in listed.items()
    }


def listed_table(model: str, now: datetime) -> dict[str, Any] | None:
    """Return the price of a model as `price_per_million` reads it, with its context window; None if it has none."""
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return None
    snapshot = get_snapshot()
    for provider, name in _references(model):
        try:
            _, found = snapshot.find_provider_model(name, None, provider, None)
        except LookupError:
            continue
        prices = _highest(found, now)
        tiered = (getattr(price, "tiers", ()) for price in vars(prices).values())
        starts = sorted({tier.start for tiers in tiered for tier in tiers})
        table = _rates(prices, 0)
        if "input" in table:  # models that are charged by the second or the page have none
            tiers = [{"above": start, **_rates(prices, start + 1)} for start in starts]
            return {**table, "tiers": tiers, "window": found.context_window}
    return None


def _highest(model: Any, now: datetime) -> Any:
    """Return the highest prices of a model within a day. Some are lower at night, and a gateway reads the list once.

    A call may be counted as more expensive than it was, never as cheaper.
    """
    times = [now + timedelta(minutes=30 * slot) for slot in range(48)]
    return max((model.get_prices(at) for at in times), key=lambda prices: _rates(prices, 0).get("input", 0.0))


def _references(model: str) -> Iterator[tuple[str | None, str]]:
    """Yield the providers and names under which the list may have a model, the most specific first.

    Clouds name a model otherwise than its maker, and Bedrock has prices of its own: `us.anthropic.claude-…-v1:0`,
    `vertex_ai/claude-…@20250929`, `azure/gpt-4o`, `anthropic/claude-…` of OpenRouter, `models/gemini-…`.
    """
    if bedrock := _BEDROCK.search(model.lower()):
        yield "aws", bedrock[1]
    yield None, model
    prefix, slash, rest = model.partition("/")
    if slash:
        yield prefix, rest
        yield "openrouter", rest if prefix == "openrouter" else model
    bare = re.sub(r"^(?:.*/)?(?:[a-z-]+\.)*(.+?)(?:-v\d+(?::\d+)?)?$", r"\1", model.lower())
    yield None, model.rpartition("/")[2]
    yield None, bare


def _rates(prices: object, prompt: int) -> dict[str, float]:
    """Return the US dollars for a million tokens of each kind, for a prompt of this many tokens."""
    found = {kind: getattr(prices, key, None) for kind, key in _LIST_KEYS.items()}
    rates = {str(kind): float(_at(price, prompt)) for kind, price in found.items() if price is not None}
    return {"output": 0.0, **rates}  # embeddings have no output


def _at(price: Any, prompt: int) -> Any:
    """Return a price of the list at a prompt size: the last tier that begins below it, for the whole prompt."""
    tiers = getattr(price, "tiers", None)
    if tiers is None:
        return price
    return next((tier.price for tier in reversed(tiers) if prompt > tier.start), price.base)


if __name__ == "__main__":
    sys.stdout.write(json.dumps({model: listed_table(model, datetime.now(UTC)) for model in json.load(sys.stdin)}))
