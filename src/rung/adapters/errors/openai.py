"""Errors of the `openai` package, used with OpenAI and compatible services: type and code, finish reasons."""

from __future__ import annotations

from typing import Final

from rung.core.classify.evidence import read_exception, text_of
from rung.core.classify.untrusted_objects import attribute
from rung.core.domain.failures import Evidence, Phase

_HTTP_ERRORS: Final = range(400, 600)
_FINISH_REASONS: Final = {"LengthFinishReasonError": "length", "ContentFilterFinishReasonError": "content_filter"}


def read(obj: object) -> Evidence | None:
    """Return evidence from an exception of this package, or None for any other object."""
    if not isinstance(obj, Exception):
        return None
    code = _word(attribute(obj, "code"))
    words = dict.fromkeys((_word(attribute(obj, "type")), code))  # some services repeat the type as the code
    evidence = read_exception(obj, code=" ".join(filter(None, words)), provider="openai")
    reason = _FINISH_REASONS.get(type(obj).__name__)
    if reason is not None:
        return evidence._replace(code=reason, phase=Phase.RESULT, output=_partial_output(attribute(obj, "completion")))
    if attribute(obj, "response") is None and attribute(obj, "body") is not None:
        # Raised only for an error inside a stream. Some services put the status into the code.
        status = int(code) if code.isdecimal() and int(code) in _HTTP_ERRORS else None
        return evidence._replace(status=status, phase=Phase.STREAM)
    return evidence


def _word(value: object) -> str:
    """Return a string or a number as text. 2.x keeps numbers, 3.x converts them."""
    return text_of(value, 100) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _partial_output(completion: object) -> str:
    """Return the partial text of a response that hit its length limit or was filtered. 2.x drops filtered text."""
    choices = attribute(completion, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    content = attribute(attribute(choice, "message"), "content")
    return text_of(content) if isinstance(content, str) else ""
