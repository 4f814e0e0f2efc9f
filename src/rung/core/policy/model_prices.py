"""Price of a model: what a token of each kind costs, and from which size of the prompt on another price holds."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.usage import OUTPUT_KINDS, PROMPT_KINDS, TokenKind, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

DEFAULT_WINDOW: Final = 1_000_000  # input tokens of a model whose context window is unknown
MILLION: Final = 1_000_000
# Anthropic charges a cache write that is kept for an hour with twice the input price, one for five minutes with 1.25
# times. Price lists and settings mostly have the second alone.
_HOUR_WRITE_FACTOR: Final = 2
# What a kind without a price of its own is charged as.
_CHARGED_AS: Final = {
    TokenKind.INPUT_AUDIO: TokenKind.INPUT,
    TokenKind.INPUT_IMAGE: TokenKind.INPUT,
    TokenKind.CACHE_READ: TokenKind.INPUT,
    TokenKind.CACHE_READ_AUDIO: TokenKind.CACHE_READ,
    TokenKind.CACHE_WRITE: TokenKind.INPUT,
    TokenKind.CACHE_WRITE_1H: TokenKind.CACHE_WRITE,
    TokenKind.REASONING: TokenKind.OUTPUT,
    TokenKind.OUTPUT_AUDIO: TokenKind.OUTPUT,
    TokenKind.OUTPUT_IMAGE: TokenKind.OUTPUT,
}


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """US dollars per token of each kind, and the context window in tokens if it is known.

    None: the kind has no price of its own and costs as much as the one that contains it. `tiers` are ascending.
    """

    input: float
    output: float
    window: int | None = None
    _: KW_ONLY
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None
    input_audio: float | None = None
    input_image: float | None = None
    cache_read_audio: float | None = None
    reasoning: float | None = None
    output_audio: float | None = None
    output_image: float | None = None
    tiers: tuple[PriceTier, ...] = ()

    def __post_init__(self) -> None:
        if any(one.above >= other.above for one, other in pairwise(self.tiers)):
            raise ValueError(
                f"tiers of a price above {[tier.above for tier in self.tiers]} tokens: allowed is ascending"
            )

    def cost(self, usage: Usage) -> float:
        """Return the US dollars of a call. A count below zero is no refund.

        A tier holds for the whole call, not for the tokens above its threshold: Anthropic, Google and OpenAI charge so.
        """
        price = self.at(usage.prompt)
        return sum(count * price.rate(kind) for kind, count in usage.by_kind().items() if count)

    def highest_cost(self, tokens: tuple[int, int]) -> float:
        """Return the most US dollars that this many input and output tokens or fewer can cost, whatever their kinds."""
        tokens_in, tokens_out = tokens
        prices = [self, *(tier.price for tier in self.tiers if tokens_in > tier.above)]
        dearest_in = max(price.rate(kind) for price in prices for kind in PROMPT_KINDS)
        dearest_out = max(price.rate(kind) for price in prices for kind in OUTPUT_KINDS)
        return max(0, tokens_in) * dearest_in + max(0, tokens_out) * dearest_out

    def at(self, prompt: int) -> ModelPrice:
        """Return the price that holds for a prompt of this many tokens, those of the cache included."""
        return next((tier.price for tier in reversed(self.tiers) if prompt > tier.above), self)

    def rate(self, kind: TokenKind) -> float:
        """Return the US dollars of one token, outside all tiers."""
        own: float | None = getattr(self, kind)
        if own is not None:
            return own
        if kind is TokenKind.CACHE_WRITE_1H and self.cache_write is not None:
            return _HOUR_WRITE_FACTOR * self.input
        return self.rate(_CHARGED_AS[kind])


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTier:
    """Price of calls whose prompt has more tokens than `above`."""

    above: int
    price: ModelPrice


def price_per_million(table: Mapping[str, Any], window: int | None = None) -> ModelPrice:
    """Return a price from US dollars for a million tokens of each kind; `tiers` is a list of such tables with `above`."""
    rates = {str(kind): table[kind] / MILLION for kind in TokenKind if table.get(kind) is not None}
    tiers = sorted(table.get("tiers") or (), key=lambda tier: int(tier["above"]))
    return ModelPrice(
        **rates,
        window=window,
        tiers=tuple(PriceTier(above=int(tier["above"]), price=price_per_million(tier)) for tier in tiers),
    )


def highest_price(prices: Sequence[ModelPrice]) -> ModelPrice:
    """Return a price that is as high as each of these, for a request that several models may answer."""
    if len(prices) == 1:
        return prices[0]
    thresholds = sorted({tier.above for price in prices for tier in price.tiers})
    return ModelPrice(
        **_highest_rates(prices),
        window=max(price.window or DEFAULT_WINDOW for price in prices),
        tiers=tuple(
            PriceTier(above=above, price=ModelPrice(**_highest_rates(price.at(above + 1) for price in prices)))
            for above in thresholds
        ),
    )


def _highest_rates(prices: Iterable[ModelPrice]) -> dict[str, Any]:
    all_prices = list(prices)
    return {str(kind): max(price.rate(kind) for price in all_prices) for kind in TokenKind}
