"""Recovery in the transport of httpx or httpx2: `Client(transport=recovering(HTTPTransport()))`.

For OpenAI's and other SDKs: `OpenAI(http_client=httpx2.Client(transport=…), max_retries=0)`. Turn the SDK's retries off.
Requests are retried unchanged: a transport does not interpret their content. A failing service is waited for as long as the
policy's `patience`, but no longer than the request's read timeout: its client would not wait longer for an answer.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from rung.core.classify.evidence import clip
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Evidence
from rung.core.policy.parser import policy as make_policy
from rung.engine.guarded.guard import guarded

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.policy.policy import Policy

_FIRST_ERROR_STATUS: Final = 400
_MAX_TIMEOUTS: Final = 16  # guarded functions kept, one for each read timeout


class HttpxErrorResponse(AttemptError):
    """HTTP error response."""

    def __init__(self, response: Any) -> None:
        text = clip(response.text)
        super().__init__(text)
        self.evidence = Evidence(text=text, status=response.status_code, headers=dict(response.headers))
        self.response = response


def recovering(transport: Any, policy: Policy | str = "call", **ports: Any) -> Any:
    """Wrap a blocking or async transport of httpx or httpx2 in one that retries."""
    package = import_module(_package(transport))
    chosen = make_policy(policy) if isinstance(policy, str) else policy
    is_async = isinstance(transport, package.AsyncBaseTransport)
    attempt = _async_attempt(transport) if is_async else _sync_attempt(transport)

    @lru_cache(maxsize=_MAX_TIMEOUTS)
    def guard(read_timeout: float | None) -> Callable[..., Any]:
        return guarded(chosen.with_patience_at_most(read_timeout), idempotent=True, **ports)(attempt)

    wrap = _wrap_async if is_async else _wrap_sync
    return wrap(package, transport, guard)


def _read_timeout(request: Any) -> float | None:
    """Return the longest time that the client waits for bytes of the answer; None: no limit."""
    seconds: float | None = request.extensions.get("timeout", {}).get("read")
    return seconds


def _package(transport: Any) -> str:
    for name in ("httpx2", "httpx"):
        package: Any = sys.modules.get(name)
        if package is not None and isinstance(transport, package.BaseTransport | package.AsyncBaseTransport):
            return name
    raise TypeError(f"{transport!r} is invalid; must be a transport of httpx or httpx2")


def _sync_attempt(transport: Any) -> Callable[..., Any]:
    def attempt(request: Any) -> Any:
        response = transport.handle_request(request)
        if response.status_code >= _FIRST_ERROR_STATUS:
            response.read()
            raise HttpxErrorResponse(response)
        return response

    return attempt


def _async_attempt(transport: Any) -> Callable[..., Any]:
    async def attempt(request: Any) -> Any:
        response = await transport.handle_async_request(request)
        if response.status_code >= _FIRST_ERROR_STATUS:
            await response.aread()
            raise HttpxErrorResponse(response)
        return response

    return attempt


def _wrap_sync(package: Any, transport: Any, guard: Callable[..., Any]) -> Any:
    def handle_request(_: Any, request: Any) -> Any:
        request.read()  # buffer the body, so that it can be sent again
        try:
            return guard(_read_timeout(request))(request)
        except HttpxErrorResponse as error:
            return error.response

    methods = {"handle_request": handle_request, "close": lambda _: transport.close()}
    return type("RecoveringTransport", (package.BaseTransport,), methods)()


def _wrap_async(package: Any, transport: Any, guard: Callable[..., Any]) -> Any:
    async def handle_async_request(_: Any, request: Any) -> Any:
        await request.aread()
        try:
            return await guard(_read_timeout(request))(request)
        except HttpxErrorResponse as error:
            return error.response

    async def aclose(_: Any) -> None:
        await transport.aclose()

    methods = {"handle_async_request": handle_async_request, "aclose": aclose}
    return type("RecoveringTransport", (package.AsyncBaseTransport,), methods)()
