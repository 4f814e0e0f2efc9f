"""Parse the token counts in a context overflow message: the limit, and the number of tokens requested."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_NUMBER: Final = r"(\d{1,3}(?:[,_]\d{3})+|\d{1,12})"
# The two orders in which providers state the numbers.
_REQUESTED_THEN_LIMIT: Final = re.compile(
    rf"(?:{_NUMBER} tokens? > {_NUMBER}|requested {_NUMBER} tokens?[^0-9]{{0,80}}(?:only|maximum|limit|length)[^0-9]{{0,40}}{_NUMBER}"
    rf"|(?:count|length|input|prompt|contains|resulted in|size)(?: of| is)?[^0-9]{{0,20}}\(?{_NUMBER}(?: tokens?| characters?)?\)?[^0-9]{{0,80}}"
    rf"(?:maximum|limit|length|longer|exceed\w*|available|allowed|window)[^0-9]{{0,60}}{_NUMBER})",
)
_LIMIT_THEN_REQUESTED: Final = re.compile(
    rf"(?:limit|maximum|max|length|window|size)[^0-9]{{0,30}}?{_NUMBER}[^0-9]{{0,60}}"
    rf"(?:requested|resulted in|but got|your (?:messages|prompt|input|request)|used \d+, requested|asked|request has|in total)[^0-9]{{0,40}}{_NUMBER}",
)
# A rate limit error that states the limit and the size of the request.
_RATE_LIMIT_EXCEEDED: Final = re.compile(
    rf"limit[ :]{{1,2}}{_NUMBER}[^0-9]{{1,40}}(?:used[ :]{{1,2}}{_NUMBER}[^0-9]{{1,20}})?requested[^0-9]{{1,4}}{_NUMBER}"
)
_MAX_CHARACTERS: Final = 2_000


class TokenCounts(NamedTuple):
    """Token limit, and the number of tokens requested."""

    limit: int
    asked: int


def parse_token_counts(text: str) -> TokenCounts | None:
    """Return both numbers, if the text states both."""
    text = text[:_MAX_CHARACTERS].lower()  # case-insensitive patterns are ten times slower
    match = _LIMIT_THEN_REQUESTED.search(text)
    if match is not None:
        limit, asked = map(_to_int, match.groups())
        return TokenCounts(limit, asked)
    match = _REQUESTED_THEN_LIMIT.search(text)
    if match is None:
        return None
    asked, limit = (_to_int(number) for number in match.groups() if number is not None)
    return TokenCounts(limit, asked)


_SUM_OVER_LIMIT: Final = re.compile(rf"{_NUMBER} \+ {_NUMBER} > {_NUMBER}")
_PARTS: Final = re.compile(
    rf"\({_NUMBER} in the messages(?:, {_NUMBER} in the functions)?,? (?:and )?{_NUMBER} in the completion\)"
)


def max_answer_tokens(text: str) -> int | None:
    """Return how many tokens are left for the answer, if only input and output limit together exceed the limit."""
    text = text[:_MAX_CHARACTERS]
    total = _SUM_OVER_LIMIT.search(text)
    if total is not None:
        used, _, limit = map(_to_int, total.groups())
        return limit - used if limit > used else None
    parts, counts = _PARTS.search(text), parse_token_counts(text)
    if parts is None or counts is None:
        return None
    used = sum(_to_int(number) for number in parts.groups()[:-1] if number is not None)
    return counts.limit - used if counts.limit > used else None


def exceeds_rate_limit(text: str) -> bool:
    """Whether a rate limit error states that this one request is larger than the whole limit."""
    match = _RATE_LIMIT_EXCEEDED.search(text[:_MAX_CHARACTERS].lower())
    return match is not None and _to_int(match[3]) > _to_int(match[1]) > 0


def _to_int(number: str) -> int:
    return int(number.replace(",", "").replace("_", ""))
