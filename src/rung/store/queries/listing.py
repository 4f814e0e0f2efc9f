"""Lists for people to look through: sessions, incidents and what belongs to them, a page at a time.

A page ends with a mark (`after`) that the next one begins at, so that nothing is counted off again, and rows that
come in meanwhile shift nothing.
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
LIMIT: Final = 50
MOST: Final = 1_000
COUNTED: Final = 10_001  # rows that are counted, at most
ACTIVE: Final = "active"
MARKS: Final = 200  # groups of failures that a text is looked for in
DENSE: Final = 5_000  # failures in them from which looking through the latest incidents is quicker


class SessionSort(StrEnum):
    """What sessions are ordered by, the most or latest first."""

    TOUCHED = "touched"
    BEGAN = "began"
    DOLLARS = "dollars"
    FAILURES = "failures"
    ATTEMPTS = "attempts"


class IncidentSort(StrEnum):
    """What incidents are ordered by, the most or latest first."""

    OPENED = "opened"
    DOLLARS = "dollars"
    ATTEMPTS = "attempts"


_SORTED: Final[Mapping[StrEnum, str]] = {
    SessionSort.TOUCHED: "touched_at",
    SessionSort.BEGAN: "began_at",
    SessionSort.DOLLARS: "dollars",
    SessionSort.FAILURES: "failures",
    SessionSort.ATTEMPTS: "attempts",
    IncidentSort.OPENED: "opened_at",
    IncidentSort.DOLLARS: "dollars",
    IncidentSort.ATTEMPTS: "attempts",
}
_MARKS: Final = r"""
    SELECT fingerprint, SUM(count) FROM failure_group WHERE lower(message) LIKE ? ESCAPE '\'
     GROUP BY fingerprint ORDER BY 2 DESC, 1 LIMIT ?"""
_WAITING: Final = "EXISTS (SELECT 1 FROM ask WHERE ask.incident = incident.id AND ask.state = 'waiting')"


class _ListingConditions:
    """Conditions with their values."""

    def __init__(self, **equal: str | None) -> None:
        self.terms: list[str] = []
        self.values: list[Any] = []
        for name, value in equal.items():
            if value is not None:
                self.also(f"{name} = ?", value)

    def also(self, term: str, *values: Any) -> None:
        self.terms.append(term)
        self.values += values

    def __str__(self) -> str:
        return " WHERE " + " AND ".join(self.terms) if self.terms else ""


def sessions(
    journal: Database, *, status: str | None = None, project: str | None = None, model: str | None = None,
    text: str | None = None, since: float | None = None, sort: SessionSort = SessionSort.TOUCHED, limit: int = LIMIT,
    after: str = "",
) -> Page[SessionRow]:  # fmt: skip
    """The sessions. `status` may also be `active`: not ended. `text` is looked for in names, model and the last failure's message."""
    where = _ListingConditions(project=project, model=model)
    if status == ACTIVE:
        where.also("status IN ('working', 'recovering', 'waiting')")
    elif status is not None:
        where.also("status = ?", status)
    if since is not None:
        where.also("touched_at >= ?", since)
    if text:
        like = _like(text)
        named = ("id", "project", "agent", "model", "message")
        where.also("(" + " OR ".join(rf"lower({name}) LIKE ? ESCAPE '\'" for name in named) + ")", *[like] * len(named))
    rows, mark, total = _page(journal, "session", SessionRow._fields, where, _SORTED[sort], limit, after)
    return Page([SessionRow(*row) for row in rows], mark, total)


def session(journal: Database, name: str) -> SessionRow | None:
    """One session; None: nobody told of it."""
    rows = journal.read(f"SELECT {', '.join(SessionRow._fields)} FROM session WHERE id = ?", (name,))  # noqa: S608  # our own names
    return SessionRow(*rows[0]) if rows else None


def incidents(
    journal: Database, *, status: str | None = None, project: str | None = None, model: str | None = None,
    kind: str | None = None, session: str | None = None, fingerprint: str | None = None, parent: str | None = None,
    rung: str | None = None, tool: str | None = None, prompt: str | None = None, pattern: str | None = None,
    text: str | None = None, since: float | None = None, until: float | None = None, troubled: bool = True,
    sort: IncidentSort = IncidentSort.OPENED, limit: int = LIMIT, after: str = "",
) -> Page[IncidentRow]:  # fmt: skip
    """The incidents: those in which anything failed, or with `troubled=False` every call.

    `status` may also be `waiting`: for an answer. `text` is an incident's id, a session's name, or part of the message of its first failure (as it was first seen: numbers in it may be others).
    """
    same = {"project": project, "kind": kind, "session": session, "fingerprint": fingerprint, "parent": parent}
    where = _ListingConditions(**same, model=model, rung=rung)
    if tool is not None:
        where.also("id IN (SELECT incident FROM attempt WHERE tool = ? AND ok = 0)", tool)
    if prompt is not None:
        where.also("id IN (SELECT incident FROM attempt WHERE prompt = ? AND ok = 0)", prompt)
    if pattern is not None:
        where.also("pattern IN (SELECT id FROM pattern WHERE text = ?)", pattern)
    if troubled:
        where.also("failures > 0")
    if status == "waiting":
        where.also("id IN (SELECT incident FROM ask WHERE state = 'waiting')")
    elif status is not None:
        where.also("status = ?", status)
    for sign, moment in ((">=", since), ("<", until)):
        if moment is not None:
            where.also(f"opened_at {sign} ?", moment)
    if text:
        _look_for(journal, text, where)
    columns = [_WAITING if name == "waiting" else name for name in IncidentRow._fields]
    rows, mark, total = _page(journal, "incident", columns, where, _SORTED[sort], limit, after)
    return Page([_incident(row) for row in rows], mark, total)


def incident(journal: Database, name: str) -> IncidentRow | None:
    """One incident; None: nobody told of it."""
    columns = ", ".join(_WAITING if column == "waiting" else column for column in IncidentRow._fields)
    rows = journal.read(f"SELECT {columns} FROM incident WHERE id = ?", (name,))  # noqa: S608  # our own names
    return _incident(rows[0]) if rows else None


def attempts(
    journal: Database, *, session: str | None = None, incident: str | None = None, limit: int = LIMIT, after: str = ""
) -> Page[AttemptRow]:
    """The attempts of a session or an incident, the latest first."""
    if session is None and incident is None:
        raise ConfigError("attempts", None, "those of a session or of an incident")
    where = _ListingConditions(session=session, incident=incident)
    rows, mark, total = _page(journal, "attempt", AttemptRow._fields, where, "at", limit, after, key=("incident", "n"))
    return Page([AttemptRow(*row)._replace(ok=bool(row[12])) for row in rows], mark, total)


def levels(journal: Database, incident: str) -> list[LevelRow]:
    """The rungs an incident stood on, in their order."""
    return [
        LevelRow(*row) for row in _all(journal, "level", LevelRow._fields, _ListingConditions(incident=incident), "n")
    ]


def model_changes(
    journal: Database, *, session: str | None = None, incident: str | None = None
) -> list[ModelChangeRow]:
    """The hand-overs of a session or an incident, in their order."""
    where = _ListingConditions(session=session, incident=incident)
    return [ModelChangeRow(*row) for row in _all(journal, "model_change", ModelChangeRow._fields, where, "at, n")]


def model_uses(journal: Database, session: str) -> list[ModelUse]:
    """What each model did and cost in a session, the dearest first."""
    where = _ListingConditions(session=session)
    return [ModelUse(*row) for row in _all(journal, "session_model", ModelUse._fields, where, "dollars DESC, model")]


def asks(
    journal: Database, *, state: str | None = "waiting", project: str | None = None, session: str | None = None,
    incident: str | None = None, limit: int = LIMIT,
) -> list[AskRow]:  # fmt: skip
    """Questions to people, the oldest first; by default those that wait for an answer."""
    where = _ListingConditions(state=state, project=project, session=session, incident=incident)
    rows = _all(journal, "ask", AskRow._fields, where, f"at, incident, n LIMIT {_checked(limit)}")
    return [AskRow(*row)._replace(options=[(one, words) for one, words in json.loads(row[6])]) for row in rows]


def crashes(
    journal: Database, *, project: str | None = None, session: str | None = None, since: float | None = None,
    limit: int = LIMIT,
) -> list[CrashRow]:  # fmt: skip
    """Hooks, listeners, checks and checkpoints that broke, the latest first."""
    where = _ListingConditions(project=project, session=session)
    if since is not None:
        where.also("at >= ?", since)
    rows = _all(journal, "crash", CrashRow._fields, where, f"at DESC, incident, n LIMIT {_checked(limit)}")
    return [CrashRow(*row) for row in rows]


def projects(journal: Database) -> list[ProjectRow]:
    """All projects, the last touched first."""
    return [
        ProjectRow(*row)
        for row in _all(journal, "project", ProjectRow._fields, _ListingConditions(), "touched_at DESC, id")
    ]


# -- how ------------------------------------------------------------------------------------------------


def _incident(row: Row) -> IncidentRow:
    made = IncidentRow(*row)
    return made._replace(waiting=bool(made.waiting))


def _all(journal: Database, table: str, columns: Sequence[str], where: _ListingConditions, order: str) -> list[Row]:
    return journal.read(f"SELECT {', '.join(columns)} FROM {table}{where} ORDER BY {order}", where.values)  # noqa: S608  # our own names


def _page(
    journal: Database, table: str, columns: Sequence[str], where: _ListingConditions, sort: str, limit: int, after: str,
    key: tuple[str, ...] = ("id",),
) -> tuple[list[Row], str, int]:  # fmt: skip
    """A page of rows, the most first, the mark of its end, and how many there are on all pages."""
    order = (sort, *key)
    counted = f"SELECT 1 AS one FROM {table}{where} LIMIT {COUNTED}"  # noqa: S608  # our own names
    ((total,),) = journal.read(f"SELECT count(*) FROM ({counted}) AS found", where.values)  # noqa: S608  # our own names
    if after:
        last = _place(after, sort, len(order))
        where.also(f"({', '.join(order)}) < ({', '.join('?' * len(order))})", *last)
    ordered = ", ".join(f"{name} DESC" for name in order)
    wanted = [*columns, *order]
    rows = journal.read(
        f"SELECT {', '.join(wanted)} FROM {table}{where} ORDER BY {ordered} LIMIT {_checked(limit) + 1}",  # noqa: S608  # our own names
        where.values,
    )
    width = len(columns)
    mark = _mark(sort, rows[limit - 1][width:]) if len(rows) > limit else ""
    return [row[:width] for row in rows[:limit]], mark, int(total)


def _mark(sort: str, place: Sequence[Any]) -> str:
    return urlsafe_b64encode(json.dumps([sort, *place], separators=(",", ":")).encode()).decode().rstrip("=")


def _place(after: str, sort: str, width: int) -> list[Any]:
    try:
        found = json.loads(urlsafe_b64decode(after + "=" * (-len(after) % 4)))
    except ValueError:
        found = None
    if not isinstance(found, list) or len(found) != width + 1 or found[0] != sort:
        raise ConfigError("after", after, f"what a page of this list, ordered by {sort}, ended with")
    if not all(_is_value(part) for part in found[1:]) or isinstance(found[1], str):
        raise ConfigError("after", after, "what a page of this list ended with")
    return found[1:]


def _is_value(part: object) -> bool:
    """Something a store can compare with: no number larger than its own."""
    return isinstance(part, str) or (is_number(part, -1e300) and abs(part) < 1 << 63)  # type: ignore[arg-type]


def _checked(limit: int) -> int:
    if not 1 <= limit <= MOST:
        raise ConfigError("limit", limit, f"1 to {MOST}")
    return limit


def _like(text: str) -> str:
    """The text as a pattern that finds it anywhere; what is a joker in a pattern stands for itself."""
    return "%" + text.lower().replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_") + "%"


def _look_for(journal: Database, text: str, where: _ListingConditions) -> None:
    """Narrow incidents to those a text names. Messages are looked for in the groups: there are few of them."""
    groups = journal.read(_MARKS, (_like(text), MARKS))
    # Joined with an empty text the column is not looked up in its index: where most match, the latest are soon found.
    column = "fingerprint || ''" if sum(int(n) for _, n in groups) > DENSE else "fingerprint"
    terms = ["id = ?", "session = ?"]
    values: list[Any] = [text, text]
    if groups:
        terms.append(f"{column} IN ({', '.join('?' * len(groups))})")
        values += [mark for mark, _ in groups]
    where.also(f"({' OR '.join(terms)})", *values)
