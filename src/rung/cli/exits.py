"""The exit codes of `rung run`. Documented, so they never change."""

from __future__ import annotations

from typing import Final

from rung.core.events import Status

EXITS: Final = {
    Status.SUCCEEDED: 0,
    Status.RECOVERED: 0,
    Status.FAILED: 1,
    Status.PARTIAL: 3,
    Status.BLOCKED: 4,
}
USAGE: Final = 2
INTERRUPTED: Final = 130
