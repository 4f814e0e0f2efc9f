"""Errors of google-genai and google-api-core: the status's name, the reasons, and when to come back."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final

from rung.core.classify.evidence import attribute, int_or_none, read_exception
from rung.core.classify.retry_after import parse_duration
from rung.core.domain.failures import Evidence, Phase

_DETAILS_LIMIT: Final = 20


def read(thing: object) -> Evidence | None:
    """What an exception of these packages says."""
    if not isinstance(thing, Exception):
        return None
    body = attribute(thing, "details")
    details = _details(body)
    words = [attribute(thing, "status"), attribute(attribute(thing, "grpc_status_code"), "name")]
    words += [_field(detail, "reason") for detail in details]
    evidence = read_exception(thing, body="", provider="google")
    asked = next((seconds for seconds in map(_delay, details) if seconds is not None), None)
    begun = _in_stream(thing)
    return evidence._replace(
        code=" ".join(dict.fromkeys(word for word in words if isinstance(word, str) and word)),
        retry_after=evidence.retry_after if asked is None else asked,
        phase=Phase.STREAM if begun else evidence.phase,
        # It is raised only after output was made, which a stream has already handed on.
        output_started=type(thing).__name__ == "ContinuationInterruptedError",
    )


def _details(body: object) -> list[object]:
    """`error.details` of a JSON body, or a list of protobuf messages, as they come."""
    if isinstance(body, Mapping):
        error = body.get("error")
        body = error.get("details") if isinstance(error, Mapping) else None
    return list(islice(body, _DETAILS_LIMIT)) if isinstance(body, list | tuple) else []


def _field(detail: object, name: str) -> object:
    return detail.get(name) if isinstance(detail, Mapping) else attribute(detail, name)


def _delay(detail: object) -> float | None:
    """Seconds in a RetryInfo: "34.07s" in JSON, seconds and nanos in protobuf."""
    said = _field(detail, "retryDelay")
    if isinstance(said, str):
        return parse_duration(said)
    delay = _field(detail, "retry_delay")
    seconds, nanos = int_or_none(attribute(delay, "seconds")), int_or_none(attribute(delay, "nanos"))
    return None if seconds is None else seconds + (nanos or 0) / 1e9


def _in_stream(error: Exception) -> bool:
    """An error among the events of a stream: its response is the SDK's own, which has no status."""
    response = attribute(error, "response")
    return response is not None and attribute(response, "response_stream") is not None
