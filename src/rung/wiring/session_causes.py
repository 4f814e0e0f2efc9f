"""Root cause of a recorded session: reads its incidents from the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.recovery.root_cause import RootCause, root_cause
from rung.core.recovery.session_events import steps_of_incidents
from rung.store.queries.incidents import readable_events, troubled_incidents

if TYPE_CHECKING:
    from rung.store.backends.port import Readable

MAX_INCIDENTS: Final = 50  # of a session: its first ones with a failure


def session_root_cause(database: Readable, session: str) -> RootCause | None:
    """Return the root cause of a session's failures; None if it has no incident with a failure."""
    rows = troubled_incidents(database, session, MAX_INCIDENTS)
    if not rows:
        return None
    events = readable_events(database, [name for name, _ in rows])
    steps = steps_of_incidents(events[name] for name, _ in rows)
    return root_cause(steps, rows[-1][1])
