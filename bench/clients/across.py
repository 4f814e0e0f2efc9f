"""Cells across wires: the client's own provider is dead or dies, and only one with another wire is left."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from bench.clients.behind import TIMEOUTS, gateway_with
from bench.clients.cells import Cell
from bench.clients.harness import Harness
from bench.clients.provider.server import Provider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from bench.clients.clients import Client
    from bench.clients.provider.script import Asked

DEAD: Final = "dead"
# Fault of a cell → what strikes the own provider, which is dead from then on. One that is dead never serves.
OUTAGES: Final = {
    DEAD: "",
    "dies before the answer": "529",
    "dies in the text": "cut by reset",
    "dies in the call": "cut in call",
}
# Wire of the client → wires of the other provider.
OTHERS: Final = {
    "messages": ("chat", "responses"),
    "chat": ("messages", "responses"),
    "compatible": ("messages",),
    "responses": ("messages", "chat"),
    "gemini": ("messages", "chat"),
}
UPSTREAMS: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "messages": ({"wire": "anthropic"}, "claude-sonnet-4-5"),
    "chat": ({"wire": "openai", "apis": ["chat"]}, "gpt-5.1"),
    "responses": ({"wire": "openai", "apis": ["responses"]}, "gpt-5.1"),
}
KEY_ENV: Final = "RUNG_BENCH_OTHER_KEY"
CLOSED: Final = "http://127.0.0.1:9"  # nothing listens there
_PREFIX: Final = "via "


def across_cells(client: Client) -> list[Cell]:
    """Return the cells of a client, with its own retries as they are: its wires, each with every other one."""
    return [
        Cell(client=client.name, wire=wire, mode=mode, tries="default", fault=outage, route=_PREFIX + other)
        for mode in client.modes
        for wire in client.wires
        for other in OTHERS.get(wire, ())
        for outage, fault in OUTAGES.items()
        if client.play.has_call or fault != OUTAGES["dies in the call"]
    ]


class MortalProvider(Provider):
    """A provider that is dead after its fault."""

    def _strike(self, asked: Asked) -> str | None:
        return "reset before headers" if self.struck else super()._strike(asked)

    def _strike_other(self, asked: Asked) -> str | None:  # the signature of all providers
        return "reset before headers" if self.struck else None


class AcrossHarness(Harness):
    """Runs cells whose client is left with a provider of another wire."""

    @asynccontextmanager
    async def _served(self, cell: Cell) -> AsyncIterator[tuple[str, Sequence[Provider]]]:
        fault = OUTAGES[cell.fault]
        own, other = MortalProvider(play=self.client.play, fault=fault or None), Provider(play=self.client.play)
        await own.start()
        await other.start()
        os.environ[KEY_ENV] = "sk-other"
        try:
            own_url = f"http://127.0.0.1:{own.port}" if fault else CLOSED
            table = across_table(cell, own_url, f"http://127.0.0.1:{other.port}", self._patience)
            models = ["other/" + UPSTREAMS[cell.route.removeprefix(_PREFIX)][1]]
            async with gateway_with(table, {"policy": {"models": models}}) as address:
                yield address, (own, other)
        finally:
            await own.stop()
            await other.stop()

    def _is_met(self, cell: Cell, providers: Sequence[Provider]) -> bool:  # the signature of all harnesses
        return providers[-1].requests > 0


def across_table(cell: Cell, own: str, other: str, patience: float) -> dict[str, Any]:
    """Return the settings of a gateway with the own provider, and one of another wire."""
    upstream, _ = UPSTREAMS[cell.route.removeprefix(_PREFIX)]
    timeouts = {name: value * (1.0 if name == "last_resort_factor" else patience) for name, value in TIMEOUTS.items()}
    api = {"messages": "anthropic", "gemini": "gemini"}.get(cell.wire, "openai")
    return {api: own, "timeouts": timeouts, "upstreams": {"other": {**upstream, "url": other, "key_env": KEY_ENV}}}
