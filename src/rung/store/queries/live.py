"""Queries that follow the journal: events and audit entries after a position, for the event stream and `rung log`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.domain.errors import StoreDamaged
from rung.store.read_models.event_body import UNREADABLE_BODY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rung.store.backends.port import Readable, Row

PAGE_EVENTS: Final = 1_000
_NO_END: Final = 2**62
_STREAMED: Final = """
    SELECT e.seq, e.incident, e.n, e.at, e.name, e.body,
           COALESCE(i.project, ''), COALESCE(i.session, ''), COALESCE(i.status, '')
      FROM event e LEFT JOIN incident i ON i.id = e.incident
     WHERE e.seq > ? AND e.seq <= ? ORDER BY e.seq LIMIT ?"""
_LOGGED: Final = """
    SELECT e.seq, e.incident, e.n, e.at, e.body, COALESCE(a.number, 0)
      FROM event e
      JOIN incident i ON i.id = e.incident
      LEFT JOIN attempt a ON a.incident = e.incident AND a.n = e.n"""
_FILTERS: Final = {
    "project": "i.project = ?",
    "session": "i.session = ?",
    "kind": "EXISTS (SELECT 1 FROM attempt f WHERE f.incident = e.incident AND f.kind = ?)",
}


class StreamedEvent(NamedTuple):
    """Event with its position in the journal and its incident's state."""

    seq: int
    incident: str
    n: int
    at: float
    name: str
    body: str
    project: str
    session: str
    status: str


class AuditedAct(NamedTuple):
    """Entry of the audit trail, without its details."""

    seq: int
    at: float
    who: str
    action: str
    subject: str


class LoggedEvent(NamedTuple):
    """Event with its position in the journal and the number of the attempt it ended."""

    seq: int
    incident: str
    n: int
    at: float
    body: str
    number: int


def last_event(database: Readable) -> int:
    """Return the position of the last event; 0 when there is none."""
    ((seq,),) = database.read("SELECT COALESCE(MAX(seq), 0) FROM event")
    return int(seq)


def last_act(database: Readable) -> int:
    """Return the position of the last audit entry; 0 when there is none."""
    ((seq,),) = database.read("SELECT COALESCE(MAX(seq), 0) FROM audit")
    return int(seq)


def streamed_events(database: Readable, after: int, limit: int, upto: int = _NO_END) -> list[StreamedEvent]:
    """Return the events after a position, in order."""
    try:
        rows = database.read(_STREAMED, (after, upto, limit))
    except StoreDamaged:  # one event is not UTF-8: the others are shown
        seqs = database.read(
            "SELECT e.seq FROM event e WHERE e.seq > ? AND e.seq <= ? ORDER BY e.seq LIMIT ?", (after, upto, limit)
        )
        rows = [row for (seq,) in seqs for row in _read_damaged(database, _STREAMED, (seq - 1, seq, 1))]
    return [StreamedEvent(*row) for row in rows]


def _read_damaged(database: Readable, sql: str, values: Sequence[Any]) -> list[Row]:
    """Read one event, without its body if that cannot be read."""
    try:
        return database.read(sql, values)
    except StoreDamaged:
        return database.read(sql.replace("e.body", f"'{UNREADABLE_BODY}'"), values)


def acts_after(database: Readable, after: int, limit: int) -> list[AuditedAct]:
    """Return the audit entries after a position, in order."""
    rows = database.read(
        "SELECT seq, at, who, action, subject FROM audit WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)
    )
    return [AuditedAct(*row) for row in rows]


def latest_events(database: Readable, filters: Mapping[str, str | None], upto: int, limit: int) -> list[LoggedEvent]:
    """Return the latest events up to a position, in order. Filters: project, session, kind of any failure."""
    return _logged(database, filters, ["e.seq <= ?"], [upto], f"DESC LIMIT {limit}")[::-1]


def events_between(
    database: Readable, filters: Mapping[str, str | None], after: int, upto: int, page: int = PAGE_EVENTS
) -> Iterator[LoggedEvent]:
    """Yield the events after one position and up to another, in order, read in pages."""
    while rows := _logged(database, filters, ["e.seq > ?", "e.seq <= ?"], [after, upto], f"ASC LIMIT {page}"):
        yield from rows
        after = rows[-1].seq


def _logged(
    database: Readable, filters: Mapping[str, str | None], terms: list[str], values: list[Any], order: str
) -> list[LoggedEvent]:
    chosen = [(_FILTERS[name], value) for name, value in filters.items() if value is not None]
    clause = " AND ".join([*(term for term, _ in chosen), *terms])
    values = [*(value for _, value in chosen), *values]
    try:
        rows = database.read(f"{_LOGGED} WHERE {clause} ORDER BY e.seq {order}", values)
    except StoreDamaged:  # one event is not UTF-8: the others are shown
        begin = _LOGGED[: _LOGGED.index("e.incident")].rstrip(" ,")
        found = _LOGGED[_LOGGED.index("FROM event") :]
        seqs = database.read(f"{begin} {found} WHERE {clause} ORDER BY e.seq {order}", values)
        rows = [row for (seq,) in seqs for row in _read_damaged(database, f"{_LOGGED} WHERE e.seq = ?", (seq,))]
    return [LoggedEvent(*row) for row in rows]
