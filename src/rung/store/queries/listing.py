"""Paginated lists of sessions, incidents and their details.

Pagination is by keyset: a page ends with a cursor (`after`) at which the next one begins, so that rows inserted
meanwhile do not shift the pages.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rung.core.domain.errors import ConfigError, is_number
from rung.store.queries.listing_rows import (
    AskRow,
    AttemptRow,
    CrashRow,
    IncidentRow,
    LevelRow,
    ModelChangeRow,
    ModelUse,
    Page,
    ProjectRow,
    SessionRow,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.store.backends.port import Database, Row

R = TypeVar("R")
DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 1_000
MAX_COUNTED_ROWS: Final = 10_001  # a page's total is not counted further
ACTIVE: Final = "active"
MAX_SEARCH_GROUPS: Final = 200  # failure groups that a text search considers
SCAN_MIN_FAILURES: Final = 5_000  # matches from which scanning the latest incidents beats the index


class SessionSort(StrEnum):
    """Sort order of sessions, highest or latest first."""

    TOUCHED = "touched"
    BEGAN = "began"
    DOLLARS = "dollars"
    FAILURES = "failures"
    ATTEMPTS = "attempts"


class IncidentSort(StrEnum):
    """Sort order of incidents, highest or latest first."""

    OPENED = "opened"
    DOLLARS = "dollars"
    ATTEMPTS = "attempts"


_SORT_COLUMNS: Final[Mapping[StrEnum, str]] = {
    SessionSort.TOUCHED: "touched_at",
    SessionSort.BEGAN: "began_at",
    SessionSort.DOLLARS: "dollars",
    SessionSort.FAILURES: "failures",
    SessionSort.ATTEMPTS: "attempts",
    IncidentSort.OPENED: "opened_at",
    IncidentSort.DOLLARS: "dollars",
    IncidentSort.ATTEMPTS: "attempts",
}
_GROUPS_WITH_TEXT: Final = r"""
    SELECT fingerprint, SUM(count) FROM failure_group WHERE lower(message) LIKE ? ESCAPE '\'
     GROUP BY fingerprint ORDER BY 2 DESC, 1 LIMIT ?"""
_WAITING: Final = "EXISTS (SELECT 1 FROM ask WHERE ask.incident = incident.id AND ask.state = 'waiting')"


class _ListingConditions:
    """WHERE conditions with their values."""

    def __init__(self, **equal: str | None) -> None:
        self.conditions: list[str] = []
        self.values: list[Any] = []
        for name, value in equal.items():
            if value is not None:
                self.add(f"{name} = ?", value)

    def add(self, condition: str, *values: Any) -> None:
        self.conditions.append(condition)
        self.values += values

    def __str__(self) -> str:
        return " WHERE " + " AND ".join(self.conditions) if self.conditions else ""


def sessions(
    journal: Database, *, status: str | None = None, project: str | None = None, model: str | None = None,
    text: str | None = None, since: float | None = None, sort: SessionSort = SessionSort.TOUCHED, limit: int = DEFAULT_LIMIT,
    after: str = "",
) -> Page[SessionRow]:  # fmt: skip
    """Return a page of sessions. `status` may be `active` (not ended); `text` searches names, model and last message."""
    where = _ListingConditions(project=project, model=model)
    if status == ACTIVE:
        where.add("status IN ('working', 'recovering', 'waiting')")
    elif status is not None:
        where.add("status = ?", status)
    if since is not None:
        where.add("touched_at >= ?", since)
    if text:
        like = _like(text)
        searched = ("id", "project", "agent", "model", "message")
        where.add(
            "(" + " OR ".join(rf"lower({name}) LIKE ? ESCAPE '\'" for name in searched) + ")", *[like] * len(searched)
        )
    rows, cursor, total = _page(journal, "session", SessionRow._fields, where, _SORT_COLUMNS[sort], limit, after)
    return Page([SessionRow(*row) for row in rows], cursor, total)


def session(journal: Database, name: str) -> SessionRow | None:
    """Return one session; None when it is unknown."""
    rows = journal.read(f"SELECT {', '.join(SessionRow._fields)} FROM session WHERE id = ?", (name,))  # noqa: S608  # our own names
    return SessionRow(*rows[0]) if rows else None


def incidents(
    journal: Database, *, status: str | None = None, project: str | None = None, model: str | None = None,
    kind: str | None = None, session: str | None = None, fingerprint: str | None = None, parent: str | None = None,
    rung: str | None = None, tool: str | None = None, prompt: str | None = None, pattern: str | None = None,
    text: str | None = None, since: float | None = None, until: float | None = None, troubled: bool = True,
    sort: IncidentSort = IncidentSort.OPENED, limit: int = DEFAULT_LIMIT, after: str = "",
) -> Page[IncidentRow]:  # fmt: skip
    """Return a page of incidents with a failure, or with `troubled=False` of all.

    `status` may be `waiting` (for an answer). `text` is an incident's id, a session's id, or part of the message of
    its first failure as it was first seen: numbers in it may differ.
    """
    equal = {"project": project, "kind": kind, "session": session, "fingerprint": fingerprint, "parent": parent}
    where = _ListingConditions(**equal, model=model, rung=rung)
    if tool is not None:
        where.add("id IN (SELECT incident FROM attempt WHERE tool = ? AND ok = 0)", tool)
    if prompt is not None:
        where.add("id IN (SELECT incident FROM attempt WHERE prompt = ? AND ok = 0)", prompt)
    if pattern is not None:
        where.add("pattern IN (SELECT id FROM pattern WHERE text = ?)", pattern)
    if troubled:
        where.add("failures > 0")
    if status == "waiting":
        where.add("id IN (SELECT incident FROM ask WHERE state = 'waiting')")
    elif status is not None:
        where.add("status = ?", status)
    for sign, moment in ((">=", since), ("<", until)):
        if moment is not None:
            where.add(f"opened_at {sign} ?", moment)
    if text:
        _add_text_search(journal, text, where)
    columns = [_WAITING if name == "waiting" else name for name in IncidentRow._fields]
    rows, cursor, total = _page(journal, "incident", columns, where, _SORT_COLUMNS[sort], limit, after)
    return Page([_incident(row) for row in rows], cursor, total)


def incident(journal: Database, name: str) -> IncidentRow | None:
    """Return one incident; None when it is unknown."""
    columns = ", ".join(_WAITING if column == "waiting" else column for column in IncidentRow._fields)
    rows = journal.read(f"SELECT {columns} FROM incident WHERE id = ?", (name,))  # noqa: S608  # our own names
    return _incident(rows[0]) if rows else None


def attempts(
    journal: Database,
    *,
    session: str | None = None,
    incident: str | None = None,
    limit: int = DEFAULT_LIMIT,
    after: str = "",
) -> Page[AttemptRow]:
    """Return a page of the attempts of a session or an incident, the latest first."""
    if session is None and incident is None:
        raise ConfigError("attempts", None, "a session or an incident")
    where = _ListingConditions(session=session, incident=incident)
    rows, cursor, total = _page(
        journal, "attempt", AttemptRow._fields, where, "at", limit, after, key=("incident", "n")
    )
    return Page([AttemptRow(*row)._replace(ok=bool(row[12])) for row in rows], cursor, total)


def levels(journal: Database, incident: str) -> list[LevelRow]:
    """Return the rung history of an incident, in order."""
    return [
        LevelRow(*row) for row in _all(journal, "level", LevelRow._fields, _ListingConditions(incident=incident), "n")
    ]


def model_changes(
    journal: Database, *, session: str | None = None, incident: str | None = None
) -> list[ModelChangeRow]:
    """Return the model changes of a session or an incident, in order."""
    where = _ListingConditions(session=session, incident=incident)
    return [ModelChangeRow(*row) for row in _all(journal, "model_change", ModelChangeRow._fields, where, "at, n")]


def model_uses(journal: Database, session: str) -> list[ModelUse]:
    """Return the attempts and cost of each model in a session, the most expensive first."""
    where = _ListingConditions(session=session)
    return [ModelUse(*row) for row in _all(journal, "session_model", ModelUse._fields, where, "dollars DESC, model")]


def asks(
    journal: Database, *, state: str | None = "waiting", project: str | None = None, session: str | None = None,
    incident: str | None = None, limit: int = DEFAULT_LIMIT,
) -> list[AskRow]:  # fmt: skip
    """Return questions to operators, the oldest first; by default those that wait for an answer."""
    where = _ListingConditions(state=state, project=project, session=session, incident=incident)
    rows = _all(journal, "ask", AskRow._fields, where, f"at, incident, n LIMIT {_check_limit(limit)}")
    return [AskRow(*row)._replace(options=[(name, text) for name, text in json.loads(row[6])]) for row in rows]


def crashes(
    journal: Database, *, project: str | None = None, session: str | None = None, since: float | None = None,
    limit: int = DEFAULT_LIMIT,
) -> list[CrashRow]:  # fmt: skip
    """Return crashes of hooks, listeners, checks and checkpoints, the latest first."""
    where = _ListingConditions(project=project, session=session)
    if since is not None:
        where.add("at >= ?", since)
    rows = _all(journal, "crash", CrashRow._fields, where, f"at DESC, incident, n LIMIT {_check_limit(limit)}")
    return [CrashRow(*row) for row in rows]


def projects(journal: Database) -> list[ProjectRow]:
    """Return all projects, the most recently active first."""
    return [
        ProjectRow(*row)
        for row in _all(journal, "project", ProjectRow._fields, _ListingConditions(), "touched_at DESC, id")
    ]


# -- pages ----------------------------------------------------------------------------------------------


def _incident(row: Row) -> IncidentRow:
    incident_row = IncidentRow(*row)
    return incident_row._replace(waiting=bool(incident_row.waiting))


def _all(journal: Database, table: str, columns: Sequence[str], where: _ListingConditions, order: str) -> list[Row]:
    return journal.read(f"SELECT {', '.join(columns)} FROM {table}{where} ORDER BY {order}", where.values)  # noqa: S608  # our own names


def _page(
    journal: Database, table: str, columns: Sequence[str], where: _ListingConditions, sort: str, limit: int, after: str,
    key: tuple[str, ...] = ("id",),
) -> tuple[list[Row], str, int]:  # fmt: skip
    """Return a page of rows in descending order, the cursor of the next page, and the total number of rows."""
    order = (sort, *key)
    counted_rows = f"SELECT 1 AS one FROM {table}{where} LIMIT {MAX_COUNTED_ROWS}"  # noqa: S608  # our own names
    ((total,),) = journal.read(f"SELECT count(*) FROM ({counted_rows}) AS found", where.values)  # noqa: S608  # our own names
    if after:
        last = _decode_cursor(after, sort, len(order))
        where.add(f"({', '.join(order)}) < ({', '.join('?' * len(order))})", *last)
    ordered = ", ".join(f"{name} DESC" for name in order)
    selected = [*columns, *order]
    rows = journal.read(
        f"SELECT {', '.join(selected)} FROM {table}{where} ORDER BY {ordered} LIMIT {_check_limit(limit) + 1}",  # noqa: S608  # our own names
        where.values,
    )
    width = len(columns)
    cursor = _encode_cursor(sort, rows[limit - 1][width:]) if len(rows) > limit else ""
    return [row[:width] for row in rows[:limit]], cursor, int(total)


def _encode_cursor(sort: str, key: Sequence[Any]) -> str:
    return urlsafe_b64encode(json.dumps([sort, *key], separators=(",", ":")).encode()).decode().rstrip("=")


def _decode_cursor(after: str, sort: str, width: int) -> list[Any]:
    try:
        decoded = json.loads(urlsafe_b64decode(after + "=" * (-len(after) % 4)))
    except ValueError:
        decoded = None
    if not isinstance(decoded, list) or len(decoded) != width + 1 or decoded[0] != sort:
        raise ConfigError("after", after, f"the `after` of a page of this list, ordered by {sort}")
    if not all(_is_comparable(part) for part in decoded[1:]) or isinstance(decoded[1], str):
        raise ConfigError("after", after, "the `after` of a page of this list")
    return decoded[1:]


def _is_comparable(part: object) -> bool:
    """Return whether a store can compare its values with this one: a text or a 64-bit number."""
    return isinstance(part, str) or (is_number(part, -1e300) and abs(part) < 1 << 63)  # type: ignore[arg-type]


def _check_limit(limit: int) -> int:
    if not 1 <= limit <= MAX_LIMIT:
        raise ConfigError("limit", limit, f"1 to {MAX_LIMIT}")
    return limit


def _like(text: str) -> str:
    """Return a LIKE pattern that finds a text anywhere, with its wildcards escaped."""
    return "%" + text.lower().replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_") + "%"


def _add_text_search(journal: Database, text: str, where: _ListingConditions) -> None:
    """Filter incidents by a text. Messages are searched in the failure groups, of which there are few."""
    groups = journal.read(_GROUPS_WITH_TEXT, (_like(text), MAX_SEARCH_GROUPS))
    # Appending '' disables the column's index: when most incidents match, scanning the latest is faster.
    column = "fingerprint || ''" if sum(int(n) for _, n in groups) > SCAN_MIN_FAILURES else "fingerprint"
    conditions = ["id = ?", "session = ?"]
    values: list[Any] = [text, text]
    if groups:
        conditions.append(f"{column} IN ({', '.join('?' * len(groups))})")
        values += [fingerprint for fingerprint, _ in groups]
    where.add(f"({' OR '.join(conditions)})", *values)
