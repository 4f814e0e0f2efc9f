"""The exceptions of aiohttp, as it raises them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import pytest

from rung.core.classify.evidence import evidence_of
from rung.core.domain.failures import Phase
from tests.adapters.errors.loopback import assert_survives_wrapping, patience, raised_by

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence
    from tests.adapters.errors.loopback import Provider


def get(url: str, *, total: float | None = None) -> bytes:
    async def run() -> bytes:
        timeout = aiohttp.ClientTimeout(total=total, sock_read=patience())
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as response:
            response.raise_for_status()
            return await response.read()

    return asyncio.run(run())


def seen(error: BaseException) -> Evidence:
    assert_survives_wrapping(error)
    return evidence_of(error)


def test_a_status_with_its_headers(provider: Provider) -> None:
    """Status, wait and class; the exception holds no body. A key in the address is left out."""
    provider.says(429, {"error": "busy"}, retry_after="3")
    evidence = seen(raised_by(lambda: get(f"{provider.url}/v1?key=AIzaSecret")))
    assert (evidence.status, evidence.retry_after) == (429, 3.0)
    assert evidence.exceptions[0] == "aiohttp.client_exceptions.ClientResponseError"
    assert "AIzaSecret" not in evidence.text


@pytest.mark.parametrize("ending", ["cut", "reset"])
def test_a_cut_answer_has_no_status(provider: Provider, ending: str) -> None:
    """Its parser's error says 400, which is what it would answer as a server: nobody sent that."""
    provider.streams(("", "x"), cut=ending == "cut", reset=ending == "reset")
    evidence = seen(raised_by(lambda: get(provider.url)))
    assert (evidence.status, evidence.phase) == (None, Phase.STREAM)
    assert evidence.exceptions[0] == "aiohttp.client_exceptions.ClientPayloadError"


def test_no_answer_in_time(provider: Provider) -> None:
    """A socket's timeout is also the builtin one."""
    provider.is_silent()
    evidence = seen(raised_by(lambda: get(provider.url)))
    assert evidence.exceptions[0] == "aiohttp.client_exceptions.SocketTimeoutError"
    assert "TimeoutError" in evidence.exceptions


def test_the_whole_time_is_up(provider: Provider) -> None:
    """The total timeout is a bare TimeoutError; it has no words of its own."""
    provider.is_silent()
    evidence = seen(raised_by(lambda: get(provider.url, total=0.1)))
    assert evidence.exceptions[0] == "TimeoutError"
    assert evidence.text.startswith("TimeoutError")


def test_a_server_that_hangs_up_first(provider: Provider) -> None:
    """Closed before any answer: not the stream's trouble."""
    provider.is_silent()
    provider.over.set()
    evidence = seen(raised_by(lambda: get(provider.url)))
    assert "aiohttp.client_exceptions.ServerDisconnectedError" in evidence.exceptions
    assert evidence.phase is Phase.CALL


def test_nobody_listens(refused: str) -> None:
    """A refused connection, with its errno."""
    evidence = seen(raised_by(lambda: get(refused)))
    assert evidence.errno == 111
