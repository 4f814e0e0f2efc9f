"""Runs blocking functions in daemon threads, so that they do not block the event loop."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rung.core.domain.incident import Incident
    from rung.core.domain.request import Request

T = TypeVar("T")


def in_thread(function: Callable[[Request, Incident], T]) -> Callable[[Request, Incident], Awaitable[T]]:
    """Return the function as a port that runs in a thread."""

    async def call(request: Request, incident: Incident) -> T:
        return await run_in_thread(lambda: function(request, incident))

    return call


async def run_in_thread(work: Callable[[], T]) -> T:
    """Run a blocking function in a daemon thread: unlike an executor, it never delays the end of the event loop."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def deliver(setter: Callable[[Any], None], result: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed, so no caller waits any more
            loop.call_soon_threadsafe(lambda: None if future.done() else setter(result))

    def run() -> None:
        try:
            deliver(future.set_result, work())
        except BaseException as error:  # noqa: BLE001  # the caller gets every exception
            deliver(future.set_exception, error)

    threading.Thread(target=run, daemon=True).start()
    return await future
