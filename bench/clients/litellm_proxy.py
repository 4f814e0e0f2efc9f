"""LiteLLM's proxy for one slot of the suite: started once, in front of a provider that is another one in each cell."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from bench.clients.behind import MODELS, TIMEOUTS
from bench.gateway.matrix_peers import RETRIES, Peer, Proxy, free_port, litellm_command

if TYPE_CHECKING:
    from pathlib import Path

# By the beginning of a model's name: its provider at LiteLLM, and what follows the upstream's address.
PROVIDERS: Final = {"claude": ("anthropic", ""), "gemini": ("gemini", "/v1beta"), "": ("openai", "/v1")}


class SlotProxy(Peer):
    """The proxy with its documented retries, the timeouts of our gateway, and its defaults for everything else.

    Cooldowns are off, so that a fault of one cell cannot reach the next one.
    """

    name, path, env = Proxy.name, Proxy.path, Proxy.env

    def __init__(self, program: Path, patience: float = 1.0) -> None:
        super().__init__(None, program.absolute())  # type: ignore[arg-type]  # there is no lab
        self.upstream = free_port()  # where the provider of each cell listens
        self._patience = patience

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        settings = {
            "model_list": [self._deployment(model) for model in MODELS],
            "litellm_settings": {"num_retries": RETRIES, "telemetry": False},
            "router_settings": {"num_retries": RETRIES, "disable_cooldowns": True},
        }
        return litellm_command(self.program, self.home.name, self.port, settings)

    def _deployment(self, model: str) -> dict[str, Any]:
        kind, path = next(found for start, found in PROVIDERS.items() if model.startswith(start))
        told = {
            "model": f"{kind}/{model}", "api_base": f"http://127.0.0.1:{self.upstream}{path}", "api_key": "sk-test",
            "timeout": TIMEOUTS["total"] * self._patience, "stream_timeout": TIMEOUTS["headers"] * self._patience,
        }  # fmt: skip
        return {"model_name": model, "litellm_params": told}


class ProxyPool:
    """Proxies that are running and not in use: starting one takes longer than a cell."""

    def __init__(self, program: Path, patience: float = 1.0) -> None:
        self._program, self._patience = program, patience
        self._free: list[SlotProxy] = []
        self._starting = threading.Lock()

    def take(self) -> SlotProxy:
        """Return a proxy that no other slot has. They start one after the other: one alone starts soonest."""
        with self._starting:
            return self._free.pop() if self._free else SlotProxy(self._program, self._patience).__enter__()

    def give(self, proxy: SlotProxy) -> None:
        """Take a proxy back."""
        self._free.append(proxy)

    def close(self) -> None:
        """End all proxies that are not in use."""
        while self._free:
            self._free.pop().__exit__()
