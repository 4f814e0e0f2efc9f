"""The lease of a process that starts or stands by for a conductor."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import CONDUCTOR
from rung.core.domain.errors import ConductorLeaseHeld, StoreUnavailable
from rung.crew.watchdog import ENDED_STATES, START_SECONDS
from rung.engine.process_identity import is_gone
from rung.store.crew.table_patience import pause

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.crew.settings import ConductorSettings
    from rung.store.crew.conductor_lease import ConductorLease
    from rung.store.crew.table import CrewTable

_POLLS_PER_LEASE: Final = 3
_POLL_SECONDS: Final = 0.5


def lease_seconds(settings: ConductorSettings) -> float:
    """Return for how long a heartbeat renews the conductor's lease: several polls, and no less than `conductor_stale`."""
    return max(settings.conductor_stale, _POLLS_PER_LEASE * settings.poll)


def has_ended(table: CrewTable) -> bool:
    """Return whether the crew has ended: its conductor says so, and nobody conducts it."""
    row = table.task(CONDUCTOR)
    return row is not None and row.state in ENDED_STATES and not table.conductor_lease().is_live


def stand_by(
    table: CrewTable,
    seconds: float,
    log: Callable[[str], None] = lambda _: None,
    *,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> ConductorLease | None:
    """Wait until the lease is free, and take it. Return None if the crew ends first.

    While the table is away, its conductor cannot renew its lease. So for `seconds` after it is back, an expired lease is
    not taken over, unless its holder is gone.
    """
    expires_count_from, tries = now(), 0
    while True:
        try:
            if has_ended(table):
                return None
            is_free = _is_abandoned if tries or now() < expires_count_from else None
            return table.acquire_lease(START_SECONDS, is_free=is_free)
        except ConductorLeaseHeld:
            if tries:
                tries, expires_count_from = 0, now() + seconds
        except StoreUnavailable as error:
            tries += 1
            if tries == 1:
                log(f"the crew's table is unavailable, trying again: {error}")
        sleep(pause(tries) if tries else _POLL_SECONDS)


def _is_abandoned(lease: ConductorLease) -> bool:
    return not lease.holder or is_gone(lease.process)
