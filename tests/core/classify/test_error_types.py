"""The eight error types, which clients of the API know, and the kinds that each stands for."""

from __future__ import annotations

import pytest

import rung
from rung.core.classify.classifier import classify
from rung.core.classify.error_types import ErrorType, error_type, failure_type, is_listed, with_covered
from rung.core.domain.events import IncidentContext
from rung.core.domain.failures import Evidence, Kind
from rung.core.recovery.first_retry import FirstRetryCache
from rung.testing import HttpError, Script

BY_STATUS = [
    (400, "max_tokens: must be positive", "invalid_request"),
    (400, "context_length_exceeded: maximum context length is 200000 tokens", "context_limit"),
    (401, "no", "auth_error"),
    (403, "no", "auth_error"),
    (404, "no", "unknown"),
    (418, "no", "invalid_request"),
    (429, "no", "rate_limit"),
    (500, "no", "server_error"),
    (502, "no", "server_error"),
    (503, "no", "server_error"),
    (503, "the model is currently overloaded", "server_error"),
    (504, "no", "server_error"),
    (504, "deadline exceeded", "server_error"),
    (529, "no", "server_error"),
]


@pytest.mark.parametrize(("status", "text", "expected"), BY_STATUS)
def test_a_status_has_its_type(status: int, text: str, expected: str) -> None:
    """Each HTTP status has the error type of the document, whatever kind it is."""
    failure = classify(HttpError(status, text))
    assert error_type(failure.kind, failure.evidence.status) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("HTTP 504", "server_error"), ("HTTP 503", "server_error"), ("HTTP 403", "auth_error"), ("timed out", "timeout")],
)
def test_a_status_in_the_output_of_a_command(text: str, expected: str) -> None:
    """A status that only the text names decides as well."""
    assert failure_type(classify(Evidence(text=text, exit_code=1))) == expected


def test_a_timeout_without_a_status_is_a_timeout() -> None:
    """A request that timed out at the client is a timeout, not a server error."""
    failure = classify(TimeoutError("Request timed out"))
    assert error_type(failure.kind, failure.evidence.status) is ErrorType.TIMEOUT


def test_every_type_is_a_kind() -> None:
    """Each error type is the name of a kind, so that a list of kinds can name it."""
    assert {Kind(each) for each in ErrorType} <= set(Kind)
    assert all(error_type(kind) in ErrorType for kind in Kind)
    assert error_type("a kind of a newer Rung", 503) is ErrorType.SERVER_ERROR


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529])
def test_server_error_covers_its_statuses(status: int) -> None:
    """`retry = ["server_error"]` repeats each status that counts as one, and the library recovers."""
    policy = rung.policy("model", retry=["server_error"], backoff={"base": 0}, patience=0)
    outcome = rung.recover_sync(
        Script(HttpError(status, "no"), "fine"), rung.Request(prompt="x", model="m"), policy=policy, retry_budget=None
    )
    assert (outcome.status, outcome.attempts) == ("recovered", 2)


@pytest.mark.parametrize("error", [HttpError(429, "slow down"), TimeoutError("Request timed out")])
def test_server_error_covers_nothing_else(error: Exception) -> None:
    """`retry = ["server_error"]` does not repeat a rate limit or a timeout of the client."""
    assert not is_listed(classify(error), {Kind.SERVER_ERROR})


def test_unknown_covers_no_other_kind() -> None:
    """`unknown` in a list of kinds covers the kind of this name alone: rejected results are no transient errors."""
    assert with_covered({Kind.UNKNOWN}) == {Kind.UNKNOWN}
    assert Kind.OVERLOADED in with_covered({Kind.SERVER_ERROR})


def test_a_cached_first_retry_tells_a_504_from_a_timeout() -> None:
    """Under `retry = ["server_error"]`, the first retry after a 504 is not taken for one after a client's timeout."""
    cache = FirstRetryCache(rung.policy("call", retry=["server_error"]), IncidentContext("call", "default"))
    assert cache.lookup(classify(HttpError(504, "no")), None, 0.0, 0.5) is not None
    assert cache.lookup(classify(TimeoutError("Request timed out")), None, 0.0, 0.5) is None
