"""Errors of requests, urllib3 and http.client: the response body, a truncated response, misleading class names."""

from __future__ import annotations

import re
from typing import Final

from rung.core.classify.evidence import read_exception
from rung.core.classify.untrusted_objects import attribute
from rung.core.domain.failures import Evidence, Phase

_QUERY: Final = re.compile(r"\?[\w.~%-]+=[^\s'\")>]*")  # query of a URL: some services take the API key there
_TRUNCATED: Final = ("Connection broken", "IncompleteRead(")


def read(obj: object) -> Evidence | None:
    """Return evidence from an exception of these packages, or None for any other object."""
    if not isinstance(obj, Exception) or isinstance(attribute(obj, "doc"), str):
        return None  # a JSON error is read by the validation reader, not as a connection error
    body = attribute(attribute(obj, "response"), "_content")  # `content` would read an unread stream
    evidence = read_exception(obj, body=body if isinstance(body, bytes) else "")
    stalled = _stalled(obj)
    return evidence._replace(
        text=_QUERY.sub("?…", evidence.text),
        exceptions=_correct_names(evidence.exceptions, stalled=stalled),
        phase=Phase.STREAM if stalled or any(phrase in evidence.text for phrase in _TRUNCATED) else evidence.phase,
    )


def _stalled(error: Exception) -> bool:
    """Return whether the response body stalled: requests wraps urllib3's ReadTimeoutError in a ConnectionError."""
    inner = error.args[0] if error.args else None
    return type(error).__name__ == "ConnectionError" and type(inner).__name__ == "ReadTimeoutError"


def _correct_names(names: tuple[str, ...], *, stalled: bool) -> tuple[str, ...]:
    if stalled:
        return tuple(name for name in names if not name.endswith(".ConnectionError"))
    if any(name.endswith((".NewConnectionError", ".NameResolutionError")) for name in names):
        # urllib3 2 derives these from ConnectTimeoutError; a refused connection did not time out.
        return tuple(name for name in names if "Timeout" not in name)
    return names
