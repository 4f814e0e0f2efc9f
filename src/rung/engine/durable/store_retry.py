"""Retries of critical writes while the store is unavailable, for less time than a lease lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.domain.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

RETRY_DELAYS_SECONDS: Final = (0.05, 0.2, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0)


def write_with_retry(write: Callable[[], None], sleep: Callable[[float], None]) -> None:
    """Call `write`, retrying while the store is unavailable. Raise StoreUnavailable when the retries are exhausted."""
    for delay in RETRY_DELAYS_SECONDS:
        try:
            return write()
        except StoreUnavailable:
            sleep(delay)
    return write()


async def awrite_with_retry(write: Callable[[], None], sleep: Callable[[float], Awaitable[None]]) -> None:
    """Call `write` in a thread, retrying while the store is unavailable, without blocking the event loop."""
    from asyncio import to_thread

    for delay in RETRY_DELAYS_SECONDS:
        try:
            return await to_thread(write)
        except StoreUnavailable:
            await sleep(delay)
    return await to_thread(write)
