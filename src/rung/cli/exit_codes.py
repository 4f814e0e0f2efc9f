"""The exit codes of `rung run` and `rung worker`. Documented, so they never change."""

from __future__ import annotations

from typing import Final

from rung.core.domain.events import Status

EXITS: Final = {
    Status.SUCCEEDED: 0,
    Status.RECOVERED: 0,
    Status.FAILED: 1,
    Status.PARTIAL: 3,
    Status.BLOCKED: 4,
}
USAGE: Final = 2
INTERRUPTED: Final = 130
NOTHING_TO_CLAIM: Final = 3  # rung worker claim
CLAIM_BLOCKED: Final = 5  # rung worker claim: somebody else has it
STALE_CLAIM: Final = 6  # rung worker: the task is not this worker's any more
