"""Writing down what must not be forgotten, with a store in trouble: again and again, for less than a lease lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.domain.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

PAUSES: Final = (0.05, 0.2, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0)


def patiently(write: Callable[[], None], sleep: Callable[[float], None]) -> None:
    """Write; Busy only when the store was in trouble all the time."""
    for pause in PAUSES:
        try:
            return write()
        except StoreUnavailable:
            sleep(pause)
    return write()


async def apatiently(write: Callable[[], None], sleep: Callable[[float], Awaitable[None]]) -> None:
    """The same, with the loop free."""
    from asyncio import to_thread

    for pause in PAUSES:
        try:
            return await to_thread(write)
        except StoreUnavailable:
            await sleep(pause)
    return await to_thread(write)
