"""Errors of httpx, httpx2 and the underlying httpcore: the response body, errno, a truncated response."""

from __future__ import annotations

import re
from typing import Final

from rung.core.classify.evidence import read_exception
from rung.core.classify.untrusted_objects import attribute
from rung.core.domain.failures import Evidence, Phase

_QUERY: Final = re.compile(r"\?[\w.~%-]+=[^\s'\")>]*")  # query of a URL: some services take the API key there
_ERRNO: Final = re.compile(r"\[Errno (-?\d{1,4})\]")
_TRUNCATED: Final = ("without sending complete message body", "incomplete chunked read")


def read(obj: object) -> Evidence | None:
    """Return evidence from an exception of these packages, or None for any other object."""
    if not isinstance(obj, Exception):
        return None
    response = attribute(obj, "response")
    body = attribute(response, "content")  # raises if the body was not read: then it stays unread
    evidence = read_exception(obj, body=body if isinstance(body, bytes) else "")
    errno = _ERRNO.search(evidence.text) if response is None else None  # the OSError itself is not in the chain
    return evidence._replace(
        text=_QUERY.sub("?…", evidence.text),
        errno=int(errno[1]) if errno else evidence.errno,
        phase=Phase.STREAM
        if response is None and any(phrase in evidence.text for phrase in _TRUNCATED)
        else evidence.phase,
    )
