"""Errors of the `anthropic` package: the API's type and code, and errors inside a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rung.core.classify.evidence import read_exception
from rung.core.classify.untrusted_objects import attribute
from rung.core.domain.failures import Evidence, Phase

_FIRST_ERROR: Final = 400


def read(obj: object) -> Evidence | None:
    """Return evidence from an exception of this package, or None for any other object."""
    if not isinstance(obj, Exception):
        return None
    evidence = read_exception(obj, code=_code(attribute(obj, "body")), provider="anthropic")
    if evidence.status is not None and evidence.status < _FIRST_ERROR:
        # An `error` event inside a stream: the status 200 belongs to the stream, not to the error.
        return evidence._replace(status=None, phase=Phase.STREAM)
    return evidence


def _code(body: object) -> str:
    """Return `error.type` of the body, and the stable `error.details.error_code` if there is one."""
    error = body.get("error") if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping):
        return ""
    details = error.get("details")
    codes = (error.get("type"), details.get("error_code") if isinstance(details, Mapping) else None)
    return " ".join(code for code in codes if isinstance(code, str))
