"""Other gateways in front of a lab, configured as documented: retries on, with a fallback model."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.gateway.cells import Cell, Found

    from rung.testing.provider import Lab

RETRIES = 3
START_SECONDS = 300.0  # on a loaded machine
TIMEOUT_SECONDS = 2.0  # upstream timeout, the same as for rung


def litellm_command(program: Path, home: str, port: int, settings: Mapping[str, object]) -> list[str]:
    """Return the command of LiteLLM's proxy; writes its settings into its home."""
    file = Path(home, "config.yaml")
    file.write_text(json.dumps(settings))  # JSON is valid YAML
    start = "import sys; from litellm import run_server; sys.argv[0] = 'litellm'; run_server()"
    flags = ["--config", str(file), "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
    return [str(program), "-c", start, *flags]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Peer:
    """A gateway in its own process."""

    name = ""
    path = "/"
    env: dict[str, str] = {}  # noqa: RUF012  # never modified

    def __init__(self, lab: Lab, program: Path) -> None:
        self.lab, self.program = lab, program
        self.port = free_port()
        self.home = tempfile.TemporaryDirectory()
        self._process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    def headers(self, cell: Cell) -> dict[str, str]:  # some need them
        return {}

    def __enter__(self) -> Self:
        env = {"PATH": os.environ["PATH"], "HOME": self.home.name, **self.env}
        log = Path(self.home.name, "log").open("wb")
        self._process = subprocess.Popen(self.command(), stdout=log, stderr=log, env=env, cwd=self.home.name)
        log.close()
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{self.path}", timeout=2):
                    return self
            except OSError as error:
                if isinstance(error, urllib.error.HTTPError):
                    return self
                if time.monotonic() > deadline or self._process.poll() is not None:
                    log_tail = Path(self.home.name, "log").read_text(errors="replace")[-2_000:]
                    self.__exit__()
                    raise SystemExit(f"{self.name} did not start:\n{log_tail}") from None
                time.sleep(0.3)

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait(10)
        self.home.cleanup()

    def ask(self, cell: Cell) -> Found:
        from tests.gateway.cells import measure  # imports every SDK, which other users of a peer do not need

        return measure(self.lab, f"http://127.0.0.1:{self.port}", cell, self.headers(cell))


class LiteLLM:
    """LiteLLM's proxy, one per provider, so that clients use the same model names for both."""

    name = "LiteLLM"

    def __init__(self, lab: Lab, program: Path) -> None:
        self._proxies = {provider: Proxy(lab, program, provider) for provider in ("anthropic", "openai")}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        for proxy in self._proxies.values():
            self._stack.enter_context(proxy)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def ask(self, cell: Cell) -> Found:
        return self._proxies["anthropic" if cell.wire == "messages" else "openai"].ask(cell)


class Proxy(Peer):
    """LiteLLM's proxy: retries, then falls back; without a cooldown between cells."""

    name = "LiteLLM"
    path = "/health/liveliness"
    env = {  # noqa: RUF012  # never modified; no master key, loopback only
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }

    def __init__(
        self,
        lab: Lab,
        program: Path,
        provider: str,
        models: tuple[str, str] = ("small", "large"),
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        super().__init__(lab, program)
        self.provider = provider
        self.models = models  # the second one is the fallback
        self.timeout = timeout

    def command(self) -> list[str]:
        def of(model: str) -> list[object]:
            return [
                {
                    "model_name": model,
                    "litellm_params": {
                        "model": f"{self.provider}/{model}",
                        "api_base": self.lab.url + ("" if self.provider == "anthropic" else "/v1"),
                        "api_key": "sk-lab",
                        "timeout": self.timeout,
                        "stream_timeout": self.timeout,
                    },
                }
            ]

        first, second = self.models
        fallbacks = [{first: [second]}]
        settings = {
            "model_list": [*of(first), *of(second)],
            "litellm_settings": {
                "num_retries": RETRIES,
                "request_timeout": self.timeout,
                "fallbacks": fallbacks,
                "context_window_fallbacks": fallbacks,
                "telemetry": False,
            },
            "router_settings": {"num_retries": RETRIES, "fallbacks": fallbacks, "disable_cooldowns": True},
        }
        return litellm_command(self.program, self.home.name, self.port, settings)


class Portkey(Peer):
    """Portkey's gateway, configured per request: retries, then falls back."""

    name = "Portkey"

    def command(self) -> list[str]:
        return ["node", str(self.program), f"--port={self.port}", "--headless"]

    def headers(self, cell: Cell) -> dict[str, str]:
        is_anthropic = cell.wire == "messages"
        target = {
            "provider": "anthropic" if is_anthropic else "openai",
            "custom_host": f"{self.lab.url}/v1",
            "api_key": "sk-ant-lab" if is_anthropic else "sk-lab",
            "retry": {"attempts": RETRIES, "on_status_codes": [408, 429, 500, 502, 503, 504, 522, 529, 599]},
            "request_timeout": int(TIMEOUT_SECONDS * 1_000),
        }
        both = [{**target, "override_params": {"model": model}} for model in ("small", "large")]
        return {"x-portkey-config": json.dumps({"strategy": {"mode": "fallback"}, "targets": both})}
