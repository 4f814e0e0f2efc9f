"""Exit codes of `rung run` and `rung worker`. They are a documented contract."""

from __future__ import annotations

from typing import Final

from rung.core.domain.events import Status

EXIT_CODES: Final = {
    Status.SUCCEEDED: 0,
    Status.RECOVERED: 0,
    Status.FAILED: 1,
    Status.PARTIAL: 3,
    Status.BLOCKED: 4,
}
USAGE: Final = 2
TRY_LATER: Final = (
    75  # EX_TEMPFAIL: the run is parked until a limit reopens; the service behind a worker is unavailable
)
INTERRUPTED: Final = 130
NO_TASK_AVAILABLE: Final = 3  # rung worker claim
ALREADY_CONDUCTED: Final = 5  # rung crew run: another process conducts the crew
CLAIM_BLOCKED: Final = 5  # rung worker claim: another worker has the task
STOPPED: Final = 7  # rung crew run: somebody stopped the crew, with rung crew stop or by a signal to its conductor
LEASE_EXPIRED: Final = 6  # rung worker: the task has another worker; rung crew conduct: the crew has another conductor
