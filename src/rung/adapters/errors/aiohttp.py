"""Errors of aiohttp: a truncated response, and status codes that no server sent."""

from __future__ import annotations

import re
from typing import Final

from rung.core.classify.evidence import read_exception
from rung.core.classify.response_headers import status_of
from rung.core.classify.untrusted_objects import attribute
from rung.core.domain.failures import Evidence, Phase

_QUERY: Final = re.compile(r"\?[\w.~%-]+=[^\s'\")>]*")  # query of a URL: some services take the API key there


def read(obj: object) -> Evidence | None:
    """Return evidence from an exception of this package, or None for any other object."""
    if not isinstance(obj, Exception):
        return None
    evidence = read_exception(obj)
    cut = any("PayloadE" in name for name in evidence.exceptions)  # ClientPayloadError, PayloadEncodingError
    return evidence._replace(
        text=_QUERY.sub("?…", evidence.text),
        # The `code` of a parser error is what a server would respond with; only `status` was received.
        status=None if attribute(obj, "status") is None else status_of(obj),
        phase=Phase.STREAM if cut else evidence.phase,
    )
