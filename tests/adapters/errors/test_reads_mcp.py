"""Errors of the Model Context Protocol, from a real server in memory; for mcp 1.x and 2.x."""

from __future__ import annotations

import asyncio
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.classify.evidence import evidence_of
from rung.core.domain.failures import Phase
from tests.adapters.errors.loopback import assert_survives_wrapping, raised_by

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rung.core.domain.failures import Evidence

OLD = int(version("mcp").split(".")[0]) < 2


def make_server() -> Any:
    kind: Any = import_module("mcp.server.fastmcp").FastMCP if OLD else import_module("mcp.server.mcpserver").MCPServer
    server = kind("test")
    errors = import_module("mcp.shared.exceptions")
    tool_error = import_module(f"mcp.server.{'fastmcp' if OLD else 'mcpserver'}.exceptions").ToolError

    @server.tool()  # type: ignore[untyped-decorator]  # loaded by name
    def full() -> str:
        raise tool_error("disk is full")

    @server.tool()  # type: ignore[untyped-decorator]  # loaded by name
    def fine() -> str:
        return "done"

    @server.tool()  # type: ignore[untyped-decorator]  # loaded by name
    async def slow() -> str:
        await asyncio.sleep(5)
        return "late"

    if not OLD:

        @server.tool()  # type: ignore[untyped-decorator]  # loaded by name
        def odd() -> str:
            raise errors.MCPError(-32602, "bad params", {"field": "n"})

    return server


def call(ask: Callable[[Any], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        if OLD:
            connect = import_module("mcp.shared.memory").create_connected_server_and_client_session
            async with connect(make_server()._mcp_server) as client:  # noqa: SLF001  # the old SDK has no other way
                return await ask(client)
        async with import_module("mcp.client.client").Client(make_server()) as client:
            return await ask(client)

    return asyncio.run(run())


def seen(error: BaseException) -> Evidence:
    assert_survives_wrapping(error)
    return evidence_of(error)


def test_a_result_that_says_it_is_an_error() -> None:
    """Nothing is raised for it; its text is what the tool said."""
    evidence = evidence_of(call(lambda client: client.call_tool("full", {})))
    assert evidence.phase is Phase.TOOL
    assert "disk is full" in evidence.text


def test_a_result_that_is_fine_is_no_trouble() -> None:
    """Its adapter has nothing to say."""
    from rung.adapters.errors.mcp import read

    assert read(call(lambda client: client.call_tool("fine", {}))) is None


@pytest.mark.skipif(OLD, reason="mcp 1.x turns it into a result")
def test_an_error_of_the_protocol() -> None:
    """JSON-RPC code, message and data, out of the groups of exceptions the client wraps it in."""
    evidence = seen(raised_by(lambda: call(lambda client: client.call_tool("odd", {}))))
    assert (evidence.code, evidence.phase, evidence.status) == ("-32602", Phase.TOOL, None)
    assert "bad params" in evidence.text
    assert '"field": "n"' in evidence.text


def test_a_resource_nobody_knows() -> None:
    """The server's error comes back as an exception with its code."""
    evidence = seen(raised_by(lambda: call(lambda client: client.read_resource("file:///nope"))))
    assert evidence.code.lstrip("-").isdecimal()
    assert "nope" in evidence.text
    assert evidence.phase is Phase.TOOL


def test_a_tool_that_takes_too_long() -> None:
    """1.x says 408, which is a status; 2.x a code of its own."""
    from datetime import timedelta

    limit: Any = timedelta(seconds=0.1) if OLD else 0.1
    evidence = seen(raised_by(lambda: call(lambda client: client.call_tool("slow", {}, read_timeout_seconds=limit))))
    assert (evidence.status, evidence.code) == ((408, "408") if OLD else (None, "-32001"))
    assert "timed out" in evidence.text.lower()
