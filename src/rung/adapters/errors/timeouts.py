"""Errors of asyncio, concurrent.futures and multiprocessing that carry more than their class name."""

from __future__ import annotations

from rung.core.classify.evidence import read_exception, text_of
from rung.core.classify.untrusted_objects import attribute
from rung.core.domain.failures import Evidence, Phase


def read(obj: object) -> Evidence | None:
    """Return evidence from an exception of these modules, or None if its class name is enough."""
    if not isinstance(obj, BaseException):
        return None
    name = type(obj).__name__
    if name in {"_RemoteTraceback", "RemoteTraceback"}:
        # The cause of every exception from a worker process. Its text is a stack trace, not another error.
        return Evidence(stack=text_of(attribute(obj, "tb") or ""))
    if name == "IncompleteReadError":
        return read_exception(obj)._replace(phase=Phase.STREAM)
    if name == "TimeoutError":  # multiprocessing has its own class, unrelated to the builtin
        evidence = read_exception(obj)
        return evidence._replace(exceptions=tuple(dict.fromkeys((*evidence.exceptions, "TimeoutError"))))
    return None
