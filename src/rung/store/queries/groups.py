"""Failures grouped by fingerprint, as an error tracker has them: seen, resolved, snoozed, and back again."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from rung.store.backends.port import BackendConnection, Database


class GroupState(StrEnum):
    """Where a group stands. Resolved and snoozed are a person's word; the others follow from what was seen."""

    OPEN = "open"
    RESOLVED = "resolved"
    SNOOZED = "snoozed"
    REGRESSION = "regression"  # seen again after it was resolved


class FailureGroup(NamedTuple):
    """Failures that are the same trouble, in one project."""

    project: str
    fingerprint: str
    kind: str
    message: str  # of the first one seen
    example: str  # the incident it was last seen in
    first_at: float
    last_at: float
    seen: int  # times
    state: GroupState
    said_at: float | None  # when a person last said something about it
    until: float | None  # of a snooze


_SELECT: Final = """
    SELECT g.project, g.fingerprint, g.kind, g.message, g.example, g.first_at, g.last_at, g.count,
           s.state, s.at, s.until
      FROM failure_group g
      LEFT JOIN group_state s ON s.project = g.project AND s.fingerprint = g.fingerprint"""
_SAY: Final = """
    INSERT INTO group_state (project, fingerprint, state, at, until) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (project, fingerprint) DO UPDATE SET state = excluded.state, at = excluded.at, until = excluded.until"""


def state_of(said: str | None, at: float | None, until: float | None, last_at: float, now: float) -> GroupState:
    """Where a group stands now, from what a person said about it and when it was last seen."""
    if said == GroupState.RESOLVED and at is not None:
        return GroupState.REGRESSION if last_at > at else GroupState.RESOLVED
    if said == GroupState.SNOOZED and until is not None and now < until:
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
    """The groups, the last seen first."""
    terms, values = ["1 = 1"], []
    for column, value in (("g.project", project), ("g.kind", kind)):
        if value is not None:
            terms.append(f"{column} = ?")
            values.append(value)
    rows = journal.read(f"{_SELECT} WHERE {' AND '.join(terms)} ORDER BY g.last_at DESC, g.fingerprint", values)
    found = (_group(row, now) for row in rows)
    return [group for group in found if group.state in states][:limit]


def find(journal: Database, fingerprint: str, *, now: float, project: str | None = None) -> FailureGroup:
    """The one group whose fingerprint begins so."""
    terms, values = "substr(g.fingerprint, 1, ?) = ?", [len(fingerprint), fingerprint]
    if project is not None:
        terms, values = f"{terms} AND g.project = ?", [*values, project]
    rows = journal.read(f"{_SELECT} WHERE {terms} ORDER BY g.fingerprint, g.project LIMIT 5", values)
    if not fingerprint or not rows:
        raise ConfigError("fingerprint", fingerprint, "the beginning of a group's fingerprint")
    if len(rows) > 1:
        several = ", ".join(f"{row[1]} (project {row[0]!r})" for row in rows)
        raise ConfigError("fingerprint", fingerprint, f"the beginning of one group's only, not of {several}")
    return _group(rows[0], now)


def resolve(journal: Database, group: FailureGroup, *, now: float) -> FailureGroup:
    """It is mended; when it is seen again it is a regression."""
    return _say(journal, group, GroupState.RESOLVED, now, None)


def snooze(journal: Database, group: FailureGroup, *, until: float, now: float) -> FailureGroup:
    """Nobody wants to hear of it before then."""
    if until <= now:
        raise ConfigError("until", until, f"a time after now ({now:.0f})")
    return _say(journal, group, GroupState.SNOOZED, now, until)


def reopen(journal: Database, group: FailureGroup) -> FailureGroup:
    """Nothing is said about it any more."""
    key = (group.project, group.fingerprint)
    journal.write(
        lambda connection: connection.execute("DELETE FROM group_state WHERE project = ? AND fingerprint = ?", key),
        lambda connection: not _said(connection, group),
    ).result()
    return group._replace(state=GroupState.OPEN, said_at=None, until=None)


def _say(journal: Database, group: FailureGroup, state: GroupState, now: float, until: float | None) -> FailureGroup:
    row = (group.project, group.fingerprint, state.value, now, until)
    journal.write(
        lambda connection: connection.execute(_SAY, row),
        lambda connection: _said(connection, group) == [(state.value, now)],
    ).result()
    return group._replace(state=state_of(state, now, until, group.last_at, now), said_at=now, until=until)


def _said(connection: BackendConnection, group: FailureGroup) -> list[tuple[Any, ...]]:
    return connection.execute(
        "SELECT state, at FROM group_state WHERE project = ? AND fingerprint = ?", (group.project, group.fingerprint)
    )


def _group(row: tuple[Any, ...], now: float) -> FailureGroup:
    project, mark, kind, message, example, first, last, seen, said, at, until = row
    state = state_of(said, at, until, last, now)
    return FailureGroup(project, mark, kind, message, example, first, last, int(seen), state, at, until)
