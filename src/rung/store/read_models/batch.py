"""What is read off the events: rows that describe, and counts that add up. Nothing here is a source of truth."""

from __future__ import annotations

from functools import cache
from operator import add
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.store.backends.port import BackendConnection

HOUR: Final = 3_600
DAY: Final = 86_400
MESSAGE: Final = 500

# Tables whose rows stand for themselves (one is replaced as a whole), and tables of counts (which add up).
ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "incident": (
        "id", "project", "session", "agent", "ladder", "policy", "parent", "request", "model", "first_model", "opened_at",
        "ended_at", "status", "reason", "attempts", "failures", "dollars", "own_dollars", "rung", "last_rung",
        "asks", "escalations", "pattern", "kind", "fingerprint", "message", "failed_at", "due_at", "touched_at",
    ),
    "attempt": (
        "incident", "n", "number", "at", "seconds", "dollars", "project", "session", "model", "agent", "rung", "prompt",
        "ok", "kind", "rule", "phase", "tool", "fingerprint", "message",
    ),
    "model_change": (
        "incident", "n", "at", "session", "project", "from_model", "to_model", "to_agent", "reason", "estimate", "dollars",
        "restored_at",
    ),
    "level": (
        "incident", "n", "place", "rung", "kind", "entered_at", "left_at", "tries", "seconds", "dollars", "result",
    ),
    "ask": (
        "incident", "n", "at", "project", "session", "question", "options", "estimate", "model", "state", "answer",
        "answered_at",
    ),
    "crash": ("incident", "n", "at", "project", "session", "what", "error"),
    "request": ("digest", "body", "size", "at"),
    "pattern": ("id", "text", "at"),
}  # fmt: skip
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "incident": ("id",), "attempt": ("incident", "n"), "model_change": ("incident", "n"), "ask": ("incident", "n"),
    "crash": ("incident", "n"), "level": ("incident", "n"), "request": ("digest",), "pattern": ("id",),
    "by_hour": ("hour", "project", "model", "tool", "kind"),
    "by_day": ("day", "project", "model", "tool", "kind"),
    "by_pattern": ("day", "project", "pattern"),
    "by_latency": ("day", "project", "model", "bucket"),
    "by_message": ("day", "project", "fingerprint"),
    "by_rung": ("day", "project", "kind", "rung", "prompt", "model"),
    "by_end": ("day", "project", "model", "kind", "status", "rung"),
    "remedy": ("project", "fingerprint", "rung", "prompt", "model"),
    "project": ("id",),
    "session_model": ("session", "model"),
    "failure_group": ("project", "fingerprint"),
    "session": ("id",),
}  # fmt: skip
COUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "by_hour": ("n", "seconds", "dollars"),
    "by_day": ("n", "seconds", "dollars"),
    "by_pattern": ("n", "failures", "dollars"),
    "by_latency": ("n",),
    "by_message": ("n",),
    "by_rung": ("tried", "saved", "seconds", "dollars"),
    "by_end": ("n", "recovery", "dollars", "asked", "asks", "escalated", "escalations"),
    "remedy": ("tried", "worked", "tried_at", "worked_at"),
    "project": ("incidents", "attempts", "failures", "dollars", "began_at", "touched_at"),
    "session_model": ("attempts", "failures", "dollars", "touched_at"),
}
LEAST: Final = frozenset({"began_at"})  # columns of counts that do not add up: the least is kept
MOST: Final = frozenset({"touched_at", "tried_at", "worked_at"})  # the most
_SUMS: Final = frozenset(
    table for table, names in COUNTS.items() if not (LEAST | MOST) & set(names)
)  # all of it adds up
READ_MODELS: Final = (*ROWS, *COUNTS, "failure_group", "session")
_WIDTHS: Final = {table: len(key) for table, key in KEYS.items()}


class AttemptBucket(NamedTuple):
    """Attempts that count in the same places."""

    day: int
    hour: int
    project: str
    session: str
    model: str
    tool: str
    kind: str
    pattern: str
    bucket: int
    failed: bool


class ReadModelBatch:
    """What a number of events change: rows by key, counts by key, groups and sessions."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[tuple[Any, ...], tuple[Any, ...]]] = {}
        self.counts: dict[str, dict[tuple[Any, ...], list[float]]] = {}
        self.groups: dict[tuple[str, str], list[Any]] = {}
        self.sessions: dict[str, list[Any]] = {}
        self.attempts: dict[
            AttemptBucket, list[float]
        ] = {}  # how many, their seconds and dollars, the first and the last

    def attempt(self, alike: AttemptBucket, seconds: float, dollars: float, at: float) -> None:
        """One more attempt like these; where they count is said once for all of them."""
        known = self.attempts.get(alike)
        if known is None:
            self.attempts[alike] = [1, seconds, dollars, at, at]
            return
        known[0] += 1
        known[1] += seconds
        known[2] += dollars
        if at < known[3]:
            known[3] = at
        elif at > known[4]:
            known[4] = at

    def _count_attempts(self) -> None:
        attempts, self.attempts = self.attempts, {}
        for alike, (n, seconds, dollars, first, last) in attempts.items():
            day, hour, project, session, model, tool, kind, pattern, bucket, failed = alike
            bad = n if failed else 0
            self.add("by_hour", (hour, project, model, tool, kind), n, seconds, dollars)
            self.add("by_day", (day, project, model, tool, kind), n, seconds, dollars)
            self.add("by_pattern", (day, project, pattern), n, bad, dollars)
            self.add("by_latency", (day, project, model, bucket), n)
            self.add("project", (project,), 0, n, bad, dollars, first, last)
            if session:
                self.add("session_model", (session, model), n, bad, dollars, last)

    def put(self, table: str, *row: Any) -> None:
        """This row, instead of one with the same key."""
        rows = self.rows.get(table)
        if rows is None:
            rows = self.rows[table] = {}
        rows[row[: _WIDTHS[table]]] = row

    def add(self, table: str, key: tuple[Any, ...], *amounts: float) -> None:
        """So much more."""
        counts = self.counts.get(table)
        if counts is None:
            counts = self.counts[table] = {}
        known = counts.get(key)
        if known is None:
            counts[key] = list(amounts)
        elif table in _SUMS:
            counts[key] = list(map(add, known, amounts))
        else:
            counts[key] = [way(one, more) for way, one, more in zip(_ways(table), known, amounts, strict=True)]

    def take(self, other: ReadModelBatch) -> None:
        """Add another's changes to these."""
        other._count_attempts()
        for table, rows in other.rows.items():
            self.rows.setdefault(table, {}).update(rows)
        for table, counts in other.counts.items():
            for key, amounts in counts.items():
                self.add(table, key, *amounts)
        for group, seen in other.groups.items():
            self.group(group, *seen)
        for session, told in other.sessions.items():
            self.session(session, *told)

    def group(
        self, key: tuple[str, str], kind: str, message: str, example: str, first: float, last: float, count: int
    ) -> None:
        """A failure of this fingerprint was seen."""
        known = self.groups.get(key)
        if known is None:
            self.groups[key] = [kind, message, example, first, last, count]
            return
        if last > known[4]:
            known[2], known[4] = example, last
        known[3], known[5] = min(known[3], first), known[5] + count

    def session(self, name: str, *told: Any) -> None:
        """What happened in a session, in the order of its columns. A text that is empty says nothing new."""
        known = self.sessions.get(name)
        if known is None:
            self.sessions[name] = list(told)
            return
        if told[_MODEL] and told[_MODEL] != known[_MODEL]:
            known[_FORMER] = known[_MODEL] or known[_FORMER]
        if told[_FORMER]:
            known[_FORMER] = told[_FORMER]
        for index, text in enumerate(told[:_TEXTS]):
            if text and index != _FORMER:
                known[index] = text
        known[_TEXTS : _TEXTS + 2] = [min(known[_TEXTS], told[_TEXTS]), max(known[_TEXTS + 1], told[_TEXTS + 1])]
        for index in range(_TEXTS + 2, len(known)):
            known[index] += told[index]

    def write(self, connection: BackendConnection) -> None:
        """Bring the tables up to date."""
        self._count_attempts()
        for table, rows in self.rows.items():
            connection.many(_replacing(table), list(rows.values()))
        for table, counts in self.counts.items():
            connection.many(adding(table), [(*key, *amounts) for key, amounts in counts.items()])
        connection.many(_GROUPING, [(*key, *seen) for key, seen in self.groups.items()])
        connection.many(_SESSION, [(name, *told) for name, told in self.sessions.items()])


@cache
def _replacing(table: str) -> str:
    columns = ROWS[table]
    values = ", ".join("?" * len(columns))
    updates = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in KEYS[table])
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"  # noqa: S608  # our own names
        f" ON CONFLICT ({', '.join(KEYS[table])}) DO UPDATE SET {updates}"
    )


@cache
def _ways(table: str) -> tuple[Callable[[float, float], float], ...]:
    """How each count of a table is brought together with what is there."""
    return tuple(min if name in LEAST else max if name in MOST else add for name in COUNTS[table])


@cache
def adding(table: str) -> str:
    """The statement that adds counts to what is there."""
    columns = (*KEYS[table], *COUNTS[table])
    values = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values}){on_conflict(table)}"  # noqa: S608  # our own names


@cache
def on_conflict(table: str) -> str:
    """What becomes of a row that is there already."""
    updates = ", ".join(f"{name} = {_together(table, name)}" for name in COUNTS[table])
    return f" ON CONFLICT ({', '.join(KEYS[table])}) DO UPDATE SET {updates}"


def _together(table: str, name: str) -> str:
    ours, new = f"{table}.{name}", f"excluded.{name}"
    if name in LEAST or name in MOST:
        sign = "<" if name in LEAST else ">"
        return f"CASE WHEN {new} {sign} {ours} THEN {new} ELSE {ours} END"
    return f"{ours} + {new}"


_GROUPING: Final = """
    INSERT INTO failure_group (project, fingerprint, kind, message, example, first_at, last_at, count)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (project, fingerprint) DO UPDATE SET
      first_at = CASE WHEN excluded.first_at < failure_group.first_at THEN excluded.first_at ELSE failure_group.first_at END,
      last_at = CASE WHEN excluded.last_at > failure_group.last_at THEN excluded.last_at ELSE failure_group.last_at END,
      example = CASE WHEN excluded.last_at > failure_group.last_at THEN excluded.example ELSE failure_group.example END,
      count = failure_group.count + excluded.count"""
SESSION: Final = (
    "id", "project", "agent", "model", "former", "status", "kind", "message", "began_at", "touched_at", "incidents",
    "attempts", "failures", "dollars",
)  # fmt: skip
_MODEL, _FORMER, _TEXTS = 2, 3, 7  # places in what is told of a session
_SESSION: Final = f"""
    INSERT INTO session ({", ".join(SESSION)}) VALUES ({", ".join("?" * len(SESSION))})
    ON CONFLICT (id) DO UPDATE SET
      {
    ", ".join(
        f"{name} = CASE WHEN excluded.{name} <> '' THEN excluded.{name} ELSE session.{name} END"
        for name in ("project", "agent", "model", "status", "kind", "message")
    )
},
      former = CASE WHEN excluded.former <> '' THEN excluded.former
                    WHEN excluded.model <> '' AND excluded.model <> session.model AND session.model <> ''
                    THEN session.model ELSE session.former END,
      began_at = CASE WHEN excluded.began_at < session.began_at THEN excluded.began_at ELSE session.began_at END,
      touched_at = CASE WHEN excluded.touched_at > session.touched_at THEN excluded.touched_at ELSE session.touched_at END,
      {", ".join(f"{name} = session.{name} + excluded.{name}" for name in SESSION[10:])}"""  # noqa: S608  # our own names
