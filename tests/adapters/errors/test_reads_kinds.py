"""Four troubles that any package may meet have one name each, whichever package met it, wrapped or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rung.core.classify.classifier import classify
from rung.core.classify.evidence import evidence_of
from rung.core.domain.failures import Kind
from tests.adapters.errors import (
    test_reads_aiohttp,
    test_reads_anthropic,
    test_reads_botocore,
    test_reads_genai,
    test_reads_openai,
    test_reads_requests,
)
from tests.adapters.errors.loopback import raised_by, through_an_agent
from tests.adapters.errors.test_reads_httpx import get as get_by_httpx

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.adapters.errors.loopback import Provider


def by_httpx(url: str) -> None:
    import httpx

    get_by_httpx(httpx, url)


@pytest.fixture(
    params=[
        test_reads_aiohttp.get,
        test_reads_anthropic.ask,
        test_reads_botocore.ask,
        test_reads_genai.ask,
        by_httpx,
        test_reads_openai.ask,
        test_reads_requests.get,
    ],
    ids=["aiohttp", "anthropic", "botocore", "genai", "httpx", "openai", "requests"],
)
def call(request: pytest.FixtureRequest) -> Callable[[str], object]:
    found: Callable[[str], object] = request.param
    return found


def kinds(call: Callable[[str], object], url: str) -> set[Kind]:
    error = raised_by(lambda: call(url))
    return {classify(evidence_of(error)).kind, classify(through_an_agent(error)).kind}


def test_a_key_that_is_refused(call: Callable[[str], object], provider: Provider) -> None:
    provider.says(401, {"error": {"type": "authentication_error", "message": "invalid x-api-key"}})
    assert kinds(call, provider.url) == {Kind.AUTH_ERROR}


def test_too_many_requests(call: Callable[[str], object], provider: Provider) -> None:
    provider.says(429, {"error": {"type": "rate_limit_error", "message": "Too many requests"}}, retry_after="2")
    assert kinds(call, provider.url) == {Kind.RATE_LIMIT}


def test_nobody_listens(call: Callable[[str], object], refused: str) -> None:
    assert kinds(call, refused) == {Kind.NETWORK}


def test_no_answer_in_time(call: Callable[[str], object], provider: Provider) -> None:
    provider.is_silent()
    assert kinds(call, provider.url) == {Kind.TIMEOUT}
