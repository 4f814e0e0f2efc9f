"""Cells of the suite: a client, its wire, its mode, its own tries, how long the wall lasts, and what is in front of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from bench.clients.clients import CLIENTS

DIRECT, ONE, MODELS, PROVIDERS, LITELLM = "direct", "one model", "two models", "two providers", "litellm"
ROUTES: Final = (DIRECT, ONE, MODELS, PROVIDERS, LITELLM)
OURS: Final = (ONE, MODELS, PROVIDERS)
WALLS: Final = (30, 90, 240, 600)  # seconds
# The client's own tries, where they can be set. The SDKs make 2 by default, Claude Code 10, Codex 4 and 5 in a stream.
TRIES: Final = {
    "anthropic-python": ("default", "10"),
    "openai-python": ("default", "10"),
    "anthropic-node": ("default", "10"),
    "openai-node": ("default", "10"),
    "claude-code": ("2", "default"),
    "codex": ("2", "default", "10"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One run of one client."""

    client: str
    wire: str
    mode: str  # stream or whole
    tries: str
    wall: int
    route: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def on(self, route: str) -> Cell:
        """Return the cell of the same client on another route."""
        return Cell(**{**asdict(self), "route": route})


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a cell ended. Times are those of the provider's log, in seconds since its first request."""

    verdict: str
    requests: int  # for the model, until the task was answered first or the client gave up
    late: float | None  # the first answer, after the end of the wall; negative: before it. None: never
    gave_up: float  # the last request
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def all_cells() -> list[Cell]:
    """Return every cell, short walls first."""
    return [
        Cell(client=name, wire=wire, mode=mode, tries=tries, wall=wall, route=route)
        for wall in WALLS
        for name, each in TRIES.items()
        for wire in CLIENTS[name].wires
        for mode in CLIENTS[name].modes
        for tries in each
        for route in ROUTES
    ]
