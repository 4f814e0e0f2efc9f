"""The exceptions of langchain-core: its own, and those of an integration that are an SDK's too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core import exceptions
from langchain_core.output_parsers import JsonOutputParser
from langchain_openai import ChatOpenAI

from rung.adapters.errors.langchain import read
from rung.core.classify.evidence import evidence_of
from rung.core.domain.failures import Kind, Phase
from tests.adapters.errors.loopback import assert_survives_wrapping, patience, raised_by

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence
    from tests.adapters.errors.loopback import Provider


def ask(url: str) -> object:
    model = ChatOpenAI(model="m", api_key="sk-x", base_url=f"{url}/v1", max_retries=0, timeout=patience())  # type: ignore[arg-type]  # it takes a str too
    return model.invoke("hi")


def seen(error: BaseException) -> Evidence:
    assert_survives_wrapping(error)
    return evidence_of(error)


@pytest.mark.parametrize(
    ("error", "status", "finding"),
    [
        (exceptions.ModelInvalidRequestError("no"), 400, None),
        (exceptions.ModelAuthenticationError("no"), 401, None),
        (exceptions.ModelPermissionDeniedError("no"), 403, None),
        (exceptions.ModelNotFoundError("no"), 404, None),
        (exceptions.ModelRateLimitError("no"), 429, None),
        (exceptions.ModelAPIError("no"), None, None),
        (exceptions.ModelTimeoutError("no"), None, Kind.TIMEOUT),
        (exceptions.ModelConnectionError("no"), None, Kind.NETWORK),
        (exceptions.ContextOverflowError("no"), None, Kind.CONTEXT_LIMIT),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_a_class_that_says_what_it_is(error: Exception, status: int | None, finding: Kind | None) -> None:
    """A bare model error stands for a status, or is a verdict."""
    evidence = seen(error)
    assert (evidence.status, evidence.finding) == (status, finding)
    assert evidence.exceptions[0] == f"langchain_core.exceptions.{type(error).__name__}"


def test_an_error_that_is_an_sdks_too(provider: Provider) -> None:
    """Status, code and wait come from the SDK's own part of it; both families are named."""
    error = {"message": "Rate limit reached", "type": "tokens", "code": "rate_limit_exceeded"}
    provider.says(429, {"error": error}, retry_after="9")
    evidence = seen(raised_by(lambda: ask(provider.url)))
    assert (evidence.status, evidence.code, evidence.retry_after) == (429, "tokens rate_limit_exceeded", 9.0)
    assert "langchain_core.exceptions.ModelRateLimitError" in evidence.exceptions
    assert "openai.RateLimitError" in evidence.exceptions


def test_an_answer_that_does_not_parse() -> None:
    """The answer is kept as output and not repeated whole in the text."""
    answer = "no json here " * 100
    evidence = seen(raised_by(lambda: JsonOutputParser().parse(answer)))
    assert (evidence.phase, evidence.code) == (Phase.RESULT, "OUTPUT_PARSING_FAILURE")
    assert "Invalid json output" in evidence.text
    assert len(evidence.text) < len(answer) / 2
    alone = read(raised_by(lambda: JsonOutputParser().parse(answer)))
    assert alone is not None
    assert alone.output == answer.strip()


def test_other_errors_are_not_claimed() -> None:
    """A tracer's error is read as any exception is."""
    evidence = seen(exceptions.TracerException("lost"))
    assert (evidence.status, evidence.finding, evidence.phase) == (None, None, Phase.CALL)
