"""Errors of the Model Context Protocol: JSON-RPC errors, and tool results that say they are one. For 1.x and 2.x."""

from __future__ import annotations

from itertools import islice
from typing import Final

from rung.core.classify.evidence import attribute, clip, int_or_none, read_exception, text_of
from rung.core.domain.failures import Evidence, Phase

_BLOCKS_LIMIT: Final = 20


def read(thing: object) -> Evidence | None:
    """What an exception or a tool's result says; None of a result that is fine."""
    if isinstance(thing, Exception):
        return _of_error(thing)
    if True in (attribute(thing, "is_error"), attribute(thing, "isError")):  # 2.x, 1.x
        return Evidence(text=_of_blocks(attribute(thing, "content")), phase=Phase.TOOL)
    return None


def _of_error(error: Exception) -> Evidence:
    """`error` holds the JSON-RPC code, a message and data; 1.x says 408 as its code when time is up."""
    inner = attribute(error, "error")
    code = int_or_none(attribute(inner, "code"))
    evidence = read_exception(error, body=attribute(inner, "data"), code="" if code is None else str(code))
    return evidence._replace(status=code if code is not None and code in range(400, 600) else None, phase=Phase.TOOL)


def _of_blocks(blocks: object) -> str:
    """The text of a result's content; pictures and the like are not read."""
    if not isinstance(blocks, list):
        return ""
    texts = [attribute(block, "text") for block in islice(blocks, _BLOCKS_LIMIT)]
    return clip("\n".join(text_of(text) for text in texts if isinstance(text, str)))
