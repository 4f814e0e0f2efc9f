"""Errors of litellm: the provider's own words and headers, without the statuses litellm makes up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rung.core.classify.evidence import attribute, diagnostic_headers, read_exception, status_of, text_of
from rung.core.classify.retry_after import wait_in_headers
from rung.core.domain.failures import Evidence, Phase

_MADE_UP: Final = frozenset({408, 500})  # said of every timeout and every lost connection


def read(thing: object) -> Evidence | None:
    """What an exception of this package says."""
    if not isinstance(thing, Exception):
        return None
    provider = attribute(thing, "llm_provider")
    body = attribute(thing, "body")
    evidence = read_exception(thing, provider=provider if isinstance(provider, str) else "")
    # The response it shows is one it built itself, mostly without headers; the real ones are kept aside.
    received = diagnostic_headers(attribute(thing, "litellm_response_headers") or attribute(thing, "headers") or {})
    headers = received or evidence.headers
    evidence = evidence._replace(
        status=_status(thing, answered=bool(received), body=body),
        code=_code(body),
        headers=headers,
        retry_after=wait_in_headers(headers),
    )
    begun = attribute(thing, "generated_content")
    if not isinstance(begun, str):
        return evidence
    return evidence._replace(
        status=None,  # a 503 of its own making
        phase=Phase.STREAM,
        output=text_of(begun),
        output_started=attribute(thing, "is_pre_first_chunk") is False,
    )


def _status(error: Exception, *, answered: bool, body: object) -> int | None:
    status = status_of(error)
    if type(error).__name__ == "InternalServerError" and body is None:
        return None  # 500 stands for any 5xx there; the cause behind it knows which
    return None if status in _MADE_UP and not answered else status


def _code(body: object) -> str:
    """Type and code of the body; those of the exception are made up ("throttling_error", "429")."""
    if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping):
        body = body["error"]
    words = (body.get("type"), body.get("code")) if isinstance(body, Mapping) else ()
    return " ".join(dict.fromkeys(word for word in words if isinstance(word, str) and word))
