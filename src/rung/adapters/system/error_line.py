"""The line of a command's output that says what failed: a log comes first in it, and the error last."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.classify.classifier import classify

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence

_FRAME: Final = re.compile(r"\s+at |Node\.js v\d")  # what Node and Java write after the error
_CLIPPED: Final = re.compile(r"… \d+ characters left out …")


def number_of_error_line(evidence: Evidence) -> int:
    """Return the number, from 1, of the last line that is classified as the whole text is; else of the last that says something.

    A text of one line has no such number: 0.
    """
    lines = evidence.text.splitlines()
    if len(lines) < 2:  # noqa: PLR2004  # the first line is the only one
        return 0
    rule = classify(evidence).rule
    telling = [number for number, line in enumerate(lines, 1) if _says_something(line)]
    decides = (n for n in reversed(telling) if classify(evidence._replace(text=lines[n - 1])).rule == rule)
    return next(decides, telling[-1] if telling else 0)


def _says_something(line: str) -> bool:
    """Return whether a line is more than a bracket, a rule of dashes or a frame of a stack."""
    is_filler = _FRAME.match(line) or _CLIPPED.match(line)
    return not is_filler and any(map(str.isalnum, line))
