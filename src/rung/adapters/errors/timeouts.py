"""asyncio, concurrent.futures and multiprocessing: what their exceptions hold beyond the name of the class."""

from __future__ import annotations

from rung.core.classify.evidence import attribute, read_exception, text_of
from rung.core.domain.failures import Evidence, Phase


def read(thing: object) -> Evidence | None:
    """What an exception of these modules says; None where its class says it all."""
    if not isinstance(thing, BaseException):
        return None
    name = type(thing).__name__
    if name in {"_RemoteTraceback", "RemoteTraceback"}:
        # The cause of every exception from a worker process; its text is a stack, not another error.
        return Evidence(stack=text_of(attribute(thing, "tb") or ""))
    if name == "IncompleteReadError":
        return read_exception(thing)._replace(phase=Phase.STREAM)
    if name == "TimeoutError":  # multiprocessing has one of its own, which is not the builtin
        evidence = read_exception(thing)
        return evidence._replace(exceptions=tuple(dict.fromkeys((*evidence.exceptions, "TimeoutError"))))
    return None
