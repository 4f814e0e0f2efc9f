"""What a worker reports about its engine, with a real DBOS."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from rung.adapters.engines.dbos.engine import DbosEngine
from rung.engine.durable.embedded import EmbeddedEngine
from rung.engine.durable.port import RunInfo, RunState
from rung.store.fleet.executors import ExecutorRole, announce, beat, new_executor
from rung.store.fleet.overview import load_overview, overview_json
from rung.wiring.engine_load import EngineLoad, summarize_load
from tests.engines.fleets import prepare
from tests.store import postgres

if TYPE_CHECKING:
    from rung.store.journal.journal import Journal

FAR = 4e9  # a time after all others


def test_own_runs_and_waiting_ones_are_counted() -> None:
    """Of the running runs its own count; of the waiting ones each task's, with the age of the oldest."""
    open_runs = [
        RunInfo("a", "report", RunState.RUNNING, "me", 10.0),
        RunInfo("b", "report", RunState.RUNNING, "other", 10.0),
        RunInfo("c", "report", RunState.QUEUED, "", 30.0),
        RunInfo("d", "report", RunState.QUEUED, "", 20.0),
        RunInfo("e", "mail", RunState.QUEUED, "me", 50.0),
    ]
    assert summarize_load(open_runs, "me", 40.0) == {
        "runs": 1,
        "queues": [{"name": "mail", "waiting": 1, "lag": 0.0}, {"name": "report", "waiting": 2, "lag": 20.0}],
    }


def test_the_queue_of_dbos_is_in_the_overview(postgres_journal: Journal) -> None:
    """Runs that are submitted to DBOS and have no worker are shown as waiting, by the heartbeat of a worker."""
    with postgres.server() as url:
        prepare("dbos", url)
        found = asyncio.run(_load_of(url))
    worker = announce(postgres_journal, new_executor(ExecutorRole.WORKER, engine="dbos"))
    beat(postgres_journal, replace(worker, detail=found))
    (queue,) = overview_json(load_overview(postgres_journal))["queues"]
    assert (queue["engine"], queue["name"], queue["waiting"]) == ("dbos", "report", 2)
    assert queue["lag"] > 0


async def _load_of(url: str) -> dict[str, object]:
    engine = DbosEngine(url, executor_id="me")
    try:
        for name in ("r1", "r2"):
            await engine.submit(name, "report", {})
        load = EngineLoad(engine, "me", now=lambda: FAR)
        await load.refresh()
        return load.detail()
    finally:
        await engine.close()


def test_an_engine_that_fails_ends_no_worker() -> None:
    """An engine that cannot answer leaves the load empty, and the watch goes on until it is stopped."""

    async def watch(url: str) -> dict[str, object]:
        engine, stop = DbosEngine(url, executor_id="me"), asyncio.Event()  # its tables do not exist
        load = EngineLoad(engine, "me")
        watching = asyncio.create_task(load.watch(stop, 60.0))
        while not load.failures:  # noqa: ASYNC110  # the watch has no event
            await asyncio.sleep(0.01)
        stop.set()
        await watching
        await engine.close()
        return load.detail()

    with postgres.server() as url:
        assert asyncio.run(watch(url)) == {}


def test_the_journal_needs_no_report(postgres_journal: Journal) -> None:
    """The runs of the engine embedded are in the journal; its workers report nothing."""
    load = EngineLoad(EmbeddedEngine(postgres_journal), "me")
    asyncio.run(load.refresh())
    assert load.detail() == {}
