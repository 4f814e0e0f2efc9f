"""Failure groups by fingerprint, as in an error tracker: open, resolved, snoozed, or a regression."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from rung.store.backends.port import BackendConnection, Database


class GroupState(StrEnum):
    """State of a group. An operator sets resolved and snoozed; the others are derived."""

    OPEN = "open"
    RESOLVED = "resolved"
    SNOOZED = "snoozed"
    REGRESSION = "regression"  # seen again after it was resolved


class FailureGroup(NamedTuple):
    """Failures with one fingerprint in one project."""

    project: str
    fingerprint: str
    kind: str
    message: str  # of the first occurrence
    example: str  # id of the incident with the last occurrence
    first_at: float
    last_at: float
    seen: int  # number of occurrences
    state: GroupState
    said_at: float | None  # when an operator last set its state
    until: float | None  # end of a snooze


_SELECT: Final = """
    SELECT g.project, g.fingerprint, g.kind, g.message, g.example, g.first_at, g.last_at, g.count,
           s.state, s.at, s.until
      FROM failure_group g
      LEFT JOIN group_state s ON s.project = g.project AND s.fingerprint = g.fingerprint"""
_UPSERT_STATE: Final = """
    INSERT INTO group_state (project, fingerprint, state, at, until) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (project, fingerprint) DO UPDATE SET state = excluded.state, at = excluded.at, until = excluded.until"""


def state_of(stored: str | None, at: float | None, until: float | None, last_at: float, now: float) -> GroupState:
    """Return the state of a group from its stored state and its last occurrence."""
    if stored == GroupState.RESOLVED and at is not None:
        return GroupState.REGRESSION if last_at > at else GroupState.RESOLVED
    if stored == GroupState.SNOOZED and until is not None and now < until:
        return GroupState.SNOOZED
    return GroupState.OPEN


def groups(
    journal: Database,
    *,
    now: float,
    project: str | None = None,
    kind: str | None = None,
    states: frozenset[GroupState] = frozenset(GroupState),
    limit: int = 100,
) -> list[FailureGroup]:
    """Return the groups, the most recent first."""
    conditions, values = ["1 = 1"], []
    for column, value in (("g.project", project), ("g.kind", kind)):
        if value is not None:
            conditions.append(f"{column} = ?")
            values.append(value)
    rows = journal.read(f"{_SELECT} WHERE {' AND '.join(conditions)} ORDER BY g.last_at DESC, g.fingerprint", values)
    matching = (_group(row, now) for row in rows)
    return [group for group in matching if group.state in states][:limit]


def find_group(journal: Database, fingerprint: str, *, now: float, project: str | None = None) -> FailureGroup:
    """Return the only group whose fingerprint has this prefix; raise ConfigError when there is none or several."""
    conditions, values = "substr(g.fingerprint, 1, ?) = ?", [len(fingerprint), fingerprint]
    if project is not None:
        conditions, values = f"{conditions} AND g.project = ?", [*values, project]
    rows = journal.read(f"{_SELECT} WHERE {conditions} ORDER BY g.fingerprint, g.project LIMIT 5", values)
    if not fingerprint or not rows:
        raise ConfigError("fingerprint", fingerprint, "a prefix of a group's fingerprint")
    if len(rows) > 1:
        several = ", ".join(f"{row[1]} (project {row[0]!r})" for row in rows)
        raise ConfigError("fingerprint", fingerprint, f"a prefix of only one group's fingerprint, not of {several}")
    return _group(rows[0], now)


def resolve(journal: Database, group: FailureGroup, *, now: float) -> FailureGroup:
    """Mark a group as resolved; its next occurrence makes it a regression."""
    return _set_state(journal, group, GroupState.RESOLVED, now, None)


def snooze(journal: Database, group: FailureGroup, *, until: float, now: float) -> FailureGroup:
    """Snooze a group until a time."""
    if until <= now:
        raise ConfigError("until", until, f"a time after now ({now:.0f})")
    return _set_state(journal, group, GroupState.SNOOZED, now, until)


def reopen(journal: Database, group: FailureGroup) -> FailureGroup:
    """Reopen a group: delete its stored state."""
    key = (group.project, group.fingerprint)
    journal.write(
        lambda connection: connection.execute("DELETE FROM group_state WHERE project = ? AND fingerprint = ?", key),
        lambda connection: not _stored_state(connection, group),
    ).result()
    return group._replace(state=GroupState.OPEN, said_at=None, until=None)


def _set_state(
    journal: Database, group: FailureGroup, state: GroupState, now: float, until: float | None
) -> FailureGroup:
    row = (group.project, group.fingerprint, state.value, now, until)
    journal.write(
        lambda connection: connection.execute(_UPSERT_STATE, row),
        lambda connection: _stored_state(connection, group) == [(state.value, now)],
    ).result()
    return group._replace(state=state_of(state, now, until, group.last_at, now), said_at=now, until=until)


def _stored_state(connection: BackendConnection, group: FailureGroup) -> list[tuple[Any, ...]]:
    return connection.execute(
        "SELECT state, at FROM group_state WHERE project = ? AND fingerprint = ?", (group.project, group.fingerprint)
    )


def _group(row: tuple[Any, ...], now: float) -> FailureGroup:
    project, fingerprint, kind, message, example, first, last, seen, stored, at, until = row
    state = state_of(stored, at, until, last, now)
    return FailureGroup(project, fingerprint, kind, message, example, first, last, int(seen), state, at, until)
