"""Errors in server-sent events, inside a stream that started with status 200."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rung.core.classify.evidence import text_of
from rung.core.classify.retry_after import wait_in_text
from rung.core.classify.untrusted_objects import int_or_none
from rung.core.domain.failures import Evidence, Phase
from rung.core.text.json_in_text import parse_json_object

_ENDINGS: Final = frozenset({"error", "response.failed", "response.incomplete"})
_HTTP_ERRORS: Final = range(400, 600)


def read_event(event: str, data: str) -> Evidence | None:
    """Return evidence from an error event, or None for any other event.

    `event` is the name of the event, or an empty string. Anthropic sends `error`; OpenAI's Responses API sends `error`,
    `response.failed` and `response.incomplete`; Chat Completions sends a chunk with an `error` key.
    """
    if event not in _ENDINGS and '"error"' not in data and '"response.' not in data:
        return None  # nearly all events: skip parsing
    parsed = parse_json_object(data)
    if parsed is None:
        return Evidence(text=text_of(data), phase=Phase.STREAM) if event == "error" else None
    name = event if event in _ENDINGS else _join_codes(parsed.get("type"))
    if name.startswith("response.") and name in _ENDINGS:
        return _response(name, parsed)
    error = parsed.get("error")
    if error:
        return _evidence(error, parsed)
    return _evidence(parsed, parsed) if name == "error" else None


def _response(name: str, event: Mapping[str, Any]) -> Evidence:
    """Return evidence of a failed or incomplete response: its error, or the reason (max_output_tokens, content_filter)."""
    response = event.get("response")
    response = response if isinstance(response, Mapping) else {}
    details = response.get("incomplete_details")
    if name == "response.incomplete" and isinstance(details, Mapping):
        reason = details.get("reason")
        return Evidence(text=f"incomplete: {text_of(reason)}", code=_join_codes(reason), phase=Phase.STREAM)
    error = response.get("error")
    return _evidence(error, response) if error else Evidence(text=name, code=name, phase=Phase.STREAM)


def _evidence(error: object, around: Mapping[str, Any]) -> Evidence:
    if not isinstance(error, Mapping):
        return Evidence(text=text_of(error), code=_join_codes(around.get("code")), phase=Phase.STREAM)
    kind = error.get("type")
    details = error.get("details")
    more = details.get("error_code") if isinstance(details, Mapping) else None
    code = int_or_none(error.get("code"))
    text = text_of(error.get("message") or error)
    return Evidence(
        text=text,
        status=code if code in _HTTP_ERRORS else None,  # some services put the status there
        code=_join_codes(kind if kind != "error" else None, error.get("code"), error.get("status"), more),
        retry_after=wait_in_text(text),
        phase=Phase.STREAM,
    )


def _join_codes(*values: object) -> str:
    return " ".join(dict.fromkeys(value[:200] for value in values if isinstance(value, str) and value))
