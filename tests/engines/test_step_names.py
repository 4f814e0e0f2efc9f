"""Names that are stored in the databases of engines: compatibility data, whatever the code is called."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import rung
from rung.adapters.engines import temporal
from rung.adapters.engines.dbos import engine as dbos
from rung.adapters.engines.dbos import task as dbos_task
from rung.core.domain.errors import RungError
from rung.core.domain.request import json_digest
from rung.engine.durable.embedded import EmbeddedEngine
from tests.engines import sample_tasks

if TYPE_CHECKING:
    from pathlib import Path


def recorded_keys(folder: Path, task: str, *messages: tuple[str, str]) -> list[str]:
    """Run a task on an embedded journal. Return the keys of its steps in their order."""
    with rung.journal(folder / "journal.db") as journal:
        for topic, body in messages:
            journal.runs.send(f"r/{topic}", body)

        async def run() -> None:
            engine, stop = EmbeddedEngine(journal), asyncio.Event()
            await engine.submit("r", task, {"folder": str(folder)})
            worker = asyncio.create_task(engine.work(stop))
            await engine.result("r", 60)
            stop.set()
            await worker

        asyncio.run(run())
        rows = journal.read("SELECT key FROM step WHERE run = 'r' ORDER BY at, key")
    return [key for (key,) in rows]


def test_steps_of_a_recovery(tmp_path: Path) -> None:
    """A recovery in a task records its start, its attempts and its waits under these keys."""
    assert recorded_keys(tmp_path, "recovering") == [
        "model.began",
        "model.attempt.1",
        "model.wait.1",
        "model.attempt.2",
        "model.wait.2",
        "model.attempt.3",
    ]


def test_steps_of_a_question(tmp_path: Path) -> None:
    """A question, its answer and the time of the answer have these keys."""
    keys = recorded_keys(tmp_path, "asking", ("model.ask.1", "stop"))
    assert {"model.ask.1.question", "wait.model.ask.1", "wait.model.ask.1.until", "model.ask.1.at"} <= set(keys)


def test_steps_of_tool_calls(tmp_path: Path) -> None:
    """A tool call is named for the tool, its arguments, and the number of equal calls so far."""
    keys = [key for key in recorded_keys(tmp_path, "agent") if key.startswith("tool.")]
    names = [key.split(".") for key in keys]
    assert [(tool, name, count) for tool, name, _, count in names] == [
        ("tool", "use_tool", "1"),
        ("tool", "use_tool", "1"),
        ("tool", "use_tool", "2"),
        ("tool", "use_tool", "1"),
    ]
    assert names[1][2] == names[2][2]
    assert json_digest(["/f", "tool0"]) == "7c5f0d22db1b4454"


def test_errors_of_steps(tmp_path: Path) -> None:
    """The error of a step is recorded beside its key."""
    assert recorded_keys(tmp_path, "caught") == ["bad.failed", "after"]


def test_names_of_dbos() -> None:
    """Workflow, queues, schema and application version: another name would strand the runs of the release before."""
    assert (dbos.WORKFLOW, dbos.queue_of("bill"), dbos.SCHEMA) == ("rung.run", "rung.bill", "rung_dbos")
    assert dbos.APPLICATION_VERSION == "rung-1"
    assert dbos_task.JsonSerializer().name() == "rung_json"


def test_names_of_temporal() -> None:
    """Workflow, activities, signal, task queues, and how a function is named."""
    assert (temporal.WORKFLOW, temporal.STEP, temporal.ATTEMPT) == ("rung.run", "rung.step", "rung.attempt")
    assert (temporal.MESSAGE, temporal.queue_of("bill")) == ("rung.message", "rung.bill")
    assert temporal.function_name(sample_tasks.work) == "tests.engines.sample_tasks:work"
    assert temporal.function_name(sample_tasks.use_tool) == "tests.engines.sample_tasks:use_tool"


def test_json_alone_is_stored() -> None:
    """What DBOS stores is JSON: errors become their text, and other objects are refused."""
    serializer = dbos_task.JsonSerializer()
    assert serializer.deserialize(serializer.serialize({"args": ["a"], "kwargs": {}})) == {"args": ["a"], "kwargs": {}}
    error = serializer.deserialize(serializer.serialize(ValueError("no")))
    assert isinstance(error, RungError)
    assert str(error) == "ValueError: no"
