"""The exceptions of requests, urllib3 and http.client, as they raise them."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
import requests
import urllib3

from rung.core.classify.evidence import evidence_of
from rung.core.domain.failures import Phase
from tests.adapters.errors.loopback import assert_survives_wrapping, patience, raised_by

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence
    from tests.adapters.errors.loopback import Provider


def get(url: str, *, unread: bool = False) -> Any:
    with requests.Session() as session, session.get(url, timeout=patience(), stream=unread) as response:
        response.raise_for_status()
        return response.json()


def get_lower(url: str) -> None:
    with urllib3.PoolManager() as pool:
        pool.request("GET", url, retries=False, timeout=patience())


def seen(error: BaseException) -> Evidence:
    assert_survives_wrapping(error)
    return evidence_of(error)


def test_a_status_with_its_body(provider: Provider) -> None:
    """Status, wait, the body that was read; a key in the address is left out."""
    provider.says(429, {"error": {"message": "slow down"}}, retry_after="3")
    evidence = seen(raised_by(lambda: get(f"{provider.url}/v1?key=AIzaSecret")))
    assert (evidence.status, evidence.retry_after) == (429, 3.0)
    assert "slow down" in evidence.text
    assert "AIzaSecret" not in evidence.text
    assert evidence.exceptions[0] == "requests.exceptions.HTTPError"


def test_a_body_that_was_not_read_stays_unread(provider: Provider) -> None:
    """Asking requests for `content` would read the stream; it is not asked."""
    provider.says(503, b"unread words")
    error: Any = raised_by(lambda: get(provider.url, unread=True))
    evidence = seen(error)
    assert evidence.status == 503
    assert "unread words" not in evidence.text
    assert error.response._content_consumed is False  # noqa: SLF001  # requests has no other way


@pytest.mark.parametrize("ending", ["cut", "reset"])
@pytest.mark.parametrize("call", [get, get_lower])
def test_a_broken_answer(provider: Provider, ending: str, call: Any) -> None:
    """A connection that ends within the body is trouble of the stream."""
    provider.streams(("", "x"), cut=ending == "cut", reset=ending == "reset")
    evidence = seen(raised_by(lambda: call(provider.url)))
    assert evidence.phase is Phase.STREAM
    assert evidence.errno == (104 if ending == "reset" else None)


def test_a_body_that_stops_arriving(provider: Provider) -> None:
    """To requests it is a ConnectionError; it was a timeout, and is not called anything else."""
    provider.streams(("", "x"), hang=True)
    evidence = seen(raised_by(lambda: get(provider.url)))
    assert evidence.phase is Phase.STREAM
    assert "requests.exceptions.ConnectionError" not in evidence.exceptions
    assert "urllib3.exceptions.ReadTimeoutError" in evidence.exceptions


def test_no_answer_in_time(provider: Provider) -> None:
    """A read timeout before the answer began."""
    provider.is_silent()
    evidence = seen(raised_by(lambda: get(provider.url)))
    assert evidence.exceptions[0] == "requests.exceptions.ReadTimeout"
    assert evidence.phase is Phase.CALL


@pytest.mark.parametrize("call", [get, get_lower])
def test_nobody_listens(refused: str, call: Any) -> None:
    """urllib3 derives a refused connection from its timeouts; none of those names is kept."""
    evidence = seen(raised_by(lambda: call(refused)))
    assert evidence.errno == 111
    assert "urllib3.exceptions.NewConnectionError" in evidence.exceptions
    assert not any("Timeout" in name for name in evidence.exceptions)


def test_an_answer_that_is_no_json(provider: Provider) -> None:
    """It is read as an answer that does not parse, not as trouble with the connection."""
    provider.says(200, b"<html>")
    evidence = seen(raised_by(lambda: get(provider.url)))
    assert evidence.phase is Phase.RESULT
    assert "json.decoder.JSONDecodeError" in evidence.exceptions


def test_the_standard_library_alone(provider: Provider) -> None:
    """The error of urllib needs no adapter: status, wait and class are read as of any exception."""
    provider.says(429, b"busy", retry_after="3")

    error: Any = raised_by(lambda: urllib.request.urlopen(provider.url, timeout=60))
    evidence = seen(error)
    error.close()
    assert (evidence.status, evidence.retry_after) == (429, 3.0)
