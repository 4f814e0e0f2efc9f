"""The numbers in a context overflow: how much there is room for, and how much was asked for."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_N: Final = r"(\d{1,3}(?:[,_]\d{3})+|\d{1,12})"
# Each says which of its two numbers is the room; what every service writes is one of these shapes.
_ASKED_FIRST: Final = re.compile(
    rf"(?:{_N} tokens? > {_N}|requested {_N} tokens?[^0-9]{{0,80}}(?:only|maximum|limit|length)[^0-9]{{0,40}}{_N}"
    rf"|(?:count|length|input|prompt|contains|resulted in|size)(?: of| is)?[^0-9]{{0,20}}\(?{_N}(?: tokens?| characters?)?\)?[^0-9]{{0,80}}"
    rf"(?:maximum|limit|length|longer|exceed\w*|available|allowed|window)[^0-9]{{0,60}}{_N})",
)
_ROOM_FIRST: Final = re.compile(
    rf"(?:limit|maximum|max|length|window|size)[^0-9]{{0,30}}?{_N}[^0-9]{{0,60}}"
    rf"(?:requested|resulted in|but got|your (?:messages|prompt|input|request)|used \d+, requested|asked|request has|in total)[^0-9]{{0,40}}{_N}",
)
# The one shape in which a rate limit says that one request is larger than all of it.
_OVER: Final = re.compile(
    rf"limit[ :]{{1,2}}{_N}[^0-9]{{1,40}}(?:used[ :]{{1,2}}{_N}[^0-9]{{1,20}})?requested[^0-9]{{1,4}}{_N}"
)
_READ: Final = 2_000


class TokenCounts(NamedTuple):
    """What fits, and what was sent."""

    limit: int
    asked: int


def tokens_in(text: str) -> TokenCounts | None:
    """Both numbers, where a text has both."""
    text = text[:_READ].lower()  # patterns without regard to case are ten times slower
    found = _ROOM_FIRST.search(text)
    if found is not None:
        limit, asked = map(_whole, found.groups())
        return TokenCounts(limit, asked)
    found = _ASKED_FIRST.search(text)
    if found is None:
        return None
    asked, limit = (_whole(number) for number in found.groups() if number is not None)
    return TokenCounts(limit, asked)


_BOTH: Final = (
    re.compile(rf"{_N} \+ {_N} > {_N}"),
    re.compile(rf"\({_N} in the messages(?:, {_N} in the functions)?,? (?:and )?{_N} in the completion\)"),
)


def room_for_answer(text: str) -> int | None:
    """How many tokens an answer may have, where a text says that the input fits and only both together do not."""
    text = text[:_READ]
    sums = _BOTH[0].search(text)
    if sums is not None:
        given, _, limit = map(_whole, sums.groups())
        return limit - given if limit > given else None
    parts, both = _BOTH[1].search(text), tokens_in(text)
    if parts is None or both is None:
        return None
    given = sum(_whole(number) for number in parts.groups()[:-1] if number is not None)
    return both.limit - given if both.limit > given else None


def over_limit(text: str) -> bool:
    """Does a rate limit say that this one request is larger than all of it, however empty?"""
    found = _OVER.search(text[:_READ].lower())
    return found is not None and _whole(found[3]) > _whole(found[1]) > 0


def _whole(number: str) -> int:
    return int(number.replace(",", "").replace("_", ""))
