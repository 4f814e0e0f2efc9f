"""Bearer token of the MCP server over HTTP, where every account of the machine can connect."""

from __future__ import annotations

import hmac
from typing import Any

_ERROR = b'{"error": "authorization: must be \\"Bearer TOKEN\\"; `rung mcp --print-token` prints the token"}'


class RequireToken:
    """ASGI application that passes on requests with the token, and answers all others with 401."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan" or self._has_token(scope):
            await self._app(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": _ERROR})

    def _has_token(self, scope: Any) -> bool:
        values = [value for name, value in scope.get("headers", ()) if name == b"authorization"]
        scheme, _, token = values[0].partition(b" ") if len(values) == 1 else (b"", b"", b"")
        return scope["type"] == "http" and scheme.lower() == b"bearer" and hmac.compare_digest(token, self._token)
