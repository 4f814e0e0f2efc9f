"""Ending an async attempt whose time is up, at no cost for one that never waits."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any, TypeVar

from rung.core.errors import TimeUp

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

T = TypeVar("T")


async def limited(work: Coroutine[Any, Any, T], seconds: float | None) -> T:
    """Await it, and raise TimeUp when it has not come back in so many seconds."""
    if seconds is None:
        return await work
    try:
        pending = work.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # what the coroutine returned
    return await finish(work, pending, seconds)


async def finish(work: Coroutine[Any, Any, T], pending: Any, seconds: float) -> T:
    """Await the rest of what has been begun and now waits for something; infinite seconds are no limit.

    Until work first waits nothing could interrupt it anyway, so the timer is set only here. Whose
    cancellation it was is asked of the timer: a caller's passes through.
    """
    if seconds == float("inf"):
        return await _rest(work, pending)
    import asyncio

    timer = asyncio.timeout(max(0.0, seconds))
    try:
        async with timer:
            return await _rest(work, pending)
    except TimeoutError:
        if timer.expired():
            raise TimeUp(seconds) from None
        raise


@types.coroutine
def _rest(work: Coroutine[Any, Any, T], pending: Any) -> Generator[Any, Any, T]:
    """The remainder of a coroutine that has already been started and waits for `pending`."""
    while True:
        try:
            yield pending
        except BaseException as error:  # a cancellation, a closing loop: it is the work's to handle
            try:
                pending = work.throw(error)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]  # what the coroutine returned
        else:
            return (yield from work)  # type: ignore[misc]  # a coroutine, under types.coroutine
