"""Errors of the `openai` package, and of the many services it is pointed at: type and code, finish reasons."""

from __future__ import annotations

from typing import Final

from rung.core.classify.evidence import attribute, read_exception, text_of
from rung.core.domain.failures import Evidence, Phase

_HTTP_ERRORS: Final = range(400, 600)
_UNPARSED: Final = {"LengthFinishReasonError": "length", "ContentFilterFinishReasonError": "content_filter"}


def read(thing: object) -> Evidence | None:
    """What an exception of this package says."""
    if not isinstance(thing, Exception):
        return None
    code = _word(attribute(thing, "code"))
    words = dict.fromkeys((_word(attribute(thing, "type")), code))  # some services repeat the type as the code
    evidence = read_exception(thing, code=" ".join(filter(None, words)), provider="openai")
    reason = _UNPARSED.get(type(thing).__name__)
    if reason is not None:
        return evidence._replace(code=reason, phase=Phase.RESULT, output=_written(attribute(thing, "completion")))
    if attribute(thing, "response") is None and attribute(thing, "body") is not None:
        # Raised for an error inside a stream alone, where some services put the status into the code.
        status = int(code) if code.isdecimal() and int(code) in _HTTP_ERRORS else None
        return evidence._replace(status=status, phase=Phase.STREAM)
    return evidence


def _word(value: object) -> str:
    """Text as it is; a number (which 2.x leaves one, where 3.x makes it text) as text."""
    return text_of(value, 100) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _written(completion: object) -> str:
    """What there is of an answer that was cut at its length limit, or filtered. 2.x does not keep a filtered one."""
    choices = attribute(completion, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    content = attribute(attribute(choice, "message"), "content")
    return text_of(content) if isinstance(content, str) else ""
