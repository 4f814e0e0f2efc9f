"""Errors of langchain-core: model errors whose class states the kind, and responses that do not parse."""

from __future__ import annotations

from typing import Final

from rung.core.classify.evidence import read_exception, text_of
from rung.core.classify.untrusted_objects import attribute
from rung.core.domain.failures import Evidence, Kind, Phase

# HTTP statuses that these classes are documented to represent; the exceptions carry none.
_STATUSES: Final = {
    "ModelInvalidRequestError": 400,
    "ModelAuthenticationError": 401,
    "ModelPermissionDeniedError": 403,
    "ModelNotFoundError": 404,
    "ModelRateLimitError": 429,
}
# Classes without an HTTP status that determine the kind.
_KINDS: Final = {
    "ContextOverflowError": Kind.CONTEXT_LIMIT,
    "ModelTimeoutError": Kind.TIMEOUT,
    "ModelConnectionError": Kind.NETWORK,
}


def read(obj: object) -> Evidence | None:
    """Return evidence from an exception of this package. An exception that is also an SDK's is left to that SDK's reader."""
    if not isinstance(obj, Exception):
        return None
    names = [cls.__name__ for cls in type(obj).__mro__ if cls.__module__.startswith("langchain_core")]
    if "OutputParserException" in names:
        return _unparsed(obj)
    if "ModelError" not in names:
        return None
    evidence = read_exception(obj)
    status = next((_STATUSES[name] for name in names if name in _STATUSES), None)
    return evidence._replace(
        status=status if evidence.status is None else evidence.status,
        finding=next((_KINDS[name] for name in names if name in _KINDS), None),
    )


def _unparsed(error: Exception) -> Evidence:
    """Return evidence of a response that could not be parsed. The message often quotes the whole response."""
    output = attribute(error, "llm_output")
    message = text_of(error)
    if isinstance(output, str) and output:
        message = message.replace(output, text_of(output, 200))
    return read_exception(error, code="OUTPUT_PARSING_FAILURE")._replace(
        text=text_of(message, 4_096),
        phase=Phase.RESULT,
        output=text_of(output) if isinstance(output, str) else "",
    )
