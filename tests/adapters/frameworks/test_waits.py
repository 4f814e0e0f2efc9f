"""Waiting for a failing service inside an SDK's client: never longer than the client waits for its answer."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import httpx
import pytest

import rung
from rung.adapters.frameworks.anthropic_middleware import AnthropicRecoveryMiddleware
from rung.adapters.frameworks.httpx_transport import recovering
from rung.testing import FakeClock

DOWN = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def ports(clock: FakeClock) -> dict[str, Any]:
    return {"clock": clock, "breakers": None, "retry_budget": None, "jitter": lambda: 0.5}


class Upstream:
    """A service that is down for some seconds of the clock."""

    def __init__(self, clock: FakeClock, seconds: float) -> None:
        self.clock, self.ends, self.requests = clock, clock.now() + seconds, 0

    def __call__(self, _: httpx.Request) -> httpx.Response:
        self.requests += 1
        return httpx.Response(529 if self.clock.now() < self.ends else 200, json=DOWN)


class SyncTransport(httpx.BaseTransport):
    """Blocking transport to the service."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        return self._upstream(request)


class AsyncTransport(httpx.AsyncBaseTransport):
    """Async transport to the service."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        return self._upstream(request)


async def _ask(transport: Any, seconds: float | None) -> httpx.Response:
    async with httpx.AsyncClient(transport=transport, timeout=seconds) as client:
        return await client.post("http://service.test/")


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(("timeout", "status"), [(20.0, 529), (400.0, 200), (None, 200)])
def test_a_transport_waits_as_long_as_its_client(is_async: bool, timeout: float | None, status: int) -> None:
    """An outage of two minutes is outlasted unless the read timeout of the request is shorter."""
    clock = FakeClock()
    began, upstream = clock.now(), Upstream(clock, 120)
    if is_async:
        got = asyncio.run(_ask(recovering(AsyncTransport(upstream), **ports(clock)), timeout))
    else:
        with httpx.Client(transport=recovering(SyncTransport(upstream), **ports(clock)), timeout=timeout) as client:
            got = client.post("http://service.test/")
    assert got.status_code == status
    waited = clock.now() - began
    assert waited >= 120 if status == 200 else waited <= 30


def test_a_call_of_the_anthropic_client_waits_as_long_as_its_timeout() -> None:
    """A call with a timeout of its own ends with the SDK's error shortly after it, not after the whole patience."""
    clock = FakeClock()
    began, upstream = clock.now(), Upstream(clock, 120)
    client = anthropic.Anthropic(
        api_key="k",
        max_retries=0,
        middleware=[AnthropicRecoveryMiddleware(rung.policy("call"), **ports(clock))],
        http_client=anthropic.DefaultHttpxClient(transport=_of_sdk(upstream)),
    )
    with pytest.raises(anthropic.APIStatusError):
        client.messages.create(model="m", max_tokens=10, messages=[{"role": "user", "content": "x"}], timeout=20.0)
    assert clock.now() - began <= 30


def _of_sdk(upstream: Upstream) -> Any:
    """Return a mock transport of the HTTP library that the SDK uses."""
    import sys

    module: Any = sys.modules[anthropic.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0]]

    def respond(_: Any) -> Any:
        upstream.requests += 1
        return module.Response(529 if upstream.clock.now() < upstream.ends else 200, json=DOWN)

    return module.MockTransport(respond)
