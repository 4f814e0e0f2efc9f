"""Cache of classified exceptions. The classifier itself is imported at the first failure: a success needs none of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from rung.core.domain.failures import Failure

_MAX_CACHED_FAILURES: Final = 1_024
FAILURE_CACHE: Final[dict[Any, Failure]] = {}  # by exception class and arguments


def classify_cached(error: Exception, now: float, local_zone: Callable[[], tzinfo]) -> Failure:
    """Classify an exception at this time. Exceptions with equal class and arguments share a cached failure.

    Classification is a pure function of both, if the exception carries nothing else and names no time.
    """
    try:
        if error.__cause__ is not None or error.__context__ is not None or error.__dict__:
            return _classify(error, now, local_zone)
        key = (type(error), error.args)
        failure = FAILURE_CACHE.get(key)
        if failure is None:
            failure = _classify(error, now, local_zone)
            if isinstance(error, OSError) and error.filename is not None:
                return failure  # the file name is in its text, but not in its arguments
            if _depends_on_time(error):
                return failure  # the wait for a reset shrinks
            if len(FAILURE_CACHE) >= _MAX_CACHED_FAILURES:
                FAILURE_CACHE.clear()
            FAILURE_CACHE[key] = failure
    except Exception:  # unhashable arguments, or a class whose attributes raise
        return _classify(error, now, local_zone)
    return failure


def _classify(error: Exception, now: float, local_zone: Callable[[], tzinfo]) -> Failure:
    from rung.core.classify.classifier import classify

    return classify(error, now, local_zone())


def _depends_on_time(error: Exception) -> bool:
    from rung.core.classify.classifier import classify, names_reset_time

    return names_reset_time(classify(error))
