"""The durable engine on a journal, in one process."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain.errors import AttemptError, RunEnded, RungError, RunNotFound, StoreUnavailable
from rung.engine.durable import embedded
from rung.engine.durable.embedded import EmbeddedEngine
from rung.engine.durable.port import RunState
from rung.engine.durable.task_steps import DurableTask

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path

    from rung.store.journal.journal import Journal

gate = threading.Event()
calls: list[str] = []


@rung.durable.task("embedded-plain")
def plain(name: str) -> str:
    """A plain task, which waits for the test."""
    calls.append(name)
    gate.wait(60)
    return name


@rung.durable.task("embedded-fails")
def fails() -> str:
    """A plain task whose step fails, and which goes on; its process dies once after that."""
    try:
        rung.durable.step("bad", _bad)
    except (ValueError, AttemptError) as error:
        calls.append(str(error))
    if len(calls) == 2:
        raise KeyboardInterrupt
    return "went on"


def _bad() -> None:
    calls.append("bad ran")
    raise ValueError("no such thing")


@rung.durable.task("embedded-away")
async def away() -> None:
    """A task in whose step the store is unavailable."""
    await rung.durable.step("away", _away)


def _away() -> None:
    raise StoreUnavailable("an inner journal is away")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    gate.clear()
    calls.clear()
    with rung.journal(tmp_path / "journal.db") as opened:
        yield opened


def work(journal: Journal, act: Callable[[EmbeddedEngine], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    """Run a worker beside a client."""

    async def both() -> Any:
        engine, stop = EmbeddedEngine(journal, poll_seconds=0.01), asyncio.Event()
        worker = asyncio.create_task(engine.work(stop, **options))
        try:
            return await asyncio.wait_for(act(engine), 60)
        finally:
            gate.set()
            stop.set()
            await worker
            await engine.close()

    return asyncio.run(both())


def test_concurrency_is_a_limit(journal: Journal) -> None:
    """A worker takes no more runs than it may have; the others wait, and plain tasks run in threads."""

    async def act(engine: EmbeddedEngine) -> list[str]:
        for name in ("a", "b", "c"):
            await engine.submit(name, "embedded-plain", {"name": name})
        while len(calls) < 2:  # noqa: ASYNC110  # threads fill it
            await asyncio.sleep(0.01)
        states = {info.id: info.state for info in await engine.list_runs()}
        assert sorted(states.values()) == ["queued", "running", "running"]
        assert len(engine.in_hand) == 2
        gate.set()
        return [await engine.result(name) for name in ("a", "b", "c")]

    assert work(journal, act, concurrency=2) == ["a", "b", "c"]


def test_a_store_that_is_away_is_waited_for(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that cannot claim goes on trying, and leaves expired leases alone until their owners could renew them."""
    monkeypatch.setattr(embedded, "MAX_POLL_SECONDS", 0.01)
    asked: list[bool] = []
    gate.set()

    async def act(engine: EmbeddedEngine) -> str:
        claim = journal.runs.claim_next

        def sometimes(tasks: Any, *, takes_expired: bool) -> Any:
            asked.append(takes_expired)
            if len(asked) == 2:
                raise StoreUnavailable("away")
            return claim(tasks, takes_expired=takes_expired)

        monkeypatch.setattr(journal.runs, "claim_next", sometimes)
        while len(asked) < 4:  # noqa: ASYNC110  # threads fill it
            await asyncio.sleep(0.01)
        await engine.submit("a", "embedded-plain", {"name": "a"})
        return str(await engine.result("a"))

    assert work(journal, act) == "a"
    assert asked[0] is True
    assert asked[2] is False


def test_the_error_of_a_step_is_recorded(journal: Journal) -> None:
    """A resumed plain task gets the error of its step again, and the step does not run again."""
    with pytest.raises(KeyboardInterrupt):
        rung.durable.start(journal, "r", "embedded-fails")
    assert rung.durable.start(journal, "r", "embedded-fails") == "went on"
    assert calls == ["bad ran", "no such thing", "no such thing"]


def test_an_unavailable_store_is_no_error_of_a_step(journal: Journal) -> None:
    """The step has not ended: it is not recorded, and the run stays open."""
    with pytest.raises(StoreUnavailable):
        asyncio.run(rung.durable.start(journal, "r", "embedded-away"))
    assert journal.runs.step_keys("r") == set()
    assert [run.id for run in journal.runs.open_runs()] == ["r"]


def test_unknown_runs_and_ends(journal: Journal) -> None:
    """A run that does not exist is an error; a cancelled one is listed, and cannot be cancelled again."""

    async def act(engine: EmbeddedEngine) -> None:
        with pytest.raises(RunNotFound):
            await engine.result("nowhere")
        with pytest.raises(RunNotFound):
            await engine.cancel("nowhere")
        await engine.submit("a", "no-such-task", {})
        assert await engine.cancel("a")
        assert not await engine.cancel("a")
        with pytest.raises(RunEnded, match="cancelled"):
            await engine.result("a")
        assert [info.id for info in await engine.list_runs(states=[RunState.CANCELLED])] == ["a"]
        assert not await engine.list_runs(states=[RunState.QUEUED])
        await engine.send("a", "topic", 1)

    work(journal, act)
    assert journal.runs.received("a/topic") == 1


def test_a_plain_task_cannot_recover(journal: Journal) -> None:
    """`recover_in_task` needs a coroutine function: a plain task is told so."""
    with journal.runs.claim("r", "t") as lease:
        task = DurableTask(lease, journal.runs.received)
        with pytest.raises(RungError, match="coroutine function"):
            task.attempt("k", plain, rung.Request(prompt="p"), None)


def test_an_engine_closes_the_journal_that_is_its_own(tmp_path: Path) -> None:
    """`rung.durable.engine` opens a journal for the engine; closing the engine closes it."""

    async def use() -> bool:
        engine = rung.durable.engine("embedded", url=str(tmp_path / "own.db"), lease=5.0)
        submitted = await engine.submit("a", "embedded-plain", {"name": "a"})
        await engine.close()
        return submitted

    assert asyncio.run(use())
