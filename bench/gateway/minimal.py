"""Minimal proxy for comparison: uvicorn, plain ASGI and the aiohttp client, without parsing or recovery."""

from __future__ import annotations

import sys
from typing import Any

import aiohttp
import uvicorn
from yarl import URL

UPSTREAM = sys.argv[1] if len(sys.argv) > 1 else ""
DROPPED_HEADERS = {b"host", b"content-length", b"connection", b"transfer-encoding", b"accept-encoding"}
session: aiohttp.ClientSession


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Forward a request and return the response."""
    global session  # noqa: PLW0603  # one per process
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                connector = aiohttp.TCPConnector(limit=4_096)
                session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
                await send({"type": "lifespan.startup.complete"})
            else:
                await session.close()
                await send({"type": "lifespan.shutdown.complete"})
                return
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    headers = [(name.decode(), value.decode()) for name, value in scope["headers"] if name not in DROPPED_HEADERS]
    url = URL(UPSTREAM + scope["path"], encoded=True)
    async with session.request(scope["method"], url, data=body, headers=headers) as response:
        kept = [(name, value) for name, value in response.raw_headers if name.lower() not in DROPPED_HEADERS]
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            await send({"type": "http.response.start", "status": response.status, "headers": kept})
            async for chunk in response.content.iter_any():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        else:
            data = await response.read()
            kept.append((b"content-length", str(len(data)).encode()))
            await send({"type": "http.response.start", "status": response.status, "headers": kept})
            await send({"type": "http.response.body", "body": data})


if __name__ == "__main__":
    uvicorn.run(
        app,
        port=int(sys.argv[2]),
        loop="uvloop",
        http="httptools",
        log_level="error",
        access_log=False,
        lifespan="on",
        proxy_headers=False,
    )
