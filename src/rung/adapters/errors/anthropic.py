"""Errors of the `anthropic` package: the API's own type and code, and errors that arrive inside a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rung.core.classify.evidence import attribute, read_exception
from rung.core.domain.failures import Evidence, Phase

_FIRST_ERROR: Final = 400


def read(thing: object) -> Evidence | None:
    """What an exception of this package says."""
    if not isinstance(thing, Exception):
        return None
    evidence = read_exception(thing, code=_code(attribute(thing, "body")), provider="anthropic")
    if evidence.status is not None and evidence.status < _FIRST_ERROR:
        # An `error` event in a stream that had begun well: the 200 is the stream's, not the error's.
        return evidence._replace(status=None, phase=Phase.STREAM)
    return evidence


def _code(body: object) -> str:
    """`error.type` of the body, and the stable `error.details.error_code` where there is one."""
    error = body.get("error") if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping):
        return ""
    details = error.get("details")
    words = (error.get("type"), details.get("error_code") if isinstance(details, Mapping) else None)
    return " ".join(word for word in words if isinstance(word, str))
