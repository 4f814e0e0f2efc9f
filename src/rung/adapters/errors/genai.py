"""Errors of google-genai and google-api-core: the status name, the reasons, and the retry delay."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final

from rung.core.classify.evidence import read_exception
from rung.core.classify.retry_after import parse_duration
from rung.core.classify.untrusted_objects import attribute, int_or_none
from rung.core.domain.failures import Evidence, Phase

_DETAILS_LIMIT: Final = 20


def read(obj: object) -> Evidence | None:
    """Return evidence from an exception of these packages, or None for any other object."""
    if not isinstance(obj, Exception):
        return None
    body = attribute(obj, "details")
    details = _details(body)
    codes = [attribute(obj, "status"), attribute(attribute(obj, "grpc_status_code"), "name")]
    codes += [_field(detail, "reason") for detail in details]
    evidence = read_exception(obj, body="", provider="google")
    retry_delay = next((seconds for seconds in map(_delay, details) if seconds is not None), None)
    in_stream = _in_stream(obj)
    return evidence._replace(
        code=" ".join(dict.fromkeys(code for code in codes if isinstance(code, str) and code)),
        retry_after=evidence.retry_after if retry_delay is None else retry_delay,
        phase=Phase.STREAM if in_stream else evidence.phase,
        # This error is raised only after output, which a stream has already passed on.
        output_started=type(obj).__name__ == "ContinuationInterruptedError",
    )


def _details(body: object) -> list[object]:
    """Return `error.details` of a JSON body, or the list of protobuf messages."""
    if isinstance(body, Mapping):
        error = body.get("error")
        body = error.get("details") if isinstance(error, Mapping) else None
    return list(islice(body, _DETAILS_LIMIT)) if isinstance(body, list | tuple) else []


def _field(detail: object, name: str) -> object:
    return detail.get(name) if isinstance(detail, Mapping) else attribute(detail, name)


def _delay(detail: object) -> float | None:
    """Return the seconds of a RetryInfo: "34.07s" in JSON, seconds and nanos in protobuf."""
    text = _field(detail, "retryDelay")
    if isinstance(text, str):
        return parse_duration(text)
    delay = _field(detail, "retry_delay")
    seconds, nanos = int_or_none(attribute(delay, "seconds")), int_or_none(attribute(delay, "nanos"))
    return None if seconds is None else seconds + (nanos or 0) / 1e9


def _in_stream(error: Exception) -> bool:
    """Return whether an error came inside a stream: its response is an SDK object without a status."""
    response = attribute(error, "response")
    return response is not None and attribute(response, "response_stream") is not None
