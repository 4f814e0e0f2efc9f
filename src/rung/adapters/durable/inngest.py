"""Inngest: an error as Inngest's own, not retriable or retried after a delay."""

from __future__ import annotations

from inngest import NonRetriableError, RetryAfterError, StepError

from rung.engine.durable.raised_as import RaisedAs, delay_of, failure_of, plain_error


def as_inngest_error(error: Exception) -> Exception:
    """Return the error as a `NonRetriableError` or, if the same call may be repeated, as a `RetryAfterError`.

    A repeatable failure that names no delay is returned as an `AttemptError`: Inngest retries it with its own backoff.
    The message starts with the kind. Inngest's own errors are returned unchanged.
    """
    failure = failure_of(error)
    if isinstance(error, NonRetriableError | RetryAfterError | StepError):
        return error
    converted: Exception
    if not failure.retryable:
        converted = NonRetriableError(failure.headline())
    elif (delay := delay_of(failure)) is not None:
        converted = RetryAfterError(failure.headline(), delay)
    else:
        converted = plain_error(failure)
    converted.__cause__ = error
    return converted


def inngest_errors() -> RaisedAs:
    """Return a context manager for the body of a function or of a step: its errors become Inngest's."""
    return RaisedAs(as_inngest_error)
