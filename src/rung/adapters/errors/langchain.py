"""Errors of langchain-core: model errors that say by their class what they are, and answers that do not parse."""

from __future__ import annotations

from typing import Final

from rung.core.classify.evidence import attribute, read_exception, text_of
from rung.core.domain.failures import Evidence, Kind, Phase

# The statuses these classes are documented to stand for; they have none of their own.
_STATUSES: Final = {
    "ModelInvalidRequestError": 400,
    "ModelAuthenticationError": 401,
    "ModelPermissionDeniedError": 403,
    "ModelNotFoundError": 404,
    "ModelRateLimitError": 429,
}
# What these say has no status, and leaves nothing to judge.
_VERDICTS: Final = {
    "ContextOverflowError": Kind.CONTEXT_LIMIT,
    "ModelTimeoutError": Kind.TIMEOUT,
    "ModelConnectionError": Kind.NETWORK,
}


def read(thing: object) -> Evidence | None:
    """What an exception of this package says; one that is also an SDK's own is left to that SDK's adapter."""
    if not isinstance(thing, Exception):
        return None
    names = [cls.__name__ for cls in type(thing).__mro__ if cls.__module__.startswith("langchain_core")]
    if "OutputParserException" in names:
        return _unparsed(thing)
    if "ModelError" not in names:
        return None
    evidence = read_exception(thing)
    status = next((_STATUSES[name] for name in names if name in _STATUSES), None)
    return evidence._replace(
        status=status if evidence.status is None else evidence.status,
        finding=next((_VERDICTS[name] for name in names if name in _VERDICTS), None),
    )


def _unparsed(error: Exception) -> Evidence:
    """An answer that could not be parsed; the answer itself is often quoted whole in the message."""
    output = attribute(error, "llm_output")
    said = text_of(error)
    if isinstance(output, str) and output:
        said = said.replace(output, text_of(output, 200))
    return read_exception(error, code="OUTPUT_PARSING_FAILURE")._replace(
        text=text_of(said, 4_096),
        phase=Phase.RESULT,
        output=text_of(output) if isinstance(output, str) else "",
    )
