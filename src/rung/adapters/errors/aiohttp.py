"""Errors of aiohttp: a cut answer, and statuses that no server sent."""

from __future__ import annotations

import re
from typing import Final

from rung.core.classify.evidence import attribute, read_exception, status_of
from rung.core.domain.failures import Evidence, Phase

_QUERY: Final = re.compile(r"\?[\w.~%-]+=[^\s'\")>]*")  # of a URL: some services take the key there


def read(thing: object) -> Evidence | None:
    """What an exception of this package says."""
    if not isinstance(thing, Exception):
        return None
    evidence = read_exception(thing)
    cut = any("PayloadE" in name for name in evidence.exceptions)  # ClientPayloadError, PayloadEncodingError
    return evidence._replace(
        text=_QUERY.sub("?…", evidence.text),
        # A parser's error has the `code` it would answer with if it were a server; only `status` was received.
        status=None if attribute(thing, "status") is None else status_of(thing),
        phase=Phase.STREAM if cut else evidence.phase,
    )
