"""Runs cells at the same time: a client that waits costs nothing, so a wall takes as long for all of them as for one."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.clients.agents import Setting
from bench.clients.cells import judge
from bench.clients.clients import CLIENTS
from bench.clients.driver import Driver, node_binaries
from bench.clients.harness import LATE, count_rows, run_agent
from bench.clients.provider.script import ANSWER
from bench.walls.cells import LITELLM, Cell, Result
from bench.walls.litellm import LiteLLM
from bench.walls.routes import case_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SLACK_SECONDS: Final = 330.0  # after the end of a wall; then a client is not done
AGENT_START_SECONDS: Final = 2.5  # between two starts: an agent's first seconds are the only ones that cost something
MAX_CALLS: Final = 500


class Harness:
    """Everything that the cells of one run share: drivers of SDKs, LiteLLM's proxy, and the turn of agents to start."""

    def __init__(self, environments: Path, litellm: Path, agents: int) -> None:
        self._environments = environments.resolve()
        self._program = litellm.absolute()  # a link to the interpreter must stay one
        self._node = node_binaries(self._environments)
        self._drivers: dict[str, Driver] = {}
        self._litellm: LiteLLM | None = None
        self._slots = asyncio.Semaphore(agents)
        self._turn = asyncio.Lock()

    async def run(self, cells: Sequence[Cell], done: Callable[[Cell, Result], None]) -> None:
        """Run these cells at the same time."""
        behind = [cell for cell in cells if cell.route == LITELLM]
        if behind:
            plays = {name: client.play for name, client in CLIENTS.items()}
            self._litellm = LiteLLM(self._program, behind, plays)
            await self._litellm.provider.start()
            await asyncio.to_thread(self._litellm.__enter__)
        for name in {cell.client for cell in cells if not CLIENTS[cell.client].is_agent}:
            self._drivers[name] = Driver(CLIENTS[name], self._environments, MAX_CALLS)
            await self._drivers[name].start()

        async def each(cell: Cell) -> None:
            done(cell, await self._run(cell))

        try:
            await asyncio.gather(*map(each, cells))
        finally:
            await self._stop()

    async def _stop(self) -> None:
        for driver in self._drivers.values():
            await driver.stop()
        if self._litellm is not None:
            await asyncio.to_thread(self._litellm.__exit__)
            await self._litellm.provider.stop()

    async def _run(self, cell: Cell) -> Result:
        client = CLIENTS[cell.client]
        if not client.is_agent:
            return await self._measure(cell)
        async with self._slots:
            async with self._turn:
                await asyncio.sleep(AGENT_START_SECONDS)
            return await self._measure(cell)

    async def _measure(self, cell: Cell) -> Result:
        client, limit = CLIENTS[cell.client], cell.wall + SLACK_SECONDS
        with tempfile.TemporaryDirectory(prefix="wall-", ignore_cleanup_errors=True) as root:
            async with case_of(cell, client.play, self._litellm) as (url, log, model):
                if client.is_agent:
                    at = Setting(
                        home=Path(root, "home"), packages=self._environments / client.name, url=url, wire=cell.wire,
                        tries=cell.tries, model=model,
                    )  # fmt: skip
                    said, code, note = await run_agent(client.name, at, self._node, Path(root, "project"), limit)
                else:
                    said, code, note = await self._call(cell, url, model, root, limit)
            verdict, _ = judge(
                said, code, count_rows(Path(root)), answer=ANSWER, struck=True, is_exact=not client.is_agent,
                is_echoed=client.is_echoed,
            )  # fmt: skip
        answered = log.answered
        return Result(
            verdict=verdict,
            requests=log.until_answer or len(log.requests),
            late=None if answered is None else round(answered - cell.wall, 1),
            gave_up=round(log.requests[-1], 1) if log.requests else 0.0,
            note="" if verdict == "done" else " ".join(note.split())[-300:],
        )

    async def _call(self, cell: Cell, url: str, model: str, root: str, limit: float) -> tuple[str, int | None, str]:
        told = {**cell.to_dict(), "url": url, "rows": f"{root}/ran.txt", "parallel": True, "model": model or None}
        call = asyncio.create_task(self._drivers[cell.client].ask(told))
        finished, _ = await asyncio.wait({call}, timeout=limit)
        if not finished:
            call.cancel()
            return "", None, LATE
        found = call.result()
        if "died" in found:
            return "", 70, found["died"]
        return found.get("text") or "", 1 if "error" in found else 0, found.get("error", str(found.get("text"))[-200:])
