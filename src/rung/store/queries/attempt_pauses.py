"""Pauses between the attempts of an incident: as decided, or as they were if a person cut one short."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from rung.store.queries.incidents import placeholders
from rung.store.read_models.event_body import shown_event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.store.backends.port import Readable
    from rung.store.queries.listing_rows import AttemptRow

_EVENTS: Final = """
    SELECT incident, n, CASE WHEN name = 'decided' THEN body ELSE '' END FROM event
     WHERE incident IN ({}) AND name IN ('decided', 'attempt_failed', 'attempt_succeeded') ORDER BY incident, n"""


def pauses_after(database: Readable, rows: Sequence[AttemptRow]) -> dict[tuple[str, int], float]:
    """Return the seconds between each attempt and the next one of its incident, by incident and position.

    `rows` are in order. An attempt that was rejected before it began has no row: the waits around it add up.
    """
    decided = _decided_waits(database, rows)
    ended: dict[str, AttemptRow] = {}
    for row in rows:
        before = ended.get(row.incident)
        if before is not None:
            key, measured = (before.incident, before.n), max(0.0, row.at - row.seconds - before.at)
            decided[key] = min(decided.get(key, 0.0), measured)
        ended[row.incident] = row
    return decided


def _decided_waits(database: Readable, rows: Sequence[AttemptRow]) -> dict[tuple[str, int], float]:
    incidents = sorted({row.incident for row in rows if not row.ok})
    if not incidents:
        return {}
    made = {(row.incident, row.n) for row in rows}
    waits: dict[tuple[str, int], float] = defaultdict(float)
    attempt, wait = ("", -1), 0.0
    for incident, n, body in database.read(_EVENTS.format(placeholders(incidents)), incidents):
        if incident != attempt[0]:
            waits[attempt] += wait
            attempt, wait = (incident, -1), 0.0
        if body:  # a decision; a rung that could not be applied is followed by another one
            decision = shown_event(body).get("decision")
            wait = float(decision.get("wait") or 0.0) if isinstance(decision, dict) else 0.0
            continue
        waits[attempt] += wait
        attempt, wait = ((incident, n) if (incident, n) in made else attempt), 0.0
    waits[attempt] += wait
    return waits
