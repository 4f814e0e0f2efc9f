"""Runs one cell: a provider, perhaps a gateway, and the real client."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.clients.agents import AGENTS, Setting
from bench.clients.behind import gateway
from bench.clients.cells import DIRECT, LITELLM, PLAIN, Cell, Result, judge
from bench.clients.driver import Driver, environment, kill_group, node_binaries
from bench.clients.provider.script import ANSWER
from bench.clients.provider.server import Provider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from bench.clients.agents import Launch
    from bench.clients.clients import Client
    from bench.clients.litellm_proxy import ProxyPool, SlotProxy

SDK_SECONDS, AGENT_SECONDS = 60.0, 240.0
DIRECT_STALL_SECONDS: Final = {False: 15.0, True: 45.0}  # SDK, agent: how long a stall without the gateway is watched
SETTLE_SECONDS: Final = 20.0  # for the retries of a driver whose provider is gone
LATE: Final = "not done at the time limit"


class Harness:
    """One slot of the suite: runs cells of one client, one after the other."""

    def __init__(
        self, client: Client, environments: Path, patience: float = 1.0, proxies: ProxyPool | None = None
    ) -> None:
        self.client = client
        self._proxies = proxies  # of LiteLLM
        self._proxy: SlotProxy | None = None
        self._patience = patience
        environments = environments.resolve()
        self._packages = environments / client.name
        self._node = node_binaries(environments)
        self._driver = Driver(client, environments)
        self._call: asyncio.Task[dict[str, str]] | None = None

    async def run(self, cell: Cell) -> Result:
        """Run a cell."""
        limit = (AGENT_SECONDS if self.client.is_agent else SDK_SECONDS) * self._patience
        if cell.route == DIRECT and cell.is_stall:
            limit = DIRECT_STALL_SECONDS[self.client.is_agent]
        with tempfile.TemporaryDirectory(prefix="cell-", ignore_cleanup_errors=True) as root:
            if not self.client.is_agent:
                await self._driver.start()  # imports take long; they are not the cell's time
            async with self._served(cell) as (address, providers):
                began = time.monotonic()
                run = self._run_agent if self.client.is_agent else self._run_driver
                said, code, note = await run(cell, address, Path(root), limit)
                took = time.monotonic() - began
            if code is None:
                await self._drop_proxy()
            rows = count_rows(Path(root))
            await self._settle()
        verdict, text = judge(
            said, code, rows, answer=ANSWER, struck=self._is_met(cell, providers),
            is_exact=not self.client.is_agent, is_echoed=self.client.is_echoed,
        )  # fmt: skip
        return Result(
            verdict=verdict, exit_code=code, text=text, rows=rows, requests=sum(each.requests for each in providers),
            seconds=round(took, 1), note="" if verdict == "done" else note[-300:],
        )  # fmt: skip

    @asynccontextmanager
    async def _served(self, cell: Cell) -> AsyncIterator[tuple[str, Sequence[Provider]]]:
        """Run what serves a cell; yield its address and the providers."""
        provider = Provider(play=self.client.play, fault=None if cell.fault == PLAIN else cell.fault)
        if cell.route == LITELLM:
            async with self._behind_litellm(provider) as address:
                yield address, (provider,)
            return
        await provider.start()
        url = f"http://127.0.0.1:{provider.port}"
        try:
            async with nullcontext(url) if cell.route == DIRECT else gateway(url, patience=self._patience) as address:
                yield address, (provider,)
        finally:
            await provider.stop()

    @asynccontextmanager
    async def _behind_litellm(self, provider: Provider) -> AsyncIterator[str]:
        """Run a provider where this slot's proxy expects it."""
        assert self._proxies is not None
        if self._proxy is None:
            self._proxy = await asyncio.to_thread(self._proxies.take)
        await provider.start(self._proxy.upstream)
        try:
            yield self._proxy.url
        finally:
            await provider.stop()

    async def _drop_proxy(self) -> None:
        """End a proxy whose client left early: it may still repeat a request, which the next cell would count."""
        if self._proxy is not None:
            await asyncio.to_thread(self._proxy.__exit__)
            self._proxy = None

    def _is_met(self, cell: Cell, providers: Sequence[Provider]) -> bool:
        """Return whether what the cell is about has happened."""
        return cell.fault == PLAIN or providers[0].struck > 0

    async def _run_agent(self, cell: Cell, url: str, root: Path, limit: float) -> tuple[str, int | None, str]:
        at = Setting(home=root / "home", packages=self._packages, url=url, wire=cell.wire, tries=cell.tries)
        return await run_agent(self.client.name, at, self._node, root / "project", limit)

    async def _run_driver(self, cell: Cell, url: str, root: Path, limit: float) -> tuple[str, int | None, str]:
        told = {**cell.to_dict(), "url": url, "rows": str(root / "ran.txt")}
        self._call = asyncio.create_task(self._driver.ask(told))
        done, _ = await asyncio.wait({self._call}, timeout=limit)
        if not done:
            return "", None, LATE
        found = self._call.result()
        if "died" in found:
            await self.stop()
            return "", 70, found["died"]
        return found.get("text") or "", 1 if "error" in found else 0, found.get("error", str(found.get("text"))[-200:])

    async def _settle(self) -> None:
        """Wait for a call at its time limit, which fails now that the provider is gone: a new driver takes long."""
        if self._call is not None and not self._call.done():
            await asyncio.wait({self._call}, timeout=SETTLE_SECONDS)
            if not self._call.done():
                await self.stop()
        self._call = None

    async def stop(self) -> None:
        """Stop the driver, and give the proxy back."""
        await self._driver.stop()
        if self._proxy is not None and self._proxies is not None:
            self._proxies.give(self._proxy)
            self._proxy = None


def _prepare(name: str, at: Setting, project: Path) -> Launch:
    project.mkdir()
    at.home.mkdir()
    launch = AGENTS[name](at)
    for path, content in launch.files.items():
        (at.home / path).parent.mkdir(parents=True, exist_ok=True)
        (at.home / path).write_text(content)
    return launch


async def run_agent(
    name: str, at: Setting, node: Path | None, project: Path, limit: float
) -> tuple[str, int | None, str]:
    """Run an agent in a new project; return its output, its exit code (None: killed at the limit) and a note."""
    launch = _prepare(name, at, project)
    env = {**environment(at.home, node), **launch.env}
    process = await asyncio.create_subprocess_exec(
        *launch.command, cwd=project, env=env, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(), limit)
    except TimeoutError:
        return "", None, LATE
    finally:
        kill_group(process)
        _kill_daemons(at.home)
    said = output.decode(errors="replace")
    return said, process.returncode, said[-150:] + " | " + errors.decode(errors="replace")[-500:]


def count_rows(root: Path) -> int:
    return sum(1 for file in root.rglob("ran.txt") for _ in file.read_text().splitlines())


def _kill_daemons(home: Path) -> None:
    """Kill what an agent left in a session of its own, such as Cline's hub: it has the cell's home directory."""
    mark = f"HOME={home}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
