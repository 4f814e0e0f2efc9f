"""Hatchet: an error as Hatchet's own, not retryable or retried after a delay."""

from __future__ import annotations

from hatchet_sdk import NonRetryableException, RetryAfterException

from rung.engine.durable.raised_as import RaisedAs, delay_of, failure_of, plain_error


def as_hatchet_error(error: Exception) -> Exception:
    """Return the error as a `NonRetryableException` or, if the same call may be repeated, as a `RetryAfterException`.

    A repeatable failure that names no delay is returned as an `AttemptError`: Hatchet retries it with the task's own
    backoff. The message starts with the kind. Hatchet's own errors are returned unchanged. Hatchet obeys a delay since
    engine 0.111; an older one uses the task's backoff.
    """
    failure = failure_of(error)
    if isinstance(error, NonRetryableException | RetryAfterException):
        return error
    converted: Exception
    if not failure.retryable:
        converted = NonRetryableException(failure.headline())
    elif (delay := delay_of(failure)) is not None:
        converted = RetryAfterException(failure.headline(), after=delay)
    else:
        converted = plain_error(failure)
    converted.__cause__ = error
    return converted


def hatchet_errors() -> RaisedAs:
    """Return a context manager for the body of a task: its errors become Hatchet's."""
    return RaisedAs(as_hatchet_error)
