"""Validation errors of pydantic, JSON and JSON Schema, without the validated data."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final

from rung.core.classify.evidence import read_exception, text_of
from rung.core.classify.untrusted_objects import attribute
from rung.core.domain.failures import Evidence, Phase

_ERRORS_LIMIT: Final = 20
_MESSAGE_LIMIT: Final = 300


def read(obj: object) -> Evidence | None:
    """Return evidence from a validation error: the location and the expected value."""
    if not isinstance(obj, Exception):
        return None
    text = _pydantic(obj) or _schema(obj) or _json(obj)
    if not text:
        return None
    return read_exception(obj, body="")._replace(text=text, code="", phase=Phase.RESULT)


def _pydantic(error: Exception) -> str:
    """Return the title and one line for each location. The text of the exception would quote the input."""
    read_errors = attribute(error, "errors")
    if not callable(read_errors):
        return ""
    try:
        errors = read_errors(include_url=False, include_context=False, include_input=False)
    except TypeError:  # pydantic 1 has no such arguments and quotes no input
        errors = read_errors()
    if not isinstance(errors, list) or not all(isinstance(item, Mapping) for item in errors):
        return ""
    title = attribute(error, "title") or attribute(attribute(error, "model"), "__name__") or ""
    lines = [f"{len(errors)} validation error{'s'[: len(errors) != 1]} for {title}"]
    for item in islice(errors, _ERRORS_LIMIT):
        place = ".".join(text_of(part, 80) for part in islice(item.get("loc") or ("",), 10))
        lines.append(f"{place}: {text_of(item.get('msg', ''), _MESSAGE_LIMIT)} [{item.get('type', '')}]")
    return "\n".join(lines)


def _schema(error: Exception) -> str:
    """Return location, rule and start of the message. The text of the exception would quote schema and instance."""
    rule, place = attribute(error, "validator"), attribute(error, "json_path")
    if not isinstance(rule, str) or not isinstance(place, str):
        return ""
    return f"{place}: {text_of(attribute(error, 'message'), _MESSAGE_LIMIT)} [{rule}]"


def _json(error: Exception) -> str:
    """Return the JSON parse error without the document."""
    return text_of(error, _MESSAGE_LIMIT) if isinstance(attribute(error, "doc"), str) else ""
