"""A recovery that is stopped from outside says so in its journal before it goes."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.outcome import Outcome


class Kept:
    """A journal that takes a while; the events it has really kept."""

    def __init__(self) -> None:
        self.events: list[ev.Event] = []
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()

    async def append(self, _incident: str, first: int, events: Sequence[ev.Event]) -> None:
        if any(isinstance(event, ev.Cancelled) for event in events):
            self.begun.set()
            await self.go_on.wait()
        assert first == len(self.events)
        self.events += events


def alone(**ports: Any) -> dict[str, Any]:
    return {"breakers": rung.BreakerRegistry(), "retry_budget": None, **ports}


async def hang(_: object) -> str:
    await asyncio.sleep(60)
    return "never"


async def begun(journal: Any) -> asyncio.Task[Any]:
    work: Any = rung.recover(hang, "x", **alone(journal=journal))
    task: asyncio.Task[Any] = asyncio.create_task(work)
    for _ in range(5):
        await asyncio.sleep(0)
    return task


def outcome_of(error: BaseException) -> Outcome[Any]:
    outcome: Outcome[Any] = error.__dict__["__rung_outcome__"]
    return outcome


def test_the_last_word_is_kept() -> None:
    """A cancelled recovery goes only when its journal has kept that."""

    async def main() -> list[ev.Event]:
        journal = Kept()
        task = await begun(journal)
        task.cancel()
        await journal.begun.wait()
        assert not task.done()
        journal.go_on.set()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert list(outcome_of(caught.value).events) == journal.events
        return journal.events

    assert isinstance(asyncio.run(main())[-1], ev.Cancelled)


def test_a_second_cancellation_ends_the_waiting() -> None:
    """Whoever insists is let go at once; the word is kept all the same."""

    async def main() -> None:
        journal = Kept()
        task = await begun(journal)
        task.cancel()
        await journal.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not isinstance(journal.events[-1], ev.Cancelled)
        journal.go_on.set()
        while not isinstance(journal.events[-1], ev.Cancelled):  # noqa: ASYNC110  # whichever turn it is
            await asyncio.sleep(0)

    asyncio.run(main())


class Broken:
    """A journal that cannot keep the last word."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def append(self, _incident: str, _first: int, events: Sequence[ev.Event]) -> None:
        if isinstance(events[-1], ev.Cancelled):
            raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("gone"), "OSError: gone"),
        (asyncio.CancelledError(), "TimeoutError: append timed out after 2 s"),
        (GeneratorExit(), None),
    ],
)
@pytest.mark.filterwarnings("ignore:rung. journal failed")
def test_a_last_word_that_cannot_be_kept(error: BaseException, said: str | None) -> None:
    """A journal that breaks then does not stand in the way either; that is recorded."""

    async def main() -> Outcome[Any]:
        task = await begun(Broken(error))
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return outcome_of(caught.value)

    crashes = [event.error for event in asyncio.run(main()).events if isinstance(event, ev.Crashed)]
    assert crashes == ([] if said is None else [said])


def test_nobody_drives_it_any_more() -> None:
    """A coroutine that is dropped cannot await anything: it ends without a complaint."""
    journal = Kept()
    work: Any = rung.recover(hang, "x", **alone(journal=journal))

    async def main() -> None:
        work.send(None)

    asyncio.run(main())
    work.close()
    assert journal.events
    plain: Any = rung.recover(hang, "x", **alone())

    async def other() -> None:
        plain.send(None)

    asyncio.run(other())
    plain.close()


class Later:
    """A journal whose last word is a future."""

    def __init__(self, word: Future[None]) -> None:
        self.word = word

    def append(self, _incident: str, _first: int, events: Sequence[ev.Event]) -> Future[None]:
        done: Future[None] = Future()
        done.set_result(None)
        return self.word if isinstance(events[-1], ev.Cancelled) else done


class Slow(Future[None]):
    """Does not come in time."""

    def exception(self, timeout: float | None = None) -> BaseException | None:
        assert timeout is not None
        raise TimeoutError


@pytest.mark.parametrize(("word", "crashes"), [(Future[None](), 0), (Future[None](), 1), (Slow(), 1)])
@pytest.mark.filterwarnings("ignore:rung. journal failed")
def test_blocking(word: Future[None], crashes: int) -> None:
    """Ctrl-C waits for the journal's last word, within reason; what went wrong with it is recorded."""
    if crashes:
        word.set_exception(OSError("gone"))
    else:
        word.set_result(None)

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        rung.recover_sync(stop, "x", **alone(journal=Later(word)))
    events = outcome_of(caught.value).events
    assert sum(isinstance(event, ev.Crashed) for event in events) == crashes
