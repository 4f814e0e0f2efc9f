"""The bearer token of the MCP server over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rung.mcp.bearer_auth import RequireToken


def answers(scope: dict[str, Any]) -> list[Any]:
    """Return what a server with the token "right" sends: "passed" if the request reaches the application."""
    sent: list[Any] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send("passed")

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(RequireToken(app, "right")(scope, None, send))
    return sent


@pytest.mark.parametrize("value", [b"Bearer right", b"bearer right"])
def test_the_token_passes(value: bytes) -> None:
    """A request with the token reaches the application; the scheme has no case."""
    assert answers({"type": "http", "headers": [(b"authorization", value)]}) == ["passed"]


def test_the_start_of_the_server_passes() -> None:
    """The lifespan of the application needs no token."""
    assert answers({"type": "lifespan"}) == ["passed"]


@pytest.mark.parametrize(
    "values", [[], [b"Bearer wrong"], [b"Basic right"], [b"right"], [b"Bearer right", b"Bearer right"]]
)
def test_anything_else_is_rejected(values: list[bytes]) -> None:
    """A request without the token, or with two headers, gets 401 with the name of the command that prints it."""
    start, body = answers({"type": "http", "headers": [(b"authorization", value) for value in values]})
    assert start["status"] == 401
    assert b"rung mcp --print-token" in body["body"]
