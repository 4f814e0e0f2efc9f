"""Contract of the upstream port, for every way to an upstream: direct, TLS, proxy, tunnel, and with the secret filter."""

from __future__ import annotations

import asyncio
import gzip
from typing import TYPE_CHECKING, Any

import pytest
import uvloop

from rung.core.classify.classifier import classify
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind
from rung.gateway.http.pool import ConnectionPool
from rung.gateway.http.port import UpstreamClient, header_of, read_body
from rung.gateway.settings import settings_from
from rung.gateway.upstream.secret_filter import SecretFilter
from tests.security.upstream.certificates import Certificates, make_certificates
from tests.security.upstream.forward_proxy import ForwardProxy
from tests.security.upstream.raw_upstream import RawUpstream, http_answer
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rung.gateway.upstream.settings import UpstreamSettings
    from tests.security.upstream.raw_upstream import Script

    Work = Callable[[UpstreamClient, UpstreamSettings], Awaitable[Any]]

NAME = "llm.corp.example"
ROUTES = ["direct", "tls", "proxy", "tunnel", "filter"]
LIMIT = 2**30


class ClientRoute:
    """One way from the client to an upstream."""

    def __init__(self, name: str, certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
        self.name = name
        self._certificates = certificates
        self._environment = monkeypatch

    def run(self, script: Script | bytes, work: Work, *, close: bool = False) -> tuple[Any, RawUpstream]:
        """Run a coroutine with a client and an upstream that sends these bytes."""
        is_tls = self.name in {"tls", "tunnel"}
        tls = self._certificates.server_context() if is_tls else None
        with RawUpstream(script, close=close, tls=tls) as upstream, ForwardProxy(upstream.port) as proxy:
            host = NAME if self.name in {"proxy", "tunnel"} else "localhost"
            row = {"wire": "openai", "url": f"{'https' if is_tls else 'http'}://{host}:{upstream.port}/v1"}
            self._environment.setenv("ALL_PROXY", proxy.address)
            if is_tls:
                row["tls_ca_file"] = str(self._certificates.ca)
            if self.name == "filter":
                self._environment.setenv("HELD_KEY", "held-by-the-gateway")
                row["key_env"] = "HELD_KEY"
            settings = settings_from({"upstreams": {"x": row}})

            async def inside() -> Any:
                pool: UpstreamClient = ConnectionPool(settings)
                client = SecretFilter(pool) if self.name == "filter" else pool
                try:
                    return await work(client, settings.upstream("x"))
                finally:
                    await client.close()

            return uvloop.run(inside()), upstream


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("ca")
    return make_certificates(folder, NAME, "localhost")


@pytest.fixture(params=ROUTES)
def route(request: pytest.FixtureRequest, certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> ClientRoute:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return ClientRoute(request.param, certificates, monkeypatch)


async def ask(client: UpstreamClient, upstream: UpstreamSettings, method: str = "POST", body: bytes = b"{}") -> Any:
    response = await client.send(upstream, method, "/v1/x?y=1", [(b"x-a", b"b")], body)
    try:
        return response.status, header_of(response, b"x-c"), await read_body(response, LIMIT)
    finally:
        response.close()
        response.close()


def test_a_request_and_its_response(route: ClientRoute) -> None:
    """Method, target, headers and body arrive; status, headers and body come back; a connection is used again."""

    async def work(client: UpstreamClient, upstream: UpstreamSettings) -> Any:
        return [await ask(client, upstream) for _ in range(3)]

    answers, upstream = route.run(http_answer(b"hello", "X-C: d"), work)
    assert answers == [(200, b"d", b"hello")] * 3
    assert upstream.connections == 1
    line, _, rest = upstream.requests[0].partition(b"\r\n")
    assert line.split()[0] == b"POST"
    assert line.endswith(b"/v1/x?y=1 HTTP/1.1")
    assert b"\r\nx-a: b\r\n" in rest
    assert rest.endswith(b"\r\n\r\n{}")


def test_a_large_compressed_body(route: ClientRoute) -> None:
    """A body comes whole and decompressed, also if it is larger than every buffer."""
    body = bytes(range(256)) * 16_384
    answers, _ = route.run(http_answer(gzip.compress(body, 1), "content-encoding: gzip"), ask)
    assert answers == (200, b"", body)


def test_concurrent_requests(route: ClientRoute) -> None:
    """Concurrent requests use connections of their own, and each gets its own response."""

    async def work(client: UpstreamClient, upstream: UpstreamSettings) -> Any:
        return await asyncio.gather(*(ask(client, upstream, body=b"%d" % number) for number in range(8)))

    answers, _ = route.run(lambda request: http_answer(request.rpartition(b"\r\n")[2]), work)
    assert answers == [(200, b"", b"%d" % number) for number in range(8)]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", Kind.NETWORK),
        (b"nonsense\r\n\r\n", Kind.NETWORK),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello", Kind.STREAM_INTERRUPTED),
        (http_answer(b"", "location: http://x/", status="302 Found"), Kind.CONFIGURATION),
    ],
)
def test_failures(route: ClientRoute, answer: bytes, kind: Kind) -> None:
    """What is no complete response is an AttemptError of the right kind."""

    async def work(client: UpstreamClient, upstream: UpstreamSettings) -> Kind:
        with pytest.raises(AttemptError) as caught:
            await ask(client, upstream)
        return classify(caught.value.evidence).kind

    assert route.run(answer, work, close=True)[0] is kind


def test_a_response_that_is_left(route: ClientRoute) -> None:
    """Closing an unfinished response closes its connection; the next request gets another one."""
    sent: list[bytes] = []

    def script(request: bytes) -> list[bytes]:
        sent.append(request)
        return [b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello"]

    async def work(client: UpstreamClient, upstream: UpstreamSettings) -> None:
        for _ in range(2):
            response = await client.send(upstream, "GET", "/v1/x", [], b"")
            assert await response.read_chunk() == b"hello"
            assert not response.ended
            response.close()

    _, upstream = route.run(script, work)
    assert upstream.connections == wait_until(lambda: len(sent) == 2 and 2)
