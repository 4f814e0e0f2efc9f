"""Size of a reported error, read from the report's text: a dimension of a ladder's entry table."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure


class Size(StrEnum):
    """Size of a problem: a key of a ladder's `sizes`."""

    SIMPLE = "simple"  # the cause is obvious: a fix can be proposed at once
    COMPLEX = "complex"  # the cause needs an investigation first
    UNCERTAIN = "uncertain"  # the cause is not known to the reporter
    BEYOND = "beyond"  # the fix is outside the reporter's task or authority


# Whole words, tested in this order after those of `is_beyond_authority`: the first match wins.
_PHRASES: Final = (
    (
        Size.UNCERTAIN,
        (
            r"(?:root )?cause (?:is )?(?:unclear|unknown|not clear)|not sure (?:why|what)|do(?:es)? ?n[o']t know why"
            r"|several possible|multiple possible|could be (?:either|any)|intermittent(?:ly)?|flaky|sometimes"
        ),
    ),
    (
        Size.COMPLEX,
        (
            r"race condition|deadlock(?:ed|s)?|integration (?:test|failure|error)s?|regressions?|cascad\w+|corrupt\w*|logic error"
            r"|memory leak|(?:[3-9]|[1-9]\d+) (?:tests? )?(?:failed|failing|failures)"
        ),
    ),
    (
        Size.SIMPLE,
        (
            r"typo|missing import|ModuleNotFoundError|ImportError|NameError|SyntaxError|IndentationError|undefined name"
            r"|no such file|wrong path|misspelled|unused (?:import|variable)|trailing whitespace|missing (?:key|setting|file)"
        ),
    ),
)
_MAX_CHARACTERS: Final = 20_000  # of a report


def size_of(failure: Failure) -> Size | None:
    """Return the size that the failure's text states; None if it states none, so that the kind alone decides."""
    from rung.core.domain.beyond_authority import is_beyond_authority  # lazy: it compiles large patterns

    text = f"{failure.message[:_MAX_CHARACTERS]}\n{failure.evidence.text[:_MAX_CHARACTERS]}"
    if is_beyond_authority(text):
        return Size.BEYOND
    return next((size for size, pattern in _patterns() if pattern.search(text)), None)


@cache
def _patterns() -> tuple[tuple[Size, re.Pattern[str]], ...]:
    """Return the compiled phrases; compiled on first use, as most ladders have no sizes."""
    return tuple((size, re.compile(rf"(?<!\w)(?:{phrases})(?!\w)", re.IGNORECASE)) for size, phrases in _PHRASES)
