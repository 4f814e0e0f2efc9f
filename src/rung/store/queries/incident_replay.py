"""Recorded incidents, read back as events: what a backtest is made on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from rung.core.domain.errors import ConfigError
from rung.core.domain.event_codec import from_json
from rung.core.domain.events import Opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.core.domain.events import Event
    from rung.store.backends.port import Database

PAGE: Final = 200  # incidents whose events are read at once


def ended_incidents(
    journal: Database,
    unreadable: list[str],
    *,
    since: float | None = None,
    project: str | None = None,
    page_size: int = PAGE,
) -> Iterator[list[Event]]:
    """The events of each incident that has ended and in which something failed, oldest first."""
    terms, values = ["status <> 'open'", "failures > 0"], []
    for term, value in (("opened_at >= ?", since), ("project = ?", project)):
        if value is not None:
            terms.append(term)
            values.append(value)
    chosen = f"SELECT id FROM incident WHERE {' AND '.join(terms)} ORDER BY opened_at, id"  # noqa: S608  # our own names
    ids = [name for (name,) in journal.read(chosen, values)]
    for start in range(0, len(ids), page_size):
        page = ids[start : start + page_size]
        marks = ", ".join("?" * len(page))
        bodies: dict[str, list[str]] = {name: [] for name in page}
        read = f"SELECT incident, body FROM event WHERE incident IN ({marks}) ORDER BY incident, n"  # noqa: S608  # marks
        for name, body in journal.read(read, page):
            bodies[name].append(body)
        for name in page:
            events = _events(bodies[name])
            if events:
                yield events
            else:
                unreadable.append(name)


def _events(bodies: list[str]) -> list[Event]:
    """The events; none where they are no longer there, or of a version we do not know."""
    try:
        events = [from_json(json.loads(body)) for body in bodies]
    except ConfigError:
        return []
    return events if events and isinstance(events[0], Opened) else []
