"""Error types: eight coarse names for failures, as clients of the API know them, and the kinds that each stands for.

Kinds are finer. A client that knows no kinds reads and sets error types; each type is also the name of a kind.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rung.core.classify.status_text import status_in
from rung.core.domain.failures import TRANSIENT, Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rung.core.domain.failures import Failure


class ErrorType(StrEnum):
    """Type of an error: a closed set."""

    RATE_LIMIT = "rate_limit"
    SERVER_ERROR = "server_error"
    TIMEOUT = "timeout"
    CONTEXT_LIMIT = "context_limit"
    CONTENT_FILTER = "content_filter"
    INVALID_REQUEST = "invalid_request"
    AUTH_ERROR = "auth_error"
    UNKNOWN = "unknown"


# Kinds that are not listed are `unknown`.
TYPE_OF_KIND: Final[Mapping[Kind, ErrorType]] = MappingProxyType(
    {
        Kind.RATE_LIMIT: ErrorType.RATE_LIMIT,
        Kind.QUOTA_EXHAUSTED: ErrorType.RATE_LIMIT,
        Kind.SERVER_ERROR: ErrorType.SERVER_ERROR,
        Kind.OVERLOADED: ErrorType.SERVER_ERROR,
        Kind.SERVICE_DOWN: ErrorType.SERVER_ERROR,
        Kind.NETWORK: ErrorType.SERVER_ERROR,
        Kind.STREAM_INTERRUPTED: ErrorType.SERVER_ERROR,
        Kind.TIMEOUT: ErrorType.TIMEOUT,
        Kind.STALLED: ErrorType.TIMEOUT,
        Kind.CONTEXT_LIMIT: ErrorType.CONTEXT_LIMIT,
        Kind.OUTPUT_LIMIT: ErrorType.CONTEXT_LIMIT,
        Kind.CONTEXT_WARNING: ErrorType.CONTEXT_LIMIT,
        Kind.CONTENT_FILTER: ErrorType.CONTENT_FILTER,
        Kind.REFUSAL: ErrorType.CONTENT_FILTER,
        Kind.INVALID_REQUEST: ErrorType.INVALID_REQUEST,
        Kind.AUTH_ERROR: ErrorType.AUTH_ERROR,
        Kind.MISSING_CREDENTIALS: ErrorType.AUTH_ERROR,
        Kind.PERMISSION_DENIED: ErrorType.AUTH_ERROR,
    }
)
_TYPE_OF_STATUS: Final[Mapping[int, ErrorType]] = MappingProxyType(
    {
        400: ErrorType.INVALID_REQUEST,
        401: ErrorType.AUTH_ERROR,
        403: ErrorType.AUTH_ERROR,
        429: ErrorType.RATE_LIMIT,
        500: ErrorType.SERVER_ERROR,
        502: ErrorType.SERVER_ERROR,
        503: ErrorType.SERVER_ERROR,
        504: ErrorType.SERVER_ERROR,
    }
)

_HEADLINE_CHARS: Final = 400  # a status is searched here


def error_type(kind: str, status: int | None = None) -> ErrorType:
    """Return the error type of a kind. The status decides where the kind has no type, and for a gateway's timeout (504)."""
    by_kind = TYPE_OF_KIND.get(Kind(kind), ErrorType.UNKNOWN) if kind in tuple(Kind) else ErrorType.UNKNOWN
    if status is not None and by_kind in (ErrorType.UNKNOWN, ErrorType.TIMEOUT):
        return _TYPE_OF_STATUS.get(status, by_kind)
    return by_kind


def failure_type(failure: Failure) -> ErrorType:
    """Return the error type of a failure. Its status may be in its text alone, as in the output of a command."""
    evidence = failure.evidence
    found = error_type(failure.kind, evidence.status)
    if evidence.status is None and found in (ErrorType.UNKNOWN, ErrorType.TIMEOUT):
        return error_type(failure.kind, status_in(evidence.text[:_HEADLINE_CHARS]))
    return found


def is_listed(failure: Failure, kinds: Collection[Kind]) -> bool:
    """Whether a list of kinds covers a failure: by its kind or, if it is transient, by its error type."""
    if failure.kind in kinds:
        return True
    return failure.kind in TRANSIENT and Kind(failure_type(failure)) in kinds


def with_covered(kinds: Collection[Kind]) -> frozenset[Kind]:
    """Return these kinds, and the transient kinds whose error type is one of them."""
    return frozenset(kinds) | {kind for kind in TRANSIENT if Kind(TYPE_OF_KIND[kind]) in kinds}
