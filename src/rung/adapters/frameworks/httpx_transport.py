"""Recovery in the transport of httpx or httpx2: `Client(transport=recovering(HTTPTransport()))`.

For OpenAI's and other SDKs: `OpenAI(http_client=httpx2.Client(transport=…), max_retries=0)`. Turn the SDK's retries off.
Requests are retried unchanged: a transport does not interpret their content.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from rung.core.classify.evidence import clip
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Evidence
from rung.engine.guarded.guard import guarded

if TYPE_CHECKING:
    from rung.core.policy.policy import Policy

_FIRST_ERROR_STATUS: Final = 400


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
    if isinstance(transport, package.AsyncBaseTransport):
        return _wrap_async(package, transport, policy, ports)
    return _wrap_sync(package, transport, policy, ports)


def _package(transport: Any) -> str:
    for name in ("httpx2", "httpx"):
        package: Any = sys.modules.get(name)
        if package is not None and isinstance(transport, package.BaseTransport | package.AsyncBaseTransport):
            return name
    raise TypeError(f"{transport!r} is invalid; must be a transport of httpx or httpx2")


def _wrap_sync(package: Any, transport: Any, policy: Policy | str, ports: dict[str, Any]) -> Any:
    @guarded(policy, idempotent=True, **ports)
    def attempt(request: Any) -> Any:
        response = transport.handle_request(request)
        if response.status_code >= _FIRST_ERROR_STATUS:
            response.read()
            raise HttpxErrorResponse(response)
        return response

    def handle_request(_: Any, request: Any) -> Any:
        request.read()  # buffer the body, so that it can be sent again
        try:
            return attempt(request)
        except HttpxErrorResponse as error:
            return error.response

    methods = {"handle_request": handle_request, "close": lambda _: transport.close()}
    return type("RecoveringTransport", (package.BaseTransport,), methods)()


def _wrap_async(package: Any, transport: Any, policy: Policy | str, ports: dict[str, Any]) -> Any:
    @guarded(policy, idempotent=True, **ports)
    async def attempt(request: Any) -> Any:
        response = await transport.handle_async_request(request)
        if response.status_code >= _FIRST_ERROR_STATUS:
            await response.aread()
            raise HttpxErrorResponse(response)
        return response

    async def handle_async_request(_: Any, request: Any) -> Any:
        await request.aread()
        try:
            return await attempt(request)
        except HttpxErrorResponse as error:
            return error.response

    async def aclose(_: Any) -> None:
        await transport.aclose()

    methods = {"handle_async_request": handle_async_request, "aclose": aclose}
    return type("RecoveringTransport", (package.AsyncBaseTransport,), methods)()
