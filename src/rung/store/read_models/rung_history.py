"""Rung history of an incident: when it entered and left each rung, its attempts there, and the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.store.read_models.batch import ROWS

if TYPE_CHECKING:
    from rung.store.read_models.batch import ReadModelBatch

_PLACE, _LEFT, _TRIES, _SECONDS, _DOLLARS, _RESULT = (
    ROWS["level"].index(name) for name in ("place", "left_at", "tries", "seconds", "dollars", "result")
)


class RungHistory:
    """Row of the incident's current rung; every change is added to the batch."""

    def __init__(self, incident: str) -> None:
        self.incident = incident
        self.row: list[Any] | None = None

    def enter(self, n: int, place: int, name: str, kind: str, at: float, result: str, changes: ReadModelBatch) -> None:
        """Enter a rung by a decision; entering the current rung again continues its row."""
        row = self.row
        if row is not None and row[_PLACE] == place and row[_LEFT] is None:
            if result != "ended":
                row[_RESULT] = result
                changes.put("level", *row)
            return
        self._leave(at, changes)
        self.row = [self.incident, n, place, name, kind, at, None, 0, 0.0, 0.0, result]
        changes.put("level", *self.row)

    def record_attempt(self, seconds: float, dollars: float, changes: ReadModelBatch) -> None:
        """Count an attempt on the current rung."""
        if self.row is not None:
            self.row[_TRIES] += 1
            self.row[_SECONDS] += seconds
            self.row[_DOLLARS] += dollars
            self.row[_RESULT] = "open"
            changes.put("level", *self.row)

    def charge(self, dollars: float, changes: ReadModelBatch) -> None:
        """Add a cost that became known later."""
        if self.row is not None:
            self.row[_DOLLARS] += dollars
            changes.put("level", *self.row)

    def skip(self, place: int, at: float, changes: ReadModelBatch) -> None:
        """Mark the current rung as skipped: it could not change the request."""
        if self.row is not None and self.row[_PLACE] == place and self.row[_LEFT] is None:
            self.row[_RESULT], self.row[_LEFT] = "skipped", at
            changes.put("level", *self.row)

    def end(self, at: float, result: str, changes: ReadModelBatch) -> None:
        """Leave the current rung because the incident ended; a non-empty `result` replaces the rung's own."""
        if self.row is not None and self.row[_LEFT] is None:
            self.row[_RESULT] = result or self.row[_RESULT]
            self._leave(at, changes)

    def _leave(self, at: float, changes: ReadModelBatch) -> None:
        row = self.row
        if row is not None and row[_LEFT] is None:
            row[_LEFT] = at
            if row[_RESULT] == "open":
                row[_RESULT] = "failed" if row[_TRIES] else "ended"
            changes.put("level", *row)
