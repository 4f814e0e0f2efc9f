"""Errors that arrive as server-sent events inside a stream that began with 200."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rung.core.classify.evidence import int_or_none, text_of
from rung.core.classify.retry_after import wait_in_text
from rung.core.domain.failures import Evidence, Phase
from rung.core.text.json_in_text import json_object

_ENDINGS: Final = frozenset({"error", "response.failed", "response.incomplete"})
_HTTP_ERRORS: Final = range(400, 600)


def read_event(event: str, data: str) -> Evidence | None:
    """What an event says went wrong; None of one that is part of an answer.

    `event` is its name, empty where the stream names none. Anthropic sends `error`, OpenAI's Responses
    `error`, `response.failed` and `response.incomplete`, chat completions a chunk with an `error` key.
    """
    if event not in _ENDINGS and '"error"' not in data and '"response.' not in data:
        return None  # nearly every event of every stream: nothing is parsed for it
    found = json_object(data)
    if found is None:
        return Evidence(text=text_of(data), phase=Phase.STREAM) if event == "error" else None
    name = event if event in _ENDINGS else _words(found.get("type"))
    if name.startswith("response.") and name in _ENDINGS:
        return _response(name, found)
    error = found.get("error")
    if error:
        return _evidence(error, found)
    return _evidence(found, found) if name == "error" else None


def _response(name: str, event: Mapping[str, Any]) -> Evidence:
    """A response that ended early: its error, or the reason it is incomplete (max_output_tokens, content_filter)."""
    response = event.get("response")
    response = response if isinstance(response, Mapping) else {}
    details = response.get("incomplete_details")
    if name == "response.incomplete" and isinstance(details, Mapping):
        reason = details.get("reason")
        return Evidence(text=f"incomplete: {text_of(reason)}", code=_words(reason), phase=Phase.STREAM)
    error = response.get("error")
    return _evidence(error, response) if error else Evidence(text=name, code=name, phase=Phase.STREAM)


def _evidence(error: object, around: Mapping[str, Any]) -> Evidence:
    if not isinstance(error, Mapping):
        return Evidence(text=text_of(error), code=_words(around.get("code")), phase=Phase.STREAM)
    kind = error.get("type")
    details = error.get("details")
    more = details.get("error_code") if isinstance(details, Mapping) else None
    code = int_or_none(error.get("code"))
    text = text_of(error.get("message") or error)
    return Evidence(
        text=text,
        status=code if code in _HTTP_ERRORS else None,  # some services put the status there
        code=_words(kind if kind != "error" else None, error.get("code"), error.get("status"), more),
        retry_after=wait_in_text(text),
        phase=Phase.STREAM,
    )


def _words(*values: object) -> str:
    return " ".join(dict.fromkeys(value[:200] for value in values if isinstance(value, str) and value))
