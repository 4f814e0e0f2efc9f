"""Masks of what differs between recurrences of one error: paths, ids, times and numbers."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MASKS: Final = (
    (re.compile(r"(?:[A-Za-z]:)?(?:[\\/][\w.@+-]+){2,}[\\/]?"), "<path>"),  # first: paths contain ids and dates
    (re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "<uuid>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"), "<time>"),
    (re.compile(r"\b[a-z]{2,12}[_-](?=[A-Za-z0-9]*\d)[A-Za-z0-9]{8,}\b", re.IGNORECASE), "<id>"),
    (
        re.compile(
            r"\b\d+(?:\.\d+)?e[+-]\d+\b|\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b",
            re.IGNORECASE,
        ),
        "<n>",
    ),
    # Also matches times of day and line:column, so that 9:15 and 120:5 are masked alike.
    (re.compile(r"\d+(?:[.,:]\d+)*"), "<n>"),
)
# Cheap tests for which masks can match at all: most texts contain neither paths nor dashes.
_PATH, _UUID, _TIME, _ID, _HEX, _NUMBER = MASKS
_DIGIT: Final = re.compile(r"\d")
# Anchored at digits, which are rare in prose: followed by x, preceded by an exponent, or within seven hex digits.
_HAS_HEX: Final = re.compile(
    r"\d(?:[xX]|(?<=[eE][+-]\d)|"
    + "|".join(rf"(?<=[0-9a-fA-F]{{{before}}}\d)(?=[0-9a-fA-F]{{{6 - before}}})" for before in range(7))
    + ")"
)
_MAX_MASKED_CHARACTERS: Final = 400


def mask_volatile(text: str) -> str:
    """Return the start of a text with numbers, ids, paths and times masked, equal for recurrences of an error.

    The text is cut after masking: otherwise a longer number at the start would move the end.
    """
    text = text.lstrip()
    length = 2 * _MAX_MASKED_CHARACTERS
    while True:
        part = text[:length]
        if len(text) > length:
            part = part.rsplit(None, 1)[0]  # cut at whole words: half an id does not match its mask
        for pattern, name in _masks_for(part):
            part = pattern.sub(name, part)
        part = " ".join(part.split()).lower()
        if len(part) >= _MAX_MASKED_CHARACTERS or len(text) <= length:
            return part[:_MAX_MASKED_CHARACTERS]
        length *= 2


_mask_volatile_cached: Final = lru_cache(maxsize=512)(mask_volatile)  # errors recur with the same text


def cached_mask(text: str) -> str:
    """Return the same as `mask_volatile`; that of a short text is kept."""
    return _mask_volatile_cached(text) if len(text) <= _MAX_MASKED_CHARACTERS * 2 else mask_volatile(text)


def _masks_for(text: str) -> Iterator[tuple[re.Pattern[str], str]]:
    """Yield the masks that can match in the text."""
    if "/" in text or "\\" in text:
        yield _PATH
    has_dash = "-" in text
    if has_dash:
        yield _UUID
    if _DIGIT.search(text) is None:
        return
    if has_dash:
        yield _TIME
    if has_dash or "_" in text:
        yield _ID
    if _HAS_HEX.search(text) is not None:
        yield _HEX
    yield _NUMBER
