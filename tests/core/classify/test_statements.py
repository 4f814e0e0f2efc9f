"""Statements: the same meaning in other words, orders and languages; numbers that are read; what is not said."""

from __future__ import annotations

import pytest

from rung.core.classify.classifier import classify
from rung.core.classify.phrases import words_of
from rung.core.classify.statements import CONCEPT_NAMES, Occurrences, is_above_bound, is_statement, parse_statement
from rung.core.domain.failures import Evidence, Kind, Phase


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("The conversation of 91,000 tokens goes beyond what this engine takes", Kind.CONTEXT_LIMIT),
        ("this engine takes 8192 tokens at most; yours are more than that", Kind.CONTEXT_LIMIT),
        ("needs about 300000 tokens while the window of the pool is 262144 tokens", Kind.CONTEXT_LIMIT),
        ("您的上下文太长", Kind.CONTEXT_LIMIT),
        ("Die Eingabe ist zu lang", Kind.CONTEXT_LIMIT),
        ("Funds of this wallet are depleted", Kind.QUOTA_EXHAUSTED),
        ("套餐用完", Kind.QUOTA_EXHAUSTED),
        ("Недостаточно средств", Kind.QUOTA_EXHAUSTED),
        ("we take 5 calls per second; exceeded by this client", Kind.RATE_LIMIT),
        ("checkpoint m-2 was sunset in May", Kind.MODEL_UNAVAILABLE),
        ("模型 m-2 已下线", Kind.MODEL_UNAVAILABLE),
        ("your password has been revoked", Kind.AUTH_ERROR),
        ("Неверный ключ", Kind.AUTH_ERROR),
        ("the bearer was left empty", Kind.MISSING_CREDENTIALS),
        ("text carries sensitive words", Kind.CONTENT_FILTER),
        ("the backend is saturated", Kind.OVERLOADED),
        ("当前上游负载已饱和", Kind.OVERLOADED),
        ("platform outage", Kind.SERVICE_DOWN),
        ("Aucune connexion établie: refusée", Kind.NETWORK),
        ("tool_choice must be auto", Kind.INVALID_REQUEST),
        ("kv cache reached its ceiling", Kind.RESOURCE_EXHAUSTED),
        ("the chunk was lost", Kind.STREAM_INTERRUPTED),
        ("分组负载已饱和", Kind.OVERLOADED),
        ("every slot is unavailable", Kind.OVERLOADED),
        ("the inference process is dead", Kind.SERVER_ERROR),
        ("runner process exited: -1", Kind.SERVER_ERROR),
        ("region and key are mutually exclusive", Kind.CONFIGURATION),
        ("XML syntax error in line 3", Kind.MALFORMED_OUTPUT),
        ("lama is not running, start it first", Kind.SERVICE_DOWN),
        ("the speech model is unavailable", Kind.MODEL_UNAVAILABLE),
    ],
)
def test_meaning(text: str, kind: Kind) -> None:
    """A message is named by what it is about and what it says of it."""
    failure = classify({"body": text})
    assert (failure.kind, failure.rule.startswith("says-")) == (kind, True)


def test_a_text_about_load_wins_over_a_billing_code() -> None:
    """What a message says counts more than the code that a gateway puts beside it."""
    body = '{"error": {"message": "上游负载已饱和", "code": "billing_not_active"}}'
    failure = classify({"status": 429, "body": body})
    assert (failure.kind, failure.retryable) == (Kind.OVERLOADED, True)


def test_a_type_of_a_validator_is_not_a_model() -> None:
    """The name of a validator's error contains "model", but its message is about the body of the request."""
    body = "{\"error\": {\"message\": \"[{'type': 'model_type', 'msg': 'Input should be a valid list'}]\"}}"
    assert classify({"status": 400, "body": body}).kind is Kind.INVALID_REQUEST


def test_a_context_that_cannot_be_shifted_is_full() -> None:
    """A local server's status 500 for a full context is a limit, not a failure of the server."""
    failure = classify(
        {"status": 500, "body": '{"error": {"message": "context shift is disabled", "type": "server_error"}}'}
    )
    assert (failure.kind, failure.retryable) == (Kind.CONTEXT_LIMIT, False)


@pytest.mark.parametrize("program", ["ls", "du", "chmod", "chown"])
@pytest.mark.parametrize(
    "name", ["x", "key", "api key", "password", "secret", "token", "model", "quota", "timeout", "connection"]
)
def test_a_path_that_does_not_exist(program: str, name: str) -> None:
    """A missing path is not found, whatever the program says about access and whatever the path is called."""
    text = f"{program}: cannot access '{name}': No such file or directory"
    kinds = {classify(error).kind for error in (text, Evidence(text=text, phase=Phase.TOOL, exit_code=1))}
    assert kinds == {Kind.NOT_FOUND}
    assert classify(f"Error: ENOENT: no such file or directory, open '/x/{name}'").kind is Kind.NOT_FOUND
    assert classify(f"{program}: cannot access '{name}': Permission denied").kind is Kind.PERMISSION_DENIED


@pytest.mark.parametrize("phase", [Phase.CALL, Phase.TOOL])
def test_a_variable_that_is_not_initialized(phase: Phase) -> None:
    """JavaScript's "Cannot access 'x' before initialization" is a bug, not a denied access or a missing file."""
    text = "ReferenceError: Cannot access 'foo' before initialization"
    assert classify(Evidence(text=text, phase=phase)).kind is Kind.TOOL_ERROR
    assert classify("You cannot access this project").kind is Kind.PERMISSION_DENIED


@pytest.mark.parametrize(
    "text", ["hello", "the model answered", "a key and a door", "tokens", "we read the prompt", "ключ", "all is well"]
)
def test_nothing_said(text: str) -> None:
    """A topic alone is no statement."""
    assert classify({"body": text}).kind is Kind.UNKNOWN


def test_the_inner_fact_explains_the_status() -> None:
    """A message says more than the status of the proxy that carries it."""
    assert classify({"status": 503, "body": "SOME_KEY: the secret is not set"}).kind is Kind.MISSING_CREDENTIALS
    assert classify({"status": 500, "body": "wallet depleted"}).kind is Kind.QUOTA_EXHAUSTED


@pytest.mark.parametrize(
    ("text", "above"),
    [
        ("requires 278690 tokens, but the limit is 272000", True),
        ("limit 256,000 and 5,958,968 given", True),
        ("(16 GB > 10 GB)", True),
        ("limit of 272000, you used 1200", False),
        ("limit 5", False),
        ("no numbers", False),
        ("maximum 100 of 100", False),
        ("request 9999999999999999 with limit 20", False),
    ],
)
def test_quantities_and_bounds(text: str, above: bool) -> None:
    """A quantity above a stated bound is found in any order; an id is not a quantity."""
    assert is_above_bound(text) is above


def test_concepts_stand_close() -> None:
    """Concepts that are far apart make no statement, nor does one beside an unwanted concept."""
    statement = parse_statement("prompt, exceeds, !per time")
    assert Occurrences(words_of("prompt exceeds it")).has(statement)
    assert not Occurrences(words_of("prompt " + "word " * 30 + "exceeds")).has(statement)
    assert not Occurrences(words_of("prompt exceeds it per minute")).has(statement)


def test_names_of_concepts() -> None:
    """A statement consists of known concepts, one of which must occur."""
    assert is_statement("prompt, exceeds, !per time")
    assert not is_statement("prompt, unheard of")
    assert not is_statement("!prompt")
    assert all(is_statement(name) for name in CONCEPT_NAMES)


@pytest.mark.parametrize(
    ("text", "code", "kind"),
    [
        ("curl: (22) The requested URL returned error: 502", 22, Kind.SERVER_ERROR),
        ("npm error code E429", 1, Kind.RATE_LIMIT),
        ("An error occurred (503) when calling the List operation", 255, Kind.OVERLOADED),
        ("Read timeout on the endpoint", 1, Kind.TIMEOUT),
        ("curl: (52) Empty reply from server: connection lost", 52, Kind.NETWORK),
        ("usage: the argument expects a number", 2, Kind.CONFIGURATION),
        ("parse error: Unfinished JSON term", 4, Kind.MALFORMED_OUTPUT),
        ("psql: connection to server at 10.0.0.1 failed: FATAL: database x does not exist", 2, Kind.NOT_FOUND),
        ("Is the docker daemon running?", 1, Kind.SERVICE_DOWN),
        ("404 tests in 3 files, exit status of 500 lines", 1, Kind.TOOL_ERROR),
    ],
)
def test_outputs_of_tools(text: str, code: int, kind: Kind) -> None:
    """Statuses and statements in the output of tools."""
    assert classify(Evidence(text=text, phase=Phase.TOOL, exit_code=code)).kind is kind
