"""Token usage of one call in the terms of no provider: what was sent, cached, written to a cache, and generated."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class TokenKind(StrEnum):
    """Tokens that can have a price of their own."""

    INPUT = "input"
    INPUT_AUDIO = "input_audio"
    INPUT_IMAGE = "input_image"
    CACHE_READ = "cache_read"
    CACHE_READ_AUDIO = "cache_read_audio"
    CACHE_WRITE = "cache_write"
    CACHE_WRITE_1H = "cache_write_1h"
    OUTPUT = "output"
    REASONING = "reasoning"
    OUTPUT_AUDIO = "output_audio"
    OUTPUT_IMAGE = "output_image"


OUTPUT_KINDS: Final = (TokenKind.OUTPUT, TokenKind.REASONING, TokenKind.OUTPUT_AUDIO, TokenKind.OUTPUT_IMAGE)
PROMPT_KINDS: Final = tuple(kind for kind in TokenKind if kind not in OUTPUT_KINDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens. `input` has neither cache reads nor cache writes; `output` contains the reasoning."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0  # of `cache_write`, those that are kept for an hour
    reasoning: int = 0  # of `output`
    input_audio: int = 0  # of `input`
    input_image: int = 0  # of `input`
    cache_read_audio: int = 0  # of `cache_read`
    output_audio: int = 0  # of `output`
    output_image: int = 0  # of `output`

    @property
    def prompt(self) -> int:
        """All tokens of the request."""
        return self.input + self.cache_read + self.cache_write

    def by_kind(self) -> dict[TokenKind, int]:
        """Return the tokens of each kind. Each token is in one kind, also where a provider's parts exceed their whole."""
        counts: dict[TokenKind, int] = {}
        for whole, total, parts in (
            (TokenKind.INPUT, self.input, (TokenKind.INPUT_AUDIO, TokenKind.INPUT_IMAGE)),
            (TokenKind.CACHE_READ, self.cache_read, (TokenKind.CACHE_READ_AUDIO,)),
            (TokenKind.CACHE_WRITE, self.cache_write, (TokenKind.CACHE_WRITE_1H,)),
            (TokenKind.OUTPUT, self.output, OUTPUT_KINDS[1:]),
        ):
            left = max(0, total)
            for part in parts:
                counts[part] = min(left, max(0, getattr(self, part)))
                left -= counts[part]
            counts[whole] = left
        return counts
