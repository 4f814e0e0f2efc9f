"""Recorded incidents read back as events, for backtests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from rung.core.domain.errors import ConfigError
from rung.core.domain.event_codec import from_json
from rung.core.domain.events import Opened
from rung.store.queries.incidents import placeholders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.core.domain.events import Event
    from rung.store.backends.port import Database

PAGE_INCIDENTS: Final = 200  # incidents whose events are read by one query


def ended_incidents(
    journal: Database,
    unreadable: list[str],
    *,
    since: float | None = None,
    project: str | None = None,
    page_size: int = PAGE_INCIDENTS,
) -> Iterator[list[Event]]:
    """Yield the events of each ended incident with a failure, oldest first; ids of others go to `unreadable`."""
    conditions, values = ["status <> 'open'", "failures > 0"], []
    for term, value in (("opened_at >= ?", since), ("project = ?", project)):
        if value is not None:
            conditions.append(term)
            values.append(value)
    query = f"SELECT id FROM incident WHERE {' AND '.join(conditions)} ORDER BY opened_at, id"  # noqa: S608  # our own names
    ids = [name for (name,) in journal.read(query, values)]
    for start in range(0, len(ids), page_size):
        page = ids[start : start + page_size]

        bodies: dict[str, list[str]] = {name: [] for name in page}
        read = f"SELECT incident, body FROM event WHERE incident IN ({placeholders(page)}) ORDER BY incident, n"  # noqa: S608  # placeholders
        for name, body in journal.read(read, page):
            bodies[name].append(body)
        for name in page:
            events = _events(bodies[name])
            if events:
                yield events
            else:
                unreadable.append(name)


def _events(bodies: list[str]) -> list[Event]:
    """Decode events; return none when they were pruned or written by a newer version."""
    try:
        events = [from_json(json.loads(body)) for body in bodies]
    except ConfigError:
        return []
    return events if events and isinstance(events[0], Opened) else []
