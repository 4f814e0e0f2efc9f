"""How often the rungs of a ladder helped in a project: read for `learn`, and kept for some minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.recovery.learned_skips import RungCount

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.store.backends.port import Readable

MAX_INCIDENTS: Final = 5_000  # latest ones that are read
REFRESH_SECONDS: Final = 300.0  # age from which the counts are read again
MAX_CACHED: Final = 64  # projects and ladders whose counts are kept

# A try answers the failure of the attempt before it. A last turn that no check accepted succeeds without a recovery.
_COUNTS: Final = """
    SELECT model, kind, rung, number, COUNT(*), SUM(succeeded)
      FROM (SELECT i.first_model AS model, a.rung AS rung,
                   LAG(a.kind) OVER (PARTITION BY a.incident ORDER BY a.n) AS kind,
                   ROW_NUMBER() OVER (PARTITION BY a.incident, a.rung ORDER BY a.n) AS number,
                   CASE WHEN a.ok = 1 AND i.status = 'recovered' THEN 1 ELSE 0 END AS succeeded
              FROM (SELECT id, first_model, status FROM incident
                     WHERE project = ? AND opened_at >= ? AND failures > 0 AND ladder = ? AND status <> 'open'
                     ORDER BY opened_at DESC LIMIT ?) AS i
              JOIN attempt a ON a.incident = i.id) AS tries
     WHERE rung <> '' AND kind <> ''
     GROUP BY model, kind, rung, number
     ORDER BY model, kind, rung, number"""


def rung_counts(journal: Readable, project: str, ladder: str, since: float) -> list[RungCount]:
    """Return the tries of a ladder's rungs in a project's ended incidents since a time."""
    rows = journal.read(_COUNTS, (project, since, ladder, MAX_INCIDENTS))
    return [
        RungCount(model, kind, rung, int(n), int(tried), int(worked)) for model, kind, rung, n, tried, worked in rows
    ]


class RungCountCache:
    """Counts by project and ladder, read again when they are too old. Threads may share it."""

    def __init__(self, journal: Readable) -> None:
        self._journal = journal
        self._cache: dict[tuple[str, str, float], tuple[float, Sequence[RungCount]]] = {}

    def counts(self, project: str, ladder: str, window: float, now: float) -> Sequence[RungCount]:
        """Return the counts of the last `window` seconds, as they were at most some minutes ago."""
        key = (project, ladder, window)
        cached = self._cache.get(key)
        if cached is None or not 0 <= now - cached[0] < REFRESH_SECONDS:
            if len(self._cache) >= MAX_CACHED:
                self._cache.clear()
            cached = self._cache[key] = (now, rung_counts(self._journal, project, ladder, now - window))
        return cached[1]
