"""Rig: real gateway processes on one journal, in front of one lab."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import httpx

from tests.gateway.behind import ASK
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ADDRESS = re.compile(r"rung gateway: http://127\.0\.0\.1:(\d+)")
_KEPT = ("PATH", "PYTHONPATH")


class GatewayProcess:
    """One gateway in a process of its own."""

    def __init__(self, home: Path, settings: str, journal: str, **env: str) -> None:
        home.mkdir()
        self._log = home / "log"
        (home / "rung.toml").write_text(settings)
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment |= {"HOME": str(home), "PYTHONUNBUFFERED": "1", "RUNG_JOURNAL_KEY": "of all gateways", **env}
        words = [sys.executable, "-m", "rung", "gateway", "--config", "rung.toml", "--port", "0", "--journal", journal]
        with self._log.open("w") as log:
            self.process = subprocess.Popen(words, cwd=home, env=environment, stdout=log, stderr=subprocess.STDOUT)
        self.url = ""

    def wait_for_start(self) -> None:
        """Wait until the gateway serves."""

        def address() -> str:
            assert self.process.poll() is None, self.log
            found = _ADDRESS.search(self.log)
            return found[1] if found is not None else ""

        self.url = f"http://127.0.0.1:{wait_until(address)}"

    @property
    def log(self) -> str:
        return self._log.read_text()

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(f"{self.url}/status", timeout=60).json()
        return found

    def circuits(self) -> list[dict[str, Any]]:
        return [circuit for upstream in self.status()["upstreams"] for circuit in upstream["circuits"]]

    def stop(self) -> None:
        """End the gateway, and have it write everything."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(120) == 0, self.log


@contextmanager
def gateways(home: Path, number: int, settings: str, journal: str, **env: str) -> Iterator[list[GatewayProcess]]:
    """Start gateways, and kill those that still run at the end of the block."""
    with ExitStack() as stack:
        found = []
        for n in range(number):
            gateway = GatewayProcess(home / f"gateway{n}", settings, journal, **env)
            stack.callback(_end, gateway.process)
            found.append(gateway)
        for gateway in found:
            gateway.wait_for_start()
        yield found


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def shared_by(found: list[GatewayProcess]) -> None:
    """Wait until each gateway knows of all."""
    for gateway in found:
        wait_until(lambda gateway=gateway: gateway.status()["fleet"]["gateways"] == len(found))  # type: ignore[misc]  # the loop's


def body(model: str = "small", words: int = 40) -> dict[str, Any]:
    """A request whose answer has so many words."""
    content = f"{ASK[0]['content'].replace('40', str(words))} at {time.monotonic_ns()}"  # each is another request
    return {"model": model, "max_tokens": words, "messages": [{"role": "user", "content": content}]}
