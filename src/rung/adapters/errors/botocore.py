"""Errors of botocore (boto3, Bedrock): the service's code, status and headers, from the `response` dict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rung.core.classify.evidence import read_exception
from rung.core.classify.response_headers import diagnostic_headers
from rung.core.classify.retry_after import wait_in_headers
from rung.core.classify.untrusted_objects import attribute, int_or_none
from rung.core.domain.failures import Evidence, Phase

_STREAM: Final = frozenset({"EventStreamError", "ResponseStreamingError", "IncompleteReadError"})


def read(obj: object) -> Evidence | None:
    """Return evidence from an exception of this package, or None for any other object."""
    if not isinstance(obj, Exception):
        return None
    evidence = read_exception(obj, provider="aws")
    if type(obj).__name__ in _STREAM:
        evidence = evidence._replace(phase=Phase.STREAM)
    response = attribute(obj, "response")
    if not isinstance(response, Mapping):
        return evidence
    code = _part(response, "Error").get("Code")
    metadata = _part(response, "ResponseMetadata")
    headers = diagnostic_headers(metadata.get("HTTPHeaders"))
    return evidence._replace(  # Without a service code, `Code` holds the HTTP status as text.
        code=code if isinstance(code, str) and not code.isdecimal() else "",
        status=int_or_none(metadata.get("HTTPStatusCode")),
        headers=headers,
        retry_after=wait_in_headers(headers),
    )


def _part(response: Mapping[object, object], name: str) -> Mapping[object, object]:
    part = response.get(name)
    return part if isinstance(part, Mapping) else {}
