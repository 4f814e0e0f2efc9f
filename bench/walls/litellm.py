"""LiteLLM's proxy in front of the walls of many cells: each has a model of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bench.clients.provider.server import Provider
from bench.gateway.matrix_peers import Peer, Proxy, litellm_command
from bench.walls.provider import WallLog, WallProvider

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bench.clients.provider.script import Asked, Play, Turn
    from bench.walls.cells import Cell

RETRIES: Final = 3


class LiteLLM(Peer):
    """The proxy with its documented retries and defaults for everything else, one model and one provider per case."""

    name, path, env = Proxy.name, Proxy.path, Proxy.env

    def __init__(self, program: Path, cells: Sequence[Cell], plays: dict[str, Play]) -> None:
        super().__init__(None, program)  # type: ignore[arg-type]  # there is no lab
        self._cells = list(cells)
        self.provider = _CasesProvider()
        for cell in self._cells:
            self.provider.cases[self.model_of(cell)] = WallProvider(plays[cell.client], WallLog(), cell.wall)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def model_of(self, cell: Cell) -> str:
        """Return the model that this case has for itself."""
        return f"{'claude-sonnet-4-5' if cell.wire == 'messages' else 'gpt-5.1'}-case{self._cells.index(cell)}"

    def log_of(self, cell: Cell) -> WallLog:
        return self.provider.cases[self.model_of(cell)].log

    def command(self) -> list[str]:
        upstream = f"http://127.0.0.1:{self.provider.port}"
        settings = {
            "model_list": [self._deployment(cell, upstream) for cell in self._cells],
            "litellm_settings": {"num_retries": RETRIES, "telemetry": False},
            "router_settings": {"num_retries": RETRIES},
        }
        return litellm_command(self.program, self.home.name, self.port, settings)

    def _deployment(self, cell: Cell, upstream: str) -> dict[str, Any]:
        model = self.model_of(cell)
        kind, base = ("anthropic", upstream) if cell.wire == "messages" else ("openai", upstream + "/v1")
        return {
            "model_name": model,
            "litellm_params": {"model": f"{kind}/{model}", "api_base": base, "api_key": "sk-test"},
        }


class _CasesProvider(Provider):
    """The providers of all cases on one port, told apart by the model."""

    def __init__(self) -> None:
        self.cases: dict[str, WallProvider] = {}
        super().__init__(play=_CasesPlay(self.cases))  # type: ignore[arg-type]  # it only responds

    def _strike(self, asked: Asked) -> str | None:
        return self.cases[asked.model].strike(asked)

    def _strike_other(self, asked: Asked) -> str | None:
        return self.cases[asked.model].strike_other(asked)


class _CasesPlay:
    """Responds as the play of the case does."""

    def __init__(self, cases: dict[str, WallProvider]) -> None:
        self._cases = cases

    def respond(self, asked: Asked) -> Turn | None:
        return self._cases[asked.model].play.respond(asked)
