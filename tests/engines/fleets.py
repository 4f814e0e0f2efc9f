"""A durable engine with workers that are processes, for each engine."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rung.wiring.engines import engine as make_engine
from tests.adapters.durable import temporal_server
from tests.engines.sample_tasks import read_log
from tests.store import postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from rung.engine.durable.port import DurableEngine

ENGINES: Final = ("sqlite", "postgres", "dbos", "temporal")
RUNG: Final = (sys.executable, "-m", "rung")
LEASE_SECONDS: Final = 2.0
LONG: Final = 120.0  # nothing here takes so long, however busy the machine is
_NUMBERS = count(1)


class EngineFleet:
    """One engine, its workers, and the folder where their steps leave traces."""

    def __init__(self, name: str, url: str, folder: Path) -> None:
        self.name, self.url, self.folder = name, url, str(folder)
        self.workers: list[subprocess.Popen[bytes]] = []
        self._ids = count(1)

    @property
    def engine_name(self) -> str:
        return self.name if self.name in {"dbos", "temporal"} else "embedded"

    def start_worker(self, *options: str, module: str = "tests.engines.sample_tasks") -> subprocess.Popen[bytes]:
        """Start a worker process."""
        command = [*RUNG, "fleet", "worker", "--import", module]
        command += ["--engine", self.engine_name, "--url", self.url, "--lease", str(LEASE_SECONDS), *options]
        environment = _environment()
        environment["RUNG_JOURNAL"] = self.url if self.name != "temporal" else str(Path(self.folder, "journal.db"))
        with Path(self.folder, f"worker-{len(self.workers)}.log").open("wb") as log:
            worker = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        self.workers.append(worker)
        return worker

    def kill(self, number: int) -> None:
        """Kill a worker as a power cut would."""
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
        for worker in self.workers:
            if worker.pid == number:
                worker.wait()

    def log(self) -> list[str]:
        return read_log(self.folder)

    def until_logged(self, text: str, times: int = 1) -> int:
        """Wait until a step has logged a text so often. Return the process that did it last."""
        self.until(lambda: sum(line.startswith(f"{text} ") for line in self.log()) >= times, text)
        return int([line for line in self.log() if line.startswith(f"{text} ")][-1].split()[-1])

    def until(self, is_true: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + LONG
        while not is_true():
            assert time.monotonic() < end, f"{what}: {self.log()}\n{self.said()}"
            time.sleep(0.02)

    def said(self) -> str:
        """Return what the workers printed."""
        texts = []
        for number in range(len(self.workers)):
            text = Path(self.folder, f"worker-{number}.log").read_text(errors="replace")
            texts.append(f"-- worker {number}\n{text[-3_000:]}")
        return "\n".join(texts)

    def new_run(self) -> str:
        return f"{os.getpid()}-{os.urandom(3).hex()}-{next(self._ids)}"

    def call(self, act: Callable[[DurableEngine], Coroutine[Any, Any, Any]]) -> Any:
        """Use the engine as a client does."""

        async def use() -> Any:
            engine = make_engine(self.engine_name, url=self.url)
            try:
                return await asyncio.wait_for(act(engine), LONG)
            finally:
                await engine.close()

        try:
            return asyncio.run(use())
        except TimeoutError:
            raise AssertionError(f"timed out: {self.log()}\n{self.said()}") from None

    def submit(self, task: str, **arguments: Any) -> str:
        run = self.new_run()
        assert self.call(lambda engine: engine.submit(run, task, arguments)) is True
        return run

    def result(self, run: str) -> Any:
        return self.call(lambda engine: engine.result(run))

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.wait()


def new_database(server: str) -> str:
    """Return the URL of a new database on a PostgreSQL server."""
    import psycopg

    name = f"test_{os.getpid()}_{next(_NUMBERS)}_{os.urandom(3).hex()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.replace("/postgres?", f"/{name}?")


def prepare(name: str, url: str) -> None:
    """Create the tables of the journal, and those of DBOS."""
    if name in {"postgres", "dbos"}:
        engine = "dbos" if name == "dbos" else "embedded"
        command = [*RUNG, "fleet", "init", "--engine", engine, "--url", url]
        subprocess.run(command, check=True, capture_output=True, env=_environment())


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("RUNG_")}


@contextmanager
def fleet(name: str, folder: Path) -> Iterator[EngineFleet]:
    """Yield a fleet without workers."""
    with _server(name, folder) as url:
        prepare(name, url)
        made = EngineFleet(name, url, folder)
        try:
            yield made
        finally:
            made.close()


@contextmanager
def _server(name: str, folder: Path) -> Iterator[str]:
    if name == "sqlite":
        yield str(folder / "journal.db")
    elif name == "temporal":
        with temporal_server.server() as address:
            yield address
    elif given := os.environ.get(postgres.GIVEN):
        yield new_database(given)
    else:
        with postgres.server() as server:
            yield new_database(server)
