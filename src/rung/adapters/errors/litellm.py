"""Errors of litellm: the provider's message and headers, without the statuses that litellm invents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rung.core.classify.evidence import read_exception, text_of
from rung.core.classify.response_headers import diagnostic_headers, status_of
from rung.core.classify.retry_after import wait_in_headers
from rung.core.classify.untrusted_objects import attribute
from rung.core.domain.failures import Evidence, Phase

_INVENTED_STATUSES: Final = frozenset({408, 500})  # set for every timeout and every lost connection


def read(obj: object) -> Evidence | None:
    """Return evidence from an exception of this package, or None for any other object."""
    if not isinstance(obj, Exception):
        return None
    provider = attribute(obj, "llm_provider")
    body = attribute(obj, "body")
    evidence = read_exception(obj, provider=provider if isinstance(provider, str) else "")
    # litellm builds its own response object, mostly without headers; the received headers are in another attribute.
    received = diagnostic_headers(attribute(obj, "litellm_response_headers") or attribute(obj, "headers") or {})
    headers = received or evidence.headers
    evidence = evidence._replace(
        status=_status(obj, has_response=bool(received), body=body),
        code=_code(body),
        headers=headers,
        retry_after=wait_in_headers(headers),
    )
    partial_output = attribute(obj, "generated_content")
    if not isinstance(partial_output, str):
        return evidence
    return evidence._replace(
        status=None,  # litellm invents a 503
        phase=Phase.STREAM,
        output=text_of(partial_output),
        output_started=attribute(obj, "is_pre_first_chunk") is False,
    )


def _status(error: Exception, *, has_response: bool, body: object) -> int | None:
    status = status_of(error)
    if type(error).__name__ == "InternalServerError" and body is None:
        return None  # litellm reports 500 for any 5xx; the cause has the real status
    return None if status in _INVENTED_STATUSES and not has_response else status


def _code(body: object) -> str:
    """Return type and code of the body. Those of the exception are invented ("throttling_error", "429")."""
    if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping):
        body = body["error"]
    codes = (body.get("type"), body.get("code")) if isinstance(body, Mapping) else ()
    return " ".join(dict.fromkeys(code for code in codes if isinstance(code, str) and code))
