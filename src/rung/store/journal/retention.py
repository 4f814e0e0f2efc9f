"""Keeping a journal small and sound: what is old is taken out whole, counts stay, and what should add up is added up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.domain.errors import ConfigError
from rung.core.domain.events import Status

if TYPE_CHECKING:
    from rung.store.backends.port import BackendConnection
    from rung.store.journal.journal import Journal

BATCH: Final = 200  # incidents in one transaction: other writers wait no longer than that takes
ROUNDS: Final = 8
_PARTS: Final = ("event", "attempt", "model_change", "level", "ask", "crash")
# A failed attempt says whether it was made at all. In a text within the JSON these quotes would be escaped.
_TRIED: Final = """(name = 'attempt_succeeded' OR (name = 'attempt_failed' AND body NOT LIKE '%"made":false%'))"""
_SIZED: Final = """
    SELECT touched_at FROM incident WHERE ended_at IS NOT NULL ORDER BY touched_at LIMIT 1 OFFSET ?"""


class PruneResult(NamedTuple):
    """What was taken out."""

    incidents: int
    events: int


class IntegrityFinding(NamedTuple):
    """Something that was looked at, whether it is as it should be, and what was seen."""

    what: str
    ok: bool
    seen: str


def prune(
    journal: Journal,
    *,
    older_than: float | None = None,
    max_bytes: int | None = None,
    project: str | None = None,
    batch: int = BATCH,
) -> PruneResult:
    """Take out closed incidents: those last touched before a moment, and the oldest until it is small enough.

    Their events, attempts, questions, requests and how their prompts began go with them; counts, groups and sessions stay. An open
    incident is never touched. With `max_bytes` the space is given back; otherwise `vacuum` does that.
    """
    if older_than is None and max_bytes is None:
        raise ConfigError("prune", None, "an age, a size, or both")
    gone = PruneResult(0, 0) if older_than is None else _before(journal, older_than, project, batch)
    if max_bytes is not None:
        more = _down_to(journal, max_bytes, project)
        gone = PruneResult(gone.incidents + more.incidents, gone.events + more.events)
    return gone


def vacuum(journal: Journal) -> tuple[int, int]:
    """Give back the space of what was deleted, and wipe it; bytes before and after."""
    journal.flush()
    before = journal.backend.size()
    connection = journal.backend.connect(write=True)
    try:
        connection.execute("VACUUM")
        if _is_sqlite(connection):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
    return before, journal.backend.size()


def was_pruned(journal: Journal) -> bool:
    """Do the counts know of more attempts than there are events of? Made again from them they would forget."""
    ((counted, told),) = journal.read(
        f"SELECT (SELECT COALESCE(SUM(n), 0) FROM by_hour), (SELECT count(*) FROM event WHERE {_TRIED})"  # noqa: S608  # our own names
    )
    return bool(counted > told)


def check(journal: Journal) -> list[IntegrityFinding]:
    """Is the file sound, and does what was read off the events add up?"""
    found = []
    connection = journal.backend.connect(write=False)
    try:
        if _is_sqlite(connection):
            said = [row[0] for row in connection.execute("PRAGMA integrity_check(5)")]
            found.append(IntegrityFinding("the file", said == ["ok"], "; ".join(said)))
        ((*numbers,),) = connection.execute(_SUMS)  # one statement: nobody writes between two of its counts
    finally:
        connection.close()
    told, attempts, hours, days, patterns, latencies, bad, messages, closed, ends, lost, gaps, opened = (
        int(n) for n in numbers
    )
    found += [
        IntegrityFinding("attempts", told == attempts, f"{attempts} rows, {told} in events"),
        _counts("hours", hours, attempts, "attempts"),
        IntegrityFinding("days", days == hours, f"{days} counted, {hours} by hour"),
        IntegrityFinding("patterns", patterns == hours, f"{patterns} counted, {hours} by hour"),
        IntegrityFinding("latencies", latencies == hours, f"{latencies} counted, {hours} by hour"),
        IntegrityFinding("messages", messages == bad, f"{messages} counted, {bad} failures by hour"),
        _counts("ends", ends, closed, "closed incidents"),
        IntegrityFinding("incidents", lost == 0, f"{lost} have events and no row; {closed} closed, {opened} open"),
        IntegrityFinding("order", gaps == 0, f"{gaps} incidents lack an event between two others"),
    ]
    return found


_SUMS: Final = f"""
    SELECT (SELECT count(*) FROM event WHERE {_TRIED}),
           (SELECT count(*) FROM attempt),
           (SELECT COALESCE(SUM(n), 0) FROM by_hour),
           (SELECT COALESCE(SUM(n), 0) FROM by_day),
           (SELECT COALESCE(SUM(n), 0) FROM by_pattern),
           (SELECT COALESCE(SUM(n), 0) FROM by_latency),
           (SELECT COALESCE(SUM(n), 0) FROM by_hour WHERE kind <> ''),
           (SELECT COALESCE(SUM(n), 0) FROM by_message),
           (SELECT count(*) FROM incident WHERE ended_at IS NOT NULL),
           (SELECT COALESCE(SUM(n), 0) FROM by_end),
           (SELECT count(*) FROM event e WHERE e.n = 0 AND NOT EXISTS (SELECT 1 FROM incident i WHERE i.id = e.incident)),
           (SELECT count(*) FROM (SELECT incident FROM event GROUP BY incident HAVING count(*) <> MAX(n) + 1) AS holes),
           (SELECT count(*) FROM incident WHERE ended_at IS NULL)"""  # noqa: S608  # our own names


def _counts(what: str, counted: int, rows: int, noun: str) -> IntegrityFinding:
    """Counts may know of more than there is: of what was pruned. Never of less."""
    more = f", {counted - rows} of them pruned since" if counted > rows else ""
    return IntegrityFinding(what, counted >= rows, f"{counted} counted, {rows} {noun} kept{more}")


def _before(journal: Journal, moment: float, project: str | None, batch: int) -> PruneResult:
    incidents = events = 0
    for status in Status:  # one at a time: so the index knows which are next
        while True:
            gone = journal.write(
                lambda connection, status=status: _take_out(connection, status, moment, project, batch),  # type: ignore[misc]  # a default binds
                lambda _: False,
            ).result()
            incidents, events = incidents + gone.incidents, events + gone.events
            if gone.incidents < batch:
                break
    return PruneResult(incidents, events)


def _take_out(
    connection: BackendConnection, status: str, moment: float, project: str | None, batch: int
) -> PruneResult:
    """One batch, whole. A request goes when nobody has made it since."""
    whose, values = ("", []) if project is None else (" AND project = ?", [project])
    rows = connection.execute(
        "SELECT id, request, pattern, touched_at FROM incident"  # noqa: S608  # our own names
        f" WHERE status = ? AND touched_at < ? AND ended_at IS NOT NULL{whose} ORDER BY touched_at LIMIT {batch}",
        [status, moment, *values],
    )
    events = 0
    for incident, request, pattern, touched in rows:
        changed = connection.execute("SELECT body FROM event WHERE incident = ? AND name = 'changed'", (incident,))
        for digest in {request, *(json.loads(body)["digest"] for (body,) in changed)}:
            connection.execute("DELETE FROM request WHERE digest = ? AND at <= ?", (digest, touched))
        connection.execute("DELETE FROM pattern WHERE id = ? AND at <= ?", (pattern, touched))
        ((count,),) = connection.execute("SELECT count(*) FROM event WHERE incident = ?", (incident,))
        events += int(count)
        for table in _PARTS:
            connection.execute(f"DELETE FROM {table} WHERE incident = ?", (incident,))  # noqa: S608  # our own names
        connection.execute("DELETE FROM incident WHERE id = ?", (incident,))
    return PruneResult(len(rows), events)


def _down_to(journal: Journal, max_bytes: int, project: str | None) -> PruneResult:
    """The oldest, by their share of the size, until it is small enough or nothing closed is left."""
    if max_bytes < 0:
        raise ConfigError("max_bytes", max_bytes, "0 or more")
    incidents = events = 0
    for _ in range(ROUNDS):
        _, size = vacuum(journal)
        ((closed,),) = journal.read("SELECT count(*) FROM incident WHERE ended_at IS NOT NULL")
        if size <= max_bytes or not closed:
            break
        surplus = min(int(closed), 1 + int(closed * (1 - max_bytes / size)))
        rows: list[Any] = journal.read(_SIZED, (surplus,))
        gone = _before(journal, rows[0][0] if rows else float("inf"), project, BATCH)
        incidents, events = incidents + gone.incidents, events + gone.events
        if not gone.incidents:
            break
    else:
        vacuum(journal)
    return PruneResult(incidents, events)


def _is_sqlite(connection: BackendConnection) -> bool:
    return type(connection).__name__ == "SqliteConnection"
