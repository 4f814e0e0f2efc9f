"""DurableFuture: resolved once, and every waiter is woken."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError

import pytest

from rung.store.backends.durable_future import DurableFuture, notify_waiters


def test_answered_before_it_is_asked() -> None:
    """A resolved future returns its result at once, to threads and tasks."""
    ticket: DurableFuture[int] = DurableFuture()
    assert not ticket.done()
    assert ticket.set_result(3)

    async def ask() -> int:
        return await ticket

    assert (ticket.result(), ticket.exception(), asyncio.run(ask())) == (3, None, 3)


def test_first_answer_holds() -> None:
    """Later results are ignored."""
    ticket: DurableFuture[int] = DurableFuture()
    assert ticket.set_result(1)
    assert not ticket.set_exception(ValueError("late"))
    assert not ticket.cancel()
    assert ticket.result() == 1


def test_error() -> None:
    """An exception is raised by `result` and returned by `exception`."""
    ticket: DurableFuture[int] = DurableFuture()
    ticket.set_exception(ValueError("bad"))
    with pytest.raises(ValueError, match="bad"):
        ticket.result()
    assert isinstance(ticket.exception(), ValueError)
    assert not ticket.cancelled()


def test_takes_too_long() -> None:
    """A timed-out wait raises TimeoutError and keeps the result for later."""
    ticket: DurableFuture[int] = DurableFuture()
    with pytest.raises(TimeoutError, match=r"more than 0\.001 s"):
        ticket.result(0.001)
    ticket.set_result(1)
    assert ticket.result(0.001) == 1


@pytest.mark.parametrize("turn", range(20))
def test_nobody_waits_for_ever(turn: int) -> None:
    """Threads that start to wait while it is resolved are all woken."""
    tickets: list[DurableFuture[int]] = [DurableFuture() for _ in range(50)]
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.extend(t.result(30) for t in tickets)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for ticket in tickets:
        ticket.set_result(turn)
    for thread in threads:
        thread.join(30)
    assert found == [turn] * 200


def test_tasks_of_one_loop_are_told_together() -> None:
    """All futures of a batch wake an event loop with one call, from any thread."""

    async def main() -> tuple[list[int], int]:
        tickets: list[DurableFuture[int]] = [DurableFuture() for _ in range(5)]
        loop, words = asyncio.get_running_loop(), 0
        told = loop.call_soon_threadsafe

        def count(*arguments: object) -> object:
            nonlocal words
            words += 1
            return told(*arguments)  # type: ignore[arg-type]

        loop.call_soon_threadsafe = count  # type: ignore[method-assign, assignment]

        async def ask(ticket: DurableFuture[int]) -> int:
            return await ticket

        tasks = [asyncio.ensure_future(ask(ticket)) for ticket in tickets]
        await asyncio.sleep(0)
        for number, ticket in enumerate(tickets):
            ticket.resolve_silently(number)
        thread = threading.Thread(target=notify_waiters, args=(tickets,))
        thread.start()
        thread.join()
        return await asyncio.gather(*tasks), words

    assert asyncio.run(main()) == ([0, 1, 2, 3, 4], 1)


def test_whoever_is_cancelled_gives_it_up() -> None:
    """Cancelling a waiting task cancels the future."""

    async def main() -> DurableFuture[int]:
        ticket: DurableFuture[int] = DurableFuture()

        async def ask() -> int:
            return await ticket

        task = asyncio.ensure_future(ask())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return ticket

    ticket = asyncio.run(main())
    assert ticket.cancelled()
    assert not ticket.set_result(1)
    with pytest.raises(CancelledError):
        ticket.result()


def test_a_loop_that_is_closed() -> None:
    """Waiters of a closed event loop are skipped."""
    ticket: DurableFuture[int] = DurableFuture()
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(_ask(ticket))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert ticket.set_result(1)
    waiting._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001  # left behind on purpose


async def _ask(ticket: DurableFuture[int]) -> int:
    return await ticket


def test_called_back() -> None:
    """A done callback runs once: on resolution, or at once when already resolved."""
    ticket: DurableFuture[int] = DurableFuture()
    called: list[int] = []
    ticket.add_done_callback(lambda told: called.append(told.result()))
    ticket.set_result(1)
    ticket.add_done_callback(lambda told: called.append(told.result() + 1))
    assert called == [1, 2]
