"""Reports of an attempt inside a step of a durable engine: its costs, steps and side effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.core.domain.events import StepCompleted
from rung.engine.loop.run import CURRENT, RecoveryRun

if TYPE_CHECKING:
    from contextvars import Token


class StepReports:
    """Collects what the code inside `with` reports by `rung.report_cost`, `report_step` and `mark_side_effect`."""

    def __init__(self) -> None:
        self._run = RecoveryRun()
        self._token: Token[RecoveryRun | None] | None = None

    def __enter__(self) -> None:
        self._token = CURRENT.set(self._run)

    def __exit__(self, *error: object) -> None:
        if self._token is not None:
            CURRENT.reset(self._token)

    def to_json(self) -> dict[str, Any]:
        """Return what was reported so far; only what was reported has a key."""
        run = self._run
        steps = [event.step for event in tuple(run.log) if isinstance(event, StepCompleted)]
        reports = {"dollars": run.attempt_dollars, "side_effects": run.has_visible_effects, "steps": steps}
        return {name: value for name, value in reports.items() if value}
