"""What is between a client and its provider: nothing, a gateway with one model, two models or two providers, or LiteLLM."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.clients.behind import gateway_with
from bench.walls.cells import DIRECT, LITELLM, MODELS, PROVIDERS, Cell
from bench.walls.provider import WallLog, WallProvider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bench.clients.provider.script import Play
    from bench.walls.litellm import LiteLLM

MODEL: Final = {"messages": "claude-sonnet-4-5", "chat": "gpt-5.1", "responses": "gpt-5.1"}
FALLBACK: Final = {"messages": "claude-opus-4-5", "chat": "gpt-5.2", "responses": "gpt-5.2"}


class Case(NamedTuple):
    """Where a client finds its model, and what its providers log."""

    url: str
    log: WallLog
    model: str = ""  # that the client asks for; empty: its usual one


@asynccontextmanager
async def case_of(cell: Cell, play: Play, litellm: LiteLLM | None) -> AsyncIterator[Case]:
    """Start the providers of a cell and what is in front of them. Every case has a gateway and a wall of its own.

    With two models the wall is in front of the first one, with two providers in front of the first provider.
    """
    if cell.route == LITELLM:
        assert litellm is not None
        yield Case(litellm.url, litellm.log_of(cell), litellm.model_of(cell))
        return
    log, model = WallLog(), MODEL[cell.wire]
    walled = WallProvider(play, log, cell.wall, model if cell.route == MODELS else "")
    healthy = WallProvider(play, log, 0.0)
    await walled.start()
    await healthy.start()
    url = f"http://127.0.0.1:{walled.port}"
    try:
        if cell.route == DIRECT:
            yield Case(url, log)
            return
        table: dict[str, Any] = {"anthropic": url, "openai": url}
        if cell.route == PROVIDERS:
            kind = "anthropic" if cell.wire == "messages" else "openai"
            table["upstreams"] = {"second": {"wire": kind, "url": f"http://127.0.0.1:{healthy.port}"}}
        policy = {"policy": {"models": [model, FALLBACK[cell.wire]]}} if cell.route == MODELS else {}
        async with gateway_with(table, policy) as address:
            yield Case(address, log)
    finally:
        await walled.stop()
        await healthy.stop()
