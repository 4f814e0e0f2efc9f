"""The part of a command's output that says what failed: a log comes first in it, and the error last."""

from __future__ import annotations

import re
from typing import Final

from rung.core.classify.classifier import classify
from rung.core.classify.learned import RULE as LEARNED_RULE
from rung.core.domain.failures import Evidence, Kind

_FRAME: Final = re.compile(r"\s+at |Node\.js v\d")  # what Node and Java write after the error
_CLIPPED: Final = re.compile(r"… \d+ characters left out …")
_MAX_OUTPUT_LINES: Final = 20  # of standard output: what it says further up is not why the command ended


def error_text(errors: str, output: str, exit_code: int) -> str:
    """Return what a failed command says about its failure: standard error, or both where only its output explains it.

    Agents report a limit on standard output, while a warning of their runtime is on standard error.
    """
    errors, output = errors.strip(), output.strip()
    if not errors or not output or _is_explained(errors, exit_code):
        return errors or output
    both = "\n".join([errors, *output.splitlines()[-_MAX_OUTPUT_LINES:]])
    return both if _is_explained(both, exit_code) else errors


def _is_explained(text: str, exit_code: int) -> bool:
    """Return whether a rule recognizes the failure: the model's guess is no reason to look no further."""
    failure = classify(Evidence(text=text, exit_code=exit_code if exit_code > 0 else None))
    return failure.kind is not Kind.UNKNOWN and failure.rule != LEARNED_RULE


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
