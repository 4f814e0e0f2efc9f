"""Queries about single incidents: their events, their attempts, and the open incident of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.domain.errors import ConfigError
from rung.core.domain.event_codec import from_json
from rung.store.read_models.batch import ROWS
from rung.store.read_models.event_body import event_table, shown_event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.events import Event
    from rung.store.backends.port import Readable

_COLUMNS: Final = tuple(ROWS["incident"])
_INCIDENT: Final = f"SELECT {', '.join(_COLUMNS)} FROM incident"  # noqa: S608  # our own names
_DURATIONS: Final = """
    SELECT incident.project, incident.ladder, incident.agent, attempt.seconds
      FROM attempt JOIN incident ON incident.id = attempt.incident
     WHERE attempt.ok = 1 ORDER BY attempt.at DESC LIMIT ?"""


_SIMILAR: Final = """
    SELECT attempt.seconds FROM incident mine
      JOIN incident ON incident.project = mine.project AND incident.ladder = mine.ladder AND incident.pattern = mine.pattern
      JOIN attempt ON attempt.incident = incident.id
     WHERE mine.id = ? AND mine.pattern <> '' AND attempt.model = ? AND attempt.agent = ? AND attempt.ok = 1
     ORDER BY attempt.at DESC LIMIT ?"""


class FailureCount(NamedTuple):
    """Occurrences of a failure in a project: number, first and last time."""

    times: int
    first_at: float
    last_at: float


class Duration(NamedTuple):
    """Duration of a successful attempt."""

    project: str
    ladder: str
    agent: str
    seconds: float


# -- events -------------------------------------------------------------------------------------------


def event_bodies(database: Readable, incident: str) -> list[dict[str, Any]]:
    """Return the events of an incident as JSON objects, in order."""
    rows = database.read("SELECT body FROM event WHERE incident = ? ORDER BY n", (incident,))
    return [event_table(body) for (body,) in rows]


def readable_events(database: Readable, incidents: Sequence[str]) -> dict[str, list[Event]]:
    """Return the events of several incidents, in order; events written by a newer version of Rung are skipped."""
    events: dict[str, list[Event]] = {name: [] for name in incidents}
    if not events:
        return events
    rows = database.read(
        f"SELECT incident, body FROM event WHERE incident IN ({placeholders(events)}) ORDER BY incident, n",  # noqa: S608  # placeholders
        list(events),
    )
    for name, body in rows:
        try:
            events[name].append(from_json(event_table(body)))
        except ConfigError:
            continue
    return events


def rung_names(database: Readable, incident: str) -> tuple[str, ...]:
    """Return the names of the rungs of an incident's ladder, from its first event."""
    rows = database.read("SELECT body FROM event WHERE incident = ? AND n = 0", (incident,))
    return tuple(shown_event(rows[0][0]).get("terms", {}).get("rungs", ())) if rows else ()


# -- incidents ----------------------------------------------------------------------------------------


def last_incident(database: Readable) -> list[dict[str, Any]]:
    """Return the row of the incident that was opened last; empty when there is none."""
    return [_as_dict(row) for row in database.read(f"{_INCIDENT} ORDER BY opened_at DESC, id DESC LIMIT 1")]


def incidents_named(database: Readable, name: str, limit: int) -> list[dict[str, Any]]:
    """Return the row of the incident with this id, otherwise the rows of those with this prefix."""
    rows = database.read(f"{_INCIDENT} WHERE id = ?", (name,))
    if not rows and name:
        by_prefix = f"{_INCIDENT} WHERE substr(id, 1, ?) = ? ORDER BY id LIMIT ?"
        rows = database.read(by_prefix, (len(name), name, limit))
    return [_as_dict(row) for row in rows]


def open_incidents(database: Readable, session: str, agent: str | None = None) -> list[str]:
    """Return the ids of the open incidents of a session, the latest first."""
    rows = database.read(
        "SELECT id, agent FROM incident WHERE session = ? AND status = 'open' ORDER BY opened_at DESC", (session,)
    )
    return [name for name, its_agent in rows if agent is None or its_agent == agent]


def open_incident_by_session(database: Readable, sessions: Sequence[str]) -> dict[str, str]:
    """Return the id of the open incident of each of these sessions that has one."""
    if not sessions:
        return {}
    return dict(
        database.read(
            f"SELECT session, MAX(id) FROM incident WHERE session IN ({placeholders(sessions)}) AND status = 'open'"  # noqa: S608  # placeholders
            " GROUP BY session",
            sessions,
        )
    )


def troubled_incidents(database: Readable, session: str, limit: int) -> list[tuple[str, str]]:
    """Return the id and the status of a session's incidents with a failure, the earliest first."""
    rows = database.read(
        "SELECT id, status FROM incident WHERE session = ? AND failures > 0 ORDER BY opened_at, id LIMIT ?",
        (session, limit),
    )
    return [(name, status) for name, status in rows]


def incident_to_retry(database: Readable, session: str) -> str | None:
    """Return the id of a session's open incident, else of its last with a failure, else of its last."""
    rows = database.read(
        """SELECT id FROM incident WHERE session = ?
            ORDER BY CASE WHEN status = 'open' THEN 0 WHEN failures > 0 THEN 1 ELSE 2 END, opened_at DESC LIMIT 1""",
        (session,),
    )
    return rows[0][0] if rows else None


# -- attempts and failures ----------------------------------------------------------------------------


def attempt_numbers(database: Readable, incident: str) -> dict[int, int]:
    """Return the number of the attempt that each event ended, by the event's position."""
    return dict(database.read("SELECT n, number FROM attempt WHERE incident = ?", (incident,)))


def last_rules(database: Readable, sessions: Sequence[str]) -> dict[str, str]:
    """Return the classification rule of the last failure of each of these sessions."""
    if not sessions:
        return {}
    return dict(
        database.read(
            f"""SELECT a.session, a.rule FROM attempt a
              JOIN (SELECT session, MAX(at) AS at FROM attempt WHERE session IN ({placeholders(sessions)}) AND ok = 0
                     GROUP BY session) b
                ON a.session = b.session AND a.at = b.at WHERE a.ok = 0""",  # noqa: S608  # placeholders
            sessions,
        )
    )


def failure_count(database: Readable, project: str, fingerprint: str) -> FailureCount | None:
    """Return the occurrences of a failure in a project; None when there is none."""
    rows = database.read(
        "SELECT count, first_at, last_at FROM failure_group WHERE project = ? AND fingerprint = ?",
        (project, fingerprint),
    )
    return FailureCount(*rows[0]) if rows else None


def attempt_durations(database: Readable, limit: int) -> list[Duration]:
    """Return the durations of the latest successful attempts, the oldest first."""
    return [Duration(*row) for row in reversed(database.read(_DURATIONS, (limit,)))]


def similar_durations(database: Readable, incident: str, model: str, agent: str, limit: int) -> list[float]:
    """Return the durations of the latest successful attempts in incidents of the same project, ladder and pattern."""
    return [max(0.0, seconds) for (seconds,) in database.read(_SIMILAR, (incident, model, agent, limit))]


def placeholders(values: Sequence[object] | dict[str, Any]) -> str:
    """Return SQL placeholders for these values."""
    return ", ".join("?" * len(values))


def _as_dict(row: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(_COLUMNS, row, strict=True))
