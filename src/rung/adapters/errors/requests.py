"""Errors of requests, urllib3 and http.client: a body that was read, a cut answer, misleading class names."""

from __future__ import annotations

import re
from typing import Final

from rung.core.classify.evidence import attribute, read_exception
from rung.core.domain.failures import Evidence, Phase

_QUERY: Final = re.compile(r"\?[\w.~%-]+=[^\s'\")>]*")  # of a URL: some services take the key there
_CUT: Final = ("Connection broken", "IncompleteRead(")


def read(thing: object) -> Evidence | None:
    """What an exception of these packages says."""
    if not isinstance(thing, Exception) or isinstance(attribute(thing, "doc"), str):
        return None  # an answer that is no JSON is read as such, not as trouble with the connection
    body = attribute(attribute(thing, "response"), "_content")  # `content` would read a stream that was left unread
    evidence = read_exception(thing, body=body if isinstance(body, bytes) else "")
    stalled = _stalled(thing)
    return evidence._replace(
        text=_QUERY.sub("?…", evidence.text),
        exceptions=_true_names(evidence.exceptions, stalled=stalled),
        phase=Phase.STREAM if stalled or any(words in evidence.text for words in _CUT) else evidence.phase,
    )


def _stalled(error: Exception) -> bool:
    """A body that stopped arriving: requests calls that ConnectionError, around urllib3's ReadTimeoutError."""
    inner = error.args[0] if error.args else None
    return type(error).__name__ == "ConnectionError" and type(inner).__name__ == "ReadTimeoutError"


def _true_names(names: tuple[str, ...], *, stalled: bool) -> tuple[str, ...]:
    if stalled:
        return tuple(name for name in names if not name.endswith(".ConnectionError"))
    if any(name.endswith((".NewConnectionError", ".NameResolutionError")) for name in names):
        # urllib3 2 derives these from ConnectTimeoutError; a refused connection did not time out.
        return tuple(name for name in names if "Timeout" not in name)
    return names
