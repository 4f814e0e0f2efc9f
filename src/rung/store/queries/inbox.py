"""Queries for the operator's pages: parked and blocked incidents, model names, and counters for metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rung.core.domain.ladder import Action
from rung.store.queries.incidents import placeholders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.store.backends.port import Readable


class BlockedIncident(NamedTuple):
    """Incident that ended blocked."""

    id: str
    project: str
    reason: str
    at: float


class ParkedIncident(NamedTuple):
    """Incident that is parked until a limit reopens."""

    id: str
    project: str
    message: str  # of its first failure
    since: float
    until: float


class AttemptCount(NamedTuple):
    """Number and cost of the attempts with one kind of result."""

    kind: str
    attempts: int
    dollars: float


class MessageDay(NamedTuple):
    """Occurrences of a failure on one day (days since the epoch)."""

    day: int
    project: str
    fingerprint: str
    seen: int


def blocked_incidents(database: Readable, since: float, limit: int) -> list[BlockedIncident]:
    """Return the incidents that ended blocked, the latest first."""
    rows = database.read(
        "SELECT id, project, reason, touched_at FROM incident WHERE status = 'blocked' AND touched_at >= ?"
        " ORDER BY touched_at DESC LIMIT ?",
        (since, limit),
    )
    return [BlockedIncident(*row) for row in rows]


def parked_incidents(database: Readable, limit: int) -> list[ParkedIncident]:
    """Return the parked incidents, the first to be taken up first."""
    rows = database.read(
        "SELECT id, project, message, touched_at, due_at FROM incident"
        " WHERE status = 'open' AND last_rung = ? AND due_at IS NOT NULL ORDER BY due_at LIMIT ?",
        (Action.PARK.value, limit),
    )
    return [ParkedIncident(*row) for row in rows]


def known_models(database: Readable, limit: int = 200) -> list[str]:
    """Return the names of the models that sessions use, sorted."""
    rows = database.read("SELECT DISTINCT model FROM session ORDER BY 1 LIMIT ?", (limit,))
    return [name for (name,) in rows if name]


def ping(database: Readable) -> None:
    """Run a trivial query; raises when the store cannot be read."""
    database.read("SELECT 1")


def incident_counts(database: Readable) -> dict[str, int]:
    """Return the number of ended incidents by status."""
    return dict(database.read("SELECT status, SUM(n) FROM by_end GROUP BY status"))


def attempt_counts(database: Readable) -> list[AttemptCount]:
    """Return the attempts by kind of failure; successful attempts have an empty kind."""
    rows = database.read("SELECT kind, SUM(n), SUM(dollars) FROM by_hour GROUP BY kind")
    return [AttemptCount(*row) for row in rows]


def failures_by_day(database: Readable, fingerprints: Sequence[str], after_day: int) -> list[MessageDay]:
    """Return the daily counts of these failures after a day."""
    if not fingerprints:
        return []
    rows = database.read(
        f"SELECT day, project, fingerprint, n FROM by_message WHERE day > ? AND fingerprint IN ({placeholders(fingerprints)})",  # noqa: S608  # placeholders
        [after_day, *fingerprints],
    )
    return [MessageDay(int(day), project, fingerprint, int(n)) for day, project, fingerprint, n in rows]
