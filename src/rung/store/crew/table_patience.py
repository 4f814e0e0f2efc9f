"""Waits for a crew's table that is away: a database server that restarts, a network that is down, a long lock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeVar

from rung.core.domain.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
FIRST_PAUSE_SECONDS: Final = 0.25
MAX_PAUSE_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 300.0  # of a conductor or a watchdog that starts or ends
WORKER_PATIENCE_SECONDS: Final = 3_600.0  # its work goes on meanwhile
COMMAND_PATIENCE_SECONDS: Final = 60.0  # of a command that a person waits for


def pause(tries: int, longest: float = MAX_PAUSE_SECONDS) -> float:
    """Return the seconds to wait after so many failed tries: doubled each time, up to a limit."""
    return min(FIRST_PAUSE_SECONDS * 2.0 ** min(tries - 1, 10), longest)


def patiently(
    action: Callable[[], T],
    log: Callable[[str], None] = lambda _: None,
    seconds: float = PATIENCE_SECONDS,
    *,
    longest_pause: float = MAX_PAUSE_SECONDS,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Run an action that uses the table, again and again while the table is away; the last StoreUnavailable is raised."""
    until, tries = now() + seconds, 0
    while True:
        try:
            return action()
        except StoreUnavailable as error:
            tries += 1
            if now() >= until:
                raise
            if tries == 1:
                log(f"the crew's table is unavailable, trying again: {error}")
            sleep(pause(tries, longest_pause))
