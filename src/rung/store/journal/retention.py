"""Retention and integrity: delete old incidents whole, keep their counts, and check that the counts add up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.domain.errors import ConfigError, StoreDamaged
from rung.core.domain.events import Status
from rung.store.read_models.event_body import event_table
from rung.store.recorded_calls import forget_call

if TYPE_CHECKING:
    from rung.store.backends.port import BackendConnection
    from rung.store.journal.journal import Journal

BATCH_INCIDENTS: Final = 200  # per transaction: bounds how long other writers wait
BATCH_EVENTS: Final = 1_000  # read at a time by a check
MAX_SIZE_ROUNDS: Final = 8  # of deleting and vacuuming to reach a size
_INCIDENT_TABLES: Final = ("event", "attempt", "model_change", "level", "ask", "crash")
# `made` is false for an attempt that was rejected before it began. Inside a JSON text the quotes would be escaped.
_IS_ATTEMPT: Final = """(name = 'attempt_succeeded' OR (name = 'attempt_failed' AND body NOT LIKE '%"made":false%'))"""
_NTH_OLDEST: Final = """
    SELECT touched_at FROM incident WHERE ended_at IS NOT NULL ORDER BY touched_at LIMIT 1 OFFSET ?"""


class PruneResult(NamedTuple):
    """Number of deleted incidents and events."""

    incidents: int
    events: int


class IntegrityFinding(NamedTuple):
    """Result of one integrity check: its subject, whether it passed, and the numbers found."""

    what: str
    ok: bool
    seen: str


def prune(
    journal: Journal,
    *,
    older_than: float | None = None,
    max_bytes: int | None = None,
    project: str | None = None,
    batch: int = BATCH_INCIDENTS,
) -> PruneResult:
    """Delete closed incidents: those last touched before `older_than`, and the oldest until the size is reached.

    Their events, attempts, questions, requests and prompt patterns are deleted too; counts, groups and sessions
    stay. Open incidents are never deleted. `max_bytes` also reclaims disk space; otherwise call `vacuum`.
    """
    if older_than is None and max_bytes is None:
        raise ConfigError("prune", None, "an age, a size, or both")
    deleted = PruneResult(0, 0) if older_than is None else _prune_before(journal, older_than, project, batch)
    if max_bytes is not None:
        more = _prune_to_size(journal, max_bytes, project)
        deleted = PruneResult(deleted.incidents + more.incidents, deleted.events + more.events)
    return deleted


def vacuum(journal: Journal) -> tuple[int, int]:
    """Reclaim and erase the space of deleted rows; return the size in bytes before and after."""
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
    """Return whether counts include attempts whose events were pruned: a rebuild from the events would lose them."""
    ((counted, in_events),) = journal.read(
        f"SELECT (SELECT COALESCE(SUM(n), 0) FROM by_hour), (SELECT count(*) FROM event WHERE {_IS_ATTEMPT})"  # noqa: S608  # our own names
    )
    return bool(counted > in_events)


def check_integrity(journal: Journal) -> list[IntegrityFinding]:
    """Check that the file is intact and that the read models agree with the events."""
    findings = []
    connection = journal.backend.connect(write=False)
    try:
        if _is_sqlite(connection):
            problems = [row[0] for row in connection.execute("PRAGMA integrity_check(5)")]
            findings.append(IntegrityFinding("the file", problems == ["ok"], "; ".join(problems)))
        findings.append(_check_events(connection))
        ((*numbers,),) = connection.execute(_SUMS)  # one statement: a consistent snapshot
    finally:
        connection.close()
    in_events, attempts, hours, days, patterns, latencies, bad, messages, types, closed, ends, lost, gaps, opened = (
        int(n) for n in numbers
    )
    findings += [
        IntegrityFinding("attempts", in_events == attempts, f"{attempts} rows, {in_events} in events"),
        _count_finding("hours", hours, attempts, "attempts"),
        IntegrityFinding("days", days == hours, f"{days} counted, {hours} by hour"),
        IntegrityFinding("patterns", patterns == hours, f"{patterns} counted, {hours} by hour"),
        IntegrityFinding("latencies", latencies == hours, f"{latencies} counted, {hours} by hour"),
        IntegrityFinding("messages", messages == bad, f"{messages} counted, {bad} failures by hour"),
        IntegrityFinding("error types", types == bad, f"{types} counted, {bad} failures by hour"),
        _count_finding("ends", ends, closed, "closed incidents"),
        IntegrityFinding("incidents", lost == 0, f"{lost} have events but no row; {closed} closed, {opened} open"),
        IntegrityFinding("order", gaps == 0, f"{gaps} incidents have gaps in their event positions"),
    ]
    return findings


def _check_events(connection: BackendConnection) -> IntegrityFinding:
    """Count the events that cannot be read: not UTF-8, or not a JSON object."""
    body = "CAST(body AS BLOB)" if _is_sqlite(connection) else "body"
    last, seen, bad = 0, 0, 0
    while rows := connection.execute(
        f"SELECT seq, {body} FROM event WHERE seq > ? ORDER BY seq LIMIT ?",  # noqa: S608  # our own names
        (last, BATCH_EVENTS),
    ):
        for last, found in rows:  # noqa: B007  # the page ends at the last
            seen += 1
            bad += not _is_readable(found)
    return IntegrityFinding("events", bad == 0, f"{seen} events, {bad} of them cannot be read")


def _is_readable(body: bytes | str) -> bool:
    try:
        event_table(body if isinstance(body, str) else body.decode())
    except (StoreDamaged, UnicodeDecodeError):
        return False
    return True


_SUMS: Final = f"""
    SELECT (SELECT count(*) FROM event WHERE {_IS_ATTEMPT}),
           (SELECT count(*) FROM attempt),
           (SELECT COALESCE(SUM(n), 0) FROM by_hour),
           (SELECT COALESCE(SUM(n), 0) FROM by_day),
           (SELECT COALESCE(SUM(n), 0) FROM by_pattern),
           (SELECT COALESCE(SUM(n), 0) FROM by_latency),
           (SELECT COALESCE(SUM(n), 0) FROM by_hour WHERE kind <> ''),
           (SELECT COALESCE(SUM(n), 0) FROM by_message),
           (SELECT COALESCE(SUM(n), 0) FROM by_error_type),
           (SELECT count(*) FROM incident WHERE ended_at IS NOT NULL),
           (SELECT COALESCE(SUM(n), 0) FROM by_end),
           (SELECT count(*) FROM event e WHERE e.n = 0 AND NOT EXISTS (SELECT 1 FROM incident i WHERE i.id = e.incident)),
           (SELECT count(*) FROM (SELECT incident FROM event GROUP BY incident HAVING count(*) <> MAX(n) + 1) AS holes),
           (SELECT count(*) FROM incident WHERE ended_at IS NULL)"""  # noqa: S608  # our own names


def _count_finding(what: str, counted: int, rows: int, noun: str) -> IntegrityFinding:
    """Compare a count with its rows: it may exceed them by what was pruned, but never be smaller."""
    pruned = f", {counted - rows} of them pruned since" if counted > rows else ""
    return IntegrityFinding(what, counted >= rows, f"{counted} counted, {rows} {noun} stored{pruned}")


def _prune_before(journal: Journal, moment: float, project: str | None, batch: int) -> PruneResult:
    incidents = events = 0
    for status in Status:  # one at a time, so that the index on (status, touched_at) is used
        while True:
            deleted = journal.write(
                lambda connection, status=status: _delete_batch(connection, status, moment, project, batch),  # type: ignore[misc]  # a default binds
                lambda _: False,
            ).result()
            incidents, events = incidents + deleted.incidents, events + deleted.events
            if deleted.incidents < batch:
                break
    return PruneResult(incidents, events)


def _delete_batch(
    connection: BackendConnection, status: str, moment: float, project: str | None, batch: int
) -> PruneResult:
    """Delete one batch of incidents. Requests and patterns that a later incident uses stay."""
    condition, values = ("", []) if project is None else (" AND project = ?", [project])
    rows = connection.execute(
        "SELECT id, request, pattern, touched_at, session FROM incident"  # noqa: S608  # our own names
        f" WHERE status = ? AND touched_at < ? AND ended_at IS NOT NULL{condition} ORDER BY touched_at LIMIT {batch}",
        [status, moment, *values],
    )
    events = 0
    for incident, request, pattern, touched, session in rows:
        forget_call(connection, session, incident)
        changed = connection.execute("SELECT body FROM event WHERE incident = ? AND name = 'changed'", (incident,))
        for digest in {request, *(json.loads(body)["digest"] for (body,) in changed)}:
            connection.execute("DELETE FROM request WHERE digest = ? AND at <= ?", (digest, touched))
        connection.execute("DELETE FROM pattern WHERE id = ? AND at <= ?", (pattern, touched))
        ((count,),) = connection.execute("SELECT count(*) FROM event WHERE incident = ?", (incident,))
        events += int(count)
        for table in _INCIDENT_TABLES:
            connection.execute(f"DELETE FROM {table} WHERE incident = ?", (incident,))  # noqa: S608  # our own names
        connection.execute("DELETE FROM incident WHERE id = ?", (incident,))
    return PruneResult(len(rows), events)


def _prune_to_size(journal: Journal, max_bytes: int, project: str | None) -> PruneResult:
    """Delete the oldest incidents, estimated by their share of the size, until it fits or none is closed."""
    if max_bytes < 0:
        raise ConfigError("max_bytes", max_bytes, "0 or more")
    incidents = events = 0
    for _ in range(MAX_SIZE_ROUNDS):
        _, size = vacuum(journal)
        ((closed,),) = journal.read("SELECT count(*) FROM incident WHERE ended_at IS NOT NULL")
        if size <= max_bytes or not closed:
            break
        surplus = min(int(closed), 1 + int(closed * (1 - max_bytes / size)))
        rows: list[Any] = journal.read(_NTH_OLDEST, (surplus,))
        deleted = _prune_before(journal, rows[0][0] if rows else float("inf"), project, BATCH_INCIDENTS)
        incidents, events = incidents + deleted.incidents, events + deleted.events
        if not deleted.incidents:
            break
    else:
        vacuum(journal)
    return PruneResult(incidents, events)


def _is_sqlite(connection: BackendConnection) -> bool:
    return type(connection).__name__ == "SqliteConnection"
