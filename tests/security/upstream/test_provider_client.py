"""The client that repeats recorded requests keeps its key from other hosts, and its memory from endless answers."""

from __future__ import annotations

import itertools
import json

import pytest

from rung.adapters.system.provider_client import MAX_ANSWER_BYTES, ProviderClient
from rung.core.domain.errors import AttemptError
from rung.core.domain.request import Request
from tests.security.upstream.raw_upstream import RawUpstream, http_answer

KEY = "Zq7-of-the-service"
ASK = Request(model="claude-x", prompt="hi")


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_redirects_are_not_followed(status: str) -> None:
    """A redirect is an error, and the other host gets neither the key nor a request."""
    with RawUpstream(http_answer(b"{}")) as other:
        answer = http_answer(b"", f"location: {other.url}/x", status=status)
        with RawUpstream(answer) as upstream, pytest.raises(AttemptError) as caught:
            ProviderClient("anthropic", upstream.url, KEY)(ASK)
        assert caught.value.evidence.status == int(status[:3])
        assert not other.requests


def test_an_endless_answer() -> None:
    """An answer above the limit is an error."""
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    refused = pytest.raises(AttemptError, match=f"larger than {MAX_ANSWER_BYTES} bytes")
    with RawUpstream(lambda _: itertools.chain([head], itertools.repeat(b" " * 2**20))) as upstream, refused:
        ProviderClient("anthropic", upstream.url, KEY)(ASK)


@pytest.mark.parametrize("status", ["200 OK", "400 Bad Request"])
def test_an_echoed_key(status: str) -> None:
    """The service's own key, echoed by a provider, is in neither the answer nor the error."""
    body = json.dumps({"content": [{"type": "text", "text": f"your key is {KEY}"}]}).encode()
    with RawUpstream(http_answer(body, f"x-debug: {KEY}", status=status)) as upstream:
        client = ProviderClient("anthropic", upstream.url, KEY)
        if status.startswith("200"):
            assert client(ASK).text == "your key is <secret:provider-key>"
        else:
            with pytest.raises(AttemptError) as caught:
                client(ASK)
            assert KEY not in repr(caught.value.evidence)


def test_no_json() -> None:
    """An answer that is no JSON is an error of the attempt."""
    with RawUpstream(http_answer(b"<html>")) as upstream, pytest.raises(AttemptError, match="not JSON"):
        ProviderClient("anthropic", upstream.url, KEY)(ASK)
