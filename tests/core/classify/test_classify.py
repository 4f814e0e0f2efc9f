"""Classification: the first matching rule wins, and its id is recorded."""

from __future__ import annotations

import errno
import json
import socket
import ssl
import subprocess
from http.client import RemoteDisconnected
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.classify.classifier import RULES, classify, clear_cache, is_retryable
from rung.core.domain.errors import AttemptError, AttemptTimeout, CircuitOpenError
from rung.core.domain.failures import NEVER_RETRYABLE, TRANSIENT, Evidence, Failure, Kind, Phase
from rung.testing import HttpError

if TYPE_CHECKING:
    from rung.core.classify.rule_index import ClassifyRule


def not_json() -> Exception:
    try:
        json.loads("{")
    except ValueError as error:
        return error
    raise AssertionError


SEEN: list[tuple[Any, Kind, bool]] = [
    (HttpError(429), Kind.RATE_LIMIT, True),
    (HttpError(429, "You exceeded your current quota"), Kind.QUOTA_EXHAUSTED, False),
    (HttpError(400, "Your credit balance is too low"), Kind.QUOTA_EXHAUSTED, False),
    (HttpError(402), Kind.QUOTA_EXHAUSTED, False),
    (
        HttpError(400, "Billing hard limit has been reached", code="billing_hard_limit_reached"),
        Kind.QUOTA_EXHAUSTED,
        False,
    ),
    (HttpError(429, "Your account is not active, billing_not_active"), Kind.QUOTA_EXHAUSTED, False),
    (HttpError(429, "Please check your plan and billing details."), Kind.QUOTA_EXHAUSTED, False),
    (
        HttpError(
            429, "Rate limit reached: 3 / min. Raise it by adding a payment method at example.com/account/billing."
        ),
        Kind.RATE_LIMIT,
        True,
    ),
    (HttpError(400, "prompt is too long: 210000 tokens > 200000"), Kind.CONTEXT_LIMIT, False),
    (HttpError(400, "This model's maximum context length is 8192 tokens"), Kind.CONTEXT_LIMIT, False),
    (HttpError(500, "context_length_exceeded"), Kind.CONTEXT_LIMIT, False),
    (HttpError(429, "context window"), Kind.RATE_LIMIT, True),
    (HttpError(401), Kind.AUTH_ERROR, False),
    (HttpError(401, "No API key provided"), Kind.MISSING_CREDENTIALS, False),
    (HttpError(403), Kind.PERMISSION_DENIED, False),
    (HttpError(404), Kind.NOT_FOUND, False),
    (HttpError(404, "model: claude-0 not found"), Kind.MODEL_UNAVAILABLE, False),
    (HttpError(400, "The model `gpt-0` does not exist"), Kind.MODEL_UNAVAILABLE, False),
    (HttpError(400), Kind.INVALID_REQUEST, False),
    (HttpError(422), Kind.INVALID_REQUEST, False),
    (HttpError(408), Kind.TIMEOUT, True),
    (HttpError(504), Kind.TIMEOUT, True),
    (HttpError(500), Kind.SERVER_ERROR, True),
    (HttpError(502), Kind.SERVER_ERROR, True),
    (HttpError(503), Kind.OVERLOADED, True),
    (HttpError(529), Kind.OVERLOADED, True),
    (HttpError(200, "odd", code="overloaded_error"), Kind.OVERLOADED, True),
    (HttpError(200, "odd"), Kind.UNKNOWN, False),
    (TimeoutError(), Kind.TIMEOUT, True),
    (subprocess.TimeoutExpired("x", 5), Kind.TIMEOUT, True),
    (AttemptTimeout(5), Kind.TIMEOUT, True),
    (ConnectionRefusedError("x"), Kind.NETWORK, True),
    (BrokenPipeError("x"), Kind.NETWORK, True),
    (socket.gaierror(-2, "Name or service not known"), Kind.NETWORK, True),
    (ssl.SSLError("handshake"), Kind.NETWORK, True),
    (RemoteDisconnected("x"), Kind.NETWORK, True),
    (OSError(errno.ENOSPC, "No space left on device"), Kind.RESOURCE_EXHAUSTED, False),
    (OSError(errno.EMFILE, "Too many open files"), Kind.RESOURCE_EXHAUSTED, False),
    (MemoryError(), Kind.RESOURCE_EXHAUSTED, False),
    (FileNotFoundError(errno.ENOENT, "x"), Kind.NOT_FOUND, False),
    (ModuleNotFoundError("No module named 'x'"), Kind.NOT_FOUND, False),
    (PermissionError(errno.EACCES, "x"), Kind.PERMISSION_DENIED, False),
    (not_json(), Kind.MALFORMED_OUTPUT, True),
    (ValueError("x"), Kind.UNKNOWN, False),
    (CircuitOpenError("anthropic", 5), Kind.SERVICE_DOWN, False),
    (AttemptError("x", finding="goal_misaligned"), Kind.GOAL_MISALIGNED, False),
    ({"exit_code": 124}, Kind.TIMEOUT, True),
    ({"exit_code": 126}, Kind.PERMISSION_DENIED, False),
    ({"exit_code": 127}, Kind.NOT_FOUND, False),
    ({"exit_code": 137}, Kind.RESOURCE_EXHAUSTED, False),
    ({"exit_code": 1}, Kind.UNKNOWN, False),
    ({"code": "max_tokens"}, Kind.OUTPUT_LIMIT, False),
    ({"code": "length"}, Kind.OUTPUT_LIMIT, False),
    ({"status": 529, "body": "Overloaded"}, Kind.OVERLOADED, True),
    ("Error: 429 Too Many Requests", Kind.RATE_LIMIT, True),
    (b"API Error: 529 Overloaded", Kind.OVERLOADED, True),
    ("rate_limit_error: slow down", Kind.RATE_LIMIT, True),
    ("Error: prompt is too long: 210000 tokens", Kind.CONTEXT_LIMIT, False),
    ("curl: (7) Failed to connect: Connection refused", Kind.NETWORK, True),
    ("getaddrinfo ENOTFOUND api.example.com", Kind.NETWORK, True),
    ("cat: notes.txt: No such file or directory", Kind.NOT_FOUND, False),
    ("bash: frobnicate: command not found", Kind.NOT_FOUND, False),
    ("sh: ./deploy: Permission denied", Kind.PERMISSION_DENIED, False),
    ("anthropic: credentials not found", Kind.MISSING_CREDENTIALS, False),
    ("", Kind.UNKNOWN, False),
]
FACTS = st.builds(
    Evidence,
    text=st.text() | st.sampled_from([rule.example.text for rule in RULES]),
    status=st.none() | st.integers(-1000, 1000) | st.sampled_from([400, 401, 402, 403, 404, 408, 429, 500, 503, 529]),
    code=st.text() | st.sampled_from(["max_tokens", "overloaded_error"]),
    exceptions=st.lists(st.sampled_from(["TimeoutError", "OSError", "MemoryError", "x"]), max_size=3).map(tuple),
    errno=st.none() | st.integers(0, 200),
    exit_code=st.none() | st.integers(-20, 255),
    phase=st.sampled_from(list(Phase)),
    retry_after=st.none() | st.floats(0, 1e6),
    finding=st.none() | st.sampled_from(list(Kind)),
    spent=st.booleans(),
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_each_rule_finds_its_example(rule: ClassifyRule) -> None:
    """Each rule's example is matched by that rule and by none before it."""
    failure = classify(rule.example)
    assert (failure.rule, failure.kind, failure.retryable) == (rule.id, rule.kind, rule.retryable)


def test_rules_are_in_order() -> None:
    """Rule ids are unique, each rule has a reason, and none is retryable for a kind that never is."""
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(rule.why.endswith(".") for rule in RULES)
    assert not [rule.id for rule in RULES if rule.retryable and rule.kind in NEVER_RETRYABLE]


@pytest.mark.parametrize(("trouble", "kind", "retryable"), SEEN, ids=[str(row[0])[:40] for row in SEEN])
def test_what_is_seen_in_the_wild(trouble: Any, kind: Kind, retryable: bool) -> None:
    """Real errors of libraries, shells and providers get the expected kind."""
    failure = classify(trouble)
    assert (failure.kind, failure.retryable) == (kind, retryable)
    assert is_retryable(trouble) is retryable


@pytest.mark.parametrize(
    "text",
    [
        "429 tests passed",
        "wrote 529 lines",
        "503 files changed",
        "test_overloaded_service passed",
    ],
)
def test_quoted_words_are_not_the_error(text: str) -> None:
    """A text that only mentions an error is not classified as that error."""
    assert classify(text).kind is Kind.UNKNOWN


@pytest.mark.parametrize("kind", Kind)
def test_a_finding_is_believed(kind: Kind) -> None:
    """A reported finding keeps its kind, and is retryable only where a retry may help."""
    failure = classify(Evidence(finding=kind, status=500, text="prompt is too long"))
    assert (failure.kind, failure.rule) == (kind, "finding")
    assert failure.retryable is (kind in TRANSIENT | {Kind.MALFORMED_OUTPUT, Kind.TOOL_ERROR})


def test_a_failure_is_named_already() -> None:
    """A failure is returned unchanged."""
    failure = Failure(kind=Kind.REFUSAL, retryable=False, rule="mine")
    assert classify(failure) is failure


def test_the_evidence_is_kept() -> None:
    """A failure carries its evidence, its message and the requested wait."""
    failure = classify(HttpError(429, "slow down", {"retry-after": "12"}))
    assert (failure.message, failure.retry_after, failure.rule) == ("slow down", 12.0, "rate-limited")
    assert failure.evidence.status == 429


@given(FACTS)
def test_any_evidence_has_a_name(evidence: Evidence) -> None:
    """Any evidence gets a kind, deterministically; exhausted and never-retryable failures are not retryable."""
    failure = classify(evidence)
    assert failure.evidence == evidence
    assert failure == classify(evidence)
    if failure.kind in NEVER_RETRYABLE or evidence.spent:
        assert not failure.retryable
    if evidence.finding is not None:
        assert failure.kind is evidence.finding


class Marked(Evidence):
    """Evidence of a class of its own."""


def test_a_subclass_of_evidence_is_evidence() -> None:
    """Evidence of a subclass is taken as it is, with all its facts."""
    facts = Marked(status=429)
    assert classify(facts).evidence is facts


def test_what_was_seen_before_has_its_name() -> None:
    """Equal evidence is classified once; new rules and different headers are classified again."""
    clear_cache()
    one = classify({"status": 429, "message": "slow down", "headers": {"retry-after": "3"}})
    assert classify({"status": 429, "message": "slow down", "headers": {"retry-after": "3"}}) is one
    assert classify({"status": 429, "message": "slow down", "headers": {"retry-after": "4"}}).retry_after == 4.0
    clear_cache()
    assert classify({"status": 429, "message": "slow down", "headers": {"retry-after": "3"}}) is not one
    long = {"status": 500, "message": "x" * 10_000}
    assert classify(long) is not classify(long)
    for number in range(3_000):  # bounded, whatever comes
        assert classify(f"odd thing no. {number}").kind is Kind.UNKNOWN
    odd = Evidence(text="boom", missing=[1])  # type: ignore[arg-type]  # what no type checker saw
    assert classify(odd).kind is Kind.UNKNOWN


def test_a_message_that_is_in_the_text_twice_is_said_once() -> None:
    """The text of an SDK's exception repeats the body of the response; the message of the failure does not."""
    text = "Error code: 500 - {'error': {'message': 'internal'}}\n" + '{"error": {"message": "internal"}}'
    assert classify(Evidence(text=text, status=500)).message == "internal"


@pytest.mark.parametrize(
    "error", [AssertionError("rate limit should be 2"), KeyError("timeout"), IndexError("overloaded")]
)
def test_the_words_of_a_programs_own_bug_do_not_decide(error: Exception) -> None:
    """An exception that a program raises about itself is no provider's failure, whatever words it has."""
    failure = classify(error)
    assert failure.kind in (Kind.UNKNOWN, Kind.TOOL_ERROR)
    assert not failure.retryable


def test_the_words_of_its_cause_do() -> None:
    """Where such an exception wraps the failure of a call, that one decides."""
    error = KeyError("answer")
    error.__cause__ = ConnectionResetError("connection reset by peer")
    assert classify(error).kind is Kind.NETWORK
