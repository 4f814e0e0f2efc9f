"""Answers that do not fit: pydantic, JSON and JSON Schema errors, without repeating what was validated."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final

from rung.core.classify.evidence import attribute, read_exception, text_of
from rung.core.domain.failures import Evidence, Phase

_ERRORS_LIMIT: Final = 20
_MESSAGE_LIMIT: Final = 300


def read(thing: object) -> Evidence | None:
    """What a validation error says: where, and what was expected there."""
    if not isinstance(thing, Exception):
        return None
    said = _pydantic(thing) or _schema(thing) or _json(thing)
    if not said:
        return None
    return read_exception(thing, body="")._replace(text=said, code="", phase=Phase.RESULT)


def _pydantic(error: Exception) -> str:
    """Title, then one line for each place: its own text would quote the input of each."""
    told = attribute(error, "errors")
    if not callable(told):
        return ""
    try:
        errors = told(include_url=False, include_context=False, include_input=False)
    except TypeError:  # pydantic 1 takes no such arguments, and quotes no input
        errors = told()
    if not isinstance(errors, list) or not all(isinstance(item, Mapping) for item in errors):
        return ""
    title = attribute(error, "title") or attribute(attribute(error, "model"), "__name__") or ""
    lines = [f"{len(errors)} validation error{'s'[: len(errors) != 1]} for {title}"]
    for item in islice(errors, _ERRORS_LIMIT):
        place = ".".join(text_of(part, 80) for part in islice(item.get("loc") or ("",), 10))
        lines.append(f"{place}: {text_of(item.get('msg', ''), _MESSAGE_LIMIT)} [{item.get('type', '')}]")
    return "\n".join(lines)


def _schema(error: Exception) -> str:
    """Place, rule and the start of the message; its own text would quote the schema and the instance."""
    rule, place = attribute(error, "validator"), attribute(error, "json_path")
    if not isinstance(rule, str) or not isinstance(place, str):
        return ""
    return f"{place}: {text_of(attribute(error, 'message'), _MESSAGE_LIMIT)} [{rule}]"


def _json(error: Exception) -> str:
    """Where the JSON broke off; the document itself is not quoted."""
    return text_of(error, _MESSAGE_LIMIT) if isinstance(attribute(error, "doc"), str) else ""
