"""Time limits of plain functions in async recoveries: they run in a thread, so that they never block the event loop.

A thread cannot be interrupted. At its limit it is left behind: its late result is ignored.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from contextvars import copy_context
from time import monotonic
from typing import TYPE_CHECKING, Any

from rung.engine.arguments import is_coroutine_function
from rung.engine.timeouts.async_timeout import await_with_timeout
from rung.engine.timeouts.sync_timeout import limit_error, seconds_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.engine.timeouts.patience import Patience


async def acall_with_timeout(
    function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float | None, patience: Patience | None = None
) -> Any:
    """Call a function or coroutine function. Raise AttemptTimeout after `seconds`, AttemptStalled without patience left.

    Without a limit, a plain function is called in the event loop, as the caller would.
    """
    if (seconds is None and patience is None) or is_coroutine_function(function):
        value = function(*arguments)
        return await await_with_timeout(value, seconds, patience) if hasattr(value, "__await__") else value
    began = monotonic()
    value = await _call_in_thread(function, arguments, seconds, patience)
    if not hasattr(value, "__await__"):
        return value
    left = None if seconds is None else max(0.0, began + seconds - monotonic())
    return await await_with_timeout(value, left, patience)


async def _call_in_thread(
    function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float | None, patience: Patience | None
) -> Any:
    loop, context = asyncio.get_running_loop(), copy_context()
    ended: asyncio.Future[tuple[bool, Any]] = loop.create_future()

    def deliver(result: tuple[bool, Any]) -> None:
        if not ended.done():
            ended.set_result(result)

    def work() -> None:
        try:
            result = (True, context.run(function, *arguments))
        except BaseException as error:  # raised again in the waiting caller
            result = (False, error)
        with suppress(RuntimeError):  # the event loop is closed: nobody waits
            loop.call_soon_threadsafe(deliver, result)

    threading.Thread(target=work, name="rung-attempt", daemon=True).start()
    end = float("inf") if seconds is None else monotonic() + seconds
    while (left := seconds_until(end, patience)) > 0 and not ended.done():
        await asyncio.wait({ended}, timeout=min(left, threading.TIMEOUT_MAX))
    if not ended.done():
        raise limit_error(seconds, patience, left_behind=True)
    ok, value = ended.result()
    if ok:
        return value
    try:
        raise value
    finally:
        del value  # its traceback references this frame: a reference cycle
