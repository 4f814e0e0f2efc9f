"""The exceptions of httpx and of httpx2, as they raise them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import httpx2
import pytest

from rung.core.classify.evidence import evidence_of
from rung.core.domain.failures import Phase
from tests.adapters.errors.loopback import assert_survives_wrapping, patience, raised_by

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence
    from tests.adapters.errors.loopback import Provider


@pytest.fixture(params=[httpx, httpx2], ids=["httpx", "httpx2"])
def package(request: pytest.FixtureRequest) -> Any:
    return request.param


def get(package: Any, url: str) -> None:
    with package.Client(timeout=patience()) as client:
        client.get(url).raise_for_status()


def get_unread(package: Any, url: str) -> None:
    with package.Client(timeout=patience()) as client, client.stream("GET", url) as response:
        response.raise_for_status()


def seen(error: BaseException) -> Evidence:
    assert_survives_wrapping(error)
    return evidence_of(error)


def test_a_status_with_its_body(package: Any, provider: Provider) -> None:
    """Status, headers, wait and the body that was read."""
    provider.says(503, {"error": {"message": "no capacity"}}, retry_after="3", set_cookie="session=secret")
    evidence = seen(raised_by(lambda: get(package, provider.url)))
    assert (evidence.status, evidence.retry_after) == (503, 3.0)
    assert "no capacity" in evidence.text
    assert evidence.exceptions[0] == f"{package.__name__}.HTTPStatusError"
    assert "set-cookie" not in evidence.headers


def test_a_body_that_was_not_read_stays_unread(package: Any, provider: Provider) -> None:
    """Of a streamed response only what has arrived is looked at."""
    provider.says(503, b"unread words")
    error: Any = raised_by(lambda: get_unread(package, provider.url))
    evidence = seen(error)
    assert evidence.status == 503
    assert "unread words" not in evidence.text
    assert not error.response.is_stream_consumed


def test_a_key_in_the_address_is_not_kept(package: Any, provider: Provider) -> None:
    """The exception quotes the URL; its query is left out."""
    provider.says(400, b"")
    evidence = seen(raised_by(lambda: get(package, f"{provider.url}/v1?key=AIzaSecret&alt=sse")))
    assert "AIzaSecret" not in evidence.text
    assert "/v1?…" in evidence.text


def test_a_cut_answer(package: Any, provider: Provider) -> None:
    """A connection that ends within the body is trouble of the stream."""
    provider.streams(("", "x"), cut=True)
    evidence = seen(raised_by(lambda: get(package, provider.url)))
    assert evidence.phase is Phase.STREAM
    assert evidence.exceptions[0] == f"{package.__name__}.RemoteProtocolError"


def test_a_reset(package: Any, provider: Provider) -> None:
    """The errno is read from the words: httpx leaves the OSError out of the chain."""
    provider.streams(("", "x"), reset=True)
    evidence = seen(raised_by(lambda: get(package, provider.url)))
    assert evidence.errno == 104


def test_no_answer_in_time(package: Any, provider: Provider) -> None:
    """A read timeout, with its class names."""
    provider.is_silent()
    evidence = seen(raised_by(lambda: get(package, provider.url)))
    assert evidence.exceptions[:2] == (f"{package.__name__}.ReadTimeout", f"{package.__name__}.TimeoutException")
    assert evidence.phase is Phase.CALL


def test_a_server_that_hangs_up_first(package: Any, provider: Provider) -> None:
    """Closed before any answer: not the stream's trouble."""
    provider.is_silent()
    provider.over.set()
    evidence = seen(raised_by(lambda: get(package, provider.url)))
    assert evidence.phase is Phase.CALL
    assert "without sending a response" in evidence.text


def test_nobody_listens(package: Any, refused: str) -> None:
    """A refused connection, with its errno."""
    evidence = seen(raised_by(lambda: get(package, refused)))
    assert evidence.errno == 111
    assert evidence.exceptions[0] == f"{package.__name__}.ConnectError"
