"""What asyncio, concurrent.futures and multiprocessing raise."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import TYPE_CHECKING

from rung.core.classify.evidence import evidence_of
from rung.core.domain.failures import Phase
from tests.adapters.errors.loopback import assert_survives_wrapping, raised_by

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence


def seen(error: BaseException) -> Evidence:
    assert_survives_wrapping(error)
    return evidence_of(error)


def breaks() -> None:
    raise ValueError("worker said no")


def dies() -> None:
    os._exit(1)


def test_time_is_up_in_asyncio() -> None:
    """A TimeoutError without a word has its class for text."""

    async def run() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()

    evidence = seen(raised_by(lambda: asyncio.run(run())))
    assert evidence.exceptions[0] == "TimeoutError"
    assert evidence.text.startswith("TimeoutError")


def test_time_is_up_for_a_future() -> None:
    """concurrent.futures raises the builtin one."""
    with ThreadPoolExecutor() as pool:
        gate = Future[None]()
        waiting = pool.submit(gate.result)
        evidence = seen(raised_by(lambda: waiting.result(0.01)))
        gate.set_result(None)
    assert "TimeoutError" in evidence.exceptions


def test_time_is_up_for_a_process() -> None:
    """A TimeoutError that is not the builtin one is named so too."""
    evidence = seen(multiprocessing.TimeoutError())
    assert evidence.exceptions[0] == "multiprocessing.context.TimeoutError"
    assert "TimeoutError" in evidence.exceptions


def test_an_error_of_a_worker_process() -> None:
    """The worker's stack is the cause of its exception; it is not quoted as another error."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("forkserver")) as pool:
        evidence = seen(raised_by(lambda: pool.submit(breaks).result()))
        assert evidence.text == "worker said no"
        assert evidence.exceptions[0] == "ValueError"


def test_a_worker_process_that_dies() -> None:
    """The pool's own words and class."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("forkserver")) as pool:
        evidence = seen(raised_by(lambda: pool.submit(dies).result()))
    assert "concurrent.futures.process.BrokenProcessPool" in evidence.exceptions
    assert "terminated abruptly" in evidence.text


def test_a_stream_that_ends_early() -> None:
    """A reader that got less than it was promised."""

    async def run() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(b"half")
        reader.feed_eof()
        await reader.readexactly(10)

    evidence = seen(raised_by(lambda: asyncio.run(run())))
    assert evidence.phase is Phase.STREAM
    assert evidence.exceptions[0] == "asyncio.exceptions.IncompleteReadError"


def test_a_cancelled_future() -> None:
    """A class that says it all is read as any exception is."""
    future = Future[None]()
    future.cancel()
    error = raised_by(future.result)
    assert isinstance(error, CancelledError)
    assert seen(error).text == "CancelledError"
