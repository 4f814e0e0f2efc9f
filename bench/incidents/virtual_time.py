"""Virtual time for a whole process: an event loop whose clock jumps to the next timer instead of waiting.

`install` replaces `time.monotonic` and `time.time`, so it must run before the modules that import them by name. Nothing
of the measured code is changed: it reads the clock and sleeps as ever.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

EPOCH_SECONDS: Final = 1_700_000_000.0
_THREAD_SECONDS: Final = 0.001  # real time: the engine calls some functions in threads, which take no virtual time


class _VirtualClock:
    def __init__(self) -> None:
        self.seconds = 1_000.0

    def now(self) -> float:
        return self.seconds


CLOCK: Final = _VirtualClock()


class _JumpingSelector(selectors.SelectSelector):
    """Selector that moves the clock by the time that it should have waited, unless a thread is at work."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if threading.active_count() > 1:
            return super().select(_THREAD_SECONDS if timeout is None else min(timeout, _THREAD_SECONDS))
        if timeout is None:
            raise RuntimeError("every task waits for something that never happens")
        CLOCK.seconds += max(0.0, timeout)
        return super().select(0)


class _InlineExecutor(ThreadPoolExecutor):
    """Executor that calls functions at once: its own threads would stay after the first call, and stop the clock."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # the caller gets it
            future.set_exception(error)
        return future


def install() -> None:
    """Make the clock of this process virtual."""
    time.monotonic = CLOCK.now
    time.time = lambda: EPOCH_SECONDS + CLOCK.seconds


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end on a loop with virtual time."""
    loop = asyncio.SelectorEventLoop(_JumpingSelector())
    loop.set_default_executor(_InlineExecutor())
    try:
        return loop.run_until_complete(work)
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.close()
