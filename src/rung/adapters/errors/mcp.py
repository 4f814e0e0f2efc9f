"""Errors of the Model Context Protocol, 1.x and 2.x: JSON-RPC errors, and tool results marked as errors."""

from __future__ import annotations

from itertools import islice
from typing import Final

from rung.core.classify.evidence import clip, read_exception, text_of
from rung.core.classify.untrusted_objects import attribute, int_or_none
from rung.core.domain.failures import Evidence, Phase

_BLOCKS_LIMIT: Final = 20


def read(obj: object) -> Evidence | None:
    """Return evidence from an exception or a failed tool result, or None for a good result."""
    if isinstance(obj, Exception):
        return _of_error(obj)
    if True in (attribute(obj, "is_error"), attribute(obj, "isError")):  # 2.x, 1.x
        return Evidence(text=_of_blocks(attribute(obj, "content")), phase=Phase.TOOL)
    return None


def _of_error(error: Exception) -> Evidence:
    """Return evidence from `error`, which holds the JSON-RPC code, message and data. 1.x uses code 408 for a timeout."""
    inner = attribute(error, "error")
    code = int_or_none(attribute(inner, "code"))
    evidence = read_exception(error, body=attribute(inner, "data"), code="" if code is None else str(code))
    return evidence._replace(status=code if code is not None and code in range(400, 600) else None, phase=Phase.TOOL)


def _of_blocks(blocks: object) -> str:
    """Return the text of a result's content. Images and other types are ignored."""
    if not isinstance(blocks, list):
        return ""
    texts = [attribute(block, "text") for block in islice(blocks, _BLOCKS_LIMIT)]
    return clip("\n".join(text_of(text) for text in texts if isinstance(text, str)))
