"""HTTP requests as a server on loopback receives them, and providers built from settings."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from rung.gateway.http.pool import ConnectionPool
from rung.gateway.http.port import read_body
from rung.gateway.settings import settings_from
from rung.gateway.upstream.headers import headers_for_upstream
from rung.gateway.upstream.make_provider import make_provider
from tests.security.upstream.raw_upstream import RawUpstream, http_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.gateway.upstream.provider import UpstreamProvider
    from rung.gateway.upstream.settings import UpstreamSettings

    Headers = list[tuple[bytes, bytes]]

REFUSED = http_answer(b"{}", "content-type: application/json", status="400 Bad Request")
VARIABLES = (
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_API_VERSION", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT",
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE",
    "AWS_REGION", "AWS_DEFAULT_REGION", "GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_QUOTA_PROJECT", "GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy",
)  # fmt: skip


class SeenRequest(NamedTuple):
    """One request, read from its bytes."""

    method: str
    target: str
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def seen(raw: bytes) -> SeenRequest:
    head, _, body = raw.partition(b"\r\n\r\n")
    line, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = line.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}
    return SeenRequest(method, target, headers, body)


def sent_by(call: Callable[[str], object]) -> SeenRequest:
    """Return the first request that a client sends to a server that refuses it."""
    with RawUpstream(REFUSED) as upstream:
        try:
            call(upstream.url)
        except Exception as error:
            if not upstream.requests:
                raise AssertionError("the client sent nothing") from error
        return seen(upstream.requests[0])


def upstream_of(**row: Any) -> UpstreamSettings:
    return settings_from({"upstreams": {"x": row}}).upstream("x")


async def send_to(
    provider: UpstreamProvider, wire: str, body: dict[str, Any], headers: Headers | None = None, **more: Any
) -> bytes:
    """Send a request as the gateway does: its headers, then those of the provider, then the pool. Return the body."""
    upstream = provider.upstream
    request = await provider.prepare(
        wire=wire,
        model=more.get("model", body.get("model", "")),
        stream=more.get("stream", bool(body.get("stream"))),
        target=more.get("target", "/v1/messages"),
        headers=headers_for_upstream([(b"content-type", b"application/json"), *(headers or [])], upstream),
        body=json.dumps(body).encode(),
    )
    pool = ConnectionPool(settings_from({"upstreams": {}}))
    try:
        response = provider.wrap(await pool.send(upstream, "POST", *request))
        try:
            return await read_body(response, 2**20)
        finally:
            response.close()
    finally:
        await pool.close()


def sent_by_rung(wire: str, body: dict[str, Any], headers: Headers | None = None, **row: Any) -> SeenRequest:
    """Return the request that the provider of such an upstream sends; `row` may have `call`, the arguments of `send_to`."""
    call = row.pop("call", {})
    base = row.pop("base", "")

    def ask(url: str) -> None:
        provider = make_provider(upstream_of(url=url + base, **row))
        asyncio.run(send_to(provider, wire, body, headers, **call))

    return sent_by(ask)
